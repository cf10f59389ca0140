/* output.h: a file that is written whole or not at all.
 *
 * Bytes go to a temporary file in the folder of the target, which is renamed over it once all is
 * written and on the disk; a failure, or dbo_output_discard, leaves the target as it was. What a
 * writer that was killed left behind is removed by the next that writes the same file. A target
 * that is no regular file (a pipe, /dev/null) is written directly; a link is followed, also to a
 * file that is not there yet. "-" is stdout, and so is any other name of what stdout is.
 *
 *     dbo_output output;
 *     DBO_TRY(dbo_output_open(&output, path, NULL, err));   // fails before the work is done
 *     fprintf(output.file, ...);
 *     DBO_TRY(dbo_output_commit(&output, err));        // or dbo_output_discard(&output)
 */
#ifndef DBO_APP_OUTPUT_H
#define DBO_APP_OUTPUT_H

#include "core/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct dbo_output {
    FILE *file; /* NULL: closed; a failed write is kept: ferror */
    int fd;     /* below it; that of stdout is not closed */
    int reason; /* errno of the first write that failed */
    bool (*cancelled)(void *unused);
    unsigned mode;                            /* of the file when it is whole */
    char path[PATH_MAX], temporary[PATH_MAX]; /* temporary "": written directly */
} dbo_output;

/* Is it "-", or the file, pipe or terminal that stdout is? NULL is not. */
bool dbo_output_names_stdout(const char *path);
/* DBO_IO with the path and the reason. Writing fails once `cancelled` (may be NULL) says so. The
 * output must not move while it is open. */
dbo_status dbo_output_open(dbo_output *output, const char *path, bool (*cancelled)(void *unused),
                           dbo_error *err);
/* Closes in any case; a failed write of any time is found here. stdout: a reader that went away is
 * no failure. */
dbo_status dbo_output_commit(dbo_output *output, dbo_error *err);
/* Would the second that is committed replace the first? Both are open. */
bool dbo_output_is_same(const dbo_output *a, const dbo_output *b);
/* Closes and removes what was written. Of a closed or zeroed one: nothing. */
void dbo_output_discard(dbo_output *output);

/* Flushes the standard output; DBO_IO if any write to it has failed, now or before, unless its
 * reader went away. */
dbo_status dbo_output_flush_stdout(dbo_error *err);
/* The same right after printing, without a flush; `reason`: the errno that it left, 0 before. */
dbo_status dbo_output_check_stdout(int reason, dbo_error *err);

/* Removes the temporary files of all outputs that are open: for a signal handler that ends the
 * process. */
void dbo_output_drop_all(void);

#endif
