/* output.h: a file that is written whole or not at all.
 *
 * Bytes go to a temporary file in the folder of the target, which is renamed over it once all is
 * written and on the disk; a failure, or dbo_output_discard, leaves the target as it was. A target
 * that is no regular file (a pipe, /dev/null) is written directly; a link is followed, also to a
 * file that is not there yet. "-" is stdout, and so is any other name of what stdout is.
 *
 *     dbo_output output;
 *     DBO_TRY(dbo_output_open(&output, path, err));   // fails before the work is done
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
    FILE *file;                               /* NULL: closed */
    char path[PATH_MAX], temporary[PATH_MAX]; /* temporary "": written directly */
    bool is_stdout;
} dbo_output;

/* Is it "-", or the file, pipe or terminal that stdout is? NULL is not. */
bool dbo_output_names_stdout(const char *path);
/* DBO_IO with the path and the reason. */
dbo_status dbo_output_open(dbo_output *output, const char *path, dbo_error *err);
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

#endif
