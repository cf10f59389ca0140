/* footprint.c: sums of bytes, and the sentence when they are too many (footprint.h). */
#include "lab/experiment/footprint.h"

#include "core/layer/model_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB 1e9

/* ---- weights ---- */

static double weights(const dbo_experiment *e)
{
    const dbo_model_spec *model = &e->model;
    uint32_t tp = e->config.tensor_parallel_size;
    uint32_t dense = model->num_experts == 0 ? e->num_layers : model->first_k_dense;
    if (dense > e->num_layers)
        dense = e->num_layers;
    double value = model->activation_dtype == DBO_FP32 ? 4 : 2;
    double bytes = 2.0 * model->vocab * model->hidden * value / tp;
    const dbo_weight_spread spread = {.ep_size = e->ep_size,
                                      .tp_size = tp,
                                      .redundant_experts = e->routing.redundant_experts,
                                      .expert_tp = e->expert_tp};
    bytes += dense * dbo_layer_weight_bytes(model, &spread, true);
    if (dense < e->num_layers)
        bytes += (e->num_layers - dense) * dbo_layer_weight_bytes(model, &spread, false);
    return bytes;
}

/* ---- KV cache ---- */

/* Blocks of the cache that hold one layer's keys and values: all, or those of a window. */
typedef struct dbo_cache_blocks {
    double full, windowed;
} dbo_cache_blocks;

static uint64_t blocks_of(uint64_t tokens, uint32_t block_size)
{
    return (tokens + block_size - 1) / block_size;
}

static int compare_blocks(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* How many different blocks requests name, together. */
static dbo_status count_different(const dbo_request_list *list, double *out, dbo_error *err)
{
    size_t count = 0, different = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += list->requests[i].blocks ? (size_t)list->requests[i].num_blocks : 0;
    int32_t *all = malloc(count * sizeof *all + 1);
    DBO_TRY(dbo_need_memory(all, "the KV cache's blocks", err));
    count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const dbo_request *r = &list->requests[i];
        if (!r->blocks)
            continue;
        memcpy(all + count, r->blocks, (size_t)r->num_blocks * sizeof *all);
        count += (size_t)r->num_blocks;
    }
    qsort(all, count, sizeof *all, compare_blocks);
    for (size_t i = 0; i < count; i++)
        different += i == 0 || all[i] != all[i - 1];
    free(all);
    *out = (double)different;
    return DBO_OK;
}

static dbo_status count_blocks(const dbo_experiment *e, const dbo_request_list *list,
                               dbo_cache_blocks *out, dbo_error *err)
{
    uint32_t size = e->config.block_size;
    bool named = list->count > 0 && list->requests[0].blocks;
    *out = (dbo_cache_blocks){0};
    for (uint32_t i = 0; i < list->count; i++) {
        const dbo_request *r = &list->requests[i];
        uint64_t tokens = (uint64_t)(uint32_t)r->num_computed + (uint32_t)r->num_scheduled;
        uint64_t seen = e->model.window > 0 && tokens > e->model.window ? e->model.window : tokens;
        out->full += (double)blocks_of(tokens, size);
        out->windowed += (double)blocks_of(seen, size);
    }
    return named ? count_different(list, &out->full, err) : DBO_OK;
}

/* Of one token in one layer on one rank: heads are spread over TP, a latent is not. */
static double token_bytes(const dbo_experiment *e)
{
    double bytes = dbo_kv_bytes_per_token(&e->model);
    uint32_t tp = e->config.tensor_parallel_size;
    if (e->model.attention != DBO_ATTENTION_GQA)
        return bytes;
    return bytes / (tp < e->model.kv_heads ? tp : e->model.kv_heads);
}

static dbo_status kv_cache(const dbo_experiment *e, const dbo_request_list *list, double *out,
                           dbo_error *err)
{
    dbo_cache_blocks blocks;
    DBO_TRY(count_blocks(e, list, &blocks, err));
    double total = 0;
    for (uint32_t layer = 0; layer < e->num_layers; layer++) {
        bool cut = dbo_layer_windowed(&e->model, layer) && blocks.windowed < blocks.full;
        total += cut ? blocks.windowed : blocks.full;
    }
    *out = total * e->config.block_size * token_bytes(e);
    return DBO_OK;
}

/* ---- all ---- */

static double buffers(const dbo_experiment *e)
{
    uint32_t capacity = dbo_experiment_ll_capacity(e);
    uint32_t copies = e->routing.redundant_experts;
    return capacity > 0 ? dbo_ll_buffer_bytes(&e->model, copies, capacity) : 0;
}

dbo_status dbo_footprint_of_rank(const dbo_experiment *experiment, uint32_t rank,
                                 dbo_footprint *out, dbo_error *err)
{
    *out = (dbo_footprint){.rank = rank,
                           .buffer_bytes = buffers(experiment),
                           .weights_bytes = weights(experiment),
                           .device_bytes = experiment->hardware.mem_gb * GB};
    return kv_cache(experiment, experiment->batch.ranks[rank], &out->kv_cache_bytes, err);
}

dbo_status dbo_footprint_of(const dbo_experiment *experiment, dbo_footprint *out, dbo_error *err)
{
    DBO_TRY(dbo_footprint_of_rank(experiment, 0, out, err));
    for (uint32_t rank = 1; rank < experiment->batch.num_ranks; rank++) {
        double bytes = 0;
        if (experiment->batch.ranks[rank] == experiment->batch.ranks[rank - 1])
            continue;
        DBO_TRY(kv_cache(experiment, experiment->batch.ranks[rank], &bytes, err));
        if (bytes > out->kv_cache_bytes) {
            out->kv_cache_bytes = bytes;
            out->rank = rank;
        }
    }
    return DBO_OK;
}

double dbo_footprint_bytes(const dbo_footprint *f)
{
    return f->weights_bytes + f->buffer_bytes + f->kv_cache_bytes + f->step_bytes;
}

bool dbo_footprint_fits(const dbo_footprint *f)
{
    return dbo_footprint_bytes(f) <= f->device_bytes;
}

dbo_status dbo_footprint_check(const dbo_footprint *f, const dbo_experiment *experiment,
                               dbo_error *err)
{
    if (!experiment->check_memory || dbo_footprint_fits(f))
        return DBO_OK;
    char step[40] = "what a step takes"; /* not known before one has run */
    if (f->step_bytes > 0)
        snprintf(step, sizeof step, "step %.1f", f->step_bytes / GB);
    char transfers[32] = "";
    if (f->buffer_bytes >= 0.05 * GB) /* that shows */
        snprintf(transfers, sizeof transfers, "all-to-all %.1f, ", f->buffer_bytes / GB);
    return dbo_fail(
        err, DBO_REFUSED,
        "Use more GPUs, fewer tokens or shorter contexts; or set check_memory = false.",
        "rank %u needs %.1f GB of memory (weights %.1f, KV cache %.1f, %s%s), but %s has "
        "%.1f",
        f->rank, dbo_footprint_bytes(f) / GB, f->weights_bytes / GB, f->kv_cache_bytes / GB,
        transfers, step, experiment->hardware.name, f->device_bytes / GB);
}
