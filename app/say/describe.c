/* describe.c: what an experiment is, in words (describe.h). */
#include "app/say/describe.h"

#include "app/say/fault_text.h"
#include "core/base/clean.h"
#include "viz/text/wrap.h"

#include <inttypes.h>
#include <string.h>

/* The name that a CHOICE or TEXT key of the config has now. */
static const char *config_word(const dbo_config *config, const char *key)
{
    uint32_t count = 0;
    const dbo_field *fields = dbo_config_fields(&count);
    return dbo_field_text(dbo_field_find(fields, count, key), config);
}

static void describe_model(const dbo_experiment *e, dbo_strbuf *out)
{
    const dbo_model_spec *model = &e->model;
    if (e->has_fixed) {
        const dbo_fixed_costs *us = &e->fixed;
        dbo_strbuf_printf(
            out, "%u layers of fixed costs, us an ubatch: A0=%g A1=%g D=%g M=%g C=%g S=%g",
            e->num_layers, us->a0_us, us->a1_us, us->d_us, us->m_us, us->c_us, us->s_us);
        return;
    }
    dbo_strbuf_printf(out, "%s, ", model->name);
    if (e->num_layers < model->layers)
        dbo_strbuf_printf(out, "%u of ", e->num_layers);
    dbo_strbuf_printf(out, "%u layers", model->layers);
    if (model->first_k_dense > 0)
        dbo_strbuf_printf(out, " (%u dense)", model->first_k_dense);
    dbo_strbuf_printf(out, ", hidden %u, %u heads (%s)", model->hidden, model->heads,
                      dbo_attention_names[model->attention]);
    if (model->num_experts > 0)
        dbo_strbuf_printf(out, ", top %u of %u experts", model->topk, model->num_experts);
    if (model->num_shared > 0)
        dbo_strbuf_printf(out, " + %u shared", model->num_shared);
    dbo_strbuf_printf(out, ", %s weights", dbo_dtype_names[model->weight_dtype]);
}

static void describe_cluster(const dbo_experiment *e, dbo_strbuf *out)
{
    uint32_t slots = e->model.num_experts + e->routing.redundant_experts;
    uint32_t experts = (slots + e->ep_size - 1) / e->ep_size;
    bool is_even = slots % e->ep_size == 0;
    dbo_strbuf_printf(out, "%u %s of %u %s = %u GPUs: DP %u, TP %u, ", e->nodes,
                      e->nodes == 1 ? "node" : "nodes", e->gpus_per_node,
                      e->has_hardware ? e->hardware.name : "GPUs", e->num_gpus,
                      e->config.data_parallel_size, e->config.tensor_parallel_size);
    if (e->ep_size == 1)
        dbo_strbuf_add(out, "EP off");
    else if (e->has_fixed)
        dbo_strbuf_printf(out, "EP %u", e->ep_size);
    else
        dbo_strbuf_printf(out, "EP %u (%s%u %s a GPU)", e->ep_size, is_even ? "" : "at most ",
                          experts, experts == 1 ? "expert" : "experts");
}

typedef struct range {
    uint64_t least, most;
} range;

static const range no_range = {UINT64_MAX, 0};

static void widen(range *r, uint64_t value)
{
    r->least = value < r->least ? value : r->least;
    r->most = value > r->most ? value : r->most;
}

/* "128" or, over all ranks, "96..160". */
static void add_range(dbo_strbuf *out, const range *r)
{
    dbo_strbuf_printf(out, "%" PRIu64, r->least);
    if (r->most != r->least)
        dbo_strbuf_printf(out, "..%" PRIu64, r->most);
}

static void describe_batch(const dbo_experiment *e, dbo_strbuf *out)
{
    range tokens = no_range, requests = no_range, scheduled = no_range, computed = no_range;
    const dbo_request_list *last = NULL;
    for (uint32_t rank = 0; rank < e->batch.num_ranks; rank++) {
        const dbo_request_list *list = e->batch.ranks[rank];
        if (list == last) /* ranks that are alike share theirs */
            continue;
        last = list;
        widen(&tokens, list->num_tokens);
        widen(&requests, list->count);
        for (uint32_t i = 0; i < list->count; i++) {
            widen(&scheduled, (uint64_t)list->requests[i].num_scheduled);
            widen(&computed, (uint64_t)list->requests[i].num_computed);
        }
    }
    dbo_strbuf_printf(out, "%s, tokens a rank: ", dbo_workload_kind_name(e->batch.kind));
    add_range(out, &tokens);
    if (requests.most > 0) {
        dbo_strbuf_add(out, " (requests: ");
        add_range(out, &requests);
        dbo_strbuf_add(out, " of ");
        add_range(out, &scheduled);
        dbo_strbuf_add(out, scheduled.most == 1 ? " token, context " : " tokens, context ");
        add_range(out, &computed);
        dbo_strbuf_add(out, ")");
    }
    if (e->batch.jitter_us > 0)
        dbo_strbuf_printf(out, ", ranks launch up to %g us late", e->batch.jitter_us);
}

static void describe_config(const dbo_experiment *e, dbo_strbuf *out)
{
    const dbo_config *config = &e->config;
    uint32_t ubatches = dbo_config_num_ubatches(config);
    if (dbo_config_use_ubatching(config)) {
        dbo_strbuf_printf(out, "DBO on, %u ubatches (from %u decode or %u prefill tokens)",
                          ubatches, config->dbo_decode_token_threshold,
                          config->dbo_prefill_token_threshold);
    } else {
        dbo_strbuf_add(out, "DBO off");
    }
    dbo_strbuf_printf(out, ", %s, graphs %s, rules %s", config_word(config, "all2all_backend"),
                      config_word(config, "cudagraph_mode"), config_word(config, "rules"));
    if (strcmp(config->schedule, "mlp_shared_overlap") != 0) {
        dbo_strbuf_add(out, ", schedule ");
        dbo_text_clean(out, config->schedule, strlen(config->schedule)); /* a script's word */
    }
    if (config->executor != DBO_CONTEXT_FIBER)
        dbo_strbuf_printf(out, ", executor %s", config_word(config, "executor"));
}

static void describe_routing(const dbo_experiment *e, dbo_strbuf *out)
{
    const dbo_routing_spec *spec = &e->routing;
    switch (spec->load) {
    case DBO_LOAD_BALANCED: dbo_strbuf_add(out, "balanced"); break;
    case DBO_LOAD_ZIPF: dbo_strbuf_printf(out, "zipf, exponent %g", spec->exponent); break;
    case DBO_LOAD_LOGNORMAL: dbo_strbuf_printf(out, "lognormal, sigma %g", spec->sigma); break;
    case DBO_LOAD_COUNTED:
        dbo_strbuf_printf(out, "counted in %u %s", spec->num_rows,
                          spec->num_rows == 1 ? "layer" : "layers");
    }
    if (spec->random)
        dbo_strbuf_add(out, ", tokens drawn");
    dbo_strbuf_printf(out, ", placement %s",
                      spec->placement == DBO_PLACEMENT_EPLB ? "eplb" : "linear");
    if (spec->redundant_experts > 0)
        dbo_strbuf_printf(out, " with %u redundant experts", spec->redundant_experts);
}

static void describe_fault(const dbo_experiment *e, dbo_strbuf *out)
{
    dbo_strbuf_printf(out, "%s: %s", dbo_fault_describe(e->fault.id).name,
                      dbo_fault_text_of(e->fault.id).what);
}

/* A line of `describe`, wrapped behind its label. */
static void add_line(void (*describe)(const dbo_experiment *e, dbo_strbuf *out), const char *label,
                     const dbo_experiment *e, uint32_t width, dbo_strbuf *out)
{
    dbo_strbuf line = {0};
    describe(e, &line);
    dbo_wrap_end(out, label, &line, width);
}

void dbo_experiment_describe(const dbo_experiment *experiment, uint32_t width, dbo_strbuf *out)
{
    add_line(describe_model, "Model    ", experiment, width, out);
    add_line(describe_cluster, "Cluster  ", experiment, width, out);
    add_line(describe_batch, "Batch    ", experiment, width, out);
    if (experiment->routings.count > 0)
        add_line(describe_routing, "Routing  ", experiment, width, out);
    add_line(describe_config, "Config   ", experiment, width, out);
    if (experiment->has_fault)
        add_line(describe_fault, "Fault    ", experiment, width, out);
}
