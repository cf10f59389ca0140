/* times.h: when a rank computes, when bytes of its transfers move, when they wait.
 *
 *     compute   RUN spans of compute-class ops
 *     comm      bytes of a dispatch or combine move: RUN of a rendezvous transfer, FLIGHT of a
 *               one-sided one, each without the WAIT spans of the same transfer
 *     waiting   WAIT spans: a transfer has begun, but none of its bytes can move
 *     kernels   SEND and RECV spans: kernels of a one-sided transfer
 *     collectives, copies   RUN spans of these classes
 *
 * The one place that says what counts as what; metrics and timelines both stand on it.
 *
 *     dbo_times times;
 *     DBO_TRY(dbo_times_init(&times, spans, num_spans, err));
 *     int64_t hidden_ns = dbo_intervals_common_ns(&times.comm, &times.compute);
 *     dbo_times_fini(&times);
 */
#ifndef DBO_TIMES_H
#define DBO_TIMES_H

#include "core/base/interval.h"
#include "core/base/status.h"
#include "core/seam/seam.h"

#include <stddef.h>

typedef struct dbo_times {
    dbo_intervals compute, comm, waiting, kernels, collectives, copies; /* normalised */
} dbo_times;

/* `spans` of one rank, any order, all of a known kind. O(n log n). On failure nothing is left to
 * free. */
dbo_status dbo_times_init(dbo_times *out, const dbo_span *spans, size_t num_spans, dbo_error *err);
void dbo_times_fini(dbo_times *times); /* fini of a zeroed one is fine */

#endif
