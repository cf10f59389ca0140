/* lua_read.h: Lua tables into structs, inside the app's Lua binding (only app/lua_*.c include it).
 *
 * These run inside C functions called from Lua and fail by raising a Lua error with its place: none
 * returns a status. They own nothing on the C side while they may raise. Keys are visited in
 * alphabetical order, so that the first mistake reported is the same in every run.
 */
#ifndef DBO_APP_LUA_READ_H
#define DBO_APP_LUA_READ_H

#include "app/lua/lua_sandbox.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/setting.h"

#include <lua.h>

/* Registry key of the list of folders that presets are looked for in. */
#define DBO_LUA_FOLDERS "dbo.folders"
/* Registry key of the list of {key, text} that override the keys of every experiment. */
#define DBO_LUA_SETS "dbo.sets"
/* Registry key: whether drawings use ASCII unless a script says. */
#define DBO_LUA_ASCII "dbo.ascii"
/* Registry key of the dbo_load_options, as a light userdata. */
#define DBO_LUA_OPTIONS "dbo.options"
/* Name of the metatable of experiments. */
#define DBO_LUA_EXPERIMENT "dbo.experiment"

/* Where a value was written, for errors: the calling script line (all zero), a line of a file, or
 * anything else ("--set nodes=x"). */
typedef struct dbo_place {
    const char *path;   /* a loaded file other than the caller's; or NULL */
    const char *prefix; /* before the sentence; or NULL */
} dbo_place;

/* Raises err at a place; `key` may be NULL. Does not return. */
int dbo_lua_raise(lua_State *L, const dbo_place *place, const char *key, dbo_error *err);

/* The Lua value at an index; text is borrowed from it. */
dbo_value dbo_lua_value(lua_State *L, int index);

/* Calls take(L, self, place, key) for each key of the table at `index`, the value on top of the
 * stack. Keys must be strings; `what` names the table in the sentence. */
typedef void (*dbo_lua_take)(lua_State *L, void *self, const dbo_place *place, const char *key);
void dbo_lua_each(lua_State *L, int index, const char *what, const dbo_place *place,
                  dbo_lua_take take, void *self);

/* The value at the top of the stack into a field of `object`. */
void dbo_lua_set_field(lua_State *L, const dbo_settings *settings, void *object,
                       const dbo_place *place, const char *key);

/* Pushes a copy of the table at `index`, tables in it copied as well, metatables shared; raises if
 * they are more than 16 deep. */
void dbo_lua_copy_table(lua_State *L, int index);

/* ---- presets (lua_preset.c) ---- */

/* Applies the description at the top of the stack to `object`: the name of a file in the folder
 * `kind` ("models", "hardware") of the scripts, or a table of fields that may have a `base`. */
void dbo_lua_read_described(lua_State *L, const char *kind, const dbo_settings *settings,
                            void *object, const dbo_place *place);

/* ---- batches (lua_batch.c) ---- */

/* Pushes the functions decode, prefill, batch into the module table at the top of the stack. */
void dbo_lua_open_batch(lua_State *L);
/* Is the value at the top of the stack made by one of them? */
bool dbo_lua_is_batch(lua_State *L);
/* The batch at the top of the stack, made by one of these, into `load`, which must be zeroed. */
void dbo_lua_read_batch(lua_State *L, dbo_workload *load, const dbo_place *place);
/* One key of it: num_tokens, context_len, prompt_len, jitter_us; the value on top of the stack. */
void dbo_lua_read_batch_key(lua_State *L, dbo_workload *load, const dbo_place *place,
                            const char *key);

/* ---- experiments (lua_dbo.c) ---- */

/* Pushes a finished experiment from the description at `index`, a table of its keys; then come the
 * overrides of the command line, then those of the table at `overrides` (0: none). Its user value 1
 * is a copy of the description. */
dbo_experiment *dbo_lua_make_experiment(lua_State *L, int index, int overrides);

/* ---- running (lua_run.c) ---- */

/* Pushes the functions load and run into the module table at the top of the stack. */
void dbo_lua_open_run(lua_State *L);
/* Pushes the path of a file as seen from the calling script, from the function's first argument,
 * which must be relative and end in `ending`. */
const char *dbo_lua_push_path(lua_State *L, const char *function, const char *ending);

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
