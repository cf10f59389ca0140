/* test_sim_streams.c: streams, events, launch queues and host clocks of the simulator, by hand.
 * Random programs are in test_sim_random.c. */
#include "tests/support/sim_world.h"

static dbo_status fifo(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    dbo_stream a = sim_new_stream(seam), b = sim_new_stream(seam);
    for (uint32_t i = 0; i < 3; i++) {
        DBO_TRY(sim_launch(seam, a, i, 10, 0));
        DBO_TRY(sim_launch(seam, b, 10 + i, 7, 0));
    }
    assert_int_equal(sim_now(seam), 0); /* a launch blocks nobody */
    return DBO_OK;
}

static void streams_are_fifo(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_run(&w, fifo, NULL);
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t i = 0; i < 3; i++) {
            EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, i, 10 * i, 10 * i + 10);
            EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, i, 7 * i, 7 * i + 7);
        }
    assert_int_equal(w.trace.num_spans, 12);
    assert_int_equal(dbo_sim_now_ns(w.sim), 30);
    sim_world_close(&w);
}

static dbo_status events(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    dbo_stream a = sim_new_stream(seam), b = sim_new_stream(seam), c = sim_new_stream(seam);
    dbo_event e = sim_new_event(seam), never = sim_new_event(seam);
    sim_must(sim_wait_event(seam, b, e)); /* not recorded yet: nothing, also for later records */
    sim_must(sim_wait_event(seam, b, never));
    sim_must(sim_launch(seam, a, 0, 100, 0));
    sim_must(sim_launch(seam, b, 1, 5, 0)); /* [0, 5) */
    sim_must(sim_record(seam, e, a));       /* 100 */
    sim_must(sim_wait_event(seam, b, e));   /* binds 100 */
    sim_must(sim_launch(seam, a, 2, 50, 0));
    sim_must(sim_record(seam, e, a));         /* rebinds: 150 */
    sim_must(sim_launch(seam, b, 3, 5, 0));   /* [100, 105): the record at its issue */
    sim_must(sim_wait_event(seam, c, e));     /* the latest: 150 */
    sim_must(sim_record(seam, e, c));         /* keeps the dependency: 150, though c ran nothing */
    sim_must(sim_wait_event(seam, b, e));     /* b waits through c */
    sim_must(sim_launch(seam, b, 4, 5, 0));   /* [150, 155) */
    sim_must(sim_record(seam, never, a));     /* 150 */
    sim_must(sim_wait_event(seam, a, never)); /* own stream: nothing new */
    sim_must(sim_launch(seam, a, 5, 1, 0));   /* [150, 151) */
    sim_must(sim_host_wait(seam, e));
    assert_int_equal(sim_now(seam), 150);
    sim_must(sim_host_wait(seam, e)); /* over: at once */
    assert_int_equal(sim_now(seam), 150);
    sim_must(sim_launch(seam, c, 6, 1, 0)); /* [150, 151): not before its issue */
    return DBO_OK;
}

static void events_bind_at_issue(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1});
    sim_world_must_run(&w, events, NULL);
    EXPECT_SPAN(&w, 0, 1, DBO_SPAN_RUN, 0, 0, 5);
    EXPECT_SPAN(&w, 0, 1, DBO_SPAN_RUN, 1, 100, 105);
    EXPECT_SPAN(&w, 0, 1, DBO_SPAN_RUN, 2, 150, 155);
    EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RUN, 2, 150, 151);
    EXPECT_SPAN(&w, 0, 2, DBO_SPAN_RUN, 0, 150, 151);
    assert_int_equal(dbo_sim_now_ns(w.sim), 155);
    sim_world_close(&w);
}

/* ns of host time after each launch into a queue of this depth, ops of 10 ns, launches of 1. */
typedef struct depth_case {
    uint32_t depth;
    int64_t host_ns[6];
} depth_case;

static dbo_status fill_queue(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const depth_case *c = w->arg;
    (void)err;
    dbo_stream s = sim_new_stream(seam), other = sim_new_stream(seam);
    dbo_event e = sim_new_event(seam);
    for (uint32_t i = 0; i < 6; i++) {
        sim_charge(seam, 1);
        DBO_TRY(sim_launch(seam, s, i, 10, 0));
        assert_int_equal(sim_now(seam), c->host_ns[i]);
        /* Events take no room in the queue. */
        DBO_TRY(sim_record(seam, e, s));
        DBO_TRY(sim_wait_event(seam, s, e));
        DBO_TRY(sim_wait_event(seam, other, e));
        assert_int_equal(sim_now(seam), c->host_ns[i]);
    }
    return DBO_OK;
}

static void a_full_queue_holds_the_host(void **state)
{
    (void)state;
    static const depth_case cases[] = {{1, {1, 11, 21, 31, 41, 51}},
                                       {2, {1, 2, 11, 21, 31, 41}},
                                       {4, {1, 2, 3, 4, 11, 21}},
                                       {0, {1, 2, 3, 4, 5, 6}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sim_world w;
        depth_case c = cases[i];
        dbo_hardware hardware = sim_round_hardware();
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = 1, .hardware = &hardware, .queue_depth = c.depth});
        sim_world_must_run(&w, fill_queue, &c);
        for (uint32_t n = 0; n < 6; n++)
            EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RUN, n, 1 + 10 * n, 11 + 10 * n);
        sim_world_close(&w);
    }
}

static dbo_status query(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const bool *by_event = w->arg;
    bool done;
    (void)err;
    dbo_stream s = sim_new_stream(seam);
    dbo_event e = sim_new_event(seam);
    DBO_TRY(seam->device->event_query(seam->device_self, e, &done));
    assert_true(done); /* never recorded */
    DBO_TRY(sim_launch(seam, s, 0, 10, *by_event ? 1 : 0));
    DBO_TRY(sim_record(seam, e, s));
    for (int64_t at = 0; at < 12; at++) {
        DBO_TRY(seam->device->event_query(seam->device_self, e, &done));
        assert_int_equal(sim_now(seam), at); /* asking takes no time */
        assert_int_equal(done, at >= 10);
        sim_charge(seam, 1);
    }
    return DBO_OK;
}

static void a_query_is_at_the_hosts_time(void **state)
{
    (void)state;
    for (int by_event = 0; by_event < 2; by_event++) {
        sim_world w;
        bool arg = by_event == 1;
        dbo_hardware hardware = sim_round_hardware();
        sim_world_open(&w, (dbo_sim_options){.num_ranks = 3, .hardware = &hardware});
        sim_world_must_run(&w, query, &arg);
        sim_world_close(&w);
    }
}

static dbo_status one_op(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const int64_t *begin_ns = w->arg;
    (void)err;
    assert_int_equal(sim_now(seam), *begin_ns);
    dbo_stream s = sim_new_stream(seam);
    return sim_launch(seam, s, 0, 10 * ((int64_t)rank + 1), rank);
}

/* The hosts of a second run begin when the work of the first has ended. */
static void clocks_go_on(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 3});
    for (int64_t begin_ns = 0; begin_ns < 90; begin_ns += 30) {
        sim_world_must_run(&w, one_op, &begin_ns);
        assert_int_equal(dbo_sim_now_ns(w.sim), begin_ns + 30);
    }
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t r = 0; r < 3; r++)
            EXPECT_SPAN(&w, r, round, DBO_SPAN_RUN, 0, 30 * round, 30 * round + 10 * (r + 1));
    sim_world_close(&w);
}

static dbo_status for_ever(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    dbo_stream s = sim_new_stream(seam);
    for (;;)
        DBO_TRY(sim_launch(seam, s, 0, *(int64_t *)w->arg, 0));
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void runs_can_be_stopped(void **state)
{
    (void)state;
    sim_world w;
    int64_t ns = 5;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .queue_depth = 1, .cancelled = always});
    sim_world_must_fail(&w, for_ever, &ns, DBO_CANCELLED, "stopped at");
    sim_world_must_fail(&w, for_ever, &ns, DBO_INVALID, "has failed and cannot run again");
    sim_world_close(&w);
    ns = INT64_C(1) << 42;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_fail(&w, for_ever, &ns, DBO_LIMIT, "simulated time exceeds 2.4 hours");
    sim_world_close(&w);
    ns = INT64_MAX;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_fail(&w, for_ever, &ns, DBO_LIMIT, "rank 0: an op of 9.22e+09 s takes longer");
    sim_world_close(&w);
}

static dbo_status fifo_slowly(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    dbo_stream s = sim_new_stream(seam);
    for (uint32_t i = 0; i < 40; i++)
        DBO_TRY(sim_launch(seam, s, i, 10, rank % 2));
    return DBO_OK;
}

static void sixty_four_ranks_on_threads(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        sim_world w;
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = 64,
                                  .queue_depth = 1,
                                  .contexts = kind ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER});
        sim_world_must_run(&w, fifo_slowly, NULL);
        assert_int_equal(w.trace.num_spans, 64 * 40);
        assert_int_equal(dbo_sim_now_ns(w.sim), 400);
        sim_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_fifo),
        cmocka_unit_test(events_bind_at_issue),
        cmocka_unit_test(a_full_queue_holds_the_host),
        cmocka_unit_test(a_query_is_at_the_hosts_time),
        cmocka_unit_test(clocks_go_on),
        cmocka_unit_test(runs_can_be_stopped),
        cmocka_unit_test(sixty_four_ranks_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
