/* experiment.c: what follows from the keys of an experiment, and what must hold between them
 * (experiment.h; the keys themselves: experiment_set.c).
 *
 * Each stage fails with the key that is at fault in the error, so that whoever knows where keys are
 * written can say the line.
 */
#include "lab/experiment/experiment.h"

#include "core/base/suggest.h"
#include "core/check/order/template_data.h"
#include "core/layer/model_ops.h"
#include "core/program/builders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbo_experiment_init(dbo_experiment *experiment)
{
    *experiment = (dbo_experiment){0};
    dbo_model_spec_init(&experiment->model);
    dbo_hardware_init(&experiment->hardware);
    dbo_config_init(&experiment->config);
    dbo_routing_spec_init(&experiment->routing);
    experiment->check_memory = true;
}

void dbo_experiment_fini(dbo_experiment *experiment)
{
    dbo_workload_fini(&experiment->batch);
    for (uint32_t i = 0; i < experiment->num_before; i++)
        dbo_workload_fini(&experiment->before[i]);
    experiment->num_before = 0;
    dbo_template_release(experiment->schedule);
    experiment->schedule = NULL;
    dbo_routings_fini(&experiment->routings);
    dbo_routing_spec_fini(&experiment->routing);
}

/* ---- what follows ---- */

static dbo_status need(bool condition, const char *what, const char *hint, dbo_error *err)
{
    if (condition)
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, what, hint, "the experiment has no %s", what);
}

/* An error inside an object: its key is "model.layers". */
static dbo_status within(const char *object, dbo_status status, dbo_error *err)
{
    if (status != DBO_OK)
        dbo_error_key(err, "%s", object);
    return status;
}

/* The cluster: what is not given follows from what is. */
static dbo_status finish_cluster(dbo_experiment *e, dbo_error *err)
{
    dbo_config *config = &e->config;
    uint64_t ranks = (uint64_t)config->data_parallel_size * config->tensor_parallel_size;
    uint32_t host = e->has_hardware && !e->has_fixed ? e->hardware.gpus_per_host : 0;
    bool hosts = host > 0 && ranks > host && ranks % host == 0;
    if (e->nodes == 0 && e->gpus_per_node == 0 && e->has_data_parallel_size && hosts) {
        e->gpus_per_node = host;
        e->nodes = (uint32_t)(ranks / host);
    }
    if (e->nodes == 0)
        e->nodes = 1;
    if (e->gpus_per_node == 0) {
        bool derive = e->has_data_parallel_size && ranks % e->nodes == 0 &&
                      ranks / e->nodes <= DBO_MAX_GPUS_PER_NODE;
        e->gpus_per_node = derive ? (uint32_t)(ranks / e->nodes) : 8;
    }
    e->num_gpus = e->nodes * e->gpus_per_node;
    if (e->num_gpus > DBO_MAX_RANKS) {
        return dbo_fail_key(err, DBO_LIMIT, "nodes", NULL,
                            "%u nodes of %u GPUs are %u GPUs; at most %u can be simulated",
                            e->nodes, e->gpus_per_node, e->num_gpus, (unsigned)DBO_MAX_RANKS);
    }
    if (e->num_gpus % config->tensor_parallel_size != 0) {
        return dbo_fail_key(
            err, DBO_INVALID, "tensor_parallel_size", NULL,
            "tensor_parallel_size is %u, which does not divide the %u GPUs of %u nodes",
            config->tensor_parallel_size, e->num_gpus, e->nodes);
    }
    uint32_t fitting = e->num_gpus / config->tensor_parallel_size;
    if (!e->has_data_parallel_size)
        config->data_parallel_size = fitting;
    if (config->data_parallel_size != fitting) {
        char hint[128];
        snprintf(hint, sizeof hint, "Set data_parallel_size = %u, or change nodes.", fitting);
        return dbo_fail_key(err, DBO_INVALID, "data_parallel_size", hint,
                            "data_parallel_size %u x tensor_parallel_size %u is %llu ranks, but %u "
                            "nodes of %u GPUs are %u",
                            config->data_parallel_size, config->tensor_parallel_size,
                            (unsigned long long)ranks, e->nodes, e->gpus_per_node, e->num_gpus);
    }
    bool ep = config->enable_expert_parallel;
    e->ep_size = ep ? e->num_gpus : 1;
    e->expert_tp = ep ? 1 : e->num_gpus;
    e->no_all_to_all = !ep || (config->data_parallel_size == 1 && !config->ubatch_single_rank);
    return DBO_OK;
}

/* The nearest numbers of GPUs that divide the experts, for the hint. */
static void hint_divisors(uint32_t experts, uint32_t ep_size, char *hint, size_t size)
{
    uint32_t below = ep_size, above = ep_size;
    while (below > 1 && experts % below != 0)
        below--;
    while (above < experts && experts % above != 0)
        above++;
    if (above > ep_size)
        snprintf(hint, size, "Use %u or %u GPUs.", below, above);
    else
        snprintf(hint, size, "Use %u GPUs.", below);
}

/* NVLink joins the GPUs of a node, or, where it joins more of them than a machine is sold with, of
 * several nodes. A node has no more of them than it joins. */
static dbo_status finish_domain(dbo_experiment *e, dbo_error *err)
{
    const dbo_hardware *hardware = &e->hardware;
    uint32_t joined = hardware->gpus_per_domain, node = e->gpus_per_node;
    if (node > joined) {
        char hint[160];
        int used = snprintf(hint, sizeof hint,
                            "If NVLink joins them, set hardware.gpus_per_domain = %u", node);
        if (e->num_gpus % joined == 0)
            snprintf(hint + used, sizeof hint - (size_t)used,
                     "; else nodes = %u and gpus_per_node = %u.", e->num_gpus / joined, joined);
        else
            snprintf(hint + used, sizeof hint - (size_t)used, ".");
        return dbo_fail_key(err, DBO_INVALID, "gpus_per_node", hint,
                            "gpus_per_node is %u, but NVLink joins only %u GPUs of %s", node,
                            joined, hardware->name);
    }
    e->gpus_per_domain = joined > hardware->gpus_per_host ? joined : node;
    return DBO_OK;
}

static uint32_t layers_to_run(const dbo_experiment *e)
{
    if (e->layers)
        return e->layers;
    uint32_t all = e->has_model ? e->model.layers : 0;
    uint32_t written = e->schedule ? e->schedule->num_layers : 0;
    if (written == 0)
        return all ? all : 8;
    return all && all < written ? all : written;
}

static dbo_status finish_model(dbo_experiment *e, dbo_error *err)
{
    if (e->has_fixed) {
        if (e->fixed.a_us > 0) {
            if (e->fixed.a0_us > 0 || e->fixed.a1_us > 0)
                return dbo_fail_key(err, DBO_INVALID, "costs", "Give A, or A0 and A1.",
                                    "dbo.fixed has A beside A0 or A1, whose sum A is");
            e->fixed.a0_us = e->fixed.a1_us = e->fixed.a_us / 2;
            e->fixed.a_us = 0;
        }
        e->num_layers = layers_to_run(e);
        e->gpus_per_domain = e->gpus_per_node;
        return DBO_OK;
    }
    DBO_TRY(need(e->has_model, "model", "Set model = \"deepseek-v3\", or costs = dbo.fixed {...}.",
                 err));
    DBO_TRY(within("model", dbo_model_spec_check(&e->model, err), err));
    e->num_layers = layers_to_run(e);
    if (e->num_layers > e->model.layers) {
        return dbo_fail_key(err, DBO_INVALID, "layers",
                            "To build a deeper model: model = { base = ..., layers "
                            "= ... }.",
                            "layers is %u, but %s has %u", e->layers, e->model.name,
                            e->model.layers);
    }
    if (e->model.num_experts % e->ep_size != 0 && e->routing.redundant_experts == 0) {
        char hint[64];
        hint_divisors(e->model.num_experts, e->ep_size, hint, sizeof hint);
        return dbo_fail_key(err, DBO_INVALID, "model", hint,
                            "expert parallelism over %u GPUs does not divide the %u experts of %s",
                            e->ep_size, e->model.num_experts, e->model.name);
    }
    if (e->model.heads % e->config.tensor_parallel_size != 0) {
        return dbo_fail_key(err, DBO_INVALID, "tensor_parallel_size", NULL,
                            "tensor_parallel_size is %u, which does not divide the %u heads of %s",
                            e->config.tensor_parallel_size, e->model.heads, e->model.name);
    }
    DBO_TRY(need(e->has_hardware, "hardware", "Set hardware = \"H800\".", err));
    DBO_TRY(within("hardware", dbo_hardware_check(&e->hardware, err), err));
    return finish_domain(e, err);
}

/* What the built-in layer has of the ops that hand data on, by bit; a fixed cost of 0 counts as
 * none. */
static uint32_t kinds_of_layer(const dbo_experiment *e)
{
    const dbo_fixed_costs *f = &e->fixed;
    const struct {
        dbo_op_kind kind;
        bool of_model;
        double fixed_us;
    } rows[] = {
        {DBO_KIND_A0, true, f->a0_us},      {DBO_KIND_A1, true, f->a1_us},
        {DBO_KIND_DISPATCH, true, f->d_us}, {DBO_KIND_MLP, true, f->m_us},
        {DBO_KIND_COMBINE, true, f->c_us},  {DBO_KIND_SHARED, e->model.num_shared > 0, f->s_us}};
    uint32_t kinds = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (e->has_fixed ? rows[i].fixed_us > 0 : rows[i].of_model)
            kinds |= 1u << rows[i].kind;
    return kinds;
}

/* With a model a schedule does a whole layer, or it means nothing. Fixed costs are for teaching:
 * one may look at a part, which is then said to be one. */
static dbo_status check_whole_layer(dbo_experiment *e, dbo_error *err)
{
    dbo_error why = {0};
    dbo_status status = dbo_check_template_data(e->schedule, kinds_of_layer(e), &why);
    if (status == DBO_OK)
        return DBO_OK;
    if (status == DBO_REFUSED && e->has_fixed) {
        snprintf(e->incomplete, sizeof e->incomplete, "%.*s", (int)sizeof e->incomplete - 1,
                 why.message);
        return DBO_OK;
    }
    dbo_error_key(&why, "schedule");
    return dbo_error_pass(err, &why);
}

/* An op that asks for more SMs than there are would never have them. */
static dbo_status check_op_sms(const dbo_experiment *e, dbo_error *err)
{
    const dbo_template *t = e->schedule;
    const dbo_program *p = &t->program;
    uint32_t sms = e->has_hardware ? e->hardware.sms : DBO_DEFAULT_SMS;
    for (uint32_t u = 0; u < p->num_ubatches; u++) {
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            const dbo_instr *instr = &p->instrs[u][i];
            uint32_t asked = instr->code == DBO_CODE_OP ? p->ops[instr->index].cost.fixed_sms : 0;
            char sentence[96];
            if (asked <= sms)
                continue;
            snprintf(sentence, sizeof sentence, "an op asks for %u SMs, the GPU has %u", asked,
                     sms);
            return dbo_template_refuse(t, u, t->lines[u][i], NULL, sentence, err);
        }
    }
    return DBO_OK;
}

/* A schedule of a script splits into as many ubatches as it was recorded for. */
static dbo_status finish_own_schedule(dbo_experiment *e, dbo_error *err)
{
    uint32_t written = e->schedule->schedule.num_ubatches;
    uint32_t asked = dbo_config_num_ubatches(&e->config);
    DBO_TRY(check_op_sms(e, err));
    if (!e->has_fixed && e->config.tensor_parallel_size > 1)
        return dbo_fail_key(err, DBO_UNSUPPORTED, "schedule",
                            "Use a built-in schedule, or tensor_parallel_size = 1.",
                            "schedule %s has no all-reduce, which tensor_parallel_size %u needs",
                            e->schedule->name, e->config.tensor_parallel_size);
    if (!dbo_config_use_ubatching(&e->config) || written == asked)
        return check_whole_layer(e, err);
    char hint[96];
    snprintf(hint, sizeof hint, "Set enable_dbo = false, ubatch_size = %u.", written);
    return dbo_fail_key(err, DBO_INVALID, "schedule",
                        written == 2 ? "Set enable_dbo = true." : hint,
                        "schedule %s is written for %u ubatches, but a step is split into %u",
                        e->schedule->name, written, asked);
}

/* Who asks for a schedule and for no ubatches in the same breath, or for the schedule later. */
static dbo_status check_is_used(const dbo_experiment *e, dbo_error *err)
{
    uint32_t off_in = dbo_experiment_said_in(e, "enable_dbo");
    if (dbo_config_use_ubatching(&e->config) || off_in == 0 || off_in > e->schedule_said_in)
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, "schedule",
                        "Set enable_dbo = true, or leave schedule out.",
                        "schedule is %s, but enable_dbo is false: no step would be split",
                        e->schedule ? e->schedule->name : e->config.schedule);
}

static dbo_status finish_schedule(dbo_experiment *e, dbo_error *err)
{
    static const char *const names[] = {"mlp_shared_overlap", "seed-prose-ht"};
    const dbo_config *config = &e->config;
    bool low_latency = config->all2all_backend != DBO_BACKEND_HT;
    DBO_TRY(check_is_used(e, err));
    if (e->schedule)
        return finish_own_schedule(e, err);
    if (dbo_builder_of_name(config->schedule, low_latency))
        return DBO_OK;
    if (dbo_builder_of_name(config->schedule, false)) {
        return dbo_fail_key(err, DBO_INVALID, "schedule",
                            "Set all2all_backend = \"deepep_high_throughput\".",
                            "schedule %s is for high throughput only", config->schedule);
    }
    const char *nearest = dbo_suggest(config->schedule, names, sizeof names / sizeof names[0]);
    if (nearest)
        return dbo_fail_key(err, DBO_INVALID, "schedule", NULL,
                            "unknown schedule '%s', did you mean '%s'?", config->schedule, nearest);
    return dbo_fail_key(err, DBO_INVALID, "schedule",
                        "Schedules: mlp_shared_overlap, seed-prose-ht, or a dbo.schedule {}.",
                        "unknown schedule '%s'", config->schedule);
}

/* The engine's own refusal, where the line of the script can still be said. */
static dbo_status check_comm_sms(const dbo_experiment *e, dbo_error *err)
{
    const dbo_config *config = &e->config;
    bool needed = e->has_hardware && e->hardware.comm_needs_sms &&
                  config->all2all_backend == DBO_BACKEND_HT && dbo_config_use_ubatching(config);
    if (!needed || !config->dbo_comm_sms_is_set || config->dbo_comm_sms < e->hardware.sms)
        return DBO_OK;
    return dbo_fail_key(
        err, DBO_INVALID, "dbo_comm_sms", "Give an even number below the SMs of the GPU.",
        "dbo_comm_sms is %u, the GPU has %u SMs", config->dbo_comm_sms, e->hardware.sms);
}

static dbo_status check_limit(uint32_t limit, const char *key, uint32_t rank, uint32_t count,
                              const char *what, dbo_error *err)
{
    char hint[128];
    if (count <= limit)
        return DBO_OK;
    snprintf(hint, sizeof hint, "Set %s = %u, or give it fewer %s.", key, count, what);
    return dbo_fail(err, DBO_INVALID, hint, "rank %u has %u %s in the step, but %s is %u", rank,
                    count, what, key, limit);
}

/* More than low-latency buffers hold: what larger ones would take. */
static dbo_status check_capacity(const dbo_experiment *e, uint32_t rank, uint32_t tokens,
                                 dbo_error *err)
{
    uint32_t capacity = dbo_experiment_ll_capacity(e);
    char hint[192];
    if (capacity == 0 || tokens <= capacity)
        return DBO_OK;
    snprintf(hint, sizeof hint,
             "Set max_num_batched_tokens = %u, for buffers of %.1f GB a rank, or all2all_backend = "
             "\"deepep_high_throughput\".",
             tokens, dbo_ll_buffer_bytes(&e->model, e->routing.redundant_experts, tokens) / 1e9);
    return dbo_fail(err, DBO_INVALID, hint,
                    "rank %u has %u tokens in the step, but low-latency buffers hold %u "
                    "(max_num_batched_tokens)",
                    rank, tokens, capacity);
}

void dbo_experiment_machine(const dbo_experiment *experiment, dbo_hardware *out)
{
    *out = experiment->hardware;
    if (!experiment->has_hardware)
        dbo_hardware_init(out);
    out->gpus_per_domain = experiment->gpus_per_domain;
}

uint32_t dbo_experiment_ll_capacity(const dbo_experiment *e)
{
    bool ll = e->config.all2all_backend != DBO_BACKEND_HT && !e->has_fixed && !e->no_all_to_all;
    return ll && e->model.num_experts > 0 ? e->config.max_num_batched_tokens : 0;
}

/* Low-latency buffers hold a whole step of every rank, so a serving engine's default for it is
 * small; and there are kernels for some widths only. */
static dbo_status finish_ll(dbo_experiment *e, dbo_error *err)
{
    dbo_config *config = &e->config;
    if (dbo_experiment_ll_capacity(e) == 0)
        return DBO_OK;
    if (dbo_ll_hidden(e->model.hidden) == 0)
        return dbo_fail_key(
            err, DBO_INVALID, "all2all_backend",
            "Set all2all_backend = \"deepep_high_throughput\".",
            "low-latency kernels have rows of at most 8192 values, but hidden of %s "
            "is %u",
            e->model.name, e->model.hidden);
    dbo_config by_default;
    dbo_config_init(&by_default);
    if (dbo_experiment_said_in(e, "max_num_batched_tokens") > 0 ||
        config->max_num_batched_tokens != by_default.max_num_batched_tokens)
        return DBO_OK;
    config->max_num_batched_tokens = DBO_LL_CAPACITY_TOKENS;
    if (config->max_num_seqs > config->max_num_batched_tokens)
        config->max_num_batched_tokens = config->max_num_seqs;
    return DBO_OK;
}

/* A scheduler gives no step more than these. */
static dbo_status check_limits(const dbo_experiment *e, const dbo_workload *batch, dbo_error *err)
{
    const dbo_config *config = &e->config;
    for (uint32_t rank = 0; rank < batch->num_ranks; rank++) {
        const dbo_request_list *list = batch->ranks[rank];
        DBO_TRY(
            check_limit(config->max_num_seqs, "max_num_seqs", rank, list->count, "requests", err));
        DBO_TRY(check_capacity(e, rank, list->num_tokens, err));
        DBO_TRY(check_limit(config->max_num_batched_tokens, "max_num_batched_tokens", rank,
                            list->num_tokens, "tokens", err));
    }
    return DBO_OK;
}

/* vLLM's variable gives dbo_comm_sms where nobody else does. */
static dbo_status take_environment(dbo_experiment *e, dbo_error *err)
{
    const char *sms = getenv("VLLM_DBO_COMM_SMS");
    if (!sms || e->config.dbo_comm_sms_is_set)
        return DBO_OK;
    dbo_arena arena = {0};
    dbo_value value;
    const dbo_value_memory memory = dbo_value_memory_of(&arena);
    dbo_status status = dbo_value_of_text(&memory, sms, &value, err);
    if (status == DBO_OK)
        status = dbo_experiment_set(e, "dbo_comm_sms", &value, err);
    if (status != DBO_OK)
        dbo_error_prefix(err, "VLLM_DBO_COMM_SMS");
    dbo_arena_fini(&arena);
    return status;
}

static dbo_status finish_batch(const dbo_experiment *e, dbo_workload *batch, const char *key,
                               dbo_error *err)
{
    const dbo_config *config = &e->config;
    dbo_status status = dbo_workload_expand(batch, config->data_parallel_size,
                                            dbo_config_decode_query_len(config), err);
    if (status == DBO_OK)
        status = check_limits(e, batch, err);
    if (status == DBO_OK)
        status = dbo_workload_allot(batch, config->block_size, err);
    if (status != DBO_OK)
        dbo_error_key(err, "%s", key);
    return status;
}

/* A fault of a rank that is not there would be reached by nobody. */
static dbo_status check_fault(const dbo_experiment *e, dbo_error *err)
{
    uint32_t ranks = e->config.data_parallel_size;
    if (!e->has_fault || e->fault.rank < ranks)
        return DBO_OK;
    if (ranks == 1)
        return dbo_fail_key(err, DBO_INVALID, "fault", NULL,
                            "there is no rank %u: the only rank is 0", e->fault.rank);
    return dbo_fail_key(err, DBO_INVALID, "fault", NULL,
                        "there is no rank %u: the ranks are 0 to %u", e->fault.rank, ranks - 1);
}

/* Fixed costs do not know who gets which rows. */
static dbo_status finish_routing(dbo_experiment *e, dbo_error *err)
{
    const dbo_routing_spec *spec = &e->routing;
    bool is_said = spec->load != DBO_LOAD_BALANCED || spec->random || spec->redundant_experts > 0;
    if (e->has_fixed && is_said)
        return dbo_fail_key(err, DBO_INVALID, "routing", "Leave routing out, or give a model.",
                            "routing is given beside fixed costs, which do not depend on it");
    bool dispatches = !e->no_all_to_all && e->ep_size > 1 && e->model.num_experts > 0;
    if (!e->has_fixed && is_said && !dispatches)
        return dbo_fail_key(err, DBO_INVALID, "routing",
                            "Leave routing out, or set enable_expert_parallel = true with several "
                            "data-parallel ranks.",
                            "routing is given, but no rank sends tokens to experts elsewhere");
    if (e->has_fixed)
        return DBO_OK;
    const dbo_routing_group group = {.model = &e->model,
                                     .num_layers = e->num_layers,
                                     .ep_size = dispatches ? e->ep_size : 1,
                                     .gpus_per_domain = e->gpus_per_domain,
                                     .num_ubatches = dbo_config_num_ubatches(&e->config),
                                     .low_latency = e->config.all2all_backend != DBO_BACKEND_HT,
                                     .seed = e->seed};
    dbo_status status = dbo_routings_build(&e->routings, spec, &group, err);
    if (status != DBO_OK)
        dbo_error_key(err, "routing");
    return status;
}

dbo_status dbo_experiment_finish(dbo_experiment *experiment, dbo_error *err)
{
    DBO_TRY(take_environment(experiment, err));
    DBO_TRY(finish_cluster(experiment, err));
    DBO_TRY(finish_model(experiment, err));
    DBO_TRY(finish_ll(experiment, err));
    DBO_TRY(dbo_config_resolve(&experiment->config, err));
    DBO_TRY(finish_routing(experiment, err));
    DBO_TRY(check_comm_sms(experiment, err));
    DBO_TRY(check_fault(experiment, err));
    DBO_TRY(finish_schedule(experiment, err));
    DBO_TRY(need(experiment->batch.kind != DBO_WORKLOAD_NONE, "batch",
                 "Set batch = dbo.decode { num_tokens = 128, context_len = 4096 }.", err));
    DBO_TRY(finish_batch(experiment, &experiment->batch, "batch", err));
    for (uint32_t i = 0; i < experiment->num_before; i++)
        DBO_TRY(finish_batch(experiment, &experiment->before[i], "before", err));
    return DBO_OK;
}
