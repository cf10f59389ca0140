/* seam_steps.c: whole steps of a runner, as `dbo run` has them: vote, cut, programs, ubatches,
 * graphs, over ops of given durations. What each step decides and the order of all issues are the
 * same on every machine; how long they take is not looked at.
 */
#include "tests/gpu/rig.h"

#include <stdlib.h>

enum { STEPS = 5, MAX_RANKS = 4, MAX_REQUESTS = 70, LAYERS = 3 };

typedef struct scene {
    dbo_config config;
    dbo_layer_costs costs;
    dbo_deployment deployment;
    dbo_request_list lists[STEPS * MAX_RANKS];
    dbo_request requests[STEPS * MAX_RANKS][MAX_REQUESTS];
    const dbo_request_list *pointers[STEPS * MAX_RANKS];
    test_report *reports;
    uint32_t split, replayed;
} scene;

/* Uneven ranks; steps 0, 1 and 4 have one size, in step 2 a rank has too few to split. */
static uint32_t tokens_of(uint32_t step, uint32_t rank)
{
    static const uint32_t tokens[STEPS][MAX_RANKS] = {
        {70, 41, 66, 58}, {66, 44, 70, 47}, {5, 2, 64, 3}, {33, 29, 40, 12}, {69, 70, 42, 61}};
    return tokens[step][rank];
}

static void fill_lists(scene *s, uint32_t ranks)
{
    for (uint32_t i = 0; i < STEPS * ranks; i++) {
        uint32_t count = tokens_of(i / ranks, i % ranks);
        for (uint32_t q = 0; q < count; q++)
            s->requests[i][q] = (dbo_request){.id = 100 * i + q, .num_scheduled = 1};
        s->lists[i] = (dbo_request_list){.count = count, .requests = s->requests[i]};
        s->pointers[i] = &s->lists[i];
    }
}

static void fill_costs(scene *s)
{
    int64_t ns[DBO_KIND_COUNT];
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = 5000 + 1000 * (int64_t)k;
    ns[DBO_KIND_NONE] = -1;
    dbo_layer_costs_fixed(ns, 8, &s->costs);
    s->costs.dispatch.tokens = s->costs.combine.tokens = 32;
    s->costs.dispatch.topk = s->costs.combine.topk = 2;
    s->costs.dispatch.num_experts = s->costs.combine.num_experts = 16;
    s->costs.dispatch.bytes_per_token = s->costs.combine.bytes_per_token = 256;
}

static dbo_status init(scene *s, const test_run *run, bool low_latency, dbo_error *err)
{
    dbo_config_init(&s->config);
    s->config.enable_dbo = s->config.enable_expert_parallel = true;
    s->config.data_parallel_size = run->num_ranks;
    s->config.ubatch_single_rank = true;
    s->config.dbo_decode_token_threshold = 4;
    s->config.executor = (dbo_context_kind)run->variant;
    s->config.all2all_backend = low_latency ? DBO_BACKEND_LL : DBO_BACKEND_HT;
    s->config.cudagraph_mode = low_latency ? DBO_GRAPHS_FULL : DBO_GRAPHS_NONE;
    DBO_TRY(dbo_config_resolve(&s->config, err));
    fill_lists(s, run->num_ranks);
    fill_costs(s);
    s->deployment = (dbo_deployment){
        .config = &s->config, .fixed = &s->costs, .num_layers = LAYERS, .ep_size = run->num_ranks};
    s->reports = run->reports;
    return DBO_OK;
}

static dbo_status ended(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    scene *s = self;
    const dbo_step_result *result = &rank->result;
    test_report *report = &s->reports[rank->logical];
    (void)err;
    test_tell(report, "step %u: %d tokens, padded to %d, %s, %s, %u graphs, %llu bytes", step,
              result->num_tokens, result->decision.num_tokens_padded,
              result->decision.should_ubatch ? "split" : "whole",
              result->ran == DBO_GRAPH_FULL ? "a graph" : "eager", result->memory.num_graphs,
              (unsigned long long)result->memory.peak_used_bytes);
    for (uint32_t u = 0; u < result->cut.num_ubatches; u++)
        test_tell(report, "  ubatch %u: tokens %d to %d", u, result->cut.slices[u].tok_start,
                  result->cut.slices[u].tok_stop);
    if (rank->logical == 0) {
        s->split += result->decision.should_ubatch;
        s->replayed += result->ran == DBO_GRAPH_FULL;
    }
    return DBO_OK;
}

static dbo_status run_steps(dbo_world *world, const test_run *run, void *arg, dbo_error *err)
{
    scene *s = arg;
    const dbo_world_batches batches = {
        .num_steps = STEPS, .requests = s->pointers, .ended = ended, .self = s};
    DBO_TRY(dbo_world_steps(world, &batches, err));
    if (world->ranks[0].logical == 0)
        test_say(&run->reports[0].line, "%d steps, %u split, %u from graphs", STEPS, s->split,
                 s->replayed);
    return DBO_OK;
}

static dbo_status run_scene(const test_run *run, bool low_latency, dbo_error *err)
{
    scene *s = calloc(1, sizeof *s);
    if (!s)
        return dbo_fail_memory(err, "the steps");
    dbo_status status = init(s, run, low_latency, err);
    const rig_options options = {.low_latency = low_latency,
                                 .transport = low_latency ? NULL : "nccl",
                                 .contexts = (dbo_context_kind)run->variant,
                                 .deployment = &s->deployment,
                                 .arg = s};
    if (status == DBO_OK)
        status = rig_world(run, &options, run_steps, err);
    if (status == DBO_OK && !run->peer && s->split == 0)
        status = rig_wrong(err, "no step was split");
    free(s);
    return status;
}

dbo_status seam_steps_ll(const test_run *run, dbo_error *err)
{
    return run_scene(run, true, err);
}

dbo_status seam_steps_ht(const test_run *run, dbo_error *err)
{
    return run_scene(run, false, err);
}
