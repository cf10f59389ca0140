/* test_sim_a2a.c: all-to-alls and exchanges of the simulator, by hand: HT meets and counts, LL
 * flights and ports, who is named when somebody does not come. Stream 0 is compute, 1 is comm. */
#include "sim/fabric.h"
#include "tests/support/sim_world.h"

#include <stdio.h>

static const dbo_context_kind kinds[] = {DBO_CONTEXT_FIBER, DBO_CONTEXT_THREAD};

/* ---- HT ---- */

static dbo_status ht_meeting(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    dbo_a2a_handle first, second;
    dbo_stream compute = sim_new_stream(seam), comm = sim_new_stream(seam);
    DBO_TRY(sim_launch(seam, comm, 0, 30 * (int64_t)rank, 0));
    DBO_TRY(sim_post_fixed(seam, comm, 0, 0, 20 + (int64_t)rank, &first));
    DBO_TRY(sim_post_fixed(seam, comm, 0, 1, 5, &second));
    DBO_TRY(sim_counts_of(seam, first));
    assert_int_equal(sim_now(seam),
                     30 * (int64_t)(w->num_ranks - 1)); /* all have met: counts are there */
    DBO_TRY(sim_counts_of(seam, second));
    assert_int_equal(sim_now(seam), 31 * (w->num_ranks - 1) + 20);
    DBO_TRY(sim_counts_of(seam, first)); /* again, long through */
    DBO_TRY(sim_finish_on(seam, first, comm));
    DBO_TRY(sim_finish_on(seam, second, compute)); /* compute has to wait for it */
    return sim_launch(seam, compute, 1, 1, 0);
}

/* Ranks come 30 ns apart; each holds the transfer for its own time once the last has come. */
static void ht_meets_and_waits(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 64};
    for (int i = 0; i < 6; i++) {
        sim_world w;
        uint32_t last = sizes[i / 2] - 1;
        sim_world_open(&w, (dbo_sim_options){.num_ranks = last + 1,
                                             .transport = DBO_SIM_HT,
                                             .contexts = kinds[i % 2]});
        sim_world_must_run(&w, ht_meeting, NULL);
        int64_t start = 30 * (int64_t)last, next = start + 20 + last;
        for (uint32_t r = 0; r <= last; r++) {
            if (r < last) {
                EXPECT_SPAN(&w, r, 1, DBO_SPAN_WAIT, 0, 30 * r, start);
                EXPECT_SPAN(&w, r, 1, DBO_SPAN_WAIT, 1, start + 20 + r, next);
            } else {
                assert_null(sim_world_span(&w, r, 1, DBO_SPAN_WAIT, 0));
            }
            EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, 1, start, start + 20 + r);
            EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, 2, next, next + 5);
            EXPECT_SPAN(&w, r, 0, DBO_SPAN_RUN, 0, next + 5, next + 6);
        }
        sim_world_close(&w);
    }
}

/* ---- HT, in ubatches: whose turn is it while the host waits ---- */

typedef struct counting {
    dbo_a2a_cost cost;
    int64_t counted_ns[64][2];
} counting;

static dbo_status count_rows(dbo_ubatch *u, void *arg, dbo_error *err)
{
    sim_world *w = arg;
    counting *c = w->arg;
    const dbo_seam *seam = &u->rank->seam;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, u->rank->id, 0, u->id, DBO_KIND_DISPATCH, 0),
                               .stream = u->comm,
                               .previous = DBO_NO_EVENT,
                               .cost = &c->cost};
    dbo_a2a_handle handle;
    (void)err;
    sim_charge(seam, 10 * (1 + u->rank->id)); /* ranks come at different times */
    DBO_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    DBO_TRY(sim_counts_of(seam, handle));
    c->counted_ns[u->rank->id][u->id] = sim_now(seam);
    DBO_TRY(sim_finish_on(seam, handle, u->comm));
    return dbo_yield();
}

static dbo_status two_ubatches(sim_world *w, uint32_t id, dbo_error *err)
{
    DBO_TRY(
        dbo_rank_init(&w->ranks[id], id, &w->seams[id], w->contexts, 2, dbo_sim_pool(w->sim), err));
    return dbo_ubatches_run(&w->ranks[id], 2, 0, count_rows, w, err);
}

/* No mark of a turn lies between a rank's PARK and its UNPARK. */
static uint32_t expect_turns_outside_parks(const sim_world *w, uint32_t rank)
{
    uint32_t parks = 0;
    bool parked = false;
    for (uint64_t i = 0; i < w->trace.num_marks; i++) {
        const dbo_mark *m = dbo_trace_mark(&w->trace, i);
        if (m->rank != rank)
            continue;
        assert_false(parked && m->kind == DBO_MARK_TURN);
        parked = m->kind == DBO_MARK_PARK;
        parks += parked;
    }
    return parks;
}

static void the_host_waits_without_giving_its_turn(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 64};
    for (int i = 0; i < 4; i++) {
        uint32_t ranks = sizes[i / 2];
        static counting c;
        dbo_hardware hardware = sim_round_hardware();
        dbo_ht_time time;
        sim_world w;
        c = (counting){.cost = {.fixed_ns = -1,
                                .tokens = 4096,
                                .topk = 8,
                                .num_experts = 256,
                                .bytes_per_token = 7168}};
        dbo_fabric_ht(&hardware, ranks, 8, &c.cost, DBO_A2A_DISPATCH, 20, &time);
        assert_true(time.counts_ns < time.ns);
        sim_world_open(&w, (dbo_sim_options){.num_ranks = ranks,
                                             .hardware = &hardware,
                                             .gpus_per_domain = 8,
                                             .transport = DBO_SIM_HT,
                                             .contexts = kinds[i % 2]});
        sim_world_must_run(&w, two_ubatches, &c);
        int64_t met = 10 * (int64_t)ranks;
        for (uint32_t r = 0; r < ranks; r++) {
            assert_int_equal(expect_turns_outside_parks(&w, r), 2);
            EXPECT_SPAN(&w, r, 1, DBO_SPAN_RUN, 0, met, met + time.ns);
            assert_int_equal(c.counted_ns[r][0], met + time.counts_ns);
            assert_true(c.counted_ns[r][0] < met + time.ns); /* counts come before data */
            assert_int_equal(c.counted_ns[r][1], met + time.ns + time.counts_ns);
        }
        sim_world_close(&w);
    }
}

/* ---- LL ---- */

/* Rank r sends at late_ns[r], receives after an op of 10 ns. */
static dbo_status ll_sends(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const int64_t *late_ns = w->arg;
    dbo_a2a_handle handle;
    (void)err;
    dbo_stream compute = sim_new_stream(seam);
    DBO_TRY(sim_launch(seam, compute, 0, late_ns[rank], 0));
    DBO_TRY(sim_post_fixed(seam, compute, 0, 0, 100, &handle));
    DBO_TRY(sim_launch(seam, compute, 1, 10, 0));
    return sim_finish_on(seam, handle, compute);
}

static void ll_flies_and_waits(void **state)
{
    (void)state;
    int64_t late_ns[3][2] = {{0, 0}, {0, 60}, {0, 250}};
    for (int i = 0; i < 3; i++) {
        sim_world w;
        int64_t late = late_ns[i][1], landed = late + 100;
        sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .transport = DBO_SIM_LL});
        sim_world_must_run(&w, ll_sends, late_ns[i]);
        EXPECT_SPAN(&w, 1, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 0, late, landed);
        EXPECT_SPAN(&w, 1, 0, DBO_SPAN_RECV, 0, landed, landed);
        EXPECT_SPAN(&w, 0, 0, DBO_SPAN_SEND, 0, 0, 0);
        EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RUN, 1, 0, 10);
        EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RECV, 0, landed, landed);
        bool broken = late > 100; /* nothing moved here until the peer sent */
        EXPECT_SPAN(&w, 0, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 0, 0, broken ? 100 : landed);
        if (broken) {
            EXPECT_SPAN(&w, 0, DBO_NETWORK_STREAM, DBO_SPAN_WAIT, 0, 100, late);
            EXPECT_SPAN(&w, 0, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 1, late, landed);
        }
        assert_int_equal(w.trace.num_spans, broken ? 12 : 10);
        sim_world_close(&w);
    }
}

/* Two flights share the port of their rank: each has half of it while both are under way. The later
 * send was issued first. */
static dbo_status ll_two_streams(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    dbo_a2a_handle x, y, z;
    (void)err;
    dbo_stream a = sim_new_stream(seam), b = sim_new_stream(seam);
    DBO_TRY(sim_launch(seam, a, 0, 500, 0));
    DBO_TRY(sim_post_fixed(seam, a, 0, 0, 100, &x));
    DBO_TRY(sim_post_fixed(seam, b, 1, 0, 100, &y));
    DBO_TRY(sim_post_fixed(seam, b, 2, 0, 40, &z));
    DBO_TRY(sim_finish_on(seam, y, b));
    DBO_TRY(sim_finish_on(seam, z, b));
    return sim_finish_on(seam, x, a);
}

static void flights_share_a_port(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 3, .transport = DBO_SIM_LL});
    sim_world_must_run(&w, ll_two_streams, NULL);
    for (uint32_t r = 0; r < 3; r++) {
        /* z, of 40, at half speed; y has 60 left then */
        EXPECT_SPAN(&w, r, 1, DBO_SPAN_RECV, 0, 140, 140);
        EXPECT_SPAN(&w, r, 1, DBO_SPAN_RECV, 1, 140, 140);
        EXPECT_SPAN(&w, r, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 0, 0, 80);
        EXPECT_SPAN(&w, r, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 1, 0, 140);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_SEND, 0, 500, 500);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RECV, 0, 600, 600);
    }
    sim_world_close(&w);
}

static dbo_status ll_kernels(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, rank, 0, 0, DBO_KIND_COMBINE, 0),
                               .direction = DBO_A2A_COMBINE,
                               .previous = DBO_NO_EVENT,
                               .cost = w->arg};
    dbo_a2a_handle handle;
    (void)err;
    sim_new_stream(seam);
    DBO_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    return sim_finish_on(seam, handle, 0);
}

static void ll_has_three_phases(void **state)
{
    (void)state;
    dbo_a2a_cost cost = {
        .fixed_ns = -1, .tokens = 128, .topk = 8, .num_experts = 256, .bytes_per_token = 14336};
    dbo_hardware hardware = sim_round_hardware();
    dbo_ll_time time;
    sim_world w;
    dbo_fabric_ll(&hardware, 16, 8, &cost, DBO_A2A_COMBINE, &time);
    assert_true(time.send_ns > 0 && time.recv_ns > 0 && time.flight_ns > time.send_ns);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 16,
                                         .hardware = &hardware,
                                         .gpus_per_domain = 8,
                                         .transport = DBO_SIM_LL});
    sim_world_must_run(&w, ll_kernels, &cost);
    for (uint32_t r = 0; r < 16; r++) {
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_SEND, 0, 0, time.send_ns);
        EXPECT_SPAN(&w, r, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 0, 0, time.flight_ns);
        EXPECT_SPAN(&w, r, 0, DBO_SPAN_RECV, 0, time.flight_ns, time.flight_ns + time.recv_ns);
        const dbo_span *span = sim_world_span(&w, r, 0, DBO_SPAN_SEND, 0);
        assert_int_equal(span->sms, time.sms);
        span = sim_world_span(&w, r, DBO_NETWORK_STREAM, DBO_SPAN_FLIGHT, 0);
        assert_int_equal(span->bytes, time.bytes_out);
    }
    sim_world_close(&w);
}

/* ---- who does not come ---- */

typedef enum mistake {
    NEVER_POSTS,
    NEVER_POSTS_COUNTED,
    NEVER_POSTS_AWAITED,
    POSTS_OTHER_LAYER,
    CROSSES,
    FINISHES_TWICE
} mistake;

static dbo_status errs(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    mistake m = *(const mistake *)w->arg;
    dbo_a2a_handle h, other;
    (void)err;
    dbo_stream compute = sim_new_stream(seam), comm = sim_new_stream(seam);
    dbo_event e = sim_new_event(seam);
    bool wrong = rank == 2;
    if (m == CROSSES) { /* two communicators on one stream, in different orders */
        DBO_TRY(sim_post_fixed(seam, comm, wrong, 0, 10, &h));
        return sim_post_fixed(seam, comm, !wrong, 0, 10, &h);
    }
    if (wrong && m <= NEVER_POSTS_AWAITED)
        return DBO_OK;
    DBO_TRY(sim_post_fixed(seam, comm, 1, m == POSTS_OTHER_LAYER && wrong, 10, &h));
    if (m == NEVER_POSTS_COUNTED)
        return sim_counts_of(seam, h);
    if (m == POSTS_OTHER_LAYER)
        return DBO_OK;
    DBO_TRY(sim_record(seam, e, comm));
    DBO_TRY(sim_wait_event(seam, compute, e));
    DBO_TRY(sim_record(seam, e, compute));
    if (m == NEVER_POSTS_AWAITED)
        return sim_host_wait(seam, e); /* compute waits for comm, which waits for rank 2 */
    DBO_TRY(sim_finish_on(seam, h, comm));
    if (m != FINISHES_TWICE)
        return DBO_OK;
    DBO_TRY(sim_post_fixed(seam, comm, 1, 1, 10, &other));
    return sim_finish_on(seam, h, comm);
}

static void must_err(mistake m, dbo_sim_transport transport, dbo_status status, const char *part)
{
    for (int k = 0; k < 2; k++) {
        sim_world w;
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = 3, .transport = transport, .contexts = kinds[k]});
        sim_world_must_fail(&w, errs, &m, status, part);
        sim_world_close(&w);
    }
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    must_err(NEVER_POSTS, DBO_SIM_HT, DBO_DEADLOCK,
             "rank 0 waits for DISPATCH of ubatch 1, layer 0, which rank 2 never posted");
    must_err(NEVER_POSTS, DBO_SIM_LL, DBO_DEADLOCK,
             "rank 0 waits for DISPATCH of ubatch 1, layer 0, which rank 2 never posted");
    must_err(NEVER_POSTS_COUNTED, DBO_SIM_HT, DBO_DEADLOCK,
             "rank 0 waits for the receive counts of DISPATCH of ubatch 1, layer 0, which rank 2 "
             "never posted");
    must_err(NEVER_POSTS_AWAITED, DBO_SIM_HT, DBO_DEADLOCK,
             "rank 0 waits for DISPATCH of ubatch 1, layer 0, which rank 2 never posted");
    must_err(CROSSES, DBO_SIM_HT, DBO_DEADLOCK,
             "rank 0 waits for DISPATCH of ubatch 0, layer 0, which rank 2 has posted behind work "
             "that cannot go on");
    must_err(FINISHES_TWICE, DBO_SIM_LL, DBO_REFUSED, "transfer 0 of ubatch 1 is finished twice");
    must_err(FINISHES_TWICE, DBO_SIM_HT, DBO_OK, "");
}

static dbo_status posts_another_kind(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const dbo_a2a_cost cost = {.fixed_ns = 1};
    const dbo_a2a_args args = {
        .id = dbo_op_id_make(7, rank, rank, 3, rank ? DBO_KIND_COMBINE : DBO_KIND_DISPATCH, 0),
        .previous = DBO_NO_EVENT,
        .cost = &cost};
    dbo_a2a_handle handle;
    (void)err;
    sim_new_stream(seam);
    return seam->a2a->post(seam->a2a_self, &args, &handle);
}

static void posts_must_match(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        sim_world w;
        sim_world_open(&w,
                       (dbo_sim_options){.num_ranks = 2, .transport = t ? DBO_SIM_LL : DBO_SIM_HT});
        sim_world_must_fail(&w, posts_another_kind, NULL, DBO_REFUSED,
                            "rank 1 posts COMBINE of step 7, layer 1 as transfer 0 of ubatch 3, "
                            "rank 0 posted DISPATCH of step 7, layer 0");
        sim_world_close(&w);
    }
    must_err(POSTS_OTHER_LAYER, DBO_SIM_HT, DBO_REFUSED, "rank 2 posts DISPATCH");
}

/* ---- exchanges ---- */

typedef enum meeting {
    ALL_COME,
    ONE_ENDS,
    OTHER_TAG,
    OTHER_SEQUENCE,
    OTHER_ROWS,
    ONE_WAITS
} meeting;

static dbo_status comes(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    meeting m = *(const meeting *)w->arg;
    bool odd = rank == 1;
    int32_t column[2] = {(int32_t)rank, 10 + (int32_t)rank}, matrix[2 * 64];
    uint32_t size = seam->group->size(seam->group_self);
    dbo_a2a_handle handle;
    (void)err;
    sim_new_stream(seam);
    if (odd && m == ONE_ENDS)
        return DBO_OK;
    if (odd && m == ONE_WAITS) {
        DBO_TRY(sim_post_fixed(seam, 0, 0, 0, 1, &handle));
        return sim_counts_of(seam, handle);
    }
    sim_charge(seam, 100 * rank);
    for (uint64_t round = 0; round < 3; round++) {
        DBO_TRY(seam->group->exchange(seam->group_self, odd && m == OTHER_TAG ? "tea" : "vote",
                                      odd && m == OTHER_SEQUENCE ? round + 1 : round, column,
                                      odd && m == OTHER_ROWS ? 1 : 2, matrix));
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(matrix[r], r);
            assert_int_equal(matrix[size + r], 10 + r);
        }
        assert_int_equal(sim_now(seam), 100 * (int64_t)(size - 1) + 7 * ((int64_t)round + 1));
    }
    return DBO_OK;
}

static void exchanges(void **state)
{
    (void)state;
    static const struct {
        meeting m;
        uint32_t ranks;
        dbo_status status;
        const char *part;
    } cases[] = {
        {ALL_COME, 1, DBO_OK, ""},
        {ALL_COME, 2, DBO_OK, ""},
        {ALL_COME, 64, DBO_OK, ""},
        {ONE_ENDS, 3, DBO_DEADLOCK,
         "rank 0 waits in exchange 'vote' 0 for rank 1, which has ended without it"},
        {ONE_WAITS, 3, DBO_DEADLOCK,
         "rank 0 waits in exchange 'vote' 0 for rank 1, which waits elsewhere"},
        {OTHER_TAG, 2, DBO_REFUSED,
         "rank 1 comes to exchange 'tea' 0 with 2 rows while rank 0 waits in 'vote' 0 with 2"},
        {OTHER_SEQUENCE, 2, DBO_REFUSED, "exchange 'vote' 1 with 2 rows while rank 0"},
        {OTHER_ROWS, 64, DBO_REFUSED, "exchange 'vote' 0 with 1 rows while rank 0"},
    };
    dbo_hardware hardware = sim_round_hardware();
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        meeting m = cases[i / 2].m;
        sim_world w;
        sim_world_open(&w, (dbo_sim_options){.num_ranks = cases[i / 2].ranks,
                                             .hardware = &hardware,
                                             .transport = DBO_SIM_HT,
                                             .exchange_ns = 7,
                                             .contexts = kinds[i % 2]});
        sim_world_must_fail(&w, comes, &m, cases[i / 2].status, cases[i / 2].part);
        sim_world_close(&w);
    }
}

/* An executor of threads in a world of fibers could never be woken: it is told so. */
static void contexts_must_be_of_one_kind(void **state)
{
    (void)state;
    static counting c = {.cost = {.fixed_ns = 5}};
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .transport = DBO_SIM_HT});
    w.contexts = DBO_CONTEXT_THREAD;
    sim_world_must_fail(&w, two_ubatches, &c, DBO_INVALID,
                        "blocks in a thread, but the contexts of this world are fibers");
    sim_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ht_meets_and_waits),
        cmocka_unit_test(the_host_waits_without_giving_its_turn),
        cmocka_unit_test(ll_flies_and_waits),
        cmocka_unit_test(flights_share_a_port),
        cmocka_unit_test(ll_has_three_phases),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(posts_must_match),
        cmocka_unit_test(exchanges),
        cmocka_unit_test(contexts_must_be_of_one_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
