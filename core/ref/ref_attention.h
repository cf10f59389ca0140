/* ref_attention.h: attention and router of one token, on the CPU.
 *
 * A token's row in ATTN is its query followed by its entry of the KV cache:
 *
 *     GQA   q (n, d) | k (m, d), v (m, d)
 *     MLA   q (n, nope + rope) | latent (rank), k_rope (rope)
 *
 * The cache of a layer is (blocks * block_size, entry): slot = block * block_size + offset; a
 * request's tokens are where its block table says. Keys are visited from the oldest to the token's
 * own, so the sum does not depend on how a batch was cut. Pure functions.
 *
 *     dbo_ref_project(model, layer, x, position, row);
 *     dbo_ref_attend(model, layer, &cache, row, 0, position, out);
 */
#ifndef DBO_REF_ATTENTION_H
#define DBO_REF_ATTENTION_H

#include "core/ref/ref_model.h"

/* x (H), normed -> row (dbo_ref_attn_width), turned to its position. */
void dbo_ref_project(const dbo_ref_model *model, const dbo_ref_layer *layer, const float *x,
                     uint32_t position, float *row);

/* Where the keys and values of a request are. */
typedef struct dbo_ref_cache {
    const float *entries;  /* of this layer */
    const int32_t *blocks; /* (num_columns) of this request */
    uint32_t num_columns, num_blocks, block_size;
} dbo_ref_cache;

/* Core attention and output projection: out (H). The query at `position` sees the keys from
 * `first` (a window's begin, or 0) to its own. Blocks that do not exist are skipped. */
void dbo_ref_attend(const dbo_ref_model *model, const dbo_ref_layer *layer,
                    const dbo_ref_cache *cache, const float *query, uint32_t first,
                    uint32_t position, float *out);

/* The K best experts of x (H), best first, equal scores by number; weights (K): sigmoids of the
 * scores over their sum. */
void dbo_ref_choose(const dbo_ref_model *model, const dbo_ref_layer *layer, const float *x,
                    int64_t *ids, float *weights);

#endif
