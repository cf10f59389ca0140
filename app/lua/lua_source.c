/* lua_source.c: the text of scripts: read, parsed, and looked into for the line of an error
 * (lua_sandbox.h).
 *
 * A text is kept as long as the sandbox, once a file however its path is spelled, and charged to
 * the script. The parser runs on the script's thread, as scripts do, and under the same limits.
 */
#include "app/io/input.h"
#include "app/lua/lua_sandbox_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a source that the parser gets at a time. */
#define MAX_PIECE ((size_t)256)

/* Registry key: the source (dbo_source) of each path by which a file was loaded. */
#define SOURCES "dbo.sources"

dbo_status dbo_sandbox_read(int fd, const char *path, size_t max_bytes, dbo_strbuf *text,
                            dbo_error *err)
{
    char piece[16384];
    ssize_t bytes = 0;
    dbo_status status = dbo_input_remember_open(fd, path, err);
    while (status == DBO_OK && (bytes = read(fd, piece, sizeof piece)) != 0) {
        if (bytes < 0) {
            status = dbo_fail_read(err, path, errno);
            break;
        }
        dbo_strbuf_add_bytes(text, piece, (size_t)bytes);
        if (text->failed)
            status = dbo_fail_memory(err, path);
        else if (text->len > max_bytes)
            status =
                dbo_fail(err, DBO_LIMIT, NULL, "%s is larger than %zu MiB", path, max_bytes >> 20);
    }
    close(fd);
    if (status != DBO_OK)
        dbo_strbuf_fini(text);
    return status;
}

/* Keeps the text (taken) for key lines and errors; one text a file, however often it is loaded and
 * by whatever path. */
static dbo_status keep_source(dbo_sandbox *box, const struct stat *file, const char *path,
                              dbo_strbuf *text, dbo_source **out, dbo_error *err)
{
    dbo_source *source = box->sources;
    while (source && (source->device != file->st_dev || source->number != file->st_ino))
        source = source->next;
    if (!source) {
        source = calloc(1, sizeof *source);
        char *copy = strdup(path);
        if (!source || !copy) {
            free(source);
            free(copy);
            dbo_strbuf_fini(text);
            return dbo_fail_memory(err, path);
        }
        *source = (dbo_source){
            .next = box->sources, .path = copy, .device = file->st_dev, .number = file->st_ino};
        box->sources = source;
        box->script = box->script ? box->script : copy;
    }
    dbo_strbuf_fini(&source->text);
    source->text = *text;
    *out = source;
    return DBO_OK;
}

/* The parser gets a line at a time: so it is known where it is, and it can be ended. */
static const char *next_line(lua_State *L, void *self, size_t *bytes)
{
    dbo_chunk *chunk = self;
    const dbo_strbuf *text = &chunk->source->text;
    dbo_sandbox *box = dbo_sandbox_of(L);
    const char *line = dbo_strbuf_text(text) + chunk->at; /* of an empty file: "" */
    size_t left = text->len - chunk->at;
    left = left < MAX_PIECE ? left : MAX_PIECE;
    const char *newline = memchr(line, '\n', left);
    *bytes = newline ? (size_t)(newline - line) + 1 : left;
    box->loading_line += chunk->at > 0 && line[-1] == '\n';
    chunk->at += *bytes;
    dbo_sandbox_check(L);
    return line;
}

static int parse(lua_State *L)
{
    dbo_chunk *chunk = lua_touserdata(L, 1);
    dbo_error err = {0};
    size_t length = 0;
    const char *name = lua_pushfstring(L, "@%s", chunk->path);
    int lua_status = lua_load(L, next_line, chunk, name, "t");
    if (lua_status == LUA_OK && chunk->own_globals) {
        dbo_sandbox_push_globals(L);
        lua_setupvalue(L, -2, 1);
    }
    if (lua_status == LUA_OK)
        return 1;
    if (lua_status == LUA_ERRMEM || dbo_sandbox_is_raised(dbo_sandbox_of(L)))
        return lua_error(L);
    const char *text = lua_tolstring(L, -1, &length);
    dbo_fail(&err, lua_status == LUA_ERRSYNTAX ? DBO_PARSE : DBO_INVALID, NULL, "%s", text);
    if (lua_status == LUA_ERRSYNTAX)
        return dbo_sandbox_raise(L, &err);
    return dbo_sandbox_raise_at(L, &err); /* the parser gave it no place */
}

/* Protected: box->chunk into a function. */
static int compile(lua_State *L)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    dbo_chunk chunk = box->chunk;
    chunk.path = lua_pushstring(L, chunk.path);
    const char *outer = box->loading;
    uint32_t outer_line = box->loading_line;
    dbo_sandbox_charge(L, &chunk.source->charged, strlen(chunk.path) + chunk.source->text.cap);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, SOURCES);
    lua_pushlightuserdata(L, chunk.source);
    lua_setfield(L, -2, chunk.path);
    lua_pushcfunction(L, parse);
    lua_pushlightuserdata(L, &chunk);
    box->loading = chunk.path;
    box->loading_line = 1;
    int lua_status = lua_pcall(L, 1, 1, 0);
    box->loading = outer;
    box->loading_line = outer_line;
    return lua_status == LUA_OK ? 1 : lua_error(L);
}

/* How many bytes at the beginning are for others: a byte order mark, and a line for the kernel
 * ("#!...") up to its end, which stays, so that lines keep their numbers. */
static size_t preamble(const char *text)
{
    size_t at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return text[at] == '#' ? at + strcspn(text + at, "\n") : at;
}

static dbo_status check_text(const dbo_strbuf *text, size_t skipped, const char *path,
                             dbo_error *err)
{
    if (dbo_strbuf_text(text)[skipped] == LUA_SIGNATURE[0])
        return dbo_fail(err, DBO_PARSE, "Give the script's source text.",
                        "%s: compiled Lua is not accepted", path);
    if (memchr(dbo_strbuf_text(text), '\0', text->len))
        return dbo_fail(err, DBO_PARSE, NULL, "%s: the file is not text", path);
    return DBO_OK;
}

static dbo_status load(dbo_sandbox *box, int fd, const char *path, bool own_globals, dbo_error *err)
{
    dbo_strbuf text = {0};
    dbo_source *source = NULL;
    struct stat file;
    dbo_status status;
    if (fstat(fd, &file) != 0) {
        status = dbo_fail_read(err, path, errno);
        close(fd);
        return status;
    }
    DBO_TRY(dbo_sandbox_read(fd, path, box->limits.source_bytes, &text, err));
    size_t skipped = preamble(dbo_strbuf_text(&text));
    status = check_text(&text, skipped, path, err);
    if (status != DBO_OK) {
        dbo_strbuf_fini(&text);
        return status;
    }
    DBO_TRY(keep_source(box, &file, path, &text, &source, err));
    /* Nothing of the caller's, who may give the script up. */
    box->chunk = (dbo_chunk){source, box->running ? path : source->path, skipped, own_globals};
    lua_pushcfunction(box->lua, compile);
    if (!box->running)
        return dbo_sandbox_call(box, 0, 1, err);
    int lua_status = lua_pcall(box->lua, 0, 1, 0);
    return lua_status == LUA_OK ? DBO_OK : dbo_sandbox_take_error(box, lua_status, err);
}

dbo_status dbo_sandbox_load_file(dbo_sandbox *box, const char *path, dbo_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? dbo_fail_read(err, path, errno) : load(box, fd, path, false, err);
}

dbo_status dbo_sandbox_load_open(dbo_sandbox *box, int fd, const char *path, dbo_error *err)
{
    return load(box, fd, path, true, err);
}

/* ---- errors with a place ---- */

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
static uint32_t line_of(lua_State *L, const char *path, int from, const dbo_error *err)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, SOURCES);
    lua_getfield(L, -1, path);
    const dbo_source *source = lua_touserdata(L, -1); /* NULL: a chunk that is no file */
    lua_pop(L, 2);
    size_t length = 0;
    const char *name = last_name(err->key, &length);
    int line = 1;
    for (const char *at = source && length > 0 ? dbo_strbuf_text(&source->text) : ""; *at; line++) {
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
    const dbo_sandbox *box = dbo_sandbox_of(L);
    if (box->loading) {
        dbo_error_at(err, box->loading, box->loading_line);
        return dbo_sandbox_raise(L, err);
    }
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0)
            continue;
        const char *path = ar.source[0] == '@' ? ar.source + 1 : ar.short_src;
        dbo_error_at(err, path, line_of(L, path, ar.currentline, err));
        break;
    }
    return dbo_sandbox_raise(L, err);
}

int dbo_sandbox_raise_in(lua_State *L, const char *path, dbo_error *err)
{
    dbo_error_at(err, path, line_of(L, path, 1, err));
    return dbo_sandbox_raise(L, err);
}
