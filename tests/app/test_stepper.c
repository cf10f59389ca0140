/* test_stepper.c: a small schedule, made by hand, gone through turn by turn: all that is shown. */
#include "app/show/stepper.h"
#include "tests/support/hand_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* What is shown to somebody who presses these keys; the caller's to free. */
static char *step_through(const dbo_outcome *outcome, const dbo_layers *layers, const char *keys)
{
    static const dbo_text_style style = {.ascii = true, .width = 60};
    char *shown = NULL;
    size_t size = 0;
    int ends[2];
    dbo_error err = {0};
    FILE *out = open_memstream(&shown, &size);
    assert_non_null(out);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], keys, strlen(keys)), strlen(keys));
    close(ends[1]);
    assert_int_equal(dbo_step_through(outcome, layers, style, ends[0], out, NULL, &err), DBO_OK);
    close(ends[0]);
    fclose(out);
    return shown;
}

/* Rank 1 takes turns in step 2: two ubatches, whose layer is the seventh. Other ranks, other steps
 * and the runner do so, too. */
static void make(dbo_outcome *o, uint32_t measured)
{
    *o = (dbo_outcome){.rank = 1};
    dbo_trace_init(&o->on.trace);
    o->on.measured = measured;
    hand h[2];
    for (uint32_t r = 0; r < 2; r++) {
        hand_init(&h[r], &o->on.trace, 1, 2);
        h[r].rank = r;
        h[r].step = 1;
        h[r].issue_ns = 1000;
        h[r].send_us = 12;
        h[r].recv_us = 15;
        h[r].us[DBO_KIND_LAYOUT] = 33;
        h[r].us[DBO_KIND_HEAD] = 17;
    }
    hand_attention(&h[1], 6, 1); /* a step before */
    hand_mark(&h[1], DBO_MARK_TURN, DBO_MARK_MAIN);
    h[1].step = h[0].step = 2;
    hand_attention(&h[0], 3, 0); /* another rank */
    hand_mark(&h[1], DBO_MARK_STEP_BEGIN, DBO_MARK_MAIN);
    hand_attention(&h[1], 6, 0);
    hand_send(&h[1], 6, 0, DBO_KIND_DISPATCH);
    hand_attention(&h[0], 3, 1);
    hand_attention(&h[1], 6, 1);
    hand_recv(&h[1], 6, 0, DBO_KIND_DISPATCH);
    hand_op(&h[1], 6, 1, DBO_KIND_LAYOUT, 1, 0);
    hand_mark(&h[1], DBO_MARK_TURN, 0);
    hand_mark(&h[1], DBO_MARK_TURN, 1);
    hand_op(&h[1], 6, 0, DBO_KIND_MLP, 0, 0);
    hand_op(&h[1], 7, 1, DBO_KIND_A0, 0, 0);
    hand_op(&h[1], 8, 1, DBO_KIND_A0, 0, 0);
    hand_mark(&h[1], DBO_MARK_TURN, DBO_MARK_MAIN);
    hand_op(&h[1], 9, 0, DBO_KIND_HEAD, 0, 0);
    h[1].step = 3; /* which replays a part of that */
    hand_span(&h[1], hand_id(&h[1], 6, 1, DBO_KIND_A1), DBO_SPAN_RUN, 0, 700000, 725000);
    hand_span(&h[1], hand_id(&h[1], 6, 1, DBO_KIND_COMBINE), DBO_SPAN_RUN, 0, 725000, 900000);
    h[1].step = 4;
    hand_attention(&h[1], 3, 1); /* and one behind */
}

static const char *const turns[] = {"turn 1 of 4: ubatch 0, layer 6\n"
                                    "  issues on compute  A0_0, A1_0, D_0 send\n"
                                    "  hands over to ubatch 1\n"
                                    "issued so far:\n"
                                    " 110.0 us; communication 50.0 us, exposed 50.0 us\n"
                                    " compute     ##A0_0###|######A1_0######|D_0#\n"
                                    " comm stream\n"
                                    " network                               #########D_0#########\n"
                                    " exposed                               ^^^^^^^^^^^^^^^^^^^^^\n"
                                    " host turns\n"
                                    " us          |0                   |50                  |100\n"
                                    " ## ubatch 0  ^^ exposed: bytes move, nothing computes\n"
                                    "\n",
                                    "turn 2 of 4: ubatch 1, layer 6\n"
                                    "  issues on compute  A0_1, A1_1, D_0 recv\n"
                                    "  issues on comm     lay_1\n"
                                    "  hands over to ubatch 0\n"
                                    "issued so far:\n"
                                    " 199.0 us; communication 50.0 us, exposed 12.0 us\n"
                                    " compute                 A0_0#|##A1_0##|##|A0_1|--A1_1--|D_0\n"
                                    " comm stream -lay_1--\n"
                                    " network                               ####D_0#####\n"
                                    " exposed                               ^^^\n"
                                    " host turns\n"
                                    " us          |0         |50         |100        |150\n"
                                    " ## ubatch 0  -- ubatch 1\n"
                                    " ^^ exposed: bytes move, nothing computes\n"
                                    "\n",
                                    "turn 3 of 4: ubatch 0, issues nothing\n"
                                    "  hands over to ubatch 1\n"
                                    "issued so far:\n"
                                    " 199.0 us; communication 50.0 us, exposed 12.0 us\n"
                                    " compute                 A0_0#|##A1_0##|##|A0_1|--A1_1--|D_0\n"
                                    " comm stream -lay_1--\n"
                                    " network                               ####D_0#####\n"
                                    " exposed                               ^^^\n"
                                    " host turns\n"
                                    " us          |0         |50         |100        |150\n"
                                    " ## ubatch 0  -- ubatch 1\n"
                                    " ^^ exposed: bytes move, nothing computes\n"
                                    "\n",
                                    "turn 4 of 4: ubatch 1, layers 6 to 8\n"
                                    "  issues on compute  MLP_0, A0_1, A0_1\n"
                                    "  was the last: all ubatches have ended\n"
                                    "issued so far:\n"
                                    " 299.0 us; communication 50.0 us, exposed 12.0 us\n"
                                    " compute             ###|#A1_0##|---|A1_1-|#|##MLP_0##|--|--\n"
                                    " comm stream lay_1\n"
                                    " network                       ##D_0##\n"
                                    " exposed                       ^\n"
                                    " host turns\n"
                                    " us          |0             |100            |200\n"
                                    " ## ubatch 0  -- ubatch 1\n"
                                    " ^^ exposed: bytes move, nothing computes\n"
                                    "\n"};

/* A graph is replayed in step 3; of its ops a part was captured in the second turn. */
static const char *const replayed[] = {
    "The step replays a graph and takes no turns; these are the\n"
    "turns of its capture.\n"
    "\n",
    "turn 1 of 4: ubatch 0, layer 6\n"
    "  issues on compute  A0_0, A1_0, D_0 send\n"
    "  hands over to ubatch 1\n"
    "\n",
    "turn 2 of 4: ubatch 1, layer 6\n"
    "  issues on compute  A0_1, A1_1, D_0 recv\n"
    "  issues on comm     lay_1\n"
    "  hands over to ubatch 0\n"
    "issued so far: 25.0 us; communication 0.0 us, exposed 0.0 us\n"
    " compute     ---------------------A1_1----------------------\n"
    " comm stream\n"
    " network\n"
    " exposed\n"
    " host turns\n"
    " us          |0                |10                |20\n"
    " -- ubatch 1\n"
    "\n"};

static void expect(const dbo_outcome *o, const dbo_layers *layers, const char *keys,
                   const char *const *wanted, uint32_t first, uint32_t last)
{
    char *shown = step_through(o, layers, keys);
    const char *at = shown;
    for (uint32_t i = first; i <= last; i++) {
        if (strncmp(at, wanted[i], strlen(wanted[i])) != 0)
            fail_msg("not\n%s, but\n%s", wanted[i], at);
        at += strlen(wanted[i]);
    }
    assert_string_equal(at, "");
    free(shown);
}

static void a_step_is_gone_through(void **state)
{
    (void)state;
    dbo_outcome o;
    make(&o, 2);
    expect(&o, &(dbo_layers){0}, "\n\n\n\n", turns, 0, 3);
    expect(&o, &(dbo_layers){0}, "\nq\n\n", turns, 0, 1);
    expect(&o, &(dbo_layers){0}, "Q\n", turns, 0, 0);
    expect(&o, &(dbo_layers){.given = true, .first = 8, .last = 9}, "\n", turns, 3, 3);
    expect(&o, &(dbo_layers){.given = true, .first = 5, .last = 6}, "\n", turns, 0, 1);
    char *nothing = step_through(&o, &(dbo_layers){.given = true, .first = 5, .last = 5}, "\n");
    assert_string_equal(nothing, "");
    free(nothing);
    dbo_trace_fini(&o.on.trace);
}

static void a_replay_is_drawn_where_it_runs(void **state)
{
    (void)state;
    dbo_outcome o;
    make(&o, 3);
    expect(&o, &(dbo_layers){.given = true, .last = 6}, "\n", replayed, 0, 2);
    dbo_trace_fini(&o.on.trace);
}

static void who_does_not_split_has_no_turns(void **state)
{
    (void)state;
    static const char *const said[] = {
        "The step is not split: there are no hand-offs to go through.\n"};
    dbo_outcome o;
    make(&o, 0);
    expect(&o, &(dbo_layers){0}, "\n", said, 0, 0);
    dbo_trace_fini(&o.on.trace);
}

/* Each turn issues 20 us; what is drawn are the last eight. */
static void the_last_turns_are_drawn(void **state)
{
    (void)state;
    static const int drawn_us[] = {20, 40, 60, 80, 100, 120, 140, 160, 160, 160};
    dbo_outcome o = {.rank = 0};
    hand h;
    dbo_trace_init(&o.on.trace);
    hand_init(&h, &o.on.trace, 10, 2);
    for (uint32_t i = 0; i < 10; i++) {
        hand_mark(&h, DBO_MARK_TURN, i % 2);
        hand_op(&h, i, i % 2, DBO_KIND_A0, 0, 0);
    }
    char *shown = step_through(&o, &(dbo_layers){0}, "\n\n\n\n\n\n\n\n\n\n");
    assert_non_null(strstr(shown, "turn 1 of 10: ubatch 0, layer 0\n"
                                  "  issues on compute  A0_0\n"
                                  "  hands over to ubatch 1\n"));
    const char *at = shown;
    for (uint32_t i = 0; i < 10; i++) {
        at = strstr(at, "issued so far:");
        assert_non_null(at);
        at += strlen("issued so far:");
        assert_int_equal(strtol(at, NULL, 10), drawn_us[i]);
    }
    free(shown);
    dbo_trace_fini(&o.on.trace);
}

/* A trace may begin and end with a turn, of any step up to the measured one. */
static void one_turn_is_the_last(void **state)
{
    (void)state;
    static const char *const said[] = {"turn 1 of 1: ubatch 0, issues nothing\n"
                                       "  was the last: all ubatches have ended\n\n"};
    dbo_outcome o = {.rank = 0};
    hand h;
    dbo_trace_init(&o.on.trace);
    hand_init(&h, &o.on.trace, 1, 2);
    hand_mark(&h, DBO_MARK_TURN, 0);
    expect(&o, &(dbo_layers){0}, "\n", said, 0, 0);
    dbo_trace_fini(&o.on.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_gone_through),
        cmocka_unit_test(a_replay_is_drawn_where_it_runs),
        cmocka_unit_test(who_does_not_split_has_no_turns),
        cmocka_unit_test(the_last_turns_are_drawn),
        cmocka_unit_test(one_turn_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
