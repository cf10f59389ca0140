/* cupti_trace.h: what really ran on the GPU, as spans of the trace.
 *
 * CUPTI's activity records of kernels, copies and sets are matched to ops and pushed into a trace
 * sink. Outside graphs a record names the call that launched it, and the op is known between push
 * and pop of the launching thread (dbo_cupti_way says how the two are joined). In a capture the
 * ids of the nodes that an op creates are learnt as they are created, and followed to the nodes
 * of the executable graph, which are the ones that the records name; the step is that of the
 * replay. An op may yield several spans (one a record).
 *
 *     dbo_cupti *cupti = dbo_cupti_create(dbo_trace_sink(), &trace, &err);
 *     dbo_cuda_config config = {.cupti = cupti, ...};
 *     ... run, then wait for the device ...
 *     dbo_cupti_flush(cupti, &counts, &err);
 *     dbo_cupti_destroy(cupti);   // after the dbo_cuda
 *
 * CUPTI serves one client a process: a second create, or one under another profiler, fails. Its
 * calls back carry no argument, so the one trace of the process is a static of cupti_trace.c.
 * Times are CLOCK_MONOTONIC's, the same as host.now_ns. `sms` of a kernel's span is its number of
 * CTAs, at most the device's SMs: what it can occupy, not what it did.
 */
#ifndef DBO_GPU_CUPTI_TRACE_H
#define DBO_GPU_CUPTI_TRACE_H

#include "core/seam/seam.h"

#include <cuda_runtime_api.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_cupti dbo_cupti;

/* How a launching call is joined to the op that makes it. On CUDA 13.0 the last two lose ids (the
 * third only where a context existed before); they stay to be tried on other versions. */
typedef enum dbo_cupti_way {
    DBO_CUPTI_CALLBACK,          /* CUPTI calls back at the launching calls, which tell their id */
    DBO_CUPTI_EXTERNAL,          /* external correlation ids; needs a record of every API call */
    DBO_CUPTI_EXTERNAL_LAUNCHES, /* the same with records of the launching calls alone */
    DBO_CUPTI_EXTERNAL_BARE      /* the same without records of calls */
} dbo_cupti_way;

/* What was seen since the last flush. */
typedef struct dbo_cupti_counts {
    uint64_t records;   /* of kernels, copies, sets */
    uint64_t in_graphs; /* of these, run by a replay */
    uint64_t matched;   /* given to an op */
    uint64_t dropped;   /* lost by CUPTI for want of buffers */
} dbo_cupti_counts;

dbo_cupti *dbo_cupti_create(const dbo_trace_ops *sink, void *sink_self, dbo_cupti_way way,
                            dbo_error *err);
void dbo_cupti_destroy(dbo_cupti *cupti);

/* Spans of this CUDA stream carry this stream number and, outside graphs, this part. */
void dbo_cupti_add_stream(dbo_cupti *cupti, cudaStream_t cuda_stream, dbo_span_part part,
                          uint8_t stream);

/* Work issued by the calling thread between the two belongs to the op. Not nested. */
void dbo_cupti_push(dbo_cupti *cupti, dbo_op_id id, dbo_span_part part, uint8_t stream);
void dbo_cupti_pop(dbo_cupti *cupti);

/* Pushes the spans of all work that has completed, in order of their ends (equal ends: of their
 * starts, then ids). Blocks until CUPTI has handed over its buffers. */
dbo_status dbo_cupti_flush(dbo_cupti *cupti, dbo_cupti_counts *counts, dbo_error *err);

DBO_PUBLIC_END

#endif
