/* workload.c: descriptions of batches into lists of requests (workload.h).
 *
 * Lists are made once per distinct triple of numbers: a rank looks for an earlier rank with the
 * same numbers. Alike ranks find theirs at once; the search is over distinct lists only.
 */
#include "lab/experiment/workload.h"

#include "core/base/vec.h"

#include <stdlib.h>
#include <string.h>

const char *dbo_workload_kind_name(dbo_workload_kind kind)
{
    static const char *const names[] = {"none", "decode", "prefill", "requests"};
    return names[kind];
}

/* Room for one more item of an array, whose address is `at`. */
static dbo_status grow(void *at, uint32_t *cap, uint32_t count, size_t bytes, dbo_error *err)
{
    bool there = dbo_vec_grow(at, cap, (uint64_t)count + 1, bytes) == DBO_OK;
    return dbo_need_memory(there, "the batch", err);
}

static dbo_status add_list(dbo_workload *load, dbo_error *err)
{
    DBO_TRY(grow(&load->lists, &load->cap_lists, load->num_lists, sizeof *load->lists, err));
    load->lists[load->num_lists++] = (dbo_request_list){0};
    return DBO_OK;
}

static dbo_status add_request(dbo_request_list *list, dbo_request request, dbo_error *err)
{
    if (request.num_scheduled <= 0) {
        return dbo_fail(err, DBO_INVALID, "Leave the request out.",
                        "a scheduled request must have at least one token");
    }
    if ((uint64_t)list->num_tokens + (uint32_t)request.num_scheduled > DBO_WORKLOAD_MAX_TOKENS) {
        return dbo_fail(err, DBO_INVALID, NULL, "a rank has more than %u tokens in a step",
                        DBO_WORKLOAD_MAX_TOKENS);
    }
    DBO_TRY(grow(&list->requests, &list->cap, list->count, sizeof *list->requests, err));
    if (request.id == DBO_WORKLOAD_NEXT_ID)
        request.id = list->count;
    list->requests[list->count++] = request;
    list->num_tokens += (uint32_t)request.num_scheduled;
    return DBO_OK;
}

dbo_status dbo_workload_fit(dbo_workload *load, uint32_t num_lists, dbo_error *err)
{
    if (num_lists > DBO_MAX_RANKS) {
        return dbo_fail(err, DBO_LIMIT, NULL, "the batch has lists for more than %u ranks",
                        (unsigned)DBO_MAX_RANKS);
    }
    while (load->num_lists < num_lists)
        DBO_TRY(add_list(load, err));
    return DBO_OK;
}

static dbo_status copy_cache(dbo_request_cache *to, const dbo_request_cache *from, dbo_error *err)
{
    if (from && from->blocks) {
        int32_t *blocks = malloc(from->num_blocks * sizeof *blocks + 1);
        DBO_TRY(dbo_need_memory(blocks, "the batch", err));
        memcpy(blocks, from->blocks, from->num_blocks * sizeof *blocks);
        to->blocks = blocks;
        to->num_blocks = from->num_blocks;
    }
    if (from && from->prefix) {
        to->prefix = strdup(from->prefix);
        to->prefix_len = from->prefix_len;
        DBO_TRY(dbo_need_memory(to->prefix, "the batch", err));
    }
    return DBO_OK;
}

dbo_status dbo_workload_add(dbo_workload *load, uint32_t list, dbo_request request,
                            const dbo_request_cache *cache, dbo_error *err)
{
    DBO_TRY(dbo_workload_fit(load, list + 1, err));
    dbo_request_list *into = &load->lists[list];
    /* Before the request is added, so that every one has its entry whatever fails. */
    DBO_TRY(grow(&into->cache, &into->cap_cache, into->count, sizeof *into->cache, err));
    into->cache[into->count] = (dbo_request_cache){0};
    DBO_TRY(add_request(into, request, err));
    return copy_cache(&into->cache[into->count - 1], cache, err);
}

/* The requests of one rank of a described workload. */
static dbo_status describe(dbo_request_list *list, const dbo_workload *load, uint32_t tokens,
                           uint32_t context, uint32_t each, dbo_error *err)
{
    if (load->kind == DBO_WORKLOAD_DECODE && tokens % each != 0) {
        return dbo_fail_value(err, DBO_INVALID, "num_tokens",
                              "Give a multiple of 1 + num_speculative_tokens.",
                              "is %u, but each decoding request has %u tokens", tokens, each);
    }
    for (uint32_t done = 0; done < tokens;) {
        uint32_t now = tokens - done < each ? tokens - done : each;
        dbo_request request = {.id = DBO_WORKLOAD_NEXT_ID,
                               .num_scheduled = (int32_t)now,
                               .num_computed = (int32_t)context};
        DBO_TRY(add_request(list, request, err));
        done += now;
    }
    return DBO_OK;
}

static uint32_t number_of(const dbo_per_rank *numbers, uint32_t rank, uint32_t missing)
{
    if (numbers->count == 0)
        return missing;
    return numbers->values[numbers->count == 1 ? 0 : rank];
}

static dbo_status check_count(const dbo_per_rank *numbers, const char *key, uint32_t num_ranks,
                              dbo_error *err)
{
    if (numbers->count <= 1 || numbers->count == num_ranks)
        return DBO_OK;
    return dbo_fail_value(err, DBO_INVALID, key, NULL,
                          "has %u values; it must be one number, or %u, one for each "
                          "data-parallel rank",
                          numbers->count, num_ranks);
}

/* One length for all ranks cuts the last prompt of each, but must be there on one of them. Who
 * changes the tokens of somebody else's batch cuts its prompts. */
static dbo_status check_prompts(const dbo_workload *load, uint32_t num_ranks, dbo_error *err)
{
    uint32_t most = 0;
    if (load->prompt_len.count == 0 || load->num_tokens.turn > load->prompt_len.turn)
        return DBO_OK;
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        uint32_t tokens = number_of(&load->num_tokens, rank, 0);
        uint32_t prompt = number_of(&load->prompt_len, rank, 0);
        most = tokens > most ? tokens : most;
        if (load->prompt_len.count > 1 && tokens > 0 && prompt > tokens)
            return dbo_fail_value(err, DBO_INVALID, "prompt_len", NULL,
                                  "of rank %u is %u; it must be from 1 to %u, its "
                                  "num_tokens",
                                  rank, prompt, tokens);
    }
    if (load->prompt_len.count != 1 || most == 0 || load->prompt_len.values[0] <= most)
        return DBO_OK;
    return dbo_fail_value(err, DBO_INVALID, "prompt_len", NULL,
                          "is %u; it must be from 1 to %u, the most of num_tokens",
                          load->prompt_len.values[0], most);
}

/* A distinct batch, and (by rank) which distinct batch a rank has. */
typedef struct dbo_described {
    uint32_t numbers[3]; /* tokens, context, tokens a request */
    uint32_t list;
} dbo_described;

static dbo_status expand_described(dbo_workload *load, uint32_t query_len, dbo_described *known,
                                   dbo_error *err)
{
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < load->num_ranks; rank++) {
        uint32_t tokens = number_of(&load->num_tokens, rank, 0);
        uint32_t context = number_of(&load->context_len, rank, 0);
        uint32_t each = query_len;
        if (load->kind == DBO_WORKLOAD_PREFILL)
            each = number_of(&load->prompt_len, rank, 0);
        if (each == 0)
            each = tokens ? tokens : 1;
        uint32_t numbers[3] = {tokens, context, each};
        uint32_t found = 0;
        while (found < load->num_lists &&
               memcmp(known[found].numbers, numbers, sizeof numbers) != 0)
            found++;
        known[rank].list = found;
        if (found < load->num_lists)
            continue;
        memcpy(known[found].numbers, numbers, sizeof numbers);
        DBO_TRY(add_list(load, err));
        DBO_TRY(describe(&load->lists[found], load, tokens, context, each, err));
        total += load->lists[found].count;
        if (total > DBO_WORKLOAD_MAX_REQUESTS) {
            return dbo_fail(err, DBO_LIMIT, NULL, "the batch has more than %u requests",
                            DBO_WORKLOAD_MAX_REQUESTS);
        }
    }
    for (uint32_t rank = 0; rank < load->num_ranks; rank++)
        load->ranks[rank] = &load->lists[known[rank].list];
    return DBO_OK;
}

static dbo_status expand_listed(dbo_workload *load, dbo_error *err)
{
    if (load->num_lists != 1 && load->num_lists != load->num_ranks) {
        return dbo_fail(err, DBO_INVALID, NULL,
                        "batch.requests has %u lists; it must be one list, or %u, one for each "
                        "data-parallel rank",
                        load->num_lists, load->num_ranks);
    }
    for (uint32_t rank = 0; rank < load->num_ranks; rank++)
        load->ranks[rank] = &load->lists[load->num_lists == 1 ? 0 : rank];
    return DBO_OK;
}

void dbo_workload_forget_requests(dbo_workload *load)
{
    for (uint32_t i = 0; i < load->num_lists; i++) {
        dbo_request_list_fini_cache(&load->lists[i]);
        free(load->lists[i].requests);
    }
    free(load->lists);
    load->lists = NULL;
    load->num_lists = load->cap_lists = 0;
}

dbo_status dbo_workload_expand(dbo_workload *load, uint32_t num_ranks, uint32_t query_len,
                               dbo_error *err)
{
    DBO_TRY(check_count(&load->num_tokens, "num_tokens", num_ranks, err));
    DBO_TRY(check_count(&load->context_len, "context_len", num_ranks, err));
    DBO_TRY(check_count(&load->prompt_len, "prompt_len", num_ranks, err));
    DBO_TRY(check_prompts(load, num_ranks, err));
    free(load->ranks);
    load->num_ranks = num_ranks;
    load->ranks = calloc(num_ranks, sizeof(dbo_request_list *));
    DBO_TRY(dbo_need_memory(load->ranks, "the batch", err));
    if (load->kind == DBO_WORKLOAD_REQUESTS)
        return expand_listed(load, err);
    dbo_workload_forget_requests(load);
    dbo_described *known = calloc(num_ranks, sizeof *known);
    DBO_TRY(dbo_need_memory(known, "the batch", err));
    dbo_status status = expand_described(load, query_len, known, err);
    free(known);
    return status;
}

void dbo_workload_fini(dbo_workload *load)
{
    dbo_workload_forget_requests(load);
    free(load->num_tokens.values);
    free(load->context_len.values);
    free(load->prompt_len.values);
    free(load->ranks);
    *load = (dbo_workload){0};
}
