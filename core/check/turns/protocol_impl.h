/* protocol_impl.h: states and steps of the thread executor's protocol. Private to
 * core/check/turns and its test.
 *
 * A thread is a place: the step that it takes next. Shared data is touched under the lock only,
 * except what belongs to the turn (hooks, the forward context), so taking the lock, one decision
 * under it and letting go are three steps, and nothing finer could be seen by another thread.
 *
 *     protocol_state state;
 *     dbo_protocol_start(&options, &state);
 *     if (!dbo_protocol_move(&options, &state, thread, false, &finding))   // it cannot move
 */
#ifndef DBO_CHECK_PROTOCOL_IMPL_H
#define DBO_CHECK_PROTOCOL_IMPL_H

#include "core/check/turns/protocol.h"
#include "core/turn/ring.h"

/* X(enumerator, step, function that it mirrors, what it does there) */
#define PROTOCOL_PLACE_MAP(X)                                                               \
    X(AT_CREATE, create, "dbo_executor_thread_run", "starts a thread")                      \
    X(AT_BEGIN_LOCK, begin_lock, "dbo_executor_thread_run", "locks")                        \
    X(AT_ARRIVALS, arrivals, "await_arrivals", "looks who has arrived, sleeps or goes on")  \
    X(AT_ARRIVALS_SLEEP, arrivals_sleep, "await_arrivals", "wakes for no reason")           \
    X(AT_ARRIVALS_WOKEN, begin_lock, "await_arrivals", "woken, locks")                      \
    X(AT_BEGIN, begin, "dbo_executor_thread_run", "passes the barrier, signals ubatch 0")   \
    X(AT_BEGIN_UNLOCK, begin_unlock, "dbo_executor_thread_run", "unlocks")                  \
    X(AT_JOIN, join, "dbo_executor_thread_run", "joins a thread")                           \
    X(AT_RETURNED, nothing, "dbo_executor_thread_run", "has returned")                      \
    X(AT_UNSTARTED, nothing, "thread_body", "does not exist yet")                           \
    X(AT_ARRIVE_LOCK, arrive_lock, "thread_body", "locks")                                  \
    X(AT_ARRIVE, arrive, "thread_body", "arrives, signals the runner")                      \
    X(AT_TEST, test, "await_event", "looks at its event, sleeps or goes on")                \
    X(AT_SLEEP, sleep_on, "await_event", "wakes for no reason")                             \
    X(AT_WOKEN, woken, "await_event", "woken, locks")                                       \
    X(AT_TAKE, take, "await_event", "has the turn, clears its event")                       \
    X(AT_TURN_UNLOCK, turn_unlock, "await_event's caller", "unlocks, has the turn")         \
    X(AT_RESUME, resume, "cpu_yield or ubatch_main", "installs its forward context")        \
    X(AT_BODY, body, "body", "returns")                                                     \
    X(AT_PASS_LOCK, pass_lock, "dbo_executor_thread_handoff", "locks")                      \
    X(AT_PASS, pass, "dbo_executor_thread_handoff", "signals the next")                     \
    X(AT_EXIT, leave, "ubatch_main", "exits: no hooks from now on")                         \
    X(AT_EXIT_HOOK, exit_hook, "ubatch_main", "runs the hook that is still pending")        \
    X(AT_END_LOCK, end_lock, "finish", "locks")                                             \
    X(AT_END, end, "finish", "ends, signals or releases the next")                          \
    X(AT_END_UNLOCK, end_unlock, "finish", "unlocks")                                       \
    X(AT_GONE, nothing, "thread_body", "is gone")                                           \
    X(AT_GAP_UNLOCK, gap_unlock, "dbo_executor_thread_handoff", "unlocks after its signal") \
    X(AT_GAP_LOCK, gap_lock, "dbo_executor_thread_handoff", "locks again")                  \
    X(AT_GAP, gap, "dbo_executor_thread_handoff", "begins to wait")

#define PROTOCOL_PLACE_ENUM(enumerator, step, function, words) enumerator,
typedef enum protocol_place { PROTOCOL_PLACE_MAP(PROTOCOL_PLACE_ENUM) AT_COUNT } protocol_place;
#undef PROTOCOL_PLACE_ENUM

/* Bytes only, so that two equal states are equal bytes. */
typedef struct protocol_state {
    uint8_t event, waiting, done, released, arrived, aborted; /* a dbo_ring */
    uint8_t place[DBO_PROTOCOL_MAX_UBATCHES + 1];             /* the last: the runner */
    uint8_t at[DBO_PROTOCOL_MAX_UBATCHES];                    /* next code of the program */
    uint8_t status[DBO_PROTOCOL_MAX_UBATCHES]; /* of the last hand-off, in the end of the body */
    uint8_t hook[DBO_PROTOCOL_MAX_UBATCHES];   /* 0 none, 1 pending, 2 run and still set */
    uint8_t entered, exited;                   /* a bit an ubatch */
    uint8_t lock;                              /* who holds it */
    uint8_t forward;                           /* whose forward context is installed */
    uint8_t runner_at;                         /* threads started, later joined */
    uint8_t failure, failure_status;           /* as the executor keeps it */
    uint8_t run_status;                        /* what the run returns */
    /* What only the properties look at: who had the last turn; who failed first and how; events set
     * and not yet seen; events cleared unseen. */
    uint8_t last, first, first_status, unseen, lost;
} protocol_state;

void dbo_protocol_start(const dbo_protocol_options *options, protocol_state *state);
/* Takes the next step of a thread, or wakes it for no reason; false if it cannot move. *found is
 * set when the step breaks a property. */
bool dbo_protocol_move(const dbo_protocol_options *options, protocol_state *state, uint32_t thread,
                       bool spurious, dbo_protocol_finding *found);
/* What it is that nobody can move: DBO_PROTOCOL_HANG or DBO_PROTOCOL_LOST_WAKEUP. */
dbo_protocol_finding dbo_protocol_standstill(const dbo_protocol_options *options,
                                             const protocol_state *state);
/* Writes the explanation of result->finding, which `state` has shown (protocol_text.c). */
void dbo_protocol_explain(const dbo_protocol_options *options, const protocol_state *state,
                          dbo_protocol_result *result);
dbo_ring dbo_protocol_ring(const dbo_protocol_options *options, const protocol_state *state);

/* ---- decisions and steps ---- */

/* What a critical section decides: core/turn/ring.c. */
typedef struct dbo_protocol_decisions {
    void (*arrive)(dbo_ring *ring, uint32_t me, dbo_ring_step *step);
    dbo_ring_step (*begin)(dbo_ring *ring, uint32_t started);
    bool (*may_go)(const dbo_ring *ring, uint32_t me);
    dbo_status (*take)(dbo_ring *ring, uint32_t me);
    dbo_ring_step (*pass)(dbo_ring *ring, uint32_t me);
    dbo_ring_step (*end)(dbo_ring *ring, uint32_t me, bool failed);
} dbo_protocol_decisions;

/* A step that is being taken. */
typedef struct dbo_protocol_moving {
    const dbo_protocol_options *o;
    protocol_state *s;
    dbo_protocol_finding found;
} dbo_protocol_moving;

typedef bool (*dbo_protocol_step_fn)(dbo_protocol_moving *m, uint32_t me);

/* Another protocol than the executor's. */
struct dbo_protocol_variant {
    dbo_protocol_decisions decide;
    dbo_protocol_step_fn steps[AT_COUNT]; /* NULL: as the executor does it */
};

extern const dbo_protocol_decisions dbo_protocol_ring_decisions;
/* The executor's own step at a place. */
dbo_protocol_step_fn dbo_protocol_step_at(uint8_t place);
/* Does what a decision says: wakes, notes a deadlock. */
void dbo_protocol_carry_out(dbo_protocol_moving *m, const dbo_ring *ring, dbo_ring_step step);

static inline const dbo_protocol_decisions *dbo_protocol_decide(const dbo_protocol_options *o)
{
    return o->variant ? &o->variant->decide : &dbo_protocol_ring_decisions;
}

#endif
