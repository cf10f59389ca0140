/* checker_impl.h: the checker's data, shared by its files. Private to core/check/.
 *
 *     checker.c    calls -> clocks, buffers, captures
 *     transfers.c  posts, finishes, results held, queues; who has posted what
 *     waits.c      turns, exchanges
 *     deadlock.c   why nothing moves
 *     explain.c    conflicts as findings
 *     memory.c     touches of buffers
 *
 * A file that has found something says so by
 *
 *     dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_RULE, call->id);
 */
#ifndef DBO_CHECK_CHECKER_IMPL_H
#define DBO_CHECK_CHECKER_IMPL_H

#include "core/base/arena.h"
#include "core/check/order/check.h"
#include "core/check/order/memory.h"
#include "core/rank/recorder.h"

#define CHECK_HELD  16u
#define CHECK_STEPS 8u
#define CHECK_POOLS 0x100u /* a pool's number modulo this is the stream whose it is */

typedef struct check_event {
    dbo_clock clock;
    bool recorded;
} check_event;

/* A buffer number: its memory now, and what it is called. */
typedef struct check_buffer {
    const char *name;
    dbo_tenancy *tenancy;               /* or NULL */
    bool read_only, write_once, handle; /* check.h */
    uint32_t block;
    bool known; /* it has had memory */
} check_buffer;

typedef struct check_transfer {
    dbo_op_id id;
    uint32_t handle, number; /* of the rank, from 1 */
    uint32_t stream, dim, tick;
    dbo_clock before; /* over at its start */
    dbo_clock done;   /* over at its end */
} check_transfer;

/* A transfer that has been finished: by its tick in its slot, and on which stream. */
typedef struct check_finished {
    uint32_t tick, stream;
} check_finished;

/* A result of a communicator: in its buffers until so many later posts have come. Its rows are; the
 * handle that a dispatch leaves is memory of the ubatch's. */
typedef struct check_result {
    uint32_t number; /* of the transfer; 0: none */
    uint32_t dim, tick;
    dbo_op_id id, cleared_by;
    bool cleared;
    dbo_clock readers; /* the latest touch of each dimension */
} check_result;

typedef struct check_access { /* of a capture */
    uint32_t buffer;
    uint64_t serial; /* of its tenancy */
    dbo_op_id id;
    bool write;
} check_access;

typedef struct check_graph {
    uint32_t graph;
    DBO_VEC(check_access) accesses;
    DBO_VEC(dbo_op_id) posts; /* in issue order */
} check_graph;

typedef enum check_turn {
    CHECK_TURN_NONE,
    CHECK_TURN_RUNS,
    CHECK_TURN_WAITS,
    CHECK_TURN_ENDING, /* its model has ended, and it has not signalled */
    CHECK_TURN_ENDED,
    CHECK_TURN_STUCK /* it ended without having got its turn back */
} check_turn;

typedef struct check_step {
    uint32_t step, exchanges;
    bool ended;
} check_step;

typedef struct check_rank {
    dbo_checker *checker;
    uint32_t id;
    dbo_a2a_caps caps;
    dbo_clock host;
    uint32_t host_changes;
    dbo_clock streams[DBO_CLOCK_STREAMS];
    uint32_t seen_changes[DBO_CLOCK_STREAMS]; /* of the host, by the stream */
    const char *stream_names[DBO_CLOCK_STREAMS];
    uint32_t ticks[DBO_CLOCK_DIMS];
    check_event *events;
    uint32_t num_events;
    check_buffer *buffers;
    uint32_t num_buffers;
    dbo_check_memory memory;
    /* transfers */
    DBO_VEC(check_transfer) live; /* posted, not finished */
    uint32_t num_transfers;
    check_result held[DBO_MAX_UBATCHES][CHECK_HELD];
    uint32_t num_held[DBO_MAX_UBATCHES];
    check_finished finished[DBO_CLOCK_DIMS]; /* the latest one of each slot of the network */
    uint32_t posted[DBO_MAX_UBATCHES];
    uint32_t posted_step; /* of the last post, or DBO_NOWHERE */
    /* captures */
    bool capturing;
    uint32_t num_captures;
    check_graph capture;
    DBO_VEC(check_graph) graphs;
    /* host */
    uint8_t turns[DBO_MAX_UBATCHES]; /* check_turn */
    uint32_t yields[DBO_MAX_UBATCHES], num_ubatches;
    uint32_t step;
    check_step steps[CHECK_STEPS];
    uint64_t exchanges;
    bool replayed; /* a graph, in this step */
    bool open;     /* a call that blocks has not returned: */
    dbo_call waits_in;
    bool
        aborted; /* a call was given up, the one above: the machine had stopped, or a peer failed */
} check_rank;

/* Transfer k of a communicator, as the first rank posted it. */
typedef struct check_meet {
    dbo_op_id id;
    uint32_t rank; /* which that was; the id's is the machine's number */
} check_meet;

struct dbo_checker {
    dbo_check_options options;
    dbo_recorder recorder;
    dbo_arena names;
    check_rank **ranks;
    uint32_t num_ranks, cap_ranks;
    DBO_VEC(check_meet) comms[DBO_MAX_UBATCHES];
    dbo_findings findings;
    bool failed;
    bool too_many_streams;
};

/* checker.c */
check_buffer *dbo_check_buffer_at(check_rank *rank, uint32_t buffer);
/* Notes the accesses of an op at (dim, tick). */
void dbo_check_reads(check_rank *rank, const dbo_call *call, uint32_t dim, uint32_t tick,
                     const dbo_clock *clock);
void dbo_check_writes(check_rank *rank, const dbo_call *call, uint32_t dim, uint32_t tick,
                      uint32_t transfer, const dbo_clock *clock);
/* The clock of a new op of a stream; it knows what the host knows. */
dbo_clock *dbo_check_issue(check_rank *rank, uint32_t stream);

/* transfers.c */
void dbo_check_post(check_rank *rank, const dbo_call *call);
void dbo_check_counts(check_rank *rank, const dbo_call *call);
void dbo_check_finish(check_rank *rank, const dbo_call *call);
void dbo_check_result_read(check_rank *rank, const dbo_tenancy *tenancy, const dbo_touch *touch);
void dbo_check_slot_overwritten(check_rank *rank, uint32_t ubatch, uint32_t slot);
void dbo_check_transfers_end(check_rank *rank);
/* A graph is replayed as step `step`: its transfers are posted. */
void dbo_check_replayed_posts(check_rank *rank, const check_graph *graph, uint32_t step);
/* The transfer with this handle that has not been finished; NULL: none has. */
check_transfer *dbo_check_live_at(check_rank *rank, uint32_t handle);

/* waits.c */
void dbo_check_turn_event(check_rank *rank, const dbo_call *call);
void dbo_check_step_mark(check_rank *rank, const dbo_call *call);
void dbo_check_exchange_begins(check_rank *rank);
/* Does the rank's own ring of turns stand still? Then says why; *error is what the run ended with.
 */
bool dbo_check_explain_turns(dbo_checker *checker, const check_rank *rank, const dbo_error *error);
/* `absent` has not come to the exchange of the step in which `waiting` waits. */
void dbo_check_report_missed(dbo_checker *checker, const check_rank *absent,
                             const check_rank *waiting, uint32_t step, uint32_t behind);

/* deadlock.c */
void dbo_check_deadlock(dbo_checker *checker, const dbo_error *error);

/* explain.c */
void dbo_check_conflict(void *rank, const dbo_conflict *conflict);
void dbo_check_no_memory(check_rank *rank, const check_buffer *buffer, dbo_op_id id, bool write);
/* A finding of this rank about an op. */
dbo_finding dbo_check_finding_at(const check_rank *rank, dbo_finding_kind kind, dbo_op_id id);
void dbo_check_op_text(const check_rank *rank, dbo_op_id id, char *out, size_t size);

#endif
