/* fault_text.c: outcomes as words; where scenes are (fault_text.h). */
#include "app/fault_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dbo_fault_outcome_text(uint32_t outcome, dbo_strbuf *out)
{
    static const char *const names[] = {"order", "rows", "time", "refused", "shown"};
    const char *between = "";
    for (uint32_t i = 0; i < 5; i++) {
        if (!(outcome & (1u << i)))
            continue;
        dbo_strbuf_printf(out, "%s%s", between, names[i]);
        between = ", ";
    }
}

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
    int length = snprintf(out, size, "%s%s/faults/%s.lua", folder, below, name);
    return length > 0 && (size_t)length < size && access(out, R_OK) == 0;
}

dbo_status dbo_fault_scene(const char *fault, char *out, size_t size, dbo_error *err)
{
    char folder[PATH_MAX];
    dbo_fault parsed;
    DBO_TRY(dbo_fault_parse(&parsed, fault, err));
    const char *name = dbo_fault_describe(parsed.id).name;
    program_folder(folder);
    if (is_there("scripts", "", name, out, size) ||
        is_there(getenv("DBO_SCRIPTS_DIR"), "", name, out, size) ||
        is_there(DBO_SOURCE_DIR, "/scripts", name, out, size) ||
        is_there(folder, "/../share/dbo/scripts", name, out, size))
        return DBO_OK;
    return dbo_fail(err, DBO_IO, "Set DBO_SCRIPTS_DIR to the folder of dbo's scripts.",
                    "the scene of the fault %s is not there: faults/%s.lua", name, name);
}
