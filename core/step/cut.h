/* cut.h: which requests and tokens of a step each ubatch owns (slice.h, attn_metadata.h).
 *
 *     dbo_cut cut;
 *     DBO_TRY(dbo_cut_make(&cut, requests, n, 128, n, 2, tokens_across, num_ranks, err));
 *     ... cut.slices[1], cut.metadata[1] ...
 *     dbo_cut_fini(&cut);
 *
 * Made per step; owns its memory.
 */
#ifndef DBO_CUT_H
#define DBO_CUT_H

#include "core/decide/attn_metadata.h"
#include "core/decide/batch.h"
#include "core/decide/slice.h"
#include "core/decide/vote.h"
#include "core/seam/op.h"

typedef struct dbo_cut {
    uint32_t num_ubatches; /* 1: unsplit */
    uint32_t num_ranks;
    bool has_blocks; /* a request names blocks of the KV cache */
    int32_t num_tokens_padded, num_reqs_padded;
    dbo_ubatch_slice slices[DBO_MAX_UBATCHES], slices_padded[DBO_MAX_UBATCHES];
    dbo_ubatch_metadata metadata[DBO_MAX_UBATCHES]; /* arrays are this cut's */
    uint64_t group_tokens[DBO_MAX_UBATCHES];        /* real tokens on all ranks */
    int32_t *seq_lens;                              /* (num_reqs) of the batch, after the cut */
    int32_t *storage;
} dbo_cut;

/* `tokens_across` (num_ranks): real tokens of each rank. num_ubatches >= 1. The cut of padded
 * tokens P is at multiples of P / N. */
dbo_status dbo_cut_make(dbo_cut *cut, const dbo_request *requests, int32_t num_reqs,
                        int32_t num_tokens_padded, int32_t num_reqs_padded, uint32_t num_ubatches,
                        const int32_t *tokens_across, uint32_t num_ranks, dbo_error *err);
void dbo_cut_fini(dbo_cut *cut);

/* How many requests a step is padded to: as many as a captured graph may have run. */
int32_t dbo_cut_padded_reqs(const dbo_config *config, const dbo_vote_result *decision,
                            int32_t num_reqs);

#endif
