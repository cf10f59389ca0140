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
 *     requests  as listed, the same for every rank or a list per rank
 *
 * Memory is the workload's: dbo_workload_fini frees it. A zeroed workload is a valid empty one.
 */
#ifndef DBO_APP_WORKLOAD_H
#define DBO_APP_WORKLOAD_H

#include "app/setting.h"
#include "core/batch.h"
#include "core/op.h"
#include "core/status.h"

#include <stdint.h>

#define DBO_WORKLOAD_MAX_TOKENS   1048576u  /* of a rank in a step */
#define DBO_WORKLOAD_MAX_CONTEXT  16777216u /* of a request */
#define DBO_WORKLOAD_MAX_REQUESTS 4194304u  /* of all distinct lists together */

typedef enum dbo_workload_kind {
    DBO_WORKLOAD_NONE,
    DBO_WORKLOAD_DECODE,
    DBO_WORKLOAD_PREFILL,
    DBO_WORKLOAD_REQUESTS
} dbo_workload_kind;

/* One number for every rank (count 1) or one per rank; count 0: not given. */
typedef struct dbo_per_rank {
    uint32_t count;
    uint32_t *values;
} dbo_per_rank;

typedef struct dbo_request_list {
    uint32_t count, num_tokens;
    dbo_request *requests; /* ids from 0 */
} dbo_request_list;

typedef struct dbo_workload {
    dbo_workload_kind kind;
    double jitter_us; /* a rank begins its step up to this late, uniformly, from the seed */
    dbo_per_rank num_tokens, context_len, prompt_len;
    dbo_request_list *lists; /* REQUESTS: as given. After _expand: the distinct lists */
    uint32_t num_lists;
    const dbo_request_list **ranks; /* after _expand: (num_ranks) */
    uint32_t num_ranks;
} dbo_workload;

/* "decode", "prefill", "requests", "none". */
const char *dbo_workload_kind_name(dbo_workload_kind kind);

/* The keys of a decode or prefill that take a number or one per rank: num_tokens, context_len,
 * prompt_len; NULL for any other. */
dbo_per_rank *dbo_workload_numbers(dbo_workload *load, const char *key);

/* Sets numbers[index] (0-based, at most DBO_MAX_RANKS) to a checked value. Sets count to at least
 * index + 1. `key` names it in sentences and gives the range. */
dbo_status dbo_workload_put(dbo_per_rank *numbers, const char *key, uint32_t index,
                            const dbo_value *value, dbo_error *err);

/* For a workload of kind REQUESTS: makes at least num_lists lists, the new ones empty (a rank with
 * nothing to do is legal). */
dbo_status dbo_workload_fit(dbo_workload *load, uint32_t num_lists, dbo_error *err);
/* Appends a request to list `list`, made if need be. */
dbo_status dbo_workload_add(dbo_workload *load, uint32_t list, dbo_request request, dbo_error *err);

/* Fills `ranks`. Fails when a list of numbers has neither one nor num_ranks values. */
dbo_status dbo_workload_expand(dbo_workload *load, uint32_t num_ranks, uint32_t query_len,
                               dbo_error *err);

void dbo_workload_fini(dbo_workload *load);

#endif
