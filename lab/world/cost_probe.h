/* cost_probe.h: counts what one rank is charged and launches: the raw sums of the cost of
 * splitting.
 *
 * A tap (core/seam/tap.h) between the engine and a seam. Sums are of ops alone on the GPU, as the
 * cost model has them, not of what sharing made of them. What is captured counts once a replay.
 *
 *     dbo_cost_probe_wrap(&probe, &seam, &hardware, ep_size, gpus_per_domain); // then the rank
 *     dbo_cost_probe_reset(&probe);                                            // before each step
 *     dbo_cost_sums sums = dbo_cost_probe_sums(&probe);
 */
#ifndef DBO_COST_PROBE_H
#define DBO_COST_PROBE_H

#include "core/seam/tap.h"
#include "core/trace/split_cost.h"
#include "sim/hardware.h"

/* What a graph runs each time. */
typedef struct dbo_cost_probe_graph {
    dbo_graph graph;
    dbo_cost_sums sums;
} dbo_cost_probe_graph;

typedef struct dbo_cost_probe {
    dbo_tap tap;
    const dbo_hardware *hardware;
    uint32_t ep_size, gpus_per_domain;
    uint32_t compute_sms, comm_sms;
    bool captures;
    dbo_cost_sums captured; /* of the capture under way */
    struct {
        dbo_cost_probe_graph *items;
        uint32_t count, cap;
    } graphs;
    dbo_cost_sums sums; /* since the last reset, but for charges: of what has run */
} dbo_cost_probe;

/* Puts the probe around *seam. It must live as long as the seam is used. */
void dbo_cost_probe_wrap(dbo_cost_probe *probe, dbo_seam *seam, const dbo_hardware *hardware,
                         uint32_t ep_size, uint32_t gpus_per_domain);
void dbo_cost_probe_fini(dbo_cost_probe *probe); /* of a zeroed one is fine */
/* Starts over; graphs are kept. */
void dbo_cost_probe_reset(dbo_cost_probe *probe);
/* Since the last reset. */
dbo_cost_sums dbo_cost_probe_sums(const dbo_cost_probe *probe);

#endif
