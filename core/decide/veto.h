/* veto.h: may this rank's batch be split at all?
 *
 * When a batch is split, one ubatch may read cache blocks that another writes in the same layer:
 * a request that continues on blocks shared with one that is still filling them. The veto finds a
 * reader, a request with more query tokens than the reorder threshold and something already
 * computed, among whose *whole* computed blocks is one that any request writes in this step. It
 * does not look at the order of requests or at where the cut falls.
 *
 *     dbo_veto_scratch scratch = {0};
 *     DBO_TRY(dbo_veto_allows(&batch, &scratch, &allow, err));
 *     dbo_veto_scratch_fini(&scratch);
 *
 * The scratch keeps its memory between steps; one rank, one scratch. O(B log B) in written and
 * read blocks.
 */
#ifndef DBO_VETO_H
#define DBO_VETO_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A group of layers that share block size and tables. */
typedef struct dbo_kv_group {
    int32_t block_size;         /* tokens, >= 1 */
    int32_t columns;            /* W */
    const int32_t *block_table; /* (num_reqs, W) block ids; 0 is the null block */
} dbo_kv_group;

typedef struct dbo_veto_batch {
    bool use_ubatching;
    int32_t reorder_batch_threshold; /* below 1: acts as 1 */
    int32_t num_reqs;
    const int32_t *num_computed;  /* (num_reqs) tokens in the cache already */
    const int32_t *num_scheduled; /* (num_reqs) tokens of this step */
    int32_t num_groups;
    const dbo_kv_group *groups; /* (num_groups) */
} dbo_veto_batch;

typedef struct dbo_veto_scratch {
    int32_t *ids;
    size_t capacity;
} dbo_veto_scratch;

void dbo_veto_scratch_fini(dbo_veto_scratch *scratch);

/* *allow: true when the batch may be split. Columns past a table's width count as its last column
 * for writers (so a null block there joins the written ones) and are ignored for readers. */
dbo_status dbo_veto_allows(const dbo_veto_batch *batch, dbo_veto_scratch *scratch, bool *allow,
                           dbo_error *err);

#endif
