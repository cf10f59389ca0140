/* veto.c: the written blocks of a group, sorted; then each reader's whole computed blocks. */
#include "core/decide/veto.h"

#include <stdlib.h>

void dbo_veto_scratch_fini(dbo_veto_scratch *scratch)
{
    free(scratch->ids);
    *scratch = (dbo_veto_scratch){0};
}

static bool is_reader(const dbo_veto_batch *batch, int32_t r)
{
    int32_t threshold = batch->reorder_batch_threshold < 1 ? 1 : batch->reorder_batch_threshold;
    return batch->num_scheduled[r] > threshold && batch->num_computed[r] > 0;
}

static int compare_ids(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Columns [*first, *stop) that request r writes, not yet cut to the table. */
static void written_columns(const dbo_veto_batch *batch, int32_t block_size, int32_t r,
                            int64_t *first, int64_t *stop)
{
    int64_t computed = batch->num_computed[r];
    int64_t end = computed + batch->num_scheduled[r];
    *first = computed / block_size;
    *stop = (end + block_size - 1) / block_size;
}

static int64_t cut(int64_t column, int64_t limit)
{
    return column < limit ? column : limit;
}

static dbo_status reserve(dbo_veto_scratch *scratch, size_t count, dbo_error *err)
{
    if (count <= scratch->capacity)
        return DBO_OK;
    size_t capacity = count * 2;
    int32_t *ids = realloc(scratch->ids, capacity * sizeof *ids);
    DBO_TRY(dbo_need_memory(ids, "the blocks that a step writes", err));
    scratch->ids = ids;
    scratch->capacity = capacity;
    return DBO_OK;
}

static dbo_status collect_written(const dbo_veto_batch *batch, const dbo_kv_group *group,
                                  dbo_veto_scratch *scratch, size_t *count, dbo_error *err)
{
    *count = 0;
    for (int32_t r = 0; r < batch->num_reqs; r++) {
        const int32_t *row = group->block_table + (ptrdiff_t)r * group->columns;
        int64_t first, stop, last = group->columns - 1;
        written_columns(batch, group->block_size, r, &first, &stop);
        if (first >= stop)
            continue;
        /* All columns past the table are its last one, so it is enough to take that one once. */
        first = cut(first, last);
        stop = cut(stop - 1, last) + 1;
        DBO_TRY(reserve(scratch, *count + (size_t)(stop - first), err));
        for (int64_t c = first; c < stop; c++)
            scratch->ids[(*count)++] = row[c];
    }
    if (*count > 0)
        qsort(scratch->ids, *count, sizeof *scratch->ids, compare_ids);
    return DBO_OK;
}

static bool reads_written(const dbo_veto_batch *batch, const dbo_kv_group *group,
                          const dbo_veto_scratch *scratch, size_t count)
{
    for (int32_t r = 0; r < batch->num_reqs; r++) {
        if (!is_reader(batch, r))
            continue;
        const int32_t *row = group->block_table + (ptrdiff_t)r * group->columns;
        int64_t whole = cut(batch->num_computed[r] / group->block_size, group->columns);
        for (int64_t c = 0; c < whole; c++)
            if (bsearch(&row[c], scratch->ids, count, sizeof *scratch->ids, compare_ids) != NULL)
                return true;
    }
    return false;
}

dbo_status dbo_veto_allows(const dbo_veto_batch *batch, dbo_veto_scratch *scratch, bool *allow,
                           dbo_error *err)
{
    *allow = true;
    if (!batch->use_ubatching || batch->num_reqs < 2)
        return DBO_OK;
    bool any_reader = false;
    for (int32_t r = 0; r < batch->num_reqs && !any_reader; r++)
        any_reader = is_reader(batch, r);
    for (int32_t g = 0; any_reader && *allow && g < batch->num_groups; g++) {
        const dbo_kv_group *group = &batch->groups[g];
        size_t count;
        if (group->block_size < 1)
            return dbo_fail(err, DBO_INVALID, NULL, "cache group %d has a block size of %d", g,
                            group->block_size);
        if (group->columns < 1)
            continue;
        DBO_TRY(collect_written(batch, group, scratch, &count, err));
        *allow = count == 0 || !reads_written(batch, group, scratch, count);
    }
    return DBO_OK;
}
