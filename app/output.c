/* output.c: temporary file, fsync, rename (output.h). */
#include "app/output.h"

#include <errno.h>
#include <fcntl.h>
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
    if (strcmp(path, "-") == 0) {
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
        if (exists && !realpath(path, output->path)) /* replace what a link points to */
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

dbo_status dbo_output_commit(dbo_output *output, dbo_error *err)
{
    FILE *file = output->file;
    bool bad = fflush(file) != 0 || ferror(file);
    int reason = errno ? errno : EIO;
    if (output->is_stdout) {
        output->file = NULL;
        return bad && reason != EPIPE ? fail("the output", reason, err) : DBO_OK;
    }
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

void dbo_output_discard(dbo_output *output)
{
    if (output->file && !output->is_stdout)
        (void)fclose(output->file);
    output->file = NULL;
    if (output->temporary[0])
        unlink(output->temporary);
    output->temporary[0] = '\0';
}
