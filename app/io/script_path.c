/* script_path.c: a list of folders, tried one after the other (script_path.h). */
#include "app/io/script_path.h"

#include "core/base/suggest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the folders ---- */

static bool join(char out[PATH_MAX], const char *folder, size_t length, const char *below)
{
    int written = snprintf(out, PATH_MAX, "%.*s%s", (int)length, folder, below);
    return length > 0 && written < PATH_MAX;
}

/* The scripts that came with the running command, wherever both have been moved to. Below the
 * working directory the path is shorter. */
static bool beside_command(const char *below, char out[PATH_MAX])
{
    char command[PATH_MAX], folder[PATH_MAX], here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", command, sizeof command - 1);
    command[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(command, '/');
    if (!slash || !join(folder, command, (size_t)(slash - command), below) ||
        !realpath(folder, out))
        return false;
    size_t above = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (above > 0 && strncmp(out, here, above) == 0 && out[above] == '/')
        memmove(out, out + above + 1, strlen(out + above));
    return true;
}

static bool data_home(char out[PATH_MAX])
{
    const char *home = getenv("XDG_DATA_HOME");
    if (home && home[0] == '/') /* XDG: a relative path is to be ignored */
        return join(out, home, strlen(home), "/dbo/scripts");
    home = getenv("HOME");
    return home && join(out, home, strlen(home), "/.local/share/dbo/scripts");
}

/* Entry `index` of $XDG_DATA_DIRS; *count: how many there are. */
static bool data_folder(size_t index, char out[PATH_MAX], size_t *count)
{
    const char *list = getenv("XDG_DATA_DIRS");
    bool found = false;
    *count = 0;
    for (list = list && list[0] ? list : "/usr/local/share:/usr/share"; *list; (*count)++) {
        size_t length = strcspn(list, ":");
        if (*count == index && *list == '/')
            found = join(out, list, length, "/dbo/scripts");
        list += length + (list[length] != '\0');
    }
    return found;
}

bool dbo_script_folder(size_t index, char out[PATH_MAX])
{
    const char *own = getenv("DBO_SCRIPTS_DIR");
    size_t shared = 0;
    bool there = data_folder(index - 4, out, &shared);
    if (index == 0)
        there = own && join(out, own, strlen(own), "");
    else if (index == 1)
        there = beside_command("/" DBO_DATA_FROM_COMMAND "/dbo/scripts", out);
    else if (index == 2) /* in a build, and in an archive that is unpacked and used where it is */
        there = beside_command("/share/dbo/scripts", out);
    else if (index == 3)
        there = data_home(out);
    if (!there)
        out[0] = '\0';
    return index < 4 + shared;
}

dbo_status dbo_script_path(const char *name, char *out, size_t size, dbo_error *err)
{
    char folder[PATH_MAX];
    for (size_t i = 0; dbo_script_folder(i, folder); i++) {
        int length = snprintf(out, size, "%s/%s", folder, name);
        if (folder[0] && length > 0 && (size_t)length < size && access(out, R_OK) == 0)
            return DBO_OK;
    }
    return dbo_fail(err, DBO_IO, "Set DBO_SCRIPTS_DIR to the folder of dbo's scripts.",
                    "%.200s, a script that comes with dbo, is not there", name);
}

/* ---- the scripts in them ---- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Gives the scripts of one folder to `take`; false when it wants no more. */
static bool each_of_kind(const char *folder, const char *kind,
                         bool (*take)(void *self, const dbo_script *script), void *self)
{
    char path[2 * PATH_MAX];
    struct dirent **entries = NULL;
    bool more = true;
    snprintf(path, sizeof path, "%s/%s", folder, kind);
    int count = scandir(path, &entries, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name, *ending = strrchr(name, '.');
        if (more && ending && strcmp(ending, ".lua") == 0) {
            snprintf(path, sizeof path, "%s/%s%s%s", folder, kind, kind[0] ? "/" : "", name);
            *ending = '\0';
            more = take(self, &(dbo_script){name, kind, folder, path});
        }
        free(entries[i]);
    }
    free(entries);
    return more;
}

static bool each_of_folder(const char *folder, bool (*take)(void *self, const dbo_script *script),
                           void *self)
{
    struct dirent **kinds = NULL;
    bool more = each_of_kind(folder, "", take, self);
    int count = scandir(folder, &kinds, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        const char *kind = kinds[i]->d_name;
        if (more && strcmp(kind, "models") != 0 && strcmp(kind, "hardware") != 0)
            more = each_of_kind(folder, kind, take, self);
        free(kinds[i]);
    }
    free(kinds);
    return more;
}

void dbo_script_each(bool (*take)(void *self, const dbo_script *script), void *self)
{
    char folder[PATH_MAX];
    bool more = true;
    for (size_t i = 0; more && dbo_script_folder(i, folder); i++)
        if (folder[0])
            more = each_of_folder(folder, take, self);
}

/* ---- by name ---- */

typedef struct script_search {
    const char *kind; /* NULL: any */
    const char *name;
    char path[PATH_MAX], folder[PATH_MAX], other[PATH_MAX]; /* what was found; twice in `folder` */
    dbo_suggestion near;
    char nearest[DBO_SUGGEST_MAX_CHARS + 1];
} script_search;

static bool consider(void *self, const dbo_script *script)
{
    script_search *search = self;
    if (search->path[0] && strcmp(search->folder, script->folder) != 0)
        return false; /* an earlier folder has it */
    dbo_suggest_offer(&search->near, script->name);
    if (search->near.nearest == script->name) { /* the name is lent */
        snprintf(search->nearest, sizeof search->nearest, "%s", script->name);
        search->near.nearest = search->nearest;
    }
    if (strcmp(script->name, search->name) != 0 ||
        (search->kind && strcmp(script->kind, search->kind) != 0))
        return true;
    char *into = search->path[0] ? search->other : search->path;
    snprintf(into, PATH_MAX, "%s", script->path);
    snprintf(search->folder, sizeof search->folder, "%s", script->folder);
    return true;
}

static dbo_status fail_unknown(const char *word, const script_search *search, dbo_error *err)
{
    char folder[PATH_MAX], near[DBO_SUGGEST_MAX_CHARS + 32] = "", hint[256];
    size_t used = 0;
    if (search->near.nearest)
        snprintf(near, sizeof near, ", did you mean '%s'?", search->near.nearest);
    for (size_t i = 0; dbo_script_folder(i, folder) && used < sizeof hint; i++)
        if (folder[0])
            used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s",
                                     used == 0 ? "dbo scripts lists those in " : ", ", folder);
    return dbo_fail(err, DBO_IO, hint,
                    "cannot read %.200s: No such file or directory, nor a script of that name%s",
                    word, near);
}

dbo_status dbo_script_find(const char *word, char *out, size_t size, dbo_error *err)
{
    char name[DBO_SUGGEST_MAX_CHARS + 1], kind[DBO_SUGGEST_MAX_CHARS + 1];
    script_search search;
    const char *slash = strchr(word, '/'), *from = slash ? slash + 1 : word;
    size_t length = strlen(from);
    if (strlen(word) < size && access(word, F_OK) == 0) {
        memcpy(out, word, strlen(word) + 1);
        return DBO_OK;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return dbo_fail_read(err, word, errno);
    if (length > 4 && strcmp(from + length - 4, ".lua") == 0)
        length -= 4;
    snprintf(name, sizeof name, "%.*s", (int)length, from);
    snprintf(kind, sizeof kind, "%.*s", (int)(from - word), word);
    if (slash)
        kind[strcspn(kind, "/")] = '\0';
    search.name = name;
    search.kind = slash ? kind : NULL;
    search.path[0] = search.folder[0] = search.other[0] = '\0';
    search.near = dbo_suggest_begin(name);
    dbo_script_each(consider, &search);
    if (!search.path[0])
        return fail_unknown(word, &search, err);
    if (search.other[0])
        return dbo_fail(err, DBO_IO, "Say which, by its path.", "%.60s can mean %.180s or %.180s",
                        word, search.path, search.other);
    if ((size_t)snprintf(out, size, "%s", search.path) >= size)
        return dbo_fail_read(err, word, ENAMETOOLONG);
    return DBO_OK;
}
