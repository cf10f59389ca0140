/* step.h: a step on one rank: what it begins with, what it is about, what has come of it.
 *
 *     dbo_step_result result;
 *     DBO_TRY(dbo_runner_step(&runner, 0, requests, num_reqs, &result, err));
 *     if (result.cut.num_ubatches > 1)
 *         ... it was split; result.memory.peak_used_bytes ...
 *     dbo_step_result_fini(&result);
 */
#ifndef DBO_STEP_H
#define DBO_STEP_H

#include "core/decide/vote.h"
#include "core/rank/rank.h"
#include "core/rank/rank_memory.h"
#include "core/step/cut.h"
#include "core/step/deployment.h"

/* What holds for all steps of a rank: found out once. */
typedef struct dbo_step_setup {
    dbo_a2a_caps caps;
    dbo_vote_rules vote;
    bool keeps_all_sms; /* compute kernels keep all SMs, transfers have none of their own */
} dbo_step_setup;

/* A step that is being decided. */
typedef struct dbo_rank_step {
    const dbo_deployment *deployment;
    dbo_rank *rank;
    const dbo_step_setup *setup;
    const dbo_request *requests; /* (num_reqs) */
    int32_t num_reqs;
    dbo_batch batch;
    uint32_t group_size;
    const int32_t *matrix; /* what all ranks have said, once they have; row 0: their real tokens */
    int32_t *across_dp;    /* (group_size) what each rank runs, padding included, once decided */
} dbo_rank_step;

typedef struct dbo_graph_entry {
    int32_t num_tokens;
    uint32_t num_ubatches;
    dbo_graph graph;
    dbo_rank_outputs outputs;
    uint64_t grown_bytes; /* what its capture added to the pool */
} dbo_graph_entry;

/* Bytes of device memory of a rank. Peaks are since the last dbo_wrapper_reset_peaks; a replay
 * allocates nothing, so then it is the reserved ones that tell. */
typedef struct dbo_memory_use {
    uint64_t peak_used_bytes;     /* in blocks that were handed out */
    uint64_t peak_reserved_bytes; /* taken from the device, cached blocks included */
    uint64_t graph_bytes;         /* of them, the graphs' pool now */
    uint32_t num_graphs;
} dbo_memory_use;

typedef struct dbo_step_result {
    dbo_vote_result decision;
    dbo_graph_mode ran; /* what was really used */
    dbo_cut cut;
    int32_t num_tokens;       /* real ones of this rank */
    int64_t begin_ns, end_ns; /* host time */
    dbo_memory_use memory;    /* of this step; of nominal blocks if durations are given */
} dbo_step_result;

void dbo_step_result_fini(dbo_step_result *result);

#endif
