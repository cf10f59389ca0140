/* seam_ops.c: every kind of op against the reference (core/ref), on inputs that a real step has.
 *
 * A small model computes a step of two uneven ranks in the simulator, with HT and with LL. Each op
 * of the kind in question is looked at on the way: its inputs are copied before it is issued, the
 * reference works on the copies, and what the machine has made must be the same bits. The first one
 * is kept: other back ends get it alone, in memory of their own, and must come as near as sums in
 * another order do. One that has no kernel for the kind says so.
 *
 * DISPATCH and COMBINE are `ll`, `ht` and `routed`; H2D moves nothing that anybody computes with.
 */
#include "core/rank/kernel.h"
#include "core/seam/tap.h"
#include "core/step/numeric.h"
#include "lab/world/backends.h"
#include "tests/gpu/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, REQUESTS = 3, BLOCKS = 8, BLOCK_TOKENS = 4, LAYERS = 3, MAX_ACCESSES = 16 };

/* An op as it was issued: copies of all that it touches. */
typedef struct kept_op {
    dbo_op op;
    dbo_op_io io;
    dbo_op_cost cost;
    dbo_access accesses[2 * MAX_ACCESSES]; /* reads, then writes */
    void *before[2 * MAX_ACCESSES], *after[MAX_ACCESSES];
} kept_op;

typedef struct watch {
    struct study *study;
    dbo_tap tap;
    dbo_numeric numeric;
    kept_op now;
    bool watching;
} watch;

typedef struct study {
    dbo_op_kind kind;
    dbo_config config;
    dbo_model_spec model;
    dbo_ref_limits limits;
    dbo_ref_model *weights;
    dbo_deployment deployment;
    dbo_request requests[RANKS][REQUESTS];
    int32_t blocks[RANKS * REQUESTS][BLOCKS];
    dbo_request_list lists[RANKS];
    const dbo_request_list *pointers[RANKS];
    watch watches[RANKS];
    uint32_t num_ops;
    kept_op first;
    dbo_error wrong; /* what an after-hook found */
} study;

/* ---- copies ---- */

static void forget(kept_op *k)
{
    for (uint32_t i = 0; i < k->io.num_reads + k->io.num_writes; i++)
        free(k->before[i]);
    for (uint32_t i = 0; i < k->io.num_writes; i++)
        free(k->after[i]);
    memset(k, 0, sizeof *k);
}

static const uint8_t *storage(const watch *w, const dbo_op *op, const dbo_access *access)
{
    const dbo_seam *seam = &w->tap.below;
    const uint8_t *block = seam->mem->ptr(seam->mem_self, op->addresses[access->buffer]);
    return block ? block + access->offset_bytes : NULL;
}

static void *copy_of(const void *bytes, uint64_t count)
{
    void *copy = malloc(count + 1);
    if (copy && count)
        memcpy(copy, bytes, count);
    return copy;
}

/* The op with its inputs, and what the reference makes of them. */
static dbo_status keep(const watch *w, const dbo_op *op, kept_op *k)
{
    const dbo_op_io *io = op->io;
    if (io->num_reads > MAX_ACCESSES || io->num_writes > MAX_ACCESSES)
        return DBO_LIMIT;
    *k = (kept_op){.op = *op, .io = *io, .cost = *op->cost};
    memcpy(k->accesses, io->reads, io->num_reads * sizeof *io->reads);
    memcpy(k->accesses + io->num_reads, io->writes, io->num_writes * sizeof *io->writes);
    for (uint32_t i = 0; i < io->num_reads + io->num_writes; i++) {
        const dbo_access *access = &k->accesses[i];
        const void *bytes = storage(w, op, access);
        k->before[i] = bytes ? copy_of(bytes, access->bytes) : NULL;
        if (!k->before[i])
            return DBO_NO_MEMORY;
    }
    for (uint32_t i = 0; i < io->num_writes; i++) {
        uint32_t at = io->num_reads + i;
        k->after[i] = copy_of(k->before[at], k->accesses[at].bytes);
        if (!k->after[i])
            return DBO_NO_MEMORY;
    }
    io->ref(op, (const void *const *)k->before, k->after);
    return DBO_OK;
}

/* ---- watching a rank's launches ---- */

static dbo_status settle(const watch *w)
{
    const dbo_seam *seam = &w->tap.below;
    dbo_event event;
    DBO_TRY(seam->device->event_create(seam->device_self, &event));
    dbo_status status = DBO_OK;
    for (dbo_stream s = 0; s < 2 && status == DBO_OK; s++) {
        status = seam->device->record(seam->device_self, event, s);
        if (status == DBO_OK)
            status = seam->device->host_wait(seam->device_self, event);
    }
    seam->device->event_destroy(seam->device_self, event);
    return status;
}

static dbo_status before_launch(dbo_tap *tap, dbo_tap_call *call)
{
    watch *w = tap->self;
    const dbo_op *op = call->in;
    w->watching = op->io && op->io->ref && dbo_op_id_kind(op->id) == w->study->kind;
    if (!w->watching)
        return DBO_OK;
    DBO_TRY(settle(w));
    return keep(w, op, &w->now);
}

static void after_launch(dbo_tap *tap, dbo_tap_call *call)
{
    watch *w = tap->self;
    study *s = w->study;
    if (!w->watching)
        return;
    if (call->status == DBO_OK)
        call->status = settle(w);
    for (uint32_t i = 0; i < w->now.io.num_writes && call->status == DBO_OK; i++) {
        const dbo_access *access = &w->now.accesses[w->now.io.num_reads + i];
        if (memcmp(storage(w, call->in, access), w->now.after[i], access->bytes) != 0) {
            rig_wrong(&s->wrong, "op %u of kind %s: output %u is not the reference's", s->num_ops,
                      dbo_op_kind_name(s->kind), i);
            call->status = DBO_INTERNAL;
        }
    }
    if (s->num_ops++ == 0)
        s->first = w->now;
    else
        forget(&w->now);
    memset(&w->now, 0, sizeof w->now);
    w->watching = false;
}

static dbo_status attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    static const dbo_tap_hooks hooks = {.before = {[DBO_TAP_LAUNCH] = before_launch},
                                        .after = {[DBO_TAP_LAUNCH] = after_launch}};
    study *s = self;
    (void)err;
    s->watches[rank].study = s;
    dbo_tap_wrap(&s->watches[rank].tap, &hooks, &s->watches[rank], seam);
    return DBO_OK;
}

/* ---- the model and its step ---- */

static void describe_model(dbo_model_spec *m)
{
    dbo_model_spec_init(m);
    strcpy(m->name, "small");
    m->layers = LAYERS;
    m->hidden = 32;
    m->heads = 4;
    m->vocab = 40;
    m->attention = DBO_ATTENTION_GQA;
    m->kv_heads = 2;
    m->head_dim = 8;
    m->num_experts = 8;
    m->topk = 3;
    m->num_shared = 1;
    m->moe_inter = 12;
    m->dense_inter = 24;
    m->first_k_dense = 1;
    m->kv_dtype = m->activation_dtype = m->combine_dtype = DBO_FP32;
    m->weight_dtype = m->dispatch_dtype = DBO_FP8; /* so that rows are quantised on the way */
}

/* Prompts of 14 and 11 tokens in three and two requests, one with a past. */
static void describe_step(study *s)
{
    static const int32_t scheduled[RANKS][REQUESTS] = {{5, 9, 0}, {6, 3, 2}};
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t q = 0; q < REQUESTS && scheduled[r][q]; q++) {
            int32_t *blocks = s->blocks[r * REQUESTS + q];
            for (uint32_t b = 0; b < BLOCKS; b++)
                blocks[b] = (int32_t)(q * BLOCKS + b);
            s->requests[r][q] = (dbo_request){.id = 100 * r + q,
                                              .num_scheduled = scheduled[r][q],
                                              .num_computed = q == 2 ? 3 : 0,
                                              .blocks = blocks,
                                              .num_blocks = BLOCKS};
            s->lists[r].count = q + 1;
        }
        s->lists[r].requests = s->requests[r];
        s->pointers[r] = &s->lists[r];
    }
}

static dbo_status describe(study *s, bool low_latency, dbo_error *err)
{
    dbo_config_init(&s->config);
    s->config.enable_dbo = s->config.enable_expert_parallel = true;
    s->config.data_parallel_size = RANKS;
    s->config.all2all_backend = low_latency ? DBO_BACKEND_LL : DBO_BACKEND_HT;
    s->config.dbo_decode_token_threshold = s->config.dbo_prefill_token_threshold = 4;
    s->config.cudagraph_mode = DBO_GRAPHS_NONE;
    s->config.block_size = BLOCK_TOKENS;
    describe_model(&s->model);
    describe_step(s);
    s->limits = (dbo_ref_limits){.spec = &s->model,
                                 .num_layers = LAYERS,
                                 .max_tokens = 32,
                                 .max_requests = REQUESTS,
                                 .max_columns = BLOCKS,
                                 .num_blocks = REQUESTS * BLOCKS,
                                 .block_size = BLOCK_TOKENS};
    s->deployment = (dbo_deployment){.config = &s->config,
                                     .model = &s->model,
                                     .numbers = &s->limits,
                                     .num_layers = LAYERS,
                                     .ep_size = RANKS};
    return dbo_config_resolve(&s->config, err);
}

static dbo_status begin(void *self, dbo_world_rank *rank, dbo_error *err)
{
    study *s = self;
    return dbo_numeric_init(&s->watches[rank->id].numeric, &rank->runner, s->weights, 11, err);
}

static dbo_status compute_step(study *s, bool low_latency, dbo_error *err)
{
    dbo_world world;
    DBO_TRY(describe(s, low_latency, err));
    const dbo_world_options options = {
        .machine = {.num_ranks = RANKS, .low_latency = low_latency, .numeric = true},
        .deployment = &s->deployment,
        .attachments = {{.attach = attach, .self = s}}};
    const dbo_world_batches batches = {
        .num_steps = 1, .requests = s->pointers, .begin = begin, .self = s};
    DBO_TRY(dbo_world_init(&world, &options, err));
    dbo_status status = dbo_world_steps(&world, &batches, err);
    for (uint32_t r = 0; r < RANKS; r++)
        dbo_numeric_fini(&s->watches[r].numeric);
    dbo_world_fini(&world);
    if (s->wrong.status != DBO_OK && err)
        *err = s->wrong;
    return s->wrong.status != DBO_OK ? s->wrong.status : status;
}

/* ---- the kept op on another back end ---- */

/* Every buffer that the op names, as it was. */
static dbo_status restore(rig *r, const kept_op *k, uint64_t *addresses, uint32_t count,
                          dbo_error *err)
{
    for (uint32_t i = 0; i < k->io.num_reads + k->io.num_writes; i++) {
        const dbo_access *access = &k->accesses[i];
        uint64_t bytes = 1;
        for (uint32_t j = 0; j < k->io.num_reads + k->io.num_writes; j++)
            if (k->accesses[j].buffer == access->buffer &&
                k->accesses[j].offset_bytes + k->accesses[j].bytes > bytes)
                bytes = k->accesses[j].offset_bytes + k->accesses[j].bytes;
        if (access->buffer >= count)
            return rig_wrong(err, "the op names buffer %u", access->buffer);
        uint64_t *address = &addresses[access->buffer];
        if (!*address)
            RIG_TRY(r->seam->mem->alloc(r->seam->mem_self, bytes, DBO_SPACE_DEVICE, address));
        DBO_TRY(rig_put(r, *address + access->offset_bytes, k->before[i], access->bytes, err));
    }
    return DBO_OK;
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) <= 1e-4f * (1 + fabsf(a) + fabsf(b));
}

/* Outputs of integers must be equal, of floats near: told apart by being valid numbers or not. */
static dbo_status compare(rig *r, const kept_op *k, const uint64_t *addresses, dbo_error *err)
{
    for (uint32_t i = 0; i < k->io.num_writes; i++) {
        const dbo_access *access = &k->accesses[k->io.num_reads + i];
        float *found = malloc(access->bytes + 1);
        if (!found)
            return dbo_fail_memory(err, "an output");
        const float *right = k->after[i];
        dbo_status status =
            rig_get(r, addresses[access->buffer] + access->offset_bytes, found, access->bytes, err);
        for (uint64_t n = 0; n < access->bytes / sizeof *found && status == DBO_OK; n++)
            if (memcmp(&found[n], &right[n], sizeof *found) != 0 && !is_near(found[n], right[n]))
                status = rig_wrong(err, "output %u, number %llu: %g instead of %g", i,
                                   (unsigned long long)n, (double)found[n], (double)right[n]);
        free(found);
        DBO_TRY(status);
    }
    return DBO_OK;
}

static dbo_status run_kept(rig *r, dbo_error *err)
{
    kept_op *k = &((study *)r->arg)->first;
    uint64_t addresses[256] = {0};
    DBO_TRY(restore(r, k, addresses, 256, err));
    k->io.reads = k->accesses;
    k->io.writes = k->accesses + k->io.num_reads;
    k->op.io = &k->io;
    k->op.cost = &k->cost;
    k->op.addresses = addresses;
    dbo_status status = RIG_DEVICE(launch, r->compute, &k->op);
    if (status != DBO_OK)
        dbo_seam_fail(r->seam, status, err);
    if (status == DBO_OK)
        status = rig_sync(r, err);
    if (status == DBO_OK)
        status = compare(r, k, addresses, err);
    for (uint32_t b = 0; b < 256; b++)
        r->seam->mem->free(r->seam->mem_self, addresses[b]);
    return status;
}

/* ---- a kind ---- */

static dbo_status examine(study *s, const test_run *run, dbo_error *err)
{
    describe_model(&s->model);
    s->weights = dbo_ref_model_create(&s->model, LAYERS, 11, err);
    if (!s->weights)
        return err->status;
    for (uint32_t ll = 0; ll < 2; ll++)
        DBO_TRY(compute_step(s, ll, err));
    if (s->num_ops == 0)
        return rig_wrong(err, "no op of kind %s was issued", dbo_op_kind_name(s->kind));
    if (strcmp(run->backend, DBO_BACKEND_SIM) == 0) {
        test_say(&run->reports->line, "%u ops, every bit the reference's", s->num_ops);
        return DBO_OK;
    }
    DBO_TRY(
        rig_run(run, &(rig_options){.low_latency = true, .silent = true, .arg = s}, run_kept, err));
    test_say(&run->reports->line, "near the reference");
    return DBO_OK;
}

dbo_status seam_op(const test_run *run, dbo_error *err)
{
    study *s = calloc(1, sizeof *s);
    if (!s)
        return dbo_fail_memory(err, "a study");
    s->kind = (dbo_op_kind)run->variant;
    dbo_status status = examine(s, run, err);
    forget(&s->first);
    dbo_ref_model_destroy(s->weights);
    free(s);
    return status;
}
