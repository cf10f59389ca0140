/* lua_read.c: values out of a script's tables, and errors with their place (lua_read.h).
 *
 * The memory of values is pieces of userdata that a table holds, which is the user value of the
 * owner: they count for the script's limit and go when the owner does. What is borrowed, a
 * schedule, is held by that table as well.
 */
#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH   16
#define PIECE_BYTES 1024

/* What makes the copies of one call; `held` is the stack index of the table that holds all. */
typedef struct dbo_reader {
    lua_State *L;
    int held;
    char *next;
    size_t left;
    bool flat; /* tables inside the first are not read */
} dbo_reader;

typedef struct dbo_owner {
    dbo_value value;
    dbo_reader reader; /* while dbo_lua_push_memory's is in use */
} dbo_owner;

int dbo_lua_raise(lua_State *L, dbo_error *err)
{
    return dbo_sandbox_raise_at(L, err);
}

int dbo_lua_raise_by(lua_State *L, const char *way, dbo_error *err)
{
    if (way)
        dbo_error_at(err, way, 0);
    return dbo_lua_raise(L, err);
}

void dbo_lua_blame_script(dbo_error *err)
{
    err->status = err->status == DBO_IO ? DBO_INVALID : err->status;
}

int dbo_lua_fail(lua_State *L, dbo_status status, const char *hint, const char *format, ...)
{
    dbo_error err = {0};
    va_list args;
    va_start(args, format);
    dbo_fail_args(&err, status, NULL, hint, format, args);
    va_end(args);
    return dbo_lua_raise(L, &err);
}

void dbo_lua_check(lua_State *L, dbo_status status, dbo_error *err)
{
    if (status != DBO_OK)
        dbo_lua_raise(L, err);
}

/* ---- memory ---- */

static void hold(dbo_reader *r) /* the value at the top of the stack; pops it */
{
    lua_rawseti(r->L, r->held, (lua_Integer)lua_rawlen(r->L, r->held) + 1);
}

static void *take(void *self, size_t bytes)
{
    dbo_reader *r = self;
    bytes = bytes > 0 ? bytes : 1; /* of nothing, too, there is a place */
    bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (bytes > r->left) {
        r->left = bytes > PIECE_BYTES / 2 ? bytes : PIECE_BYTES;
        r->next = lua_newuserdatauv(r->L, r->left, 0);
        hold(r);
    }
    void *piece = r->next;
    r->next += bytes;
    r->left -= bytes;
    return piece;
}

/* Pushes an owner and the table that holds its memory. */
static dbo_owner *push_owner(lua_State *L)
{
    luaL_checkstack(L, 8, "values");
    dbo_owner *owner = lua_newuserdatauv(L, sizeof *owner, 1);
    *owner = (dbo_owner){0};
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, -3, 1);
    owner->reader = (dbo_reader){.L = L, .held = lua_gettop(L)};
    return owner;
}

dbo_value_memory dbo_lua_push_memory(lua_State *L)
{
    return (dbo_value_memory){take, &push_owner(L)->reader};
}

/* ---- reading ---- */

static void read_value(dbo_reader *r, int depth, dbo_value *out);

/* Who made the table or the userdata at the top of the stack, by its metatable. */
static const char *maker_of(lua_State *L)
{
    static const char *const makers[] = {"dbo.decode", "dbo.prefill", "dbo.batch", DBO_LUA_FIXED,
                                         DBO_LUA_SCHEDULE};
    const char *maker = NULL;
    if (!lua_getmetatable(L, -1))
        return NULL;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0] && !maker; i++) {
        luaL_getmetatable(L, makers[i]);
        maker = lua_rawequal(L, -1, -2) ? makers[i] : NULL;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return maker;
}

/* A copy of the string at `index`; NULL if a zero byte hides in it. */
static const char *copy_string(dbo_reader *r, int index)
{
    size_t length = 0;
    const char *text = lua_tolstring(r->L, index, &length);
    if (strlen(text) != length)
        return NULL;
    return memcpy(take(r, length + 1), text, length + 1);
}

static int compare_members(const void *a, const void *b)
{
    const char *x = ((const dbo_member *)a)->key, *y = ((const dbo_member *)b)->key;
    if (!x || !y)
        return (x != NULL) - (y != NULL);
    return strcmp(x, y);
}

/* How many items the table at the top of the stack has; *is_list: they are counted 1, 2, 3, ... */
static uint32_t count_items(lua_State *L, bool *is_list)
{
    lua_Unsigned length = lua_rawlen(L, -1);
    uint32_t count = 0;
    *is_list = true;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        count++;
        *is_list = *is_list && lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 &&
                   (lua_Unsigned)lua_tointeger(L, -1) <= length;
    }
    *is_list = *is_list && count == length;
    return count;
}

static void read_table(dbo_reader *r, int depth, dbo_value *out)
{
    lua_State *L = r->L;
    bool is_list = false;
    if (depth == 0)
        dbo_lua_fail(L, DBO_LIMIT, "Does one contain itself?",
                     "a description is tables more than %d deep", MAX_DEPTH);
    out->count = count_items(L, &is_list);
    if (is_list) {
        dbo_value *list = take(r, out->count * sizeof *list);
        out->kind = DBO_VALUE_LIST;
        out->list = list;
        for (uint32_t i = 0; i < out->count; i++) {
            lua_rawgeti(L, -1, (lua_Integer)i + 1);
            read_value(r, depth - 1, &list[i]);
            lua_pop(L, 1);
        }
        return;
    }
    dbo_member *table = take(r, out->count * sizeof *table);
    uint32_t i = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        table[i].key = lua_type(L, -2) == LUA_TSTRING ? copy_string(r, -2) : NULL;
        read_value(r, depth - 1, &table[i++].value);
        lua_pop(L, 1);
    }
    qsort(table, out->count, sizeof *table, compare_members);
    out->kind = DBO_VALUE_TABLE;
    out->table = table;
}

static void read_userdata(dbo_reader *r, dbo_value *out)
{
    out->text = "a userdata";
    const dbo_lua_schedule *schedule = luaL_testudata(r->L, -1, DBO_LUA_SCHEDULE);
    if (!schedule)
        return;
    out->object = schedule->t;
    out->text = "a schedule";
    lua_pushvalue(r->L, -1);
    hold(r);
}

/* The value at the top of the stack. */
static void read_value(dbo_reader *r, int depth, dbo_value *out)
{
    lua_State *L = r->L;
    *out = (dbo_value){.kind = DBO_VALUE_OTHER};
    luaL_checkstack(L, 8, "tables inside tables");
    switch (lua_type(L, -1)) {
    case LUA_TNIL: out->kind = DBO_VALUE_NIL; break;
    case LUA_TBOOLEAN:
        out->kind = DBO_VALUE_BOOL;
        out->boolean = lua_toboolean(L, -1);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1)) {
            out->kind = DBO_VALUE_INTEGER;
            out->integer = lua_tointeger(L, -1);
        } else {
            out->kind = DBO_VALUE_REAL;
            out->real = lua_tonumber(L, -1);
        }
        break;
    case LUA_TSTRING:
        out->text = copy_string(r, -1);
        out->kind = out->text ? DBO_VALUE_TEXT : DBO_VALUE_OTHER;
        out->text = out->text ? out->text : "a string with a zero byte";
        break;
    case LUA_TTABLE:
        out->text = "a table";
        if (r->flat && depth < MAX_DEPTH)
            break;
        out->made_by = maker_of(L);
        read_table(r, depth, out);
        break;
    case LUA_TUSERDATA:
        out->made_by = maker_of(L);
        read_userdata(r, out);
        break;
    case LUA_TFUNCTION: out->text = "a function"; break;
    default: out->text = "a value of another kind"; break;
    }
}

static const dbo_value *read(lua_State *L, int index, bool flat)
{
    bool is_none = lua_isnone(L, index);
    index = lua_absindex(L, index);
    dbo_owner *owner = push_owner(L);
    owner->reader.flat = flat;
    if (is_none)
        lua_pushnil(L);
    else
        lua_pushvalue(L, index);
    read_value(&owner->reader, MAX_DEPTH, &owner->value);
    lua_pop(L, 2);
    return &owner->value;
}

const dbo_value *dbo_lua_read(lua_State *L, int index)
{
    return read(L, index, false);
}

const dbo_value *dbo_lua_read_flat(lua_State *L, int index)
{
    return read(L, index, true);
}

const dbo_value *dbo_lua_read_again(lua_State *L, int owner)
{
    return &((const dbo_owner *)lua_touserdata(L, owner))->value;
}

const dbo_value *dbo_lua_read_argument(lua_State *L, const char *function)
{
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TTABLE)
        dbo_lua_fail(L, DBO_INVALID, NULL, "%s takes a table: %s { ... }", function, function);
    return dbo_lua_read(L, 1);
}

/* ---- types ---- */

static int type_name(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

void dbo_lua_new_type(lua_State *L, const char *name, lua_CFunction collect)
{
    luaL_newmetatable(L, name);
    lua_pushstring(L, name);
    lua_pushcclosure(L, type_name, 1);
    lua_setfield(L, -2, "__tostring");
    if (collect)
        dbo_lua_set_function(L, "__gc", collect);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable"); /* scripts see no metatable, so no __gc to call */
}

/* The userdata of a text, which is its first member. */
typedef struct dbo_lua_text {
    dbo_strbuf text;
    size_t charged;
} dbo_lua_text;

dbo_strbuf *dbo_lua_push_text(lua_State *L)
{
    dbo_lua_text *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (dbo_lua_text){.text.limit = dbo_sandbox_left_bytes(dbo_sandbox_of(L)) / 2 + 1};
    luaL_setmetatable(L, DBO_LUA_TEXT);
    return &made->text;
}

void dbo_lua_end_text(lua_State *L, dbo_strbuf *text)
{
    dbo_strbuf_fini(text);
    dbo_sandbox_charge(L, &((dbo_lua_text *)text)->charged, 0);
}

void dbo_lua_check_text(lua_State *L, dbo_strbuf *text, const char *what)
{
    dbo_error err = {0};
    bool over_limit = text->over_limit;
    dbo_need_memory(!text->failed, what, &err);
    if (text->failed)
        dbo_lua_end_text(L, text);
    if (over_limit)
        dbo_lua_fail(L, DBO_LIMIT, DBO_SANDBOX_MEMORY_HINT,
                     "%s needs more memory than the script has left", what);
    dbo_lua_check(L, err.status, &err);
    dbo_sandbox_charge(L, &((dbo_lua_text *)text)->charged, text->cap);
}

int dbo_lua_collect_text(lua_State *L)
{
    dbo_lua_end_text(L, lua_touserdata(L, 1));
    return 0;
}

void dbo_lua_set_function(lua_State *L, const char *name, lua_CFunction function)
{
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

void dbo_lua_set_integer(lua_State *L, const char *name, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}
