/* test_script_output.c: whatever a script calls its things, what a command prints of it has nothing
 * that a terminal takes for a command and nothing that nobody sees; and it is not endless. */
#include "core/base/clean.h"
#include "tests/support/command.h"

/* Colours, a title, a bell, backspaces, direction, a lone C1 control, no width, a tag, no UTF-8. */
#define EVIL                        \
    "\\27]0;pwned\\7\\27[31mN\\27[" \
    "2J\\8\\xe2\\x80\\xae\\x9b1m\\xe2\\x80\\x8b\\xf3\\xa0\\x81\\x81\\xff"
#define SEEN "?]0;pwned??[31mN?[2J???1m???"

static void expect_clean(const char *line, const char *text)
{
    for (size_t at = 0, bytes, length = strlen(text); at < length; at += bytes) {
        uint32_t c = 0;
        bytes = dbo_utf8_decode(text + at, length - at, &c);
        if (bytes == 0 || (dbo_utf8_is_hidden(c) && c != '\n' && c != '\t'))
            fail_msg("%s: U+%04x at '%.40s'", line, c, text + at);
    }
}

/* Runs; all that it says is clean and has the words. */
static void expect(const char *line, int code, const char *words)
{
    int got = run(line);
    expect_clean(line, printed);
    expect_clean(line, complained);
    if (got != code || (!strstr(printed, words) && !strstr(complained, words)))
        fail_msg("%s: exit code %d, without '%s': %.2000s%s", line, got, words, printed,
                 complained);
}

static void what_is_printed_is_clean(void **state)
{
    (void)state;
    put_file("t.lua", "print('" EVIL "', 'a\\rb', 'x\\ny')\nprint('\\xc2', '\\x9b')\n");
    expect("dbo run t.lua", 0, SEEN "\ta b\tx\ny\n?\t?\n");
    put_file("t.lua", "print(('a'):rep(4094) .. '\\u{6f22}' .. ('\\u{6f22}'):rep(3000))\n");
    expect("dbo run t.lua", 0, "漢漢\n"); /* in pieces that hold whole characters */
    assert_null(strchr(printed, '?'));
}

static void tables_are_clean(void **state)
{
    (void)state;
    put_file("t.lua", "local t = require 'dbo'.table { title = '" EVIL "', columns = { '" EVIL
                      "', 'b\\27[1m' } }\n"
                      "t:add { '" EVIL "', 3 } t:add { ['b\\27[1m'] = 9 }\n"
                      "t:print() print(t:csv())\n"
                      "t:add { 1, 2 } t:add { 2, 7 }\n"
                      "t:plot { x = 'b\\27[1m', y = 'b\\27[1m' }\n"
                      "t:plot { x = '" EVIL "', y = 'b\\27[1m', kind = 'bar' }\n");
    expect("dbo run t.lua", 0, SEEN "\n" SEEN "  b?[1m\n");
    assert_non_null(strstr(printed, SEEN "      3\n")); /* as wide as it looks */
    expect("dbo run t.lua --ascii", 0, SEEN);
    expect("COLUMNS=24 dbo run t.lua", 0, "b?[1m");
}

static void names_are_clean(void **state)
{
    (void)state;
    static const char *const lines[] = {"dbo run t.lua",
                                        "dbo run t.lua --color=always",
                                        "dbo run t.lua --step </dev/null",
                                        "dbo check t.lua",
                                        "dbo show program t.lua",
                                        "dbo show slices t.lua",
                                        "dbo show vote t.lua",
                                        "dbo run t.lua --json -",
                                        "dbo check t.lua --json -",
                                        "dbo run t.lua --trace -",

                                        "dbo show program t.lua --json",
                                        "dbo run t.lua --log trace"};
    put_file(
        "t.lua",
        "local dbo = require 'dbo'\n"
        "local s = dbo.schedule { name = '" EVIL "', num_ubatches = 2, layer = function(u)\n"
        "  u.op { name = '" EVIL "', us = 31, writes = '" EVIL "' }\n"
        "  u.yield()\n"
        "  u.op { name = 'tail\\27[2J', us = 17, reads = 'never\\27[2J' }\n"
        "end }\n"
        "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, layers = 3,\n"
        "  enable_dbo = true, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n"
        "  schedule = s, batch = dbo.decode { num_tokens = 64 } }\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int code = run(lines[i]);
        if (code != 0 && code != 3)
            fail_msg("%s: %s", lines[i], complained);
        if (strstr(lines[i], "--color=always")) /* dbo's own colours */
            assert_null(strstr(printed, "\033[2J"));
        else
            expect_clean(lines[i], printed);
        expect_clean(lines[i], complained);
    }
    expect("dbo show program t.lua", 0, SEEN);
}

/* In JSON what nobody sees is escaped, in findings beside a trace, too. */
static void findings_are_clean(void **state)
{
    (void)state;
    put_file(
        "t.lua",
        "local dbo = require 'dbo'\n"
        "local s = dbo.schedule { name = 's', num_ubatches = 2, layer = function(u)\n"
        "  u.op { name = '\\u{202e}\\u{e0041}', us = 31, writes = 'b' }\n"
        "  u.switch_to_comm() u.op { name = 'r', us = 5, reads = 'b' } u.switch_to_compute()\n"
        "  u.yield()\n"
        "end }\n"
        "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, layers = 3,\n"
        "  enable_dbo = true, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n"
        "  schedule = s, batch = dbo.decode { num_tokens = 64 } }\n");
    expect("dbo check t.lua --trace -", 3, "\\u202e");
    assert_non_null(strstr(printed, "\\udb40\\udc41"));
}

static void errors_are_clean(void **state)
{
    (void)state;
    static const char *const texts[] = {"error('" EVIL "', 0)",
                                        "local _, e = pcall(error, '" EVIL "') print(e)",
                                        "return require 'dbo'.experiment { ['" EVIL "'] = 1 }",
                                        "return require 'dbo'.experiment { model = '" EVIL "' }",
                                        "return require 'dbo'.load('" EVIL ".lua')",
                                        "return require '" EVIL "'"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_file("t.lua", texts[i]);
        expect("dbo run t.lua", strstr(texts[i], "print") ? 0 : 1, SEEN);
    }
    put_file("t.lua", "error '9 \\u{b5}s \\u{6f22}'");
    expect("export LC_ALL=C && dbo run t.lua", 1, "t.lua:1: 9 us ?\n"); /* in ASCII there */
    put_file("t.lua", "x = \033[31m\xe2\x80\x8b\x9b");
    expect("dbo run t.lua", 1, "t.lua:1: ");
    expect("dbo run $(printf 'a\\033[31m\\302\\233.lua')", 2, "a?[31m?.lua");
    expect("dbo run t.lua --set $(printf 'a\\033[31m=\\342\\200\\213')", 1, "t.lua:1: ");
}

/* More than enough is 16 MiB, after which there is no way on; a character that would go beyond is
 * left out as a whole. */
static void output_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        long left_out; /* bytes of a character that does not fit */
    } scripts[] = {
        {"local s = ('x'):rep(1 << 20) while true do print(s) end", 0},
        {"local s = ('x\\n'):rep(1 << 19) while true do pcall(print, s) end", 0},
        {"local s = ('\xC3\xA9'):rep(4 << 20) while true do print(s) end", 1},
        {"local s = ('\xE2\x82\xAC'):rep(1 << 20) while true do print(s) end", 2},
        {"local s = ('\xF0\x9F\x98\x80'):rep(1 << 20) while true do print(s) end", 1},
        {"print('x') local s = ('\xF0\x9F\x98\x80'):rep(1 << 20) while true do print(s) end", 3}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        put_file("t.lua", scripts[i].text);
        assert_int_equal(run("dbo run t.lua | wc -c; dbo run t.lua >/dev/null"), 1);
        assert_int_equal(atol(printed), (16 << 20) + 1 - scripts[i].left_out); /* and "\\n" */
        assert_non_null(strstr(complained, "the script printed more than 16 MiB\n"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_clean), cmocka_unit_test(tables_are_clean),
        cmocka_unit_test(names_are_clean),          cmocka_unit_test(findings_are_clean),
        cmocka_unit_test(errors_are_clean),         cmocka_unit_test(output_ends),
    };
    return cmocka_run_group_tests_name("script_output", tests, make_folder, remove_folder);
}
