/* rank_memory.h: the memory of programs' buffers, by number, in a rank's frame.
 *
 * ALLOC gives a buffer a block of its stream's pool, FREE gives it back, RECORD_STREAM announces
 * another stream's use (allocator.h has what that means). Buffers persist from layer to layer, like
 * everything in the frame; a forward ends with dbo_rank_release, which drops what it has left: its
 * outputs, or, after a failure, whatever was there. Workspaces stay until the rank ends.
 *
 * A graph's outputs stay in its blocks: whoever captured takes them out of the frame, and lends
 * them to it after each replay.
 *
 * Hot calls return a status; dbo_rank_fail has the sentence, which names the buffer. They are
 * refused when the program is wrong: a buffer that has memory is allocated, one that has none freed
 * or announced. All else: DBO_NO_MEMORY, or what the device says.
 *
 *     status = dbo_rank_alloc(rank, program, instr);            // ALLOC, in the interpreter
 *     DBO_TRY(dbo_rank_take_outputs(rank, &outputs, err));      // after a capture
 *     dbo_rank_lend_outputs(rank, &outputs);                    // after each replay
 *     DBO_TRY(dbo_rank_release(rank, err));                     // at a forward's end
 */
#ifndef DBO_RANK_MEMORY_H
#define DBO_RANK_MEMORY_H

#include "core/program/program.h"
#include "core/rank/rank_state.h"

/* ---- for the interpreter ---- */

dbo_status dbo_rank_alloc(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr);
dbo_status dbo_rank_free(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr);
dbo_status dbo_rank_record_stream(dbo_rank *rank, const dbo_program *program,
                                  const dbo_instr *instr);

/* ---- around a forward ---- */

/* Frees what the frame holds but for workspaces; lent blocks go back to their graph. */
dbo_status dbo_rank_release(dbo_rank *rank, dbo_error *err);

/* Blocks by buffer number, NULL where there is none. */
typedef struct dbo_rank_outputs {
    dbo_block **blocks;
    uint32_t count;
} dbo_rank_outputs;

/* Takes all blocks but workspaces out of the frame. */
dbo_status dbo_rank_take_outputs(dbo_rank *rank, dbo_rank_outputs *out, dbo_error *err);
/* Shows them in the frame until dbo_rank_release; they stay the taker's. */
void dbo_rank_lend_outputs(dbo_rank *rank, const dbo_rank_outputs *outputs);
void dbo_rank_free_outputs(dbo_rank *rank, dbo_rank_outputs *outputs); /* zeroed ones are fine */

/* ---- for rank.c ---- */

dbo_status dbo_rank_memory_fit(dbo_rank *rank, const dbo_program *program, dbo_error *err);
void dbo_rank_memory_fini(dbo_rank *rank);

#endif
