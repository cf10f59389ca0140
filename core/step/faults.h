/* faults.h: the pitfalls of two microbatches, each a switch by name.
 *
 * A fault makes the engine misbehave in exactly one way, so that a person can see what that looks
 * like and a checker can be tried on it. There are two ways to act:
 *
 *   rewrite  a program is rewritten once, when a plan is built (dbo_fault_rewrite): an event taken
 *            later, a wait left out, a buffer that two ubatches share
 *   rule     the one place of the engine that decides asks dbo_fault_strikes: a vote that is not
 *            kept, a graph that is found by too small a key
 *
 *     dbo_fault fault;
 *     DBO_TRY(dbo_fault_parse(&fault, "late-rank:rank=1,us=200", err));
 *     deployment.fault = &fault;                          NULL: there are no faults
 *     ... run ...
 *     if (fault.reached == 0) it made no difference: the run cannot reach it
 *
 * Off, a fault costs a test of a NULL pointer outside the hot loops. A dbo_fault belongs to one
 * run; only `reached` changes. What checks a run does not get to see it.
 */
#ifndef DBO_FAULTS_H
#define DBO_FAULTS_H

#include "core/base/status.h"
#include "core/program/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What comes of a fault; several may. */
#define DBO_FAULT_ORDER   1u  /* the order of events is wrong: the checker finds it */
#define DBO_FAULT_ROWS    2u  /* the outputs differ from those without DBO */
#define DBO_FAULT_TIME    4u  /* right, but slower */
#define DBO_FAULT_REFUSED 8u  /* the engine or the device refuses */
#define DBO_FAULT_SHOWN   16u /* no defect: it is displayed */

/* X(enumerator, name, outcome, what goes wrong) */
#define DBO_FAULT_MAP(X)                                                                         \
    X(VOTE_SKIP, "vote-skip", DBO_FAULT_ORDER, "one rank decides alone to split, or not to")     \
    X(EMPTY_RANK_SKIPS_STEP, "empty-rank-skips-step", DBO_FAULT_ORDER,                           \
      "a rank without tokens returns before the vote")                                           \
    X(IDLE_OPT_OUT, "idle-opt-out", DBO_FAULT_ORDER,                                             \
      "a rank whose last ubatch is empty decides alone not to split")                            \
    X(PREFIX_NO_VETO, "prefix-no-veto", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                        \
      "a request that reads a prefix is split from the one that writes it")                      \
    X(EVENT_AFTER_YIELD, "event-after-yield", DBO_FAULT_TIME,                                    \
      "a transfer's previous event is taken after the hand-off")                                 \
    X(YIELD_AFTER_DISPATCH, "yield-after-dispatch", DBO_FAULT_TIME,                              \
      "the hand-off comes after the dispatch for which the host waits")                          \
    X(NO_COMPUTE_WAIT, "no-compute-wait", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                      \
      "the dispatch waits neither for compute_done nor for its previous event")                  \
    X(NO_COMM_WAIT, "no-comm-wait", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                            \
      "compute does not wait for comm_done")                                                     \
    X(SHARED_EVENT, "shared-event", DBO_FAULT_TIME, "all ubatches use one set of events")        \
    X(NO_RECORD_STREAM, "no-record-stream", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                    \
      "blocks are freed while the other stream still reads them")                                \
    X(WRONG_POOL, "wrong-pool", DBO_FAULT_ORDER,                                                 \
      "what a dispatch brings is allocated from the other stream's pool")                        \
    X(SHARED_HANDLE, "shared-handle", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                          \
      "all ubatches keep their dispatch handle in one place")                                    \
    X(TWO_SLOT_HANDLES, "two-slot-handles", DBO_FAULT_REFUSED,                                   \
      "the back end has room for the handles of two ubatches")                                   \
    X(DOUBLE_ASYNC, "double-async", DBO_FAULT_ORDER,                                             \
      "the back end ends on a stream of its own, where nobody waits for it")                     \
    X(UNSORTED_OUTPUTS, "unsorted-outputs", DBO_FAULT_ROWS,                                      \
      "outputs are joined in another order than by ubatch id")                                   \
    X(SEQ_LENS_IN_PLACE, "seq-lens-in-place", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                  \
      "the split shortens seq_lens in the batch's own buffer")                                   \
    X(GRAPH_KEY_FIRST_TWO, "graph-key-first-two", DBO_FAULT_ROWS,                                \
      "graphs are found by the sizes of ubatches 0 and 1 alone")                                 \
    X(GRAPH_EMPTY_UBATCH, "graph-empty-ubatch", DBO_FAULT_ORDER,                                 \
      "a split graph is replayed although a rank's last ubatch has no real token")               \
    X(REPLAY_STALE_INPUT, "replay-stale-input", DBO_FAULT_ROWS,                                  \
      "new inputs are not copied into the graph's buffers")                                      \
    X(CAPTURE_WHILE_SERVING, "capture-while-serving", DBO_FAULT_TIME,                            \
      "a size whose graph is split is captured again, unsplit, while serving")                   \
    X(HOST_SYNC_IN_CAPTURE, "host-sync-in-capture", DBO_FAULT_REFUSED,                           \
      "HT is captured, whose host waits for the receive counts")                                 \
    X(LAZY_INIT_IN_CAPTURE, "lazy-init-in-capture", DBO_FAULT_REFUSED,                           \
      "a library makes its handle at first use, inside the capture")                             \
    X(UNJOINED_COMM_STREAM, "unjoined-comm-stream", DBO_FAULT_REFUSED,                           \
      "a capture ends while the comm stream has not rejoined")                                   \
    X(LL_THREE_IN_FLIGHT, "ll-three-in-flight", DBO_FAULT_ORDER,                                 \
      "three results are held of a back end that has two buffers")                               \
    X(WORKSPACE_REUSE, "workspace-reuse", DBO_FAULT_ORDER | DBO_FAULT_ROWS,                      \
      "all dispatches receive into one workspace")                                               \
    X(ROCM_COMM_SMS, "rocm-comm-sms", DBO_FAULT_SHOWN, "SMs are kept for transfers on ROCm, HT") \
    X(ONE_QP, "one-qp", DBO_FAULT_ORDER, "all ubatches post to one exclusive queue of depth 1")  \
    X(NO_SM_PARTITION, "no-sm-partition", DBO_FAULT_TIME,                                        \
      "transfers and compute kernels both take all SMs")                                         \
    X(LL_ALL_SMS, "ll-all-sms", DBO_FAULT_TIME, "LL's send and receive kernels take every SM")   \
    X(LOST_WAKEUP, "lost-wakeup", DBO_FAULT_ORDER,                                               \
      "a thread clears its event after signalling the next instead of right after waking")       \
    X(UNEVEN_YIELDS, "uneven-yields", DBO_FAULT_ORDER, "the last ubatch yields once more")       \
    X(UBATCH_ERROR_PARKS_SIBLINGS, "ubatch-error-parks-siblings", DBO_FAULT_ORDER,               \
      "an error in one ubatch leaves the others waiting")                                        \
    X(PADDING_ROUTED, "padding-routed", DBO_FAULT_TIME, "padding rows are routed to experts")    \
    X(PROFILE_HALF_BATCH, "profile-half-batch", DBO_FAULT_REFUSED,                               \
      "peak memory is measured on the split batch only")                                         \
    X(LATE_RANK, "late-rank", DBO_FAULT_SHOWN, "one rank is late")

typedef enum dbo_fault_id {
#define DBO_FAULT_ENUM(enumerator, name, outcome, what) DBO_FAULT_##enumerator,
    DBO_FAULT_MAP(DBO_FAULT_ENUM)
#undef DBO_FAULT_ENUM
        DBO_FAULT_COUNT
} dbo_fault_id;

typedef struct dbo_fault {
    dbo_fault_id id;
    uint32_t rank;    /* whose fault it is, where it is one rank's */
    uint32_t late_us; /* late-rank */
    uint64_t reached; /* how often it made a difference so far */
} dbo_fault;

typedef struct dbo_fault_info {
    const char *name, *what;
    uint32_t outcome;
} dbo_fault_info;

/* id < DBO_FAULT_COUNT. */
dbo_fault_info dbo_fault_describe(dbo_fault_id id);

/* Parameter `index` of a fault, and what it is when it is not given; false past the last. */
bool dbo_fault_parameter(dbo_fault_id id, uint32_t index, const char **name, uint32_t *value);

/* "NAME" or "NAME:rank=1,us=200". An unknown name or parameter is answered with the nearest. */
dbo_status dbo_fault_parse(dbo_fault *out, const char *text, dbo_error *err);

/* Is this fault on? NULL: no fault is. In a build without faults, which is there to be compared
 * with, none ever is, and the compiler leaves out what asks. */
static inline bool dbo_fault_is(const dbo_fault *fault, dbo_fault_id id)
{
#ifdef DBO_NO_FAULTS
    (void)fault;
    (void)id;
    return false;
#else
    return __builtin_expect(fault != NULL, 0) && fault->id == id;
#endif
}
/* The same, at a place where it makes a difference: counts that. */
static inline bool dbo_fault_strikes(dbo_fault *fault, dbo_fault_id id)
{
    if (!dbo_fault_is(fault, id))
        return false;
    fault->reached++;
    return true;
}

/* Replaces *program by what the fault makes of it: a pure function of the program, which is left
 * alone if the fault is a rule or finds nothing to change. `first`: it is the forward's first
 * program, which runs once. */
dbo_status dbo_fault_rewrite(dbo_fault *fault, bool first, dbo_program *program, dbo_error *err);

#endif
