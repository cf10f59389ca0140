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

#define DBO_PROTOCOL_FIRST(enumerator, ...) enumerator,
typedef enum dbo_protocol_code {
    DBO_PROTOCOL_CODE_MAP(DBO_PROTOCOL_FIRST) DBO_PROTOCOL_CODE_COUNT
} dbo_protocol_code;
typedef enum dbo_protocol_finding {
    DBO_PROTOCOL_FINDING_MAP(DBO_PROTOCOL_FIRST) DBO_PROTOCOL_FINDING_COUNT
} dbo_protocol_finding;
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
    const struct dbo_protocol_variant *variant; /* NULL: none; another one to explore, for tests */
    uint32_t ignore;                            /* bits 1 << finding: go on past these */
    uint32_t max_states;                        /* DBO_LIMIT beyond; about 60 bytes each */
} dbo_protocol_options;

/* One step of a counterexample, and what stands afterwards. */
typedef struct dbo_protocol_step {
    uint8_t thread; /* ubatch; num_ubatches: the runner */
    uint8_t place;  /* what it did; dbo_protocol_print says it in words */
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
const char *dbo_protocol_finding_name(dbo_protocol_finding finding);
const char *dbo_protocol_finding_text(dbo_protocol_finding finding);

#endif
