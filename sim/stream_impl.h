/* stream_impl.h: items and FIFO streams of the simulator.
 *
 * An item is what a host call queues: 40 bytes, in a ring per stream. Positions count items from 0
 * for ever: `issued` have been queued, the first `resolved` of them have known ends. An event is
 * (stream, count issued at its record), complete when item count - 1 ends. An item's place in its
 * ring is given out again once its end is not after the host time of the new item; so what is
 * overwritten is over for everybody who can still ask. Calls come from the context that runs; none
 * blocks but those that take a rank.
 *
 *     sim_item *item = dbo_sim_reserve(rank, stream);       // waits for room in the launch queue
 *     *item = (sim_item){.kind = SIM_OP, .not_before = rank->host_ns, .ns = 1000, .id = id};
 *     dbo_sim_queue(sim, stream, item);
 */
#ifndef DBO_SIM_STREAM_IMPL_H
#define DBO_SIM_STREAM_IMPL_H

#include "core/seam/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dbo_sim dbo_sim;
typedef struct sim_rank sim_rank;
typedef struct sim_numeric sim_numeric; /* numeric_impl.h */

#define SIM_NONE    UINT32_MAX
#define SIM_UNKNOWN INT64_MAX

typedef enum sim_item_kind {
    SIM_OP,   /* a kernel */
    SIM_WAIT, /* until stream `peer` has done `count` items */
    SIM_MEET, /* HT: a transfer, a rendezvous of all ranks */
    SIM_SEND, /* LL: the sending kernel; bytes leave from its start on, in a flow */
    SIM_RECV  /* LL: waits for the flight, then the receiving kernel */
} sim_item_kind;

typedef struct sim_item {
    uint8_t kind;
    uint8_t slot : 5;  /* transfers: the communicator */
    uint8_t flows : 1; /* SIM_MEET: asks for ports */
    uint8_t moves : 1; /* transfers: rows, delivered at its end */
    uint8_t node : 1;  /* of a graph: takes no room in the launch queue */
    uint16_t sms;      /* with hbm_mbps: 0 both: takes no part in sharing */
    union {
        uint32_t sequence; /* transfers: which of the communicator's */
        uint32_t peer;     /* SIM_WAIT: the other stream */
        uint32_t hbm_mbps; /* SIM_OP */
    };
    union {
        int64_t not_before; /* the host time of its issue */
        int64_t end_ns;     /* once resolved */
    };
    union {
        int64_t ns;     /* work alone */
        uint64_t count; /* SIM_WAIT: items of the other stream */
    };
    union {
        dbo_op_id id;
        int64_t ready_ns; /* SIM_WAIT: when the other's item ends; SIM_UNKNOWN */
    };
    union {
        uint64_t bytes;       /* transfers */
        sim_numeric *numeric; /* SIM_OP */
        uint64_t next_wait;   /* SIM_WAIT: the next that waits for the same stream */
    };
} sim_item;

typedef enum sim_state {
    SIM_READY,    /* the head, if any, can be looked at */
    SIM_BLOCKED,  /* the head waits: for another stream, for a meet */
    SIM_STARTING, /* the head starts at `due` */
    SIM_RUNNING   /* the head ends at `due` (with sharing: at the present rates) */
} sim_state;

/* Where a waiting item is: entity << 44 | its number on the stream. */
#define SIM_NO_WAIT        UINT64_MAX
#define SIM_WAIT_AT(e, n)  ((uint64_t)(e) << 44 | (n))
#define SIM_WAIT_STREAM(w) ((uint32_t)((w) >> 44))
#define SIM_WAIT_NUMBER(w) ((w) & ((UINT64_C(1) << 44) - 1))

typedef struct sim_stream {
    sim_item *ring;
    uint32_t mask, number; /* number: the trace's */
    uint32_t rank;
    uint8_t state; /* sim_state */
    bool queued;   /* in the world's list of streams to look at */
    bool met;      /* the head has met, or comes to no meet: at `due` it runs */
    bool shares;   /* is among the running of its GPU */
    bool flows_in; /* a lane: its flow comes in */
    uint8_t slot;  /* ... and is of this communicator's transfer: */
    uint32_t sequence;
    uint64_t issued, resolved;
    int64_t end_ns;   /* of the last resolved item */
    int64_t floor_ns; /* the next item starts no earlier: waits that were known at issue */
    uint64_t first_wait, last_wait; /* items that wait for this stream, by their count */
    uint64_t first_count;           /* of the first one; UINT64_MAX: there is none */
    uint64_t host_count;            /* the rank's host waits for so many items; 0: it does not */
    int64_t due, started;
    uint32_t next_member; /* of the meet that the head waits in; of the rank's idle lanes */
    uint64_t oldest;      /* the launch queue begins with this item; those before it are over */
    int64_t room;         /* launches that it takes without asking */
} sim_stream;

uint32_t dbo_sim_stream_create(dbo_sim *sim, uint32_t rank, uint32_t number, dbo_error *err);
void dbo_sim_stream_fini(sim_stream *stream);
/* Waits for room and gives the place of the stream's next launch; the caller writes all of it, with
 * the rank's host time of now as not_before, and queues it before anything else is issued there.
 * NULL: the world has failed. Waits take no room and need none. */
sim_item *dbo_sim_reserve(sim_rank *rank, uint32_t stream);
void dbo_sim_queue(dbo_sim *sim, uint32_t stream, sim_item *item);
/* Both, for an item that exists already; stamps the host time. */
dbo_status dbo_sim_issue(sim_rank *rank, uint32_t stream, const sim_item *item);
/* Waits for the room of one launch and takes it. */
dbo_status dbo_sim_make_room(sim_rank *rank, uint32_t stream);
/* No depth limit; not_before is set. A SIM_WAIT goes through dbo_sim_enqueue_wait. */
dbo_status dbo_sim_enqueue(dbo_sim *sim, uint32_t stream, const sim_item *item);
dbo_status dbo_sim_enqueue_wait(dbo_sim *sim, uint32_t stream, const sim_item *wait);
/* The next item of `stream` waits for `count` items of `peer`. */
dbo_status dbo_sim_issue_wait(sim_rank *rank, uint32_t stream, uint32_t peer, uint64_t count);
/* Before a record or a replay: a wait that no item has carried yet becomes an item. */
dbo_status dbo_sim_flush_wait(sim_rank *rank, uint32_t stream);
/* End of the first `count` items: known, at most `host_ns` (then perhaps less), or SIM_UNKNOWN. */
int64_t dbo_sim_end_of(const sim_stream *stream, uint64_t count, int64_t host_ns);
/* Of items whose end is not known: no earlier than this. Work is never faster than alone. */
int64_t dbo_sim_earliest_end(const sim_stream *stream, uint64_t count);
/* Blocks the rank's host until the first `count` items of the stream have ended. */
dbo_status dbo_sim_host_await(sim_rank *rank, uint32_t stream, uint64_t count);
void dbo_sim_stream_event(dbo_sim *sim, uint32_t stream);
void dbo_sim_look_at(dbo_sim *sim, uint32_t stream); /* its head may be able to go on */
/* The head's work of `ns` begins at start_ns; true: and its end is known already. */
bool dbo_sim_run_head(dbo_sim *sim, uint32_t stream, int64_t start_ns, int64_t ns);
/* Its head's work is over: it ends now, and the stream can go on. */
void dbo_sim_end_now(dbo_sim *sim, uint32_t stream);
void dbo_sim_push_span(dbo_sim *sim, const sim_item *item, dbo_span_part part, uint32_t number,
                       int64_t start_ns, int64_t end_ns);
static inline sim_item *sim_head(sim_stream *s)
{
    return &s->ring[s->resolved & s->mask];
}
static inline bool sim_shares(const sim_item *item)
{
    return item->sms != 0 || item->flows || (item->kind == SIM_OP && item->hbm_mbps != 0);
}
/* Must it start at its moment, not ahead of it? */
static inline bool sim_needs_event(const sim_item *item)
{
    if (item->kind == SIM_OP)
        return item->sms != 0 || item->hbm_mbps != 0 || item->numeric != NULL;
    return item->sms != 0 || item->flows || item->moves;
}

#endif
