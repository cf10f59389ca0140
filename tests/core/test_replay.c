/* test_replay.c: small courses, played by the rules as they were and by others; when each ends, and
 * which wait has cost the most, was worked out on paper. */
#include "core/check/lost/course.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RANKS   3u
#define COMPUTE 0u
#define COMM    1u
#define NOBODYS DBO_MAX_UBATCHES

static const dbo_play_rules as_it_was = {0};

/* ---- courses by hand ---- */

typedef struct hand {
    dbo_course course;
    int64_t busy_ns; /* of the host before what comes next */
} hand;

/* Ranks are called 5, 6, 7; their steps begin at `begin_ns` and issue from `start_ns` on. */
static void open_ranks(hand *h, uint32_t num_ranks, int64_t begin_ns, int64_t start_ns)
{
    *h = (hand){.course = {.num_ranks = num_ranks}};
    h->course.ranks = calloc(RANKS, sizeof *h->course.ranks);
    assert_non_null(h->course.ranks);
    for (uint32_t r = 0; r < num_ranks; r++) {
        h->course.ranks[r].rank = 5 + r;
        h->course.ranks[r].begin_ns = begin_ns;
        h->course.ranks[r].start_ns = start_ns;
    }
}

static void act(hand *h, uint32_t r, dbo_course_action action)
{
    action.busy_ns = h->busy_ns;
    h->busy_ns = 0;
    assert_int_equal(DBO_VEC_PUSH(&h->course.ranks[r].actions, action), DBO_OK);
}

/* Issued in this ubatch's turn; the id says which it was, from 100 on. */
static dbo_op_id issue(hand *h, uint32_t r, uint32_t stream, uint32_t turn, dbo_course_item item)
{
    dbo_course *c = &h->course;
    item.stream = (uint8_t)stream;
    item.turn = (uint8_t)turn;
    item.id = 100 + c->items.count;
    assert_int_equal(DBO_VEC_PUSH(&c->ranks[r].items[stream], c->items.count), DBO_OK);
    assert_int_equal(DBO_VEC_PUSH(&c->items, item), DBO_OK);
    if (c->ranks[r].num_streams <= stream)
        c->ranks[r].num_streams = stream + 1;
    act(h, r,
        (dbo_course_action){
            .kind = DBO_COURSE_ISSUE, .turn = (uint8_t)turn, .index = c->items.count - 1});
    return item.id;
}

static dbo_op_id op(hand *h, uint32_t r, uint32_t stream, uint32_t turn, int64_t work_ns)
{
    return issue(h, r, stream, turn, (dbo_course_item){.kind = DBO_COURSE_OP, .work_ns = work_ns});
}

/* Until `all` items of the peer are over, of which the ubatch has issued or followed `own`. */
static dbo_op_id wait(hand *h, uint32_t r, uint32_t stream, uint32_t turn, uint32_t peer,
                      uint32_t all, uint32_t own)
{
    return issue(
        h, r, stream, turn,
        (dbo_course_item){.kind = DBO_COURSE_WAIT, .peer = (uint8_t)peer, .all = all, .own = own});
}

static void event(hand *h, uint32_t r, uint32_t turn, uint32_t stream, uint32_t count,
                  int64_t late_ns)
{
    act(h, r,
        (dbo_course_action){.kind = DBO_COURSE_EVENT,
                            .turn = (uint8_t)turn,
                            .index = stream,
                            .count = count,
                            .id = 900 + count,
                            .late_ns = late_ns});
}

static void counts(hand *h, uint32_t r, uint32_t turn, uint32_t meet, int64_t late_ns)
{
    act(h, r,
        (dbo_course_action){.kind = DBO_COURSE_COUNTS,
                            .turn = (uint8_t)turn,
                            .index = meet,
                            .id = 800 + meet,
                            .late_ns = late_ns});
}

static void meets(hand *h, uint32_t count, uint32_t ranks)
{
    for (uint32_t m = 0; m < count; m++)
        assert_int_equal(DBO_VEC_PUSH(&h->course.meets, (dbo_course_meet){.ranks = ranks}), DBO_OK);
}

static dbo_played play(const hand *h, uint32_t r, dbo_play_rules rules)
{
    dbo_error err = {0};
    dbo_played played = {.step_ns = -1};
    assert_int_equal(dbo_course_play(&h->course, &rules, 5 + r, &played, &err), DBO_OK);
    return played;
}

static void expect_ns(const hand *h, uint32_t r, dbo_play_rules rules, int64_t step_ns)
{
    assert_int_equal(play(h, r, rules).step_ns, step_ns);
}

static void expect_worst(dbo_played_worst worst, int64_t ns, dbo_op_id waiter, dbo_op_id waited_for)
{
    assert_int_equal(worst.ns, ns);
    assert_int_equal(worst.waiter, waiter);
    assert_int_equal(worst.waited_for, waited_for);
}

/* ---- one rank ---- */

/* A from 107 to 147, B to 167, the host knows it at 173. */
static void the_host_takes_its_time(void **state)
{
    (void)state;
    hand h;
    open_ranks(&h, 1, 93, 100);
    h.busy_ns = 7;
    op(&h, 0, COMPUTE, 0, 40);
    h.busy_ns = 3;
    op(&h, 0, COMPUTE, 0, 20);
    h.busy_ns = 4;
    event(&h, 0, NOBODYS, COMPUTE, 2, 6);
    h.course.ranks[0].rest_ns = 11;
    expect_ns(&h, 0, as_it_was, 173 + 11 - 93);
    expect_ns(&h, 0, (dbo_play_rules){.free_host = true}, 100 + 60 + 6 - 93);
    assert_int_equal(play(&h, 1, as_it_was).step_ns, 0); /* no such rank */
    dbo_course_fini(&h.course);

    open_ranks(&h, 1, 10, 10); /* issued later than the stream is ready: from 45 to 50 */
    op(&h, 0, COMPUTE, 0, 20);
    h.busy_ns = 35;
    op(&h, 0, COMPUTE, 0, 5);
    event(&h, 0, NOBODYS, COMPUTE, 2, 0);
    h.busy_ns = -9; /* no time goes backwards */
    event(&h, 0, NOBODYS, COMPUTE, 1, 0);
    expect_ns(&h, 0, as_it_was, 40);
    dbo_course_fini(&h.course);
}

/* Of 2^43 ns, two and a half hours, as much as fits into a key of the heap. */
static void what_is_too_long_cannot_be_played(void **state)
{
    (void)state;
    const int64_t most_ns = INT64_C(1) << 43;
    hand h;
    open_ranks(&h, 1, 1000, 1000);
    h.busy_ns = most_ns - 1;
    op(&h, 0, COMPUTE, 0, 0);
    expect_ns(&h, 0, as_it_was, most_ns - 1);
    h.course.ranks[0].actions.items[0].busy_ns = most_ns;
    expect_ns(&h, 0, as_it_was, 0);
    dbo_course_fini(&h.course);
}

/* X (0 to 30) is of ubatch 0, Y (to 80) of ubatch 1; Z of ubatch 0 waits for both. */
static void an_event_may_cover_too_much(void **state)
{
    (void)state;
    static const struct {
        int64_t issued_ns, before_ns; /* Z is issued then, behind so much of its own stream */
        int64_t lost_ns, ends_ns, own_ends_ns;
    } cases[] = {
        {0, 0, 50, 89, 39}, {47, 0, 33, 89, 56}, {0, 61, 19, 89, 70}, {0, 95, 0, 104, 104}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hand h;
        open_ranks(&h, 2, 0, 0);
        op(&h, 0, COMPUTE, 0, 30);
        op(&h, 0, COMPUTE, 1, 50);
        op(&h, 0, COMM, 1, cases[i].before_ns);
        h.busy_ns = cases[i].issued_ns;
        wait(&h, 0, COMM, 0, COMPUTE, 1, 1); /* costs nothing */
        dbo_op_id late = wait(&h, 0, COMM, 0, COMPUTE, 2, 1);
        wait(&h, 0, COMM, 0, COMPUTE, 1, 1);
        dbo_op_id z = op(&h, 0, COMM, 0, 9);
        op(&h, 0, COMM, 0, 0); /* has waited for nothing */
        event(&h, 0, NOBODYS, COMM, 6, 0);
        dbo_played played = play(&h, 0, as_it_was);
        assert_int_equal(played.step_ns, cases[i].ends_ns);
        expect_worst(played.worst_event, cases[i].lost_ns, cases[i].lost_ns ? z : 0,
                     cases[i].lost_ns ? late : 0);
        expect_ns(&h, 0, (dbo_play_rules){.own_work = true}, cases[i].own_ends_ns);
        expect_worst(play(&h, 1, as_it_was).worst_event, 0, 0, 0); /* another rank's */
        dbo_course_fini(&h.course);
    }
}

/* Of two such waits the one that costs more is named, of equal ones the first. */
static void the_worst_wait_is_named(void **state)
{
    (void)state;
    static const int64_t costs_ns[][2] = {{70, 40}, {40, 70}, {55, 55}};
    for (uint32_t k = 0; k < 3; k++) {
        hand h;
        dbo_op_id late[2], z[2];
        open_ranks(&h, 1, 0, 0);
        for (uint32_t i = 0; i < 2; i++) {
            op(&h, 0, COMPUTE, 0, 10);
            op(&h, 0, COMPUTE, 1, costs_ns[k][i]);
            late[i] = wait(&h, 0, COMM, 0, COMPUTE, 2 * i + 2, 2 * i + 1);
            z[i] = op(&h, 0, COMM, 0, 3);
        }
        event(&h, 0, NOBODYS, COMM, 4, 0);
        dbo_played played = play(&h, 0, as_it_was);
        assert_int_equal(played.step_ns, 133);
        expect_worst(played.worst_event, costs_ns[k][k % 2], z[k % 2], late[k % 2]);
        dbo_course_fini(&h.course);
    }
}

/* ---- hosts that wait ---- */

/* Ubatch 0 waits for its A (0 to 50, known 4 later) before ubatch 1 may issue B (20): that could
 * have run meanwhile; C of ubatch 0 could not. */
static void a_waiting_host_holds_up_the_others(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 2; r++) {
        hand h;
        open_ranks(&h, 2, 0, 0);
        op(&h, r, COMPUTE, 0, 50);
        h.busy_ns = 6;
        event(&h, r, 0, COMPUTE, 1, 4);
        op(&h, r, COMM, 1, 20);
        op(&h, r, 3, 0, 7);
        event(&h, r, NOBODYS, COMM, 1, 0);
        event(&h, r, NOBODYS, 3, 1, 0);
        dbo_played played = play(&h, r, as_it_was);
        assert_int_equal(played.step_ns, 74);
        expect_worst(played.worst_host, 48, 0, 901);               /* from 6 to 54 */
        expect_ns(&h, r, (dbo_play_rules){.own_waits = true}, 61); /* C is held until 54 */
        dbo_course_fini(&h.course);
    }
}

/* Who goes on first after a wait, is it the waiting ubatch or the runner, nobody was held up. */
static void a_wait_for_oneself_holds_up_nobody(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, NOBODYS};
    for (size_t i = 0; i < 2; i++) {
        hand h;
        open_ranks(&h, 2, 0, 0);
        op(&h, 0, COMPUTE, 0, 50);
        event(&h, 0, 0, COMPUTE, 1, 0);
        op(&h, 0, COMM, first[i], 3);
        op(&h, 0, COMM, 1, 3);
        expect_worst(play(&h, 0, as_it_was).worst_host, 0, 0, 0);
        dbo_course_fini(&h.course);
    }
}

/* Of two waits the longer one; a short third, in which nothing was left to wait for, says nothing.
 */
static void the_worst_host_wait_is_named(void **state)
{
    (void)state;
    hand h;
    open_ranks(&h, 2, 0, 0);
    op(&h, 0, COMPUTE, 0, 20);
    event(&h, 0, 0, COMPUTE, 1, 0);
    op(&h, 0, COMPUTE, 1, 45);
    event(&h, 0, 1, COMPUTE, 2, 0);
    op(&h, 0, COMPUTE, 0, 30);
    event(&h, 0, 0, COMPUTE, 3, 0);
    op(&h, 0, COMPUTE, 1, 1);
    event(&h, 0, 1, COMPUTE, 3, 0);
    op(&h, 0, COMPUTE, 0, 1);
    dbo_played played = play(&h, 0, as_it_was);
    expect_worst(played.worst_host, 45, 0, 902);
    assert_int_equal(played.step_ns, 95);
    expect_worst(play(&h, 1, as_it_was).worst_host, 0, 0, 0);
    dbo_course_fini(&h.course);
}

/* ---- ranks that meet ---- */

/* The second comes at 35; both go then, for 15 and 17. Counts are known 5 after the start. */
static void a_rendezvous_begins_when_all_have_come(void **state)
{
    (void)state;
    hand h;
    open_ranks(&h, 2, 0, 0);
    meets(&h, 2, 2);
    for (uint32_t r = 0; r < 2; r++) {
        h.course.ranks[r].rest_ns = 1 + r;
        h.busy_ns = r == 0 ? 20 : 35;
        issue(&h, r, r, 0,
              (dbo_course_item){.kind = DBO_COURSE_MEET, .meet = 1, .work_ns = 15 + 2 * r});
        counts(&h, r, 0, 1, 5 + 30 * r);
        op(&h, r, 2, 1, 0);
        event(&h, r, NOBODYS, r, 1, 3);
    }
    dbo_played first = play(&h, 0, as_it_was), second = play(&h, 1, as_it_was);
    assert_int_equal(first.step_ns, 35 + 15 + 3 + 1);
    assert_int_equal(second.step_ns, 35 + 30 + 5 + 2); /* not before it has its counts */
    expect_worst(first.worst_host, 20, 0, 801);        /* from 20 to 40 */
    expect_worst(second.worst_host, 35, 0, 801);
    h.course.meets.items[1].ranks = 3; /* somebody never comes */
    expect_ns(&h, 0, as_it_was, 0);
    dbo_course_fini(&h.course);
}

/* Rows of rank 0 are sent at 10 and fly 50, those of rank 1 at 25 and fly 31: both have theirs at
 * 60. The receives take 8 and 9. */
static void rows_land_when_all_have_sent(void **state)
{
    (void)state;
    static const int64_t sent_ns[] = {10, 25}, flight_ns[] = {50, 31};
    hand h;
    open_ranks(&h, 2, 0, 0);
    meets(&h, 3, 2);
    for (uint32_t r = 0; r < 2; r++) {
        h.busy_ns = sent_ns[r];
        issue(&h, r, COMPUTE, 0,
              (dbo_course_item){
                  .kind = DBO_COURSE_SEND, .meet = 2, .work_ns = 4, .flight_ns = flight_ns[r]});
        issue(&h, r, COMPUTE, 0,
              (dbo_course_item){.kind = DBO_COURSE_RECV, .meet = 2, .work_ns = 8 + r});
        event(&h, r, NOBODYS, COMPUTE, 2, 0);
    }
    expect_ns(&h, 0, as_it_was, 68);
    expect_ns(&h, 1, as_it_was, 69);
    h.course.items.items[0].flight_ns = 2; /* rank 1's flight decides: until 56 */
    expect_ns(&h, 0, as_it_was, 64);
    h.course.items.items[2].flight_ns = 0; /* nothing flies: rank 0 waits for the send of rank 1 */
    expect_ns(&h, 0, as_it_was, 33);
    expect_ns(&h, 1, as_it_was, 25 + 4 + 9);
    dbo_course_fini(&h.course);
}

/* ---- SMs ---- */

/* Of 100 SMs a transfer has 60 from 20 on, though its peer comes at 34; an op that asks for 80
 * goes meanwhile at 100/140. Alone, the op ends at 70; the transfer from 34 to 104. */
static void who_waits_for_peers_holds_its_sms(void **state)
{
    (void)state;
    hand h;
    open_ranks(&h, 2, 0, 0);
    h.course.total_sms = 100;
    meets(&h, 1, 2);
    issue(&h, 0, COMPUTE, 0, (dbo_course_item){.kind = DBO_COURSE_OP, .work_ns = 70, .sms = 80});
    h.busy_ns = 20;
    issue(&h, 0, COMM, 1, (dbo_course_item){.kind = DBO_COURSE_MEET, .work_ns = 70, .sms = 60});
    event(&h, 0, NOBODYS, COMPUTE, 1, 0);
    h.busy_ns = 34;
    issue(&h, 1, COMM, 1, (dbo_course_item){.kind = DBO_COURSE_MEET, .work_ns = 70, .sms = 60});
    event(&h, 1, NOBODYS, COMM, 1, 0);
    expect_ns(&h, 0, as_it_was, 91); /* 20 + 50 * 1.4, rounded up */
    expect_ns(&h, 1, as_it_was, 104);
    expect_ns(&h, 0, (dbo_play_rules){.own_sms = true}, 70);
    event(&h, 0, NOBODYS, COMM, 1, 0);
    expect_ns(&h, 0, as_it_was, 121); /* 34 to 91 at 1 / 1.4, 29 alone */
    h.course.total_sms = 0;           /* not known: enough */
    expect_ns(&h, 0, as_it_was, 104);
    dbo_course_fini(&h.course);
}

/* A transfer takes 80 of 100 SMs until 96; an op of 10 ns that asks for 60 comes at 20 and goes at
 * 100/140, which is rounded up. So does one that asks for 21 at 100/101, and one for a single SM
 * fits. */
static void who_comes_last_is_slowed_too(void **state)
{
    (void)state;
    static const struct {
        uint16_t sms;
        int64_t ends_ns;
    } cases[] = {{60, 35}, {21, 31}, {20, 30}, {1, 30}, {0, 30}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hand h;
        open_ranks(&h, 1, 0, 0);
        h.course.total_sms = 100;
        meets(&h, 1, 1);
        issue(&h, 0, COMM, 1, (dbo_course_item){.kind = DBO_COURSE_MEET, .work_ns = 96, .sms = 80});
        h.busy_ns = 20;
        issue(&h, 0, COMPUTE, 0,
              (dbo_course_item){.kind = DBO_COURSE_OP, .work_ns = 10, .sms = cases[i].sms});
        event(&h, 0, NOBODYS, COMPUTE, 1, 0);
        expect_ns(&h, 0, as_it_was, cases[i].ends_ns);
        dbo_course_fini(&h.course);
    }
    hand h; /* of the only SM each has a half */
    open_ranks(&h, 1, 0, 0);
    h.course.total_sms = 1;
    issue(&h, 0, COMM, 1, (dbo_course_item){.kind = DBO_COURSE_OP, .work_ns = 96, .sms = 1});
    issue(&h, 0, COMPUTE, 0, (dbo_course_item){.kind = DBO_COURSE_OP, .work_ns = 10, .sms = 1});
    event(&h, 0, NOBODYS, COMPUTE, 1, 0);
    expect_ns(&h, 0, as_it_was, 20);
    dbo_course_fini(&h.course);
}

/* Of two ranks, the second waits for events of its own streams. */
static void ranks_have_streams_of_their_own(void **state)
{
    (void)state;
    hand h;
    open_ranks(&h, 2, 0, 0);
    for (uint32_t r = 0; r < 2; r++) {
        op(&h, r, COMPUTE, 0, 10 + 30 * r);
        op(&h, r, COMPUTE, 1, 5);
        wait(&h, r, COMM, 0, COMPUTE, 2, 1);
        op(&h, r, COMM, 0, 3);
        event(&h, r, NOBODYS, COMM, 2, 0);
    }
    expect_ns(&h, 0, as_it_was, 18);
    expect_ns(&h, 1, as_it_was, 48);
    expect_ns(&h, 1, (dbo_play_rules){.own_work = true}, 43);
    expect_worst(play(&h, 1, as_it_was).worst_event, 5, 107, 106);
    dbo_course_fini(&h.course);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_takes_its_time),
        cmocka_unit_test(what_is_too_long_cannot_be_played),
        cmocka_unit_test(an_event_may_cover_too_much),
        cmocka_unit_test(the_worst_wait_is_named),
        cmocka_unit_test(a_waiting_host_holds_up_the_others),
        cmocka_unit_test(a_wait_for_oneself_holds_up_nobody),
        cmocka_unit_test(the_worst_host_wait_is_named),
        cmocka_unit_test(a_rendezvous_begins_when_all_have_come),
        cmocka_unit_test(rows_land_when_all_have_sent),
        cmocka_unit_test(who_waits_for_peers_holds_its_sms),
        cmocka_unit_test(who_comes_last_is_slowed_too),
        cmocka_unit_test(ranks_have_streams_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
