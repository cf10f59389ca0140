/* layer_writer.c: instructions, and what each kind of op reads and writes.
 *
 * The table of accesses names the preferred tensor; dbo_writer_actual falls back where the layer
 * has no such step (nothing quantised, nothing copied), and tensors that do not exist are left out.
 * Accesses are whole buffers. Who computes finds the role of an access in its buffer's number.
 */
#include "core/program/layer_writer.h"

#include <string.h>

#define MAX_TOUCHED 8

typedef struct touched {
    uint8_t reads[MAX_TOUCHED], writes[MAX_TOUCHED]; /* roles, DBO_BUFFER_NONE at the end */
} touched;

#define ROLE(name) DBO_BUFFER_##name

/* SHARED adds its output to the residual stream at once. The reference adds it to the routed output
 * before the next norm does so: the same sum, on the same stream. */
static const touched touched_by[DBO_KIND_COUNT] = {
    [DBO_KIND_EMBED] = {{ROLE(INPUT_IDS)}, {ROLE(HIDDEN), ROLE(RESIDUAL)}},
    [DBO_KIND_A0] = {{ROLE(HIDDEN), ROLE(RESIDUAL), ROLE(METADATA)},
                     {ROLE(RESIDUAL), ROLE(ATTN), ROLE(KV_CACHE)}},
    [DBO_KIND_A1] = {{ROLE(ATTN), ROLE(RESIDUAL), ROLE(METADATA), ROLE(KV_CACHE)},
                     {ROLE(RESIDUAL), ROLE(FFN_IN), ROLE(TOPK_IDS), ROLE(TOPK_WEIGHTS)}},
    [DBO_KIND_QUANT] = {{ROLE(FFN_IN)}, {ROLE(TOKENS), ROLE(SCALES)}},
    [DBO_KIND_LAYOUT] = {{ROLE(TOPK_IDS)}, {ROLE(LAYOUT)}},
    [DBO_KIND_DISPATCH] = {{ROLE(TOKENS), ROLE(SCALES), ROLE(TOPK_IDS), ROLE(TOPK_WEIGHTS),
                            ROLE(LAYOUT)},
                           {ROLE(RECV_TOKENS), ROLE(RECV_SCALES), ROLE(RECV_IDS),
                            ROLE(RECV_WEIGHTS), ROLE(HANDLE)}},
    [DBO_KIND_H2D] = {{0}, {ROLE(COUNTS)}},
    [DBO_KIND_MLP] = {{ROLE(EXPERT_IN), ROLE(EXPERT_SCALES), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS),
                       ROLE(COUNTS)},
                      {ROLE(WORKSPACE), ROLE(EXPERT_OUT)}},
    [DBO_KIND_REDUCE] = {{ROLE(WORKSPACE), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS)}, {ROLE(EXPERT_OUT)}},
    [DBO_KIND_COMBINE] = {{ROLE(EXPERT_OUT), ROLE(HANDLE)}, {ROLE(COMBINED)}},
    [DBO_KIND_SHARED] = {{ROLE(FFN_IN), ROLE(RESIDUAL)},
                         {ROLE(SHARED_MID), ROLE(SHARED_OUT), ROLE(RESIDUAL)}},
    [DBO_KIND_COPY] = {{ROLE(COMBINED)}, {ROLE(HIDDEN)}},
    [DBO_KIND_DENSE] = {{ROLE(FFN_IN)}, {ROLE(DENSE_MID), ROLE(HIDDEN)}},
    /* Sums and their parts are one tensor. */
    [DBO_KIND_ALL_REDUCE] = {{ROLE(RESIDUAL)}, {ROLE(RESIDUAL)}},
    [DBO_KIND_ALL_GATHER] = {{ROLE(HIDDEN)}, {ROLE(HIDDEN)}},
    [DBO_KIND_REDUCE_SCATTER] = {{ROLE(EXPERT_OUT)}, {ROLE(HIDDEN)}},
    [DBO_KIND_HEAD] = {{ROLE(HIDDEN), ROLE(RESIDUAL)}, {ROLE(LOGITS), ROLE(OUTPUT)}},
};

static const touched late_quant = {{ROLE(RECV_TOKENS), ROLE(RECV_SCALES)},
                                   {ROLE(EXPERT_IN), ROLE(EXPERT_SCALES)}};
/* LL: the receive counts come with the rows; the combine weights and sums, which HT's REDUCE does
 * before it. */
static const touched ll_dispatch = {
    {ROLE(TOKENS), ROLE(TOPK_IDS)},
    {ROLE(RECV_TOKENS), ROLE(RECV_SCALES), ROLE(COUNTS), ROLE(HANDLE)}};
static const touched ll_combine = {
    {ROLE(EXPERT_OUT), ROLE(HANDLE), ROLE(TOPK_IDS), ROLE(TOPK_WEIGHTS)}, {ROLE(COMBINED)}};
static const touched mlp_then_reduce = {
    {ROLE(EXPERT_IN), ROLE(EXPERT_SCALES), ROLE(RECV_IDS), ROLE(COUNTS)}, {ROLE(WORKSPACE)}};

/* Experts on rows that are here, or gathered into RECV_*. */
static const touched local_quant = {{ROLE(RECV_TOKENS), ROLE(FFN_IN)},
                                    {ROLE(EXPERT_IN), ROLE(EXPERT_SCALES)}};
static const touched local_gather = {
    {ROLE(TOKENS), ROLE(SCALES), ROLE(TOPK_IDS), ROLE(TOPK_WEIGHTS)},
    {ROLE(RECV_TOKENS), ROLE(RECV_SCALES), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS)}};
static const touched local_mlp = {{ROLE(EXPERT_IN), ROLE(EXPERT_SCALES), ROLE(TOKENS), ROLE(SCALES),
                                   ROLE(TOPK_IDS), ROLE(RECV_IDS)},
                                  {ROLE(WORKSPACE)}};
static const touched local_reduce = {
    {ROLE(WORKSPACE), ROLE(TOPK_WEIGHTS), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS)},
    {ROLE(EXPERT_OUT), ROLE(HIDDEN)}};

static const touched *local_touched(dbo_op_kind kind, bool quant_late)
{
    switch (kind) {
    case DBO_KIND_QUANT: return quant_late ? &local_quant : &touched_by[kind];
    case DBO_KIND_ALL_GATHER: return &local_gather;
    case DBO_KIND_MLP: return &local_mlp;
    case DBO_KIND_REDUCE: return &local_reduce;
    default: return &touched_by[kind];
    }
}

/* ---- which tensors there are ---- */

static void leave_out(dbo_writer *w, const uint8_t *roles)
{
    for (; *roles != DBO_BUFFER_NONE; roles++)
        w->sizes.bytes[*roles] = 0;
}

#define LEAVE_OUT(w, ...) leave_out(w, (const uint8_t[]){__VA_ARGS__, DBO_BUFFER_NONE})

void dbo_writer_init(dbo_writer *w, dbo_program_builder *builder, const dbo_build_options *options,
                     const dbo_layer_costs *costs, uint32_t ubatch, dbo_layer_form form)
{
    bool ll = form == DBO_FORM_LL;
    *w = (dbo_writer){.builder = builder,
                      .options = options,
                      .costs = costs,
                      .ubatch = ubatch,
                      .form = form,
                      .quant_late = ll || costs->quant_late,
                      .sizes = costs->sizes};
    bool quant = costs->kernels[DBO_KIND_QUANT] > 0;
    if (!quant || w->quant_late)
        LEAVE_OUT(w, ROLE(TOKENS), ROLE(SCALES));
    if (!quant || !w->quant_late)
        LEAVE_OUT(w, ROLE(EXPERT_IN), ROLE(EXPERT_SCALES));
    if (ll)
        LEAVE_OUT(w, ROLE(LAYOUT), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS), ROLE(COMBINED));
    if (costs->kernels[DBO_KIND_LAYOUT] == 0)
        LEAVE_OUT(w, ROLE(LAYOUT));
    if (costs->kernels[DBO_KIND_COPY] == 0)
        LEAVE_OUT(w, ROLE(COMBINED));
    if (costs->kernels[DBO_KIND_H2D] == 0 && !ll)
        LEAVE_OUT(w, ROLE(COUNTS));
    if (costs->kernels[DBO_KIND_SHARED] == 0)
        LEAVE_OUT(w, ROLE(SHARED_MID), ROLE(SHARED_OUT));
    if (form == DBO_FORM_LOCAL)
        LEAVE_OUT(w, ROLE(LAYOUT), ROLE(HANDLE), ROLE(COUNTS), ROLE(COMBINED));
    if (form == DBO_FORM_LOCAL && costs->kernels[DBO_KIND_ALL_GATHER] == 0)
        LEAVE_OUT(w, ROLE(RECV_TOKENS), ROLE(RECV_SCALES), ROLE(RECV_IDS), ROLE(RECV_WEIGHTS));
    if (form == DBO_FORM_DENSE)
        LEAVE_OUT(w, ROLE(TOPK_IDS), ROLE(TOPK_WEIGHTS));
}

static bool is_received(uint32_t role)
{
    return role == ROLE(LAYOUT) || (role >= ROLE(RECV_TOKENS) && role <= ROLE(HANDLE)) ||
           role == ROLE(COMBINED);
}

/* "hidden1"; without printf, as a program has dozens of names for each ubatch. */
static void name_buffer(char name[40], dbo_buffer_role role, uint32_t ubatch)
{
    const char *text = dbo_buffer_role_name(role);
    size_t length = strlen(text);
    memcpy(name, text, length);
    if (ubatch >= 10)
        name[length++] = (char)('0' + ubatch / 10);
    name[length++] = (char)('0' + ubatch % 10);
    name[length] = '\0';
}

void dbo_writer_add_buffers(dbo_program_builder *builder, const dbo_build_options *options,
                            const dbo_layer_costs *costs, uint32_t received)
{
    if (!options->memory)
        return;
    for (uint32_t u = 0; u < options->num_ubatches && builder->status == DBO_OK; u++)
        for (uint32_t role = 1; role < DBO_BUFFER_ROLES; role++) {
            char name[40];
            uint32_t pool = is_received(role) ? received : DBO_STREAM_COMPUTE;
            uint64_t bytes = costs[u].sizes.bytes[role];
            name_buffer(name, (dbo_buffer_role)role, u);
            uint16_t number = dbo_buffer_role_is_workspace((dbo_buffer_role)role)
                                  ? dbo_program_add_workspace(builder, name, bytes, (uint8_t)pool)
                                  : dbo_program_add_buffer(builder, name, bytes, (uint8_t)pool);
            if (builder->status == DBO_OK)
                builder->program.buffers[number].role = (uint8_t)role;
            if (role >= ROLE(INPUT_IDS) && role <= ROLE(KV_CACHE) && bytes > 0)
                dbo_program_set_input(builder, dbo_layer_buffer(u, (dbo_buffer_role)role));
        }
}

bool dbo_writer_has(const dbo_writer *w, dbo_buffer_role role)
{
    return w->sizes.bytes[role] > 0;
}

dbo_buffer_role dbo_writer_actual(const dbo_writer *w, dbo_buffer_role role)
{
    if (dbo_writer_has(w, role))
        return role;
    switch (role) {
    case ROLE(TOKENS): return ROLE(FFN_IN);
    case ROLE(EXPERT_IN): return ROLE(RECV_TOKENS);
    case ROLE(EXPERT_SCALES): return ROLE(RECV_SCALES);
    case ROLE(COMBINED): return ROLE(HIDDEN);
    default: return role;
    }
}

/* ---- accesses ---- */

static const touched *touched_of(const dbo_writer *w, dbo_op_kind kind, bool low_latency)
{
    if (w->form == DBO_FORM_LOCAL)
        return local_touched(kind, w->quant_late);
    switch (kind) {
    case DBO_KIND_QUANT: return w->quant_late ? &late_quant : &touched_by[kind];
    case DBO_KIND_DISPATCH: return low_latency ? &ll_dispatch : &touched_by[kind];
    case DBO_KIND_COMBINE: return low_latency ? &ll_combine : &touched_by[kind];
    case DBO_KIND_MLP:
        return w->costs->kernels[DBO_KIND_REDUCE] > 0 && !low_latency ? &mlp_then_reduce
                                                                      : &touched_by[kind];
    default: return &touched_by[kind];
    }
}

/* Appends the accesses of a list of roles of one ubatch; returns how many there are then. */
static uint32_t add_accesses(const dbo_writer *w, const uint8_t *roles, uint32_t ubatch,
                             dbo_access *out, uint32_t count)
{
    for (uint32_t i = 0; i < MAX_TOUCHED && roles[i] != DBO_BUFFER_NONE; i++) {
        dbo_buffer_role role = dbo_writer_actual(w, (dbo_buffer_role)roles[i]);
        bool shared = dbo_buffer_role_is_shared(role);
        uint16_t buffer = dbo_layer_buffer(shared ? 0 : ubatch, role);
        uint64_t bytes = w->builder->program.buffers[buffer].bytes;
        if (dbo_writer_has(w, role) || (shared && bytes > 0))
            out[count++] = (dbo_access){.buffer = buffer, .bytes = bytes};
    }
    return count;
}

void dbo_writer_touch(const dbo_writer *w, dbo_op_kind kind, uint16_t index, uint32_t ubatches)
{
    if (!w->options->io || !w->options->memory || w->builder->status != DBO_OK)
        return;
    dbo_access reads[MAX_TOUCHED * DBO_MAX_UBATCHES], writes[MAX_TOUCHED * DBO_MAX_UBATCHES];
    const touched *t = touched_of(w, kind, w->form == DBO_FORM_LL);
    dbo_op_io io = {.reads = reads, .writes = writes};
    for (uint32_t i = 0; i < ubatches; i++) {
        uint32_t ubatch = ubatches > 1 ? i : w->ubatch;
        io.num_reads = add_accesses(w, t->reads, ubatch, reads, io.num_reads);
        if (i == 0)
            io.num_writes = add_accesses(w, t->writes, w->ubatch, writes, 0);
    }
    if (kind == DBO_KIND_DISPATCH || kind == DBO_KIND_COMBINE)
        dbo_program_set_post_io(w->builder, index, &io);
    else
        dbo_program_set_op_io(w->builder, index, &io);
}

/* ---- instructions ---- */

void dbo_writer_emit(const dbo_writer *w, dbo_code code, uint32_t stream, uint16_t index)
{
    dbo_instr instr = {.code = (uint8_t)code, .stream = (uint8_t)stream, .index = index};
    dbo_program_emit(w->builder, w->ubatch, instr);
}

void dbo_writer_op(const dbo_writer *w, dbo_op_kind kind, uint32_t stream)
{
    uint16_t kernels = w->costs->kernels[kind];
    if (kernels == 0)
        return;
    uint16_t index = dbo_program_add_op(w->builder, w->ubatch, kind, &w->costs->op[kind], kernels);
    dbo_writer_touch(w, kind, index, 1);
    dbo_writer_emit(w, DBO_CODE_OP, stream, index);
}

void dbo_writer_post(const dbo_writer *w, dbo_a2a_direction direction, uint32_t stream,
                     uint16_t previous, uint16_t handle)
{
    bool dispatch = direction == DBO_A2A_DISPATCH;
    const dbo_a2a_cost *cost = dispatch ? &w->costs->dispatch : &w->costs->combine;
    uint16_t index = dbo_program_add_post(w->builder, w->ubatch, direction, cost, handle);
    dbo_writer_touch(w, dispatch ? DBO_KIND_DISPATCH : DBO_KIND_COMBINE, index, 1);
    dbo_program_emit(w->builder, w->ubatch,
                     (dbo_instr){.code = DBO_CODE_A2A_POST,
                                 .stream = (uint8_t)stream,
                                 .index = index,
                                 .previous = previous});
}

static void emit_memory(const dbo_writer *w, dbo_code code, dbo_buffer_role role, uint32_t stream)
{
    if (w->options->memory && dbo_writer_has(w, role))
        dbo_writer_emit(w, code, stream, dbo_layer_buffer(w->ubatch, role));
}

void dbo_writer_take(const dbo_writer *w, dbo_buffer_role role, uint32_t stream)
{
    emit_memory(w, DBO_CODE_ALLOC, role, stream);
}

void dbo_writer_drop(const dbo_writer *w, dbo_buffer_role role, uint32_t stream)
{
    emit_memory(w, DBO_CODE_FREE, role, stream);
}

void dbo_writer_share(const dbo_writer *w, dbo_buffer_role role, uint32_t stream)
{
    emit_memory(w, DBO_CODE_RECORD_STREAM, role, stream);
}
