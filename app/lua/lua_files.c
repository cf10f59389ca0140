/* lua_files.c: which files a script may read, and how it gets at them (lua_files.h). */
#include "app/lua/lua_files.h"

#include "app/io/beneath.h"
#include "app/io/script_path.h"
#include "app/lua/lua_read.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDERS "dbo.folders" /* registry key of the list; its user value holds the paths */

/* ---- the folders ---- */

static void add_folder(lua_State *L, const char *folder, size_t length)
{
    lua_pushlstring(L, folder, length);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* How much of a path is the folder: 0 is the working directory. */
static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
}

void dbo_lua_set_folders(lua_State *L, const char *script, const char *const *readable,
                         uint32_t num_readable)
{
    char folder[PATH_MAX];
    lua_newtable(L);
    add_folder(L, script, folder_bytes(script));
    for (uint32_t i = 0; i < num_readable; i++)
        add_folder(L, readable[i], strlen(readable[i]));
    uint32_t shipped = (uint32_t)lua_rawlen(L, -1);
    for (size_t i = 0; dbo_script_folder(i, folder); i++)
        if (folder[0])
            add_folder(L, folder, strlen(folder));
    uint32_t count = (uint32_t)lua_rawlen(L, -1);
    dbo_lua_folders *list = lua_newuserdatauv(L, sizeof *list + count * sizeof *list->paths, 1);
    *list = (dbo_lua_folders){.count = count, .shipped = shipped};
    for (uint32_t i = 0; i < count; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        list->paths[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, FOLDERS);
}

const dbo_lua_folders *dbo_lua_get_folders(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, FOLDERS);
    const dbo_lua_folders *list = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return list;
}

const char *dbo_lua_push_joined(lua_State *L, const char *folder, const char *below)
{
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] != '/';
    return lua_pushfstring(L, "%s%s%s", folder, slash ? "/" : "", below);
}

int dbo_lua_open_in(const dbo_lua_folders *list, uint32_t index, const char *below, bool is_folder)
{
    int kind = (is_folder ? DBO_BENEATH_FOLDER : DBO_BENEATH_FILE) |
               (index >= list->shipped ? DBO_BENEATH_LINKS : 0);
    return dbo_beneath_open(list->paths[index], below, (dbo_beneath_kind)kind);
}

/* ---- a path in a script ---- */

/* Pushes the folder of the file whose code calls, also where pcall or gsub is in between. */
static const char *push_caller_folder(lua_State *L)
{
    lua_Debug ar;
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "S", &ar);
        if (ar.source[0] == '@')
            return lua_pushlstring(L, ar.source + 1, folder_bytes(ar.source + 1));
    }
    return lua_pushstring(L, dbo_lua_get_folders(L)->paths[0]);
}

/* What is left of a path that has no ".." behind the folder, or NULL if it does not lead there. */
static const char *part_below(const char *path, const char *folder)
{
    char whole[PATH_MAX];
    if (!realpath(folder[0] ? folder : ".", whole))
        return NULL;
    size_t length = strlen(whole);
    length -= whole[length - 1] == '/';
    bool below = strncmp(path, whole, length) == 0 && path[length] == '/' && path[length + 1];
    return below ? path + length + 1 : NULL;
}

/* A file that is looked for. */
typedef struct dbo_looked_for {
    const char *path;     /* as the script has it */
    char whole[PATH_MAX]; /* absolute; "": it leads nowhere */
    char bare[PATH_MAX];  /* from any folder; "": it leads upwards */
} dbo_looked_for;

/* What to open below a folder of the list; NULL: nothing. By its place, or else by its name. */
static const char *below_folder(const dbo_looked_for *file, const dbo_lua_folders *list,
                                uint32_t index, bool by_name)
{
    if (by_name)
        return file->bare[0] ? file->bare : NULL;
    bool is_fine = index > 0 || file->path[0] != '/'; /* the script's own, absolute, it is not */
    return is_fine ? part_below(file->whole, list->paths[index]) : NULL;
}

/* Tries all folders; leaves the path pushed where it was found, or else where it was looked for
 * first. -EXDEV, and nothing pushed: it leads to none. */
static int open_looked_for(lua_State *L, const dbo_looked_for *file)
{
    const dbo_lua_folders *list = dbo_lua_get_folders(L);
    int first = -EXDEV;
    for (uint32_t i = 0; i < 2 * list->count; i++) {
        bool by_name = i >= list->count, is_first = first == -EXDEV;
        uint32_t index = by_name ? i - list->count : i;
        const char *below = below_folder(file, list, index, by_name);
        if (!below)
            continue;
        dbo_lua_push_joined(L, list->paths[index], below);
        int fd = dbo_lua_open_in(list, index, below, false);
        if (fd != -ENOENT && fd != -ENOTDIR) {
            if (!is_first)
                lua_remove(L, -2);
            return fd;
        }
        first = is_first ? fd : first;
        if (!is_first)
            lua_pop(L, 1);
    }
    return first;
}

static void check_path(lua_State *L, const char *function, const char *ending)
{
    dbo_error err = {0};
    char what[64];
    const dbo_value *value = dbo_lua_read(L, 1);
    const char *path = dbo_value_text(value);
    size_t length = path ? strlen(path) : 0, wanted = strlen(ending);
    if (!path) {
        snprintf(what, sizeof what, "the path of %s", function);
        dbo_value_mismatch(what, "a string", value, &err);
        dbo_lua_raise(L, &err);
    } else if (length <= wanted || strcmp(path + length - wanted, ending) != 0) {
        dbo_lua_fail(L, DBO_INVALID, NULL,
                     "%s takes the path of a %s file, relative to the script, not '%.80s'",
                     function, ending, path);
    }
    lua_pop(L, 1);
}

int dbo_lua_open_file(lua_State *L, const char *function, const char *ending)
{
    dbo_error err = {0};
    char folder[PATH_MAX];
    check_path(L, function, ending);
    dbo_looked_for file = {.path = lua_tostring(L, 1)};
    const char *from = push_caller_folder(L);
    bool is_there = realpath(from[0] ? from : ".", folder) != NULL;
    lua_pop(L, 1);
    if (!dbo_beneath_resolve(is_there ? folder : "", file.path, file.whole))
        file.whole[0] = '\0';
    if (file.path[0] == '/' || !dbo_beneath_resolve("", file.path, file.bare))
        file.bare[0] = '\0';
    int fd = open_looked_for(L, &file);
    if (fd >= 0)
        return fd;
    if (fd != -EXDEV)
        dbo_beneath_fail(&err, lua_tostring(L, -1), -fd);
    else
        dbo_fail(&err, DBO_INVALID, "--allow-read DIR lets it read more.",
                 file.path[0] == '/'
                     ? "%s takes a path relative to the script, not the absolute '%.80s'"
                     : "%s reads what is below the script's folder or comes with dbo, not '%.80s'",
                 function, file.path);
    dbo_lua_blame_script(&err);
    return dbo_lua_raise(L, &err);
}
