/* Costs of a layer against figures worked out by hand from the model's shapes; what a split keeps
 * (FLOPs on real rows) and what it reads twice (weights). */
#include "core/layer/model_ops.h"
#include "tests/support/deepseek_v3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static dbo_layer_costs compute(const dbo_model_spec *model, const dbo_layer_shape *shape)
{
    dbo_layer_costs costs;
    dbo_error err = {0};
    if (dbo_layer_costs_compute(model, shape, &costs, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return costs;
}

/* `tokens` of an ubatch of one request shape, EP 128. */
static dbo_layer_costs costs_of(uint32_t count, uint32_t query, uint32_t length, bool low_latency)
{
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {count, query, length};
    dbo_layer_shape shape = {.ep_size = 128,
                             .tp_size = 1,
                             .low_latency = low_latency,
                             .layer = 10,
                             .tokens = count * query,
                             .num_requests = 1,
                             .requests = &request};
    return compute(&model, &shape);
}

static double flops(const dbo_op_cost *cost)
{
    double sum = 0;
    for (uint32_t i = 0; i < cost->num_parts; i++)
        sum += cost->parts[i].flops;
    return sum;
}

static double weights(const dbo_op_cost *cost)
{
    double sum = 0;
    for (uint32_t i = 0; i < cost->num_parts; i++)
        sum += cost->parts[i].weight_bytes;
    return sum;
}

/* q_a 7168*1536, q_b 1536*24576, kv_a 7168*576, kv_b 512*32768, o 16384*7168: 187,105,280 values in
 * fp8; an expert is 3*7168*2048 = 44,040,192; the router 7168*256 in bf16. */
static void weights_of_deepseek_v3(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_weight_spread spread = {.ep_size = 128, .tp_size = 1};
    assert_int_equal(dbo_layer_weight_bytes(&model, &spread, false),
                     187105280 + 3670016 + (2 + 1) * 44040192);
    assert_int_equal(dbo_layer_weight_bytes(&model, &spread, true), 187105280 + 3 * 7168 * 18432);
    spread.redundant_experts = 1; /* somebody has one more */
    assert_int_equal(dbo_layer_weight_bytes(&model, &spread, false),
                     187105280 + 3670016 + (3 + 1) * 44040192);
    spread = (dbo_weight_spread){.ep_size = 32, .tp_size = 1};
    assert_int_equal(dbo_layer_weight_bytes(&model, &spread, false),
                     187105280 + 3670016 + (8 + 1) * 44040192);
    assert_int_equal(dbo_kv_bytes_per_token(&model), 1152);
}

static void rows_of_transfers(void **state)
{
    (void)state;
    assert_int_equal(dbo_a2a_row_bytes(7168, DBO_FP8), 7168 + 56 * 4);
    assert_int_equal(dbo_a2a_row_bytes(7168, DBO_BF16), 14336);
    assert_int_equal(dbo_a2a_row_bytes(2880, DBO_FP8), 2880 + 23 * 4);
    dbo_layer_costs costs = costs_of(128, 1, 4096, true);
    assert_int_equal(costs.dispatch.bytes_per_token, 7392);
    assert_int_equal(costs.combine.bytes_per_token, 14336);
    assert_int_equal(costs.dispatch.tokens, 128);
    assert_int_equal(costs.dispatch.topk, 8);
    assert_int_equal(costs.combine.num_groups, 8);
    assert_true(costs.dispatch.fixed_ns < 0);
}

/* 128 decoding requests of 4096 tokens, all numbers per rank. */
static void decode_by_hand(void **state)
{
    (void)state;
    dbo_layer_costs costs = costs_of(128, 1, 4096, true);
    const dbo_op_cost *a0 = &costs.op[DBO_KIND_A0], *a1 = &costs.op[DBO_KIND_A1];
    assert_int_equal(flops(a0), 2.0 * 128 * (7168.0 * (1536 + 576) + 1536.0 * 24576));
    assert_int_equal(weights(a0), 7168 * (1536 + 576) + 1536 * 24576);
    /* absorb, attention, v up, o_proj, norm, router */
    assert_int_equal(a1->num_parts, 6);
    assert_int_equal(a1->parts[1].kind, DBO_PART_ATTENTION);
    assert_int_equal(a1->parts[1].flops, 2.0 * 128 * 4096 * 128 * (576 + 512));
    assert_int_equal(a1->parts[1].hbm_bytes, 128.0 * 4096 * 1152 + 128.0 * 128 * 1088 * 2);
    assert_int_equal(a1->parts[0].weight_bytes + a1->parts[2].weight_bytes, 16777216 * 2);
    assert_int_equal(a1->parts[3].weight_bytes, 16384 * 7168);
    /* 128 ranks * 128 tokens * 8 / 128 ranks = 1024 rows, 512 for each of 2 experts */
    const dbo_op_cost *mlp = &costs.op[DBO_KIND_MLP];
    assert_int_equal(flops(mlp), 1024.0 * 2 * 44040192);
    assert_int_equal(weights(mlp), 2 * 44040192);
    assert_int_equal(mlp->parts[0].tiles, 2 * (512 / 128) * (4096 / 128));
    assert_int_equal(flops(&costs.op[DBO_KIND_SHARED]), 128.0 * 2 * 44040192);
    /* LL has neither bookkeeping nor, with an fp8 dispatch, a quantisation of its own. */
    assert_int_equal(costs.kernels[DBO_KIND_QUANT], 0);
    assert_int_equal(costs.kernels[DBO_KIND_LAYOUT], 0);
    assert_int_equal(costs.kernels[DBO_KIND_REDUCE], 0);
    assert_true(costs.kernels[DBO_KIND_A1] >= a1->num_parts);
}

/* Four prompts of 4096: (query, key) pairs are 4 * 4096*4097/2. */
static void prefill_by_hand(void **state)
{
    (void)state;
    dbo_layer_costs costs = costs_of(4, 4096, 4096, false);
    const dbo_op_cost *a1 = &costs.op[DBO_KIND_A1];
    assert_int_equal(a1->num_parts, 5); /* kv_b, attention, o_proj, norm, router */
    assert_int_equal(a1->parts[0].flops, 2.0 * 16384 * 512 * 128 * 256);
    assert_int_equal(a1->parts[1].flops, 2.0 * 4 * 4096 * 4097 / 2 * 128 * (192 + 128));
    assert_int_equal(costs.kernels[DBO_KIND_QUANT], 1);
    assert_int_equal(costs.kernels[DBO_KIND_LAYOUT], 1);
    assert_int_equal(costs.kernels[DBO_KIND_H2D], 1);
    assert_int_equal(costs.kernels[DBO_KIND_REDUCE], 1);
    assert_int_equal(costs.kernels[DBO_KIND_COPY], 1);
}

/* Rows that fill their tiles: the halves' FLOPs sum up to the whole's, weights are read twice. */
static void a_split_keeps_flops_and_doubles_weights(void **state)
{
    (void)state;
    static const dbo_op_kind kinds[] = {DBO_KIND_A0, DBO_KIND_A1, DBO_KIND_MLP, DBO_KIND_SHARED,
                                        DBO_KIND_DENSE};
    dbo_layer_costs whole = costs_of(256, 1, 4096, true), half = costs_of(128, 1, 4096, true);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_int_equal(2 * flops(&half.op[kinds[i]]), flops(&whole.op[kinds[i]]));
        assert_int_equal(weights(&half.op[kinds[i]]), weights(&whole.op[kinds[i]]));
        assert_true(weights(&half.op[kinds[i]]) > 0);
    }
}

/* One prompt cut in the middle: the second half sees the first half's keys. */
static void a_cut_request_keeps_its_pairs(void **state)
{
    (void)state;
    double whole = costs_of(1, 4096, 4096, false).op[DBO_KIND_A1].parts[1].flops;
    double first = costs_of(1, 2048, 2048, false).op[DBO_KIND_A1].parts[1].flops;
    double second = costs_of(1, 2048, 4096, false).op[DBO_KIND_A1].parts[1].flops;
    assert_int_equal(first + second, whole);
    assert_true(second > 2 * first);
}

static dbo_model_spec windowed(void)
{
    dbo_model_spec model = deepseek_v3();
    model.attention = DBO_ATTENTION_GQA;
    model.heads = 64, model.kv_heads = 8, model.head_dim = 64;
    model.window = 16, model.window_every = 2;
    return model;
}

/* The closed form of windowed causal pairs against counting them. */
static void windows_against_counting(void **state)
{
    (void)state;
    dbo_model_spec model = windowed();
    for (uint32_t query = 2; query <= 40; query++) {
        for (uint32_t length = query; length <= 48; length++) {
            for (uint32_t layer = 10; layer <= 11; layer++) {
                dbo_request_shape request = {1, query, length};
                dbo_layer_shape shape = {.ep_size = 1,
                                         .tp_size = 1,
                                         .layer = layer,
                                         .tokens = query,
                                         .num_requests = 1,
                                         .requests = &request};
                uint64_t pairs = 0;
                for (uint32_t at = length - query + 1; at <= length; at++)
                    pairs += layer % 2 == 0 && at > 16 ? 16 : at;
                dbo_layer_costs costs = compute(&model, &shape);
                assert_int_equal(costs.op[DBO_KIND_A1].parts[0].flops, 4 * pairs * 64 * 64);
            }
        }
    }
}

static void touched_experts(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    assert_float_equal(dbo_touched_experts(256, 8, 128, 0), 0, 1e-12);
    assert_float_equal(dbo_touched_experts(256, 8, 128, 1), 2 * 8 / 256.0, 1e-12);
    assert_float_equal(dbo_touched_experts(256, 8, 8, 2), 32 * (1 - 0.96875 * 0.96875), 1e-12);
    assert_float_equal(dbo_touched_experts(256, 8, 128, 16384), 2, 1e-9);
    /* Few tokens read few experts: 8 ranks of 1 token, EP 8, 32 experts a rank. */
    dbo_request_shape request = {1, 1, 100};
    dbo_layer_shape shape = {.ep_size = 8,
                             .tp_size = 1,
                             .low_latency = true,
                             .layer = 10,
                             .tokens = 1,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs costs = compute(&model, &shape);
    assert_int_equal(weights(&costs.op[DBO_KIND_MLP]), 7 * 44040192);
}

/* 256 experts do not go over 72 ranks; with 32 copies each has 4. */
static void redundant_experts(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {256, 1, 2000};
    dbo_layer_shape shape = {.ep_size = 72,
                             .tp_size = 1,
                             .low_latency = true,
                             .layer = 10,
                             .tokens = 256,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs costs;
    assert_int_equal(dbo_layer_costs_compute(&model, &shape, &costs, NULL), DBO_INVALID);
    shape.redundant_experts = 32;
    costs = compute(&model, &shape);
    assert_int_equal(weights(&costs.op[DBO_KIND_MLP]), 4 * 44040192);
    assert_int_equal(flops(&costs.op[DBO_KIND_MLP]), 256.0 * 8 * 2 * 44040192);
    assert_int_equal(costs.dispatch.num_experts, 288);
}

/* As tests/cases/ll-capacity.lua has it; with 32 copies of experts there are 288 of them. */
static void low_latency_buffers(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    uint64_t rows = 2 * 2 * 256 * (56 * 4 + 7168 * 2); /* bytes an expert */
    assert_int_equal(dbo_ll_buffer_bytes(&model, 0, 256), 256 * rows + 2 * 1024 + 128);
    assert_int_equal(dbo_ll_buffer_bytes(&model, 32, 256), 288 * rows + 2 * 1152 + 128);
    /* counts are whole lines of 128 bytes */
    assert_int_equal(dbo_ll_buffer_bytes(&model, 1, 256), 257 * rows + 2 * 1152 + 128);
}

/* An expert that is cut over 4 GPUs has a quarter of the scratch for inner values: rows of (2 *
 * 2048 inner, bf16) beside an input in fp8 and an output in bf16. */
static void cut_experts_need_less_scratch(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {64, 1, 100};
    dbo_layer_shape shape = {.ep_size = 1,
                             .tp_size = 4,
                             .no_all_to_all = true,
                             .expert_tp = 4,
                             .layer = 10,
                             .tokens = 64,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs costs = compute(&model, &shape);
    assert_int_equal(costs.sizes.bytes[DBO_BUFFER_WORKSPACE], 64 * 8 * (4096 / 4 * 2 + 7168 * 3));
    shape.expert_tp = 0;
    costs = compute(&model, &shape);
    assert_int_equal(costs.sizes.bytes[DBO_BUFFER_WORKSPACE], 64 * 8 * (4096 * 2 + 7168 * 3));
}

static void tensor_parallel_shards_heads(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {128, 1, 4096};
    dbo_layer_shape shape = {.ep_size = 128,
                             .tp_size = 1,
                             .low_latency = true,
                             .layer = 10,
                             .tokens = 128,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs one = compute(&model, &shape);
    shape.tp_size = 4;
    dbo_layer_costs four = compute(&model, &shape);
    assert_int_equal(four.op[DBO_KIND_A1].parts[1].flops * 4, one.op[DBO_KIND_A1].parts[1].flops);
    assert_int_equal(weights(&four.op[DBO_KIND_SHARED]) * 4, weights(&one.op[DBO_KIND_SHARED]));
    /* each rank of a TP group sends its part of the group's tokens */
    assert_int_equal(four.dispatch.tokens, 32);
}

/* An all-padding ubatch: dense ops run over the padding, attention and its share of experts do not
 * see it. */
static void a_dummy_ubatch(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_layer_shape shape = {.ep_size = 128,
                             .tp_size = 1,
                             .low_latency = true,
                             .layer = 10,
                             .padded_tokens = 64,
                             .group_tokens = UINT64_C(64) * 127};
    dbo_layer_costs costs = compute(&model, &shape);
    assert_true(flops(&costs.op[DBO_KIND_A0]) > 0);
    assert_true(flops(&costs.op[DBO_KIND_MLP]) > 0);
    assert_int_equal(costs.dispatch.tokens, 0);
    for (uint32_t i = 0; i < costs.op[DBO_KIND_A1].num_parts; i++)
        assert_int_not_equal(costs.op[DBO_KIND_A1].parts[i].kind, DBO_PART_ATTENTION);
    shape.group_tokens = 0;
    costs = compute(&model, &shape);
    assert_int_equal(costs.kernels[DBO_KIND_MLP], 0);
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {4, 1, 100};
    const dbo_layer_shape good = {
        .ep_size = 8, .tp_size = 1, .tokens = 4, .num_requests = 1, .requests = &request};
    dbo_layer_shape bad[6] = {good, good, good, good, good, good};
    bad[0].ep_size = 7;
    bad[1].tp_size = 3;
    bad[2].tokens = 5;
    bad[3].padded_tokens = 3;
    bad[4].ep_size = 0;
    bad[5].tp_size = 16;
    dbo_layer_costs costs;
    assert_int_equal(dbo_layer_costs_compute(&model, &good, &costs, NULL), DBO_OK);
    for (int i = 0; i < 6; i++) {
        dbo_error err = {0};
        assert_int_equal(dbo_layer_costs_compute(&model, &bad[i], &costs, &err), DBO_INVALID);
        assert_true(err.message[0] != '\0');
    }
    request.query_len = 200, request.count = 1;
    dbo_layer_shape longer = good;
    longer.tokens = 200;
    assert_int_equal(dbo_layer_costs_compute(&model, &longer, &costs, NULL), DBO_INVALID);
}

static void fixed_durations(void **state)
{
    (void)state;
    int64_t ns[DBO_KIND_COUNT];
    for (int i = 0; i < DBO_KIND_COUNT; i++)
        ns[i] = -1;
    ns[DBO_KIND_A0] = 40000, ns[DBO_KIND_DISPATCH] = 70000, ns[DBO_KIND_COMBINE] = 0;
    dbo_layer_costs costs;
    dbo_layer_costs_fixed(ns, 100, &costs);
    assert_int_equal(costs.op[DBO_KIND_A0].fixed_ns, 40000);
    assert_int_equal(costs.op[DBO_KIND_A0].fixed_sms, 100);
    assert_int_equal(costs.kernels[DBO_KIND_A0], 1);
    assert_int_equal(costs.kernels[DBO_KIND_MLP], 0);
    assert_int_equal(costs.dispatch.fixed_ns, 70000);
    assert_int_equal(costs.combine.fixed_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_deepseek_v3),
        cmocka_unit_test(rows_of_transfers),
        cmocka_unit_test(decode_by_hand),
        cmocka_unit_test(prefill_by_hand),
        cmocka_unit_test(a_split_keeps_flops_and_doubles_weights),
        cmocka_unit_test(a_cut_request_keeps_its_pairs),
        cmocka_unit_test(windows_against_counting),
        cmocka_unit_test(touched_experts),
        cmocka_unit_test(redundant_experts),
        cmocka_unit_test(low_latency_buffers),
        cmocka_unit_test(cut_experts_need_less_scratch),
        cmocka_unit_test(tensor_parallel_shards_heads),
        cmocka_unit_test(a_dummy_ubatch),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(fixed_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
