/* executor_thread.c: the ring of turns, with threads, as the reference does it.
 *
 * A run starts N threads; each arrives at a barrier of N+1 whose last party is the runner (a count
 * and a condition, so that a thread that cannot be started does not strand the others), waits for
 * its CPU event, clears it right after waking, works, and at its end signals the next. A hand-off
 * sets the next event and waits for the own. One mutex guards all events, so "everybody living
 * waits and no event is set" can be seen at the moment it becomes true: that is the deadlock.
 * Once a run is aborted events count no more: the living are released one after the other, by id,
 * each at the end of the one before, so that still only one runs at a time.
 */
#include "core/executor_impl.h"

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

/* With the lock held: everything living waits and nobody has a baton. */
static bool is_stuck(const dbo_executor *ex)
{
    bool living = false;
    for (uint32_t i = 0; i < ex->num; i++) {
        const dbo_executor_slot *slot = &ex->slots[i];
        if (slot->done)
            continue;
        living = true;
        if (!slot->waiting || slot->event)
            return false;
    }
    return living;
}

/* With the lock held, after an abort: the turn goes to the lowest that lives. */
static void release_next(dbo_executor *ex)
{
    for (uint32_t i = 0; i < ex->num; i++) {
        if (ex->slots[i].done)
            continue;
        ex->slots[i].released = true;
        pthread_cond_signal(&ex->slots[i].wake);
        return;
    }
}

static void abort_if_stuck(dbo_executor *ex)
{
    if (!ex->begun || ex->aborted || !is_stuck(ex))
        return;
    dbo_executor_note_deadlock(ex);
    release_next(ex);
}

/* With the lock held: waits for my event and clears it. */
static dbo_status await_event(dbo_executor *ex, uint32_t me)
{
    dbo_executor_slot *own = &ex->slots[me];
    own->waiting = true;
    abort_if_stuck(ex);
    while (ex->aborted ? !own->released : !own->event)
        pthread_cond_wait(&own->wake, &ex->lock);
    own->waiting = false;
    own->event = false;
    return ex->aborted ? DBO_ABORTED : DBO_OK;
}

static void signal_next(dbo_executor *ex, uint32_t me)
{
    dbo_executor_slot *next = &ex->slots[me + 1 == ex->num ? 0 : me + 1];
    next->event = true;
    pthread_cond_signal(&next->wake);
}

static void finish(dbo_executor *ex, uint32_t me, dbo_status status, const dbo_error *error)
{
    pthread_mutex_lock(&ex->lock);
    ex->slots[me].done = true;
    if (status != DBO_OK)
        dbo_executor_note_failure(ex, me, status, error);
    if (ex->aborted)
        release_next(ex);
    else
        signal_next(ex, me);
    abort_if_stuck(ex);
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
    ex->arrived++;
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
    while (ex->arrived < count)
        pthread_cond_wait(&ex->arrival, &ex->lock);
}

dbo_status dbo_executor_thread_run(dbo_executor *ex, dbo_error *err)
{
    dbo_status status = DBO_OK;
    uint32_t started = 0;
    ex->runner = dbo_context_self();
    ex->arrived = 0;
    ex->begun = false;
    for (; started < ex->num; started++) {
        dbo_executor_slot *slot = &ex->slots[started];
        slot->executor = ex;
        if (pthread_create(&slot->thread, NULL, thread_body, slot) != 0)
            break;
    }
    pthread_mutex_lock(&ex->lock);
    await_arrivals(ex, started);
    if (started < ex->num) {
        status = dbo_fail(err, DBO_LIMIT, "Use the fiber executor.",
                          "the system gives no thread for ubatch %u", started);
        ex->aborted = true;
        for (uint32_t i = started; i < ex->num; i++)
            ex->slots[i].done = true;
        release_next(ex);
    }
    ex->begun = true;
    ex->slots[0].event = true;
    pthread_cond_signal(&ex->slots[0].wake);
    pthread_mutex_unlock(&ex->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ex->slots[i].thread, NULL);
    return status;
}

dbo_status dbo_executor_thread_handoff(dbo_executor *ex, uint32_t me)
{
    pthread_mutex_lock(&ex->lock);
    dbo_status status = DBO_ABORTED;
    if (!ex->aborted && ex->slots[me].event) {
        status = DBO_INTERNAL; /* a baton for me while I run */
    } else if (!ex->aborted) {
        signal_next(ex, me);
        status = await_event(ex, me);
    }
    pthread_mutex_unlock(&ex->lock);
    return status;
}
