/* slice.c: prefix sums and two binary searches per slice.
 *
 * The searches run off the end of the prefix sums when a token lies beyond the real ones; that is
 * where num_reqs + 1 comes from, and it is kept.
 */
#include "core/decide/slice.h"

#include <stddef.h>

dbo_status dbo_slice_prefix_sums(const int32_t *num_scheduled, int32_t num_reqs, int32_t *starts,
                                 dbo_error *err)
{
    int64_t total = 0;
    starts[0] = 0;
    for (int32_t r = 0; r < num_reqs; r++) {
        if (num_scheduled[r] < 0)
            return dbo_fail(err, DBO_INVALID, NULL, "request %d has %d scheduled tokens", r,
                            num_scheduled[r]);
        total += num_scheduled[r];
        if (total > INT32_MAX)
            return dbo_fail(err, DBO_LIMIT, NULL,
                            "the scheduled tokens of a step exceed 2^31 - 1 at request %d", r);
        starts[r + 1] = (int32_t)total;
    }
    return DBO_OK;
}

int32_t dbo_slice_upper_bound(const int32_t *starts, int32_t count, int32_t token)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (starts[middle] <= token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t dbo_slice_lower_bound(const int32_t *starts, int32_t count, int32_t token)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (starts[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

dbo_status dbo_slice_make(const int32_t *starts, int32_t num_reqs, int32_t num_tokens_padded,
                          int32_t num_ubatches, int32_t split_point, dbo_ubatch_slice *slices,
                          dbo_error *err)
{
    if (num_ubatches < 1)
        return dbo_fail(err, DBO_INVALID, "Use 2 or more to split.",
                        "a batch cannot be cut into %d ubatches", num_ubatches);
    int32_t split = split_point;
    if (split_point == DBO_SPLIT_EVEN)
        split = dbo_slice_begin(num_tokens_padded, num_ubatches, 1);
    if (split < 0)
        return dbo_fail(err, DBO_INVALID, NULL, "a batch cannot be cut every %d tokens", split);
    if ((int64_t)split * (num_ubatches - 1) > INT32_MAX)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "the last of %d ubatches would start beyond token 2^31 - 1", num_ubatches);
    int32_t count = num_reqs + 1;
    for (int32_t i = 0; i < num_ubatches; i++) {
        int32_t start = i * split;
        int32_t stop = i + 1 < num_ubatches ? start + split : starts[num_reqs];
        slices[i] = (dbo_ubatch_slice){
            .req_start = dbo_slice_upper_bound(starts, count, start) - 1,
            .req_stop = dbo_slice_lower_bound(starts, count, stop),
            .tok_start = start,
            .tok_stop = stop,
        };
    }
    return DBO_OK;
}

void dbo_slice_pad(dbo_ubatch_slice *slices, int32_t num_ubatches, int32_t num_tokens_padded,
                   int32_t num_reqs_padded)
{
    slices[num_ubatches - 1].req_stop = num_reqs_padded;
    slices[num_ubatches - 1].tok_stop = num_tokens_padded;
}

int32_t dbo_slice_num_tokens(const dbo_ubatch_slice *slice)
{
    return slice->tok_stop - slice->tok_start;
}

bool dbo_slice_is_empty(const dbo_ubatch_slice *slice)
{
    return slice->req_start == slice->req_stop || slice->tok_start == slice->tok_stop;
}
