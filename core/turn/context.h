/* context.h: who runs: a fiber or a thread that can be suspended and continued.
 *
 * Exactly one context of a rank holds its turn. The simulator runs each rank's main function in a
 * context and continues it when its wait is over; the executor (executor.h) runs ubatches in
 * contexts of the same kind. Both kinds have the same meaning: dbo_context_switch stops the caller
 * and continues another, at once for fibers, through a semaphore for threads.
 *
 * The running context is found through one thread-local pointer, which is what lets the public
 * calls (dbo_yield and friends) take no argument. `local` is the running ubatch (ubatch.h).
 *
 *     dbo_context *self = dbo_context_adopt(DBO_CONTEXT_FIBER, &err);
 *     dbo_context *other = dbo_context_create(DBO_CONTEXT_FIBER, pool, body, arg, &err);
 *     dbo_context_switch(other);          // body(arg) runs, until it leaves or switches back
 *     dbo_context_destroy(other);
 */
#ifndef DBO_CONTEXT_H
#define DBO_CONTEXT_H

#include "core/base/status.h"
#include "core/turn/fiber.h"

DBO_PUBLIC_BEGIN

typedef enum dbo_context_kind { DBO_CONTEXT_FIBER, DBO_CONTEXT_THREAD } dbo_context_kind;

typedef struct dbo_context dbo_context;
typedef void (*dbo_context_fn)(void *arg);

/* A suspended context that will run fn(arg) when first switched to. fn must not return: its last
 * act is dbo_context_leave. `pool` serves fibers and may be NULL. NULL with *err on failure. */
dbo_context *dbo_context_create(dbo_context_kind kind, dbo_fiber_pool *pool, dbo_context_fn fn,
                                void *arg, dbo_error *err);
/* Makes the calling thread a context (its own stack). Kind says how others will switch to it. What
 * the thread was before, it is again once this context is destroyed. */
dbo_context *dbo_context_adopt(dbo_context_kind kind, dbo_error *err);
/* A context must not be destroyed while it runs. A thread that has not left is told to leave only
 * by its own code; destroy joins it. NULL is fine. */
void dbo_context_destroy(dbo_context *context);

/* Stops the running context and continues `to`; returns when somebody continues the caller. */
void dbo_context_switch(dbo_context *to);
/* Ends the running context for good and continues `to`. Never returns for fibers; for threads the
 * caller must return from fn at once. */
void dbo_context_leave(dbo_context *to);

dbo_context *dbo_context_self(void);
dbo_context_kind dbo_context_kind_of(const dbo_context *context);

/* The running ubatch's pointer, kept with its context. */
void *dbo_context_local(void);
void dbo_context_set_local(void *local);

DBO_PUBLIC_END

#endif
