/* numeric_world.h: small models, steps of requests and durations for tests that compute.
 *
 *     scene s;
 *     scene_init(&s, DBO_BACKEND_HT, 2);                      // 2 ranks, a small model
 *     scene_add(&s, 0, 0, (scene_request){.id = 1, .scheduled = 9});    // step 0, rank 0
 *     scene_must_agree(&s);                                   // DBO on == DBO off
 *     scene_fini(&s);
 */
#ifndef DBO_TESTS_NUMERIC_WORLD_H
#define DBO_TESTS_NUMERIC_WORLD_H

#include "core/base/prng.h"
#include "lab/world/numeric_run.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SCENE_RANKS    4u
#define SCENE_STEPS    6u
#define SCENE_REQUESTS 16u
#define SCENE_BLOCKS   8u /* of a request */

typedef struct scene_request {
    uint64_t id;
    int32_t scheduled, computed;
    const int32_t *blocks; /* NULL: its own, by its id on the rank */
    int32_t num_blocks;
} scene_request;

typedef struct scene {
    dbo_config config;
    dbo_model_spec model;
    dbo_numeric_job job;
    dbo_request_list lists[SCENE_STEPS * SCENE_RANKS];
    dbo_request requests[SCENE_STEPS * SCENE_RANKS][SCENE_REQUESTS];
    int32_t blocks[64][SCENE_BLOCKS]; /* of request id */
    const dbo_request_list *pointers[SCENE_STEPS * SCENE_RANKS];
    uint64_t durations; /* seed of the ops' durations */
} scene;

/* Durations at random, of every op and transfer, drawn anew for each step and rank. */
static inline dbo_status scene_durations(void *self, const dbo_step_view *step, dbo_plan *plan,
                                         dbo_error *err)
{
    const scene *s = self;
    dbo_prng prng;
    (void)err;
    dbo_prng_init(&prng, s->durations, step->step);
    dbo_program *programs[] = {&plan->embed, &plan->head, &plan->layers[0], &plan->layers[1]};
    for (uint32_t p = 0; p < 4; p++) {
        for (uint32_t i = 0; i < programs[p]->num_ops; i++)
            programs[p]->ops[i].cost.fixed_ns = prng_range(&prng, 1, 1000);
        for (uint32_t i = 0; i < programs[p]->num_posts; i++)
            programs[p]->posts[i].cost.fixed_ns = prng_range(&prng, 1, 2000);
    }
    return DBO_OK;
}

static inline void scene_init(scene *s, dbo_all2all_backend backend, uint32_t ranks)
{
    memset(s, 0, sizeof *s);
    dbo_config_init(&s->config);
    s->config.enable_dbo = true;
    s->config.enable_expert_parallel = true;
    s->config.data_parallel_size = ranks;
    s->config.all2all_backend = backend;
    s->config.dbo_decode_token_threshold = s->config.dbo_prefill_token_threshold = 4;
    s->config.cudagraph_mode = DBO_GRAPHS_NONE;
    s->config.block_size = 4;
    dbo_model_spec_init(&s->model);
    strcpy(s->model.name, "small");
    s->model.layers = 3;
    s->model.hidden = 32;
    s->model.heads = 4;
    s->model.vocab = 40;
    s->model.attention = DBO_ATTENTION_GQA;
    s->model.kv_heads = 2;
    s->model.head_dim = 8;
    s->model.num_experts = ranks == 3 ? 9 : 8;
    s->model.topk = 3;
    s->model.num_shared = 1;
    s->model.moe_inter = 12;
    s->model.dense_inter = 24;
    s->model.first_k_dense = 1;
    s->model.weight_dtype = s->model.kv_dtype = s->model.activation_dtype = DBO_FP32;
    s->model.combine_dtype = DBO_FP32;
    s->durations = 7;
    for (uint32_t id = 0; id < 64; id++)
        for (uint32_t b = 0; b < SCENE_BLOCKS; b++)
            s->blocks[id][b] = (int32_t)(id % 16 * SCENE_BLOCKS + b);
    for (uint32_t i = 0; i < SCENE_STEPS * SCENE_RANKS; i++) {
        s->lists[i].requests = s->requests[i];
        s->pointers[i] = &s->lists[i];
    }
    s->job = (dbo_numeric_job){.config = &s->config,
                               .model = &s->model,
                               .num_layers = s->model.layers,
                               .num_steps = 0,
                               .requests = s->pointers,
                               .seed = 11,
                               .hook = {.prepare = scene_durations, .self = s}};
}

static inline void scene_add(scene *s, uint32_t step, uint32_t rank, scene_request request)
{
    dbo_request_list *list = &s->lists[(size_t)step * s->config.data_parallel_size + rank];
    assert_true(step < SCENE_STEPS && rank < SCENE_RANKS && list->count < SCENE_REQUESTS);
    list->requests[list->count++] =
        (dbo_request){.id = request.id + UINT64_C(100) * rank,
                      .num_scheduled = request.scheduled,
                      .num_computed = request.computed,
                      .blocks = request.blocks ? request.blocks : s->blocks[request.id],
                      .num_blocks = request.blocks ? request.num_blocks : (int32_t)SCENE_BLOCKS};
    if (step + 1 > s->job.num_steps)
        s->job.num_steps = step + 1;
}

static inline void scene_resolve(scene *s)
{
    dbo_error err = {0};
    if (dbo_config_resolve(&s->config, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static inline dbo_numeric_report scene_compare(scene *s)
{
    dbo_error err = {0};
    dbo_numeric_report report;
    scene_resolve(s);
    if (dbo_numeric_compare(&s->job, &report, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return report;
}

/* At least `split` steps of a rank ran as ubatches, and nothing differs. */
static inline void scene_must_agree(scene *s, uint32_t split)
{
    dbo_numeric_report report = scene_compare(s);
    if (report.differs)
        fail_msg("%s", report.sentence);
    assert_true(report.num_tokens > 0);
    if (report.num_split < split)
        fail_msg("%u steps were split, not %u", report.num_split, split);
}

#endif
