/* test_numeric.c: a small model that really computes, on simulated ranks: splitting a batch changes
 * no bit, whoever is idle, wherever requests are cut, whatever ops take, in whichever contexts. */
#include "lab/world/world.h"
#include "tests/support/draws.h"
#include "tests/support/numeric_world.h"

static const dbo_all2all_backend backends[] = {DBO_BACKEND_HT, DBO_BACKEND_LL};

#define EACH_BACKEND(b) for (uint32_t b = 0; (b) < 2; (b)++)

static void begin(scene *s, dbo_all2all_backend backend, uint32_t ranks, uint32_t ubatches)
{
    scene_init(s, backend, ranks);
    s->config.enable_dbo = false;
    s->config.ubatch_size = ubatches;
    s->durations = 100 * ranks + ubatches;
}

/* Prompts of uneven ranks; the cuts go through requests. */
static void prefill(scene *s, uint32_t step)
{
    for (uint32_t r = 0; r < s->config.data_parallel_size; r++) {
        scene_add(s, step, r, (scene_request){.id = 1, .scheduled = 5 + (int32_t)r});
        scene_add(s, step, r, (scene_request){.id = 2, .scheduled = 9});
        if (r == 1)
            scene_add(s, step, r, (scene_request){.id = 3, .scheduled = 2, .computed = 3});
    }
}

static void split_equals_whole(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 4; ranks++)
        for (uint32_t n = 2; n <= 4; n++)
            EACH_BACKEND(b)
            {
                scene s;
                begin(&s, backends[b], ranks, n);
                prefill(&s, 0);
                scene_must_agree(&s, ranks);
            }
}

/* A rank with tokens for the first ubatch alone, and one with none that are split or not. */
static void padding_is_routed_nowhere(void **state)
{
    (void)state;
    EACH_BACKEND(b)
    {
        scene s;
        begin(&s, backends[b], 3, 2);
        scene_add(&s, 0, 0, (scene_request){.id = 1, .scheduled = 16});
        scene_add(&s, 0, 1, (scene_request){.id = 1, .scheduled = 6}); /* its ubatch 1: 0 of 8 */
        scene_add(&s, 0, 2, (scene_request){.id = 1, .scheduled = 9}); /* its ubatch 1: 1 of 8 */
        scene_must_agree(&s, 3);
    }
}

static void idle_ranks_take_part(void **state)
{
    (void)state;
    EACH_BACKEND(b)
    {
        scene s;
        begin(&s, backends[b], 3, 2);
        s.config.dbo_decode_token_threshold = s.config.dbo_prefill_token_threshold = 2;
        scene_add(&s, 0, 0, (scene_request){.id = 1, .scheduled = 12}); /* ranks 1, 2: no tokens */
        for (uint32_t r = 0; r < 3; r++)
            scene_add(&s, 1, r, (scene_request){.id = 1 + r, .scheduled = 12, .computed = 12});
        scene_must_agree(&s, 3); /* step 1; step 0 is below the threshold of the smallest rank */
    }
}

/* Chunked prompts and decodes side by side; each step reads what earlier ones wrote. */
static void serve(scene *s)
{
    for (uint32_t r = 0; r < s->config.data_parallel_size; r++) {
        scene_add(s, 0, r, (scene_request){.id = 1, .scheduled = 11});
        scene_add(s, 1, r, (scene_request){.id = 1, .scheduled = 7, .computed = 11});
        scene_add(s, 1, r, (scene_request){.id = 2, .scheduled = 4 + (int32_t)r});
        scene_add(s, 2, r, (scene_request){.id = 1, .scheduled = 1, .computed = 18});
        scene_add(s, 2, r, (scene_request){.id = 2, .scheduled = 8, .computed = 4 + (int32_t)r});
        scene_add(s, 3, r, (scene_request){.id = 1, .scheduled = 1, .computed = 19});
        scene_add(s, 3, r, (scene_request){.id = 2, .scheduled = 1, .computed = 12 + (int32_t)r});
        for (uint64_t id = 3; id < 8; id++)
            scene_add(s, 3, r, (scene_request){.id = id, .scheduled = 1, .computed = 9});
    }
}

static void steps_build_on_each_other(void **state)
{
    (void)state;
    EACH_BACKEND(b)
    {
        scene s;
        begin(&s, backends[b], 2, 2);
        serve(&s);
        scene_must_agree(&s, 8);
    }
}

/* Rows as they are, quantised before the dispatch, quantised after; MLA; windows. */
static void every_form_of_the_model(void **state)
{
    (void)state;
    static const struct {
        dbo_dtype weights, wire;
        bool mla, window, shared;
    } forms[] = {{DBO_FP32, DBO_FP32, false, false, true},
                 {DBO_FP8, DBO_FP32, false, true, false},
                 {DBO_FP8, DBO_FP8, true, false, true}};
    for (uint32_t f = 0; f < 3; f++)
        EACH_BACKEND(b)
        {
            scene s;
            begin(&s, backends[b], 2, 2);
            s.model.weight_dtype = forms[f].weights;
            s.model.dispatch_dtype = forms[f].wire;
            s.model.num_shared = forms[f].shared ? 1 : 0;
            s.model.window = forms[f].window ? 5 : 0;
            s.model.window_every = forms[f].window ? 2 : 0;
            if (forms[f].mla) {
                s.model.attention = DBO_ATTENTION_MLA;
                s.model.kv_lora_rank = 12;
                s.model.qk_nope = s.model.v_head = 8;
                s.model.qk_rope = 4;
            }
            serve(&s);
            scene_must_agree(&s, 8);
        }
}

/* ---- one run equals another ---- */

static void simulate(scene *s, bool with_dbo, dbo_numeric_rows *out)
{
    dbo_error err = {0};
    scene_resolve(s);
    if (dbo_numeric_simulate(&s->job, with_dbo, false, out, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static void must_equal(dbo_numeric_rows *a, dbo_numeric_rows *b)
{
    dbo_numeric_report report;
    dbo_numeric_diff(a, b, &report);
    if (report.differs)
        fail_msg("%s", report.sentence);
    dbo_numeric_rows_fini(a);
    dbo_numeric_rows_fini(b);
}

static void threads_equal_fibers(void **state)
{
    (void)state;
    EACH_BACKEND(b)
    {
        dbo_numeric_rows rows[2];
        for (uint32_t thread = 0; thread < 2; thread++) {
            scene s;
            begin(&s, backends[b], 2, 2);
            s.config.executor = thread ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER;
            serve(&s);
            simulate(&s, true, &rows[thread]);
        }
        must_equal(&rows[0], &rows[1]);
    }
}

static void durations_do_not_matter(void **state)
{
    (void)state;
    EACH_BACKEND(b)
    {
        for (uint64_t seed = 0; seed < 4; seed++) {
            dbo_numeric_rows rows[2];
            for (uint32_t other = 0; other < 2; other++) {
                scene s;
                begin(&s, backends[b], 2, 3);
                prefill(&s, 0);
                s.durations = 1000 * seed + other;
                simulate(&s, true, &rows[other]);
            }
            must_equal(&rows[0], &rows[1]);
        }
    }
}

/* With a machine under it: kernels share SMs, hosts take time, transfers queue at ports. */
static void machines_do_not_matter(void **state)
{
    (void)state;
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    strcpy(hardware.name, "test");
    hardware.sms = 16;
    hardware.mem_gb = 80;
    hardware.hbm_gbps = 1000;
    hardware.nvlink_gbps = 160;
    for (uint32_t d = 0; d < 3; d++)
        hardware.peak_tflops[d] = 10;
    EACH_BACKEND(b)
    {
        scene s;
        begin(&s, backends[b], 2, 2);
        s.job.hardware = &hardware;
        s.job.hook.prepare = NULL;
        serve(&s);
        scene_must_agree(&s, 8);
    }
}

/* Decode steps with graphs: captured once, replayed on new tokens with a longer cache. */
static void replays_equal_eager_runs(void **state)
{
    (void)state;
    dbo_numeric_rows rows[2];
    for (uint32_t graphs = 0; graphs < 2; graphs++) {
        scene s;
        begin(&s, DBO_BACKEND_LL, 2, 2);
        s.config.cudagraph_mode = graphs ? DBO_GRAPHS_FULL : DBO_GRAPHS_NONE;
        for (uint32_t step = 0; step < 5; step++) /* step 3 has fewer requests, in the same graph */
            for (uint32_t r = 0; r < 2; r++)
                for (uint64_t id = 0; id < (step == 3 ? 7u : 8u) - r; id++)
                    scene_add(&s, step, r,
                              (scene_request){
                                  .id = id, .scheduled = 1, .computed = 9 + (int32_t)(step + id)});
        simulate(&s, true, &rows[graphs]);
        for (uint32_t i = 0; i < 10; i++) {
            assert_true(rows[graphs].parts[i].split);
            assert_int_equal(rows[graphs].parts[i].ran, graphs ? DBO_GRAPH_FULL : DBO_GRAPH_NONE);
        }
        if (graphs)
            scene_must_agree(&s, 10); /* unsplit graphs, too */
    }
    must_equal(&rows[0], &rows[1]);
}

/* HT as prose has it, where a hook receives the dispatch; and a machine whose host waits for every
 * transfer. */
static void other_schedules(void **state)
{
    (void)state;
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    hardware.platform = DBO_PLATFORM_ROCM;
    for (uint32_t rocm = 0; rocm < 2; rocm++) {
        scene s;
        begin(&s, DBO_BACKEND_HT, 3, 2);
        s.job.hardware = rocm ? &hardware : NULL;
        if (!rocm)
            strcpy(s.config.schedule, "seed-prose-ht");
        serve(&s);
        scene_must_agree(&s, 12);
    }
}

/* ---- at random ---- */

static void draw_step(scene *s, uint32_t step, dbo_prng *prng)
{
    for (uint32_t r = 0; r < s->config.data_parallel_size; r++) {
        uint64_t requests = dbo_prng_below(prng, 5); /* 0: idle */
        for (uint64_t id = 0; id < requests; id++) {
            int32_t scheduled = (int32_t)prng_range(prng, 1, 12);
            scene_add(s, step, r,
                      (scene_request){.id = id,
                                      .scheduled = dbo_prng_below(prng, 3) ? scheduled : 1,
                                      .computed = (int32_t)dbo_prng_below(prng, 20)});
        }
    }
}

static void random_steps(void **state)
{
    (void)state;
    uint32_t split = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        dbo_prng prng;
        scene s;
        dbo_prng_init(&prng, seed, 0);
        begin(&s, backends[seed % 2], 2 + (uint32_t)dbo_prng_below(&prng, 3),
              2 + (uint32_t)dbo_prng_below(&prng, 3));
        s.config.dbo_decode_token_threshold = s.config.dbo_prefill_token_threshold =
            s.config.ubatch_size;
        s.model.dispatch_dtype = dbo_prng_below(&prng, 2) ? DBO_FP8 : DBO_FP32;
        s.model.window = (uint32_t)dbo_prng_below(&prng, 2) * 6;
        s.durations = dbo_prng_next(&prng);
        for (uint32_t step = 0; step < 2; step++)
            draw_step(&s, step, &prng);
        if (s.job.num_steps == 0)
            continue;
        dbo_numeric_report report = scene_compare(&s);
        if (report.differs)
            fail_msg("seed %d: %s", (int)seed, report.sentence);
        split += report.num_split;
    }
    assert_true(split > 60);
}

/* ---- what is refused ---- */

static void must_refuse(scene *s, dbo_status status, const char *part)
{
    dbo_numeric_rows rows;
    dbo_error err = {0};
    scene_resolve(s);
    dbo_status got = dbo_numeric_simulate(&s->job, true, false, &rows, &err);
    if (got != status || !strstr(err.message, part))
        fail_msg("%s: '%s' lacks '%s'", dbo_status_name(got), err.message, part);
}

static void what_cannot_be_computed_is_refused(void **state)
{
    (void)state;
    scene s;
    begin(&s, DBO_BACKEND_HT, 2, 2);
    prefill(&s, 0);
    s.model.activation_dtype = DBO_BF16;
    must_refuse(&s, DBO_UNSUPPORTED, "must be fp32");
    s.model.activation_dtype = DBO_FP32;
    s.model.num_experts = 9;
    must_refuse(&s, DBO_UNSUPPORTED, "the ranks do not divide the experts");
    s.model.num_experts = 8;
    s.requests[1][0].blocks = NULL;
    s.requests[1][0].num_blocks = 0;
    must_refuse(&s, DBO_INVALID, "rank 1: ");
}

static void folded_ranks_are_refused(void **state)
{
    (void)state;
    const uint32_t classes[] = {0, 0};
    dbo_error err = {0};
    const dbo_world_options options = {
        .machine = {.num_ranks = 2, .num_classes = 1, .class_of = classes, .numeric = true}};
    dbo_world world;
    assert_int_equal(dbo_world_init(&world, &options, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "folded ranks cannot compute"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_equals_whole),
        cmocka_unit_test(padding_is_routed_nowhere),
        cmocka_unit_test(idle_ranks_take_part),
        cmocka_unit_test(steps_build_on_each_other),
        cmocka_unit_test(every_form_of_the_model),
        cmocka_unit_test(threads_equal_fibers),
        cmocka_unit_test(durations_do_not_matter),
        cmocka_unit_test(machines_do_not_matter),
        cmocka_unit_test(replays_equal_eager_runs),
        cmocka_unit_test(other_schedules),
        cmocka_unit_test(random_steps),
        cmocka_unit_test(what_cannot_be_computed_is_refused),
        cmocka_unit_test(folded_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
