/* ref_ops.c: from an op's accesses to the functions of its family.
 *
 * Everything is found by role; numbers of rows follow from sizes. A tensor that a layer does not
 * have is NULL, and has no rows. Values read from memory are never trusted as indices: in a race
 * they may be anything. */
#include "core/ref/ref_ops.h"

#include "core/ref/ref_attention.h"
#include "core/ref/ref_experts.h"
#include "core/ref/ref_math.h"
#include "core/ref/ref_routes.h"

#include <string.h>

/* ---- tensors of an op ---- */

typedef struct call {
    const dbo_op *op;
    const void *const *reads;
    void *const *writes;
    const dbo_ref_context *context;
    const dbo_ref_model *model;
    const dbo_ref_layer *layer;
    uint32_t hidden;
} call;

static call make_call(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const dbo_ref_context *context = op->io->arg;
    uint32_t layer = dbo_op_id_layer(op->id);
    return (call){.op = op,
                  .reads = reads,
                  .writes = writes,
                  .context = context,
                  .model = context->model,
                  .layer = &context->model->layers[layer],
                  .hidden = context->model->spec.hidden};
}

static const void *input(const call *c, dbo_buffer_role role)
{
    int32_t at = dbo_ref_find(c->op->io->reads, c->op->io->num_reads, role);
    return at < 0 ? NULL : c->reads[at];
}

static void *output(const call *c, dbo_buffer_role role)
{
    int32_t at = dbo_ref_find(c->op->io->writes, c->op->io->num_writes, role);
    return at < 0 ? NULL : c->writes[at];
}

/* Rows of so many bytes each in a tensor that the op reads. */
static uint64_t rows_of(const call *c, dbo_buffer_role role, uint64_t bytes_each)
{
    int32_t at = dbo_ref_find(c->op->io->reads, c->op->io->num_reads, role);
    return at < 0 ? 0 : c->op->io->reads[at].bytes / bytes_each;
}

static uint64_t written_rows(const call *c, dbo_buffer_role role, uint64_t bytes_each)
{
    int32_t at = dbo_ref_find(c->op->io->writes, c->op->io->num_writes, role);
    return at < 0 ? 0 : c->op->io->writes[at].bytes / bytes_each;
}

/* `count` clipped to [0, most]. */
static uint32_t clipped(int32_t count, uint64_t most)
{
    if (count < 0)
        return 0;
    return (uint64_t)count < most ? (uint32_t)count : (uint32_t)most;
}

/* The ubatch's metadata; pointers are NULL where it has no rows. */
typedef struct batch {
    const int32_t *positions, *slots, *query_start_loc, *seq_lens, *block_table;
    uint32_t num_tokens, num_requests, first_token;
} batch;

static batch batch_of(const call *c, uint64_t rows)
{
    const dbo_ref_limits *limits = &c->context->limits;
    const dbo_ref_metadata m = dbo_ref_metadata_map(limits);
    const int32_t *base = input(c, DBO_BUFFER_METADATA);
    if (!base || rows == 0)
        return (batch){0};
    uint64_t most = rows < limits->max_tokens ? rows : limits->max_tokens;
    return (batch){.positions = base + m.positions,
                   .slots = base + m.slots,
                   .query_start_loc = base + m.query_start_loc,
                   .seq_lens = base + m.seq_lens,
                   .block_table = base + m.block_table,
                   .num_tokens = clipped(base[m.num_tokens], most),
                   .num_requests = clipped(base[m.num_requests], limits->max_requests),
                   .first_token = clipped(base[m.first_token], limits->max_tokens)};
}

/* Notes the residual stream of a token. */
static void note(const call *c, uint32_t layer, uint64_t token, const float *row)
{
    const dbo_ref_limits *limits = &c->context->limits;
    if (!c->context->notes || token >= limits->max_tokens)
        return;
    size_t at = (size_t)layer * limits->max_tokens + (size_t)token;
    memcpy(c->context->notes + at * c->hidden, row, c->hidden * sizeof *row);
}

/* ---- ends ---- */

static void run_embed(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const int32_t *ids = input(&c, DBO_BUFFER_INPUT_IDS);
    float *hidden = output(&c, DBO_BUFFER_HIDDEN), *residual = output(&c, DBO_BUFFER_RESIDUAL);
    uint64_t tokens = written_rows(&c, DBO_BUFFER_HIDDEN, 4 * (uint64_t)c.hidden);
    for (uint64_t t = 0; t < tokens && t < c.context->limits.max_tokens; t++) {
        uint32_t id = (uint32_t)ids[t] % c.model->spec.vocab;
        memcpy(hidden + t * c.hidden, c.model->embedding + (size_t)id * c.hidden,
               c.hidden * sizeof *hidden);
        memset(residual + t * c.hidden, 0, c.hidden * sizeof *residual);
    }
}

/* The first row that belongs to an ubatch, wherever its rows are put. */
static uint64_t first_of(const call *c, uint32_t ubatch)
{
    uint64_t first = 0;
    for (uint32_t n = 0; n + 1 < c->op->io->num_reads; n += 2)
        if (dbo_layer_buffer_ubatch(c->op->io->reads[n].buffer) < ubatch)
            first += c->op->io->reads[n].bytes / (4 * (uint64_t)c->hidden);
    return first;
}

/* The rows of the n-th pair of tensors that HEAD reads, from row `first` of the output on; returns
 * how many. */
static uint64_t head_part(const call *c, uint32_t n, uint64_t first)
{
    const dbo_model_spec *s = &c->model->spec;
    const float *hidden = c->reads[n], *residual = c->reads[n + 1];
    float *out = output(c, DBO_BUFFER_OUTPUT), *logits = output(c, DBO_BUFFER_LOGITS);
    uint64_t rows = c->op->io->reads[n].bytes / (4 * (uint64_t)c->hidden);
    uint64_t own = first_of(c, dbo_layer_buffer_ubatch(c->op->io->reads[n].buffer));
    float x[DBO_REF_MAX_HIDDEN];
    for (uint64_t t = 0; t < rows && first + t < c->context->limits.max_tokens; t++) {
        float *row = out + (first + t) * (c->hidden + s->vocab);
        memcpy(x, residual + t * c->hidden, c->hidden * sizeof *x);
        dbo_ref_add(x, hidden + t * c->hidden, c->hidden);
        note(c, c->context->limits.num_layers, own + t, x);
        dbo_ref_rms_norm(x, c->model->norm, c->hidden, row);
        dbo_ref_linear(c->model->head, row, s->vocab, c->hidden, row + c->hidden);
        if (logits)
            memcpy(logits + (first + t) * s->vocab, row + c->hidden, s->vocab * sizeof *row);
    }
    return rows;
}

/* Reads HIDDEN, RESIDUAL of each ubatch, in the order in which rows are put together. */
static void run_head(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    uint64_t first = 0;
    for (uint32_t n = 0; n + 1 < op->io->num_reads; n += 2)
        first += head_part(&c, n, first);
}

/* ---- attention ---- */

/* Where the op's layer begins in KV_CACHE. */
static size_t cache_offset(const call *c)
{
    const dbo_ref_limits *limits = &c->context->limits;
    size_t slots = (size_t)limits->num_blocks * limits->block_size;
    return dbo_op_id_layer(c->op->id) * slots * dbo_ref_kv_width(&c->model->spec);
}

static void run_a0(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const dbo_model_spec *s = &c.model->spec;
    const dbo_ref_limits *limits = &c.context->limits;
    const float *hidden = input(&c, DBO_BUFFER_HIDDEN), *old = input(&c, DBO_BUFFER_RESIDUAL);
    float *residual = output(&c, DBO_BUFFER_RESIDUAL), *attn = output(&c, DBO_BUFFER_ATTN);
    float *cache = (float *)output(&c, DBO_BUFFER_KV_CACHE) + cache_offset(&c);
    uint64_t tokens = rows_of(&c, DBO_BUFFER_HIDDEN, 4 * (uint64_t)c.hidden);
    uint32_t width = dbo_ref_attn_width(s), entry = dbo_ref_kv_width(s);
    const batch b = batch_of(&c, tokens);
    float x[DBO_REF_MAX_HIDDEN];
    for (uint32_t t = 0; t < tokens; t++) {
        float *row = residual + (size_t)t * c.hidden;
        memcpy(row, old + (size_t)t * c.hidden, c.hidden * sizeof *row);
        dbo_ref_add(row, hidden + (size_t)t * c.hidden, c.hidden);
        dbo_ref_rms_norm(row, c.layer->attn_norm, c.hidden, x);
        uint32_t position = t < b.num_tokens ? clipped(b.positions[t], INT32_MAX) : 0;
        dbo_ref_project(c.model, c.layer, x, position, attn + (size_t)t * width);
        if (t >= b.num_tokens)
            continue;
        note(&c, dbo_op_id_layer(op->id), (uint64_t)b.first_token + t, row);
        if (b.slots[t] >= 0 && (uint32_t)b.slots[t] < limits->num_blocks * limits->block_size)
            memcpy(cache + (size_t)b.slots[t] * entry, attn + (size_t)(t + 1) * width - entry,
                   entry * sizeof *cache);
    }
}

/* Adds attention's output of token t, which is of request r, to its row. */
static void attend(const call *c, const batch *b, uint32_t r, uint32_t t, float *row)
{
    const dbo_model_spec *s = &c->model->spec;
    const dbo_ref_limits *limits = &c->context->limits;
    uint32_t layer = dbo_op_id_layer(c->op->id), first = 0;
    uint32_t length = clipped(b->seq_lens[r], (uint64_t)limits->max_columns * limits->block_size);
    int64_t left = (int64_t)b->query_start_loc[r + 1] - t; /* tokens from here to its last */
    if (left < 1 || left > (int64_t)length)
        return;
    uint32_t position = length - (uint32_t)left;
    if (dbo_layer_windowed(s, layer) && position + 1 > s->window)
        first = position + 1 - s->window;
    const float *attn = input(c, DBO_BUFFER_ATTN), *cache = input(c, DBO_BUFFER_KV_CACHE);
    const dbo_ref_cache view = {.entries = cache + cache_offset(c),
                                .blocks = b->block_table + (size_t)r * limits->max_columns,
                                .num_columns = limits->max_columns,
                                .num_blocks = limits->num_blocks,
                                .block_size = limits->block_size};
    float out[DBO_REF_MAX_HIDDEN];
    dbo_ref_attend(c->model, c->layer, &view, attn + (size_t)t * dbo_ref_attn_width(s), first,
                   position, out);
    dbo_ref_add(row, out, c->hidden);
}

/* A real token's experts; a padding row has none. */
static void choose(const call *c, bool real, const float *x, int64_t *ids, float *weights)
{
    if (real) {
        dbo_ref_choose(c->model, c->layer, x, ids, weights);
        return;
    }
    for (uint32_t k = 0; k < c->model->spec.topk; k++) {
        ids[k] = -1;
        weights[k] = 0;
    }
}

static void run_a1(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    uint32_t topk = c.model->spec.topk, r = 0;
    const float *old = input(&c, DBO_BUFFER_RESIDUAL);
    float *residual = output(&c, DBO_BUFFER_RESIDUAL), *ffn = output(&c, DBO_BUFFER_FFN_IN);
    int64_t *ids = output(&c, DBO_BUFFER_TOPK_IDS); /* NULL: a layer without experts */
    float *weights = output(&c, DBO_BUFFER_TOPK_WEIGHTS);
    uint64_t tokens = rows_of(&c, DBO_BUFFER_RESIDUAL, 4 * (uint64_t)c.hidden);
    const batch b = batch_of(&c, tokens);
    for (uint32_t t = 0; t < tokens; t++) {
        float *row = residual + (size_t)t * c.hidden, *x = ffn + (size_t)t * c.hidden;
        while (r + 1 < b.num_requests && b.query_start_loc[r + 1] <= (int32_t)t)
            r++;
        bool real = t < b.num_tokens && r < b.num_requests;
        memcpy(row, old + (size_t)t * c.hidden, c.hidden * sizeof *row);
        if (real)
            attend(&c, &b, r, t, row);
        dbo_ref_rms_norm(row, c.layer->ffn_norm, c.hidden, x);
        if (ids)
            choose(&c, real, x, ids + (size_t)t * topk, weights + (size_t)t * topk);
    }
}

/* ---- around the all-to-all ---- */

static void run_quant(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    if (op->io->num_reads == 0 || op->io->num_writes < 2)
        return; /* no rows here */
    uint32_t groups = (c.hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP;
    const float *rows = reads[0];
    int8_t *narrow = writes[0];
    float *scales = writes[1];
    for (uint64_t r = 0; r < op->io->reads[0].bytes / (4 * (uint64_t)c.hidden); r++)
        dbo_ref_quantise(rows + r * c.hidden, c.hidden, narrow + r * c.hidden, scales + r * groups);
}

/* (T, EP) flags, then int32 tokens of each rank (EP), pairs of each expert (E). */
static void run_layout(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const dbo_model_spec *s = &c.model->spec;
    uint32_t ranks = c.context->num_ranks, local = s->num_experts / ranks;
    const int64_t *ids = input(&c, DBO_BUFFER_TOPK_IDS);
    uint8_t *flags = output(&c, DBO_BUFFER_LAYOUT);
    uint64_t tokens = rows_of(&c, DBO_BUFFER_TOPK_IDS, 8 * (uint64_t)s->topk);
    int32_t counts[2 * DBO_REF_MAX_EXPERTS] = {0}; /* EP is at most E */
    if (!flags)
        return;
    memset(flags, 0, tokens * ranks);
    for (uint64_t pair = 0; pair < tokens * s->topk; pair++) {
        if (ids[pair] < 0 || ids[pair] >= (int64_t)s->num_experts)
            continue;
        uint32_t to = (uint32_t)ids[pair] / local;
        uint8_t *flag = &flags[pair / s->topk * ranks + to];
        counts[to] += *flag == 0;
        *flag = 1;
        counts[ranks + (uint32_t)ids[pair]]++;
    }
    memcpy(flags + tokens * ranks, counts, (ranks + s->num_experts) * sizeof *counts);
}

static void run_copy(const dbo_op *op, const void *const *reads, void *const *writes)
{
    if (op->io->num_reads == 1 && op->io->num_writes == 1)
        memcpy(writes[0], reads[0], op->io->writes[0].bytes);
}

/* ---- experts ---- */

static void run_mlp(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const dbo_model_spec *s = &c.model->spec;
    const void *narrowed = input(&c, DBO_BUFFER_EXPERT_IN); /* or as received */
    const dbo_ref_received in = {
        .model = c.model,
        .layer = c.layer,
        .rank = c.context->rank,
        .num_ranks = c.context->num_ranks,
        .rows = narrowed ? narrowed : input(&c, DBO_BUFFER_RECV_TOKENS),
        .scales = input(&c, narrowed ? DBO_BUFFER_EXPERT_SCALES : DBO_BUFFER_RECV_SCALES)};
    const int64_t *ids = input(&c, DBO_BUFFER_RECV_IDS);
    const int32_t *counts = input(&c, DBO_BUFFER_COUNTS);
    float *pairs = output(&c, DBO_BUFFER_WORKSPACE), *out = output(&c, DBO_BUFFER_EXPERT_OUT);
    uint64_t received = rows_of(&c, DBO_BUFFER_RECV_IDS, 8 * (uint64_t)s->topk);
    if (in.rows && ids && pairs) {
        dbo_ref_experts_ht(&in, ids, received, pairs);
    } else if (in.rows && !ids && counts && out) {
        uint64_t all = written_rows(&c, DBO_BUFFER_EXPERT_OUT, 4 * (uint64_t)c.hidden);
        dbo_ref_experts_ll(&in, counts, all / (s->num_experts / in.num_ranks), out);
    }
}

static void run_reduce(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const float *pairs = input(&c, DBO_BUFFER_WORKSPACE);
    float *out = output(&c, DBO_BUFFER_EXPERT_OUT);
    uint32_t topk = c.model->spec.topk;
    if (pairs && out)
        dbo_ref_reduce(pairs, input(&c, DBO_BUFFER_RECV_IDS), input(&c, DBO_BUFFER_RECV_WEIGHTS),
                       rows_of(&c, DBO_BUFFER_RECV_IDS, 8 * (uint64_t)topk), topk, c.hidden, out);
}

static void run_shared(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const dbo_model_spec *s = &c.model->spec;
    const float *x = input(&c, DBO_BUFFER_FFN_IN), *old = input(&c, DBO_BUFFER_RESIDUAL);
    float *out = output(&c, DBO_BUFFER_SHARED_OUT), *residual = output(&c, DBO_BUFFER_RESIDUAL);
    uint64_t tokens = rows_of(&c, DBO_BUFFER_FFN_IN, 4 * (uint64_t)c.hidden);
    for (uint64_t t = 0; t < tokens; t++) {
        float *row = residual + t * c.hidden;
        dbo_ref_gated(c.layer->shared_gate_up, c.layer->shared_down, c.hidden,
                      s->num_shared * s->moe_inter, x + t * c.hidden, out + t * c.hidden);
        memcpy(row, old + t * c.hidden, c.hidden * sizeof *row);
        dbo_ref_add(row, out + t * c.hidden, c.hidden);
    }
}

static void run_dense(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const call c = make_call(op, reads, writes);
    const float *x = input(&c, DBO_BUFFER_FFN_IN);
    float *out = output(&c, DBO_BUFFER_HIDDEN);
    uint64_t tokens = rows_of(&c, DBO_BUFFER_FFN_IN, 4 * (uint64_t)c.hidden);
    for (uint64_t t = 0; t < tokens; t++)
        dbo_ref_gated(c.layer->dense_gate_up, c.layer->dense_down, c.hidden,
                      c.model->spec.dense_inter, x + t * c.hidden, out + t * c.hidden);
}

/* ---- attaching ---- */

static const dbo_ref_fn references[DBO_KIND_COUNT] = {
    [DBO_KIND_EMBED] = run_embed,   [DBO_KIND_A0] = run_a0,         [DBO_KIND_A1] = run_a1,
    [DBO_KIND_QUANT] = run_quant,   [DBO_KIND_LAYOUT] = run_layout, [DBO_KIND_MLP] = run_mlp,
    [DBO_KIND_REDUCE] = run_reduce, [DBO_KIND_SHARED] = run_shared, [DBO_KIND_COPY] = run_copy,
    [DBO_KIND_DENSE] = run_dense,   [DBO_KIND_HEAD] = run_head,
};

/* To be given more; the list of accesses stays. */
static dbo_op_io *copy_io(dbo_program *program, const dbo_op_io *io)
{
    return dbo_arena_copy(&program->texts, io, sizeof *io);
}

dbo_status dbo_ref_attach(const dbo_ref_context *context, bool low_latency, dbo_program *program,
                          dbo_error *err)
{
    for (uint32_t i = 0; i < program->num_ops; i++) {
        dbo_program_op *op = &program->ops[i];
        uint32_t kind = dbo_op_id_kind(op->id_bits);
        if (!op->io || !references[kind])
            continue;
        dbo_op_io *io = copy_io(program, op->io);
        DBO_TRY(dbo_need_memory(io, "a program", err));
        io->ref = references[kind];
        io->arg = context;
        op->io = io;
    }
    for (uint32_t i = 0; i < program->num_posts; i++) {
        dbo_program_post *post = &program->posts[i];
        if (!post->io)
            continue;
        dbo_op_io *io = copy_io(program, post->io);
        dbo_route *route = dbo_arena_alloc(&program->texts, sizeof *route);
        DBO_TRY(dbo_need_memory(io && route, "a program", err));
        dbo_ref_route(&context->model->spec, context->num_ranks, low_latency,
                      post->direction == DBO_A2A_COMBINE, io, route);
        io->route = route;
        post->io = io;
    }
    return DBO_OK;
}
