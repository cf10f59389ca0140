/* seam.h: the only thing that the engine knows of a machine.
 *
 * Seven small tables of functions with an opaque self, grouped in a dbo_seam, one per rank. A back
 * end (the simulator, CUDA) fills them; the engine, the interpreter and the checker call them. A
 * slot marked "optional" may be NULL; the sentence says what NULL means. Everything else must be
 * set: dbo_seam_check says which slot is missing. Rules:
 * - Calls come from the context that holds the rank's turn; a rank never makes two at a time.
 * - Every call that can block (host_wait, event_query, counts, exchange, barrier, and launch when
 *   a stream's launch queue is full) blocks the *rank's turn*: no sibling ubatch runs meanwhile.
 * - Hot calls return a bare status; `device.status` then gives the sentence.
 * - Streams, events, graphs and all-to-all handles are small numbers of their rank; 0 is the first.
 *
 * Ownership: self objects belong to the back end; op costs, io lists and names are borrowed and
 * must outlive the op; everything else is copied.
 *
 *     DBO_TRY(dbo_seam_check(seam, err));
 *     dbo_status status = seam->device->record(seam->device_self, event, compute);
 *     if (status == DBO_OK)
 *         status = seam->device->wait(seam->device_self, comm, event);
 *     if (status != DBO_OK)
 *         return dbo_seam_fail(seam, status, err);
 */
#ifndef DBO_SEAM_H
#define DBO_SEAM_H

#include "core/base/status.h"
#include "core/seam/op.h"
#include "core/seam/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef uint32_t dbo_event;
typedef uint32_t dbo_graph;
typedef uint32_t dbo_a2a_handle;

#define DBO_NO_EVENT  UINT32_MAX
#define DBO_NO_HANDLE UINT32_MAX

/* What the host is charged for; the simulator turns it into virtual host time. */
typedef enum dbo_charge {
    DBO_CHARGE_LAUNCH,   /* one kernel launch (count = kernels) */
    DBO_CHARGE_EVENT,    /* a record or a wait */
    DBO_CHARGE_HANDOFF,  /* one hand-off between ubatches */
    DBO_CHARGE_REPLAY,   /* one graph replay */
    DBO_CHARGE_POST,     /* one all-to-all call */
    DBO_CHARGE_METADATA, /* building or splitting metadata of one ubatch */
    DBO_CHARGE_STEP,     /* fixed cost of a step: scheduling, input preparation */
    DBO_CHARGE_COUNT
} dbo_charge;

typedef struct dbo_host_ops {
    /* Virtual or monotonic time of this rank's host. */
    int64_t (*now_ns)(void *self);
    /* Optional: NULL charges nothing (real time passes by itself). */
    void (*charge)(void *self, dbo_charge kind, uint32_t count);
    /* Optional: true once the run must stop (Ctrl-C, watchdog). */
    bool (*cancelled)(void *self);
} dbo_host_ops;

typedef struct dbo_device_ops {
    dbo_status (*stream_create)(void *self, const char *name, dbo_stream *out);
    dbo_status (*event_create)(void *self, dbo_event *out);
    void (*event_destroy)(void *self, dbo_event event);
    /* Rebinds the event to all work issued to the stream so far; in a capture, a graph edge. */
    dbo_status (*record)(void *self, dbo_event event, dbo_stream stream);
    /* Later work of the stream waits for the event's latest record; none yet: no wait. In a capture
     * only for events recorded in it; an event of a finished capture must be recorded again before
     * it is waited for, queried or host-waited. Refused otherwise, before the device is asked. */
    dbo_status (*wait)(void *self, dbo_stream stream, dbo_event event);
    dbo_status (*launch)(void *self, dbo_stream stream, const dbo_op *op);
    /* Is the latest record of the event complete at this rank's host time? Refused in a capture. */
    dbo_status (*event_query)(void *self, dbo_event event, bool *done);
    /* Blocks the rank until the latest record is complete. Refused in a capture. */
    dbo_status (*host_wait)(void *self, dbo_event event);
    /* Compute kernels launched from now on use at most so many SMs; 0: all. */
    dbo_status (*set_compute_sms)(void *self, uint32_t sms);
    /* SMs of the device. */
    uint32_t (*total_sms)(void *self);
    /* The sentence of the last failure of any table of this rank; returns its status. */
    dbo_status (*status)(void *self, dbo_error *err);
} dbo_device_ops;

typedef enum dbo_space { DBO_SPACE_DEVICE, DBO_SPACE_PINNED } dbo_space;

/* Optional table: NULL means that only costs are simulated and nothing is stored. */
typedef struct dbo_mem_ops {
    dbo_status (*alloc)(void *self, uint64_t bytes, dbo_space space, uint64_t *address);
    void (*free)(void *self, uint64_t address);
    /* Host-visible storage of an address, or NULL when there is none. */
    void *(*ptr)(void *self, uint64_t address);
} dbo_mem_ops;

/* Optional table: NULL means that the back end cannot capture. */
typedef struct dbo_graph_ops {
    /* Captures what is issued to `stream`, and to every stream drawn in by an event wait. Begin and
     * end come from the same OS thread (the runner's); ubatches may issue from others. */
    dbo_status (*begin)(void *self, dbo_stream stream);
    bool (*is_capturing)(void *self);
    /* Ends the capture and instantiates it. Refused if a stream drawn in has not rejoined. */
    dbo_status (*end)(void *self, dbo_graph *out);
    /* Gives up a capture in progress; no graph results. */
    void (*abandon)(void *self);
    /* Enqueues one replay on `stream`; op ids take the step `step`. */
    dbo_status (*replay)(void *self, dbo_graph graph, dbo_stream stream, uint32_t step);
    void (*destroy)(void *self, dbo_graph graph);
} dbo_graph_ops;

typedef enum dbo_a2a_direction { DBO_A2A_DISPATCH, DBO_A2A_COMBINE } dbo_a2a_direction;

typedef struct dbo_a2a_caps {
    bool needs_host_sync;    /* dispatch: the host must wait for the receive counts (HT) */
    bool has_hook;           /* post returns at the send; finish is the receive (LL) */
    bool capturable;         /* may be captured in a graph */
    uint32_t max_in_flight;  /* results held at once per communicator; 0: no limit */
    bool shared_results;     /* ... by all communicators together */
    uint32_t queue_depth;    /* transfers of a rank that may be under way at once; 0: no limit */
    uint32_t max_sms;        /* SMs it can use at most (as created); 0: none needed */
    uint32_t emulated_peers; /* ranks that are not real; 0 when all are */
} dbo_a2a_caps;

typedef struct dbo_a2a_args {
    dbo_op_id id; /* kind DISPATCH or COMBINE, ubatch = owner = communicator */
    dbo_a2a_direction direction;
    dbo_stream stream;  /* the current stream */
    dbo_event previous; /* the transfer also waits for this event, or DBO_NO_EVENT */
    const dbo_a2a_cost *cost;
    const dbo_op_io *io;       /* or NULL */
    const uint64_t *addresses; /* as in dbo_op */
} dbo_a2a_args;

typedef struct dbo_a2a_ops {
    void (*caps)(void *self, dbo_a2a_caps *out);
    /* SMs for transfers posted from now on; returns the effective number (clamped). */
    uint32_t (*set_sms)(void *self, uint32_t sms);
    /* Enqueues the transfer (LL: its send) on args->stream. Communicators match posts in order.
     * What args points to lives until finish (or, without one, as long as the program). */
    dbo_status (*post)(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out);
    /* Blocks the rank until the receive counts are known; may enqueue the rows themselves on the
     * stream of the post. Refused in a capture.
     * Optional: NULL when needs_host_sync is false. */
    dbo_status (*counts)(void *self, dbo_a2a_handle handle);
    /* Work issued later to `stream` sees the received data. LL: enqueues the receive, on the stream
     * of the post if the kernel was bound to it; what else is there need not see the data.
     * Ends the handle: it may be given out again. */
    dbo_status (*finish)(void *self, dbo_a2a_handle handle, dbo_stream stream);
    /* Optional: gives up all transfers so that peers do not wait for ever. */
    void (*abort)(void *self);
} dbo_a2a_ops;

typedef struct dbo_group_ops {
    uint32_t (*rank)(void *self);
    uint32_t (*size)(void *self);
    /* Collective: each rank gives its column of `rows` int32; all get the matrix, row by row:
     * matrix[row * size + rank]. `tag` and `sequence` must agree, or the mismatch is named. */
    dbo_status (*exchange)(void *self, const char *tag, uint64_t sequence, const int32_t *column,
                           uint32_t rows, int32_t *matrix);
    /* Optional: NULL when ranks need no other meeting. */
    dbo_status (*barrier)(void *self);
} dbo_group_ops;

/* A group of one rank, which meets nobody, for a back end without one. Its self may be NULL. */
const dbo_group_ops *dbo_group_alone(void);

/* ---- the tables of one rank ---- */

typedef struct dbo_seam {
    const dbo_host_ops *host;
    const dbo_device_ops *device;
    const dbo_mem_ops *mem;     /* or NULL */
    const dbo_graph_ops *graph; /* or NULL */
    const dbo_a2a_ops *a2a;     /* or NULL: no all-to-all on this machine */
    const dbo_group_ops *group;
    const dbo_trace_ops *trace; /* or NULL: nothing is kept */
    void *host_self, *device_self, *mem_self, *graph_self, *a2a_self, *group_self, *trace_self;
} dbo_seam;

/* Charges the host, where a back end counts that. */
static inline void dbo_seam_charge(const dbo_seam *seam, dbo_charge kind, uint32_t count)
{
    if (seam->host->charge)
        seam->host->charge(seam->host_self, kind, count);
}

/* Are all slots that must be set there? Names the first that is not. */
dbo_status dbo_seam_check(const dbo_seam *seam, dbo_error *err);

/* The device's last sentence into *err; returns `status` unchanged (or the device's, if OK). */
dbo_status dbo_seam_fail(const dbo_seam *seam, dbo_status status, dbo_error *err);

DBO_PUBLIC_END

#endif
