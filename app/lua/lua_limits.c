/* lua_limits.c: what a script may use, and how it ends when it has used more (lua_sandbox.h).
 *
 * One budget of memory: what Lua's allocator gives out, as malloc lays it out, and what is kept on
 * the C side for the script's objects (dbo_sandbox_charge). Whatever is neither, such as holes
 * between small pieces, shows in the process' resident memory, which lua_watch.c looks at.
 *
 * Out of memory a script can catch. Out of instructions, out of time, interrupted or too large it
 * cannot: the hook raises again with every instruction.
 */
#include "app/lua/lua_sandbox_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Lua's collector hears of so much C memory at a time. */
#define PACE_BYTES ((size_t)64 << 10)

/* ---- memory ---- */

/* A piece with its header, as malloc cuts it. */
static size_t laid_out(size_t bytes)
{
    if (bytes == 0)
        return 0;
    return bytes <= 24 ? 32 : (bytes + 8 + 15) & ~(size_t)15;
}

void *dbo_sandbox_allocate(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    dbo_sandbox *box = self;
    size_t before = laid_out(block ? old_bytes : 0); /* Lua passes a type there */
    size_t after = laid_out(new_bytes);
    if (new_bytes == 0) {
        free(block);
        box->used_bytes -= before;
        return NULL;
    }
    if (after > before && (after > box->limits.memory_bytes ||
                           box->used_bytes - before > box->limits.memory_bytes - after)) {
        box->memory_refused = true;
        return NULL;
    }
    void *moved = realloc(block, new_bytes);
    if (moved)
        box->used_bytes = box->used_bytes - before + after;
    return moved;
}

dbo_status dbo_sandbox_fail_memory(const dbo_sandbox *box, dbo_error *err)
{
    dbo_fail(err, DBO_LIMIT, DBO_SANDBOX_MEMORY_HINT,
             "the script needs more than %zu MiB of memory", box->limits.memory_bytes >> 20);
    return dbo_error_at(err, dbo_sandbox_script(box), 0);
}

void dbo_sandbox_charge(lua_State *L, size_t *charged, size_t bytes)
{
    dbo_sandbox *box = dbo_sandbox_of(L);
    size_t before = *charged;
    box->used_bytes = box->used_bytes - before + bytes;
    *charged = bytes;
    if (bytes <= before)
        return;
    box->unpaced_bytes += bytes - before;
    if (box->used_bytes > box->limits.memory_bytes) {
        lua_gc(L, LUA_GCCOLLECT); /* what it frees may have charges of its own */
    } else if (box->unpaced_bytes >= PACE_BYTES) {
        lua_gc(L, LUA_GCSTEP, (int)(box->unpaced_bytes >> 10));
        box->unpaced_bytes = 0;
    }
    if (box->used_bytes <= box->limits.memory_bytes)
        return;
    dbo_error err = {0};
    dbo_sandbox_fail_memory(box, &err);
    dbo_sandbox_raise(L, &err);
}

size_t dbo_sandbox_left_bytes(const dbo_sandbox *box)
{
    return box->used_bytes < box->limits.memory_bytes ? box->limits.memory_bytes - box->used_bytes
                                                      : 0;
}

/* ---- while running ---- */

bool dbo_sandbox_is_cancelled(void *self)
{
    const dbo_sandbox *box = self;
    /* Nobody waits for an abandoned script; what its limits point to may be gone. */
    return atomic_load(&box->abandoned) || atomic_load(&box->over) != DBO_OVER_NOTHING ||
           (box->limits.cancelled && box->limits.cancelled(box->limits.cancelled_self));
}

/* What it is over; too many instructions are seen here, all else by lua_watch.c. */
static dbo_over over_what(const dbo_sandbox *box)
{
    dbo_over over = (dbo_over)atomic_load(&box->over);
    if (atomic_load(&box->abandoned) ||
        (box->limits.cancelled && box->limits.cancelled(box->limits.cancelled_self)))
        return DBO_OVER_CANCELLED;
    if (over == DBO_OVER_NOTHING && box->instructions > box->limits.instructions)
        return DBO_OVER_INSTRUCTIONS;
    return over;
}

dbo_status dbo_sandbox_fail_over(const dbo_sandbox *box, dbo_over over, bool inside, dbo_error *err)
{
    const dbo_sandbox_limits *limits = &box->limits;
    const char *where = inside ? ", the last of them inside functions of Lua's library" : "";
    switch (over) {
    case DBO_OVER_INSTRUCTIONS:
        return dbo_fail(err, DBO_LIMIT,
                        "Is there a loop that never ends? If not: --time-limit above 5.",
                        "the script ran more than %" PRIu64 " million instructions",
                        limits->instructions / 1000000);
    case DBO_OVER_OWN_TIME:
        return dbo_fail(err, DBO_LIMIT,
                        inside ? "A pattern that tries too many ways, or a range that is too long?"
                               : "Does it do slow things very often?",
                        "the script computed for more than %g s%s", limits->cpu_ms / 1000.0, where);
    case DBO_OVER_TIME:
        return dbo_fail(err, DBO_LIMIT, "Is there a loop of runs that never ends?",
                        "the script and its runs computed for more than %g s, which %s sets",
                        limits->total_ms / 1000.0, DBO_SANDBOX_TIME_KEY);
    case DBO_OVER_MEMORY: return dbo_sandbox_fail_memory(box, err);
    case DBO_OVER_OUTPUT:
        return dbo_fail(err, DBO_LIMIT, "Is there a loop of prints that never ends?",
                        "the script printed more than %zu MiB", limits->output_bytes >> 20);
    case DBO_OVER_CANCELLED:
    case DBO_OVER_NOTHING: break;
    }
    return dbo_fail(err, DBO_CANCELLED, NULL, "the script was interrupted");
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    dbo_sandbox_of(L)->instructions += DBO_SANDBOX_HOOK_EVERY;
    dbo_sandbox_check(L);
}

void dbo_sandbox_check(lua_State *L)
{
    const dbo_sandbox *box = dbo_sandbox_of(L);
    dbo_over over = over_what(box);
    if (over == DBO_OVER_NOTHING)
        return;
    /* From here on every instruction raises again, so that pcall cannot go on. */
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    dbo_error err = {0};
    dbo_sandbox_fail_over(box, over, false, &err);
    dbo_sandbox_raise_at(L, &err);
}

void dbo_sandbox_start_counting(dbo_sandbox *box)
{
    lua_sethook(box->lua, on_count, LUA_MASKCOUNT, DBO_SANDBOX_HOOK_EVERY);
}
