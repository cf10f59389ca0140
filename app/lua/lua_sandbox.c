/* lua_sandbox.c: the capped Lua state (lua_sandbox.h).
 *
 * The struct is the allocator's self and sits in the state's extra space, so that hooks and C
 * functions find it without globals. Set-up runs protected: even opening the libraries may run out
 * of the memory cap. math.random starts from a fixed seed: a script is a pure function of its text.
 */
#include "app/lua/lua_sandbox_impl.h"
#include "core/base/clean.h"
#include "viz/text/ascii.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a text that is cleaned at a time. */
#define PIECE_BYTES ((size_t)4096)

dbo_sandbox *dbo_sandbox_of(lua_State *L)
{
    return *(dbo_sandbox **)lua_getextraspace(L);
}

lua_State *dbo_sandbox_lua(dbo_sandbox *box)
{
    return box->lua;
}

const dbo_sandbox_limits *dbo_sandbox_limits_of(const dbo_sandbox *box)
{
    return &box->limits;
}

bool dbo_sandbox_has_printed(const dbo_sandbox *box)
{
    return box->has_printed;
}

/* A piece that holds whole characters. */
static void print_piece(dbo_sandbox *box, const char *text, size_t bytes)
{
    dbo_strbuf clean = {0};
    dbo_text_clean_page(&clean, text, bytes, false);
    size_t room = box->limits.output_bytes - box->printed_bytes;
    size_t taken = clean.len < room ? clean.len : room;
    while (taken > 0 && taken < clean.len && ((unsigned char)clean.data[taken] & 0xc0u) == 0x80u)
        taken--; /* a character is cut off as a whole */
    if (box->limits.ascii)
        dbo_ascii_write(dbo_strbuf_text(&clean), taken, box->limits.print_to);
    else
        (void)fwrite(dbo_strbuf_text(&clean), 1, taken, box->limits.print_to);
    box->printed_bytes += taken;
    if (taken < clean.len) {
        fputc('\n', box->limits.print_to);
        atomic_store(&box->over, DBO_OVER_OUTPUT);
    }
    dbo_strbuf_fini(&clean);
}

void dbo_sandbox_print(dbo_sandbox *box, const char *text, size_t bytes)
{
    box->has_printed = true;
    for (size_t at = 0, part; at < bytes && atomic_load(&box->over) == DBO_OVER_NOTHING;
         at += part) {
        part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        while (part < bytes - at && part > PIECE_BYTES - 4 &&
               ((unsigned char)text[at + part] & 0xc0u) == 0x80u)
            part--;
        print_piece(box, text + at, part);
    }
}

/* string.rep with a bound on its result; the original is upvalue 1. Two empty strings are answered
 * here: the original would count to n. */
static int capped_rep(lua_State *L)
{
    size_t text_bytes = 0, between_bytes = 0;
    luaL_checklstring(L, 1, &text_bytes);
    lua_Integer times = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between_bytes);
    size_t each = text_bytes + between_bytes;
    if (each == 0 || times <= 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    const dbo_sandbox *box = dbo_sandbox_of(L);
    if ((uint64_t)times > box->limits.string_bytes / each) {
        return luaL_error(L, "string.rep would build a string of more than %d MiB",
                          (int)(box->limits.string_bytes >> 20));
    }
    lua_settop(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 3, 1);
    return 1;
}

static int print_line(lua_State *L)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    int count = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        size_t length = 0;
        if (lua_type(L, i) == LUA_TNUMBER && isnan(lua_tonumber(L, i))) {
            lua_pushliteral(L, "nan"); /* Lua writes -nan or nan, as the sign bit is */
            lua_replace(L, i);
        }
        const char *text = luaL_tolstring(L, i, &length);
        if (i > 1)
            dbo_sandbox_print(box, "\t", 1);
        dbo_sandbox_print(box, text, length);
        lua_pop(L, 1);
    }
    dbo_sandbox_print(box, "\n", 1);
    dbo_sandbox_check(L);
    return 0;
}

bool dbo_sandbox_is_raised(dbo_sandbox *box)
{
    lua_rawgetp(box->lua, LUA_REGISTRYINDEX, box);
    bool same = lua_rawequal(box->lua, -1, -2);
    lua_pop(box->lua, 1);
    return same;
}

/* Lua raises some sentences from inside its C functions without a place ("C stack overflow"): they
 * get that of the innermost Lua function. Those of error() and assert() stay as the script says. */
static int add_place(lua_State *L)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    lua_Debug ar;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &box->error);
    bool is_placed = lua_type(L, 1) != LUA_TSTRING || lua_rawequal(L, 1, -1);
    lua_settop(L, 1);
    if (is_placed || dbo_sandbox_is_raised(box) || !lua_getstack(L, 1, &ar))
        return 1;
    lua_getinfo(L, "f", &ar);
    lua_CFunction raiser = lua_tocfunction(L, -1); /* NULL: a Lua function, whose place Lua knows */
    lua_settop(L, 1);
    if (!raiser || raiser == box->error || raiser == box->assert)
        return 1;
    for (int level = 2; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0)
            continue;
        const char *place = lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
        bool has_place = strncmp(lua_tostring(L, 1), place, strlen(place)) == 0;
        lua_pushvalue(L, 1);
        if (!has_place)
            lua_concat(L, 2);
        return 1;
    }
    return 1;
}

int dbo_sandbox_pcall(lua_State *L, int arguments, int results)
{
    int handler = lua_gettop(L) - arguments;
    lua_pushcfunction(L, add_place);
    lua_insert(L, handler);
    int lua_status = lua_pcall(L, arguments, results, handler);
    lua_remove(L, handler);
    return lua_status;
}

int dbo_sandbox_raise_again(lua_State *L)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &dbo_sandbox_of(L)->error);
    return lua_error(L);
}

/* dbo_sandbox_pcall on behalf of a script, which gets the sentence about memory in full. */
static int pcall_for_script(lua_State *L, int arguments)
{
    dbo_error err = {0};
    int lua_status = dbo_sandbox_pcall(L, arguments, LUA_MULTRET);
    if (lua_status == LUA_ERRMEM && dbo_sandbox_of(L)->memory_refused) {
        dbo_sandbox_fail_memory(dbo_sandbox_of(L), &err);
        lua_pop(L, 1);
        lua_gc(L, LUA_GCCOLLECT); /* what was in use while it was refused */
        lua_pushstring(L, err.message);
    }
    return lua_status;
}

static int call_protected(lua_State *L)
{
    luaL_checkany(L, 1);
    int lua_status = pcall_for_script(L, lua_gettop(L) - 1);
    lua_pushboolean(L, lua_status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* xpcall whose handler runs after the stack is unwound. The original calls it inside the failing
 * function, which may be the hook, in which no hook runs: a handler with a loop would never end. */
static int call_with_handler(lua_State *L)
{
    int arguments = lua_gettop(L) - 2;
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    if (pcall_for_script(L, arguments) == LUA_OK)
        return lua_gettop(L) - 2;
    lua_pushboolean(L, 0);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_call(L, 1, 1);
    return 2;
}

/* setmetatable without finalizers: they would run where no limit holds. */
static int set_metatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    if (type == LUA_TTABLE) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "the tables of a script have no __gc");
        lua_pop(L, 1);
    }
    lua_setmetatable(L, 1);
    return 1;
}

/* ---- globals ---- */

/* Pushes a copy of the table at the top of the stack, and of the tables in it. */
static void push_copy(lua_State *L)
{
    int from = lua_gettop(L);
    luaL_checkstack(L, 8, "globals");
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        if (lua_istable(L, -1)) {
            push_copy(L);
            lua_remove(L, -2);
        }
        lua_rawset(L, from + 1);
    }
    if (lua_getmetatable(L, from))
        lua_setmetatable(L, from + 1);
}

/* Its copy of the module is the upvalue, once it is made. */
static int require_dbo(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (strcmp(name, "dbo") != 0)
        return luaL_error(L, "scripts can require \"dbo\" only, not \"%s\"", name);
    if (lua_isnil(L, lua_upvalueindex(1))) {
        if (lua_rawgeti(L, LUA_REGISTRYINDEX, dbo_sandbox_of(L)->module_ref) != LUA_TTABLE)
            return 1;
        push_copy(L);
        lua_replace(L, lua_upvalueindex(1));
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* Gives the table at the top of the stack a `require` of its own. */
static void set_require(lua_State *L)
{
    lua_pushnil(L);
    lua_pushcclosure(L, require_dbo, 1);
    lua_setfield(L, -2, "require");
}

/* Gives it a `math` whose random numbers are its own and always the same. */
static void set_math(lua_State *L)
{
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, 0);
    lua_call(L, 1, 0);
    lua_setfield(L, -2, "math");
}

void dbo_sandbox_push_globals(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, dbo_sandbox_of(L)->globals_ref);
    push_copy(L);
    lua_remove(L, -2);
    set_math(L);
    set_require(L);
}

/* ---- set-up ---- */

static bool is_listed(const char *const *list, const char *name)
{
    for (; *list; list++) {
        if (strcmp(*list, name) == 0)
            return true;
    }
    return false;
}

/* Removes from the table at the top of the stack every key that is not listed. */
static void keep_only(lua_State *L, const char *const *list)
{
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && !is_listed(list, lua_tostring(L, -1))) {
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, -4); /* clearing a field during a traversal is allowed */
        }
    }
}

static int set_up(lua_State *L)
{
    static const char *const globals[] = {
        "_VERSION", "assert", "error",        "ipairs",       "math",     "next",
        "pairs",    "pcall",  "rawequal",     "rawget",       "rawlen",   "rawset",
        "select",   "string", "setmetatable", "table",        "tonumber", "type",
        "utf8",     "xpcall", "tostring",     "getmetatable", NULL};
    static const char *const strings[] = {"byte", "char",  "find",     "format",  "gmatch", "gsub",
                                          "len",  "lower", "match",    "reverse", "sub",    "upper",
                                          "pack", "rep",   "packsize", "unpack",  NULL};
    static const luaL_Reg own[] = {{"print", print_line},
                                   {"pcall", call_protected},
                                   {"xpcall", call_with_handler},
                                   {"setmetatable", set_metatable},
                                   {NULL, NULL}};
    luaL_requiref(L, "_G", luaopen_base, 1);
    luaL_requiref(L, "string", luaopen_string, 1);
    luaL_requiref(L, "table", luaopen_table, 1);
    luaL_requiref(L, "utf8", luaopen_utf8, 1);
    lua_settop(L, 0);

    lua_pushglobaltable(L);
    keep_only(L, globals);
    lua_getfield(L, 1, "error");
    dbo_sandbox_of(L)->error = lua_tocfunction(L, -1);
    lua_getfield(L, 1, "assert");
    dbo_sandbox_of(L)->assert = lua_tocfunction(L, -1);
    lua_settop(L, 1);
    luaL_setfuncs(L, own, 0);
    lua_getfield(L, 1, "string");
    keep_only(L, strings);
    lua_getfield(L, -1, "rep");
    lua_pushcclosure(L, capped_rep, 1);
    lua_setfield(L, -2, "rep");
    lua_settop(L, 1);
    set_math(L);

    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable"); /* methods of strings are reached from all globals */
    lua_settop(L, 1);
    push_copy(L);
    dbo_sandbox_of(L)->globals_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    set_require(L);
    return 0;
}

dbo_sandbox *dbo_sandbox_create(const dbo_sandbox_limits *limits, dbo_error *err)
{
    dbo_sandbox *box = calloc(1, sizeof *box);
    if (dbo_need_memory(box, "the script", err) != DBO_OK)
        return NULL;
    if (limits)
        box->limits = *limits;
    dbo_sandbox_limits *use = &box->limits;
    use->memory_bytes = use->memory_bytes ? use->memory_bytes : (size_t)DBO_SANDBOX_MIB << 20;
    use->instructions = use->instructions ? use->instructions : 200000000;
    use->cpu_ms = use->cpu_ms ? use->cpu_ms : 5000;
    use->total_ms = use->total_ms ? use->total_ms : 10000;
    use->string_bytes = use->string_bytes ? use->string_bytes : (size_t)16 << 20;
    use->source_bytes = use->source_bytes ? use->source_bytes : (size_t)8 << 20;
    use->output_bytes = use->output_bytes ? use->output_bytes : (size_t)16 << 20;
    use->print_to = use->print_to ? use->print_to : stdout;
    atomic_init(&box->holders, 1);
    box->module_ref = LUA_NOREF;
    box->lua = lua_newstate(dbo_sandbox_allocate, box);
    if (!box->lua) {
        dbo_fail_memory(err, "the Lua state");
        free(box);
        return NULL;
    }
    *(dbo_sandbox **)lua_getextraspace(box->lua) = box;
    lua_pushcfunction(box->lua, set_up);
    if (dbo_sandbox_call(box, 0, 0, err) != DBO_OK) {
        dbo_sandbox_destroy(box);
        return NULL;
    }
    box->instructions = 0;
    return box;
}

void dbo_sandbox_release(dbo_sandbox *box)
{
    if (atomic_fetch_sub(&box->holders, 1) != 1)
        return;
    lua_close(box->lua);
    while (box->sources) {
        dbo_source *next = box->sources->next;
        free(box->sources->path);
        dbo_strbuf_fini(&box->sources->text);
        free(box->sources);
        box->sources = next;
    }
    free(box);
}

void dbo_sandbox_destroy(dbo_sandbox *box)
{
    if (box)
        dbo_sandbox_release(box);
}

void dbo_sandbox_set_module(dbo_sandbox *box)
{
    luaL_unref(box->lua, LUA_REGISTRYINDEX, box->module_ref);
    box->module_ref = luaL_ref(box->lua, LUA_REGISTRYINDEX);
}

/* ---- loading and calling ---- */

/* The script that was loaded first: what people call the run. */
const char *dbo_sandbox_script(const dbo_sandbox *box)
{
    return box->script ? box->script : "Lua";
}

/* Turns the Lua error on the stack into *err and pops it. */
dbo_status dbo_sandbox_take_error(dbo_sandbox *box, int lua_status, dbo_error *err)
{
    lua_State *lua = box->lua;
    dbo_status status = DBO_INVALID;
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    if (lua_status == LUA_ERRMEM) {
        if (box->memory_refused)
            status = dbo_sandbox_fail_memory(box, err);
        else
            status =
                dbo_fail(err, DBO_NO_MEMORY, "Is there a limit, as ulimit -v shows it?",
                         "%s: the system gives the script no more memory", dbo_sandbox_script(box));
    } else if (!text) {
        status = dbo_fail(err, DBO_INVALID, "Call error() with a string.",
                          "%s: the script raised a %s instead of a sentence",
                          dbo_sandbox_script(box), luaL_typename(lua, -1));
    } else if (dbo_sandbox_is_raised(box)) {
        status = dbo_error_pass(err, &box->raised);
    } else {
        status = dbo_fail(err, DBO_INVALID, NULL, "%s", text);
    }
    lua_pop(lua, 1);
    return status;
}

dbo_status dbo_sandbox_call(dbo_sandbox *box, int arguments, int results, dbo_error *err)
{
    dbo_sandbox_start_counting(box);
    return dbo_sandbox_watched_call(box, arguments, results, err);
}

/* ---- errors ---- */

int dbo_sandbox_raise(lua_State *L, const dbo_error *err)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    box->raised = *err;
    lua_pushstring(L, box->raised.message);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, box);
    return lua_error(L);
}
