/* model_spec.h: the shapes of a Mixture-of-Experts decoder that costs are computed from.
 *
 * Numbers are those of the model's published config. `attention` decides which of the fields below
 * it are read. Plain data; the caller owns it.
 */
#ifndef DBO_MODEL_SPEC_H
#define DBO_MODEL_SPEC_H

#include "core/op.h"
#include "core/status.h"

#include <stdint.h>

typedef enum dbo_attention { DBO_ATTENTION_MLA, DBO_ATTENTION_GQA, DBO_ATTENTION_LINEAR } dbo_attention;

typedef struct dbo_model_spec {
    char name[64];
    uint32_t layers, hidden, heads, vocab;
    dbo_attention attention;
    uint32_t q_lora_rank, kv_lora_rank, qk_nope, qk_rope, v_head; /* MLA; q_lora_rank 0: none */
    uint32_t kv_heads, head_dim, window; /* GQA; window 0: full attention */
    uint32_t window_every;               /* GQA: every n-th layer uses the window; 0: none */
    uint32_t num_experts, topk, num_groups, topk_groups; /* groups 0: no limit */
    uint32_t num_shared, moe_inter, dense_inter, first_k_dense;
    dbo_dtype weight_dtype, kv_dtype, activation_dtype;
    dbo_dtype dispatch_dtype, combine_dtype;
} dbo_model_spec;

/* Ranges and consistency; the sentence names the field. */
dbo_status dbo_model_spec_check(const dbo_model_spec *model, dbo_error *err);

#endif
