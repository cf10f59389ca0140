/* capture_impl.h: graphs. While a rank captures, what is issued to a captured stream goes here.
 *
 *     if (dbo_sim_captures(rank, stream))
 *         return dbo_sim_capture_item(rank, stream, &item, NULL, numeric);
 *
 * Calls with a stream want one that is captured, but for a wait, which may draw it in.
 */
#ifndef DBO_SIM_CAPTURE_IMPL_H
#define DBO_SIM_CAPTURE_IMPL_H

#include "sim/meet_impl.h"
#include "sim/world_impl.h"

extern const dbo_graph_ops dbo_sim_graph_table;

bool dbo_sim_captures(const sim_rank *rank, dbo_stream stream);
/* Takes `rows` unless it fails; `transfer`, of a post, is copied. */
dbo_status dbo_sim_capture_item(sim_rank *rank, dbo_stream stream, const sim_item *item,
                                const sim_transfer *transfer, sim_numeric *rows);
dbo_status dbo_sim_capture_record(sim_rank *rank, dbo_event event, dbo_stream stream);
dbo_status dbo_sim_capture_wait(sim_rank *rank, dbo_stream stream, dbo_event event);
uint32_t dbo_sim_capture_post(sim_rank *rank, uint32_t slot); /* its number within the graph */
/* LL: a transfer of the capture that has not been finished in it, or NULL. */
const sim_transfer *dbo_sim_captured_transfer(const sim_rank *rank, uint32_t slot,
                                              uint32_t sequence, dbo_op_id *id, bool *moves);
/* What is captured on the stream from now on follows all that is on `peer`. */
dbo_status dbo_sim_capture_join(sim_rank *rank, dbo_stream stream, dbo_stream peer);
/* HT: refuses unless the transfer of the capture was posted on this stream. */
dbo_status dbo_sim_capture_finish(sim_rank *rank, uint32_t slot, uint32_t sequence,
                                  dbo_stream stream);
void dbo_sim_capture_fini(sim_rank *rank);

#endif
