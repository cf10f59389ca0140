/* layers.h: a range of layers, as `--layers A:B` gives it, and when these layers run in a trace.
 *
 * Layers A to B, both included; "A" alone is one layer; ids start at 0. The experiment runs as it
 * is: the range says what is shown (`--set layers=N` runs fewer).
 *
 *     dbo_layers layers;
 *     DBO_TRY(dbo_layers_parse("4:5", &layers, err));
 *     if (dbo_layers_window(&layers, &trace, rank, step, &start_ns, &end_ns))
 *         draw(start_ns, end_ns);
 */
#ifndef DBO_LAYERS_H
#define DBO_LAYERS_H

#include "core/base/status.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dbo_layers {
    bool given; /* false: the caller's choice */
    uint32_t first, last;
} dbo_layers;

/* DBO_INVALID with a sentence; *out is set on success. */
dbo_status dbo_layers_parse(const char *text, dbo_layers *out, dbo_error *err);

/* DBO_INVALID if the range reaches beyond the layers that run. */
dbo_status dbo_layers_check(const dbo_layers *layers, uint32_t num_layers, dbo_error *err);

/* From the first op of ubatch 0 in the first layer to the first one in the layer behind the last,
 * or to the end of the last: as a layer is measured. False: the rank runs none of them. */
bool dbo_layers_window(const dbo_layers *layers, const dbo_trace *trace, uint32_t rank,
                       uint32_t step, int64_t *start_ns, int64_t *end_ns);

#endif
