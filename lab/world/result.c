/* result.c: the walk over a result, and the sink that writes JSON (result.h). */
#include "lab/world/result.h"

#include <math.h>
#include <string.h>

typedef const dbo_result_sink *sink;

static void open_group(sink to, const char *key, dbo_group group)
{
    to->open(to->self, key, group);
}

static void close_group(sink to)
{
    to->close(to->self);
}

static void put_none(sink to, const char *key)
{
    to->put(to->self, key, &(dbo_datum){.kind = DBO_DATUM_NONE});
}

static void put_bool(sink to, const char *key, bool value)
{
    to->put(to->self, key, &(dbo_datum){.kind = DBO_DATUM_BOOL, .integer = value});
}

static void put_integer(sink to, const char *key, int64_t value)
{
    to->put(to->self, key, &(dbo_datum){.kind = DBO_DATUM_INTEGER, .integer = value});
}

static void put_text(sink to, const char *key, const char *text)
{
    to->put(to->self, key,
            &(dbo_datum){.kind = text ? DBO_DATUM_TEXT : DBO_DATUM_NONE, .text = text});
}

static void put_quantity(sink to, const char *key, dbo_quantity quantity, dbo_quantity_unit unit,
                         const char *what)
{
    to->put(
        to->self, key,
        &(dbo_datum){.kind = DBO_DATUM_QUANTITY, .quantity = quantity, .unit = unit, .what = what});
}

/* ---- the parts of a result ---- */

static void visit_metrics(sink to, const dbo_metrics *metrics)
{
#define PUT_METRIC(name, unit, what) put_quantity(to, #name, metrics->name, DBO_UNIT_##unit, what);
    DBO_METRIC_MAP(PUT_METRIC)
#undef PUT_METRIC
    open_group(to, "step_parts_us", DBO_GROUP_MEMBERS);
#define PUT_PART(name, what) put_quantity(to, #name, metrics->parts.name, DBO_UNIT_US, what);
    DBO_STEP_PART_MAP(PUT_PART)
#undef PUT_PART
    close_group(to);
}

static void visit_split_cost(sink to, const dbo_split_cost *cost)
{
    if (!cost) {
        put_none(to, "split_cost_us");
        put_none(to, "split_saved_us");
        return;
    }
    open_group(to, "split_cost_us", DBO_GROUP_MEMBERS);
#define PUT_COST(name, what) put_quantity(to, #name, cost->name, DBO_UNIT_US, what);
    DBO_SPLIT_COST_MAP(PUT_COST)
#undef PUT_COST
    close_group(to);
    put_quantity(to, "split_saved_us", cost->saved, DBO_UNIT_US, "saved by splitting");
}

static void visit_decision(sink to, const dbo_vote_result *decision)
{
    open_group(to, "decision", DBO_GROUP_MEMBERS);
    put_bool(to, "should_ubatch", decision->should_ubatch);
    put_text(to, "reason", dbo_vote_reason_name(decision->reason));
    put_text(to, "cudagraph_mode", dbo_graph_mode_name(decision->graph_mode));
    put_integer(to, "num_tokens_padded", decision->num_tokens_padded);
    close_group(to);
}

static void put_range(sink to, const char *key, int32_t start, int32_t stop)
{
    open_group(to, key, DBO_GROUP_ITEMS);
    put_integer(to, NULL, start);
    put_integer(to, NULL, stop);
    close_group(to);
}

static void visit_slices_of(sink to, const dbo_result *result, uint32_t rank)
{
    open_group(to, NULL, DBO_GROUP_BY_UBATCH);
    for (uint32_t i = 0; i < result->num_ubatches; i++) {
        const dbo_ubatch_slice *slice = &result->slices[rank * result->num_ubatches + i];
        const dbo_ubatch_slice *padded = &result->slices_padded[rank * result->num_ubatches + i];
        open_group(to, NULL, DBO_GROUP_MEMBERS);
        put_range(to, "req", slice->req_start, slice->req_stop);
        put_range(to, "tok", slice->tok_start, slice->tok_stop);
        put_range(to, "tok_padded", padded->tok_start, padded->tok_stop);
        close_group(to);
    }
    close_group(to);
}

/* A rank whose slices are those of the one before, as in a large batch of equal ranks. */
static bool repeats(const dbo_result *result, uint32_t rank)
{
    uint32_t n = result->num_ubatches;
    size_t at = (size_t)rank * n, bytes = n * sizeof *result->slices;
    return rank > 0 && memcmp(&result->slices[at], &result->slices[at - n], bytes) == 0 &&
           memcmp(&result->slices_padded[at], &result->slices_padded[at - n], bytes) == 0;
}

static void visit_slices(sink to, const dbo_result *result)
{
    if (!result->slices) {
        put_none(to, "ubatch_slices");
        return;
    }
    open_group(to, "ubatch_slices", DBO_GROUP_BY_RANK);
    for (uint32_t rank = 0; rank < result->num_ranks; rank++) {
        if (to->repeat && repeats(result, rank))
            to->repeat(to->self);
        else
            visit_slices_of(to, result, rank);
    }
    close_group(to);
}

static void put_line(sink to, const char *key, const dbo_notation *notation,
                     void (*print)(const dbo_notation *, dbo_notation_style, dbo_strbuf *),
                     bool exchange)
{
    dbo_strbuf_clear(to->scratch);
    print(notation, (dbo_notation_style){.exchange = exchange}, to->scratch);
    put_text(to, key, dbo_strbuf_text(to->scratch));
}

static void visit_notation(sink to, const dbo_notation *notation)
{
    if (!notation || !to->scratch) {
        put_none(to, "notation");
        return;
    }
    open_group(to, "notation", DBO_GROUP_MEMBERS);
    put_line(to, "comp", notation, dbo_notation_comp, false);
    put_line(to, "comm", notation, dbo_notation_comm, false);
    put_line(to, "order", notation, dbo_notation_order, false);
    if (notation->num_ubatches == 2)
        put_line(to, "order_labels01", notation, dbo_notation_order, true);
    else
        put_none(to, "order_labels01");
    close_group(to);
}

static void visit_memory(sink to, const dbo_memory_use *memory, const dbo_footprint *footprint)
{
    if (!memory) {
        put_none(to, "memory");
        return;
    }
    open_group(to, "memory", DBO_GROUP_MEMBERS);
    put_integer(to, "peak_used_bytes", (int64_t)memory->peak_used_bytes);
    put_integer(to, "peak_reserved_bytes", (int64_t)memory->peak_reserved_bytes);
    put_integer(to, "graph_bytes", (int64_t)memory->graph_bytes);
    put_integer(to, "num_graphs", memory->num_graphs);
    if (footprint) {
        put_integer(to, "weights_bytes", (int64_t)(footprint->weights_bytes + 0.5));
        put_integer(to, "kv_cache_bytes", (int64_t)(footprint->kv_cache_bytes + 0.5));
        put_integer(to, "all2all_bytes", (int64_t)(footprint->buffer_bytes + 0.5));
        put_integer(to, "device_bytes", (int64_t)(footprint->device_bytes + 0.5));
        put_bool(to, "fits", dbo_footprint_fits(footprint));
    }
    close_group(to);
}

static void visit_experiment(sink to, const dbo_experiment *experiment)
{
    open_group(to, "experiment", DBO_GROUP_MEMBERS);
    put_text(to, "name", experiment->name);
    put_text(to, "model", experiment->has_model ? experiment->model.name : NULL);
    put_text(to, "hardware", experiment->has_hardware ? experiment->hardware.name : NULL);
    put_text(to, "schedule", experiment->config.schedule);
    put_integer(to, "layers", experiment->num_layers);
    put_integer(to, "gpus", experiment->num_gpus);
    put_integer(to, "data_parallel_size", experiment->config.data_parallel_size);
    put_integer(to, "ep_size", experiment->ep_size);
    put_integer(to, "seed", experiment->seed);
    put_text(to, "fault",
             experiment->has_fault ? dbo_fault_describe(experiment->fault.id).name : NULL);
    close_group(to);
}

/* A schedule that is not a whole layer is not faster than one that is. */
/* Absent unless split and a whole layer. */
static dbo_quantity speedup_of(const dbo_result *result)
{
    if (result->on && result->experiment->incomplete[0])
        return (dbo_quantity){0};
    return dbo_metrics_speedup(result->off, result->on ? result->on : result->off);
}

/* Of all its tokens. */
static void visit_max_rows(sink to, const dbo_experiment *experiment)
{
    double tokens = 0;
    if (experiment->routings.count == 0) {
        put_none(to, "max_rows");
        return;
    }
    for (uint32_t r = 0; r < experiment->batch.num_ranks; r++)
        tokens += experiment->batch.ranks[r]->num_tokens;
    const dbo_quantity ratio = {
        .present = true,
        .value = dbo_routings_max_rows(&experiment->routings, experiment->ep_size, tokens)};
    put_quantity(to, "max_rows", ratio, DBO_UNIT_TIMES, "rows of the busiest GPU / mean");
}

void dbo_result_visit(const dbo_result *result, const dbo_result_sink *to)
{
    open_group(to, NULL, DBO_GROUP_MEMBERS);
    visit_experiment(to, result->experiment);
    put_integer(to, "rank", result->rank);
    visit_metrics(to, result->on ? result->on : result->off);
    visit_max_rows(to, result->experiment);
    put_quantity(to, "speedup", speedup_of(result), DBO_UNIT_TIMES, "speed-up");
    put_bool(to, "schedule_complete", !result->experiment->incomplete[0]);
    visit_split_cost(to, result->split_cost);
    visit_decision(to, result->decision);
    visit_slices(to, result);
    visit_notation(to, result->notation);
    visit_memory(to, result->on ? result->memory_on : result->memory_off, result->footprint);
    open_group(to, "without_dbo", DBO_GROUP_MEMBERS);
    visit_metrics(to, result->off);
    visit_memory(to, result->memory_off, NULL);
    close_group(to);
    close_group(to);
}

/* ---- JSON ---- */

static void json_open(void *self, const char *key, dbo_group group)
{
    if (group == DBO_GROUP_MEMBERS || group == DBO_GROUP_BY_RANK)
        dbo_json_open(self, key, group == DBO_GROUP_MEMBERS ? '{' : '[');
    else
        dbo_json_open_line(self, key, '[');
}

static void json_close(void *self)
{
    dbo_json_close(self);
}

static void json_put(void *self, const char *key, const dbo_datum *datum)
{
    switch (datum->kind) {
    case DBO_DATUM_BOOL: dbo_json_put_bool(self, key, datum->integer); return;
    case DBO_DATUM_INTEGER: dbo_json_put_int(self, key, datum->integer); return;
    case DBO_DATUM_TEXT: dbo_json_put_string(self, key, datum->text); return;
    case DBO_DATUM_QUANTITY:
        dbo_json_put_double(self, key, datum->quantity.present ? datum->quantity.value : NAN);
        return;
    case DBO_DATUM_NONE: dbo_json_put_null(self, key); return;
    }
}

void dbo_result_json(const dbo_result *result, dbo_json_writer *out)
{
    dbo_strbuf scratch = {0};
    const dbo_result_sink json = {
        .self = out, .open = json_open, .close = json_close, .put = json_put, .scratch = &scratch};
    dbo_result_visit(result, &json);
    if (scratch.failed)
        dbo_json_writer_fail(out, DBO_NO_MEMORY, "out of memory for the notation");
    dbo_strbuf_fini(&scratch);
}
