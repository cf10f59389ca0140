/* faults.h: the pitfalls of two microbatches, each a switch by name.
 *
 * A fault makes an engine misbehave in exactly one way, so that a person can see what that looks
 * like and a checker can be tried on it. The engine knows of none: a fault is what is installed
 * around it, from outside (dbo_fault_kind): rules of a step that are not the engine's, hooks around
 * a rank's seam, rewritten programs, a machine that is set up wrongly. A row of DBO_FAULT_MAP and a
 * dbo_fault_kind of that name, beside the functions that it installs, are a fault.
 *
 *     dbo_fault given, own;
 *     DBO_TRY(dbo_fault_parse(&given, "late-rank:rank=1,us=200", err));
 *     dbo_fault *fault = dbo_fault_begin(&own, &given, &deployment);  each run has one of its own
 *     dbo_fault_set_up(fault, &config, &hardware);        the machine, before it is opened
 *     DBO_TRY(dbo_fault_attach(fault, rank, &seam, err)); each rank's, before dbo_rank_init
 *     ... run ...
 *     if (fault->reached == 0) it made no difference: the run cannot reach it
 *     dbo_fault_end(fault);                               after the ranks' dbo_rank_fini
 *
 * A run without a fault does none of this. In a build without faults (DBO_FAULTS=OFF) none of
 * them is linked, and dbo_fault_parse says so (lab/no_faults.c). What checks a run does not get to
 * see its fault. Not thread-safe: ranks of a process run one at a time.
 */
#ifndef DBO_FAULTS_H
#define DBO_FAULTS_H

#include "core/base/vec.h"
#include "core/seam/tap.h"
#include "core/step/deployment.h"
#include "core/step/step_rules.h"
#include "sim/hardware.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What comes of a fault; several may. */
#define DBO_FAULT_ORDER   1u  /* the order of events is wrong: the checker finds it */
#define DBO_FAULT_ROWS    2u  /* the outputs differ from those without DBO */
#define DBO_FAULT_TIME    4u  /* right, but slower */
#define DBO_FAULT_REFUSED 8u  /* the engine or the device refuses */
#define DBO_FAULT_SHOWN   16u /* no defect: it is displayed */

/* X(enumerator, its kind is dbo_fault_..., name, outcome); what goes wrong: app/say/faults.txt */
#define DBO_FAULT_MAP(X)                                                                           \
    X(VOTE_SKIP, vote_skip, "vote-skip", DBO_FAULT_ORDER)                                          \
    X(EMPTY_RANK_SKIPS_STEP, empty_rank_skips_step, "empty-rank-skips-step", DBO_FAULT_ORDER)      \
    X(IDLE_OPT_OUT, idle_opt_out, "idle-opt-out", DBO_FAULT_ORDER)                                 \
    X(PREFIX_NO_VETO, prefix_no_veto, "prefix-no-veto", DBO_FAULT_ORDER | DBO_FAULT_ROWS)          \
    X(EVENT_AFTER_YIELD, event_after_yield, "event-after-yield", DBO_FAULT_TIME)                   \
    X(YIELD_AFTER_DISPATCH, yield_after_dispatch, "yield-after-dispatch", DBO_FAULT_TIME)          \
    X(NO_COMPUTE_WAIT, no_compute_wait, "no-compute-wait", DBO_FAULT_ORDER | DBO_FAULT_ROWS)       \
    X(NO_COMM_WAIT, no_comm_wait, "no-comm-wait", DBO_FAULT_ORDER | DBO_FAULT_ROWS)                \
    X(SHARED_EVENT, shared_event, "shared-event", DBO_FAULT_TIME)                                  \
    X(NO_RECORD_STREAM, no_record_stream, "no-record-stream", DBO_FAULT_ORDER | DBO_FAULT_ROWS)    \
    X(WRONG_POOL, wrong_pool, "wrong-pool", DBO_FAULT_ORDER)                                       \
    X(SHARED_HANDLE, shared_handle, "shared-handle", DBO_FAULT_ORDER | DBO_FAULT_ROWS)             \
    X(TWO_SLOT_HANDLES, two_slot_handles, "two-slot-handles", DBO_FAULT_REFUSED)                   \
    X(DOUBLE_ASYNC, double_async, "double-async", DBO_FAULT_ORDER)                                 \
    X(UNSORTED_OUTPUTS, unsorted_outputs, "unsorted-outputs", DBO_FAULT_ROWS)                      \
    X(SEQ_LENS_IN_PLACE, seq_lens_in_place, "seq-lens-in-place", DBO_FAULT_ORDER | DBO_FAULT_ROWS) \
    X(GRAPH_KEY_FIRST_TWO, graph_key_first_two, "graph-key-first-two", DBO_FAULT_ROWS)             \
    X(GRAPH_EMPTY_UBATCH, graph_empty_ubatch, "graph-empty-ubatch", DBO_FAULT_ORDER)               \
    X(REPLAY_STALE_INPUT, replay_stale_input, "replay-stale-input", DBO_FAULT_ROWS)                \
    X(CAPTURE_WHILE_SERVING, capture_while_serving, "capture-while-serving", DBO_FAULT_TIME)       \
    X(HOST_SYNC_IN_CAPTURE, host_sync_in_capture, "host-sync-in-capture", DBO_FAULT_REFUSED)       \
    X(LAZY_INIT_IN_CAPTURE, lazy_init_in_capture, "lazy-init-in-capture", DBO_FAULT_REFUSED)       \
    X(UNJOINED_COMM_STREAM, unjoined_comm_stream, "unjoined-comm-stream", DBO_FAULT_REFUSED)       \
    X(LL_THREE_IN_FLIGHT, ll_three_in_flight, "ll-three-in-flight", DBO_FAULT_ORDER)               \
    X(WORKSPACE_REUSE, workspace_reuse, "workspace-reuse", DBO_FAULT_ORDER | DBO_FAULT_ROWS)       \
    X(ROCM_COMM_SMS, rocm_comm_sms, "rocm-comm-sms", DBO_FAULT_SHOWN)                              \
    X(ONE_QP, one_qp, "one-qp", DBO_FAULT_ORDER)                                                   \
    X(NO_SM_PARTITION, no_sm_partition, "no-sm-partition", DBO_FAULT_TIME)                         \
    X(LL_ALL_SMS, ll_all_sms, "ll-all-sms", DBO_FAULT_TIME)                                        \
    X(LOST_WAKEUP, lost_wakeup, "lost-wakeup", DBO_FAULT_ORDER)                                    \
    X(UNEVEN_YIELDS, uneven_yields, "uneven-yields", DBO_FAULT_ORDER)                              \
    X(UBATCH_ERROR_PARKS_SIBLINGS, ubatch_error_parks_siblings, "ubatch-error-parks-siblings",     \
      DBO_FAULT_ORDER)                                                                             \
    X(PADDING_ROUTED, padding_routed, "padding-routed", DBO_FAULT_TIME)                            \
    X(PROFILE_HALF_BATCH, profile_half_batch, "profile-half-batch", DBO_FAULT_REFUSED)             \
    X(LATE_RANK, late_rank, "late-rank", DBO_FAULT_SHOWN)

typedef enum dbo_fault_id {
#define DBO_FAULT_ENUM(enumerator, ...) DBO_FAULT_##enumerator,
    DBO_FAULT_MAP(DBO_FAULT_ENUM)
#undef DBO_FAULT_ENUM
        DBO_FAULT_COUNT
} dbo_fault_id;

typedef struct dbo_fault dbo_fault;

typedef struct dbo_fault_setting {
    const char *name;
    size_t offset;       /* of a uint32_t in dbo_fault */
    uint32_t max, value; /* value: when it is not given */
} dbo_fault_setting;

#define DBO_FAULT_SETTINGS 2u

typedef struct dbo_rewrite dbo_rewrite; /* rewrite.h */

/* What a fault installs; NULL: nothing of that kind. */
typedef struct dbo_fault_kind {
    dbo_fault_setting settings[DBO_FAULT_SETTINGS]; /* name NULL: no more */
    dbo_step_rules rules;       /* slots that take the place of the engine's; self: the dbo_fault */
    const dbo_rewrite *rewrite; /* of programs, for the slot `program` */
    const dbo_tap_hooks *hooks; /* around every rank's seam; self: a dbo_fault_tap */
    void (*set_up)(dbo_fault *fault, const dbo_config *config, dbo_hardware *hardware);
    bool stands_out; /* fault->rank is unlike its peers */
} dbo_fault_kind;

/* A hook's self: one a seam. */
typedef struct dbo_fault_tap {
    dbo_tap tap;
    dbo_fault *fault;
    uint32_t count; /* the hooks', 0 at first */
    struct dbo_fault_tap *next;
} dbo_fault_tap;

/* What a fault remembers of a rank from step to step. */
typedef struct dbo_fault_note {
    uint32_t rank;
    uint64_t key, value;
} dbo_fault_note;

/* A fault of one run. A copy of one that no run has used is another such. */
struct dbo_fault {
    dbo_fault_id id;
    const dbo_fault_kind *kind;
    uint32_t rank;        /* whose fault it is, where it is one rank's */
    uint32_t late_us;     /* late-rank */
    uint64_t reached;     /* how often it made a difference so far */
    dbo_step_rules rules; /* the engine's, but for the kind's */
    dbo_fault_tap *taps;
    DBO_VEC(dbo_fault_note) notes;
    dbo_request *requests; /* scratch of a step */
};

typedef struct dbo_fault_info {
    const char *name;
    uint32_t outcome;
} dbo_fault_info;

/* Can faults be switched on in this build? */
bool dbo_faults_linked(void);

/* id < DBO_FAULT_COUNT. */
dbo_fault_info dbo_fault_describe(dbo_fault_id id);

/* Parameter `index` of a fault, and what it is when it is not given; false past the last. */
bool dbo_fault_parameter(dbo_fault_id id, uint32_t index, const char **name, uint32_t *value);

/* "NAME" or "NAME:rank=1,us=200". DBO_INVALID: an unknown name, answered with the nearest, or a
 * parameter that is unknown or out of range. DBO_UNSUPPORTED: this build has no faults. */
dbo_status dbo_fault_parse(dbo_fault *out, const char *text, dbo_error *err);

/* ---- a run's; `fault` NULL: it has none ---- */

/* The run's own copy of a fault, in *own, whose rules the deployment gets. */
static inline dbo_fault *dbo_fault_begin(dbo_fault *own, const dbo_fault *given,
                                         dbo_deployment *deployment)
{
    if (!given)
        return NULL;
    *own = *given;
    deployment->rules = &own->rules;
    deployment->rules_self = own;
    return own;
}
/* Installs the hooks of a dbo_fault around the seam of a rank, a checked one (dbo_seam_check); fits
 * a dbo_attachment (lab/world/world.h). */
dbo_status dbo_fault_attach(void *fault, uint32_t rank, dbo_seam *seam, dbo_error *err);
void dbo_fault_end(dbo_fault *fault);

static inline void dbo_fault_set_up(dbo_fault *fault, const dbo_config *config,
                                    dbo_hardware *hardware)
{
    if (fault && fault->kind->set_up)
        fault->kind->set_up(fault, config, hardware);
}
/* Is the rank unlike all others, so that it cannot stand for one of them? */
static inline bool dbo_fault_stands_out(const dbo_fault *fault, uint32_t rank)
{
    return fault && fault->kind->stands_out && fault->rank == rank;
}
/* How much later than its peers the rank launches a step. */
static inline uint32_t dbo_fault_late_us(const dbo_fault *fault, uint32_t rank)
{
    return dbo_fault_stands_out(fault, rank) ? fault->late_us : 0;
}

/* ---- for the faults themselves ---- */

#define DBO_FAULT_DECLARE(enumerator, symbol, ...) extern const dbo_fault_kind dbo_fault_##symbol;
DBO_FAULT_MAP(DBO_FAULT_DECLARE)
#undef DBO_FAULT_DECLARE

/* What the fault keeps for a rank and a key of its own; 0 at first. The pointer is valid until the
 * next call; NULL: no memory. */
uint64_t dbo_fault_noted(const dbo_fault *fault, uint32_t rank, uint64_t key);
uint64_t *dbo_fault_note_of(dbo_fault *fault, uint32_t rank, uint64_t key);

#endif
