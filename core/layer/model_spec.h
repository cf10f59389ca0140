/* model_spec.h: the shapes of a Mixture-of-Experts decoder that costs are computed from.
 *
 * Numbers are those of the model's published config. `attention` decides which of the fields below
 * it are read. Plain data; the caller owns it. DBO_MODEL_FIELDS is the one list of its members:
 * key, range and meaning; scripts/models/ has a file a model with these keys.
 *
 *     dbo_model_spec model;
 *     dbo_model_spec_init(&model);
 *     model.layers = 61;
 *     model.hidden = 7168;
 *     DBO_TRY(dbo_model_spec_check(&model, err)); // refused: it has no name
 */
#ifndef DBO_MODEL_SPEC_H
#define DBO_MODEL_SPEC_H

#include "core/base/field.h"
#include "core/base/status.h"
#include "core/seam/op.h"

#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef enum dbo_attention {
    DBO_ATTENTION_MLA,
    DBO_ATTENTION_GQA,
    DBO_ATTENTION_LINEAR
} dbo_attention;

typedef struct dbo_model_spec {
    char name[64], source[160], confidence[64];
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

/* X(member, key, type, min, max, required, choices, what) */
#define DBO_MODEL_FIELDS(X)                                                                        \
    X(name, "name", TEXT, 0, 64, 1, NULL, "what people call it")                                   \
    X(source, "source", TEXT, 0, 160, 0, NULL, "where the numbers were read")                      \
    X(confidence, "confidence", TEXT, 0, 64, 0, NULL, "A primary, B copy, C recalled, D derived")  \
    X(layers, "layers", U32, 1, 1024, 1, NULL, "decoder layers")                                   \
    X(hidden, "hidden", U32, 16, 65536, 1, NULL, "width of the residual stream")                   \
    X(heads, "heads", U32, 1, 1024, 1, NULL, "query heads")                                        \
    X(vocab, "vocab", U32, 16, 4194304, 1, NULL, "tokens of the vocabulary")                       \
    X(attention, "attention", CHOICE, 0, 2, 1, dbo_attention_names, "mla, gqa or linear")          \
    X(q_lora_rank, "q_lora_rank", U32, 0, 65536, 0, NULL, "MLA: rank of q; 0: one projection")     \
    X(kv_lora_rank, "kv_lora_rank", U32, 0, 65536, 0, NULL, "MLA: rank of the cached latent")      \
    X(qk_nope, "qk_nope", U32, 0, 4096, 0, NULL, "MLA: head width of q and k without rope")        \
    X(qk_rope, "qk_rope", U32, 0, 4096, 0, NULL, "MLA: head width of q and k with rope")           \
    X(v_head, "v_head", U32, 0, 4096, 0, NULL, "MLA: head width of v")                             \
    X(kv_heads, "kv_heads", U32, 0, 1024, 0, NULL, "GQA: key and value heads")                     \
    X(head_dim, "head_dim", U32, 0, 4096, 0, NULL, "GQA: head width")                              \
    X(window, "window", U32, 0, 16777216, 0, NULL, "GQA: tokens seen in windowed layers; 0: all")  \
    X(window_every, "window_every", U32, 0, 1024, 0, NULL, "GQA: every n-th layer has the window") \
    X(num_experts, "num_experts", U32, 0, 65536, 0, NULL, "routed experts; 0: a dense model")      \
    X(topk, "topk", U32, 0, 256, 0, NULL, "routed experts a token")                                \
    X(num_groups, "num_groups", U32, 0, 65536, 0, NULL, "groups of experts; 0: none")              \
    X(topk_groups, "topk_groups", U32, 0, 65536, 0, NULL, "groups a token at most; 0: no limit")   \
    X(num_shared, "num_shared", U32, 0, 64, 0, NULL, "shared experts, each moe_inter wide")        \
    X(moe_inter, "moe_inter", U32, 0, 1048576, 0, NULL, "inner width of an expert")                \
    X(dense_inter, "dense_inter", U32, 0, 1048576, 0, NULL, "inner width of a dense layer's MLP")  \
    X(first_k_dense, "first_k_dense", U32, 0, 1024, 0, NULL, "layers without experts, in front")   \
    X(weight_dtype, "weight_dtype", CHOICE, 0, 2, 1, dbo_dtype_names, "of linear layers and math") \
    X(kv_dtype, "kv_dtype", CHOICE, 0, 2, 0, dbo_dtype_names, "of the KV cache (bf16)")            \
    X(activation_dtype, "activation_dtype", CHOICE, 0, 2, 0, dbo_dtype_names,                      \
      "of activations between kernels (bf16)")                                                     \
    X(dispatch_dtype, "dispatch_dtype", CHOICE, 0, 2, 0, dbo_dtype_names,                          \
      "of dispatched rows: fp8 adds a scale per 128 values")                                       \
    X(combine_dtype, "combine_dtype", CHOICE, 0, 2, 0, dbo_dtype_names, "of combined rows (bf16)")

/* Names of dbo_attention in enum order, NULL at the end. */
extern const char *const dbo_attention_names[];

/* The table as an array; *count members. */
const dbo_field *dbo_model_fields(uint32_t *count);

/* All zero, dtypes bf16 (dispatch fp8): what a reader starts from. */
void dbo_model_spec_init(dbo_model_spec *model);

/* Ranges and consistency; the sentence names the field. */
dbo_status dbo_model_spec_check(const dbo_model_spec *model, dbo_error *err);

DBO_PUBLIC_END

#endif
