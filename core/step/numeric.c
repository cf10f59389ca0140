/* numeric.c: what a step needs besides its programs: tokens, metadata, a KV cache. */
#include "core/step/numeric.h"

#include "core/base/prng.h"
#include "core/rank/rank_memory.h"

#include <stdlib.h>
#include <string.h>

uint32_t dbo_numeric_token(uint64_t seed, uint64_t request, uint32_t position, uint32_t vocab)
{
    dbo_prng prng;
    dbo_prng_init(&prng, seed ^ request, position);
    return (uint32_t)dbo_prng_below(&prng, vocab);
}

/* ---- memory of the rank ---- */

/* The storage of an ubatch's tensor now, or NULL. */
static void *tensor(const dbo_runner *runner, uint32_t ubatch, dbo_buffer_role role)
{
    const dbo_rank *rank = runner->rank;
    uint16_t buffer = dbo_layer_buffer(ubatch, role);
    if (!rank->seam.mem || buffer >= rank->num_buffers || rank->addresses[buffer] == 0)
        return NULL;
    return rank->seam.mem->ptr(rank->seam.mem_self, rank->addresses[buffer]);
}

static dbo_status find(const dbo_numeric *n, uint32_t ubatch, dbo_buffer_role role, void **out,
                       dbo_error *err)
{
    *out = tensor(n->runner, ubatch, role);
    return *out ? DBO_OK
                : dbo_fail(err, DBO_INTERNAL, NULL, "%s of ubatch %u has no memory",
                           dbo_buffer_role_name(role), ubatch);
}

/* What was "computed before": any values do, if they are the same in every run. */
static dbo_status fill_cache(dbo_numeric *n, dbo_error *err)
{
    const dbo_ref_limits *limits = &n->context.limits;
    size_t values = (size_t)limits->num_layers * limits->num_blocks * limits->block_size *
                    dbo_ref_kv_width(&n->context.model->spec);
    void *cache;
    dbo_prng prng;
    if (n->has_cache)
        return DBO_OK;
    DBO_TRY(find(n, 0, DBO_BUFFER_KV_CACHE, &cache, err));
    dbo_prng_init(&prng, n->seed, 1 + n->context.rank);
    for (size_t i = 0; i < values; i++)
        ((float *)cache)[i] = (float)(2 * dbo_prng_unit(&prng) - 1);
    n->has_cache = true;
    return DBO_OK;
}

/* ---- a step's inputs ---- */

typedef struct inputs {
    const dbo_step_view *step;
    int64_t *slots;     /* (tokens) of the step */
    int32_t *positions; /* likewise */
    int32_t *starts;    /* (num_reqs + 1) */
    int32_t *lens;
} inputs;

static dbo_status check_step(const dbo_numeric *n, const dbo_step_view *step, dbo_error *err)
{
    const dbo_ref_limits *limits = &n->context.limits;
    if ((uint32_t)step->cut->num_tokens_padded > limits->max_tokens ||
        (uint32_t)step->num_reqs > limits->max_requests)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "a step of %d tokens and %d requests; memory is kept for %u and %u",
                        step->cut->num_tokens_padded, step->num_reqs, limits->max_tokens,
                        limits->max_requests);
    for (int32_t r = 0; r < step->num_reqs; r++) {
        const dbo_request *q = &step->requests[r];
        uint32_t blocks = q->blocks ? (uint32_t)q->num_blocks : 0;
        if (blocks > limits->max_columns)
            return dbo_fail(err, DBO_LIMIT, NULL, "request %llu has %u blocks, %u are possible",
                            (unsigned long long)q->id, blocks, limits->max_columns);
        for (uint32_t b = 0; b < blocks; b++)
            if (q->blocks[b] < 0 || (uint32_t)q->blocks[b] >= limits->num_blocks)
                return dbo_fail(err, DBO_LIMIT, NULL, "request %llu has block %d, the cache has %u",
                                (unsigned long long)q->id, q->blocks[b], limits->num_blocks);
    }
    return DBO_OK;
}

static dbo_status make_inputs(const dbo_numeric *n, const dbo_step_view *step, inputs *in,
                              dbo_error *err)
{
    size_t tokens = n->context.limits.max_tokens, rows = (size_t)step->num_reqs + 1;
    *in = (inputs){.step = step,
                   .slots = calloc(tokens + 1, sizeof *in->slots),
                   .positions = calloc(tokens + 1, sizeof *in->positions),
                   .starts = calloc(2 * rows, sizeof *in->starts)};
    DBO_TRY(dbo_need_memory(in->slots && in->positions && in->starts, "a step's tokens", err));
    in->lens = in->starts + rows;
    dbo_batch_fill(step->requests, step->num_reqs, in->starts, in->lens);
    return dbo_batch_fill_slots(step->requests, step->num_reqs,
                                (int32_t)n->context.limits.block_size, in->slots, in->positions,
                                err);
}

static void write_tokens(const dbo_numeric *n, const inputs *in, const dbo_ubatch_metadata *u,
                         int32_t *ids)
{
    const dbo_ref_limits *limits = &n->context.limits;
    uint32_t vocab = n->context.model->spec.vocab;
    memset(ids, 0, limits->max_tokens * sizeof *ids);
    for (int32_t r = u->req_start; r < u->req_start + u->num_reqs; r++)
        for (int32_t t = in->starts[r]; t < in->starts[r + 1]; t++)
            if (t >= u->slot_start && t < u->slot_stop)
                ids[t - u->tok_start] = (int32_t)dbo_numeric_token(
                    n->seed, in->step->requests[r].id, (uint32_t)in->positions[t], vocab);
}

static void write_metadata(const dbo_numeric *n, const inputs *in, const dbo_ubatch_metadata *u,
                           int32_t *base)
{
    const dbo_ref_limits *limits = &n->context.limits;
    const dbo_ref_metadata m = dbo_ref_metadata_map(limits);
    size_t requests = (size_t)u->num_reqs;
    memset(base, 0, m.count * sizeof *base);
    base[m.num_tokens] = u->num_tokens;
    base[m.num_requests] = u->num_reqs;
    base[m.first_token] = u->tok_start;
    for (int32_t t = u->slot_start; t < u->slot_stop; t++) {
        base[m.positions + (uint32_t)(t - u->tok_start)] = in->positions[t];
        base[m.slots + (uint32_t)(t - u->tok_start)] = (int32_t)in->slots[t];
    }
    memcpy(base + m.query_start_loc, u->query_start_loc, (requests + 1) * sizeof *base);
    memcpy(base + m.seq_lens, u->seq_lens, requests * sizeof *base);
    for (size_t r = 0; r < requests; r++) {
        const dbo_request *q = &in->step->requests[(size_t)u->req_start + r];
        if (q->num_blocks > 0)
            memcpy(base + m.block_table + r * limits->max_columns, q->blocks,
                   (size_t)q->num_blocks * sizeof *base);
    }
}

static dbo_status copy_inputs(const dbo_numeric *n, const inputs *in, dbo_error *err)
{
    const dbo_cut *cut = in->step->cut;
    for (uint32_t u = 0; u < cut->num_ubatches; u++) {
        void *ids, *metadata;
        DBO_TRY(find(n, u, DBO_BUFFER_INPUT_IDS, &ids, err));
        DBO_TRY(find(n, u, DBO_BUFFER_METADATA, &metadata, err));
        write_tokens(n, in, &cut->metadata[u], ids);
        write_metadata(n, in, &cut->metadata[u], metadata);
    }
    return DBO_OK;
}

/* ---- the hook ---- */

/* Is there a graph that the step could be replayed from? */
static bool has_graph(const dbo_wrapper *w, const dbo_plan *plan)
{
    const dbo_graph_entry *found = dbo_step_rules_default.find_graph(
        NULL, w->graphs, w->num_graphs, plan->num_tokens_padded, plan->num_ubatches);
    return found && found->num_ubatches == plan->num_ubatches;
}

static dbo_status attach(const dbo_numeric *n, dbo_plan *plan, dbo_error *err)
{
    bool low_latency = n->runner->setup.caps.has_hook;
    DBO_TRY(dbo_ref_attach(&n->context, low_latency, &plan->embed, err));
    DBO_TRY(dbo_ref_attach(&n->context, low_latency, &plan->head, err));
    for (uint32_t k = 0; k < plan->num_kinds; k++)
        DBO_TRY(dbo_ref_attach(&n->context, low_latency, &plan->layers[k], err));
    return DBO_OK;
}

static dbo_status prepare(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err)
{
    dbo_numeric *n = self;
    const dbo_ref_limits *limits = &n->context.limits;
    inputs in = {0};
    DBO_TRY(check_step(n, step, err));
    DBO_TRY(attach(n, plan, err));
    DBO_TRY(dbo_rank_fit(n->runner->rank, &plan->embed, err));
    DBO_TRY(fill_cache(n, err));
    memset(n->context.notes, 0,
           ((size_t)limits->num_layers + 1) * limits->max_tokens * n->context.model->spec.hidden *
               sizeof(float));
    dbo_status status = make_inputs(n, step, &in, err);
    if (status == DBO_OK && n->runner->rules->takes_inputs(n->runner->deployment->rules_self,
                                                           has_graph(&n->runner->wrapper, plan)))
        status = copy_inputs(n, &in, err);
    free(in.slots);
    free(in.positions);
    free(in.starts);
    if (status == DBO_OK && n->then.prepare)
        status = n->then.prepare(n->then.self, step, plan, err);
    return status;
}

/* ---- outside of steps ---- */

static dbo_status check_deployment(const dbo_runner *runner, const dbo_ref_model *model,
                                   dbo_error *err)
{
    const dbo_deployment *d = runner->deployment;
    const char *wrong = NULL;
    if (!d->numbers)
        wrong = "its deployment has no limits for numbers";
    else if (d->numbers->num_layers < d->num_layers || model->num_layers < d->num_layers)
        wrong = "more layers run than have weights";
    else if (d->config->tensor_parallel_size != 1 || d->ep_size != runner->group_size)
        wrong = "the reference has TP 1 and experts on all ranks of the group";
    else if (model->spec.num_experts % runner->group_size != 0)
        wrong = "the ranks do not divide the experts";
    else if (d->schedule)
        wrong = "its schedule is not a built-in one, whose tensors are known";
    else if (!runner->rank->seam.mem)
        wrong = "its machine simulates costs alone";
    return wrong
               ? dbo_fail(err, DBO_UNSUPPORTED, NULL, "this rank cannot compute numbers: %s", wrong)
               : DBO_OK;
}

dbo_status dbo_numeric_init(dbo_numeric *numeric, dbo_runner *runner, const dbo_ref_model *model,
                            uint64_t seed, dbo_error *err)
{
    memset(numeric, 0, sizeof *numeric);
    DBO_TRY(check_deployment(runner, model, err));
    const dbo_ref_limits *limits = runner->deployment->numbers;
    numeric->runner = runner;
    numeric->seed = seed;
    numeric->context = (dbo_ref_context){.model = model,
                                         .limits = *limits,
                                         .rank = runner->rank->id,
                                         .num_ranks = runner->group_size};
    numeric->context.notes = calloc(((size_t)limits->num_layers + 1) * limits->max_tokens,
                                    model->spec.hidden * sizeof(float));
    DBO_TRY(dbo_need_memory(numeric->context.notes, "a numeric rank", err));
    runner->hook = (dbo_plan_hook){.prepare = prepare, .self = numeric};
    return DBO_OK;
}

void dbo_numeric_fini(dbo_numeric *numeric)
{
    if (numeric->runner)
        numeric->runner->hook = (dbo_plan_hook){0};
    free(numeric->context.notes);
    memset(numeric, 0, sizeof *numeric);
}

const float *dbo_numeric_row(const dbo_numeric *numeric, uint32_t token)
{
    const dbo_model_spec *spec = &numeric->context.model->spec;
    const float *output = tensor(numeric->runner, 0, DBO_BUFFER_OUTPUT);
    if (!output || token >= numeric->context.limits.max_tokens)
        return NULL;
    return output + (size_t)token * (spec->hidden + spec->vocab);
}

const float *dbo_numeric_note(const dbo_numeric *numeric, uint32_t layer, uint32_t token)
{
    const dbo_ref_limits *limits = &numeric->context.limits;
    if (layer > limits->num_layers || token >= limits->max_tokens)
        return NULL;
    size_t row = (size_t)layer * limits->max_tokens + token;
    return numeric->context.notes + row * numeric->context.model->spec.hidden;
}
