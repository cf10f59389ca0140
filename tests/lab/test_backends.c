/* Back ends by name: what is built in, what is loaded, and what is refused with which sentence. */
#include "lab/world/backends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void must_find(const char *name)
{
    const dbo_backend *backend = NULL;
    dbo_error err = {0};
    if (dbo_backend_find(name, &backend, &err) != DBO_OK)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(backend->api_version, DBO_BACKEND_API);
    assert_string_equal(backend->name, name);
}

/* Refused so; sentence and hint have these parts. */
static void must_refuse(const char *name, dbo_status status, const char *part, const char *hint)
{
    const dbo_backend *backend = NULL;
    dbo_error err = {0};
    assert_int_equal(dbo_backend_find(name, &backend, &err), status);
    assert_int_equal(err.status, status);
    assert_null(backend);
    if (!strstr(err.message, part))
        fail_msg("%s: '%s' lacks '%s'", name, err.message, part);
    if (!strstr(err.hint, hint))
        fail_msg("%s: the hint '%s' lacks '%s'", name, err.hint, hint);
}

static void taken(void **state)
{
    (void)state;
    must_find("sim");
    must_find("null");
    must_find("null"); /* again */
}

static void refused(void **state)
{
    (void)state;
    must_refuse("old", DBO_UNSUPPORTED, "libdbo_old.so is made for version 7 ", "same version");
    must_refuse("hollow", DBO_UNSUPPORTED, "libdbo_hollow.so gives no 'run'", "");
    must_refuse("mute", DBO_UNSUPPORTED, "libdbo_mute.so is no back end: it has no dbo_backend_get",
                "");
    must_refuse("needy", DBO_UNSUPPORTED, "undefined symbol: dbo_nobody_has_this",
                "Install what it needs");
}

static void unknown(void **state)
{
    (void)state;
    must_refuse("nul", DBO_INVALID, "no back end 'nul': libdbo_nul.so is not in " DBO_TEST_BACKENDS,
                "did you mean 'null'?");
    must_refuse("simm", DBO_INVALID, "/../lib/dbo, ", "did you mean 'sim'?");
    must_refuse("quantum", DBO_INVALID, "loader says: libdbo_quantum.so: cannot open",
                "Name its folder in DBO_BACKEND_PATH; 'sim' is built in.");
}

/* A name is never a path, nor anything that a terminal or a loader would take for more. */
static void strange(void **state)
{
    (void)state;
    static const char *const names[] = {"",    "/tmp/x",          "../null", "null.so", "nu\033[1m",
                                        "a b", "null/../../null", "$ORIGIN", "n:ull"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        must_refuse(names[i], DBO_INVALID, "a back end is named by up to 32 letters",
                    "DBO_BACKEND_PATH");
    must_refuse("abcdefghijklmnopqrstuvwxyzabcdefg", DBO_INVALID, "named by up to 32", "");
    must_refuse("abcdefghijklmnopqrstuvwxyzabcdef", DBO_INVALID, "no back end 'abc", "");
}

/* The first folder that has it counts, whatever the others have; a file that is no library is not
 * passed over. */
static void folders(void **state)
{
    (void)state;
    char folder[] = "/tmp/dbo_backends_XXXXXX", path[128], list[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libdbo_null.so", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a library\n", file);
    fclose(file);
    snprintf(list, sizeof list, ":/no/such/folder::%s:" DBO_TEST_BACKENDS, folder);
    setenv(DBO_BACKEND_PATH, list, 1);
    must_refuse("null", DBO_UNSUPPORTED, folder, "LD_LIBRARY_PATH");
    snprintf(list, sizeof list, "/no/such/folder:" DBO_TEST_BACKENDS ":%s:", folder);
    setenv(DBO_BACKEND_PATH, list, 1);
    must_find("null");
    remove(path);
    remove(folder);
    unsetenv(DBO_BACKEND_PATH);
    must_refuse("null", DBO_INVALID, "no back end 'null'", "");
    setenv(DBO_BACKEND_PATH, DBO_TEST_BACKENDS, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),   cmocka_unit_test(refused), cmocka_unit_test(unknown),
        cmocka_unit_test(strange), cmocka_unit_test(folders),
    };
    setenv(DBO_BACKEND_PATH, DBO_TEST_BACKENDS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
