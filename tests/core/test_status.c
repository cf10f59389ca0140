/* test_status.c: what an error says, also when it says too much. */
#include "core/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(dbo_status_name(DBO_OK), "ok");
    assert_string_equal(dbo_status_name(DBO_DEADLOCK), "deadlock");
    assert_string_equal(dbo_status_text(DBO_PARSE), "the input is malformed");
    assert_string_equal(dbo_status_name((dbo_status)999), "unknown");
    assert_non_null(dbo_status_text((dbo_status)-1));
}

static void test_fail_fills(void **state)
{
    (void)state;
    dbo_error err = {0};
    assert_int_equal(dbo_fail(&err, DBO_LIMIT, "use fewer", "%d ranks are too many", 7), DBO_LIMIT);
    assert_int_equal(err.status, DBO_LIMIT);
    assert_string_equal(err.message, "7 ranks are too many");
    assert_string_equal(err.hint, "use fewer");
    dbo_fail_memory(&err, "a plan");
    assert_int_equal(err.status, DBO_NO_MEMORY);
    assert_string_equal(err.message, "out of memory for a plan");
    assert_string_equal(err.hint, "");
    assert_int_equal(dbo_fail(NULL, DBO_IO, "hint", "%s", "text"), DBO_IO);
    assert_int_equal(dbo_fail_memory(NULL, "x"), DBO_NO_MEMORY);
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    dbo_error err = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dbo_fail(&err, DBO_IO, text, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 5, "x...");
    assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
    assert_string_equal(err.hint + sizeof err.hint - 5, "x...");

    text[sizeof err.message - 1] = '\0'; /* what just fits is not cut */
    dbo_fail(&err, DBO_IO, NULL, "%s", text);
    assert_string_equal(err.message, text);
}

/* No cut leaves half a character, wherever the characters of two bytes begin. */
static void test_cut_keeps_characters_whole(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 2; offset++) {
        dbo_error err = {0};
        char text[2001];
        for (size_t i = 0; i < sizeof text - 1; i++)
            text[i] = "\xc2\xb5"[(i + offset) % 2];
        if (offset)
            text[0] = 'x';
        text[sizeof text - 1] = '\0';
        dbo_fail(&err, DBO_IO, NULL, "%s", text);
        size_t length = strlen(err.message);
        assert_string_equal(err.message + length - 3, "...");
        assert_int_equal((unsigned char)err.message[length - 4], 0xb5);
    }
}

static void test_prefix(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_fail(&err, DBO_PARSE, "look", "expected a number");
    assert_int_equal(dbo_error_prefix(&err, "%s line %d", "a.lua", 3), DBO_PARSE);
    assert_string_equal(err.message, "a.lua line 3: expected a number");
    assert_string_equal(err.hint, "look");
    char text[600];
    memset(text, 'p', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dbo_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 4, "...");
    assert_int_equal(dbo_error_prefix(NULL, "x"), DBO_INTERNAL);
}

static void test_arguments_may_alias(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_fail(&err, DBO_IO, "the hint", "inner");
    dbo_fail(&err, DBO_ABORTED, err.hint, "outer of %s", err.message);
    assert_string_equal(err.message, "outer of inner");
    assert_string_equal(err.hint, "the hint");
    dbo_error_prefix(&err, "%s", err.message);
    assert_string_equal(err.message, "outer of inner: outer of inner");
}

/* A key grows from the inside out, and is cut like a message. */
static void test_key(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_fail(&err, DBO_LIMIT, "look", "7 is too large");
    assert_string_equal(err.key, "");
    assert_int_equal(dbo_error_key(&err, "[%d]", 2), DBO_LIMIT);
    dbo_error_key(&err, "num_tokens");
    assert_string_equal(err.key, "num_tokens[2]");
    dbo_error_key(&err, "%s", "batch");
    assert_string_equal(err.key, "batch.num_tokens[2]");
    assert_string_equal(err.message, "7 is too large");
    assert_string_equal(err.hint, "look");
    char outer[sizeof err.key];
    memset(outer, 'k', sizeof outer - 1);
    outer[sizeof outer - 1] = '\0';
    dbo_error_key(&err, "%s", outer);
    assert_int_equal(strlen(err.key), sizeof err.key - 1);
    assert_string_equal(err.key + sizeof err.key - 5, "k...");
    assert_int_equal(dbo_error_key(NULL, "x"), DBO_INTERNAL);
    dbo_fail(&err, DBO_IO, NULL, "another"); /* a new error knows nothing of the old one's facts */
    assert_string_equal(err.key, "");
}

static void test_place(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_fail(&err, DBO_PARSE, NULL, "a word is missing");
    assert_int_equal(dbo_error_at(&err, NULL, 0), DBO_PARSE); /* nothing is known */
    assert_string_equal(err.message, "a word is missing");
    dbo_error_at(&err, "F.lua", 7);
    assert_string_equal(err.message, "F.lua:7: a word is missing");
    assert_string_equal(err.file, "F.lua");
    assert_int_equal(err.line, 7);
    dbo_error_at(&err, "G.lua", 9); /* the first place stays */
    assert_string_equal(err.message, "F.lua:7: a word is missing");
    assert_int_equal(err.line, 7);

    dbo_fail(&err, DBO_PARSE, NULL, "x");
    assert_int_equal(err.line, 0);
    dbo_error_at(&err, NULL, 3);
    assert_string_equal(err.message, "line 3: x");
    dbo_fail(&err, DBO_PARSE, NULL, "x");
    dbo_error_at(&err, "dir/F.json", 0);
    assert_string_equal(err.message, "dir/F.json: x");
    dbo_error_at(&err, "G.lua", 9);
    assert_string_equal(err.file, "dir/F.json");
    assert_int_equal(err.line, 0);
    assert_int_equal(dbo_error_at(NULL, "F.lua", 7), DBO_INTERNAL);
}

static void test_pass(void **state)
{
    (void)state;
    dbo_error mine = {0}, err = {0};
    dbo_fail(&mine, DBO_REFUSED, "look", "no");
    dbo_error_key(&mine, "batch");
    dbo_error_at(&mine, "F.lua", 5);
    assert_int_equal(dbo_error_pass(&err, &mine), DBO_REFUSED);
    assert_string_equal(err.message, "F.lua:5: no");
    assert_string_equal(err.hint, "look");
    assert_string_equal(err.key, "batch");
    assert_int_equal(err.line, 5);
    assert_int_equal(err.status, DBO_REFUSED);
    assert_int_equal(dbo_error_pass(NULL, &mine), DBO_REFUSED);
}

static dbo_status step(int fails, dbo_error *err)
{
    return fails ? dbo_fail(err, DBO_REFUSED, NULL, "step %d", fails) : DBO_OK;
}

static dbo_status steps(int failing, int *reached, dbo_error *err)
{
    dbo_status status = DBO_OK;
    DBO_TRY(step(failing == 1, err));
    *reached = 1;
    DBO_TRY_GOTO(step(failing == 2, err), fail);
    *reached = 2;
    return status;
fail:
    *reached += 10;
    return status;
}

static void test_try(void **state)
{
    (void)state;
    static const int expected[] = {2, 0, 11};
    for (int failing = 0; failing < 3; failing++) {
        int reached = 0;
        dbo_error err = {0};
        assert_int_equal(steps(failing, &reached, &err), failing ? DBO_REFUSED : DBO_OK);
        assert_int_equal(reached, expected[failing]);
        assert_int_equal(err.status, failing ? DBO_REFUSED : DBO_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fail_fills),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_cut_keeps_characters_whole),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_arguments_may_alias),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
