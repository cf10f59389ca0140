/* sim_impl.h: the simulator's data, shared by its files. Private to sim/.
 *
 *     world.c     ranks, the event loop, parking, failures
 *     stream.c    FIFO streams: issue, start, completion, waits
 *     fluid.c     kernels of a GPU share its SMs and memory bandwidth
 *     meet.c      all-to-alls: rendezvous (HT), flights (LL), receive counts
 *     exchange.c  the host's collective
 *     capture.c   graphs
 *     numeric.c   inputs read at a start, outputs published at an end; rows of transfers
 *     device.c    the seam's tables over all that
 *
 * Time is resolved, not stepped, wherever nothing can change it: an item whose predecessor, waits
 * and peers have known ends gets its own end at once, perhaps ahead of the world's clock. Events
 * are for what depends on the moment: kernels that share a GPU start and end by them, ops that
 * compute read and publish at them, and ranks wake by them. Whatever is unresolved when the world
 * has reached a time has not happened by then.
 *
 * Entities (streams, then ranks) have numbers; an event is a 64-bit key, time << 20 | entity, so a
 * heap of keys orders by (time, entity). A stream has at most one valid event: `due`; others in the
 * heap are stale and skipped. A position on a stream is a count of items: a dbo_event is (stream,
 * count issued at its record), complete when item count - 1 ends. An item's place in its ring is
 * given out again once its end is not after the host time of the new item; so what is overwritten
 * is over for everybody who can still ask.
 */
#ifndef DBO_SIM_IMPL_H
#define DBO_SIM_IMPL_H

#include "core/program/program.h"
#include "sim/sim.h"
#include "sim/stream.h"

#include <string.h>

#define SIM_ENTITY_BITS 20
#define SIM_NONE        UINT32_MAX
#define SIM_MAX_NS      (INT64_C(1) << 43)
#define SIM_RATE_ONE    65536 /* a kernel alone: 1 ns of its work a ns */
#define SIM_MAX_SLOTS   DBO_MAX_UBATCHES
#define SIM_DEFAULT_SMS 132 /* of a GPU when no hardware is given */

typedef struct sim_transfer { /* LL: one rank's part in a meet */
    int64_t flight_ns; /* first byte sent to last byte received, all ranks sending together */
    int64_t port_ns;   /* of it, how long the NIC is busy */
    int64_t recv_ns;
    int64_t sent_ns, landed_ns; /* its send began; its bytes are everywhere */
    uint64_t bytes;
    uint16_t recv_sms;
    bool sent, finished;
} sim_transfer;

typedef struct sim_event {
    uint32_t stream;  /* SIM_NONE: never recorded */
    uint32_t capture; /* 0: none; else the capture that it was recorded in, and: */
    uint64_t count;
    uint32_t record; /* ... its record there */
    bool free;
} sim_event;

#define SIM_MAX_RUNNING 16

typedef struct sim_gpu {
    uint32_t num_running;
    uint32_t running[SIM_MAX_RUNNING]; /* streams */
    int64_t updated_ns;
} sim_gpu;

typedef struct sim_block { /* numeric mode: memory */
    uint8_t *bytes;
    uint64_t size;
    bool freed; /* the host has given it up; ops in flight may still touch it */
} sim_block;

typedef struct sim_capture sim_capture;
typedef struct sim_graph sim_graph;

typedef enum sim_reason {
    SIM_AWAKE,
    SIM_AT_STREAM,
    SIM_AT_EXCHANGE,
    SIM_AT_COUNTS,
    SIM_AT_TIME
} sim_reason;

struct sim_rank {
    dbo_sim *sim;
    uint32_t id;
    uint32_t first_member; /* the first logical rank that it stands for */
    int64_t host_ns;
    dbo_context *context; /* of main */
    dbo_context *parked;  /* whoever held the turn when the rank blocked */
    bool ended;
    uint32_t reason;     /* sim_reason, while blocked, and at what: */
    uint32_t blocked_on; /* ... a stream, or a communicator and the number of its transfer */
    uint32_t blocked_sequence;
    uint32_t next_host; /* of the meet whose counts the host waits for */
    dbo_error failure;  /* last refusal of a hot call */
    uint32_t compute_sms, comm_sms;
    uint32_t num_streams, cap_streams;
    uint32_t *streams; /* device stream number -> entity */
    sim_event *events;
    uint32_t num_events, cap_events;
    sim_gpu gpu;
    int64_t port_free_ns;
    uint32_t posted[SIM_MAX_SLOTS];
    sim_capture *capture; /* in progress, or NULL */
    uint32_t num_captures;
    sim_graph **graphs;
    uint32_t num_graphs;
    /* exchange */
    const char *tag;
    uint64_t sequence;
    int32_t *matrix;
    const int32_t *column;
    uint32_t rows;
    /* memory */
    sim_block *blocks;
    uint32_t num_blocks, cap_blocks;
};

typedef struct sim_meet {
    dbo_op_id id; /* without the rank */
    uint32_t opened_by;
    uint32_t arrived, completed;
    int64_t start_ns;        /* the latest arrival so far */
    int64_t landed_ns;       /* LL: the latest landing so far */
    int64_t counts_ns;       /* HT: from the start to the receive counts */
    uint32_t first_member;   /* streams that wait in it */
    uint32_t first_host;     /* ranks that wait for receive counts, chained by next_host */
    sim_transfer *transfers; /* LL: by rank, or NULL */
    sim_numeric **rows;      /* by rank, if it moves rows; or NULL */
} sim_meet;

typedef struct sim_comm { /* a communicator: meets by sequence number, in a growing ring */
    sim_meet *meets;
    uint32_t mask, oldest, newest; /* live: oldest <= sequence < newest */
} sim_comm;

struct dbo_sim {
    dbo_sim_options options;
    uint32_t *class_of;
    int64_t now_ns;
    uint64_t *heap;
    uint32_t heap_size, heap_cap;
    bool heap_hole; /* the top has been taken and not yet refilled */
    sim_stream *streams;
    uint32_t num_streams, cap_streams;
    uint32_t *work; /* streams to look at: a ring of cap_streams */
    uint32_t work_first, work_count;
    bool settling;
    int64_t last_ns; /* the latest end of anything */
    sim_rank *ranks;
    uint32_t num_ranks; /* simulated */
    uint32_t num_ended, num_arrived;
    sim_comm comms[SIM_MAX_SLOTS];
    dbo_context *world;
    dbo_fiber_pool *pool;
    dbo_sim_main main;
    void *main_arg;
    bool failed;
    dbo_error failure;
    uint32_t polls;
    int64_t host_ns[DBO_CHARGE_COUNT];
};

/* Ranks' entities come after all that streams can have. */
#define SIM_FIRST_RANK ((1u << SIM_ENTITY_BITS) - DBO_MAX_RANKS)

/* world.c */
void dbo_sim_schedule(dbo_sim *sim, int64_t at_ns, uint32_t entity);
dbo_status dbo_sim_park(sim_rank *rank, sim_reason reason);
void dbo_sim_wake(dbo_sim *sim, sim_rank *rank, int64_t at_ns);
/* The rank's host waits for a moment that is known already: its clock goes there. */
void dbo_sim_skip(sim_rank *rank, int64_t to_ns);
/* Stops the world with this failure (the first counts); returns its status. */
dbo_status dbo_sim_fail(dbo_sim *sim, dbo_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Keeps the sentence of a refused call for device.status. */
dbo_status dbo_sim_refuse(sim_rank *rank, dbo_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts calls; now and then asks whether to go on: DBO_ABORTED once the world has failed. */
dbo_status dbo_sim_poll_now(dbo_sim *sim);
static inline dbo_status sim_poll(dbo_sim *sim)
{
    return __builtin_expect((++sim->polls & 4095) == 0, 0) ? dbo_sim_poll_now(sim) : DBO_OK;
}

/* fluid.c */
void dbo_sim_share_begin(dbo_sim *sim, uint32_t stream, int64_t ns);
void dbo_sim_share_end(dbo_sim *sim, uint32_t stream);

/* meet.c */
dbo_status dbo_sim_post(sim_rank *rank, const dbo_a2a_args *args, dbo_a2a_handle *out);
dbo_status dbo_sim_finish(sim_rank *rank, dbo_a2a_handle handle, dbo_stream stream);
dbo_status dbo_sim_counts(sim_rank *rank, dbo_a2a_handle handle);
/* At its stream's head: a MEET comes, a SEND starts, a RECV comes. */
void dbo_sim_meet_join(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_send_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_recv_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_meet_leave(dbo_sim *sim, const sim_item *item); /* a MEET or RECV has completed */
/* Opens the meet of a transfer that is being queued; LL: keeps the rank's part in it. */
dbo_status dbo_sim_meet_open(dbo_sim *sim, uint32_t slot, uint32_t sequence, dbo_op_id id,
                             uint32_t rank, const sim_transfer *transfer);
/* Takes a rank's side of a transfer that is open: it moves rows. */
dbo_status dbo_sim_meet_rows(dbo_sim *sim, uint32_t slot, uint32_t sequence, uint32_t rank,
                             sim_numeric *rows);
void dbo_sim_meet_deliver(dbo_sim *sim, const sim_item *item, uint32_t rank); /* it ends there */
bool dbo_sim_has_sent(const sim_meet *meet, uint32_t rank); /* LL: its send has begun */
void dbo_sim_comms_fini(dbo_sim *sim);

/* exchange.c */
dbo_status dbo_sim_exchange(sim_rank *rank, const char *tag, uint64_t sequence,
                            const int32_t *column, uint32_t rows, int32_t *matrix);

/* capture.c */
extern const dbo_graph_ops dbo_sim_graph_table;
bool dbo_sim_captures(const sim_rank *rank, dbo_stream stream);
dbo_status dbo_sim_capture_item(sim_rank *rank, dbo_stream stream, const sim_item *item,
                                const sim_transfer *transfer, sim_numeric *rows);
dbo_status dbo_sim_capture_record(sim_rank *rank, dbo_event event, dbo_stream stream);
dbo_status dbo_sim_capture_wait(sim_rank *rank, dbo_stream stream, dbo_event event);
uint32_t dbo_sim_capture_post(sim_rank *rank, uint32_t slot); /* its number within the graph */
/* LL: a transfer of the capture that has not been finished in it, or NULL. */
const sim_transfer *dbo_sim_captured_transfer(const sim_rank *rank, uint32_t slot,
                                              uint32_t sequence, dbo_op_id *id, bool *moves);
/* HT: refuses unless the transfer of the capture was posted on this stream. */
dbo_status dbo_sim_capture_finish(sim_rank *rank, uint32_t slot, uint32_t sequence,
                                  dbo_stream stream);
void dbo_sim_capture_fini(sim_rank *rank);

/* device.c */
dbo_status dbo_sim_wait(sim_rank *rank, dbo_stream stream, dbo_event event);

/* numeric.c */
/* The record of an op, or of a transfer with a route; refuses accesses without storage. */
dbo_status dbo_sim_numeric_create(sim_rank *rank, dbo_op_id id, const dbo_op_io *io,
                                  const uint64_t *addresses, sim_numeric **out);
/* Another one like it, of a replay. */
dbo_status dbo_sim_numeric_repeat(sim_rank *rank, const sim_numeric *node, dbo_op_id id,
                                  sim_numeric **out);
void dbo_sim_numeric_start(sim_numeric *numeric);
void dbo_sim_numeric_publish(sim_numeric *numeric); /* and destroys */
void dbo_sim_numeric_take(sim_numeric *numeric);    /* a transfer's inputs, as they are now */
/* What `rank` gets of a transfer whose sides (one a rank) have all been taken. */
dbo_status dbo_sim_numeric_deliver(dbo_sim *sim, sim_numeric *const *sides, uint32_t rank);
void dbo_sim_numeric_destroy(sim_numeric *numeric);
extern const dbo_mem_ops dbo_sim_mem_table;
void dbo_sim_mem_fini(sim_rank *rank);

#endif
