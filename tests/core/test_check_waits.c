/* test_check_waits.c: why nothing moves: of all that is missing, what would never have come; and
 * what is only a consequence of a world that stopped is not taken for its cause. */
#include "tests/support/check_world.h"

#include <stdio.h>

#define COMPUTE 0u

#define NO_OP UINT64_MAX

/* On machines on which a host that waits for an event or for counts has to be given up. */
static void open_stuck(check_world *w, uint32_t num_ranks)
{
    check_world_open(w, NULL, num_ranks);
    for (uint32_t r = 0; r < num_ranks; r++)
        w->machines[r].stuck = true;
}

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

static dbo_a2a_handle post_op(check_world *w, uint32_t rank, uint32_t step, uint32_t layer,
                              uint32_t ubatch, dbo_op_kind kind)
{
    static const dbo_a2a_cost cost = {.fixed_ns = 1};
    const dbo_a2a_args args = {.id = dbo_op_id_make(step, rank, layer, ubatch, (uint32_t)kind, 0),
                               .direction =
                                   kind == DBO_KIND_DISPATCH ? DBO_A2A_DISPATCH : DBO_A2A_COMBINE,
                               .stream = COMPUTE,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost};
    dbo_a2a_handle handle;
    assert_int_equal(w->seams[rank].a2a->post(w->seams[rank].a2a_self, &args, &handle), DBO_OK);
    return handle;
}

/* The host waits until everything on compute is over. */
static void wait_for_event(check_world *w, uint32_t rank)
{
    dbo_seam *seam = &w->seams[rank];
    dbo_event event;
    assert_int_equal(seam->device->event_create(seam->device_self, &event), DBO_OK);
    assert_int_equal(seam->device->record(seam->device_self, event, COMPUTE), DBO_OK);
    assert_int_equal(seam->device->host_wait(seam->device_self, event), DBO_ABORTED);
}

/* What the only finding says, in full. */
static void expect_sentence(check_world *w, const dbo_error *error, const char *what)
{
    dbo_findings findings = {0};
    dbo_error err = {0};
    assert_int_equal(dbo_checker_finish(w->checker, DBO_DEADLOCK, error, &findings, &err), DBO_OK);
    dbo_checker_destroy(w->checker);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.items[0].what, what);
    dbo_findings_fini(&findings);
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

/* ---- who waits for what ---- */

/* Who waits alike is said at once, four by name; of a rank that does not wait nothing is. */
static void alike_ones_are_said_together(void **state)
{
    (void)state;
    static const char *const said[] = {
        "nothing moves; ranks 0, 2 wait for a barrier; rank 1 waits for an event on the device",
        "nothing moves; ranks 0, 2, 4, 5 wait for a barrier; ranks 1, 3 wait for an event on the "
        "device",
        "nothing moves; ranks 0, 2, 4, 5 and 1 more wait for a barrier; ranks 1, 3 wait for an "
        "event on the device",
    };
    static const uint32_t num_ranks[] = {3, 6, 7};
    for (size_t i = 0; i < 3; i++) {
        check_world w;
        open_stuck(&w, num_ranks[i]);
        for (uint32_t r = 0; r < num_ranks[i]; r++) {
            if (r == 1 || r == 3)
                wait_for_event(&w, r);
            else
                w.seams[r].group->barrier(w.seams[r].group_self);
        }
        expect_sentence(&w, &nothing_moves, said[i]);
    }
    check_world w;
    open_stuck(&w, 2); /* nobody says why, and nobody waits */
    expect_sentence(&w, NULL, "everything waits and nothing can move");
    open_stuck(&w, 2);
    w.seams[1].group->barrier(w.seams[1].group_self);
    expect_sentence(&w, &(dbo_error){.status = DBO_DEADLOCK},
                    "everything waits and nothing can move; rank 1 waits for a barrier");
}

/* Counts of a transfer; a device that stands at the first one that not everybody has posted. */
static void transfers_are_waited_for(void **state)
{
    (void)state;
    check_world w;
    open_stuck(&w, 2);
    for (uint32_t r = 0; r < 2; r++) {
        split(&w, r);
        post_op(&w, r, 0, 0, 0, DBO_KIND_DISPATCH);
    }
    dbo_a2a_handle handle = post_op(&w, 0, 0, 2, 0, DBO_KIND_COMBINE);
    post_op(&w, 1, 0, 2, 1, DBO_KIND_DISPATCH);
    post_op(&w, 1, 0, 1, 3, DBO_KIND_COMBINE);
    post_op(&w, 1, 0, 1, 5, DBO_KIND_COMBINE);
    w.seams[0].a2a->counts(w.seams[0].a2a_self, handle);
    wait_for_event(&w, 1);
    expect_sentence(&w, NULL,
                    "rank 1 posted combine of ubatch 3, rank 0 never did (step 0, layer 1); rank 0 "
                    "waits for the counts of combine of ubatch 0 (layer 2); rank 1 waits for the "
                    "device, which stands at combine of ubatch 3 (layer 1)");
}

/* Of two that are missing the earlier: by step, layer, and a dispatch before its combine. */
static void the_earliest_is_the_cause(void **state)
{
    (void)state;
    static const struct {
        uint32_t step, layer;
        dbo_op_kind kind;
    } ops[] = {{0, 5, DBO_KIND_DISPATCH},
               {0, 5, DBO_KIND_COMBINE},
               {0, 6, DBO_KIND_DISPATCH},
               {1, 0, DBO_KIND_COMBINE},
               {1, 1, DBO_KIND_DISPATCH}};
    for (uint32_t i = 0; i + 1 < sizeof ops / sizeof ops[0]; i++)
        for (uint32_t first = 0; first < 2; first++) {
            check_world w;
            check_world_open(&w, NULL, 2);
            for (uint32_t r = 0; r < 2; r++) {
                check_mark(&w, r, DBO_MARK_STEP_BEGIN, ops[i].step);
                split(&w, r);
            }
            post_op(&w, 0, ops[i + first].step, ops[i + first].layer, 0, ops[i + first].kind);
            post_op(&w, 1, ops[i + 1 - first].step, ops[i + 1 - first].layer, 1,
                    ops[i + 1 - first].kind);
            const dbo_op_id cause =
                dbo_op_id_make(ops[i].step, first, ops[i].layer, first, (uint32_t)ops[i].kind, 0);
            expect(&w, NULL, DBO_FINDING_DEADLOCK, 1 - first, cause,
                   ops[i].kind == DBO_KIND_DISPATCH ? "posted dispatch" : "posted combine", "");
        }
}

/* Rank 1 has ended step 0 and begun none: the transfer of step 0 never comes, that of 1 may. */
static void an_ended_step_is_left(void **state)
{
    (void)state;
    for (uint32_t step = 0; step < 2; step++) {
        check_world w;
        check_world_open(&w, NULL, 2);
        for (uint32_t r = 0; r < 2; r++)
            check_mark(&w, r, DBO_MARK_STEP_BEGIN, 0);
        check_mark(&w, 1, DBO_MARK_STEP_END, 0);
        post_op(&w, 0, step, 0, 1, DBO_KIND_DISPATCH);
        expect(&w, NULL, DBO_FINDING_DEADLOCK, 1,
               dbo_op_id_make(step, 0, 0, 1, DBO_KIND_DISPATCH, 0),
               "rank 0 posted dispatch of ubatch 1, rank 1 never did",
               step ? "a post of dispatch of ubatch 1 on rank 1"
                    : "a post of dispatch of ubatch 1 on rank 1, which has left the step");
    }
}

/* No wait was seen; but the ranks have not come to as many exchanges. */
static void exchanges_are_counted(void **state)
{
    (void)state;
    static const uint32_t exchanges[] = {2, 3, 1};
    check_world w;
    check_world_open(&w, NULL, 3);
    for (uint32_t r = 0; r < 3; r++) {
        check_mark(&w, r, DBO_MARK_STEP_BEGIN, 4);
        for (uint32_t i = 0; i < exchanges[r]; i++)
            check_exchange(&w, r, i, true);
    }
    expect(&w, NULL, DBO_FINDING_MISSED_EXCHANGE, 2, NO_OP,
           "rank 2 is 2 exchanges behind: it left step 4 without the one in which rank 1 waits",
           "an exchange of rank 2 in step 4");
}

/* A device that stands at the transfer of the first ubatch. */
static void the_first_ubatch_is_waited_for(void **state)
{
    (void)state;
    check_world w;
    open_stuck(&w, 2);
    split(&w, 0);
    post_op(&w, 1, 0, 4, 0, DBO_KIND_DISPATCH);
    wait_for_event(&w, 1);
    expect_sentence(
        &w, NULL,
        "rank 1 posted dispatch of ubatch 0, rank 0 never did (step 0, layer 4); rank 1 "
        "waits for the device, which stands at dispatch of ubatch 0 (layer 4)");
}

/* Rank 0 posts a transfer of step 1 that rank 1 has not posted; what is known of that rank. */
static void why_a_transfer_never_comes(void **state)
{
    (void)state;
    static const struct {
        uint32_t step, ubatch;
        bool splits, ends, waits;
        const char *why;
    } cases[] = {
        {1, 1, false, false, false, ", which does not split its batch"},
        {1, 0, false, false, false, ""},
        {1, 1, false, false, true, ""}, /* it may yet decide to */
        {0, 1, true, true, false, ""},  /* another step's ubatches will do it */
        {1, 1, true, false, false, ""},
        {1, 1, true, true, false, ", where that ubatch has ended"},
        {1, 0, true, true, false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_world w;
        char missing[128];
        check_world_open(&w, NULL, 2);
        check_mark(&w, 0, DBO_MARK_STEP_BEGIN, 1);
        check_mark(&w, 1, DBO_MARK_STEP_BEGIN, cases[i].step);
        if (cases[i].splits)
            split(&w, 1);
        if (cases[i].ends) {
            turn(&w, 1, DBO_TURN_EXIT, 1, 0);
            turn(&w, 1, DBO_TURN_SIGNAL, 1, 0);
            turn(&w, 1, DBO_TURN_RESUME, 0, 0);
        }
        post_op(&w, 0, 1, 0, cases[i].ubatch, DBO_KIND_DISPATCH);
        check_exchange(&w, 0, 0, true);
        check_exchange(&w, 1, 0, !cases[i].waits);
        dbo_findings findings;
        check_world_close(&w, DBO_DEADLOCK, &findings);
        assert_int_equal(findings.count, 1);
        snprintf(missing, sizeof missing, "a post of dispatch of ubatch %u on rank 1%s",
                 cases[i].ubatch, cases[i].why);
        assert_string_equal(findings.items[0].missing_edge, missing);
        dbo_findings_fini(&findings);
    }
}

/* Rank 2 waits in the exchange of step 1, past which rank 1 has gone: it posts. That ranks 0 and 3
 * are behind, and a transfer of step 0 is missing on rank 0, is only a consequence. */
static void who_posts_has_left_an_exchange_out(void **state)
{
    (void)state;
    check_world w;
    check_world_open(&w, NULL, 4);
    for (uint32_t r = 0; r < 4; r++) {
        check_mark(&w, r, DBO_MARK_STEP_BEGIN, 0);
        check_exchange(&w, r, 0, true);
        if (r > 0)
            post_op(&w, r, 0, 0, 0, DBO_KIND_DISPATCH);
    }
    for (uint32_t r = 1; r < 3; r++) {
        check_mark(&w, r, DBO_MARK_STEP_END, 0);
        check_mark(&w, r, DBO_MARK_STEP_BEGIN, 1);
    }
    post_op(&w, 1, 1, 0, 1, DBO_KIND_DISPATCH);
    check_exchange(&w, 2, 1, false);
    expect(&w, NULL, DBO_FINDING_MISSED_EXCHANGE, 1, NO_OP,
           "rank 1 is 1 exchange behind: it left step 1 without the one in which rank 2 waits",
           "an exchange of rank 1 in step 1");
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
        cmocka_unit_test(alike_ones_are_said_together),
        cmocka_unit_test(transfers_are_waited_for),
        cmocka_unit_test(the_first_ubatch_is_waited_for),
        cmocka_unit_test(why_a_transfer_never_comes),
        cmocka_unit_test(who_posts_has_left_an_exchange_out),
        cmocka_unit_test(the_earliest_is_the_cause),
        cmocka_unit_test(an_ended_step_is_left),
        cmocka_unit_test(exchanges_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
