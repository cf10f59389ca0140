/* ref_attention.c: softmax runs online: one pass over the keys, rescaled when a larger score comes.
 */
#include "core/ref/ref_attention.h"

#include "core/ref/ref_math.h"

#include <string.h>

void dbo_ref_project(const dbo_ref_model *model, const dbo_ref_layer *layer, const float *x,
                     uint32_t position, float *row)
{
    const dbo_model_spec *s = &model->spec;
    size_t query = dbo_ref_query_width(s), each = s->head_dim;
    dbo_ref_linear(layer->qkv, x, dbo_ref_attn_width(s), s->hidden, row);
    if (s->attention == DBO_ATTENTION_MLA) {
        each = s->qk_nope + s->qk_rope;
        for (uint32_t h = 0; h < s->heads; h++)
            dbo_ref_rope(row + h * each + s->qk_nope, s->qk_rope, position);
        dbo_ref_rope(row + query + s->kv_lora_rank, s->qk_rope, position);
        return;
    }
    for (uint32_t h = 0; h < s->heads + s->kv_heads; h++) /* keys follow the queries */
        dbo_ref_rope(row + h * each, s->head_dim, position);
}

/* ---- one head ---- */

typedef struct head_state {
    const dbo_ref_model *model;
    const dbo_ref_layer *layer;
    uint32_t head, width; /* of its context */
    float largest, sum;
    float context[DBO_REF_MAX_HEAD];
} head_state;

static float score(const head_state *h, const float *query, const float *entry)
{
    const dbo_model_spec *s = &h->model->spec;
    if (s->attention != DBO_ATTENTION_MLA) {
        size_t group = h->head / (s->heads / s->kv_heads), d = s->head_dim;
        float dot = dbo_ref_dot(query + h->head * d, entry + group * d, s->head_dim);
        return dot * dbo_ref_rsqrt((float)d);
    }
    size_t each = s->qk_nope + s->qk_rope;
    uint32_t rank = s->kv_lora_rank;
    const float *q = query + h->head * each;
    const float *up = h->layer->kv_up + (size_t)h->head * (s->qk_nope + s->v_head) * rank;
    float dot = 0;
    for (uint32_t i = 0; i < s->qk_nope; i++)
        dot += q[i] * dbo_ref_dot(up + (size_t)i * rank, entry, rank);
    dot += dbo_ref_dot(q + s->qk_nope, entry + rank, s->qk_rope);
    return dot * dbo_ref_rsqrt((float)each);
}

/* context += weight * value of the entry */
static void add_value(head_state *h, float weight, const float *entry)
{
    const dbo_model_spec *s = &h->model->spec;
    if (s->attention != DBO_ATTENTION_MLA) {
        size_t group = s->kv_heads + h->head / (s->heads / s->kv_heads);
        dbo_ref_add_scaled(h->context, weight, entry + group * s->head_dim, s->head_dim);
        return;
    }
    uint32_t rank = s->kv_lora_rank;
    const float *up = h->layer->kv_up + (size_t)h->head * (s->qk_nope + s->v_head) * rank;
    for (uint32_t i = 0; i < s->v_head; i++)
        h->context[i] += weight * dbo_ref_dot(up + (size_t)(s->qk_nope + i) * rank, entry, rank);
}

static void add_key(head_state *h, const float *query, const float *entry)
{
    float x = score(h, query, entry);
    if (x > h->largest) {
        float shrink = dbo_ref_exp(h->largest - x);
        h->sum *= shrink;
        for (uint32_t i = 0; i < h->width; i++)
            h->context[i] *= shrink;
        h->largest = x;
    }
    float weight = dbo_ref_exp(x - h->largest);
    h->sum += weight;
    add_value(h, weight, entry);
}

static const float *find_entry(const dbo_ref_model *model, const dbo_ref_cache *cache,
                               uint32_t position)
{
    uint32_t column = position / cache->block_size;
    if (column >= cache->num_columns)
        return NULL;
    int32_t block = cache->blocks[column];
    if (block < 0 || (uint32_t)block >= cache->num_blocks)
        return NULL;
    size_t slot = (size_t)block * cache->block_size + position % cache->block_size;
    return cache->entries + slot * dbo_ref_kv_width(&model->spec);
}

void dbo_ref_attend(const dbo_ref_model *model, const dbo_ref_layer *layer,
                    const dbo_ref_cache *cache, const float *query, uint32_t first,
                    uint32_t position, float *out)
{
    const dbo_model_spec *s = &model->spec;
    uint32_t width = s->attention == DBO_ATTENTION_MLA ? s->v_head : s->head_dim;
    memset(out, 0, s->hidden * sizeof *out);
    for (uint32_t head = 0; head < s->heads; head++) {
        head_state h = {
            .model = model, .layer = layer, .head = head, .width = width, .largest = -1e30f};
        for (uint32_t p = first; p <= position; p++) {
            const float *entry = find_entry(model, cache, p);
            if (entry)
                add_key(&h, query, entry);
        }
        if (!(h.sum > 0))
            continue;
        for (uint32_t i = 0; i < width; i++)
            h.context[i] /= h.sum;
        for (uint32_t i = 0; i < s->hidden; i++)
            out[i] +=
                dbo_ref_dot(layer->out + ((size_t)i * s->heads + head) * width, h.context, width);
    }
}

/* ---- router ---- */

void dbo_ref_choose(const dbo_ref_model *model, const dbo_ref_layer *layer, const float *x,
                    int64_t *ids, float *weights)
{
    const dbo_model_spec *s = &model->spec;
    float scores[DBO_REF_MAX_EXPERTS], sum = 0;
    bool taken[DBO_REF_MAX_EXPERTS] = {false};
    dbo_ref_linear(layer->router, x, s->num_experts, s->hidden, scores);
    for (uint32_t k = 0; k < s->topk; k++) {
        uint32_t best = s->num_experts;
        for (uint32_t e = 0; e < s->num_experts; e++)
            if (!taken[e] && (best == s->num_experts || scores[e] > scores[best]))
                best = e;
        taken[best] = true;
        ids[k] = best;
        weights[k] = dbo_ref_sigmoid(scores[best]);
        sum += weights[k];
    }
    for (uint32_t k = 0; k < s->topk; k++)
        weights[k] /= sum;
}
