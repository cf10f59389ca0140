/* test_numeric_scene.c: experiments of scripts, computed: their schedules and times, small rows. */
#include "app/lua/lua_load.h"
#include "lab/check/numeric_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define WORKLOADS DBO_SOURCE_DIR "/scripts/workloads/"
#define MAX_SETS  10u

typedef struct loaded {
    dbo_experiment experiment;
    dbo_numeric_scene scene;
} loaded;

static void load(loaded *l, const char *path, const char *const *sets)
{
    dbo_error err = {0};
    dbo_load_options options = {.sets = sets};
    while (options.num_sets < MAX_SETS && sets[options.num_sets])
        options.num_sets++;
    if (dbo_experiment_load(&l->experiment, path, &options, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

/* Two steps, and nothing differs; so many steps of a rank were split. */
static void must_agree_loaded(loaded *l, uint32_t split)
{
    dbo_error err = {0};
    dbo_numeric_report report = {0};
    if (dbo_numeric_scene_init(&l->scene, &l->experiment, 2, &err) != DBO_OK ||
        dbo_numeric_compare(&l->scene.job, &report, &err) != DBO_OK)
        fail_msg("%s", err.message);
    if (report.differs)
        fail_msg("%s", report.sentence);
    assert_int_equal(report.num_split, split);
    dbo_numeric_scene_fini(&l->scene);
    dbo_experiment_fini(&l->experiment);
}

static void must_agree(const char *path, const char *const *sets, uint32_t split)
{
    loaded *l = calloc(1, sizeof *l);
    load(l, path, sets);
    must_agree_loaded(l, split);
    free(l);
}

static void decode_with_graphs(void **state)
{
    (void)state;
    static const char *const sets[MAX_SETS] = {"nodes=1", "gpus_per_node=4", "data_parallel_size=4",
                                               "batch.num_tokens=40", "batch.context_len=9"};
    must_agree(WORKLOADS "deepseek-v3-decode.lua", sets, 8);
}

static void prefill(void **state)
{
    (void)state;
    static const char *const sets[MAX_SETS] = {"nodes=1",
                                               "gpus_per_node=2",
                                               "data_parallel_size=2",
                                               "batch.prompt_len=25",
                                               "batch.num_tokens=60",
                                               "dbo_prefill_token_threshold=32"};
    must_agree(WORKLOADS "deepseek-v3-prefill.lua", sets, 4);
}

static void below_the_threshold(void **state)
{
    (void)state;
    static const char *const sets[MAX_SETS] = {"nodes=1", "gpus_per_node=2", "data_parallel_size=2",
                                               "batch.num_tokens=8", "batch.context_len=9"};
    must_agree(WORKLOADS "qwen3-235b-decode.lua", sets, 0);
}

/* Durations that somebody gave have no model: ops that they leave out take no time, or are not
 * needed. */
static void given_durations(void **state)
{
    (void)state;
    for (uint32_t form = 0; form < 4; form++) {
        const char *const sets[MAX_SETS] = {"nodes=1",
                                            "gpus_per_node=2",
                                            "data_parallel_size=2",
                                            "batch.num_tokens=40",
                                            "batch.context_len=9",
                                            "cudagraph_mode=NONE",
                                            form & 1 ? "all2all_backend=deepep_high_throughput"
                                                     : "all2all_backend=deepep_low_latency"};
        loaded *l = calloc(1, sizeof *l);
        load(l, WORKLOADS "deepseek-v3-decode.lua", sets);
        l->experiment.has_fixed = true;
        l->experiment.fixed =
            (dbo_fixed_costs){.a0_us = 10, .a1_us = 20, .d_us = 50, .m_us = 40, .c_us = 60};
        if (form & 2) {
            l->experiment.fixed.quant_us = l->experiment.fixed.layout_us = 2;
            l->experiment.fixed.reduce_us = l->experiment.fixed.s_us = 5;
            l->experiment.fixed.h2d_us = l->experiment.fixed.launch_us = 1;
        }
        must_agree_loaded(l, 4);
        free(l);
    }
}

/* ---- what is broken, by the experiment's own times ---- */

static dbo_status rotate_outputs(void *self, const dbo_step_view *step, dbo_plan *plan,
                                 dbo_error *err)
{
    dbo_program_op *head = &plan->head.ops[0];
    (void)self;
    (void)err;
    if (step->cut->num_ubatches < 2)
        return DBO_OK;
    dbo_op_io *io = dbo_arena_copy(&plan->head.texts, head->io, sizeof *io);
    dbo_access *reads =
        dbo_arena_copy(&plan->head.texts, io->reads, io->num_reads * sizeof *io->reads);
    memcpy(reads, io->reads + 2, (io->num_reads - 2) * sizeof *reads);
    memcpy(reads + io->num_reads - 2, io->reads, 2 * sizeof *reads);
    io->reads = reads;
    head->io = io;
    return DBO_OK;
}

/* The cut request's length, changed where the step keeps it, is wrong for its other half. */
static dbo_status shorten(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err)
{
    const dbo_numeric_scene *scene = self;
    const dbo_ref_limits *limits = step->runner->deployment->numbers;
    (void)plan;
    (void)err;
    assert_ptr_equal(limits->spec, &scene->model);
    const dbo_rank *rank = step->runner->rank;
    uint16_t buffer = dbo_layer_buffer(0, DBO_BUFFER_METADATA);
    int32_t *metadata = rank->seam.mem->ptr(rank->seam.mem_self, rank->addresses[buffer]);
    assert_non_null(metadata);
    if (step->cut->num_ubatches > 1 && step->step == 1)
        metadata[dbo_ref_metadata_map(limits).seq_lens]--;
    return DBO_OK;
}

static void broken_decode(loaded *l, dbo_plan_hook hook, const dbo_fault *fault,
                          dbo_numeric_report *report)
{
    static const char *const sets[MAX_SETS] = {"nodes=1", "gpus_per_node=2", "data_parallel_size=2",
                                               "batch.num_tokens=32", "batch.context_len=9"};
    dbo_error err = {0};
    load(l, WORKLOADS "deepseek-v3-decode.lua", sets);
    if (dbo_numeric_scene_init(&l->scene, &l->experiment, 2, &err) != DBO_OK)
        fail_msg("%s", err.message);
    l->scene.job.hook_of_dbo = hook;
    l->scene.job.fault = fault;
    if (dbo_numeric_compare(&l->scene.job, report, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_true(report->differs);
    dbo_numeric_scene_fini(&l->scene);
    dbo_experiment_fini(&l->experiment);
}

static void defects_are_placed(void **state)
{
    (void)state;
    loaded *l = calloc(1, sizeof *l);
    dbo_numeric_report report;
    broken_decode(l, (dbo_plan_hook){.prepare = rotate_outputs}, NULL, &report);
    assert_int_equal(report.step, 0);
    assert_non_null(strstr(report.sentence, "step 0, the head, rank 0, token 0"));
    assert_int_equal(report.num_differing, report.num_tokens);
    broken_decode(l, (dbo_plan_hook){.prepare = shorten, .self = &l->scene}, NULL, &report);
    assert_int_equal(report.step, 1);
    assert_int_equal(report.layer, 0);
    assert_int_equal(report.token, 0);
    assert_true(report.num_differing > 0);
    dbo_fault stale; /* step 1 runs on step 0's tokens */
    assert_int_equal(dbo_fault_parse(&stale, "replay-stale-input", NULL), DBO_OK);
    broken_decode(l, (dbo_plan_hook){0}, &stale, &report);
    assert_int_equal(report.fault_reached, 2);
    assert_int_equal(report.step, 1);
    assert_int_equal(report.layer, 0);
    free(l);
}

/* ---- what is refused ---- */

/* `block` (NULL: none): the one that the first request names. */
static void must_refuse(const char *const *sets, const int32_t *block, dbo_status status,
                        const char *part)
{
    loaded *l = calloc(1, sizeof *l);
    dbo_error err = {0};
    load(l, WORKLOADS "deepseek-v3-decode.lua", sets);
    l->experiment.batch.lists[0].requests[0].blocks = block;
    l->experiment.batch.lists[0].requests[0].num_blocks = block != NULL;
    assert_int_equal(dbo_numeric_scene_init(&l->scene, &l->experiment, 2, &err), status);
    if (!strstr(err.message, part))
        fail_msg("'%s' lacks '%s'", err.message, part);
    dbo_experiment_fini(&l->experiment);
    free(l);
}

static void too_large_to_compute(void **state)
{
    (void)state;
    static const char *const nothing[MAX_SETS] = {NULL};
    static const char *const narrow[MAX_SETS] = {"nodes=1", "gpus_per_node=2",
                                                 "data_parallel_size=2"};
    static const char *const apart[MAX_SETS] = {"nodes=1", "gpus_per_node=4",
                                                "data_parallel_size=2", "tensor_parallel_size=2"};
    static const char *const small[MAX_SETS] = {"nodes=1", "gpus_per_node=2",
                                                "data_parallel_size=2", "batch.num_tokens=5",
                                                "batch.context_len=9"};
    static const int32_t far = 1000003;
    must_refuse(nothing, NULL, DBO_LIMIT, "16384 tokens on 128 ranks is too large");
    must_refuse(narrow, NULL, DBO_LIMIT,
                "each of 2 ranks need a cache of 32896 blocks of 16 tokens");
    must_refuse(small, &far, DBO_LIMIT, "a cache of 1000003 blocks of 16 tokens: too large");
    must_refuse(apart, NULL, DBO_UNSUPPORTED, "TP is larger than 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_with_graphs),  cmocka_unit_test(prefill),
        cmocka_unit_test(below_the_threshold), cmocka_unit_test(given_durations),
        cmocka_unit_test(defects_are_placed),  cmocka_unit_test(too_large_to_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
