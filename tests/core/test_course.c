/* test_course.c: from the calls of a step, and what a trace measured of it, to its course: every
 * item, every action of the host, with the times worked out on paper. */
#include "core/check/lost/course.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP    7u
#define COMPUTE 0u
#define COMM    1u
#define RUNNER  DBO_MARK_MAIN
#define NOBODYS DBO_MAX_UBATCHES

typedef struct hand {
    dbo_trace trace;
    dbo_recorder log;
    dbo_call calls[64];
    dbo_course course;
} hand;

static void begin(hand *h)
{
    memset(h, 0, sizeof *h);
    dbo_trace_init(&h->trace);
}

static void end(hand *h)
{
    dbo_course_fini(&h->course);
    dbo_trace_fini(&h->trace);
    free(h->log.calls);
}

static dbo_op_id op_of(uint32_t rank, uint32_t ubatch, uint32_t kind)
{
    return dbo_op_id_make(STEP, rank, 2, ubatch, kind, 0);
}

static void span(hand *h, dbo_op_id id, dbo_span_part part, uint32_t sms, int64_t start_ns,
                 int64_t end_ns)
{
    dbo_span s = {.id = id, .start_ns = start_ns, .end_ns = end_ns};
    s.part = (uint64_t)part & 0xfu;
    s.stream = part == DBO_SPAN_FLIGHT ? DBO_NETWORK_STREAM : COMPUTE;
    s.sms = sms & 0xfffu;
    dbo_trace_add_span(&h->trace, &s);
}

/* The next call; what else it says is the caller's to add. */
static dbo_call *call(hand *h, dbo_call_kind kind, uint32_t rank, uint32_t turn, int64_t begin_ns,
                      int64_t end_ns)
{
    dbo_call *c = &h->calls[h->log.count++];
    assert_true(h->log.count <= sizeof h->calls / sizeof h->calls[0]);
    *c = (dbo_call){.kind = (uint8_t)kind,
                    .rank = (uint16_t)rank,
                    .ubatch = (uint8_t)turn,
                    .begin_ns = begin_ns,
                    .end_ns = end_ns};
    return c;
}

static void step(hand *h, uint32_t rank, dbo_mark_kind kind, uint32_t number, int64_t at_ns)
{
    dbo_call *c = call(h, DBO_CALL_STEP, rank, RUNNER, at_ns, at_ns + 50); /* noting it is free */
    c->number = (uint32_t)kind;
    c->other = number;
}

static dbo_call *on(hand *h, dbo_call_kind kind, uint32_t rank, uint32_t turn, uint32_t stream,
                    uint32_t number, int64_t begin_ns, int64_t end_ns)
{
    dbo_call *c = call(h, kind, rank, turn, begin_ns, end_ns);
    c->stream = (uint16_t)stream;
    c->number = number;
    return c;
}

static dbo_call *launch(hand *h, uint32_t turn, uint32_t stream, dbo_op_id id, int64_t begin_ns,
                        int64_t end_ns)
{
    dbo_call *c = on(h, DBO_CALL_LAUNCH, dbo_op_id_rank(id), turn, stream, 0, begin_ns, end_ns);
    c->id = id;
    return c;
}

static dbo_call *post(hand *h, uint32_t turn, uint32_t stream, dbo_op_id id, uint32_t handle,
                      int64_t begin_ns)
{
    dbo_call *c =
        on(h, DBO_CALL_POST, dbo_op_id_rank(id), turn, stream, handle, begin_ns, begin_ns);
    c->id = id;
    c->other = DBO_NO_EVENT;
    return c;
}

static const dbo_course_rank *build(hand *h, uint32_t rank, bool eager)
{
    dbo_error err = {0};
    h->log.calls = malloc(h->log.count * sizeof *h->calls); /* nothing behind them */
    assert_non_null(h->log.calls);
    memcpy(h->log.calls, h->calls, h->log.count * sizeof *h->calls);
    const dbo_course_source source = {
        .log = &h->log, .trace = &h->trace, .step = STEP, .total_sms = 132, .eager = eager};
    assert_int_equal(dbo_course_init(&h->course, &source, &err), DBO_OK);
    return dbo_course_rank_of(&h->course, rank);
}

static const dbo_course_item *item_of(const hand *h, const dbo_course_rank *r, uint32_t stream,
                                      uint32_t at)
{
    assert_in_range(at, 0, r->items[stream].count - 1);
    return &h->course.items.items[r->items[stream].items[at]];
}

static void expect_op(const hand *h, const dbo_course_rank *r, uint32_t stream, uint32_t at,
                      dbo_op_id id, uint32_t turn, int64_t work_ns)
{
    const dbo_course_item *item = item_of(h, r, stream, at);
    assert_int_equal(item->kind, DBO_COURSE_OP);
    assert_int_equal(item->id, id);
    assert_int_equal(item->stream, stream);
    assert_int_equal(item->turn, turn);
    assert_int_equal(item->work_ns, work_ns);
}

static void expect_wait(const hand *h, const dbo_course_rank *r, uint32_t stream, uint32_t at,
                        uint32_t peer, uint32_t all, uint32_t own, dbo_op_id id)
{
    const dbo_course_item *item = item_of(h, r, stream, at);
    assert_int_equal(item->kind, DBO_COURSE_WAIT);
    assert_int_equal(item->peer, peer);
    assert_int_equal(item->all, all);
    assert_int_equal(item->own, own);
    assert_int_equal(item->id, id);
}

static void expect_transfer(const hand *h, const dbo_course_rank *r, uint32_t stream, uint32_t at,
                            dbo_course_kind kind, dbo_op_id id, uint32_t meet, int64_t work_ns,
                            int64_t flight_ns, uint32_t sms)
{
    const dbo_course_item *item = item_of(h, r, stream, at);
    assert_int_equal(item->kind, kind);
    assert_int_equal(item->id, id);
    assert_int_equal(item->meet, meet);
    assert_int_equal(item->work_ns, work_ns);
    assert_int_equal(item->flight_ns, flight_ns);
    assert_int_equal(item->sms, sms);
}

static void expect_busy(const dbo_course_rank *r, const int64_t *busy_ns, uint32_t count)
{
    assert_int_equal(r->actions.count, count);
    for (uint32_t i = 0; i < count; i++)
        if (r->actions.items[i].busy_ns != busy_ns[i])
            fail_msg("action %u: %lld ns before it, not %lld", i,
                     (long long)r->actions.items[i].busy_ns, (long long)busy_ns[i]);
}

/* ---- streams and events ---- */

/* A0 of both ubatches on compute; the event is recorded behind both, and comm waits for it in turn
 * of ubatch 0, of ubatch 1, of nobody. */
static void an_event_covers_what_was_issued(void **state)
{
    (void)state;
    static const int64_t costs[2] = {0};
    const dbo_op_id a = op_of(4, 0, DBO_KIND_A0), b = op_of(4, 1, DBO_KIND_A0);
    const dbo_op_id unseen = op_of(4, 0, DBO_KIND_A1), z = op_of(4, 0, DBO_KIND_LAYOUT);
    hand h;
    begin(&h);
    span(&h, a, DBO_SPAN_RUN, 33, 200, 231);
    span(&h, b, DBO_SPAN_RUN, 0, 231, 244);
    span(&h, z, DBO_SPAN_RUN, 0, 250, 257);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    launch(&h, 0, COMPUTE, a, 100, 100)->what = &costs[1];
    on(&h, DBO_CALL_WAIT, 4, 0, COMM, 3, 100, 100); /* of what nobody has recorded */
    on(&h, DBO_CALL_RECORD, 4, 0, COMM, 2, 100, 100);
    on(&h, DBO_CALL_WAIT, 4, 0, COMPUTE, 2, 100, 100); /* of nothing */
    launch(&h, 1, COMPUTE, b, 100, 100);
    launch(&h, 0, COMPUTE, unseen, 100, 100); /* has left no span */
    launch(&h, 0, COMPUTE, z, 100, 100)->status = DBO_NO_MEMORY;
    launch(&h, 0, DBO_COURSE_STREAMS, z, 100, 100);
    on(&h, DBO_CALL_RECORD, 4, 1, COMPUTE, 5, 100, 100);
    on(&h, DBO_CALL_WAIT, 4, 0, COMPUTE, 5, 100, 100); /* of itself */
    on(&h, DBO_CALL_WAIT, 4, 0, COMM, 5, 100, 100);
    on(&h, DBO_CALL_WAIT, 4, 1, COMM, 5, 100, 100);
    on(&h, DBO_CALL_WAIT, 4, RUNNER, COMM, 5, 100, 100);
    launch(&h, 0, COMM, z, 100, 100);
    on(&h, DBO_CALL_RECORD, 4, 0, COMM, 6, 100, 100);
    on(&h, DBO_CALL_WAIT, 4, 1, 3, 6, 100, 100);
    step(&h, 4, DBO_MARK_STEP_END, STEP, 100);
    const dbo_course_rank *r = build(&h, 4, false);
    assert_int_equal(r->num_streams, 4);
    assert_int_equal(r->items[COMPUTE].count, 2);
    expect_op(&h, r, COMPUTE, 0, a, 0, 31);
    assert_int_equal(item_of(&h, r, COMPUTE, 0)->sms, 33);
    assert_ptr_equal(item_of(&h, r, COMPUTE, 0)->cost, &costs[1]);
    expect_op(&h, r, COMPUTE, 1, b, 1, 13);
    assert_int_equal(r->items[COMM].count, 4);
    expect_wait(&h, r, COMM, 0, COMPUTE, 2, 1, b);
    expect_wait(&h, r, COMM, 1, COMPUTE, 2, 2, b);
    expect_wait(&h, r, COMM, 2, COMPUTE, 2, 2, b);
    expect_op(&h, r, COMM, 3, z, 0, 7);
    expect_wait(&h, r, 3, 0, COMM, 4, 2, z); /* ubatch 1's wait is there, too */
    assert_int_equal(r->actions.count, 7);
    assert_int_equal(r->actions.items[5].index, 5);
    assert_int_equal(r->actions.items[5].turn, 0);
    assert_int_equal(r->actions.items[4].turn, NOBODYS);
    end(&h);
}

/* ---- the host's own time ---- */

/* It starts with the first turn; what blocks is no time of the host's own, nor what the turn's
 * hand-over says. */
static void the_host_has_time_between_calls(void **state)
{
    (void)state;
    const dbo_op_id a = op_of(4, 0, DBO_KIND_A0), b = op_of(4, 1, DBO_KIND_A1);
    static const int64_t busy_ns[] = {3 + 6 + 2, 5 + 9, 4 + 8};
    hand h;
    begin(&h);
    span(&h, a, DBO_SPAN_RUN, 0, 200, 231);
    span(&h, b, DBO_SPAN_RUN, 0, 231, 244);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP - 1, 60);
    step(&h, 4, DBO_MARK_STEP_END, STEP - 1, 90);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    call(&h, DBO_CALL_EXCHANGE, 4, RUNNER, 110, 160);
    call(&h, DBO_CALL_COMPUTE_SMS, 4, RUNNER, 163, 165);
    call(&h, DBO_CALL_TURN, 4, RUNNER, 170, 173);
    call(&h, DBO_CALL_BARRIER, 4, 0, 179, 190);
    launch(&h, 0, COMPUTE, a, 192, 197);
    call(&h, DBO_CALL_EXCHANGE, 4, 0, 206, 220);
    launch(&h, 1, COMPUTE, b, 220, 224);
    on(&h, DBO_CALL_RECORD, 4, 1, COMPUTE, 0, 224, 224);
    on(&h, DBO_CALL_HOST_WAIT, 4, 1, COMPUTE, 0, 232, 260);
    call(&h, DBO_CALL_TURN, 4, RUNNER, 261, 264);
    step(&h, 4, DBO_MARK_STEP_END, STEP, 270);
    step(&h, DBO_MAX_RANKS - 1, DBO_MARK_STEP_BEGIN, STEP, 280);
    launch(&h, 1, COMPUTE, b, 290, 292); /* it is over */
    const dbo_course_rank *r = build(&h, 4, false);
    assert_int_equal(r->begin_ns, 100);
    assert_int_equal(r->start_ns, 170);
    expect_busy(r, busy_ns, 3);
    assert_int_equal(r->rest_ns, 1 + 3 + 6);
    assert_non_null(dbo_course_rank_of(&h.course, DBO_MAX_RANKS - 1));
    assert_int_equal(h.course.num_ranks, 2);
    end(&h);

    begin(&h); /* nothing is issued: there is no time of issuing */
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    call(&h, DBO_CALL_COMPUTE_SMS, 4, RUNNER, 110, 115);
    step(&h, 4, DBO_MARK_STEP_END, STEP, 170);
    r = build(&h, 4, false);
    assert_int_equal(r->start_ns, 100);
    assert_int_equal(r->rest_ns, 0);
    assert_null(dbo_course_rank_of(&h.course, 5));
    end(&h);
}

/* Issuing starts with whatever comes first of a turn, a launch, a post and a replay. */
static void issuing_starts_with_what_is_issued(void **state)
{
    (void)state;
    static const dbo_call_kind starts[] = {DBO_CALL_TURN, DBO_CALL_LAUNCH, DBO_CALL_POST,
                                           DBO_CALL_REPLAY};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        hand h;
        begin(&h);
        step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
        on(&h, DBO_CALL_RECORD, 4, 0, COMPUTE, 0, 103, 107);
        call(&h, starts[i], 4, 0, 111, 124);
        step(&h, 4, DBO_MARK_STEP_END, STEP, 130);
        const dbo_course_rank *r = build(&h, 4, false);
        assert_int_equal(r->start_ns, 111);
        assert_int_equal(r->rest_ns, 13 + 6);
        end(&h);
    }
}

/* ---- what hosts wait for ---- */

/* An event that was waited for until 1 after its op; one that was there; one behind a wait. */
static void a_host_wait_is_as_late_as_it_was(void **state)
{
    (void)state;
    const dbo_op_id a = op_of(4, 0, DBO_KIND_A0), b = op_of(4, 0, DBO_KIND_LAYOUT);
    static const int64_t late_ns[] = {1, 0, 0, 0};
    hand h;
    begin(&h);
    span(&h, a, DBO_SPAN_RUN, 0, 200, 231);
    span(&h, b, DBO_SPAN_RUN, 0, 240, 290);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    on(&h, DBO_CALL_HOST_WAIT, 4, 0, COMPUTE, 9, 100, 105); /* recorded by nobody */
    on(&h, DBO_CALL_RECORD, 4, 0, COMPUTE, 0, 105, 105);
    on(&h, DBO_CALL_HOST_WAIT, 4, 0, COMPUTE, 0, 105, 109); /* nothing was there */
    launch(&h, 0, COMPUTE, a, 110, 110);
    on(&h, DBO_CALL_RECORD, 4, 0, COMPUTE, 1, 110, 110);
    on(&h, DBO_CALL_HOST_WAIT, 4, 0, COMPUTE, 1, 120, 232);
    on(&h, DBO_CALL_HOST_WAIT, 4, 1, COMPUTE, 1, 250, 250);
    launch(&h, 0, COMM, b, 110, 110);
    on(&h, DBO_CALL_RECORD, 4, 0, COMM, 2, 250, 250);
    on(&h, DBO_CALL_HOST_WAIT, 4, RUNNER, COMM, 2, 252, 289); /* clocks do not agree */
    on(&h, DBO_CALL_WAIT, 4, 0, COMM, 1, 289, 289);
    on(&h, DBO_CALL_RECORD, 4, 0, COMM, 2, 289, 289);
    on(&h, DBO_CALL_HOST_WAIT, 4, 0, COMM, 2, 290, 301);
    step(&h, 4, DBO_MARK_STEP_END, STEP, 310);
    const dbo_course_rank *r = build(&h, 4, false);
    static const uint32_t at[] = {1, 2, 4, 6}, stream[] = {COMPUTE, COMPUTE, COMM, COMM};
    static const uint32_t counts[] = {1, 1, 1, 2}, turns[] = {0, 1, NOBODYS, 0};
    const dbo_op_id ids[] = {a, a, b, b};
    assert_int_equal(r->actions.count, 7);
    for (uint32_t i = 0; i < 4; i++) {
        const dbo_course_action *action = &r->actions.items[at[i]];
        assert_int_equal(action->kind, DBO_COURSE_EVENT);
        assert_int_equal(action->index, stream[i]);
        assert_int_equal(action->count, counts[i]);
        assert_int_equal(action->turn, turns[i]);
        assert_int_equal(action->id, ids[i]);
        assert_int_equal(action->late_ns, late_ns[i]);
    }
    end(&h);
}

/* The counts of four transfers of rank 4, from 200, 300, 400, 500 on. Who waits for them sees how
 * late they come; where nobody does, they come as late as they do elsewhere, at the latest. */
static void counts_come_as_late_as_they_do(void **state)
{
    (void)state;
    static const struct {
        int64_t asked_ns[4], had_ns[4], late_ns[4];
    } cases[] = {
        {{201, 301, 450, 501}, {213, 317, 450, 511}, {13, 17, 17, 11}}, /* the longest */
        {{219, 314, 423, 590}, {219, 314, 423, 590}, {14, 14, 14, 14}}, /* nobody waited */
        {{195, 450, 450, 550}, {195, 450, 450, 550}, {0, 0, 0, 0}},
        {{190, 450, 450, 550}, {198, 450, 450, 550}, {0, 50, 50, 50}}, /* not before the start */
        {{199, 450, 450, 550}, {201, 450, 450, 550}, {1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hand h;
        begin(&h);
        step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
        for (uint32_t k = 0; k < 4; k++) {
            dbo_op_id id = op_of(4, k, DBO_KIND_DISPATCH);
            span(&h, id, DBO_SPAN_RUN, 0, 200 + 100 * k, 290 + 100 * k);
            post(&h, k, COMM, id, 10 + k, 100);
        }
        post(&h, 3, COMM, op_of(4, 3, DBO_KIND_COMBINE), 17, 100); /* has left no span */
        on(&h, DBO_CALL_COUNTS, 4, 3, COMM, 17, 180, 185);
        on(&h, DBO_CALL_COUNTS, 4, 3, COMM, 99, 180, 185); /* of no transfer */
        for (uint32_t k = 0; k < 4; k++)
            on(&h, DBO_CALL_COUNTS, 4, k, COMM, 10 + k, cases[i].asked_ns[k], cases[i].had_ns[k]);
        step(&h, 4, DBO_MARK_STEP_END, STEP, 900);
        const dbo_course_rank *r = build(&h, 4, false);
        assert_int_equal(r->actions.count, 8);
        for (uint32_t k = 0; k < 4; k++) {
            const dbo_course_action *action = &r->actions.items[4 + k];
            assert_int_equal(action->kind, DBO_COURSE_COUNTS);
            assert_int_equal(action->index, k);
            assert_int_equal(action->turn, k);
            assert_int_equal(action->id, op_of(4, k, DBO_KIND_DISPATCH));
            assert_int_equal(action->late_ns, cases[i].late_ns[k]);
        }
        end(&h);
    }
}

/* ---- transfers ---- */

/* Communicators match posts in order, whatever the ranks call them. */
static void ranks_meet_in_the_order_of_their_posts(void **state)
{
    (void)state;
    hand h;
    begin(&h);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    step(&h, 9, DBO_MARK_STEP_BEGIN, STEP, 104);
    for (uint32_t rank = 4; rank < 10; rank += 5) {
        dbo_op_id d = op_of(rank, 1, DBO_KIND_DISPATCH), c = op_of(rank, 1, DBO_KIND_COMBINE);
        dbo_op_id other = op_of(rank, 0, DBO_KIND_DISPATCH), a = op_of(rank, 1, DBO_KIND_A0);
        span(&h, a, DBO_SPAN_RUN, 0, 150, 160);
        span(&h, d, DBO_SPAN_RUN, 21, 200 + rank, 230);
        span(&h, c, DBO_SPAN_RUN, 20, 300, 340 + rank);
        if (rank == 9)
            span(&h, other, DBO_SPAN_RUN, 0, 400, 450);
        launch(&h, 1, COMPUTE, a, 100, 100);
        on(&h, DBO_CALL_RECORD, rank, 1, COMPUTE, 8, 100, 100);
        post(&h, 1, COMM, d, 6, 100)->other = 8;
        post(&h, 0, COMM, other, 7, 100);
        post(&h, 1, COMM, c, 5, 100);
        on(&h, DBO_CALL_FINISH, rank, 1, COMPUTE, 6, 100, 100);
        on(&h, DBO_CALL_FINISH, rank, 1, COMPUTE, 6, 100, 100); /* there is none any more */
        on(&h, DBO_CALL_FINISH, rank, 1, COMM, 5, 100, 100);    /* it is here */
        step(&h, rank, DBO_MARK_STEP_END, STEP, 600);
    }
    const dbo_course_rank *r = build(&h, 4, false), *last = dbo_course_rank_of(&h.course, 9);
    assert_int_equal(h.course.num_ranks, 2);
    assert_int_equal(h.course.meets.count, 3);
    assert_int_equal(h.course.meets.items[0].ranks, 2);
    assert_int_equal(h.course.meets.items[0].last_start_ns, 209);
    assert_int_equal(h.course.meets.items[2].ranks, 1);
    assert_int_equal(last->begin_ns, 104);
    expect_wait(&h, r, COMM, 0, COMPUTE, 1, 1, op_of(4, 1, DBO_KIND_A0));
    expect_transfer(&h, r, COMM, 1, DBO_COURSE_MEET, op_of(4, 1, DBO_KIND_DISPATCH), 0, 26, 0, 21);
    expect_transfer(&h, r, COMM, 2, DBO_COURSE_MEET, op_of(4, 1, DBO_KIND_COMBINE), 1, 44, 0, 20);
    assert_int_equal(r->items[COMM].count, 3);
    expect_wait(&h, r, COMPUTE, 1, COMM, 2, 2, op_of(4, 1, DBO_KIND_DISPATCH));
    assert_int_equal(r->items[COMPUTE].count, 2);
    expect_transfer(&h, last, COMM, 2, DBO_COURSE_MEET, op_of(9, 0, DBO_KIND_DISPATCH), 2, 50, 0,
                    0);
    end(&h);
}

/* Rows of rank 4 fly in one piece, which ends when rank 9 has sent, too, at 230; those of rank 9 in
 * two. Where no flight was seen, rows have flown until the receive began. */
static void rows_fly_from_their_send(void **state)
{
    (void)state;
    hand h;
    begin(&h);
    for (uint32_t rank = 4; rank < 10; rank += 5) {
        dbo_op_id d = op_of(rank, 0, DBO_KIND_DISPATCH), c = op_of(rank, 0, DBO_KIND_COMBINE);
        dbo_op_id last = op_of(rank, 1, DBO_KIND_COMBINE);
        span(&h, d, DBO_SPAN_SEND, 11, rank == 4 ? 200 : 230, 241);
        span(&h, d, DBO_SPAN_RECV, 12, 300, 317);
        span(&h, d, DBO_SPAN_FLIGHT, 0, 203, rank == 4 ? 290 : 226);
        if (rank == 9)
            span(&h, d, DBO_SPAN_FLIGHT, 0, 231, 240);
        span(&h, c, DBO_SPAN_SEND, 13, 400, 402);
        span(&h, c, DBO_SPAN_RECV, 14, 419, 430 + rank);
        span(&h, last, DBO_SPAN_SEND, 15, 500, 502);
        step(&h, rank, DBO_MARK_STEP_BEGIN, STEP, 100);
        post(&h, 0, COMPUTE, d, 1, 100);
        post(&h, 0, COMPUTE, c, 2, 100);
        post(&h, 1, COMPUTE, last, 3, 100);
        for (uint32_t handle = 1; handle < 4; handle++)
            on(&h, DBO_CALL_FINISH, rank, 1, COMM, handle, 100, 100);
        step(&h, rank, DBO_MARK_STEP_END, STEP, 600);
    }
    const dbo_course_rank *r = build(&h, 4, false), *last = dbo_course_rank_of(&h.course, 9);
    dbo_op_id d = op_of(4, 0, DBO_KIND_DISPATCH), c = op_of(4, 0, DBO_KIND_COMBINE);
    expect_transfer(&h, r, COMPUTE, 0, DBO_COURSE_SEND, d, 0, 41, 60, 11);
    expect_transfer(&h, r, COMM, 0, DBO_COURSE_RECV, d, 0, 17, 0, 12);
    expect_transfer(&h, r, COMPUTE, 1, DBO_COURSE_SEND, c, 1, 2, 19, 13);
    expect_transfer(&h, r, COMM, 1, DBO_COURSE_RECV, c, 1, 15, 0, 14);
    expect_transfer(&h, r, COMPUTE, 2, DBO_COURSE_SEND, op_of(4, 1, DBO_KIND_COMBINE), 2, 2, 0, 15);
    assert_int_equal(r->items[COMM].count, 2); /* the last has no receive, and nobody to wait for */
    expect_transfer(&h, last, COMPUTE, 0, DBO_COURSE_SEND, op_of(9, 0, DBO_KIND_DISPATCH), 0, 11,
                    23, 11);
    end(&h);
}

/* ---- graphs ---- */

/* Captures A0, by another rank something else, and ends the capture as graph 3. */
static void capture(hand *h, int64_t at_ns)
{
    call(h, DBO_CALL_CAPTURE_BEGIN, 4, RUNNER, at_ns, at_ns);
    launch(h, 0, COMPUTE, op_of(4, 0, DBO_KIND_A0), at_ns, at_ns + 7);
    launch(h, 0, COMPUTE, op_of(9, 0, DBO_KIND_A0), at_ns, at_ns);
    call(h, DBO_CALL_CAPTURE_END, 4, RUNNER, at_ns + 7, at_ns + 7)->number = 3;
}

/* A replay stands for what was captured; in a step that captures it, eagerly, the calls do. */
static void a_replay_is_what_was_captured(void **state)
{
    (void)state;
    for (uint32_t in_step = 0; in_step < 2; in_step++)
        for (uint32_t eager = 0; eager < 2; eager++) {
            hand h;
            begin(&h);
            span(&h, op_of(4, 0, DBO_KIND_A0), DBO_SPAN_RUN, 0, 200, 231);
            span(&h, op_of(4, 0, DBO_KIND_A1), DBO_SPAN_RUN, 0, 231, 240);
            if (!in_step)
                capture(&h, 60);
            step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
            call(&h, DBO_CALL_TURN, 4, RUNNER, 101, 101);
            if (in_step)
                capture(&h, 110);
            call(&h, DBO_CALL_REPLAY, 4, RUNNER, 120, 125)->number = 3;
            launch(&h, 0, COMPUTE, op_of(4, 0, DBO_KIND_A1), 128, 131);
            call(&h, DBO_CALL_CAPTURE_ABANDON, 4, RUNNER, 131, 131)->status = DBO_ABORTED;
            step(&h, 4, DBO_MARK_STEP_END, STEP, 150);
            const dbo_course_rank *r = build(&h, 4, eager == 1);
            expect_op(&h, r, COMPUTE, 0, op_of(4, 0, DBO_KIND_A0), 0, 31);
            expect_op(&h, r, COMPUTE, 1, op_of(4, 0, DBO_KIND_A1), 0, 9);
            assert_int_equal(r->items[COMPUTE].count, 2);
            /* before the replay, or the call in its place; and after it */
            const int64_t first_ns = in_step && eager ? 9 : 19, next_ns = in_step && eager ? 10 : 8;
            expect_busy(r, (const int64_t[]){first_ns, next_ns}, 2);
            assert_int_equal(r->rest_ns, 3 + 19);
            assert_true(h.course.captures);
            end(&h);
        }
}

/* A graph that was captured again, and calls that failed: the last that worked counts. */
static void the_last_capture_counts(void **state)
{
    (void)state;
    hand h;
    begin(&h);
    span(&h, op_of(4, 0, DBO_KIND_A0), DBO_SPAN_RUN, 0, 200, 231);
    span(&h, op_of(4, 1, DBO_KIND_A1), DBO_SPAN_RUN, 0, 231, 240);
    capture(&h, 10);
    call(&h, DBO_CALL_CAPTURE_BEGIN, 4, RUNNER, 30, 30);
    launch(&h, 1, COMPUTE, op_of(4, 1, DBO_KIND_A1), 31, 32);
    call(&h, DBO_CALL_CAPTURE_END, 4, RUNNER, 33, 33)->number = 3;
    call(&h, DBO_CALL_CAPTURE_BEGIN, 4, RUNNER, 40, 40);
    dbo_call *failed = call(&h, DBO_CALL_CAPTURE_END, 4, RUNNER, 43, 43);
    failed->number = 3;
    failed->status = DBO_NO_MEMORY;
    call(&h, DBO_CALL_CAPTURE_ABANDON, 4, RUNNER, 45, 45);
    step(&h, 4, DBO_MARK_STEP_BEGIN, STEP, 100);
    call(&h, DBO_CALL_REPLAY, 4, RUNNER, 120, 125)->number = 3;
    failed = call(&h, DBO_CALL_REPLAY, 4, RUNNER, 125, 126);
    failed->number = 3;
    failed->status = DBO_NO_MEMORY;
    call(&h, DBO_CALL_REPLAY, 4, RUNNER, 126, 127)->number = 4; /* there is no such graph */
    step(&h, 4, DBO_MARK_STEP_END, STEP, 150);
    const dbo_course_rank *r = build(&h, 4, false);
    assert_int_equal(r->items[COMPUTE].count, 1);
    expect_op(&h, r, COMPUTE, 0, op_of(4, 1, DBO_KIND_A1), 1, 9);
    assert_false(h.course.captures);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_covers_what_was_issued),
        cmocka_unit_test(the_host_has_time_between_calls),
        cmocka_unit_test(issuing_starts_with_what_is_issued),
        cmocka_unit_test(a_host_wait_is_as_late_as_it_was),
        cmocka_unit_test(counts_come_as_late_as_they_do),
        cmocka_unit_test(ranks_meet_in_the_order_of_their_posts),
        cmocka_unit_test(rows_fly_from_their_send),
        cmocka_unit_test(a_replay_is_what_was_captured),
        cmocka_unit_test(the_last_capture_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
