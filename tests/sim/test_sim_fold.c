/* test_sim_fold.c: whole schedules on many ranks: identical ranks folded into classes run exactly
 * as they do unfolded, and threads as fibers do, on random workloads. */
#include "core/base/prng.h"
#include "core/program/builders.h"
#include "tests/support/draws.h"
#include "tests/support/sim_world.h"

#include <stdio.h>

#define MAX_RANKS   64u
#define MAX_CLASSES 4u

typedef struct workload {
    dbo_sim_options options;
    dbo_hardware hardware;
    uint32_t class_of[MAX_RANKS], num_classes, num_ubatches, layers;
    bool capture, low_latency;
    dbo_program programs[MAX_CLASSES];
    uint32_t late[MAX_CLASSES]; /* charged before the step */
    int64_t host_ns[MAX_RANKS]; /* at the end */
    bool folded;
} workload;

static uint32_t class_in(const workload *load, uint32_t rank)
{
    return load->folded ? rank : load->class_of[rank];
}

/* ---- a rank: a vote, then the layers, eagerly or captured and replayed twice ---- */

static dbo_status run_layers(dbo_rank *rank, dbo_ubatch *ubatch, const workload *load)
{
    const dbo_program *program = &load->programs[class_in(load, rank->id)];
    for (uint32_t layer = 0; layer < load->layers; layer++)
        DBO_TRY(dbo_program_run(rank, ubatch, program, 0, layer));
    return DBO_OK;
}

static dbo_status ubatch_main(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    (void)err;
    return run_layers(ubatch->rank, ubatch, arg);
}

static dbo_status forward(workload *load, dbo_rank *rank, dbo_error *err)
{
    if (load->num_ubatches == 1)
        return run_layers(rank, NULL, load);
    return dbo_ubatches_run(rank, load->num_ubatches, 0, ubatch_main, load, err);
}

static dbo_status vote(const workload *load, const dbo_seam *seam, uint32_t class)
{
    int32_t column[2] = {(int32_t) class, 5}, matrix[2 * MAX_RANKS];
    DBO_TRY(seam->group->exchange(seam->group_self, "vote", 0, column, 2, matrix));
    for (uint32_t r = 0; r < load->options.num_ranks; r++) {
        assert_int_equal(matrix[r], load->class_of[r]); /* expanded to all logical ranks */
        assert_int_equal(matrix[load->options.num_ranks + r], 5);
    }
    return DBO_OK;
}

static dbo_status rank_main(sim_world *w, uint32_t id, dbo_error *err)
{
    workload *load = w->arg;
    const dbo_seam *seam = &w->seams[id];
    dbo_rank *rank = &w->ranks[id];
    uint32_t class = class_in(load, id);
    dbo_graph graph;
    DBO_TRY(dbo_rank_init(rank, id, seam, w->contexts, 4, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_rank_fit(rank, &load->programs[class], err));
    sim_charge(seam, load->late[class]);
    DBO_TRY(vote(load, seam, class));
    if (load->capture) {
        DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
        DBO_TRY(forward(load, rank, err));
        DBO_TRY(seam->graph->end(seam->graph_self, &graph));
        for (uint32_t step = 1; step < 3; step++)
            DBO_TRY(seam->graph->replay(seam->graph_self, graph, rank->streams[0], step));
    } else {
        DBO_TRY(forward(load, rank, err));
    }
    load->host_ns[id] = sim_now(seam);
    return DBO_OK;
}

/* ---- random workloads ---- */

static void random_costs(dbo_prng *prng, bool by_bytes, dbo_layer_costs *costs)
{
    static const dbo_op_kind there[] = {
        DBO_KIND_A0,  DBO_KIND_A1,     DBO_KIND_QUANT,   DBO_KIND_LAYOUT, DBO_KIND_DISPATCH,
        DBO_KIND_MLP, DBO_KIND_REDUCE, DBO_KIND_COMBINE, DBO_KIND_SHARED, DBO_KIND_COPY};
    static const uint32_t sms[] = {0, 20, 66, 132};
    int64_t ns[DBO_KIND_COUNT];
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = -1;
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        ns[there[i]] = prng_range(prng, 0, 40000);
    dbo_layer_costs_fixed(ns, sms[dbo_prng_below(prng, 4)], costs);
    if (!by_bytes)
        return;
    costs->dispatch = (dbo_a2a_cost){.fixed_ns = -1,
                                     .tokens = (uint32_t)prng_range(prng, 0, 512),
                                     .topk = 8,
                                     .num_experts = 256,
                                     .bytes_per_token = 7168};
    costs->combine = costs->dispatch;
    costs->combine.bytes_per_token *= 2;
}

static void make_workload(workload *load, uint64_t seed, uint32_t num_ranks)
{
    static const uint32_t depths[] = {2, 5, 16, 1024};
    dbo_prng prng;
    dbo_error err;
    memset(load, 0, sizeof *load);
    dbo_prng_init(&prng, seed, 2);
    bool ll = load->low_latency = (seed & 1) != 0, by_bytes = dbo_prng_below(&prng, 2) == 0;
    load->hardware = sim_round_hardware();
    load->capture = dbo_prng_below(&prng, 4) == 0;
    load->num_ubatches = 1 + (uint32_t)dbo_prng_below(&prng, 3);
    load->num_classes = 1 + (uint32_t)dbo_prng_below(&prng, MAX_CLASSES);
    load->layers = 1 + (uint32_t)dbo_prng_below(&prng, 4);
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT; k++)
        load->hardware.host_ns[k] = (double)dbo_prng_below(&prng, 3000);
    const dbo_build_options build = {
        .num_ubatches = load->num_ubatches, .host_sync = !ll && !load->capture, .own_stream = true};
    for (uint32_t c = 0; c < load->num_classes; c++) {
        dbo_layer_costs costs[4];
        for (uint32_t u = 0; u < load->num_ubatches; u++)
            random_costs(&prng, by_bytes, &costs[u]);
        assert_int_equal(
            (ll ? dbo_build_ll : dbo_build_ht)(costs, &build, &load->programs[c], &err), DBO_OK);
        load->late[c] = (uint32_t)dbo_prng_below(&prng, 100);
    }
    for (uint32_t r = 0; r < num_ranks; r++) /* each class has a member */
        load->class_of[r] =
            r < load->num_classes ? r : (uint32_t)dbo_prng_below(&prng, load->num_classes);
    prng_shuffle(&prng, load->class_of, num_ranks);
    load->options = (dbo_sim_options){.num_ranks = num_ranks,
                                      .hardware = &load->hardware,
                                      .gpus_per_domain = 4,
                                      .transport = ll ? DBO_SIM_LL : DBO_SIM_HT,
                                      .queue_depth = depths[dbo_prng_below(&prng, 4)],
                                      .exchange_ns = 3000};
}

static void free_workload(workload *load)
{
    for (uint32_t c = 0; c < load->num_classes; c++)
        dbo_program_fini(&load->programs[c]);
}

static void simulate(workload *load, bool folded, dbo_context_kind contexts, sim_world *w)
{
    dbo_sim_options options = load->options;
    load->folded = folded;
    options.contexts = contexts;
    if (folded) {
        options.class_of = load->class_of;
        options.num_classes = load->num_classes;
    }
    sim_world_open(w, options);
    sim_world_must_run(w, rank_main, load);
}

/* ---- comparing ---- */

/* The next span of a rank on a stream and part from *at on, or NULL. */
static const dbo_span *next_span(const sim_world *w, uint64_t *at, uint32_t rank, uint32_t stream,
                                 uint32_t part)
{
    while (*at < w->trace.num_spans) {
        const dbo_span *s = dbo_trace_span(&w->trace, (*at)++);
        if (dbo_op_id_rank(s->id) == rank && s->stream == stream && s->part == part)
            return s;
    }
    return NULL;
}

/* Rank `a` of one world did what rank `b` of another did, at the same times. */
static uint32_t same_spans(const sim_world *one, uint32_t a, const sim_world *other, uint32_t b)
{
    static const uint32_t streams[] = {0, 1, DBO_NETWORK_STREAM};
    const uint64_t without_rank = ~dbo_op_id_make(0, DBO_MAX_RANKS - 1, 0, 0, 0, 0);
    uint32_t compared = 0;
    for (uint32_t i = 0; i < 3 * (DBO_SPAN_RECV + 1u); i++) {
        uint64_t at_one = 0, at_other = 0;
        uint32_t stream = streams[i % 3], part = i / 3;
        for (;;) {
            const dbo_span *s = next_span(one, &at_one, a, stream, part);
            const dbo_span *t = next_span(other, &at_other, b, stream, part);
            assert_true(!s == !t);
            if (!s || !t)
                break;
            assert_int_equal(s->id & without_rank, t->id & without_rank);
            assert_int_equal(s->start_ns, t->start_ns);
            assert_int_equal(s->end_ns, t->end_ns);
            assert_int_equal(s->bytes, t->bytes);
            assert_int_equal(s->sms, t->sms);
            compared++;
        }
    }
    return compared;
}

static void folded_is_unfolded(void **state)
{
    (void)state;
    uint32_t spans = 0, rounds = 400;
    for (uint64_t seed = 0; seed < rounds; seed++) {
        static workload load;
        int64_t host_ns[MAX_RANKS];
        sim_world folded, unfolded;
        uint32_t num_ranks = MAX_CLASSES + (uint32_t)(seed * 7 % 9);
        make_workload(&load, seed, num_ranks);
        simulate(&load, false, DBO_CONTEXT_FIBER, &unfolded);
        memcpy(host_ns, load.host_ns, sizeof host_ns);
        simulate(&load, true, DBO_CONTEXT_FIBER, &folded);
        for (uint32_t r = 0; r < num_ranks; r++) {
            spans += same_spans(&unfolded, r, &folded, load.class_of[r]);
            assert_int_equal(host_ns[r], load.host_ns[load.class_of[r]]);
        }
        assert_int_equal(dbo_sim_now_ns(folded.sim), dbo_sim_now_ns(unfolded.sim));
        sim_world_close(&folded);
        sim_world_close(&unfolded);
        free_workload(&load);
    }
    printf("fold: %u random workloads, %u spans of unfolded ranks equal to their class's\n", rounds,
           spans);
    assert_true(spans > 10000);
}

/* 64 ranks: the whole trace is the same, span by span and mark by mark, in the same order. */
static void threads_do_what_fibers_do(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1008; seed++) {
        static workload load;
        sim_world fibers, threads;
        make_workload(&load, seed, MAX_RANKS);
        simulate(&load, false, DBO_CONTEXT_FIBER, &fibers);
        simulate(&load, false, DBO_CONTEXT_THREAD, &threads);
        assert_int_equal(fibers.trace.num_spans, threads.trace.num_spans);
        assert_int_equal(fibers.trace.num_issues, threads.trace.num_issues);
        assert_int_equal(fibers.trace.num_marks, threads.trace.num_marks);
        for (uint64_t i = 0; i < fibers.trace.num_spans; i++)
            assert_memory_equal(dbo_trace_span(&fibers.trace, i), dbo_trace_span(&threads.trace, i),
                                sizeof(dbo_span));
        for (uint64_t i = 0; i < fibers.trace.num_issues; i++)
            assert_memory_equal(dbo_trace_issue(&fibers.trace, i),
                                dbo_trace_issue(&threads.trace, i), sizeof(dbo_issue));
        for (uint64_t i = 0; i < fibers.trace.num_marks; i++)
            assert_memory_equal(dbo_trace_mark(&fibers.trace, i), dbo_trace_mark(&threads.trace, i),
                                sizeof(dbo_mark));
        sim_world_close(&fibers);
        sim_world_close(&threads);
        free_workload(&load);
    }
}

static void classes_are_checked(void **state)
{
    (void)state;
    dbo_error err = {0};
    const uint32_t class_of[3] = {0, 1, 2};
    assert_null(dbo_sim_create(
        &(dbo_sim_options){.num_ranks = 3, .num_classes = 2, .class_of = class_of}, &err));
    assert_string_equal(err.message, "rank 2 is of class 2, there are 2");
    assert_null(dbo_sim_create(&(dbo_sim_options){.num_ranks = 3, .num_classes = 4}, &err));
    assert_string_equal(err.message, "more classes (4) than ranks (3)");
    assert_null(dbo_sim_create(&(dbo_sim_options){.num_ranks = 0}, &err));
    assert_null(dbo_sim_create(&(dbo_sim_options){.num_ranks = DBO_MAX_RANKS + 1}, &err));
    assert_int_equal(err.status, DBO_LIMIT);
    assert_null(dbo_sim_create(&(dbo_sim_options){.num_ranks = 3, .num_classes = 2}, &err));
    assert_non_null(strstr(err.message, "class_of"));
    dbo_sim_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_is_unfolded),
        cmocka_unit_test(threads_do_what_fibers_do),
        cmocka_unit_test(classes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
