/* critical_path.h: how short a step could have been with the durations that were measured.
 *
 * The longest path through the ops of one rank and step, where an op follows
 * - the op before it on its stream (streams are FIFO);
 * - for a receive: the flight of its transfer, which begins with the transfer's send;
 * - the ops of the same ubatch whose results it uses (A1 after A0, MLP after DISPATCH, the next
 *   layer after COMBINE, COPY and SHARED, ...): a table by kind. SYNTHETIC and CUSTOM ops have no
 *   known inputs and follow their stream only.
 * Host time and waiting for peers have no length. An edge that the trace contradicts (the later op
 * began before the earlier ended) is no dependency and is dropped, so the path never exceeds the
 * time from the first span to the last, and never falls short of the busiest stream.
 *
 *     int64_t path_ns;
 *     DBO_TRY(dbo_critical_path(spans, num_spans, &path_ns, err));   // at most the step's length
 */
#ifndef DBO_CRITICAL_PATH_H
#define DBO_CRITICAL_PATH_H

#include "core/base/status.h"
#include "core/seam/seam.h"

#include <stddef.h>
#include <stdint.h>

/* `spans` of one rank and step in the trace's order, which decides between ops of no length. */
dbo_status dbo_critical_path(const dbo_span *spans, size_t num_spans, int64_t *out_ns,
                             dbo_error *err);

#endif
