/* test_golden.c: every golden case through the code of `dbo eval`, compared key by key. */
#include "lab/files/json.h"
#include "lab/files/json_write.h"
#include "tests/support/eval_kind.h"
#include "tests/support/json_text.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define MAX_KEYS 4

typedef struct golden_kind {
    const char *kind, *file, *list;
    const char *keys[MAX_KEYS]; /* of a result: these and no others */
    size_t min_cases;
} golden_kind;

static const golden_kind golden_kinds[] = {
    {"slices", "slices", "cases", {"slices", "slices_padded"}, 100},
    {"attn_split", "attn_split", "cases", {"per_slice"}, 50},
    {"vote", "vote", "cases", {"reduced", "result"}, 50},
    {"vote_seed", "vote_seed", "cases", {"reduced", "result"}, 50},
    {"split_seed", "split_seed", "cases", {"ubatches"}, 50},
    {"veto", "veto", "cases", {"allow"}, 50},
    {"thresholds", "thresholds", "thresholds", {"use_ubatching", "num_ubatches", "result"}, 1000},
    {"last_ubatch_empty", "thresholds", "is_last_ubatch_empty", {"result"}, 200},
    {"uniform_decode", "thresholds", "is_uniform_decode", {"result"}, 50},
};

static bool is_sentence(const json_t *value)
{
    return json_string_length(value) > 0;
}

/* A refused slice must be refused; the sentence is ours. */
static bool same_slices(const json_t *want, const json_t *got)
{
    if (json_array_size(want) != json_array_size(got))
        return false;
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t *w = json_array_get(want, i), *g = json_array_get(got, i);
        bool ok = json_is_true(json_object_get(w, "ok"));
        if (json_is_true(json_object_get(g, "ok")) != ok)
            return false;
        if (ok ? !json_equal(json_object_get(w, "out"), json_object_get(g, "out"))
               : !is_sentence(json_object_get(g, "error")))
            return false;
    }
    return true;
}

static bool same_result(const golden_kind *kind, const json_t *want, const json_t *got)
{
    size_t keys = 0;
    if (strcmp(kind->kind, "attn_split") == 0)
        return same_slices(json_object_get(want, "per_slice"), json_object_get(got, "per_slice"));
    const json_t *error = json_object_get(want, "error");
    if (error && !json_is_null(error))
        return json_object_size(got) == 1 && is_sentence(json_object_get(got, "error"));
    for (; keys < MAX_KEYS && kind->keys[keys] != NULL; keys++) {
        const json_t *value = json_object_get(want, kind->keys[keys]);
        if (value == NULL || !json_equal(value, json_object_get(got, kind->keys[keys])))
            return false;
    }
    return keys == json_object_size(got);
}

static void check_kind(void **state)
{
    const golden_kind *kind = *state;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s.json", DBO_SOURCE_DIR, kind->file);
    dbo_error err = {0};
    dbo_json *file = NULL, *answer = NULL;
    json_text text = {0};
    dbo_json_writer out;
    dbo_eval_options options = {.executor = DBO_CONTEXT_FIBER};
    if (dbo_json_read_file(&file, path, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_json_writer_init(&out, json_text_sink, &text, 1);
    if (dbo_eval(eval_kind(kind->kind), dbo_json_root(file), &options, &out, &err) != DBO_OK ||
        dbo_json_writer_finish(&out, &err) != DBO_OK ||
        dbo_json_parse(&answer, text.bytes, text.length, NULL, &err) != DBO_OK)
        fail_msg("%s: %s", kind->kind, err.message);
    const json_t *cases = json_object_get(dbo_json_tree(file), kind->list);
    const json_t *results = json_object_get(dbo_json_tree(answer), "results");
    assert_string_equal(json_string_value(json_object_get(dbo_json_tree(answer), "kind")),
                        kind->kind);
    if (json_array_size(cases) < kind->min_cases)
        fail_msg("%s has only %zu cases", path, json_array_size(cases));
    assert_int_equal(json_array_size(results), json_array_size(cases));
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *want = json_array_get(cases, i), *got = json_array_get(results, i);
        if (!same_result(kind, want, got))
            fail_msg("%s, case %zu (%s)", kind->kind, i,
                     json_string_value(json_object_get(want, "tag")));
    }
    json_text_fini(&text);
    dbo_json_destroy(answer);
    dbo_json_destroy(file);
}

/* The comparison itself must be able to fail. */
static void a_wrong_answer_is_noticed(void **state)
{
    (void)state;
    static const char text[] = "[{\"allow\": true, \"error\": null}, {\"allow\": true},"
                               " {\"allow\": false}, {\"allow\": true, \"more\": 1}, {},"
                               " {\"error\": \"x\"}, {\"error\": \"why\"}, [1, [2]], [1, [3]]]";
    static const golden_kind kind = {"veto", "veto", "cases", {"allow"}, 1};
    dbo_json *doc = NULL;
    assert_int_equal(dbo_json_parse(&doc, text, sizeof text - 1, NULL, NULL), DBO_OK);
    const json_t *all = dbo_json_tree(doc), *want = json_array_get(all, 0);
    assert_true(same_result(&kind, want, json_array_get(all, 1)));
    for (size_t i = 2; i < 6; i++)
        assert_false(same_result(&kind, want, json_array_get(all, i)));
    assert_true(same_result(&kind, json_array_get(all, 5), json_array_get(all, 6)));
    assert_false(same_result(&kind, json_array_get(all, 5), json_array_get(all, 1)));
    assert_false(json_equal(json_array_get(all, 7), json_array_get(all, 8)));
    dbo_json_destroy(doc);
}

int main(void)
{
    struct CMUnitTest tests[sizeof golden_kinds / sizeof *golden_kinds + 1];
    size_t count = sizeof golden_kinds / sizeof *golden_kinds;
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = golden_kinds[i].kind,
                                       .test_func = check_kind,
                                       .initial_state = (void *)&golden_kinds[i]};
    tests[count] = (struct CMUnitTest)cmocka_unit_test(a_wrong_answer_is_noticed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
