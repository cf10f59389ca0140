/* lua_read.c: values, keys and places (lua_read.h). */
#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

int dbo_lua_raise(lua_State *L, const dbo_place *place, const char *key, dbo_error *err)
{
    if (place && place->prefix) {
        dbo_error_prefix(err, "%s", place->prefix);
        return dbo_sandbox_raise(L, err);
    }
    if (place && place->path)
        return dbo_sandbox_raise_in(L, place->path, key, err);
    return dbo_sandbox_raise_at(L, key, err);
}

dbo_value dbo_lua_value(lua_State *L, int index)
{
    dbo_value value = {.kind = DBO_VALUE_OTHER};
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        value.kind = DBO_VALUE_BOOL;
        value.boolean = lua_toboolean(L, index);
        break;
    case LUA_TNUMBER:
        value.kind = lua_isinteger(L, index) ? DBO_VALUE_INTEGER : DBO_VALUE_REAL;
        value.real = lua_tonumber(L, index);
        if (value.kind == DBO_VALUE_INTEGER)
            value.integer = lua_tointeger(L, index);
        break;
    case LUA_TSTRING:
        value.kind = DBO_VALUE_TEXT;
        value.text = lua_tostring(L, index);
        break;
    case LUA_TTABLE: value.kind = DBO_VALUE_TABLE; break;
    case LUA_TNIL: value.text = "nil"; break;
    case LUA_TFUNCTION: value.text = "a function"; break;
    default: value.text = luaL_typename(L, index); break;
    }
    return value;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void dbo_lua_each(lua_State *L, int index, const char *what, const dbo_place *place,
                  dbo_lua_take take, void *self)
{
    dbo_error err = {0};
    luaL_checkstack(L, 8, "tables inside tables");
    index = lua_absindex(L, index);
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        count++;
        if (lua_type(L, -1) == LUA_TSTRING)
            continue;
        dbo_fail(&err, DBO_INVALID, "Write key = value.",
                 "%s takes named values only; one has no name", what);
        dbo_lua_raise(L, place, NULL, &err);
    }
    /* The strings stay alive, being keys of the table; the userdata is the C array's owner. */
    const char **keys = lua_newuserdatauv(L, count ? count * sizeof *keys : 1, 0);
    size_t i = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        keys[i++] = lua_tostring(L, -1);
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 0; i < count; i++) {
        lua_pushstring(L, keys[i]);
        lua_rawget(L, index);
        take(L, self, place, keys[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void dbo_lua_set_field(lua_State *L, const dbo_settings *settings, void *object,
                       const dbo_place *place, const char *key)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (dbo_setting_set(settings, object, key, &value, &err) != DBO_OK)
        dbo_lua_raise(L, place, key, &err);
}

/* The table at the top of the stack becomes its copy. */
static void copy_top(lua_State *L, int depth)
{
    dbo_error err = {0};
    if (depth == 0) {
        dbo_fail(&err, DBO_LIMIT, "Does one contain itself?",
                 "a description is tables more than 16 deep");
        dbo_sandbox_raise_at(L, NULL, &err);
    }
    luaL_checkstack(L, 8, "tables inside tables");
    int from = lua_gettop(L);
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, from)) {
        if (lua_type(L, -1) == LUA_TTABLE)
            copy_top(L, depth - 1);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, from + 1);
    }
    if (luaL_getmetafield(L, from, "__gc") != LUA_TNIL)
        lua_pop(L, 1); /* a script's own, with a finalizer smuggled in: not copied */
    else if (lua_getmetatable(L, from))
        lua_setmetatable(L, from + 1);
    lua_remove(L, from);
}

void dbo_lua_copy_table(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    copy_top(L, 16);
}
