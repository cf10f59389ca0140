/* hand_trace.h: traces of small schedules, made by hand through the trace's own sink.
 *
 * A `hand` is two FIFO streams, a host that issues for nothing (or `issue_ns` an op), and the two
 * schedules of the engine written out. Op durations are in `us[kind]`; everything is in whole us,
 * so that expected values can be worked out on paper.
 */
#ifndef DBO_TESTS_HAND_TRACE_H
#define DBO_TESTS_HAND_TRACE_H

#include "core/trace/trace.h"

#include <string.h>

typedef struct hand {
    dbo_trace *trace;
    uint32_t rank, step, layers, ubatches;
    int64_t us[DBO_KIND_COUNT];
    int64_t send_us, recv_us, issue_ns;
    int64_t host_ns;
    int64_t stream_ns[2];
    int64_t ready_ns[DBO_MAX_UBATCHES]; /* what the next op of the ubatch waits for */
    int64_t flight_end_ns[DBO_MAX_UBATCHES];
    bool only_issues, only_spans;
} hand;

static inline void hand_init(hand *h, dbo_trace *trace, uint32_t layers, uint32_t ubatches)
{
    memset(h, 0, sizeof *h);
    h->trace = trace;
    h->layers = layers;
    h->ubatches = ubatches;
    h->us[DBO_KIND_A0] = 20;
    h->us[DBO_KIND_A1] = 40;
    h->us[DBO_KIND_DISPATCH] = 50;
    h->us[DBO_KIND_MLP] = 60;
    h->us[DBO_KIND_COMBINE] = 70;
    h->us[DBO_KIND_SHARED] = 10;
}

static inline dbo_op_id hand_id(const hand *h, uint32_t layer, uint32_t u, uint32_t kind)
{
    return dbo_op_id_make(h->step, h->rank, layer, u, kind, 0);
}

static inline void hand_issue(hand *h, dbo_op_id id, dbo_span_part part, uint32_t stream)
{
    if (!h->only_spans)
        dbo_trace_sink()->op_issued(h->trace, id, part, stream, h->host_ns);
    h->host_ns += h->issue_ns;
}

static inline void hand_span(hand *h, dbo_op_id id, dbo_span_part part, uint32_t stream,
                             int64_t start_ns, int64_t end_ns)
{
    dbo_span span = {.id = id, .start_ns = start_ns, .end_ns = end_ns};
    span.part = (uint64_t)part & 0xfu;
    span.stream = stream & 0xffu;
    if (!h->only_issues)
        dbo_trace_sink()->span(h->trace, &span);
}

static inline void hand_mark(hand *h, uint32_t kind, uint32_t ubatch)
{
    dbo_mark mark = {.host_ns = h->host_ns,
                     .rank = (uint16_t)h->rank,
                     .ubatch = (uint8_t)ubatch,
                     .kind = (uint8_t)kind,
                     .step = h->step};
    dbo_trace_sink()->mark(h->trace, &mark);
}

/* One op on a stream, not before `after_ns`; returns its end. */
static inline int64_t hand_op(hand *h, uint32_t layer, uint32_t u, uint32_t kind, uint32_t stream,
                              int64_t after_ns)
{
    dbo_op_id id = hand_id(h, layer, u, kind);
    hand_issue(h, id, DBO_SPAN_RUN, stream);
    int64_t start = h->stream_ns[stream] > after_ns ? h->stream_ns[stream] : after_ns;
    if (h->host_ns > start)
        start = h->host_ns;
    int64_t end = start + h->us[kind] * 1000;
    hand_span(h, id, DBO_SPAN_RUN, stream, start, end);
    h->stream_ns[stream] = end;
    return end;
}

static inline void hand_attention(hand *h, uint32_t layer, uint32_t u)
{
    hand_mark(h, DBO_MARK_TURN, u);
    hand_op(h, layer, u, DBO_KIND_A0, 0, h->ready_ns[u]);
    h->ready_ns[u] = hand_op(h, layer, u, DBO_KIND_A1, 0, 0);
}

/* Rendezvous transfers on a comm stream; three turns a layer. */
static inline void hand_ht(hand *h)
{
    hand_mark(h, DBO_MARK_STEP_BEGIN, DBO_MARK_MAIN);
    for (uint32_t layer = 0; layer < h->layers; layer++) {
        for (uint32_t u = 0; u < h->ubatches; u++)
            hand_attention(h, layer, u);
        for (uint32_t u = 0; u < h->ubatches; u++) {
            hand_mark(h, DBO_MARK_TURN, u);
            hand_op(h, layer, u, DBO_KIND_LAYOUT, 1, h->ready_ns[u]);
            h->ready_ns[u] = hand_op(h, layer, u, DBO_KIND_DISPATCH, 1, h->ready_ns[u]);
            h->ready_ns[u] = hand_op(h, layer, u, DBO_KIND_MLP, 0, h->ready_ns[u]);
        }
        for (uint32_t u = 0; u < h->ubatches; u++) {
            hand_mark(h, DBO_MARK_TURN, u);
            h->ready_ns[u] = hand_op(h, layer, u, DBO_KIND_COMBINE, 1, h->ready_ns[u]);
            hand_op(h, layer, u, DBO_KIND_SHARED, 0, 0);
        }
    }
}

static inline void hand_send(hand *h, uint32_t layer, uint32_t u, uint32_t kind)
{
    dbo_op_id id = hand_id(h, layer, u, kind);
    int64_t start = h->stream_ns[0], end = start + h->send_us * 1000;
    hand_issue(h, id, DBO_SPAN_SEND, 0);
    hand_span(h, id, DBO_SPAN_SEND, 0, start, end);
    h->stream_ns[0] = end;
    h->flight_end_ns[u] = start + h->us[kind] * 1000;
    hand_span(h, id, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, start, h->flight_end_ns[u]);
}

static inline void hand_recv(hand *h, uint32_t layer, uint32_t u, uint32_t kind)
{
    dbo_op_id id = hand_id(h, layer, u, kind);
    int64_t start = h->stream_ns[0] > h->flight_end_ns[u] ? h->stream_ns[0] : h->flight_end_ns[u];
    hand_issue(h, id, DBO_SPAN_RECV, 0);
    hand_span(h, id, DBO_SPAN_RECV, 0, start, start + h->recv_us * 1000);
    h->stream_ns[0] = start + h->recv_us * 1000;
}

/* One-sided transfers: all on the compute stream, a receive runs in the next ubatch's turn. */
static inline void hand_ll(hand *h)
{
    uint32_t last = h->ubatches - 1;
    hand_mark(h, DBO_MARK_STEP_BEGIN, DBO_MARK_MAIN);
    for (uint32_t layer = 0; layer < h->layers; layer++) {
        for (uint32_t u = 0; u < h->ubatches; u++) {
            hand_attention(h, layer, u);
            if (u > 0)
                hand_recv(h, layer, u - 1, DBO_KIND_DISPATCH);
            else if (layer > 0 && last > 0)
                hand_recv(h, layer - 1, last, DBO_KIND_COMBINE);
            hand_send(h, layer, u, DBO_KIND_DISPATCH);
            if (last == 0)
                hand_recv(h, layer, u, DBO_KIND_DISPATCH);
        }
        for (uint32_t u = 0; u < h->ubatches; u++) {
            hand_mark(h, DBO_MARK_TURN, u);
            hand_op(h, layer, u, DBO_KIND_QUANT, 0, 0);
            hand_op(h, layer, u, DBO_KIND_MLP, 0, 0);
            if (u > 0)
                hand_recv(h, layer, u - 1, DBO_KIND_COMBINE);
            else if (last > 0)
                hand_recv(h, layer, last, DBO_KIND_DISPATCH);
            hand_send(h, layer, u, DBO_KIND_COMBINE);
            hand_op(h, layer, u, DBO_KIND_SHARED, 0, 0);
            if (last == 0)
                hand_recv(h, layer, u, DBO_KIND_COMBINE);
        }
    }
    if (last > 0)
        hand_recv(h, h->layers - 1, last, DBO_KIND_COMBINE);
}

/* The host waits for the device and the step ends. */
static inline void hand_end(hand *h)
{
    int64_t end = h->stream_ns[0] > h->stream_ns[1] ? h->stream_ns[0] : h->stream_ns[1];
    hand_mark(h, DBO_MARK_PARK, DBO_MARK_MAIN);
    if (end > h->host_ns)
        h->host_ns = end;
    hand_mark(h, DBO_MARK_UNPARK, DBO_MARK_MAIN);
    hand_mark(h, DBO_MARK_STEP_END, DBO_MARK_MAIN);
}

#endif
