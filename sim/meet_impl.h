/* meet_impl.h: all-to-alls. A communicator is a sequence of meets, in each of which all ranks meet:
 * HT a rendezvous of streams, LL flights that have all landed.
 *
 *     DBO_TRY(dbo_sim_post(rank, args, &handle));         // queued; a number on the communicator
 *     DBO_TRY(dbo_sim_finish(rank, handle, stream));      // what comes there then has the rows
 */
#ifndef DBO_SIM_MEET_IMPL_H
#define DBO_SIM_MEET_IMPL_H

#include "sim/stream_impl.h"

typedef struct sim_transfer { /* LL: one rank's part in a meet */
    int64_t flight_ns; /* first byte sent to last byte received, all ranks sending together */
    int64_t port_ns;   /* of it, how long the NIC is busy */
    int64_t recv_ns;
    int64_t sent_ns, landed_ns; /* its send began; its bytes are everywhere */
    uint64_t bytes;
    uint16_t recv_sms;
    bool sent, finished;
} sim_transfer;

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

dbo_status dbo_sim_post(sim_rank *rank, const dbo_a2a_args *args, dbo_a2a_handle *out);
dbo_status dbo_sim_finish(sim_rank *rank, dbo_a2a_handle handle, dbo_stream stream);
dbo_status dbo_sim_counts(sim_rank *rank, dbo_a2a_handle handle);

/* At its stream's head: a MEET comes, a SEND starts, a RECV comes. */
void dbo_sim_meet_join(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_send_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_recv_begin(dbo_sim *sim, uint32_t stream, int64_t at_ns);
void dbo_sim_meet_leave(dbo_sim *sim, const sim_item *item); /* a MEET or RECV has completed */
void dbo_sim_meet_deliver(dbo_sim *sim, const sim_item *item, uint32_t rank); /* it ends there */

/* Opens the meet of a transfer that is being queued; LL: keeps the rank's part in it. */
dbo_status dbo_sim_meet_open(dbo_sim *sim, uint32_t slot, uint32_t sequence, dbo_op_id id,
                             uint32_t rank, const sim_transfer *transfer);
/* Takes a rank's side of a transfer that is open: it moves rows. */
dbo_status dbo_sim_meet_rows(dbo_sim *sim, uint32_t slot, uint32_t sequence, uint32_t rank,
                             sim_numeric *rows);
bool dbo_sim_has_sent(const sim_meet *meet, uint32_t rank); /* LL: its send has begun */
void dbo_sim_comms_fini(dbo_sim *sim);

#endif
