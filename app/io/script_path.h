/* script_path.h: where the scripts that come with dbo are.
 *
 * Looked for in this order: ./scripts, $DBO_SCRIPTS_DIR, the scripts of the source tree that dbo
 * was built from, and share/dbo/scripts beside the installed command.
 */
#ifndef DBO_APP_SCRIPT_PATH_H
#define DBO_APP_SCRIPT_PATH_H

#include "core/base/status.h"

#include <stddef.h>

/* The path of a script that is there, of one called "faults/vote-skip.lua" below that folder.
 * DBO_IO when it is nowhere. */
dbo_status dbo_script_path(const char *name, char *out, size_t size, dbo_error *err);

#endif
