/* lua_sandbox_impl.h: the inside of a sandbox, for lua_sandbox.c and lua_watch.c alone.
 *
 *     lua_getglobal(box->lua, "step");
 *     lua_pushinteger(box->lua, 3);
 *     DBO_TRY(dbo_sandbox_watched_call(box, 1, 2, err)); // step(3), and room for its two results
 */
#ifndef DBO_APP_LUA_SANDBOX_IMPL_H
#define DBO_APP_LUA_SANDBOX_IMPL_H

#include "app/lua/lua_sandbox.h"

#include <stdatomic.h>

/* Instructions between two looks at the limits. */
#define DBO_SANDBOX_HOOK_EVERY 1000

typedef struct dbo_source {
    struct dbo_source *next;
    char *path, *text;
} dbo_source;

struct dbo_sandbox {
    atomic_uint holders; /* the owner, and a thread that it has given up on */
    lua_State *lua;
    dbo_sandbox_limits limits;
    size_t used_bytes;
    uint64_t instructions;
    dbo_source *sources;
    int module_ref;
    bool memory_refused, has_printed;
    dbo_error raised; /* the last one of a C function; its Lua object: registry, under the box */
    /* ---- between the calling thread and the script's ---- */
    atomic_bool overdue;    /* its time is over; the hook ends it */
    atomic_bool abandoned;  /* the caller has given it up */
    atomic_bool paused;     /* it computes on behalf of dbo: its time does not count */
    atomic_llong unpaid_ns; /* CPU time of the script's thread that did not count */
    int64_t pause_ns;       /* its CPU time when the pause began */
};

/* lua_sandbox.c: the error of a Lua status, whose object it pops, and the name of the script. */
dbo_status dbo_sandbox_take_error(dbo_sandbox *box, int lua_status, dbo_error *err);
const char *dbo_sandbox_script(const dbo_sandbox *box);
/* Gives up one hold; the last one closes the state and frees. */
void dbo_sandbox_release(dbo_sandbox *box);

/* lua_watch.c: lua_pcall, watched. */
dbo_status dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results, dbo_error *err);

#endif
