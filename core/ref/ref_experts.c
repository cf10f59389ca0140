/* ref_experts.c: one row at a time, one expert at a time. */
#include "core/ref/ref_experts.h"

#include "core/ref/ref_math.h"

#include <string.h>

/* Row `r` of rows (., H), dequantised if it has scales (., H/128): x (H). */
static void row_at(const dbo_ref_received *in, uint64_t r, float *x)
{
    uint32_t hidden = in->model->spec.hidden;
    uint32_t groups = (hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP;
    if (in->scales)
        dbo_ref_dequantise((const int8_t *)in->rows + r * hidden, in->scales + r * groups, hidden,
                           x);
    else
        memcpy(x, (const float *)in->rows + r * hidden, hidden * sizeof *x);
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

static uint32_t local_experts(const dbo_ref_received *in)
{
    return in->model->spec.num_experts / in->num_ranks;
}

/* Row `r` through local expert `e` of the rank. */
static void through(const dbo_ref_received *in, uint64_t r, uint64_t e, float *out)
{
    uint64_t expert = (uint64_t)in->rank * local_experts(in) + e;
    uint32_t hidden = in->model->spec.hidden, inter = in->model->spec.moe_inter;
    float x[DBO_REF_MAX_HIDDEN];
    row_at(in, r, x);
    dbo_ref_gated(in->layer->gate_up + expert * 2 * inter * hidden,
                  in->layer->down + expert * hidden * inter, hidden, inter, x, out);
}

void dbo_ref_experts_ht(const dbo_ref_received *received, const int64_t *ids, uint64_t num_rows,
                        float *out)
{
    uint32_t topk = received->model->spec.topk, hidden = received->model->spec.hidden;
    for (uint64_t pair = 0; pair < num_rows * topk; pair++)
        if (ids[pair] >= 0 && ids[pair] < (int64_t)local_experts(received))
            through(received, pair / topk, (uint64_t)ids[pair], out + pair * hidden);
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

void dbo_ref_experts_ll(const dbo_ref_received *received, const int32_t *counts, uint64_t rows_each,
                        float *out)
{
    for (uint32_t e = 0; e < local_experts(received); e++) {
        uint64_t count = counts[e] > 0 ? (uint64_t)counts[e] : 0;
        for (uint64_t i = 0; i < count && i < rows_each; i++) {
            uint64_t r = e * rows_each + i;
            through(received, r, e, out + r * received->model->spec.hidden);
        }
    }
}
