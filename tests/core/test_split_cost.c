/* test_split_cost.c: shares of the cost of splitting, from sums given by hand. */
#include "core/trace/split_cost.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_us(dbo_quantity q, double us)
{
    assert_true(q.present);
    if (fabs(q.value - us) > 1e-9)
        fail_msg("%g us, expected %g", q.value, us);
}

/* Whatever the sums, shares are at least 0 and add up to the total. */
static void check_shares(const dbo_split_cost *cost)
{
    int64_t sum_ns = 0;
#define ADD_SHARE(name, what)           \
    assert_true(cost->name.value >= 0); \
    sum_ns += (int64_t)(cost->name.value * 1000 + 0.5);
    DBO_SPLIT_COST_MAP(ADD_SHARE)
#undef ADD_SHARE
    assert_true(cost->saved.value >= 0);
    assert_int_equal(sum_ns, 2 * (int64_t)(cost->total.value * 1000 + 0.5));
}

static void not_known_is_absent(void **state)
{
    (void)state;
    dbo_cost_sums without, with;
    dbo_split_cost cost;
    dbo_cost_sums_init(&without);
    dbo_cost_sums_init(&with);
    dbo_split_cost_compute(&cost, &without, &with);
#define ABSENT(name, what) assert_false(cost.name.present);
    DBO_SPLIT_COST_MAP(ABSENT)
#undef ABSENT
    assert_false(cost.saved.present);
    with.has_ops = true; /* one of them alone says nothing */
    with.comm_ns = 7;
    without.charge_ns[DBO_CHARGE_LAUNCH] = 10000;
    with.charge_ns[DBO_CHARGE_LAUNCH] = 20000;
    dbo_split_cost_compute(&cost, &without, &with);
    assert_false(cost.weights.present || cost.tiles.present || cost.transfers.present);
    expect_us(cost.launches, 10);
    expect_us(cost.total, 10);
    expect_us(cost.saved, 0);
}

/* Reading weights again explains what has grown, and no more; what is left is keys and values in
 * their bin, else tiles. A bin that shrinks is saved and lets no other bin shrink. */
static void growth_has_reasons(void **state)
{
    (void)state;
    dbo_cost_sums without, with;
    dbo_split_cost cost;
    dbo_cost_sums_init(&without);
    dbo_cost_sums_init(&with);
    without.has_ops = with.has_ops = true;
    dbo_op_sum *was = without.ops[DBO_KIND_MLP], *is = with.ops[DBO_KIND_MLP];
    was[DBO_PART_GROUPED] = (dbo_op_sum){100e3, 60e3}; /* bound by memory: 60 of 75 are weights */
    is[DBO_PART_GROUPED] = (dbo_op_sum){175e3, 120e3};
    was[DBO_PART_GEMM] = (dbo_op_sum){50e3, 20e3}; /* bound by math: nothing is */
    is[DBO_PART_GEMM] = (dbo_op_sum){50e3, 40e3};
    was[DBO_PART_STREAM] = (dbo_op_sum){9e3, 0};
    is[DBO_PART_STREAM] = (dbo_op_sum){4e3, 0};
    was = without.ops[DBO_KIND_A1];
    is = with.ops[DBO_KIND_A1];
    was[DBO_COST_OF_KV] = (dbo_op_sum){30e3, 3e3};
    is[DBO_COST_OF_KV] = (dbo_op_sum){41e3, 6e3};
    was[DBO_PART_GEMM] = (dbo_op_sum){30e3, 8e3}; /* fewer bytes of weights, more time */
    is[DBO_PART_GEMM] = (dbo_op_sum){32e3, 7e3};
    without.kernel_ns = 11e3;
    with.kernel_ns = 24e3;
    without.sm_ns = 1e3;
    with.sm_ns = 18e3;
    dbo_split_cost_compute(&cost, &without, &with);
    expect_us(cost.weights, 60 + 3);
    expect_us(cost.kv, 11 - 3);
    expect_us(cost.tiles, 15 + 2);
    expect_us(cost.kernels, 13);
    expect_us(cost.sms, 17);
    expect_us(cost.total, 63 + 8 + 17 + 13 + 17);
    expect_us(cost.saved, 5);
    check_shares(&cost);
}

/* Every sum has a difference of its own, so that two of them exchanged are seen. */
static void every_part_is_its_own(void **state)
{
    (void)state;
    const dbo_cost_sums without = {.comm_ns = 211000,
                                   .charge_ns = {[DBO_CHARGE_LAUNCH] = 11000,
                                                 [DBO_CHARGE_EVENT] = 13000,
                                                 [DBO_CHARGE_HANDOFF] = 17000,
                                                 [DBO_CHARGE_REPLAY] = 19000,
                                                 [DBO_CHARGE_POST] = 23000,
                                                 [DBO_CHARGE_METADATA] = 29000,
                                                 [DBO_CHARGE_STEP] = 31000},
                                   .vote_ns = 37000};
    dbo_cost_sums with = {.comm_ns = 211000 + 1171000,
                          .charge_ns = {[DBO_CHARGE_LAUNCH] = 11000 + 3000,
                                        [DBO_CHARGE_EVENT] = 13000 + 7000,
                                        [DBO_CHARGE_HANDOFF] = 17000 + 41000,
                                        [DBO_CHARGE_REPLAY] = 19000 - 5000,
                                        [DBO_CHARGE_POST] = 23000 + 67000,
                                        [DBO_CHARGE_METADATA] = 29000 + 97000,
                                        [DBO_CHARGE_STEP] = 31000 + 8887000},
                          .vote_ns = 37000 + 137000};
    dbo_split_cost cost;
    dbo_split_cost_compute(&cost, &without, &with);
    expect_us(cost.transfers, 1171);
    expect_us(cost.launches, 3 + 67 - 5);
    expect_us(cost.handoffs, 41);
    expect_us(cost.events, 7);
    expect_us(cost.metadata, 97);
    expect_us(cost.vote, 137);
    expect_us(cost.total, 1171 + 65 + 41 + 7 + 97 + 137);
    expect_us(cost.saved, 0);
    check_shares(&cost);
    with.charge_ns[DBO_CHARGE_LAUNCH] = 0; /* a graph that only the split step has */
    with.charge_ns[DBO_CHARGE_POST] = 0;
    with.comm_ns = 200000;
    dbo_split_cost_compute(&cost, &without, &with);
    expect_us(cost.launches, 0);
    expect_us(cost.transfers, 0);
    expect_us(cost.saved, 11 + 23 + 5 + 11);
    check_shares(&cost);
}

static void graphs_add_what_they_run(void **state)
{
    (void)state;
    dbo_cost_sums sums, graph;
    dbo_cost_sums_init(&sums);
    sums.comm_ns = 3;
    sums.ops[DBO_KIND_HEAD][DBO_PART_GEMM] = (dbo_op_sum){10, 4};
    dbo_cost_sums_init(&graph);
    graph.comm_ns = 17;
    graph.kernel_ns = 5;
    graph.sm_ns = 6;
    graph.ops[DBO_KIND_HEAD][DBO_PART_GEMM] = (dbo_op_sum){1, 2};
    graph.ops[DBO_KIND_A0][DBO_COST_OF_KV] = (dbo_op_sum){7, 8};
    dbo_cost_sums_add_ops(&sums, &graph);
    dbo_cost_sums_add_ops(&sums, &graph);
    assert_int_equal(sums.comm_ns, 37);
    assert_true(sums.kernel_ns == 10 && sums.sm_ns == 12);
    assert_true(sums.ops[DBO_KIND_HEAD][DBO_PART_GEMM].work_ns == 12);
    assert_true(sums.ops[DBO_KIND_HEAD][DBO_PART_GEMM].weight_ns == 8);
    assert_true(sums.ops[DBO_KIND_A0][DBO_COST_OF_KV].work_ns == 14);
    assert_int_equal(sums.charge_ns[DBO_CHARGE_LAUNCH], -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_known_is_absent),
        cmocka_unit_test(growth_has_reasons),
        cmocka_unit_test(every_part_is_its_own),
        cmocka_unit_test(graphs_add_what_they_run),
    };
    return cmocka_run_group_tests_name("split_cost", tests, NULL, NULL);
}
