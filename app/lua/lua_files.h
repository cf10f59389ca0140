/* lua_files.h: which files a script may read.
 *
 * There is a list of folders: that of the script, those that the user allows (--allow-read), and
 * those of what comes with dbo (script_path.h). A path in a script leads from the folder of the
 * file whose code has it. Without a look at the disk it is made into one without "..", which must
 * lie below one of the folders; there it is opened so that no link leads out of it (beneath.h).
 * What is not there, and does not lead upwards, is looked for in the other folders in their order.
 *
 * Names of presets (lua_preset.c) are looked up in what comes with dbo first: no script that is
 * copied somewhere changes what a known name means.
 *
 *     int fd = dbo_lua_open_file(L, "dbo.requests", ".jsonl");    // pushes the path
 *     status = dbo_sandbox_read(fd, lua_tostring(L, -1), MAX_BYTES, &text, &err);
 */
#ifndef DBO_APP_LUA_FILES_H
#define DBO_APP_LUA_FILES_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct dbo_lua_folders {
    uint32_t count, shipped; /* from `shipped` on they come with dbo; 0 is the script's */
    const char *paths[];
} dbo_lua_folders;

/* Makes the list, for the life of the state. */
void dbo_lua_set_folders(lua_State *L, const char *script, const char *const *readable,
                         uint32_t num_readable);
const dbo_lua_folders *dbo_lua_get_folders(lua_State *L);

/* Opens what is called so below a folder of the list: as dbo_beneath_open. */
int dbo_lua_open_in(const dbo_lua_folders *list, uint32_t index, const char *below, bool is_folder);
/* Pushes both with a slash between; from "" it is the latter alone. */
const char *dbo_lua_push_joined(lua_State *L, const char *folder, const char *below);

/* Opens the file that the function's first argument names, which must end so, and pushes its path
 * as people know it. The descriptor is the caller's. Raises, with nothing open. */
int dbo_lua_open_file(lua_State *L, const char *function, const char *ending);

#endif
