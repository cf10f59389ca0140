/* trace.h: what happened in a run, kept: spans of ops, issues, host marks.
 *
 * A trace is a sink for the seam (dbo_trace_sink) and a set of chunked arrays to read back. Records
 * stay in the order in which they came. Issues and marks of one rank come in host order. Spans of
 * one stream come in the order of their starts, and a span behind those that it waited for; more
 * cannot be relied on: a back end that knows an end ahead of its time tells it at once. Appending
 * costs a store and a bound check. Not thread-safe: one trace belongs to one world, in which one
 * context runs at a time.
 *
 *     dbo_trace trace;
 *     dbo_trace_init(&trace);
 *     seam.trace = dbo_trace_sink();  seam.trace_self = &trace;
 *     ... run ...
 *     for (uint64_t i = 0; i < trace.num_spans; i++)
 *         use(dbo_trace_span(&trace, i));
 *     dbo_trace_fini(&trace);
 *
 * Out of memory while appending sets trace.failed and drops the record: the run's owner checks it
 * once at the end.
 */
#ifndef DBO_TRACE_H
#define DBO_TRACE_H

#include "core/seam/seam.h"

#include <stdbool.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_issue {
    dbo_op_id id;
    int64_t host_ns;
    uint8_t part; /* dbo_span_part: RUN, SEND or RECV */
    uint8_t stream;
    uint16_t reserved;
    uint32_t marks; /* pushed before it: in whose turn it was, also where the host takes no time */
} dbo_issue;

#define DBO_TRACE_CHUNK_BITS 13 /* records a chunk: 8192 */

typedef struct dbo_trace_list {
    void **chunks;
    uint32_t num_chunks, cap_chunks;
} dbo_trace_list;

typedef struct dbo_trace {
    uint64_t num_spans, num_issues, num_marks;
    dbo_trace_list spans, issues, marks;
    bool failed;
    bool keep_issues; /* default true; false drops issues and marks */
} dbo_trace;

void dbo_trace_init(dbo_trace *trace);
void dbo_trace_fini(dbo_trace *trace);
/* The seam table whose self is a dbo_trace. */
const dbo_trace_ops *dbo_trace_sink(void);
void dbo_trace_add_span(dbo_trace *trace, const dbo_span *span);
/* Rank r becomes names[r] in every record; names is (more than the largest rank in the trace). */
void dbo_trace_rename_ranks(dbo_trace *trace, const uint32_t *names);

static inline const dbo_span *dbo_trace_span(const dbo_trace *trace, uint64_t i)
{
    return (const dbo_span *)trace->spans.chunks[i >> DBO_TRACE_CHUNK_BITS] +
           (i & ((1u << DBO_TRACE_CHUNK_BITS) - 1));
}
static inline const dbo_issue *dbo_trace_issue(const dbo_trace *trace, uint64_t i)
{
    return (const dbo_issue *)trace->issues.chunks[i >> DBO_TRACE_CHUNK_BITS] +
           (i & ((1u << DBO_TRACE_CHUNK_BITS) - 1));
}
static inline const dbo_mark *dbo_trace_mark(const dbo_trace *trace, uint64_t i)
{
    return (const dbo_mark *)trace->marks.chunks[i >> DBO_TRACE_CHUNK_BITS] +
           (i & ((1u << DBO_TRACE_CHUNK_BITS) - 1));
}

DBO_PUBLIC_END

#endif
