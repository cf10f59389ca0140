/* lua_requests.c: dbo.requests(path): a JSONL file of requests as a list of tables.
 *
 * One JSON object a line: {"id", "input_ids" | "input_len", "max_new", "arrival_step"}. Of the ids
 * only their number matters to a step's cost. The path is relative to the script, as in dbo.load.
 */
#include "app/lua/lua_files.h"
#include "app/lua/lua_read.h"
#include "lab/files/json.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define PARSED_BYTES   20u /* of a byte of a list of numbers, at most about */
#define MAX_STEPS      1000000

/* What a raise must not leave behind. */
typedef struct dbo_request_file {
    dbo_strbuf text;
    dbo_json *line;
    size_t charged; /* for both, to the script */
} dbo_request_file;

static int collect_file(lua_State *L)
{
    dbo_request_file *file = lua_touserdata(L, 1);
    dbo_strbuf_fini(&file->text);
    dbo_json_destroy(file->line);
    dbo_sandbox_charge(L, &file->charged, 0);
    *file = (dbo_request_file){0};
    return 0;
}

static dbo_status read_input_len(const dbo_json_value *root, int64_t *out, dbo_error *err)
{
    dbo_json_value ids;
    DBO_TRY(dbo_json_opt(root, "input_ids", DBO_JSON_ARRAY, &ids, err));
    if (!ids.node)
        return dbo_json_need_int(root, "input_len", 1, DBO_WORKLOAD_MAX_TOKENS, out, err);
    *out = (int64_t)dbo_json_count(&ids);
    if (*out < 1 || *out > (int64_t)DBO_WORKLOAD_MAX_TOKENS)
        return dbo_json_fail(err, &ids, NULL, "%lld tokens; there must be from 1 to %u",
                             (long long)*out, DBO_WORKLOAD_MAX_TOKENS);
    if (dbo_json_has(root, "input_len"))
        return dbo_json_fail(err, root, NULL, "a request has input_ids beside input_len");
    return DBO_OK;
}

/* The request of a line as a table, pushed; without an id it has its place in the file, from 0. */
static dbo_status push_request(lua_State *L, const dbo_json_value *root, int64_t place,
                               dbo_error *err)
{
    static const char *const keys[] = {"id", "input_ids", "input_len", "max_new", "arrival_step"};
    int64_t input_len = 0, max_new = 0, arrival_step = 0;
    dbo_json_value id = dbo_json_get(root, "id");
    DBO_TRY(dbo_json_check_keys(root, keys, sizeof keys / sizeof keys[0], err));
    DBO_TRY(read_input_len(root, &input_len, err));
    DBO_TRY(DBO_JSON_OPT(int, root, "max_new", 0, DBO_WORKLOAD_MAX_TOKENS, &max_new, err));
    DBO_TRY(DBO_JSON_OPT(int, root, "arrival_step", 0, MAX_STEPS, &arrival_step, err));
    if (!dbo_json_is_null(&id) && dbo_json_type_of(&id) != DBO_JSON_INT)
        DBO_TRY(dbo_json_expect(&id, DBO_JSON_STRING, err));
    lua_createtable(L, 0, 4);
    if (dbo_json_type_of(&id) == DBO_JSON_STRING) {
        lua_pushstring(L, dbo_json_string(&id));
        lua_setfield(L, -2, "id");
    } else {
        dbo_lua_set_integer(L, "id", dbo_json_is_null(&id) ? place : dbo_json_int(&id));
    }
    dbo_lua_set_integer(L, "input_len", input_len);
    dbo_lua_set_integer(L, "max_new", max_new);
    dbo_lua_set_integer(L, "arrival_step", arrival_step);
    return DBO_OK;
}

/* Has an earlier line the id of the request on the stack? `seen`: the table of ids and their lines.
 */
static dbo_status check_id(lua_State *L, int seen, const dbo_json_value *root, uint32_t line,
                           dbo_error *err)
{
    const dbo_json_value id = dbo_json_get(root, "id");
    lua_getfield(L, -1, "id");
    lua_pushvalue(L, -1);
    if (lua_rawget(L, seen) != LUA_TNIL) {
        int earlier = (int)lua_tointeger(L, -1);
        return dbo_json_fail(err, dbo_json_is_null(&id) ? root : &id, NULL,
                             "line %d has a request with this id (%.60s) already", earlier,
                             luaL_tolstring(L, -2, NULL));
    }
    lua_pop(L, 1);
    lua_pushinteger(L, line);
    lua_rawset(L, seen);
    return DBO_OK;
}

static int read_requests(lua_State *L)
{
    dbo_error err = {0};
    size_t left = dbo_sandbox_left_bytes(dbo_sandbox_of(L)) / 2; /* the text doubles as it grows */
    size_t max_bytes = left < MAX_FILE_BYTES ? left : MAX_FILE_BYTES;
    dbo_request_file *file = lua_newuserdatauv(L, sizeof *file, 0);
    *file = (dbo_request_file){0};
    luaL_setmetatable(L, "dbo.requests");
    int fd = dbo_lua_open_file(L, "dbo.requests", ".jsonl");
    const char *path = lua_tostring(L, -1);
    if (dbo_sandbox_read(fd, path, max_bytes, &file->text, &err) != DBO_OK) {
        if (err.status == DBO_LIMIT && max_bytes < MAX_FILE_BYTES)
            dbo_lua_fail(L, DBO_LIMIT, DBO_SANDBOX_MEMORY_HINT,
                         "%s needs more memory than the script has left", path);
        err.status = err.status == DBO_IO ? DBO_INVALID : err.status;
        dbo_lua_raise(L, &err);
    }
    dbo_sandbox_charge(L, &file->charged, file->text.cap);
    lua_newtable(L);
    int seen = lua_gettop(L);
    lua_newtable(L);
    lua_Integer count = 0;
    uint32_t line = 1;
    for (const char *at = dbo_strbuf_text(&file->text), *end = at + file->text.len; at < end;
         line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((newline ? newline : end) - at);
        if (strspn(at, " \t\r") < bytes) {
            const dbo_json_options options = {.name = path, .line = line};
            dbo_sandbox_check(L);
            dbo_sandbox_charge(L, &file->charged, file->text.cap + bytes * PARSED_BYTES);
            dbo_status status = dbo_json_parse(&file->line, at, bytes, &options, &err);
            if (status == DBO_OK)
                status = push_request(L, dbo_json_root(file->line), count, &err);
            if (status == DBO_OK)
                status = check_id(L, seen, dbo_json_root(file->line), line, &err);
            dbo_lua_check(L, status, &err);
            lua_rawseti(L, -2, ++count);
            dbo_json_destroy(file->line);
            file->line = NULL;
        }
        at += bytes + 1;
    }
    if (count == 0)
        dbo_lua_fail(L, DBO_INVALID, "A line is a request: {\"input_len\": 9}",
                     "%s has no request; it needs one or more", path);
    return 1;
}

void dbo_lua_open_requests(lua_State *L)
{
    dbo_lua_new_type(L, "dbo.requests", collect_file);
    lua_pop(L, 1);
    dbo_lua_set_function(L, "requests", read_requests);
}
