/* ref_model.h: a small Mixture-of-Experts model with real weights, for the reference to compute.
 *
 * Shapes are those of a dbo_model_spec; weights are drawn from a seed, the same on every machine,
 * all fp32. Limits say how much of a run memory is kept for: what is for good must not move, since
 * graphs replay from it.
 *
 *     dbo_ref_model *model = dbo_ref_model_create(&spec, num_layers, seed, &err);
 *     const dbo_ref_layer *layer = &model->layers[3];
 *     dbo_ref_model_destroy(model);
 *
 * Restrictions, refused by name: GQA or MLA; fp32 activations, cache and combine; a dispatch of
 * fp32 or fp8 rows (kept as int8 with a scale per 128 values); no groups of experts, no low rank of
 * queries; widths up to the limits below. Read-only once made; any thread.
 */
#ifndef DBO_REF_MODEL_H
#define DBO_REF_MODEL_H

#include "core/layer/layer_sizes.h"
#include "core/layer/model_ops.h"
#include "core/layer/model_spec.h"

#define DBO_REF_MAX_HIDDEN  512u
#define DBO_REF_MAX_HEAD    256u
#define DBO_REF_MAX_EXPERTS 256u

/* Matrices are (outputs, inputs), row by row. d: head width; n, m: query and KV heads. */
typedef struct dbo_ref_layer {
    const float *attn_norm, *ffn_norm; /* (H) */
    const float *qkv; /* GQA: (n d + 2 m d, H): q, k, v; MLA: (n (nope + rope) + rank + rope, H) */
    const float *kv_up;                        /* MLA: (n (nope + v), rank); else NULL */
    const float *out;                          /* GQA: (H, n d); MLA: (H, n v) */
    const float *router;                       /* (E, H) */
    const float *gate_up, *down;               /* routed experts: (E, 2 I, H), (E, H, I) */
    const float *shared_gate_up, *shared_down; /* (2 S, H), (H, S); S = num_shared * I */
    const float *dense_gate_up, *dense_down;   /* (2 D, H), (H, D) */
} dbo_ref_layer;

typedef struct dbo_ref_model {
    dbo_model_spec spec;
    uint32_t num_layers;
    const float *embedding, *norm, *head; /* (V, H), (H), (V, H) */
    dbo_ref_layer *layers;
    float *storage;
} dbo_ref_model;

/* Copies the spec. NULL with *err on failure. */
dbo_ref_model *dbo_ref_model_create(const dbo_model_spec *spec, uint32_t num_layers, uint64_t seed,
                                    dbo_error *err);
void dbo_ref_model_destroy(dbo_ref_model *model); /* NULL is fine */

/* ---- memory ---- */

typedef struct dbo_ref_limits {
    const dbo_model_spec *spec; /* whose tensors; what they cost may be another model's */
    uint32_t num_layers;
    uint32_t max_tokens;                /* padded, of a step of a rank */
    uint32_t max_requests, max_columns; /* of a step of a rank; blocks of a request */
    uint32_t num_blocks, block_size;    /* of the KV cache */
} dbo_ref_limits;

/* Values of one token's row: in ATTN, and in the KV cache of a layer. */
uint32_t dbo_ref_attn_width(const dbo_model_spec *spec);
uint32_t dbo_ref_kv_width(const dbo_model_spec *spec);
/* Of them in ATTN, the query. */
uint32_t dbo_ref_query_width(const dbo_model_spec *spec);

/* METADATA of an ubatch is an array of int32; what is where, as indices. */
typedef struct dbo_ref_metadata {
    uint32_t num_tokens, num_requests;  /* real ones */
    uint32_t first_token;               /* of the step's tokens; for notes */
    uint32_t positions, slots;          /* (max_tokens) of each token */
    uint32_t query_start_loc, seq_lens; /* (max_requests + 1), (max_requests) */
    uint32_t block_table;               /* (max_requests, max_columns) */
    uint32_t count;                     /* of all */
} dbo_ref_metadata;

dbo_ref_metadata dbo_ref_metadata_map(const dbo_ref_limits *limits);

/* Sizes of an ubatch's tensors when rows are real: any routing fits. `ubatch` 0 has those that are
 * the rank's. */
void dbo_ref_sizes(const dbo_ref_limits *limits, const dbo_layer_shape *shape, uint32_t ubatch,
                   dbo_layer_sizes *out);

#endif
