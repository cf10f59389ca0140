/* attn_metadata.c: the exact split and the tolerant one.
 *
 * Exact: indices that the source would reject are rejected; array ranges that stick out are cut, as
 * slices of its arrays are. The adjustment of the last request is computed from the original start
 * positions, so that a request cut on both sides loses both parts.
 */
#include "core/decide/attn_metadata.h"

#include <stdbool.h>
#include <stddef.h>

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t max32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t clamp32(int32_t value, int32_t low, int32_t high)
{
    return max32(low, min32(value, high));
}

/* --- exact -------------------------------------------------------------------------------- */

/* How the slice cuts its first and last request. */
typedef struct split_cut {
    int32_t skipped_first; /* tokens of the first request that an earlier ubatch has */
    int32_t skipped_last;  /* tokens of the last request that a later ubatch has */
} split_cut;

static dbo_status check_slice(const dbo_attn_metadata *in, const dbo_ubatch_slice *slice,
                              split_cut *cut, dbo_error *err)
{
    const int32_t *starts = in->query_start_loc_cpu;
    if (dbo_slice_is_empty(slice))
        return dbo_fail(err, DBO_REFUSED, NULL,
                        "the slice of requests [%d, %d) and tokens [%d, %d) is empty",
                        slice->req_start, slice->req_stop, slice->tok_start, slice->tok_stop);
    if (slice->req_start < 0 || slice->req_start >= in->num_rows || slice->req_stop < 0 ||
        slice->req_stop > in->num_rows || slice->tok_start < 0)
        return dbo_fail(err, DBO_REFUSED, NULL,
                        "the slice of requests [%d, %d) lies outside of the %d of the batch",
                        slice->req_start, slice->req_stop, in->num_rows);
    int32_t first = starts[slice->req_start], first_end = starts[slice->req_start + 1];
    if (slice->tok_start < first || slice->tok_start >= first_end)
        return dbo_fail(err, DBO_REFUSED, NULL,
                        "the slice starts at token %d, outside of its first request [%d, %d)",
                        slice->tok_start, first, first_end);
    if (slice->req_stop < slice->req_start)
        return dbo_fail(err, DBO_REFUSED, NULL, "the request range [%d, %d) is inverted",
                        slice->req_start, slice->req_stop);
    cut->skipped_first = slice->tok_start - first;
    /* The last token may lie beyond the last request when the batch is padded. */
    cut->skipped_last = max32(0, starts[slice->req_stop] - slice->tok_stop);
    return DBO_OK;
}

static void split_starts(const int32_t *starts, int32_t rows, split_cut cut, int32_t *out)
{
    out[0] = 0;
    for (int32_t r = 1; r <= rows; r++)
        out[r] = starts[r] - starts[0] - cut.skipped_first;
    out[rows] -= cut.skipped_last;
}

static void split_lengths(const int32_t *lengths, int32_t rows, split_cut cut, int32_t *out)
{
    for (int32_t r = 0; r < rows; r++)
        out[r] = lengths[r];
    out[rows - 1] -= cut.skipped_last;
}

static int32_t longest_query(const int32_t *starts, int32_t rows)
{
    int32_t longest = 0;
    for (int32_t r = 0; r < rows; r++) {
        int32_t length = starts[r + 1] - starts[r];
        longest = max32(longest, length < 0 ? -length : length);
    }
    return longest;
}

dbo_status dbo_attn_metadata_split(const dbo_attn_metadata *in, const dbo_ubatch_slice *slice,
                                   const dbo_attn_buffers *buffers, dbo_attn_metadata *out,
                                   dbo_error *err)
{
    split_cut cut = {0};
    DBO_TRY(check_slice(in, slice, &cut, err));
    if (in->seq_lens_cpu_upper_bound == NULL)
        return dbo_fail(err, DBO_REFUSED, NULL,
                        "the metadata has no upper bound of the sequence lengths");
    int32_t first = slice->req_start, rows = slice->req_stop - first;
    if (rows + 1 > buffers->capacity)
        return dbo_fail(err, DBO_LIMIT, NULL, "%d requests do not fit in buffers for %d", rows,
                        buffers->capacity - 1);
    int32_t slot = min32(slice->tok_start, in->num_slots);
    *out = (dbo_attn_metadata){
        .num_rows = rows,
        .num_slots = clamp32(slice->tok_stop - slot, 0, in->num_slots - slot),
        .block_table_columns = in->block_table_columns,
        .query_start_loc = buffers->query_start_loc,
        .query_start_loc_cpu = buffers->query_start_loc_cpu,
        .seq_lens = buffers->seq_lens,
        .seq_lens_cpu = in->seq_lens_cpu != NULL ? buffers->seq_lens_cpu : NULL,
        .seq_lens_cpu_upper_bound = buffers->seq_lens_cpu_upper_bound,
        .block_table = in->block_table + (ptrdiff_t)first * in->block_table_columns,
        .slot_mapping = in->slot_mapping + slot,
        .num_reqs = rows,
        .num_actual_tokens = dbo_slice_num_tokens(slice),
        .max_seq_len = in->max_seq_len,
    };
    if (in->num_computed_tokens_cpu != NULL)
        out->num_computed_tokens_cpu = in->num_computed_tokens_cpu + first;
    split_starts(in->query_start_loc + first, rows, cut, buffers->query_start_loc);
    split_starts(in->query_start_loc_cpu + first, rows, cut, buffers->query_start_loc_cpu);
    split_lengths(in->seq_lens + first, rows, cut, buffers->seq_lens);
    split_lengths(in->seq_lens_cpu_upper_bound + first, rows, cut,
                  buffers->seq_lens_cpu_upper_bound);
    if (in->seq_lens_cpu != NULL)
        split_lengths(in->seq_lens_cpu + first, rows, cut, buffers->seq_lens_cpu);
    out->max_query_len = longest_query(buffers->query_start_loc_cpu, rows);
    if (out->max_query_len == 0)
        out->max_query_len = in->max_query_len;
    for (int32_t r = 0; r < rows; r++)
        out->max_seq_len = max32(out->max_seq_len, buffers->seq_lens_cpu_upper_bound[r]);
    return DBO_OK;
}

/* --- tolerant ----------------------------------------------------------------------------- */

void dbo_ubatch_metadata_split(const dbo_ubatch_batch *batch, int32_t ubatch,
                               dbo_ubatch_metadata *out)
{
    const int32_t *starts = batch->query_start_loc;
    int32_t reqs = batch->num_reqs, total = starts[reqs];
    bool is_last = ubatch + 1 == batch->num_ubatches;
    int32_t start = dbo_slice_begin(batch->num_tokens_padded, batch->num_ubatches, ubatch);
    int32_t stop = dbo_slice_begin(batch->num_tokens_padded, batch->num_ubatches, ubatch + 1);

    out->tok_start = start;
    out->tok_stop = stop;
    out->slot_start = min32(start, total);
    out->slot_stop = min32(stop, total);
    out->num_tokens = out->slot_stop - out->slot_start;
    int32_t first = reqs, after = reqs; /* of the real requests with a token here */
    if (out->num_tokens > 0) {
        first = dbo_slice_upper_bound(starts, reqs + 1, out->slot_start) - 1;
        after = dbo_slice_lower_bound(starts, reqs + 1, out->slot_stop);
    }
    out->num_reqs = after - first;
    out->req_start = first;
    out->req_stop = is_last ? batch->num_reqs_padded : after;
    out->max_query_len = 0;
    out->query_start_loc[0] = 0;
    for (int32_t r = first; r < out->req_stop; r++) {
        int32_t row = r - first;
        int32_t end = starts[min32(r + 1, reqs)];
        out->query_start_loc[row + 1] = clamp32(end - start, 0, stop - start);
        out->seq_lens[row] = 0;
        if (r >= after)
            continue;
        int32_t later = end - max32(starts[r], stop); /* its tokens at or after the end */
        out->seq_lens[row] = batch->seq_lens[r] - max32(0, later);
        out->max_query_len =
            max32(out->max_query_len, out->query_start_loc[row + 1] - out->query_start_loc[row]);
    }
}
