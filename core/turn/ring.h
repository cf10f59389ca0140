/* ring.h: who has the turn: the decisions of a ring of CPU events, without any waiting.
 *
 * Ubatch i waits for event i and signals event (i + 1) % num. Each function below is what one
 * critical section decides: it changes the ring and says whom to wake. How one waits and wakes is
 * the caller's: the thread executor calls them under its mutex and signals condition variables, the
 * fiber executor switches stacks, and core/check/turns/protocol.h runs through all interleavings of
 * the same functions.
 *
 *     lock
 *     dbo_ring_step step = dbo_ring_pass(&ring, me);
 *     wake everybody in step.wake
 *     if (step.status == DBO_OK)
 *         while (!dbo_ring_may_go(&ring, me)) wait
 *         status = dbo_ring_take(&ring, me);
 *     unlock
 *
 * Events are sticky: a signal that comes before its receiver waits is not lost. Once a run is
 * aborted events count no more: the living are released one after the other, by id, each at the end
 * of the one before, so that still only one runs at a time.
 *
 * Callers serialise the calls. At most DBO_RING_MAX ubatches.
 */
#ifndef DBO_RING_H
#define DBO_RING_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

#define DBO_RING_MAX 31u

/* How a ring's turns are passed, where that is not as it should be: all false is right. Whoever
 * explores or shows what comes of it asks the ring's owner for its rules. */
typedef struct dbo_ring_rules {
    /* An event is cleared once the next one has been signalled, not right after waking. Where both
     * happen under one lock that does no harm; where each is atomic by itself, a signal between
     * them is lost. */
    bool clears_late;
    bool parks; /* a failure is kept back and releases nobody */
} dbo_ring_rules;

typedef struct dbo_ring {
    uint32_t num;
    uint32_t event;    /* a bit an ubatch, as in the next three: the baton is there */
    uint32_t waiting;  /* waits for its event, or is about to look whether it must */
    uint32_t done;     /* has ended */
    uint32_t released; /* after an abort: the turn is its own until it ends */
    uint32_t arrived;  /* how many came to the barrier */
    bool aborted;
    dbo_ring_rules rules; /* the right ones unless set after init */
} dbo_ring;

typedef struct dbo_ring_step {
    uint32_t wake;     /* at most one bit: that ubatch waits, let it look again */
    bool stuck;        /* the run is aborted from now on: nobody would ever pass a baton */
    bool failed;       /* the first failure is the caller's; it is the run's, unless stuck, too */
    dbo_status status; /* dbo_ring_pass: DBO_OK when the caller must wait for its turn */
} dbo_ring_step;

void dbo_ring_init(dbo_ring *ring, uint32_t num);

/* `me` is at the barrier of num + 1 and goes on to wait for its event. */
void dbo_ring_arrive(dbo_ring *ring, uint32_t me);
/* The runner is at the barrier, too: gives ubatch 0 the first baton. Only the first `started`
 * ubatches exist; if that is not all, the run is aborted at once. */
dbo_ring_step dbo_ring_begin(dbo_ring *ring, uint32_t started);
/* While this is false a waiting ubatch goes on waiting. */
bool dbo_ring_may_go(const dbo_ring *ring, uint32_t me);
/* After that: clears the own event, unless that comes later. DBO_ABORTED if the turn is only there
 * to end. */
dbo_status dbo_ring_take(dbo_ring *ring, uint32_t me);
/* First half of a hand-off: signals the next, and begins to wait. Status DBO_ABORTED: the run is
 * aborted, keep the turn and end; DBO_INTERNAL: there was a baton for an ubatch that runs. */
dbo_ring_step dbo_ring_pass(dbo_ring *ring, uint32_t me);
/* The end of an ubatch: signals the next, or releases the next one to be released. One that fails
 * aborts the run; of a ring that parks it tells nobody, so that whoever lives waits for ever. */
dbo_ring_step dbo_ring_end(dbo_ring *ring, uint32_t me, bool failed);

/* ---- the parts that these are made of ---- */

static inline uint32_t dbo_ring_bit(uint32_t ubatch)
{
    return 1u << ubatch;
}

static inline uint32_t dbo_ring_next(const dbo_ring *ring, uint32_t me)
{
    if (__builtin_expect(me + 1 == ring->num, 0))
        return 0;
    return me + 1;
}

static inline uint32_t dbo_ring_living(const dbo_ring *ring)
{
    return (dbo_ring_bit(ring->num) - 1) & ~ring->done;
}

/* The two things that dbo_ring_pass does. */
dbo_ring_step dbo_ring_give(dbo_ring *ring, uint32_t me);
void dbo_ring_stay(dbo_ring *ring, uint32_t me, dbo_ring_step *step);

/* Sets an event; returns whom to wake. */
static inline uint32_t dbo_ring_signal(dbo_ring *ring, uint32_t ubatch)
{
    ring->event |= dbo_ring_bit(ubatch);
    return dbo_ring_bit(ubatch);
}

/* Aborts the run; true for the first who does: later failures are its consequences. */
static inline bool dbo_ring_abort(dbo_ring *ring)
{
    bool first = !ring->aborted;
    ring->aborted = true;
    return first;
}

/* `me`, which is done, has failed: aborts the run, unless the ring parks those who live. True for
 * the first. */
bool dbo_ring_fail(dbo_ring *ring);
/* Everything living waits and nobody has a baton. */
bool dbo_ring_is_stuck(const dbo_ring *ring);
/* After an abort: the turn goes to the lowest that lives. Returns whom to wake, none: 0. */
uint32_t dbo_ring_release(dbo_ring *ring);
/* Aborts a run that is stuck and releases the first. Called wherever one may get stuck, so that it
 * is seen at the moment it becomes true. */
void dbo_ring_watch(dbo_ring *ring, dbo_ring_step *step);

DBO_PUBLIC_END

#endif
