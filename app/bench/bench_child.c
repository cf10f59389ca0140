/* bench_child.c: runs a program, gives it a few bytes and keeps what it prints (bench.h).
 *
 * The parent sleeps in poll while the child is timed; it wakes ten times a second to see whether it
 * should stop, because a Ctrl-C may reach it alone.
 */
#include "app/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 100

extern char **environ;

typedef struct child {
    const char *path;
    pid_t pid;
    int to, from; /* -1: closed */
} child;

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static dbo_status fail_run(const char *path, int reason, dbo_error *err)
{
    return dbo_fail(err, DBO_UNSUPPORTED, NULL, "cannot run %.300s: %s", path, strerror(reason));
}

static int spawn(child *c, char *const *argv, int its_stdin, int its_stdout)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual;
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason != 0)
        return reason;
    reason = posix_spawnattr_init(&attributes);
    if (reason == 0) {
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE); /* which dbo ignores */
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        reason = posix_spawn_file_actions_adddup2(&actions, its_stdin, STDIN_FILENO);
        if (reason == 0)
            reason = posix_spawn_file_actions_adddup2(&actions, its_stdout, STDOUT_FILENO);
        if (reason == 0)
            reason = posix_spawn(&c->pid, c->path, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return reason;
}

static dbo_status start(child *c, char *const *argv, dbo_error *err)
{
    int down[2] = {-1, -1}, up[2] = {-1, -1};
    int reason = 0;
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        reason = errno;
    else
        reason = spawn(c, argv, down[0], up[1]);
    close_end(&down[0]);
    close_end(&up[1]);
    c->to = down[1];
    c->from = up[0];
    if (reason == 0)
        return DBO_OK;
    close_end(&c->to);
    close_end(&c->from);
    return fail_run(c->path, reason, err);
}

/* Reads until the child closes its end; what does not fit is dropped. */
static dbo_status read_all(const child *c, dbo_bench_pipes *pipes, dbo_bench_cancelled cancelled,
                           dbo_error *err)
{
    char *output = pipes->output, rest[512];
    pipes->length = 0;
    for (;;) {
        struct pollfd ready = {.fd = c->from, .events = POLLIN};
        int count = poll(&ready, 1, POLL_MS);
        if (cancelled && cancelled(NULL))
            return dbo_fail(err, DBO_CANCELLED, NULL, "the benchmark was interrupted");
        if (count == 0 || (count < 0 && errno == EINTR))
            continue;
        size_t left = pipes->capacity - pipes->length;
        ssize_t got = count < 0   ? -1
                      : left == 0 ? read(c->from, rest, sizeof rest)
                                  : read(c->from, output + pipes->length, left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_run(c->path, errno, err);
        if (got == 0)
            return DBO_OK;
        if (left > 0)
            pipes->length += (size_t)got;
    }
}

/* Ends the child if `kill_it`, and waits for it. */
static dbo_status reap(child *c, bool kill_it, dbo_error *err)
{
    int how = 0;
    close_end(&c->from);
    if (kill_it)
        kill(c->pid, SIGKILL);
    while (waitpid(c->pid, &how, 0) < 0)
        if (errno != EINTR)
            return fail_run(c->path, errno, err);
    if (WIFSIGNALED(how))
        return dbo_fail(err, DBO_INTERNAL, NULL, "%.300s was ended by signal %d (%s)", c->path,
                        WTERMSIG(how), strsignal(WTERMSIG(how)));
    if (WEXITSTATUS(how) != 0)
        return dbo_fail(err, DBO_INTERNAL, NULL, "%.300s ended with exit code %d", c->path,
                        WEXITSTATUS(how));
    return DBO_OK;
}

dbo_status dbo_bench_child(char *const *argv, dbo_bench_pipes *pipes, dbo_bench_cancelled cancelled,
                           dbo_error *err)
{
    child c = {.path = argv[0], .to = -1, .from = -1};
    DBO_TRY(start(&c, argv, err));
    dbo_status status = DBO_OK;
    /* It fits into the pipe, so it cannot block; a child that ended early shows below. */
    if (pipes->input_bytes > 0 && write(c.to, pipes->input, pipes->input_bytes) < 0 &&
        errno != EPIPE)
        status = fail_run(c.path, errno, err);
    close_end(&c.to);
    if (status == DBO_OK)
        status = read_all(&c, pipes, cancelled, err);
    dbo_status ended = reap(&c, status != DBO_OK, status == DBO_OK ? err : NULL);
    return status == DBO_OK ? ended : status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double dbo_bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
