/* script_path.c: a list of folders, tried one after the other. */
#include "app/io/script_path.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running command, or "". */
static void program_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

static bool is_there(const char *folder, const char *below, const char *name, char *out,
                     size_t size)
{
    if (!folder || !folder[0])
        return false;
    int length = snprintf(out, size, "%s%s/%s", folder, below, name);
    return length > 0 && (size_t)length < size && access(out, R_OK) == 0;
}

dbo_status dbo_script_path(const char *name, char *out, size_t size, dbo_error *err)
{
    char folder[PATH_MAX];
    program_folder(folder);
    if (is_there("scripts", "", name, out, size) ||
        is_there(getenv("DBO_SCRIPTS_DIR"), "", name, out, size) ||
        is_there(DBO_SOURCE_DIR, "/scripts", name, out, size) ||
        is_there(folder, "/../share/dbo/scripts", name, out, size))
        return DBO_OK;
    return dbo_fail(err, DBO_IO, "Set DBO_SCRIPTS_DIR to the folder of dbo's scripts.",
                    "%.200s, a script that comes with dbo, is not there", name);
}
