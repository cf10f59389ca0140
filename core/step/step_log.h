/* step_log.h: a step's decision and cut, in the two lines that vLLM logs at level debug, so that
 * the same search finds them in either log:
 *
 *     Running batch with cudagraph_mode: FULL, batch_descriptor: BatchDescriptor(num_tokens=128,
 *         num_reqs=128, uniform=True, has_lora=False), should_ubatch: True,
 *         num_tokens_across_dp: tensor([128, 128], dtype=torch.int32)
 *     ubatch_slices: [UBatchSlice(request_slice=slice(0, 64, None),
 *         token_slice=slice(0, 64, None)), ...], ubatch_slices_padded: [...]
 *
 * (each on one line). The first goes to subsystem vote, the second to slice. Nothing is built when
 * nobody listens; without memory the line is left out.
 *
 *     dbo_step_log_vote(&log, &decision, num_reqs_padded, across_dp, num_ranks);
 *     dbo_step_log_slices(&log, &cut);
 */
#ifndef DBO_STEP_LOG_H
#define DBO_STEP_LOG_H

#include "core/base/log.h"
#include "core/decide/vote.h"
#include "core/step/plan.h"

#include <stdint.h>

/* `num_reqs_padded` is told for full graphs only; across_dp is (num_ranks). One rank alone has no
 * counts across ranks: None. */
void dbo_step_log_vote(const dbo_log *log, const dbo_vote_result *decision, int32_t num_reqs_padded,
                       const int32_t *across_dp, uint32_t num_ranks);

/* Of one ubatch: None, twice. */
void dbo_step_log_slices(const dbo_log *log, const dbo_cut *cut);

#endif
