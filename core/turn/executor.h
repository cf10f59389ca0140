/* executor.h: N ubatches of one rank, one at a time, in a ring.
 *
 * Two executors with one meaning: `fiber` (default: a hand-off is a stack switch) and `thread` (as
 * in vLLM: N threads, a barrier of N+1, a ring of CPU events). Ubatch i waits on event i and
 * signals event (i+1) % N. dbo_executor_run enters all, gives ubatch 0 the first baton and returns
 * when every ubatch has ended. A hand-off signals the next and waits for the own event; the end of
 * an ubatch signals the next, too.
 *
 * Failure: the first ubatch that returns an error releases the others: their pending and later
 * hand-offs return DBO_ABORTED. If every living ubatch waits for a baton that nobody will pass, run
 * releases them and returns DBO_DEADLOCK with a sentence that names them.
 *
 *     dbo_executor *executor = dbo_executor_create(DBO_CONTEXT_FIBER, 2, NULL, err);
 *     DBO_TRY(dbo_executor_run(executor, 2, body, NULL, err));
 *         // body(arg, me, err) calls dbo_executor_handoff(executor, me)
 *     dbo_executor_destroy(executor);
 *
 * Calls come from the context that holds the turn of the rank.
 */
#ifndef DBO_EXECUTOR_H
#define DBO_EXECUTOR_H

#include "core/base/status.h"
#include "core/turn/context.h"
#include "core/turn/ring.h"

#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_executor dbo_executor;
typedef dbo_status (*dbo_executor_fn)(void *arg, uint32_t ubatch, dbo_error *err);

/* At most max_ubatches per run. `pool` (fibers only) may be NULL. Returns NULL with *err. */
dbo_executor *dbo_executor_create(dbo_context_kind kind, uint32_t max_ubatches,
                                  dbo_fiber_pool *pool, dbo_error *err);
void dbo_executor_destroy(dbo_executor *executor);
dbo_context_kind dbo_executor_kind(const dbo_executor *executor);

/* How turns are passed; from the next run on, not while it runs. The right rules if never set. */
void dbo_executor_set_rules(dbo_executor *executor, dbo_ring_rules rules);
dbo_ring_rules dbo_executor_rules(const dbo_executor *executor);
/* How many failures have released nobody so far: those of a ring that parks, while siblings lived.
 * They wait for ever, which is the run's DBO_DEADLOCK. */
uint64_t dbo_executor_num_parked(const dbo_executor *executor);

/* Runs fn(arg, i) for i < num_ubatches, as above. The error is that of the ubatch that failed
 * first, prefixed with "ubatch i: ". */
dbo_status dbo_executor_run(dbo_executor *executor, uint32_t num_ubatches, dbo_executor_fn fn,
                            void *arg, dbo_error *err);

/* From inside ubatch `me`: signal the next, wait for my turn, clear my event. DBO_ABORTED when a
 * sibling has failed. */
dbo_status dbo_executor_handoff(dbo_executor *executor, uint32_t me);

DBO_PUBLIC_END

#endif
