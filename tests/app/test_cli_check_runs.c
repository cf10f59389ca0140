/* test_cli_check_runs.c: `dbo check` of a script that runs experiments itself and returns none:
 * each of its runs is checked. */
#include "lab/files/json.h"
#include "tests/support/command.h"

#include <jansson.h>

#define WHAT_IF DBO_SOURCE_DIR "/scripts/whatif/late-previous-event.lua"
#define RIGHT   DBO_SOURCE_DIR "/scripts/whatif/shared-expert-earlier.lua"

static void each_run_is_checked(void **state)
{
    (void)state;
    assert_int_equal(run("dbo check '" WHAT_IF "'"), 3);
    assert_non_null(strstr(printed, "layer µs")); /* what the script prints, first */
    unwrap();
    assert_null(strstr(printed, "run 1 of"));
    assert_null(strstr(printed, "run 2 of"));
    assert_non_null(strstr(printed, "run 3 of"));
    assert_non_null(strstr(printed, "false_dependency, 1074.0 us lost"));
    assert_non_null(strstr(printed, "3 runs of the script: 1 finding, 1 of them about speed"));
    assert_int_equal(run("dbo check '" RIGHT "'"), 0);
    unwrap();
    assert_non_null(strstr(printed, "4 runs of the script: nothing found"));
}

/* The document alone goes to the standard output. */
static void the_document_has_all(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_json *document;
    assert_int_equal(run("dbo check '" WHAT_IF "' --json - >j.json"), 3);
    assert_int_equal(dbo_json_read_file(&document, path_of("j.json").text, NULL, &err), DBO_OK);
    const json_t *root = dbo_json_tree(document);
    assert_int_equal(json_array_size(json_object_get(root, "findings")), 1);
    assert_true(json_number_value(json_object_get(root, "orders_explored")) > 3);
    dbo_json_destroy(document);
    assert_int_equal(run("dbo check '" WHAT_IF "' --json f.json"), 3);
    assert_int_equal(run("cmp f.json j.json"), 0);
}

/* A fault is each run's. */
static void faults_are_of_all_runs(void **state)
{
    (void)state;
    assert_int_equal(run("dbo check '" WHAT_IF "' --fault no-comm-wait"), 3);
    unwrap();
    assert_non_null(strstr(printed, "run 1 of"));
    assert_non_null(strstr(printed, "race"));
    expect_sentence("dbo check '" RIGHT "' --fault graph-empty-ubatch", 2, "can reach its fault");
}

/* The script ends with it; it is explained all the same. */
static void a_run_that_stops_is_a_finding(void **state)
{
    (void)state;
    assert_int_equal(run("dbo check '" WHAT_IF "' --fault vote-skip"), 3);
    assert_non_null(strstr(complained, "late-previous-event.lua:"));
    unwrap();
    assert_non_null(strstr(printed, "run 1 of"));
    assert_non_null(strstr(printed, "deadlock"));
}

static void nothing_to_check_is_said(void **state)
{
    (void)state;
    put_file("n.lua", "print 'hello'\n");
    expect_sentence("dbo check n.lua", 1, "neither returns an experiment nor runs one");
    expect_sentence("dbo check '" WHAT_IF "' --trace t.json", 1,
                    "returns no experiment: there is nothing for --trace");
    expect_sentence("dbo check '" WHAT_IF "' --json missing/j", 2, "cannot write missing/j");
    put_file("e.lua", "error 'no'\n");
    expect_sentence("dbo check e.lua", 1, "e.lua:1: no");
    assert_int_equal(access(path_of("t.json").text, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_is_checked),      cmocka_unit_test(the_document_has_all),
        cmocka_unit_test(faults_are_of_all_runs),   cmocka_unit_test(a_run_that_stops_is_a_finding),
        cmocka_unit_test(nothing_to_check_is_said),
    };
    return cmocka_run_group_tests_name("cli_check_runs", tests, make_folder, remove_folder);
}
