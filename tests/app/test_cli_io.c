/* test_cli_io.c: the command and the world around it: failing outputs, blocking inputs, signals,
 * links, and what scripts and files may not do to a terminal. */
#include "tests/support/command.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define EXPERIMENT                                                                       \
    "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 8, layers = 9,\n" \
    "model = 'deepseek-v3', hardware = 'H800', enable_dbo = true,\n"                     \
    "enable_expert_parallel = true,\n"                                                   \
    "batch = dbo.decode { num_tokens = 64, context_len = 4096 } }\n"

/* ---- a standard output that fails: 2, whatever the command ---- */

static void every_command_says_that_its_output_failed(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "dbo --help",
        "dbo --version",
        "dbo help --man",
        "dbo help run",
        "dbo run t.lua",
        "dbo run t.lua --json -",
        "dbo run t.lua --trace -",
        "dbo run t.lua --step </dev/null",
        "dbo run prints.lua",
        "dbo show vote t.lua",
        "dbo show slices t.lua",
        "dbo show metadata t.lua",
        "dbo show program t.lua",
        "dbo show program t.lua --json",
        "dbo show graph t.lua",
        "dbo check t.lua --set layers=4",
        "dbo check t.lua --set layers=4 --json -",
        "dbo check --program p.json",
        "dbo check --program p.json --json -",
        "dbo eval thresholds --in thresholds.json",
        "dbo bench handoff",
        "dbo bench handoff --json -",
        "dbo doctor",
        "dbo faults",
        "dbo faults --json -",
        "dbo scripts",
        "dbo help",
        "dbo explain",
        "dbo explain ubatch",
        "dbo completion bash",
        "dbo completion zsh",
    };
    put_file("t.lua", EXPERIMENT);
    put_file("prints.lua", "print(string.rep('x', 100000))\n");
    assert_int_equal(run("cp " DBO_SOURCE_DIR "/tests/golden/thresholds.json . && "
                         "dbo show program t.lua --json >p.json"),
                     0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[160];
        snprintf(line, sizeof line, "%s >/dev/full", commands[i]);
        expect_sentence(line, 2, "cannot write ");
        snprintf(line, sizeof line, "%s >&-", commands[i]);
        expect_sentence(line, 2, "cannot write ");
        snprintf(line, sizeof line, "(%s; echo $? >code) | true; exit $(cat code)", commands[i]);
        if (run(line) != 0 || complained[0])
            fail_msg("%s | true: %s", commands[i], complained);
    }
    assert_int_equal(run("rm thresholds.json prints.lua p.json code"), 0);
}

/* ---- inputs that block: Ctrl-C ends them ---- */

static bool sleeps(pid_t child)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    const char *end = strrchr(line, ')');
    return end && end[2] == 'S';
}

static char fifo_path[96];
static int fifo_end = -1;

/* The reader has opened it and waits for its bytes. */
static bool reads_the_fifo(pid_t child)
{
    if (fifo_end < 0)
        fifo_end = open(fifo_path, O_WRONLY | O_CLOEXEC);
    assert_true(fifo_end >= 0);
    return sleeps(child);
}

static void blocked_reads_can_be_interrupted(void **state)
{
    (void)state;
    static char *const lines[][8] = {{"dbo", "run", "fifo", NULL},
                                     {"dbo", "show", "vote", "fifo", NULL},
                                     {"dbo", "eval", "veto", "--in", "fifo", NULL},
                                     {"dbo", "check", "--program", "fifo", NULL},
                                     {"dbo", "bench", "sim", "--model", "fifo", NULL}};
    snprintf(fifo_path, sizeof fifo_path, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo_path, 0600), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(run_and_interrupt(lines[i], sleeps), 130); /* while opening it */
        assert_string_equal(complained, "dbo: interrupted\n");
        assert_int_equal(run_and_interrupt(lines[i], reads_the_fifo), 130);
        assert_string_equal(complained, "dbo: interrupted\n");
        close(fifo_end);
        fifo_end = -1;
    }
    assert_int_equal(unlink(fifo_path), 0);
}

static void blocked_stdin_can_be_interrupted(void **state)
{
    (void)state;
    static char *const lines[][8] = {{"dbo", "eval", "veto", "--in", "-", NULL},
                                     {"dbo", "bench", "sim", "--model", "-", NULL},
                                     {"dbo", "run", "t.lua", "--step", NULL},
                                     {"dbo", "run", "/dev/stdin", NULL}};
    int ends[2], before = dup(STDIN_FILENO);
    put_file("t.lua", EXPERIMENT);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(run_and_interrupt(lines[i], sleeps), 130);
        assert_string_equal(complained, "dbo: interrupted\n");
    }
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    close(ends[1]);
}

/* ---- nothing half-written stays ---- */

/* How many files have a name that begins with `name`. */
static int count_files(const char *name)
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += strncmp(entry->d_name, name, strlen(name)) == 0;
    closedir(entries);
    return count;
}

static bool writes_result(pid_t child)
{
    (void)child;
    return count_files("result.json.") > 0;
}

static void signals_leave_no_half_files(void **state)
{
    (void)state;
    static char *const line[] = {"dbo", "run", "long.lua", "--json", "result.json", NULL};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    put_file("long.lua", "local dbo, tokens = require 'dbo', {}\n"
                         "for rank = 1, 2048 do tokens[rank] = 64 + rank end\n"
                         "return dbo.experiment { nodes = 256, gpus_per_node = 8, layers = 900,\n"
                         "  costs = dbo.fixed { A = 9, D = 7, M = 5, C = 7 }, enable_dbo = true,\n"
                         "  enable_expert_parallel = true, max_num_batched_tokens = 4096,\n"
                         "  max_num_seqs = 4096,\n"
                         "  batch = dbo.decode { num_tokens = tokens } }\n");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(run_and_signal(line, writes_result, numbers[i]), 128 + numbers[i]);
        assert_string_equal(complained, "dbo: interrupted\n");
        assert_int_equal(count_files("result.json"), 0);
    }
}

/* Something of the trace is on the disk: it is being written, which takes seconds. */
static bool writes_much(pid_t child)
{
    char shell[256];
    (void)child;
    snprintf(shell, sizeof shell, "test -n \"$(find '%s' -name 'long.json.dbo-*' -size +1k)\"",
             folder);
    return system(shell) == 0;
}

static void put_long_script(void)
{
    put_file("long.lua", "local dbo, tokens = require 'dbo', {}\n"
                         "for rank = 1, 64 do tokens[rank] = 64 + rank end\n"
                         "return dbo.experiment { nodes = 8, gpus_per_node = 8, layers = 120,\n"
                         "  costs = dbo.fixed { A = 9, D = 7, M = 5, C = 7 }, enable_dbo = true,\n"
                         "  enable_expert_parallel = true, max_num_batched_tokens = 4096,\n"
                         "  max_num_seqs = 4096,\n"
                         "  batch = dbo.decode { num_tokens = tokens } }\n");
}

/* A run that is interrupted while it writes ends at once: 130, 143, 129, and no file. */
static void writing_can_be_interrupted(void **state)
{
    (void)state;
    static char *const line[] = {"dbo", "run", "long.lua", "--trace", "long.json", NULL};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    put_long_script();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(run_and_signal(line, writes_much, numbers[i]), 128 + numbers[i]);
        assert_string_equal(complained, "dbo: interrupted\n");
        assert_int_equal(count_files("long.json"), 0);
    }
}

static bool reads_little(pid_t child)
{
    char bytes[4096];
    (void)child;
    if (fifo_end < 0)
        fifo_end = open(fifo_path, O_RDONLY | O_CLOEXEC);
    assert_true(fifo_end >= 0);
    return read(fifo_end, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
}

/* Nobody reads on, so that the write blocks. */
static void blocked_writes_can_be_interrupted(void **state)
{
    (void)state;
    static char *const lines[][8] = {
        {"dbo", "run", "t.lua", "--set", "layers=36", "--trace", "pipe", NULL},
        {"dbo", "check", "t.lua", "--set", "layers=36", "--trace", "pipe", NULL}};
    put_file("t.lua", EXPERIMENT); /* a trace of more than a pipe holds */
    snprintf(fifo_path, sizeof fifo_path, "%s/pipe", folder);
    assert_int_equal(mkfifo(fifo_path, 0600), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(run_and_signal(lines[i], sleeps, SIGTERM), 143); /* while opening it */
        assert_int_equal(run_and_signal(lines[i], reads_little, SIGTERM), 143);
        assert_string_equal(complained, "dbo: interrupted\n");
        close(fifo_end);
        fifo_end = -1;
    }
    assert_int_equal(unlink(fifo_path), 0);
}

/* ---- the stack ---- */

/* At 16 KiB what the loader and a sanitizer need beside the environment is most of it. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LEAST_KIB 64
#else
#define LEAST_KIB 16
#endif

static void a_small_stack_is_enough(void **state)
{
    (void)state;
    static const char *const lines[] = {"run t.lua",
                                        "run t.lua --executor thread",
                                        "check t.lua --set layers=4",
                                        "show vote t.lua",
                                        "explain ubatch",
                                        "doctor",
                                        "help run",
                                        "scripts",
                                        "faults",
                                        "completion bash",
                                        "bench handoff",
                                        "bench sim --ranks 2 --runs 1",
                                        "check --program p.json",
                                        "eval thresholds --in thresholds.json"};
    put_file("t.lua", EXPERIMENT);
    assert_int_equal(run("cp " DBO_SOURCE_DIR "/tests/golden/thresholds.json . && "
                         "dbo show program t.lua --json >p.json"),
                     0);
    for (int kib = LEAST_KIB; kib <= 256; kib *= 4) {
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            char line[512];
            /* the environment, whatever it holds, goes first: it would stand on the stack */
            snprintf(line, sizeof line, "exec env -i sh -c \"ulimit -s %d; exec '%s' %s\"", kib,
                     DBO_PROGRAM, lines[i]);
            int code = run(line);
            if (code != 0 || !printed[0])
                fail_msg("%s: exit code %d, said: %s", line, code, complained);
        }
    }
}

static void a_file_that_may_not_grow_is_a_sentence(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT);
    expect_sentence("ulimit -f 1; dbo run t.lua --trace trace.json", 2,
                    "trace.json: File too large");
    assert_int_equal(count_files("trace.json"), 0);
}

/* ---- where outputs go ---- */

static void links_are_followed(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT);
    assert_int_equal(run("mkdir d && ln -s d/later.json link && dbo run t.lua --json link >text && "
                         "test -L link && test -f d/later.json && "
                         "dbo run t.lua --json link >text && test -L link && "
                         "dbo run t.lua --json - | cmp - d/later.json && rm -r d link"),
                     0);
    expect_sentence("ln -s loop loop; dbo run t.lua --json loop", 2,
                    "cannot write loop: Too many levels of symbolic links");
    /* Another name of the standard output is the standard output: the document alone. */
    assert_int_equal(run("dbo run t.lua --json - >a; dbo run t.lua --json /dev/stdout >b; "
                         "dbo run t.lua --json c >c; cmp a b && cmp a c"),
                     0);
    assert_int_equal(run("rm -f a b c loop text"), 0);
}

static void outputs_must_differ_and_have_something_to_hold(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT);
    put_file("prints.lua", "print('hello')\n");
    expect_sentence("dbo run t.lua --json x --trace x", 2, "--json and --trace both write x");
    expect_sentence("dbo run t.lua --json x --trace ./x", 2, "--json and --trace both write ./x");
    expect_sentence("dbo run t.lua --json - --trace /dev/stdout", 2,
                    "cannot both go to the standard output");
    expect_sentence("dbo check t.lua --json x --trace ./x", 2, "--json and --trace both write ./x");
    expect_sentence("dbo run prints.lua --json x", 1, "there is nothing for --json");
    assert_string_equal(printed, "hello\n");
    expect_sentence("dbo run prints.lua --trace x", 1, "there is nothing for --trace");
    expect_sentence("dbo run prints.lua --step", 1, "there is nothing for --step");
    expect_sentence("dbo run prints.lua --layers 2:3", 1, "there is nothing for --layers");
    assert_int_equal(run("dbo run prints.lua"), 0);
    assert_int_equal(count_files("x"), 0);
}

/* ---- --set: a malformed word is the command line's, everything else is like in a script ---- */

static void overrides_end_like_scripts(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT);
    expect_sentence("dbo run t.lua --set nodes", 2, "--set nodes: a setting is written KEY=VALUE");
    expect_sentence("dbo run t.lua --set =4", 2, "--set =4: a setting is written KEY=VALUE");
    expect_sentence("dbo run t.lua --set enable_dob=true", 1, "enable_dob");
    expect_sentence("dbo run t.lua --set parallel_config.enable_dob=true", 1,
                    "unknown key 'enable_dob' in parallel_config");
    expect_sentence("dbo run t.lua --set cache_config.enable_dbo=true", 1,
                    "enable_dbo is a key of parallel_config, not of cache_config");
    expect_sentence("dbo run t.lua --set ubatch_size=many", 1, "ubatch_size must be an integer");
    expect_sentence("dbo run t.lua --set parallel_config.ubatch_size=many", 1,
                    "ubatch_size must be an integer");
    expect_sentence("dbo run t.lua --set batch.numtokens=4", 1, "numtokens");
    expect_sentence("dbo run t.lua --set model.layer=4", 1, "unknown key 'layer'");
    assert_int_equal(run("dbo run t.lua --set parallel_config.dbo_decode_token_threshold=4000 | "
                         "grep -c 'no split'"),
                     0);
}

/* ---- texts of others ---- */

static void texts_of_scripts_cannot_command_the_terminal(void **state)
{
    (void)state;
    put_file("t.lua", "error('a\\27[31mb\\nc\\127d\\194\\155e' .. string.rep('x', 5000), 0)\n");
    assert_int_equal(run("dbo run t.lua"), 1);
    assert_null(strpbrk(complained, "\x1b\x7f"));
    assert_null(strstr(complained, "\xc2\x9b"));
    assert_memory_equal(complained, "dbo: a?[31mb c?d?exxx", 21);
    assert_true(strlen(complained) < 600);
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
}

static void names_of_scripts_cannot_either(void **state)
{
    (void)state;
    put_file(
        "t.lua",
        "local dbo = require 'dbo'\n"
        "local layer = function(u) u.op('A0') u.op('A1')\n"
        "  u.yield_and_switch_from_compute_to_comm()\n"
        "  u.finish(u.post('dispatch')) u.switch_to_compute_sync() u.op('MLP')\n"
        "  u.yield_and_switch_from_compute_to_comm() u.finish(u.post('combine'))\n"
        "  u.yield_and_switch_from_comm_to_compute()\n"
        "end\n"
        "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, layers = 2,\n"
        "  enable_dbo = true, all2all_backend = 'deepep_high_throughput',\n"
        "  costs = dbo.fixed { A = 90, M = 40, D = 70, C = 240 },\n"
        "  schedule = dbo.schedule { name = '\27[31mred\7', num_ubatches = 2, layer = layer },\n"
        "  batch = dbo.decode { num_tokens = 64, context_len = 32 } }\n");
    static const char *const commands[] = {"dbo run t.lua", "dbo show program t.lua"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(commands[i]), 0);
        assert_non_null(strstr(printed, "?[31mred?"));
        assert_null(strpbrk(printed, "\x1b\a"));
    }
}

static void a_script_may_begin_with_a_mark_or_a_line_for_the_kernel(void **state)
{
    (void)state;
    put_file("t.lua", "\xef\xbb\xbf#!/usr/bin/env -S dbo run\nprint('runs')\n");
    assert_int_equal(run("dbo run t.lua"), 0);
    assert_string_equal(printed, "runs\n");
    put_file("t.lua", "\xef\xbb\xbfprint('runs')\n");
    assert_int_equal(run("dbo run t.lua"), 0);
    put_file("t.lua", "#!dbo\nlocal x = = 1\n");
    expect_sentence("dbo run t.lua", 1, "t.lua:2: ");
    put_file("t.lua", "#!dbo");
    expect_sentence("dbo run t.lua", 1, "it must return an experiment");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_says_that_its_output_failed),
        cmocka_unit_test(blocked_reads_can_be_interrupted),
        cmocka_unit_test(blocked_stdin_can_be_interrupted),
        cmocka_unit_test(signals_leave_no_half_files),
        cmocka_unit_test(writing_can_be_interrupted),
        cmocka_unit_test(blocked_writes_can_be_interrupted),
        cmocka_unit_test(a_small_stack_is_enough),
        cmocka_unit_test(a_file_that_may_not_grow_is_a_sentence),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(outputs_must_differ_and_have_something_to_hold),
        cmocka_unit_test(overrides_end_like_scripts),
        cmocka_unit_test(texts_of_scripts_cannot_command_the_terminal),
        cmocka_unit_test(names_of_scripts_cannot_either),
        cmocka_unit_test(a_script_may_begin_with_a_mark_or_a_line_for_the_kernel),
    };
    return cmocka_run_group_tests_name("cli_io", tests, make_folder, remove_folder);
}
