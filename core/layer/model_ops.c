/* model_ops.c: shapes to FLOPs, bytes and tiles.
 *
 * Every kernel is made by one of four small constructors (GEMM, grouped GEMM, attention, stream)
 * that append to an op's parts; each op kind is one function that reads like the layer's code.
 * Fractions of rows never appear: expectations of routing are rounded to whole rows.
 */
#include "core/layer/model_ops.h"

#include "core/base/real.h"
#include "core/memory/allocator.h"

#include <string.h>

/* The sums over an ubatch's requests that kernels depend on. */
typedef struct attention_rows {
    double tokens;
    double pairs;   /* (query, key) pairs that are computed */
    double kv_rows; /* KV rows that are read, once a request */
} attention_rows;

typedef struct attention_sums {
    attention_rows decode, prefill;
    double requests;
} attention_sums;

typedef struct layer_build {
    const dbo_model_spec *model;
    const dbo_layer_shape *shape;
    dbo_layer_costs *costs;
    attention_sums sums;
    double rows;                       /* T: padded tokens */
    double heads;                      /* of this TP rank */
    double act;                        /* bytes of an activation value */
    uint32_t num_experts;              /* routed, with their redundant copies */
    dbo_rank_traffic traffic;          /* where there is a routing */
    double routed_rows, routed_tokens; /* that come here */
} layer_build;

/* ---- elementary ---- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static dbo_op_part *add_part(layer_build *b, dbo_op_kind kind)
{
    dbo_op_cost *cost = &b->costs->op[kind];
    return &cost->parts[cost->num_parts++];
}

/* Pieces along K that a product of so many output tiles is cut into. */
static double depth_pieces(double tiles, double k)
{
    uint64_t by_depth = (uint64_t)k / DBO_TILE_DEPTH, by_target = 1;
    if (tiles >= 1 && tiles < DBO_TILE_TARGET)
        by_target = DBO_TILE_TARGET / (uint64_t)tiles;
    uint64_t pieces = by_depth < by_target ? by_depth : by_target;
    return pieces > 1 ? (double)pieces : 1.0;
}

/* `count` products of (m, k) with (k, n), each with weights of its own: tiles, padded FLOPs, and
 * bytes of weights, inputs and outputs. */
static void fill_gemm(dbo_op_part *part, double count, double m, double n, double k,
                      dbo_dtype dtype, double out_bytes)
{
    bool few = m <= DBO_TILE_SHORT_ROWS;
    uint64_t tile_rows = few ? DBO_TILE_SHORT_ROWS : DBO_TILE_TALL_ROWS;
    uint64_t tile_columns = few ? DBO_TILE_SHORT_COLUMNS : DBO_TILE_TALL_COLUMNS;
    uint64_t row_tiles = ceil_div((uint64_t)m, tile_rows);
    double tiles = count * (double)(row_tiles * ceil_div((uint64_t)n, tile_columns));
    double value = dbo_dtype_bytes(dtype);
    tiles *= depth_pieces(tiles, k);
    part->tiles = tiles < 4e9 ? (uint32_t)tiles : UINT32_MAX;
    part->flops = count * 2.0 * (double)(row_tiles * tile_rows) * n * k;
    part->weight_bytes = count * n * k * value;
    part->hbm_bytes = part->weight_bytes + count * (m * k * value + m * n * out_bytes);
    part->dtype = (uint8_t)dtype;
}

/* Dense (m, k) x (k, n). */
static void add_gemm(layer_build *b, dbo_op_kind kind, double m, double n, double k,
                     dbo_dtype dtype)
{
    if (m < 1 || n < 1 || k < 1)
        return;
    dbo_op_part *part = add_part(b, kind);
    part->kind = DBO_PART_GEMM;
    fill_gemm(part, 1, m, n, k, dtype, b->act);
}

/* One product per head, (m, k) x (k, n) each, in bf16: the absorbed up-projections of MLA. */
static void add_head_gemm(layer_build *b, dbo_op_kind kind, double m, double n, double k)
{
    if (m < 1)
        return;
    dbo_op_part *part = add_part(b, kind);
    part->kind = DBO_PART_GEMM;
    fill_gemm(part, b->heads, m, n, k, DBO_BF16, b->act);
}

/* Elementwise work: bytes read plus written. */
static void add_stream(layer_build *b, dbo_op_kind kind, double bytes)
{
    dbo_op_part *part = add_part(b, kind);
    part->kind = DBO_PART_STREAM;
    part->dtype = DBO_FP32;
    part->hbm_bytes = bytes;
}

static void add_attention(layer_build *b, double flops, double bytes)
{
    if (flops <= 0)
        return;
    dbo_op_part *part = add_part(b, DBO_KIND_A1);
    part->kind = DBO_PART_ATTENTION;
    part->dtype = DBO_BF16;
    part->of_kv = true;
    part->flops = flops;
    part->hbm_bytes = bytes;
}

/* ---- attention ---- */

/* Pairs of `q` new queries at positions s-q+1 .. s (1-based) with the keys up to their own
 * position, at most `window` of them (0: all). */
static double causal_pairs(double q, double s, double window)
{
    if (window <= 0 || s <= window)
        return q * (s - q) + q * (q + 1) / 2;
    double full = s - window < q ? s - window : q; /* queries that see a whole window */
    double rest = q - full;                        /* those before, at positions up to window */
    double first = s - q;
    return full * window + rest * first + rest * (rest + 1) / 2;
}

static void sum_requests(layer_build *b)
{
    const dbo_layer_shape *shape = b->shape;
    uint32_t decode_length = shape->decode_query_len == 0 ? 1 : shape->decode_query_len;
    double window = dbo_layer_windowed(b->model, shape->layer) ? (double)b->model->window : 0.0;
    for (uint32_t i = 0; i < shape->num_requests; i++) {
        const dbo_request_shape *request = &shape->requests[i];
        double count = request->count, q = request->query_len, s = request->seq_len;
        double pairs = count * causal_pairs(q, s, window);
        double seen = window > 0 && s > window + q - 1 ? window + q - 1 : s;
        if (request->query_len == 0)
            continue;
        b->sums.requests += count;
        bool decodes = request->query_len <= decode_length;
        attention_rows *rows = decodes ? &b->sums.decode : &b->sums.prefill;
        rows->tokens += count * q;
        rows->pairs += pairs;
        rows->kv_rows += count * seen;
    }
}

/* A0 of MLA: norm (T, H); q_a and kv_a in one GEMM (T, H) x (H, q_rank + kv_rank + rope); norms of
 * both latents; q_b (T, q_rank) x (q_rank, n*(nope + rope)); rope and the write of the KV row.
 * q_lora_rank 0: q comes out of the first GEMM. */
static void a0_mla(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    double hidden = model->hidden, t = b->rows;
    double query = b->heads * ((double)model->qk_nope + model->qk_rope);
    double latent = (double)model->kv_lora_rank + model->qk_rope;
    double first = model->q_lora_rank == 0 ? query : (double)model->q_lora_rank;
    add_stream(b, DBO_KIND_A0, t * hidden * 3 * b->act);
    add_gemm(b, DBO_KIND_A0, t, first + latent, hidden, model->weight_dtype);
    add_stream(b, DBO_KIND_A0, t * (first + latent) * 2 * b->act);
    if (model->q_lora_rank != 0)
        add_gemm(b, DBO_KIND_A0, t, query, model->q_lora_rank, model->weight_dtype);
    double rope = t * b->heads * model->qk_rope * 2 * b->act;
    add_stream(b, DBO_KIND_A0, rope + t * dbo_kv_bytes_per_token(model));
}

/* MLA prefill: keys and values out of the latents of so many rows. */
static void add_expansion(layer_build *b, double kv_rows)
{
    const dbo_model_spec *model = b->model;
    dbo_op_cost *cost = &b->costs->op[DBO_KIND_A1];
    uint32_t before = cost->num_parts;
    add_gemm(b, DBO_KIND_A1, kv_rows, b->heads * (model->qk_nope + model->v_head),
             model->kv_lora_rank, model->weight_dtype);
    if (cost->num_parts > before)
        cost->parts[before].of_kv = true;
}

/* Core attention of MLA.
 * Decode, absorbed: q (D, nope) x (nope, kv_rank) a head; scores over kv_rank + rope, values over
 *   kv_rank, KV rows read once for all heads; (D, kv_rank) x (kv_rank, v_head) a head.
 * Prefill, not absorbed: keys and values of all KV rows come out of kv_b (rows, kv_rank) x
 *   (kv_rank, n*(nope + v_head)); scores over nope + rope, values over v_head. */
static void a1_mla(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    const attention_sums *sums = &b->sums;
    double latent = (double)model->kv_lora_rank + model->qk_rope;
    double qk = (double)model->qk_nope + model->qk_rope;
    double kv_row = latent * dbo_dtype_bytes(model->kv_dtype);
    add_head_gemm(b, DBO_KIND_A1, sums->decode.tokens, model->kv_lora_rank, model->qk_nope);
    add_expansion(b, sums->prefill.kv_rows);
    add_attention(b, 2 * sums->decode.pairs * b->heads * (latent + model->kv_lora_rank),
                  sums->decode.kv_rows * kv_row +
                      sums->decode.tokens * b->heads * (latent + model->kv_lora_rank) * b->act);
    add_attention(b, 2 * sums->prefill.pairs * b->heads * (qk + model->v_head),
                  (sums->prefill.kv_rows + sums->prefill.tokens) * b->heads * (qk + model->v_head) *
                      b->act);
    add_head_gemm(b, DBO_KIND_A1, sums->decode.tokens, model->v_head, model->kv_lora_rank);
}

/* KV heads of this TP rank; never fewer than one (they are then copied). */
static double local_kv_heads(const layer_build *b)
{
    double heads = (double)b->model->kv_heads / b->shape->tp_size;
    return heads < 1 ? 1 : heads;
}

/* A0 of GQA: norm; qkv (T, H) x (H, (n + 2*n_kv)*d); rope and the write of keys and values. */
static void a0_gqa(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    double kv = 2 * local_kv_heads(b) * model->head_dim;
    double query = b->heads * model->head_dim;
    add_stream(b, DBO_KIND_A0, b->rows * model->hidden * 3 * b->act);
    add_gemm(b, DBO_KIND_A0, b->rows, query + kv, model->hidden, model->weight_dtype);
    add_stream(b, DBO_KIND_A0,
               b->rows * ((query + kv / 2) * 2 * b->act + kv * dbo_dtype_bytes(model->kv_dtype)));
}

/* Core attention of GQA: scores and values over d, KV rows read once for a group of heads. Linear
 * attention instead updates a (d, d) state a head: 4*d*d FLOPs a token, state read and written. */
static void a1_gqa(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    const attention_sums *sums = &b->sums;
    double d = model->head_dim, wide = b->heads * d;
    if (model->attention == DBO_ATTENTION_LINEAR) {
        double tokens = sums->decode.tokens + sums->prefill.tokens;
        add_attention(b, 4 * tokens * wide * d, sums->requests * wide * d * 2 * 4);
        return;
    }
    double kv_row = 2 * local_kv_heads(b) * d * dbo_dtype_bytes(model->kv_dtype);
    add_attention(b, 4 * sums->decode.pairs * wide,
                  sums->decode.kv_rows * kv_row + sums->decode.tokens * wide * 2 * b->act);
    add_attention(b, 4 * sums->prefill.pairs * wide,
                  sums->prefill.kv_rows * kv_row + sums->prefill.tokens * wide * 2 * b->act);
}

/* The rest of A1: output projection (T, n*v) x (n*v, H); residual and norm; router (T, H) x (H, E)
 * in bf16, with the top-k choice. Layers without experts have no router. */
static void a1_tail(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    bool mla = model->attention == DBO_ATTENTION_MLA;
    double wide = b->heads * (mla ? model->v_head : model->head_dim);
    add_gemm(b, DBO_KIND_A1, b->rows, model->hidden, wide, model->weight_dtype);
    add_stream(b, DBO_KIND_A1, b->rows * model->hidden * 4 * b->act);
    if (model->num_experts != 0 && b->shape->layer >= model->first_k_dense)
        add_gemm(b, DBO_KIND_A1, b->rows, model->num_experts, model->hidden, DBO_BF16);
}

/* ---- feed-forward ---- */

/* SwiGLU of one MLP: (m, H) x (H, 2*I); silu, product, quantisation; (m, I) x (I, H). */
static void add_mlp(layer_build *b, dbo_op_kind kind, double inter)
{
    const dbo_model_spec *model = b->model;
    add_gemm(b, kind, b->rows, 2 * inter, model->hidden, model->weight_dtype);
    add_stream(b, kind, b->rows * inter * (2 * b->act + dbo_dtype_bytes(model->weight_dtype)));
    add_gemm(b, kind, b->rows, model->hidden, inter, model->weight_dtype);
}

static void add_grouped(layer_build *b, double experts, double rows, double n, double k)
{
    dbo_op_part *part = add_part(b, DBO_KIND_MLP);
    part->kind = DBO_PART_GROUPED;
    fill_gemm(part, experts, rows, n, k, b->model->weight_dtype, b->act);
}

/* Rows that reach this rank: (token, expert) pairs of the whole group, an EP-th of them. */
static double routed_rows(const layer_build *b, uint64_t group_tokens)
{
    if (b->shape->routing)
        return dbo_ceil(b->traffic.rows * (1 - 1e-9)); /* a whole number stays one */
    return (double)ceil_div(group_tokens * b->model->topk, b->shape->ep_size);
}

/* Distinct tokens that reach this rank: each of the group's has one of this rank's E/EP experts
 * with probability 1 - prod_i (1 - E/EP / (E - i)), i < topk. */
static double routed_tokens(const layer_build *b, uint64_t group_tokens)
{
    double experts = b->num_experts, local = experts / b->shape->ep_size, miss = 1;
    if (b->shape->routing)
        return b->traffic.tokens;
    for (uint32_t i = 0; i < b->model->topk; i++)
        miss *= experts - i > local ? 1 - local / (experts - i) : 0;
    return (double)group_tokens * (1 - miss);
}

/* MLP: this rank's touched experts, each with the same number of rows R: (R, H) x (H, 2*I); silu,
 * product, quantisation; (R, I) x (I, H). HT first spreads the received tokens to their experts'
 * rows. REDUCE (HT): rows back to one a received token. */
static void routed_experts(layer_build *b, uint64_t group_tokens)
{
    const dbo_model_spec *model = b->model;
    double hidden = model->hidden, inter = dbo_expert_width(model, b->shape->expert_tp);
    double rows = routed_rows(b, group_tokens), tokens = routed_tokens(b, group_tokens);
    double value = dbo_dtype_bytes(model->weight_dtype);
    double expected = b->shape->routing ? b->traffic.touched
                                        : dbo_touched_experts(b->num_experts, model->topk,
                                                              b->shape->ep_size, group_tokens);
    uint64_t touched = (uint64_t)(expected + 0.5);
    if (rows < 1)
        return;
    if (touched == 0)
        touched = 1;
    double each = (double)ceil_div((uint64_t)rows, touched);
    if (!b->shape->low_latency)
        add_stream(b, DBO_KIND_MLP, (tokens + rows) * hidden * value);
    add_grouped(b, (double)touched, each, 2 * inter, hidden);
    add_stream(b, DBO_KIND_MLP, rows * inter * (2 * b->act + value));
    add_grouped(b, (double)touched, each, hidden, inter);
    if (!b->shape->low_latency)
        add_stream(b, DBO_KIND_REDUCE, (rows + tokens) * hidden * b->act);
}

/* QUANT: HT quantises its tokens before the dispatch; LL does so in the dispatch itself, or, when
 * it sends wider rows than the experts compute with, after the receive. */
static void quantise(layer_build *b, uint64_t group_tokens)
{
    const dbo_model_spec *model = b->model;
    bool wire_is_fp8 = model->dispatch_dtype == DBO_FP8;
    double wide = dbo_dtype_bytes(model->activation_dtype);
    b->costs->quant_late = model->weight_dtype == DBO_FP8 && !wire_is_fp8;
    if (!b->shape->low_latency && wire_is_fp8)
        add_stream(b, DBO_KIND_QUANT, b->rows * model->hidden * (wide + 1));
    else if (b->costs->quant_late)
        add_stream(b, DBO_KIND_QUANT, routed_rows(b, group_tokens) * model->hidden * (wide + 1));
}

/* HT bookkeeping. LAYOUT reads (T, topk) ids and writes a flag a rank and token; H2D brings a
 * count an expert; COPY moves the combined rows (T, H) into the layer's output. */
static void ht_bookkeeping(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    double tokens = b->shape->tokens;
    add_stream(b, DBO_KIND_LAYOUT, tokens * (model->topk * 8.0 + b->shape->ep_size));
    add_stream(b, DBO_KIND_H2D, (double)b->num_experts / b->shape->ep_size * 4);
    add_stream(b, DBO_KIND_COPY, tokens * model->hidden * 2 * b->act);
}

/* What the ranks of a TP group share out among themselves of their tokens, each dispatches. */
static void transfers(layer_build *b, uint64_t group_tokens)
{
    const dbo_model_spec *model = b->model;
    const dbo_layer_shape *shape = b->shape;
    uint32_t tokens = (uint32_t)ceil_div(shape->tokens, shape->tp_size);
    bool alike = group_tokens == (uint64_t)shape->tokens * (shape->ep_size / shape->tp_size);
    dbo_a2a_cost cost = {.fixed_ns = -1,
                         .tokens = tokens,
                         .mean_tokens = alike ? tokens : (double)group_tokens / shape->ep_size,
                         .topk = model->topk,
                         .topk_groups = model->topk_groups,
                         .num_groups = model->num_groups,
                         .num_experts = b->num_experts,
                         .has_rows = shape->routing != NULL,
                         .sent = b->traffic.sent,
                         .received = b->traffic.received};
    b->costs->dispatch = b->costs->combine = cost;
    uint32_t hidden = shape->low_latency ? dbo_ll_hidden(model->hidden) : 0;
    if (hidden == 0) /* HT, or wider than any kernel, which an experiment refuses */
        hidden = model->hidden;
    b->costs->dispatch.bytes_per_token = dbo_a2a_row_bytes(hidden, model->dispatch_dtype);
    b->costs->combine.bytes_per_token = dbo_a2a_row_bytes(hidden, model->combine_dtype);
}

static void add_collective(layer_build *b, dbo_op_kind kind, dbo_collective collective,
                           double bytes, uint32_t gpus, uint32_t apart)
{
    if (gpus < 2 || bytes <= 0)
        return;
    dbo_op_part *part = add_part(b, kind);
    *part = (dbo_op_part){.kind = DBO_PART_STREAM,
                          .dtype = DBO_BF16,
                          .hbm_bytes = bytes,
                          .collective = (uint8_t)collective,
                          .gpus = (uint16_t)gpus,
                          .apart = (uint16_t)apart};
}

/* Rows of all ranks come here with their experts' ids and weights, and sums go back. */
static void gather(layer_build *b, uint64_t group_tokens)
{
    const dbo_model_spec *model = b->model;
    uint32_t ranks = b->shape->gathered_ranks, tp = b->shape->tp_size;
    double row = dbo_a2a_row_bytes(model->hidden, model->dispatch_dtype) + model->topk * 12.0;
    double group = (double)group_tokens;
    add_collective(b, DBO_KIND_ALL_GATHER, DBO_COLLECTIVE_ALL_GATHER, group * row, ranks, tp);
    add_collective(b, DBO_KIND_REDUCE_SCATTER, DBO_COLLECTIVE_REDUCE_SCATTER,
                   group * model->hidden * b->act, ranks, tp);
}

/* Of a TP group: sums of what its GPUs have computed of the same rows; with an all-to-all each has
 * combined a part of the rows, which all need. */
static void tensor_parallel(layer_build *b)
{
    uint32_t tp = b->shape->tp_size;
    double bytes = b->rows * b->model->hidden * b->act;
    add_collective(b, DBO_KIND_EMBED, DBO_COLLECTIVE_ALL_REDUCE, bytes, tp, 1);
    add_collective(b, DBO_KIND_ALL_REDUCE, DBO_COLLECTIVE_ALL_REDUCE, bytes, tp, 1);
    if (b->model->num_experts != 0 && !b->shape->no_all_to_all)
        add_collective(b, DBO_KIND_ALL_GATHER, DBO_COLLECTIVE_ALL_GATHER, bytes, tp, 1);
}

static void shared_experts(layer_build *b)
{
    double inter = (double)b->model->num_shared * b->model->moe_inter / b->shape->tp_size;
    if (b->model->num_shared != 0)
        add_mlp(b, DBO_KIND_SHARED, inter);
}

/* Without an all-to-all: on this rank's tokens, or on those of all ranks that are gathered. */
static void experts_here(layer_build *b)
{
    const dbo_layer_shape *shape = b->shape;
    uint64_t group = shape->tokens;
    if (shape->gathered_ranks > 1)
        group = shape->group_tokens > 0 ? shape->group_tokens : group * shape->gathered_ranks;
    quantise(b, group);
    routed_experts(b, group);
    shared_experts(b);
    gather(b, group);
    b->routed_rows = routed_rows(b, group);
    b->routed_tokens = (double)group;
}

/* Of the rank's GPUs the others wait for the one that gets the most. */
static void find_traffic(layer_build *b)
{
    dbo_routing_tokens tokens = b->shape->dispatch;
    for (uint32_t gpu = 0; gpu < b->shape->tp_size; gpu++, tokens.rank++) {
        dbo_rank_traffic traffic;
        dbo_routing_of_rank(b->shape->routing, &tokens, &traffic);
        if (gpu == 0 || traffic.rows > b->traffic.rows)
            b->traffic = traffic;
    }
}

static void experts(layer_build *b)
{
    const dbo_layer_shape *shape = b->shape;
    if (shape->routing)
        find_traffic(b);
    uint64_t group = shape->group_tokens;
    if (group == 0)
        group = (uint64_t)shape->tokens * (shape->ep_size / shape->tp_size);
    quantise(b, group);
    routed_experts(b, group);
    if (!shape->low_latency)
        ht_bookkeeping(b);
    shared_experts(b);
    transfers(b, group);
    b->routed_rows = routed_rows(b, group);
    b->routed_tokens = routed_tokens(b, group);
    b->costs->kernels[DBO_KIND_DISPATCH] = b->costs->kernels[DBO_KIND_COMBINE] = 1;
}

/* EMBED: T rows of H gathered. HEAD: norm and logits (requests, H) x (H, V/TP) in bf16. */
static void ends(layer_build *b)
{
    const dbo_model_spec *model = b->model;
    add_stream(b, DBO_KIND_EMBED, b->rows * model->hidden * 2 * b->act);
    add_stream(b, DBO_KIND_HEAD, b->rows * model->hidden * 3 * b->act);
    add_gemm(b, DBO_KIND_HEAD, b->sums.requests, (double)model->vocab / b->shape->tp_size,
             model->hidden, DBO_BF16);
}

/* ---- all together ---- */

static dbo_status check_shape(const dbo_model_spec *model, const dbo_layer_shape *shape,
                              dbo_error *err)
{
    if (shape->ep_size == 0 || shape->tp_size == 0)
        return dbo_fail(err, DBO_INVALID, NULL, "EP size and TP size must be at least 1");
    if (!shape->routing && (model->num_experts + shape->redundant_experts) % shape->ep_size != 0)
        return dbo_fail(err, DBO_INVALID,
                        "Choose an EP size that divides the experts, or add redundant ones.",
                        "EP size %u does not divide the %u experts and %u copies of %s",
                        shape->ep_size, model->num_experts, shape->redundant_experts, model->name);
    if (model->heads % shape->tp_size != 0)
        return dbo_fail(err, DBO_INVALID, NULL, "TP size %u does not divide the %u heads of %s",
                        shape->tp_size, model->heads, model->name);
    if (model->num_experts != 0 && !shape->no_all_to_all && shape->ep_size % shape->tp_size != 0)
        return dbo_fail(err, DBO_INVALID, NULL, "TP size %u does not divide EP size %u",
                        shape->tp_size, shape->ep_size);
    if (shape->padded_tokens != 0 && shape->padded_tokens < shape->tokens)
        return dbo_fail(err, DBO_INVALID, NULL, "%u padded tokens are fewer than the %u real ones",
                        shape->padded_tokens, shape->tokens);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < shape->num_requests; i++) {
        const dbo_request_shape *request = &shape->requests[i];
        if (request->query_len > request->seq_len)
            return dbo_fail(err, DBO_INVALID, NULL, "request %u has %u new tokens but length %u", i,
                            request->query_len, request->seq_len);
        sum += (uint64_t)request->count * request->query_len;
    }
    if (sum != shape->tokens)
        return dbo_fail(err, DBO_INVALID, NULL, "the requests have %llu new tokens, not %u",
                        (unsigned long long)sum, shape->tokens);
    return DBO_OK;
}

/* Launches: a kernel a part, and with fp8 one to quantise the rows of each dense GEMM. */
static void count_kernels(layer_build *b)
{
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
        const dbo_op_cost *cost = &b->costs->op[kind];
        uint32_t kernels = cost->num_parts;
        for (uint32_t i = 0; i < cost->num_parts; i++)
            if (cost->parts[i].kind == DBO_PART_GEMM && cost->parts[i].dtype == DBO_FP8)
                kernels++;
        if (kind != DBO_KIND_DISPATCH && kind != DBO_KIND_COMBINE)
            b->costs->kernels[kind] = (uint16_t)kernels;
    }
}

static void sizes(layer_build *b)
{
    const dbo_layer_rows rows = {
        .tokens = b->rows,
        .prefill_tokens = b->sums.prefill.tokens,
        .requests = b->sums.requests,
        .heads = b->heads,
        .kv_heads = local_kv_heads(b),
        .routed_rows = b->routed_rows,
        .routed_tokens = b->routed_tokens,
        .expert_width = dbo_expert_width(b->model, b->shape->expert_tp),
        .num_experts = b->num_experts,
        .ep_size = b->shape->ep_size,
        .tp_size = b->shape->tp_size,
        .capacity = b->shape->ll_capacity,
        .low_latency = b->shape->low_latency,
    };
    dbo_layer_sizes_compute(b->model, &rows, &b->costs->sizes);
}

dbo_status dbo_layer_costs_compute(const dbo_model_spec *model, const dbo_layer_shape *shape,
                                   dbo_layer_costs *out, dbo_error *err)
{
    DBO_TRY(check_shape(model, shape, err));
    *out = (dbo_layer_costs){0};
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
        out->op[kind].fixed_ns = -1;
    layer_build b = {.model = model,
                     .shape = shape,
                     .costs = out,
                     .rows = shape->padded_tokens == 0 ? shape->tokens : shape->padded_tokens,
                     .heads = (double)model->heads / shape->tp_size,
                     .act = dbo_dtype_bytes(model->activation_dtype),
                     .num_experts = model->num_experts + shape->redundant_experts};
    sum_requests(&b);
    if (model->attention == DBO_ATTENTION_MLA) {
        a0_mla(&b);
        a1_mla(&b);
    } else {
        a0_gqa(&b);
        a1_gqa(&b);
    }
    a1_tail(&b);
    if (model->num_experts != 0 && shape->no_all_to_all)
        experts_here(&b);
    else if (model->num_experts != 0)
        experts(&b);
    if (model->dense_inter != 0)
        add_mlp(&b, DBO_KIND_DENSE, (double)model->dense_inter / shape->tp_size);
    ends(&b);
    tensor_parallel(&b);
    count_kernels(&b);
    sizes(&b);
    return DBO_OK;
}

void dbo_layer_costs_fixed(const int64_t ns[DBO_KIND_COUNT], uint32_t sms, dbo_layer_costs *out)
{
    *out = (dbo_layer_costs){0};
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
        bool is = ns[kind] >= 0 && dbo_op_kind_class((dbo_op_kind)kind) != DBO_CLASS_COLLECTIVE;
        out->op[kind].fixed_ns = is ? ns[kind] : -1;
        out->op[kind].fixed_sms = is ? (uint16_t)sms : 0;
        out->kernels[kind] = is ? 1 : 0;
    }
    out->dispatch.fixed_ns = out->op[DBO_KIND_DISPATCH].fixed_ns;
    out->combine.fixed_ns = out->op[DBO_KIND_COMBINE].fixed_ns;
    dbo_layer_sizes_fixed(DBO_BLOCK_BYTES, &out->sizes);
}
