/* test_output.c: files are written whole or not at all. */
#include "app/io/output.h"
#include "tests/support/folder.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *in_folder(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    dbo_output output;
    dbo_error err = {0};
    if (dbo_output_open(&output, path, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    fputs(text, output.file);
    assert_int_equal(dbo_output_commit(&output, &err), DBO_OK);
}

static void expect_text(const char *path, const char *text)
{
    char got[64];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(got, text);
}

static void commit_replaces_and_discard_leaves(void **state)
{
    (void)state;
    struct stat before, after;
    const char *path = in_folder("a");
    write_file(path, "first");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(stat(path, &before), 0);
    write_file(path, "second");
    expect_text(path, "second");
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);

    dbo_output output;
    assert_int_equal(dbo_output_open(&output, path, NULL, NULL), DBO_OK);
    fputs("third", output.file);
    expect_text(path, "second"); /* not touched while it is being written */
    dbo_output_discard(&output);
    dbo_output_discard(&output);
    expect_text(path, "second");
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left in it */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void links_keep_pointing(void **state)
{
    (void)state;
    char target[96];
    snprintf(target, sizeof target, "%s", in_folder("target"));
    write_file(target, "old");
    const char *link = in_folder("link");
    assert_int_equal(symlink("target", link), 0);
    write_file(link, "new");
    expect_text(target, "new");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(target), 0);
}

static void failures_are_sentences(void **state)
{
    (void)state;
    dbo_output output;
    dbo_error err = {0};
    assert_int_equal(dbo_output_open(&output, "/no/such/folder/x", NULL, &err), DBO_IO);
    assert_string_equal(err.message, "cannot write /no/such/folder/x: No such file or directory");
    assert_int_equal(dbo_output_open(&output, folder, NULL, &err), DBO_IO);
    assert_non_null(strstr(err.message, "Is a directory"));
    assert_int_equal(dbo_output_open(&output, "/dev/full", NULL, &err), DBO_OK);
    fputs("x", output.file);
    assert_int_equal(dbo_output_commit(&output, &err), DBO_IO);
    assert_string_equal(err.message, "cannot write /dev/full: No space left on device");
    assert_int_equal(access("/dev/full", W_OK), 0); /* not replaced */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_replaces_and_discard_leaves),
        cmocka_unit_test(links_keep_pointing),
        cmocka_unit_test(failures_are_sentences),
    };
    return cmocka_run_group_tests_name("output", tests, make_folder, remove_folder);
}
