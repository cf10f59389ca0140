/* routing_set.c: loads, written or drawn, and the routings of a model's layers (routing_set.h). */
#include "lab/experiment/routing_set.h"

#include "core/base/prng.h"
#include "core/base/real.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 26) /* of all routings of an experiment */
#define MAX_WORK  2e9                 /* steps of making them: seconds */

/* ---- what is written ---- */

static const char *const load_names[] = {"balanced", "zipf", "lognormal", NULL};
static const char *const placement_names[] = {"linear", "eplb", NULL};

dbo_settings dbo_routing_settings(void)
{
    static const char *const extra[] = {"load", NULL};
    static const dbo_field fields[] = {
        {"exponent", DBO_FIELD_DOUBLE, offsetof(dbo_routing_spec, exponent), 0, 8, false, NULL,
         "of a zipf load; 1 if not given"},
        {"sigma", DBO_FIELD_DOUBLE, offsetof(dbo_routing_spec, sigma), 0, 8, false, NULL,
         "of a lognormal load; 1 if not given"},
        {"random", DBO_FIELD_BOOL, offsetof(dbo_routing_spec, random), 0, 1, false, NULL,
         "tokens are drawn, not spread as expected"},
        {"placement", DBO_FIELD_CHOICE, offsetof(dbo_routing_spec, placement), 0, 1, false,
         placement_names, "of experts: linear or eplb"},
        {"redundant_experts", DBO_FIELD_U32, offsetof(dbo_routing_spec, redundant_experts), 0,
         DBO_MAX_REDUNDANT_EXPERTS, false, NULL, "copies of experts"}};
    return (dbo_settings){"the routing", fields, sizeof fields / sizeof fields[0], extra,
                          "keys of a routing"};
}

static dbo_status unknown_load(const dbo_value *value, dbo_error *err)
{
    return dbo_value_mismatch("load", "balanced, zipf, lognormal or a list of counts", value, err);
}

static dbo_status set_named_load(dbo_routing_spec *spec, const dbo_value *value, dbo_error *err)
{
    const char *text = dbo_value_text(value);
    for (uint32_t i = 0; text && load_names[i]; i++)
        if (strcmp(text, load_names[i]) == 0) {
            spec->load = (dbo_load_kind)i;
            return DBO_OK;
        }
    return unknown_load(value, err);
}

/* A row of counts behind those that there are. */
static dbo_status add_row(dbo_routing_spec *spec, const dbo_value *row, dbo_error *err)
{
    if (row->kind != DBO_VALUE_LIST)
        return dbo_value_mismatch("load", "lists of counts, one for each layer", row, err);
    if (spec->num_rows > 0 && row->count != spec->row_length)
        return dbo_fail_key(err, DBO_INVALID, "load", NULL,
                            "load has %u counts in row %u, but %u in the first", row->count,
                            spec->num_rows + 1, spec->row_length);
    spec->row_length = row->count;
    size_t have = (size_t)spec->num_rows * row->count;
    double *counts = realloc(spec->counts, (have + row->count + 1) * sizeof *counts);
    DBO_TRY(dbo_need_memory(counts, "the routing", err));
    spec->counts = counts;
    for (uint32_t i = 0; i < row->count; i++)
        DBO_TRY(dbo_value_number("load", &row->list[i], 0, 1e15, &counts[have + i], err));
    spec->num_rows++;
    return DBO_OK;
}

static dbo_status set_load(dbo_routing_spec *spec, const dbo_value *value, dbo_error *err)
{
    if (value->kind != DBO_VALUE_LIST)
        return set_named_load(spec, value, err);
    if (value->count == 0)
        return dbo_fail_key(err, DBO_INVALID, "load", NULL, "load is an empty list");
    spec->load = DBO_LOAD_COUNTED;
    spec->num_rows = 0;
    if (value->list[0].kind != DBO_VALUE_LIST)
        return add_row(spec, value, err);
    for (uint32_t i = 0; i < value->count; i++)
        DBO_TRY(add_row(spec, &value->list[i], err));
    return DBO_OK;
}

dbo_status dbo_routing_spec_set(dbo_routing_spec *spec, const dbo_value *value, dbo_error *err)
{
    const dbo_settings settings = dbo_routing_settings();
    const char *text = dbo_value_text(value);
    if (text) {
        bool random = strcmp(text, "random") == 0;
        if (!random && strcmp(text, "balanced") != 0)
            return dbo_value_mismatch("routing", "balanced, random or a table", value, err);
        dbo_routing_spec_fini(spec); /* a name replaces the whole */
        dbo_routing_spec_init(spec);
        spec->random = random;
        return DBO_OK;
    }
    DBO_TRY(dbo_value_table("routing", "balanced, random or a table", value, err));
    const dbo_value *load = dbo_value_member(value, "load");
    if (load)
        DBO_TRY(set_load(spec, load, err));
    return dbo_settings_set(&settings, spec, value, err);
}

void dbo_routing_spec_init(dbo_routing_spec *spec)
{
    *spec = (dbo_routing_spec){.exponent = 1, .sigma = 1};
}

void dbo_routing_spec_fini(dbo_routing_spec *spec)
{
    free(spec->counts);
    *spec = (dbo_routing_spec){0};
}

/* ---- loads of a layer ---- */

/* Experts in an order drawn for the layer: the first is its busiest. */
static void shuffle(uint32_t *order, uint32_t count, dbo_prng *prng)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = (uint32_t)dbo_prng_below(prng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static void draw_load(const dbo_routing_spec *spec, uint32_t experts, dbo_prng *prng,
                      uint32_t *order, double *load)
{
    shuffle(order, experts, prng);
    for (uint32_t i = 0; i < experts; i++) {
        double power = spec->load == DBO_LOAD_ZIPF        ? -spec->exponent * dbo_log(i + 1.0)
                       : spec->load == DBO_LOAD_LOGNORMAL ? spec->sigma * dbo_prng_normal(prng)
                                                          : 0;
        load[order[i]] = dbo_exp(power);
    }
}

/* ---- routings ---- */

static uint32_t layers_with_experts(const dbo_routing_group *group)
{
    uint32_t dense = group->model->first_k_dense;
    return group->num_layers > dense ? group->num_layers - dense : 0;
}

static uint32_t count_routings(const dbo_routing_spec *spec, const dbo_routing_group *group)
{
    uint32_t layers = layers_with_experts(group);
    bool is_uniform = spec->load == DBO_LOAD_BALANCED && !spec->random;
    if (group->ep_size < 2 || group->model->num_experts == 0 || layers == 0)
        return 0;
    if (is_uniform)
        return spec->redundant_experts > 0 || group->model->num_experts % group->ep_size != 0 ||
               group->ep_size % group->gpus_per_domain != 0;
    if (spec->load == DBO_LOAD_COUNTED && !spec->random)
        return spec->num_rows < layers ? spec->num_rows : layers;
    return layers;
}

static dbo_status check_counts(const dbo_routing_spec *spec, const dbo_routing_group *group,
                               dbo_error *err)
{
    if (spec->load != DBO_LOAD_COUNTED)
        return DBO_OK;
    if (spec->row_length != group->model->num_experts)
        return dbo_fail(err, DBO_INVALID, NULL, "load has %u counts, but %s has %u experts",
                        spec->row_length, group->model->name, group->model->num_experts);
    uint32_t layers = group->model->layers - group->model->first_k_dense;
    if (spec->num_rows != 1 && spec->num_rows != layers)
        return dbo_fail(err, DBO_INVALID, "Give one row, or one for each of these layers.",
                        "load has %u rows, but %u layers of %s have experts", spec->num_rows,
                        layers, group->model->name);
    return DBO_OK;
}

static dbo_status build_one(const dbo_routing_spec *spec, const dbo_routing_group *group,
                            uint32_t index, double *load, uint32_t *order, dbo_routing **out,
                            dbo_error *err)
{
    const dbo_model_spec *model = group->model;
    dbo_prng prng;
    dbo_prng_init(&prng, group->seed, ((uint64_t)1 << 32) + index);
    if (spec->load == DBO_LOAD_COUNTED)
        memcpy(load, spec->counts + (size_t)(index % spec->num_rows) * model->num_experts,
               model->num_experts * sizeof *load);
    else
        draw_load(spec, model->num_experts, &prng, order, load);
    const dbo_placement_shape shape = {.num_experts = model->num_experts,
                                       .redundant = spec->redundant_experts,
                                       .num_groups = model->num_groups,
                                       .num_ranks = group->ep_size,
                                       .ranks_per_node = group->gpus_per_domain};
    dbo_placement placement;
    DBO_TRY(spec->placement == DBO_PLACEMENT_EPLB
                ? dbo_placement_balance(&shape, load, &placement, err)
                : dbo_placement_linear(&shape, &placement, err));
    const dbo_routing_shape routes = {.placement = &placement,
                                      .load = load,
                                      .topk = model->topk,
                                      .num_groups = model->num_groups,
                                      .topk_groups = model->topk_groups,
                                      .ranks_per_node = group->gpus_per_domain,
                                      .num_ubatches = group->num_ubatches,
                                      .low_latency = group->low_latency,
                                      .draws = spec->random,
                                      .seed = dbo_prng_next(&prng)};
    *out = dbo_routing_create(&routes, err);
    dbo_placement_fini(&placement);
    return *out ? DBO_OK : err ? err->status : DBO_INVALID;
}

dbo_status dbo_routings_build(dbo_routings *out, const dbo_routing_spec *spec,
                              const dbo_routing_group *group, dbo_error *err)
{
    *out = (dbo_routings){0};
    uint32_t count = count_routings(spec, group), experts = group->model->num_experts;
    if (count == 0)
        return DBO_OK;
    DBO_TRY(check_counts(spec, group, err));
    uint64_t values = (uint64_t)group->ep_size * (4 + group->num_ubatches) + 2 * (uint64_t)experts +
                      2 * (uint64_t)spec->redundant_experts;
    if (values * count * sizeof(double) > MAX_BYTES)
        return dbo_fail(err, DBO_LIMIT, "Run fewer layers, or give one row of counts.",
                        "the routing of %u layers to %u GPUs takes more than %llu MiB", count,
                        group->ep_size, (unsigned long long)(MAX_BYTES >> 20));
    double slots = (double)experts + spec->redundant_experts;
    double work = count * slots * group->ep_size * (group->low_latency ? 1 : group->model->topk);
    if (work > MAX_WORK)
        return dbo_fail(err, DBO_LIMIT,
                        "Run fewer layers or GPUs, or have fewer copies of experts.",
                        "the routing of %u layers to %.0f slots on %u GPUs takes too long to work "
                        "out",
                        count, slots, group->ep_size);
    double *load = malloc(experts * sizeof *load);
    uint32_t *order = malloc(experts * sizeof *order);
    out->items = calloc(count, sizeof *out->items);
    dbo_status status =
        dbo_need_memory(load && order && out->items ? load : NULL, "the routing", err);
    for (; out->count < count && status == DBO_OK; out->count += status == DBO_OK)
        status = build_one(spec, group, out->count, load, order, &out->items[out->count], err);
    free(load);
    free(order);
    if (status != DBO_OK)
        dbo_routings_fini(out);
    return status;
}

void dbo_routings_fini(dbo_routings *routings)
{
    for (uint32_t i = 0; i < routings->count; i++)
        dbo_routing_destroy(routings->items[i]);
    free(routings->items);
    *routings = (dbo_routings){0};
}

size_t dbo_routings_bytes(const dbo_routings *routings)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < routings->count; i++)
        bytes += dbo_routing_bytes(routings->items[i]);
    return bytes;
}

double dbo_routings_max_rows(const dbo_routings *routings, uint32_t ep_size, double tokens)
{
    double most = 0;
    for (uint32_t i = 0; i < routings->count; i++) {
        double busiest = 0, all = 0;
        for (uint32_t gpu = 0; gpu < ep_size; gpu++) {
            dbo_rank_traffic traffic;
            const dbo_routing_tokens sent = {.rank = gpu, .all = tokens};
            dbo_routing_of_rank(routings->items[i], &sent, &traffic);
            busiest = traffic.rows > busiest ? traffic.rows : busiest;
            all += traffic.rows;
        }
        double ratio = all > 0 ? busiest * ep_size / all : 1;
        most = ratio > most ? ratio : most;
    }
    return most;
}
