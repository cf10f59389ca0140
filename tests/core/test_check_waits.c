/* test_check_waits.c: why nothing moves: of all that is missing, what would never have come; and
 * what is only a consequence of a world that stopped is not taken for its cause. */
#include "tests/support/check_world.h"

#include <stdio.h>

#define COMPUTE 0u

#define NO_OP UINT64_MAX

/* `op`: the transfer that the finding is about. */
static void expect(check_world *w, const dbo_error *error, dbo_finding_kind kind, uint32_t rank,
                   dbo_op_id op, const char *what, const char *missing)
{
    dbo_findings findings = {0};
    dbo_error err = {0};
    assert_int_equal(dbo_checker_finish(w->checker, DBO_DEADLOCK, error, &findings, &err), DBO_OK);
    dbo_checker_destroy(w->checker);
    assert_int_equal(findings.count, 1);
    const dbo_finding *f = &findings.items[0];
    if (f->kind != kind || !strstr(f->what, what) || !strstr(f->missing_edge, missing))
        fail_msg("%s: '%s' and '%s' lack '%s' or '%s'", dbo_finding_kind_name(f->kind), f->what,
                 f->missing_edge, what, missing);
    assert_int_equal(f->rank, rank);
    assert_int_equal(f->num_ops, op != NO_OP);
    assert_true(op == NO_OP || f->ops[0] == op);
    assert_true(f->fix[0] != '\0' || kind == DBO_FINDING_DEADLOCK);
    dbo_findings_fini(&findings);
}

static void turn(check_world *w, uint32_t rank, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    w->seams[rank].trace->turn(w->seams[rank].trace_self, event, ubatch, arg);
}

static dbo_op_id dispatch_of(uint32_t rank, uint32_t ubatch, uint32_t layer)
{
    return dbo_op_id_make(0, rank, layer, ubatch, DBO_KIND_DISPATCH, 0);
}

static void post(check_world *w, uint32_t rank, uint32_t ubatch, uint32_t layer)
{
    static const dbo_a2a_cost cost = {.fixed_ns = 1};
    const dbo_a2a_args args = {.id = dispatch_of(rank, ubatch, layer),
                               .direction = DBO_A2A_DISPATCH,
                               .stream = COMPUTE,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost};
    dbo_a2a_handle handle;
    assert_int_equal(w->seams[rank].a2a->post(w->seams[rank].a2a_self, &args, &handle), DBO_OK);
}

/* Two ubatches, of which 1 has the turn and 0 waits for it. */
static void split(check_world *w, uint32_t rank)
{
    turn(w, rank, DBO_TURN_SIGNAL, DBO_MARK_MAIN, 0);
    turn(w, rank, DBO_TURN_RESUME, 0, 0);
    turn(w, rank, DBO_TURN_SIGNAL, 0, 1);
    turn(w, rank, DBO_TURN_RESUME, 1, 0);
}

static const dbo_error nothing_moves = {.status = DBO_DEADLOCK, .message = "nothing moves"};

/* The world has stopped and a call is given up: both ubatches end, and ubatch 0 does so without its
 * turn, as in a ring that stands still. */
static void a_release_is_no_ring(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        check_world w;
        check_world_open(&w, NULL, 1);
        split(&w, 0);
        if (stopped)
            check_exchange(&w, 0, 0, false);
        turn(&w, 0, DBO_TURN_EXIT, 1, 0);
        if (!stopped)
            turn(&w, 0, DBO_TURN_SIGNAL, 1, 0);
        turn(&w, 0, DBO_TURN_EXIT, 0, 0);
        if (stopped)
            expect(&w, &nothing_moves, DBO_FINDING_DEADLOCK, DBO_NOWHERE, NO_OP,
                   "nothing moves; rank 0 waits for an exchange", "");
        else
            expect(&w, &nothing_moves, DBO_FINDING_DEADLOCK, 0, NO_OP,
                   "ubatch 0 waits for its turn, which comes round the ring from ubatch 1; that "
                   "one has ended after 0 yields, ubatch 0 has yielded 1 time",
                   "a yield of ubatch 1");
    }
}

/* An ubatch that ends without a signal has failed; its sibling was told nothing. */
static void a_failure_that_releases_nobody(void **state)
{
    (void)state;
    for (int worded = 0; worded < 2; worded++) {
        check_world w;
        check_world_open(&w, NULL, 1);
        split(&w, 0);
        turn(&w, 0, DBO_TURN_EXIT, 1, 0);
        turn(&w, 0, DBO_TURN_EXIT, 0, 0);
        expect(&w, worded ? &nothing_moves : NULL, DBO_FINDING_DEADLOCK, 0, NO_OP,
               worded ? "nothing moves" : "ubatch 1 has failed and never released its siblings",
               "the release of its siblings when ubatch 1 failed");
    }
}

/* Rank 0 is behind in layer 0, but lives; rank 2's ubatch 1 has ended, and layer 1 of it will never
 * come. */
static void what_may_yet_come_is_not_the_cause(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        check_world w;
        check_world_open(&w, NULL, 3);
        for (uint32_t r = 0; r < 3; r++)
            split(&w, r);
        post(&w, 1, 0, 0);
        post(&w, 2, 0, 0);
        for (uint32_t r = 0; r < 2; r++)
            post(&w, r, 1, 1);
        if (ended) {
            turn(&w, 2, DBO_TURN_EXIT, 1, 0);
            turn(&w, 2, DBO_TURN_SIGNAL, 1, 0);
        }
        for (uint32_t r = 0; r < 3; r++)
            check_exchange(&w, r, 0, false);
        if (ended)
            expect(&w, NULL, DBO_FINDING_DEADLOCK, 2, dispatch_of(0, 1, 1),
                   "rank 0 posted dispatch of ubatch 1, rank 2 never did (step 0, layer 1); ranks "
                   "0, 1, 2 wait for an exchange",
                   "a post of dispatch of ubatch 1 on rank 2, where that ubatch has ended");
        else
            expect(&w, NULL, DBO_FINDING_DEADLOCK, 0, dispatch_of(1, 0, 0),
                   "rank 1 posted dispatch of ubatch 0, rank 0 never did (step 0, layer 0)",
                   "a post of dispatch of ubatch 0 on rank 0");
    }
}

/* The waits of rank 0 and rank 1 are a circle. Whether a rank splits tells who is wrong, and not
 * which of the two is seen first. */
static void who_does_not_split_is_the_cause(void **state)
{
    (void)state;
    for (uint32_t alone = 0; alone < 2; alone++) {
        check_world w;
        char what[96], missing[96];
        check_world_open(&w, NULL, 2);
        split(&w, 1 - alone);
        post(&w, alone, 0, 0);
        post(&w, 1 - alone, 0, 0);
        post(&w, 1 - alone, 1, 0);
        post(&w, alone, 0, 1);
        for (uint32_t r = 0; r < 2; r++)
            check_exchange(&w, r, 0, false);
        snprintf(what, sizeof what,
                 "rank %u posted dispatch of ubatch 1, rank %u never did (step 0, layer 0)",
                 1 - alone, alone);
        snprintf(missing, sizeof missing, "a post of dispatch of ubatch 1 on rank %u", alone);
        expect(&w, NULL, DBO_FINDING_DEADLOCK, alone, dispatch_of(1 - alone, 1, 0), what, missing);
    }
}

/* Rank 1 goes past the exchange of a step and posts; rank 0 waits in it, and so posts nothing. */
static void an_exchange_comes_before_what_follows_it(void **state)
{
    (void)state;
    check_world w;
    check_world_open(&w, NULL, 2);
    for (uint32_t r = 0; r < 2; r++)
        check_mark(&w, r, DBO_MARK_STEP_BEGIN, 0);
    post(&w, 1, 0, 0);
    check_exchange(&w, 0, 0, false);
    expect(&w, NULL, DBO_FINDING_MISSED_EXCHANGE, 1, NO_OP, "rank 1 is 1 exchange behind",
           "an exchange of rank 1 in step 0");
}

/* A rank that is in a later step has left out what is missing in this one; who waits in an exchange
 * of this step has not. */
static void a_step_that_is_over_brings_nothing(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        check_world w;
        check_world_open(&w, NULL, 2);
        for (uint32_t r = 0; r < 2; r++) {
            check_mark(&w, r, DBO_MARK_STEP_BEGIN, 0);
            check_exchange(&w, r, 0, true);
        }
        post(&w, 0, 0, 0);
        if (over)
            check_mark(&w, 1, DBO_MARK_STEP_END, 0);
        if (over)
            check_mark(&w, 1, DBO_MARK_STEP_BEGIN, 1);
        check_exchange(&w, 1, 1, false);
        if (over)
            expect(&w, NULL, DBO_FINDING_DEADLOCK, 1, dispatch_of(0, 0, 0),
                   "rank 0 posted dispatch of ubatch 0, rank 1 never did (step 0, layer 0)",
                   "on rank 1, which has left the step");
        else
            expect(&w, NULL, DBO_FINDING_MISSED_EXCHANGE, 0, NO_OP, "rank 0 is 1 exchange behind",
                   "an exchange of rank 0 in step 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_is_no_ring),
        cmocka_unit_test(a_failure_that_releases_nobody),
        cmocka_unit_test(what_may_yet_come_is_not_the_cause),
        cmocka_unit_test(who_does_not_split_is_the_cause),
        cmocka_unit_test(an_exchange_comes_before_what_follows_it),
        cmocka_unit_test(a_step_that_is_over_brings_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
