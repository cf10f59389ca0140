/* protocol_mutant.c: the decisions of core/turn/ring.c, and wrong variants of them.
 *
 * Unless something is to be wrong, decisions are the product's. Two of them are written once more
 * here, of the same parts, with places for wrong steps; a test compares these copies, under
 * variants that do not concern them, with the product's over every ring there can be, so they
 * cannot drift apart.
 */
#include "core/check/turns/protocol_impl.h"

void dbo_protocol_arrive(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t me,
                         dbo_ring_step *step)
{
    dbo_ring_arrive(ring, me);
    if (mutant == DBO_PROTOCOL_WATCH_ARRIVAL)
        dbo_ring_watch(ring, step);
}

dbo_ring_step dbo_protocol_begin(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t started)
{
    if (mutant == DBO_PROTOCOL_BEGIN_LAST && started == ring->num)
        return (dbo_ring_step){.wake = dbo_ring_signal(ring, ring->num - 1)};
    dbo_ring_step step = dbo_ring_begin(ring, started);
    if (mutant == DBO_PROTOCOL_DROP_FIRST_WAKE)
        step.wake = 0;
    return step;
}

bool dbo_protocol_may_go(dbo_protocol_mutant mutant, const dbo_ring *ring, uint32_t me)
{
    if (mutant == DBO_PROTOCOL_IGNORE_RELEASE && ring->aborted)
        return true;
    return dbo_ring_may_go(ring, me);
}

dbo_status dbo_protocol_take(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t me)
{
    uint32_t event = ring->event;
    dbo_status status = dbo_ring_take(ring, me);
    if (mutant == DBO_PROTOCOL_KEEP_EVENT || mutant == DBO_PROTOCOL_LATE_CLEAR_LOCKED)
        ring->event = event;
    return status;
}

static void watch(dbo_protocol_mutant mutant, dbo_ring *ring, dbo_ring_step *step)
{
    if (mutant != DBO_PROTOCOL_STUCK_QUIETLY)
        dbo_ring_watch(ring, step);
    else if (!ring->aborted && dbo_ring_is_stuck(ring))
        step->stuck = dbo_ring_abort(ring);
}

/* dbo_ring_pass */
dbo_ring_step dbo_protocol_pass(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t me)
{
    bool late = mutant == DBO_PROTOCOL_LATE_CLEAR_LOCKED;
    bool gap = mutant == DBO_PROTOCOL_GAP;
    dbo_ring_step step = {0};
    if (mutant == DBO_PROTOCOL_FAITHFUL)
        return ring->rules.clears_late ? dbo_ring_give(ring, me) : dbo_ring_pass(ring, me);
    if (ring->aborted && mutant != DBO_PROTOCOL_DROP_ABORT_CHECK) {
        step.status = DBO_ABORTED;
        return step;
    }
    if ((ring->event & dbo_ring_bit(me)) && !late && mutant != DBO_PROTOCOL_DROP_BATON_CHECK) {
        step.status = DBO_INTERNAL;
        return step;
    }
    uint32_t to = dbo_ring_next(ring, me);
    if (mutant == DBO_PROTOCOL_SIGNAL_PREVIOUS)
        to = (me == 0 ? ring->num : me) - 1;
    if (mutant != DBO_PROTOCOL_DROP_SIGNAL)
        step.wake = dbo_ring_signal(ring, to);
    if (mutant == DBO_PROTOCOL_DROP_WAKE)
        step.wake = 0;
    if (mutant == DBO_PROTOCOL_LATE_CLEAR_LOCKED)
        ring->event &= ~dbo_ring_bit(me);
    if (gap) /* begins to wait in a critical section of its own */
        return step;
    ring->waiting |= dbo_ring_bit(me);
    if (mutant != DBO_PROTOCOL_DROP_PASS_WATCH)
        watch(mutant, ring, &step);
    return step;
}

/* After an abort: who gets the turn. */
static uint32_t release(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t me, bool first)
{
    uint32_t wake = 0;
    switch (mutant) {
    case DBO_PROTOCOL_ABORT_SIGNALS: return dbo_ring_signal(ring, dbo_ring_next(ring, me));
    case DBO_PROTOCOL_RELEASE_ONCE: return first ? dbo_ring_release(ring) : 0;
    case DBO_PROTOCOL_RELEASE_ALL:
        wake = dbo_ring_living(ring);
        ring->released |= wake;
        return wake;
    case DBO_PROTOCOL_RELEASE_QUIETLY: dbo_ring_release(ring); return 0;
    default: return dbo_ring_release(ring);
    }
}

/* dbo_ring_end */
dbo_ring_step dbo_protocol_end(dbo_protocol_mutant mutant, dbo_ring *ring, uint32_t me, bool failed)
{
    dbo_ring_step step = {0};
    if (mutant == DBO_PROTOCOL_FAITHFUL)
        return dbo_ring_end(ring, me, failed);
    if (mutant != DBO_PROTOCOL_DROP_DONE)
        ring->done |= dbo_ring_bit(me);
    bool first = false;
    if (failed && mutant != DBO_PROTOCOL_DROP_ABORT)
        step.failed = first = dbo_ring_abort(ring);
    if (failed && mutant == DBO_PROTOCOL_EVERY_FAILURE)
        step.failed = true;
    if (ring->aborted)
        step.wake |= release(mutant, ring, me, first);
    else if (mutant != DBO_PROTOCOL_DROP_END_SIGNAL)
        step.wake |= dbo_ring_signal(ring, dbo_ring_next(ring, me));
    if (mutant == DBO_PROTOCOL_DROP_END_WAKE && !ring->aborted)
        step.wake = 0;
    if (mutant != DBO_PROTOCOL_DROP_END_WATCH)
        watch(mutant, ring, &step);
    return step;
}
