/* test_transfers.c: transfers as a run shows them. The scripts of tests/cases check for themselves
 * and end with error("fine"); those that return an experiment are for the commands. */
#include "tests/support/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect_fine(const char *name)
{
    char line[1024];
    snprintf(line, sizeof line, "dbo run %s/tests/cases/%s.lua", DBO_SOURCE_DIR, name);
    run(line);
    if (!strstr(complained, "dbo: fine"))
        fail_msg("%s: %s", name, complained);
}

/* The run that is checked and the program that it exports are found alike. */
static void a_hook_runs_where_the_post_was(void **state)
{
    (void)state;
    char line[1024];
    const char *dir = DBO_SOURCE_DIR "/tests/cases";
    snprintf(line, sizeof line, "dbo check %s/hook-stream.lua", dir);
    assert_int_equal(run(line), 0);
    snprintf(line, sizeof line,
             "dbo show program %s/hook-stream.lua --json > p.json && dbo check --program p.json",
             dir);
    assert_int_equal(run(line), 0);
}

static void a_head_is_of_the_batch(void **state)
{
    (void)state;
    expect_fine("head");
}

static void costs_of_splitting_add_up(void **state)
{
    (void)state;
    expect_fine("split-cost");
}

static void sms_make_math_fast(void **state)
{
    (void)state;
    expect_fine("sms");
}

static void nvlink_joins_what_the_machine_says(void **state)
{
    (void)state;
    expect_fine("domain");
}

static void collectives_are_those_that_are_made(void **state)
{
    (void)state;
    expect_fine("tensor-parallel");
}

static void low_latency_has_a_capacity(void **state)
{
    (void)state;
    expect_fine("ll-capacity");
}

static void a_step_ends_with_its_work(void **state)
{
    (void)state;
    expect_fine("step-end");
}

static void times_are_those_published(void **state)
{
    (void)state;
    expect_fine("ll-published");
    expect_fine("ht-published");
}

static void transfers_of_a_rank_share_its_ports(void **state)
{
    (void)state;
    expect_fine("two-links");
}

static void uneven_ranks_receive_alike(void **state)
{
    (void)state;
    expect_fine("uneven");
}

static void tokens_are_of_all_ranks(void **state)
{
    (void)state;
    expect_fine("tokens");
}

static void busy_experts_make_their_ranks_late(void **state)
{
    (void)state;
    expect_fine("routing");
    /* told beside a step that is not split, too */
    assert_int_equal(run("dbo run " DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua "
                         "--set enable_dbo=false --set layers=5 --set routing=random"),
                     0);
    assert_non_null(strstr(printed, "rows of the busiest GPU / mean        1.0"));
    assert_null(strstr(printed, "speed-up"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_of_the_batch),
        cmocka_unit_test(busy_experts_make_their_ranks_late),
        cmocka_unit_test(tokens_are_of_all_ranks),
        cmocka_unit_test(costs_of_splitting_add_up),
        cmocka_unit_test(nvlink_joins_what_the_machine_says),
        cmocka_unit_test(collectives_are_those_that_are_made),
        cmocka_unit_test(low_latency_has_a_capacity),
        cmocka_unit_test(sms_make_math_fast),
        cmocka_unit_test(a_hook_runs_where_the_post_was),
        cmocka_unit_test(a_step_ends_with_its_work),
        cmocka_unit_test(times_are_those_published),
        cmocka_unit_test(transfers_of_a_rank_share_its_ports),
        cmocka_unit_test(uneven_ranks_receive_alike),
    };
    return cmocka_run_group_tests_name("transfers", tests, make_folder, remove_folder);
}
