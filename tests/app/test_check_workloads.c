/* test_check_workloads.c: the checker finds nothing wrong where nothing is: not in the scripts that
 * come with dbo, nor in what they run, nor in what the documents show, whatever is set. (That what
 * it finds about their speed is true: test_perf_truth.c.)
 */
#include "app/lua/lua_load.h"
#include "lab/check/check.h"
#include "tests/support/folder.h"

#include <glob.h>

#define MAX_SETS 5

/* ---- one run ---- */

typedef struct verdict {
    uint32_t runs, split;
    char wrong[640]; /* the first thing that should not be; "": none. Scripts run on a thread of
                      * their own, where a test cannot fail. */
} verdict;

static dbo_status check(void *self, const dbo_experiment *experiment, uint64_t fault_reached,
                        dbo_error *err)
{
    (void)fault_reached;
    verdict *v = self;
    const dbo_check_job job = {.experiment = experiment};
    dbo_check_report report;
    DBO_TRY(dbo_check_experiment(&job, &report, err));
    v->runs++;
    if (report.status != DBO_OK && !v->wrong[0])
        snprintf(v->wrong, sizeof v->wrong, "ends with: %s", report.error.message);
    if (report.status == DBO_OK)
        v->split += report.run.results[report.run.class_of[report.shown]].cut.num_ubatches > 1;
    for (uint32_t i = 0; i < report.findings.count; i++) {
        const dbo_finding *f = &report.findings.items[i];
        if (!dbo_finding_is_speed(f->kind) && !v->wrong[0])
            snprintf(v->wrong, sizeof v->wrong, "%s: %s", dbo_finding_kind_name(f->kind), f->what);
    }
    dbo_check_report_fini(&report);
    return DBO_OK;
}

/* Checks what the script returns and what it runs. */
static void check_script(const char *path, const char *const *sets, verdict *v)
{
    dbo_experiment experiment;
    dbo_error err = {0};
    dbo_load_options options = {
        .sets = sets, .may_return_nothing = true, .ran = check, .ran_self = v};
    options.limits.print_to = fopen("/dev/null", "w");
    assert_non_null(options.limits.print_to);
    while (options.num_sets < MAX_SETS && sets[options.num_sets])
        options.num_sets++;
    dbo_status status = dbo_experiment_load(&experiment, path, &options, &err);
    if (status == DBO_OK && experiment.num_layers > 0) {
        status = check(v, &experiment, 0, &err);
        dbo_experiment_fini(&experiment);
    }
    fclose(options.limits.print_to);
    if (status != DBO_OK)
        fail_msg("%s: %s", path, err.message);
    if (v->wrong[0])
        fail_msg("%s %s %s %s: %s", path, options.num_sets > 0 ? sets[0] : "",
                 options.num_sets > 1 ? sets[1] : "", options.num_sets > 2 ? sets[2] : "",
                 v->wrong);
}

/* All scripts of a folder, each with each list of sets. */
static verdict check_folder(const char *folder_name, const char *const sets[][MAX_SETS],
                            size_t num_sets)
{
    char pattern[512];
    glob_t found;
    verdict v = {0};
    snprintf(pattern, sizeof pattern, "%s/scripts/%s/*.lua", DBO_SOURCE_DIR, folder_name);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (size_t s = 0; s < num_sets; s++)
            check_script(found.gl_pathv[i], sets[s], &v);
    globfree(&found);
    return v;
}

/* ---- the scripts ---- */

#define HT    "all2all_backend=deepep_high_throughput"
#define LL    "all2all_backend=deepep_low_latency"
#define EAGER "cudagraph_mode=NONE"

static void workloads_are_right(void **state)
{
    (void)state;
    static const char *const sets[][MAX_SETS] = {
        {0},
        {LL, EAGER},
        {LL, EAGER, "enable_dbo=false", "ubatch_size=3"},
        {LL, "cudagraph_mode=FULL", "enable_dbo=false", "ubatch_size=3"},
        {LL, EAGER, "rules=v1"},
        {LL, EAGER, "executor=thread"},
        {LL, "cudagraph_mode=FULL", "batch.num_tokens=97"},
        {HT},
        {HT, "enable_dbo=false", "ubatch_size=3"},
        {HT, "enable_dbo=false", "ubatch_size=4", "rules=v1"},
        {HT, "executor=thread"},
        {HT, "schedule=seed-prose-ht"},
        {HT, "hardware=MI300X", "check_memory=false"},
        {HT, "batch.num_tokens=97"},
        {HT, "nodes=1", "gpus_per_node=2", "data_parallel_size=2", "check_memory=false"},
        {LL, "nodes=1", "gpus_per_node=2", "data_parallel_size=2", "check_memory=false"},
    };
    verdict v = check_folder("workloads", sets, sizeof sets / sizeof sets[0]);
    assert_true(v.runs >= 64 && v.split >= 50);
}

static void what_ifs_are_right(void **state)
{
    (void)state;
    static const char *const sets[][MAX_SETS] = {{0}, {"rules=v1"}};
    verdict v = check_folder("whatif", sets, sizeof sets / sizeof sets[0]);
    assert_true(v.runs >= 2 * 30 && v.split >= 2 * 25);
}

/* ---- the documents ---- */

/* What a block of Lua is as a script: itself, if it is one; a schedule, as one that runs. */
static bool write_script(const char *block, size_t length)
{
    char script[8192];
    bool schedule = strncmp(block, "dbo.schedule", 12) == 0;
    bool whole = memmem(block, length, "return dbo.experiment", 21) != NULL;
    if (!schedule && !whole)
        return false;
    snprintf(script, sizeof script, "%s%.*s%s",
             schedule ? "local dbo = require \"dbo\"\nlocal s = " : "", (int)length, block,
             schedule ? "\nreturn dbo.experiment { schedule = s, gpus_per_node = 2, layers = 4, "
                        "enable_expert_parallel = true, enable_dbo = true, "
                        "costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 }, "
                        "batch = dbo.decode { num_tokens = 64 } }"
                      : "");
    put_file("block.lua", script);
    return true;
}

static void documents_are_right(void **state)
{
    (void)state;
    static const char *const no_sets[MAX_SETS] = {0};
    char pattern[512], path[128];
    glob_t found;
    verdict v = {0};
    static char text[1u << 20];
    snprintf(pattern, sizeof pattern, "%s/docs/*.md", DBO_SOURCE_DIR);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    snprintf(pattern, sizeof pattern, "%s/README.md", DBO_SOURCE_DIR);
    assert_int_equal(glob(pattern, GLOB_APPEND, NULL, &found), 0);
    snprintf(path, sizeof path, "%s/block.lua", folder);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        for (const char *at = text; (at = strstr(at, "\n```lua\n"));) {
            const char *block = at + 8, *end = strstr(block, "\n```");
            assert_non_null(end);
            if (write_script(block, (size_t)(end - block)))
                check_script(path, no_sets, &v);
            at = end;
        }
    }
    globfree(&found);
    assert_true(v.runs >= 2 && v.split == v.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workloads_are_right),
        cmocka_unit_test(what_ifs_are_right),
        cmocka_unit_test(documents_are_right),
    };
    return cmocka_run_group_tests_name("check_workloads", tests, make_folder, remove_folder);
}
