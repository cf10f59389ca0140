/* test_check_schedules.c: the built-in schedules are right: no order of completion does harm. And
 * they are right because of what they do: without record_stream they are not. */
#include "core/check/order/check.h"
#include "core/program/builders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYERS 3u

/* `without`: kinds of ops that the layer lacks, by bit. */
static void build(dbo_program *p, dbo_builder_fn layer, const dbo_build_options *options,
                  uint32_t without, bool quant_late)
{
    static dbo_layer_costs costs[DBO_MAX_UBATCHES];
    int64_t ns[DBO_KIND_COUNT];
    dbo_error err = {0};
    memset(costs, 0, sizeof costs);
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
        ns[kind] = without >> kind & 1u ? -1 : 100;
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++) {
        dbo_layer_costs_fixed(ns, 0, &costs[u]);
        costs[u].quant_late = quant_late;
    }
    if (layer(costs, options, p, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static void check(const dbo_program *p, dbo_findings *findings)
{
    const dbo_check_program_options options = {.layers = LAYERS};
    dbo_error err = {0};
    *findings = (dbo_findings){0};
    if (dbo_check_program(p, &options, findings, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static void must_be_right(dbo_builder_fn layer, const dbo_build_options *options, uint32_t without,
                          bool quant_late)
{
    dbo_program p;
    dbo_findings findings;
    build(&p, layer, options, without, quant_late);
    check(&p, &findings);
    for (uint32_t i = 0; i < findings.count; i++)
        printf("%s N=%u: %s: %s\n", p.name, options->num_ubatches,
               dbo_finding_kind_name(findings.items[i].kind), findings.items[i].what);
    assert_int_equal(findings.count, 0);
    dbo_findings_fini(&findings);
    dbo_program_fini(&p);
}

#define WITHOUT(kind) (1u << DBO_KIND_##kind)

static void for_all_layers(dbo_builder_fn layer, const dbo_build_options *options)
{
    static const uint32_t without[] = {0,
                                       WITHOUT(SHARED),
                                       WITHOUT(QUANT),
                                       WITHOUT(REDUCE),
                                       WITHOUT(COPY) | WITHOUT(LAYOUT),
                                       WITHOUT(H2D) | WITHOUT(QUANT),
                                       WITHOUT(EMBED)};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        for (int late = 0; late < 2; late++)
            must_be_right(layer, options, without[i], late == 1);
}

static void high_throughput_is_right(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 8; bits++)
        for (uint32_t n = 1; n <= 4; n++) {
            const dbo_build_options options = {.num_ubatches = n,
                                               .host_sync = bits & 1u,
                                               .rocm = bits & 2u,
                                               .own_stream = bits & 4u,
                                               .memory = true,
                                               .record_stream = true,
                                               .io = true};
            for_all_layers(dbo_build_ht, &options);
            for_all_layers(dbo_build_ht_prose, &options);
            must_be_right(dbo_build_dense, &options, 0, false);
        }
}

static void low_latency_is_right(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        const dbo_build_options options = {
            .num_ubatches = n, .memory = true, .record_stream = true, .io = true};
        for_all_layers(dbo_build_ll, &options);
    }
}

/* As many ubatches as there can be. */
static void sixteen_ubatches_are_right(void **state)
{
    (void)state;
    const dbo_build_options options = {
        .num_ubatches = DBO_MAX_UBATCHES, .memory = true, .record_stream = true, .io = true};
    must_be_right(dbo_build_ht, &options, 0, false);
    must_be_right(dbo_build_ll, &options, 0, true);
}

/* What the combine reads is freed at its issue; the shared expert's buffers may be next. */
static void without_record_stream_it_is_not(void **state)
{
    (void)state;
    const dbo_build_options options = {.num_ubatches = 2, .memory = true, .io = true};
    dbo_program p;
    dbo_findings findings;
    build(&p, dbo_build_ht, &options, 0, false);
    check(&p, &findings);
    assert_true(findings.count > 0);
    bool named = false;
    for (uint32_t i = 0; i < findings.count; i++) {
        const dbo_finding *f = &findings.items[i];
        assert_int_equal(f->kind, DBO_FINDING_USE_AFTER_FREE);
        assert_int_equal(dbo_op_id_kind(f->ops[0]), DBO_KIND_COMBINE);
        named = named || strcmp(f->missing_edge,
                                "record_stream of expert_out0 on comm before its free") == 0;
    }
    assert_true(named);
    dbo_findings_fini(&findings);
    dbo_program_fini(&p);
}

/* Every wait of a schedule that orders something is missed when it goes; a layer's last one, by
 * the layer that follows. */
static void each_wait_is_needed(void **state)
{
    (void)state;
    const dbo_build_options options = {
        .num_ubatches = 2, .host_sync = true, .memory = true, .record_stream = true, .io = true};
    dbo_program layer;
    build(&layer, dbo_build_ht, &options, 0, false);
    uint32_t waits = 0;
    for (uint32_t i = 0; i < layer.num_instrs[1]; i++) {
        dbo_instr *instr = &layer.instrs[1][i], kept = *instr;
        if (kept.code != DBO_CODE_WAIT || kept.stream != DBO_STREAM_COMPUTE)
            continue;
        dbo_findings findings;
        instr->code = DBO_CODE_SET_STREAM;
        check(&layer, &findings);
        *instr = kept;
        waits++;
        assert_true(dbo_findings_have(&findings, DBO_FINDING_RACE));
        dbo_findings_fini(&findings);
    }
    assert_int_equal(waits, 2); /* for the dispatch, and at the layer's end */
    dbo_program_fini(&layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(high_throughput_is_right),
        cmocka_unit_test(low_latency_is_right),
        cmocka_unit_test(sixteen_ubatches_are_right),
        cmocka_unit_test(without_record_stream_it_is_not),
        cmocka_unit_test(each_wait_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
