/* rank.h: one rank of the group: making it, and running programs on it.
 *
 * Hundreds of ranks live in one process when simulated, one under MPI; nothing is shared between
 * them (rank_state.h has what a rank is made of). All calls come from the context that holds the
 * rank's turn. A rank stays where it was initialised.
 *
 *     DBO_TRY(dbo_rank_init(&rank, 0, &seam, DBO_CONTEXT_FIBER, 2, NULL, err));
 *     DBO_TRY(dbo_rank_fit(&rank, &program, err));
 *     status = dbo_program_run(&rank, NULL, &program, step, layer);   // unsplit
 *     if (status != DBO_OK)
 *         dbo_rank_fail(&rank, status, err);
 *     dbo_rank_fini(&rank);
 */
#ifndef DBO_RANK_H
#define DBO_RANK_H

#include "core/program/program.h"
#include "core/rank/rank_state.h"
#include "core/rank/ubatch.h"

DBO_PUBLIC_BEGIN

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

DBO_PUBLIC_END

#endif
