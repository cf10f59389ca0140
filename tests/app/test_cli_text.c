/* test_cli_text.c: how the command's texts are laid out: widths, examples, units, ASCII, and what
 * it says where there is nothing to show. */
#include "app/command/commands.h"
#include "core/base/strbuf.h"
#include "tests/support/command.h"

#include <pty.h>

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

/* Nothing is wider than 80 columns; where an example is broken, a shell reads on. */
static void helps_keep_examples_whole(void **state)
{
    (void)state;
    size_t examples = 0;
    for (size_t i = 0; i == 0 || dbo_command_at(i - 1); i++) {
        bool in_examples = false, goes_on = false;
        char line[64];
        snprintf(line, sizeof line, "dbo help %s", i == 0 ? "" : dbo_command_name(i - 1));
        assert_int_equal(run(line), 0);
        for (const char *at = printed; *at; at = next_line(at)) {
            bool example = in_examples && at[0] == ' ';
            in_examples = in_examples ? at[0] == ' ' : strncmp(at, "Examples:", 9) == 0;
            examples += example;
            if (example && !strstr(at, "dbo ") && !goes_on)
                fail_msg("%s: a broken example: %.60s", line, at);
            if (columns_of_line(at) > 80)
                fail_msg("%s: a long line: %.100s", line, at);
            goes_on = next_line(at) - at > 2 && next_line(at)[-2] == '\\';
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
    assert_int_equal(run("dbo run " PREFILL), 0);
    assert_non_null(strstr(printed,
                           "\nBatch    prefill, tokens a rank: 16384 (requests: 4 of 4096 tokens, "
                           "context 0)\n"));
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
    assert_int_equal(run("dbo run " PREFILL " --ascii | grep -E '^(step|host|compute)'"), 0);
    assert_null(strstr(printed, " us"));
    assert_non_null(strstr(printed, "step                             3776."));
    assert_non_null(strstr(printed, " ms"));
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

/* What is quoted whole: the notation, and paths. */
static bool is_quoted(const char *line)
{
    static const char *const begins[] = {"Comp: |", "Comm: |", "Order: "};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(line, begins[i], 7) == 0)
            return true;
    size_t length = strcspn(line, "\n");
    return memchr(line, '/', length) != NULL;
}

static void lines_fit_every_terminal(void **state)
{
    (void)state;
    static const char *const lines[] = {"run " DECODE,
                                        "run " PREFILL " --layers 2:3 --ascii",
                                        "run " DECODE " --step </dev/null",
                                        "run t.lua",
                                        "show vote " DECODE,
                                        "show slices " DECODE,
                                        "show metadata " DECODE,
                                        "show graph " DECODE,
                                        "show program " PREFILL,
                                        "check --fault no-comm-wait || [ $? = 3 ]",
                                        "check --fault lost-wakeup || [ $? = 3 ]",
                                        "faults",
                                        "explain faults",
                                        "explain late-rank",
                                        "explain keys of the configuration",
                                        "explain all2all_backend",
                                        "doctor"};
    static const unsigned widths[] = {20, 40, 60, 79};
    put_file("t.lua",
             "local t = require('dbo').table { title = 'a title that says a little too much',\n"
             "  columns = { 'tokens of a rank', 'µs', 'graph' } }\n"
             "t:add { 7, 1234.5, 'FULL' } t:add { 512, 99.25, 'NONE: it is too large for any' }\n"
             "t:print() t:plot { x = 'tokens of a rank', y = 'µs', log_x = true }\n"
             "t:plot { x = 'graph', y = { 'µs', 'tokens of a rank' }, kind = 'bar' }\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            char line[512];
            snprintf(line, sizeof line, "export COLUMNS=%u; dbo %s", widths[w], lines[i]);
            assert_int_equal(run(line), 0);
            assert_true(printed[0] != '\0');
            for (const char *at = printed; *at; at = next_line(at))
                if (columns_of_line(at) > widths[w] && !is_quoted(at))
                    fail_msg("%s: %.120s", line, at);
        }
    assert_int_equal(run("COLUMNS=40 dbo help run"), 0); /* words of options may need 26 */
    for (const char *at = printed; *at; at = next_line(at))
        if (columns_of_line(at) > 40 && !is_quoted(at))
            fail_msg("%.120s", at);
}

/* Drawings are in ASCII where the locale has no more. */
static void the_locale_decides(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        bool ascii;
    } locales[] = {{"export LC_ALL=C", true},
                   {"export LC_ALL= LC_CTYPE=POSIX LANG=C.UTF-8", true},
                   {"export LC_ALL= LC_CTYPE= LANG=de_DE.ISO-8859-1", true},
                   {"unset LC_ALL LC_CTYPE LANG", true},
                   {"export LC_ALL=en_US.utf8", false},
                   {"export LC_ALL= LC_CTYPE=de_DE.UTF-8 LANG=C", false}};
    static const char *const lines[] = {"run " DECODE, "run " DECODE " --step </dev/null",
                                        "run t.lua", "show program " DECODE,
                                        "explain no-comm-wait"};
    put_file("t.lua", "local t = require('dbo').table { columns = { 'x', 'µs' } }\n"
                      "t:add { 3, 8 } t:add { 9, 5 }\n"
                      "t:print() t:plot { x = 'x', y = 'µs' }\n"
                      "t:plot { x = 'x', y = 'µs', kind = 'bar' }\n");
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
            char line[512];
            bool beyond = false;
            snprintf(line, sizeof line, "%s; dbo %s", locales[i].set, lines[k]);
            assert_int_equal(run(line), 0);
            for (const char *at = printed; *at; at++)
                beyond = beyond || (unsigned char)*at >= 0x80;
            if (beyond == locales[i].ascii)
                fail_msg("%s: %s ASCII: %.200s", line, beyond ? "not in" : "in", printed);
        }
}

/* Runs a shell line on a terminal of so many columns; what it shows is in `printed`. */
static void run_on_terminal(const char *line, unsigned short columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    char shell[1024];
    int terminal = -1;
    size_t length = 0;
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    assert_true(child >= 0);
    if (child == 0) {
        snprintf(shell, sizeof shell, "unset NO_COLOR; export TERM=xterm COLUMNS=200; %s", line);
        execl("/bin/sh", "sh", "-c", shell, (char *)NULL);
        _exit(127);
    }
    for (ssize_t got = 1; got > 0; length += got > 0 ? (size_t)got : 0)
        got = read(terminal, printed + length, sizeof printed - 1 - length);
    printed[length] = '\0';
    close(terminal);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(length > 500);
}

static void terminals_have_colours_and_a_width(void **state)
{
    (void)state;
    static const struct {
        const char *set, *option;
        bool colours;
    } cases[] = {{"", "", true},
                 {"NO_COLOR=1", "", false},
                 {"NO_COLOR=", "", true},
                 {"TERM=dumb", "", false},
                 {"TERM=", "", false},
                 {"; unset TERM", "", false},
                 {"TERM=unknown", "", false},
                 {"TERM=network", "", false},
                 {"TERM=screen-256color", "", true},
                 {"TERM=vt100", "", false},
                 {"TERM=xterm-mono", "", false},
                 {"TERM=linux", "", true},
                 {"TERM=", "--color=always", true},
                 {"NO_COLOR=1", "--color=always", true},
                 {"", "--color=never", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "export LC_ALL=C %s; " DBO_PROGRAM " run " DECODE " %s",
                 cases[i].set, cases[i].option);
        run_on_terminal(line, 44);
        if (cases[i].colours != (strchr(printed, '\033') != NULL))
            fail_msg("%s %s: colours: %d", cases[i].set, cases[i].option, !cases[i].colours);
        for (const char *at = printed; *at; at = next_line(at))
            if (columns_of_line(at) > 45 && !is_quoted(at)) /* with the return of a terminal */
                fail_msg("%.120s", at);
    }
    assert_int_equal(run("TERM=xterm dbo run " DECODE), 0); /* no terminal, no colours */
    assert_null(strchr(printed, '\033'));
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
    assert_int_equal(
        run("dbo show program " DECODE " --json | sed -n 2p | grep -q '^ \"num_ubatches\": 2,$'"),
        0);
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
        cmocka_unit_test(lines_fit_every_terminal),
        cmocka_unit_test(the_locale_decides),
        cmocka_unit_test(terminals_have_colours_and_a_width),
        cmocka_unit_test(doctor_promises_nothing),
        cmocka_unit_test(what_show_writes_check_reads),
        cmocka_unit_test(what_is_no_number_is_nan),
        cmocka_unit_test(ops_have_at_most_the_sms_of_the_gpu),
    };
    return cmocka_run_group_tests_name("cli_text", tests, make_folder, remove_folder);
}
