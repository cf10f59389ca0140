/* trace_json_index.c: a trace's spans, issues and marks, rank by rank in their order: a counting
 * sort, so that each rank is written from its own alone. */
#include "viz/trace/trace_json_impl.h"

#include <stdlib.h>

typedef uint32_t (*rank_fn)(const dbo_trace *trace, uint64_t i);

static uint32_t rank_of_span(const dbo_trace *trace, uint64_t i)
{
    return dbo_op_id_rank(dbo_trace_span(trace, i)->id);
}

static uint32_t rank_of_issue(const dbo_trace *trace, uint64_t i)
{
    return dbo_op_id_rank(dbo_trace_issue(trace, i)->id);
}

static uint32_t rank_of_mark(const dbo_trace *trace, uint64_t i)
{
    return dbo_trace_mark(trace, i)->rank % DBO_MAX_RANKS;
}

/* list->from[r] becomes where rank r begins, by counting; then each finds its place. */
static bool sort(dbo_tj_list *list, const dbo_trace *trace, uint64_t count, rank_fn rank_of)
{
    list->items = malloc((count + 1) * sizeof *list->items);
    list->from = calloc(DBO_MAX_RANKS + 1, sizeof *list->from);
    if (!list->items || !list->from)
        return false;
    for (uint64_t i = 0; i < count; i++)
        list->from[rank_of(trace, i) + 1]++;
    for (uint32_t r = 0; r < DBO_MAX_RANKS; r++)
        list->from[r + 1] += list->from[r];
    for (uint64_t i = 0; i < count; i++)
        list->items[list->from[rank_of(trace, i)]++] = i;
    for (uint32_t r = DBO_MAX_RANKS; r > 0; r--) /* each has moved to where the next begins */
        list->from[r] = list->from[r - 1];
    list->from[0] = 0;
    return true;
}

bool dbo_tj_index_init(dbo_tj_index *index, const dbo_trace *trace)
{
    *index = (dbo_tj_index){0};
    return sort(&index->spans, trace, trace->num_spans, rank_of_span) &&
           sort(&index->issues, trace, trace->num_issues, rank_of_issue) &&
           sort(&index->marks, trace, trace->num_marks, rank_of_mark);
}

void dbo_tj_index_fini(dbo_tj_index *index)
{
    dbo_tj_list *lists[] = {&index->spans, &index->issues, &index->marks};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        free(lists[i]->items);
        free(lists[i]->from);
    }
    *index = (dbo_tj_index){0};
}
