/* runner.h: one step on one rank: veto, vote, cut, metadata, programs, run.
 *
 *     dbo_runner runner;
 *     DBO_TRY(dbo_runner_init(&runner, &rank, &deployment, err));
 *     DBO_TRY(dbo_runner_step(&runner, 0, requests, num_reqs, &result, err));   // on every rank
 *     dbo_step_result_fini(&result);
 *     dbo_runner_fini(&runner);
 *
 * A step is collective: every rank of the group calls it, an idle one with no requests. It returns
 * when the device has finished. A runner belongs to its rank; the deployment is shared.
 */
#ifndef DBO_RUNNER_H
#define DBO_RUNNER_H

#include "core/step/wrapper.h"

typedef struct dbo_runner dbo_runner;

/* What a step is about. */
typedef struct dbo_step_view {
    dbo_runner *runner;
    uint32_t step;
    const dbo_request *requests; /* (num_reqs) */
    int32_t num_reqs;
    const dbo_cut *cut;
} dbo_step_view;

/* Sees each step's programs before they are issued, and may change them: for whoever computes
 * numbers (numeric.h) or breaks programs on purpose. Called on every rank that runs a forward. */
typedef struct dbo_plan_hook {
    dbo_status (*prepare)(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err);
    void *self;
} dbo_plan_hook;

struct dbo_runner {
    dbo_rank *rank;
    const dbo_deployment *deployment;
    dbo_wrapper wrapper;
    const dbo_step_rules *rules; /* the deployment's, or the engine's own */
    dbo_step_setup setup;
    uint64_t num_votes;
    dbo_event step_done;
    bool has_event;
    int32_t *matrix;    /* (DBO_VOTE_MAX_ROWS, group size) */
    int32_t *across_dp; /* (group size) padded counts, as voted */
    uint32_t group_size;
    dbo_plan_hook hook; /* prepare NULL: none; set it between steps */
};

dbo_status dbo_runner_init(dbo_runner *runner, dbo_rank *rank, const dbo_deployment *deployment,
                           dbo_error *err);
void dbo_runner_fini(dbo_runner *runner); /* of a zeroed one is fine */

dbo_status dbo_runner_step(dbo_runner *runner, uint32_t step, const dbo_request *requests,
                           int32_t num_reqs, dbo_step_result *result, dbo_error *err);
void dbo_step_result_fini(dbo_step_result *result);

#endif
