/* recorder.h: writes down every call that an engine makes through its seam, in issue order.
 *
 * dbo_recorder_wrap puts the recorder around a rank's seam: the tables it leaves behind note a call
 * and forward it, so that times, traces and results are those of the bare seam. Wrap before
 * dbo_rank_init, which copies the seam. One recorder may be around all ranks of a process: then the
 * order is that of the process, and that of each rank is its host's.
 *
 *     dbo_recorder recorder;
 *     dbo_recorder_init(&recorder, 0);
 *     DBO_TRY(dbo_recorder_wrap(&recorder, &seam, err));
 *     ... run ...
 *     for (uint64_t i = 0; i < recorder.count; i++)
 *         use(dbo_recorder_at(&recorder, i));
 *     dbo_recorder_fini(&recorder);      // after whatever uses the wrapped seams
 *
 * A call is noted when it begins and completed when it returns: one that blocks for ever keeps the
 * status DBO_CALL_OPEN, one that is given up ends DBO_ABORTED. Without a recorder nothing of it
 * runs: seams that were not wrapped are the back end's own tables. Not thread-safe: one context of
 * the process runs at a time. What records point to (io lists, address tables) is the op's: it
 * lives as long as the program.
 */
#ifndef DBO_RECORDER_H
#define DBO_RECORDER_H

#include "core/seam/seam.h"

/* What a call is; after it, what `number` and `other` of a dbo_call are, if anything. */
typedef enum dbo_call_kind {
    DBO_CALL_STREAM_CREATE, /* the new stream */
    DBO_CALL_EVENT_CREATE,  /* the new event */
    DBO_CALL_EVENT_DESTROY, /* event */
    DBO_CALL_RECORD,        /* event */
    DBO_CALL_WAIT,          /* event */
    DBO_CALL_LAUNCH,
    DBO_CALL_EVENT_QUERY, /* event; other: 1 when it was done */
    DBO_CALL_HOST_WAIT,   /* event */
    DBO_CALL_COMPUTE_SMS, /* SMs */
    DBO_CALL_ALLOC,       /* space */
    DBO_CALL_FREE,
    DBO_CALL_CAPTURE_BEGIN,
    DBO_CALL_CAPTURE_END, /* the new graph */
    DBO_CALL_CAPTURE_ABANDON,
    DBO_CALL_REPLAY,        /* graph; other: step */
    DBO_CALL_GRAPH_DESTROY, /* graph */
    DBO_CALL_A2A_SMS,       /* effective SMs */
    DBO_CALL_POST,          /* the new handle; other: previous event */
    DBO_CALL_COUNTS,        /* handle */
    DBO_CALL_FINISH,        /* handle */
    DBO_CALL_ABORT,
    DBO_CALL_EXCHANGE, /* sequence, lower 32 bits; other: rows */
    DBO_CALL_BARRIER,
    DBO_CALL_TURN,        /* dbo_turn_event; other: its argument */
    DBO_CALL_STEP,        /* dbo_mark_kind; other: step */
    DBO_CALL_BUFFER_TAKE, /* buffer; other: 1 when it is filled, 2 when it is a graph's */
    DBO_CALL_BUFFER_DROP, /* buffer */
    DBO_CALL_BUFFER_USE,  /* buffer */
    DBO_CALL_COUNT
} dbo_call_kind;

_Static_assert(DBO_CALL_COUNT <= 32, "a bit a kind");

#define DBO_CALL_OPEN UINT8_MAX /* status of a call that has not returned */

typedef struct dbo_call {
    uint8_t kind;      /* dbo_call_kind */
    uint8_t status;    /* dbo_status, or DBO_CALL_OPEN */
    uint8_t ubatch;    /* whose turn it is; DBO_MARK_MAIN: nobody's */
    uint8_t direction; /* POST */
    uint16_t rank;
    uint16_t stream;        /* where there is one, else 0 */
    uint32_t number, other; /* as the map says */
    dbo_op_id id;           /* LAUNCH, POST; FREE and ALLOC: the address */
    uint64_t bytes;         /* ALLOC, BUFFER_TAKE */
    const void *what;       /* LAUNCH: dbo_op_cost, POST: dbo_a2a_cost, EXCHANGE: the tag,
                             * STREAM_CREATE, BUFFER_TAKE: a name */
    const dbo_op_io *io;    /* LAUNCH, POST; or NULL */
    const uint64_t *addresses;
    int64_t begin_ns, end_ns; /* of the host, if the recorder reads the clock */
} dbo_call;

typedef struct dbo_recorder_tap dbo_recorder_tap; /* of one seam */

/* Is told of a call when it returns, and before that of one that may block, as OPEN. */
typedef void (*dbo_call_fn)(void *self, const dbo_call *call);
/* Gives a copy of what call->what points to, for the log; NULL: it is noted as it is. */
typedef const void *(*dbo_call_keep_fn)(void *self, const dbo_call *call);

typedef struct dbo_recorder {
    dbo_call *calls;
    uint64_t count, limit;
    uint32_t cap;
    uint64_t dropped; /* calls that were forwarded, but not kept: no memory, or beyond the limit */
    dbo_recorder_tap *taps;
    dbo_call_fn watch; /* or NULL; set after init */
    void *watch_self;
    dbo_call_keep_fn keep; /* or NULL; set after init */
    void *keep_self;
    bool forgets;     /* keeps no call, only tells the watcher */
    bool reads_clock; /* notes when calls are made */
    uint32_t skips;   /* a bit a kind: neither kept nor told; set after init, as the above */
} dbo_recorder;

/* Keeps at most `limit` calls; 0: as many as there is memory for. */
void dbo_recorder_init(dbo_recorder *recorder, uint64_t limit);
void dbo_recorder_fini(dbo_recorder *recorder);

/* Replaces the seam's tables but the host's. Optional tables and slots that are missing stay
 * missing, save the trace: without one, turns are still noted. A seam may be wrapped by several
 * recorders. On failure the seam is as it was. */
dbo_status dbo_recorder_wrap(dbo_recorder *recorder, dbo_seam *seam, dbo_error *err);

/* Valid until the next call through a wrapped seam. */
static inline const dbo_call *dbo_recorder_at(const dbo_recorder *recorder, uint64_t i)
{
    return &recorder->calls[i];
}
#endif
