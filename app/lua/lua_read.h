/* lua_read.h: what scripts say, read into values, inside the app's Lua binding (only app/lua use
 * it).
 *
 * A table is read once, whole, into a dbo_value that is a copy: no script runs meanwhile, and what
 * scripts do to the table later changes nothing. The copy belongs to a userdata.
 *
 *     const dbo_value *table = dbo_lua_read(L, 1);          // pushes the owner
 *     if (dbo_setting_set(&settings, &object, "nodes", dbo_value_member(table, "nodes"), &err))
 *         dbo_lua_raise(L, &err);                           // "F.lua:7: nodes must be ..."
 *
 * These run inside C functions called from Lua and fail by raising a Lua error with its place: none
 * returns a status. They own nothing on the C side while they may raise.
 */
#ifndef DBO_APP_LUA_READ_H
#define DBO_APP_LUA_READ_H

#include "app/lua/lua_sandbox.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/setting.h"

#include <lua.h>

/* Registry key of what overrides the keys of every experiment: "DBO_SET nodes=4", "--set nodes=8".
 */
#define DBO_LUA_SETS "dbo.sets"
/* Registry key of the dbo_load_options, as a light userdata. */
#define DBO_LUA_OPTIONS "dbo.options"
/* Name of the metatable of experiments. */
#define DBO_LUA_EXPERIMENT "dbo.experiment"
/* Name of the metatable of schedules, and what such a userdata is. */
#define DBO_LUA_SCHEDULE "dbo.schedule"
typedef struct dbo_lua_schedule {
    dbo_template *t; /* held */
    size_t charged;  /* for it, to the script */
} dbo_lua_schedule;
/* Name of the metatable of what dbo.fixed gives; those of batches: "dbo.decode", ... */
#define DBO_LUA_FIXED "dbo.fixed"

/* Raises err at the line of the calling script that says its key, or at the call. Does not return.
 */
int dbo_lua_raise(lua_State *L, dbo_error *err);
/* The same for what was said by an override, "--set nodes=4"; NULL: as dbo_lua_raise. */
int dbo_lua_raise_by(lua_State *L, const char *way, dbo_error *err);

/* What a script names and nobody can read is the script's mistake: DBO_IO, which ends dbo with
 * another exit code, is said of the script's own file alone. */
void dbo_lua_blame_script(dbo_error *err);

/* dbo_fail, raised so. Does not return. */
int dbo_lua_fail(lua_State *L, dbo_status status, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* dbo_lua_raise, unless the status is DBO_OK. */
void dbo_lua_check(lua_State *L, dbo_status status, dbo_error *err);

/* The value at an index with all that is in it, copied; pushes its owner. Raises if tables are more
 * than 16 deep. */
const dbo_value *dbo_lua_read(lua_State *L, int index);
/* The same, but tables inside it are not looked into. */
const dbo_value *dbo_lua_read_flat(lua_State *L, int index);
/* The value that an owner pushed by dbo_lua_read holds. */
const dbo_value *dbo_lua_read_again(lua_State *L, int owner);
/* Memory for other values, while the two values that are pushed stay where they are. */
dbo_value_memory dbo_lua_push_memory(lua_State *L);

/* The single argument of `function` must be a table: copied; pushes its owner. */
const dbo_value *dbo_lua_read_argument(lua_State *L, const char *function);

/* A new metatable, at the top of the stack: tostring() says `name`, scripts cannot see it,
 * `collect` (or NULL) is its finalizer. */
void dbo_lua_new_type(lua_State *L, const char *name, lua_CFunction collect);

/* Pushes a text that goes when Lua has no more use for it; it may take half of the memory that the
 * script has left. Once it is made, _check charges it to the script, and raises if there was too
 * little memory for `what`; _end frees it, which the collector would do much later. */
dbo_strbuf *dbo_lua_push_text(lua_State *L);
void dbo_lua_check_text(lua_State *L, dbo_strbuf *text, const char *what);
void dbo_lua_end_text(lua_State *L, dbo_strbuf *text);
#define DBO_LUA_TEXT "dbo.text" /* the name of its metatable, whose finalizer is: */
int dbo_lua_collect_text(lua_State *L);

/* Sets a member of the table at the top of the stack. */
void dbo_lua_set_function(lua_State *L, const char *name, lua_CFunction function);
void dbo_lua_set_integer(lua_State *L, const char *name, lua_Integer value);

/* ---- presets (lua_preset.c) ---- */

/* Fills the experiment's "model" or "hardware" (`key`) from the name of a file in the scripts, or
 * from a table of fields that may have a `base`. `way` as in dbo_lua_raise_by. */
void dbo_lua_describe(lua_State *L, dbo_experiment *experiment, const char *way, const char *key,
                      const dbo_value *value);

/* ---- experiments (lua_dbo.c) ---- */

/* What the script was loaded with (lua_load.h), or NULL. */
const struct dbo_load_options *dbo_lua_options(lua_State *L);

/* Pushes a finished experiment from its description; then come the environment's and the command
 * line's overrides, then those of `overrides` (may be NULL). The owner of the description, at
 * stack index `owner`, becomes its user value 1. */
dbo_experiment *dbo_lua_make_experiment(lua_State *L, int owner, const dbo_value *overrides);
/* Ends one that was made; its collector need not then, but may. */
void dbo_lua_end_experiment(lua_State *L, dbo_experiment *experiment);

/* ---- running (lua_run.c) ---- */

/* Pushes the functions load and run into the module table at the top of the stack. */
void dbo_lua_open_run(lua_State *L);

/* ---- files of requests (lua_requests.c) ---- */

/* Pushes the function requests into the module table at the top of the stack. */
void dbo_lua_open_requests(lua_State *L);

/* ---- tables of results (lua_table.c) ---- */

/* Pushes the function table into the module table at the top of the stack. */
void dbo_lua_open_table(lua_State *L);

/* ---- the module (lua_dbo.c) ---- */

/* Makes the module `dbo` known to the sandbox. Runs as a Lua C function: pushes nothing. */
int dbo_lua_open(lua_State *L);

#endif
