/* cost_probe.h: counts what one rank is charged and launches: the raw sums of the cost of
 * splitting.
 *
 * Stands between the engine and a seam's host, device and all-to-all tables; forwards everything.
 * Sums are of ops alone on the GPU, as the cost model has them, not of what sharing made of them.
 */
#ifndef DBO_APP_COST_PROBE_H
#define DBO_APP_COST_PROBE_H

#include "core/seam/seam.h"
#include "core/trace/metrics.h"
#include "sim/hardware.h"

typedef struct dbo_cost_probe {
    dbo_seam below;
    const dbo_hardware *hardware;
    uint32_t ep_size, gpus_per_node;
    uint32_t compute_sms, comm_sms;
    dbo_cost_sums sums; /* since the last reset; op times also when captured */
} dbo_cost_probe;

/* Puts the probe around *seam. It must live as long as the seam is used. */
void dbo_cost_probe_wrap(dbo_cost_probe *probe, dbo_seam *seam, const dbo_hardware *hardware,
                         uint32_t ep_size, uint32_t gpus_per_node);
/* Starts over. `keep_ops`: a graph's launches are those of its capture. */
void dbo_cost_probe_reset(dbo_cost_probe *probe, bool keep_ops);

#endif
