/* test_explain.c: `dbo explain` knows every word that the program prints, and says the nearest. */
#include "app/experiment.h"
#include "app/explain.h"
#include "core/check/findings.h"
#include "core/config.h"
#include "core/faults.h"
#include "core/metrics.h"
#include "core/op.h"
#include "core/program.h"
#include "core/vote.h"
#include "viz/view.h"

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

/* Separated by '|'. */
static const char screen_words[] =
    "Model|Cluster|Batch|Config|Decision|Memory|Warning|KV cache|weights|split|no "
    "split|padding|DBO off|DBO on|DP|TP|EP|"
    "decode|prefill|requests|context|layers|rank|ranks|graph|graphs|rules|schedule|executor|"
    "whole batch|waits|ubatch 0|ubatch 1|ubatches|exposed|"
    "exposed: bytes move, nothing computes|Comp:|Comm:|Order:|as issued|send|recv|D₀ send|"
    "C₁ recv|A0₀|A1₁|MLP₀|S₁|D_1|A0_1|speed-up|turn|issues|hands over|layer 3|steady state|"
    "with the documents' labels|with 0 and 1 exchanged|stream 2|"
    "cost of splitting, before any overlap|threshold|bucket|allowed|wanted|kind|runs|last one|"
    "num_reqs|max_query_len|query_start_loc|seq_lens|batch.num_tokens|batch.context_len|"
    "batch.jitter_us|model.layers|hardware.sms|costs.D|costs.A|parallel_config.enable_dbo|"
    "prompt_len|num_scheduled|num_computed|blocks|prefix|prefix_len";

/* What stands on the screens: rows, lanes, legend, headings, values of the config, instructions,
 * findings, faults, keys of scripts; as it stands there. */
static void every_word_of_the_screens_is_explained(void **state)
{
    (void)state;
    for (const char *at = screen_words; *at;) {
        char word[64];
        size_t length = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        expect(word, "(");
        at += length + (at[length] == '|');
    }
#define EXPECT_ROW(name, what) expect(what, #name " (");
    DBO_METRIC_MAP(EXPECT_ROW)
    DBO_SPLIT_COST_MAP(EXPECT_ROW)
#undef EXPECT_ROW
    for (int kind = DBO_LANE_COMPUTE; kind <= DBO_LANE_HOST; kind++) {
        const dbo_lane lane = {.kind = (dbo_lane_kind)kind,
                               .number = kind == DBO_LANE_STREAM ? 3 : 0};
        dbo_strbuf name;
        dbo_strbuf_init(&name);
        dbo_lane_name(&lane, &name);
        expect(dbo_strbuf_text(&name), "(words of the screen)");
        dbo_strbuf_fini(&name);
    }
    for (int code = 0; code < DBO_CODE_COUNT; code++)
        expect(dbo_code_name((dbo_code)code), "(instructions of a program)");
    for (int kind = 0; kind < DBO_FINDING_KINDS; kind++)
        expect(dbo_finding_kind_name((dbo_finding_kind)kind), "(findings of a check)");
#define EXPECT_FAULT(enumerator, name, outcome, what) expect(name, "(faults)");
    DBO_FAULT_MAP(EXPECT_FAULT)
#undef EXPECT_FAULT
}

static void every_key_of_a_script_is_explained(void **state)
{
    (void)state;
    const dbo_settings tables[] = {dbo_experiment_settings(), dbo_experiment_own_settings(),
                                   dbo_model_settings(), dbo_hardware_settings(),
                                   dbo_fixed_settings()};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (uint32_t i = 0; i < tables[t].num_fields; i++) {
            const dbo_field *field = &tables[t].fields[i];
            expect(field->key, "(keys of ");
            for (uint32_t k = 0; t == 0 && field->choices && field->choices[k]; k++)
                expect(field->choices[k], "(a value of ");
        }
    }
    for (const char *const *key = tables[0].extra; *key; key++)
        expect(*key, "experiment)");
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
        if (strstr(dbo_strbuf_text(&text), "(keys of the configuration)") ||
            strstr(dbo_strbuf_text(&text), "(a value of "))
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
    assert_int_equal(dbo_explain("exposd", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'exposd', did you mean 'exposed'?");
    assert_int_equal(dbo_explain("quux quux", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'quux quux'");
    assert_string_equal(err.hint, "dbo explain alone lists them.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_explained),
        cmocka_unit_test(every_word_of_the_screens_is_explained),
        cmocka_unit_test(every_key_of_a_script_is_explained),
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
