/* step_rules.c: the engine's own decisions. Ideas are in files of their own (veto, vote, slice);
 * here they get the step's numbers. */
#include "core/step/step_rules.h"

#include "core/decide/veto.h"

#include <stdlib.h>

static void setup(void *self, const dbo_deployment *d, dbo_rank *rank, dbo_step_setup *out)
{
    (void)self;
    const dbo_seam *seam = &rank->seam;
    *out = (dbo_step_setup){0};
    if (seam->a2a)
        seam->a2a->caps(seam->a2a_self, &out->caps);
    bool linear = d->model && d->model->attention == DBO_ATTENTION_LINEAR;
    dbo_vote_rules_from_config(&out->vote, d->config, out->caps.capturable, linear);
    out->keeps_all_sms = d->rocm && d->config->all2all_backend == DBO_BACKEND_HT;
}

/* ---- what this rank brings to the vote ---- */

/* Cache blocks of all requests as one table; NULL blocks count as none. */
static dbo_status ask_veto(const dbo_config *config, const dbo_request *requests, int32_t num_reqs,
                           bool *allow, dbo_error *err)
{
    int32_t columns = 1;
    for (int32_t r = 0; r < num_reqs; r++)
        columns = requests[r].num_blocks > columns ? requests[r].num_blocks : columns;
    size_t reqs = (size_t)num_reqs;
    int32_t *table = calloc(reqs * ((size_t)columns + 2) + 1, sizeof *table);
    DBO_TRY(dbo_need_memory(table, "the block table", err));
    int32_t *computed = table + reqs * (size_t)columns, *scheduled = computed + reqs;
    bool any = false;
    for (int32_t r = 0; r < num_reqs; r++) {
        computed[r] = requests[r].num_computed;
        scheduled[r] = requests[r].num_scheduled;
        for (int32_t c = 0; c < requests[r].num_blocks && requests[r].blocks; c++)
            table[(size_t)r * (size_t)columns + (size_t)c] = requests[r].blocks[c];
        any = any || (requests[r].blocks && requests[r].num_blocks > 0);
    }
    const dbo_kv_group group = {
        .block_size = (int32_t)config->block_size, .columns = columns, .block_table = table};
    const dbo_veto_batch batch = {.use_ubatching = dbo_config_use_ubatching(config),
                                  .reorder_batch_threshold =
                                      (int32_t)config->reorder_batch_threshold,
                                  .num_reqs = num_reqs,
                                  .num_computed = computed,
                                  .num_scheduled = scheduled,
                                  .num_groups = any ? 1 : 0,
                                  .groups = &group};
    dbo_veto_scratch scratch = {0};
    dbo_status status = dbo_veto_allows(&batch, &scratch, allow, err);
    dbo_veto_scratch_fini(&scratch);
    free(table);
    return status;
}

/* The graph mode that this rank's own batch asks for. HT cannot be captured, so with it there are
 * no graphs at all. */
static dbo_graph_mode wanted_mode(const dbo_rank_step *step)
{
    const dbo_batch *batch = &step->batch;
    if (!step->setup->caps.capturable)
        return DBO_GRAPH_NONE;
    if (dbo_vote_bucket(&step->setup->vote, batch->num_tokens) == 0)
        return DBO_GRAPH_NONE;
    switch (step->deployment->config->cudagraph_mode) {
    case DBO_GRAPHS_NONE: break;
    case DBO_GRAPHS_PIECEWISE: return DBO_GRAPH_PIECEWISE;
    case DBO_GRAPHS_FULL: return DBO_GRAPH_FULL;
    case DBO_GRAPHS_FULL_DECODE_ONLY:
        return batch->uniform_decode ? DBO_GRAPH_FULL : DBO_GRAPH_NONE;
    case DBO_GRAPHS_FULL_AND_PIECEWISE:
        return batch->uniform_decode ? DBO_GRAPH_FULL : DBO_GRAPH_PIECEWISE;
    }
    return DBO_GRAPH_NONE;
}

static dbo_status entry(void *self, const dbo_rank_step *step, dbo_vote_entry *out, bool *leaves,
                        dbo_error *err)
{
    (void)self;
    (void)leaves;
    const dbo_batch *batch = &step->batch;
    *out = (dbo_vote_entry){.num_tokens = batch->num_tokens,
                            .num_tokens_padded = batch->num_tokens,
                            .num_reqs = step->num_reqs,
                            .uniform_token_count = batch->uniform_token_count,
                            .max_query_len = batch->max_query_len,
                            .uniform_decode = batch->uniform_decode ? DBO_TRUE : DBO_FALSE,
                            .allow_skip_drafts = true,
                            .graph_mode = wanted_mode(step)};
    if (out->graph_mode != DBO_GRAPH_NONE) {
        int32_t bucket = dbo_vote_bucket(&step->setup->vote, batch->num_tokens);
        out->num_tokens_padded = bucket > 0 ? bucket : batch->num_tokens;
    }
    return ask_veto(step->deployment->config, step->requests, step->num_reqs, &out->allow, err);
}

/* ---- what is decided, and done ---- */

static void decision(void *self, const dbo_rank_step *step, dbo_vote_result *out)
{
    (void)self;
    const dbo_seam *seam = &step->rank->seam;
    dbo_vote_decide(&step->setup->vote, step->matrix, (int32_t)step->group_size,
                    (int32_t)seam->group->rank(seam->group_self), step->across_dp, out);
}

static dbo_status cut(void *self, const dbo_rank_step *step, const dbo_vote_result *decided,
                      dbo_cut *out, dbo_error *err)
{
    (void)self;
    const dbo_config *config = step->deployment->config;
    const dbo_cut_step whole = {
        .requests = step->requests,
        .num_reqs = step->num_reqs,
        .num_reqs_padded = dbo_cut_padded_reqs(config, decided, step->num_reqs),
        .num_tokens_padded = decided->num_tokens_padded,
        .num_ubatches = decided->should_ubatch ? dbo_config_num_ubatches(config) : 1,
        .rank = (uint32_t)step->rank->seam.group->rank(step->rank->seam.group_self),
        .num_ranks = step->group_size,
        .tokens_across = step->matrix,
        .tp_size = config->tensor_parallel_size,
        .gpus_per_domain =
            step->deployment->num_routings > 0 ? step->deployment->gpus_per_domain : 0};
    return dbo_cut_make(out, &whole, err);
}

static dbo_status costs(void *self, const dbo_deployment *d, const dbo_layer_shape *shape,
                        dbo_layer_costs *out, dbo_error *err)
{
    (void)self;
    return dbo_layer_costs_compute(d->model, shape, out, err);
}

static dbo_status program(void *self, bool first, dbo_program *built, dbo_error *err)
{
    (void)self;
    (void)first;
    (void)built;
    (void)err;
    return DBO_OK;
}

static bool takes_inputs(void *self, bool has_graph)
{
    (void)self;
    (void)has_graph;
    return true;
}

/* Found by the tokens that it runs, all of them; rather one of the same form. */
static const dbo_graph_entry *find_graph(void *self, const dbo_graph_entry *graphs, uint32_t count,
                                         int32_t num_tokens, uint32_t num_ubatches)
{
    (void)self;
    const dbo_graph_entry *of_size = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (graphs[i].num_tokens != num_tokens)
            continue;
        of_size = &graphs[i];
        if (of_size->num_ubatches == num_ubatches)
            break;
    }
    return of_size;
}

static dbo_status after_step(void *self, dbo_rank *rank, const dbo_step_result *result,
                             dbo_status status, dbo_error *err)
{
    (void)self;
    (void)rank;
    (void)result;
    (void)err;
    return status;
}

const dbo_step_rules dbo_step_rules_default = {.setup = setup,
                                               .entry = entry,
                                               .decision = decision,
                                               .cut = cut,
                                               .costs = costs,
                                               .program = program,
                                               .takes_inputs = takes_inputs,
                                               .find_graph = find_graph,
                                               .after_step = after_step};
