/* test_cli_bench.c: `dbo bench`: the keys of its JSON, exact makespans, mistakes, Ctrl-C. How fast
 * anything is is not judged here. */
#include "lab/files/json.h"
#include "tests/support/command.h"
#include "tests/support/not_run.h"

#include <glob.h>
#include <jansson.h>

static void write_model(const char *text)
{
    put_file("m.json", text);
}

static dbo_json *read_json(const char *name)
{
    char path[96];
    dbo_error err = {0};
    dbo_json *doc = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (dbo_json_read_file(&doc, path, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return doc;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value) || json_number_value(value) < 0)
        fail_msg("%s is no number", key);
    return json_number_value(value);
}

/* A number, or null where there is no floor. */
static void check_ratio(const json_t *object, bool has_floor)
{
    const json_t *ratio = json_object_get(object, "floor_ratio");
    assert_non_null(ratio);
    assert_int_equal(json_is_null(ratio), !has_floor);
    if (has_floor)
        assert_true(json_number_value(ratio) > 0);
}

static void check_row(const json_t *row, uint32_t ranks, uint32_t ops_per_rank, double makespan_us,
                      bool has_floor)
{
    assert_int_equal(json_object_size(row), 7);
    assert_int_equal((uint32_t)number(row, "ranks"), ranks);
    assert_int_equal((uint32_t)number(row, "ops"), ranks * ops_per_rank);
    assert_int_equal((uint32_t)number(row, "spans"), ranks * ops_per_rank);
    assert_true(number(row, "makespan_us") == makespan_us);
    assert_true(number(row, "wall_s") > 0);
    double error = number(row, "ops_per_s") * number(row, "wall_s") / number(row, "ops") - 1;
    assert_true(error < 1e-9 && error > -1e-9);
    check_ratio(row, has_floor);
}

static bool floor_is_built(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", DBO_PROGRAM);
    char *slash = strrchr(path, '/');
    assert_non_null(slash);
    snprintf(slash, sizeof path - (size_t)(slash - path), "/bench_des_floor");
    return access(path, X_OK) == 0;
}

/* ---- figures ---- */

static void the_standard_model_is_exact(void **state)
{
    (void)state;
    static const double makespan_us[] = {34128, 34250, 34250};
    static const uint32_t ranks[] = {8, 64, 256};
    bool has_floor = floor_is_built();
    if (run("dbo bench sim --runs 2 --json f.json") != 0)
        fail_msg("%s", complained);
    assert_non_null(strstr(printed, "34128.000"));
    assert_int_equal(strstr(printed, "There is no floor") == NULL, has_floor);
    assert_string_equal(complained, "");
    dbo_json *doc = read_json("f.json");
    const json_t *sim, *root = dbo_json_tree(doc);
    check_ratio(root, has_floor);
    sim = json_object_get(root, "sim");
    assert_int_equal(json_object_size(root), 2);
    assert_int_equal(json_array_size(sim), 3);
    for (size_t i = 0; i < 3; i++)
        check_row(json_array_get(sim, i), ranks[i], 976, makespan_us[i], has_floor);
    dbo_json_destroy(doc);
}

/* Without a floor beside it, the command says so and goes on. */
static void a_missing_floor_is_null(void **state)
{
    (void)state;
    char line[4500];
    snprintf(line, sizeof line, "cp '%s' alone && ./alone bench sim --ranks 4 --runs 1 --json f",
             DBO_PROGRAM);
    assert_int_equal(run(line), 0);
    assert_non_null(strstr(printed, "There is no floor to compare with"));
    dbo_json *doc = read_json("f");
    const json_t *sim;
    check_ratio(dbo_json_tree(doc), false);
    sim = json_object_get(dbo_json_tree(doc), "sim");
    check_ratio(json_array_get(sim, 0), false);
    dbo_json_destroy(doc);
    assert_int_equal(run("rm alone f"), 0);
}

/* A floor that says `text`; dbo stands beside it. */
static int run_beside_floor(const char *text)
{
    char line[4800], script[200];
    snprintf(script, sizeof script, "#!/bin/sh\n%s\n", text);
    put_file("bench_des_floor", script);
    snprintf(line, sizeof line,
             "chmod +x bench_des_floor && cp '%s' beside && ./beside bench sim --ranks 5 --runs 3 "
             "--json f; status=$?; rm -f beside bench_des_floor; exit $status",
             DBO_PROGRAM);
    return run(line);
}

/* Speeds are compared with the floor's median, its results with ours; and what it does not say is
 * no result. */
static void a_floor_is_believed_and_compared(void **state)
{
    (void)state;
    assert_int_equal(run_beside_floor("test \"$*\" = 5 || exit 1\n" /* ranks */
                                      "echo x >>n; set -- 0 7000 1000 3000; shift $(wc -l <n)\n"
                                      "echo ranks=5 makespan_us=34006.000 ops_per_s=$1"),
                     0);
    assert_null(strstr(printed, "There is no floor"));
    dbo_json *doc = read_json("f");
    const json_t *row = json_array_get(json_object_get(dbo_json_tree(doc), "sim"), 0);
    double own = json_number_value(json_object_get(row, "ops_per_s"));
    double ratio = json_number_value(json_object_get(row, "floor_ratio"));
    assert_true(own > 0 && ratio > own / 3000 * 0.999 && ratio < own / 3000 * 1.001);
    dbo_json_destroy(doc);
    assert_int_equal(run_beside_floor("echo makespan_us=34007.5 ops_per_s=9"), 1);
    assert_non_null(strstr(complained, "5 ranks take 34006.000 us, by the floor's event loop "
                                       "34007.500 us"));
    assert_int_equal(run_beside_floor("echo makespan_us=34006"), 1);
    assert_non_null(strstr(complained, "bench_des_floor printed no result"));
    assert_int_equal(run_beside_floor("echo makespan_us= ops_per_s=9"), 1);
    assert_non_null(strstr(complained, "bench_des_floor printed no result"));
    assert_int_equal(run("rm -f n f"), 0);
}

/* One layer of transfers and c1, and a dependency that lets c1 of B wait for x0 of A. By hand: A c1
 * 0 to 5, x0 5 to 15.5; B c1 15.5 to 20.5, x0 20.5 to 31; then A x1 to 32 and B x1 to 33. */
static void a_model_file_is_followed(void **state)
{
    (void)state;
    write_model("{\"ranks\": [3], \"layers\": 1, \"imbalance\": null, \"dur_us\": {\"c0\": 0, "
                "\"c1\": 5, \"c2\": 0, \"c3\": 0, \"c4\": 0, \"c5\": 0, \"x0\": 10.5, \"x1\": 1},"
                "\"extra_deps\": [{\"from\": \"x0\", \"to\": \"c1\", \"to_mb\": 1}]}");
    assert_int_equal(run("dbo bench sim --model m.json --runs 1 --json -"), 0);
    assert_int_equal(run("dbo bench sim --model - --runs 1 --json - <m.json >o; cat o"), 0);
    dbo_json *doc = read_json("o");
    const json_t *sim;
    sim = json_object_get(dbo_json_tree(doc), "sim");
    assert_int_equal(json_array_size(sim), 1);
    check_row(json_array_get(sim, 0), 3, 16, 33.0, floor_is_built());
    dbo_json_destroy(doc);
}

static void hand_offs_have_their_keys(void **state)
{
    (void)state;
    assert_int_equal(run("dbo bench handoff --json h.json"), 0);
    assert_non_null(strstr(printed, "fibers"));
    dbo_json *doc = read_json("h.json");
    assert_int_equal(json_object_size(dbo_json_tree(doc)), 2);
    assert_true(number(dbo_json_tree(doc), "handoff_ns") > 0);
    assert_true(number(dbo_json_tree(doc), "thread_handoff_ns") > 0);
    dbo_json_destroy(doc);
}

/* What is only slow is measured as it is; where something is wrong, nothing is. */
static void what_is_wrong_is_not_measured(void **state)
{
    (void)state;
    if (run("dbo faults | grep -q 'none can be switched on'") == 0)
        not_run("built without faults: a benchmark that goes wrong is not tested");
    expect_sentence("DBO_SET=fault=no-comm-wait dbo bench check --runs 1", 1,
                    "the checker found something in the benchmark: ");
    if (run("DBO_SET=fault=yield-after-dispatch dbo bench check --runs 1") != 0)
        fail_msg("%s", complained);
    assert_non_null(strstr(printed, "DeepSeek-V3 prefill, HT             8      no "));
}

/* Times are not judged; a run that the checker changes, or finds something in, is an error. */
static void the_checker_is_measured(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {8, 8, 256, 256};
    if (run("dbo bench check --runs 1 --json c.json") != 0)
        fail_msg("%s", complained);
    assert_non_null(strstr(printed, "DeepSeek-V3 prefill, HT"));
    dbo_json *doc = read_json("c.json");
    const json_t *rows;
    assert_int_equal(json_object_size(dbo_json_tree(doc)), 1);
    rows = json_object_get(dbo_json_tree(doc), "check");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_int_equal((uint32_t)number(row, "ranks"), ranks[i]);
        assert_int_equal(json_is_true(json_object_get(row, "folded")), ranks[i] > 8);
        assert_true(number(row, "spans") > 1000);
        assert_true(number(row, "checked_wall_s") > 0);
        /* one pair: its ratio is that of its times */
        double error =
            number(row, "ratio") * number(row, "wall_s") / number(row, "checked_wall_s") - 1;
        assert_true(error < 1e-9 && error > -1e-9);
    }
    dbo_json_destroy(doc);
}

static void all_are_measured_without_a_name(void **state)
{
    (void)state;
    assert_int_equal(run("dbo bench --ranks 2 --runs 1 --json a.json"), 0);
    dbo_json *doc = read_json("a.json");
    assert_int_equal(json_object_size(dbo_json_tree(doc)), 5);
    dbo_json_destroy(doc);
    assert_int_equal(run("dbo bench --help"), 0);
    assert_non_null(strstr(printed, "Examples:"));
}

/* ---- mistakes ---- */

static void mistakes_on_the_command_line_are_2(void **state)
{
    (void)state;
    expect_sentence("dbo bench hand-of", 2, "unknown benchmark 'hand-of'");
    expect_sentence("dbo bench hand-of", 2, "did you mean 'handoff'?");
    expect_sentence("dbo bench sim handoff", 2, "handoff is one benchmark too many");
    expect_sentence("dbo bench sim --ranks 8,,9", 2, "--ranks is 1 to 16 numbers from 1 to 16384");
    expect_sentence("dbo bench sim --ranks 99999", 2, "--ranks is");
    expect_sentence("dbo bench sim --runs 0", 2, "--runs is a number from 1 to 99, not '0'");
    expect_sentence("dbo bench sim --model missing.json", 2,
                    "cannot read missing.json: No such file or directory");
    expect_sentence("dbo bench sim --json missing/f", 2, "cannot write missing/f");
    expect_sentence("dbo bench handoff --runs 3", 2,
                    "--runs is of bench sim and bench check, not of handoff");
    expect_sentence("dbo bench check --ranks 8", 2, "--ranks is of bench sim, not of check");
    expect_sentence("dbo bench sim-once </dev/null", 2, "sim-once");
}

/* A floor that fails is no path of the command line. */
static void a_floor_that_fails_is_1(void **state)
{
    (void)state;
    static const char *const floors[][2] = {{"exit 3", "bench_des_floor ended with exit code 3"},
                                            {"kill -9 $$", "bench_des_floor was ended by signal 9"},
                                            {"exit 0", "bench_des_floor printed no result"}};
    for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "cp '%s' dbo && printf '#!/bin/sh\\n%s\\n' >bench_des_floor && "
                 "chmod +x bench_des_floor && ./dbo bench sim --ranks 2 --runs 1",
                 DBO_PROGRAM, floors[i][0]);
        expect_sentence(line, 1, floors[i][1]);
    }
}

static void mistakes_in_a_model_are_1(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"{\"layer\": 3}", "did you mean 'layers'?"},
        {"[]", "m.json: must be an object, not an array"},
        {"{\"layers\": 0}", "m.json: layers: must be from 1 to 1024, not 0"},
        {"{\"layers\": null}", "m.json: layers: must be an integer, not null"},
        {"{\"layers\": 2.5}", "m.json: layers: must be an integer, not a number"},
        {"{\"ranks\": []}", "ranks: has 0 entries"},
        {"{\"ranks\": [7, 0]}", "ranks[1]: must be from 1 to"},
        {"{\"dur_us\": {\"c6\": 1}}", "dur_us.c6: unknown key"},
        {"{\"dur_us\": {\"c0\": -1}}", "dur_us.c0: must be from 0 to 1e+09, not -1"},
        {"{\"imbalance\": {\"op\": \"c9\"}}", "imbalance.op: no op is called 'c9'"},
        {"{\"imbalance\": 3}", "imbalance: must be an object, not an integer"},
        {"{\"extra_deps\": [{\"from\": \"c0\"}]}", "extra_deps[0].to: this key is missing"},
        {"{\"extra_deps\": [{\"from\": \"c0\", \"to\": \"c1\", \"to_mb\": 2}]}",
         "extra_deps[0].to_mb: must be from 0 to 1"},
        {"{\"extra_deps\": [{\"from\": \"c0\", \"to\": \"c1\", \"layer_delta\": 4}]}",
         "extra_deps[0].layer_delta: must be from 0 to 3"},
        {"{\"extra_deps\": [7]}", "extra_deps[0]: must be an object, not an integer"},
        {"{\"extra_deps\": [{\"from\": \"c5\", \"to\": \"c0\"}]}", "contradict"},
        {"{", "m.json"},
        {"{\"dur_us\": {\"c0\": 1e9}}", "simulated time exceeds"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        write_model(mistakes[i][0]);
        expect_sentence("dbo bench sim --model m.json --ranks 2 --runs 1", 1, mistakes[i][1]);
    }
}

/* A part of never.json is there: the measurement begins. */
static bool writes_never(pid_t child)
{
    (void)child;
    char pattern[96];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/never*", folder);
    bool any = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return any;
}

static void interruption_is_130(void **state)
{
    (void)state;
    static char *const interrupted[] = {"dbo",    "bench", "sim",    "--ranks",    "4096",
                                        "--runs", "99",    "--json", "never.json", NULL};
    assert_int_equal(run_and_interrupt(interrupted, writes_never), 130);
    assert_string_equal(complained, "dbo: interrupted\n");
    assert_false(writes_never(0)); /* neither the file nor a part of it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_model_is_exact),
        cmocka_unit_test(a_missing_floor_is_null),
        cmocka_unit_test(a_floor_is_believed_and_compared),
        cmocka_unit_test(a_model_file_is_followed),
        cmocka_unit_test(hand_offs_have_their_keys),
        cmocka_unit_test(the_checker_is_measured),
        cmocka_unit_test(what_is_wrong_is_not_measured),
        cmocka_unit_test(all_are_measured_without_a_name),
        cmocka_unit_test(mistakes_on_the_command_line_are_2),
        cmocka_unit_test(a_floor_that_fails_is_1),
        cmocka_unit_test(mistakes_in_a_model_are_1),
        cmocka_unit_test(interruption_is_130),
    };
    return cmocka_run_group_tests_name("cli_bench", tests, make_folder, remove_folder);
}
