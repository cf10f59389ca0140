/* timed_ops.h: what the trace says of the ops of one step. Private to core/check/.
 *
 * Ops that ran at the same time may have slowed each other down: a kernel gets of the SMs of its
 * device what the others leave. While more are asked for than there are, all who ask go at the
 * same share of their speed. `work_ns` is what an op would have taken at its own speed: its time,
 * less what was lost to that.
 *
 *     DBO_TRY(dbo_timed_ops_read(ops, ranks, num_ranks, trace, step, total_sms, err));
 *     const dbo_timed_op *run = dbo_timed_op_find(&ops[0], id, DBO_SPAN_RUN);
 */
#ifndef DBO_CHECK_TIMED_OPS_H
#define DBO_CHECK_TIMED_OPS_H

#include "core/trace/trace.h"

typedef struct dbo_timed_op {
    uint64_t key; /* id without rank and step, and the part */
    int64_t start_ns, end_ns;
    int64_t work_ns;
    uint32_t sms;
    uint32_t pieces; /* of a flight that waited for a peer in between; this is the first */
} dbo_timed_op;

/* Of one rank. */
typedef struct dbo_timed_ops {
    dbo_timed_op *ops; /* by key */
    uint32_t count;
    int64_t crowded_ns; /* so long more SMs were asked for than there are */
} dbo_timed_ops;

/* Reads the spans of the step of each of `ranks`, (num_ranks), as the trace calls them, into
 * out (num_ranks). total_sms of a device; 0: not known, nobody was slowed. The caller's to fini,
 * also on failure. */
dbo_status dbo_timed_ops_read(dbo_timed_ops *out, const uint32_t *ranks, uint32_t num_ranks,
                              const dbo_trace *trace, uint32_t step, uint32_t total_sms,
                              dbo_error *err);
void dbo_timed_ops_fini(dbo_timed_ops *ops);

/* NULL when there is none. The rank and step of the id do not matter. */
const dbo_timed_op *dbo_timed_op_find(const dbo_timed_ops *ops, dbo_op_id id, dbo_span_part part);

#endif
