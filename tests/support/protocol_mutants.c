/* protocol_mutants.c: the decisions of core/turn/ring.c with something wrong in them, and wrong
 * steps.
 *
 * Two decisions are written once more here, of the same parts, with places for wrong ones; a test
 * compares these copies, under variants that do not concern them, with the product's over every
 * ring there can be, so they cannot drift apart. Wrong steps are the model's own, and something
 * after them.
 */
#include "tests/support/protocol_mutants.h"

static protocol_mutant_id mutant;

static void mutant_arrive(dbo_ring *ring, uint32_t me, dbo_ring_step *step)
{
    dbo_ring_arrive(ring, me);
    if (mutant == MUTANT_WATCH_ARRIVAL)
        dbo_ring_watch(ring, step);
}

static dbo_ring_step mutant_begin(dbo_ring *ring, uint32_t started)
{
    if (mutant == MUTANT_BEGIN_LAST && started == ring->num)
        return (dbo_ring_step){.wake = dbo_ring_signal(ring, ring->num - 1)};
    dbo_ring_step step = dbo_ring_begin(ring, started);
    if (mutant == MUTANT_DROP_FIRST_WAKE)
        step.wake = 0;
    return step;
}

static bool mutant_may_go(const dbo_ring *ring, uint32_t me)
{
    if (mutant == MUTANT_IGNORE_RELEASE && ring->aborted)
        return true;
    return dbo_ring_may_go(ring, me);
}

static dbo_status mutant_take(dbo_ring *ring, uint32_t me)
{
    uint32_t event = ring->event;
    dbo_status status = dbo_ring_take(ring, me);
    if (mutant == MUTANT_KEEP_EVENT)
        ring->event = event;
    return status;
}

static void watch(dbo_ring *ring, dbo_ring_step *step)
{
    if (mutant != MUTANT_STUCK_QUIETLY)
        dbo_ring_watch(ring, step);
    else if (!ring->aborted && dbo_ring_is_stuck(ring))
        step->stuck = dbo_ring_abort(ring);
}

/* dbo_ring_pass */
static dbo_ring_step mutant_pass(dbo_ring *ring, uint32_t me)
{
    bool gap = mutant == MUTANT_GAP;
    dbo_ring_step step = {0};
    if (mutant == MUTANT_LATE_CLEAR_LOCKED)
        return dbo_ring_pass(ring, me);
    if (ring->aborted && mutant != MUTANT_DROP_ABORT_CHECK) {
        step.status = DBO_ABORTED;
        return step;
    }
    if ((ring->event & dbo_ring_bit(me)) && mutant != MUTANT_DROP_BATON_CHECK) {
        step.status = DBO_INTERNAL;
        return step;
    }
    uint32_t to = dbo_ring_next(ring, me);
    if (mutant == MUTANT_SIGNAL_PREVIOUS)
        to = (me == 0 ? ring->num : me) - 1;
    if (mutant != MUTANT_DROP_SIGNAL)
        step.wake = dbo_ring_signal(ring, to);
    if (mutant == MUTANT_DROP_WAKE)
        step.wake = 0;
    if (gap) /* begins to wait in a critical section of its own */
        return step;
    ring->waiting |= dbo_ring_bit(me);
    if (mutant != MUTANT_DROP_PASS_WATCH)
        watch(ring, &step);
    return step;
}

/* After an abort: who gets the turn. */
static uint32_t release(dbo_ring *ring, uint32_t me, bool first)
{
    uint32_t wake = 0;
    switch (mutant) {
    case MUTANT_ABORT_SIGNALS: return dbo_ring_signal(ring, dbo_ring_next(ring, me));
    case MUTANT_RELEASE_ONCE: return first ? dbo_ring_release(ring) : 0;
    case MUTANT_RELEASE_ALL:
        wake = dbo_ring_living(ring);
        ring->released |= wake;
        return wake;
    case MUTANT_RELEASE_QUIETLY: dbo_ring_release(ring); return 0;
    default: return dbo_ring_release(ring);
    }
}

/* dbo_ring_end */
static dbo_ring_step mutant_end(dbo_ring *ring, uint32_t me, bool failed)
{
    dbo_ring_step step = {0};
    if (mutant != MUTANT_DROP_DONE)
        ring->done |= dbo_ring_bit(me);
    bool first = false;
    if (failed && mutant != MUTANT_DROP_ABORT)
        step.failed = first = dbo_ring_abort(ring);
    if (failed && mutant == MUTANT_EVERY_FAILURE)
        step.failed = true;
    if (ring->aborted)
        step.wake |= release(ring, me, first);
    else if (mutant != MUTANT_DROP_END_SIGNAL)
        step.wake |= dbo_ring_signal(ring, dbo_ring_next(ring, me));
    if (mutant == MUTANT_DROP_END_WAKE && !ring->aborted)
        step.wake = 0;
    if (mutant != MUTANT_DROP_END_WATCH)
        watch(ring, &step);
    return step;
}

/* ---- steps ---- */

static bool own(dbo_protocol_moving *m, uint32_t me, protocol_place place)
{
    return dbo_protocol_step_at((uint8_t)place)(m, me);
}

/* The own step, then elsewhere. */
static bool own_then(dbo_protocol_moving *m, uint32_t me, protocol_place place, protocol_place to)
{
    if (!own(m, me, place))
        return false;
    m->s->place[me] = (uint8_t)to;
    return true;
}

static bool skip_barrier(dbo_protocol_moving *m, uint32_t me)
{
    m->s->place[me] = AT_BEGIN;
    return true;
}

static bool arrive_quietly(dbo_protocol_moving *m, uint32_t me)
{
    uint8_t *runner = &m->s->place[m->o->num_ubatches], was = *runner;
    bool moved = own(m, me, AT_ARRIVE);
    *runner = was;
    return moved;
}

static bool woken_for_good(dbo_protocol_moving *m, uint32_t me)
{
    return own_then(m, me, AT_WOKEN, AT_TAKE);
}

static bool wait_at_once(dbo_protocol_moving *m, uint32_t me)
{
    return own_then(m, me, AT_PASS_LOCK, AT_GAP);
}

static bool take_then_signal(dbo_protocol_moving *m, uint32_t me)
{
    if (!own(m, me, AT_TAKE) || !(m->s->entered & 1u << me))
        return true;
    dbo_ring ring = dbo_protocol_ring(m->o, m->s);
    dbo_ring_step step = {.wake = dbo_ring_signal(&ring, dbo_ring_next(&ring, me))};
    dbo_protocol_carry_out(m, &ring, step);
    return true;
}

static bool let_go_between(dbo_protocol_moving *m, uint32_t me)
{
    bool moved = own(m, me, AT_PASS);
    if (m->s->place[me] == AT_TEST)
        m->s->place[me] = AT_GAP_UNLOCK;
    return moved;
}

/* A hand-off of an executor that clears late, in one critical section. */
static bool pass_at_once(dbo_protocol_moving *m, uint32_t me)
{
    bool moved = own(m, me, AT_PASS);
    if (m->s->place[me] == AT_GAP_UNLOCK)
        m->s->place[me] = AT_TEST;
    return moved;
}

static bool keep_hook(dbo_protocol_moving *m, uint32_t me)
{
    uint8_t place = m->s->place[me], at = m->s->at[me], hook = m->s->hook[me];
    bool runs = place == AT_EXIT_HOOK || (at < m->o->programs[me].num &&
                                          m->o->programs[me].codes[at] == DBO_PROTOCOL_HOOK_RUN);
    bool moved = own(m, me, (protocol_place)place);
    if (runs && hook)
        m->s->hook[me] = 2;
    return moved;
}

static bool exit_at_once(dbo_protocol_moving *m, uint32_t me)
{
    return own_then(m, me, AT_EXIT, AT_END_LOCK);
}

static bool unlock_then_hook(dbo_protocol_moving *m, uint32_t me)
{
    return own_then(m, me, AT_END_UNLOCK, m->s->hook[me] ? AT_EXIT_HOOK : AT_GONE);
}

static bool hook_then_gone(dbo_protocol_moving *m, uint32_t me)
{
    return own_then(m, me, AT_EXIT_HOOK, AT_GONE);
}

/* ---- all of them ---- */

const char *protocol_mutant_name(protocol_mutant_id id)
{
    static const char *const names[] = {
#define MUTANT_NAME(enumerator, name, text) name,
        PROTOCOL_MUTANTS(MUTANT_NAME)
#undef MUTANT_NAME
    };
    return names[id];
}

static void set_steps(dbo_protocol_step_fn *steps)
{
    switch (mutant) {
    case MUTANT_SKIP_BARRIER: steps[AT_ARRIVALS] = skip_barrier; break;
    case MUTANT_DROP_ARRIVAL: steps[AT_ARRIVE] = arrive_quietly; break;
    case MUTANT_NO_RECHECK: steps[AT_WOKEN] = woken_for_good; break;
    case MUTANT_LATE_CLEAR_LOCKED: steps[AT_PASS] = pass_at_once; break;
    case MUTANT_GAP: steps[AT_PASS] = let_go_between; break;
    case MUTANT_WAIT_FIRST:
        steps[AT_PASS_LOCK] = wait_at_once;
        steps[AT_TAKE] = take_then_signal;
        break;
    case MUTANT_KEEP_HOOK: steps[AT_BODY] = steps[AT_EXIT_HOOK] = keep_hook; break;
    case MUTANT_DROP_EXIT_HOOK: steps[AT_EXIT] = exit_at_once; break;
    case MUTANT_LATE_EXIT_HOOK:
        steps[AT_EXIT] = exit_at_once;
        steps[AT_END_UNLOCK] = unlock_then_hook;
        steps[AT_EXIT_HOOK] = hook_then_gone;
        break;
    default: break;
    }
}

const struct dbo_protocol_variant *protocol_mutant(protocol_mutant_id id)
{
    static struct dbo_protocol_variant variant;
    mutant = id;
    variant = (struct dbo_protocol_variant){.decide = {.arrive = mutant_arrive,
                                                       .begin = mutant_begin,
                                                       .may_go = mutant_may_go,
                                                       .take = mutant_take,
                                                       .pass = mutant_pass,
                                                       .end = mutant_end}};
    set_steps(variant.steps);
    return &variant;
}
