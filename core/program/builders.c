/* builders.c: each schedule is one function that emits an ubatch's instructions in issue order.
 *
 * Slots of an ubatch u: transfers 2u (dispatch) and 2u+1 (combine), events dbo_ht_event(u, ...).
 * They are the ubatch's own, so any number of ubatches can be in flight at once.
 */
#include "core/program/builders.h"

#include "core/program/layer_writer.h"

#include <string.h>

typedef dbo_writer writer;

static uint16_t slot_of(const writer *w, dbo_a2a_direction direction)
{
    return (uint16_t)(2 * w->ubatch + (direction == DBO_A2A_COMBINE));
}

static void emit(const writer *w, dbo_code code, uint32_t stream, uint16_t index)
{
    dbo_writer_emit(w, code, stream, index);
}

static void op(const writer *w, dbo_op_kind kind, uint32_t stream)
{
    dbo_writer_op(w, kind, stream);
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
    dbo_writer_post(w, direction, stream, previous, slot_of(w, direction));
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

/* ---- memory ---- */

typedef void (*each_fn)(const writer *w, dbo_buffer_role role, uint32_t stream);

/* Does the same to each of some tensors. */
static void each(const writer *w, each_fn fn, uint32_t stream, const uint8_t *roles)
{
    for (; *roles != DBO_BUFFER_NONE; roles++)
        fn(w, (dbo_buffer_role)*roles, stream);
}

#define ROLES(...) ((const uint8_t[]){__VA_ARGS__, DBO_BUFFER_NONE})

static void take(const writer *w, dbo_buffer_role role, uint32_t stream)
{
    dbo_writer_take(w, role, stream);
}

static void drop(const writer *w, dbo_buffer_role role)
{
    dbo_writer_drop(w, role, DBO_STREAM_COMPUTE);
}

static const uint8_t routing[] = {DBO_BUFFER_TOPK_IDS, DBO_BUFFER_TOPK_WEIGHTS, DBO_BUFFER_NONE};
static const uint8_t payload[] = {DBO_BUFFER_TOKENS, DBO_BUFFER_SCALES, DBO_BUFFER_NONE};
static const uint8_t received[] = {DBO_BUFFER_RECV_TOKENS, DBO_BUFFER_RECV_SCALES,
                                   DBO_BUFFER_RECV_IDS,    DBO_BUFFER_RECV_WEIGHTS,
                                   DBO_BUFFER_HANDLE,      DBO_BUFFER_NONE};
static const uint8_t narrowed[] = {DBO_BUFFER_EXPERT_IN, DBO_BUFFER_EXPERT_SCALES, DBO_BUFFER_NONE};
/* What the kernel's and the layer's frames hold until the layer ends. */
static const uint8_t held[] = {
    DBO_BUFFER_COMBINED, DBO_BUFFER_RECV_SCALES, DBO_BUFFER_RECV_IDS,     DBO_BUFFER_RECV_WEIGHTS,
    DBO_BUFFER_HANDLE,   DBO_BUFFER_COUNTS,      DBO_BUFFER_EXPERT_IN,    DBO_BUFFER_EXPERT_SCALES,
    DBO_BUFFER_FFN_IN,   DBO_BUFFER_TOPK_IDS,    DBO_BUFFER_TOPK_WEIGHTS, DBO_BUFFER_SHARED_OUT,
    DBO_BUFFER_NONE};

/* The rows to dispatch. */
static uint8_t sent(const writer *w)
{
    return (uint8_t)dbo_writer_actual(w, DBO_BUFFER_TOKENS);
}

static bool narrows_late(const writer *w)
{
    return dbo_writer_has(w, DBO_BUFFER_EXPERT_IN);
}

/* The end of the layer, or of the kernel that holds the received rows. */
static void drop_held(const writer *w)
{
    if (!narrows_late(w))
        drop(w, DBO_BUFFER_RECV_TOKENS);
    each(w, dbo_writer_drop, DBO_STREAM_COMPUTE, held);
}

/* DBO's own announcements. */
static void share(const writer *w, const uint8_t *roles)
{
    if (w->options->record_stream)
        each(w, dbo_writer_share, DBO_STREAM_COMM, roles);
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

/* A layer's input is dropped once the attention's output has taken its name; the kernel's output is
 * made before the kernel's first step. */
static void attention(const writer *w)
{
    take(w, DBO_BUFFER_ATTN, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_A0, DBO_STREAM_COMPUTE);
    take(w, DBO_BUFFER_FFN_IN, DBO_STREAM_COMPUTE);
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, routing);
    op(w, DBO_KIND_A1, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_ALL_REDUCE, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_ATTN);
    drop(w, DBO_BUFFER_HIDDEN);
    take(w, DBO_BUFFER_HIDDEN, DBO_STREAM_COMPUTE);
}

static void shared_expert(const writer *w)
{
    take(w, DBO_BUFFER_SHARED_MID, DBO_STREAM_COMPUTE);
    take(w, DBO_BUFFER_SHARED_OUT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_SHARED, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_SHARED_MID);
}

/* Quantises received rows, which are dropped then: whoever gets their block next must wait for the
 * compute stream, so that is announced. */
static void quantise_received(const writer *w, bool other_pool)
{
    if (!narrows_late(w))
        return;
    if (other_pool && w->options->record_stream)
        dbo_writer_share(w, DBO_BUFFER_RECV_TOKENS, DBO_STREAM_COMPUTE);
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, narrowed);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_RECV_TOKENS);
}

/* QUANT before the dispatch, unless it works on received rows. */
static void ht_quantise(const writer *w)
{
    if (w->quant_late)
        return;
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, payload);
    op(w, DBO_KIND_QUANT, DBO_STREAM_COMPUTE);
}

/* The experts' own output stays in their workspace where a reduce follows. */
static void ht_experts(const writer *w, bool other_pool)
{
    bool reduces = w->costs->kernels[DBO_KIND_REDUCE] > 0;
    take(w, DBO_BUFFER_COUNTS, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_H2D, DBO_STREAM_COMPUTE);
    quantise_received(w, other_pool);
    if (!reduces)
        take(w, DBO_BUFFER_EXPERT_OUT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_MLP, DBO_STREAM_COMPUTE);
    if (reduces)
        take(w, DBO_BUFFER_EXPERT_OUT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_REDUCE, DBO_STREAM_COMPUTE);
}

/* The back end runs a transfer on its own stream; the caller's stream waits for its end. What it
 * brings is allocated on the current stream, comm. */
static void ht_dispatch(const writer *w)
{
    share(w, ROLES(sent(w), DBO_BUFFER_SCALES));
    share(w, routing);
    take(w, DBO_BUFFER_LAYOUT, DBO_STREAM_COMM);
    if (w->costs->kernels[DBO_KIND_LAYOUT] != 0)
        wait(w, DBO_HT_PREVIOUS, DBO_STREAM_COMM); /* the layout takes the previous event, too */
    op(w, DBO_KIND_LAYOUT, DBO_STREAM_COMM);
    each(w, dbo_writer_take, DBO_STREAM_COMM, received);
    post(w, DBO_A2A_DISPATCH, DBO_STREAM_COMM, dbo_ht_event(w->ubatch, DBO_HT_PREVIOUS));
    dbo_writer_drop(w, DBO_BUFFER_LAYOUT, DBO_STREAM_COMM);
    wait_counts(w);
}

static void ht_combine(const writer *w)
{
    yield_to_comm(w);
    share(w, ROLES(DBO_BUFFER_EXPERT_OUT));
    take(w, DBO_BUFFER_COMBINED, DBO_STREAM_COMM);
    post(w, DBO_A2A_COMBINE, DBO_STREAM_COMM, dbo_ht_event(w->ubatch, DBO_HT_PREVIOUS));
    finish(w, DBO_A2A_COMBINE, DBO_STREAM_COMM);
    synchronise(w, DBO_STREAM_COMM);
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMPUTE, 0);
    drop(w, DBO_BUFFER_EXPERT_OUT);
    shared_expert(w);
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMM, 0);
    op(w, DBO_KIND_COPY, DBO_STREAM_COMM);
    record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMM, 0);
    comm_to_compute(w);
    op(w, DBO_KIND_ALL_GATHER, DBO_STREAM_COMPUTE);
    drop_held(w);
}

static void ht_split(const writer *w)
{
    attention(w);
    ht_quantise(w);
    yield_to_comm(w);
    ht_dispatch(w);
    finish(w, DBO_A2A_DISPATCH, DBO_STREAM_COMM);
    synchronise(w, DBO_STREAM_COMM);
    record(w, DBO_HT_COMM_DONE, DBO_STREAM_COMM);
    comm_to_compute(w);
    each(w, dbo_writer_drop, DBO_STREAM_COMPUTE, payload);
    ht_experts(w, true);
    ht_combine(w);
}

/* Runs the pending hook; if `owner`'s dispatch is in it, compute waits for that. The event comes
 * after the receive: before it, nothing says that the rows are there. */
static void ht_run_hook(const writer *w, bool pending, uint32_t owner)
{
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMM, 0);
    if (!pending)
        return;
    emit(w, DBO_CODE_RECORD, DBO_STREAM_COMM, dbo_ht_event(owner, DBO_HT_COMM_DONE));
    emit(w, DBO_CODE_WAIT, DBO_STREAM_COMPUTE, dbo_ht_event(owner, DBO_HT_COMM_DONE));
}

/* A pending hook is run before the own dispatch and before the own combine, as in LL. Ubatches
 * dispatch one after the other, so the first kind finds that of the ubatch before, and the last
 * ubatch's is found by ubatch 0 before its combine. */
static void ht_prose(const writer *w)
{
    uint32_t last = w->options->num_ubatches - 1;
    attention(w);
    ht_quantise(w);
    yield_to_comm(w);
    ht_run_hook(w, w->ubatch > 0, w->ubatch - 1);
    ht_dispatch(w);
    synchronise(w, DBO_STREAM_COMM);
    emit(w, DBO_CODE_HOOK_SET, DBO_STREAM_COMM, slot_of(w, DBO_A2A_DISPATCH));
    emit(w, DBO_CODE_SET_STREAM, DBO_STREAM_COMPUTE, 0);
    emit(w, DBO_CODE_YIELD, DBO_STREAM_COMPUTE, 0);
    each(w, dbo_writer_drop, DBO_STREAM_COMPUTE, payload);
    ht_experts(w, true);
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

/* Unsplit, a transfer completes on the back end's stream, which announces itself: to what it reads
 * and to what it writes, all of which is the caller's stream's. */
static void ht_share_unsplit(const writer *w, const uint8_t *roles)
{
    if (w->options->own_stream)
        each(w, dbo_writer_share, DBO_STREAM_COMM, roles);
}

static void ht_unsplit(const writer *w)
{
    attention(w);
    ht_quantise(w);
    take(w, DBO_BUFFER_LAYOUT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_LAYOUT, DBO_STREAM_COMPUTE);
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, received);
    ht_post_unsplit(w, DBO_A2A_DISPATCH);
    ht_share_unsplit(w, ROLES(sent(w), DBO_BUFFER_SCALES, DBO_BUFFER_LAYOUT));
    ht_share_unsplit(w, routing);
    ht_share_unsplit(w, received);
    drop(w, DBO_BUFFER_LAYOUT);
    wait_counts(w);
    ht_finish_unsplit(w, DBO_A2A_DISPATCH);
    each(w, dbo_writer_drop, DBO_STREAM_COMPUTE, payload);
    ht_experts(w, false);
    take(w, DBO_BUFFER_COMBINED, DBO_STREAM_COMPUTE);
    ht_post_unsplit(w, DBO_A2A_COMBINE);
    ht_share_unsplit(w, ROLES(DBO_BUFFER_EXPERT_OUT, DBO_BUFFER_COMBINED));
    drop(w, DBO_BUFFER_EXPERT_OUT);
    shared_expert(w);
    ht_finish_unsplit(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_COPY, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_ALL_GATHER, DBO_STREAM_COMPUTE);
    drop_held(w);
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

static void ll_dispatch(const writer *w)
{
    take(w, DBO_BUFFER_COUNTS, DBO_STREAM_COMPUTE);
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, received);
    ll_post(w, DBO_A2A_DISPATCH);
}

static void ll_experts(const writer *w)
{
    quantise_received(w, false);
    take(w, DBO_BUFFER_EXPERT_OUT, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_MLP, DBO_STREAM_COMPUTE);
}

static void ll_split(const writer *w)
{
    attention(w);
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMPUTE, 0);
    ll_dispatch(w);
    ll_hook_and_yield(w, DBO_A2A_DISPATCH);
    ll_experts(w);
    emit(w, DBO_CODE_HOOK_RUN, DBO_STREAM_COMPUTE, 0);
    ll_post(w, DBO_A2A_COMBINE);
    shared_expert(w);
    ll_hook_and_yield(w, DBO_A2A_COMBINE);
    op(w, DBO_KIND_ALL_GATHER, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_EXPERT_OUT);
    drop_held(w);
}

static void ll_unsplit(const writer *w)
{
    attention(w);
    ll_dispatch(w);
    finish(w, DBO_A2A_DISPATCH, DBO_STREAM_COMPUTE);
    ll_experts(w);
    ll_post(w, DBO_A2A_COMBINE);
    shared_expert(w);
    finish(w, DBO_A2A_COMBINE, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_ALL_GATHER, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_EXPERT_OUT);
    drop_held(w);
}

/* ---- no all-to-all ---- */

/* Experts on the rows that are here, or that are gathered; one sum over TP at the end. */
static void local(const writer *w)
{
    attention(w);
    ht_quantise(w);
    each(w, dbo_writer_take, DBO_STREAM_COMPUTE, received);
    op(w, DBO_KIND_ALL_GATHER, DBO_STREAM_COMPUTE);
    ht_experts(w, false);
    each(w, dbo_writer_drop, DBO_STREAM_COMPUTE, payload);
    op(w, DBO_KIND_REDUCE_SCATTER, DBO_STREAM_COMPUTE);
    shared_expert(w);
    op(w, DBO_KIND_ALL_REDUCE, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_EXPERT_OUT);
    drop_held(w);
}

/* ---- programs ---- */

typedef void (*write_fn)(const writer *w);

/* One kind of program: what each ubatch needs of events and transfers, and where what transfers
 * bring is allocated when the layer is split. */
typedef struct program_kind {
    const char *name;
    write_fn write;
    dbo_layer_form form;
    uint32_t events_each, slots_each, received;
} program_kind;

static dbo_status build(const program_kind *kind, const dbo_layer_costs *costs,
                        const dbo_build_options *options, dbo_program *out, dbo_error *err)
{
    dbo_program_builder builder;
    dbo_program_builder_init(&builder, kind->name, options->num_ubatches);
    for (uint32_t i = 0; i < options->num_ubatches * kind->events_each; i++)
        dbo_program_add_event(&builder);
    for (uint32_t i = 0; i < options->num_ubatches * kind->slots_each; i++)
        dbo_program_add_handle(&builder);
    dbo_writer_add_buffers(&builder, options, costs, kind->received);
    for (uint32_t u = 0; u < options->num_ubatches && builder.status == DBO_OK; u++) {
        writer w;
        dbo_writer_init(&w, &builder, options, &costs[u], u, kind->form);
        kind->write(&w);
    }
    return dbo_program_builder_finish(&builder, out, err);
}

static dbo_status build_ht(const char *name, write_fn split, const dbo_layer_costs *costs,
                           const dbo_build_options *options, dbo_program *out, dbo_error *err)
{
    bool whole = options->num_ubatches == 1;
    const program_kind kind = {.name = name,
                               .write = whole ? ht_unsplit : split,
                               .form = DBO_FORM_HT,
                               .events_each = DBO_HT_EVENT_ROLES,
                               .slots_each = 2,
                               .received = whole ? DBO_STREAM_COMPUTE : DBO_STREAM_COMM};
    return build(&kind, costs, options, out, err);
}

dbo_status dbo_build_ht(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err)
{
    return build_ht("mlp_shared_overlap", ht_split, costs, options, out, err);
}

dbo_status dbo_build_ht_prose(const dbo_layer_costs *costs, const dbo_build_options *options,
                              dbo_program *out, dbo_error *err)
{
    return build_ht("seed-prose-ht", ht_prose, costs, options, out, err);
}

dbo_status dbo_build_ll(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err)
{
    const program_kind kind = {.name = "mlp_shared_overlap",
                               .write = options->num_ubatches == 1 ? ll_unsplit : ll_split,
                               .form = DBO_FORM_LL,
                               .slots_each = 2};
    return build(&kind, costs, options, out, err);
}

dbo_status dbo_build_local(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err)
{
    const program_kind kind = {.name = "no all-to-all", .write = local, .form = DBO_FORM_LOCAL};
    return build(&kind, costs, options, out, err);
}

static void dense(const writer *w)
{
    attention(w);
    take(w, DBO_BUFFER_DENSE_MID, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_DENSE, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_ALL_REDUCE, DBO_STREAM_COMPUTE);
    drop(w, DBO_BUFFER_DENSE_MID);
    drop(w, DBO_BUFFER_FFN_IN);
}

/* Without an EMBED, what the first layer reads comes from outside. */
static void embed(const writer *w)
{
    take(w, DBO_BUFFER_RESIDUAL, DBO_STREAM_COMPUTE);
    take(w, DBO_BUFFER_HIDDEN, DBO_STREAM_COMPUTE);
    op(w, DBO_KIND_EMBED, DBO_STREAM_COMPUTE);
    if (!w->options->memory || w->costs->kernels[DBO_KIND_EMBED] > 0)
        return;
    dbo_program_set_input(w->builder, dbo_layer_buffer(w->ubatch, DBO_BUFFER_RESIDUAL));
    dbo_program_set_input(w->builder, dbo_layer_buffer(w->ubatch, DBO_BUFFER_HIDDEN));
}

dbo_status dbo_build_dense(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err)
{
    const program_kind kind = {.name = "dense", .write = dense, .form = DBO_FORM_DENSE};
    return build(&kind, costs, options, out, err);
}

dbo_status dbo_build_embed(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err)
{
    const program_kind kind = {.name = "embed", .write = embed, .form = DBO_FORM_DENSE};
    return build(&kind, costs, options, out, err);
}

dbo_status dbo_build_head(const dbo_layer_costs *costs, const dbo_build_options *options,
                          dbo_program *out, dbo_error *err)
{
    dbo_program_builder builder;
    dbo_program_builder_init(&builder, "head", 1);
    dbo_writer_add_buffers(&builder, options, costs, DBO_STREAM_COMPUTE);
    writer w;
    dbo_writer_init(&w, &builder, options, costs, 0, DBO_FORM_DENSE);
    take(&w, DBO_BUFFER_LOGITS, DBO_STREAM_COMPUTE);
    op(&w, DBO_KIND_HEAD, DBO_STREAM_COMPUTE);
    if (w.costs->kernels[DBO_KIND_HEAD] > 0)
        dbo_writer_touch(&w, DBO_KIND_HEAD, 0, options->num_ubatches);
    drop(&w, DBO_BUFFER_LOGITS);
    return dbo_program_builder_finish(&builder, out, err);
}

dbo_builder_fn dbo_builder_of_name(const char *name, bool low_latency)
{
    if (strcmp(name, "mlp_shared_overlap") == 0)
        return low_latency ? dbo_build_ll : dbo_build_ht;
    if (strcmp(name, "seed-prose-ht") == 0 && !low_latency)
        return dbo_build_ht_prose;
    return NULL;
}
