/* output.c: temporary file, fsync, rename (output.h).
 *
 * The temporary file is locked as long as its writer lives. One that is not was left behind by a
 * writer that was killed, and whoever writes the same output next removes it. A stream of our own
 * above the descriptor keeps the reason of the first write that fails, and fails once cancelled.
 */
#include "app/io/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static dbo_status fail(const char *path, int reason, dbo_error *err)
{
    return dbo_fail(err, DBO_IO, NULL, "cannot write %.300s: %s", path, strerror(reason));
}

/* The mode that a new file would get: 0666 less the umask, which can only be read by setting it. */
static mode_t new_file_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Replaces a link by what it points to, be that there or not; false: errno says why not. */
static bool follow_links(char path[PATH_MAX])
{
    char target[PATH_MAX];
    for (int links = 0; links < 40; links++) {
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            return true; /* no link; opening it says whether it is anything */
        target[length] = '\0';
        char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
        size_t kept = slash ? (size_t)(slash - path) + 1 : 0;
        if (kept + (size_t)length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(path + kept, target, (size_t)length + 1);
    }
    errno = ELOOP;
    return false;
}

bool dbo_output_names_stdout(const char *path)
{
    struct stat named, out;
    if (!path || strcmp(path, "-") == 0)
        return path != NULL;
    if (stat(path, &named) != 0 || fstat(STDOUT_FILENO, &out) != 0)
        return false;
    bool is_sink = S_ISCHR(out.st_mode) && !isatty(STDOUT_FILENO); /* /dev/null takes everything */
    return !is_sink && named.st_dev == out.st_dev && named.st_ino == out.st_ino;
}

/* ---- temporary files ---- */

#define MARK   ".dbo-" /* PATH.dbo-XXXXXX: no name that anybody else would give */
#define RANDOM "XXXXXX"

/* A regular file of mine that nobody has locked: its writer is no more. Between opening it and
 * locking it, it may have got its real name; then the entry is another file, or none. */
static bool is_left_behind(int folder, const char *name, int fd)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == geteuid() &&
           flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

static void remove_left_behind(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    snprintf(folder, sizeof folder, "%.*s.", (int)(base - path), path);
    DIR *entries = opendir(folder);
    if (!entries)
        return;
    for (const struct dirent *entry; (entry = readdir(entries));) {
        const char *name = entry->d_name;
        if (strlen(name) != length + strlen(MARK RANDOM) || strncmp(name, base, length) != 0 ||
            strncmp(name + length, MARK, strlen(MARK)) != 0)
            continue;
        int fd = openat(dirfd(entries), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && is_left_behind(dirfd(entries), name, fd))
            unlinkat(dirfd(entries), name, 0);
        if (fd >= 0)
            close(fd);
    }
    closedir(entries);
}

/* Those with a temporary file, for dbo_output_drop_all; what finds no room stays for the next one
 * who writes the same output. */
static _Atomic(dbo_output *) open_outputs[4];

static void note(dbo_output *from, dbo_output *to)
{
    size_t i = 0;
    for (dbo_output *is = from; i < sizeof open_outputs / sizeof *open_outputs; i++, is = from)
        if (atomic_compare_exchange_strong(&open_outputs[i], &is, to))
            return;
}

void dbo_output_drop_all(void)
{
    for (size_t i = 0; i < sizeof open_outputs / sizeof *open_outputs; i++) {
        const dbo_output *output = atomic_load(&open_outputs[i]);
        if (output && output->temporary[0])
            (void)unlink(output->temporary);
    }
}

/* Opens and locks the temporary file beside the real target. Somebody may have taken it for one
 * that was left behind before it was locked: then there is another. */
static int open_beside(dbo_output *output)
{
    struct stat mine;
    char *name = output->temporary;
    remove_left_behind(output->path);
    for (;;) {
        int written = snprintf(name, sizeof output->temporary, "%s" MARK RANDOM, output->path);
        errno = ENAMETOOLONG;
        int fd = (size_t)written < sizeof output->temporary ? mkostemp(name, O_CLOEXEC) : -1;
        if (fd < 0) {
            name[0] = '\0';
            return -1;
        }
        (void)flock(fd, LOCK_EX); /* a file system without locks: then nobody removes, either */
        if (fstat(fd, &mine) != 0 || mine.st_nlink > 0) {
            note(NULL, output);
            return fd;
        }
        close(fd);
    }
}

/* ---- the stream ---- */

static ssize_t put(void *cookie, const char *bytes, size_t count)
{
    dbo_output *output = cookie;
    size_t done = 0;
    while (done < count && output->reason == 0) {
        if (output->cancelled && output->cancelled(NULL)) {
            output->reason = EINTR;
            break;
        }
        ssize_t written = write(output->fd, bytes + done, count - done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            output->reason = errno;
    }
    return (ssize_t)done; /* fewer than asked for is a failure */
}

static dbo_status open_stream(dbo_output *output, dbo_error *err)
{
    output->file = fopencookie(output, "wb", (cookie_io_functions_t){.write = put});
    if (!output->file) {
        dbo_output_discard(output);
        return dbo_fail_memory(err, "an output");
    }
    (void)setvbuf(output->file, NULL, _IOFBF, 1u << 16);
    return DBO_OK;
}

dbo_status dbo_output_open(dbo_output *output, const char *path, bool (*cancelled)(void *unused),
                           dbo_error *err)
{
    struct stat existing;
    *output = (dbo_output){.fd = -1, .cancelled = cancelled};
    if (dbo_output_names_stdout(path)) {
        (void)fflush(stdout);
        output->fd = STDOUT_FILENO;
        return open_stream(output, err);
    }
    bool exists = stat(path, &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode))
        return fail(path, EISDIR, err);
    size_t length = strlen(path);
    if (length >= sizeof output->path)
        return fail(path, ENAMETOOLONG, err);
    memcpy(output->path, path, length + 1);
    output->mode = exists ? existing.st_mode & 0777 : new_file_mode();
    if (exists && !S_ISREG(existing.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
    } else if (exists && access(path, W_OK) != 0) {
        return fail(path, errno, err); /* a file made read-only is not replaced behind its owner */
    } else {
        if (!follow_links(output->path)) /* what a link points to is replaced, not the link */
            return fail(path, errno, err);
        output->fd = open_beside(output);
    }
    return output->fd < 0 ? fail(path, errno, err) : open_stream(output, err);
}

/* ---- the end ---- */

/* A pipe whose reader has gone says so also long after the write that failed. */
static bool has_reader(int fd)
{
    struct pollfd state = {.fd = fd, .events = POLLOUT};
    return poll(&state, 1, 0) < 0 || (state.revents & (POLLERR | POLLHUP)) == 0;
}

dbo_status dbo_output_flush_stdout(dbo_error *err)
{
    bool fails_now = fflush(stdout) != 0;
    int reason = errno;
    if (!fails_now && !ferror(stdout))
        return DBO_OK;
    if ((fails_now && reason == EPIPE) || !has_reader(fileno(stdout)))
        return DBO_OK; /* it has what it wanted */
    if (fails_now)
        return fail("the output", reason, err);
    return dbo_fail(err, DBO_IO, NULL, "cannot write all of the output");
}

dbo_status dbo_output_check_stdout(int reason, dbo_error *err)
{
    bool failed = ferror(stdout) && reason != 0 && reason != EPIPE && has_reader(fileno(stdout));
    return failed ? fail("the output", reason, err) : DBO_OK;
}

/* The first reason why it could not be written; 0: all is well. */
static int finish(dbo_output *output)
{
    bool renames = output->temporary[0] != '\0';
    if (fflush(output->file) != 0 || output->reason != 0)
        return output->reason ? output->reason : EIO;
    if (renames && (fchmod(output->fd, output->mode) != 0 || fsync(output->fd) != 0))
        return errno;
    if (renames && rename(output->temporary, output->path) != 0)
        return errno;
    output->temporary[0] = '\0';
    return 0;
}

dbo_status dbo_output_commit(dbo_output *output, dbo_error *err)
{
    int reason = finish(output);
    bool is_stdout = output->fd == STDOUT_FILENO;
    dbo_output_discard(output);
    if (reason == 0 || (is_stdout && reason == EPIPE))
        return DBO_OK;
    return fail(is_stdout ? "the output" : output->path, reason, err);
}

bool dbo_output_is_same(const dbo_output *a, const dbo_output *b)
{
    struct stat folders[2];
    const dbo_output *both[2] = {a, b};
    const char *names[2];
    if (!a->temporary[0] || !b->temporary[0])
        return false; /* written directly: nothing is replaced */
    for (int i = 0; i < 2; i++) {
        char folder[PATH_MAX];
        const char *slash = strrchr(both[i]->path, '/');
        names[i] = slash ? slash + 1 : both[i]->path;
        snprintf(folder, sizeof folder, "%.*s.", (int)(names[i] - both[i]->path), both[i]->path);
        if (stat(folder, &folders[i]) != 0)
            return false;
    }
    return strcmp(names[0], names[1]) == 0 && folders[0].st_dev == folders[1].st_dev &&
           folders[0].st_ino == folders[1].st_ino;
}

void dbo_output_discard(dbo_output *output)
{
    if (output->reason == 0)
        output->reason = ECANCELED; /* what is not written yet never is */
    if (output->file)
        (void)fclose(output->file);
    output->file = NULL;
    if (output->fd > STDERR_FILENO)
        (void)close(output->fd);
    output->fd = -1;
    if (output->temporary[0])
        unlink(output->temporary);
    output->temporary[0] = '\0';
    note(output, NULL);
}
