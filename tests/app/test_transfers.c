/* test_transfers.c: transfers as a run shows them. The scripts of tests/cases check for themselves
 * and end with error("fine"); those that return an experiment are for the commands. */
#include "tests/support/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A script of tests/cases, by its name. */
static void is_fine(void **name)
{
    char line[1024];
    snprintf(line, sizeof line, "dbo run %s/tests/cases/%s.lua", DBO_SOURCE_DIR,
             (const char *)*name);
    run(line);
    if (!strstr(complained, "dbo: fine"))
        fail_msg("%s: %s", (const char *)*name, complained);
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

/* What busy experts do to a step that is not split is told, too; a speed-up is not. */
static void the_busiest_gpu_is_told(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua "
                         "--set enable_dbo=false --set layers=5 --set routing=random"),
                     0);
    assert_non_null(strstr(printed, "rows of the busiest GPU / mean        1.0"));
    assert_null(strstr(printed, "speed-up"));
}

#define CASE(name)                                  \
    {                                               \
        (name), is_fine, NULL, NULL, (char *)(name) \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE("domain"),
        CASE("head"),
        CASE("ht-published"),
        CASE("ll-capacity"),
        CASE("ll-published"),
        CASE("routing"),
        CASE("sms"),
        CASE("split-cost"),
        CASE("step-end"),
        CASE("tensor-parallel"),
        CASE("tokens"),
        CASE("two-links"),
        CASE("uneven"),
        cmocka_unit_test(a_hook_runs_where_the_post_was),
        cmocka_unit_test(the_busiest_gpu_is_told),
    };
    return cmocka_run_group_tests_name("transfers", tests, make_folder, remove_folder);
}
