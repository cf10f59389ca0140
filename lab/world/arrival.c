/* arrival.c: see arrival.h. Ranks that share a list get the same one, in whatever order. */
#include "lab/world/arrival.h"

#include <stdlib.h>
#include <string.h>

/* Have two requests of the list a block in common? */
static bool shares_blocks(const dbo_request_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->cache && (list->cache[i].prefix || list->cache[i].blocks))
            return true;
    return false;
}

/* Copies of the batch's lists in another order; those that cannot change stay empty. */
static dbo_status put_in_order(dbo_arrivals *a, const dbo_workload *batch, dbo_arrival order,
                               dbo_error *err)
{
    for (uint32_t k = 0; k < batch->num_lists; k++) {
        const dbo_request_list *list = &batch->lists[k];
        dbo_request_list *ordered = &a->ordered[a->num_ordered++];
        uint32_t count = list->count;
        if (count < 2 || shares_blocks(list))
            continue;
        ordered->requests = calloc(count, sizeof *ordered->requests);
        DBO_TRY(dbo_need_memory(ordered->requests, "the requests", err));
        ordered->count = count;
        ordered->num_tokens = list->num_tokens;
        for (uint32_t i = 0; i < count; i++)
            ordered->requests[i] =
                list->requests[order == DBO_ARRIVAL_REVERSED ? count - 1 - i : (i + 1) % count];
    }
    return DBO_OK;
}

static dbo_status fill(dbo_arrivals *a, const dbo_experiment *e, dbo_arrival order, dbo_error *err)
{
    for (uint32_t step = 0; step < a->num_steps; step++) {
        const dbo_workload *batch = step < e->num_before ? &e->before[step] : &e->batch;
        const dbo_request_list *ordered = a->ordered + a->num_ordered;
        if (order != DBO_ARRIVAL_AS_GIVEN)
            DBO_TRY(put_in_order(a, batch, order, err));
        for (uint32_t r = 0; r < a->num_ranks; r++) {
            const dbo_request_list *list = batch->ranks[r];
            if (order != DBO_ARRIVAL_AS_GIVEN && ordered[list - batch->lists].requests)
                list = &ordered[list - batch->lists];
            a->requests[(size_t)step * a->num_ranks + r] = list;
        }
    }
    return DBO_OK;
}

dbo_status dbo_arrivals_init(dbo_arrivals *arrivals, const dbo_experiment *e, dbo_arrival order,
                             dbo_error *err)
{
    size_t lists = 1 + 2 * (size_t)e->batch.num_lists; /* of the measured step, and one like it */
    for (uint32_t i = 0; i < e->num_before; i++)
        lists += e->before[i].num_lists;
    if (order == DBO_ARRIVAL_AS_GIVEN)
        lists = 1;
    *arrivals = (dbo_arrivals){.num_steps = (e->num_before > 0 ? e->num_before : 1) + 1,
                               .num_ranks = e->config.data_parallel_size};
    arrivals->requests =
        calloc((size_t)arrivals->num_steps * arrivals->num_ranks, sizeof(const dbo_request_list *));
    arrivals->ordered = calloc(lists, sizeof *arrivals->ordered);
    dbo_status status = arrivals->requests && arrivals->ordered
                            ? fill(arrivals, e, order, err)
                            : dbo_fail_memory(err, "the requests");
    if (status != DBO_OK)
        dbo_arrivals_fini(arrivals);
    return status;
}

void dbo_arrivals_fini(dbo_arrivals *arrivals)
{
    for (uint32_t i = 0; i < arrivals->num_ordered; i++)
        free(arrivals->ordered[i].requests);
    free(arrivals->ordered);
    free(arrivals->requests);
    memset(arrivals, 0, sizeof *arrivals);
}

/* ---- what stays equal folds ---- */

static bool get_the_same(const dbo_arrivals *a, uint32_t one, uint32_t other)
{
    for (uint32_t step = 0; step < a->num_steps; step++) {
        const dbo_request_list **ranks = a->requests + (size_t)step * a->num_ranks;
        if (ranks[one] != ranks[other])
            return false;
    }
    return true;
}

dbo_status dbo_arrivals_fold(const dbo_arrivals *a,
                             bool (*stands_out)(const void *self, uint32_t rank), const void *self,
                             dbo_fold *out, dbo_error *err)
{
    *out = (dbo_fold){.class_of = calloc(a->num_ranks, sizeof *out->class_of),
                      .first_rank = calloc(a->num_ranks, sizeof *out->first_rank)};
    if (!out->class_of || !out->first_rank) {
        free(out->class_of);
        free(out->first_rank);
        return dbo_fail_memory(err, "the ranks");
    }
    for (uint32_t r = 0; r < a->num_ranks; r++) {
        uint32_t c = stands_out(self, r) ? out->num_classes : 0;
        while (c < out->num_classes &&
               (stands_out(self, out->first_rank[c]) || !get_the_same(a, out->first_rank[c], r)))
            c++;
        if (c == out->num_classes)
            out->first_rank[out->num_classes++] = r;
        out->class_of[r] = c;
    }
    return DBO_OK;
}
