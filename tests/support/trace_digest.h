/* trace_digest.h: a trace as one number: FNV-1a over every field of every span, issue and mark, so
 * that it does not depend on the layout of structs or the order of bytes.
 */
#ifndef DBO_TESTS_TRACE_DIGEST_H
#define DBO_TESTS_TRACE_DIGEST_H

#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define DIGEST_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t digest_add(uint64_t digest, uint64_t value)
{
    for (int byte = 0; byte < 8; byte++)
        digest = (digest ^ (value >> 8 * byte & 0xff)) * UINT64_C(0x100000001b3);
    return digest;
}

static inline uint64_t digest_span(uint64_t digest, const dbo_span *span, dbo_op_id mask)
{
    digest = digest_add(digest, span->id & mask);
    digest = digest_add(digest, (uint64_t)span->start_ns);
    digest = digest_add(digest, (uint64_t)span->end_ns);
    digest = digest_add(digest, (uint64_t)span->bytes << 24 | (uint64_t)span->sms << 12 |
                                    (uint64_t)span->part << 8 | (uint64_t)span->stream);
    return digest;
}

static inline uint64_t digest_issue(uint64_t digest, const dbo_issue *issue, dbo_op_id mask)
{
    digest = digest_add(digest, issue->id & mask);
    digest = digest_add(digest, (uint64_t)issue->host_ns);
    return digest_add(digest, (uint64_t)issue->part << 8 | issue->stream);
}

static inline uint64_t digest_mark(uint64_t digest, const dbo_mark *mark)
{
    digest = digest_add(digest, (uint64_t)mark->host_ns);
    return digest_add(digest,
                      (uint64_t)mark->step << 16 | (uint64_t)mark->ubatch << 8 | mark->kind);
}

/* Everything, in the trace's order. */
static inline uint64_t digest_trace(uint64_t digest, const dbo_trace *trace)
{
    digest = digest_add(digest, trace->num_spans);
    for (uint64_t i = 0; i < trace->num_spans; i++)
        digest = digest_span(digest, dbo_trace_span(trace, i), UINT64_MAX);
    digest = digest_add(digest, trace->num_issues);
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        digest = digest_issue(digest, dbo_trace_issue(trace, i), UINT64_MAX);
        digest = digest_add(digest, dbo_trace_issue(trace, i)->marks);
    }
    digest = digest_add(digest, trace->num_marks);
    for (uint64_t i = 0; i < trace->num_marks; i++) {
        digest = digest_mark(digest, dbo_trace_mark(trace, i));
        digest = digest_add(digest, dbo_trace_mark(trace, i)->rank);
    }
    return digest;
}

#define DIGEST_LANES 15 /* compute, comm, network; five parts of spans on each */

/* What one rank did, whatever its number: in host order, and on each lane in the order of ends.
 * Lanes apart, because between them a tie is in the order of ranks. Parking for no time at all is
 * left out: whether a host looks before or after something that happens in the same ns is such a
 * tie, too. */
static inline uint64_t digest_rank(const dbo_trace *trace, uint32_t rank)
{
    const dbo_op_id without_rank = ~dbo_op_id_make(0, DBO_MAX_RANKS - 1, 0, 0, 0, 0);
    uint64_t lanes[DIGEST_LANES] = {0}, digest = DIGEST_START;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        uint64_t stream = span->stream == DBO_NETWORK_STREAM ? 2 : span->stream;
        uint64_t *lane = &lanes[(span->part * 3 + stream) % DIGEST_LANES];
        if (dbo_op_id_rank(span->id) == rank)
            *lane = digest_span(*lane, span, without_rank);
    }
    for (int lane = 0; lane < DIGEST_LANES; lane++)
        digest = digest_add(digest, lanes[lane]);
    for (uint64_t i = 0; i < trace->num_issues; i++)
        if (dbo_op_id_rank(dbo_trace_issue(trace, i)->id) == rank)
            digest = digest_issue(digest, dbo_trace_issue(trace, i), without_rank);
    const dbo_mark *parked = NULL;
    for (uint64_t i = 0; i < trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(trace, i);
        if (mark->rank != rank)
            continue;
        if (mark->kind == DBO_MARK_PARK) {
            parked = mark;
            continue;
        }
        bool for_no_time = parked && parked->host_ns == mark->host_ns;
        if (parked && !for_no_time)
            digest = digest_mark(digest, parked);
        if (mark->kind != DBO_MARK_UNPARK || !for_no_time)
            digest = digest_mark(digest, mark);
        parked = NULL;
    }
    return digest;
}

#endif
