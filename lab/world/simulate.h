/* simulate.h: runs an experiment's steps on a back end, with DBO or without, and measures the last.
 *
 * Ranks with equal batches are folded into one simulated rank. Steps before the measured one
 * capture graphs and warm up. Another back end than the simulator runs every rank, and refuses what
 * only virtual time can have. outcome.h has both runs, side by side.
 *
 *     dbo_simulated run;
 *     dbo_status status = dbo_simulate_one(&experiment, &options, true, &run, &shown, err);
 *     ... run.metrics, dbo_simulated_result(&run, shown) ...
 *     dbo_simulated_fini(&run);
 */
#ifndef DBO_SIMULATE_H
#define DBO_SIMULATE_H

#include "core/base/log.h"
#include "core/rank/backend.h"
#include "core/step/runner.h"
#include "core/trace/metrics.h"
#include "core/trace/split_cost.h"
#include "core/trace/trace.h"
#include "lab/experiment/experiment.h"
#include "lab/world/arrival.h"

typedef struct dbo_simulate_options {
    const dbo_backend *backend;   /* NULL: the simulator */
    bool unfolded;                /* simulate every rank by itself */
    bool (*cancelled)(void *arg); /* or NULL */
    void *cancelled_arg;
    const dbo_log *log; /* of the run with DBO; NULL: silent */
    /* ---- of the run with DBO, for whoever checks it ---- */
    bool io; /* ops and transfers say what they touch */
    /* Sees the seam of each simulated rank before it is used, and may wrap it; or NULL. */
    dbo_status (*attach)(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err);
    void *attach_self;
    /* As it could have been: */
    uint32_t late_rank; /* launches its measured step so much later */
    int64_t late_ns;    /* 0: nobody does */
    dbo_arrival arrival;
} dbo_simulate_options;

#define DBO_MAX_SHOWN_GRAPHS 8u

/* A graph that a run captured. */
typedef struct dbo_captured_graph {
    int32_t num_tokens;
    uint32_t num_ubatches; /* 1: of the unsplit form */
    uint32_t num_nodes;
    uint64_t grown_bytes; /* what its capture added to the graphs' pool */
} dbo_captured_graph;

/* One run of all ranks; what happened. */
typedef struct dbo_simulated {
    dbo_trace trace;
    uint32_t measured; /* number of the measured step */
    uint32_t num_classes;
    uint32_t *class_of;       /* (dp size) */
    uint32_t *first_rank;     /* (num_classes) the rank that stands for its class in the trace */
    dbo_step_result *results; /* (num_classes), of the measured step */
    dbo_cost_sums sums;       /* of the shown rank */
    dbo_metrics metrics;      /* of the shown rank */
    dbo_a2a_caps caps;
    uint32_t comm_sms;      /* kept for transfers while ubatches run */
    dbo_ring_rules turns;   /* how ubatches pass them */
    uint64_t fault_reached; /* how often the experiment's fault made a difference */
    uint32_t vote_rows;
    int32_t *vote;       /* (vote_rows, dp size) the last vote */
    int32_t *across_dp;  /* (dp size) what each rank runs */
    uint32_t num_graphs; /* of the shown rank */
    dbo_captured_graph graphs[DBO_MAX_SHOWN_GRAPHS];
} dbo_simulated;

static inline const dbo_step_result *dbo_simulated_result(const dbo_simulated *run, uint32_t rank)
{
    return &run->results[run->class_of[rank]];
}

/* A run with DBO or without; *shown: the rank with the most tokens. On failure there is the trace
 * up to then. The caller's to dbo_simulated_fini either way. */
dbo_status dbo_simulate_one(const dbo_experiment *experiment, const dbo_simulate_options *options,
                            bool with_dbo, dbo_simulated *out, uint32_t *shown, dbo_error *err);
void dbo_simulated_fini(dbo_simulated *simulated);

/* The programs that a rank of a run with DBO ran, built anew. The caller's to dbo_plan_fini. */
dbo_status dbo_simulated_plan(const dbo_experiment *experiment, const dbo_simulated *run,
                              uint32_t rank, dbo_plan *out, dbo_error *err);

#endif
