/* ref_model.c: weights from a seed, and how much memory numbers need.
 *
 * One function walks all matrices twice: first to count, then to draw. A matrix is uniform in
 * [-1, 1) * sqrt(3 / inputs), so that what comes out is about as large as what goes in. */
#include "core/ref/ref_model.h"

#include "core/base/prng.h"
#include "core/ref/ref_math.h"

#include <stdlib.h>

/* ---- shapes ---- */

static uint32_t latent_width(const dbo_model_spec *spec)
{
    return spec->kv_lora_rank + spec->qk_rope;
}

uint32_t dbo_ref_query_width(const dbo_model_spec *spec)
{
    bool mla = spec->attention == DBO_ATTENTION_MLA;
    return spec->heads * (mla ? spec->qk_nope + spec->qk_rope : spec->head_dim);
}

uint32_t dbo_ref_kv_width(const dbo_model_spec *spec)
{
    bool mla = spec->attention == DBO_ATTENTION_MLA;
    return mla ? latent_width(spec) : 2 * spec->kv_heads * spec->head_dim;
}

uint32_t dbo_ref_attn_width(const dbo_model_spec *spec)
{
    return dbo_ref_query_width(spec) + dbo_ref_kv_width(spec);
}

static uint32_t context_width(const dbo_model_spec *spec)
{
    return spec->heads * (spec->attention == DBO_ATTENTION_MLA ? spec->v_head : spec->head_dim);
}

/* ---- weights ---- */

typedef struct drawer {
    dbo_prng prng;
    float *at; /* NULL: only counted */
    uint64_t count;
} drawer;

static const float *draw(drawer *d, uint64_t outputs, uint64_t inputs, float around)
{
    float scale = inputs > 0 ? 1.0f / dbo_ref_rsqrt(3.0f / (float)inputs) : 0;
    float *matrix = d->at;
    d->count += outputs * inputs;
    if (!d->at)
        return NULL;
    for (uint64_t i = 0; i < outputs * inputs; i++)
        matrix[i] = around + (float)(2 * dbo_prng_unit(&d->prng) - 1) * scale;
    d->at += outputs * inputs;
    return matrix;
}

/* A norm's weights: near 1. */
static const float *draw_norm(drawer *d, uint64_t n)
{
    return draw(d, 1, n, 1.0f);
}

static void draw_layer(drawer *d, const dbo_model_spec *s, dbo_ref_layer *layer)
{
    bool mla = s->attention == DBO_ATTENTION_MLA;
    uint64_t hidden = s->hidden, experts = s->num_experts, inter = s->moe_inter;
    uint64_t shared = (uint64_t)s->num_shared * inter;
    layer->attn_norm = draw_norm(d, hidden);
    layer->ffn_norm = draw_norm(d, hidden);
    layer->qkv = draw(d, dbo_ref_attn_width(s), hidden, 0);
    layer->kv_up =
        mla ? draw(d, (uint64_t)s->heads * (s->qk_nope + s->v_head), s->kv_lora_rank, 0) : NULL;
    layer->out = draw(d, hidden, context_width(s), 0);
    layer->router = draw(d, experts, hidden, 0);
    layer->gate_up = draw(d, experts * 2 * inter, hidden, 0);
    layer->down = draw(d, experts * hidden, inter, 0);
    layer->shared_gate_up = draw(d, 2 * shared, hidden, 0);
    layer->shared_down = draw(d, hidden, shared, 0);
    layer->dense_gate_up = draw(d, 2 * (uint64_t)s->dense_inter, hidden, 0);
    layer->dense_down = draw(d, hidden, s->dense_inter, 0);
}

static void draw_model(drawer *d, dbo_ref_model *model)
{
    const dbo_model_spec *s = &model->spec;
    model->embedding = draw(d, s->vocab, s->hidden, 0);
    model->norm = draw_norm(d, s->hidden);
    model->head = draw(d, s->vocab, s->hidden, 0);
    for (uint32_t i = 0; i < model->num_layers; i++)
        draw_layer(d, s, &model->layers[i]);
}

static dbo_status refuse(const dbo_model_spec *spec, const char *why, dbo_error *err)
{
    return dbo_fail(err, DBO_UNSUPPORTED, "The reference computes GQA or MLA in fp32.",
                    "model %s cannot be computed here: %s", spec->name, why);
}

/* The restrictions of ref_model.h. */
static dbo_status check_spec(const dbo_model_spec *spec, dbo_error *err)
{
    DBO_TRY(dbo_model_spec_check(spec, err));
    if (spec->attention == DBO_ATTENTION_LINEAR)
        return refuse(spec, "its attention is linear", err);
    if (spec->activation_dtype != DBO_FP32 || spec->kv_dtype != DBO_FP32 ||
        spec->combine_dtype != DBO_FP32)
        return refuse(spec, "activations, KV cache and combine must be fp32", err);
    if (spec->dispatch_dtype == DBO_BF16)
        return refuse(spec, "the dispatch must be fp32 or fp8", err);
    if (spec->num_groups != 0)
        return refuse(spec, "its experts are in groups", err);
    if (spec->attention == DBO_ATTENTION_MLA && spec->q_lora_rank != 0)
        return refuse(spec, "its queries have a low rank", err);
    if (spec->hidden > DBO_REF_MAX_HIDDEN || spec->head_dim > DBO_REF_MAX_HEAD ||
        spec->v_head > DBO_REF_MAX_HEAD || spec->num_experts > DBO_REF_MAX_EXPERTS)
        return refuse(spec, "it is too large", err);
    return DBO_OK;
}

dbo_ref_model *dbo_ref_model_create(const dbo_model_spec *spec, uint32_t num_layers, uint64_t seed,
                                    dbo_error *err)
{
    if (check_spec(spec, err) != DBO_OK)
        return NULL;
    drawer d = {.at = NULL};
    dbo_ref_model *model = calloc(1, sizeof *model);
    if (!model)
        goto fail;
    model->spec = *spec;
    model->num_layers = num_layers;
    model->layers = calloc((size_t)num_layers + 1, sizeof *model->layers);
    if (!model->layers)
        goto fail;
    draw_model(&d, model);
    model->storage = d.count < UINT64_C(1) << 28 ? malloc((d.count + 1) * sizeof(float)) : NULL;
    if (!model->storage)
        goto fail;
    d = (drawer){.at = model->storage};
    dbo_prng_init(&d.prng, seed, 0);
    draw_model(&d, model);
    return model;
fail:
    dbo_ref_model_destroy(model);
    dbo_fail_memory(err, "a model's weights");
    return NULL;
}

void dbo_ref_model_destroy(dbo_ref_model *model)
{
    if (!model)
        return;
    free(model->layers);
    free(model->storage);
    free(model);
}

/* ---- memory ---- */

static uint32_t place(uint32_t *count, uint32_t more)
{
    uint32_t at = *count;
    *count += more;
    return at;
}

dbo_ref_metadata dbo_ref_metadata_map(const dbo_ref_limits *limits)
{
    dbo_ref_metadata m = {0};
    m.num_tokens = place(&m.count, 1);
    m.num_requests = place(&m.count, 1);
    m.first_token = place(&m.count, 1);
    m.positions = place(&m.count, limits->max_tokens);
    m.slots = place(&m.count, limits->max_tokens);
    m.query_start_loc = place(&m.count, limits->max_requests + 1);
    m.seq_lens = place(&m.count, limits->max_requests);
    m.block_table = place(&m.count, limits->max_requests * limits->max_columns);
    return m;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void dbo_ref_sizes(const dbo_ref_limits *limits, const dbo_layer_shape *shape, uint32_t ubatch,
                   dbo_layer_sizes *out)
{
    const dbo_model_spec *spec = limits->spec;
    uint64_t tokens = shape->padded_tokens == 0 ? shape->tokens : shape->padded_tokens;
    /* Eagerly a group has so many rows; a graph that is captured today may have full ones. */
    uint64_t group = larger(shape->group_tokens, tokens * shape->ep_size);
    dbo_layer_rows rows = {
        .tokens = (double)tokens,
        .heads = spec->heads,
        .kv_heads = spec->kv_heads,
        .routed_rows = (double)(group * spec->topk),
        .routed_tokens = (double)group,
        .num_experts = spec->num_experts,
        .ep_size = shape->ep_size,
        .tp_size = 1,
        .capacity = (uint32_t)larger(1, larger(tokens, shape->group_tokens)),
        .low_latency = shape->low_latency,
    };
    uint64_t *bytes = out->bytes;
    dbo_layer_sizes_compute(spec, &rows, out);
    if (shape->low_latency)
        bytes[DBO_BUFFER_WORKSPACE] = 0; /* LL computes where the rows are */
    bytes[DBO_BUFFER_LOGITS] = tokens * spec->vocab * 4;
    bytes[DBO_BUFFER_INPUT_IDS] = (uint64_t)limits->max_tokens * 4;
    bytes[DBO_BUFFER_METADATA] = (uint64_t)dbo_ref_metadata_map(limits).count * 4;
    if (ubatch > 0)
        return;
    bytes[DBO_BUFFER_KV_CACHE] = (uint64_t)limits->num_layers * limits->num_blocks *
                                 limits->block_size * dbo_ref_kv_width(spec) * 4;
    bytes[DBO_BUFFER_OUTPUT] = (uint64_t)limits->max_tokens * (spec->hidden + spec->vocab) * 4;
}
