/* slice.h: cutting a step's tokens into ubatches.
 *
 * Cuts are at multiples of padded / N, of the *padded* count (dbo_slice_begin: the one place that
 * says so); the last slice ends at the real total; the remainder of the division lands in the last
 * slice. Two searches over the prefix sums
 * turn each token range into a request range; a request over a cut is in both slices.
 *
 * Exact also where the result is odd, because a run must know what it would have got: a cut past
 * the real tokens gives the slice before it a token stop beyond them and a request stop of
 * num_reqs + 1, and makes the last slice inverted (stop < start, negative token count). The
 * padded twin differs in the last slice only: its stops become the padded counts. Leading requests
 * of zero tokens are in no slice.
 *
 *     int32_t starts[R + 1];
 *     dbo_ubatch_slice slices[N];
 *     DBO_TRY(dbo_slice_prefix_sums(num_scheduled, R, starts, err));
 *     DBO_TRY(dbo_slice_make(starts, R, padded, N, DBO_SPLIT_EVEN, slices, err));
 *     dbo_slice_pad(slices, N, padded, reqs_padded);
 *
 * No state; any thread. O(R + N log R).
 */
#ifndef DBO_SLICE_H
#define DBO_SLICE_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

/* Half-open ranges of requests and of tokens of the step's batch. */
typedef struct dbo_ubatch_slice {
    int32_t req_start, req_stop;
    int32_t tok_start, tok_stop;
} dbo_ubatch_slice;

/* The first padded token of ubatch i of N >= 1; of i = N: where the last one ends. */
static inline int32_t dbo_slice_begin(int32_t num_tokens_padded, int32_t num_ubatches, int32_t i)
{
    return i < num_ubatches ? i * (num_tokens_padded / num_ubatches) : num_tokens_padded;
}

#define DBO_SPLIT_EVEN (-1) /* cut where dbo_slice_begin says */

/* starts is (num_reqs + 1): starts[r] is the first token of request r, starts[num_reqs] the total.
 * DBO_LIMIT when the total does not fit, DBO_INVALID on a negative count. */
dbo_status dbo_slice_prefix_sums(const int32_t *num_scheduled, int32_t num_reqs, int32_t *starts,
                                 dbo_error *err);

/* slices is (num_ubatches). `split_point` is the distance of the cuts or DBO_SPLIT_EVEN. */
dbo_status dbo_slice_make(const int32_t *starts, int32_t num_reqs, int32_t num_tokens_padded,
                          int32_t num_ubatches, int32_t split_point, dbo_ubatch_slice *slices,
                          dbo_error *err);

/* Turns slices into their padded twins, in place. */
void dbo_slice_pad(dbo_ubatch_slice *slices, int32_t num_ubatches, int32_t num_tokens_padded,
                   int32_t num_reqs_padded);

/* May be negative (inverted). */
int32_t dbo_slice_num_tokens(const dbo_ubatch_slice *slice);

/* No request or no token: start equals stop; an inverted range is not empty by this test. */
bool dbo_slice_is_empty(const dbo_ubatch_slice *slice);

/* Index of the first element of ascending starts (count) that is > token (upper), >= token (lower);
 * count when there is none. */
int32_t dbo_slice_upper_bound(const int32_t *starts, int32_t count, int32_t token);
int32_t dbo_slice_lower_bound(const int32_t *starts, int32_t count, int32_t token);

DBO_PUBLIC_END

#endif
