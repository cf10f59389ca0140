/* test_golden.c: every golden case through the code of `dbo eval`, compared key by key. */
#include "app/eval/eval.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"

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

static bool same(const dbo_json_value *want, const dbo_json_value *got);

static bool same_members(const dbo_json_value *want, const dbo_json_value *got)
{
    if (dbo_json_count(want) != dbo_json_count(got))
        return false;
    for (size_t i = 0; i < dbo_json_count(want); i++) {
        const char *key = dbo_json_key_at(want, i);
        const dbo_json_value *other = key != NULL ? dbo_json_get(got, key) : dbo_json_at(got, i);
        if (other == NULL || !same(dbo_json_at(want, i), other))
            return false;
    }
    return true;
}

static bool same(const dbo_json_value *want, const dbo_json_value *got)
{
    if (dbo_json_type_of(want) != dbo_json_type_of(got))
        return false;
    switch (dbo_json_type_of(want)) {
    case DBO_JSON_NULL: return true;
    case DBO_JSON_BOOL: return dbo_json_bool(want) == dbo_json_bool(got);
    case DBO_JSON_INT: return dbo_json_int(want) == dbo_json_int(got);
    case DBO_JSON_DOUBLE: return fabs(dbo_json_double(want) - dbo_json_double(got)) < 1e-12;
    case DBO_JSON_STRING: return strcmp(dbo_json_string(want), dbo_json_string(got)) == 0;
    case DBO_JSON_ARRAY:
    case DBO_JSON_OBJECT: return same_members(want, got);
    }
    return false;
}

/* A refused slice must be refused; the sentence is ours. */
static bool same_slices(const dbo_json_value *want, const dbo_json_value *got)
{
    if (dbo_json_count(want) != dbo_json_count(got))
        return false;
    for (size_t i = 0; i < dbo_json_count(want); i++) {
        const dbo_json_value *w = dbo_json_at(want, i), *g = dbo_json_at(got, i);
        bool ok = dbo_json_bool(dbo_json_get(w, "ok"));
        if (dbo_json_bool(dbo_json_get(g, "ok")) != ok)
            return false;
        if (ok ? !same(dbo_json_get(w, "out"), dbo_json_get(g, "out"))
               : dbo_json_string(dbo_json_get(g, "error"))[0] == '\0')
            return false;
    }
    return true;
}

static bool same_result(const golden_kind *kind, const dbo_json_value *want,
                        const dbo_json_value *got)
{
    size_t keys = 0;
    if (strcmp(kind->kind, "attn_split") == 0)
        return same_slices(dbo_json_get(want, "per_slice"), dbo_json_get(got, "per_slice"));
    if (!dbo_json_is_null(dbo_json_get(want, "error")))
        return dbo_json_count(got) == 1 && dbo_json_string(dbo_json_get(got, "error"))[0] != '\0';
    for (; keys < MAX_KEYS && kind->keys[keys] != NULL; keys++) {
        const dbo_json_value *value = dbo_json_get(want, kind->keys[keys]);
        if (value == NULL || !same(value, dbo_json_get(got, kind->keys[keys])))
            return false;
    }
    return keys == dbo_json_count(got);
}

static void check_kind(void **state)
{
    const golden_kind *kind = *state;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s.json", DBO_SOURCE_DIR, kind->file);
    dbo_error err = {0};
    dbo_json *file = NULL, *answer = NULL;
    dbo_json_text text = {0};
    dbo_json_writer out;
    dbo_eval_options options = {.executor = DBO_CONTEXT_FIBER};
    if (dbo_json_read_file(&file, path, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_json_writer_init(&out, dbo_json_sink_text, &text, 1);
    if (dbo_eval(kind->kind, dbo_json_root(file), &options, &out, &err) != DBO_OK ||
        dbo_json_writer_finish(&out, &err) != DBO_OK ||
        dbo_json_parse(&answer, text.bytes, text.length, NULL, &err) != DBO_OK)
        fail_msg("%s: %s", kind->kind, err.message);
    const dbo_json_value *cases = dbo_json_get(dbo_json_root(file), kind->list);
    const dbo_json_value *results = dbo_json_get(dbo_json_root(answer), "results");
    assert_string_equal(dbo_json_string(dbo_json_get(dbo_json_root(answer), "kind")), kind->kind);
    if (dbo_json_count(cases) < kind->min_cases)
        fail_msg("%s has only %zu cases", path, dbo_json_count(cases));
    assert_int_equal(dbo_json_count(results), dbo_json_count(cases));
    for (size_t i = 0; i < dbo_json_count(cases); i++) {
        const dbo_json_value *want = dbo_json_at(cases, i), *got = dbo_json_at(results, i);
        if (!same_result(kind, want, got))
            fail_msg("%s, case %zu (%s): see line %d of the answer", kind->kind, i,
                     dbo_json_string(dbo_json_get(want, "tag")), dbo_json_line(got));
    }
    dbo_json_text_fini(&text);
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
    const dbo_json_value *all = dbo_json_root(doc), *want = dbo_json_at(all, 0);
    assert_true(same_result(&kind, want, dbo_json_at(all, 1)));
    for (size_t i = 2; i < 6; i++)
        assert_false(same_result(&kind, want, dbo_json_at(all, i)));
    assert_true(same_result(&kind, dbo_json_at(all, 5), dbo_json_at(all, 6)));
    assert_false(same_result(&kind, dbo_json_at(all, 5), dbo_json_at(all, 1)));
    assert_false(same(dbo_json_at(all, 7), dbo_json_at(all, 8)));
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
