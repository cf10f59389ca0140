/* footprint.h: does it fit? What a rank's GPU must hold: weights, KV cache, and what a step takes.
 *
 *     weights    of the layers that run (dbo_layer_weight_bytes), the embedding and the head, which
 *                are two tables of (vocab, hidden) in the activations' type, shared by TP
 *     KV cache   of the batch: whole blocks of every request, shared ones once, in every layer; a
 *                windowed layer keeps its window
 *     step       the most that the allocator took from the device, graphs included
 *
 * Against them stands the hardware's mem_gb. The CUDA context, the communicators' buffers and what
 * a serving engine keeps free are not in the sum: what is refused does not fit, what is not may be
 * tight. With fixed costs there is nothing to weigh. Pure; any thread.
 *
 *     dbo_footprint f;
 *     DBO_TRY(dbo_footprint_of(&experiment, &f, err));
 *     DBO_TRY(dbo_footprint_check(&f, &experiment, err));
 */
#ifndef DBO_FOOTPRINT_H
#define DBO_FOOTPRINT_H

#include "lab/experiment/experiment.h"

typedef struct dbo_footprint {
    uint32_t rank; /* that it is of */
    double weights_bytes, kv_cache_bytes, step_bytes, device_bytes;
    double buffer_bytes; /* of the low-latency all-to-all */
} dbo_footprint;

/* Of the rank whose batch has the largest KV cache; step_bytes 0. A finished experiment with a
 * model. O(distinct requests + their blocks). */
dbo_status dbo_footprint_of(const dbo_experiment *experiment, dbo_footprint *out, dbo_error *err);
/* The same of one rank. */
dbo_status dbo_footprint_of_rank(const dbo_experiment *experiment, uint32_t rank,
                                 dbo_footprint *out, dbo_error *err);

double dbo_footprint_bytes(const dbo_footprint *footprint); /* all together */
bool dbo_footprint_fits(const dbo_footprint *footprint);

/* DBO_REFUSED with the numbers if it does not fit, unless check_memory is false. */
dbo_status dbo_footprint_check(const dbo_footprint *footprint, const dbo_experiment *experiment,
                               dbo_error *err);

#endif
