/* retime.h: one step of one rank as a schedule that can be played again under other rules. Private
 * to core/check/.
 */
#ifndef DBO_CHECK_RETIME_H
#define DBO_CHECK_RETIME_H

#include "core/check/recorder.h"
#include "core/trace.h"

/* What a span says of an op, and when it was issued. */
typedef struct dbo_timed_op {
    uint64_t key; /* id without rank and step, and the part */
    int64_t start_ns, end_ns, issued_ns;
    int64_t parked_ns;  /* how long the host was blocked between the issue before and this one */
    int64_t resumed_ns; /* when it was last unblocked before this issue, or INT64_MIN */
} dbo_timed_op;

typedef struct dbo_timed_ops {
    dbo_timed_op *ops; /* by key */
    uint32_t count;
    int64_t begin_ns, end_ns; /* of the step */
    int64_t transfers_ns, experts_ns;
} dbo_timed_ops;

/* Reads the trace. Parts: RUN, SEND and RECV. */
dbo_status dbo_timed_ops_init(dbo_timed_ops *out, const dbo_trace *trace, uint32_t rank,
                              uint32_t step, dbo_error *err);
void dbo_timed_ops_fini(dbo_timed_ops *ops);

/* NULL when there is none. */
const dbo_timed_op *dbo_timed_op_find(const dbo_timed_ops *ops, dbo_op_id id, dbo_span_part part);

typedef struct dbo_retime_rules {
    bool own_work;  /* an event covers the work of the ubatch that waits for it, no more */
    bool own_waits; /* what the host waits for holds up the ubatch that waits, no other */
    bool free_host; /* issuing takes no time */
} dbo_retime_rules;

/* The wait that cost the most, as the rules were. */
typedef struct dbo_retime_worst {
    int64_t ns;
    dbo_op_id waiter, waited_for;
} dbo_retime_worst;

/* How long the calls [first, end) of this rank take; 0: nothing was issued in them. `worst` (or
 * NULL): of waits for another ubatch's work, and of the host's waits. */
dbo_status dbo_retime(const dbo_recorder *log, uint64_t first, uint64_t end, uint32_t rank,
                      const dbo_timed_ops *ops, const dbo_retime_rules *rules, int64_t *out_ns,
                      dbo_retime_worst *worst_event, dbo_retime_worst *worst_host, dbo_error *err);

#endif
