/* show.h: what an engine's step consists of, as tables: `dbo show PART SCRIPT`.
 *
 * Each function appends one subject of a simulated step to `out`: plain text, no colours. Ranks
 * that are alike are one column or one block; `rank` of the outcome stands for its like. A failed
 * allocation is remembered by the buffer.
 *
 *     dbo_show_vote(&outcome, &text);
 *     DBO_TRY(dbo_show_program(&outcome, 4, false, &text, err)); // of layer 4
 *     fputs(dbo_strbuf_text(&text), stdout);
 */
#ifndef DBO_APP_SHOW_H
#define DBO_APP_SHOW_H

#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "lab/files/json_write.h"
#include "lab/world/outcome.h"

#include <stdbool.h>
#include <stdint.h>

/* The matrix that the ranks exchanged, row by row, and what every rank derives from it. */
void dbo_show_vote(const dbo_outcome *outcome, dbo_strbuf *out);

/* Requests and tokens of each ubatch, as cut and as padded, of every kind of rank. */
void dbo_show_slices(const dbo_outcome *outcome, dbo_strbuf *out);

/* What attention is told in each ubatch: query_start_loc, seq_lens, slots. */
void dbo_show_metadata(const dbo_outcome *outcome, dbo_strbuf *out);

/* The schedule of layer `layer` of the outcome's rank, instruction by instruction. */
dbo_status dbo_show_program(const dbo_outcome *outcome, uint32_t layer, bool ascii, dbo_strbuf *out,
                            dbo_error *err);
/* The same as JSON (program_json.h); the caller begins and finishes the writer. */
dbo_status dbo_show_program_json(const dbo_outcome *outcome, uint32_t layer, dbo_json_writer *out,
                                 dbo_error *err);

/* The sizes that graphs are captured for, which form each has, and the one that this step used. */
void dbo_show_graph(const dbo_outcome *outcome, dbo_strbuf *out);

#endif
