/* fiber.h: cooperative contexts with a stack of their own, and their cost: a few ns a switch.
 *
 * Back ends of the switch: boost.context's C-callable fcontext (DBO_FIBER_FCONTEXT), ucontext where
 * that library is absent. Every switch is announced to AddressSanitizer and ThreadSanitizer, so the
 * sanitizer builds see each fiber as a stack (asan) or a thread (tsan) of its own.
 *
 * A fiber belongs to the OS thread that first switches to it and must stay there. The thread's own
 * stack takes part as a fiber made by dbo_fiber_adopt_thread.
 *
 *     dbo_fiber *self = dbo_fiber_adopt_thread(&err);
 *     dbo_fiber *f = dbo_fiber_create(NULL, body, arg, &err);  // body(arg) must never return:
 *     dbo_fiber_switch(self, f);                               // it ends with a switch away
 *     dbo_fiber_destroy(f);
 *
 * Stacks are mapped with a guard page below and are kept in a pool (dbo_fiber_pool) when one is
 * given, so that hundreds of ranks cost one mapping.
 */
#ifndef DBO_FIBER_H
#define DBO_FIBER_H

#include "core/base/status.h"

#include <stddef.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_fiber dbo_fiber;
typedef struct dbo_fiber_pool dbo_fiber_pool;
typedef void (*dbo_fiber_fn)(void *arg);

#define DBO_FIBER_STACK_BYTES ((size_t)64 * 1024)

/* A pool of stacks of stack_bytes each (0: DBO_FIBER_STACK_BYTES), mapped slab_stacks at a time (0:
 * 32). The stack freed last is used first. Not locked: a pool serves one thread at a time.
 * Destroying the pool unmaps all; every fiber of it must have been destroyed. */
dbo_fiber_pool *dbo_fiber_pool_create(size_t stack_bytes, size_t slab_stacks, dbo_error *err);
void dbo_fiber_pool_destroy(dbo_fiber_pool *pool);

/* A fiber that will run fn(arg) at the first switch to it. `pool` may be NULL (own mapping).
 * fn must end with a switch away for good; returning aborts the process. NULL with *err set on
 * failure. The fiber is freed by dbo_fiber_destroy, from another fiber; destroying a fiber that has
 * not finished abandons its stack frames. */
dbo_fiber *dbo_fiber_create(dbo_fiber_pool *pool, dbo_fiber_fn fn, void *arg, dbo_error *err);
dbo_fiber *dbo_fiber_adopt_thread(dbo_error *err);
void dbo_fiber_destroy(dbo_fiber *fiber);

/* Suspends `from`, which must be the running fiber, and continues `to`. Returns when some fiber
 * switches back to `from`. */
void dbo_fiber_switch(dbo_fiber *from, dbo_fiber *to);

/* "fcontext" or "ucontext". */
const char *dbo_fiber_backend(void);

DBO_PUBLIC_END

#endif
