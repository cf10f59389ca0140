/* test_step.c: `dbo run --step` and `--layers`, driven through pipes; a step's two log lines. */
#include "viz/text/layers.h"

#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include <cmocka.h>

#define DECODE  DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua"
#define PREFILL DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-prefill.lua"

static char printed[1 << 18];

/* Runs a shell line, in which dbo is the built command; returns its exit code. */
static int run(const char *line)
{
    char shell[2048];
    snprintf(shell, sizeof shell,
             "unset DBO_LOG VLLM_DBO_COMM_SMS; COLUMNS=100; dbo() { '%s' \"$@\"; }; { %s; } 2>&1",
             DBO_PROGRAM, line);
    FILE *pipe = popen(shell, "r");
    assert_non_null(pipe);
    printed[fread(printed, 1, sizeof printed - 1, pipe)] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static size_t count(const char *words)
{
    size_t found = 0;
    for (const char *at = printed; (at = strstr(at, words)); at++)
        found++;
    return found;
}

static double number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    assert_non_null(at);
    return strtod(at + strlen(words), NULL);
}

/* ---- --layers ---- */

static void layers_are_read(void **state)
{
    (void)state;
    dbo_layers layers;
    static const char *const bad[] = {"", ":", "5:", ":5", "5:4", "a", "1:2:3", "-1", "1024", " 1"};
    assert_int_equal(dbo_layers_parse("4:6", &layers, NULL), DBO_OK);
    assert_true(layers.given && layers.first == 4 && layers.last == 6);
    assert_int_equal(dbo_layers_parse("0", &layers, NULL), DBO_OK);
    assert_true(layers.first == 0 && layers.last == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dbo_layers_parse(bad[i], &layers, NULL), DBO_INVALID);
    assert_int_equal(dbo_layers_check(&(dbo_layers){true, 0, 6}, 7, NULL), DBO_OK);
    assert_int_equal(dbo_layers_check(&(dbo_layers){true, 0, 7}, 7, NULL), DBO_INVALID);
}

static void layers_are_shown(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " DECODE " --layers 4:5"), 0);
    assert_int_equal(count("Layers 4 to 5 of rank 0\n"), 1);
    /* two layers take twice the steady layer, off and on */
    double off = number_after(printed, "DBO off: "), on = number_after(printed, "DBO on: ");
    const char *row = strstr(printed, "layer, steady state");
    assert_non_null(row);
    double layer_off = number_after(row, "layer, steady state");
    double layer_on = number_after(row, "µs");
    assert_true(off > 2 * layer_off - 1 && off < 2 * layer_off + 1);
    assert_true(on > 2 * layer_on - 1 && on < 2 * layer_on + 1);
    assert_int_equal(run("dbo run " DECODE " --layers 61"), 2);
    assert_non_null(strstr(printed, "there is no layer 61: 61 run, from 0 to 60"));
}

/* ---- --step ---- */

/* Each line of input is one hand-off; q, or the end of the input, is the end. */
static void a_line_is_a_turn(void **state)
{
    (void)state;
    assert_int_equal(run("printf '\\n\\n\\n' | dbo run " PREFILL " --step"), 0);
    assert_int_equal(count("turn "), 4);
    assert_int_equal(count("hands over to ubatch"), 4);
    assert_int_equal(run("printf '\\nq\\n\\n\\n' | dbo run " PREFILL " --step"), 0);
    assert_int_equal(count("turn "), 2);
    assert_int_equal(run("dbo run " PREFILL " --step </dev/null"), 0);
    assert_int_equal(count("turn "), 1);
    assert_int_equal(count("whole batch"), 0); /* though one ubatch alone has issued so far */
}

/* HT and LL, turn by turn, as the two schedules are described. */
static void turns_are_the_schedules(void **state)
{
    (void)state;
    assert_int_equal(run("yes '' | dbo run " PREFILL " --step --ascii --set layers=5 --layers 4"),
                     0);
    assert_int_equal(count("issues on compute  A0_0, A1_0, q_0\n"), 1);
    assert_int_equal(count("issues on compute  A0_1, A1_1, q_1\n"), 1);
    assert_int_equal(count("  issues on compute  h2d_0, MLP_0, red_0\n"
                           "  issues on comm     lay_0, D_0\n"),
                     1);
    assert_int_equal(count("  issues on compute  S_1\n"
                           "  issues on comm     C_1, cp_1\n"),
                     1);
    assert_int_equal(run("yes '' | dbo run " DECODE " --step --ascii --set layers=6 --layers 4:5"),
                     0);
    assert_int_equal(count("these are the turns of its capture"), 1);
    assert_int_equal(count("issues on compute  A0_0, A1_0, C_1 recv, D_0 send\n"), 2);
    assert_int_equal(count("issues on compute  A0_1, A1_1, D_0 recv, D_1 send\n"), 2);
    assert_int_equal(count("issues on compute  MLP_0, D_1 recv, C_0 send, S_0\n"), 2);
    assert_int_equal(count("issues on compute  MLP_1, C_0 recv, C_1 send, S_1\n"), 2);
}

/* Turns are told apart also where the host takes no time at all; both executors. */
static void free_hosts_take_turns(void **state)
{
    (void)state;
    static const char *const script =
        "printf '%%s' \"local dbo = require 'dbo' return dbo.experiment { nodes = 1,"
        " gpus_per_node = 8, layers = 3, enable_expert_parallel = true, enable_dbo = true,"
        " costs = dbo.fixed { A = 9, D = 7, M = 5, C = 7 },"
        " batch = dbo.decode { num_tokens = 64 } }\" >%s/t.lua; "
        "yes '' | dbo run %s/t.lua --step --executor %s";
    char folder[] = "/tmp/dbo-test-step-XXXXXX", line[1024];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, script, folder, folder, i ? "thread" : "fiber");
        assert_int_equal(run(line), 0);
        assert_int_equal(count("turn "), 14); /* 2 ubatches, 3 layers of 2 yields, and an end */
        assert_int_equal(count("issues on compute  MLP₀"), 3);
        assert_int_equal(count("was the last: all ubatches have ended"), 1);
    }
    snprintf(line, sizeof line, "rm -r %s", folder);
    assert_int_equal(run(line), 0);
}

/* Reads what the terminal shows until `words` have come; false at its end. */
static bool read_until(int terminal, const char *words)
{
    size_t used = 0;
    for (;;) {
        ssize_t got = read(terminal, printed + used, sizeof printed - 1 - used);
        if (got <= 0)
            return false;
        used += (size_t)got;
        printed[used] = '\0';
        if (strstr(printed, words))
            return true;
    }
}

/* Keys one by one, without Enter; afterwards the terminal is as it was, also after Ctrl-C and a
 * hang-up. */
static void terminal_is_put_back(void **state)
{
    (void)state;
    static const char *const prompt = "(any key: the next turn, q: end)";
    static const int codes[] = {0, 130, 129};
    for (int end_by = 0; end_by < 3; end_by++) {
        int terminal = -1, end = -1, status = 0;
        struct termios before, during, after;
        assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
        assert_int_equal(tcgetattr(end, &before), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            login_tty(end);
            execl(DBO_PROGRAM, "dbo", "run", PREFILL, "--step", (char *)NULL);
            _exit(98);
        }
        assert_true(read_until(terminal, prompt));
        assert_int_equal(tcgetattr(end, &during), 0);
        assert_true((during.c_lflag & ICANON) == 0 && (during.c_lflag & ECHO) == 0);
        assert_int_equal(write(terminal, "x", 1), 1);
        assert_true(read_until(terminal, prompt));
        assert_non_null(strstr(printed, "turn 2 of"));
        if (end_by == 2)
            assert_int_equal(kill(child, SIGHUP), 0);
        else
            assert_int_equal(write(terminal, end_by ? "\003" : "q", 1), 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), codes[end_by]);
        assert_int_equal(tcgetattr(end, &after), 0);
        assert_int_equal(after.c_lflag, before.c_lflag);
        close(terminal);
        close(end);
    }
}

/* What a shell does: a foreground job of its own, which it continues when it has stopped; whether
 * the terminal was put back by then is in what it prints. Exits with the job's exit code. */
static _Noreturn void be_a_shell(int end)
{
    int status = 0;
    struct termios then;
    login_tty(end);
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        execl(DBO_PROGRAM, "dbo", "run", PREFILL, "--step", (char *)NULL);
        _exit(98);
    }
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        bool whole = tcgetattr(STDIN_FILENO, &then) == 0 && (then.c_lflag & ICANON) != 0 &&
                     (then.c_lflag & ECHO) != 0;
        dprintf(STDOUT_FILENO, whole ? "job stopped, terminal put back\n" : "job stopped, raw\n");
        kill(-job, SIGCONT);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
}

/* Ctrl-Z puts the terminal back, and going on takes it again, as often as one likes. */
static void stopping_puts_the_terminal_back(void **state)
{
    (void)state;
    static const char *const prompt = "(any key: the next turn, q: end)";
    int terminal = -1, end = -1, status = 0;
    struct termios during;
    assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    pid_t shell = fork();
    assert_true(shell >= 0);
    if (shell == 0)
        be_a_shell(end);
    assert_true(read_until(terminal, prompt));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(write(terminal, "\032", 1), 1);
        assert_true(read_until(terminal, "job stopped, "));
        assert_true(strstr(printed, "put back") || read_until(terminal, "put back"));
        do { /* it goes on by itself */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            assert_int_equal(tcgetattr(end, &during), 0);
        } while ((during.c_lflag & ICANON) != 0);
        assert_int_equal(write(terminal, "x", 1), 1);
        assert_true(read_until(terminal, prompt));
    }
    assert_int_equal(write(terminal, "q", 1), 1);
    assert_int_equal(waitpid(shell, &status, 0), shell);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(tcgetattr(end, &during), 0);
    assert_true((during.c_lflag & ICANON) != 0 && (during.c_lflag & ECHO) != 0);
    close(terminal);
    close(end);
}

static void not_split_says_so(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " DECODE " --set enable_dbo=false --step </dev/null"), 0);
    assert_non_null(strstr(printed, "not split: there are no hand-offs"));
}

static void mistakes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--step --json -", "--step prints to the standard output, which --json takes"},
        {"--trace - --json -", "--json and --trace cannot both go to the standard output"},
        {"--layers 5:4", "--layers is A or A:B with A <= B < "},
        {"--executor green", "--executor is fiber or thread, not 'green'"},
        {"--trace /no/folder/t.json", "cannot write /no/folder/t.json"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[512];
        snprintf(line, sizeof line, "dbo run " DECODE " %s </dev/null", rows[i][0]);
        assert_int_equal(run(line), 2);
        if (!strstr(printed, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], printed);
    }
}

/* ---- the log ---- */

/* vLLM's two lines, word for word, once a step (the first one captures, the second is measured). */
static void log_lines_are_vllms(void **state)
{
    (void)state;
    assert_int_equal(run("dbo run " DECODE " --set nodes=1 --set data_parallel_size=8"
                         " --set layers=4 --set model.num_experts=8 --set model.topk=2 --set "
                         "model.topk_groups=0 --set batch.num_tokens=65"
                         " --log vote=debug,slice=debug >/dev/null"),
                     0);
    assert_int_equal(
        count("Running batch with cudagraph_mode: FULL, batch_descriptor: "
              "BatchDescriptor(num_tokens=72, num_reqs=72, uniform=True, has_lora=False), "
              "should_ubatch: True, num_tokens_across_dp: tensor([72, 72, 72, 72, 72, 72, 72, "
              "72], dtype=torch.int32)\n"),
        2);
    assert_int_equal(
        count("ubatch_slices: [UBatchSlice(request_slice=slice(0, 36, None), "
              "token_slice=slice(0, 36, None)), UBatchSlice(request_slice=slice(36, 65, None), "
              "token_slice=slice(36, 65, None))], ubatch_slices_padded: "
              "[UBatchSlice(request_slice=slice(0, 36, None), token_slice=slice(0, 36, None)), "
              "UBatchSlice(request_slice=slice(36, 72, None), token_slice=slice(36, 72, "
              "None))]\n"),
        2);
    assert_int_equal(run("dbo run " DECODE " --set batch.num_tokens=8 --log debug >/dev/null"), 0);
    assert_int_equal(count("should_ubatch: False"), 2);
    assert_int_equal(count("ubatch_slices: None, ubatch_slices_padded: None\n"), 2);
    assert_int_equal(run("dbo run " DECODE " >/dev/null"), 0);
    assert_string_equal(printed, "");
}

/* vLLM's variable is the default of dbo_comm_sms: a script or --set has the last word. */
static void comm_sms_of_the_environment(void **state)
{
    (void)state;
    static const char *const two =
        DBO_SOURCE_DIR "/scripts/workloads/deepseek-v2-lite-two-ranks.lua --set layers=3"
                       " --set all2all_backend=deepep_high_throughput --log a2a=info >/dev/null";
    char line[1024];
    snprintf(line, sizeof line, "dbo run %s", two);
    assert_int_equal(run(line), 0);
    assert_int_equal(count("comm SMs: 20 of 132 while ubatches ran, 20 of them afterwards\n"), 2);
    snprintf(line, sizeof line, "export VLLM_DBO_COMM_SMS=16; dbo run %s", two);
    assert_int_equal(run(line), 0);
    assert_int_equal(count("comm SMs: 16 of 132 while ubatches ran"), 2);
    snprintf(line, sizeof line, "export VLLM_DBO_COMM_SMS=16; dbo run --set dbo_comm_sms=8 %s",
             two);
    assert_int_equal(run(line), 0);
    assert_int_equal(count("comm SMs: 8 of 132 while ubatches ran"), 2);
    snprintf(line, sizeof line, "export VLLM_DBO_COMM_SMS=many; dbo run %s", two);
    assert_int_equal(run(line), 1);
    assert_non_null(strstr(printed, "VLLM_DBO_COMM_SMS: dbo_comm_sms must be an integer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_read),
        cmocka_unit_test(layers_are_shown),
        cmocka_unit_test(a_line_is_a_turn),
        cmocka_unit_test(turns_are_the_schedules),
        cmocka_unit_test(free_hosts_take_turns),
        cmocka_unit_test(terminal_is_put_back),
        cmocka_unit_test(stopping_puts_the_terminal_back),
        cmocka_unit_test(not_split_says_so),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(log_lines_are_vllms),
        cmocka_unit_test(comm_sms_of_the_environment),
    };
    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
