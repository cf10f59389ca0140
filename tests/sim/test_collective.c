/* test_collective.c: the law of collectives against a hand calculation, protocol by protocol. */
#include "sim/collective.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* 100 GB/s of NVLink, 20 of a NIC, 8 GPUs a domain. */
static dbo_hardware machine(void)
{
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    hardware.nvlink_gbps = 100;
    hardware.nic_gbps = 20;
    return hardware;
}

static void expect_ns(const dbo_hardware *hardware, dbo_collective collective, uint16_t gpus,
                      uint16_t apart, double bytes, double ns)
{
    const dbo_op_part part = {
        .collective = (uint8_t)collective, .gpus = gpus, .apart = apart, .hbm_bytes = bytes};
    double is = dbo_collective_ns(hardware, &part);
    if (fabs(is - ns) > 1e-6 * (ns + 1))
        fail_msg("collective %d of %u GPUs, %g bytes: %.3f ns, by hand %.3f", collective, gpus,
                 bytes, is, ns);
}

#define AR DBO_COLLECTIVE_ALL_REDUCE
#define AG DBO_COLLECTIVE_ALL_GATHER
#define RS DBO_COLLECTIVE_REDUCE_SCATTER

static void all_reduces_by_hand(void **state)
{
    (void)state;
    dbo_hardware hw = machine();
    expect_ns(&hw, AR, 4, 1, 10000, 4300 + 10000.0 * 3 / 51.0);           /* one shot */
    expect_ns(&hw, AR, 8, 1, 200000, 7200 + 200000.0 * 2 * 7 / 8 / 65.0); /* two shots */
    expect_ns(&hw, AR, 4, 1, 2e7, 32000 + 2e7 * 2 * 3 / 4 / 90.0);        /* NCCL, fast */
    hw.gpus_per_domain = 16; /* more than the engine's kernels take: NCCL, soon */
    expect_ns(&hw, AR, 9, 1, 9000, 3600 + 1550 * 9 + 9000.0 * 2 * 8 / 9 / 46.0);
    hw.collective_scale = 1.5;
    expect_ns(&hw, AR, 9, 1, 9000, 1.5 * (3600 + 1550 * 9) + 9000.0 * 2 * 8 / 9 / 46.0);
    expect_ns(&hw, AR, 4, 1, 10000, 1.5 * 4300 + 10000.0 * 3 / 51.0);
    expect_ns(&hw, AR, 8, 1, 200000, 1.5 * 7200 + 200000.0 * 2 * 7 / 8 / 65.0);
    expect_ns(&hw, AR, 4, 1, 2e8, 1.5 * 32000 + 2e8 * 2 * 3 / 4 / 90.0);
}

static void gathers_and_scatters_by_hand(void **state)
{
    (void)state;
    dbo_hardware hw = machine();
    expect_ns(&hw, AG, 8, 1, 80000, 4400 + 800 * 8 + 80000.0 * 7 / 8 / 33.0);
    expect_ns(&hw, RS, 8, 1, 8e7, 22400 + 8e7 * 7 / 8 / 81.0);
    expect_ns(&hw, AG, 1, 1, 8e7, 0);
}

/* Over NICs: those of all members that share a domain. */
static void a_group_of_several_domains(void **state)
{
    (void)state;
    dbo_hardware hw = machine();
    expect_ns(&hw, AG, 16, 2, 4e8, 22400 + 4e8 * 15 / 16 / 80.0); /* 4 of them: 80 GB/s */
    expect_ns(&hw, AR, 2, 8, 4e8, 3600 + 2 * 1550 + 4e8 / 20.0);  /* 1: 20 GB/s, and no one shot */
    expect_ns(&hw, AR, 2, 16, 4e8, 3600 + 2 * 1550 + 4e8 / 20.0);
    expect_ns(&hw, AG, 16, 1, 4e8, 22400 + 4e8 * 15 / 16 / 81.0); /* 8: 160, more than NVLink */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduces_by_hand),
        cmocka_unit_test(gathers_and_scatters_by_hand),
        cmocka_unit_test(a_group_of_several_domains),
    };
    return cmocka_run_group_tests_name("collective", tests, NULL, NULL);
}
