/* test_check_report.c: which runs a check makes of an experiment, and what it says beside findings.
 */
#include "app/lua/lua_load.h"
#include "lab/check/check.h"
#include "tests/support/folder.h"

#define MAX_SETS 5

/* Two ranks; the layer's figures are given, so that steps can be worked out. */
static const char script[] =
    "local dbo = require 'dbo'\n"
    "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, layers = 3,\n"
    "  enable_dbo = true, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n"
    "  batch = dbo.decode { num_tokens = { 64, 97 } } }\n";

static void check(const char *const *sets, dbo_experiment *e, dbo_check_report *report)
{
    dbo_error err = {0};
    dbo_load_options options = {.sets = sets};
    while (options.num_sets < MAX_SETS && sets[options.num_sets])
        options.num_sets++;
    put_file("t.lua", script);
    if (dbo_experiment_load(e, path_of("t.lua").text, &options, &err) != DBO_OK)
        fail_msg("%s", err.message);
    const dbo_check_job job = {.experiment = e};
    if (dbo_check_experiment(&job, report, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(report->status, DBO_OK);
    assert_true(report->ran);
}

/* As it was given; with each of the first four ranks late; and where requests differ, in two other
 * orders; then threads' hand-offs in any. */
static void an_experiment_is_run_in_several_orders(void **state)
{
    (void)state;
    static const struct {
        const char *sets[MAX_SETS];
        uint32_t orders, turns;
        uint64_t rows;
        const char *notes;
    } cases[] = {
        {{0}, 3, 0, 322, ""},
        {{"batch.jitter_us=300"},
         3,
         0,
         322,
         "waiting for rank 0: rank 1 waits 40.4 us inside transfers, during which no byte moves, "
         "20.4 us of them with nothing to compute; none of it is communication\n"},
        {{"gpus_per_node=1", "batch.num_tokens=64"}, 1, 0, 128, ""},
        {{"gpus_per_node=4", "batch.num_tokens=64"}, 5, 0, 512, ""},
        {{"gpus_per_node=6", "batch.num_tokens=64"}, 5, 0, 768, ""},
        {{"executor=thread"}, 4, 259, 322, ""},
        {{"executor=thread", "enable_dbo=false"}, 3, 0, 322, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dbo_experiment e;
        dbo_check_report report;
        check(cases[i].sets, &e, &report);
        assert_int_equal(report.orders, cases[i].orders);
        assert_int_equal(report.turns, cases[i].turns);
        assert_int_equal(report.rows, cases[i].rows);
        assert_int_equal(report.findings.count, 0);
        assert_string_equal(dbo_strbuf_text(&report.notes), cases[i].notes);
        assert_string_equal(report.no_rows, "");
        assert_string_equal(report.no_turns, "");
        dbo_check_report_fini(&report);
        dbo_experiment_fini(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_experiment_is_run_in_several_orders),
    };
    return cmocka_run_group_tests_name("check_report", tests, make_folder, remove_folder);
}
