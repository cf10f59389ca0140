/* beneath.c: the walk (beneath.h). It does what openat2 does with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS, on every kernel: each name is opened with O_NOFOLLOW below a descriptor. */
#include "app/io/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is what is called so below `at` of the kind? 0 or an errno. It is looked at before it is opened:
 * that alone does something to some devices. */
static int check_kind(int at, const char *name, dbo_beneath_kind kind)
{
    struct stat file;
    if (fstatat(at, name, &file, kind & DBO_BENEATH_LINKS ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (S_ISLNK(file.st_mode))
        return ELOOP;
    if (S_ISDIR(file.st_mode))
        return kind & DBO_BENEATH_FOLDER ? 0 : EISDIR;
    return S_ISREG(file.st_mode) ? kind & DBO_BENEATH_FOLDER ? ENOTDIR : 0 : ENODEV;
}

static int open_name(int at, const char *name, dbo_beneath_kind kind)
{
    int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int reason = check_kind(at, name, kind);
    if (reason != 0)
        return -reason;
    flags |= kind & DBO_BENEATH_LINKS ? 0 : O_NOFOLLOW;
    int fd = openat(at, name, O_RDONLY | flags | (kind & DBO_BENEATH_FOLDER ? O_DIRECTORY : 0));
    if (fd < 0)
        return -errno;
    struct stat file;
    if (fstat(fd, &file) == 0 && (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
        return fd;
    close(fd); /* it was exchanged meanwhile */
    return -ENODEV;
}

int dbo_beneath_open(const char *folder, const char *below, dbo_beneath_kind kind)
{
    char name[NAME_MAX + 1];
    int at = open(folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return -errno;
    for (;;) {
        size_t length = strcspn(below, "/");
        bool last = below[length] == '\0';
        dbo_beneath_kind wanted =
            last ? kind : (dbo_beneath_kind)(DBO_BENEATH_FOLDER | (kind & DBO_BENEATH_LINKS));
        int next = -ENAMETOOLONG;
        if (length < sizeof name) {
            memcpy(name, below, length);
            name[length] = '\0';
            bool is_name = length > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
            next = is_name ? open_name(at, name, wanted) : -EINVAL;
        }
        close(at);
        if (last || next < 0)
            return next;
        at = next;
        below += length + 1;
    }
}

dbo_status dbo_beneath_fail(dbo_error *err, const char *path, int reason)
{
    if (reason == ELOOP)
        return dbo_fail(err, DBO_IO, NULL, "cannot read %.300s: links are not followed there",
                        path);
    if (reason == ENODEV)
        return dbo_fail(err, DBO_IO, NULL, "cannot read %.300s: it is no regular file", path);
    return dbo_fail_read(err, path, reason);
}

/* Appends the names of `path` to `out`; *length is that of out. */
static bool add_names(const char *path, char out[PATH_MAX], size_t *length)
{
    for (size_t bytes; *(path += strspn(path, "/")); path += bytes) {
        bytes = strcspn(path, "/");
        if (bytes == 1 && path[0] == '.')
            continue;
        if (bytes == 2 && path[0] == '.' && path[1] == '.') {
            const char *slash = memrchr(out, '/', *length);
            if (*length == 0 || (*length == 1 && out[0] == '/'))
                return false;
            *length = slash ? (size_t)(slash - out) + (slash == out) : 0;
            continue;
        }
        bool slash = *length > 0 && out[*length - 1] != '/';
        if (*length + slash + bytes >= PATH_MAX)
            return false;
        if (slash)
            out[(*length)++] = '/';
        memcpy(out + *length, path, bytes);
        *length += bytes;
    }
    return true;
}

bool dbo_beneath_resolve(const char *base, const char *path, char out[PATH_MAX])
{
    size_t length = 0;
    const char *first = path[0] == '/' ? path : base;
    if (first[0] == '/')
        out[length++] = '/';
    bool fits = (first == path || add_names(base, out, &length)) && add_names(path, out, &length);
    out[length] = '\0';
    return fits;
}
