/* lua_load.c: runs a script in a sandbox of its own and takes the experiment out (lua_load.h). */
#include "app/lua/lua_load.h"

#include "app/lua/lua_files.h"
#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* What the set-up needs; it runs as a Lua C function because it allocates in the state. */
typedef struct dbo_set_up {
    const char *script;
    const dbo_load_options *options;
} dbo_set_up;

/* Appends "WAY KEY=VALUE" to the list at the top of the stack. */
static void add_set(lua_State *L, const char *way, const char *set, size_t length)
{
    lua_pushfstring(L, "%s ", way);
    lua_pushlstring(L, set, length);
    lua_concat(L, 2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* DBO_SET="nodes=4 batch.num_tokens=64": settings with spaces between them. */
static void add_environment(lua_State *L, const char *sets)
{
    for (size_t length; sets && *(sets += strspn(sets, " ")); sets += length) {
        length = strcspn(sets, " ");
        add_set(L, "DBO_SET", sets, length);
    }
}

static int set_up(lua_State *L)
{
    const dbo_set_up *with = lua_touserdata(L, 1);
    dbo_lua_set_folders(L, with->script, with->options->readable, with->options->num_readable);
    lua_newtable(L);
    add_environment(L, getenv("DBO_SET"));
    for (uint32_t i = 0; i < with->options->num_sets; i++)
        add_set(L, "--set", with->options->sets[i], strlen(with->options->sets[i]));
    lua_setfield(L, LUA_REGISTRYINDEX, DBO_LUA_SETS);
    lua_pushlightuserdata(L, (void *)(uintptr_t)with->options);
    lua_setfield(L, LUA_REGISTRYINDEX, DBO_LUA_OPTIONS);
    lua_pushcfunction(L, dbo_lua_open);
    lua_call(L, 0, 0);
    return 0;
}

/* The experiment on the stack's top into *out. */
static dbo_status take_result(lua_State *L, const char *path, const dbo_load_options *options,
                              dbo_experiment *out, dbo_error *err)
{
    bool prints = options->may_return_nothing && dbo_sandbox_has_printed(dbo_sandbox_of(L));
    if (prints && lua_isnil(L, -1)) {
        *out = (dbo_experiment){0};
        return DBO_OK;
    }
    dbo_experiment *made = luaL_testudata(L, -1, DBO_LUA_EXPERIMENT);
    if (!made) {
        return dbo_fail(err, DBO_INVALID, "End the script with: return dbo.experiment { ... }",
                        "%s returns %s; it must return an experiment", path,
                        lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    }
    *out = *made;
    *made = (dbo_experiment){0}; /* moved: the userdata owns nothing any more */
    return DBO_OK;
}

dbo_status dbo_experiment_load(dbo_experiment *out, const char *path,
                               const dbo_load_options *options, dbo_error *err)
{
    static const dbo_load_options none = {0};
    dbo_status status = DBO_OK;
    dbo_set_up with = {.script = path, .options = options ? options : &none};
    dbo_sandbox *box = dbo_sandbox_create(&with.options->limits, err);
    if (!box)
        return err ? err->status : DBO_NO_MEMORY;
    lua_State *lua = dbo_sandbox_lua(box);
    lua_pushcfunction(lua, set_up);
    lua_pushlightuserdata(lua, &with);
    DBO_TRY_GOTO(dbo_sandbox_call(box, 1, 0, err), done);
    DBO_TRY_GOTO(dbo_sandbox_load_file(box, path, err), done);
    DBO_TRY_GOTO(dbo_sandbox_call(box, 0, 1, err), done);
    DBO_TRY_GOTO(take_result(lua, path, with.options, out, err), done);
done:
    dbo_sandbox_destroy(box);
    return status;
}
