/* executor.c: the ring of turns, with fibers.
 *
 * Invariant: exactly one context of the rank runs; every other living ubatch waits for its event.
 * So a hand-off sets the next one's event and switches straight to it. Only when the next has ended
 * does somebody look for another whose event is set. Nobody: the ring is stuck, and all are
 * released with DBO_ABORTED. Ubatch 0 runs on the caller's own stack. The thread executor is in
 * executor_thread.c.
 */
#include "core/executor_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records the first failure of a run; later ones are its consequences. */
void dbo_executor_note_failure(dbo_executor *ex, uint32_t ubatch, dbo_status status,
                               const dbo_error *error)
{
    if (ex->aborted)
        return;
    ex->aborted = true;
    ex->failure = *error;
    if (error->status == DBO_OK)
        dbo_fail(&ex->failure, status, NULL, "%s", dbo_status_text(status));
    dbo_error_prefix(&ex->failure, "ubatch %u", ubatch);
    ex->failure.status = status;
}

void dbo_executor_note_deadlock(dbo_executor *ex)
{
    char names[128] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < ex->num; i++)
        if (!ex->slots[i].done && used < sizeof names - 16)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%u", used ? ", " : "", i);
    ex->aborted = true;
    dbo_fail(&ex->failure, DBO_DEADLOCK, "All ubatches must yield equally often.",
             "ubatch %s waits for a turn that nobody will give: its predecessor in the ring has "
             "ended",
             names);
}

/* ---- fibers ---- */

/* The living ubatch to continue: one with its event set, or any when all are being released. */
static dbo_executor_slot *runnable(dbo_executor *ex, bool *living)
{
    *living = false;
    for (uint32_t i = 0; i < ex->num; i++) {
        dbo_executor_slot *slot = &ex->slots[i];
        if (slot->done)
            continue;
        *living = true;
        if (slot->event || ex->aborted)
            return slot;
    }
    return NULL;
}

/* Who goes on when the next of the ring cannot: whoever has a baton; nobody has: the ring is stuck,
 * and all are released. The runner when all have ended. */
static dbo_context *successor(dbo_executor *ex)
{
    bool living;
    dbo_executor_slot *slot = runnable(ex, &living);
    if (!slot && living) {
        dbo_executor_note_deadlock(ex);
        slot = runnable(ex, &living);
    }
    return slot ? slot->context : ex->runner;
}

static inline dbo_executor_slot *next_of(dbo_executor *ex, uint32_t me)
{
    return &ex->slots[me + 1 == ex->num ? 0 : me + 1];
}

/* One ubatch from its first turn to its end, which gives the baton on. */
static void run_ubatch(dbo_executor_slot *slot)
{
    dbo_executor *ex = slot->executor;
    uint32_t me = (uint32_t)(slot - ex->slots);
    dbo_error error = {0};
    slot->event = false;
    dbo_status status = ex->aborted ? DBO_ABORTED : ex->fn(ex->arg, me, &error);
    slot->done = true;
    if (status != DBO_OK)
        dbo_executor_note_failure(ex, me, status, &error);
    next_of(ex, me)->event = true;
}

static void fiber_body(void *arg)
{
    dbo_executor_slot *slot = arg;
    for (;;) {
        run_ubatch(slot);
        dbo_context_switch(successor(slot->executor));
    }
}

/* Ubatch 0 has the runner's own context, which would only wait; the others have one each, kept from
 * run to run. */
static dbo_status make_contexts(dbo_executor *ex, dbo_error *err)
{
    ex->runner = dbo_context_self();
    for (uint32_t i = 0; i < ex->num; i++) {
        dbo_executor_slot *slot = &ex->slots[i];
        slot->executor = ex;
        if (i == 0)
            slot->context = ex->runner;
        else if (!slot->context)
            slot->context = dbo_context_create(DBO_CONTEXT_FIBER, ex->pool, fiber_body, slot, err);
        if (!slot->context)
            return err && err->status != DBO_OK ? err->status : DBO_NO_MEMORY;
    }
    return DBO_OK;
}

static dbo_status run_fibers(dbo_executor *ex, dbo_error *err)
{
    DBO_TRY(make_contexts(ex, err));
    ex->slots[0].event = true;
    run_ubatch(&ex->slots[0]);
    for (;;) {
        dbo_context *to = successor(ex);
        if (to == ex->runner)
            return DBO_OK;
        dbo_context_switch(to);
    }
}

static dbo_status handoff_fibers(dbo_executor *ex, uint32_t me)
{
    dbo_executor_slot *own = &ex->slots[me], *next = next_of(ex, me);
    if (__builtin_expect(ex->aborted, 0))
        return DBO_ABORTED;
    if (__builtin_expect(own->event, 0))
        return DBO_INTERNAL; /* a baton for me while I run */
    next->event = true;
    dbo_context *to = __builtin_expect(next->done, 0) ? successor(ex) : next->context;
    if (to != own->context)
        dbo_context_switch(to);
    own->event = false;
    return __builtin_expect(ex->aborted, 0) ? DBO_ABORTED : DBO_OK;
}

/* ---- both kinds ---- */

dbo_executor *dbo_executor_create(dbo_context_kind kind, uint32_t max_ubatches,
                                  dbo_fiber_pool *pool, dbo_error *err)
{
    dbo_executor *ex = calloc(1, sizeof *ex + max_ubatches * sizeof ex->slots[0]);
    if (!ex) {
        dbo_fail_memory(err, "an executor");
        return NULL;
    }
    ex->kind = kind;
    ex->max = max_ubatches;
    ex->pool = pool;
    if (kind == DBO_CONTEXT_THREAD && dbo_executor_thread_init(ex, err) != DBO_OK) {
        free(ex);
        return NULL;
    }
    return ex;
}

void dbo_executor_destroy(dbo_executor *ex)
{
    if (!ex)
        return;
    if (ex->kind == DBO_CONTEXT_THREAD)
        dbo_executor_thread_fini(ex);
    for (uint32_t i = 1; i < ex->max && ex->kind == DBO_CONTEXT_FIBER; i++)
        dbo_context_destroy(ex->slots[i].context); /* ubatch 0's is the runner's */
    free(ex);
}

dbo_context_kind dbo_executor_kind(const dbo_executor *ex)
{
    return ex->kind;
}

dbo_status dbo_executor_run(dbo_executor *ex, uint32_t num_ubatches, dbo_executor_fn fn, void *arg,
                            dbo_error *err)
{
    if (num_ubatches < 1 || num_ubatches > ex->max)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "%u ubatches asked, the executor was made for 1 to %u", num_ubatches,
                        ex->max);
    if (!dbo_context_self())
        return dbo_fail(err, DBO_INTERNAL, "Call dbo_context_adopt on this thread first.",
                        "the calling thread is not a context");
    if (ex->kind == DBO_CONTEXT_FIBER && dbo_context_kind_of(dbo_context_self()) != ex->kind)
        return dbo_fail(err, DBO_INVALID, "Make the executor of the kind of its caller's context.",
                        "an executor of fibers cannot run in a context that is a thread");
    ex->num = num_ubatches;
    ex->fn = fn;
    ex->arg = arg;
    ex->aborted = false;
    memset(&ex->failure, 0, sizeof ex->failure);
    for (uint32_t i = 0; i < num_ubatches; i++)
        ex->slots[i].event = ex->slots[i].done = ex->slots[i].released = false;
    DBO_TRY(ex->kind == DBO_CONTEXT_FIBER ? run_fibers(ex, err) : dbo_executor_thread_run(ex, err));
    if (!ex->aborted)
        return DBO_OK;
    if (err)
        *err = ex->failure;
    return ex->failure.status;
}

dbo_status dbo_executor_handoff(dbo_executor *ex, uint32_t me)
{
    return ex->kind == DBO_CONTEXT_FIBER ? handoff_fibers(ex, me)
                                         : dbo_executor_thread_handoff(ex, me);
}
