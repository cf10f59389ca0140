/* script_path.h: where the scripts that come with dbo are, and a script by its name.
 *
 * A folder of scripts has a folder a kind: workloads/, whatif/, faults/, and models/ and hardware/,
 * which scripts name. Several are searched, in this order: $DBO_SCRIPTS_DIR; what came with the
 * command, which is found from where the command lies (../share/dbo/scripts of an installed one,
 * share/dbo/scripts of one in its build, which is a link to the source tree's); dbo/scripts of
 * $XDG_DATA_HOME and of each of $XDG_DATA_DIRS. No path of the machine that built dbo is in it, and
 * the working directory does not matter.
 *
 *     char path[PATH_MAX];
 *     DBO_TRY(dbo_script_find("deepseek-v3-decode", path, sizeof path, err));
 */
#ifndef DBO_APP_SCRIPT_PATH_H
#define DBO_APP_SCRIPT_PATH_H

#include "core/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Folder `index` of that list, be it there or not; false past the end. */
bool dbo_script_folder(size_t index, char out[PATH_MAX]);

/* The path of a script that is there, of one called "faults/vote-skip.lua" below such a folder.
 * DBO_IO when it is nowhere. */
dbo_status dbo_script_path(const char *name, char *out, size_t size, dbo_error *err);

typedef struct dbo_script {
    const char *name;   /* "deepseek-v3-decode" */
    const char *kind;   /* "workloads"; "" directly in the folder */
    const char *folder; /* of the list */
    const char *path;
} dbo_script;

/* Calls `take` with each script that runs (no models, no hardware) in the order of the folders, in
 * each by kind and name, until it returns false. */
void dbo_script_each(bool (*take)(void *self, const dbo_script *script), void *self);

/* What is meant by a word: a path that exists, or else a script's name, with its kind or without,
 * with its ending or without; the first folder that has it counts. DBO_IO, with the nearest name
 * and where it was looked for, when it is neither, and when a folder has two of that name. */
dbo_status dbo_script_find(const char *word, char *out, size_t size, dbo_error *err);

#endif
