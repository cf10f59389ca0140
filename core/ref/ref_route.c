/* ref_route.c: the rows of an all-to-all, moved on the CPU (route.h). Written from the receiver: it
 * looks at every rank's side in the order of ranks, so the order of rows is nobody's timing. */
#include "core/layer/model_ops.h"
#include "core/ref/ref_math.h"
#include "core/seam/route.h"

#include <string.h>

static const void *input(const dbo_route_side *side, dbo_route_tensor tensor)
{
    uint8_t number = side->route->reads[tensor];
    return number == DBO_ROUTE_NONE ? NULL : side->reads[number];
}

static void *output(const dbo_route *route, void *const *writes, dbo_route_tensor tensor)
{
    uint8_t number = route->writes[tensor];
    return number == DBO_ROUTE_NONE ? NULL : writes[number];
}

static uint32_t local_experts(const dbo_route *route)
{
    return route->num_experts / route->num_ranks;
}

static uint32_t scales_of(const dbo_route *route)
{
    return (route->hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP;
}

/* The expert's number on the rank, or -1: it lives elsewhere or nowhere. */
static int32_t local_id(const dbo_route *route, int64_t id, uint32_t rank)
{
    int64_t local = (int64_t)local_experts(route);
    int64_t first = local * (int64_t)rank;
    return id >= first && id < first + local ? (int32_t)(id - first) : -1;
}

/* ---- dispatch ---- */

typedef struct arrival {
    const dbo_route *route; /* the receiver's */
    uint32_t rank;
    uint8_t *rows;
    float *scales;
    int64_t *ids;
    float *weights;
    int32_t *handle;
} arrival;

/* Token t of a side arrives as row r. */
static void put_row(const arrival *a, const dbo_route_side *side, uint32_t t, uint64_t r)
{
    const dbo_route *route = a->route;
    uint32_t hidden = route->hidden, groups = scales_of(route);
    size_t bytes = hidden * (size_t)(route->wire == DBO_FP8 ? 1 : 4);
    const uint8_t *rows = input(side, DBO_ROUTE_ROWS);
    const float *scales = input(side, DBO_ROUTE_SCALES);
    a->handle[r] = (int32_t)t;
    if (route->quantise && a->scales) {
        const float *row = (const float *)(const void *)rows + (size_t)t * hidden;
        dbo_ref_quantise(row, hidden, (int8_t *)a->rows + r * hidden, a->scales + r * groups);
        return;
    }
    memcpy(a->rows + r * bytes, rows + t * bytes, bytes);
    if (a->scales && scales)
        memcpy(a->scales + r * groups, scales + (size_t)t * groups, groups * sizeof *scales);
}

/* The row's experts as the receiver knows them. Says whether it has any. */
static bool put_ids(const arrival *a, const dbo_route_side *side, uint32_t t, uint64_t r)
{
    uint32_t topk = a->route->topk;
    const int64_t *ids = input(side, DBO_ROUTE_IDS);
    const float *weights = input(side, DBO_ROUTE_WEIGHTS);
    bool any = false;
    for (uint32_t k = 0; k < topk; k++) {
        int32_t local = local_id(a->route, ids[(size_t)t * topk + k], a->rank);
        a->ids[r * topk + k] = local;
        a->weights[r * topk + k] = local < 0 ? 0 : weights[(size_t)t * topk + k];
        any = any || local >= 0;
    }
    return any;
}

static void dispatch_ht(const dbo_route_side *sides, const arrival *a)
{
    const dbo_route *route = a->route;
    uint64_t r = 0, most = route->capacity;
    int32_t *first = a->handle + most;
    for (uint32_t s = 0; s < route->num_ranks; s++) {
        const uint8_t *flags = input(&sides[s], DBO_ROUTE_FLAGS);
        first[s] = (int32_t)r;
        for (uint32_t t = 0; t < sides[s].route->tokens && r < most; t++) {
            if (flags && !flags[(size_t)t * route->num_ranks + a->rank])
                continue;
            if (!put_ids(a, &sides[s], t, r))
                continue;
            put_row(a, &sides[s], t, r++);
        }
    }
    first[route->num_ranks] = (int32_t)r;
    for (uint64_t i = r * route->topk; i < most * route->topk; i++)
        a->ids[i] = -1; /* what lies behind the rows is nobody's */
}

/* Packs an expert's rows from one source; returns how many there are. */
static uint32_t pack(const dbo_route_side *side, const arrival *a, uint32_t expert, uint64_t first)
{
    const dbo_route *route = a->route;
    const int64_t *ids = input(side, DBO_ROUTE_IDS);
    uint32_t count = 0, pairs = side->route->tokens * route->topk;
    for (uint32_t i = 0; i < pairs && count < route->capacity; i++)
        if (local_id(route, ids[i], a->rank) == (int32_t)expert)
            put_row(a, side, i / route->topk, first + count++);
    return count;
}

static void dispatch_ll(const dbo_route_side *sides, const arrival *a, int32_t *counts)
{
    const dbo_route *route = a->route;
    uint32_t ranks = route->num_ranks;
    int32_t *ranges = a->handle + dbo_route_rows(route);
    for (uint32_t e = 0; e < local_experts(route); e++) {
        uint64_t base = (uint64_t)e * ranks * route->capacity;
        uint32_t total = 0;
        for (uint32_t s = 0; s < ranks; s++) {
            uint32_t count = pack(&sides[s], a, e, base + total);
            ranges[2 * ((size_t)e * ranks + s)] = (int32_t)(base + total);
            ranges[2 * ((size_t)e * ranks + s) + 1] = (int32_t)count;
            total += count;
        }
        if (counts)
            counts[e] = (int32_t)total;
    }
}

/* ---- combine ---- */

/* The rows that a side has for `rank`: [*first, *end), clipped to what exists. */
static void clip(uint64_t rows, int64_t from, int64_t to, uint64_t *first, uint64_t *end)
{
    *first = from < 0 ? 0 : (uint64_t)from;
    *end = to < 0 ? 0 : (uint64_t)to;
    if (*end > rows)
        *end = rows;
}

static void combine_ht(const dbo_route_side *sides, uint32_t rank, float *out)
{
    const dbo_route *route = sides[rank].route;
    uint32_t hidden = route->hidden;
    for (uint32_t d = 0; d < route->num_ranks; d++) {
        const float *rows = input(&sides[d], DBO_ROUTE_ROWS);
        const int32_t *handle = input(&sides[d], DBO_ROUTE_HANDLE);
        uint64_t most = sides[d].route->capacity, first, end;
        if (!rows || !handle)
            continue;
        clip(most, handle[most + rank], handle[most + rank + 1], &first, &end);
        for (uint64_t r = first; r < end; r++)
            if (handle[r] >= 0 && (uint32_t)handle[r] < route->tokens)
                dbo_ref_add(out + (size_t)handle[r] * hidden, rows + r * hidden, hidden);
    }
}

/* What the expert made of token t of `rank`, or NULL. */
static const float *find_row(const dbo_route_side *sides, uint32_t rank, int64_t id, uint32_t t)
{
    const dbo_route *route = sides[rank].route;
    if (id < 0 || id >= (int64_t)route->num_experts)
        return NULL;
    uint32_t local = local_experts(route), owner = (uint32_t)id / local;
    const dbo_route_side *side = &sides[owner];
    const float *rows = input(side, DBO_ROUTE_ROWS);
    const int32_t *handle = input(side, DBO_ROUTE_HANDLE);
    if (!rows || !handle)
        return NULL;
    uint64_t most = dbo_route_rows(side->route), first, end;
    const int32_t *range = handle + most + 2 * ((uint64_t)id % local * route->num_ranks + rank);
    clip(most, range[0], (int64_t)range[0] + range[1], &first, &end);
    for (uint64_t r = first; r < end; r++)
        if (handle[r] == (int32_t)t)
            return rows + r * route->hidden;
    return NULL;
}

static void combine_ll(const dbo_route_side *sides, uint32_t rank, float *out)
{
    const dbo_route *route = sides[rank].route;
    const int64_t *ids = input(&sides[rank], DBO_ROUTE_IDS);
    const float *weights = input(&sides[rank], DBO_ROUTE_WEIGHTS);
    for (uint32_t i = 0; i < route->tokens * route->topk; i++) {
        uint32_t t = i / route->topk;
        const float *row = find_row(sides, rank, ids[i], t);
        if (row)
            dbo_ref_add_scaled(out + (size_t)t * route->hidden, weights[i], row, route->hidden);
    }
}

void dbo_route_deliver(const dbo_route_side *sides, uint32_t rank, void *const *writes)
{
    const dbo_route *route = sides[rank].route;
    if (route->combine) {
        float *out = output(route, writes, DBO_ROUTE_ROWS);
        if (!out)
            return; /* no tokens here */
        memset(out, 0, (size_t)route->tokens * route->hidden * sizeof *out);
        if (route->low_latency)
            combine_ll(sides, rank, out);
        else
            combine_ht(sides, rank, out);
        return;
    }
    const arrival a = {.route = route,
                       .rank = rank,
                       .rows = output(route, writes, DBO_ROUTE_ROWS),
                       .scales = output(route, writes, DBO_ROUTE_SCALES),
                       .ids = output(route, writes, DBO_ROUTE_IDS),
                       .weights = output(route, writes, DBO_ROUTE_WEIGHTS),
                       .handle = output(route, writes, DBO_ROUTE_HANDLE)};
    if (!a.rows || !a.handle)
        return; /* nothing fits here */
    if (route->low_latency)
        dispatch_ll(sides, &a, output(route, writes, DBO_ROUTE_COUNTS));
    else if (a.ids && a.weights)
        dispatch_ht(sides, &a);
}
