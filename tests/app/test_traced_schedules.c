/* What the readers of traces say of the built-in schedules run through engine and simulator: the
 * notation, the metrics worked out on paper, a drawing. */
#include "core/program/builders.h"
#include "core/rank/ubatch.h"
#include "core/trace/metrics.h"
#include "core/trace/notation.h"
#include "core/trace/trace.h"
#include "lab/world/world.h"
#include "viz/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LAYERS 6u
#define RANKS  3u

typedef struct world {
    dbo_trace trace;
    dbo_program program;
    uint32_t num_ubatches;
    bool capture;
} world;

static dbo_status run_layers(dbo_rank *rank, dbo_ubatch *ubatch, const world *w)
{
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        DBO_TRY(dbo_program_run(rank, ubatch, &w->program, 0, layer));
    return DBO_OK;
}

static dbo_status ubatch_main(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    (void)err;
    return run_layers(ubatch->rank, ubatch, arg);
}

static dbo_status forward(world *w, dbo_rank *rank, dbo_error *err)
{
    if (w->num_ubatches == 1)
        return run_layers(rank, NULL, w);
    return dbo_ubatches_run(rank, w->num_ubatches, 0, ubatch_main, w, err);
}

/* Captured once and replayed as step 1, or run as step 0. */
static dbo_status rank_main(void *arg, dbo_world_rank *of, dbo_error *err)
{
    world *w = arg;
    dbo_rank *rank = &of->rank;
    const dbo_seam *seam = &rank->seam;
    dbo_graph graph;
    DBO_TRY(dbo_rank_fit(rank, &w->program, err));
    if (!w->capture)
        return forward(w, rank, err);
    DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
    DBO_TRY(forward(w, rank, err));
    DBO_TRY(seam->graph->end(seam->graph_self, &graph));
    return seam->graph->replay(seam->graph_self, graph, rank->streams[0], 1);
}

static void run(world *w, bool ll, uint32_t num_ubatches, const int64_t us[DBO_KIND_COUNT],
                bool capture)
{
    dbo_error err;
    int64_t ns[DBO_KIND_COUNT];
    dbo_layer_costs costs[DBO_MAX_UBATCHES];
    memset(w, 0, sizeof *w);
    w->num_ubatches = num_ubatches;
    w->capture = capture;
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = us[k] > 0 ? us[k] * 1000 : -1;
    for (uint32_t u = 0; u < num_ubatches; u++)
        dbo_layer_costs_fixed(ns, 0, &costs[u]);
    dbo_trace_init(&w->trace);
    dbo_build_options build = {.num_ubatches = num_ubatches, .own_stream = true};
    assert_int_equal((ll ? dbo_build_ll : dbo_build_ht)(costs, &build, &w->program, &err), DBO_OK);
    const dbo_world_options options = {.machine = {.num_ranks = RANKS, .low_latency = ll},
                                       .max_ubatches = DBO_MAX_UBATCHES,
                                       .trace = &w->trace};
    dbo_world ranks;
    assert_int_equal(dbo_world_init(&ranks, &options, &err), DBO_OK);
    if (dbo_world_run(&ranks, rank_main, w, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_world_fini(&ranks);
}

static void end(world *w)
{
    dbo_program_fini(&w->program);
    dbo_trace_fini(&w->trace);
}

static const int64_t durations[DBO_KIND_COUNT] = {
    [DBO_KIND_A0] = 20,     [DBO_KIND_A1] = 40,    [DBO_KIND_DISPATCH] = 50,
    [DBO_KIND_QUANT] = 1,   [DBO_KIND_MLP] = 60,   [DBO_KIND_COMBINE] = 70,
    [DBO_KIND_SHARED] = 10, [DBO_KIND_LAYOUT] = 1, [DBO_KIND_COPY] = 1};

static void expect_order(const world *w, uint32_t step, bool exchange, const char *line)
{
    dbo_error err;
    dbo_notation notation;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        dbo_strbuf out = {0};
        assert_int_equal(dbo_notation_init(&notation, &w->trace, rank, step, &err), DBO_OK);
        assert_true(notation.steady);
        dbo_notation_order(&notation, (dbo_notation_style){.exchange = exchange}, &out);
        assert_string_equal(dbo_strbuf_text(&out), line);
        dbo_notation_fini(&notation);
        dbo_strbuf_fini(&out);
    }
}

static const char documents_line[] =
    "D₁ send, A0₀, A1₀, D₁ recv, D₀ send, MLP₁, D₀ recv, C₁ send, S₁, MLP₀, C₁ recv, C₀ send, "
    "S₀, A0₁, A1₁, C₀ recv.";

static void ll_reads_as_documented(void **state)
{
    (void)state;
    world w;
    for (int capture = 0; capture < 2; capture++) {
        run(&w, true, 2, durations, capture == 1);
        expect_order(&w, capture == 1 ? 1 : 0, true, documents_line);
        end(&w);
    }
}

static void ht_reads_as_documented(void **state)
{
    (void)state;
    world w;
    run(&w, false, 2, durations, false);
    expect_order(&w, 0, false, "A0₀, A1₀, A0₁, A1₁, D₀, MLP₀, D₁, MLP₁, C₀, S₀, C₁, S₁.");
    end(&w);
    run(&w, true, 1, durations, false);
    expect_order(&w, 0, false, "D send, D recv, MLP, C send, S, C recv, A0, A1.");
    end(&w);
}

static void near(dbo_quantity quantity, double value)
{
    assert_true(quantity.present);
    assert_true(quantity.value - value < 1e-6 && value - quantity.value < 1e-6);
}

/* Unsplit LL: every transfer exposed but for S under C. Replayed it is the same to the ns. */
static void unsplit_ll_on_paper(void **state)
{
    (void)state;
    for (int capture = 0; capture < 2; capture++) {
        world w;
        dbo_error err;
        dbo_metrics m;
        run(&w, true, 1, durations, capture == 1);
        assert_int_equal(dbo_metrics_compute(&m, &w.trace, 1, (uint32_t)capture, 0, &err), DBO_OK);
        near(m.layer_us, 20 + 40 + 50 + 1 + 60 + 70);
        near(m.step_us, 6 * 241);
        near(m.compute_us, 6 * 131);
        near(m.comm_us, 6 * 120);
        near(m.exposed_comm_us, 6 * 110);
        near(m.waiting_us, 0);
        near(m.critical_path_us, 6 * 241);
        near(m.efficiency, 1);
        end(&w);
    }
}

/* Split LL, by hand: the compute stream goes D0s A_1 | D0r D1s q MLP0 | D1r C0s S0 q MLP1 | C0r C1s
 * S1 A_0 | C1r: each stretch is the longer of flight and compute: 60, 61, 71, 70. */
static void split_ll_on_paper(void **state)
{
    (void)state;
    world w;
    dbo_error err;
    dbo_metrics m;
    run(&w, true, 2, durations, false);
    assert_int_equal(dbo_metrics_compute(&m, &w.trace, 0, 0, 0, &err), DBO_OK);
    near(m.layer_us, 60 + 61 + 71 + 70);
    near(m.critical_path_us, m.step_us.value);
    /* Only the last combine, beyond S, has nothing to hide under. */
    near(m.exposed_comm_us, 60);
    end(&w);
}

/* No bound is above the step, and none below the busiest stream, for any durations. */
static void bounds_hold(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 40; round++) {
        int64_t us[DBO_KIND_COUNT] = {0};
        world w;
        dbo_error err;
        dbo_metrics m;
        for (int k = 0; k < DBO_KIND_COUNT; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            us[k] = durations[k] > 0 ? 1 + (int64_t)(random >> 33) % 100 : 0;
        }
        run(&w, (round & 1) != 0, 1 + (uint32_t)round / 2 % 4, us, false);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_int_equal(dbo_metrics_compute(&m, &w.trace, rank, 0, 0, &err), DBO_OK);
            assert_true(m.critical_path_us.value >= m.compute_us.value);
            assert_true(m.bound_us.value <= m.step_us.value);
            /* An idle host and equal ranks: nothing but dependencies makes a step long. */
            near(m.critical_path_us, m.step_us.value);
        }
        end(&w);
    }
}

static void it_can_be_drawn(void **state)
{
    (void)state;
    world w;
    dbo_error err;
    dbo_metrics m;
    dbo_strbuf out = {0};
    run(&w, true, 2, durations, true);
    assert_int_equal(dbo_metrics_compute(&m, &w.trace, 0, 1, 0, &err), DBO_OK);
    dbo_text_run drawn = {"DBO on", &w.trace, 0, m.steady_start_ns, m.steady_end_ns, 0};
    assert_int_equal(dbo_text_timeline(&out, &drawn, 1, (dbo_text_style){.width = 80}, &err),
                     DBO_OK);
    assert_non_null(strstr(dbo_strbuf_text(&out), "DBO on: 262.0 µs; communication 240.0 µs"));
    assert_non_null(strstr(dbo_strbuf_text(&out), "MLP₁"));
    dbo_strbuf_fini(&out);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ll_reads_as_documented),
        cmocka_unit_test(ht_reads_as_documented),
        cmocka_unit_test(unsplit_ll_on_paper),
        cmocka_unit_test(split_ll_on_paper),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(it_can_be_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
