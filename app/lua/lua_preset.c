/* lua_preset.c: models and machines by name: scripts/models/NAME.lua, scripts/hardware/NAME.lua.
 *
 * A preset is a script that returns a table of fields, run in the same sandbox. It is looked for
 * in the folders that the sandbox was given, in order (lua_load.c). A name is one file name without
 * its ending: letters, digits, '.', '-', '_', no folders, so that a script cannot probe files.
 */
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
    const char *kind;
    const dbo_settings *settings;
    void *object;
    int depth;
} dbo_described;

static void read_value(lua_State *L, dbo_described *into, const dbo_place *place);

static bool is_file_name(const char *name)
{
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr(".-_", *at))
            return false;
    }
    return name[0] && name[0] != '.' && strlen(name) < 64;
}

/* Looks in one folder for NAME.lua, case aside; offers near names. Pushes the path if found. */
static bool find_in(lua_State *L, const char *folder, const char *name, dbo_suggestion *near,
                    char nearest[64])
{
    DIR *dir = opendir(folder);
    if (!dir)
        return false;
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
        lua_pushfstring(L, "%s/%s", folder, found);
    return found[0] != '\0';
}

/* Pushes the path of a preset; raises if there is none. */
static void find_preset(lua_State *L, const char *kind, const char *name, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_suggestion near = dbo_suggest_begin(name);
    char nearest[64] = "";
    const char *what = strcmp(kind, "models") == 0 ? "model" : "hardware";
    lua_getfield(L, LUA_REGISTRYINDEX, DBO_LUA_FOLDERS);
    lua_Unsigned count = lua_rawlen(L, -1);
    for (lua_Unsigned i = 1; i <= count && is_file_name(name); i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), kind);
        if (find_in(L, lua_tostring(L, -1), name, &near, nearest)) {
            lua_replace(L, -4);
            lua_pop(L, 2);
            return;
        }
        lua_pop(L, 2);
    }
    char hint[128];
    snprintf(hint, sizeof hint,
             "Names are the files of scripts/%s; a table of fields describes a new one.", kind);
    if (near.nearest) {
        dbo_fail(&err, DBO_INVALID, hint, "unknown %s '%.48s', did you mean '%s'?", what, name,
                 near.nearest);
    } else {
        dbo_fail(&err, DBO_INVALID, hint, "unknown %s '%.48s'", what, name);
    }
    dbo_lua_raise(L, place, strcmp(kind, "models") == 0 ? "model" : "hardware", &err);
}

/* The preset whose name is at the top of the stack. */
static void read_preset(lua_State *L, dbo_described *into, const dbo_place *place)
{
    dbo_error err = {0};
    find_preset(L, into->kind, lua_tostring(L, -1), place);
    const char *path = lua_tostring(L, -1);
    dbo_sandbox *box = dbo_sandbox_of(L);
    if (dbo_sandbox_load_file(box, path, &err) != DBO_OK) {
        if (err.status == DBO_IO)
            err.status = DBO_INVALID; /* DBO_IO is said of the script alone */
        dbo_sandbox_raise(L, &err);
    }
    lua_call(L, 0, 1);
    dbo_place inside = {.path = path};
    if (lua_type(L, -1) != LUA_TTABLE) {
        dbo_fail(&err, DBO_INVALID, "End it with: return { name = ..., ... }",
                 "the file must return a table of fields, not %s", luaL_typename(L, -1));
        dbo_lua_raise(L, &inside, NULL, &err);
    }
    read_value(L, into, &inside);
    lua_pop(L, 2);
}

static void take_field(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_described *into = self;
    if (strcmp(key, "base") != 0)
        dbo_lua_set_field(L, into->settings, into->object, place, key);
}

static void read_value(lua_State *L, dbo_described *into, const dbo_place *place)
{
    dbo_error err = {0};
    luaL_checkstack(L, 16, "descriptions");
    const char *key = strcmp(into->kind, "models") == 0 ? "model" : "hardware";
    if (++into->depth > MAX_BASES) {
        dbo_fail(&err, DBO_LIMIT, "Does one name itself as its base?",
                 "more than %d descriptions stand on each other", MAX_BASES);
        dbo_lua_raise(L, place, "base", &err);
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        read_preset(L, into, place);
        return;
    }
    if (lua_type(L, -1) != LUA_TTABLE) {
        dbo_value value = dbo_lua_value(L, -1);
        dbo_value_mismatch(key, "a name or a table of fields", &value, &err);
        dbo_lua_raise(L, place, key, &err);
    }
    lua_pushliteral(L, "base");
    if (lua_rawget(L, -2) != LUA_TNIL)
        read_value(L, into, place);
    lua_pop(L, 1);
    dbo_lua_each(L, -1, into->settings->name, place, take_field, into);
}

void dbo_lua_read_described(lua_State *L, const char *kind, const dbo_settings *settings,
                            void *object, const dbo_place *place)
{
    dbo_described into = {.kind = kind, .settings = settings, .object = object};
    read_value(L, &into, place);
}
