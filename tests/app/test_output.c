/* test_output.c: files are written whole or not at all. */
#include "app/io/output.h"
#include "tests/support/folder.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* ---- what writers that were killed leave behind ---- */

static int count_entries(void)
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

/* A process that has opened the output and is at work until it is killed. */
static pid_t start_writer(const char *path)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        dbo_output output;
        bool open = dbo_output_open(&output, path, NULL, NULL) == DBO_OK;
        if (!open || fputs("half", output.file) < 0 || fflush(output.file) != 0 ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return writer;
}

static void end_writer(pid_t writer)
{
    int how;
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, &how, 0), writer);
    assert_true(WIFSIGNALED(how));
}

static void the_next_writer_removes_what_a_killed_one_left(void **state)
{
    (void)state;
    static const char *const others[] = {"a.json.backup", "a.json.dbo-", "a.json.dbo-12345",
                                         "b.json.dbo-xxxxxx", "a.json.dbo-1234567"};
    char path[96];
    int num_others = sizeof others / sizeof *others;
    snprintf(path, sizeof path, "%s", in_folder("a.json"));
    for (int i = 0; i < num_others; i++)
        write_file(in_folder(others[i]), "somebody's");
    end_writer(start_writer(path));
    end_writer(start_writer(path)); /* it has removed the first one's */
    assert_int_equal(count_entries(), num_others + 1);
    pid_t living = start_writer(path);
    assert_int_equal(count_entries(), num_others + 1);
    write_file(path, "whole");
    expect_text(path, "whole");
    assert_int_equal(count_entries(), num_others + 2); /* the living one's is still there */
    end_writer(living);
    write_file(path, "again");
    assert_int_equal(count_entries(), num_others + 1);
    for (int i = 0; i < num_others; i++) {
        expect_text(in_folder(others[i]), "somebody's");
        assert_int_equal(unlink(in_folder(others[i])), 0);
    }
    assert_int_equal(unlink(path), 0);
}

/* A file of that name which is a folder, a link or another's is left alone. */
static void what_is_no_file_of_mine_stays(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s", in_folder("a.json"));
    write_file(in_folder("kept"), "kept");
    assert_int_equal(mkdir(in_folder("a.json.dbo-folder"), 0700), 0);
    assert_int_equal(symlink("kept", in_folder("a.json.dbo-linked")), 0);
    write_file(path, "whole");
    assert_int_equal(count_entries(), 4);
    assert_int_equal(rmdir(in_folder("a.json.dbo-folder")), 0);
    assert_int_equal(unlink(in_folder("a.json.dbo-linked")), 0);
    assert_int_equal(unlink(in_folder("kept")), 0);
    assert_int_equal(unlink(path), 0);
}

/* Several at once: each that is committed is whole, and nothing is left over. */
static void many_writers_of_one_output_do_not_disturb_each_other(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s", in_folder("a.json"));
    for (int i = 0; i < 8; i++) {
        pid_t writer = fork();
        assert_true(writer >= 0);
        for (int k = 0; writer == 0 && k < 40; k++) {
            dbo_output output;
            if (dbo_output_open(&output, path, NULL, NULL) != DBO_OK ||
                fputs("whole", output.file) < 0 || dbo_output_commit(&output, NULL) != DBO_OK)
                _exit(1);
        }
        if (writer == 0)
            _exit(0);
    }
    for (int i = 0, how; i < 8; i++) {
        assert_true(wait(&how) > 0);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    expect_text(path, "whole");
    assert_int_equal(count_entries(), 1);
    assert_int_equal(unlink(path), 0);
}

static bool stop;
static bool is_stopped(void *unused)
{
    (void)unused;
    return stop;
}

/* Writing stops when it is cancelled, and the reason of the first failure is the one that is said.
 */
static void a_cancelled_output_is_not_written(void **state)
{
    (void)state;
    dbo_output output;
    dbo_error err = {0};
    const char *path = in_folder("a.json");
    assert_int_equal(dbo_output_open(&output, path, is_stopped, &err), DBO_OK);
    assert_true(fputs("half", output.file) >= 0 && fflush(output.file) == 0);
    stop = true;
    assert_true(fputs("rest", output.file) < 0 || fflush(output.file) != 0);
    assert_true(ferror(output.file));
    assert_int_equal(dbo_output_commit(&output, &err), DBO_IO);
    assert_int_equal(count_entries(), 0);
    stop = false;
    assert_int_equal(dbo_output_open(&output, "/dev/full", NULL, &err), DBO_OK);
    assert_true(fputs("x", output.file) >= 0 && fflush(output.file) != 0);
    errno = ENOENT;
    assert_int_equal(dbo_output_commit(&output, &err), DBO_IO);
    assert_string_equal(err.message, "cannot write /dev/full: No space left on device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_replaces_and_discard_leaves),
        cmocka_unit_test(links_keep_pointing),
        cmocka_unit_test(failures_are_sentences),
        cmocka_unit_test(the_next_writer_removes_what_a_killed_one_left),
        cmocka_unit_test(what_is_no_file_of_mine_stays),
        cmocka_unit_test(many_writers_of_one_output_do_not_disturb_each_other),
        cmocka_unit_test(a_cancelled_output_is_not_written),
    };
    return cmocka_run_group_tests_name("output", tests, make_folder, remove_folder);
}
