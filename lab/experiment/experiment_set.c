/* experiment_set.c: every key of an experiment, by name (experiment.h).
 *
 * Keys are the experiment's own and those of its config, in one name space: that is how people
 * write them. Config keys may also stand in vLLM's groups, parallel_config.enable_dbo. What is more
 * than a number or a word has a function here.
 */
#include "lab/experiment/experiment.h"

#include <stdio.h>
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

dbo_settings dbo_experiment_own_settings(void)
{
    return (dbo_settings){"dbo.experiment", own_fields, sizeof own_fields / sizeof own_fields[0],
                          NULL, NULL};
}

/* For sentences: the config's keys by `fields`, the others by name. */
dbo_settings dbo_experiment_settings(void)
{
    static const char *const extra[] = {
        "model",  "hardware", "nodes",        "gpus_per_node", "batch",
        "costs",  "layers",   "seed",         "name",          "cudagraph_capture_sizes",
        "before", "fault",    "check_memory", "routing",       NULL};
    dbo_settings settings = {
        .name = "dbo.experiment", .extra = extra, .listed = "keys of the configuration"};
    settings.fields = dbo_config_fields(&settings.num_fields);
    return settings;
}

/* ---- model, hardware, costs: tables of fields ---- */

static const char *const only_base[] = {"base", NULL};

dbo_settings dbo_model_settings(void)
{
    dbo_settings settings = {.name = "the model", .extra = only_base, .listed = "keys of a model"};
    settings.fields = dbo_model_fields(&settings.num_fields);
    return settings;
}

dbo_settings dbo_hardware_settings(void)
{
    dbo_settings settings = {
        .name = "the hardware", .extra = only_base, .listed = "keys of hardware"};
    settings.fields = dbo_hardware_fields(&settings.num_fields);
    return settings;
}

static dbo_status set_model(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    const dbo_settings settings = dbo_model_settings();
    DBO_TRY(dbo_value_table("model", "a name or a table of fields", value, err));
    e->has_model = true;
    return dbo_settings_set(&settings, &e->model, value, err);
}

/* A table that changes the SMs and no peak: SMs stay as fast as they are. */
static bool keeps_peaks(const dbo_value *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strncmp(table->table[i].key, "peak_", 5) == 0)
            return false;
    return true;
}

static dbo_status set_hardware(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    const dbo_settings settings = dbo_hardware_settings();
    DBO_TRY(dbo_value_table("hardware", "a name or a table of fields", value, err));
    e->has_hardware = true;
    dbo_hardware *hardware = &e->hardware;
    uint32_t sms = hardware->sms;
    DBO_TRY(dbo_settings_set(&settings, hardware, value, err));
    if (hardware->sms != sms && hardware->peak_sms == 0 && keeps_peaks(value))
        hardware->peak_sms = sms; /* 0: nobody has said any before */
    return DBO_OK;
}

void dbo_experiment_forget(dbo_experiment *experiment, const char *key)
{
    if (strcmp(key, "model") == 0)
        dbo_model_spec_init(&experiment->model);
    else
        dbo_hardware_init(&experiment->hardware);
}

dbo_settings dbo_fixed_settings(void)
{
    static const dbo_field fields[] = {
#define FIXED_ROW(member, key, what) \
    {key, DBO_FIELD_DOUBLE, offsetof(dbo_fixed_costs, member), 0, MAX_FIXED_US, false, NULL, what},
        DBO_FIXED_FIELDS(FIXED_ROW)
#undef FIXED_ROW
    };
    return (dbo_settings){"dbo.fixed", fields, sizeof fields / sizeof fields[0], NULL, NULL};
}

/* What dbo.fixed gives replaces all; another table single costs of those that there are. */
static dbo_status set_costs(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    const dbo_settings settings = dbo_fixed_settings();
    DBO_TRY(dbo_value_table("costs", "what dbo.fixed {} gives", value, err));
    bool whole = value->made_by || !e->has_fixed;
    if (!value->made_by && !e->has_fixed && e->turn > 0 && value->count > 0)
        return dbo_fail_key(
            err, DBO_INVALID, value->table[0].key,
            "Give them as a whole, in the script: costs = dbo.fixed { A = 90, ... }.",
            "costs.%s cannot be set alone: costs come from the model here, and "
            "fixed ones would make all others 0",
            value->table[0].key);
    if (whole)
        e->fixed = (dbo_fixed_costs){0};
    e->has_fixed = true;
    return dbo_settings_set(&settings, &e->fixed, value, err);
}

/* ---- batches ---- */

static dbo_status set_batch(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    if (value->kind == DBO_VALUE_TABLE && !value->made_by && e->batch.kind != DBO_WORKLOAD_NONE)
        return dbo_workload_set_keys(&e->batch, value, e->turn, err);
    return dbo_workload_set(&e->batch, "batch", value, e->turn, err);
}

/* A batch, or a list of them. */
static dbo_status set_before(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    bool is_list = value->kind == DBO_VALUE_LIST;
    const dbo_value *items = is_list ? value->list : value;
    uint32_t count = is_list ? value->count : 1;
    if (count > DBO_MAX_BEFORE)
        return dbo_fail_key(err, DBO_LIMIT, "before", NULL, "before has more than %u batches",
                            DBO_MAX_BEFORE);
    for (uint32_t i = 0; i < DBO_MAX_BEFORE; i++)
        dbo_workload_fini(&e->before[i]);
    e->num_before = count;
    for (uint32_t i = 0; i < count; i++)
        DBO_TRY(dbo_workload_set(&e->before[i], "before", &items[i], e->turn, err));
    return DBO_OK;
}

/* ---- routing, fault, schedule, sizes ---- */

static dbo_status set_routing(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    return dbo_routing_spec_set(&e->routing, value, err);
}

/* "none": the run with DBO has none. */
static dbo_status set_fault(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    const char *text = dbo_value_text(value);
    if (!text)
        return dbo_value_mismatch("fault", "the name of a fault", value, err);
    e->has_fault = strcmp(text, "none") != 0;
    return e->has_fault ? dbo_fault_parse(&e->fault, text, err) : DBO_OK;
}

/* Holds it; NULL: the built-in one that config.schedule names. */
static void set_schedule(dbo_experiment *e, dbo_template *schedule)
{
    dbo_template *before = e->schedule;
    e->schedule = dbo_template_retain(schedule);
    dbo_template_release(before);
    if (schedule)
        snprintf(e->config.schedule, sizeof e->config.schedule, "%s", schedule->name);
}

static dbo_status set_sizes(dbo_experiment *e, const dbo_value *value, dbo_error *err)
{
    static const char key[] = "cudagraph_capture_sizes";
    int32_t sizes[DBO_MAX_CAPTURE_SIZES];
    const dbo_value *items = NULL;
    uint32_t count = 0;
    DBO_TRY(dbo_value_list(key, "a list of integers", value, &items, &count, err));
    if (count > DBO_MAX_CAPTURE_SIZES)
        return dbo_fail_key(err, DBO_LIMIT, key, NULL, "%s has more than %d sizes", key,
                            DBO_MAX_CAPTURE_SIZES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = 0;
        DBO_TRY(dbo_value_integer_at(key, i, &items[i], 1, DBO_WORKLOAD_MAX_TOKENS, &size, err));
        sizes[i] = (int32_t)size;
    }
    return dbo_config_set_capture_sizes(&e->config, sizes, count, err);
}

/* ---- the config, flat and in vLLM's groups ---- */

static const struct {
    const char *group, *key;
} grouped_keys[] = {
    {"parallel_config", "enable_dbo"},
    {"parallel_config", "ubatch_size"},
    {"parallel_config", "dbo_decode_token_threshold"},
    {"parallel_config", "dbo_prefill_token_threshold"},
    {"parallel_config", "all2all_backend"},
    {"parallel_config", "data_parallel_size"},
    {"parallel_config", "tensor_parallel_size"},
    {"parallel_config", "enable_expert_parallel"},
    {"compilation_config", "cudagraph_mode"},
    {"compilation_config", "cudagraph_capture_sizes"},
    {"scheduler_config", "max_num_seqs"},
    {"scheduler_config", "max_num_batched_tokens"},
    {"cache_config", "block_size"},
    {"cache_config", "enable_prefix_caching"},
    {"speculative_config", "num_speculative_tokens"},
};
#define NUM_GROUPED (sizeof grouped_keys / sizeof grouped_keys[0])

_Static_assert(NUM_GROUPED <= DBO_MAX_GROUPED, "an experiment remembers each");

/* The row of a key, or NUM_GROUPED. */
static size_t row_of(const char *key)
{
    size_t row = 0;
    while (row < NUM_GROUPED && strcmp(grouped_keys[row].key, key) != 0)
        row++;
    return row;
}

static bool is_group(const char *word)
{
    for (size_t i = 0; i < NUM_GROUPED; i++)
        if (strcmp(grouped_keys[i].group, word) == 0)
            return true;
    return false;
}

static dbo_status check_group(const char *group, const char *key, dbo_error *err)
{
    size_t row = row_of(key);
    if (row < NUM_GROUPED && strcmp(grouped_keys[row].group, group) == 0)
        return DBO_OK;
    if (row < NUM_GROUPED)
        return dbo_fail_key(err, DBO_INVALID, key, NULL, "%s is a key of %s, not of %s", key,
                            grouped_keys[row].group, group);
    const char *keys[NUM_GROUPED + 1] = {NULL};
    for (size_t i = 0, count = 0; i < NUM_GROUPED; i++)
        if (strcmp(grouped_keys[i].group, group) == 0)
            keys[count++] = grouped_keys[i].key;
    return dbo_setting_unknown(&(dbo_settings){.name = group, .extra = keys}, key, err);
}

/* Back ends that exist elsewhere, but whose dispatch and combine cannot be taken apart. */
static dbo_status check_backend(const dbo_value *value, dbo_error *err)
{
    static const char *const whole[] = {"naive", "pplx", "allgather_reducescatter",
                                        "flashinfer_all2allv", "mori"};
    const char *text = dbo_value_text(value);
    for (size_t i = 0; text && i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(text, whole[i]) == 0)
            return dbo_fail_key(err, DBO_INVALID, "all2all_backend",
                                "Use deepep_low_latency, deepep_high_throughput or nixl_ep.",
                                "all2all_backend %s has no dispatch and combine that a second "
                                "ubatch could overlap",
                                text);
    return DBO_OK;
}

static dbo_status set_config(dbo_experiment *e, const char *key, const dbo_value *value,
                             dbo_error *err)
{
    if (strcmp(key, "all2all_backend") == 0)
        DBO_TRY(check_backend(value, err));
    if (strcmp(key, "schedule") == 0) {
        bool is_own = value->made_by && strcmp(value->made_by, "dbo.schedule") == 0;
        if (!is_own && !dbo_value_text(value))
            return dbo_value_mismatch(key, "a name or what dbo.schedule {} gives", value, err);
        set_schedule(e, is_own ? value->object : NULL);
        if (is_own)
            return DBO_OK;
    }
    const dbo_settings settings = dbo_experiment_settings();
    DBO_TRY(dbo_setting_set(&settings, &e->config, key, value, err));
    if (strcmp(key, "data_parallel_size") == 0)
        e->has_data_parallel_size = true;
    if (strcmp(key, "dbo_comm_sms") == 0)
        e->config.dbo_comm_sms_is_set = true;
    return DBO_OK;
}

/* ---- all ---- */

static const struct {
    const char *key;
    dbo_status (*set)(dbo_experiment *e, const dbo_value *value, dbo_error *err);
    bool has_keys; /* errors inside are about "batch.num_tokens" */
} special[] = {
    {"model", set_model, true},   {"hardware", set_hardware, true},
    {"costs", set_costs, true},   {"batch", set_batch, true},
    {"before", set_before, true}, {"routing", set_routing, true},
    {"fault", set_fault, false},  {"cudagraph_capture_sizes", set_sizes, false},
};

static dbo_status set_flat(dbo_experiment *e, const char *key, const dbo_value *value,
                           dbo_error *err)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (strcmp(special[i].key, key) != 0)
            continue;
        dbo_error inner = {0};
        if (special[i].set(e, value, &inner) == DBO_OK)
            return DBO_OK;
        if (special[i].has_keys ? strcmp(inner.key, key) != 0 : inner.key[0] == '\0')
            dbo_error_key(&inner, "%s", key);
        return dbo_error_pass(err, &inner);
    }
    const dbo_settings own = dbo_experiment_own_settings();
    if (dbo_field_find(own.fields, own.num_fields, key))
        return dbo_setting_set(&own, e, key, value, err);
    return set_config(e, key, value, err);
}

/* The value of a config's key as people write it. */
static void value_text(const dbo_config *config, const char *key, char *out, size_t size)
{
    uint32_t count = 0;
    const dbo_field *fields = dbo_config_fields(&count);
    const dbo_field *field = dbo_field_find(fields, count, key);
    if (!field) /* cudagraph_capture_sizes */
        snprintf(out, size, "%u sizes from %d on", config->num_capture_sizes,
                 config->cudagraph_capture_sizes[0]);
    else if (field->type == DBO_FIELD_CHOICE)
        snprintf(out, size, "%s", dbo_field_text(field, config));
    else if (field->type == DBO_FIELD_BOOL)
        snprintf(out, size, "%s", dbo_field_number(field, config) > 0 ? "true" : "false");
    else
        snprintf(out, size, "%.0f", dbo_field_number(field, config));
}

/* A key that was said flat and in its group must be the same in both. */
static dbo_status check_said(const dbo_experiment *e, const dbo_config *before, size_t row,
                             bool grouped, dbo_error *err)
{
    const char *key = grouped_keys[row].key;
    char was[64], is[64];
    value_text(before, key, was, sizeof was);
    value_text(&e->config, key, is, sizeof is);
    if (strcmp(was, is) == 0)
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, key, "Say it once.", "%s is %s, but %s.%s is %s", key,
                        grouped ? was : is, grouped_keys[row].group, key, grouped ? is : was);
}

static dbo_status set_said(dbo_experiment *e, const char *key, const dbo_value *value, bool grouped,
                           dbo_error *err)
{
    size_t row = row_of(key);
    if (strcmp(key, "schedule") == 0)
        e->schedule_said_in = e->turn + 1;
    if (row == NUM_GROUPED)
        return set_flat(e, key, value, err);
    if (e->said[row].in == e->turn + 1 && e->said[row].grouped != grouped) {
        const dbo_config before = e->config;
        DBO_TRY(set_flat(e, key, value, err));
        DBO_TRY(check_said(e, &before, row, grouped, err));
    } else {
        DBO_TRY(set_flat(e, key, value, err));
    }
    e->said[row].in = e->turn + 1;
    e->said[row].grouped = grouped;
    return DBO_OK;
}

uint32_t dbo_experiment_said_in(const dbo_experiment *experiment, const char *key)
{
    size_t row = row_of(key);
    return row < NUM_GROUPED ? experiment->said[row].in : 0;
}

dbo_status dbo_experiment_set(dbo_experiment *experiment, const char *key, const dbo_value *value,
                              dbo_error *err)
{
    if (!is_group(key))
        return set_said(experiment, key, value, false, err);
    DBO_TRY(dbo_value_table(key, "a table of settings", value, err));
    for (uint32_t i = 0; i < value->count; i++) {
        const dbo_member *inner = &value->table[i];
        DBO_TRY(check_group(key, inner->key, err));
        DBO_TRY(set_said(experiment, inner->key, &inner->value, true, err));
    }
    return DBO_OK;
}
