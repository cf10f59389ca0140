/* main.c: the `dbo` command: finds the command in its table and runs it.
 *
 * Shared options may stand before the command's name; they are handed on behind it. Everything
 * else is the command's own (cli.h). Where the limit of the stack is low, the command gets a thread
 * with one that is large enough, as then have all threads.
 */
#include "app/command/commands.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST_STACK_BYTES (1u << 20)
#define STACK_BYTES       (8u << 20)

typedef struct dbo_words {
    int argc;
    char **argv;
    int code;
} dbo_words;

/* Without this, a file opened later could become the standard output that was closed. */
static void keep_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) /* open takes the lowest number: this one */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(DBO_EXIT_FAILED);
}

static int run_words(int argc, char **argv)
{
    dbo_error err = {0};
    int first = argc;
    size_t i = 0;
    if (dbo_cli_check(&dbo_command_top, argc, argv, &first, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (first >= argc) /* no command: --help, --version, or nothing to do */
        return dbo_cli_run(&dbo_command_top, argc, argv);
    while (dbo_command_at(i) && strcmp(dbo_command_name(i), argv[first]) != 0)
        i++;
    if (!dbo_command_at(i)) {
        dbo_cli_fail_word(dbo_command_top.arguments, argv[first], &err);
        return dbo_cli_fail_usage(&err);
    }
    /* What stood before the name takes its place: argv[0] is not looked at. */
    memmove(argv + 1, argv, (size_t)first * sizeof *argv);
    return dbo_cli_run(dbo_command_at(i), argc - 1, argv + 1);
}

static void *run_thread(void *given)
{
    dbo_words *words = given;
    words->code = run_words(words->argc, words->argv);
    return NULL;
}

/* This thread only waits, and leaves signals to the other, which expects them. */
static int run_with_stack(dbo_words *words)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
        pthread_setattr_default_np(&attributes) != 0 ||
        pthread_create(&thread, NULL, run_thread, words) != 0) {
        dbo_error err = {0};
        dbo_fail(&err, DBO_LIMIT, "Raise it: ulimit -s 8192",
                 "the limit of the stack is below 1 MiB, and there is no memory for another stack");
        return dbo_cli_fail(&err);
    }
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    (void)pthread_join(thread, NULL);
    return words->code;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    dbo_words words = {argc, argv, DBO_EXIT_FAILED};
    keep_standard_files();
    dbo_cli_catch_signals();
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < LEAST_STACK_BYTES)
        return run_with_stack(&words);
    return run_words(argc, argv);
}
