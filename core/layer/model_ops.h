/* model_ops.h: what the operations of one decoder layer cost, for the tokens of one ubatch.
 *
 * Pure arithmetic from a model's shapes: FLOPs, bytes of device memory, output tiles. No time and
 * no machine appear here. Every expert is as likely as any other, unless the shape has a routing.
 *
 * Units: FLOPs count a multiply-add as 2 and include the padding of rows to whole tiles, because
 * the hardware computes it; with rows that fill their tiles they are the model's FLOPs exactly.
 * Bytes are device memory read plus written. `weight_bytes` is the part of them that is read once
 * a kernel whatever the number of rows: what a split into two ubatches reads twice.
 *
 * Shapes: T rows (padded tokens), H hidden, n heads of this TP rank. TP shards heads, the shared
 * and the dense MLP, and sums their outputs: an ALL_REDUCE of (T, H) after attention and after
 * a dense MLP, and one inside EMBED. EP shards routed experts; the GPUs of a TP group each dispatch
 * a part of their tokens and exchange the combined rows in an ALL_GATHER. Without an all-to-all the
 * experts' outputs are summed in an ALL_REDUCE over TP; without EP as well each expert is cut over
 * all GPUs (expert_tp), rows of all ranks come by ALL_GATHER and go back by REDUCE_SCATTER.
 *
 *     dbo_layer_shape shape = {.ep_size = 128, .tp_size = 1, .low_latency = true, .tokens = 128,
 *                              .num_requests = 1, .requests = &(dbo_request_shape){128, 1, 4096}};
 *     dbo_layer_costs costs;
 *     DBO_TRY(dbo_layer_costs_compute(&model, &shape, &costs, err));
 */
#ifndef DBO_MODEL_OPS_H
#define DBO_MODEL_OPS_H

#include "core/base/status.h"
#include "core/layer/layer_sizes.h"
#include "core/layer/model_spec.h"
#include "core/layer/routing.h"
#include "core/seam/op.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

/* Output tiles of a GEMM. At most SHORT_ROWS rows take short and narrow tiles, more take tall and
 * wide ones. A product of fewer than TARGET tiles is also cut along K, into pieces of at least
 * DEPTH, while it stays within TARGET: kernels do so to spread over the chip. */
#define DBO_TILE_SHORT_ROWS    64u
#define DBO_TILE_TALL_ROWS     128u
#define DBO_TILE_SHORT_COLUMNS 64u
#define DBO_TILE_TALL_COLUMNS  128u
#define DBO_TILE_DEPTH         512u
#define DBO_TILE_TARGET        128u

/* `count` requests alike: each has query_len new tokens and seq_len tokens in the KV cache once
 * these are written (query_len <= seq_len). */
typedef struct dbo_request_shape {
    uint32_t count, query_len, seq_len;
} dbo_request_shape;

/* The tokens of one ubatch of one rank, and how the model is spread. */
typedef struct dbo_layer_shape {
    uint32_t ep_size, tp_size;  /* both at least 1 */
    uint32_t redundant_experts; /* copies of experts; with them EP divides the experts, unless there
                                 * is a routing */
    bool low_latency;           /* LL all-to-all; false: HT */
    uint32_t ll_capacity;       /* LL: tokens of each rank that buffers hold; 0: layer_sizes.h's */
    bool no_all_to_all;         /* experts work on the tokens that are here, or gathered: */
    uint32_t gathered_ranks;    /* data-parallel ranks whose tokens all come here; 0, 1: none do */
    uint32_t expert_tp;         /* GPUs that share each expert; 0: 1 */
    uint32_t layer;             /* picks the window of windowed models */
    uint32_t tokens;            /* real */
    uint32_t padded_tokens;     /* rows of dense ops; 0: as `tokens` */
    uint64_t group_tokens;      /* real tokens of this ubatch on all ranks that dispatch, together;
                                 * 0: every rank has as many as this one */
    uint32_t decode_query_len;  /* requests of at most so many new tokens take the decode kernel;
                                 * 0: 1 */
    uint32_t num_requests;      /* of `requests`; the real ones, query lengths sum up to `tokens` */
    const dbo_request_shape *requests;
    const dbo_routing *routing;  /* of the layer's experts; NULL: uniform. Borrowed; with it: */
    dbo_routing_tokens dispatch; /* `rank` is the first of the tp_size GPUs, of which the one that
                                  * gets the most rows counts */
} dbo_layer_shape;

/* Costs by kind. `kernels` is the number of launches the host pays for; 0: the layer has no such
 * op. Both dense and MoE ops are filled; a schedule takes those it needs. `quant_late`: HT sends
 * rows as they are and QUANT works on the received ones, as it always does with LL. */
typedef struct dbo_layer_costs {
    dbo_op_cost op[DBO_KIND_COUNT];
    uint16_t kernels[DBO_KIND_COUNT];
    bool quant_late;
    dbo_a2a_cost dispatch, combine;
    dbo_layer_sizes sizes;
} dbo_layer_costs;

/* Fills *out. DBO_INVALID if EP does not divide the experts (with their copies), TP the heads, or
 * the requests' query lengths do not sum up to the tokens. `model` must have passed
 * dbo_model_spec_check. */
dbo_status dbo_layer_costs_compute(const dbo_model_spec *model, const dbo_layer_shape *shape,
                                   dbo_layer_costs *out, dbo_error *err);

/* Bytes of one payload row of an all-to-all: H values, and for fp8 one fp32 scale a group:
 * fp8 H + 4*ceil(H/128); bf16 2*H; fp32 4*H. */
uint32_t dbo_a2a_row_bytes(uint32_t hidden, dbo_dtype dtype);

/* The row width that low-latency kernels exist for and that holds `hidden`; 0: there is none. */
uint32_t dbo_ll_hidden(uint32_t hidden);

/* Bytes that low-latency transfers keep on each rank, for `capacity` tokens of each and the experts
 * of all, copies included: two buffers to send and two to receive, each large enough for a dispatch
 * and for a combine, and two of counts. As DeepEP's LowLatencyLayout adds them up; the pages of its
 * allocator are left out. */
double dbo_ll_buffer_bytes(const dbo_model_spec *model, uint32_t redundant_experts,
                           uint32_t capacity);

/* Bytes of the KV cache of one token in one layer, all TP ranks together. MLA: (kv_lora_rank +
 * qk_rope) values, not sharded; GQA: 2 * kv_heads * head_dim values; linear: 0. */
double dbo_kv_bytes_per_token(const dbo_model_spec *model);

/* Inner values of an expert on one of the expert_tp GPUs (0: 1) that share it. */
double dbo_expert_width(const dbo_model_spec *model, uint32_t expert_tp);

/* How a layer's weights are spread. */
typedef struct dbo_weight_spread {
    uint32_t ep_size, tp_size;  /* both at least 1 */
    uint32_t redundant_experts; /* copies */
    uint32_t expert_tp;         /* GPUs that share each expert; 0: 1 */
} dbo_weight_spread;

/* Weights of one layer on the rank with the most of them, in bytes: attention, router, an EP-th of
 * the routed experts and their copies, each cut over expert_tp GPUs, shared experts; with `dense`
 * attention and the dense MLP instead. */
double dbo_layer_weight_bytes(const dbo_model_spec *model, const dbo_weight_spread *spread,
                              bool dense);

/* Expected number of a rank's experts that at least one of `group_tokens` tokens is routed to:
 * (E/EP) * (1 - (1 - topk/E)^group_tokens), E the experts with their redundant copies. */
double dbo_touched_experts(uint32_t num_experts, uint32_t topk, uint32_t ep_size,
                           uint64_t group_tokens);

/* Does layer `layer` of the model see only a window? Every window_every-th does, from layer 0 on;
 * with window_every 0 a model with a window has it in all layers. */
bool dbo_layer_windowed(const dbo_model_spec *model, uint32_t layer);

/* A layer of given durations, for teaching and tests: ops with ns[kind] >= 0 exist and take
 * exactly that on `sms` SMs, but for collectives, which only models have; ns[DISPATCH] and
 * ns[COMBINE] are the transfers'. Each of its tensors takes one smallest block of the allocator. */
void dbo_layer_costs_fixed(const int64_t ns[DBO_KIND_COUNT], uint32_t sms, dbo_layer_costs *out);

DBO_PUBLIC_END

#endif
