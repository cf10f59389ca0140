/* interval.c: growing lists; normalising sorts once and merges in place. What asks
 * walks both lists side by side. */
#include "core/base/interval.h"

#include "core/base/vec.h"

#include <stdlib.h>

dbo_status dbo_intervals_add(dbo_intervals *set, int64_t start_ns, int64_t end_ns, dbo_error *err)
{
    if (end_ns <= start_ns)
        return DBO_OK;
    if (DBO_VEC_PUSH(set, ((dbo_interval){start_ns, end_ns})) != DBO_OK)
        return dbo_fail_memory(err, "a list of intervals");
    return DBO_OK;
}

static int compare_start(const void *a, const void *b)
{
    const dbo_interval *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void dbo_intervals_normalise(dbo_intervals *set)
{
    if (set->count == 0)
        return;
    qsort(set->items, set->count, sizeof *set->items, compare_start);
    size_t last = 0;
    for (size_t i = 1; i < set->count; i++) {
        if (set->items[i].start_ns > set->items[last].end_ns)
            set->items[++last] = set->items[i];
        else if (set->items[i].end_ns > set->items[last].end_ns)
            set->items[last].end_ns = set->items[i].end_ns;
    }
    set->count = (uint32_t)(last + 1);
}

void dbo_intervals_fini(dbo_intervals *set)
{
    free(set->items);
    *set = (dbo_intervals){0};
}

int64_t dbo_intervals_total_ns(const dbo_intervals *set)
{
    int64_t total = 0;
    for (size_t i = 0; i < set->count; i++)
        total += set->items[i].end_ns - set->items[i].start_ns;
    return total;
}

int64_t dbo_intervals_common_ns(const dbo_intervals *a, const dbo_intervals *b)
{
    int64_t total = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const dbo_interval *x = &a->items[i], *y = &b->items[j];
        int64_t start = x->start_ns > y->start_ns ? x->start_ns : y->start_ns;
        int64_t end = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        if (end > start)
            total += end - start;
        if (x->end_ns < y->end_ns)
            i++;
        else
            j++;
    }
    return total;
}

dbo_status dbo_intervals_subtract(const dbo_intervals *a, const dbo_intervals *b,
                                  dbo_intervals *out, dbo_error *err)
{
    size_t j = 0;
    out->count = 0;
    for (size_t i = 0; i < a->count; i++) {
        int64_t from = a->items[i].start_ns, to = a->items[i].end_ns;
        while (j < b->count && b->items[j].end_ns <= from)
            j++;
        /* `j` stays at the first hole that can still touch this interval; the next may share it */
        for (size_t k = j; k < b->count && b->items[k].start_ns < to; k++) {
            DBO_TRY(dbo_intervals_add(out, from, b->items[k].start_ns, err));
            from = b->items[k].end_ns;
        }
        DBO_TRY(dbo_intervals_add(out, from, to, err));
    }
    return DBO_OK;
}
