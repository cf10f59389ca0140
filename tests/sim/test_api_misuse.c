/* test_api_misuse.c: what a caller of the C API can get wrong with numbers is a sentence: machines
 * without SMs, costs that are none, ranks and ubatches that there are not. */
#include "core/dbo.h"
#include "sim/sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

static dbo_hardware small_gpu(void)
{
    dbo_hardware hw;
    dbo_hardware_init(&hw);
    strcpy(hw.name, "small");
    hw.sms = 7;
    hw.comm_sms = 3;
    hw.mem_gb = 8;
    hw.peak_tflops[DBO_BF16] = 11;
    hw.hbm_gbps = 130;
    hw.nvlink_gbps = 17;
    return hw;
}

static void refused_with(dbo_status status, const dbo_error *err, const char *words)
{
    assert_int_not_equal(status, DBO_OK);
    if (!strstr(err->message, words))
        fail_msg("'%s' does not say '%s'", err->message, words);
}

/* ---- the simulator's options ---- */

static void create_refuses(const dbo_sim_options *options, const char *words)
{
    dbo_error err = {0};
    dbo_sim *sim = dbo_sim_create(options, &err);
    assert_null(sim);
    refused_with(err.status, &err, words);
}

static void a_machine_that_is_none_is_refused(void **state)
{
    (void)state;
    dbo_hardware hw = small_gpu();
    dbo_error err = {0};
    dbo_sim *sim = dbo_sim_create(&(dbo_sim_options){.num_ranks = 3, .hardware = &hw}, &err);
    assert_non_null(sim);
    dbo_sim_destroy(sim);
    hw.sms = 5000;
    create_refuses(&(dbo_sim_options){.num_ranks = 3, .hardware = &hw}, "sms is 5000");
    static const size_t rates[] = {
        offsetof(dbo_hardware, hbm_gbps), offsetof(dbo_hardware, nvlink_gbps),
        offsetof(dbo_hardware, peak_tflops[DBO_BF16]), offsetof(dbo_hardware, hbm_sm_fraction),
        offsetof(dbo_hardware, flop_efficiency[DBO_PART_GROUPED])};
    static const double wrong[] = {-3, INFINITY, NAN};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            hw = small_gpu();
            memcpy((char *)&hw + rates[i], &wrong[k], sizeof wrong[k]);
            create_refuses(&(dbo_sim_options){.num_ranks = 1, .hardware = &hw}, "hardware");
        }
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    create_refuses(&(dbo_sim_options){.num_ranks = 0}, "0 ranks");
    create_refuses(&(dbo_sim_options){.num_ranks = DBO_MAX_RANKS + 1}, "16385 ranks");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .num_classes = 3}, "more classes (3)");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .transport = (dbo_sim_transport)2},
                   "transport 2");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .contexts = (dbo_context_kind)5},
                   "context 5");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .exchange_ns = -1}, "takes -1 ns");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .exchange_ns = INT64_MAX}, "an exchange");
    create_refuses(&(dbo_sim_options){.num_ranks = 2, .ep_size = DBO_MAX_RANKS + 1}, "16385 GPUs");
}

/* ---- ranks, ubatches and kernels ---- */

typedef struct misuse {
    dbo_rank rank;
    dbo_kernel kernel; /* that rank_main launches */
    const char *words; /* that its refusal says; NULL: it runs */
} misuse;

static dbo_status nothing(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    (void)ubatch, (void)arg, (void)err;
    return DBO_OK;
}

static dbo_status rank_main(void *arg, uint32_t rank, dbo_error *err)
{
    misuse *m = arg;
    dbo_error own = {0};
    (void)rank, (void)err;
    refused_with(dbo_ubatches_run(&m->rank, 0, 1, nothing, NULL, &own), &own, "0 ubatches");
    refused_with(dbo_ubatches_run(&m->rank, 3, 1, nothing, NULL, &own), &own, "3 ubatches");
    refused_with(dbo_ubatches_run(&m->rank, 2, 1, NULL, NULL, &own), &own, "without a function");
    refused_with(dbo_ubatches_run(&m->rank, 2, DBO_MAX_STEPS, nothing, NULL, &own), &own,
                 "step 16384");
    assert_int_equal(dbo_ubatches_run(&m->rank, 2, 1, nothing, NULL, &own), DBO_OK);
    dbo_status status = dbo_kernel_launch(&m->rank, &m->kernel);
    if (!m->words)
        return status;
    dbo_rank_fail(&m->rank, status, &own);
    refused_with(status, &own, m->words);
    return DBO_OK;
}

/* Launches the kernel on a GPU of so many SMs. */
static void launch_on(uint32_t sms, const dbo_kernel *kernel, const char *words)
{
    dbo_hardware hw = small_gpu();
    hw.sms = sms;
    dbo_error err = {0};
    dbo_seam seam;
    misuse m = {.kernel = *kernel, .words = words};
    dbo_sim *sim = dbo_sim_create(&(dbo_sim_options){.num_ranks = 1, .hardware = &hw}, &err);
    assert_non_null(sim);
    dbo_sim_seam(sim, 1, &seam); /* there is none */
    refused_with(dbo_rank_init(&m.rank, 0, &seam, DBO_CONTEXT_FIBER, 2, dbo_sim_pool(sim), &err),
                 &err, "host table");
    dbo_sim_seam(sim, 0, &seam);
    refused_with(dbo_rank_init(&m.rank, DBO_MAX_RANKS, &seam, DBO_CONTEXT_FIBER, 2, NULL, &err),
                 &err, "rank 16384");
    refused_with(dbo_rank_init(&m.rank, 0, &seam, DBO_CONTEXT_FIBER, 0, NULL, &err), &err,
                 "0 ubatches");
    refused_with(dbo_rank_init(&m.rank, 0, &seam, (dbo_context_kind)2, 2, NULL, &err), &err,
                 "kind 2");
    assert_int_equal(
        dbo_rank_init(&m.rank, 0, &seam, DBO_CONTEXT_FIBER, 2, dbo_sim_pool(sim), &err), DBO_OK);
    dbo_sim_delay(sim, 5, 1000);
    dbo_sim_delay(sim, 0, -1000);
    if (dbo_sim_run(sim, rank_main, &m, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_rank_fini(&m.rank);
    dbo_sim_destroy(sim);
}

static void launch(const dbo_kernel *kernel, const char *words)
{
    launch_on(7, kernel, words);
}

static void launch_part(dbo_op_part part, const char *words)
{
    const dbo_op_cost cost = {.fixed_ns = -1, .num_parts = 1, .parts = {part}};
    launch(&(dbo_kernel){.kind = DBO_KIND_MLP, .cost = &cost}, words);
}

static void a_cost_that_is_none_is_refused(void **state)
{
    (void)state;
    launch_part((dbo_op_part){.flops = 3e9, .tiles = 11, .hbm_bytes = 5e6}, NULL);
    launch_part((dbo_op_part){.flops = -1}, "-1 FLOPs");
    launch_part((dbo_op_part){.flops = NAN}, "FLOPs");
    launch_part((dbo_op_part){.hbm_bytes = INFINITY}, "inf bytes");
    launch_part((dbo_op_part){.kind = DBO_NUM_PART_KINDS}, "kind 4");
    launch_part((dbo_op_part){.dtype = DBO_NUM_DTYPES}, "type 3");
    const dbo_op_cost many = {.fixed_ns = -1, .num_parts = DBO_OP_MAX_PARTS + 1};
    launch(&(dbo_kernel){.kind = DBO_KIND_MLP, .cost = &many}, "9 parts");
    const dbo_op_cost fixed = {.fixed_ns = 0,
                               .num_parts = DBO_OP_MAX_PARTS + 1}; /* not looked at */
    launch(&(dbo_kernel){.kind = DBO_KIND_MLP, .cost = &fixed}, NULL);
}

/* It has the times of its host, and work whose time is known. */
static void hardware_without_sms_is_a_host(void **state)
{
    (void)state;
    const dbo_op_cost part = {
        .fixed_ns = -1, .num_parts = 1, .parts = {{.flops = 1e9, .tiles = 7}}};
    const dbo_op_cost fixed = {.fixed_ns = 700, .fixed_sms = 5};
    launch_on(0, &(dbo_kernel){.kind = DBO_KIND_A0, .cost = &part}, "hardware without SMs");
    launch_on(0, &(dbo_kernel){.kind = DBO_KIND_A0, .cost = &fixed}, NULL);
    dbo_hardware hw = small_gpu();
    hw.host_ns[DBO_CHARGE_LAUNCH] = -1;
    create_refuses(&(dbo_sim_options){.num_ranks = 1, .hardware = &hw}, "host_launch_ns");
}

static void a_kernel_of_nobody_is_refused(void **state)
{
    (void)state;
    const dbo_access access = {.buffer = 3, .bytes = 5};
    const dbo_op_io io = {.num_reads = 1, .reads = &access};
    launch(&(dbo_kernel){.kind = DBO_KIND_COUNT}, "no place among the op ids");
    launch(&(dbo_kernel){.layer = DBO_MAX_LAYERS}, "layer 1024");
    launch(&(dbo_kernel){.kind = DBO_KIND_A1, .layer = 6, .io = &io}, "without addresses");
}

/* A program made by hand goes through the same check. */
static void a_program_with_such_a_cost_is_refused(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_program_op op = {.kernels = 1, .cost = {.fixed_ns = -1, .num_parts = 1}};
    dbo_program program = {.name = "own", .num_ubatches = 1, .num_ops = 1, .ops = &op};
    dbo_instr instr = {.code = DBO_CODE_OP};
    program.instrs[0] = &instr;
    program.num_instrs[0] = 1;
    program.num_streams = 1;
    if (dbo_program_check(&program, &err) != DBO_OK)
        fail_msg("%s", err.message);
    op.cost.parts[0].kind = 9;
    refused_with(dbo_program_check(&program, &err), &err, "program own: op 0: part 0 of a cost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_that_is_none_is_refused),
        cmocka_unit_test(hardware_without_sms_is_a_host),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(a_cost_that_is_none_is_refused),
        cmocka_unit_test(a_kernel_of_nobody_is_refused),
        cmocka_unit_test(a_program_with_such_a_cost_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
