/* The roofline: bounds, waves, few SMs. Absolute times are checked where they follow from the law
 * by hand; the rest are properties that must hold for every op of a layer. */
#include "core/layer/model_ops.h"
#include "sim/cost.h"
#include "tests/support/deepseek_v3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t ns_of(const dbo_hardware *hardware, const dbo_op_cost *cost, uint32_t sms)
{
    dbo_op_time time;
    dbo_cost_ns(hardware, cost, sms, &time);
    return time.ns;
}

static dbo_layer_costs decode_layer(bool low_latency)
{
    dbo_model_spec model = deepseek_v3();
    dbo_request_shape request = {128, 1, 4096};
    dbo_layer_shape shape = {.ep_size = 128,
                             .tp_size = 1,
                             .low_latency = low_latency,
                             .layer = 10,
                             .tokens = 128,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs costs;
    assert_int_equal(dbo_layer_costs_compute(&model, &shape, &costs, NULL), DBO_OK);
    return costs;
}

static void more_sms_never_slower(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_layer_costs costs = decode_layer(false);
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
        int64_t before = INT64_MAX;
        for (uint32_t sms = 1; sms <= hardware.sms; sms++) {
            int64_t ns = ns_of(&hardware, &costs.op[kind], sms);
            assert_true(ns <= before);
            before = ns;
        }
        assert_int_equal(before, ns_of(&hardware, &costs.op[kind], 0));
        assert_int_equal(before, ns_of(&hardware, &costs.op[kind], 4000));
        if (costs.op[kind].num_parts > 0 && kind != DBO_KIND_H2D)
            assert_true(ns_of(&hardware, &costs.op[kind], 1) > before);
    }
}

static void never_above_the_data_sheet(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_layer_costs costs = decode_layer(false);
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
        dbo_op_time time;
        dbo_cost_ns(&hardware, &costs.op[kind], 0, &time);
        double flop_ns = 0, bytes = 0;
        for (uint32_t i = 0; i < costs.op[kind].num_parts; i++) {
            const dbo_op_part *part = &costs.op[kind].parts[i];
            if (part->kind != DBO_PART_STREAM)
                flop_ns += part->flops / (hardware.peak_tflops[part->dtype] * 1000);
            bytes += part->hbm_bytes;
        }
        assert_true((double)time.ns >= flop_ns);
        assert_true((double)time.ns >= bytes / hardware.hbm_gbps);
        assert_true(time.hbm_mbps <= hardware.hbm_gbps * 1000);
        assert_true(time.sms <= hardware.sms);
    }
}

static void waves(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    hardware.kernel_ns = 0;
    dbo_op_cost cost = {.fixed_ns = -1, .num_parts = 1};
    cost.parts[0] = (dbo_op_part){.kind = DBO_PART_GEMM, .dtype = DBO_BF16, .tiles = 132};
    /* a tile of 1e6 FLOPs takes 1e6 / (989e3 * 0.62 / 132) ns = 215.3 ns */
    cost.parts[0].flops = 132 * 1e6;
    assert_int_equal(ns_of(&hardware, &cost, 0), 215);
    cost.parts[0].tiles = 133;
    cost.parts[0].flops = 133 * 1e6;
    assert_int_equal(ns_of(&hardware, &cost, 0), 431);
    assert_int_equal(ns_of(&hardware, &cost, 66), 646);
    cost.parts[0].tiles = 1;
    cost.parts[0].flops = 1e6;
    assert_int_equal(ns_of(&hardware, &cost, 0), 215);
    dbo_op_time time;
    dbo_cost_ns(&hardware, &cost, 0, &time);
    assert_int_equal(time.sms, 1);
}

static void few_sms_draw_less_memory(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    hardware.kernel_ns = 0;
    dbo_op_cost cost = {.fixed_ns = -1, .num_parts = 1};
    cost.parts[0] = (dbo_op_part){.kind = DBO_PART_STREAM, .hbm_bytes = 2.68e9};
    /* 2.68e9 B / (3350 * 0.8 B/ns) = 1e6 ns, from 0.45 * 132 = 59.4 SMs on */
    assert_int_equal(ns_of(&hardware, &cost, 132), 1000000);
    assert_int_equal(ns_of(&hardware, &cost, 60), 1000000);
    assert_int_equal(ns_of(&hardware, &cost, 30), 1980000);
    dbo_op_time time;
    dbo_cost_ns(&hardware, &cost, 30, &time);
    assert_int_equal(time.hbm_mbps, 1353535);
}

static void fixed_is_exact(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_op_cost cost = {.fixed_ns = 12345, .fixed_sms = 90, .num_parts = 1};
    cost.parts[0].flops = 1e15;
    dbo_op_time time;
    dbo_cost_ns(&hardware, &cost, 0, &time);
    assert_int_equal(time.ns, 12345);
    assert_int_equal(time.sms, 90);
    dbo_cost_ns(&hardware, &cost, 20, &time);
    assert_int_equal(time.ns, 12345);
    assert_int_equal(time.sms, 20);
    cost = (dbo_op_cost){.fixed_ns = -1};
    assert_int_equal(ns_of(&hardware, &cost, 0), 0);
}

/* Without fp8 units an fp8 product takes as long as a bf16 one of the same bytes. */
static void no_fp8_units(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_op_cost cost = {.fixed_ns = -1, .num_parts = 1};
    cost.parts[0] = (dbo_op_part){.flops = 1e12, .kind = DBO_PART_GEMM, .dtype = DBO_FP8};
    int64_t with = ns_of(&hardware, &cost, 0);
    hardware.peak_tflops[DBO_FP8] = 0;
    int64_t without = ns_of(&hardware, &cost, 0);
    cost.parts[0].dtype = DBO_BF16;
    assert_int_equal(without, ns_of(&hardware, &cost, 0));
    assert_true(without > with);
}

/* The measured DeepEP + DeepGEMM layer on H200, EP 8 (DeepGEMM pull request 352, one run): the
 * experts' part of it grows with the tokens as measured. Its other parts are the transfers, which
 * tests/sim/test_fabric.c checks. */
static void experts_of_a_measured_layer(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    hardware.hbm_gbps = 4800;
    dbo_model_spec model = deepseek_v3();
    static const struct {
        uint32_t tokens;
        double layer_us;
    } rows[] = {{8, 456.1}, {64, 526.0}, {512, 866.2}, {2048, 2492.8}, {8192, 9157.7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dbo_request_shape request = {rows[i].tokens, 1, 1};
        dbo_layer_shape shape = {.ep_size = 8,
                                 .tp_size = 1,
                                 .layer = 10,
                                 .tokens = rows[i].tokens,
                                 .num_requests = 1,
                                 .requests = &request};
        dbo_layer_costs costs;
        assert_int_equal(dbo_layer_costs_compute(&model, &shape, &costs, NULL), DBO_OK);
        double us = (double)ns_of(&hardware, &costs.op[DBO_KIND_MLP], 0) / 1000;
        print_message("%5u tokens: experts %7.1f us of a layer of %7.1f us\n", rows[i].tokens, us,
                      rows[i].layer_us);
        assert_true(us > 0.4 * rows[i].layer_us && us < 0.85 * rows[i].layer_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_sms_never_slower),
        cmocka_unit_test(never_above_the_data_sheet),
        cmocka_unit_test(waves),
        cmocka_unit_test(few_sms_draw_less_memory),
        cmocka_unit_test(fixed_is_exact),
        cmocka_unit_test(no_fp8_units),
        cmocka_unit_test(experts_of_a_measured_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
