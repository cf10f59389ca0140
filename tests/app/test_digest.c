/* test_digest.c: traces are the same bytes everywhere and from day to day.
 *
 * golden/digests.txt has a line a run: a digest of both its traces (without and with DBO), for the
 * shipped workloads and for experiments out of seeds. Another machine, compiler or option that
 * rounds a time differently shows itself here; so does a change of the engine that moves one. After
 * such a change, when it is meant: `test_digest write`, and say in the commit why times moved.
 *
 * Threads instead of fibers: the same digests, and the what-if scripts print the same bytes.
 */
#include "app/lua/lua_load.h"
#include "lab/world/outcome.h"
#include "tests/support/random_experiment.h"
#include "tests/support/scripts.h"
#include "tests/support/trace_digest.h"

#include <inttypes.h>
#include <sys/wait.h>

#define GOLDEN    DBO_SOURCE_DIR "/tests/golden/digests.txt"
#define NUM_SEEDS 24u
#define MAX_LINES 128u

static glob_t scripts; /* the workloads */
static size_t num_lines;

typedef struct digest_line {
    char name[64];
    uint64_t digest;
} digest_line;

static uint64_t digest_of(dbo_experiment *e, dbo_context_kind executor)
{
    const dbo_simulate_options options = {0};
    dbo_outcome o;
    dbo_error err = {0};
    e->config.executor = executor;
    if (dbo_simulate(e, &options, &o, &err) != DBO_OK)
        fail_msg("%s: %s", e->name, err.message);
    uint64_t digest = digest_trace(digest_trace(DIGEST_START, &o.off.trace), &o.on.trace);
    dbo_outcome_fini(&o);
    dbo_experiment_fini(e);
    return digest;
}

static void compute(size_t number, dbo_context_kind executor, digest_line *line)
{
    dbo_experiment e;
    dbo_error err = {0};
    if (number < scripts.gl_pathc) {
        snprintf(line->name, sizeof line->name, "%s", script_name(&scripts, number).text);
        if (dbo_experiment_load(&e, scripts.gl_pathv[number], NULL, &err) != DBO_OK)
            fail_msg("%s", err.message);
    } else {
        snprintf(line->name, sizeof line->name, "random-%u", (unsigned)(number - scripts.gl_pathc));
        random_experiment(&e, number - scripts.gl_pathc, RANDOM_ANY);
    }
    line->digest = digest_of(&e, executor);
}

static size_t read_golden(digest_line lines[MAX_LINES])
{
    size_t count = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    while (count < MAX_LINES &&
           fscanf(file, "%63s %16" SCNx64, lines[count].name, &lines[count].digest) == 2)
        count++;
    assert_int_equal(fclose(file), 0);
    return count;
}

static void traces_are_those_of_the_file(void **state)
{
    (void)state;
    static digest_line golden[MAX_LINES];
    uint32_t wrong = 0;
    if (read_golden(golden) != num_lines)
        fail_msg("%s has another number of lines than there are runs: test_digest write", GOLDEN);
    for (size_t i = 0; i < num_lines; i++) {
        digest_line line;
        compute(i, DBO_CONTEXT_FIBER, &line);
        assert_string_equal(line.name, golden[i].name);
        if (line.digest != golden[i].digest) {
            print_message("%s: %016" PRIx64 ", pinned %016" PRIx64 "\n", line.name, line.digest,
                          golden[i].digest);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void threads_give_the_same(void **state)
{
    (void)state;
    static digest_line golden[MAX_LINES];
    read_golden(golden);
    for (size_t i = 0; i < num_lines; i++) {
        digest_line line;
        compute(i, DBO_CONTEXT_THREAD, &line);
        if (line.digest != golden[i].digest)
            fail_msg("%s differs on threads", line.name);
    }
}

/* What a command prints, malloc'd; it must succeed. */
static char *output_of(const char *command)
{
    char *text = calloc(1, 1 << 16);
    FILE *pipe = popen(command, "r");
    assert_true(text && pipe);
    assert_true(fread(text, 1, (1 << 16) - 1, pipe) > 0);
    assert_int_equal(pclose(pipe), 0);
    return text;
}

static void what_ifs_print_the_same(void **state)
{
    (void)state;
    glob_t what_ifs = scripts_of("whatif", 5);
    for (size_t i = 0; i < what_ifs.gl_pathc; i++) {
        char command[512];
        char *printed[2];
        for (int threads = 0; threads < 2; threads++) {
            snprintf(command, sizeof command, "'%s' run '%s' --set layers=6 --executor %s",
                     DBO_PROGRAM, what_ifs.gl_pathv[i], threads ? "thread" : "fiber");
            printed[threads] = output_of(command);
        }
        assert_string_equal(printed[0], printed[1]);
        free(printed[0]);
        free(printed[1]);
    }
    globfree(&what_ifs);
}

static int find_scripts(void **state)
{
    (void)state;
    scripts = scripts_of("workloads", 4);
    num_lines = scripts.gl_pathc + NUM_SEEDS;
    return num_lines <= MAX_LINES ? 0 : -1;
}

static int forget_scripts(void **state)
{
    (void)state;
    globfree(&scripts);
    return 0;
}

/* cmocka's asserts need a test around them, so writing is one. A run that fails leaves the file as
 * it was. */
static void write_golden(void **state)
{
    (void)state;
    static digest_line lines[MAX_LINES];
    for (size_t i = 0; i < num_lines; i++)
        compute(i, DBO_CONTEXT_FIBER, &lines[i]);
    FILE *file = fopen(GOLDEN, "w");
    assert_non_null(file);
    for (size_t i = 0; i < num_lines; i++)
        fprintf(file, "%s %016" PRIx64 "\n", lines[i].name, lines[i].digest);
    assert_int_equal(fclose(file), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest writing[] = {cmocka_unit_test(write_golden)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_are_those_of_the_file),
        cmocka_unit_test(threads_give_the_same),
        cmocka_unit_test(what_ifs_print_the_same),
    };
    if (argc == 2 && strcmp(argv[1], "write") == 0)
        return cmocka_run_group_tests_name("digest", writing, find_scripts, forget_scripts);
    return cmocka_run_group_tests_name("digest", tests, find_scripts, forget_scripts);
}
