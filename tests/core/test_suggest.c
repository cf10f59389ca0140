/* test_suggest.c: slips find their name, strangers find none. */
#include "core/base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const keys[] = {"model",           "hardware",   "nodes", "gpus_per_node",
                                   "all2all_backend", "enable_dbo", "batch", "data_parallel_size",
                                   "deepseek-v3",     "deepseek-v2"};

enum { KEYS = sizeof keys / sizeof *keys };

static void test_distance(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        size_t edits;
    } cases[] = {
        {"", "", 0},           {"", "abc", 3},   {"abc", "abc", 0},        {"abc", "abd", 1},
        {"abc", "acb", 1},     {"abc", "ab", 1}, {"kitten", "sitting", 3}, {"Model", "mODEL", 0},
        {"a-b_c", "a_b-c", 0}, {"ca", "abc", 3}, {"abcd", "badc", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dbo_edit_distance(cases[i].a, cases[i].b), cases[i].edits);
        assert_int_equal(dbo_edit_distance(cases[i].b, cases[i].a), cases[i].edits);
    }
}

static void test_slips(void **state)
{
    (void)state;
    static const struct {
        const char *word, *name;
    } cases[] = {
        {"modle", "model"},
        {"nods", "nodes"},
        {"gpu_per_node", "gpus_per_node"},
        {"ENABLE-DBO", "enable_dbo"},
        {"bach", "batch"},
        {"data_paralel_sise", "data_parallel_size"},
        {"deepseek", "deepseek-v3"}, /* a beginning; of equals the first */
        {"deepseek-v2", "deepseek-v2"},
        {"batch_size", "batch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = dbo_suggest(cases[i].word, keys, KEYS);
        assert_non_null(found);
        assert_string_equal(found, cases[i].name);
    }
}

static void test_strangers(void **state)
{
    (void)state;
    static const char *const words[] = {"", "x", "zebra", "mo", "colour"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_null(dbo_suggest(words[i], keys, KEYS));
    assert_null(dbo_suggest("model", keys, 0));
    char longest[DBO_SUGGEST_MAX_CHARS + 2];
    memset(longest, 'm', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *const itself[] = {longest};
    assert_null(dbo_suggest(longest, itself, 1)); /* one letter too long */
    longest[DBO_SUGGEST_MAX_CHARS] = '\0';
    assert_ptr_equal(dbo_suggest(longest, itself, 1), longest);
}

static void test_hint(void **state)
{
    (void)state;
    char hint[64];
    dbo_suggestion near = dbo_suggest_begin("bathc");
    dbo_suggest_offer(&near, NULL);
    assert_string_equal(dbo_suggest_hint(&near, hint, sizeof hint), "");
    dbo_suggest_offer(&near, "bath");
    dbo_suggest_offer(&near, "batch"); /* as near: the first stays */
    assert_string_equal(dbo_suggest_hint(&near, hint, sizeof hint), "did you mean 'bath'?");
    assert_string_equal(dbo_suggest_hint(&near, hint, 4), "did");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_slips),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
