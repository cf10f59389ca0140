/* The all-to-all's laws against published measurements, each printed with its error, and the
 * expectations of routing against enumeration. Sources: DeepEP docs/legacy.md (H800, hidden 7168,
 * topk 8 of 256, fp8 dispatch, bf16 combine), README.md (version 2), issue 16 (H20). */
#include "core/layer/model_ops.h"
#include "sim/fabric.h"
#include "tests/support/deepseek_v3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static dbo_a2a_cost transfer(uint32_t tokens, dbo_a2a_direction direction)
{
    dbo_dtype dtype = direction == DBO_A2A_DISPATCH ? DBO_FP8 : DBO_BF16;
    return (dbo_a2a_cost){.fixed_ns = -1,
                          .tokens = tokens,
                          .topk = 8,
                          .num_experts = 256,
                          .bytes_per_token = dbo_a2a_row_bytes(7168, dtype)};
}

static void check_row(const char *name, uint32_t ep, double predicted, double published,
                      double tolerance)
{
    double error = predicted / published - 1;
    print_message("%-22s EP%-4u %8.1f published %7.1f  %+5.1f %%\n", name, ep, predicted, published,
                  100 * error);
    assert_true(error < tolerance && error > -tolerance);
}

static void low_latency_rows(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    static const struct {
        uint32_t ep;
        double dispatch_us, combine_us;
    } rows[] = {{8, 77, 114}, {16, 118, 195}, {64, 173, 314}, {256, 194, 360}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int d = 0; d < 2; d++) {
            dbo_a2a_direction direction = d ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH;
            dbo_a2a_cost cost = transfer(128, direction);
            dbo_ll_time time;
            dbo_fabric_ll(&hardware, rows[i].ep, 8, &cost, direction, &time);
            double us = (double)(time.flight_ns + time.recv_ns) / 1000;
            check_row(d ? "LL combine, us" : "LL dispatch, us", rows[i].ep, us,
                      d ? rows[i].combine_us : rows[i].dispatch_us, 0.10);
            assert_int_equal(time.out.port, rows[i].ep == 8 ? DBO_PORT_NVLINK : DBO_PORT_NIC);
            assert_true(time.send_ns < time.out.ns); /* the port takes longer than the copies */
            assert_int_equal(time.flight_ns, time.out.ns + time.wire_ns);
        }
    }
}

/* What their benchmark divides by time: inside a node copies a rank, between nodes copies a node,
 * own ones included. */
static double logical_gbps(const dbo_hardware *hardware, uint32_t ep, const dbo_a2a_cost *cost,
                           uint32_t sms)
{
    dbo_ht_time time;
    dbo_fabric_ht(hardware, ep, 8, cost, DBO_A2A_DISPATCH, sms, &time);
    uint32_t blocks = ep <= 8 ? ep : ep / 8;
    double copies = dbo_expected_blocks(cost, blocks, ep <= 8 ? 1 : ep / 8);
    return copies * cost->tokens * cost->bytes_per_token / (double)time.ns;
}

typedef struct throughput_row {
    uint32_t ep, sms, tokens, topk_groups;
    double dispatch_gbps, combine_gbps;
} throughput_row;

static void check_throughput(const char *name, const dbo_hardware *hardware,
                             const throughput_row *row)
{
    for (int d = 0; d < 2; d++) {
        dbo_a2a_direction direction = d ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH;
        dbo_a2a_cost cost = transfer(row->tokens, direction);
        cost.topk_groups = row->topk_groups;
        double gbps = logical_gbps(hardware, row->ep, &cost, row->sms);
        check_row(name, row->ep, gbps, d ? row->combine_gbps : row->dispatch_gbps, 0.15);
    }
}

static void high_throughput_rows(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    static const throughput_row rows[] = {
        {8, 24, 4096, 0, 153, 158}, {16, 24, 4096, 4, 43, 43}, {32, 24, 4096, 4, 58, 57}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_throughput("HT, GB/s logical", &hardware, &rows[i]);
    dbo_hardware h20 = hardware;
    h20.sms = 78, h20.nvlink_gbps = 360, h20.hbm_gbps = 4000;
    dbo_a2a_cost cost = transfer(4096, DBO_A2A_DISPATCH);
    check_row("HT on H20, GB/s", 8, logical_gbps(&h20, 8, &cost, 24), 337.35, 0.15);
}

/* Version 2 of the kernels moves more with an SM: about 25 GB/s forwarded. */
static void version_two_rows(void **state)
{
    (void)state;
    dbo_hardware sm90 = h800();
    sm90.nvlink_gbps = 360, sm90.comm_sm_gbps = 50;
    static const throughput_row rows[] = {{16, 12, 8192, 0, 90, 81}, {32, 6, 8192, 0, 61, 61}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_throughput("v2, SM90, GB/s", &sm90, &rows[i]);
    dbo_hardware sm100 = sm90;
    sm100.sms = 148, sm100.nvlink_gbps = 740;
    static const throughput_row fast = {8, 64, 8192, 0, 726, 740};
    check_throughput("v2, SM100, GB/s", &sm100, &fast);
}

static void few_comm_sms_are_slower(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_a2a_cost cost = transfer(4096, DBO_A2A_DISPATCH);
    dbo_ht_time full, time;
    dbo_fabric_ht(&hardware, 8, 8, &cost, DBO_A2A_DISPATCH, 24, &full);
    int64_t before = INT64_MAX;
    for (uint32_t sms = 2; sms <= 40; sms += 2) {
        dbo_fabric_ht(&hardware, 8, 8, &cost, DBO_A2A_DISPATCH, sms, &time);
        assert_true(time.ns <= before);
        assert_int_equal(time.sms, sms);
        assert_true(time.counts_ns > 0 && time.counts_ns < time.ns);
        before = time.ns;
    }
    assert_int_equal(before, full.ns); /* saturated */
    dbo_fabric_ht(&hardware, 8, 8, &cost, DBO_A2A_DISPATCH, 4, &time);
    assert_true(time.ns > 2 * full.ns);
}

/* All `topk`-subsets of the experts in all choices of groups, counted. 12 experts in `groups`
 * groups, `limit` of which are picked. */
static double enumerate(uint32_t groups, uint32_t limit, uint32_t topk, uint32_t blocks)
{
    double sum = 0, cases = 0;
    uint32_t per_group = 12 / groups, per_block = 12 / blocks;
    for (uint32_t g = 0; g < 1u << groups; g++) {
        if ((uint32_t)__builtin_popcount(g) != limit)
            continue;
        for (uint32_t e = 0; e < 1u << 12; e++) {
            uint32_t hit = 0;
            bool allowed = (uint32_t)__builtin_popcount(e) == topk;
            for (uint32_t i = 0; i < 12 && allowed; i++)
                if (e >> i & 1) {
                    allowed = g >> (i / per_group) & 1;
                    hit |= 1u << (i / per_block);
                }
            if (!allowed)
                continue;
            cases += 1;
            sum += __builtin_popcount(hit);
        }
    }
    return sum / cases;
}

static void expectations_against_enumeration(void **state)
{
    (void)state;
    static const uint32_t groups[] = {1, 2, 3, 4, 6}, blocks[] = {1, 2, 3, 4, 6, 12};
    int checked = 0;
    for (size_t g = 0; g < 5; g++)
        for (uint32_t limit = 1; limit <= groups[g]; limit++)
            for (uint32_t topk = 1; topk <= 4 && topk <= limit * (12 / groups[g]); topk++)
                for (size_t b = 0; b < 6; b++) {
                    /* A block is made of whole groups or lies within one. */
                    if (groups[g] % blocks[b] != 0 && blocks[b] % groups[g] != 0)
                        continue;
                    dbo_a2a_cost cost = {.topk = topk,
                                         .num_experts = 12,
                                         .num_groups = groups[g],
                                         .topk_groups = limit};
                    assert_float_equal(dbo_expected_blocks(&cost, blocks[b], 0),
                                       enumerate(groups[g], limit, topk, blocks[b]), 1e-9);
                    checked++;
                }
    assert_true(checked > 100);
}

/* Half of 4096 groups of one expert can be chosen in more ways than doubles count. 8 of 4096
 * experts in 16 blocks, chosen in whatever steps: as without groups. */
static void many_groups_are_counted(void **state)
{
    (void)state;
    dbo_a2a_cost cost = {.topk = 8, .num_experts = 4096, .num_groups = 4096, .topk_groups = 2048};
    double grouped = dbo_expected_blocks(&cost, 16, 0);
    cost.num_groups = cost.topk_groups = 0;
    assert_float_equal(grouped, dbo_expected_blocks(&cost, 16, 0), 1e-9);
    assert_true(grouped > 6 && grouped < 7);
}

static void fixed_is_exact(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    dbo_a2a_cost cost = transfer(128, DBO_A2A_DISPATCH);
    cost.fixed_ns = 70000;
    dbo_ll_time ll;
    dbo_fabric_ll(&hardware, 64, 8, &cost, DBO_A2A_DISPATCH, &ll);
    assert_int_equal(ll.flight_ns, 70000);
    assert_int_equal(ll.send_ns, 0);
    assert_int_equal(ll.recv_ns, 0);
    dbo_ht_time ht;
    dbo_fabric_ht(&hardware, 64, 8, &cost, DBO_A2A_DISPATCH, 20, &ht);
    assert_int_equal(ht.ns, 70000);
    assert_int_equal(ht.counts_ns, 0);
}

/* No tokens still take the latency; time grows with tokens; 72 GPUs of one domain need no NIC. */
static void shapes_of_the_law(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    int64_t before = 0;
    for (uint32_t tokens = 0; tokens <= 256; tokens += 16) {
        dbo_a2a_cost cost = transfer(tokens, DBO_A2A_COMBINE);
        dbo_ll_time time;
        dbo_fabric_ll(&hardware, 64, 8, &cost, DBO_A2A_COMBINE, &time);
        int64_t total = time.flight_ns + time.recv_ns;
        assert_true(total > before);
        assert_true(time.flight_ns > time.send_ns);
        if (tokens == 0)
            assert_int_equal(total, 20000);
        before = total;
    }
    dbo_a2a_cost cost = transfer(128, DBO_A2A_DISPATCH);
    dbo_ll_time time;
    dbo_fabric_ll(&hardware, 72, 72, &cost, DBO_A2A_DISPATCH, &time);
    assert_int_equal(time.out.port, DBO_PORT_NVLINK);
    assert_true(time.out.nic_bytes == 0);
    dbo_fabric_ll(&hardware, 1, 8, &cost, DBO_A2A_DISPATCH, &time);
    assert_int_equal(time.out.port, DBO_PORT_NONE);
}

/* What a machine has less of makes nothing faster; few SMs make the send kernel what bytes wait
 * for. */
static void less_is_never_faster(void **state)
{
    (void)state;
    int64_t before[2][2] = {{0}};
    for (uint32_t sms = 132; sms >= 1; sms--)
        for (int d = 0; d < 2; d++) {
            dbo_hardware hardware = h800();
            dbo_ll_time time;
            dbo_a2a_direction direction = d ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH;
            dbo_a2a_cost cost = transfer(128, direction);
            hardware.ll_sms = sms;
            dbo_fabric_ll(&hardware, 16, 8, &cost, direction, &time);
            assert_true(time.flight_ns + time.recv_ns >= before[0][d]);
            before[0][d] = time.flight_ns + time.recv_ns;
            if (sms == 1)
                assert_int_equal(time.flight_ns, time.send_ns + time.wire_ns);
            hardware.ll_sms = 0;
            hardware.hbm_gbps = 25.0 * sms;
            dbo_fabric_ll(&hardware, 16, 8, &cost, direction, &time);
            assert_true(time.flight_ns + time.recv_ns >= before[1][d]);
            before[1][d] = time.flight_ns + time.recv_ns;
        }
}

/* A rank with few tokens sends few rows and receives the mean; its combine the other way round. */
static void uneven_tokens(void **state)
{
    (void)state;
    dbo_hardware hardware = h800();
    for (int d = 0; d < 2; d++) {
        dbo_a2a_direction direction = d ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH;
        dbo_a2a_cost cost = transfer(1, direction);
        cost.mean_tokens = 97;
        dbo_ll_time ll;
        dbo_fabric_ll(&hardware, 64, 8, &cost, direction, &ll);
        uint64_t row = 8 * (uint64_t)cost.bytes_per_token;
        assert_int_equal(ll.bytes_out, (d ? 97 : 1) * row);
        assert_int_equal(ll.bytes_in, (d ? 1 : 97) * row);
        assert_true(d ? ll.out.ns > ll.in.ns : ll.in.ns > ll.out.ns);
        dbo_ht_time ht;
        dbo_fabric_ht(&hardware, 64, 8, &cost, direction, 24, &ht);
        double other = d ? ht.out.nic_bytes / 97 : ht.out.nic_bytes * 97;
        assert_true(ht.in.nic_bytes > other - 1e-6 && ht.in.nic_bytes < other + 1e-6);
        /* NVLink carries what the NIC has brought, whoever it is for. */
        double nvlink = d ? ht.in.nvlink_bytes : ht.out.nvlink_bytes;
        assert_true(nvlink > 7 / 8.0 * (d ? ht.out.nvlink_bytes : ht.in.nvlink_bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_is_never_faster),
        cmocka_unit_test(uneven_tokens),
        cmocka_unit_test(low_latency_rows),
        cmocka_unit_test(high_throughput_rows),
        cmocka_unit_test(version_two_rows),
        cmocka_unit_test(few_comm_sms_are_slower),
        cmocka_unit_test(expectations_against_enumeration),
        cmocka_unit_test(many_groups_are_counted),
        cmocka_unit_test(fixed_is_exact),
        cmocka_unit_test(shapes_of_the_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
