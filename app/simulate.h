/* simulate.h: runs an experiment on the simulator, without and with DBO, and measures both.
 *
 * Ranks with equal batches are folded into one simulated rank. Each run is two steps: the first
 * captures graphs and warms up, the second is measured. The outcome owns its traces.
 *
 *     dbo_outcome outcome;
 *     DBO_TRY(dbo_simulate(&experiment, &options, &outcome, err));
 *     dbo_result_print(&outcome.result, style, &text);
 *     dbo_outcome_fini(&outcome);
 */
#ifndef DBO_APP_SIMULATE_H
#define DBO_APP_SIMULATE_H

#include "app/experiment.h"
#include "app/result.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/notation.h"
#include "core/runner.h"
#include "core/trace.h"

#define DBO_MEASURED_STEP 1u /* of the steps of a run */

typedef struct dbo_simulate_options {
    bool unfolded;                /* simulate every rank by itself */
    bool (*cancelled)(void *arg); /* or NULL */
    void *cancelled_arg;
    const dbo_log *log; /* of the run with DBO; NULL: silent */
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
    uint32_t num_classes;
    uint32_t *class_of;       /* (dp size) */
    uint32_t *first_rank;     /* (num_classes) the rank that stands for its class in the trace */
    dbo_step_result *results; /* (num_classes), of the measured step */
    dbo_cost_sums sums;       /* of the shown rank */
    dbo_metrics metrics;      /* of the shown rank */
    dbo_a2a_caps caps;
    uint32_t vote_rows;
    int32_t *vote;       /* (vote_rows, dp size) the last vote */
    int32_t *across_dp;  /* (dp size) what each rank runs */
    uint32_t num_graphs; /* of the shown rank */
    dbo_captured_graph graphs[DBO_MAX_SHOWN_GRAPHS];
} dbo_simulated;

typedef struct dbo_outcome {
    dbo_simulated off, on;
    uint32_t rank; /* shown: the first of those with the most tokens */
    bool split;
    dbo_split_cost split_cost;
    dbo_notation notation;
    bool has_notation;
    dbo_ubatch_slice *slices, *slices_padded; /* (dp size, num_ubatches) */
    dbo_result result;                        /* a view of all this */
} dbo_outcome;

dbo_status dbo_simulate(const dbo_experiment *experiment, const dbo_simulate_options *options,
                        dbo_outcome *outcome, dbo_error *err);
/* The programs that a rank of the run with DBO ran, built anew. The caller's to dbo_plan_fini. */
dbo_status dbo_outcome_plan(const dbo_outcome *outcome, uint32_t rank, dbo_plan *out,
                            dbo_error *err);
void dbo_outcome_fini(dbo_outcome *outcome); /* of a zeroed one is fine */

#endif
