/* plan.c: from a step's cut to programs. */
#include "core/step/plan.h"

#include "core/step/step_rules.h"

#include <stdlib.h>
#include <string.h>

/* ---- costs of an ubatch ---- */

/* Adds the requests of an ubatch: those alike, next to each other, are one shape. Its first one may
 * be the rest of the last one that is there (`goes_on`). shapes has room for all. */
static uint32_t add_shapes(const dbo_ubatch_metadata *m, bool goes_on, dbo_request_shape *shapes,
                           uint32_t count)
{
    for (int32_t r = 0; r < m->num_reqs; r++) {
        uint32_t query = (uint32_t)(m->query_start_loc[r + 1] - m->query_start_loc[r]);
        uint32_t seq = (uint32_t)m->seq_lens[r];
        if (r == 0 && goes_on && count > 0) {
            query += shapes[count - 1].query_len;
            if (--shapes[count - 1].count > 0)
                count++;
            shapes[count - 1] = (dbo_request_shape){1, query, seq};
        } else if (count > 0 && shapes[count - 1].query_len == query &&
                   shapes[count - 1].seq_len == seq) {
            shapes[count - 1].count++;
        } else {
            shapes[count++] = (dbo_request_shape){1, query, seq};
        }
    }
    return count;
}

/* Ops that numbers cannot do without: the ends, and experts, of which any routing may need those
 * that are expected to have no row. They take no time. */
static void use_numbers(const dbo_deployment *d, const dbo_layer_shape *shape, uint32_t ubatch,
                        dbo_layer_costs *costs)
{
    static const dbo_op_kind needed[] = {DBO_KIND_EMBED, DBO_KIND_A0,  DBO_KIND_A1,
                                         DBO_KIND_HEAD,  DBO_KIND_MLP, DBO_KIND_REDUCE};
    dbo_ref_sizes(d->numbers, shape, ubatch, &costs->sizes);
    for (uint32_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        dbo_op_kind kind = needed[i];
        if (costs->kernels[kind] > 0 || (kind == DBO_KIND_REDUCE && shape->low_latency))
            continue;
        costs->kernels[kind] = 1;
        costs->op[kind] = (dbo_op_cost){.fixed_ns = 0};
    }
}

typedef struct plan_inputs {
    const dbo_deployment *deployment;
    const dbo_cut *cut;
    bool low_latency;
    dbo_builder_fn built_in;
    dbo_build_options options;
    dbo_layer_costs *costs; /* (num_ubatches); large, so never on a fiber's stack */
} plan_inputs;

/* Layers with experts take the routings in turn. */
static uint32_t routing_of(const dbo_deployment *d, uint32_t layer)
{
    return d->num_routings > 0 && layer >= d->model->first_k_dense
               ? (layer - d->model->first_k_dense) % d->num_routings
               : 0;
}

/* How the model is spread. Experts that are cut over all GPUs work on all ranks' tokens. */
static dbo_layer_shape model_shape(const plan_inputs *in, uint32_t layer)
{
    const dbo_deployment *d = in->deployment;
    const dbo_config *config = d->config;
    dbo_layer_shape shape = {
        .ep_size = d->ep_size,
        .tp_size = config->tensor_parallel_size,
        .low_latency = in->low_latency && !d->no_all_to_all,
        .ll_capacity = d->ll_capacity,
        .no_all_to_all = d->no_all_to_all,
        .expert_tp = d->expert_tp,
        .layer = layer,
        .decode_query_len = dbo_config_decode_query_len(config),
    };
    if (d->num_routings > 0 && d->model) {
        shape.routing = d->routings[routing_of(d, layer)];
        shape.redundant_experts = d->redundant_experts;
    }
    if (d->no_all_to_all && d->expert_tp > 1)
        shape.gathered_ranks = config->data_parallel_size;
    return shape;
}

static dbo_status ubatch_costs(plan_inputs *in, uint32_t i, uint32_t layer, dbo_error *err)
{
    const dbo_deployment *d = in->deployment;
    const dbo_cut *cut = in->cut;
    dbo_layer_costs *out = &in->costs[i];
    const dbo_ubatch_metadata *m = &cut->metadata[i];
    dbo_status status = DBO_OK;
    dbo_layer_shape shape = model_shape(in, layer);
    shape.tokens = (uint32_t)m->num_tokens;
    shape.padded_tokens = (uint32_t)(m->tok_stop - m->tok_start);
    /* One rank that has all experts has its own tokens only. */
    bool alone = d->ep_size < 2 && shape.gathered_ranks < 2;
    shape.group_tokens = alone ? (uint64_t)m->num_tokens : cut->group_tokens[i];
    shape.dispatch = cut->dispatch[i];
    if (d->model) {
        dbo_request_shape *shapes = malloc(((size_t)m->num_reqs + 1) * sizeof *shapes);
        DBO_TRY(dbo_need_memory(shapes, "a step's requests", err));
        shape.num_requests = add_shapes(m, false, shapes, 0);
        shape.requests = shapes;
        status = dbo_step_rules_of(d)->costs(d->rules_self, d, &shape, out, err);
        free(shapes);
    } else {
        *out = *d->fixed;
    }
    if (status == DBO_OK && d->numbers)
        use_numbers(d, &shape, i, out);
    else if (status == DBO_OK && d->io && cut->has_blocks) /* a name for its ranges (kv_access.h) */
        out->sizes.bytes[DBO_BUFFER_KV_CACHE] = 1;
    return status;
}

/* ---- programs ---- */

static dbo_status fill_costs(plan_inputs *in, uint32_t layer, dbo_error *err)
{
    for (uint32_t i = 0; i < in->cut->num_ubatches; i++)
        DBO_TRY(ubatch_costs(in, i, layer, err));
    return DBO_OK;
}

static uint32_t kind_of(const dbo_deployment *d, uint32_t layer)
{
    if (!d->model)
        return 0;
    bool dense = layer < d->model->first_k_dense;
    uint32_t kind = (dense ? 1u : 0u) | (dbo_layer_windowed(d->model, layer) ? 2u : 0u);
    return kind + DBO_PLAN_LAYER_KINDS * routing_of(d, layer);
}

/* Split programs as the rules have them. */
static dbo_status rewrite(const dbo_plan *plan, const plan_inputs *in, dbo_program *program,
                          dbo_error *err)
{
    const dbo_deployment *d = in->deployment;
    if (plan->num_ubatches == 1)
        return DBO_OK;
    return dbo_step_rules_of(d)->program(d->rules_self, program == &plan->embed, program, err);
}

static dbo_status build_layers(dbo_plan *plan, plan_inputs *in, dbo_error *err)
{
    for (uint32_t layer = 0; layer < plan->num_layers; layer++) {
        uint32_t kind = kind_of(in->deployment, layer);
        plan->kind_of_layer[layer] = (uint16_t)kind;
        if (plan->layers[kind].num_ubatches > 0)
            continue;
        DBO_TRY(fill_costs(in, layer, err));
        const dbo_schedule *own = in->deployment->schedule;
        dbo_builder_fn build = kind & 1u ? dbo_build_dense : in->built_in;
        if (own && plan->num_ubatches > 1 && !(kind & 1u))
            DBO_TRY(own->build(own->self, in->costs, &in->options, &plan->layers[kind], err));
        else
            DBO_TRY(build(in->costs, &in->options, &plan->layers[kind], err));
        DBO_TRY(rewrite(plan, in, &plan->layers[kind], err));
    }
    return DBO_OK;
}

/* Costs of the whole batch, as if it were not cut, into *out. */
static dbo_status batch_costs(const plan_inputs *in, dbo_layer_costs *out, dbo_error *err)
{
    const dbo_deployment *d = in->deployment;
    const dbo_cut *cut = in->cut;
    dbo_layer_shape shape = model_shape(in, 0);
    shape.padded_tokens = (uint32_t)cut->num_tokens_padded;
    size_t most = 1;
    for (uint32_t i = 0; i < cut->num_ubatches; i++)
        most += (size_t)cut->metadata[i].num_reqs;
    dbo_request_shape *shapes = malloc(most * sizeof *shapes);
    DBO_TRY(dbo_need_memory(shapes, "a step's requests", err));
    int32_t next = 0; /* request */
    for (uint32_t i = 0; i < cut->num_ubatches; i++) {
        const dbo_ubatch_metadata *m = &cut->metadata[i];
        shape.tokens += (uint32_t)m->num_tokens;
        shape.num_requests = add_shapes(m, m->req_start < next, shapes, shape.num_requests);
        next = m->num_reqs > 0 ? m->req_start + m->num_reqs : next;
    }
    shape.requests = shapes;
    dbo_status status = dbo_step_rules_of(d)->costs(d->rules_self, d, &shape, out, err);
    free(shapes);
    return status;
}

/* HEAD runs on the whole batch, whose requests it counts once; its logits too. Numbers have logits
 * of their own, of every token. */
static dbo_status head_costs(plan_inputs *in, dbo_error *err)
{
    dbo_layer_costs *first = &in->costs[0];
    uint64_t logits = 0;
    if (in->cut->num_ubatches == 1)
        return DBO_OK;
    for (uint32_t i = 0; i < in->cut->num_ubatches; i++)
        logits += in->costs[i].sizes.bytes[DBO_BUFFER_LOGITS];
    dbo_layer_costs *whole = malloc(sizeof *whole);
    DBO_TRY(dbo_need_memory(whole, "a step's plan", err));
    dbo_status status = DBO_OK;
    if (in->deployment->model)
        status = batch_costs(in, whole, err);
    if (status == DBO_OK && in->deployment->model) {
        first->op[DBO_KIND_HEAD] = whole->op[DBO_KIND_HEAD];
        first->kernels[DBO_KIND_HEAD] = whole->kernels[DBO_KIND_HEAD];
        if (!in->deployment->numbers)
            logits = whole->sizes.bytes[DBO_BUFFER_LOGITS];
    }
    first->sizes.bytes[DBO_BUFFER_LOGITS] = logits;
    free(whole);
    return status;
}

/* EMBED runs in each ubatch, HEAD on the whole batch. */
static dbo_status build_ends(dbo_plan *plan, plan_inputs *in, dbo_error *err)
{
    DBO_TRY(fill_costs(in, 0, err));
    DBO_TRY(dbo_build_embed(in->costs, &in->options, &plan->embed, err));
    DBO_TRY(rewrite(plan, in, &plan->embed, err));
    if (in->costs[0].kernels[DBO_KIND_HEAD] == 0)
        return DBO_OK;
    DBO_TRY(head_costs(in, err));
    DBO_TRY(dbo_build_head(in->costs, &in->options, &plan->head, err));
    plan->has_head = true;
    return rewrite(plan, in, &plan->head, err);
}

dbo_status dbo_plan_build(dbo_plan *plan, const dbo_deployment *deployment, const dbo_cut *cut,
                          const dbo_a2a_caps *caps, dbo_error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->num_ubatches = cut->num_ubatches;
    plan->num_layers = deployment->num_layers;
    plan->num_tokens_padded = cut->num_tokens_padded;
    plan_inputs in = {.deployment = deployment, .cut = cut, .low_latency = caps->has_hook};
    /* A schedule of one's own is for split layers. Nobody allocates its tensors: they are there for
     * good, and only if somebody checks (template_io.c). Unsplit layers are the built-in's. */
    bool own = deployment->schedule && cut->num_ubatches > 1;
    in.options = (dbo_build_options){.num_ubatches = cut->num_ubatches,
                                     .host_sync = caps->needs_host_sync,
                                     .rocm = deployment->rocm && !caps->has_hook,
                                     .own_stream = true,
                                     .memory = !own,
                                     .record_stream = deployment->config->record_stream,
                                     .io = deployment->io || deployment->numbers != NULL,
                                     .low_latency = in.low_latency};
    const char *name = deployment->schedule ? "mlp_shared_overlap" : deployment->config->schedule;
    in.built_in = dbo_builder_of_name(name, caps->has_hook);
    if (in.built_in && deployment->no_all_to_all)
        in.built_in = dbo_build_local;
    if (!in.built_in)
        return dbo_fail(err, DBO_INVALID, "mlp_shared_overlap is the built-in schedule.",
                        "there is no schedule '%s' for this all-to-all", name);
    plan->num_kinds =
        DBO_PLAN_LAYER_KINDS * (deployment->num_routings ? deployment->num_routings : 1);
    plan->layers = calloc(plan->num_kinds, sizeof *plan->layers);
    plan->kind_of_layer = calloc((size_t)plan->num_layers + 1, sizeof *plan->kind_of_layer);
    in.costs = calloc(cut->num_ubatches, sizeof *in.costs);
    bool has_memory = plan->layers && plan->kind_of_layer && in.costs;
    dbo_status status =
        has_memory ? build_layers(plan, &in, err) : dbo_fail_memory(err, "a step's plan");
    if (status == DBO_OK)
        status = build_ends(plan, &in, err);
    free(in.costs);
    if (status != DBO_OK)
        dbo_plan_fini(plan);
    return status;
}

void dbo_plan_fini(dbo_plan *plan)
{
    dbo_program_fini(&plan->embed);
    dbo_program_fini(&plan->head);
    for (uint32_t k = 0; plan->layers && k < plan->num_kinds; k++)
        dbo_program_fini(&plan->layers[k]);
    free(plan->layers);
    free(plan->kind_of_layer);
    memset(plan, 0, sizeof *plan);
}
