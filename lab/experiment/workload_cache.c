/* workload_cache.c: which blocks of the KV cache each request of a list has (workload.h).
 *
 * A prefix is a run of blocks that all its requests begin with: whole blocks only, as a cache of
 * prefixes shares them, and none that a decoding request is about to write for itself. A request
 * that fills such blocks in this step while another one reads them is what the veto looks for.
 */
#include "lab/experiment/workload.h"

#include <stdlib.h>
#include <string.h>

void dbo_request_list_fini_cache(dbo_request_list *list)
{
    for (uint32_t i = 0; list->cache && i < list->count; i++) {
        free((void *)list->cache[i].blocks);
        free((void *)list->cache[i].prefix);
    }
    free(list->cache);
    free(list->allotted);
    list->cache = NULL;
    list->cap_cache = 0;
    list->allotted = NULL;
}

static uint32_t total_of(const dbo_request *request)
{
    return (uint32_t)request->num_computed + (uint32_t)request->num_scheduled;
}

static uint32_t blocks_of(const dbo_request *request, uint32_t block_size)
{
    return (total_of(request) + block_size - 1) / block_size;
}

/* Whole blocks that a request can share: a decoding one's own token is no part of a prefix. */
static uint32_t sharable(const dbo_request *request, uint32_t block_size)
{
    bool decodes = request->num_scheduled == 1 && request->num_computed > 0;
    return (decodes ? (uint32_t)request->num_computed : total_of(request)) / block_size;
}

/* A prefix: its blocks are numbered one after the other. */
typedef struct dbo_prefix {
    uint32_t shared;  /* whole blocks that all its requests may share */
    uint32_t longest; /* blocks of its longest request */
    int32_t first_block;
} dbo_prefix;

typedef struct dbo_named {
    const char *prefix;
    uint32_t request;
} dbo_named;

typedef struct dbo_prefixes {
    dbo_named *order; /* requests that have one, by name */
    uint32_t *of;     /* by request: its entry in `items` */
    dbo_prefix *items;
} dbo_prefixes;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const dbo_named *)a)->prefix, ((const dbo_named *)b)->prefix);
}

static void prefixes_fini(dbo_prefixes *prefixes)
{
    free(prefixes->order);
    free(prefixes->of);
    free(prefixes->items);
}

static void widen(dbo_prefix *prefix, const dbo_request *request, uint32_t said_tokens,
                  uint32_t block_size)
{
    uint32_t own = said_tokens ? said_tokens / block_size : sharable(request, block_size);
    uint32_t all = blocks_of(request, block_size);
    prefix->shared = own < prefix->shared ? own : prefix->shared;
    prefix->longest = all > prefix->longest ? all : prefix->longest;
}

/* Finds the prefixes and numbers their blocks from *next on. */
static dbo_status find_prefixes(dbo_prefixes *p, dbo_request_list *list, uint32_t block_size,
                                int64_t *next, dbo_error *err)
{
    size_t count = (size_t)list->count + 1;
    uint32_t named = 0, found = 0;
    *p = (dbo_prefixes){calloc(count, sizeof *p->order), calloc(count, sizeof *p->of),
                        calloc(count, sizeof *p->items)};
    DBO_TRY(dbo_need_memory(p->order && p->of && p->items, "the blocks of a batch", err));
    for (uint32_t i = 0; i < list->count; i++)
        if (list->cache[i].prefix)
            p->order[named++] = (dbo_named){list->cache[i].prefix, i};
    qsort(p->order, named, sizeof *p->order, compare_names);
    for (uint32_t k = 0; k < named; k++) {
        if (k == 0 || compare_names(&p->order[k - 1], &p->order[k]) != 0)
            p->items[found++] = (dbo_prefix){.shared = UINT32_MAX};
        uint32_t i = p->order[k].request;
        p->of[i] = found - 1;
        widen(&p->items[found - 1], &list->requests[i], list->cache[i].prefix_len, block_size);
    }
    for (uint32_t k = 0; k < found; k++) {
        dbo_prefix *prefix = &p->items[k];
        prefix->shared = prefix->shared < prefix->longest ? prefix->shared : prefix->longest;
        prefix->first_block = (int32_t)*next;
        *next += prefix->shared;
    }
    return DBO_OK;
}

static dbo_status check_named(const dbo_request_list *list, uint32_t i, uint32_t block_size,
                              dbo_error *err)
{
    uint32_t needed = blocks_of(&list->requests[i], block_size);
    if (!list->cache[i].blocks || list->cache[i].num_blocks >= needed)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL,
                    "request %llu has %u blocks, but its %u tokens need %u of %u tokens",
                    (unsigned long long)list->requests[i].id, list->cache[i].num_blocks,
                    total_of(&list->requests[i]), needed, block_size);
}

/* Fills the blocks of request `i` at `out`; `next` is the next free number. */
static void fill(dbo_request_list *list, const dbo_prefixes *prefixes, uint32_t i,
                 uint32_t block_size, int32_t *out, int64_t *next)
{
    dbo_request *request = &list->requests[i];
    const dbo_request_cache *cache = &list->cache[i];
    uint32_t count = blocks_of(request, block_size), done = 0;
    request->blocks = out;
    request->num_blocks = (int32_t)count;
    if (cache->blocks) {
        memcpy(out, cache->blocks, count * sizeof *out);
        return;
    }
    const dbo_prefix *prefix = cache->prefix ? &prefixes->items[prefixes->of[i]] : NULL;
    for (; prefix && done < count && done < prefix->shared; done++)
        out[done] = prefix->first_block + (int32_t)done;
    while (done < count)
        out[done++] = (int32_t)(*next)++;
}

static dbo_status allot_all(dbo_request_list *list, dbo_prefixes *prefixes, uint32_t block_size,
                            dbo_error *err)
{
    size_t total = 0, at = 0;
    int64_t next = 1;
    for (uint32_t i = 0; i < list->count; i++) {
        const dbo_request_cache *cache = &list->cache[i];
        DBO_TRY(check_named(list, i, block_size, err));
        total += blocks_of(&list->requests[i], block_size);
        for (uint32_t b = 0; cache->blocks && b < cache->num_blocks; b++)
            if (cache->blocks[b] >= next)
                next = (int64_t)cache->blocks[b] + 1;
    }
    if (total > DBO_WORKLOAD_MAX_BLOCKS || next > INT32_MAX - (int64_t)DBO_WORKLOAD_MAX_BLOCKS)
        return dbo_fail(err, DBO_LIMIT, NULL, "a rank's requests need more than %u blocks",
                        DBO_WORKLOAD_MAX_BLOCKS);
    DBO_TRY(find_prefixes(prefixes, list, block_size, &next, err));
    free(list->allotted);
    list->allotted = malloc(total * sizeof *list->allotted + 1);
    DBO_TRY(dbo_need_memory(list->allotted, "the blocks of a batch", err));
    for (uint32_t i = 0; i < list->count; i++) {
        fill(list, prefixes, i, block_size, list->allotted + at, &next);
        at += blocks_of(&list->requests[i], block_size);
    }
    return DBO_OK;
}

static dbo_status allot(dbo_request_list *list, uint32_t block_size, dbo_error *err)
{
    dbo_prefixes prefixes = {0};
    dbo_status status = allot_all(list, &prefixes, block_size, err);
    prefixes_fini(&prefixes);
    return status;
}

dbo_status dbo_workload_allot(dbo_workload *load, uint32_t block_size, dbo_error *err)
{
    for (uint32_t l = 0; l < load->num_lists; l++) {
        dbo_request_list *list = &load->lists[l];
        bool said = false;
        for (uint32_t i = 0; list->cache && i < list->count; i++)
            said = said || list->cache[i].blocks || list->cache[i].prefix;
        if (said)
            DBO_TRY(allot(list, block_size, err));
    }
    return DBO_OK;
}
