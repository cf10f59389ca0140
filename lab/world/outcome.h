/* outcome.h: an experiment run without DBO and with it, and what both come to.
 *
 * What does not fit into the GPUs is refused (footprint.h). The outcome owns its traces.
 *
 *     dbo_outcome outcome;
 *     DBO_TRY(dbo_simulate(&experiment, &options, &outcome, err));
 *     dbo_result_json(&outcome.result, &writer);
 *     dbo_outcome_fini(&outcome);
 */
#ifndef DBO_OUTCOME_H
#define DBO_OUTCOME_H

#include "lab/world/result.h"
#include "lab/world/simulate.h"

typedef struct dbo_outcome {
    dbo_simulated off, on;
    uint32_t rank; /* shown: of those with the most tokens the first; with jitter the least late */
    bool split;
    dbo_split_cost split_cost;
    dbo_notation notation;
    bool has_notation;
    dbo_footprint footprint;                  /* of the fullest rank; with a model */
    dbo_ubatch_slice *slices, *slices_padded; /* (dp size, num_ubatches) */
    dbo_result result;                        /* a view of all this */
} dbo_outcome;

dbo_status dbo_simulate(const dbo_experiment *experiment, const dbo_simulate_options *options,
                        dbo_outcome *outcome, dbo_error *err);
void dbo_outcome_fini(dbo_outcome *outcome); /* of a zeroed one is fine */

#endif
