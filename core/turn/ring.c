/* ring.c: the decisions of the ring of turns.
 *
 * Invariant, until a run is aborted: there is one baton; it is a set event, or the turn of the
 * ubatch that took it. So two events are never set among the living, none while somebody runs, and
 * an event set twice before it is taken, which would swallow a baton, cannot happen. Where failures
 * park, the baton of one that fails is lost.
 */
#include "core/turn/ring.h"

void dbo_ring_init(dbo_ring *ring, uint32_t num)
{
    *ring = (dbo_ring){.num = num};
}

bool dbo_ring_fail(dbo_ring *ring)
{
    bool first = !ring->aborted;
    if (!ring->rules.parks || dbo_ring_living(ring) == 0)
        ring->aborted = true;
    return first;
}

bool dbo_ring_is_stuck(const dbo_ring *ring)
{
    uint32_t living = dbo_ring_living(ring);
    return living != 0 && (living & ring->waiting & ~ring->event) == living;
}

uint32_t dbo_ring_release(dbo_ring *ring)
{
    uint32_t living = dbo_ring_living(ring);
    uint32_t lowest = living & (~living + 1);
    ring->released |= lowest;
    return lowest;
}

void dbo_ring_watch(dbo_ring *ring, dbo_ring_step *step)
{
    if (ring->aborted || !dbo_ring_is_stuck(ring))
        return;
    step->stuck = dbo_ring_abort(ring);
    step->wake = dbo_ring_release(ring); /* whoever was signalled has ended */
}

/* No watch here: before the first baton all wait, rightly. */
void dbo_ring_arrive(dbo_ring *ring, uint32_t me)
{
    ring->arrived++;
    ring->waiting |= dbo_ring_bit(me);
}

dbo_ring_step dbo_ring_begin(dbo_ring *ring, uint32_t started)
{
    dbo_ring_step step = {0};
    if (started < ring->num) {
        step.failed = dbo_ring_abort(ring);
        ring->done |= dbo_ring_living(ring) & ~(dbo_ring_bit(started) - 1);
        step.wake |= dbo_ring_release(ring);
    } else {
        step.wake |= dbo_ring_signal(ring, 0);
    }
    return step;
}

bool dbo_ring_may_go(const dbo_ring *ring, uint32_t me)
{
    return ((ring->aborted ? ring->released : ring->event) & dbo_ring_bit(me)) != 0;
}

dbo_status dbo_ring_take(dbo_ring *ring, uint32_t me)
{
    ring->waiting &= ~dbo_ring_bit(me);
    if (!ring->rules.clears_late)
        ring->event &= ~dbo_ring_bit(me);
    return ring->aborted ? DBO_ABORTED : DBO_OK;
}

dbo_ring_step dbo_ring_give(dbo_ring *ring, uint32_t me)
{
    dbo_ring_step step = {0};
    bool second_baton = !ring->rules.clears_late && (ring->event & dbo_ring_bit(me));
    if (ring->aborted || second_baton)
        step.status = ring->aborted ? DBO_ABORTED : DBO_INTERNAL;
    else
        step.wake = dbo_ring_signal(ring, dbo_ring_next(ring, me));
    return step;
}

void dbo_ring_stay(dbo_ring *ring, uint32_t me, dbo_ring_step *step)
{
    if (ring->rules.clears_late)
        ring->event &= ~dbo_ring_bit(me);
    ring->waiting |= dbo_ring_bit(me);
    dbo_ring_watch(ring, step);
}

dbo_ring_step dbo_ring_pass(dbo_ring *ring, uint32_t me)
{
    dbo_ring_step step = dbo_ring_give(ring, me);
    if (step.status == DBO_OK)
        dbo_ring_stay(ring, me, &step);
    return step;
}

dbo_ring_step dbo_ring_end(dbo_ring *ring, uint32_t me, bool failed)
{
    dbo_ring_step step = {0};
    ring->done |= dbo_ring_bit(me);
    if (failed)
        step.failed = dbo_ring_fail(ring);
    if (ring->aborted)
        step.wake |= dbo_ring_release(ring);
    else if (!failed)
        step.wake |= dbo_ring_signal(ring, dbo_ring_next(ring, me));
    dbo_ring_watch(ring, &step);
    return step;
}
