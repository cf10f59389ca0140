/* executor_thread.c: the ring of turns, with threads, as the reference does it.
 *
 * A run starts N threads; each arrives at a barrier of N+1 whose last party is the runner (a count
 * and a condition, so that a thread that cannot be started does not strand the others), waits for
 * its CPU event, clears it right after waking, works, and at its end signals the next. A hand-off
 * sets the next event and waits for the own.
 *
 * One mutex guards the ring. What a critical section decides is a function of core/turn/ring.h;
 * here is only who locks, waits and wakes. core/check/turns/protocol_model.c has these functions
 * step by step and runs through all their interleavings: change both together.
 */
#include "core/turn/executor_impl.h"

dbo_status dbo_executor_thread_init(dbo_executor *ex, dbo_error *err)
{
    uint32_t made = 0;
    if (pthread_mutex_init(&ex->lock, NULL) != 0)
        return dbo_fail(err, DBO_INTERNAL, NULL, "the executor's mutex could not be made");
    if (pthread_cond_init(&ex->arrival, NULL) != 0) {
        pthread_mutex_destroy(&ex->lock);
        return dbo_fail(err, DBO_INTERNAL, NULL, "the executor's barrier could not be made");
    }
    while (made < ex->max && pthread_cond_init(&ex->slots[made].wake, NULL) == 0)
        made++;
    if (made == ex->max)
        return DBO_OK;
    while (made-- > 0)
        pthread_cond_destroy(&ex->slots[made].wake);
    pthread_cond_destroy(&ex->arrival);
    pthread_mutex_destroy(&ex->lock);
    return dbo_fail(err, DBO_INTERNAL, NULL, "a CPU event could not be made");
}

void dbo_executor_thread_fini(dbo_executor *ex)
{
    for (uint32_t i = 0; i < ex->max; i++)
        pthread_cond_destroy(&ex->slots[i].wake);
    pthread_cond_destroy(&ex->arrival);
    pthread_mutex_destroy(&ex->lock);
}

/* With the lock held: does what the ring has decided. */
static void carry_out(dbo_executor *ex, dbo_ring_step step)
{
    if (__builtin_expect(step.stuck, 0))
        dbo_executor_note_deadlock(ex);
    if (step.wake) /* never more than one bit */
        pthread_cond_signal(&ex->slots[__builtin_ctz(step.wake)].wake);
}

/* With the lock held: waits for my event and clears it. */
static dbo_status await_event(dbo_executor *ex, uint32_t me)
{
    while (!dbo_ring_may_go(&ex->ring, me))
        pthread_cond_wait(&ex->slots[me].wake, &ex->lock);
    return dbo_ring_take(&ex->ring, me);
}

static void finish(dbo_executor *ex, uint32_t me, dbo_status status, const dbo_error *error)
{
    pthread_mutex_lock(&ex->lock);
    dbo_ring_step step = dbo_ring_end(&ex->ring, me, status != DBO_OK);
    if (step.failed)
        dbo_executor_note_failure(ex, me, status, error);
    carry_out(ex, step);
    pthread_mutex_unlock(&ex->lock);
}

static void *thread_body(void *arg)
{
    dbo_executor_slot *slot = arg;
    dbo_executor *ex = slot->executor;
    uint32_t me = (uint32_t)(slot - ex->slots);
    dbo_error error = {0};
    dbo_context *self = dbo_context_adopt(DBO_CONTEXT_THREAD, &error);
    pthread_mutex_lock(&ex->lock);
    dbo_ring_arrive(&ex->ring, me);
    pthread_cond_signal(&ex->arrival);
    dbo_status status = await_event(ex, me);
    pthread_mutex_unlock(&ex->lock);
    if (!self)
        status = error.status;
    if (status == DBO_OK)
        status = ex->fn(ex->arg, me, &error);
    finish(ex, me, status, &error);
    dbo_context_destroy(self);
    return NULL;
}

/* The runner's side of the barrier: waits until `count` threads have arrived. */
static void await_arrivals(dbo_executor *ex, uint32_t count)
{
    while (ex->ring.arrived < count)
        pthread_cond_wait(&ex->arrival, &ex->lock);
}

dbo_status dbo_executor_thread_run(dbo_executor *ex, dbo_error *err)
{
    dbo_status status = DBO_OK;
    uint32_t started = 0;
    ex->runner = dbo_context_self();
    for (; started < ex->ring.num; started++) {
        dbo_executor_slot *slot = &ex->slots[started];
        slot->executor = ex;
        if (pthread_create(&slot->thread, NULL, thread_body, slot) != 0)
            break;
    }
    pthread_mutex_lock(&ex->lock);
    await_arrivals(ex, started);
    dbo_ring_step step = dbo_ring_begin(&ex->ring, started);
    if (step.failed)
        status = dbo_fail(err, DBO_NO_MEMORY, "Use the fiber executor.",
                          "the system gives no thread for ubatch %u", started);
    carry_out(ex, step);
    pthread_mutex_unlock(&ex->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ex->slots[i].thread, NULL);
    return status;
}

dbo_status dbo_executor_thread_handoff(dbo_executor *ex, uint32_t me)
{
    pthread_mutex_lock(&ex->lock);
    dbo_ring_step step = dbo_ring_pass(&ex->ring, me);
    carry_out(ex, step);
    dbo_status status = step.status;
    if (status == DBO_OK)
        status = await_event(ex, me);
    pthread_mutex_unlock(&ex->lock);
    return status;
}
