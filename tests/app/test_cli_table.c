/* test_cli_table.c: what holds of every command and every option, walked by their tables: each is
 * in the help, the manual page and the completions; an output that cannot be written has one exit
 * code; a mistake that several commands can be given has one sentence. */
#include "app/command/commands.h"
#include "tests/support/command.h"

#define EXPERIMENT EXPERIMENT_WITH("")
#define EXPERIMENT_WITH(more)                                                                 \
    "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 8, layers = 9,\n" more \
    "model = 'deepseek-v3', hardware = 'H800', enable_dbo = true,\n"                          \
    "enable_expert_parallel = true,\n"                                                        \
    "batch = dbo.decode { num_tokens = 64, context_len = 4096 } }\n"

/* Lines that a command can be run with, its outputs aside. */
static const char *const runnable[][2] = {
    {"run", "t.lua"},
    {"check", "t.lua --set layers=4"},
    {"check", "--program p.json"},
    {"check", "prints.lua"},
    {"faults", ""},
    {"bench", "handoff"},
    {"bench", "sim --runs 1 --ranks 2"},
};

#define NUM_RUNNABLE (sizeof runnable / sizeof *runnable)

static void put_inputs(void)
{
    put_file("t.lua", EXPERIMENT);
    put_file("prints.lua", "local dbo = require 'dbo' local e = dbo.load('t.lua')\n"
                           "dbo.run(e, { layers = 4 }) print('ran')\n");
    assert_int_equal(run("dbo show program t.lua --json >p.json"), 0);
}

/* Calls `look` with each option of each command. */
static void each_option(void (*look)(const dbo_command *command, const dbo_cli_option *option))
{
    const dbo_cli_option *option;
    for (size_t i = 0; dbo_command_at(i); i++)
        for (size_t k = 0; (option = dbo_cli_option_at(dbo_command_at(i), k)); k++)
            look(dbo_command_at(i), option);
}

/* ---- one table ---- */

static void expect_in(const char *line, const char *words)
{
    assert_int_equal(run(line), 0);
    if (!strstr(printed, words))
        fail_msg("%s does not have '%s'", line, words);
}

static char man[65536];

static void is_described(const dbo_command *command, const dbo_cli_option *option)
{
    char line[128], words[128];
    snprintf(line, sizeof line, "dbo help %s", command->name);
    snprintf(words, sizeof words, " --%s%s%s ", option->name, option->value ? "=" : "",
             option->value ? option->value : "");
    expect_in(line, words);
    snprintf(line, sizeof line, ".SS dbo %s\n", command->name);
    const char *section = strstr(man, dbo_cli_is_shared(option) ? ".SH OPTIONS OF EVERY" : line);
    assert_non_null(section);
    const char *end = strstr(section + 1, "\n.S");
    size_t at = (size_t)snprintf(words, sizeof words, "\\fB\\-\\-");
    for (const char *c = option->name; *c; c++) /* with dashes as roff has them */
        at += (size_t)snprintf(words + at, sizeof words - at, *c == '-' ? "\\-" : "%c", *c);
    snprintf(words + at, sizeof words - at, "\\fR");
    const char *found = strstr(section, words);
    if (!found || (end && found > end))
        fail_msg("the manual page has no --%s of %s", option->name, command->name);
}

static void every_option_is_in_help_and_man(void **state)
{
    (void)state;
    assert_int_equal(run("dbo help --man"), 0);
    snprintf(man, sizeof man, "%s", printed);
    assert_true(strlen(man) > 5000);
    each_option(is_described);
}

/* Texts are there as a whole; examples, which begin with blanks, stay as they are. */
static void the_man_page_has_the_texts(void **state)
{
    (void)state;
    assert_int_equal(run("dbo help --man | sed -n '/^.SS dbo eval/,/^.SS/p'"), 0);
    assert_non_null(strstr(printed, ".nf\n  echo '{\"is_last_ubatch_empty\":["));
    assert_non_null(strstr(printed, "\n.fi\n.PP\nKinds: slices attn_split vote "));
    assert_int_equal(
        run("dbo help --man | grep -c '^\\.nf$' && dbo help --man | grep -c '^\\.fi$'"), 0);
    long opened = strtol(printed, NULL, 10);
    assert_int_equal(strtol(strchr(printed, '\n'), NULL, 10), opened);
    assert_in_range(opened, 10, 100);
}

static void is_completed(const dbo_command *command, const dbo_cli_option *option)
{
    char line[256], words[64];
    snprintf(
        line, sizeof line,
        "dbo completion bash >c; bash -c '. ./c; COMP_WORDS=(dbo %s --%s); COMP_CWORD=2; _dbo; "
        "printf \"%%s\\n\" \"${COMPREPLY[@]}\"'",
        command->name, option->name);
    snprintf(words, sizeof words, "--%s\n", option->name);
    expect_in(line, words);
}

static void every_option_is_completed(void **state)
{
    (void)state;
    assert_int_equal(run("command -v bash"), 0); /* whose completion it is */
    each_option(is_completed);
}

/* ---- outputs ---- */

static uint32_t num_outputs;

static void output_fails_alike(const dbo_command *command, const dbo_cli_option *option)
{
    static const char *const paths[][2] = {
        {"/dev/full", "cannot write /dev/full: No space left on device"},
        {"/no/folder/x.json", "cannot write /no/folder/x.json: No such file or directory"},
        {".", "cannot write .: Is a directory"},
        {"''", "needs the name of a file"},
        {"loop", "cannot write loop: Too many levels of symbolic links"},
    };
    uint32_t lines = 0;
    if (option->kind != DBO_CLI_OUTPUT)
        return;
    num_outputs++;
    for (size_t i = 0; i < NUM_RUNNABLE; i++) {
        bool of_runs = strcmp(runnable[i][1], "prints.lua") == 0 || strstr(runnable[i][1], "prog");
        if (strcmp(runnable[i][0], command->name) != 0 ||
            (of_runs && strcmp(option->name, "json") != 0))
            continue;
        lines++;
        for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
            char line[256];
            snprintf(line, sizeof line, "dbo %s %s --%s %s", command->name, runnable[i][1],
                     option->name, paths[k][0]);
            expect_sentence(line, 2, paths[k][1]);
        }
    }
    if (lines == 0)
        fail_msg("no line runs %s, whose --%s is an output", command->name, option->name);
}

static void outputs_that_fail_are_2_everywhere(void **state)
{
    (void)state;
    put_inputs();
    assert_int_equal(run("ln -sf loop loop"), 0);
    each_option(output_fails_alike);
    assert_in_range(num_outputs, 6, 100);
    assert_int_equal(run("rm loop"), 0);
}

/* ---- one mistake, one sentence ---- */

/* Both lines fail with the same words and code. */
static void expect_alike(const char *one, const char *other, int code, const char *sentence)
{
    char said[sizeof complained];
    expect_sentence(one, code, sentence);
    snprintf(said, sizeof said, "%s", complained);
    expect_sentence(other, code, sentence);
    assert_string_equal(complained, said);
}

static void the_same_mistake_is_said_alike(void **state)
{
    (void)state;
    put_inputs();
    expect_alike("dbo run t.lua --layers 9:10", "dbo show program t.lua --layer 10", 2,
                 "there is no layer 10: 9 run, from 0 to 8");
    expect_alike("dbo run t.lua --set nodes", "dbo check t.lua --set nodes", 2,
                 "--set nodes: a setting is written KEY=VALUE");
    expect_alike("dbo run nowhere", "dbo show vote nowhere", 2,
                 "cannot read nowhere: No such file");
    expect_alike("dbo run t.lua --executor threads", "dbo eval veto --in x --executor threads", 2,
                 "--executor is fiber or thread, not 'threads'");
    expect_alike("dbo run prints.lua --trace x", "dbo check prints.lua --trace x", 1,
                 "prints.lua returns no experiment: there is nothing for --trace");
    expect_sentence("dbo show program t.lua --layer 1024", 2,
                    "--layer is a number from 0 to 1023, not '1024'");
    expect_sentence("dbo show slices prints.lua", 1,
                    "prints.lua returns no experiment: there is nothing for show slices");
    put_file("one.lua", "print('one')\n");
    expect_sentence("dbo run one.lua --set nosuch=1", 1,
                    "one.lua returns no experiment: there is nothing for --set");
    expect_sentence("dbo run one.lua --fault one-qp", 1, "there is nothing for --fault");
    expect_sentence("dbo run prints.lua --set nosuch=1", 1, "'nosuch'");
    expect_alike("dbo run t.lua --fault vote-skipp", "dbo check --fault vote-skipp", 2,
                 "did you mean");
    expect_alike("dbo run t.lua --json t.lua", "dbo check t.lua --json t.lua", 2,
                 "--json would replace t.lua, which is read");
    expect_alike("dbo bench sim --model /nowhere --ranks 2", "dbo bench sim --model /nowhere", 2,
                 "/nowhere");
    expect_sentence("dbo bench sim --model p.json --json p.json", 2, "--json would replace p.json");
    expect_sentence("dbo check --program p.json --json p.json", 2, "--json would replace p.json");
}

/* Said before anything runs, and as the mistake of whoever named the fault. */
static void a_rank_that_is_not_there_has_no_fault(void **state)
{
    static const char *const commands[] = {"run", "show vote", "check"};
    char line[160];
    (void)state;
    put_inputs();
    put_file("f.lua", EXPERIMENT_WITH("fault = 'late-rank:rank=8',"));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(line, sizeof line, "dbo %s t.lua --fault late-rank:rank=99", commands[i]);
        expect_sentence(line, 2, "there is no rank 99: the ranks are 0 to 7\n");
        snprintf(line, sizeof line, "dbo %s t.lua --set fault=late-rank:rank=8", commands[i]);
        expect_sentence(line, 1, "there is no rank 8: the ranks are 0 to 7\n");
        snprintf(line, sizeof line, "dbo %s f.lua", commands[i]);
        expect_sentence(line, 1, "there is no rank 8: the ranks are 0 to 7\n");
        assert_string_equal(printed, "");
    }
    expect_sentence("dbo run t.lua --fault late-rank:rank=0,rank=1", 2,
                    "rank is given twice to the fault late-rank");
}

/* A fault that no run of a script can reach is said to be so, one that is reached is not. */
static void faults_of_what_a_script_runs(void **state)
{
    (void)state;
    put_inputs();
    assert_int_equal(run("dbo run prints.lua --fault no-comm-wait"), 0);
    assert_non_null(strstr(complained, "the fault no-comm-wait made no difference"));
    assert_int_equal(run("dbo run prints.lua --fault late-rank:us=300"), 0);
    assert_string_equal(complained, "");
}

static void a_file_that_is_read_is_not_replaced(void **state)
{
    static const char *const lines[] = {
        "dbo run t.lua --set @g.json --json g.json",
        "dbo run t.lua --set @g.json --trace ./g.json",
        "dbo check t.lua --set @g.json --json g.json",
        "DBO_SET=@g.json && export DBO_SET && dbo run t.lua --json g.json",
        "ln -sf g.json link.json && dbo run t.lua --set @g.json --json link.json",
        "dbo check --program - <p.json --json p.json",
    };
    static const char *const of_script[] = {"own.lua", "r.jsonl", "p/models/m.lua"};
    char line[160], says[160], before[4096], after[4096];
    (void)state;
    put_inputs();
    put_file("g.json", "{\"layers\": 3}\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        expect_sentence(lines[i], 2,
                        i < 5 ? "would replace g.json, which is read"
                              : "would replace the standard input, which is read");
        get_file(i < 5 ? "g.json" : "p.json", after, sizeof after);
        assert_null(strstr(after, "\"findings\""));
        assert_null(strstr(after, "\"result\""));
    }
    get_file("g.json", after, sizeof after);
    assert_string_equal(after, "{\"layers\": 3}\n");

    assert_int_equal(run("cp t.lua own.lua && mkdir -p p/models && cp '" DBO_SOURCE_DIR
                         "/scripts/models/mixtral-8x7b.lua' p/models/m.lua"),
                     0);
    put_file("r.jsonl", "{\"input_len\": 3, \"max_new\": 2}\n");
    put_file("reads.lua", "local dbo = require \"dbo\"\ndbo.requests(\"r.jsonl\")\n"
                          "dbo.load(\"named.lua\")\nreturn dbo.load(\"own.lua\")\n");
    put_file("named.lua", "local dbo = require \"dbo\"\nreturn dbo.experiment { model = \"m\", "
                          "layers = 3, hardware = \"H800\", gpus_per_node = 2, "
                          "batch = dbo.decode { num_tokens = 34, context_len = 512 } }\n");
    for (size_t i = 0; i < sizeof of_script / sizeof *of_script; i++) {
        get_file(of_script[i], before, sizeof before);
        snprintf(line, sizeof line, "export DBO_SCRIPTS_DIR=p && dbo %s reads.lua --json %s",
                 i == 1 ? "check" : "run", of_script[i]);
        snprintf(says, sizeof says, "%s, which is read", of_script[i]);
        expect_sentence(line, 2, says);
        get_file(of_script[i], after, sizeof after);
        assert_string_equal(before, after);
    }
    assert_int_equal(run("dbo run t.lua --set @g.json --json new.json"), 0);
    assert_int_equal(run("dbo run t.lua --set @g.json --json new.json"), 0); /* an older result */
}

/* Every option that has a value and does not say that it may come again. */
static void is_refused_twice(const dbo_command *command, const dbo_cli_option *option)
{
    char line[256], value[64], says[64];
    if (!option->value)
        return;
    if (option->kind == DBO_CLI_NUMBER)
        snprintf(value, sizeof value, "%u", option->min);
    else
        snprintf(value, sizeof value, "%s",
                 option->example ? option->example
                 : option->words ? option->words(0)
                                 : "x");
    snprintf(line, sizeof line, "dbo %s --%s=%s --%s %s", command->name, option->name, value,
             option->name, value);
    snprintf(says, sizeof says, "dbo: --%s is given twice\n", option->name);
    if (!option->many)
        expect_sentence(line, 2, says);
}

static void what_has_one_value_is_given_once(void **state)
{
    (void)state;
    put_inputs();
    each_option(is_refused_twice);
    expect_sentence("dbo --color=never run t.lua --color=always", 2, "--color is given twice");
    expect_sentence("dbo eval veto -i x -i x", 2, "--in is given twice");
    expect_sentence("dbo run t.lua --set fault=one-qp --fault late-rank", 2,
                    "--set fault= and --fault are both given");
    expect_sentence("dbo check --executor thread --set executor=fiber t.lua", 2,
                    "--set executor= and --executor are both given");
    assert_int_equal(run("dbo run t.lua --set layers=3 --set layers=4 --json - >r.json"), 0);
}

static void empty_names_have_a_sentence(void **state)
{
    (void)state;
    put_inputs();
    expect_sentence("dbo run ''", 2, "SCRIPT is empty: it is the name of a script");
    expect_sentence("dbo show vote ''", 2, "SCRIPT is empty");
    expect_sentence("dbo eval veto --in ''", 2, "--in needs the name of a file");
    expect_sentence("dbo check --program ''", 2, "--program needs the name of a file");
    expect_sentence("dbo run t.lua --set @", 2, "--set @ needs the name of a file");
}

static void a_full_disk_is_named_by_all(void **state)
{
    static const char *const lines[] = {
        "explain", "faults", "scripts", "check --fault one-qp", "--ascii explain", "run t.lua"};
    char line[64];
    (void)state;
    put_inputs();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(line, sizeof line, "dbo %s >/dev/full", lines[i]);
        expect_sentence(line, 2, "cannot write the output: No space left on device\n");
    }
}

/* Whatever the system's limit stops is not the script's own. */
static void the_systems_memory_is_not_the_scripts(void **state)
{
    (void)state;
    put_file("one.lua", "print('one')\n");
    run("for v in $(seq 10240 512 20480); do (ulimit -v $v; dbo run one.lua); done");
    assert_non_null(strstr(complained, "dbo: ")); /* some were refused */
    assert_null(strstr(complained, "needs more than 256 MiB"));
}

static void unknown_words_name_the_known(void **state)
{
    (void)state;
    put_inputs();
    expect_sentence("dbo completion", 2, "For example: dbo completion bash\n");
    expect_sentence("dbo completion tcsh", 2, "There is bash, zsh or fish.\n");
    expect_sentence("dbo show xx t.lua", 2, "There is vote, slices, metadata, program or graph.");
    expect_sentence("dbo bench xx", 2, "There is handoff, sim or check.\n");
    expect_sentence("dbo eval qq --in x", 2, "There is ");
    expect_sentence("dbo xx", 2, "There is run, scripts, ");
    expect_sentence("dbo run t.lua --layers 0:99999999999", 2, "A:B with A <= B < ");
    expect_sentence("dbo check --program p.json --perf", 2, "there is no run for --perf\n");
    expect_sentence("dbo check --program p.json --set layers=2", 2, "no run for --set\n");
}

static void too_many_words_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; dbo_command_at(i); i++) {
        const dbo_command *command = dbo_command_at(i);
        const dbo_cli_option *row = command->arguments;
        char line[128];
        int length = snprintf(line, sizeof line, "dbo %s", command->name);
        for (; row && row->name; row++)
            length += snprintf(line + length, sizeof line - (size_t)length, " %s",
                               row->words ? row->words(0) : "t.lua");
        snprintf(line + length, sizeof line - (size_t)length, " more");
        if (!row || !row[-1].many)
            expect_sentence(line, 2, row ? " too many" : " takes no arguments, not 'more'");
    }
    expect_sentence("dbo help run x", 2, "x is one command too many");
    expect_sentence("dbo --man help run", 2, "unknown option '--man'");
    expect_sentence("dbo help --man run", 2, "--man is of all commands together");
}

/* ---- a table with little in it ---- */

/* A command without examples, or whose examples have no line that begins "dbo ". */
static void a_command_needs_no_examples(void **state)
{
    (void)state;
    static const dbo_cli_option arguments[] = {
        {.name = "THING", .help = "a thing", .required = true, .kind = DBO_CLI_TEXT}, {0}};
    static const char *const examples[] = {NULL, "", "Ask somebody."};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const dbo_command command = {.name = "odd",
                                     .help = "",
                                     .examples = examples[i],
                                     .arguments = arguments,
                                     .bytes = sizeof(const char *)};
        char name[] = "odd";
        char *argv[] = {name, NULL};
        assert_int_equal(dbo_cli_run(&command, 1, argv), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_in_help_and_man),
        cmocka_unit_test(the_man_page_has_the_texts),
        cmocka_unit_test(every_option_is_completed),
        cmocka_unit_test(outputs_that_fail_are_2_everywhere),
        cmocka_unit_test(the_same_mistake_is_said_alike),
        cmocka_unit_test(a_rank_that_is_not_there_has_no_fault),
        cmocka_unit_test(faults_of_what_a_script_runs),
        cmocka_unit_test(a_file_that_is_read_is_not_replaced),
        cmocka_unit_test(what_has_one_value_is_given_once),
        cmocka_unit_test(empty_names_have_a_sentence),
        cmocka_unit_test(a_full_disk_is_named_by_all),
        cmocka_unit_test(the_systems_memory_is_not_the_scripts),
        cmocka_unit_test(unknown_words_name_the_known),
        cmocka_unit_test(too_many_words_are_refused),
        cmocka_unit_test(a_command_needs_no_examples),
    };
    return cmocka_run_group_tests_name("cli_table", tests, make_folder, remove_folder);
}
