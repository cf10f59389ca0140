/* test_sandbox.c: a runaway of each kind ends with one sentence soon after its limit, also when it
 * sits inside a C function of Lua's library, catches errors or hides in a finalizer. */
#include "app/lua/lua_sandbox.h"
#include "tests/support/folder.h"

#include <fcntl.h>
#include <lua.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CPU_MS  200
#define SLACK_S 20.0 /* over the limit: a second of grace, and a machine with much else to do */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs a text as t.lua under small limits; *seconds is how long that took. */
static dbo_status run(const char *text, uint32_t cpu_ms, bool (*cancelled)(void *), dbo_error *err,
                      double *seconds)
{
    const dbo_sandbox_limits limits = {.cpu_ms = cpu_ms,
                                       .memory_bytes = (size_t)80 << 20,
                                       .instructions = 3000000,
                                       .cancelled = cancelled};
    dbo_sandbox *box = dbo_sandbox_create(&limits, err);
    assert_non_null(box);
    put_file("t.lua", text);
    double begin = now_s();
    dbo_status status = dbo_sandbox_load_file(box, path_of("t.lua").text, err);
    if (status == DBO_OK)
        status = dbo_sandbox_call(box, 0, 0, err);
    *seconds = now_s() - begin;
    dbo_sandbox_destroy(box);
    return status;
}

static void expect_end_by(const char *text, uint32_t cpu_ms, dbo_status status, const char *words)
{
    dbo_error err = {0};
    double seconds = 0;
    dbo_status got = run(text, cpu_ms, NULL, &err, &seconds);
    if (got != status || !strstr(err.message, words))
        fail_msg("%s\ngave %s: %s", text, dbo_status_name(got), err.message);
    assert_true(seconds < cpu_ms / 1000.0 + SLACK_S);
    assert_null(strchr(err.message, '\n'));
}

static void expect_end(const char *text, dbo_status status, const char *words)
{
    expect_end_by(text, 0, status, words);
}

static void expect_timeout(const char *text, const char *words)
{
    expect_end_by(text, CPU_MS, DBO_LIMIT, words);
}

static void loops_end(void **state)
{
    (void)state;
    const char *sentence = "t.lua:1: the script ran more than 3 million instructions";
    expect_end("while true do end", DBO_LIMIT, sentence);
    expect_end("while true do pcall(function() while true do end end) end", DBO_LIMIT, sentence);
    expect_end("xpcall(function() while true do end end, function() while true do end end)",
               DBO_LIMIT, sentence);
    expect_end("goto l ::l:: goto l", DBO_LIMIT, "million instructions");
}

static void handlers_of_xpcall_work(void **state)
{
    (void)state;
    expect_end("local ok, text = xpcall(function(a) error(a .. 'b', 0) end,\n"
               "  function(e) return e .. 'c' end, 'a')\n"
               "local yes, one, two = xpcall(select, print, 2, 'x', 'y', 'z')\n"
               "error(tostring(ok) .. text .. tostring(yes) .. one .. two)",
               DBO_INVALID, "t.lua:4: falseabctrueyz");
}

static void memory_ends(void **state)
{
    (void)state;
    const char *sentence = "t.lua: the script needs more than 80 MiB of memory";
    expect_end("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end", DBO_LIMIT,
               sentence);
    expect_end("local s = 'x' while true do s = s .. s end", DBO_LIMIT, sentence);
    expect_end("local t = {} while true do t = {t, ('x'):rep(1 << 18)} end", DBO_LIMIT, sentence);
    expect_end("return ('x'):rep(1 << 40)", DBO_INVALID, "more than 16 MiB");
}

static void recursion_ends(void **state)
{
    (void)state;
    expect_end("local function f(n) return 1 + f(n + 1) end f(1)", DBO_INVALID, "stack overflow");
    expect_end("local t t = setmetatable({}, {__index = function(_, k) return t[k + 1] end})\n"
               "return t[1]",
               DBO_INVALID, "stack overflow");
    expect_end("return ('x'):gsub('x', function() return ('x'):rep(1 << 40) end)", DBO_INVALID,
               "string.rep");
}

/* Many slow operations, none of them endless: the hook ends them by time. */
static void slow_operations_end(void **state)
{
    (void)state;
    expect_timeout("local s = ('a'):rep(1 << 22) local x = 0\n"
                   "for i = 1, 1e6 do if s .. 'b' < s then x = x + 1 end end",
                   "the script computed for more than 0.2 s");
    expect_timeout("local t = {} for i = 1, 300000 do t[i] = i end\n"
                   "for i = 1, 1e6 do table.insert(t, 1, i) end",
                   "the script computed for more than 0.2 s");
}

static void finalizers_are_refused(void **state)
{
    (void)state;
    expect_end("setmetatable({}, {__gc = function() while true do end end})", DBO_INVALID,
               "t.lua:1: the tables of a script have no __gc");
    /* Set afterwards it is no finalizer, for Lua looks when the metatable is set. */
    expect_end("local m = {} for i = 1, 10 do setmetatable({}, m) end\n"
               "m.__gc = function() while true do end end error('end')",
               DBO_INVALID, "end");
    expect_end("error(getmetatable(setmetatable({}, {__metatable = 'mine'})))", DBO_INVALID,
               "mine");
    expect_end("local t = setmetatable({}, {__metatable = 1}) setmetatable(t, {})", DBO_INVALID,
               "t.lua:1: cannot change a protected metatable");
}

/* Endless inside one C function: the caller gives the script's thread up. The threads go on until
 * this program ends, so this test is the last but one. */
static void endless_library_functions_end(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "local s = ('a'):rep(100000) return s:find(('.-'):rep(40) .. 'b')",
        "local s = ('a'):rep(100000) return s:gsub(('a-'):rep(40) .. 'b', '')",
        "return table.move({1}, 1, 1 << 60, 2)",
        "pcall(table.move, {1}, 1, 1 << 60, 2)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_timeout(texts[i],
                       "t.lua: the script computed for more than 0.2 s, the last of them inside "
                       "functions of Lua's library");
}

static _Atomic double interrupted_s;

static bool is_interrupted(void *unused)
{
    (void)unused;
    return now_s() > interrupted_s;
}

static void interruption_reaches_library_functions(void **state)
{
    (void)state;
    dbo_error err = {0};
    double seconds = 0;
    interrupted_s = now_s() + 0.5; /* the parser has ended by then */
    assert_int_equal(
        run("return table.move({1}, 1, 1 << 60, 2)", 0, is_interrupted, &err, &seconds),
        DBO_CANCELLED);
    assert_string_equal(without_folder(err.message), "t.lua: the script was interrupted");
    assert_true(seconds < SLACK_S);
}

/* The command, under its own limits: one sentence, exit code 1. */
static void the_command_ends_with_code_1(void **state)
{
    (void)state;
    char path[] = "/tmp/dbo-test-sandbox-XXXXXX", command[512], line[512] = "", more[512] = "";
    int file = mkstemp(path);
    assert_true(file >= 0);
    const char *text = "return table.move({1}, 1, 1 << 60, 2)\n";
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    snprintf(command, sizeof command, "NO_COLOR=1 '%s' run %s 2>&1", DBO_PROGRAM, path);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    while (fgets(more, sizeof more, out))
        continue;
    int status = pclose(out);
    unlink(path);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_non_null(strstr(line, "the script computed for more than 5 s"));
    assert_non_null(strstr(more, "too many ways"));
}

/* Raises an error about a key, in b.lua, which has returned. */
static int complain(lua_State *L)
{
    dbo_error err = {0};
    dbo_fail_key(&err, DBO_INVALID, "beta", NULL, "no such beta");
    return dbo_sandbox_raise_in(L, lua_tostring(L, lua_upvalueindex(1)), &err);
}

/* Which file was read is known from what was open, whoever has its name since. */
static void a_file_that_is_exchanged_is_no_other(void **state)
{
    (void)state;
    dbo_error err = {0};
    const dbo_sandbox_limits limits = {0};
    dbo_sandbox *box = dbo_sandbox_create(&limits, &err);
    assert_non_null(box);
    put_file("a.lua", "return 1");
    put_file("b.lua", "\n\nlocal beta = 3\n");
    assert_int_equal(dbo_sandbox_load_file(box, path_of("b.lua").text, &err), DBO_OK);
    assert_int_equal(dbo_sandbox_call(box, 0, 0, &err), DBO_OK);
    int fd = open(path_of("a.lua").text, O_RDONLY | O_CLOEXEC);
    assert_int_equal(rename(path_of("b.lua").text, path_of("a.lua").text), 0);
    assert_int_equal(dbo_sandbox_load_open(box, fd, path_of("a.lua").text, &err), DBO_OK);
    lua_pushstring(dbo_sandbox_lua(box), path_of("b.lua").text);
    lua_pushcclosure(dbo_sandbox_lua(box), complain, 1);
    assert_int_equal(dbo_sandbox_call(box, 0, 0, &err), DBO_INVALID);
    assert_int_equal(err.line, 3);
    assert_non_null(strstr(err.message, "b.lua:3: no such beta"));
    dbo_sandbox_destroy(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_end),
        cmocka_unit_test(handlers_of_xpcall_work),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(recursion_ends),
        cmocka_unit_test(slow_operations_end),
        cmocka_unit_test(finalizers_are_refused),
        cmocka_unit_test(the_command_ends_with_code_1),
        cmocka_unit_test(endless_library_functions_end),
        cmocka_unit_test(interruption_reaches_library_functions),
        cmocka_unit_test(a_file_that_is_exchanged_is_no_other),
    };
    return cmocka_run_group_tests_name("sandbox", tests, make_folder, remove_folder);
}
