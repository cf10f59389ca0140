/* random_experiment.h: experiments out of a seed, for tests of what must hold for every one.
 *
 * The same seed gives the same experiment on every machine and for ever: digests.txt pins traces
 * of them. They are small (at most 8 GPUs, 4 layers, 700 tokens a rank) and cover models of all
 * kinds of attention, or given durations; both all-to-alls; 2 to 4 ubatches; both rules; all graph
 * modes; decode, prefill and listed batches, alike or not, with idle ranks and late ones.
 *
 *     dbo_experiment e;
 *     random_experiment(&e, seed, RANDOM_ANY);
 *     ... dbo_simulate(&e, ...) ...
 *     dbo_experiment_fini(&e);
 */
#ifndef DBO_TESTS_RANDOM_EXPERIMENT_H
#define DBO_TESTS_RANDOM_EXPERIMENT_H

#include "core/base/prng.h"
#include "lab/experiment/experiment.h"
#include "tests/support/batch_numbers.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum random_form {
    RANDOM_ANY,
    /* The same, and experts are not alike. */
    RANDOM_ROUTED,
    /* A model whose rows fill their tiles, split or not: every ubatch has a multiple of 128 tokens
     * and every expert one of rows; all ranks alike, no request is cut, no window. */
    RANDOM_ALIGNED
} random_form;

static inline void random_model(dbo_prng *prng, dbo_model_spec *model, bool windows)
{
    dbo_model_spec_init(model);
    snprintf(model->name, sizeof model->name, "random");
    model->layers = 1 + (uint32_t)dbo_prng_below(prng, 4);
    model->hidden = RANDOM_OF(prng, 512, 1024, 2048, 7168);
    model->heads = RANDOM_OF(prng, 16, 32, 128);
    model->vocab = 32000;
    model->attention = (dbo_attention)dbo_prng_below(prng, 3);
    model->q_lora_rank = RANDOM_OF(prng, 0, 512);
    model->kv_lora_rank = 256;
    model->qk_nope = model->v_head = 128;
    model->qk_rope = 64;
    model->kv_heads = RANDOM_OF(prng, 2, 8);
    model->head_dim = 128;
    if (windows && model->attention == DBO_ATTENTION_GQA && random_one_in(prng, 2)) {
        model->window = 128;
        model->window_every = (uint32_t)dbo_prng_below(prng, 3);
    }
    model->num_experts = RANDOM_OF(prng, 16, 32, 64);
    model->topk = RANDOM_OF(prng, 1, 2, 4, 8);
    model->num_shared = (uint32_t)dbo_prng_below(prng, 3);
    model->moe_inter = RANDOM_OF(prng, 512, 2048);
    model->dense_inter = 4096;
    model->first_k_dense = (uint32_t)dbo_prng_below(prng, model->layers);
    model->weight_dtype = (dbo_dtype)dbo_prng_below(prng, 2);
    model->dispatch_dtype = (dbo_dtype)dbo_prng_below(prng, 2);
}

static inline void random_hardware(dbo_prng *prng, dbo_hardware *hardware)
{
    dbo_hardware_init(hardware);
    snprintf(hardware->name, sizeof hardware->name, "random");
    hardware->platform = random_one_in(prng, 4) ? DBO_PLATFORM_ROCM : DBO_PLATFORM_CUDA;
    hardware->sms = RANDOM_OF(prng, 78, 108, 132, 148);
    hardware->mem_gb = 80;
    hardware->peak_tflops[DBO_BF16] = (double)prng_range(prng, 100, 2000);
    hardware->peak_tflops[DBO_FP8] = random_one_in(prng, 3) ? 0 : 2000;
    hardware->hbm_gbps = (double)prng_range(prng, 1000, 8000);
    hardware->nvlink_gbps = (double)prng_range(prng, 50, 900);
    hardware->nic_gbps = (double)prng_range(prng, 10, 100);
    hardware->gpus_per_domain = RANDOM_OF(prng, 1, 2, 8);
    hardware->ll_sms = RANDOM_OF(prng, 0, 24);
    hardware->comm_needs_sms = !random_one_in(prng, 4);
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT; k++)
        hardware->host_ns[k] = (double)dbo_prng_below(prng, 20000);
}

/* Durations of every op that may have one; host times too. */
static inline void random_fixed(dbo_prng *prng, dbo_fixed_costs *fixed)
{
    double *const us[] = {
        &fixed->a0_us,    &fixed->a1_us,      &fixed->quant_us,  &fixed->layout_us,
        &fixed->d_us,     &fixed->h2d_us,     &fixed->m_us,      &fixed->reduce_us,
        &fixed->c_us,     &fixed->s_us,       &fixed->copy_us,   &fixed->launch_us,
        &fixed->event_us, &fixed->handoff_us, &fixed->replay_us, &fixed->post_us,
    };
    for (size_t i = 0; i < sizeof us / sizeof us[0]; i++)
        *us[i] = (double)prng_range(prng, 1, i < 11 ? 100 : 8);
}

static inline void random_config(dbo_prng *prng, dbo_config *config)
{
    if (random_one_in(prng, 3))
        config->ubatch_size = 2 + (uint32_t)dbo_prng_below(prng, 3);
    else
        config->enable_dbo = true;
    config->dbo_decode_token_threshold = RANDOM_OF(prng, 4, 8, 32);
    config->dbo_prefill_token_threshold = RANDOM_OF(prng, 4, 64, 300);
    config->all2all_backend = (dbo_all2all_backend)dbo_prng_below(prng, 3);
    config->enable_expert_parallel = !random_one_in(prng, 12);
    config->cudagraph_mode = (dbo_graphs)dbo_prng_below(prng, 5);
    config->max_num_seqs = 1024;
    config->num_speculative_tokens = (uint32_t)dbo_prng_below(prng, 3);
    config->dbo_comm_sms = 2 * (uint32_t)dbo_prng_below(prng, 16);
    config->dbo_comm_sms_is_set = true;
    config->rules = (dbo_rules)dbo_prng_below(prng, 2);
    config->ubatch_single_rank = random_one_in(prng, 2);
    config->empty_ubatch = (dbo_empty)dbo_prng_below(prng, 3);
    if (random_one_in(prng, 3))
        config->threshold_at = DBO_THRESHOLD_VOTE;
    if (config->all2all_backend == DBO_BACKEND_HT && random_one_in(prng, 3))
        snprintf(config->schedule, sizeof config->schedule, "seed-prose-ht");
    if (random_one_in(prng, 3)) {
        const int32_t sizes[] = {8, 64, 100, 257};
        assert_int_equal(dbo_config_set_capture_sizes(config, sizes, 4, NULL), DBO_OK);
    }
}

/* Lists of requests of any length: the same for all ranks or, with idle ones, of each its own. */
static inline void random_requests(dbo_prng *prng, dbo_workload *batch, uint32_t num_ranks)
{
    uint32_t lists = random_one_in(prng, 2) ? 1 : num_ranks;
    batch->kind = DBO_WORKLOAD_REQUESTS;
    assert_int_equal(dbo_workload_fit(batch, lists, NULL), DBO_OK);
    for (uint32_t l = 0; l < lists; l++) {
        uint32_t count = random_one_in(prng, 4) ? 0 : 1 + (uint32_t)dbo_prng_below(prng, 40);
        for (uint32_t i = 0; i < count; i++) {
            dbo_request request = {.id = DBO_WORKLOAD_NEXT_ID, .num_scheduled = 1};
            if (random_one_in(prng, 2)) /* one draw a statement: their order is part of the seed */
                request.num_scheduled = (int32_t)prng_range(prng, 1, 60);
            request.num_computed = (int32_t)dbo_prng_below(prng, 900);
            const dbo_request_cache cache = {.prefix = "system", .prefix_len = 32};
            bool shared =
                request.num_computed + request.num_scheduled >= 32 && random_one_in(prng, 8);
            assert_int_equal(dbo_workload_add(batch, l, request, shared ? &cache : NULL, NULL),
                             DBO_OK);
        }
    }
}

static inline void random_batch(dbo_prng *prng, dbo_experiment *e, uint32_t num_ranks)
{
    dbo_workload *batch = &e->batch;
    uint32_t query = dbo_config_decode_query_len(&e->config),
             form = (uint32_t)dbo_prng_below(prng, 3);
    if (random_one_in(prng, 5))
        batch->jitter_us = 50;
    if (form == 0) {
        random_requests(prng, batch, num_ranks);
        return;
    }
    bool decode = form == 1, alike = random_one_in(prng, 2);
    uint32_t longest = 0;
    batch->kind = decode ? DBO_WORKLOAD_DECODE : DBO_WORKLOAD_PREFILL;
    put_number(&batch->context_len, 0, (uint32_t)dbo_prng_below(prng, 3000));
    if (!decode)
        put_number(&batch->prompt_len, 0, RANDOM_OF(prng, 0, 33, 100, 256));
    for (uint32_t r = 0; r < (alike ? 1 : num_ranks); r++) {
        uint32_t most = decode ? 150 / query : 700;
        uint32_t tokens =
            random_one_in(prng, 6) && r > 0 ? 0 : (uint32_t)dbo_prng_below(prng, most);
        put_number(&batch->num_tokens, r, decode ? tokens * query : tokens);
        longest = tokens > longest ? tokens : longest;
    }
    if (!decode && longest > 0 && batch->prompt_len.values[0] > longest)
        batch->prompt_len.values[0] = longest;
}

/* Prompts or decodes that fill the tiles: see RANDOM_ALIGNED. Every expert gets a tile's rows. */
static inline void random_aligned(dbo_prng *prng, dbo_experiment *e, uint32_t num_ranks)
{
    dbo_model_spec *model = &e->model;
    dbo_config *config = &e->config;
    uint32_t ubatches = dbo_config_num_ubatches(config), each = 256;
    bool decode = random_one_in(prng, 2);
    config->enable_expert_parallel = num_ranks > 1;
    config->num_capture_sizes = 0;
    config->cudagraph_mode = DBO_GRAPHS_NONE;
    config->max_num_seqs = config->max_num_batched_tokens;
    config->num_speculative_tokens = 0;
    model->topk = 8;
    model->num_experts = 16;
    e->batch.kind = decode ? DBO_WORKLOAD_DECODE : DBO_WORKLOAD_PREFILL;
    put_number(&e->batch.num_tokens, 0, ubatches * each);
    put_number(&e->batch.context_len, 0, decode ? 1000 : 128);
    put_number(&e->batch.prompt_len, 0, 128);
}

/* Drawn by itself, so that the rest is as without it. */
static inline void random_routing(dbo_experiment *e, uint64_t seed)
{
    dbo_prng prng;
    dbo_prng_init(&prng, seed, 12);
    e->routing = (dbo_routing_spec){.load = (dbo_load_kind)dbo_prng_below(&prng, DBO_LOAD_COUNTED),
                                    .exponent = dbo_prng_unit(&prng) * 1.2,
                                    .sigma = dbo_prng_unit(&prng),
                                    .random = random_one_in(&prng, 2),
                                    .placement = (dbo_placement_kind)dbo_prng_below(&prng, 2),
                                    .redundant_experts = (uint32_t)dbo_prng_below(&prng, 9)};
}

static inline void random_experiment(dbo_experiment *e, uint64_t seed, random_form form)
{
    dbo_prng prng;
    dbo_error err = {0};
    dbo_prng_init(&prng, seed, 11);
    dbo_experiment_init(e);
    e->check_memory = false; /* whatever the numbers, it runs */
    snprintf(e->name, sizeof e->name, "random %u", (unsigned)seed);
    e->seed = (uint32_t)seed;
    e->nodes = RANDOM_OF(&prng, 1, 1, 2);
    e->gpus_per_node = RANDOM_OF(&prng, 1, 2, 4);
    e->has_fixed = form != RANDOM_ALIGNED && random_one_in(&prng, 4);
    e->has_model = e->has_hardware = !e->has_fixed;
    random_model(&prng, &e->model, form != RANDOM_ALIGNED);
    random_hardware(&prng, &e->hardware);
    if (e->hardware.gpus_per_domain < e->gpus_per_node)
        e->hardware.gpus_per_domain = e->gpus_per_node;
    random_fixed(&prng, &e->fixed);
    random_config(&prng, &e->config);
    bool two = form != RANDOM_ALIGNED && e->gpus_per_node % 2 == 0 && random_one_in(&prng, 4);
    e->config.tensor_parallel_size = two ? 2 : 1;
    if (e->has_fixed)
        e->layers = e->model.layers;
    uint32_t num_ranks = e->nodes * e->gpus_per_node / e->config.tensor_parallel_size;
    if (form == RANDOM_ROUTED && e->has_model && e->config.enable_expert_parallel && num_ranks > 1)
        random_routing(e, seed);
    if (form == RANDOM_ALIGNED)
        random_aligned(&prng, e, num_ranks);
    else
        random_batch(&prng, e, num_ranks);
    if (dbo_experiment_finish(e, &err) != DBO_OK)
        fail_msg("random experiment %u: %s", (unsigned)seed, err.message);
}

#endif
