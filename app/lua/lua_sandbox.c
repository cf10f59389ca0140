/* lua_sandbox.c: the capped Lua state (lua_sandbox.h).
 *
 * The struct is the allocator's self and sits in the state's extra space, so that hooks and C
 * functions find it without globals. Set-up runs protected: even opening the libraries may run out
 * of the memory cap. math.random starts from a fixed seed: a script is a pure function of its text.
 */
#include "app/io/input.h"
#include "app/lua/lua_sandbox_impl.h"
#include "viz/text/ascii.h"

#include <errno.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void dbo_sandbox_print(dbo_sandbox *box, const char *text, size_t bytes)
{
    box->has_printed = true;
    if (box->limits.ascii)
        dbo_ascii_write(text, bytes, box->limits.print_to);
    else
        (void)fwrite(text, 1, bytes, box->limits.print_to);
}

static void *allocate(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    dbo_sandbox *box = self;
    if (!block)
        old_bytes = 0; /* Lua passes a type there */
    if (new_bytes == 0) {
        free(block);
        box->used_bytes -= old_bytes;
        return NULL;
    }
    if (new_bytes > old_bytes &&
        new_bytes - old_bytes > box->limits.memory_bytes - box->used_bytes) {
        box->memory_refused = true;
        return NULL;
    }
    void *moved = realloc(block, new_bytes);
    if (moved)
        box->used_bytes = box->used_bytes - old_bytes + new_bytes;
    return moved;
}

/* ---- limits while running ---- */

bool dbo_sandbox_is_cancelled(void *self)
{
    const dbo_sandbox *box = self;
    /* Nobody waits for an abandoned script; what its limits point to may be gone. */
    return atomic_load(&box->abandoned) ||
           (box->limits.cancelled && box->limits.cancelled(box->limits.cancelled_self));
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    const dbo_sandbox_limits *limits = &box->limits;
    box->instructions += DBO_SANDBOX_HOOK_EVERY;
    bool cancelled = dbo_sandbox_is_cancelled(box);
    bool too_long = atomic_load(&box->overdue);
    if (!cancelled && !too_long && box->instructions <= limits->instructions)
        return;
    /* From here on every instruction raises again, so that pcall cannot go on. */
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    lua_getinfo(L, "Sl", ar);
    dbo_error err = {0};
    if (cancelled) {
        dbo_fail(&err, DBO_CANCELLED, NULL, "%s:%d: the script was interrupted", ar->short_src,
                 ar->currentline);
    } else if (too_long) {
        dbo_fail(&err, DBO_LIMIT, "Does it do slow things very often?",
                 "%s:%d: the script computed for more than %g s", ar->short_src, ar->currentline,
                 limits->cpu_ms / 1000.0);
    } else {
        dbo_fail(&err, DBO_LIMIT, "Is there a loop that never ends?",
                 "%s:%d: the script ran more than %" PRIu64 " million instructions", ar->short_src,
                 ar->currentline, limits->instructions / 1000000);
    }
    dbo_sandbox_raise(L, &err);
}

void dbo_sandbox_look(lua_State *L)
{
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
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
    return 0;
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
    if (lua_pcall(L, arguments, LUA_MULTRET, 0) == LUA_OK)
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

static int require_dbo(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (strcmp(name, "dbo") != 0)
        return luaL_error(L, "scripts can require \"dbo\" only, not \"%s\"", name);
    lua_rawgeti(L, LUA_REGISTRYINDEX, dbo_sandbox_of(L)->module_ref);
    return 1;
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
                                   {"require", require_dbo},
                                   {"xpcall", call_with_handler},
                                   {"setmetatable", set_metatable},
                                   {NULL, NULL}};
    luaL_requiref(L, "_G", luaopen_base, 1);
    luaL_requiref(L, "string", luaopen_string, 1);
    luaL_requiref(L, "table", luaopen_table, 1);
    luaL_requiref(L, "math", luaopen_math, 1);
    luaL_requiref(L, "utf8", luaopen_utf8, 1);
    lua_settop(L, 0);

    lua_pushglobaltable(L);
    keep_only(L, globals);
    luaL_setfuncs(L, own, 0);
    lua_getfield(L, 1, "string");
    keep_only(L, strings);
    lua_getfield(L, -1, "rep");
    lua_pushcclosure(L, capped_rep, 1);
    lua_setfield(L, -2, "rep");
    lua_getfield(L, 1, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, 0);
    lua_call(L, 1, 0);
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
    use->memory_bytes = use->memory_bytes ? use->memory_bytes : (size_t)256 << 20;
    use->instructions = use->instructions ? use->instructions : 200000000;
    use->cpu_ms = use->cpu_ms ? use->cpu_ms : 5000;
    use->string_bytes = use->string_bytes ? use->string_bytes : (size_t)16 << 20;
    use->source_bytes = use->source_bytes ? use->source_bytes : (size_t)8 << 20;
    use->print_to = use->print_to ? use->print_to : stdout;
    atomic_init(&box->holders, 1);
    box->module_ref = LUA_NOREF;
    box->lua = lua_newstate(allocate, box);
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
        free(box->sources->text);
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
    const dbo_source *source = box->sources;
    while (source && source->next)
        source = source->next;
    return source ? source->path : "Lua";
}

/* Is the error object on the stack the one that a C function has raised last? */
static bool is_raised(dbo_sandbox *box)
{
    lua_rawgetp(box->lua, LUA_REGISTRYINDEX, box);
    bool same = lua_rawequal(box->lua, -1, -2);
    lua_pop(box->lua, 1);
    return same;
}

/* Turns the Lua error on the stack into *err and pops it. */
dbo_status dbo_sandbox_take_error(dbo_sandbox *box, int lua_status, dbo_error *err)
{
    lua_State *lua = box->lua;
    dbo_status status = DBO_INVALID;
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    if (lua_status == LUA_ERRMEM) {
        if (box->memory_refused)
            status =
                dbo_fail(err, DBO_LIMIT, NULL, "%s: the script needs more than %zu MiB of memory",
                         dbo_sandbox_script(box), box->limits.memory_bytes >> 20);
        else
            status =
                dbo_fail(err, DBO_NO_MEMORY, "Is there a limit, as ulimit -v shows it?",
                         "%s: the system gives the script no more memory", dbo_sandbox_script(box));
    } else if (!text) {
        status = dbo_fail(err, DBO_INVALID, "Call error() with a string.",
                          "%s: the script raised a %s instead of a sentence",
                          dbo_sandbox_script(box), luaL_typename(lua, -1));
    } else if (is_raised(box)) {
        status = dbo_error_pass(err, &box->raised);
    } else {
        if (lua_status == LUA_ERRSYNTAX)
            status = DBO_PARSE;
        status = dbo_fail(err, status, NULL, "%s", text);
    }
    lua_pop(lua, 1);
    return status;
}

dbo_status dbo_sandbox_call(dbo_sandbox *box, int arguments, int results, dbo_error *err)
{
    lua_sethook(box->lua, on_count, LUA_MASKCOUNT, DBO_SANDBOX_HOOK_EVERY);
    return dbo_sandbox_watched_call(box, arguments, results, err);
}

dbo_status dbo_sandbox_read(const char *path, size_t max_bytes, dbo_strbuf *text, dbo_error *err)
{
    char piece[16384];
    size_t bytes = 0;
    DBO_TRY(dbo_input_remember(path, err));
    FILE *file = fopen(path, "rb");
    if (!file)
        return dbo_fail_read(err, path, errno);
    dbo_status status = DBO_OK;
    do {
        bytes = fread(piece, 1, sizeof piece, file);
        dbo_strbuf_add_bytes(text, piece, bytes);
    } while (bytes > 0 && text->len <= max_bytes && !text->failed);
    if (text->failed)
        status = dbo_fail_memory(err, path);
    else if (text->len > max_bytes)
        status = dbo_fail(err, DBO_LIMIT, NULL, "%s is larger than %zu MiB", path, max_bytes >> 20);
    else if (ferror(file))
        status = dbo_fail_read(err, path, errno);
    (void)fclose(file);
    if (status != DBO_OK)
        dbo_strbuf_fini(text);
    return status;
}

/* Keeps path and text (taken) for key lines; one text a path, however often it is loaded. */
static dbo_status keep_source(dbo_sandbox *box, const char *path, char *text, dbo_error *err)
{
    for (dbo_source *known = box->sources; known; known = known->next) {
        if (strcmp(known->path, path) == 0) {
            free(known->text);
            known->text = text;
            return DBO_OK;
        }
    }
    dbo_source *source = calloc(1, sizeof *source);
    char *copy = strdup(path);
    if (!source || !copy) {
        free(source);
        free(copy);
        free(text);
        dbo_fail_memory(err, path);
        return DBO_NO_MEMORY;
    }
    *source = (dbo_source){.next = box->sources, .path = copy, .text = text};
    box->sources = source;
    return DBO_OK;
}

/* Compiles, protected: building the chunk's name may itself run out of the cap. */
typedef struct dbo_chunk {
    const char *path, *text;
    size_t length;
    int lua_status;
} dbo_chunk;

static int compile(lua_State *L)
{
    dbo_chunk *chunk = lua_touserdata(L, 1);
    lua_pushfstring(L, "@%s", chunk->path);
    chunk->lua_status = luaL_loadbufferx(L, chunk->text, chunk->length, lua_tostring(L, -1), "t");
    if (chunk->lua_status != LUA_OK)
        return lua_error(L);
    return 1;
}

/* How many bytes at the beginning are for others: a byte order mark, and a line for the kernel
 * ("#!...") up to its end, which stays, so that lines keep their numbers. */
static size_t preamble(const char *text)
{
    size_t at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return text[at] == '#' ? at + strcspn(text + at, "\n") : at;
}

dbo_status dbo_sandbox_load_file(dbo_sandbox *box, const char *path, dbo_error *err)
{
    dbo_strbuf text = {0};
    DBO_TRY(dbo_sandbox_read(path, box->limits.source_bytes, &text, err));
    DBO_TRY(keep_source(box, path, text.data, err));
    size_t skipped = preamble(text.data);
    dbo_chunk chunk = {path, text.data + skipped, text.len - skipped, LUA_OK};
    if (chunk.text[0] == LUA_SIGNATURE[0]) {
        return dbo_fail(err, DBO_PARSE, "Give the script's source text.",
                        "%s: compiled Lua is not accepted", path);
    }
    if (memchr(chunk.text, '\0', chunk.length))
        return dbo_fail(err, DBO_PARSE, NULL, "%s: the file is not text", path);
    lua_pushcfunction(box->lua, compile);
    lua_pushlightuserdata(box->lua, &chunk);
    int lua_status = lua_pcall(box->lua, 1, 1, 0);
    if (lua_status == LUA_OK)
        return DBO_OK;
    return dbo_sandbox_take_error(box, chunk.lua_status != LUA_OK ? chunk.lua_status : lua_status,
                                  err);
}

/* ---- errors with a place ---- */

int dbo_sandbox_raise(lua_State *L, const dbo_error *err)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    box->raised = *err;
    lua_pushstring(L, box->raised.message);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, box);
    return lua_error(L);
}

/* The innermost name in a key: num_tokens of "batch.num_tokens[1]", and how long it is. */
static const char *last_name(const char *key, size_t *length)
{
    const char *dot = strrchr(key, '.');
    const char *name = dot ? dot + 1 : key;
    *length = strcspn(name, "[");
    return name;
}

/* Does the line (up to its end or a comment) assign to the name? */
static bool line_sets(const char *line, const char *end, const char *name, size_t length)
{
    for (const char *at = line; at + length < end; at++) {
        if (at[0] == '-' && at[1] == '-')
            return false;
        bool starts = at == line || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_.",
                                            at[-1]);
        if (!starts || strncmp(at, name, length) != 0)
            continue;
        const char *after = at + length;
        while (after < end && (*after == ' ' || *after == '\t' || *after == ']' || *after == '"'))
            after++;
        if (after < end && *after == '=' && after[1] != '=')
            return true;
    }
    return false;
}

/* The line that the error is about: of the first assignment to its key at or after `from`, or
 * `from` itself. */
static uint32_t line_of(const dbo_sandbox *box, const char *path, int from, const dbo_error *err)
{
    const dbo_source *source = box->sources;
    while (source && strcmp(source->path, path) != 0)
        source = source->next;
    size_t length = 0;
    const char *name = last_name(err->key, &length);
    int line = 1;
    for (const char *at = source && length > 0 ? source->text : ""; *at; line++) {
        const char *end = strchrnul(at, '\n');
        if (line >= from && line_sets(at, end, name, length))
            return (uint32_t)line;
        at = *end ? end + 1 : end;
    }
    return (uint32_t)from;
}

int dbo_sandbox_raise_at(lua_State *L, dbo_error *err)
{
    lua_Debug ar;
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0)
            continue;
        const char *path = ar.source[0] == '@' ? ar.source + 1 : ar.short_src;
        dbo_error_at(err, path, line_of(dbo_sandbox_of(L), path, ar.currentline, err));
        break;
    }
    return dbo_sandbox_raise(L, err);
}

int dbo_sandbox_raise_in(lua_State *L, const char *path, dbo_error *err)
{
    dbo_error_at(err, path, line_of(dbo_sandbox_of(L), path, 1, err));
    return dbo_sandbox_raise(L, err);
}
