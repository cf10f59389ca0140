/* sink.h: what has happened: the seam's trace table, a sink that others push into, and its words.
 *
 * The back end pushes spans (an op has run from here to there) and issues; who hands over turns and
 * gives buffers their memory pushes what no stream sees. For traces, logs and checkers. What is
 * given is borrowed for the call; slots that are optional may be NULL.
 *
 *     static void span(void *self, const dbo_span *span)
 *     {
 *         *(int64_t *)self += span->end_ns - span->start_ns;
 *     }
 *     static const dbo_trace_ops busy = {.span = span};
 *     seam.trace = &busy;
 *     seam.trace_self = &busy_ns;
 */
#ifndef DBO_SINK_H
#define DBO_SINK_H

#include "core/seam/op.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef uint32_t dbo_stream;

typedef enum dbo_span_part {
    DBO_SPAN_RUN,    /* the op runs; a rendezvous transfer: bytes move */
    DBO_SPAN_WAIT,   /* a transfer has begun but no byte can move: a peer has not posted */
    DBO_SPAN_SEND,   /* LL: the sending kernel */
    DBO_SPAN_FLIGHT, /* LL: bytes in the network, first sent to last received here */
    DBO_SPAN_RECV    /* LL: the receiving kernel */
} dbo_span_part;

#define DBO_NETWORK_STREAM 255u /* the `stream` of a flight: no stream at all */

#define DBO_SPAN_MAX_BYTES ((UINT64_C(1) << 40) - 1)

#ifdef __clang__ /* in C++ it says what is an extension in spite of __extension__ */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types"
#endif

/* 32 bytes. Times are the device's, in ns. */
typedef struct dbo_span {
    dbo_op_id id;
    int64_t start_ns, end_ns;
    union {
        __extension__ struct {   /* which C++ has not, but its compilers */
            uint64_t bytes : 40; /* moved by a transfer, else 0 */
            uint64_t sms : 12;   /* occupied while running; on a GPU the most that it can occupy */
            uint64_t part : 4;   /* dbo_span_part */
            uint64_t stream : 8; /* that it was issued to, at a replay too */
        };
        uint64_t packed; /* all four, the first in the lowest bits */
    };
} dbo_span;

#ifdef __clang__
#pragma clang diagnostic pop
#endif

typedef enum dbo_mark_kind {
    DBO_MARK_TURN,       /* an ubatch takes the turn (ubatch DBO_MARK_MAIN: the runner) */
    DBO_MARK_PARK,       /* the rank blocks */
    DBO_MARK_UNPARK,     /* and goes on */
    DBO_MARK_STEP_BEGIN, /* a step begins */
    DBO_MARK_STEP_END,   /* all its work has been waited for */
    DBO_MARK_REPLAY      /* a graph replay is launched */
} dbo_mark_kind;

#define DBO_MARK_MAIN 255u

typedef struct dbo_mark {
    int64_t host_ns;
    uint16_t rank;
    uint8_t ubatch;
    uint8_t kind; /* dbo_mark_kind */
    uint32_t step;
} dbo_mark;

/* What ubatch contexts do that no stream sees; for logs and checkers. */
typedef enum dbo_turn_event {
    DBO_TURN_SIGNAL, /* gives the turn to ubatch `arg` */
    DBO_TURN_RESUME, /* has got it */
    DBO_TURN_STREAM, /* works on stream `arg` from now on; said only when that changes */
    DBO_TURN_EXIT,   /* its model has ended; a hook may follow, and a signal unless it fails */
    DBO_TURN_SLOT    /* posts into transfer slot `arg`, whose last one nobody has received */
} dbo_turn_event;

/* What the memory of programs' buffers does (rank_memory.h). A buffer is named by its number, as in
 * op io. */
typedef enum dbo_memory_what {
    DBO_MEMORY_TAKE, /* the buffer has memory from now on */
    DBO_MEMORY_DROP, /* its block may be somebody else's once announced work is over */
    DBO_MEMORY_USE   /* record_stream: work of `stream` is announced */
} dbo_memory_what;

typedef struct dbo_memory_event {
    dbo_memory_what what;
    uint32_t buffer;
    uint32_t stream; /* TAKE: whose pool it comes from */
    uint64_t bytes;
    const char *name; /* borrowed for the call */
    bool filled;      /* TAKE: it holds data already */
    bool lent;        /* TAKE: it is a graph's, which has written it */
} dbo_memory_event;

typedef struct dbo_trace_ops {
    /* Optional: an op or transfer part was issued to a stream at this host time. In a capture the
     * issue is reported once, at the capture; `part` is RUN, SEND or RECV. */
    void (*op_issued)(void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream,
                      int64_t host_ns);
    void (*span)(void *self, const dbo_span *span);
    /* Optional: the host of a rank has come to a point. */
    void (*mark)(void *self, const dbo_mark *mark);
    /* Optional. `ubatch` is DBO_MARK_MAIN for the runner's first signal. */
    void (*turn)(void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg);
    /* Optional: a buffer got memory, lost it, or another stream announced that it uses it. */
    void (*memory)(void *self, const dbo_memory_event *event);
} dbo_trace_ops;

DBO_PUBLIC_END

#endif
