/* test_cli.c: the built command: its exit codes, its sentences, what it leaves behind. */
#include "tests/support/command.h"

#include <dirent.h>

static void write_script(const char *text)
{
    put_file("t.lua", text);
}

#define EXPERIMENT "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 8,\n"
#define BATCH      "batch = dbo.decode { num_tokens = 64, context_len = 4096 } }\n"
#define MODEL      "model = 'deepseek-v3', hardware = 'H800', layers = 9, enable_dbo = true,\n"

/* ---- the command line: 2 ---- */

static void mistakes_on_the_command_line_are_2(void **state)
{
    (void)state;
    write_script(EXPERIMENT MODEL BATCH);
    expect_sentence("dbo run t.lua --asci2", 2,
                    "unknown option '--asci2', did you mean '--ascii'?");
    expect_sentence("dbo run -x t.lua", 2, "unknown option '-x'");
    expect_sentence("dbo check t.lua --backend sim", 2,
                    "unknown option '--backend' here: it is one of dbo run\n");
    expect_sentence("dbo --program=p.json check", 2,
                    "unknown option '--program' here: it is one of dbo check\n");
    expect_sentence("dbo explain --layers 4:6", 2, "one of dbo run or dbo check\n");
    expect_sentence("dbo scripts --set layers=4", 2, "one of dbo run, dbo show or dbo check\n");
    expect_sentence("dbo --collor=never run t.lua", 2, "did you mean '--color'?");
    expect_sentence("dbo run t.lua --width", 2, "option '--width' needs a value");
    expect_sentence("dbo run t.lua --ascii=yes", 2, "option '--ascii' takes no value");
    expect_sentence("dbo run t.lua --width 12", 2, "--width is a number from 20 to 1000");
    expect_sentence("dbo run t.lua --color=red", 2, "auto, always or never");
    expect_sentence("dbo run t.lua --set nodes", 2, "--set nodes: a setting is written KEY=VALUE");
    expect_sentence("dbo run t.lua --log vot=debug", 2, "vot");
    expect_sentence("DBO_LOG=louder dbo run t.lua", 2, "DBO_LOG: ");
    expect_sentence("dbo run", 2, "run needs a script");
    expect_sentence("dbo run t.lua u.lua", 2, "u.lua is one script too many");
    expect_sentence("dbo run 'a\xff\xe2\x82z\xe2\x82\xac\xc2'", 2,
                    "cannot read a???z\xe2\x82\xac?:");
    expect_sentence("dbo run missing.lua", 2, "cannot read missing.lua: No such file");
    static const struct {
        const char *line;
        int code; /* 2: the command line names the file */
    } readers[] = {
        {"dbo run", 2},
        {"dbo check --program", 2},
        {"dbo eval vote --in", 2},
        {"dbo bench sim --model", 2},
        {"dbo run t.lua --set @", 2},
        {"DBO_SET=@", 1},
    };
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        const char *glue = strchr(readers[i].line, '@') ? "" : " ";
        const char *rest = readers[i].code == 1 ? " dbo run t.lua" : "";
        char line[96];
        snprintf(line, sizeof line, "%s%smissing.x%s", readers[i].line, glue, rest);
        expect_sentence(line, readers[i].code, "cannot read missing.x: No such file or directory");
        snprintf(line, sizeof line, "%s%s.%s", readers[i].line, glue, rest);
        expect_sentence(line, readers[i].code, "cannot read .: Is a directory");
    }
    expect_sentence("dbo rnu t.lua", 2, "unknown command 'rnu', did you mean 'run'?");
    expect_sentence("dbo", 2, "which command?");
    expect_sentence("dbo help rum", 2, "did you mean 'run'?");
    expect_sentence("dbo doctor now", 2, "doctor takes no arguments");
}

static void help_and_version_are_answers(void **state)
{
    (void)state;
    assert_int_equal(run("dbo --help"), 0);
    assert_non_null(strstr(printed, "Predict:"));
    assert_non_null(strstr(printed, "Examples:"));
    assert_string_equal(complained, "");
    assert_int_equal(run("dbo help run"), 0);
    assert_non_null(strstr(printed, "--set=KEY=VALUE"));
    assert_int_equal(run("dbo run --help"), 0);
    assert_non_null(strstr(printed, "Usage: dbo run"));
    assert_int_equal(run("dbo --version"), 0);
    assert_memory_equal(printed, "dbo 0", 5);
    assert_int_equal(run("dbo doctor"), 0);
    assert_non_null(strstr(printed, "Parts of this build"));
}

/* ---- inside a script: 1 ---- */

static void mistakes_in_a_script_are_1(void **state)
{
    (void)state;
    write_script("return dbo.experiment {\n  nodes = \n");
    expect_sentence("dbo run t.lua", 1, "t.lua:3: unexpected symbol near <eof>");
    write_script(EXPERIMENT "enable_dob = true,\n" MODEL BATCH);
    expect_sentence("dbo run t.lua", 1,
                    "t.lua:2: unknown key 'enable_dob' in dbo.experiment, did you mean "
                    "'enable_dbo'?");
    write_script(EXPERIMENT MODEL "nodes = '16',\n" BATCH);
    expect_sentence("dbo run t.lua", 1, "t.lua:3: nodes must be an integer, got string \"16\"");
    write_script(EXPERIMENT MODEL "nodes = 1e9,\n" BATCH);
    expect_sentence("dbo run t.lua", 1, "nodes is 1000000000; it must be from 1 to 4096");
    write_script(EXPERIMENT MODEL BATCH);
    expect_sentence("dbo run t.lua --set batch.num_tokens=99999999", 1,
                    "num_tokens is 99999999; it must be from 0 to 1048576");
    expect_sentence("dbo run t.lua --set nodes=4000 --set gpus_per_node=200", 1,
                    "at most 16384 can be simulated");
    expect_sentence("dbo run t.lua --set enable_expert_parallel=true --set nodes=3", 1,
                    "expert parallelism over 24 GPUs does not divide the 256 experts of "
                    "DeepSeek-V3");
    expect_sentence("dbo run t.lua --set enable_dob=true", 1, "did you mean 'enable_dbo'?");
    write_script("while true do end\n");
    expect_sentence("dbo run t.lua", 1, "the script ran more than 200 million instructions");
    write_script("return nil\n");
    expect_sentence("dbo run t.lua", 1, "it must return an experiment");
}

/* ---- Ctrl-C: 130 ---- */

static char *const interrupted[] = {
    "dbo", "run", "t.lua", "--json", "result.json", "--memory-limit=2000", NULL};

/* How many entries the folder has beside t.lua, out and err. */
static int other_files(void)
{
    int others = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        others += entry->d_name[0] != '.' && strcmp(entry->d_name, "t.lua") != 0 &&
                  strcmp(entry->d_name, "out") != 0 && strcmp(entry->d_name, "err") != 0;
    closedir(entries);
    return others;
}

static bool at_once(pid_t child)
{
    (void)child;
    return true;
}

/* A part of result.json is there: the script has ended, the simulation begins. */
static bool writes_a_file(pid_t child)
{
    (void)child;
    return other_files() > 0;
}

static void interruption_is_130(void **state)
{
    (void)state;
    write_script("local n = 0 while true do n = n + 1 end\n");
    assert_int_equal(run_and_interrupt(interrupted, at_once), 130);
    assert_string_equal(complained, "dbo: interrupted\n");
    assert_int_equal(other_files(), 0);

    /* 64 different ranks of many layers: a second of simulation at least. */
    write_script("local dbo, tokens = require 'dbo', {}\n"
                 "for rank = 1, 64 do tokens[rank] = 64 + rank end\n"
                 "return dbo.experiment { nodes = 8, gpus_per_node = 8, layers = 900,\n"
                 "  costs = dbo.fixed { A = 9, D = 7, M = 5, C = 7 }, enable_dbo = true,\n"
                 "  enable_expert_parallel = true, max_num_batched_tokens = 4096,\n"
                 "  max_num_seqs = 4096,\n"
                 "  batch = dbo.decode { num_tokens = tokens } }\n");
    assert_int_equal(run_and_interrupt(interrupted, writes_a_file), 130);
    assert_string_equal(complained, "dbo: interrupted\n");
    assert_int_equal(other_files(), 0);
}

/* ---- output ---- */

static void output_that_cannot_be_written_is_said(void **state)
{
    (void)state;
    write_script(EXPERIMENT MODEL BATCH);
    expect_sentence("dbo run t.lua >/dev/full", 2,
                    "cannot write the output: No space left on device");
    expect_sentence("dbo run t.lua --json /dev/full", 2,
                    "cannot write /dev/full: No space left on device");
    expect_sentence("dbo run t.lua --json /no/folder/x.json", 2,
                    "cannot write /no/folder/x.json: No such file or directory");
    assert_string_equal(printed, ""); /* refused before the work is done */
    expect_sentence("dbo run t.lua --json .", 2, "cannot write .: Is a directory");
    assert_int_equal(run("dbo run t.lua | true"), 0);
    assert_string_equal(complained, "");
    assert_int_equal(run("dbo run t.lua --json - | true"), 0);
    assert_string_equal(complained, "");
    assert_int_equal(other_files(), 0);
}

/* ---- results ---- */

static void result_is_printed_and_written(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "Model ",    "Cluster ", "Batch ",  "Config ",  "Decision ",
        "DBO off: ", "DBO on: ", "Order: ", "speed-up", "cost of splitting"};
    write_script("print('from the script')\n" EXPERIMENT MODEL
                 "enable_expert_parallel = true,\n" BATCH);
    assert_int_equal(run("dbo run t.lua --json result.json"), 0);
    assert_string_equal(complained, "");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(printed, parts[i]))
            fail_msg("'%s' is missing in:\n%s", parts[i], printed);
    }
    assert_memory_equal(printed, "from the script\n", 16);
    assert_null(strstr(printed, "\x1b["));
    assert_int_equal(run("dbo run t.lua --json - | cmp - result.json && rm result.json"), 0);
    assert_string_equal(complained, "from the script\n"); /* not in the document */
    assert_int_equal(run("dbo --ascii run t.lua | LC_ALL=C tr -d '\\000-\\177' | wc -c"), 0);
    assert_string_equal(printed, "0\n");
    assert_int_equal(run("dbo run t.lua --color=always"), 0);
    assert_non_null(strstr(printed, "\x1b["));
    assert_int_equal(run("dbo run t.lua >a; dbo run t.lua >b; cmp a b; rm a b"), 0);
}

/* No line of a timeline is wider than asked; those of the notation and the first five may be. */
static void timeline_keeps_to_its_width(void **state)
{
    (void)state;
    write_script(EXPERIMENT MODEL "enable_expert_parallel = true,\n" BATCH);
    for (int width = 80; width <= 200; width += 40) {
        char line[128];
        snprintf(line, sizeof line, "dbo run t.lua --ascii --width %d", width);
        assert_int_equal(run(line), 0);
        int widest = 0;
        const char *end = strstr(printed, "\nlayer ");
        assert_non_null(end);
        for (const char *at = strstr(printed, "One layer"); at && at < end;) {
            const char *next = strchr(at, '\n') + 1;
            widest = (int)(next - at) - 1 > widest ? (int)(next - at) - 1 : widest;
            at = next;
        }
        assert_in_range(widest, width - 10, width);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_on_the_command_line_are_2),
        cmocka_unit_test(help_and_version_are_answers),
        cmocka_unit_test(mistakes_in_a_script_are_1),
        cmocka_unit_test(interruption_is_130),
        cmocka_unit_test(result_is_printed_and_written),
        cmocka_unit_test(timeline_keeps_to_its_width),
        cmocka_unit_test(output_that_cannot_be_written_is_said),
    };
    return cmocka_run_group_tests_name("cli", tests, make_folder, remove_folder);
}
