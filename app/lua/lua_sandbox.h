/* lua_sandbox.h: a Lua 5.4 state in which a script that somebody sent can be run.
 *
 * A script can compute and call `dbo`; it cannot reach files, processes or the C side: only text
 * chunks are loaded (no bytecode), globals are a white list, `require` knows the name "dbo" alone.
 * One budget holds what Lua allocates for it and what the C side keeps for its objects; a hook
 * counts instructions, a check bounds what string.rep builds, and a watch (lua_watch.c) the CPU
 * time of everything, also of the parser and inside Lua's C functions. A script that goes over a
 * limit ends with a sentence; all but those about memory and strings it cannot catch. Tables have
 * no finalizers.
 *
 * Errors carry the place: "F.lua:7: ...". C functions called from Lua fail with dbo_sandbox_raise,
 * which keeps the dbo_error's status and hint across the longjmp; they must own nothing on the C
 * side at that moment that a userdata does not own.
 *
 *     dbo_sandbox *box = dbo_sandbox_create(NULL, &err);
 *     DBO_TRY_GOTO(dbo_sandbox_load_file(box, "F.lua", &err), fail);  // the chunk is on the stack
 *     DBO_TRY_GOTO(dbo_sandbox_call(box, 0, 1, &err), fail);
 *
 * A call runs on a thread of its own while the caller waits; one that does not come back from a C
 * function is given up: the call returns DBO_LIMIT (or DBO_CANCELLED), the only thing left to do
 * with the sandbox is to destroy it, and the thread ends with the process. One caller at a time.
 */
#ifndef DBO_APP_LUA_SANDBOX_H
#define DBO_APP_LUA_SANDBOX_H

#include "core/base/status.h"
#include "core/base/strbuf.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How people allow more (cli_script.h). */
#define DBO_SANDBOX_TIME_KEY    "--time-limit SECONDS"
#define DBO_SANDBOX_MEMORY_HINT "--memory-limit MIB allows more."

#define DBO_SANDBOX_MIB 256u /* of memory, unless more is allowed */

typedef struct dbo_sandbox dbo_sandbox;

/* 0 in a field means its default. */
typedef struct dbo_sandbox_limits {
    size_t memory_bytes;           /* of all that is kept for it; default DBO_SANDBOX_MIB */
    uint64_t instructions;         /* default 200 million: about two seconds */
    uint32_t cpu_ms;               /* of all calls, without runs; default 5000 */
    uint32_t total_ms;             /* of all calls and their runs; default 10000 */
    size_t string_bytes;           /* of one string built by string.rep; default 16 MiB */
    size_t source_bytes;           /* of one script; default 8 MiB */
    size_t output_bytes;           /* of all that it prints; default 16 MiB */
    bool (*cancelled)(void *self); /* polled while a script runs, by it and by the caller's
                                    * thread; may be NULL */
    void *cancelled_self;
    void *print_to;   /* FILE * of the script's print(); default stdout */
    bool ascii;       /* in ASCII (ascii.h) */
    uint32_t columns; /* for so many; 0: for any number */
} dbo_sandbox_limits;

/* `limits` may be NULL; copied. NULL with *err on failure. */
dbo_sandbox *dbo_sandbox_create(const dbo_sandbox_limits *limits, dbo_error *err);
void dbo_sandbox_destroy(dbo_sandbox *box); /* NULL is fine */

const dbo_sandbox_limits *dbo_sandbox_limits_of(const dbo_sandbox *box);
/* Has the script printed something? */
bool dbo_sandbox_has_printed(const dbo_sandbox *box);
/* What the script prints goes this way: cleaned (clean.h), and no more than may be printed; a
 * dbo_sandbox_check behind it ends a script that prints more. */
void dbo_sandbox_print(dbo_sandbox *box, const char *text, size_t bytes);
lua_State *dbo_sandbox_lua(dbo_sandbox *box);
/* The sandbox that a C function called from Lua runs in. */
dbo_sandbox *dbo_sandbox_of(lua_State *L);

/* Compiles a script and pushes it as a function. `path` is the name that errors carry; its text is
 * kept for dbo_sandbox_key_line. DBO_IO (unreadable), DBO_PARSE, DBO_LIMIT. */
dbo_status dbo_sandbox_load_file(dbo_sandbox *box, const char *path, dbo_error *err);

/* Calls the function below its `arguments` on the stack; leaves exactly `results`, or nothing. */
dbo_status dbo_sandbox_call(dbo_sandbox *box, int arguments, int results, dbo_error *err);

/* ---- for C functions called from Lua ---- */

/* What dbo computes on behalf of the script, between pause(true) and pause(false), is charged to
 * the time of both together; it must poll dbo_sandbox_is_cancelled itself. */
void dbo_sandbox_pause(dbo_sandbox *box, bool paused);
bool dbo_sandbox_is_cancelled(void *box);
/* Raises if the script has to end: then it cannot catch it. */
void dbo_sandbox_check(lua_State *L);

/* C memory that is kept for an object of the script, *charged bytes until now, is `bytes` from now
 * on. Raises if that is more than is left, with the charge made: the object's finalizer charges 0.
 * May collect. */
void dbo_sandbox_charge(lua_State *L, size_t *charged, size_t bytes);
size_t dbo_sandbox_left_bytes(const dbo_sandbox *box);

/* lua_pcall; a sentence of Lua's without a place gets one. */
int dbo_sandbox_pcall(lua_State *L, int arguments, int results);
/* lua_error for what that has caught. */
int dbo_sandbox_raise_again(lua_State *L);

/* Raises err as a Lua error; the message gets no place: see dbo_sandbox_raise_at. No return. */
int dbo_sandbox_raise(lua_State *L, const dbo_error *err);
/* The same at the calling Lua function: the line of the first `key =` of the error's key at or
 * after the call, else of the call. An error that has a place keeps it. */
int dbo_sandbox_raise_at(lua_State *L, dbo_error *err);
/* The same for a loaded file that has already returned: the line of its first `key =`. */
int dbo_sandbox_raise_in(lua_State *L, const char *path, dbo_error *err);

/* What `require "dbo"` returns is a copy of the table at the top of the stack; pops it. */
void dbo_sandbox_set_module(dbo_sandbox *box);

/* The same of a file that is open, which it closes, for a script that is running: its code has
 * globals and a `dbo` of its own, as they were at the beginning. */
dbo_status dbo_sandbox_load_open(dbo_sandbox *box, int fd, const char *path, dbo_error *err);
/* Reads an open file, which it closes, of at most max_bytes into a zeroed text, the caller's to
 * free; `path` is its name. */
dbo_status dbo_sandbox_read(int fd, const char *path, size_t max_bytes, dbo_strbuf *text,
                            dbo_error *err);

#endif
