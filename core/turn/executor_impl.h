/* executor_impl.h: what the fiber and the thread executor share, for executor*.c alone. What a turn
 * does to the ring is ring.h's to say; each executor then wakes whom the ring names:
 *
 *     dbo_ring_step step = dbo_ring_end(&executor->ring, me, status != DBO_OK);
 */
#ifndef DBO_EXECUTOR_IMPL_H
#define DBO_EXECUTOR_IMPL_H

#include "core/turn/executor.h"
#include "core/turn/ring.h"

#include <pthread.h>

typedef struct dbo_executor_slot {
    dbo_context *context; /* fibers only: where the ubatch continues */
    dbo_executor *executor;
    pthread_t thread;
    pthread_cond_t wake;
} dbo_executor_slot;

struct dbo_executor {
    dbo_context_kind kind;
    uint32_t max;
    dbo_ring ring; /* whose turn it is; threads: under the lock */
    dbo_fiber_pool *pool;
    dbo_executor_fn fn;
    void *arg;
    dbo_context *runner;
    dbo_error failure; /* the run's; before it is aborted, one that releases nobody */
    dbo_ring_rules rules;
    uint64_t num_parked;    /* failures that have released nobody */
    pthread_mutex_t lock;   /* threads: guards the ring and the failure */
    pthread_cond_t arrival; /* threads: the barrier before the first baton */
    dbo_executor_slot slots[];
};

/* The run has failed: keeps the error of the ubatch that failed first, or writes the sentence of a
 * deadlock. Called by whom the ring told so: once a run, or, where a failure releases nobody, first
 * of the failure and then of the deadlock that comes of it. */
void dbo_executor_note_failure(dbo_executor *executor, uint32_t ubatch, dbo_status status,
                               const dbo_error *error);
void dbo_executor_note_deadlock(dbo_executor *executor);

dbo_status dbo_executor_thread_init(dbo_executor *executor, dbo_error *err);
void dbo_executor_thread_fini(dbo_executor *executor);
dbo_status dbo_executor_thread_run(dbo_executor *executor, dbo_error *err);
dbo_status dbo_executor_thread_handoff(dbo_executor *executor, uint32_t me);

#endif
