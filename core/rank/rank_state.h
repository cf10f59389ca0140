/* rank_state.h: what a rank is made of.
 *
 * A rank owns its seam, its executor, the device streams and events that programs name by small
 * numbers, the handles in flight and the memory of programs' buffers (rank_memory.h). Whoever
 * refuses a hot call leaves the sentence in `failure` and returns the status:
 *
 *     return dbo_fail(&rank->failure, DBO_REFUSED, NULL, "the hook is not set");
 *     ...
 *     return dbo_rank_fail(rank, status, err);      // up where there is an err again
 */
#ifndef DBO_RANK_STATE_H
#define DBO_RANK_STATE_H

#include "core/memory/allocator.h"
#include "core/program/program.h"
#include "core/turn/executor.h"

DBO_PUBLIC_BEGIN

typedef struct dbo_rank dbo_rank;
typedef struct dbo_ubatch dbo_ubatch;
typedef struct dbo_forward_context dbo_forward_context; /* both: ubatch.h */

/* A transfer in flight: its handle and who it belongs to. */
typedef struct dbo_flight {
    dbo_a2a_handle handle; /* DBO_NO_HANDLE: none */
    dbo_stream stream;     /* of the post: where its receive hook runs */
    dbo_op_id id;
} dbo_flight;

/* The memory of a program's buffer; block NULL: it has none now. */
typedef struct dbo_frame_buffer {
    dbo_block *block;
    bool workspace; /* there for good */
    bool lent;      /* a graph's: not the frame's to free */
} dbo_frame_buffer;

struct dbo_rank {
    uint32_t id;
    dbo_seam seam;
    dbo_executor *executor;
    dbo_stream streams[DBO_MAX_STREAMS];
    uint32_t num_streams;
    const dbo_forward_context *forward;       /* the installed one; NULL: none */
    dbo_event compute_done[DBO_MAX_UBATCHES]; /* of the ubatch contexts; created once */
    dbo_event comm_done[DBO_MAX_UBATCHES];
    uint32_t num_context_events;
    dbo_ubatch *ubatches; /* max_ubatches contexts, used by one forward at a time */
    uint32_t max_ubatches;
    dbo_error failure; /* of the engine's own refusals in hot calls */
    /* the frame of programs: program-local number -> the device's */
    dbo_event *events;
    uint32_t num_events;
    dbo_flight *flights;
    uint32_t num_flights;
    dbo_allocator *allocator;  /* made for the first program with buffers */
    dbo_frame_buffer *buffers; /* by program buffer number */
    uint64_t *addresses;       /* likewise: follows ALLOC, 0: none; made up if nothing is stored */
    uint32_t num_buffers;
    bool keeps_workspaces; /* graphs write to them: one that grows leaves its old block behind */
    dbo_block **left_behind;
    uint32_t num_left_behind;
};

/* The sentence of the last failed hot call: the engine's own, or the device's. Returns `status`. */
dbo_status dbo_rank_fail(dbo_rank *rank, dbo_status status, dbo_error *err);

/* Tells a trace, if there is one. Returns the host's time. */
int64_t dbo_rank_mark(const dbo_rank *rank, dbo_mark_kind kind, uint32_t ubatch, uint32_t step);

DBO_PUBLIC_END

#endif
