/* test_step_parts.c: rows of a result add up to the step, for every workload that comes with dbo,
 * split and not. */
#include "tests/support/command.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static double us_of(const json_t *side, const char *key)
{
    const json_t *value = json_object_get(side, key);
    if (!json_is_number(value))
        fail_msg("no %s", key);
    return json_number_value(value);
}

/* In whole ns, so exactly. */
static long long ns_of(double us)
{
    return llround(us * 1000);
}

static void expect_sum(const char *name, const json_t *side)
{
    long long sum_ns = 0;
    const char *key;
    json_t *value;
    json_t *parts = json_object_get(side, "step_parts_us");
    assert_int_equal(json_object_size(parts), 7);
    json_object_foreach(parts, key, value)
    {
        if (json_number_value(value) < 0)
            fail_msg("%s: %s is %g", name, key, json_number_value(value));
        sum_ns += ns_of(json_number_value(value));
    }
    if (sum_ns != ns_of(us_of(side, "step_us")))
        fail_msg("%s: parts are %lld ns, the step is %g us", name, sum_ns, us_of(side, "step_us"));
    assert_int_equal(ns_of(us_of(parts, "compute")), ns_of(us_of(side, "compute_us")));
    assert_int_equal(ns_of(us_of(parts, "communication")), ns_of(us_of(side, "exposed_comm_us")));
    assert_true(us_of(side, "efficiency") <= 1);
    /* The busiest resource is no less than what kernels run at any time. */
    double kernels = us_of(parts, "kernels") + us_of(parts, "compute");
    assert_true(us_of(side, "sum_bound_us") > kernels - 0.0005);
}

static void expect_run(const char *line, const char *name)
{
    json_error_t error;
    char path[1024];
    snprintf(path, sizeof path, "%s/r.json", folder);
    assert_int_equal(run(line), 0);
    json_t *result = json_load_file(path, 0, &error);
    if (!result)
        fail_msg("%s: %s", name, error.text);
    expect_sum(name, result);
    expect_sum(name, json_object_get(result, "without_dbo"));
    json_decref(result);
}

static void rows_add_up_to_the_step(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "", "--set all2all_backend=deepep_high_throughput --set layers=7",
        "--set enable_expert_parallel=false --set check_memory=false --set layers=9",
        ("--set nodes=2 --set data_parallel_size=8 --set tensor_parallel_size=2 --set layers=9 "
         "--set check_memory=false --set gpus_per_node=8")};
    const char *scripts = DBO_SOURCE_DIR "/scripts/workloads";
    DIR *dir = opendir(scripts);
    int found = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (!strstr(entry->d_name, ".lua"))
            continue;
        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
            char line[1024];
            snprintf(line, sizeof line, "dbo run %s/%s %s --json - > r.json", scripts,
                     entry->d_name, sets[i]);
            expect_run(line, entry->d_name);
        }
        found++;
    }
    closedir(dir);
    assert_true(found >= 4);
}

/* A late rank's waiting is a part of the step, and one that does not wait has no row. */
static void what_is_nothing_has_no_row(void **state)
{
    (void)state;
    assert_int_equal(
        run("dbo run " DBO_SOURCE_DIR "/scripts/faults/late-rank.lua --fault late-rank"), 0);
    assert_non_null(strstr(printed, "  waiting for peers, exposed"));
    assert_int_equal(
        run("dbo run " DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua --set layers=6"),
        0);
    assert_non_null(strstr(printed, "  sends and receives"));
    assert_null(strstr(printed, "waiting for peers"));
    assert_null(strstr(printed, "collectives"));
    assert_null(strstr(printed, " 0.0 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_add_up_to_the_step),
        cmocka_unit_test(what_is_nothing_has_no_row),
    };
    return cmocka_run_group_tests_name("step_parts", tests, make_folder, remove_folder);
}
