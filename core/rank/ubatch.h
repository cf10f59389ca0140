/* ubatch.h: the context of one microbatch: turns, streams, events, receive hook.
 *
 * The calls that take no argument are the public context API: model code calls them
 * unconditionally; outside an ubatch they do nothing and succeed. They act on the running ubatch.
 *
 *     DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
 *
 * does: record compute_done; hand the turn over; on resume the comm stream waits for compute_done.
 * The record precedes the hand-off and the wait follows it, so the comm work waits for the own
 * compute only, not for what the sibling has queued meanwhile. A hook registered by ubatch i is run
 * by the *next* ubatch's turn (dbo_maybe_run_recv_hook), or by its exit.
 *
 * Calls that yield return DBO_ABORTED once a sibling has failed: return from the ubatch at once.
 */
#ifndef DBO_UBATCH_H
#define DBO_UBATCH_H

#include "core/base/status.h"
#include "core/seam/seam.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_rank dbo_rank;
typedef struct dbo_ubatch dbo_ubatch;
typedef struct dbo_forward_context dbo_forward_context;

typedef struct dbo_recv_hook {
    dbo_status (*run)(void *self, uint64_t arg); /* NULL: no hook */
    void *self;
    uint64_t arg;
} dbo_recv_hook;

/* What model code may ask about the batch that it works on; one is installed at a time. */
struct dbo_forward_context {
    uint32_t step, ubatch;
    const void *metadata; /* the ubatch's attention metadata; opaque here */
};

struct dbo_ubatch {
    uint32_t id, count;
    dbo_rank *rank;
    dbo_ubatch *ring;          /* all `count` ubatches of this forward, by id */
    dbo_stream compute, comm;  /* device streams, the same for all */
    dbo_stream current_stream; /* what the context believes; saved at a yield */
    dbo_stream thread_stream;  /* what the ubatch's thread really has: where its work goes */
    dbo_event compute_done, comm_done;
    dbo_recv_hook recv_hook;
    dbo_forward_context forward;
    bool exited;
};

bool dbo_enabled(void);
uint32_t dbo_current_ubatch_id(void); /* 0 outside */
dbo_status dbo_yield(void);
dbo_status dbo_yield_and_switch_from_compute_to_comm(void);
dbo_status dbo_yield_and_switch_from_comm_to_compute(void);
dbo_status dbo_switch_to_comm(void);
dbo_status dbo_switch_to_compute(void);
dbo_status dbo_switch_to_comm_sync(void);
dbo_status dbo_switch_to_compute_sync(void);
dbo_status dbo_register_recv_hook(dbo_recv_hook hook);
dbo_status dbo_maybe_run_recv_hook(void);
/* Records `event` on the compute stream: the "previous event" of a transfer. */
dbo_status dbo_get_previous_event(dbo_event event);
/* Makes any stream current, without an event; programs with more than two streams use it. */
dbo_status dbo_switch_to_stream(dbo_stream stream);
/* The device stream that work of the running ubatch goes to; 0 outside an ubatch. */
dbo_stream dbo_current_stream(void);

/* ---- for the wrapper: run fn in `count` ubatches of a rank ---- */

typedef dbo_status (*dbo_ubatch_fn)(dbo_ubatch *ubatch, void *arg, dbo_error *err);

/* Enters, runs and exits all ubatches on the rank's executor. On exit an ubatch runs its pending
 * hook, then signals the next. Events are the rank's, created at its first use. */
dbo_status dbo_ubatches_run(dbo_rank *rank, uint32_t count, uint32_t step, dbo_ubatch_fn fn,
                            void *arg, dbo_error *err);

DBO_PUBLIC_END

#endif
