/* lua_schedule.h: dbo.schedule { ... }, a schedule that a script writes (only app/lua_*.c).
 *
 * The layer function is called once for each ubatch, twice over, with a context `u` whose functions
 * record instructions into a template (core/program/template.h); both recordings must be the same.
 * What scripts get back is a userdata that holds the finished template.
 *
 *     lua_newtable(L);
 *     dbo_lua_open_schedule(L); // the module's table has `schedule` now
 *     lua_setglobal(L, "dbo");
 */
#ifndef DBO_APP_LUA_SCHEDULE_H
#define DBO_APP_LUA_SCHEDULE_H

#include "core/program/template.h"

#include <lua.h>

/* Pushes the function schedule into the module table at the top of the stack. */
void dbo_lua_open_schedule(lua_State *L);

/* ---- between lua_schedule.c and lua_ubatch.c ---- */

/* One recording: the template that grows and what the functions of `u` need to know. */
typedef struct dbo_recording {
    dbo_template *t; /* owned */
    size_t charged;  /* for it, to the script */
    uint32_t ubatch; /* whose layer function runs */
    bool open;       /* a layer function runs */
    uint8_t stream;  /* the current one */
    uint16_t compute_done[DBO_MAX_UBATCHES], comm_done[DBO_MAX_UBATCHES]; /* DBO_NO_INDEX: none */
    lua_Integer serial; /* of this ubatch's part of this recording; handles carry it */
} dbo_recording;

/* Pushes `u` for the recording at the stack index; its user value is the table of names. */
void dbo_lua_push_ubatch(lua_State *L, int recording);
void dbo_lua_open_ubatch(lua_State *L); /* metatables */

#endif
