/* protocol.h: the thread executor's protocol, through all its interleavings.
 *
 * An explicit-state explorer. A state is where each of the N ubatch threads and the runner stands,
 * who holds the lock, the ring of events (core/turn/ring.h), pending receive hooks. One step is one
 * step of core/turn/executor_thread.c: take the lock, decide under it, wait or unlock; condition
 * variables may wake without a signal. Breadth first, so a counterexample is one of the shortest.
 * What must hold in every order:
 *
 *   - a set event is seen: no wake-up is lost; nothing hangs; what hangs is noticed (deadlock);
 *   - one ubatch at a time, after all have arrived, in the order 0, 1, .., N-1, 0;
 *   - a hook that is set on the next ubatch runs once, by it;
 *   - every ubatch ends, the run returns, with the first failure and no other;
 *   - the outcome is the same in every order.
 *
 *     dbo_protocol_options options;
 *     dbo_protocol_options_init(&options, 2);           a ping-pong of two with hooks
 *     options.rules = dbo_executor_rules(executor);     none: the protocol as it is
 *     DBO_TRY(dbo_protocol_explore(&options, &result, err));
 *     if (result.finding != DBO_PROTOCOL_SOUND)
 *         dbo_protocol_print(&options, &result, &out);  the interleaving, a line a step
 *     dbo_protocol_result_fini(&result);
 *
 * Sequences of decisions are the product's own (core/turn/ring.c); locking, waiting and the ends of
 * hooks are modelled beside the names of the functions that they mirror (protocol_model.c).
 */
#ifndef DBO_CHECK_PROTOCOL_H
#define DBO_CHECK_PROTOCOL_H

#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "core/program/program.h"
#include "core/turn/ring.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_PROTOCOL_MAX_UBATCHES 4u
#define DBO_PROTOCOL_MAX_CODES    64u
#define DBO_PROTOCOL_NOBODY       UINT8_MAX

/* What a program of the model does: only what the protocol can see. X(enumerator, text) */
#define DBO_PROTOCOL_CODE_MAP(X)                                \
    X(DBO_PROTOCOL_WORK, "works")                               \
    X(DBO_PROTOCOL_YIELD, "yields")                             \
    X(DBO_PROTOCOL_HOOK_SET, "sets a receive hook on the next") \
    X(DBO_PROTOCOL_HOOK_RUN, "runs its receive hook")           \
    X(DBO_PROTOCOL_FAIL, "fails")

/* X(enumerator, name, text) */
#define DBO_PROTOCOL_FINDING_MAP(X)                                                             \
    X(DBO_PROTOCOL_SOUND, "sound", "every order of steps ends as it should")                    \
    X(DBO_PROTOCOL_DEADLOCK, "deadlock", "all wait for a turn that nobody will give")           \
    X(DBO_PROTOCOL_LOST_WAKEUP, "lost_wakeup", "a signal was given and its receiver sleeps on") \
    X(DBO_PROTOCOL_HANG, "hang", "nobody can move, and nobody notices")                         \
    X(DBO_PROTOCOL_LIVELOCK, "livelock", "steps can be taken for ever")                         \
    X(DBO_PROTOCOL_TWO_RUN, "two_run", "two ubatches run at once")                              \
    X(DBO_PROTOCOL_BATON, "second_baton", "a baton for an ubatch that runs")                    \
    X(DBO_PROTOCOL_ORDER, "order", "a turn out of the order of the ring")                       \
    X(DBO_PROTOCOL_EARLY, "early_start", "a turn before all have arrived")                      \
    X(DBO_PROTOCOL_HOOK, "hook", "a receive hook is lost, refused or run twice")                \
    X(DBO_PROTOCOL_ERROR, "error", "the run returns something else than the first failure")     \
    X(DBO_PROTOCOL_OUTCOME, "outcome", "what the run returns depends on the order of steps")

/* Wrong variants, to test the explorer. X(enumerator, name, text) */
#define DBO_PROTOCOL_MUTANT_MAP(X)                                                                \
    X(DBO_PROTOCOL_FAITHFUL, "none", "as it is")                                                  \
    X(DBO_PROTOCOL_LATE_CLEAR_LOCKED, "late-clear-locked", "the same under one lock")             \
    X(DBO_PROTOCOL_GAP, "gap", "lets go of the lock between signal and wait")                     \
    X(DBO_PROTOCOL_KEEP_EVENT, "keep-event", "does not clear its event")                          \
    X(DBO_PROTOCOL_DROP_SIGNAL, "drop-signal", "hands off without setting the event")             \
    X(DBO_PROTOCOL_DROP_WAKE, "drop-wake", "sets the event without waking")                       \
    X(DBO_PROTOCOL_WAIT_FIRST, "wait-first", "waits before it signals")                           \
    X(DBO_PROTOCOL_SIGNAL_PREVIOUS, "signal-previous", "signals the one before")                  \
    X(DBO_PROTOCOL_DROP_PASS_WATCH, "drop-pass-watch", "waits without a look at who is left")     \
    X(DBO_PROTOCOL_DROP_ABORT_CHECK, "drop-abort-check", "hands off although the run is aborted") \
    X(DBO_PROTOCOL_DROP_BATON_CHECK, "drop-baton-check", "does not look for a second baton")      \
    X(DBO_PROTOCOL_DROP_END_SIGNAL, "drop-end-signal", "ends without a signal")                   \
    X(DBO_PROTOCOL_DROP_END_WAKE, "drop-end-wake", "ends, sets the event, does not wake")         \
    X(DBO_PROTOCOL_DROP_DONE, "drop-done", "ends without saying so")                              \
    X(DBO_PROTOCOL_DROP_END_WATCH, "drop-end-watch", "ends without a look at who is left")        \
    X(DBO_PROTOCOL_DROP_ABORT, "drop-abort", "fails like one that ends")                          \
    X(DBO_PROTOCOL_ABORT_SIGNALS, "abort-signals", "after a failure signals the next, no more")   \
    X(DBO_PROTOCOL_RELEASE_ONCE, "release-once", "only the failure releases, not those released") \
    X(DBO_PROTOCOL_RELEASE_ALL, "release-all", "a failure releases all at once")                  \
    X(DBO_PROTOCOL_RELEASE_QUIETLY, "release-quietly", "releases without waking")                 \
    X(DBO_PROTOCOL_IGNORE_RELEASE, "ignore-release", "runs on once it sees that all is aborted")  \
    X(DBO_PROTOCOL_STUCK_QUIETLY, "stuck-quietly", "notes a deadlock, releases nobody")           \
    X(DBO_PROTOCOL_EVERY_FAILURE, "every-failure", "later failures replace the first")            \
    X(DBO_PROTOCOL_SKIP_BARRIER, "skip-barrier", "gives the first baton before all are there")    \
    X(DBO_PROTOCOL_WATCH_ARRIVAL, "watch-arrival", "looks for a deadlock at the barrier, too")    \
    X(DBO_PROTOCOL_DROP_ARRIVAL, "drop-arrival", "arrives without waking the runner")             \
    X(DBO_PROTOCOL_DROP_FIRST_WAKE, "drop-first-wake", "gives the first baton without waking")    \
    X(DBO_PROTOCOL_BEGIN_LAST, "begin-last", "gives the first baton to the last")                 \
    X(DBO_PROTOCOL_NO_RECHECK, "no-recheck", "takes a wake-up for a turn")                        \
    X(DBO_PROTOCOL_KEEP_HOOK, "keep-hook", "runs a hook and leaves it set")                       \
    X(DBO_PROTOCOL_DROP_EXIT_HOOK, "drop-exit-hook", "ends without running its hook")             \
    X(DBO_PROTOCOL_LATE_EXIT_HOOK, "late-exit-hook", "runs its last hook after the signal")

#define DBO_PROTOCOL_FIRST(enumerator, ...) enumerator,
typedef enum dbo_protocol_code {
    DBO_PROTOCOL_CODE_MAP(DBO_PROTOCOL_FIRST) DBO_PROTOCOL_CODE_COUNT
} dbo_protocol_code;
typedef enum dbo_protocol_finding {
    DBO_PROTOCOL_FINDING_MAP(DBO_PROTOCOL_FIRST) DBO_PROTOCOL_FINDING_COUNT
} dbo_protocol_finding;
typedef enum dbo_protocol_mutant {
    DBO_PROTOCOL_MUTANT_MAP(DBO_PROTOCOL_FIRST) DBO_PROTOCOL_MUTANT_COUNT
} dbo_protocol_mutant;
#undef DBO_PROTOCOL_FIRST

typedef struct dbo_protocol_program {
    uint32_t num;
    uint8_t codes[DBO_PROTOCOL_MAX_CODES]; /* dbo_protocol_code */
} dbo_protocol_program;

typedef struct dbo_protocol_options {
    uint32_t num_ubatches; /* 1 to DBO_PROTOCOL_MAX_UBATCHES */
    dbo_protocol_program programs[DBO_PROTOCOL_MAX_UBATCHES];
    uint32_t started; /* threads that the system gives; fewer than num_ubatches: the run fails */
    bool stubborn;    /* bodies go on after DBO_ABORTED instead of returning */
    dbo_ring_rules rules; /* of the executor: the right ones unless set after init. A late clear is
                           * explored as a critical section of its own. */
    dbo_protocol_mutant mutant;
    uint32_t ignore;     /* bits 1 << finding: go on past these */
    uint32_t max_states; /* DBO_LIMIT beyond; about 60 bytes each */
} dbo_protocol_options;

/* One step of a counterexample, and what stands afterwards. */
typedef struct dbo_protocol_step {
    uint8_t thread; /* ubatch; num_ubatches: the runner */
    uint8_t place;  /* what it did: dbo_protocol_place_function, _words */
    uint8_t code;   /* of its program, when it ran one; else DBO_PROTOCOL_NOBODY */
    bool spurious;  /* woke without a signal */
    bool aborted;
    uint8_t lock;                           /* who holds it, or DBO_PROTOCOL_NOBODY */
    uint8_t asleep;                         /* a bit a thread */
    uint8_t event, waiting, done, released; /* a bit an ubatch */
} dbo_protocol_step;

typedef struct dbo_protocol_result {
    dbo_protocol_finding finding;
    uint8_t thread;                         /* whose step showed it, or DBO_PROTOCOL_NOBODY */
    dbo_status status;                      /* what the run returns; of a sound exploration */
    uint32_t states, final_states, longest; /* longest: steps of the farthest state */
    uint64_t transitions;
    uint64_t memory_bytes;
    char explanation[400]; /* of a finding: who waits for what, and why it does not come */
    uint32_t num_steps;
    dbo_protocol_step *steps; /* owned; the interleaving from the start to the finding */
} dbo_protocol_result;

/* A ping-pong with hooks: each ubatch works, sets a hook on the next, yields, runs its own. */
void dbo_protocol_options_init(dbo_protocol_options *options, uint32_t num_ubatches);
/* DBO_LIMIT when the program is full. */
dbo_status dbo_protocol_add(dbo_protocol_program *program, dbo_protocol_code code);
/* What the protocol sees of a schedule: yields and hooks; all between two of them is one WORK. */
dbo_status dbo_protocol_from_program(dbo_protocol_options *options, const dbo_program *program,
                                     dbo_error *err);

/* Explores; DBO_OK whether or not there is a finding. Deterministic. DBO_INVALID, DBO_LIMIT (more
 * than max_states), DBO_NO_MEMORY; then the result holds nothing. */
dbo_status dbo_protocol_explore(const dbo_protocol_options *options, dbo_protocol_result *result,
                                dbo_error *err);
void dbo_protocol_result_fini(dbo_protocol_result *result); /* of a zeroed one is fine */

/* The finding, its interleaving (a line a step: thread, function, what it does, state) and the
 * explanation; or that there is none. Then what was explored. */
void dbo_protocol_print(const dbo_protocol_options *options, const dbo_protocol_result *result,
                        dbo_strbuf *out);
/* Of a step: the function of core/turn/executor_thread.c or core/rank/ubatch.c, and what it does
 * there. */
const char *dbo_protocol_place_function(uint8_t place);
const char *dbo_protocol_place_words(uint8_t place);
const char *dbo_protocol_finding_name(dbo_protocol_finding finding);
const char *dbo_protocol_finding_text(dbo_protocol_finding finding);
const char *dbo_protocol_mutant_name(dbo_protocol_mutant mutant);

#endif
