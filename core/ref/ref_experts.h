/* ref_experts.h: rows through experts, on the CPU.
 *
 * Rows are fp32, or int8 with fp32 scales (`scales` not NULL). A row's result depends on the row
 * and its expert alone. Pure functions.
 *
 *     dbo_ref_gated(layer->shared_gate_up, layer->shared_down, hidden, inter, x, out);
 */
#ifndef DBO_REF_EXPERTS_H
#define DBO_REF_EXPERTS_H

#include "core/ref/ref_model.h"

/* down * (silu(gate * x) * (up * x)): x (H) -> out (H); gate_up (2 I, H): gate, then up. */
void dbo_ref_gated(const float *gate_up, const float *down, uint32_t hidden, uint32_t inter,
                   const float *x, float *out);

/* Rows that have come to a rank, whose experts are a part of the layer's. */
typedef struct dbo_ref_received {
    const dbo_ref_model *model;
    const dbo_ref_layer *layer;
    uint32_t rank, num_ranks;
    const void *rows;
    const float *scales; /* or NULL */
} dbo_ref_received;

/* Received rows of HT through the experts that they chose here: out (R, K, H) has the result of
 * each pair; pairs whose id (R, K) is not one of this rank's E' local ones are left alone. */
void dbo_ref_experts_ht(const dbo_ref_received *received, const int64_t *ids, uint64_t num_rows,
                        float *out);
/* out (R, H) = sum over k of weight * pair, in the order of k; rows without a pair are left. */
void dbo_ref_reduce(const float *pairs, const int64_t *ids, const float *weights, uint64_t num_rows,
                    uint32_t topk, uint32_t hidden, float *out);

/* Received rows of LL: (E', rows_each, H), the first counts[e] of each are there. */
void dbo_ref_experts_ll(const dbo_ref_received *received, const int32_t *counts, uint64_t rows_each,
                        float *out);

#endif
