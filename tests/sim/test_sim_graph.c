/* test_sim_graph.c: graphs of the simulator: captured schedules of both ubatches replay without
 * hand-offs at the times of an eager run; what a capture refuses; replays in the order of streams.
 */
#include "core/program/builders.h"
#include "tests/support/sim_world.h"

#define RANKS 3u

/* ---- whole schedules ---- */

typedef struct schedule {
    dbo_program program;
    uint32_t replays; /* 0: eager */
    uint32_t nodes;
} schedule;

static dbo_status ubatch_main(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const schedule *s = arg;
    (void)err;
    for (uint32_t layer = 0; layer < 4; layer++)
        DBO_TRY(dbo_program_run(ubatch->rank, ubatch, &s->program, 0, layer));
    return DBO_OK;
}

static dbo_status capture_and_replay(sim_world *w, uint32_t id, dbo_error *err)
{
    schedule *s = w->arg;
    const dbo_seam *seam = &w->seams[id];
    dbo_rank *rank = &w->ranks[id];
    dbo_graph graph;
    DBO_TRY(dbo_rank_init(rank, id, seam, w->contexts, 2, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_rank_fit(rank, &s->program, err));
    if (s->replays == 0)
        return dbo_ubatches_run(rank, 2, 0, ubatch_main, s, err);
    DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
    DBO_TRY(dbo_ubatches_run(rank, 2, 0, ubatch_main, s, err));
    assert_true(seam->graph->is_capturing(seam->graph_self));
    DBO_TRY(seam->graph->end(seam->graph_self, &graph));
    assert_false(seam->graph->is_capturing(seam->graph_self));
    s->nodes = dbo_sim_graph_nodes(w->sim, id, graph);
    for (uint32_t step = 1; step <= s->replays; step++)
        DBO_TRY(seam->graph->replay(seam->graph_self, graph, rank->streams[0], step));
    return DBO_OK;
}

static void build(schedule *s, bool ll)
{
    static const int64_t us[DBO_KIND_COUNT] = {
        [DBO_KIND_A0] = 20,     [DBO_KIND_A1] = 40,    [DBO_KIND_DISPATCH] = 50,
        [DBO_KIND_QUANT] = 1,   [DBO_KIND_MLP] = 60,   [DBO_KIND_COMBINE] = 70,
        [DBO_KIND_SHARED] = 10, [DBO_KIND_LAYOUT] = 1, [DBO_KIND_COPY] = 1};
    int64_t ns[DBO_KIND_COUNT];
    dbo_layer_costs costs[2];
    dbo_error err;
    const dbo_build_options options = {.num_ubatches = 2};
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = us[k] > 0 ? us[k] * 1000 : -1;
    dbo_layer_costs_fixed(ns, 0, &costs[0]);
    ns[DBO_KIND_A1] += 7000; /* the ubatches differ */
    dbo_layer_costs_fixed(ns, 0, &costs[1]);
    assert_int_equal((ll ? dbo_build_ll : dbo_build_ht)(costs, &options, &s->program, &err),
                     DBO_OK);
}

static uint32_t count_marks(const sim_world *w, dbo_mark_kind kind)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < w->trace.num_marks; i++)
        count += dbo_trace_mark(&w->trace, i)->kind == kind;
    return count;
}

/* Every span of the eager run is there once a replay, `period_ns` later each, with its step. */
static void expect_replays(const sim_world *eager, const sim_world *w, uint32_t replays,
                           int64_t period_ns)
{
    const dbo_op_id step_one = dbo_op_id_make(1, 0, 0, 0, 0, 0);
    assert_int_equal(w->trace.num_spans, replays * eager->trace.num_spans);
    for (uint64_t i = 0; i < eager->trace.num_spans; i++) {
        const dbo_span *wanted = dbo_trace_span(&eager->trace, i);
        uint32_t found = 0;
        for (uint64_t k = 0; k < w->trace.num_spans; k++) {
            const dbo_span *s = dbo_trace_span(&w->trace, k);
            uint32_t step = dbo_op_id_step(s->id);
            if (s->id != wanted->id + step * step_one || s->part != wanted->part)
                continue;
            assert_in_range(step, 1, replays);
            assert_int_equal(s->start_ns, wanted->start_ns + (step - 1) * period_ns);
            assert_int_equal(s->end_ns, wanted->end_ns + (step - 1) * period_ns);
            assert_int_equal(s->stream, wanted->stream);
            found |= 1u << step;
        }
        assert_int_equal(found, ((1u << replays) - 1) << 1);
    }
}

static void replays_are_the_eager_run(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool ll = (i & 1) != 0;
        uint32_t ranks = i & 4 ? 64 : RANKS;
        schedule s = {0};
        sim_world eager, replayed;
        dbo_sim_options options = {.num_ranks = ranks,
                                   .transport = ll ? DBO_SIM_LL : DBO_SIM_HT,
                                   .contexts = i & 2 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER};
        build(&s, ll);
        sim_world_open(&eager, options);
        sim_world_must_run(&eager, capture_and_replay, &s);
        s.replays = ranks == 64 ? 1 : 2;
        sim_world_open(&replayed, options);
        sim_world_must_run(&replayed, capture_and_replay, &s);
        assert_true(s.nodes >= 4 * 16);
        expect_replays(&eager, &replayed, s.replays, dbo_sim_now_ns(eager.sim));
        /* The ubatches took turns once, at the capture. */
        assert_int_equal(count_marks(&replayed, DBO_MARK_TURN), count_marks(&eager, DBO_MARK_TURN));
        assert_int_equal(count_marks(&replayed, DBO_MARK_PARK), 0);
        sim_world_close(&replayed);
        sim_world_close(&eager);
        dbo_program_fini(&s.program);
    }
}

/* ---- by hand: what a capture takes and refuses ---- */

typedef struct tools {
    const dbo_seam *seam;
    dbo_stream compute, comm, third;
    dbo_event e, f;
} tools;

static tools take_tools(const sim_world *w, uint32_t rank)
{
    const dbo_seam *seam = &w->seams[rank];
    return (tools){.seam = seam,
                   .compute = sim_new_stream(seam),
                   .comm = sim_new_stream(seam),
                   .third = sim_new_stream(seam),
                   .e = sim_new_event(seam),
                   .f = sim_new_event(seam)};
}

static dbo_status begin(const tools *t)
{
    return t->seam->graph->begin(t->seam->graph_self, t->compute);
}
static dbo_status end(const tools *t, dbo_graph *graph)
{
    return t->seam->graph->end(t->seam->graph_self, graph);
}
static dbo_status replay(const tools *t, dbo_graph graph, dbo_stream stream, uint32_t step)
{
    return t->seam->graph->replay(t->seam->graph_self, graph, stream, step);
}

/* A call that must be refused, its sentence, and that the sentence is told once. */
static void refused(const tools *t, dbo_status status, const char *part)
{
    dbo_error err = {0};
    assert_int_equal(status, DBO_REFUSED);
    assert_int_equal(t->seam->device->status(t->seam->device_self, &err), DBO_REFUSED);
    if (!strstr(err.message, part))
        fail_msg("'%s' lacks '%s'", err.message, part);
    assert_int_equal(t->seam->device->status(t->seam->device_self, &err), DBO_OK);
}

static dbo_status forks_and_joins(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t = take_tools(w, rank);
    dbo_graph graph = 99;
    (void)err;
    /* compute 10 | comm after it 20, third after comm 5, compute joins third only: joined, too */
    sim_must(begin(&t));
    sim_must(sim_launch(t.seam, t.compute, 0, 10, 0));
    sim_must(sim_record(t.seam, t.e, t.compute));
    sim_must(sim_wait_event(t.seam, t.comm, t.e));
    sim_must(sim_launch(t.seam, t.comm, 1, 20, 0));
    sim_must(sim_record(t.seam, t.e, t.comm)); /* rebound */
    sim_must(sim_wait_event(t.seam, t.third, t.e));
    sim_must(sim_launch(t.seam, t.third, 2, 5, 0));
    sim_must(sim_record(t.seam, t.f, t.third));
    sim_must(sim_launch(t.seam, t.compute, 3, 1, 0));
    sim_must(sim_wait_event(t.seam, t.compute, t.f));
    sim_must(sim_launch(t.seam, t.compute, 4, 2, 0));
    sim_must(end(&t, &graph));
    assert_int_equal(graph, 0);
    assert_int_equal(dbo_sim_graph_nodes(w->sim, rank, graph), 8); /* 5 ops, 3 waits */
    assert_int_equal(dbo_sim_graph_nodes(w->sim, rank, 1), 0);
    /* In stream order: after what was launched, before what comes. */
    sim_must(sim_launch(t.seam, t.compute, 5, 100, 0));
    sim_must(replay(&t, graph, t.compute, 1));
    sim_must(sim_launch(t.seam, t.compute, 6, 3, 0));
    sim_must(sim_record(t.seam, t.e, t.compute));
    sim_must(sim_wait_event(t.seam, t.comm, t.e));
    sim_must(sim_launch(t.seam, t.comm, 7, 1, 0));
    t.seam->graph->destroy(t.seam->graph_self, graph); /* in flight: its work goes on */
    t.seam->graph->destroy(t.seam->graph_self, graph);
    assert_int_equal(replay(&t, graph, t.compute, 2), DBO_INVALID);
    sim_must(sim_host_wait(t.seam, t.e));
    assert_int_equal(sim_now(t.seam), 140);
    return DBO_OK;
}

static void graphs_run_in_stream_order(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_run(&w, forks_and_joins, NULL);
    for (uint32_t r = 0; r < 2; r++) {
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 0, 0, 100);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 1, 100, 110);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 2, 110, 111);
        EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, 0, 110, 130);
        EXPECT_SPAN(&w, r, 2, DBO_SPAN_RUN, 0, 130, 135);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 3, 135, 137);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 4, 137, 140);
        EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, 1, 140, 141);
    }
    sim_world_close(&w);
}

static dbo_status isolates(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t = take_tools(w, rank);
    dbo_graph graph;
    bool done;
    (void)err;
    sim_must(sim_launch(t.seam, t.third, 0, 10, 0));
    sim_must(sim_record(t.seam, t.f, t.third)); /* outside */
    sim_must(begin(&t));
    refused(&t, begin(&t), "a capture begins inside another");
    sim_must(sim_launch(t.seam, t.compute, 1, 10, 0));
    refused(&t, sim_wait_event(t.seam, t.compute, t.f), "recorded outside the capture");
    refused(&t, sim_host_wait(t.seam, t.f), "the host waits for an event inside a graph capture");
    refused(&t, t.seam->device->event_query(t.seam->device_self, t.f, &done),
            "an event is queried inside a graph capture");
    refused(&t, replay(&t, 0, t.compute, 1), "a graph is replayed inside a capture");
    /* Streams that were not drawn in go on by themselves. */
    sim_must(sim_launch(t.seam, t.third, 2, 5, 0));
    sim_must(sim_wait_event(t.seam, t.comm, t.f));
    sim_must(sim_launch(t.seam, t.comm, 3, 1, 0));
    sim_must(sim_record(t.seam, t.e, t.compute));
    sim_must(sim_wait_event(t.seam, t.comm, t.e)); /* drawn in */
    refused(&t, end(&t, &graph),
            "the capture ends while stream 1 has not rejoined: stream 0 does not wait for its last "
            "work");
    assert_false(t.seam->graph->is_capturing(t.seam->graph_self)); /* given up */
    refused(&t, end(&t, &graph), "a capture ends that has not begun");
    refused(&t, sim_wait_event(t.seam, t.comm, t.e),
            "recorded in a capture is waited for after it");
    refused(&t, sim_host_wait(t.seam, t.e), "an event of a finished capture is asked for");
    refused(&t, t.seam->device->event_query(t.seam->device_self, t.e, &done),
            "an event of a finished capture is asked for");
    sim_must(begin(&t));
    refused(&t, sim_wait_event(t.seam, t.comm, t.e), "an event of an earlier capture");
    t.seam->graph->abandon(t.seam->graph_self);
    t.seam->graph->abandon(t.seam->graph_self); /* nothing to give up */
    sim_must(sim_record(t.seam, t.e, t.comm));  /* recorded again, it is an event like any */
    return sim_host_wait(t.seam, t.e);
}

static void captures_are_isolated(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_run(&w, isolates, NULL);
    assert_int_equal(w.trace.num_spans, 2 * 3); /* what was captured never ran */
    EXPECT_SPAN(&w, 0, 2, DBO_SPAN_RUN, 1, 10, 15);
    EXPECT_SPAN(&w, 0, 1, DBO_SPAN_RUN, 0, 10, 11);
    sim_world_close(&w);
}

static dbo_status transfers_across_the_border(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t = take_tools(w, rank);
    bool ll = *(const bool *)w->arg;
    dbo_graph graph;
    dbo_a2a_handle before, inside;
    (void)err;
    DBO_TRY(sim_post_fixed(t.seam, t.compute, 0, 0, 10, &before));
    DBO_TRY(begin(&t));
    refused(&t, sim_finish_on(t.seam, before, t.compute),
            "a transfer posted before a capture is finished inside it");
    if (!ll)
        refused(&t, sim_counts_of(t.seam, before), "receive counts inside a graph capture");
    DBO_TRY(sim_post_fixed(t.seam, t.compute, 0, 1, 10, &inside));
    DBO_TRY(sim_finish_on(t.seam, inside, t.compute));
    if (ll)
        refused(&t, sim_finish_on(t.seam, inside, t.compute), "is finished twice");
    DBO_TRY(sim_post_fixed(t.seam, t.compute, 0, 2, 10, &inside));
    DBO_TRY(end(&t, &graph));
    refused(&t, sim_finish_on(t.seam, inside, t.compute),
            "a transfer posted in a capture is finished outside of it");
    if (!ll)
        refused(&t, sim_counts_of(t.seam, inside), "of a transfer that was captured");
    return sim_finish_on(t.seam, before, t.compute);
}

static void transfers_stay_on_their_side(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sim_world w;
        bool ll = i == 0;
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = 2, .transport = ll ? DBO_SIM_LL : DBO_SIM_HT});
        sim_world_must_run(&w, transfers_across_the_border, &ll);
        sim_world_close(&w);
    }
}

/* ---- a failure inside ---- */

static dbo_status second_ubatch_fails(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    DBO_TRY(sim_launch(&u->rank->seam, u->compute, u->id, 10, 0));
    DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
    if (u->id == 1)
        return dbo_fail(err, DBO_IO, NULL, "torn");
    return dbo_yield_and_switch_from_comm_to_compute();
}

static dbo_status both_ubatches_go(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
    DBO_TRY(sim_launch(&u->rank->seam, u->comm, 2 + u->id, 10, 0));
    return dbo_yield_and_switch_from_comm_to_compute();
}

static dbo_status abandons(sim_world *w, uint32_t id, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[id];
    dbo_rank *rank = &w->ranks[id];
    dbo_graph graph;
    DBO_TRY(dbo_rank_init(rank, id, seam, w->contexts, 2, dbo_sim_pool(w->sim), err));
    DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
    assert_int_equal(dbo_ubatches_run(rank, 2, 0, second_ubatch_fails, NULL, NULL), DBO_IO);
    seam->graph->abandon(seam->graph_self);
    /* The same contexts and events serve the next try. */
    DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
    DBO_TRY(dbo_ubatches_run(rank, 2, 0, both_ubatches_go, NULL, err));
    DBO_TRY(seam->graph->end(seam->graph_self, &graph));
    DBO_TRY(seam->graph->replay(seam->graph_self, graph, rank->streams[0], 1));
    return dbo_ubatches_run(rank, 2, 2, both_ubatches_go, NULL, err); /* and eagerly */
}

static void a_failed_capture_is_abandoned(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        sim_world w;
        sim_world_open(&w,
                       (dbo_sim_options){.num_ranks = 2,
                                         .contexts = k ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER});
        sim_world_must_run(&w, abandons, NULL);
        assert_int_equal(w.trace.num_spans, 2 * 4);
        for (uint32_t n = 0; n < 4; n++)
            EXPECT_SPAN(&w, 0, 1, DBO_SPAN_RUN, n, 10 * n, 10 * n + 10);
        sim_world_close(&w);
    }
}

/* ---- the launch queue ---- */

static dbo_status many_replays(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t = take_tools(w, rank);
    dbo_graph graph, empty;
    (void)err;
    DBO_TRY(begin(&t));
    for (uint32_t i = 0; i < 3; i++)
        DBO_TRY(sim_launch(t.seam, t.compute, i, 10, 0));
    DBO_TRY(end(&t, &graph));
    DBO_TRY(begin(&t));
    DBO_TRY(end(&t, &empty));
    for (uint32_t n = 0; n < 6; n++) {
        DBO_TRY(replay(&t, empty, t.compute, 0));
        DBO_TRY(replay(&t, graph, t.compute, n + 1));
        /* Two are held; the third may come when the first op of the first has run, and so on. */
        assert_int_equal(sim_now(t.seam), n < 2 ? 0 : 30 * (n - 2) + 10);
    }
    DBO_TRY(sim_launch(t.seam, t.compute, 9, 10, 0));
    assert_int_equal(sim_now(t.seam), 130);
    return DBO_OK;
}

static void a_replay_is_one_launch(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .queue_depth = 2});
    sim_world_must_run(&w, many_replays, NULL);
    assert_int_equal(dbo_sim_now_ns(w.sim), 190);
    sim_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_are_the_eager_run),
        cmocka_unit_test(graphs_run_in_stream_order),
        cmocka_unit_test(captures_are_isolated),
        cmocka_unit_test(transfers_stay_on_their_side),
        cmocka_unit_test(a_failed_capture_is_abandoned),
        cmocka_unit_test(a_replay_is_one_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
