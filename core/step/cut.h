/* cut.h: which requests and tokens of a step each ubatch owns (slice.h, attn_metadata.h).
 *
 *     dbo_cut cut;
 *     const dbo_cut_step step = {.requests = requests, .num_reqs = n, .num_reqs_padded = n,
 *                                .num_tokens_padded = 128, .num_ubatches = 2, ...};
 *     DBO_TRY(dbo_cut_make(&cut, &step, err));
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
#include "core/layer/routing.h"
#include "core/seam/op.h"

typedef struct dbo_cut {
    uint32_t num_ubatches; /* 1: unsplit */
    bool has_blocks;       /* a request names blocks of the KV cache */
    int32_t num_tokens_padded, num_reqs_padded;
    dbo_ubatch_slice slices[DBO_MAX_UBATCHES], slices_padded[DBO_MAX_UBATCHES];
    dbo_ubatch_metadata metadata[DBO_MAX_UBATCHES]; /* arrays are this cut's */
    uint64_t group_tokens[DBO_MAX_UBATCHES];        /* real tokens on all ranks */
    dbo_routing_tokens dispatch[DBO_MAX_UBATCHES];  /* a GPU of this rank's, the first of them */
    int32_t *seq_lens;                              /* (num_reqs) of the batch, after the cut */
    int32_t *storage;
} dbo_cut;

/* What is cut; borrowed for the call. */
typedef struct dbo_cut_step {
    const dbo_request *requests; /* (num_reqs) of this rank */
    int32_t num_reqs, num_reqs_padded;
    int32_t num_tokens_padded;
    uint32_t num_ubatches; /* >= 1 */
    uint32_t rank, num_ranks;
    const int32_t *tokens_across;      /* (num_ranks) real tokens of each */
    uint32_t tp_size, gpus_per_domain; /* where GPUs are; 0: nobody asks */
} dbo_cut_step;

dbo_status dbo_cut_make(dbo_cut *cut, const dbo_cut_step *step, dbo_error *err);
void dbo_cut_fini(dbo_cut *cut);

/* How many requests a step is padded to: as many as a captured graph may have run. */
int32_t dbo_cut_padded_reqs(const dbo_config *config, const dbo_vote_result *decision,
                            int32_t num_reqs);

#endif
