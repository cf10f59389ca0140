/* folder.h: a folder of the test's own, and files in it.
 *
 *     put_file("t.lua", "return nil\n");
 *     cmocka_run_group_tests_name("x", tests, make_folder, remove_folder);
 */
#ifndef DBO_TESTS_FOLDER_H
#define DBO_TESTS_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[] = "/tmp/dbo-test-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char shell[64];
    (void)state;
    snprintf(shell, sizeof shell, "rm -r %s", folder);
    return system(shell);
}

/* The path of a file in it. */
typedef struct folder_path {
    char text[128];
} folder_path;

static inline folder_path path_of(const char *name)
{
    folder_path path;
    snprintf(path.text, sizeof path.text, "%s/%s", folder, name);
    return path;
}

static inline void put_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name).text, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Cut to the buffer. */
static inline void get_file(const char *name, char *text, size_t size)
{
    FILE *file = fopen(path_of(name).text, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* What is said of a file of the folder, with its name alone. */
static inline const char *without_folder(const char *message)
{
    size_t length = strlen(folder);
    return strncmp(message, folder, length) == 0 ? message + length + 1 : message;
}

#endif
