/* backends.c: finds a plug-in's file, loads it, and looks at what it gives before it is used. */
#include "lab/world/backends.h"

#include "core/base/strbuf.h"
#include "core/base/suggest.h"
#include "sim/sim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX         "libdbo_"
#define SUFFIX         ".so"
#define MAX_NAME_CHARS 32

static bool is_name(const char *name)
{
    size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return length > 0 && length <= MAX_NAME_CHARS && name[length] == '\0';
}

/* ---- where ---- */

typedef bool (*folder_fn)(void *arg, const char *folder); /* true: that will do */

/* Every folder that is there to be looked into, in order, until one will do. */
static bool each_folder(folder_fn look, void *arg)
{
    char folder[PATH_MAX + sizeof "/../lib/dbo"];
    const char *path = secure_getenv(DBO_BACKEND_PATH);
    while (path && *path) {
        size_t length = strcspn(path, ":");
        if (length > 0 && length < PATH_MAX) {
            snprintf(folder, sizeof folder, "%.*s", (int)length, path);
            if (look(arg, folder))
                return true;
        }
        path += length + (path[length] == ':');
    }
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    if (look(arg, folder))
        return true;
    memcpy(slash, "/../lib/dbo", sizeof "/../lib/dbo");
    return look(arg, folder);
}

typedef struct search {
    const char *name;
    char path[PATH_MAX + 64]; /* of what was found */
    dbo_strbuf looked;
    dbo_suggestion near;
    char near_name[MAX_NAME_CHARS + 1];
} search;

static bool is_here(void *arg, const char *folder)
{
    search *s = arg;
    snprintf(s->path, sizeof s->path, "%s/" PREFIX "%s" SUFFIX, folder, s->name);
    if (access(s->path, F_OK) == 0)
        return true;
    dbo_strbuf_printf(&s->looked, "%s, ", folder);
    return false;
}

/* Offers what lies in the folder as what may have been meant. */
static bool offer(void *arg, const char *folder)
{
    search *s = arg;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char name[MAX_NAME_CHARS + 1];
        size_t length = strlen(entry->d_name), around = strlen(PREFIX SUFFIX);
        if (length <= around || length - around > MAX_NAME_CHARS ||
            strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(length - around), entry->d_name + strlen(PREFIX));
        dbo_suggest_offer(&s->near, name);
        if (s->near.nearest == name) /* this one does not last */
            s->near.nearest = memcpy(s->near_name, name, sizeof name);
    }
    if (dir)
        closedir(dir);
    return false;
}

static dbo_status fail_unknown(search *s, const char *reason, dbo_error *err)
{
    char hint[sizeof err->hint];
    s->near = dbo_suggest_begin(s->name);
    dbo_suggest_offer(&s->near, DBO_BACKEND_SIM);
    each_folder(offer, s);
    if (!s->near.nearest)
        snprintf(hint, sizeof hint,
                 "Name its folder in " DBO_BACKEND_PATH "; '" DBO_BACKEND_SIM "' is built in.");
    else
        dbo_suggest_hint(&s->near, hint, sizeof hint);
    return dbo_fail(err, DBO_INVALID, hint,
                    "no back end '%s': " PREFIX "%s" SUFFIX " is not in %.200sand the system's "
                    "loader says: %.150s",
                    s->name, s->name, dbo_strbuf_text(&s->looked), reason);
}

/* ---- what it is ---- */

static dbo_status check(const char *path, const dbo_backend *b, dbo_error *err)
{
    if (!b)
        return dbo_fail(err, DBO_UNSUPPORTED, NULL, "%.300s gives no back end", path);
    if (b->api_version != DBO_BACKEND_API)
        return dbo_fail(err, DBO_UNSUPPORTED, "Install dbo and its back ends of the same version.",
                        "%.300s is made for version %u of what a back end gives, this dbo for %u",
                        path, b->api_version, DBO_BACKEND_API);
    const char *missing = !b->name    ? "name"
                          : !b->open  ? "open"
                          : !b->fill  ? "fill"
                          : !b->run   ? "run"
                          : !b->close ? "close"
                                      : NULL;
    return missing ? dbo_fail(err, DBO_UNSUPPORTED, NULL, "%.300s gives no '%s'", path, missing)
                   : DBO_OK;
}

static dbo_status take(void *library, const char *path, const dbo_backend **out, dbo_error *err)
{
    dbo_backend_get_fn get;
    void *symbol = dlsym(library, DBO_BACKEND_GET);
    memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from data to code */
    if (!get)
        return dbo_fail(err, DBO_UNSUPPORTED, NULL,
                        "%.300s is no back end: it has no " DBO_BACKEND_GET, path);
    const dbo_backend *backend = get();
    DBO_TRY(check(path, backend, err));
    *out = backend;
    return DBO_OK;
}

static dbo_status load(search *s, const dbo_backend **out, dbo_error *err)
{
    bool found = each_folder(is_here, s);
    if (!found)
        snprintf(s->path, sizeof s->path, PREFIX "%s" SUFFIX, s->name);
    void *library = dlopen(s->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *reason = dlerror();
        if (!found)
            return fail_unknown(s, reason, err);
        return dbo_fail(err, DBO_UNSUPPORTED,
                        "Install what it needs, or name its folder in LD_LIBRARY_PATH.",
                        "the back end '%s' cannot be loaded: %.350s", s->name, reason);
    }
    dbo_status status = take(library, s->path, out, err);
    dlclose(library);
    return status;
}

dbo_status dbo_backend_find(const char *name, const dbo_backend **out, dbo_error *err)
{
    search s = {.name = name};
    if (!is_name(name))
        return dbo_fail(err, DBO_INVALID, "Folders of back ends are named in " DBO_BACKEND_PATH ".",
                        "a back end is named by up to %d letters, digits, '_' and '-', not '%.60s'",
                        MAX_NAME_CHARS, name);
    if (strcmp(name, DBO_BACKEND_SIM) == 0) {
        *out = dbo_sim_backend();
        return DBO_OK;
    }
    dbo_status status = load(&s, out, err);
    dbo_strbuf_fini(&s.looked);
    return status;
}
