/* protocol_model.c: each step of the thread executor, beside the function that it mirrors.
 *
 * Two kinds of code are here. What locks, waits and wakes follows core/turn/executor_thread.c line
 * by line; what a critical section decides is a call of core/turn/ring.c (or of a variant of it
 * that is explored instead). A step that cannot be taken (the lock is held, nobody has signalled)
 * returns false. A condition variable has one waiter, so a signal moves that one from asleep to
 * woken; nobody asleep: the signal is lost, as signals of condition variables are.
 */
#include "core/check/turns/protocol_impl.h"

#include <string.h>

typedef dbo_protocol_moving move;

static uint8_t bit(uint32_t i)
{
    return (uint8_t)(1u << i);
}

static void find(move *m, dbo_protocol_finding finding)
{
    if (m->found == DBO_PROTOCOL_SOUND && !(m->o->ignore & 1u << finding))
        m->found = finding;
}

dbo_ring dbo_protocol_ring(const dbo_protocol_options *o, const protocol_state *s)
{
    return (dbo_ring){.num = o->num_ubatches,
                      .event = s->event,
                      .waiting = s->waiting,
                      .done = s->done,
                      .released = s->released,
                      .arrived = s->arrived,
                      .aborted = s->aborted,
                      .rules = o->rules};
}

static void put_ring(protocol_state *s, const dbo_ring *ring)
{
    s->event = (uint8_t)ring->event;
    s->waiting = (uint8_t)ring->waiting;
    s->done = (uint8_t)ring->done;
    s->released = (uint8_t)ring->released;
    s->arrived = (uint8_t)ring->arrived;
    s->aborted = ring->aborted;
}

static bool go(move *m, uint32_t me, protocol_place place)
{
    m->s->place[me] = (uint8_t)place;
    return true;
}

static bool lock(move *m, uint32_t me, protocol_place place)
{
    if (m->s->lock != DBO_PROTOCOL_NOBODY)
        return false;
    m->s->lock = (uint8_t)me;
    return go(m, me, place);
}

static bool unlock(move *m, uint32_t me, protocol_place place)
{
    m->s->lock = DBO_PROTOCOL_NOBODY;
    return go(m, me, place);
}

/* A step that only locks, unlocks or goes on. */
#define STEP(name, does, next)             \
    static bool name(move *m, uint32_t me) \
    {                                      \
        return does(m, me, next);          \
    }

static void note_first(protocol_state *s, uint32_t me, dbo_status status)
{
    if (s->first_status != DBO_OK)
        return;
    s->first = (uint8_t)me;
    s->first_status = (uint8_t)status;
}

/* carry_out, pthread_cond_signal, dbo_executor_note_deadlock */
void dbo_protocol_carry_out(move *m, const dbo_ring *ring, dbo_ring_step step)
{
    protocol_state *s = m->s;
    put_ring(s, ring);
    if (step.stuck) {
        s->failure = DBO_PROTOCOL_NOBODY;
        s->failure_status = DBO_DEADLOCK;
        note_first(s, DBO_PROTOCOL_NOBODY, DBO_DEADLOCK);
        find(m, s->lost ? DBO_PROTOCOL_LOST_WAKEUP : DBO_PROTOCOL_DEADLOCK);
    }
    for (uint32_t i = 0; i < DBO_PROTOCOL_MAX_UBATCHES && i < m->o->num_ubatches; i++)
        if ((step.wake & bit(i)) && s->place[i] == AT_SLEEP)
            s->place[i] = AT_WOKEN;
    s->unseen |= (uint8_t)(step.wake & ring->event);
}

static bool nothing(move *m, uint32_t me)
{
    (void)m;
    (void)me;
    return false;
}

/* ---- dbo_executor_thread_run, await_arrivals ---- */

static bool create(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    s->place[s->runner_at++] = AT_ARRIVE_LOCK;
    return go(m, me, s->runner_at < m->o->started ? AT_CREATE : AT_BEGIN_LOCK);
}

STEP(begin_lock, lock, AT_ARRIVALS)

static bool arrivals(move *m, uint32_t me)
{
    if (m->s->arrived < m->o->started)
        return unlock(m, me, AT_ARRIVALS_SLEEP);
    return go(m, me, AT_BEGIN);
}

STEP(arrivals_sleep, go, AT_ARRIVALS_WOKEN)

static bool begin(move *m, uint32_t me)
{
    dbo_ring ring = dbo_protocol_ring(m->o, m->s);
    dbo_ring_step step = dbo_protocol_decide(m->o)->begin(&ring, m->o->started);
    if (step.failed) {
        m->s->run_status = DBO_LIMIT;
        note_first(m->s, me, DBO_LIMIT);
    }
    dbo_protocol_carry_out(m, &ring, step);
    return go(m, me, AT_BEGIN_UNLOCK);
}

static bool begin_unlock(move *m, uint32_t me)
{
    m->s->runner_at = 0;
    return unlock(m, me, AT_JOIN);
}

/* The end of the run: dbo_executor_run hands the failure over. */
static bool run_returns(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    uint8_t whose = s->run_status != DBO_OK ? (uint8_t)me : s->failure;
    if (s->run_status == DBO_OK && s->aborted)
        s->run_status = s->failure_status;
    if (s->run_status != s->first_status || (s->run_status != DBO_OK && whose != s->first))
        find(m, DBO_PROTOCOL_ERROR);
    for (uint32_t i = 0; i < m->o->num_ubatches; i++)
        if (s->hook[i] == 1 && s->run_status == DBO_OK)
            find(m, DBO_PROTOCOL_HOOK);
    return go(m, me, AT_RETURNED);
}

static bool join(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    if (s->runner_at < m->o->started) {
        if (s->place[s->runner_at] != AT_GONE)
            return false;
        s->runner_at++;
    }
    return s->runner_at < m->o->started ? true : run_returns(m, me);
}

/* ---- thread_body, await_event ---- */

STEP(arrive_lock, lock, AT_ARRIVE)

static bool arrive(move *m, uint32_t me)
{
    dbo_ring ring = dbo_protocol_ring(m->o, m->s);
    dbo_ring_step step = {0};
    dbo_protocol_decide(m->o)->arrive(&ring, me, &step);
    dbo_protocol_carry_out(m, &ring, step);
    uint8_t *runner = &m->s->place[m->o->num_ubatches];
    if (*runner == AT_ARRIVALS_SLEEP)
        *runner = AT_ARRIVALS_WOKEN;
    return go(m, me, AT_TEST);
}

static bool test(move *m, uint32_t me)
{
    dbo_ring ring = dbo_protocol_ring(m->o, m->s);
    if (dbo_protocol_decide(m->o)->may_go(&ring, me))
        return go(m, me, AT_TAKE);
    return unlock(m, me, AT_SLEEP);
}

STEP(sleep_on, go, AT_WOKEN)
STEP(woken, lock, AT_TEST)

static bool take(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    dbo_ring ring = dbo_protocol_ring(m->o, s);
    dbo_status status = dbo_protocol_decide(m->o)->take(&ring, me);
    put_ring(s, &ring);
    s->status[me] = (uint8_t)status;
    s->unseen &= (uint8_t)~bit(me);
    if (status == DBO_OK) {
        uint32_t expected = s->last == DBO_PROTOCOL_NOBODY ? 0 : dbo_ring_next(&ring, s->last);
        if (me != expected)
            find(m, DBO_PROTOCOL_ORDER);
        if (s->arrived < ring.num)
            find(m, DBO_PROTOCOL_EARLY);
        s->last = (uint8_t)me;
    }
    return go(m, me, AT_TURN_UNLOCK);
}

/* Whose first turn is there only to end does not run its body. */
static bool turn_unlock(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    if (s->status[me] != DBO_OK && !(s->entered & bit(me)))
        return unlock(m, me, AT_END_LOCK);
    s->entered |= bit(me);
    return unlock(m, me, AT_RESUME);
}

/* ---- core/rank/ubatch.c: cpu_yield, ubatch_main, the hooks ---- */

static bool resume(move *m, uint32_t me)
{
    dbo_status status = m->s->status[me];
    m->s->forward = (uint8_t)me;
    if (status != DBO_OK && !(status == DBO_ABORTED && m->o->stubborn))
        return go(m, me, AT_EXIT);
    return go(m, me, AT_BODY);
}

static bool fail(move *m, uint32_t me, dbo_status status)
{
    m->s->status[me] = (uint8_t)status;
    note_first(m->s, me, status);
    return go(m, me, AT_EXIT);
}

/* dbo_register_recv_hook; replacing a hook that nobody has run loses it. */
static bool set_hook(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    dbo_ring ring = dbo_protocol_ring(m->o, s);
    uint32_t next = dbo_ring_next(&ring, me);
    bool exited = (s->exited & bit(next)) != 0;
    bool lost = exited || s->hook[next] == 1;
    if (lost && s->first_status == DBO_OK) /* not as a consequence of a failure */
        find(m, DBO_PROTOCOL_HOOK);
    if (exited)
        return fail(m, me, DBO_REFUSED);
    s->hook[next] = 1;
    return true;
}

static void run_hook(move *m, uint32_t me)
{
    uint8_t *hook = &m->s->hook[me];
    if (*hook == 2)
        find(m, DBO_PROTOCOL_HOOK);
    *hook = 0;
}

static bool body(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    const dbo_protocol_program *program = &m->o->programs[me];
    if (s->at[me] == program->num)
        return go(m, me, AT_EXIT);
    switch (program->codes[s->at[me]++]) {
    case DBO_PROTOCOL_YIELD:
        if (s->forward != me)
            find(m, DBO_PROTOCOL_TWO_RUN); /* cpu_yield refuses this */
        return go(m, me, AT_PASS_LOCK);
    case DBO_PROTOCOL_HOOK_SET: return set_hook(m, me);
    case DBO_PROTOCOL_HOOK_RUN: run_hook(m, me); return true;
    case DBO_PROTOCOL_FAIL: return fail(m, me, DBO_IO);
    default: return true;
    }
}

static bool leave(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    s->exited |= bit(me);
    bool runs = s->status[me] == DBO_OK && s->hook[me];
    return go(m, me, runs ? AT_EXIT_HOOK : AT_END_LOCK);
}

static bool exit_hook(move *m, uint32_t me)
{
    run_hook(m, me);
    return go(m, me, AT_END_LOCK);
}

/* ---- dbo_executor_thread_handoff ---- */

STEP(pass_lock, lock, AT_PASS)

static bool pass(move *m, uint32_t me)
{
    dbo_ring ring = dbo_protocol_ring(m->o, m->s);
    dbo_ring_step step = dbo_protocol_decide(m->o)->pass(&ring, me);
    m->s->status[me] = (uint8_t)step.status;
    dbo_protocol_carry_out(m, &ring, step);
    if (step.status == DBO_INTERNAL) {
        find(m, DBO_PROTOCOL_BATON);
        note_first(m->s, me, step.status);
    }
    if (step.status != DBO_OK)
        return go(m, me, AT_TURN_UNLOCK);
    return go(m, me, ring.rules.clears_late ? AT_GAP_UNLOCK : AT_TEST);
}

/* ---- finish ---- */

STEP(end_lock, lock, AT_END)

static bool end(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    dbo_ring ring = dbo_protocol_ring(m->o, s);
    dbo_ring_step step = dbo_protocol_decide(m->o)->end(&ring, me, s->status[me] != DBO_OK);
    if (step.failed) {
        s->failure = (uint8_t)me;
        s->failure_status = s->status[me];
    }
    dbo_protocol_carry_out(m, &ring, step);
    return go(m, me, AT_END_UNLOCK);
}

STEP(end_unlock, unlock, AT_GONE)

/* ---- a hand-off that clears its event late, or lets go of the lock between its halves ---- */

STEP(gap_unlock, unlock, AT_GAP_LOCK)
STEP(gap_lock, lock, AT_GAP)

/* The second half of a hand-off in a critical section of its own. */
static bool gap(move *m, uint32_t me)
{
    protocol_state *s = m->s;
    dbo_ring ring = dbo_protocol_ring(m->o, s);
    dbo_ring_step step = {0};
    if (ring.rules.clears_late)
        s->lost |= (uint8_t)(ring.event & s->unseen & bit(me));
    dbo_ring_stay(&ring, me, &step);
    dbo_protocol_carry_out(m, &ring, step);
    return go(m, me, AT_TEST);
}

/* ---- all steps ---- */

static const dbo_protocol_step_fn steps[] = {
#define PLACE_STEP(enumerator, step, function, words) [enumerator] = (step),
    PROTOCOL_PLACE_MAP(PLACE_STEP)
#undef PLACE_STEP
};

dbo_protocol_step_fn dbo_protocol_step_at(uint8_t place)
{
    return steps[place];
}

static void ring_arrive(dbo_ring *ring, uint32_t me, dbo_ring_step *step)
{
    (void)step;
    dbo_ring_arrive(ring, me);
}

/* A late clear is a critical section of its own. */
static dbo_ring_step ring_pass(dbo_ring *ring, uint32_t me)
{
    return ring->rules.clears_late ? dbo_ring_give(ring, me) : dbo_ring_pass(ring, me);
}

const dbo_protocol_decisions dbo_protocol_ring_decisions = {.arrive = ring_arrive,
                                                            .begin = dbo_ring_begin,
                                                            .may_go = dbo_ring_may_go,
                                                            .take = dbo_ring_take,
                                                            .pass = ring_pass,
                                                            .end = dbo_ring_end};

static bool has_turn(uint8_t place)
{
    switch (place) {
    case AT_TURN_UNLOCK:
    case AT_RESUME:
    case AT_BODY:
    case AT_PASS_LOCK:
    case AT_PASS:
    case AT_EXIT:
    case AT_EXIT_HOOK:
    case AT_END_LOCK:
    case AT_END: return true;
    default: return false;
    }
}

void dbo_protocol_start(const dbo_protocol_options *o, protocol_state *s)
{
    memset(s, 0, sizeof *s);
    memset(s->place, AT_UNSTARTED, sizeof s->place);
    s->place[o->num_ubatches] = o->started > 0 ? AT_CREATE : AT_BEGIN_LOCK;
    s->lock = s->forward = s->last = s->failure = s->first = DBO_PROTOCOL_NOBODY;
}

bool dbo_protocol_move(const dbo_protocol_options *o, protocol_state *s, uint32_t thread,
                       bool spurious, dbo_protocol_finding *found)
{
    move m = {.o = o, .s = s};
    uint8_t place = s->place[thread];
    if (spurious != (place == AT_SLEEP || place == AT_ARRIVALS_SLEEP))
        return false;
    const struct dbo_protocol_variant *variant = o->variant;
    dbo_protocol_step_fn step =
        variant && variant->steps[place] ? variant->steps[place] : steps[place];
    if (!step(&m, thread))
        return false;
    uint32_t running = 0;
    for (uint32_t i = 0; i < o->num_ubatches; i++)
        running += has_turn(s->place[i]);
    if (running > 1)
        find(&m, DBO_PROTOCOL_TWO_RUN);
    *found = m.found;
    return true;
}

dbo_protocol_finding dbo_protocol_standstill(const dbo_protocol_options *o, const protocol_state *s)
{
    dbo_ring ring = dbo_protocol_ring(o, s);
    bool lost = s->lost != 0;
    for (uint32_t i = 0; i < o->num_ubatches; i++)
        lost |= s->place[i] == AT_SLEEP && dbo_protocol_decide(o)->may_go(&ring, i);
    lost |= s->place[o->num_ubatches] == AT_ARRIVALS_SLEEP && s->arrived >= o->started;
    return lost ? DBO_PROTOCOL_LOST_WAKEUP : DBO_PROTOCOL_HANG;
}
