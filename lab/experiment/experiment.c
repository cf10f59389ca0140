/* experiment.c: keys of an experiment, and what must hold between them (experiment.h).
 *
 * The keys are the experiment's own and those of dbo_config, in one name space: that is how people
 * write them. Each is offered to the own table first.
 */
#include "lab/experiment/experiment.h"

#include "core/base/suggest.h"
#include "core/check/order/template_data.h"
#include "core/program/builders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIXED_US 1e6

static const dbo_field own_fields[] = {
    {"name", DBO_FIELD_TEXT, offsetof(dbo_experiment, name), 0, 64, false, NULL,
     "what people call it"},
    {"nodes", DBO_FIELD_U32, offsetof(dbo_experiment, nodes), 1, DBO_MAX_NODES, false, NULL,
     "machines"},
    {"gpus_per_node", DBO_FIELD_U32, offsetof(dbo_experiment, gpus_per_node), 1,
     DBO_MAX_GPUS_PER_NODE, false, NULL, "GPUs of a machine"},
    {"layers", DBO_FIELD_U32, offsetof(dbo_experiment, layers), 1, DBO_MAX_LAYERS - 1, false, NULL,
     "run the first so many layers of the model"},
    {"check_memory", DBO_FIELD_BOOL, offsetof(dbo_experiment, check_memory), 0, 1, false, NULL,
     "refuse what does not fit into the GPUs' memory"},
    {"seed", DBO_FIELD_U32, offsetof(dbo_experiment, seed), 0, UINT32_MAX, false, NULL,
     "of everything random"},
};
#define NUM_OWN_FIELDS (sizeof own_fields / sizeof own_fields[0])

/* For sentences: the config's keys by `fields`, the others by name. */
dbo_settings dbo_experiment_settings(void)
{
    static const char *const extra[] = {
        "model",        "hardware", "nodes", "gpus_per_node",           "batch",  "costs",
        "layers",       "seed",     "name",  "cudagraph_capture_sizes", "before", "fault",
        "check_memory", NULL};
    dbo_settings settings = {.name = "dbo.experiment", .extra = extra};
    settings.fields = dbo_config_fields(&settings.num_fields);
    return settings;
}

dbo_settings dbo_experiment_own_settings(void)
{
    return (dbo_settings){"dbo.experiment", own_fields, NUM_OWN_FIELDS, NULL};
}

dbo_settings dbo_model_settings(void)
{
    static const char *const extra[] = {"base", NULL};
    dbo_settings settings = {.name = "the model", .extra = extra};
    settings.fields = dbo_model_fields(&settings.num_fields);
    return settings;
}

dbo_settings dbo_hardware_settings(void)
{
    static const char *const extra[] = {"base", NULL};
    dbo_settings settings = {.name = "the hardware", .extra = extra};
    settings.fields = dbo_hardware_fields(&settings.num_fields);
    return settings;
}

dbo_settings dbo_fixed_settings(void)
{
    static const dbo_field fields[] = {
#define FIXED_ROW(member, key, what) \
    {key, DBO_FIELD_DOUBLE, offsetof(dbo_fixed_costs, member), 0, MAX_FIXED_US, false, NULL, what},
        DBO_FIXED_FIELDS(FIXED_ROW)
#undef FIXED_ROW
    };
    return (dbo_settings){"dbo.fixed", fields, sizeof fields / sizeof fields[0], NULL};
}

void dbo_experiment_init(dbo_experiment *experiment)
{
    *experiment = (dbo_experiment){0};
    dbo_model_spec_init(&experiment->model);
    dbo_hardware_init(&experiment->hardware);
    dbo_config_init(&experiment->config);
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
}

dbo_status dbo_experiment_set_fault(dbo_experiment *experiment, const char *text, dbo_error *err)
{
    experiment->has_fault = strcmp(text, "none") != 0;
    return experiment->has_fault ? dbo_fault_parse(&experiment->fault, text, err) : DBO_OK;
}

void dbo_experiment_set_schedule(dbo_experiment *experiment, dbo_template *schedule)
{
    dbo_template *before = experiment->schedule;
    experiment->schedule = dbo_template_retain(schedule);
    dbo_template_release(before);
    if (schedule)
        snprintf(experiment->config.schedule, sizeof experiment->config.schedule, "%s",
                 schedule->name);
}

dbo_status dbo_experiment_set(dbo_experiment *experiment, const char *key, const dbo_value *value,
                              dbo_error *err)
{
    const dbo_settings own = dbo_experiment_own_settings();
    if (dbo_field_find(own.fields, own.num_fields, key))
        return dbo_setting_set(&own, experiment, key, value, err);
    dbo_settings config = dbo_experiment_settings();
    DBO_TRY(dbo_setting_set(&config, &experiment->config, key, value, err));
    if (strcmp(key, "schedule") == 0)
        dbo_experiment_set_schedule(experiment, NULL);
    if (strcmp(key, "data_parallel_size") == 0)
        experiment->has_data_parallel_size = true;
    if (strcmp(key, "dbo_comm_sms") == 0)
        experiment->config.dbo_comm_sms_is_set = true;
    return DBO_OK;
}

/* ---- what follows ---- */

static dbo_status need(bool condition, const char *what, const char *hint, dbo_error *err)
{
    return condition ? DBO_OK : dbo_fail(err, DBO_INVALID, hint, "the experiment has no %s", what);
}

/* The cluster: what is not given follows from what is. */
static dbo_status finish_cluster(dbo_experiment *e, const char **key, dbo_error *err)
{
    dbo_config *config = &e->config;
    uint64_t ranks = (uint64_t)config->data_parallel_size * config->tensor_parallel_size;
    if (e->nodes == 0)
        e->nodes = 1;
    if (e->gpus_per_node == 0) {
        bool derive = e->has_data_parallel_size && ranks % e->nodes == 0 &&
                      ranks / e->nodes <= DBO_MAX_GPUS_PER_NODE;
        e->gpus_per_node = derive ? (uint32_t)(ranks / e->nodes) : 8;
    }
    e->num_gpus = e->nodes * e->gpus_per_node;
    *key = "nodes";
    if (e->num_gpus > DBO_MAX_RANKS) {
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "%u nodes of %u GPUs are %u GPUs; at most %u can be simulated", e->nodes,
                        e->gpus_per_node, e->num_gpus, (unsigned)DBO_MAX_RANKS);
    }
    *key = "tensor_parallel_size";
    if (e->num_gpus % config->tensor_parallel_size != 0) {
        return dbo_fail(err, DBO_INVALID, NULL,
                        "tensor_parallel_size is %u, which does not divide the %u GPUs of %u nodes",
                        config->tensor_parallel_size, e->num_gpus, e->nodes);
    }
    uint32_t fitting = e->num_gpus / config->tensor_parallel_size;
    if (!e->has_data_parallel_size)
        config->data_parallel_size = fitting;
    *key = "data_parallel_size";
    if (config->data_parallel_size != fitting) {
        char hint[128];
        snprintf(hint, sizeof hint, "Set data_parallel_size = %u, or change nodes.", fitting);
        return dbo_fail(err, DBO_INVALID, hint,
                        "data_parallel_size %u x tensor_parallel_size %u is %llu ranks, but %u "
                        "nodes of %u GPUs are %u",
                        config->data_parallel_size, config->tensor_parallel_size,
                        (unsigned long long)ranks, e->nodes, e->gpus_per_node, e->num_gpus);
    }
    e->ep_size = config->enable_expert_parallel ? e->num_gpus : 1;
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
    if (above > ep_size && experts % above == 0)
        snprintf(hint, size, "Use %u or %u GPUs.", below, above);
    else
        snprintf(hint, size, "Use %u GPUs.", below);
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

static dbo_status finish_model(dbo_experiment *e, const char **key, dbo_error *err)
{
    *key = "model";
    if (e->has_fixed) {
        *key = "costs";
        if (e->fixed.a_us > 0) {
            if (e->fixed.a0_us > 0 || e->fixed.a1_us > 0)
                return dbo_fail(err, DBO_INVALID, "Give A, or A0 and A1.",
                                "dbo.fixed has A beside A0 or A1, whose sum A is");
            e->fixed.a0_us = e->fixed.a1_us = e->fixed.a_us / 2;
            e->fixed.a_us = 0;
        }
        e->num_layers = layers_to_run(e);
        return DBO_OK;
    }
    DBO_TRY(need(e->has_model, "model", "Set model = \"deepseek-v3\", or costs = dbo.fixed {...}.",
                 err));
    DBO_TRY(dbo_model_spec_check(&e->model, err));
    e->num_layers = layers_to_run(e);
    *key = "layers";
    if (e->num_layers > e->model.layers) {
        return dbo_fail(err, DBO_INVALID,
                        "To build a deeper model: model = { base = ..., layers "
                        "= ... }.",
                        "layers is %u, but %s has %u", e->layers, e->model.name, e->model.layers);
    }
    *key = "model";
    if (e->model.num_experts % e->ep_size != 0) {
        char hint[64];
        hint_divisors(e->model.num_experts, e->ep_size, hint, sizeof hint);
        return dbo_fail(err, DBO_INVALID, hint,
                        "expert parallelism over %u GPUs does not divide the %u experts of %s",
                        e->ep_size, e->model.num_experts, e->model.name);
    }
    *key = "tensor_parallel_size";
    if (e->model.heads % e->config.tensor_parallel_size != 0) {
        return dbo_fail(err, DBO_INVALID, NULL,
                        "tensor_parallel_size is %u, which does not divide the %u heads of %s",
                        e->config.tensor_parallel_size, e->model.heads, e->model.name);
    }
    if (e->config.tensor_parallel_size > 1 && e->model.num_experts > 0 && e->ep_size == 1)
        return dbo_fail(err, DBO_INVALID, "Set enable_expert_parallel = true.",
                        "tensor_parallel_size is %u without expert parallelism, and experts that "
                        "are themselves cut into pieces are not modelled",
                        e->config.tensor_parallel_size);
    *key = "hardware";
    DBO_TRY(need(e->has_hardware, "hardware", "Set hardware = \"H800\".", err));
    return dbo_hardware_check(&e->hardware, err);
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
    return dbo_fail(err, status, why.hint, "%s", why.message);
}

#define SMS_WITHOUT_HARDWARE 132u /* as the simulator takes */

/* An op that asks for more SMs than there are would never have them. */
static dbo_status check_op_sms(const dbo_experiment *e, dbo_error *err)
{
    const dbo_template *t = e->schedule;
    const dbo_program *p = &t->program;
    uint32_t sms = e->has_hardware ? e->hardware.sms : SMS_WITHOUT_HARDWARE;
    for (uint32_t u = 0; u < p->num_ubatches; u++) {
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            const dbo_instr *instr = &p->instrs[u][i];
            uint32_t asked = instr->code == DBO_CODE_OP ? p->ops[instr->index].cost.fixed_sms : 0;
            char sentence[96];
            if (asked <= sms)
                continue;
            snprintf(sentence, sizeof sentence, "an op asks for %u SMs, the GPU has %u", asked,
                     sms);
            return dbo_template_refuse(t, u, t->lines[u] ? t->lines[u][i] : 0, NULL, sentence, err);
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
    if (!dbo_config_use_ubatching(&e->config) || written == asked)
        return check_whole_layer(e, err);
    char hint[96];
    snprintf(hint, sizeof hint, "Set enable_dbo = false, ubatch_size = %u.", written);
    return dbo_fail(err, DBO_INVALID, written == 2 ? "Set enable_dbo = true." : hint,
                    "schedule %s is written for %u ubatches, but a step is split into %u",
                    e->schedule->name, written, asked);
}

static dbo_status finish_schedule(dbo_experiment *e, const char **key, dbo_error *err)
{
    static const char *const names[] = {"mlp_shared_overlap", "seed-prose-ht"};
    const dbo_config *config = &e->config;
    bool low_latency = config->all2all_backend != DBO_BACKEND_HT;
    *key = "schedule";
    if (e->schedule)
        return finish_own_schedule(e, err);
    if (dbo_builder_of_name(config->schedule, low_latency))
        return DBO_OK;
    if (dbo_builder_of_name(config->schedule, false)) {
        return dbo_fail(err, DBO_INVALID, "Set all2all_backend = \"deepep_high_throughput\".",
                        "schedule %s is for high throughput only", config->schedule);
    }
    const char *nearest = dbo_suggest(config->schedule, names, sizeof names / sizeof names[0]);
    return dbo_fail(err, DBO_INVALID, NULL, "unknown schedule '%s', did you mean '%s'?",
                    config->schedule, nearest ? nearest : names[0]);
}

/* The engine's own refusal, where the line of the script can still be said. */
static dbo_status check_comm_sms(const dbo_experiment *e, dbo_error *err)
{
    const dbo_config *config = &e->config;
    bool needed = e->has_hardware && e->hardware.comm_needs_sms &&
                  config->all2all_backend == DBO_BACKEND_HT && dbo_config_use_ubatching(config);
    if (!needed || !config->dbo_comm_sms_is_set || config->dbo_comm_sms < e->hardware.sms)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, "Give an even number below the SMs of the GPU.",
                    "dbo_comm_sms is %u, the GPU has %u SMs", config->dbo_comm_sms,
                    e->hardware.sms);
}

/* A scheduler gives no step more than these. */
static dbo_status check_limits(const dbo_config *config, const dbo_workload *batch, dbo_error *err)
{
    char hint[128];
    for (uint32_t rank = 0; rank < batch->num_ranks; rank++) {
        const dbo_request_list *list = batch->ranks[rank];
        if (list->count > config->max_num_seqs) {
            snprintf(hint, sizeof hint, "Set max_num_seqs = %u, or give it fewer requests.",
                     list->count);
            return dbo_fail(err, DBO_INVALID, hint,
                            "rank %u has %u requests in the step, but max_num_seqs is %u", rank,
                            list->count, config->max_num_seqs);
        }
        if (list->num_tokens > config->max_num_batched_tokens) {
            snprintf(hint, sizeof hint, "Set max_num_batched_tokens = %u, or give it fewer tokens.",
                     list->num_tokens);
            return dbo_fail(err, DBO_INVALID, hint,
                            "rank %u has %u tokens in the step, but max_num_batched_tokens is %u",
                            rank, list->num_tokens, config->max_num_batched_tokens);
        }
    }
    return DBO_OK;
}

/* The config's sentences begin with the key that they are about. */
static const char *key_of_sentence(const char *sentence)
{
    uint32_t count = 0;
    const dbo_field *fields = dbo_config_fields(&count);
    size_t length = strcspn(sentence, " ");
    for (uint32_t i = 0; i < count; i++) {
        if (strlen(fields[i].key) == length && strncmp(fields[i].key, sentence, length) == 0)
            return fields[i].key;
    }
    return NULL;
}

static dbo_status finish_config(dbo_config *config, const char **key, dbo_error *err)
{
    dbo_error mine = {0};
    dbo_status status = dbo_config_resolve(config, &mine);
    *key = key_of_sentence(mine.message);
    return status == DBO_OK ? DBO_OK : dbo_fail(err, status, mine.hint, "%s", mine.message);
}

/* vLLM's variable gives dbo_comm_sms where nobody else does. */
static dbo_status take_environment(dbo_experiment *e, dbo_error *err)
{
    const char *sms = getenv("VLLM_DBO_COMM_SMS");
    if (!sms || e->config.dbo_comm_sms_is_set)
        return DBO_OK;
    if (dbo_config_set(&e->config, "dbo_comm_sms", sms, err) == DBO_OK)
        return DBO_OK;
    return dbo_error_prefix(err, "VLLM_DBO_COMM_SMS");
}

static dbo_status finish_batch(const dbo_config *config, dbo_workload *batch, dbo_error *err)
{
    DBO_TRY(dbo_workload_expand(batch, config->data_parallel_size,
                                dbo_config_decode_query_len(config), err));
    DBO_TRY(check_limits(config, batch, err));
    return dbo_workload_allot(batch, config->block_size, err);
}

dbo_status dbo_experiment_finish(dbo_experiment *experiment, const char **key, dbo_error *err)
{
    const char *at_fault = NULL;
    dbo_status status = DBO_OK;
    DBO_TRY_GOTO(take_environment(experiment, err), done);
    DBO_TRY_GOTO(finish_cluster(experiment, &at_fault, err), done);
    DBO_TRY_GOTO(finish_model(experiment, &at_fault, err), done);
    DBO_TRY_GOTO(finish_config(&experiment->config, &at_fault, err), done);
    at_fault = "dbo_comm_sms";
    DBO_TRY_GOTO(check_comm_sms(experiment, err), done);
    DBO_TRY_GOTO(finish_schedule(experiment, &at_fault, err), done);
    at_fault = "batch";
    DBO_TRY_GOTO(need(experiment->batch.kind != DBO_WORKLOAD_NONE, "batch",
                      "Set batch = dbo.decode { num_tokens = 128, context_len = 4096 }.", err),
                 done);
    DBO_TRY_GOTO(finish_batch(&experiment->config, &experiment->batch, err), done);
    at_fault = "before";
    for (uint32_t i = 0; i < experiment->num_before; i++)
        DBO_TRY_GOTO(finish_batch(&experiment->config, &experiment->before[i], err), done);
    at_fault = NULL;
done:
    if (key)
        *key = at_fault;
    return status;
}
