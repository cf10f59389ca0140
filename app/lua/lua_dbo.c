/* lua_dbo.c: the module that scripts get with require "dbo": experiment, fixed, and the batches.
 *
 * dbo.experiment reads a table into a dbo_experiment that a userdata owns, applies what the
 * environment and the command line override, and finishes it; so a script's mistake is reported at
 * its line and nothing leaks when it is. dbo.decode and its like check their table, mark it with a
 * metatable of its kind and return it: it stays one that a script can read and change;
 * dbo.experiment reads it once more.
 */
#include "app/io/input.h"
#include "app/lua/lua_load.h"
#include "app/lua/lua_read.h"
#include "app/lua/lua_schedule.h"
#include "dbo_build.h"
#include "lab/experiment/value_json.h"

#include <lauxlib.h>
#include <string.h>

/* ---- dbo.fixed {}, dbo.decode {}, dbo.prefill {}, dbo.batch {} ---- */

/* Marks the argument, the table at stack index 1, and returns it. */
static int return_marked(lua_State *L, const char *type)
{
    lua_settop(L, 1);
    luaL_setmetatable(L, type);
    return 1;
}

static int make_fixed(lua_State *L)
{
    dbo_error err = {0};
    dbo_fixed_costs scratch = {0};
    const dbo_settings settings = dbo_fixed_settings();
    const dbo_value *costs = dbo_lua_read_argument(L, DBO_LUA_FIXED);
    dbo_lua_check(L, dbo_settings_set(&settings, &scratch, costs, &err), &err);
    return return_marked(L, DBO_LUA_FIXED);
}

static int make_batch(lua_State *L)
{
    const char *type = lua_tostring(L, lua_upvalueindex(1));
    dbo_error err = {0};
    dbo_workload scratch = {0};
    dbo_value value = *dbo_lua_read_argument(L, type);
    value.made_by = type;
    dbo_status status = dbo_workload_set(&scratch, NULL, &value, 0, &err);
    dbo_workload_fini(&scratch);
    dbo_lua_check(L, status, &err);
    return return_marked(L, type);
}

/* ---- dbo.experiment {} ---- */

#define SAID "dbo.said" /* registry key, of an experiment while it is made: note_said */

/* Notes the way in which a key was said last (NULL: in the script): "batch.num_tokens" of a member,
 * "batch." of what is no table, "batch" of either; a key of vLLM's groups by its own name. */
static void note_said(lua_State *L, const char *way, const char *key, const dbo_value *value)
{
    size_t length = strlen(key);
    bool is_table = value->kind == DBO_VALUE_TABLE;
    bool grouped = length > 7 && strcmp(key + length - 7, "_config") == 0;
    lua_getfield(L, LUA_REGISTRYINDEX, SAID);
    int said = lua_gettop(L);
    lua_pushstring(L, way); /* nil for NULL */
    lua_setfield(L, said, key);
    for (uint32_t i = 0; i < (is_table ? value->count : 1); i++) {
        const char *inner = is_table ? value->table[i].key : "";
        if (!inner)
            continue;
        const char *whole =
            lua_pushfstring(L, grouped ? "%s%s" : "%s.%s", grouped ? "" : key, inner);
        lua_pushstring(L, way);
        lua_setfield(L, said, whole);
        lua_settop(L, said);
    }
    lua_pop(L, 1);
}

/* How the key that an error is about was said; pushes what holds the text. */
static const char *way_of(lua_State *L, const char *key)
{
    size_t length = strcspn(key, "[");
    lua_getfield(L, LUA_REGISTRYINDEX, SAID);
    int said = lua_gettop(L);
    lua_getfield(L, said, lua_pushlstring(L, key, length));
    if (lua_isnil(L, -1) && memchr(key, '.', length)) {
        lua_pushlstring(L, key, strcspn(key, ".") + 1);
        lua_gettable(L, said);
    }
    return lua_tostring(L, -1);
}

/* `way` is what an override was written as, "--set nodes=4"; NULL: in the script. */
static void set_key(lua_State *L, dbo_experiment *experiment, const char *way, const char *key,
                    const dbo_value *value)
{
    dbo_error err = {0};
    const char *dot = strchr(key, '.');
    if (dot) { /* batch.num_tokens: a table with one key */
        const dbo_member inner = {dot + 1, *value};
        const dbo_value table = {.kind = DBO_VALUE_TABLE, .count = 1, .table = &inner};
        set_key(L, experiment, way, lua_pushlstring(L, key, (size_t)(dot - key)), &table);
        lua_pop(L, 1);
        return;
    }
    note_said(L, way, key, value);
    if (strcmp(key, "model") == 0 || strcmp(key, "hardware") == 0) {
        dbo_lua_describe(L, experiment, way, key, value);
    } else if (dbo_experiment_set(experiment, key, value, &err) != DBO_OK) {
        dbo_lua_raise_by(L, way, &err);
    }
}

static void set_table(lua_State *L, dbo_experiment *experiment, const char *what,
                      const dbo_value *table)
{
    dbo_error err = {0};
    dbo_lua_check(L, dbo_value_table(what, "a table", table, &err), &err);
    dbo_lua_check(L, dbo_value_agrees(table, &err), &err);
    for (uint32_t i = 0; i < table->count; i++)
        set_key(L, experiment, NULL, table->table[i].key, &table->table[i].value);
}

/* A JSON file of settings while it is read. */
static int collect_json(lua_State *L)
{
    dbo_json **doc = lua_touserdata(L, 1);
    dbo_json_destroy(*doc);
    *doc = NULL;
    return 0;
}

/* The settings of the JSON file at `path`; `way` says how it was given. */
static void set_file(lua_State *L, dbo_experiment *experiment, const char *way, const char *path)
{
    dbo_error err = {0};
    dbo_value table = {0};
    dbo_json **doc = lua_newuserdatauv(L, sizeof *doc, 0);
    *doc = NULL;
    luaL_setmetatable(L, "dbo.json");
    const dbo_value_memory memory = dbo_lua_push_memory(L);
    dbo_status status = dbo_input_remember(path, &err);
    if (status == DBO_OK)
        status = dbo_json_read_file(doc, path, NULL, &err);
    if (status == DBO_OK)
        status = dbo_value_of_json(&memory, *doc, &table, &err);
    if (status == DBO_OK)
        status = dbo_value_table("the file", "an object of settings", &table, &err);
    if (status == DBO_OK)
        status = dbo_value_agrees(&table, &err);
    dbo_lua_blame_script(&err);
    if (status != DBO_OK)
        dbo_lua_raise_by(L, way, &err);
    for (uint32_t i = 0; i < table.count; i++)
        set_key(L, experiment, way, table.table[i].key, &table.table[i].value);
    lua_pop(L, 3);
}

/* What was said outside of scripts, each "WAY KEY=VALUE" or "WAY @FILE"; a way is one word and has
 * one turn. */
static void set_outside(lua_State *L, dbo_experiment *experiment)
{
    const char *last = "";
    dbo_error err = {0};
    lua_getfield(L, LUA_REGISTRYINDEX, DBO_LUA_SETS);
    int sets = lua_gettop(L);
    const dbo_value_memory memory = dbo_lua_push_memory(L);
    for (lua_Integer i = 1; lua_rawgeti(L, sets, i) == LUA_TSTRING; i++) {
        const char *set = lua_tostring(L, -1); /* which the registry holds */
        size_t way = strcspn(set, " ") + 1;
        dbo_member said = {0};
        experiment->turn += strncmp(last, set, way) != 0;
        last = set;
        if (set[way] == '@') {
            set_file(L, experiment, set, set + way + 1);
        } else {
            if (dbo_value_of_setting(&memory, set + way, &said, &err) != DBO_OK)
                dbo_lua_raise_by(L, set, &err);
            set_key(L, experiment, set, said.key, &said.value);
        }
        lua_pop(L, 1);
    }
    lua_settop(L, sets - 1);
}

/* What an experiment of the script's is: found by its first member. */
typedef struct made_experiment {
    dbo_experiment experiment;
    size_t charged; /* of its routings, which may be large */
} made_experiment;

void dbo_lua_end_experiment(lua_State *L, dbo_experiment *experiment)
{
    dbo_experiment_fini(experiment);
    dbo_sandbox_charge(L, &((made_experiment *)experiment)->charged, 0);
}

static int collect_experiment(lua_State *L)
{
    dbo_lua_end_experiment(L, lua_touserdata(L, 1));
    return 0;
}

const dbo_load_options *dbo_lua_options(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, DBO_LUA_OPTIONS);
    const dbo_load_options *options = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return options;
}

dbo_experiment *dbo_lua_make_experiment(lua_State *L, int owner, const dbo_value *overrides)
{
    dbo_error err = {0};
    made_experiment *made = lua_newuserdatauv(L, sizeof *made, 1);
    dbo_experiment *experiment = &made->experiment;
    made->charged = 0;
    dbo_experiment_init(experiment);
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, SAID);
    luaL_setmetatable(L, DBO_LUA_EXPERIMENT);
    lua_pushvalue(L, owner);
    lua_setiuservalue(L, -2, 1);
    set_table(L, experiment, "dbo.experiment", dbo_lua_read_again(L, owner));
    set_outside(L, experiment);
    const dbo_load_options *options = dbo_lua_options(L);
    if (options && options->num_made)
        ++*options->num_made;
    experiment->turn++;
    if (overrides)
        set_table(L, experiment, "the overrides", overrides);
    if (dbo_experiment_finish(experiment, &err) != DBO_OK)
        dbo_lua_raise_by(L, way_of(L, err.key), &err); /* a schedule's is at its own line */
    dbo_sandbox_charge(L, &made->charged, dbo_routings_bytes(&experiment->routings));
    return experiment;
}

static int make_experiment(lua_State *L)
{
    dbo_lua_read_argument(L, DBO_LUA_EXPERIMENT);
    dbo_lua_make_experiment(L, lua_gettop(L), NULL);
    return 1;
}

int dbo_lua_open(lua_State *L)
{
    static const char *const batches[] = {"decode", "prefill", "batch"};
    dbo_lua_new_type(L, DBO_LUA_EXPERIMENT, collect_experiment);
    dbo_lua_new_type(L, DBO_LUA_FIXED, NULL);
    dbo_lua_new_type(L, "dbo.json", collect_json);
    dbo_lua_new_type(L, DBO_LUA_TEXT, dbo_lua_collect_text);
    dbo_lua_new_type(L, "dbo " DBO_BUILD_VERSION, NULL);
    lua_newtable(L);
    lua_insert(L, -2);
    lua_setmetatable(L, -2);
    lua_replace(L, 1);
    lua_settop(L, 1);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        const char *type = lua_pushfstring(L, "dbo.%s", batches[i]);
        dbo_lua_new_type(L, type, NULL);
        lua_pop(L, 1);
        lua_pushcclosure(L, make_batch, 1);
        lua_setfield(L, -2, batches[i]);
    }
    dbo_lua_set_function(L, "experiment", make_experiment);
    dbo_lua_set_function(L, "fixed", make_fixed);
    dbo_lua_open_schedule(L);
    dbo_lua_open_run(L);
    dbo_lua_open_table(L);
    dbo_lua_open_requests(L);
    dbo_sandbox_set_module(dbo_sandbox_of(L));
    return 0;
}
