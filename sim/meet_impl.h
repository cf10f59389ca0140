/* meet_impl.h: all-to-alls. A communicator is a sequence of meets, in each of which all ranks meet:
 * HT a rendezvous of streams, LL flights that have all landed.
 *
 * A rank's part is a flow out of its ports and one into them, which share the ports with all others
 * of the rank; where both ask for the same they are one. The flow out of HT is the head of its
 * stream, which also holds SMs; every other flow is under way on a lane: a stream without items,
 * whose event is the flow's end.
 *
 *     DBO_TRY(dbo_sim_post(rank, args, &handle));         // queued; a number on the communicator
 *     DBO_TRY(dbo_sim_finish(rank, handle, stream));      // what comes there then has the rows
 */
#ifndef DBO_SIM_MEET_IMPL_H
#define DBO_SIM_MEET_IMPL_H

#include "core/base/fluid.h"
#include "sim/stream_impl.h"

/* Resources of a GPU, in the order of its dbo_fluid_demand. */
typedef enum sim_resource {
    SIM_SMS,
    SIM_HBM,
    SIM_NVLINK_OUT,
    SIM_NIC_OUT,
    SIM_NVLINK_IN,
    SIM_NIC_IN
} sim_resource;

typedef struct sim_transfer {         /* one rank's part in a meet */
    int64_t out_ns, in_ns;            /* alone; in_ns -1: out is both */
    uint32_t out_mbps[2], in_mbps[2]; /* asked of NVLink and NIC */
    int64_t recv_ns;                  /* LL */
    int64_t sent_ns, left_ns;         /* LL: its send began; its bytes have left */
    int64_t came_ns;                  /* its flow in has ended */
    uint64_t bytes_out, bytes_in;
    uint32_t wire_ns;  /* LL */
    uint32_t stream;   /* of the post; in the device's numbers while captured */
    uint16_t recv_sms; /* LL */
    uint8_t out_left;  /* what must end before all its bytes have left: the flow, LL's kernel */
    bool in_left;      /* its flow in has not ended; it is one of its own */
    bool sent, finished;
} sim_transfer;

typedef struct sim_meet {
    dbo_op_id id; /* without the rank */
    uint32_t opened_by;
    uint32_t arrived, completed;
    uint32_t left;           /* ranks whose bytes have all left */
    int64_t start_ns;        /* the latest arrival so far */
    int64_t left_ns;         /* the latest leaving so far */
    int64_t counts_ns;       /* HT: from the start to the receive counts */
    uint32_t first_member;   /* streams that wait in it */
    uint32_t first_host;     /* ranks that wait for receive counts, chained by next_host */
    sim_transfer *transfers; /* by rank; NULL: HT of fixed times, which asks for no port */
    sim_numeric **rows;      /* by rank, if it moves rows; or NULL */
} sim_meet;

/* The parts of a meet that is over, kept for the next one. */
typedef struct sim_spare {
    struct sim_spare *next;
} sim_spare;

typedef struct sim_comm { /* a communicator: meets by sequence number, in a growing ring */
    sim_meet *meets;
    uint32_t mask, oldest, newest; /* live: oldest <= sequence < newest */
} sim_comm;

dbo_status dbo_sim_post(sim_rank *rank, const dbo_a2a_args *args, dbo_a2a_handle *out);
dbo_status dbo_sim_finish(sim_rank *rank, dbo_a2a_handle handle, dbo_stream stream);
dbo_status dbo_sim_counts(sim_rank *rank, dbo_a2a_handle handle);

/* At its stream's head: a MEET comes, a SEND starts, a RECV comes. */
void dbo_sim_meet_join(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_send_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_recv_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
/* There: a MEET's work is over, a SEND ends then; on a lane: its flow is over. */
void dbo_sim_meet_left(dbo_sim *sim, uint32_t stream);
void dbo_sim_send_end(dbo_sim *sim, const sim_item *item, uint32_t rank, int64_t end_ns);
void dbo_sim_flow_end(dbo_sim *sim, uint32_t lane);
void dbo_sim_meet_leave(dbo_sim *sim, const sim_item *item); /* a MEET or RECV has completed */
void dbo_sim_meet_deliver(dbo_sim *sim, const sim_item *item, uint32_t rank); /* it ends there */

/* What the head of a stream, or a lane, asks of its GPU's ports. */
dbo_fluid_demand dbo_sim_ports_of(dbo_sim *sim, const sim_stream *stream);

/* Opens the meet of a transfer that is being queued, and keeps the rank's part in it, if any. */
dbo_status dbo_sim_meet_open(dbo_sim *sim, uint32_t slot, uint32_t sequence, dbo_op_id id,
                             uint32_t rank, const sim_transfer *transfer);
/* Takes a rank's side of a transfer that is open: it moves rows. */
dbo_status dbo_sim_meet_rows(dbo_sim *sim, uint32_t slot, uint32_t sequence, uint32_t rank,
                             sim_numeric *rows);
bool dbo_sim_has_sent(const sim_meet *meet, uint32_t rank); /* its part is known and has begun */
void dbo_sim_comms_fini(dbo_sim *sim);

#endif
