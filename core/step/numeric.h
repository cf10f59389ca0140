/* numeric.h: a rank whose steps compute real rows.
 *
 * Costs alone say when things happen; numbers say whether what happened was right. A numeric rank
 * runs the same runner, programs, allocator and transfers as any, over a small model with weights
 * (core/ref): each step it gives the programs' ops their references, copies tokens and metadata
 * into buffers of the rank that never move (so graphs replay from them), and lets the step run.
 *
 *     deployment.numbers = &limits;                       // tensors as large as numbers need
 *     DBO_TRY(dbo_runner_init(&runner, &rank, &deployment, err));
 *     DBO_TRY(dbo_numeric_init(&numeric, &runner, model, seed, err));
 *     DBO_TRY(dbo_runner_step(&runner, step, requests, n, &result, err));
 *     const float *row = dbo_numeric_row(&numeric, token);       // (H) state, (V) logits
 *     dbo_numeric_fini(&numeric);                                // before the runner's fini
 *
 * Tokens are a function of seed, request and position; what the KV cache holds of tokens that were
 * "computed before" is drawn from the seed, so any request can start anywhere. Needs a back end
 * with host-visible memory (dbo_sim_options.numeric), TP 1, EP = all ranks, a built-in schedule,
 * and requests that name their blocks. One rank's; calls from the context that holds its turn.
 */
#ifndef DBO_NUMERIC_H
#define DBO_NUMERIC_H

#include "core/ref/ref_ops.h"
#include "core/step/runner.h"

typedef struct dbo_numeric {
    dbo_runner *runner;
    dbo_ref_context context;
    uint64_t seed;
    bool has_cache;     /* the KV cache has been filled */
    dbo_plan_hook then; /* called after this one's own work, with programs that compute; or none */
} dbo_numeric;

/* Takes the runner's hook. Borrows runner and model. */
dbo_status dbo_numeric_init(dbo_numeric *numeric, dbo_runner *runner, const dbo_ref_model *model,
                            uint64_t seed, dbo_error *err);
void dbo_numeric_fini(dbo_numeric *numeric); /* of a zeroed one is fine */

/* What the last step made of its token number `token`, in the order of requests: the final hidden
 * state (H), then the logits (V). NULL before the first step, or past max_tokens. */
const float *dbo_numeric_row(const dbo_numeric *numeric, uint32_t token);
/* Its residual stream (H) as it entered layer `layer`; num_layers: as the last one left it. */
const float *dbo_numeric_note(const dbo_numeric *numeric, uint32_t layer, uint32_t token);

/* The token of a request at a position: below `vocab`. */
uint32_t dbo_numeric_token(uint64_t seed, uint64_t request, uint32_t position, uint32_t vocab);

#endif
