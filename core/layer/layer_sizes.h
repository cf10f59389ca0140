/* layer_sizes.h: the tensors of one decoder layer of one ubatch: what they are, how large.
 *
 * A role is what a tensor is for. Programs of the built-in schedules give every ubatch one buffer a
 * role, numbered dbo_layer_buffer(ubatch, role) in all programs of a model, so that one layer's
 * output is the next one's input; role and ubatch can be read off the number.
 *
 * Shapes: T padded tokens of the ubatch (P = T / TP in the all-to-all), H hidden, R received tokens
 * (HT: distinct ones expected here; LL: every local expert has room for EP * capacity rows), K top
 * experts of a token, EP ranks, E experts, E' here, I inner widths, values as the model stores
 * them. A size of 0: the layer has no such tensor.
 *
 *     dbo_layer_sizes sizes;
 *     dbo_layer_sizes_compute(&model, &rows, &sizes);
 *     uint16_t buffer = dbo_layer_buffer(1, DBO_BUFFER_RECV_TOKENS);
 *     dbo_buffer_role role = dbo_layer_buffer_role(buffer); // RECV_TOKENS again, of ubatch 1
 *     uint64_t bytes = sizes.bytes[role];
 */
#ifndef DBO_LAYER_SIZES_H
#define DBO_LAYER_SIZES_H

#include "core/layer/model_spec.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

/* X(role, name, what it holds). TOKENS and SCALES exist where rows are quantised before the
 * dispatch, EXPERT_IN and EXPERT_SCALES where that is done to received rows. */
#define DBO_BUFFER_ROLES_TABLE(X)                                                              \
    X(RESIDUAL, "residual", "(T, H) the residual stream, from the embedding to the head")      \
    X(HIDDEN, "hidden", "(T, H) a layer's output, the next one's input")                       \
    X(ATTN, "attn", "(T, ...) queries, keys, values and the attention's output")               \
    X(FFN_IN, "ffn_in", "(T, H) input of the router, the experts and the shared expert")       \
    X(TOPK_IDS, "topk_ids", "(T, K) int64 experts of each token")                              \
    X(TOPK_WEIGHTS, "topk_weights", "(T, K) fp32 their weights")                               \
    X(TOKENS, "tokens", "(P, H) fp8 rows to dispatch")                                         \
    X(SCALES, "scales", "(P, H/128) fp32 their scales")                                        \
    X(LAYOUT, "layout", "HT: (P, EP) flags, (EP + E) counts")                                  \
    X(RECV_TOKENS, "recv_tokens", "(R, H) received rows")                                      \
    X(RECV_SCALES, "recv_scales", "(R, H/128) fp32 their scales")                              \
    X(RECV_IDS, "recv_ids", "HT: (R, K) int64 their experts")                                  \
    X(RECV_WEIGHTS, "recv_weights", "HT: (R, K) fp32 their weights")                           \
    X(HANDLE, "handle", "where received rows came from: read by the combine")                  \
    X(COUNTS, "counts", "(E') int32 rows of each expert")                                      \
    X(EXPERT_IN, "expert_in", "(R, H) fp8 received rows, quantised here")                      \
    X(EXPERT_SCALES, "expert_scales", "(R, H/128) fp32 their scales")                          \
    X(WORKSPACE, "workspace", "the experts' scratch; HT: their outputs before the reduce too") \
    X(EXPERT_OUT, "expert_out", "(R, H) rows to combine")                                      \
    X(COMBINED, "combined", "HT: (P, H) combined rows")                                        \
    X(SHARED_MID, "shared_mid", "(T, 2 I) inner values of the shared expert")                  \
    X(SHARED_OUT, "shared_out", "(T, H) its output")                                           \
    X(DENSE_MID, "dense_mid", "(T, 2 I) inner values of a dense layer's MLP")                  \
    X(LOGITS, "logits", "(requests, vocabulary) fp32")                                         \
    X(INPUT_IDS, "input_ids", "numbers only: the ubatch's tokens; from outside, for good")     \
    X(METADATA, "metadata", "numbers only: of the ubatch's attention; likewise")               \
    X(KV_CACHE, "kv_cache", "numbers only: keys and values; of ubatch 0, shared")              \
    X(OUTPUT, "output", "numbers only: final states, logits; of ubatch 0, shared")

typedef enum dbo_buffer_role {
    DBO_BUFFER_NONE,
#define DBO_BUFFER_ROLE(role, name, what) DBO_BUFFER_##role,
    DBO_BUFFER_ROLES_TABLE(DBO_BUFFER_ROLE)
#undef DBO_BUFFER_ROLE
        DBO_BUFFER_ROLES
} dbo_buffer_role;

/* "recv_tokens"; "?" for what is no role. */
const char *dbo_buffer_role_name(dbo_buffer_role role);

/* Of the rank, not of an ubatch: ubatch 0 stands for all. For good: a workspace of the rank. */
static inline bool dbo_buffer_role_is_shared(dbo_buffer_role role)
{
    return role == DBO_BUFFER_KV_CACHE || role == DBO_BUFFER_OUTPUT;
}
static inline bool dbo_buffer_role_is_workspace(dbo_buffer_role role)
{
    return role == DBO_BUFFER_WORKSPACE || role >= DBO_BUFFER_INPUT_IDS;
}

#define DBO_LAYER_BUFFERS (DBO_BUFFER_ROLES - 1u) /* of an ubatch */

static inline uint16_t dbo_layer_buffer(uint32_t ubatch, dbo_buffer_role role)
{
    return (uint16_t)(ubatch * DBO_LAYER_BUFFERS + (uint32_t)role - 1);
}
static inline dbo_buffer_role dbo_layer_buffer_role(uint32_t buffer)
{
    return (dbo_buffer_role)(buffer % DBO_LAYER_BUFFERS + 1);
}
static inline uint32_t dbo_layer_buffer_ubatch(uint32_t buffer)
{
    return buffer / DBO_LAYER_BUFFERS;
}

typedef struct dbo_layer_sizes {
    uint64_t bytes[DBO_BUFFER_ROLES];
} dbo_layer_sizes;

/* LL receive buffers have room for so many tokens of each rank, or for the ubatch's own if these
 * are more: the reference creates its all-to-all once, for chunks of 256 tokens. */
#define DBO_LL_CAPACITY_TOKENS 256u

/* The counts that sizes depend on, as the layer's costs have worked them out. */
typedef struct dbo_layer_rows {
    double tokens, prefill_tokens, requests; /* tokens: T */
    double heads, kv_heads;                  /* of this TP rank */
    double routed_rows;                      /* (token, expert) pairs that come here */
    double routed_tokens;                    /* distinct tokens that come here */
    double expert_width;                     /* inner values of an expert here; 0: all */
    uint32_t num_experts;                    /* with redundant copies */
    uint32_t ep_size, tp_size;
    uint32_t capacity; /* LL: tokens of each rank that fit; 0: as DBO_LL_CAPACITY_TOKENS says */
    bool low_latency;
} dbo_layer_rows;

/* Fractions of a row are rounded up. */
void dbo_layer_sizes_compute(const dbo_model_spec *model, const dbo_layer_rows *rows,
                             dbo_layer_sizes *out);

/* Every tensor takes `bytes`: for layers of given durations, which have no shapes. */
void dbo_layer_sizes_fixed(uint64_t bytes, dbo_layer_sizes *out);

DBO_PUBLIC_END

#endif
