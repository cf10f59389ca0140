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
#include "core/metrics.h"
#include "core/notation.h"
#include "core/runner.h"
#include "core/trace.h"

#define DBO_MEASURED_STEP 1u /* of the steps of a run */

typedef struct dbo_simulate_options {
    bool unfolded;                /* simulate every rank by itself */
    bool (*cancelled)(void *arg); /* or NULL */
    void *cancelled_arg;
} dbo_simulate_options;

/* One run of all ranks; what happened. */
typedef struct dbo_simulated {
    dbo_trace trace;
    uint32_t num_classes;
    uint32_t *class_of;       /* (dp size) */
    dbo_step_result *results; /* (num_classes), of the measured step */
    dbo_cost_sums sums;       /* of the shown rank */
    dbo_metrics metrics;      /* of the shown rank */
} dbo_simulated;

typedef struct dbo_outcome {
    dbo_simulated off, on;
    uint32_t rank; /* shown: the class with the most tokens */
    bool split;
    dbo_split_cost split_cost;
    dbo_notation notation;
    bool has_notation;
    dbo_ubatch_slice *slices, *slices_padded; /* (dp size, num_ubatches) */
    dbo_result result;                        /* a view of all this */
} dbo_outcome;

dbo_status dbo_simulate(const dbo_experiment *experiment, const dbo_simulate_options *options,
                        dbo_outcome *outcome, dbo_error *err);
void dbo_outcome_fini(dbo_outcome *outcome); /* of a zeroed one is fine */

#endif
