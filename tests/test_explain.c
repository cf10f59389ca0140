/* test_explain.c: `dbo explain` knows every word that the program prints, and says the nearest. */
#include "app/explain.h"
#include "core/config.h"
#include "core/metrics.h"
#include "core/op.h"
#include "core/vote.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static dbo_strbuf text;

static void expect(const char *word, const char *section)
{
    dbo_error err = {0};
    dbo_strbuf_clear(&text);
    if (dbo_explain(word, 80, &text, &err) != DBO_OK)
        fail_msg("%s: %s", word, err.message);
    if (!strstr(dbo_strbuf_text(&text), section))
        fail_msg("%s: no '%s' in\n%s", word, section, dbo_strbuf_text(&text));
}

static void every_table_is_explained(void **state)
{
    (void)state;
    uint32_t count = 0;
    const dbo_field *keys = dbo_config_fields(&count);
#define EXPECT_REASON(enumerator, name, what) expect(name, "(reasons of a decision)");
    DBO_VOTE_REASON_MAP(EXPECT_REASON)
#undef EXPECT_REASON
#define EXPECT_MEASURE(name, what) expect(#name, "(measures of a result)");
    DBO_METRIC_MAP(EXPECT_MEASURE)
#undef EXPECT_MEASURE
#define EXPECT_COST(name, what) expect(#name, "(parts of the cost of splitting)");
    DBO_SPLIT_COST_MAP(EXPECT_COST)
#undef EXPECT_COST
    for (int kind = 0; kind < DBO_KIND_COUNT; kind++)
        expect(dbo_op_kind_name((dbo_op_kind)kind), "(kinds of ops)");
    for (uint32_t i = 0; i < count; i++) {
        expect(keys[i].key, "(keys of the configuration)");
        if (keys[i].type == DBO_FIELD_U32 || keys[i].type == DBO_FIELD_BOOL)
            assert_non_null(strstr(dbo_strbuf_text(&text), "; default "));
    }
    expect("dbo_decode_token_threshold", "default 32");
}

/* No term twice in a section; texts are sentences or phrases without loose ends. */
static void terms_are_in_order(void **state)
{
    (void)state;
    dbo_term a, b;
    for (size_t i = 0; dbo_term_at(i, &a); i++) {
        assert_true(a.name[0] != '\0' && strlen(a.text) > 3);
        assert_null(strstr(a.text, "  "));
        assert_false(isspace((unsigned char)a.text[strlen(a.text) - 1]));
        for (size_t k = i + 1; dbo_term_at(k, &b); k++)
            if (strcmp(a.section, b.section) == 0 && strcmp(a.name, b.name) == 0)
                fail_msg("%s is there twice", a.name);
    }
}

static void words_may_be_written_as_one_likes(void **state)
{
    (void)state;
    expect("HAND_OFF", "hand-off (words)");
    expect("handoff", "hand-off (words)");
    expect("Empty-Ubatch", "empty ubatch (rules)");
    expect("D", "dispatch (words)");
    expect("d", "DISPATCH (kinds of ops)");
    expect("hook", "receive hook (words)");
}

static void lines_keep_to_the_width(void **state)
{
    (void)state;
    dbo_term term;
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        dbo_strbuf_clear(&text);
        assert_int_equal(dbo_explain(term.name, 60, &text, NULL), DBO_OK);
        const char *at = strchr(dbo_strbuf_text(&text), '\n') + 1;
        if (strcmp(term.section, "keys of the configuration") == 0)
            continue; /* lists of values are not broken */
        for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
            if (strcspn(at, "\n") > 60)
                fail_msg("%s: %s", term.name, at);
    }
}

static void unknown_words_get_the_nearest(void **state)
{
    (void)state;
    dbo_error err = {0};
    assert_int_equal(dbo_explain("tresholt", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'tresholt', did you mean 'threshold'?");
    assert_int_equal(dbo_explain("quux quux", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'quux quux'");
    assert_string_equal(err.hint, "dbo explain alone lists them.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_explained),
        cmocka_unit_test(terms_are_in_order),
        cmocka_unit_test(words_may_be_written_as_one_likes),
        cmocka_unit_test(lines_keep_to_the_width),
        cmocka_unit_test(unknown_words_get_the_nearest),
    };
    dbo_strbuf_init(&text);
    int failed = cmocka_run_group_tests_name("explain", tests, NULL, NULL);
    dbo_strbuf_fini(&text);
    return failed;
}
