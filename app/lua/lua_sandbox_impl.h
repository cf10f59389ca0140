/* lua_sandbox_impl.h: the inside of a sandbox, for lua_sandbox.c, lua_source.c, lua_limits.c
 * and lua_watch.c alone.
 *
 *     lua_getglobal(box->lua, "step");
 *     lua_pushinteger(box->lua, 3);
 *     DBO_TRY(dbo_sandbox_watched_call(box, 1, 2, err)); // step(3), and room for its two results
 */
#ifndef DBO_APP_LUA_SANDBOX_IMPL_H
#define DBO_APP_LUA_SANDBOX_IMPL_H

#include "app/lua/lua_sandbox.h"

#include <stdatomic.h>
#include <sys/types.h>

/* Instructions between two looks at the limits. */
#define DBO_SANDBOX_HOOK_EVERY 1000

typedef struct dbo_source {
    struct dbo_source *next;
    char *path; /* by which it was loaded first */
    dbo_strbuf text;
    dev_t device;
    ino_t number;
    size_t charged;
} dbo_source;

/* A source on its way to the parser. */
typedef struct dbo_chunk {
    dbo_source *source;
    const char *path; /* by which it is loaded */
    size_t at;
    bool own_globals;
} dbo_chunk;

/* What a script has used more of than it may. */
typedef enum dbo_over {
    DBO_OVER_NOTHING,
    DBO_OVER_INSTRUCTIONS,
    DBO_OVER_OWN_TIME, /* without its runs */
    DBO_OVER_TIME,     /* with them */
    DBO_OVER_MEMORY,
    DBO_OVER_OUTPUT,
    DBO_OVER_CANCELLED
} dbo_over;

struct dbo_sandbox {
    atomic_uint holders; /* the owner, and a thread that it has given up on */
    lua_State *lua;
    dbo_sandbox_limits limits;
    size_t used_bytes,
        unpaced_bytes; /* the latter: C memory that Lua's collector has not heard of */
    size_t printed_bytes;
    uint64_t instructions;
    dbo_source *sources;
    const char *script;  /* the path that was loaded first; or NULL */
    dbo_chunk chunk;     /* to be loaded */
    const char *loading; /* what the parser reads; or NULL */
    uint32_t loading_line;
    int globals_ref, module_ref; /* what files that are loaded get copies of */
    bool memory_refused, has_printed;
    bool running;     /* on the script's thread */
    dbo_error raised; /* the last one of a C function; its Lua object: registry, under the box */
    lua_CFunction error, assert; /* Lua's */
    /* ---- between the calling thread and the script's ---- */
    atomic_int over;        /* a dbo_over that the caller has seen; the hook ends the script */
    atomic_bool abandoned;  /* the caller has given it up */
    atomic_bool paused;     /* it computes on behalf of dbo */
    atomic_llong unpaid_ns; /* CPU time of the script's thread that was not its own */
    atomic_llong runs_ns;   /* CPU time of the process while it computed on behalf of dbo */
    atomic_llong pause_ns, pause_process_ns; /* both clocks when the pause began */
};

/* lua_sandbox.c: the error of a Lua status, whose object it pops, and the name of the script. */
dbo_status dbo_sandbox_take_error(dbo_sandbox *box, int lua_status, dbo_error *err);
const char *dbo_sandbox_script(const dbo_sandbox *box);
/* Is the error object on the stack the one that a C function has raised last? */
bool dbo_sandbox_is_raised(dbo_sandbox *box);
/* Pushes globals for a file of its own. */
void dbo_sandbox_push_globals(lua_State *L);
/* Gives up one hold; the last one closes the state and frees. */
void dbo_sandbox_release(dbo_sandbox *box);

/* lua_limits.c: a lua_Alloc; the sentences; the hook that looks at the limits. `inside`: while a C
 * function of Lua's ran. */
void *dbo_sandbox_allocate(void *box, void *block, size_t old_bytes, size_t new_bytes);
dbo_status dbo_sandbox_fail_memory(const dbo_sandbox *box, dbo_error *err);
dbo_status dbo_sandbox_fail_over(const dbo_sandbox *box, dbo_over over, bool inside,
                                 dbo_error *err);
void dbo_sandbox_start_counting(dbo_sandbox *box);

/* lua_watch.c: dbo_sandbox_pcall, watched. */
dbo_status dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results, dbo_error *err);

#endif
