/* result.c: a run's result as JSON. */
#include "lab/world/result.h"

static void put_quantity(dbo_json_writer *out, const char *key, dbo_quantity quantity)
{
    if (quantity.present)
        dbo_json_member_double(out, key, quantity.value);
    else
        dbo_json_member_null(out, key);
}

static void put_metrics(dbo_json_writer *out, const dbo_metrics *metrics)
{
#define PUT_METRIC(name, what) put_quantity(out, #name, metrics->name);
    DBO_METRIC_MAP(PUT_METRIC)
#undef PUT_METRIC
}

static void put_split_cost(dbo_json_writer *out, const dbo_split_cost *cost)
{
    if (!cost) {
        dbo_json_member_null(out, "split_cost_us");
        return;
    }
    dbo_json_key(out, "split_cost_us");
    dbo_json_open_object(out);
#define PUT_COST(name, what) put_quantity(out, #name, cost->name);
    DBO_SPLIT_COST_MAP(PUT_COST)
#undef PUT_COST
    dbo_json_close(out);
}

static void put_decision(dbo_json_writer *out, const dbo_vote_result *decision)
{
    dbo_json_key(out, "decision");
    dbo_json_open_object(out);
    dbo_json_member_bool(out, "should_ubatch", decision->should_ubatch);
    dbo_json_member_string(out, "reason", dbo_vote_reason_name(decision->reason));
    dbo_json_member_string(out, "cudagraph_mode", dbo_graph_mode_name(decision->graph_mode));
    dbo_json_member_int(out, "num_tokens_padded", decision->num_tokens_padded);
    dbo_json_close(out);
}

static void put_range(dbo_json_writer *out, const char *key, int32_t start, int32_t stop)
{
    const int32_t range[2] = {start, stop};
    dbo_json_member_int32s(out, key, range, 2);
}

static void put_slices(dbo_json_writer *out, const dbo_result *result)
{
    if (!result->slices) {
        dbo_json_member_null(out, "ubatch_slices");
        return;
    }
    dbo_json_key(out, "ubatch_slices");
    dbo_json_open_array(out);
    for (uint32_t rank = 0; rank < result->num_ranks; rank++) {
        dbo_json_open_array_line(out);
        for (uint32_t i = 0; i < result->num_ubatches; i++) {
            const dbo_ubatch_slice *slice = &result->slices[rank * result->num_ubatches + i];
            const dbo_ubatch_slice *padded =
                &result->slices_padded[rank * result->num_ubatches + i];
            dbo_json_open_object(out);
            put_range(out, "req", slice->req_start, slice->req_stop);
            put_range(out, "tok", slice->tok_start, slice->tok_stop);
            put_range(out, "tok_padded", padded->tok_start, padded->tok_stop);
            dbo_json_close(out);
        }
        dbo_json_close(out);
    }
    dbo_json_close(out);
}

static void put_text(dbo_json_writer *out, const char *key, dbo_strbuf *text)
{
    if (text->failed)
        dbo_json_writer_fail(out, DBO_NO_MEMORY, "out of memory for the notation");
    dbo_json_member_string(out, key, dbo_strbuf_text(text));
    dbo_strbuf_clear(text);
}

static void put_notation(dbo_json_writer *out, const dbo_notation *notation)
{
    if (!notation) {
        dbo_json_member_null(out, "notation");
        return;
    }
    const dbo_notation_style real = {0}, documents = {.exchange = true};
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_json_key(out, "notation");
    dbo_json_open_object(out);
    dbo_notation_comp(notation, real, &text);
    put_text(out, "comp", &text);
    dbo_notation_comm(notation, real, &text);
    put_text(out, "comm", &text);
    dbo_notation_order(notation, real, &text);
    put_text(out, "order", &text);
    if (notation->num_ubatches == 2) {
        dbo_notation_order(notation, documents, &text);
        put_text(out, "order_labels01", &text);
    } else {
        dbo_json_member_null(out, "order_labels01");
    }
    dbo_json_close(out);
    dbo_strbuf_fini(&text);
}

static void put_bytes(dbo_json_writer *out, const char *key, double bytes)
{
    dbo_json_member_int(out, key, (int64_t)(bytes + 0.5));
}

static void put_memory(dbo_json_writer *out, const dbo_memory_use *memory,
                       const dbo_footprint *footprint)
{
    if (!memory) {
        dbo_json_member_null(out, "memory");
        return;
    }
    dbo_json_key(out, "memory");
    dbo_json_open_object(out);
    dbo_json_member_int(out, "peak_used_bytes", (int64_t)memory->peak_used_bytes);
    dbo_json_member_int(out, "peak_reserved_bytes", (int64_t)memory->peak_reserved_bytes);
    dbo_json_member_int(out, "graph_bytes", (int64_t)memory->graph_bytes);
    dbo_json_member_int(out, "num_graphs", memory->num_graphs);
    if (footprint) {
        put_bytes(out, "weights_bytes", footprint->weights_bytes);
        put_bytes(out, "kv_cache_bytes", footprint->kv_cache_bytes);
        put_bytes(out, "device_bytes", footprint->device_bytes);
        dbo_json_member_bool(out, "fits", dbo_footprint_fits(footprint));
    }
    dbo_json_close(out);
}

/* A schedule that is not a whole layer is not faster than one that is. */
dbo_quantity dbo_result_speedup(const dbo_result *result)
{
    if (result->on && result->experiment->incomplete[0])
        return (dbo_quantity){0};
    return dbo_metrics_speedup(result->off, result->on ? result->on : result->off);
}

static void put_experiment(dbo_json_writer *out, const dbo_experiment *experiment)
{
    dbo_json_key(out, "experiment");
    dbo_json_open_object(out);
    dbo_json_member_string(out, "name", experiment->name);
    dbo_json_member_string(out, "model", experiment->has_model ? experiment->model.name : NULL);
    dbo_json_member_string(out, "hardware",
                           experiment->has_hardware ? experiment->hardware.name : NULL);
    dbo_json_member_string(out, "schedule", experiment->config.schedule);
    dbo_json_member_int(out, "layers", experiment->num_layers);
    dbo_json_member_int(out, "gpus", experiment->num_gpus);
    dbo_json_member_int(out, "data_parallel_size", experiment->config.data_parallel_size);
    dbo_json_member_int(out, "ep_size", experiment->ep_size);
    dbo_json_member_int(out, "seed", experiment->seed);
    dbo_json_member_string(
        out, "fault", experiment->has_fault ? dbo_fault_describe(experiment->fault.id).name : NULL);
    dbo_json_close(out);
}

void dbo_result_json(const dbo_result *result, dbo_json_writer *out)
{
    const dbo_metrics *decided = result->on ? result->on : result->off;
    dbo_json_open_object(out);
    put_experiment(out, result->experiment);
    dbo_json_member_int(out, "rank", result->rank);
    put_metrics(out, decided);
    put_quantity(out, "speedup", dbo_result_speedup(result));
    dbo_json_member_bool(out, "schedule_complete", !result->experiment->incomplete[0]);
    put_split_cost(out, result->split_cost);
    put_decision(out, result->decision);
    put_slices(out, result);
    put_notation(out, result->notation);
    put_memory(out, result->on ? result->memory_on : result->memory_off, result->footprint);
    dbo_json_key(out, "without_dbo");
    dbo_json_open_object(out);
    put_metrics(out, result->off);
    put_memory(out, result->memory_off, NULL);
    dbo_json_close(out);
    dbo_json_close(out);
}
