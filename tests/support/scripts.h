/* scripts.h: the scripts that come with dbo, so that no test has a list of them.
 *
 *     glob_t scripts = scripts_of("workloads", 4);       at least 4, in the order of their names
 *     for (size_t i = 0; i < scripts.gl_pathc; i++)
 *         printf("%s is %s\n", script_name(&scripts, i).text, scripts.gl_pathv[i]);
 *     globfree(&scripts);
 */
#ifndef DBO_TESTS_SCRIPTS_H
#define DBO_TESTS_SCRIPTS_H

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The files of scripts/FOLDER. */
static inline glob_t scripts_of(const char *in_folder, size_t at_least)
{
    glob_t found;
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/scripts/%s/*.lua", DBO_SOURCE_DIR, in_folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= at_least);
    return found;
}

typedef struct script_text {
    char text[64];
} script_text;

/* "deepseek-v3-decode" */
static inline script_text script_name(const glob_t *scripts, size_t index)
{
    script_text name;
    const char *file = strrchr(scripts->gl_pathv[index], '/') + 1;
    snprintf(name.text, sizeof name.text, "%.*s", (int)strlen(file) - 4, file);
    return name;
}

#endif
