/* numeric_scene.c: from an experiment to a job of numbers. */
#include "lab/check/numeric_scene.h"

#include "lab/experiment/fixed_costs.h"

#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

/* A model of the same form (attention, dense layers, shared expert, formats of rows) that is small
 * enough to compute on `num_ranks` ranks. */
static void small_model(const dbo_model_spec *like, uint32_t num_ranks, dbo_model_spec *out)
{
    bool mla = like->attention == DBO_ATTENTION_MLA;
    dbo_model_spec_init(out);
    strcpy(out->name, "small");
    out->layers = like->layers;
    out->hidden = 32;
    out->heads = 4;
    out->vocab = 64;
    out->attention = mla ? DBO_ATTENTION_MLA : DBO_ATTENTION_GQA;
    out->kv_lora_rank = mla ? 12 : 0;
    out->qk_nope = out->v_head = mla ? 8 : 0;
    out->qk_rope = mla ? 4 : 0;
    out->kv_heads = mla ? 0 : 2;
    out->head_dim = mla ? 0 : 8;
    out->window = like->window > 0 ? 5 : 0;
    out->window_every = like->window_every;
    out->num_experts = num_ranks * (num_ranks < 8 ? (7 + num_ranks) / num_ranks : 1);
    out->topk = like->topk > 0 && like->topk < 4 ? like->topk : 4;
    out->num_shared = like->num_shared > 0 ? 1 : 0;
    out->moe_inter = 12;
    out->dense_inter = 24;
    out->first_k_dense = like->first_k_dense;
    out->weight_dtype = like->weight_dtype == DBO_FP8 ? DBO_FP8 : DBO_FP32;
    out->dispatch_dtype = like->dispatch_dtype == DBO_FP8 ? DBO_FP8 : DBO_FP32;
    out->kv_dtype = out->activation_dtype = out->combine_dtype = DBO_FP32;
}

/* Given durations have no model: one whose tensors are those of the ops that they have. */
static void model_of_fixed(const dbo_experiment *e, uint32_t num_ranks, dbo_model_spec *out)
{
    dbo_model_spec like;
    dbo_model_spec_init(&like);
    like.layers = e->num_layers;
    like.attention = DBO_ATTENTION_GQA;
    like.num_shared = 1;
    bool quantises = e->fixed.quant_us > 0;
    bool early = e->config.all2all_backend == DBO_BACKEND_HT;
    like.weight_dtype = quantises ? DBO_FP8 : DBO_BF16;
    like.dispatch_dtype = quantises && early ? DBO_FP8 : DBO_BF16;
    small_model(&like, num_ranks, out);
}

/* ---- the requests ---- */

typedef struct allotment {
    const dbo_request_list *list;
    uint32_t block_size, num_steps; /* steps that its requests go on for */
    uint32_t num_ranks;             /* that have as many blocks, it may be */
    int32_t next;                   /* first block that nobody has */
} allotment;

static uint32_t blocks_of(const allotment *a, const dbo_request *q)
{
    uint64_t tokens =
        (uint64_t)q->num_computed + (uint64_t)q->num_scheduled * (uint64_t)a->num_steps;
    return (uint32_t)((tokens + a->block_size - 1) / a->block_size);
}

/* The blocks of all requests of a rank, one after the other: those that they name, then new ones.
 */
static dbo_status allot(allotment *a, int32_t **out, dbo_error *err)
{
    uint64_t count = 0, named = 0;
    for (uint32_t r = 0; r < a->list->count; r++) {
        const dbo_request *q = &a->list->requests[r];
        count += blocks_of(a, q);
        for (int32_t b = 0; b < q->num_blocks && q->blocks; b++)
            named = (uint64_t)q->blocks[b] > named ? (uint64_t)q->blocks[b] : named;
    }
    uint64_t needed = count > named ? count : named; /* of the cache, whose last block is named */
    if (needed * a->block_size > DBO_SCENE_MAX_CONTEXT / a->num_ranks)
        return dbo_fail(err, DBO_LIMIT,
                        "Compute with shorter contexts, smaller numbers of blocks, or fewer ranks.",
                        "the requests of each of %u ranks need a cache of %llu blocks of %u "
                        "tokens: too large to compute",
                        a->num_ranks, (unsigned long long)needed, a->block_size);
    int32_t *blocks = malloc((count + 1) * sizeof *blocks);
    DBO_TRY(dbo_need_memory(blocks, "the blocks of requests", err));
    a->next = (int32_t)named + 1;
    *out = blocks;
    for (uint32_t r = 0; r < a->list->count; r++) {
        const dbo_request *q = &a->list->requests[r];
        int32_t own = q->blocks ? q->num_blocks : 0;
        for (int32_t b = 0; b < (int32_t)blocks_of(a, q); b++)
            *blocks++ = b < own ? q->blocks[b] : a->next++;
    }
    return DBO_OK;
}

/* The list as it is in step `step`. */
static dbo_status fill_list(const allotment *a, uint32_t step, const int32_t *blocks,
                            dbo_request_list *out, dbo_error *err)
{
    out->count = a->list->count;
    out->requests = calloc(out->count + (size_t)1, sizeof *out->requests);
    DBO_TRY(dbo_need_memory(out->requests, "requests", err));
    for (uint32_t r = 0; r < out->count; r++) {
        dbo_request *q = &out->requests[r];
        *q = a->list->requests[r];
        q->num_computed += q->num_scheduled * (int32_t)step;
        q->blocks = blocks;
        q->num_blocks = (int32_t)blocks_of(a, &a->list->requests[r]);
        blocks += q->num_blocks;
    }
    return DBO_OK;
}

/* What the ranks run in a step: as the experiment says, or its batch, which goes on. */
static const dbo_workload *batch_of(const dbo_experiment *e, uint32_t step)
{
    return step < e->num_before ? &e->before[step] : &e->batch;
}

static dbo_status check_tokens(const dbo_workload *batch, uint32_t num_ranks, dbo_error *err)
{
    uint64_t tokens = 0;
    for (uint32_t r = 0; r < num_ranks; r++)
        for (uint32_t i = 0; i < batch->ranks[r]->count; i++)
            tokens += (uint64_t)batch->ranks[r]->requests[i].num_scheduled;
    if (tokens > DBO_SCENE_MAX_TOKENS)
        return dbo_fail(err, DBO_LIMIT, "Compute with fewer ranks or tokens.",
                        "a step of %llu tokens on %u ranks is too large to compute",
                        (unsigned long long)tokens, num_ranks);
    return DBO_OK;
}

/* The lists of one rank: of all steps if its batch goes on, else of step `first` alone. */
static dbo_status fill_rank(dbo_numeric_scene *s, const dbo_workload *batch, uint32_t rank,
                            uint32_t first, uint32_t steps, dbo_error *err)
{
    uint32_t num_ranks = s->config.data_parallel_size;
    size_t at = (size_t)first * num_ranks + rank;
    allotment a = {.list = batch->ranks[rank],
                   .block_size = s->config.block_size,
                   .num_steps = steps,
                   .num_ranks = num_ranks};
    DBO_TRY(allot(&a, &s->blocks[at], err));
    for (uint32_t step = 0; step < steps; step++, at += num_ranks) {
        s->pointers[at] = &s->lists[at];
        DBO_TRY(
            fill_list(&a, step, s->blocks[(size_t)first * num_ranks + rank], &s->lists[at], err));
    }
    return DBO_OK;
}

static dbo_status fill_requests(dbo_numeric_scene *s, const dbo_experiment *e, dbo_error *err)
{
    uint32_t num_ranks = s->config.data_parallel_size;
    bool goes_on = e->num_before == 0;
    uint32_t parts = goes_on ? 1 : s->job.num_steps, steps = goes_on ? s->job.num_steps : 1;
    size_t lists = (size_t)s->job.num_steps * num_ranks + 1;
    s->lists = calloc(lists, sizeof *s->lists);
    s->pointers = calloc(lists, sizeof(dbo_request_list *));
    s->blocks = calloc(lists, sizeof *s->blocks);
    DBO_TRY(dbo_need_memory(s->lists && s->pointers && s->blocks, "requests", err));
    for (uint32_t part = 0; part < parts; part++) {
        DBO_TRY(check_tokens(batch_of(e, part), num_ranks, err));
        for (uint32_t r = 0; r < num_ranks; r++)
            DBO_TRY(fill_rank(s, batch_of(e, part), r, part, steps, err));
    }
    s->job.requests = s->pointers;
    return DBO_OK;
}

/* ---- all together ---- */

static dbo_status check(const dbo_experiment *e, dbo_error *err)
{
    const char *wrong = NULL;
    if (e->config.tensor_parallel_size != 1)
        wrong = "TP is larger than 1";
    else if (e->ep_size != e->config.data_parallel_size)
        wrong = "experts are not spread over all ranks";
    else if (e->schedule)
        wrong = "the schedule is a script's, whose tensors are not known";
    else if (e->ep_size > DBO_REF_MAX_EXPERTS)
        wrong = "there are too many ranks";
    return wrong ? dbo_fail(err, DBO_UNSUPPORTED, NULL, "%s", wrong) : DBO_OK;
}

/* Dense layers and a few with experts: more show nothing else. */
static uint32_t few_layers(const dbo_experiment *e)
{
    uint32_t most = (e->has_fixed ? 0 : e->model.first_k_dense) + 3;
    return e->num_layers < most ? e->num_layers : most;
}

static void set_costs(dbo_numeric_scene *s, const dbo_experiment *e)
{
    uint32_t num_ranks = s->config.data_parallel_size;
    dbo_experiment_machine(e, &s->hardware);
    if (e->has_fixed) {
        dbo_fixed_costs_use(&e->fixed, 1, &s->fixed, &s->hardware);
        s->job.fixed = &s->fixed;
        model_of_fixed(e, num_ranks, &s->model);
    } else {
        s->job.cost_model = &e->model;
        small_model(&e->model, num_ranks, &s->model);
    }
    s->job.hardware = &s->hardware;
    s->job.model = &s->model;
}

dbo_status dbo_numeric_scene_init(dbo_numeric_scene *scene, const dbo_experiment *experiment,
                                  uint32_t num_steps, dbo_error *err)
{
    if (experiment->num_before > 0)
        num_steps = experiment->num_before + 1;
    memset(scene, 0, sizeof *scene);
    DBO_TRY(check(experiment, err));
    scene->config = experiment->config;
    scene->job = (dbo_numeric_job){.config = &scene->config,
                                   .num_layers = few_layers(experiment),
                                   .num_steps = num_steps,
                                   .gpus_per_domain = experiment->gpus_per_domain,
                                   .seed = experiment->seed,
                                   .fault = experiment->has_fault ? &experiment->fault : NULL};
    set_costs(scene, experiment);
    dbo_status status = fill_requests(scene, experiment, err);
    if (status != DBO_OK)
        dbo_numeric_scene_fini(scene);
    return status;
}

void dbo_numeric_scene_fini(dbo_numeric_scene *scene)
{
    uint32_t num_ranks = scene->config.data_parallel_size;
    for (size_t i = 0; i < (size_t)scene->job.num_steps * num_ranks; i++) {
        if (scene->lists)
            free(scene->lists[i].requests);
        if (scene->blocks)
            free(scene->blocks[i]);
    }
    free(scene->lists);
    free(scene->pointers);
    free(scene->blocks);
    memset(scene, 0, sizeof *scene);
}
