/* workload.h: what the ranks have to compute in a step: requests, described or listed.
 *
 * A dbo_workload is what a person writes (dbo.decode, dbo.prefill, dbo.batch); dbo_workload_expand
 * turns it into a list of requests per data-parallel rank. Ranks with equal numbers share one list,
 * so that 16384 alike ranks cost one, and equal pointers mean equal batches.
 *
 *     decode    num_tokens tokens, each request query_len of them (1 without speculation), with
 *               context_len tokens in its KV cache
 *     prefill   num_tokens tokens in prompts of prompt_len (0: one prompt), the last one cut short;
 *               context_len tokens of each were computed before (a cached prefix)
 *     requests  as listed, the same for every rank or a list per rank; requests may name the blocks
 *               of the KV cache that they have, or a prefix that they share with others
 *
 *     dbo_workload load = {0};
 *     DBO_TRY_GOTO(dbo_workload_set(&load, "batch", &value, 0, err), done);
 *     DBO_TRY_GOTO(dbo_workload_expand(&load, num_ranks, 1, err), done);
 *     const dbo_request_list *mine = load.ranks[rank];
 *     done: dbo_workload_fini(&load);
 *
 * Memory is the workload's: dbo_workload_fini frees it. A zeroed workload is a valid empty one.
 */
#ifndef DBO_LAB_WORKLOAD_H
#define DBO_LAB_WORKLOAD_H

#include "core/base/status.h"
#include "core/decide/batch.h"
#include "core/seam/op.h"
#include "lab/experiment/value.h"

#include <stdint.h>

#define DBO_WORKLOAD_MAX_TOKENS   1048576u  /* of a rank in a step */
#define DBO_WORKLOAD_MAX_CONTEXT  16777216u /* of a request */
#define DBO_WORKLOAD_MAX_REQUESTS 4194304u  /* of all distinct lists together */
#define DBO_WORKLOAD_MAX_BLOCKS   67108864u /* of the KV cache, of a rank's requests */

typedef enum dbo_workload_kind {
    DBO_WORKLOAD_NONE,
    DBO_WORKLOAD_DECODE,
    DBO_WORKLOAD_PREFILL,
    DBO_WORKLOAD_REQUESTS
} dbo_workload_kind;

/* One number for every rank (count 1) or one per rank; count 0: not given. */
typedef struct dbo_per_rank {
    uint32_t count;
    uint32_t turn; /* in which it was said (experiment.h) */
    uint32_t *values;
} dbo_per_rank;

/* Where a request's tokens are in the KV cache, as a person says it. */
typedef struct dbo_request_cache {
    const int32_t *blocks; /* (num_blocks) in order; NULL: to be allotted */
    uint32_t num_blocks;
    const char *prefix;  /* requests with equal names share their leading blocks; NULL: none */
    uint32_t prefix_len; /* tokens of it; 0: as many as all its requests have */
} dbo_request_cache;

typedef struct dbo_request_list {
    uint32_t count, num_tokens, cap, cap_cache;
    dbo_request *requests;    /* with blocks after dbo_workload_allot */
    dbo_request_cache *cache; /* (count); NULL: nobody has said anything. Owned */
    int32_t *allotted;        /* the blocks of all requests, one after the other */
} dbo_request_list;

/* The id of a request that is to be numbered by its place in the list. */
#define DBO_WORKLOAD_NEXT_ID UINT64_MAX

typedef struct dbo_workload {
    dbo_workload_kind kind;
    double jitter_us; /* after the vote a rank is up to this late, uniformly, from the seed */
    dbo_per_rank num_tokens, context_len, prompt_len;
    dbo_request_list *lists; /* REQUESTS: as given. After _expand: the distinct lists */
    uint32_t num_lists, cap_lists;
    const dbo_request_list **ranks; /* after _expand: (num_ranks) */
    uint32_t num_ranks;
} dbo_workload;

/* "decode", "prefill", "requests", "none". */
const char *dbo_workload_kind_name(dbo_workload_kind kind);

/* Makes the workload what a table says that dbo.decode, dbo.prefill or dbo.batch has made
 * (made_by); `key` names it in the sentence about anything else; `turn`: who says it.
 * (workload_set.c) */
dbo_status dbo_workload_set(dbo_workload *load, const char *key, const dbo_value *value,
                            uint32_t turn, dbo_error *err);
/* Changes single keys of one that has a kind: num_tokens, context_len, prompt_len (a number for
 * every rank or a list with one per rank), jitter_us, requests. */
dbo_status dbo_workload_set_keys(dbo_workload *load, const dbo_value *table, uint32_t turn,
                                 dbo_error *err);

/* For a workload of kind REQUESTS: makes at least num_lists lists, the new ones empty (a rank with
 * nothing to do is legal). */
dbo_status dbo_workload_fit(dbo_workload *load, uint32_t num_lists, dbo_error *err);
/* The lists as if nobody had said any. */
void dbo_workload_forget_requests(dbo_workload *load);
/* Appends a request to list `list`, made if need be. `cache` is copied; NULL: nothing is said. */
dbo_status dbo_workload_add(dbo_workload *load, uint32_t list, dbo_request request,
                            const dbo_request_cache *cache, dbo_error *err);

/* Fills `ranks`. Fails when a list of numbers has neither one nor num_ranks values, or a prompt is
 * longer than the tokens of the step that it is in, unless these were changed in a later turn. */
dbo_status dbo_workload_expand(dbo_workload *load, uint32_t num_ranks, uint32_t query_len,
                               dbo_error *err);

/* Gives every request of a list in which one has a cache the blocks that its tokens need, of
 * block_size tokens: those that it names, those of its prefix, new ones. Numbers are the rank's own
 * and begin at 1 (0 is the null block). Without prefix_len a prefix is as long as its shortest
 * request, whose token in decode is its own. DBO_INVALID when named blocks do not suffice.
 * (workload_cache.c) */
dbo_status dbo_workload_allot(dbo_workload *load, uint32_t block_size, dbo_error *err);
void dbo_request_list_fini_cache(dbo_request_list *list);

void dbo_workload_fini(dbo_workload *load);

#endif
