/* builders.c: each schedule is one function that emits an ubatch's instructions in issue order.
 *
 * Slots of an ubatch u: transfers 2u (dispatch) and 2u+1 (combine), events dbo_ht_event(u, ...).
 * They are the ubatch's own, so any number of ubatches can be in flight at once.
 */
#include "core/builders.h"

#include <string.h>

typedef struct writer {
    dbo_program_builder *builder;
    const dbo_build_options *options;
    const dbo_layer_costs *costs; /* of this ubatch */
    uint32_t ubatch;
} writer;

static uint16_t slot_of(const writer *w, dbo_a2a_direction direction)
{
    return (uint16_t)(2 * w->ubatch + (direction == DBO_A2A_COMBINE));
}

static void emit(const writer *w, dbo_code code, uint32_t stream, uint16_t index)
{
    dbo_instr instr = {.code = (uint8_t)code, .stream = (uint8_t)stream, .index = index};
    dbo_program_emit(w->builder, w->ubatch, instr);
}

/* An op, unless the layer has none of this kind. */
static void op(const writer *w, dbo_op_kind kind, uint32_t stream)
{
    uint16_t kernels = w->costs->kernels[kind];
    if (kernels == 0)
        return;
    uint16_t index = dbo_program_add_op(w->builder, w->ubatch, kind, &w->costs->op[kind], kernels);
    emit(w, DBO_CODE_OP, stream, index);
}

static void record(const writer *w, dbo_ht_event_role role, uint32_t stream)
{
    emit(w, DBO_CODE_RECORD, stream, dbo_ht_event(w->ubatch, role));
}

static void wait(const writer *w, dbo_ht_event_role role, uint32_t stream)
{
    emit(w, DBO_CODE_WAIT, stream, dbo_ht_event(w->ubatch, role));
}

static void post(const writer *w, dbo_a2a_direction direction, uint32_t stream, uint16_t previous)
{
    const dbo_a2a_cost *cost =
        direction == DBO_A2A_DISPATCH ? &w->costs->dispatch : &w->costs->combine;
    uint16_t index =
        dbo_program_add_post(w->builder, w->ubatch, direction, cost, slot_of(w, direction));
    dbo_program_emit(w->builder, w->ubatch,
                     (dbo_instr){.code = DBO_CODE_A2A_POST,
                                 .stream = (uint8_t)stream,
                                 .index = index,
                                 .previous = previous});
}

static void finish(const writer *w, dbo_a2a_direction direction, uint32_t stream)
{
    emit(w, DBO_CODE_A2A_FINISH, stream, slot_of(w, direction));
}

static void wait_counts(const writer *w)
{
    if (w->options->host_sync)
        emit(w, DBO_CODE_HOST_WAIT, DBO_STREAM_COMM, slot_of(w, DBO_A2A_DISPATCH));
}

/* rocm: the back end's workspace is reused by the next ubatch, so the host waits until a transfer
 * has ended. */
static void synchronise(const writer *w, uint32_t stream)
{
    if (!w->options->rocm || w->options->num_ubatches == 1)
        return;
    record(w, DBO_HT_SYNC, stream);
    dbo_program_emit(w->builder, w->ubatch,
                     (dbo_instr){.code = DBO_CODE_HOST_WAIT,
                                 .stream = (uint8_t)stream,
                                 .index = dbo_ht_event(w->ubatch, DBO_HT_SYNC),
                                 .wait_event = 1});
}

/* ---- HT ---- */

/* Takes the previous event, records compute_done, hands the turn over; on resume the comm stream
 * waits for the own compute only. */
static void yield_to_comm(const writer *w)
{
    record(w, DBO_HT_PREVIOUS, DBO_STREAM_COMPUTE);
    record(w, DBO_HT_COMPUTE_DONE, DBO_STREAM_COMPUTE);
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMPUTE, 0);
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMM, 0);
    wait(w, DBO_HT_COMPUTE_DONE, DBO_STREAM_COMM);
}

static void comm_to_compute(const writer *w)
{
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMPUTE, 0);
    wait(w, DBO_HT_COMM_DONE, DBO_STREAM_COMPUTE);
}

static void attention(const writer *w)
{
    op(w, DBO_KIND_A0, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_A1, DBO_STREAM_COMPUTE);
}

static void ht_experts(const writer *w)
{
    op(w, DBO_KIND_H2D, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_MLP, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_REDUCE, DBO_STREAM_COMPUTE);
}

/* The back end runs a transfer on its own stream; the caller's stream waits for its end. */
static void ht_dispatch(const writer *w)
{
    op(w, DBO_KIND_LAYOUT, DBO_STREAM_COMM);
    post(w, DBO_A2A_DISPATCH, DBO_STREAM_COMM, dbo_ht_event(w->ubatch, DBO_HT_PREVIOUS));
    wait_counts(w);
}

static void ht_combine(const writer *w)
{
    yield_to_comm(w);
    post(w, DBO_A2A_COMBINE, DBO_STREAM_COMM, dbo_ht_event(w->ubatch, DBO_HT_PREVIOUS));
    finish(w, DBO_A2A_COMBINE, DBO_STREAM_COMM);
    synchronise(w, DBO_STREAM_COMM);
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMPUTE, 0);
    op(w, DBO_KIND_SHARED, DBO_STREAM_COMPUTE);
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMM, 0);
    op(w, DBO_KIND_COPY, DBO_STREAM_COMM);
    record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMM, 0);
    comm_to_compute(w);
}

static void ht_split(const writer *w)
{
    attention(w);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    yield_to_comm(w);
    ht_dispatch(w);
    finish(w, DBO_A2A_DISPATCH, DBO_STREAM_COMM);
    synchronise(w, DBO_STREAM_COMM);
    record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
    comm_to_compute(w);
    ht_experts(w);
    ht_combine(w);
}

/* Runs the pending hook; if `owner`'s dispatch is in it, compute waits for that. */
static void ht_run_hook(const writer *w, bool pending, uint32_t owner)
{
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMM, 0);
    if (pending)
        emit(w, DBO_CODE_WAIT, DBO_STREAM_COMPUTE, dbo_ht_event(owner, DBO_HT_COMM_DONE));
}

/* A pending hook is run before the own dispatch and before the own combine, as in LL. Ubatches
 * dispatch one after the other, so the first kind finds that of the ubatch before, and the last
 * ubatch's is found by ubatch 0 before its combine. */
static void ht_prose(const writer *w)
{
    uint32_t last = w->options->num_ubatches - 1;
    attention(w);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    yield_to_comm(w);
    ht_run_hook(w, w->ubatch > 0, w->ubatch - 1);
    ht_dispatch(w);
    record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
    synchronise(w, DBO_STREAM_COMM);
    emit(w, DBO_CODE_HOOK_SET, DBO_STREAM_COMM, slot_of(w, DBO_A2A_DISPATCH));
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMPUTE, 0);
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMPUTE, 0);
    ht_experts(w);
    ht_run_hook(w, w->ubatch == 0, last);
    ht_combine(w);
}

/* One transfer of the unsplit layer: on the caller's stream, or on the comm stream behind an event
 * of the caller's. */
static void ht_post_unsplit(const writer *w, dbo_a2a_direction direction)
{
    if (!w->options->own_stream) {
        post(w, direction, DBO_STREAM_COMPUTE, DBO_NO_INDEX);
        return;
    }
    record(w, DBO_HT_PREVIOUS, DBO_STREAM_COMPUTE);
    post(w, direction, DBO_STREAM_COMM, dbo_ht_event(w->ubatch, DBO_HT_PREVIOUS));
}

/* Compute waits for its end, wherever it runs. */
static void ht_finish_unsplit(const writer *w, dbo_a2a_direction direction)
{
    uint32_t stream = w->options->own_stream ? DBO_STREAM_COMM : DBO_STREAM_COMPUTE;
    finish(w, direction, stream);
    if (w->options->own_stream) {
        record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
        wait(w, DBO_HT_COMM_DONE, DBO_STREAM_COMPUTE);
    }
    synchronise(w, stream);
}

static void ht_unsplit(const writer *w)
{
    attention(w);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_LAYOUT, DBO_STREAM_COMPUTE);
    ht_post_unsplit(w, DBO_A2A_DISPATCH);
    wait_counts(w);
    ht_finish_unsplit(w, DBO_A2A_DISPATCH);
    ht_experts(w);
    ht_post_unsplit(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_SHARED, DBO_STREAM_COMPUTE);
    ht_finish_unsplit(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_COPY, DBO_STREAM_COMPUTE);
}

/* ---- LL ---- */

static void ll_post(const writer *w, dbo_a2a_direction direction)
{
    post(w, direction, DBO_STREAM_COMPUTE, DBO_NO_INDEX);
}

static void ll_hook_and_yield(const writer *w, dbo_a2a_direction direction)
{
    emit(w, DBO_CODE_HOOK_SET, DBO_STREAM_COMPUTE, slot_of(w, direction));
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMPUTE, 0);
}

static void ll_split(const writer *w)
{
    attention(w);
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMPUTE, 0);
    ll_post(w, DBO_A2A_DISPATCH);
    ll_hook_and_yield(w, DBO_A2A_DISPATCH);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_MLP, DBO_STREAM_COMPUTE);
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMPUTE, 0);
    ll_post(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_SHARED, DBO_STREAM_COMPUTE);
    ll_hook_and_yield(w, DBO_A2A_COMBINE);
}

static void ll_unsplit(const writer *w)
{
    attention(w);
    ll_post(w, DBO_A2A_DISPATCH);
    finish(w, DBO_A2A_DISPATCH, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_MLP, DBO_STREAM_COMPUTE);
    ll_post(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_SHARED, DBO_STREAM_COMPUTE);
    finish(w, DBO_A2A_COMBINE, DBO_STREAM_COMPUTE);
}

/* ---- programs ---- */

typedef void (*write_fn)(const writer *w);

static dbo_status build(const char *name, write_fn write, uint32_t events_each, uint32_t slots_each,
                        const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err)
{
    dbo_program_builder builder;
    dbo_program_builder_init(&builder, name, options->num_ubatches);
    for (uint32_t i = 0; i < options->num_ubatches * events_each; i++)
        dbo_program_add_event(&builder);
    for (uint32_t i = 0; i < options->num_ubatches * slots_each; i++)
        dbo_program_add_handle(&builder);
    for (uint32_t u = 0; u < options->num_ubatches && builder.status == DBO_OK; u++)
        write(&(writer){.builder = &builder, .options = options, .costs = &costs[u], .ubatch = u});
    return dbo_program_builder_finish(&builder, out, err);
}

dbo_status dbo_build_ht(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err)
{
    write_fn write = options->num_ubatches == 1 ? ht_unsplit : ht_split;
    return build("mlp_shared_overlap", write, DBO_HT_EVENT_ROLES, 2, costs, options, out, err);
}

dbo_status dbo_build_ht_prose(const dbo_layer_costs *costs, const dbo_build_options *options,
                              dbo_program *out, dbo_error *err)
{
    write_fn write = options->num_ubatches == 1 ? ht_unsplit : ht_prose;
    return build("seed-prose-ht", write, DBO_HT_EVENT_ROLES, 2, costs, options, out, err);
}

dbo_status dbo_build_ll(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err)
{
    write_fn write = options->num_ubatches == 1 ? ll_unsplit : ll_split;
    return build("mlp_shared_overlap", write, 0, 2, costs, options, out, err);
}

static void dense(const writer *w)
{
    attention(w);
    op(w, DBO_KIND_DENSE, DBO_STREAM_COMPUTE);
}

static void embed(const writer *w)
{
    op(w, DBO_KIND_EMBED, DBO_STREAM_COMPUTE);
}

static void head(const writer *w)
{
    op(w, DBO_KIND_HEAD, DBO_STREAM_COMPUTE);
}

dbo_status dbo_build_dense(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err)
{
    return build("dense", dense, 0, 0, costs, options, out, err);
}

dbo_status dbo_build_embed(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err)
{
    return build("embed", embed, 0, 0, costs, options, out, err);
}

dbo_status dbo_build_head(const dbo_layer_costs *costs, const dbo_build_options *options,
                          dbo_program *out, dbo_error *err)
{
    return build("head", head, 0, 0, costs, options, out, err);
}

dbo_builder_fn dbo_builder_of_name(const char *name, bool low_latency)
{
    if (strcmp(name, "mlp_shared_overlap") == 0)
        return low_latency ? dbo_build_ll : dbo_build_ht;
    if (strcmp(name, "seed-prose-ht") == 0 && !low_latency)
        return dbo_build_ht_prose;
    return NULL;
}
