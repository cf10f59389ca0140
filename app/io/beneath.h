/* beneath.h: files below a folder, and nothing outside of it.
 *
 * A path of names is walked name by name from the folder on, each opened below the one before: so
 * it leads outside neither by "..", which is no name here, nor by a link, which is not followed,
 * nor by what somebody exchanges meanwhile. Only regular files are opened, which never wait.
 *
 *     int fd = dbo_beneath_open("/home/me/scripts", "models/mine.lua", DBO_BENEATH_FILE);
 *     if (fd < 0)
 *         return dbo_beneath_fail(err, "models/mine.lua", -fd);
 */
#ifndef DBO_APP_BENEATH_H
#define DBO_APP_BENEATH_H

#include "core/base/status.h"

#include <limits.h>
#include <stdbool.h>

typedef enum dbo_beneath_kind {
    DBO_BENEATH_FILE = 0,
    DBO_BENEATH_FOLDER = 1,
    DBO_BENEATH_LINKS = 2 /* a bit: links are followed, in a folder whose owner is trusted */
} dbo_beneath_kind;

/* Opens `below` for reading. A descriptor, the caller's to close, or -errno: ELOOP for a link,
 * ENODEV for what is neither file nor folder. Links that lead to `folder` itself are followed. */
int dbo_beneath_open(const char *folder, const char *below, dbo_beneath_kind kind);
/* DBO_IO and the sentence for such an errno. */
dbo_status dbo_beneath_fail(dbo_error *err, const char *path, int reason);

/* Writes `path`, which leads from the folder `base` on ("": from nowhere) or is absolute, without
 * ".", "..", and slashes too many, looking at nothing. False: longer than PATH_MAX, or it leads
 * above its beginning. */
bool dbo_beneath_resolve(const char *base, const char *path, char out[PATH_MAX]);

#endif
