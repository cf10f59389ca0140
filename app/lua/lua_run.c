/* lua_run.c: dbo.load and dbo.run: one script using another, and running what it describes.
 *
 * An experiment keeps the table that it was made from (its user value), so that dbo.run can make it
 * once more with other values and what follows from them follows again.
 */
#include "app/lua/lua_files.h"
#include "app/lua/lua_load.h"
#include "app/lua/lua_read.h"
#include "app/lua/lua_result.h"
#include "app/say/result_text.h"
#include "lab/world/need.h"
#include "lab/world/outcome.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define OUTCOME         "dbo.outcome"
#define DEPTH           "dbo.load.depth" /* registry key */
#define MAX_LOADS       8
#define WARNING_COLUMNS 100u

/* ---- dbo.load(path) ---- */

static lua_Integer add_depth(lua_State *L, lua_Integer by)
{
    lua_getfield(L, LUA_REGISTRYINDEX, DEPTH);
    lua_Integer depth = lua_tointeger(L, -1) + by;
    lua_pop(L, 1);
    lua_pushinteger(L, depth);
    lua_setfield(L, LUA_REGISTRYINDEX, DEPTH);
    return depth;
}

static int load_script(lua_State *L)
{
    dbo_error err = {0};
    if (add_depth(L, 0) == MAX_LOADS)
        dbo_lua_fail(L, DBO_LIMIT, "Does one load itself?", "more than %d scripts load each other",
                     MAX_LOADS);
    int fd = dbo_lua_open_file(L, "dbo.load", ".lua");
    const char *path = lua_tostring(L, -1);
    if (dbo_sandbox_load_open(dbo_sandbox_of(L), fd, path, &err) != DBO_OK) {
        bool is_read = err.status != DBO_IO; /* then the sentence has its place */
        dbo_lua_blame_script(&err);
        return is_read ? dbo_sandbox_raise(L, &err) : dbo_lua_raise(L, &err);
    }
    add_depth(L, 1);
    int lua_status = dbo_sandbox_pcall(L, 0, 1);
    add_depth(L, -1);
    if (lua_status != LUA_OK)
        dbo_sandbox_raise_again(L);
    if (!luaL_testudata(L, -1, DBO_LUA_EXPERIMENT))
        dbo_lua_fail(L, DBO_INVALID, "It must end with: return dbo.experiment { ... }",
                     "%s returns %s, not an experiment", path,
                     lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    return 1;
}

/* ---- dbo.run(experiment, overrides) ---- */

static int collect_outcome(lua_State *L)
{
    dbo_outcome_fini(lua_touserdata(L, 1));
    return 0;
}

/* Where a script prints, since nobody may look at the result's fields. */
static void print_warnings(lua_State *L, const dbo_result *result)
{
    dbo_strbuf text = {0};
    uint32_t columns = dbo_sandbox_limits_of(dbo_sandbox_of(L))->columns;
    dbo_result_warnings(result, columns > 0 ? columns : WARNING_COLUMNS, &text);
    if (text.len > 0)
        dbo_sandbox_print(dbo_sandbox_of(L), dbo_strbuf_text(&text), text.len);
    dbo_strbuf_fini(&text);
}

/* Whoever loaded the script may look at what it runs. */
static dbo_status tell(lua_State *L, const dbo_experiment *experiment, uint64_t fault_reached,
                       dbo_error *err)
{
    const dbo_load_options *options = dbo_lua_options(L);
    return options && options->ran ? options->ran(options->ran_self, experiment, fault_reached, err)
                                   : DBO_OK;
}

static void check_may_run(lua_State *L)
{
    const dbo_load_options *options = dbo_lua_options(L);
    if (options && options->no_runs)
        dbo_lua_fail(L, DBO_INVALID, "Let the script return one of its experiments.",
                     "dbo.run is simulated: there is nothing for %s", options->no_runs);
}

/* One that cannot end is worth a look, too. */
static dbo_status simulate(lua_State *L, const dbo_experiment *experiment,
                           const dbo_simulate_options *options, dbo_outcome *outcome,
                           dbo_error *err)
{
    dbo_error ignored = {0};
    dbo_status status = dbo_simulate(experiment, options, outcome, err);
    if (status == DBO_OK)
        return tell(L, experiment, outcome->on.fault_reached, err);
    if (status == DBO_DEADLOCK)
        tell(L, experiment, outcome->on.fault_reached, &ignored);
    return status;
}

static int run_experiment(lua_State *L)
{
    dbo_error err = {0};
    dbo_experiment *experiment = luaL_testudata(L, 1, DBO_LUA_EXPERIMENT);
    lua_settop(L, 2);
    if (!experiment || (lua_type(L, 2) != LUA_TTABLE && !lua_isnil(L, 2)))
        dbo_lua_fail(L, DBO_INVALID, NULL,
                     "dbo.run takes an experiment and, if wanted, a table of overrides: "
                     "dbo.run(e, { nodes = 4 })");
    check_may_run(L);
    if (!lua_isnil(L, 2)) {
        lua_getiuservalue(L, 1, 1);
        experiment = dbo_lua_make_experiment(L, 3, dbo_lua_read(L, 2));
    }
    uint64_t left = dbo_sandbox_left_bytes(dbo_sandbox_of(L));
    dbo_lua_check(L, dbo_need_check(experiment, left, DBO_SANDBOX_MEMORY_HINT, &err), &err);
    const dbo_simulate_options options = {.cancelled = dbo_sandbox_is_cancelled,
                                          .cancelled_arg = dbo_sandbox_of(L)};
    dbo_outcome *outcome = lua_newuserdatauv(L, sizeof *outcome, 0);
    memset(outcome, 0, sizeof *outcome);
    luaL_setmetatable(L, OUTCOME);
    dbo_sandbox_pause(dbo_sandbox_of(L), true);
    dbo_status status = simulate(L, experiment, &options, outcome, &err);
    dbo_sandbox_pause(dbo_sandbox_of(L), false);
    dbo_sandbox_check(L); /* an interruption is the script's, too, however it was called */
    dbo_lua_check(L, status, &err);
    print_warnings(L, &outcome->result);
    dbo_lua_push_result(L, outcome);
    /* Traces and batches are large and not the collector's: they do not wait for it. */
    dbo_outcome_fini(outcome);
    if (!lua_isnil(L, 2))
        dbo_lua_end_experiment(L, experiment);
    return 1;
}

void dbo_lua_open_run(lua_State *L)
{
    dbo_lua_new_type(L, OUTCOME, collect_outcome);
    lua_pop(L, 1);
    dbo_lua_open_result(L);
    dbo_lua_set_function(L, "load", load_script);
    dbo_lua_set_function(L, "run", run_experiment);
}
