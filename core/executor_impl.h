/* executor_impl.h: what the fiber and the thread executor share. Private to core/executor*.c. */
#ifndef DBO_EXECUTOR_IMPL_H
#define DBO_EXECUTOR_IMPL_H

#include "core/executor.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct dbo_executor_slot {
    dbo_context *context; /* fibers only: where the ubatch continues */
    dbo_executor *executor;
    bool event; /* the baton is here */
    bool waiting;
    bool done;
    bool released; /* threads: after an abort, the turn is mine until I end */
    pthread_t thread;
    pthread_cond_t wake;
} dbo_executor_slot;

struct dbo_executor {
    dbo_context_kind kind;
    uint32_t max, num;
    dbo_fiber_pool *pool;
    dbo_executor_fn fn;
    void *arg;
    dbo_context *runner;
    bool aborted;
    dbo_error failure;
    pthread_mutex_t lock;   /* threads: guards events, waiting, done, aborted, failure, arrived,
                             * begun */
    pthread_cond_t arrival; /* threads: the barrier before the first baton */
    uint32_t arrived;
    bool begun;
    dbo_executor_slot slots[];
};

void dbo_executor_note_failure(dbo_executor *executor, uint32_t ubatch, dbo_status status,
                               const dbo_error *error);
void dbo_executor_note_deadlock(dbo_executor *executor);

dbo_status dbo_executor_thread_init(dbo_executor *executor, dbo_error *err);
void dbo_executor_thread_fini(dbo_executor *executor);
dbo_status dbo_executor_thread_run(dbo_executor *executor, dbo_error *err);
dbo_status dbo_executor_thread_handoff(dbo_executor *executor, uint32_t me);

#endif
