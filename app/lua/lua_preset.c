/* lua_preset.c: models and machines by name: scripts/models/NAME.lua, scripts/hardware/NAME.lua.
 *
 * A preset is a script that returns a table of fields, run in the same sandbox. It is looked for
 * in models/ or hardware/ of what comes with dbo, then of the script's own folder, then of those
 * that the user allows (lua_files.h). A name is one file name without its ending: letters, digits,
 * '.', '-', '_', no folders, so that a script cannot probe files.
 */
#include "app/io/beneath.h"
#include "app/lua/lua_files.h"
#include "app/lua/lua_read.h"
#include "core/base/suggest.h"

#include <ctype.h>
#include <dirent.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_BASES 8

typedef struct dbo_described {
    dbo_experiment *experiment;
    const char *key; /* "model" or "hardware" */
    int depth;
} dbo_described;

/* Where a description was written: by an override, or in a file other than the calling script; both
 * NULL: there. */
typedef struct dbo_place {
    const char *way, *path;
} dbo_place;

static void read_value(lua_State *L, dbo_described *into, const dbo_value *value, dbo_place place);

static void raise(lua_State *L, dbo_place place, dbo_error *err)
{
    if (place.path)
        dbo_sandbox_raise_in(L, place.path, err);
    dbo_lua_raise_by(L, place.way, err);
}

static bool is_file_name(const char *name)
{
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr(".-_", *at))
            return false;
    }
    return name[0] && name[0] != '.' && strlen(name) < 64;
}

/* Looks in one folder, which it closes, for NAME.lua, case aside; offers near names. Pushes the
 * file's name if it is there. */
static bool find_in(lua_State *L, int folder, const char *name, dbo_suggestion *near,
                    char nearest[64])
{
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    if (!dir) {
        (void)close(folder);
        return false;
    }
    char found[256] = "";
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char stem[64];
        size_t length = strlen(entry->d_name);
        if (length < 5 || length - 4 >= sizeof stem ||
            strcmp(entry->d_name + length - 4, ".lua") != 0)
            continue;
        memcpy(stem, entry->d_name, length - 4);
        stem[length - 4] = '\0';
        bool same = strcasecmp(stem, name) == 0;
        if (same && (!found[0] || strcmp(stem, name) == 0))
            snprintf(found, sizeof found, "%s", entry->d_name);
        dbo_suggest_offer(near, stem);
        if (near->nearest == stem) {
            memcpy(nearest, stem, sizeof stem);
            near->nearest = nearest;
        }
    }
    closedir(dir);
    if (found[0])
        lua_pushstring(L, found);
    return found[0] != '\0';
}

/* Opens a preset and pushes its path; raises if there is none. */
static int open_preset(lua_State *L, const char *key, const char *name, dbo_place place)
{
    dbo_error err = {0};
    dbo_suggestion near = dbo_suggest_begin(name);
    char nearest[64] = "", hint[128];
    const char *kind = strcmp(key, "model") == 0 ? "models" : "hardware";
    const dbo_lua_folders *list = dbo_lua_get_folders(L);
    for (uint32_t i = 0; i < list->count && is_file_name(name); i++) {
        uint32_t index = (list->shipped + i) % list->count;
        if (!find_in(L, dbo_lua_open_in(list, index, kind, true), name, &near, nearest))
            continue;
        const char *below = lua_pushfstring(L, "%s/%s", kind, lua_tostring(L, -1));
        const char *path = dbo_lua_push_joined(L, list->paths[index], below);
        int fd = dbo_lua_open_in(list, index, below, false);
        lua_replace(L, -3);
        lua_pop(L, 1);
        if (fd >= 0)
            return fd;
        dbo_beneath_fail(&err, path, -fd);
        dbo_lua_blame_script(&err);
        raise(L, place, &err);
    }
    snprintf(hint, sizeof hint,
             "Names are the files of scripts/%s; a table of fields describes a new one.", kind);
    dbo_fail_key(&err, DBO_INVALID, key, hint,
                 near.nearest ? "unknown %s '%.48s', did you mean '%s'?" : "unknown %s '%.48s'",
                 key, name, near.nearest);
    raise(L, place, &err);
    return -1;
}

static void read_preset(lua_State *L, dbo_described *into, const char *name, dbo_place place)
{
    dbo_error err = {0};
    int fd = open_preset(L, into->key, name, place);
    const dbo_place inside = {.path = lua_tostring(L, -1)};
    if (dbo_sandbox_load_open(dbo_sandbox_of(L), fd, inside.path, &err) != DBO_OK) {
        dbo_lua_blame_script(&err);
        dbo_sandbox_raise(L, &err);
    }
    lua_call(L, 0, 1);
    if (lua_type(L, -1) != LUA_TTABLE) {
        dbo_fail(&err, DBO_INVALID, "End it with: return { name = ..., ... }",
                 "the file must return a table of fields, not %s", luaL_typename(L, -1));
        raise(L, inside, &err);
    }
    read_value(L, into, dbo_lua_read(L, -1), inside);
    lua_pop(L, 3);
}

static void read_value(lua_State *L, dbo_described *into, const dbo_value *value, dbo_place place)
{
    dbo_error err = {0};
    luaL_checkstack(L, 16, "descriptions");
    const char *name = dbo_value_text(value);
    const dbo_value *base = dbo_value_member(value, "base");
    if (++into->depth > MAX_BASES) {
        dbo_fail_key(&err, DBO_LIMIT, "base", "Does one name itself as its base?",
                     "more than %d descriptions stand on each other", MAX_BASES);
        raise(L, place, &err);
    }
    if (name || base)
        dbo_experiment_forget(into->experiment, into->key);
    if (name) {
        read_preset(L, into, name, place);
        return;
    }
    if (base)
        read_value(L, into, base, place);
    if (dbo_experiment_set(into->experiment, into->key, value, &err) != DBO_OK)
        raise(L, place, &err);
}

void dbo_lua_describe(lua_State *L, dbo_experiment *experiment, const char *way, const char *key,
                      const dbo_value *value)
{
    dbo_described into = {.experiment = experiment, .key = key};
    read_value(L, &into, value, (dbo_place){.way = way});
}
