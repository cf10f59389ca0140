/* test_pingpong.c: `dbo eval pingpong`: the engine's logs against the reference's, on both
 * executors, and beyond the sizes that the reference's cases have. */
#include "lab/files/json.h"
#include "lab/files/json_write.h"
#include "tests/support/eval_kind.h"
#include "tests/support/json_text.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The answer to a file's text; *text keeps its bytes. */
static dbo_json *evaluate(const dbo_json *file, dbo_context_kind executor, json_text *text)
{
    dbo_error err = {0};
    dbo_json *answer = NULL;
    dbo_json_writer out;
    const dbo_eval_options options = {.executor = executor};
    dbo_json_writer_init(&out, json_text_sink, text, 1);
    if (dbo_eval(eval_kind("pingpong"), dbo_json_root(file), &options, &out, &err) != DBO_OK ||
        dbo_json_writer_finish(&out, &err) != DBO_OK ||
        dbo_json_parse(&answer, text->bytes, text->length, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return answer;
}

static const json_t *log_of(const dbo_json *answer, size_t index)
{
    const json_t *results = json_object_get(dbo_json_tree(answer), "results");
    const json_t *log = json_object_get(json_array_get(results, index), "log");
    assert_non_null(log);
    return log;
}

static bool agrees(const json_t *want, const json_t *got, const char *key)
{
    const json_t *w = json_object_get(want, key), *g = json_object_get(got, key);
    if (!w)
        return true;
    if (!g || json_typeof(w) != json_typeof(g))
        return false;
    return json_typeof(w) == JSON_STRING ? strcmp(json_string_value(w), json_string_value(g)) == 0
                                         : json_integer_value(w) == json_integer_value(g);
}

static bool same_log(const json_t *want, const json_t *got, size_t *at)
{
    static const char *const keys[] = {"ubatch", "op", "stream", "event", "owner", "layer"};
    for (*at = 0; *at < json_array_size(want); ++*at)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!agrees(json_array_get(want, *at), json_array_get(got, *at), keys[k]))
                return false;
    return json_array_size(want) == json_array_size(got);
}

static void logs_are_the_references(void **state)
{
    (void)state;
    dbo_json *file = NULL;
    dbo_error err = {0};
    if (dbo_json_read_file(&file, DBO_SOURCE_DIR "/tests/golden/pingpong.json", NULL, &err))
        fail_msg("%s", err.message);
    const json_t *cases = json_object_get(dbo_json_tree(file), "cases");
    assert_true(json_array_size(cases) >= 12);
    for (int kind = 0; kind < 2; kind++) {
        json_text text = {0};
        dbo_json *answer = evaluate(file, (dbo_context_kind)kind, &text);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            size_t at;
            const json_t *want = json_object_get(json_array_get(cases, i), "log");
            if (!same_log(want, log_of(answer, i), &at))
                fail_msg("executor %d, case %zu differs at entry %zu", kind, i, at);
        }
        /* and the comparison can fail: another case's log is another log */
        size_t at;
        assert_false(
            same_log(json_object_get(json_array_get(cases, 1), "log"), log_of(answer, 0), &at));
        dbo_json_destroy(answer);
        json_text_fini(&text);
    }
    dbo_json_destroy(file);
}

/* ---- other sizes ---- */

static dbo_json *make_case(const char *backend, uint32_t n, uint32_t layers, bool dbo, bool rocm)
{
    char text[256];
    dbo_json *file = NULL;
    int length = snprintf(text, sizeof text,
                          "{\"cases\": [{\"backend\": \"%s\", \"num_ubatches\": %u, \"layers\": %u,"
                          " \"shared_experts\": true, \"dbo\": %s, \"rocm\": %s}]}",
                          backend, n, layers, dbo ? "true" : "false", rocm ? "true" : "false");
    assert_int_equal(dbo_json_parse(&file, text, (size_t)length, NULL, NULL), DBO_OK);
    return file;
}

/* Fibers and threads write the same bytes. */
static void executors_agree(void **state)
{
    (void)state;
    for (int ll = 0; ll < 2; ll++)
        for (uint32_t n = 2; n <= 16; n = n < 5 ? n + 1 : n + 11)
            for (uint32_t layers = 0; layers < 8; layers = 2 * layers + 1) {
                dbo_json *file = make_case(ll ? "LL" : "HT", n, layers, true, n == 3);
                json_text texts[2] = {{0}, {0}};
                for (int kind = 0; kind < 2; kind++)
                    dbo_json_destroy(evaluate(file, (dbo_context_kind)kind, &texts[kind]));
                assert_string_equal(texts[0].bytes, texts[1].bytes);
                for (int kind = 0; kind < 2; kind++)
                    json_text_fini(&texts[kind]);
                dbo_json_destroy(file);
            }
}

static bool is_word(const json_t *entry, const char *key, const char *word)
{
    return strcmp(json_string_value(json_object_get(entry, key)), word) == 0;
}

/* Every resume follows the signal to that ubatch, and turns go round the ring. */
static void check_turns(const json_t *log, int64_t n, uint32_t yields)
{
    int64_t holder = -1;
    uint32_t signals = 0;
    for (size_t i = 0; i < json_array_size(log); i++) {
        const json_t *e = json_array_get(log, i);
        assert_int_equal(json_integer_value(json_object_get(e, "ubatch")), holder);
        if (!is_word(e, "op", "cpu_signal"))
            continue;
        holder = (holder + 1) % n;
        signals++;
        if (i + 1 == json_array_size(log))
            break;
        const json_t *resume = json_array_get(log, i + 1);
        assert_true(is_word(resume, "op", "cpu_resume"));
        assert_true(agrees(e, resume, "event"));
    }
    assert_int_equal(signals, 1 + n * (yields + 1)); /* the first baton, yields, exits */
}

static uint32_t count_ops(const json_t *log, const char *op, int64_t ubatch, int64_t layer)
{
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(log); i++) {
        const json_t *e = json_array_get(log, i);
        const json_t *owner = json_object_get(e, "owner");
        int64_t whose = json_integer_value(owner ? owner : json_object_get(e, "ubatch"));
        count += is_word(e, "op", op) && whose == ubatch &&
                 json_integer_value(json_object_get(e, "layer")) == layer;
    }
    return count;
}

/* At any size: turns alternate, and each ubatch does each op of each layer exactly once. */
static void every_op_once(void **state)
{
    (void)state;
    static const char *const ops[2][8] = {
        {"A0", "A1", "DISPATCH", "MLP", "WEIGHT_AND_REDUCE", "COMBINE", "SHARED", "OUTPUT_COPY"},
        {"A0", "A1", "DISPATCH_SEND", "DISPATCH_RECV", "MLP", "COMBINE_SEND", "SHARED",
         "COMBINE_RECV"}};
    const uint32_t layers = 5;
    for (int ll = 0; ll < 2; ll++)
        for (uint32_t n = 2; n <= 6; n++) {
            dbo_json *file = make_case(ll ? "LL" : "HT", n, layers, true, false);
            json_text text = {0};
            dbo_json *answer = evaluate(file, DBO_CONTEXT_FIBER, &text);
            const json_t *log = log_of(answer, 0);
            check_turns(log, n, layers * (ll ? 2 : 3));
            for (uint32_t u = 0; u < n; u++)
                for (uint32_t layer = 0; layer < layers; layer++)
                    for (int k = 0; k < 8; k++)
                        assert_int_equal(count_ops(log, ops[ll][k], u, layer), 1);
            dbo_json_destroy(answer);
            json_text_fini(&text);
            dbo_json_destroy(file);
        }
}

/* Without DBO: the calls of one layer, everything on the compute stream, no host wait. */
static void unsplit(void **state)
{
    (void)state;
    static const char *const want[] = {"A0",           "A1",       "DISPATCH_SEND", "DISPATCH_RECV",
                                       "QUANT",        "MLP",      "COMBINE_SEND",  "SHARED",
                                       "COMBINE_RECV", "MODEL_END"};
    for (int ll = 0; ll < 2; ll++) {
        dbo_json *file = make_case(ll ? "LL" : "HT", 1, 1, false, true);
        json_text text = {0};
        dbo_json *answer = evaluate(file, DBO_CONTEXT_FIBER, &text);
        const json_t *log = log_of(answer, 0);
        assert_int_equal(json_array_size(log), ll ? 10 : 12);
        for (size_t i = 0; i < json_array_size(log); i++) {
            const json_t *e = json_array_get(log, i);
            assert_true(is_word(e, "stream", "compute"));
            assert_int_equal(json_integer_value(json_object_get(e, "ubatch")), 0);
            assert_true(!ll || is_word(e, "op", want[i]));
        }
        dbo_json_destroy(answer);
        json_text_fini(&text);
        dbo_json_destroy(file);
    }
}

/* What the reference rejects, and what is no case at all: a sentence each; the others go on. */
static void bad_cases(void **state)
{
    (void)state;
    static const char head[] = "\"shared_experts\": true, \"dbo\": true, \"layers\": 1";
    static const char *const cases[] = {"\"backend\": \"LL\", \"num_ubatches\": 1",
                                        "\"backend\": \"LL\", \"num_ubatches\": 0",
                                        "\"backend\": \"LL\", \"num_ubatches\": 17",
                                        "\"backend\": \"ll\", \"num_ubatches\": 2",
                                        "\"backend\": 3, \"num_ubatches\": 2",
                                        "\"num_ubatches\": 2",
                                        "\"backend\": \"HT\", \"num_ubatches\": 2, \"rocm\": 1"};
    const size_t count = sizeof cases / sizeof *cases;
    char text[2048] = "{\"cases\": [";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "{%s, %s}, ", head, cases[i]);
    }
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used,
             "{%s, \"backend\": \"HT\", \"num_ubatches\": 2, \"rocm\": false}]}", head);
    dbo_json *file = NULL;
    json_text answered = {0};
    assert_int_equal(dbo_json_parse(&file, text, strlen(text), NULL, NULL), DBO_OK);
    dbo_json *answer = evaluate(file, DBO_CONTEXT_FIBER, &answered);
    const json_t *results = json_object_get(dbo_json_tree(answer), "results");
    assert_int_equal(json_array_size(results), count + 1);
    for (size_t i = 0; i < count; i++)
        assert_true(json_string_value(json_object_get(json_array_get(results, i), "error"))[0] !=
                    '\0');
    assert_int_equal(json_array_size(log_of(answer, count)), 75);
    dbo_json_destroy(answer);
    json_text_fini(&answered);
    dbo_json_destroy(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_are_the_references),
        cmocka_unit_test(executors_agree),
        cmocka_unit_test(every_op_once),
        cmocka_unit_test(unsplit),
        cmocka_unit_test(bad_cases),
    };
    return cmocka_run_group_tests_name("pingpong", tests, NULL, NULL);
}
