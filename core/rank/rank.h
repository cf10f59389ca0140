/* rank.h: one rank of the group, as the engine sees it.
 *
 * A rank owns its seam, its executor, the device streams and events that programs name by small
 * numbers, the handles in flight and the memory of programs' buffers (rank_memory.h). Hundreds of
 * ranks live in one process when simulated, one under MPI; nothing here is shared between them. All
 * calls come from the context that holds the rank's turn. A rank stays where it was initialised.
 */
#ifndef DBO_RANK_H
#define DBO_RANK_H

#include "core/memory/allocator.h"
#include "core/program/program.h"
#include "core/rank/ubatch.h"
#include "core/seam/seam.h"
#include "core/turn/executor.h"

/* A transfer in flight: its handle and who it belongs to. */
typedef struct dbo_flight {
    dbo_a2a_handle handle; /* DBO_NO_HANDLE: none */
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

/* Takes the seam's tables, borrows their selves; creates streams "compute" and "comm" and the
 * executor. */
dbo_status dbo_rank_init(dbo_rank *rank, uint32_t id, const dbo_seam *seam,
                         dbo_context_kind executor, uint32_t max_ubatches, dbo_fiber_pool *pool,
                         dbo_error *err);
void dbo_rank_fini(dbo_rank *rank); /* fini of a zeroed rank is fine */

/* Makes the frame large enough for a program: events, handles, streams, buffers, and memory for its
 * workspaces. Cheap when it already is. Call it before the ubatches run, outside a capture. */
dbo_status dbo_rank_fit(dbo_rank *rank, const dbo_program *program, dbo_error *err);

/* Runs the running ubatch's part of the program once, as layer `layer` of step `step`. Outside an
 * ubatch, `ubatch` NULL runs part 0 unsplit: YIELD is then nothing and HOOK_SET finishes at once.
 * On failure dbo_rank_fail gives the sentence. */
dbo_status dbo_program_run(dbo_rank *rank, dbo_ubatch *ubatch, const dbo_program *program,
                           uint32_t step, uint32_t layer);

/* The sentence of the last failed hot call: the engine's own, or the device's. Returns `status`. */
dbo_status dbo_rank_fail(dbo_rank *rank, dbo_status status, dbo_error *err);

#endif
