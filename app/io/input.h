/* input.h: which files a run has read, so that no output replaces one of them.
 *
 * Every reader of a file that somebody named remembers it, whichever way it got the name; one who
 * is about to write asks. A file is what device and number say, not its name. Remembered files stay
 * for the life of the process; any thread may call.
 *
 *     FILE *file = fopen(path, "rb");
 *     DBO_TRY(dbo_input_remember(path, err));
 *     ...
 *     const char *read = dbo_input_replaced_by("result.json");    // NULL: none that was read
 */
#ifndef DBO_APP_INPUT_H
#define DBO_APP_INPUT_H

#include "core/base/status.h"

/* "-" is the standard input. One that is not there is no failure: whoever opens it says so. */
dbo_status dbo_input_remember(const char *path, dbo_error *err);
/* The same of a file that is open. */
dbo_status dbo_input_remember_open(int fd, const char *path, dbo_error *err);
/* The path of the remembered file that writing `path` would replace, or NULL. */
const char *dbo_input_replaced_by(const char *path);

#endif
