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

#include "core/decide/batch.h"
#include "core/decide/vote.h"
#include "core/rank/rank.h"
#include "core/step/deployment.h"
#include "core/step/fault_batch.h"
#include "core/step/plan.h"
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
    dbo_a2a_caps caps;
    dbo_vote_rules rules;
    uint64_t num_votes;
    dbo_event step_done;
    bool has_event;
    int32_t *matrix;    /* (DBO_VOTE_MAX_ROWS, group size) */
    int32_t *across_dp; /* (group size) padded counts, as voted */
    uint32_t group_size;
    dbo_fault_batch lens;    /* for faults, as is: */
    uint64_t profiled_bytes; /* what the first split step has used; 0: there was none */
    dbo_plan_hook hook;      /* prepare NULL: none; set it between steps */
};

typedef struct dbo_step_result {
    dbo_vote_result decision;
    dbo_graph_mode ran; /* what was really used */
    dbo_cut cut;
    int32_t num_tokens;       /* real ones of this rank */
    int64_t begin_ns, end_ns; /* host time */
    dbo_memory_use memory;    /* of this step; of nominal blocks if durations are given */
} dbo_step_result;

dbo_status dbo_runner_init(dbo_runner *runner, dbo_rank *rank, const dbo_deployment *deployment,
                           dbo_error *err);
void dbo_runner_fini(dbo_runner *runner); /* of a zeroed one is fine */

dbo_status dbo_runner_step(dbo_runner *runner, uint32_t step, const dbo_request *requests,
                           int32_t num_reqs, dbo_step_result *result, dbo_error *err);
void dbo_step_result_fini(dbo_step_result *result);

#endif
