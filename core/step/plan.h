/* plan.h: one rank's step, cut into ubatches and written as programs.
 *
 * A cut says which requests and tokens each ubatch owns (slice.h, attn_metadata.h); a plan has the
 * programs of the layers for these tokens. Layers of one kind (dense or with experts, windowed or
 * full attention) share a program. Built per step; owns its memory.
 */
#ifndef DBO_PLAN_H
#define DBO_PLAN_H

#include "core/decide/attn_metadata.h"
#include "core/decide/batch.h"
#include "core/decide/slice.h"
#include "core/program/program.h"
#include "core/step/deployment.h"

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

/* Index of a layer's program: dense or not, windowed or not. */
#define DBO_PLAN_LAYER_KINDS 4u

typedef struct dbo_plan {
    uint32_t num_ubatches, num_layers;
    int32_t num_tokens_padded;
    bool has_head;           /* without a model there are no ends; embed then has no op */
    dbo_program embed, head; /* zeroed: none; a built plan has at least embed's memory */
    dbo_program layers[DBO_PLAN_LAYER_KINDS];
    uint8_t *kind_of_layer; /* (num_layers) */
} dbo_plan;

/* `caps` of the back end that will run it. On failure nothing is left to free. */
dbo_status dbo_plan_build(dbo_plan *plan, const dbo_deployment *deployment, const dbo_cut *cut,
                          const dbo_a2a_caps *caps, dbo_error *err);
void dbo_plan_fini(dbo_plan *plan);

#endif
