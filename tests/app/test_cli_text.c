/* test_cli_text.c: how the command's texts are laid out: widths, examples, units, ASCII, and what
 * it says where there is nothing to show. */
#include "app/commands.h"
#include "core/base/strbuf.h"
#include "tests/support/command.h"

#define DECODE  DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua"
#define PREFILL DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-prefill.lua"

static size_t columns_of_line(const char *line)
{
    char text[1024];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    return dbo_text_columns(text);
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* An example is one line, whole; everything else keeps to 80 columns. */
static void helps_keep_examples_whole(void **state)
{
    (void)state;
    size_t examples = 0;
    for (size_t i = 0; i == 0 || dbo_command_at(i - 1); i++) {
        bool in_examples = false;
        char line[64];
        snprintf(line, sizeof line, "dbo help %s", i == 0 ? "" : dbo_command_name(i - 1));
        assert_int_equal(run(line), 0);
        for (const char *at = printed; *at; at = next_line(at)) {
            bool example = in_examples && at[0] == ' ';
            in_examples = in_examples ? at[0] == ' ' : strncmp(at, "Examples:", 9) == 0;
            examples += example;
            if (example && !strstr(at, "dbo "))
                fail_msg("%s: a broken example: %.60s", line, at);
            if (!example && columns_of_line(at) > 80)
                fail_msg("%s: a long line: %.100s", line, at);
        }
    }
    assert_in_range(examples, 20, 100);
    assert_int_equal(run("dbo help run"), 0);
    assert_non_null(strstr(printed, "deepseek-v3-decode --layers 4:5 --trace decode.json\n"));
}

/* What the experiment is and the decision are wrapped below their labels; words are all there. */
static void descriptions_are_wrapped(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " DECODE), 0);
    const char *at = printed;
    for (; *at && *at != '\n'; at = next_line(at)) {
        if (columns_of_line(at) > 80)
            fail_msg("a long line: %.100s", at);
        assert_true(at[8] == ' ' && at[9] != ' ');
    }
    assert_non_null(strstr(printed, "experts + 1 shared, fp8\n         weights\n") ||
                    strstr(printed, "\n         of 256 experts + 1 shared, fp8 weights\n"));
    assert_int_equal(run("dbo run " DECODE " --width 200 | sed -n '1,6p'"), 0);
    assert_non_null(strstr(printed, ", top 8 of 256 experts + 1 shared, fp8 weights\nCluster"));
    assert_int_equal(run("dbo run " DECODE " --set nodes=32 --set data_parallel_size=256"), 0);
    assert_non_null(strstr(printed, "EP 256 (1 expert a"));
}

/* A table has one unit: ms from 100 ms on. */
static void large_times_are_in_ms(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " PREFILL " --ascii | grep -E '^(step|host|waiting)'"), 0);
    assert_null(strstr(printed, " us"));
    assert_non_null(strstr(printed, "step                             3776."));
    assert_non_null(strstr(printed, "0.000 ms"));
    assert_int_equal(run("dbo run " DECODE " --ascii | grep -E '^(step|host|waiting)'"), 0);
    assert_null(strstr(printed, " ms"));
    assert_int_equal(run("dbo run " PREFILL " --ascii --layers 4:8 | grep -E '^(DBO| ms )'"), 0);
    assert_null(strstr(printed, " us"));
    assert_non_null(strstr(printed, " ms          |0"));
}

static void nothing_that_takes_time_is_said(void **state)
{
    (void)state;
    put_file("zero.lua",
             "local dbo = require 'dbo'\n"
             "return dbo.experiment { gpus_per_node = 8, layers = 6, enable_dbo = true,\n"
             "  enable_expert_parallel = true, costs = dbo.fixed {},\n"
             "  batch = dbo.decode { num_tokens = 64, context_len = 4096 } }\n");
    assert_int_equal(run("dbo run zero.lua --trace zero.json"), 0);
    assert_non_null(strstr(printed, "\nNothing takes any time there: no timeline\n"));
    assert_string_equal(complained, "");
    assert_int_equal(run("dbo run zero.lua --layers 2:3 --ascii"), 0);
    assert_non_null(strstr(printed, "\nNothing takes any time there: no timeline\n"));
    assert_null(strstr(printed, "nan"));
    assert_int_equal(run("dbo run zero.lua --step </dev/null"), 0);
    assert_int_equal(run("dbo run zero.lua --set layers=1"), 0);
    assert_non_null(strstr(printed, "\nToo few layers for one in steady state: no timeline\n"));
}

static void ascii_is_everywhere(void **state)
{
    (void)state;
    static const char *const lines[] = {"run " DECODE,
                                        "run " DECODE " --step </dev/null",
                                        "run " DBO_SOURCE_DIR "/scripts/whatif/threshold.lua",
                                        "run " DBO_SOURCE_DIR
                                        "/scripts/whatif/shared-expert-earlier.lua",
                                        "run print.lua",
                                        "show vote " DECODE,
                                        "show program " DECODE,
                                        "show metadata " DECODE,
                                        "explain",
                                        "explain no-comm-wait",
                                        "faults",
                                        "doctor",
                                        "--help"};
    put_file("print.lua", "print('a µs × ₀ é', 'b')\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[512];
        snprintf(line, sizeof line, "dbo --ascii %s", lines[i]);
        assert_int_equal(run(line), 0);
        assert_true(printed[0] != '\0');
        for (const char *at = printed; *at; at++)
            if ((unsigned char)*at >= 0x80)
                fail_msg("%s: %.40s", line, at);
    }
    assert_int_equal(run("dbo --ascii run print.lua"), 0);
    assert_string_equal(printed, "a us x 0 ?\tb\n");
}

/* doctor names what there is code for. */
static void doctor_promises_nothing(void **state)
{
    (void)state;
    assert_int_equal(run("dbo doctor"), 0);
    assert_non_null(strstr(printed, "  gpu "));
    assert_null(strstr(printed, "window"));
    assert_null(strstr(printed, "MPI"));
    assert_null(strstr(printed, "PNG"));
}

static void what_show_writes_check_reads(void **state)
{
    (void)state;
    assert_int_equal(run("dbo show program " DECODE " --json | dbo check --program -"), 0);
    assert_int_equal(run("dbo show program " PREFILL " --json | dbo check --program -"), 0);
}

static void what_is_no_number_is_nan(void **state)
{
    (void)state;
    put_file("nan.lua", "print(0/0, -(0/0))\n");
    assert_int_equal(run("dbo run nan.lua"), 0);
    assert_string_equal(printed, "nan\tnan\n");
    put_file("nan.lua", "local dbo = require 'dbo'\nreturn dbo.fixed { D = -(0/0) }\n");
    expect_sentence("dbo run nan.lua", 1, "nan.lua:2: D must be a number, got nan");
    put_file("nan.lua", "local dbo = require 'dbo'\n"
                        "return dbo.experiment { nodes = 0/0,\n costs = dbo.fixed {} }\n");
    expect_sentence("dbo run nan.lua", 1, "nan.lua:2: nodes must be an integer, got nan");
}

static void ops_have_at_most_the_sms_of_the_gpu(void **state)
{
    (void)state;
    static const char *const text =
        "local dbo = require 'dbo'\n"
        "return dbo.experiment { layers = 4, enable_dbo = true, costs = dbo.fixed { A = 1 },\n"
        "  schedule = dbo.schedule { name = 'mine', num_ubatches = 2, layers = 4,\n"
        "    layer = function(u)\n"
        "      u.op { name = 'a', us = 10, sms = %d }\n"
        "      u.yield()\n"
        "    end },\n"
        "  batch = dbo.decode { num_tokens = 64, context_len = 4096 } }\n";
    char script[1024];
    snprintf(script, sizeof script, text, 133);
    put_file("sms.lua", script);
    expect_sentence("dbo run sms.lua", 1,
                    "sms.lua:5: schedule mine, ubatch 0: an op asks for 133 SMs, the GPU has 132");
    snprintf(script, sizeof script, text, 132);
    put_file("sms.lua", script);
    assert_int_equal(run("dbo run sms.lua"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helps_keep_examples_whole),
        cmocka_unit_test(descriptions_are_wrapped),
        cmocka_unit_test(large_times_are_in_ms),
        cmocka_unit_test(nothing_that_takes_time_is_said),
        cmocka_unit_test(ascii_is_everywhere),
        cmocka_unit_test(doctor_promises_nothing),
        cmocka_unit_test(what_show_writes_check_reads),
        cmocka_unit_test(what_is_no_number_is_nan),
        cmocka_unit_test(ops_have_at_most_the_sms_of_the_gpu),
    };
    return cmocka_run_group_tests_name("cli_text", tests, make_folder, remove_folder);
}
