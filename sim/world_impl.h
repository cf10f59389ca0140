/* world_impl.h: a simulated world and its ranks; events, parking, failures.
 *
 *     world     ranks, the event loop
 *     stream    FIFO streams: issue, start, completion, waits
 *     share     kernels that run on one GPU at a time share it
 *     meet      all-to-alls; post is the host's side of them
 *     exchange  the host's collective
 *     capture   graphs
 *     numeric   memory, and ops that compute
 *     device    the seam's tables over all that
 *
 * Each part has a header NAME_impl.h with its data and what the others call.
 *
 * Time is resolved, not stepped, wherever nothing can change it: an item whose predecessor, waits
 * and peers have known ends gets its own end at once, perhaps ahead of the world's clock. Events
 * are for what depends on the moment: kernels that share a GPU start and end by them, ops that
 * compute read and publish at them, and ranks wake by them. Whatever is unresolved when the world
 * has reached a time has not happened by then.
 *
 * Entities (streams, then ranks) have numbers; an event is a 64-bit key, time << 20 | entity, so a
 * heap of keys orders by (time, entity). A stream has at most one valid event: `due`; others in the
 * heap are stale and skipped.
 *
 *     dbo_sim_schedule(sim, at_ns, stream);
 *     return dbo_sim_refuse(rank, DBO_LIMIT, "more than %u streams in a capture", most);
 */
#ifndef DBO_SIM_WORLD_IMPL_H
#define DBO_SIM_WORLD_IMPL_H

#include "core/base/fluid.h"
#include "core/base/heap.h"
#include "core/base/vec.h"
#include "core/program/program.h"
#include "sim/exchange_impl.h"
#include "sim/meet_impl.h"
#include "sim/sim.h"
#include "sim/stream_impl.h"

#define SIM_ENTITY_BITS 20
#define SIM_MAX_NS      (INT64_C(1) << 43)
#define SIM_MAX_SLOTS   DBO_MAX_UBATCHES

/* Ranks' entities come after all that streams can have. */
#define SIM_FIRST_RANK ((1u << SIM_ENTITY_BITS) - DBO_MAX_RANKS)

typedef struct sim_event sim_event;
typedef struct sim_block sim_block;
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
    DBO_VEC(uint32_t) streams; /* device stream number -> entity */
    DBO_VEC(sim_event) events;
    dbo_fluid gpu; /* SMs, MB/s of memory and ports; jobs are streams whose head works, lanes */
    uint32_t idle_lane; /* the first, chained by next_member; SIM_NONE */
    uint32_t num_flows; /* LL: under way */
    uint32_t alone;     /* ... of which this one has the ports to itself, and is no job */
    uint32_t posted[SIM_MAX_SLOTS];
    sim_capture *capture; /* in progress, or NULL */
    uint32_t num_captures;
    DBO_VEC(sim_graph *) graphs;
    sim_exchange exchange; /* that it is in */
    DBO_VEC(sim_block) blocks;
};

struct dbo_sim {
    dbo_sim_options options;
    uint32_t *class_of;
    int64_t now_ns;
    dbo_heap due;
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
    sim_spare *spares; /* (num_ranks) transfers each */
    dbo_context *world;
    dbo_fiber_pool *pool;
    dbo_sim_main main;
    void *main_arg;
    bool failed;
    dbo_error failure;
    uint32_t polls;
    int64_t host_ns[DBO_CHARGE_COUNT];
};

/* Can it say how long work takes, or that it takes none? */
static inline bool sim_has_rates(const dbo_sim_options *options)
{
    return !options->hardware || options->hardware->sms > 0;
}

void dbo_sim_schedule(dbo_sim *sim, int64_t at_ns, uint32_t entity);
/* Blocks the rank until it is woken. DBO_ABORTED once the world has failed. */
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

static inline bool sim_meet_is_live(const sim_comm *comm, uint32_t sequence)
{
    return sequence - comm->oldest < comm->newest - comm->oldest;
}
static inline sim_meet *sim_meet_at(dbo_sim *sim, uint32_t slot, uint32_t sequence)
{
    sim_comm *comm = &sim->comms[slot];
    return &comm->meets[sequence & comm->mask];
}

/* Counts calls; now and then asks whether to go on: DBO_ABORTED once the world has failed. */
dbo_status dbo_sim_poll_now(dbo_sim *sim);
static inline dbo_status sim_poll(dbo_sim *sim)
{
    return __builtin_expect((++sim->polls & 4095) == 0, 0) ? dbo_sim_poll_now(sim) : DBO_OK;
}

#endif
