/* command.h: the built command, run in a folder of its own: what it prints, how it ends.
 *
 *     put_file("t.lua", "return nil\n");
 *     expect_sentence("dbo run t.lua", 1, "it must return");
 *     cmocka_run_group_tests_name("x", tests, make_folder, remove_folder);
 */
#ifndef DBO_TESTS_COMMAND_H
#define DBO_TESTS_COMMAND_H

#include "tests/support/folder.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the last command printed; cut to the buffer. */
static char printed[65536], complained[4096];

/* Runs a shell line in the folder, in which dbo is the built command; returns its exit code. */
static inline int run(const char *line)
{
    char shell[6144];
    int length = snprintf(shell, sizeof shell,
                          "cd %s && unset DBO_LOG COLUMNS && export LC_ALL=C.UTF-8 && "
                          "dbo() { '%s' \"$@\"; } && { %s; } >out 2>err",
                          folder, DBO_PROGRAM, line);
    assert_in_range(length, 0, sizeof shell - 1);
    int status = system(shell);
    assert_true(WIFEXITED(status));
    get_file("out", printed, sizeof printed);
    get_file("err", complained, sizeof complained);
    return WEXITSTATUS(status);
}

/* What was printed, without the lines that it was wrapped into. */
static inline void unwrap(void)
{
    char *to = printed;
    for (const char *c = printed; *c; c++)
        if ((*c != ' ' && *c != '\n') || (to > printed && to[-1] != ' '))
            *to++ = (char)(*c == '\n' ? ' ' : *c);
    *to = '\0';
}

/* One sentence: a line that begins with "dbo: ", and at most an indented hint below. */
static inline void expect_sentence(const char *line, int code, const char *words)
{
    int got = run(line);
    if (got != code || !strstr(complained, words))
        fail_msg("%s: exit code %d, expected %d with '%s', said: %s", line, got, code, words,
                 complained);
    assert_memory_equal(complained, "dbo: ", 5);
    const char *end = strchr(complained, '\n');
    assert_non_null(end);
    if (end[1]) {
        assert_memory_equal(end + 1, "     ", 5);
        assert_string_equal(strchr(end + 1, '\n'), "\n");
    }
}

/* Does the process have a handler for SIGINT? Without one, the signal would end it anyhow. */
static inline bool catches_interrupts(pid_t process)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigCgt:", 7) == 0)
            caught = strtoull(line + 7, NULL, 16);
    if (file)
        (void)fclose(file);
    return (caught >> (SIGINT - 1) & 1) != 0;
}

/* Starts the command in the folder (arguments end with NULL), sends it a signal once it can be
 * interrupted and `ready` says that it is at work, and returns its exit code. */
static inline int run_and_signal(char *const arguments[], bool (*ready)(pid_t child), int number)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(folder) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr))
            _exit(99);
        execv(DBO_PROGRAM, arguments);
        _exit(98);
    }
    while (!catches_interrupts(child) || !ready(child)) {
        if (waitpid(child, &status, WNOHANG) == child)
            fail_msg("it ended by itself, status %d", status);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(child, number);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    get_file("err", complained, sizeof complained);
    return WEXITSTATUS(status);
}

static inline int run_and_interrupt(char *const arguments[], bool (*ready)(pid_t child))
{
    return run_and_signal(arguments, ready, SIGINT);
}

#endif
