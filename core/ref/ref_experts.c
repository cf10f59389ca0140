/* ref_experts.c: one row at a time, one expert at a time. */
#include "core/ref/ref_experts.h"

#include "core/ref/ref_math.h"

#include <string.h>

/* Row `r` of rows (., H), dequantised if it has scales (., H/128): x (H). */
static void row_at(const void *rows, const float *scales, uint64_t r, uint32_t hidden, float *x)
{
    uint32_t groups = (hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP;
    if (scales)
        dbo_ref_dequantise((const int8_t *)rows + r * hidden, scales + r * groups, hidden, x);
    else
        memcpy(x, (const float *)rows + r * hidden, hidden * sizeof *x);
}

void dbo_ref_gated(const float *gate_up, const float *down, uint32_t hidden, uint32_t inter,
                   const float *x, float *out)
{
    memset(out, 0, hidden * sizeof *out);
    for (uint32_t i = 0; i < inter; i++) {
        float gate = dbo_ref_dot(gate_up + (size_t)i * hidden, x, hidden);
        float up = dbo_ref_dot(gate_up + (size_t)(inter + i) * hidden, x, hidden);
        float inner = dbo_ref_silu(gate) * up;
        for (uint32_t j = 0; j < hidden; j++)
            out[j] += inner * down[(size_t)j * inter + i];
    }
}

/* x through local expert `e` of the rank. */
static void through(const dbo_ref_model *model, const dbo_ref_layer *layer, uint64_t expert,
                    const float *x, float *out)
{
    uint32_t hidden = model->spec.hidden, inter = model->spec.moe_inter;
    dbo_ref_gated(layer->gate_up + expert * 2 * inter * hidden,
                  layer->down + expert * hidden * inter, hidden, inter, x, out);
}

void dbo_ref_experts_ht(const dbo_ref_model *model, const dbo_ref_layer *layer, uint32_t rank,
                        uint32_t num_ranks, const void *rows, const float *scales,
                        const int64_t *ids, uint64_t num_rows, float *out)
{
    uint32_t topk = model->spec.topk, hidden = model->spec.hidden;
    uint32_t local = model->spec.num_experts / num_ranks;
    float x[DBO_REF_MAX_HIDDEN];
    for (uint64_t pair = 0; pair < num_rows * topk; pair++) {
        if (ids[pair] < 0 || ids[pair] >= (int64_t)local)
            continue;
        row_at(rows, scales, pair / topk, hidden, x);
        through(model, layer, (uint64_t)rank * local + (uint64_t)ids[pair], x, out + pair * hidden);
    }
}

void dbo_ref_reduce(const float *pairs, const int64_t *ids, const float *weights, uint64_t num_rows,
                    uint32_t topk, uint32_t hidden, float *out)
{
    for (uint64_t r = 0; r < num_rows; r++) {
        bool first = true;
        for (uint64_t pair = r * topk; pair < (r + 1) * topk; pair++) {
            if (ids[pair] < 0)
                continue;
            if (first)
                memset(out + r * hidden, 0, hidden * sizeof *out);
            first = false;
            dbo_ref_add_scaled(out + r * hidden, weights[pair], pairs + pair * hidden, hidden);
        }
    }
}

void dbo_ref_experts_ll(const dbo_ref_model *model, const dbo_ref_layer *layer, uint32_t rank,
                        uint32_t num_ranks, const void *rows, const float *scales,
                        const int32_t *counts, uint64_t rows_each, float *out)
{
    uint32_t hidden = model->spec.hidden, local = model->spec.num_experts / num_ranks;
    float x[DBO_REF_MAX_HIDDEN];
    for (uint32_t e = 0; e < local; e++) {
        uint64_t count = counts[e] > 0 ? (uint64_t)counts[e] : 0;
        for (uint64_t i = 0; i < count && i < rows_each; i++) {
            uint64_t r = e * rows_each + i;
            row_at(rows, scales, r, hidden, x);
            through(model, layer, (uint64_t)rank * local + e, x, out + r * hidden);
        }
    }
}
