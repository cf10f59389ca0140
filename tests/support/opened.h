/* opened.h: which files a command opened, as strace has it.
 *
 *     need_trace();
 *     run("strace -f -y -e trace=openat -o trace dbo run in/t.lua");
 *     assert_true(check_opened("trace", "the script") > 3);
 */
#ifndef DBO_TESTS_OPENED_H
#define DBO_TESTS_OPENED_H

#include "tests/support/folder.h"
#include "tests/support/not_run.h"

#include <stdbool.h>

/* Ends the test where nothing can be traced. */
static inline void need_trace(void)
{
    if (system("strace -f -y -e trace=openat -o /dev/null true >/dev/null 2>&1") != 0)
        not_run("strace is missing or may not trace here: which files are opened is not tested");
}

/* Is the file one that may be opened by a script in the folder in/? */
static inline bool may_open(const char *path)
{
    static const char *const fine[] = {DBO_SOURCE_DIR, "/lib",      "/usr/",      "/proc/",
                                       "/sys/",        "/dev/null", "/etc/ld.so", NULL};
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) == 0)
        return strncmp(path + length, "/in", 3) == 0 &&
               (path[length + 3] == '/' || path[length + 3] == '>');
    for (size_t i = 0; fine[i]; i++)
        if (strncmp(path, fine[i], strlen(fine[i])) == 0)
            return true;
    return false;
}

/* Fails for a file of the trace that may not be opened; returns how many were. */
static inline uint32_t check_opened(const char *trace, const char *by)
{
    static char line[8192];
    uint32_t opened = 0;
    FILE *file = fopen(path_of(trace).text, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *result = strstr(line, ") = ");
        const char *path = result ? strchr(result, '<') : NULL;
        if (path && ++opened > 0 && !may_open(path + 1))
            fail_msg("%s\nopens: %s", by, line);
    }
    assert_int_equal(fclose(file), 0);
    return opened;
}

#endif
