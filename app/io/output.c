/* output.c: temporary file, fsync, rename (output.h). */
#include "app/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
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

/* Opens the temporary file beside the real target. */
static int open_beside(dbo_output *output)
{
    int written = snprintf(output->temporary, sizeof output->temporary, "%s.XXXXXX", output->path);
    if (written < 0 || (size_t)written >= sizeof output->temporary) {
        output->temporary[0] = '\0';
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkstemp(output->temporary);
    if (fd < 0)
        output->temporary[0] = '\0';
    return fd;
}

dbo_status dbo_output_open(dbo_output *output, const char *path, dbo_error *err)
{
    *output = (dbo_output){0};
    if (dbo_output_names_stdout(path)) {
        output->is_stdout = true;
        output->file = stdout;
        return DBO_OK;
    }
    struct stat existing;
    bool exists = stat(path, &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode))
        return fail(path, EISDIR, err);
    size_t length = strlen(path);
    if (length >= sizeof output->path)
        return fail(path, ENAMETOOLONG, err);
    memcpy(output->path, path, length + 1);
    int fd = -1;
    if (exists && !S_ISREG(existing.st_mode)) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    } else if (exists && access(path, W_OK) != 0) {
        return fail(path, errno, err); /* a file made read-only is not replaced behind its owner */
    } else {
        if (!follow_links(output->path)) /* what a link points to is replaced, not the link */
            return fail(path, errno, err);
        fd = open_beside(output);
    }
    if (fd < 0)
        return fail(path, errno, err);
    output->file = fdopen(fd, "wb");
    bool ready = output->file != NULL;
    if (ready && output->temporary[0])
        ready = fchmod(fd, exists ? existing.st_mode & 0777 : new_file_mode()) == 0;
    if (ready)
        return DBO_OK;
    int reason = errno;
    if (!output->file)
        close(fd);
    dbo_output_discard(output);
    return fail(path, reason, err);
}

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

dbo_status dbo_output_commit(dbo_output *output, dbo_error *err)
{
    FILE *file = output->file;
    if (output->is_stdout) {
        output->file = NULL;
        return dbo_output_flush_stdout(err);
    }
    bool bad = fflush(file) != 0 || ferror(file);
    int reason = errno ? errno : EIO;
    if (!bad && output->temporary[0] && fsync(fileno(file)) != 0) {
        bad = true;
        reason = errno;
    }
    output->file = NULL;
    if (fclose(file) != 0 && !bad) {
        bad = true;
        reason = errno;
    }
    if (!bad && output->temporary[0] && rename(output->temporary, output->path) != 0) {
        bad = true;
        reason = errno;
    }
    if (bad && output->temporary[0])
        unlink(output->temporary);
    output->temporary[0] = '\0';
    if (!bad)
        return DBO_OK;
    return fail(output->path, reason, err);
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
    if (output->file && !output->is_stdout)
        (void)fclose(output->file);
    output->file = NULL;
    if (output->temporary[0])
        unlink(output->temporary);
    output->temporary[0] = '\0';
}
