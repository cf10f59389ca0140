/* batch.h: from the requests scheduled on a rank to one step's batch.
 *
 * A batch is a list of requests, each with the tokens it runs in this step and the tokens that are
 * already in the cache. *Uniform decode* means that every request runs exactly the decode query
 * length, 1 + speculative tokens; it selects the threshold and the kind of graph. A decode-only
 * batch of mixed lengths is not uniform and counts as prefill.
 *
 *     dbo_batch batch;
 *     DBO_TRY(dbo_batch_summarize(requests, n, 1, &batch, err));
 *     int32_t starts[n + 1], lens[n];
 *     dbo_batch_fill(requests, n, starts, lens);
 *
 * Pure functions over the caller's arrays; any thread. O(requests + tokens).
 */
#ifndef DBO_BATCH_H
#define DBO_BATCH_H

#include "core/base/status.h"
#include "core/decide/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dbo_request {
    uint64_t id;
    int32_t num_scheduled; /* tokens of this step, >= 1 */
    int32_t num_computed;  /* tokens in the cache already */
    const int32_t *blocks; /* (num_blocks) cache blocks in order; borrowed; NULL when not kept */
    int32_t num_blocks;
} dbo_request;

/* What the vote needs to know of a batch. */
typedef struct dbo_batch {
    int32_t num_reqs;
    int32_t num_tokens;          /* sum of num_scheduled */
    int32_t max_query_len;       /* 0 for an empty batch */
    int32_t max_seq_len;         /* computed + scheduled, over requests */
    int32_t uniform_token_count; /* tokens of each request when all have the same, else 0 */
    bool uniform_decode;
    int64_t num_context_tokens; /* sum of num_computed */
} dbo_batch;

/* An empty batch (num_reqs 0) is legal. DBO_INVALID names the request that has no token, a
 * negative count, or more than 2^31 - 1 tokens in all. */
dbo_status dbo_batch_summarize(const dbo_request *requests, int32_t num_reqs,
                               int32_t decode_query_len, dbo_batch *out, dbo_error *err);

/* query_start_loc is (num_reqs + 1), seq_lens is (num_reqs). The batch has been summarized. */
void dbo_batch_fill(const dbo_request *requests, int32_t num_reqs, int32_t *query_start_loc,
                    int32_t *seq_lens);

/* slots is (num_tokens): where each token's key and value go, block * block_size + offset; and
 * positions, the same size, may be NULL. DBO_INVALID names a request with too few blocks. */
dbo_status dbo_batch_fill_slots(const dbo_request *requests, int32_t num_reqs, int32_t block_size,
                                int64_t *slots, int32_t *positions, dbo_error *err);

/* Every request runs the decode query length; `forced` overrides. */
bool dbo_is_uniform_decode(int32_t max_num_scheduled, int32_t decode_query_len, int32_t num_tokens,
                           int32_t num_reqs, dbo_tristate forced);

#endif
