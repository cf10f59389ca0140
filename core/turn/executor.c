/* executor.c: the ring of turns, with fibers.
 *
 * Invariant: exactly one context of the rank runs, and the switch is the baton: a hand-off goes
 * straight to the next, and no event is ever set. Only when the next has ended there is somebody
 * else to be found: the others wait for ever, the ring is stuck, and all are released with
 * DBO_ABORTED, the lowest first. Ubatch 0 runs on the caller's own stack. Who lives and whether the
 * run is aborted stands in the ring (core/turn/ring.h); the thread executor is in
 * executor_thread.c.
 */
#include "core/turn/executor_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbo_executor_note_failure(dbo_executor *ex, uint32_t ubatch, dbo_status status,
                               const dbo_error *error)
{
    ex->failure = *error;
    if (error->status == DBO_OK)
        dbo_fail(&ex->failure, status, NULL, "%s", dbo_status_text(status));
    ex->failure.status = status;
    if (ex->ring.rules.parks && dbo_ring_living(&ex->ring)) {
        dbo_fail(&ex->failure, status, NULL,
                 "ubatch %u has failed (%.200s) and never released its siblings", ubatch,
                 ex->failure.message);
        ex->num_parked += status != DBO_ABORTED; /* that is a peer's, not its own */
        return;
    }
    dbo_error_prefix(&ex->failure, "ubatch %u", ubatch);
}

void dbo_executor_note_deadlock(dbo_executor *ex)
{
    char names[128] = "";
    size_t used = 0;
    uint32_t living = dbo_ring_living(&ex->ring);
    for (uint32_t i = 0; i < ex->ring.num; i++)
        if ((living & dbo_ring_bit(i)) && used < sizeof names - 16)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%u", used ? ", " : "", i);
    if (ex->failure.status != DBO_OK) {
        dbo_fail(&ex->failure, DBO_DEADLOCK,
                 "Release all siblings when one fails, and return the first error.",
                 "%s: ubatch %s waits for a turn that nobody will give", ex->failure.message,
                 names);
        return;
    }
    dbo_fail(&ex->failure, DBO_DEADLOCK, "All ubatches must yield equally often.",
             "ubatch %s waits for a turn that nobody will give: its predecessor in the ring has "
             "ended",
             names);
}

/* ---- fibers ---- */

/* Who goes on when the next of the ring does not: the lowest that lives, only to end; the runner
 * when all have ended. If the run is not aborted so far, it is now that the ring is stuck. */
static dbo_context *successor(dbo_executor *ex)
{
    uint32_t living = dbo_ring_living(&ex->ring);
    if (!living)
        return ex->runner;
    if (dbo_ring_abort(&ex->ring))
        dbo_executor_note_deadlock(ex);
    return ex->slots[__builtin_ctz(living)].context;
}

/* One ubatch from its first turn to its end; returns who goes on. */
static dbo_context *run_ubatch(dbo_executor_slot *slot)
{
    dbo_executor *ex = slot->executor;
    dbo_ring *ring = &ex->ring;
    uint32_t me = (uint32_t)(slot - ex->slots), next = dbo_ring_next(ring, me);
    dbo_error error = {0};
    dbo_status status = ring->aborted ? DBO_ABORTED : ex->fn(ex->arg, me, &error);
    ring->done |= dbo_ring_bit(me);
    if (status != DBO_OK && dbo_ring_fail(ring))
        dbo_executor_note_failure(ex, me, status, &error);
    bool goes_on = status == DBO_OK && !ring->aborted && !(ring->done & dbo_ring_bit(next));
    return goes_on ? ex->slots[next].context : successor(ex);
}

static void fiber_body(void *arg)
{
    for (;;)
        dbo_context_switch(run_ubatch(arg));
}

/* Ubatch 0 has the runner's own context, which would only wait; the others have one each, kept from
 * run to run. */
static dbo_status make_contexts(dbo_executor *ex, dbo_error *err)
{
    ex->runner = dbo_context_self();
    for (uint32_t i = 0; i < ex->ring.num; i++) {
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

/* A switch comes back to ubatch 0's hand-offs while it lives, and to here when all have ended. */
static dbo_status run_fibers(dbo_executor *ex, dbo_error *err)
{
    DBO_TRY(make_contexts(ex, err));
    dbo_context *to = run_ubatch(&ex->slots[0]);
    if (to != ex->runner)
        dbo_context_switch(to);
    return DBO_OK;
}

static dbo_status handoff_fibers(dbo_executor *ex, uint32_t me)
{
    const dbo_ring *ring = &ex->ring;
    uint32_t next = dbo_ring_next(ring, me);
    if (__builtin_expect(ring->aborted, 0))
        return DBO_ABORTED;
    dbo_context *to = ex->slots[next].context;
    if (__builtin_expect((ring->done >> next) & 1, 0))
        to = successor(ex);
    if (to != ex->slots[me].context)
        dbo_context_switch(to);
    return __builtin_expect(ring->aborted, 0) ? DBO_ABORTED : DBO_OK;
}

/* ---- both kinds ---- */

dbo_executor *dbo_executor_create(dbo_context_kind kind, uint32_t max_ubatches,
                                  dbo_fiber_pool *pool, dbo_error *err)
{
    if (max_ubatches > DBO_RING_MAX) {
        dbo_fail(err, DBO_LIMIT, NULL, "an executor for %u ubatches was asked, %u are possible",
                 max_ubatches, DBO_RING_MAX);
        return NULL;
    }
    dbo_executor *ex = calloc(1, sizeof *ex + max_ubatches * sizeof ex->slots[0]);
    if (dbo_need_memory(ex, "an executor", err) != DBO_OK)
        return NULL;
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

void dbo_executor_set_rules(dbo_executor *ex, dbo_ring_rules rules)
{
    ex->rules = rules;
}

dbo_ring_rules dbo_executor_rules(const dbo_executor *ex)
{
    return ex->rules;
}

uint64_t dbo_executor_num_parked(const dbo_executor *ex)
{
    return ex->num_parked;
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
    dbo_ring_init(&ex->ring, num_ubatches);
    ex->ring.rules = ex->rules;
    ex->fn = fn;
    ex->arg = arg;
    memset(&ex->failure, 0, sizeof ex->failure);
    DBO_TRY(ex->kind == DBO_CONTEXT_FIBER ? run_fibers(ex, err) : dbo_executor_thread_run(ex, err));
    if (!ex->ring.aborted)
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
