/* test_script_limits.c: scripts that somebody sent, as a user runs them: how the command ends, with
 * which sentence, in how much memory and time (tests/app/sandbox has those that came as files). */
#include "tests/support/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#else
#define SANITIZED false
#endif
#define MAX_ARGUMENTS 8
#define SLACK_S       3.0 /* of CPU time, over the limit of a script and for all else */
#define AT_WORK_NS    400000000L
#define PIPE_BYTES    65536 /* that a pipe holds */
#define SOON_S        1.5   /* after Ctrl-C: 0.2 s, on a machine that has much else to do */

typedef struct ended {
    int code; /* -1: a signal */
    double cpu_s;
    long kib; /* its largest size */
    char text[4096];
} ended;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Starts dbo with the words of `arguments` and the script; what it prints goes to `out`. */
static pid_t start(const char *arguments, const char *script, rlim_t stack_bytes, int out)
{
    char words[128], *argv[MAX_ARGUMENTS + 3] = {(char *)(uintptr_t)DBO_PROGRAM};
    int count = 1;
    snprintf(words, sizeof words, "%s", arguments);
    for (char *word = strtok(words, " "); word && count <= MAX_ARGUMENTS; word = strtok(NULL, " "))
        argv[count++] = word;
    argv[count] = (char *)(uintptr_t)script;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    struct rlimit stack = {stack_bytes, stack_bytes};
    if (stack_bytes > 0)
        (void)setrlimit(RLIMIT_STACK, &stack);
    if (dup2(out, STDOUT_FILENO) < 0 || (fcntl(out, F_GETFL) & O_NONBLOCK) != 0 ||
        dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    execv(DBO_PROGRAM, argv);
    _exit(127);
}

static ended run_dbo(const char *arguments, const char *script, rlim_t stack_bytes)
{
    ended e = {0};
    int status = 0, out = open(path_of("out").text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct rusage used;
    assert_true(out >= 0);
    pid_t child = start(arguments, script, stack_bytes, out);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    e.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    e.cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
              (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    e.kib = used.ru_maxrss;
    ssize_t length = pread(out, e.text, sizeof e.text - 1, 0);
    assert_true(length >= 0);
    close(out);
    return e;
}

/* `script`: a file of tests/app/sandbox, or a text; how much it may compute, its limit of memory
 * (0: the usual), the limit of the stack (0: ours). */
static void check(const char *arguments, const char *script, int code, const char *words,
                  double cpu_s, long mib, rlim_t stack_kib)
{
    char path[512];
    bool is_file = !strpbrk(script, " \n(");
    if (!is_file)
        put_file("t.lua", script);
    snprintf(path, sizeof path, DBO_SOURCE_DIR "/tests/app/sandbox/%s.lua", script);
    ended e = run_dbo(arguments, is_file ? path : path_of("t.lua").text, stack_kib << 10);
    long kib = (mib > 0 ? mib : 256) * 1024 * 3 / 2;
    if (e.code != code || !strstr(e.text, words))
        fail_msg("%.60s: exit code %d: %.400s", script, e.code, e.text);
    if (!SANITIZED && (e.kib > kib || e.cpu_s > cpu_s + SLACK_S))
        fail_msg("%.60s: %ld KiB of %ld, %.1f s of %.1f", script, e.kib, kib, e.cpu_s,
                 cpu_s + SLACK_S);
}

#define CHECK(...) CHECK_ALL(__VA_ARGS__, 0, 0, 0)
#define CHECK_ALL(arguments, script, code, words, cpu_s, mib, stack_kib, ...) \
    check(arguments, script, code, words, cpu_s, mib, stack_kib)

static void memory_has_one_budget(void **state)
{
    (void)state;
    const char *words = "the script needs more than 48 MiB of memory";
    const char *run = "run --memory-limit 48 --time-limit 60";
    CHECK(run, "mem-title", 1, words, 60, 48);
    CHECK(run, "mem-tables", 1, words, 60, 48);
    CHECK(run, "mem-schedules", 0, words, 60, 48); /* it catches, prints and ends */
    CHECK(run, "mem-op-names", 1, "it must return an experiment", 60, 48);
    /* Buffers' names; holes between small pieces that no large one fits into. */
    CHECK(run,
          "local dbo = require 'dbo'\n"
          "local s = ('x'):rep(1 << 20)\n"
          "dbo.schedule { name = 'x', layer = function(u)\n"
          "  for i = 1, 1e4 do u.alloc(s .. i) end end }\n",
          1, words, 60, 48);
    CHECK(run,
          "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(200) .. i\n"
          "  if i % 60000 == 0 then for k = i - 59999, i do\n"
          "    if k % 16 ~= 0 then t[k] = nil end end end end\n",
          1, words, 60, 48);
    /* What goes leaves its room to others. */
    CHECK(run,
          "local dbo = require 'dbo'\n"
          "local s = ('x'):rep(8 << 20)\n"
          "for i = 1, 40 do dbo.table { columns = { 'a' }, title = s } end print('fine')\n",
          0, "fine", 60, 48);
}

static void a_file_is_kept_once(void **state)
{
    (void)state;
    char text[8192];
    size_t length = (size_t)snprintf(text, sizeof text, "-- ");
    memset(text + length, 'x', 4096);
    snprintf(text + length + 4096, sizeof text - length - 4096,
             "\nreturn require('dbo').experiment { gpus_per_node = 2,\n"
             "  enable_expert_parallel = true, costs = require('dbo').fixed { A = 9, D = 7 },\n"
             "  batch = require('dbo').decode { num_tokens = 8 } }\n");
    put_file("big.lua", text);
    CHECK("run --memory-limit 16 --time-limit 60",
          "local dbo = require 'dbo' local p = 'big.lua'\n"
          "for i = 1, 1500 do p = './' .. p dbo.load(p) if #p > 2000 then p = 'big.lua' end end\n"
          "print('fine')\n",
          0, "fine", 60, 16);
}

static void requests_count(void **state)
{
    (void)state;
    FILE *file = fopen(path_of("r.jsonl").text, "w");
    assert_non_null(file);
    fputs("{\"input_ids\":[1", file);
    for (int i = 0; i < 4000000; i++)
        fputs(",1", file);
    fputs("]}\n", file);
    assert_int_equal(fclose(file), 0);
    CHECK("run --memory-limit 64", "require('dbo').requests('r.jsonl')", 1,
          "the script needs more than 64 MiB of memory", 5, 64);
    CHECK("run --memory-limit 16", "s = ('x'):rep(4 << 20) require('dbo').requests('r.jsonl')", 1,
          "r.jsonl needs more memory than the script has left", 5, 64);
}

static void runs_are_bounded(void **state)
{
    (void)state;
    CHECK("run", "run-without-limit", 1, "the run needs about 163348 MiB of memory, more than", 5);
    CHECK("run --time-limit 2", "run-forever", 1,
          "the script and its runs computed for more than 2 s, which --time-limit SECONDS sets", 2);
    const char *one =
        "local dbo = require 'dbo' local nt = {}\n"
        "for i = 1, 512 do nt[i] = 32 + i % 7 * 2 end\n"
        "return dbo.experiment { costs = dbo.fixed { A = 1, D = 3 }, layers = 9,\n"
        "  nodes = 64, data_parallel_size = 512, enable_expert_parallel = true,\n"
        "  gpus_per_node = 8, batch = dbo.decode { num_tokens = nt, jitter_us = 9 } }";
    CHECK("run --memory-limit 64", one, 1, "more than the 64 MiB it may take", 5, 64);
    CHECK("run --memory-limit 192", one, 0, "Decision", 30, 192);
    CHECK("show vote --memory-limit 16", one, 1, "more than the 16 MiB it may take", 5, 64);
    CHECK("check --memory-limit 16", one, 1, "more than the 16 MiB it may take", 5, 64);
}

static void stacks_are_not_inherited(void **state)
{
    (void)state;
    static const rlim_t sizes_kib[] = {64, 512, 1024, 0};
    for (size_t i = 0; i < sizeof sizes_kib / sizeof sizes_kib[0]; i++) {
        CHECK("run", "gsub-recursion", 0, "gsub-recursion.lua:1: C stack overflow", 5, 0,
              sizes_kib[i]);
        CHECK("run --time-limit 1", "nested-schedules", 1, "nested-schedules.lua:5: the script", 1,
              0, sizes_kib[i]);
        CHECK("run", "local s = ('('):rep(1e5) local function f(n) return n + f(n) end\nf(1)", 1,
              "t.lua:1: stack overflow", 5, 0, sizes_kib[i]);
    }
}

/* In the parser, too: by itself it gives none of these. */
static void errors_have_a_place(void **state)
{
    (void)state;
    static char text[1 << 20];
    size_t at = (size_t)snprintf(text, sizeof text, "local a =\n");
    for (int i = 0; i < 250; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", "(\n");
    put_file("t.lua", text);
    ended e = run_dbo("run", path_of("t.lua").text, 0);
    assert_non_null(strstr(e.text, "t.lua:19"));
    assert_non_null(strstr(e.text, "C stack overflow"));
    at = (size_t)snprintf(text, sizeof text, "local a\n");
    for (int i = 0; i < 33000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "::l%d:: a = 1\n", i);
    put_file("t.lua", text);
    e = run_dbo("run --time-limit 60", path_of("t.lua").text, 0);
    assert_non_null(strstr(e.text, "t.lua:32769: too many labels/gotos"));
    put_file("t.lua", "");
    e = run_dbo("run", path_of("t.lua").text, 0);
    assert_non_null(strstr(e.text, "t.lua returns nothing"));
    CHECK("run", "print(select(2, pcall(string.rep)))\nerror('as it is', 0)", 1, "dbo: as it is",
          5);
}

#define X48 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* What is read of a table stays as it was read, whatever a script does to it meanwhile. */
static void keys_and_rows_stay(void **state)
{
    (void)state;
    CHECK("run", "uaf-tostring", 0, "\nx                 ", 5);
    CHECK("run",
          "local dbo = require 'dbo'\n"
          "local k = ('x'):rep(14 << 20) k = k .. k .. k\n"
          "for _, f in ipairs { dbo.experiment, dbo.decode, dbo.table, dbo.schedule } do\n"
          "  print(pcall(f, { [k] = 1 })) k = k .. 1 end\n",
          0, "t.lua:4: unknown key '" X48 "' in dbo.schedule\n", 5);
    CHECK("run",
          "local dbo = require 'dbo'\n"
          "local t, row = dbo.table { columns = { 'aa', 'bb', 'cc' } }, {}\n"
          "local bad = setmetatable({}, { __tostring = function()\n"
          "  for k in pairs(row) do row[k] = nil end t:add { 'in' }\n"
          "  for i = 1, 1e5 do local x = { ('q'):rep(9) .. i } end return 'y' end })\n"
          "row.aa, row.bb, row.cc = bad, bad, bad\n"
          "t:add(row) t:print()\n",
          0, "aa  bb  cc\n──  ──  ──\ny    -   -\nin   -   -\n", 5);
    /* A text of a table has half of what is left. */
    const char *wide = "local dbo, c, r = require 'dbo', {}, {}\n"
                       "for i = 1, 60 do c[i], r[i] = 'c' .. i, ('w'):rep(250) end\n"
                       "local t = dbo.table { columns = c }\n"
                       "for i = 1, 4000 do t:add(i == 7 and r or {}) end\n"
                       "t:%s() print 'fine'";
    static const char *const methods[] = {"print", "csv"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, wide, methods[i]);
        CHECK("run --memory-limit 48", text, i == 0,
              i == 0 ? "t.lua:5: a table's text needs more memory than the script has left"
                     : "fine",
              5, 48);
    }
}

/* ---- Ctrl-C ---- */

/* It has computed for a while, or waits because the pipe that it prints into is full. */
static bool is_at_work(pid_t child, int pipe)
{
    clockid_t clock;
    struct timespec used = {0};
    int waiting = 0;
    assert_int_equal(clock_getcpuclockid(child, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    assert_int_equal(ioctl(pipe, FIONREAD, &waiting), 0);
    return used.tv_sec > 0 || used.tv_nsec > AT_WORK_NS || waiting == PIPE_BYTES;
}

static void check_interrupted(const char *arguments, const char *script, int pipe, int out)
{
    int status = 0;
    put_file("t.lua", script);
    pid_t child = start(arguments, path_of("t.lua").text, 0, out);
    while (!is_at_work(child, pipe)) {
        if (waitpid(child, &status, WNOHANG) == child)
            fail_msg("%.60s: ended by itself, status %x", script, (unsigned)status);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    double begin = now_s();
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    double seconds = now_s() - begin;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 130)
        fail_msg("%.60s: status %x", script, (unsigned)status);
    if (seconds > SOON_S && !SANITIZED)
        fail_msg("%.60s: interrupted, it went on for %.2f s", script, seconds);
}

static void interruption_is_at_once(void **state)
{
    (void)state;
    static char labels[8 << 20];
    int ends[2], full[2], none[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    size_t at = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* which nobody reads */
    assert_int_equal(pipe2(full, O_CLOEXEC), 0);
    assert_int_equal(pipe2(none, O_CLOEXEC), 0);
    for (int block = 0; block < 12; block++) {
        at += (size_t)snprintf(labels + at, sizeof labels - at, "do local a ");
        for (int i = 0; i < 30000; i++)
            at += (size_t)snprintf(labels + at, sizeof labels - at, "::l%d:: a=1 ", i);
        at += (size_t)snprintf(labels + at, sizeof labels - at, "end\n");
    }
    check_interrupted("run", "while true do print(('x'):rep(1000)) end", ends[0], ends[1]);
    check_interrupted("run", "print(('x'):rep(9000000))", full[0], full[1]);
    check_interrupted("run --memory-limit 20000",
                      "local dbo = require 'dbo' local nt = {}\n"
                      "for i = 1, 2048 do nt[i] = 32 + i % 7 * 2 end\n"
                      "local e = dbo.experiment { costs = dbo.fixed { A = 1, D = 3 }, layers = 9,\n"
                      "  nodes = 256, data_parallel_size = 2048, gpus_per_node = 8,\n"
                      "  enable_expert_parallel = true,\n"
                      "  batch = dbo.decode { num_tokens = nt, jitter_us = 9 } }\n"
                      "while true do dbo.run(e) end",
                      none[0], null);
    check_interrupted("run --time-limit 100", labels, none[0], null);
    check_interrupted("run", "local s = ('a'):rep(1e5) return s:find(('.-'):rep(40) .. 'b')",
                      none[0], null);
    close(ends[0]);
    close(ends[1]);
    close(full[0]);
    close(full[1]);
    close(none[0]);
    close(none[1]);
    close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_has_one_budget),    cmocka_unit_test(a_file_is_kept_once),
        cmocka_unit_test(requests_count),           cmocka_unit_test(runs_are_bounded),
        cmocka_unit_test(stacks_are_not_inherited), cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(keys_and_rows_stay),       cmocka_unit_test(interruption_is_at_once),
    };
    return cmocka_run_group_tests_name("script_limits", tests, make_folder, remove_folder);
}
