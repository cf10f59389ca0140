/* metrics.h: what a trace means: times of one rank over one step, and bounds on them.
 *
 *     compute           union of the RUN spans of compute-class ops
 *     comm              union of the times in which bytes of a dispatch or combine move: RUN of a
 *                       rendezvous transfer, FLIGHT of a one-sided one, each without the WAIT spans
 *                       of the same transfer (a WAIT says that none of its bytes can move)
 *     waiting           union of those WAIT spans; never part of comm
 *     exposed x         x while no compute runs
 *     hidden fraction   (comm while compute runs) / comm; absent when nothing moved
 *     host              host time of the step in which the rank's host is not parked
 *     layer             start of A0 of ubatch 0 in layer L+1 minus the same in layer L: the median
 *                       (lower middle) over layers L >= 2 that have a transfer, over all L >= 2 if
 *                       none has; in layers 0 and 1 the pipeline still fills
 *     step parts        the step, cut up: each moment is of the first of these that goes on then:
 *                       compute, comm (so exposed), send and receive kernels, collectives, copies,
 *                       waiting, nothing; so they sum up to the step
 *     sum bound         the larger of comm and of what kernels run (compute, sends and receives,
 *                       collectives, copies): sums of durations, in which ops that ran at the same
 *                       time count once, so that it is a bound also for a class on two streams
 *     critical path     longest path with measured durations (critical_path.h), of the dependencies
 *                       of the schedule that ran
 *     bound             the larger of the two;  efficiency = bound / step. Of this schedule: one
 *                       with other dependencies, cuts or shares of SMs may be faster
 *
 * The arithmetic is in integer ns; only the results are floating point. A quantity that the trace
 * does not tell is absent, never 0.
 *
 *     dbo_metrics metrics;
 *     DBO_TRY(dbo_metrics_compute(&metrics, &trace, 0, step, num_tokens, err));
 *     if (metrics.layer_us.present)
 *         printf("%.1f us\n", metrics.layer_us.value);
 */
#ifndef DBO_METRICS_H
#define DBO_METRICS_H

#include "core/seam/seam.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_quantity {
    double value;
    bool present;
} dbo_quantity;

typedef enum dbo_quantity_unit {
    DBO_UNIT_US,
    DBO_UNIT_SHARE, /* 0.25 is 25 % */
    DBO_UNIT_PER_S,
    DBO_UNIT_TIMES /* how often another of its kind */
} dbo_quantity_unit;

/* X(name, unit, what a person calls it): names are the keys of a result, units are DBO_UNIT_*. */
#define DBO_METRIC_MAP(X)                            \
    X(step_us, US, "step")                           \
    X(layer_us, US, "layer, steady state")           \
    X(compute_us, US, "compute")                     \
    X(comm_us, US, "communication")                  \
    X(exposed_comm_us, US, "exposed communication")  \
    X(waiting_us, US, "waiting for peers")           \
    X(exposed_waiting_us, US, "exposed waiting")     \
    X(hidden_fraction, SHARE, "hidden fraction")     \
    X(host_us, US, "host, busy")                     \
    X(sum_bound_us, US, "bound: busiest resource")   \
    X(critical_path_us, US, "bound: critical path")  \
    X(bound_us, US, "bound, the larger")             \
    X(efficiency, SHARE, "efficiency: bound / step") \
    X(tokens_per_s_per_gpu, PER_S, "tokens/s per GPU")

/* X(name, what): parts of the step, in us. */
#define DBO_STEP_PART_MAP(X)                   \
    X(compute, "compute")                      \
    X(communication, "communication, exposed") \
    X(kernels, "sends and receives")           \
    X(collectives, "collectives")              \
    X(copies, "copies")                        \
    X(waiting, "waiting for peers, exposed")   \
    X(idle, "nothing runs")

typedef struct dbo_step_parts {
#define DBO_STEP_PART_FIELD(name, what) dbo_quantity name;
    DBO_STEP_PART_MAP(DBO_STEP_PART_FIELD)
#undef DBO_STEP_PART_FIELD
} dbo_step_parts;

typedef struct dbo_metrics {
#define DBO_METRIC_FIELD(name, unit, what) dbo_quantity name;
    DBO_METRIC_MAP(DBO_METRIC_FIELD)
#undef DBO_METRIC_FIELD
    dbo_step_parts parts; /* absent with the step */
    /* The layer whose length is `layer_us`, and when it runs; for drawing. */
    bool has_steady_layer;
    uint32_t steady_layer;
    int64_t steady_start_ns, steady_end_ns;
} dbo_metrics;

/* `tokens`: real tokens of this rank in this step; 0: not known. A step of which nothing was traced
 * gives absent quantities. O(spans of the trace + n log n) for n spans of the rank and step. */
dbo_status dbo_metrics_compute(dbo_metrics *out, const dbo_trace *trace, uint32_t rank,
                               uint32_t step, uint64_t tokens, dbo_error *err);

/* off.step / on.step. */
dbo_quantity dbo_metrics_speedup(const dbo_metrics *off, const dbo_metrics *on);

DBO_PUBLIC_END

#endif
