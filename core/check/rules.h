/* rules.h: decisions that break a rule, whatever order things then happen in.
 *
 * Pure functions over what a step has decided: no log, no settings of the run beyond the numbers.
 *
 *     dbo_check_graph_rule(tokens, num_ranks, 512, 2, step, &findings);   // a graph of 512 tokens
 */
#ifndef DBO_CHECK_RULES_H
#define DBO_CHECK_RULES_H

#include "core/decide/batch.h"
#include "core/trace/findings.h"

#include <stdbool.h>
#include <stdint.h>

/* A split step that is replayed from a graph of `padded` tokens: every rank's last ubatch must have
 * a real token, since a graph's metadata were captured with some. `tokens` (num_ranks): real ones.
 */
void dbo_check_graph_rule(const int32_t *tokens, uint32_t num_ranks, int32_t padded,
                          uint32_t num_ubatches, uint32_t step, dbo_findings *out);

/* The batch's own lengths (num_reqs) are what its requests say, after the step was cut. */
void dbo_check_batch_kept(const dbo_request *requests, int32_t num_reqs, const int32_t *seq_lens,
                          uint32_t rank, uint32_t step, dbo_findings *out);

#endif
