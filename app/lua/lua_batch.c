/* lua_batch.c: dbo.decode, dbo.prefill and dbo.batch (workload.h says what they mean).
 *
 * Each checks its table, marks it with a metatable of its kind and returns it: the table stays one
 * that a script can read and change; dbo.experiment reads it once more.
 */
#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <string.h>

#define KIND_FIELD "dbo.batch.kind"

static const char *const keys_decode[] = {"num_tokens", "context_len", "jitter_us", NULL};
static const char *const keys_prefill[] = {"num_tokens", "prompt_len", "context_len", "jitter_us",
                                           NULL};
static const char *const keys_requests[] = {"requests", "jitter_us", NULL};

/* The keys of a kind, for sentences. */
static dbo_settings settings_of(dbo_workload_kind kind)
{
    switch (kind) {
    case DBO_WORKLOAD_DECODE: return (dbo_settings){"dbo.decode", NULL, 0, keys_decode};
    case DBO_WORKLOAD_PREFILL: return (dbo_settings){"dbo.prefill", NULL, 0, keys_prefill};
    default: return (dbo_settings){"dbo.batch", NULL, 0, keys_requests};
    }
}

static bool has_key(const dbo_settings *settings, const char *key)
{
    for (const char *const *known = settings->extra; *known; known++) {
        if (strcmp(*known, key) == 0)
            return true;
    }
    return false;
}

/* ---- numbers: one for all ranks, or a list ---- */

static void read_numbers(lua_State *L, dbo_per_rank *numbers, const dbo_place *place,
                         const char *key)
{
    dbo_error err = {0};
    numbers->count = 0;
    if (lua_type(L, -1) != LUA_TTABLE) {
        dbo_value value = dbo_lua_value(L, -1);
        if (dbo_workload_put(numbers, key, 0, &value, &err) != DBO_OK)
            dbo_lua_raise(L, place, key, &err);
        return;
    }
    lua_Unsigned count = lua_rawlen(L, -1);
    if (count == 0) {
        dbo_fail(&err, DBO_INVALID, NULL, "%s is an empty list", key);
        dbo_lua_raise(L, place, key, &err);
    }
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        dbo_value value = dbo_lua_value(L, -1);
        uint32_t index = i > DBO_MAX_RANKS ? DBO_MAX_RANKS : (uint32_t)i - 1;
        if (dbo_workload_put(numbers, key, index, &value, &err) != DBO_OK)
            dbo_lua_raise(L, place, key, &err);
        lua_pop(L, 1);
    }
}

/* ---- requests: a list, or a list of lists ---- */

typedef struct dbo_request_keys {
    dbo_request request;
    dbo_request_cache cache;
    bool has_cache;
} dbo_request_keys;

/* blocks = { 4, 7 }, at the top of the stack: pushes the userdata that the numbers live in. */
static void read_blocks(lua_State *L, dbo_request_keys *keys, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TABLE) {
        dbo_value_mismatch("blocks", "a list of numbers", &value, &err);
        dbo_lua_raise(L, place, "blocks", &err);
    }
    lua_Unsigned count = lua_rawlen(L, -1);
    int32_t *blocks = lua_newuserdatauv(L, count * sizeof *blocks + 1, 0);
    for (lua_Unsigned i = 0; i < count; i++) {
        uint32_t number = 0;
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        value = dbo_lua_value(L, -1);
        if (dbo_value_integer("a block", &value, 1, 1 << 30, &number, &err) != DBO_OK)
            dbo_lua_raise(L, place, "blocks", &err);
        blocks[i] = (int32_t)number;
        lua_pop(L, 1);
    }
    keys->cache.blocks = blocks;
    keys->cache.num_blocks = (uint32_t)count;
}

static const char *const keys_request[] = {
    "id", "num_scheduled", "num_computed", "blocks", "prefix", "prefix_len", NULL};
static const dbo_settings settings_request = {"a request", NULL, 0, keys_request};

static void take_request(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_request_keys *into = self;
    dbo_value value = dbo_lua_value(L, -1);
    dbo_error err = {0};
    uint32_t number = 0;
    dbo_status status = DBO_OK;
    if (!has_key(&settings_request, key)) {
        status = dbo_setting_unknown(&settings_request, key, &err);
    } else if (strcmp(key, "num_scheduled") == 0) {
        status = dbo_value_integer(key, &value, 1, DBO_WORKLOAD_MAX_TOKENS, &number, &err);
        into->request.num_scheduled = (int32_t)number;
    } else if (strcmp(key, "num_computed") == 0) {
        status = dbo_value_integer(key, &value, 0, DBO_WORKLOAD_MAX_CONTEXT, &number, &err);
        into->request.num_computed = (int32_t)number;
    } else if (strcmp(key, "id") == 0) {
        status = dbo_value_integer(key, &value, 0, UINT32_MAX, &number, &err);
        into->request.id = number;
    } else if (strcmp(key, "prefix_len") == 0) {
        status = dbo_value_integer(key, &value, 1, DBO_WORKLOAD_MAX_CONTEXT,
                                   &into->cache.prefix_len, &err);
    } else if (strcmp(key, "prefix") == 0 && value.kind != DBO_VALUE_TEXT) {
        status = dbo_value_mismatch(key, "a name", &value, &err);
    } else if (strcmp(key, "prefix") == 0) {
        into->cache.prefix = value.text; /* alive: the request's table holds it */
    }
    into->has_cache = into->has_cache || strcmp(key, "blocks") == 0 || strcmp(key, "prefix") == 0;
    if (status != DBO_OK)
        dbo_lua_raise(L, place, key, &err);
}

/* The request at the top of the stack. */
static void read_request(lua_State *L, dbo_workload *load, uint32_t list, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_request_keys keys = {.request.id = DBO_WORKLOAD_NEXT_ID};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TABLE) {
        dbo_value_mismatch("a request", "{ num_scheduled = ..., num_computed = ... }", &value,
                           &err);
        dbo_lua_raise(L, place, "requests", &err);
    }
    dbo_lua_each(L, -1, "a request", place, take_request, &keys);
    int top = lua_gettop(L);
    lua_pushliteral(L, "blocks");
    if (lua_rawget(L, -2) != LUA_TNIL)
        read_blocks(L, &keys, place);
    if (keys.cache.blocks && keys.cache.prefix) {
        dbo_fail(&err, DBO_INVALID, "Give one of the two.",
                 "a request has blocks beside a prefix, which says which blocks it has");
        dbo_lua_raise(L, place, "prefix", &err);
    }
    if (dbo_workload_add(load, list, keys.request, keys.has_cache ? &keys.cache : NULL, &err) !=
        DBO_OK)
        dbo_lua_raise(L, place, "requests", &err);
    lua_settop(L, top);
}

/* The first in alphabetical order of the keys that are no places of the list at the top of the
 * stack, or NULL; *hole: it has a place beyond a missing one. */
static const char *name_in_list(lua_State *L, bool *hole)
{
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    const char *first = NULL; /* alive: a key of the table */
    *hole = false;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING) {
            const char *key = lua_tostring(L, -1);
            first = !first || strcmp(key, first) < 0 ? key : first;
        } else if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 ||
                   lua_tointeger(L, -1) > count) {
            *hole = true;
        }
    }
    return first;
}

/* The table at the top of the stack is a list: a misspelt key must not make a request vanish. */
static void check_list(lua_State *L, const dbo_place *place)
{
    dbo_error err = {0};
    bool hole = false;
    const char *name = name_in_list(L, &hole);
    if (!name && !hole)
        return;
    if (!name)
        dbo_fail(&err, DBO_INVALID, "Leave the missing ones out.",
                 "a list of requests has a hole: it is counted 1, 2, 3, ...");
    else if (has_key(&settings_request, name))
        dbo_fail(&err, DBO_INVALID, "Write requests = { { num_scheduled = ... }, ... }.",
                 "'%s' is a key of a request, but stands in a list of requests", name);
    else
        dbo_setting_unknown(&settings_request, name, &err);
    dbo_lua_raise(L, place, "requests", &err);
}

/* The list of requests at the top of the stack. */
static void read_list(lua_State *L, dbo_workload *load, uint32_t list, const dbo_place *place)
{
    dbo_error err = {0};
    check_list(L, place);
    if (dbo_workload_fit(load, list + 1, &err) != DBO_OK)
        dbo_lua_raise(L, place, "requests", &err);
    lua_Unsigned count = lua_rawlen(L, -1);
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        read_request(L, load, list, place);
        lua_pop(L, 1);
    }
}

static void read_requests(lua_State *L, dbo_workload *load, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TABLE) {
        dbo_value_mismatch("requests", "a list of requests, or one such list per rank", &value,
                           &err);
        dbo_lua_raise(L, place, "requests", &err);
    }
    check_list(L, place);
    lua_Unsigned count = lua_rawlen(L, -1);
    bool flat = true, hole = false; /* whatever has a name in it is a request */
    if (lua_rawgeti(L, -1, 1) == LUA_TTABLE)
        flat = name_in_list(L, &hole) != NULL;
    lua_pop(L, 1);
    if (flat) {
        read_list(L, load, 0, place);
        return;
    }
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        value = dbo_lua_value(L, -1);
        if (value.kind != DBO_VALUE_TABLE) {
            dbo_value_mismatch("requests of a rank", "a list", &value, &err);
            dbo_lua_raise(L, place, "requests", &err);
        }
        read_list(L, load, i > DBO_MAX_RANKS ? DBO_MAX_RANKS : (uint32_t)i - 1, place);
        lua_pop(L, 1);
    }
}

void dbo_lua_read_batch_key(lua_State *L, dbo_workload *load, const dbo_place *place,
                            const char *key)
{
    dbo_error err = {0};
    dbo_settings settings = settings_of(load->kind);
    if (!has_key(&settings, key)) {
        dbo_setting_unknown(&settings, key, &err);
        dbo_lua_raise(L, place, key, &err);
    }
    dbo_per_rank *numbers = dbo_workload_numbers(load, key);
    if (numbers) {
        read_numbers(L, numbers, place, key);
    } else if (strcmp(key, "requests") == 0) {
        read_requests(L, load, place);
    } else {
        dbo_value value = dbo_lua_value(L, -1);
        if (dbo_value_number(key, &value, 0, 1e6, &load->jitter_us, &err) != DBO_OK)
            dbo_lua_raise(L, place, key, &err);
    }
}

static void take_key(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_lua_read_batch_key(L, self, place, key);
}

bool dbo_lua_is_batch(lua_State *L)
{
    if (lua_type(L, -1) != LUA_TTABLE || luaL_getmetafield(L, -1, KIND_FIELD) == LUA_TNIL)
        return false;
    lua_pop(L, 1);
    return true;
}

void dbo_lua_read_batch(lua_State *L, dbo_workload *load, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    int kind = DBO_WORKLOAD_NONE;
    if (value.kind == DBO_VALUE_TABLE && luaL_getmetafield(L, -1, KIND_FIELD) != LUA_TNIL) {
        kind = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (kind == DBO_WORKLOAD_NONE) {
        dbo_value_mismatch("batch", "what dbo.decode {}, dbo.prefill {} or dbo.batch {} gives",
                           &value, &err);
        dbo_lua_raise(L, place, "batch", &err);
    }
    load->kind = (dbo_workload_kind)kind;
    dbo_lua_each(L, -1, settings_of(load->kind).name, place, take_key, load);
    bool given = kind == DBO_WORKLOAD_REQUESTS ? load->num_lists > 0 : load->num_tokens.count > 0;
    if (!given) {
        dbo_fail(&err, DBO_INVALID, NULL, "%s needs %s", settings_of(load->kind).name,
                 kind == DBO_WORKLOAD_REQUESTS ? "requests" : "num_tokens");
        dbo_lua_raise(L, place, NULL, &err);
    }
}

/* ---- dbo.decode {}, dbo.prefill {}, dbo.batch {} ---- */

static int collect_workload(lua_State *L)
{
    dbo_workload_fini(lua_touserdata(L, 1));
    return 0;
}

/* A zeroed workload owned by a userdata, which is pushed: for checking a table. */
static dbo_workload *push_scratch(lua_State *L)
{
    dbo_workload *load = lua_newuserdatauv(L, sizeof *load, 0);
    memset(load, 0, sizeof *load);
    if (luaL_newmetatable(L, "dbo.workload")) {
        lua_pushcfunction(L, collect_workload);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return load;
}

static int make_batch(lua_State *L)
{
    static const dbo_place here = {0};
    lua_Integer kind = lua_tointeger(L, lua_upvalueindex(1));
    dbo_error err = {0};
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TTABLE) {
        dbo_fail(&err, DBO_INVALID, NULL, "%s takes a table: %s { ... }",
                 settings_of((dbo_workload_kind)kind).name,
                 settings_of((dbo_workload_kind)kind).name);
        dbo_lua_raise(L, &here, NULL, &err);
    }
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, kind);
    lua_setfield(L, -2, KIND_FIELD);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, 1);
    dbo_workload *scratch = push_scratch(L);
    lua_pushvalue(L, 1);
    dbo_lua_read_batch(L, scratch, &here);
    lua_settop(L, 1);
    return 1;
}

void dbo_lua_open_batch(lua_State *L)
{
    static const struct {
        const char *name;
        dbo_workload_kind kind;
    } makers[] = {{"decode", DBO_WORKLOAD_DECODE},
                  {"prefill", DBO_WORKLOAD_PREFILL},
                  {"batch", DBO_WORKLOAD_REQUESTS}};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        lua_pushinteger(L, makers[i].kind);
        lua_pushcclosure(L, make_batch, 1);
        lua_setfield(L, -2, makers[i].name);
    }
}
