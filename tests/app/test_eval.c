/* test_eval.c: `dbo eval` on cases that are wrong: missing keys, other types, noise; and its exit
 * codes. */
#include "app/command/commands.h"
#include "core/base/prng.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"
#include "tests/support/eval_kind.h"
#include "tests/support/json_text.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

static const dbo_eval_options fibers = {.executor = DBO_CONTEXT_FIBER};

/* Evaluates; the answer is the caller's to destroy. */
static dbo_status eval_text(const char *kind, const char *text, size_t length, dbo_json **answer,
                            dbo_error *err)
{
    dbo_json *file = NULL;
    json_text out_text = {0};
    dbo_json_writer out;
    *answer = NULL;
    DBO_TRY(dbo_json_parse(&file, text, length, NULL, err));
    dbo_json_writer_init(&out, json_text_sink, &out_text, 1);
    dbo_status status = dbo_eval(eval_kind(kind), dbo_json_root(file), &fibers, &out, err);
    if (status == DBO_OK)
        status = dbo_json_writer_finish(&out, err);
    if (status == DBO_OK)
        status = dbo_json_parse(answer, out_text.bytes, out_text.length, NULL, err);
    json_text_fini(&out_text);
    dbo_json_destroy(file);
    return status;
}

/* A file with one case: `c` without the key `left_out`, or with a text in its place. To be freed.
 */
static char *write_case(const char *list, const json_t *c, const char *left_out, bool as_text)
{
    json_t *changed = json_deep_copy(c);
    if (as_text)
        json_object_set_new(changed, left_out, json_string("what"));
    else
        json_object_del(changed, left_out);
    json_t *file = json_pack("{s:[o]}", list, changed);
    char *text = json_dumps(file, 0);
    assert_non_null(text);
    json_decref(file);
    return text;
}

static dbo_json *read_golden(const char *name)
{
    char path[512];
    dbo_json *file = NULL;
    dbo_error err = {0};
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s.json", DBO_SOURCE_DIR, name);
    if (dbo_json_read_file(&file, path, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return file;
}

/* The case without one key: the error names it, or the key was not needed. */
static bool is_error_naming(const char *kind, const char *list, const json_t *c, const char *key,
                            bool as_text)
{
    dbo_json *answer = NULL;
    dbo_error err = {0};
    size_t length = strlen(key);
    char *text = write_case(list, c, key, as_text);
    if (eval_text(kind, text, strlen(text), &answer, &err) != DBO_OK)
        fail_msg("%s without %s: %s", kind, key, err.message);
    const json_t *result = json_array_get(json_object_get(dbo_json_tree(answer), "results"), 0);
    const char *sentence = json_string_value(json_object_get(result, "error"));
    bool fails = sentence != NULL;
    if (fails && (strncmp(sentence, key, length) != 0 || sentence[length] != ':'))
        fail_msg("%s without %s: %s", kind, key, sentence);
    dbo_json_destroy(answer);
    free(text);
    return fails;
}

static void a_missing_or_wrong_key_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *file, *list;
        int needed; /* keys of a case that the kind reads */
    } kinds[] = {
        {"slices", "slices", "cases", 6},
        {"attn_split", "attn_split", "cases", 2},
        {"vote", "vote", "cases", 5},
        {"vote_seed", "vote_seed", "cases", 7},
        {"split_seed", "split_seed", "cases", 5},
        {"veto", "veto", "cases", 6},
        {"thresholds", "thresholds", "thresholds", 6},
        {"last_ubatch_empty", "thresholds", "is_last_ubatch_empty", 3},
        {"uniform_decode", "thresholds", "is_uniform_decode", 5},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        dbo_json *file = read_golden(kinds[k].file);
        json_t *c = json_array_get(json_object_get(dbo_json_tree(file), kinds[k].list), 0);
        int missing = 0, wrong = 0;
        for (void *at = json_object_iter(c); at; at = json_object_iter_next(c, at)) {
            const char *key = json_object_iter_key(at);
            missing += is_error_naming(kinds[k].kind, kinds[k].list, c, key, false);
            wrong += is_error_naming(kinds[k].kind, kinds[k].list, c, key, true);
        }
        if (missing != kinds[k].needed || wrong != kinds[k].needed)
            fail_msg("%s: %d keys missed, %d of another type refused, not %d", kinds[k].kind,
                     missing, wrong, kinds[k].needed);
        dbo_json_destroy(file);
    }
}

static void a_bad_case_does_not_stop_the_others(void **state)
{
    (void)state;
    static const char text[] =
        "{\"is_last_ubatch_empty\": [{\"orig\": 32, \"padded\": 64, \"num_ubatches\": 2}, 7,"
        " {\"orig\": 32, \"padded\": 64, \"num_ubatches\": 0},"
        " {\"orig\": 33, \"padded\": 64, \"num_ubatches\": 2}]}";
    dbo_json *answer = NULL;
    assert_int_equal(eval_text("last_ubatch_empty", text, sizeof text - 1, &answer, NULL), DBO_OK);
    const json_t *results = json_object_get(dbo_json_tree(answer), "results");
    assert_int_equal(json_array_size(results), 4);
    assert_true(json_is_true(json_object_get(json_array_get(results, 0), "result")));
    assert_non_null(json_object_get(json_array_get(results, 1), "error"));
    assert_non_null(json_object_get(json_array_get(results, 2), "error"));
    assert_false(json_is_true(json_object_get(json_array_get(results, 3), "result")));
    assert_null(json_object_get(json_array_get(results, 3), "error"));
    dbo_json_destroy(answer);
}

static void files_of_another_shape_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]", "7", "{}", "{\"cases\": {}}", "{\"cases\": null}"};
    dbo_json *answer = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dbo_error err = {0};
        assert_int_equal(eval_text("veto", texts[i], strlen(texts[i]), &answer, &err), DBO_PARSE);
        bool is_object = texts[i][0] == '{';
        assert_string_equal(err.key, is_object ? "cases" : "");
        assert_memory_equal(err.message, is_object ? "cases: " : "must be", 7);
    }
}

/* A misspelt key must not be passed over, in the file or in one case of it. */
static void unknown_keys_are_refused(void **state)
{
    (void)state;
    static const char in_file[] = "{\"zzz\": 1, \"is_last_ubatch_empty\": []}";
    static const char in_case[] = "{\"notes\": 0, \"is_last_ubatch_empty\": ["
                                  "{\"orig\": 5, \"padded\": 9, \"num_ubatches\": 2, \"tag\": 3},"
                                  "{\"orig\": 5, \"padded\": 9, \"num_ubatches\": 2, \"yyy\": 3}]}";
    dbo_json *answer = NULL;
    dbo_error err = {0};
    assert_int_equal(eval_text("last_ubatch_empty", in_file, strlen(in_file), &answer, &err),
                     DBO_PARSE);
    assert_string_equal(err.message, "zzz: unknown key");
    assert_int_equal(eval_text("last_ubatch_empty", in_case, strlen(in_case), &answer, &err),
                     DBO_OK);
    const json_t *results = json_object_get(dbo_json_tree(answer), "results");
    assert_null(json_object_get(json_array_get(results, 0), "error"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(results, 1), "error")),
                        "yyy: unknown key");
    dbo_json_destroy(answer);
}

/* Nor in an object inside a case: `c` of a kind's golden cases, with one more key there. */
static void unknown_keys_inside_a_case_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *at, *sentence;
        size_t index; /* in the list there */
    } inside[] = {
        {"attn_split", "input", "input.zz: unknown key", 0},
        {"attn_split", "ubatch_slices", "ubatch_slices[1].zz: unknown key", 1},
        {"vote", "ranks", "ranks[1].zz: unknown key", 1},
        {"vote_seed", "ranks", "ranks[0].zz: unknown key", 0},
        {"veto", "groups", "groups[0].zz: unknown key", 0},
    };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        dbo_json *answer = NULL, *golden = read_golden(inside[i].kind);
        json_t *c = NULL, *cases = json_object_get(dbo_json_tree(golden), "cases"), *at = NULL;
        for (size_t k = 0; !json_is_object(at); k++) { /* a case that has so many there */
            assert_true(k < json_array_size(cases));
            c = json_array_get(cases, k);
            at = json_object_get(c, inside[i].at);
            at = json_is_array(at) ? json_array_get(at, inside[i].index) : at;
        }
        json_object_set_new(at, "zz", json_integer(3));
        char *text = write_case("cases", c, "", false);
        dbo_error err = {0};
        if (eval_text(inside[i].kind, text, strlen(text), &answer, &err) != DBO_OK)
            fail_msg("%s: %s", inside[i].kind, err.message);
        const json_t *result = json_array_get(json_object_get(dbo_json_tree(answer), "results"), 0);
        const char *sentence = json_string_value(json_object_get(result, "error"));
        assert_non_null(sentence);
        assert_string_equal(sentence, inside[i].sentence);
        dbo_json_destroy(answer);
        dbo_json_destroy(golden);
        free(text);
    }
}

/* No tokens are a number of them, less than none are not; lists may be longer than is needed. */
static void lists_of_requests_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *computed, *scheduled, *sentence; /* NULL: allowed */
    } cases[] = {
        {"[0, 0]", "[0, 0]", NULL},
        {"[7, 5, 3]", "[1, 0, 9, 4]", NULL},
        {"[0, -1]", "[0, 0]", "num_computed_tokens[1]: must be from 0 to 2147483647, not -1"},
        {"[0, 0]", "[-1, 0]", "num_scheduled_tokens[0]: must be from 0 to 2147483647, not -1"},
        {"[5]", "[6, 7]",
         "num_computed_tokens and num_scheduled_tokens must have the 2 elements of num_reqs"},
        {"[5, 6]", "[7]",
         "num_computed_tokens and num_scheduled_tokens must have the 2 elements of num_reqs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        dbo_json *answer = NULL;
        snprintf(text, sizeof text,
                 "{\"cases\": [{\"use_ubatching\": true, \"reorder_batch_threshold\": null,"
                 " \"num_reqs\": 2, \"groups\": [], \"num_computed_tokens\": %s,"
                 " \"num_scheduled_tokens\": %s}]}",
                 cases[i].computed, cases[i].scheduled);
        assert_int_equal(eval_text("veto", text, strlen(text), &answer, NULL), DBO_OK);
        const json_t *result = json_array_get(json_object_get(dbo_json_tree(answer), "results"), 0);
        const char *sentence = json_string_value(json_object_get(result, "error"));
        if (!cases[i].sentence != !sentence ||
            (sentence && strcmp(sentence, cases[i].sentence) != 0))
            fail_msg("%s, %s: %s", cases[i].computed, cases[i].scheduled, sentence);
        assert_int_equal(json_is_true(json_object_get(result, "allow")), !cases[i].sentence);
        dbo_json_destroy(answer);
    }
}

/* The threshold of a veto may be 0, and not less. */
static void a_threshold_may_be_zero(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {{"0", NULL},
                 {"-1", "reorder_batch_threshold: must be from 0 to 2147483647, not -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        dbo_json *answer = NULL;
        snprintf(text, sizeof text,
                 "{\"cases\": [{\"use_ubatching\": true, \"reorder_batch_threshold\": %s,"
                 " \"num_reqs\": 0, \"groups\": [], \"num_computed_tokens\": [],"
                 " \"num_scheduled_tokens\": []}]}",
                 cases[i].text);
        assert_int_equal(eval_text("veto", text, strlen(text), &answer, NULL), DBO_OK);
        const json_t *result = json_array_get(json_object_get(dbo_json_tree(answer), "results"), 0);
        const char *sentence = json_string_value(json_object_get(result, "error"));
        if (!cases[i].sentence != !sentence ||
            (sentence && strcmp(sentence, cases[i].sentence) != 0))
            fail_msg("%s: %s", cases[i].text, sentence);
        dbo_json_destroy(answer);
    }
}

/* Random damage must end in an error or in some answer, never in a crash. */
static void noise_never_crashes(void **state)
{
    (void)state;
    static const char *const kinds[] = {"vote", "vote_seed", "split_seed",
                                        "veto", "slices",    "attn_split"};
    static const char replacement[] = "0123456789-[]{},:\"truefalsn \n";
    dbo_json *files[6];
    dbo_prng prng;
    int refused = 0, answered = 0;
    for (size_t k = 0; k < 6; k++)
        files[k] = read_golden(kinds[k]);
    dbo_prng_init(&prng, 5, 0);
    for (int round = 0; round < 1200; round++) {
        const char *kind = kinds[round % 6];
        dbo_json *answer = NULL;
        const json_t *cases = json_object_get(dbo_json_tree(files[round % 6]), "cases");
        size_t which = dbo_prng_below(&prng, json_array_size(cases));
        char *text = write_case("cases", json_array_get(cases, which), "tag", false);
        size_t length = strlen(text);
        for (uint64_t hits = dbo_prng_below(&prng, 3) + 1; hits > 0; hits--)
            text[dbo_prng_below(&prng, length)] =
                replacement[dbo_prng_below(&prng, sizeof replacement - 1)];
        dbo_status status = eval_text(kind, text, length, &answer, NULL);
        assert_true(status == DBO_OK || status == DBO_PARSE || status == DBO_LIMIT);
        refused += status != DBO_OK;
        answered += status == DBO_OK;
        dbo_json_destroy(answer);
        free(text);
    }
    for (size_t k = 0; k < 6; k++)
        dbo_json_destroy(files[k]);
    assert_true(refused > 50 && answered > 50);
}

/* Runs the subcommand in a process of its own, quietly, with `input` as its standard input. */
static int run_command(const char *const *arguments, const char *input)
{
    char *argv[8] = {0};
    int argc = 0;
    for (; arguments[argc] != NULL; argc++)
        argv[argc] = (char *)arguments[argc];
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *file = tmpfile();
        int null = open("/dev/null", O_WRONLY);
        if (file == NULL || null < 0 || fputs(input, file) < 0 || fflush(file) != 0)
            _exit(99);
        rewind(file);
        (void)dup2(fileno(file), STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        _exit(dbo_cli_run(&dbo_command_eval, argc, argv));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void exit_codes_tell_the_kind_of_failure(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[7], *input;
        int code;
    } runs[] = {
        {{"eval", "veto", "--in", "-"}, "{\"cases\": [{}]}", 0},
        {{"eval", "veto", "--executor=thread", "-i", "-"}, "{\"cases\": []}", 0},
        {{"eval", "--help"}, "", 0},
        {{"eval", "veto", "--in", "-"}, "{\"cases\": [", 1},
        {{"eval", "veto", "--in", "-"}, "{}", 1},
        {{"eval", "veto"}, "", 2},
        {{"eval", "--in", "-"}, "", 2},
        {{"eval", "nothing", "--in", "-"}, "", 2},
        {{"eval", "veto", "vote", "--in", "-"}, "", 2},
        {{"eval", "veto", "--in", "/nonexistent"}, "", 2},
        {{"eval", "veto", "--in", "-", "--executor", "process"}, "", 2},
        {{"eval", "veto", "--in", "-", "--wrong"}, "", 2},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        int code = run_command(runs[i].arguments, runs[i].input);
        if (code != runs[i].code)
            fail_msg("run %zu ended with %d, not %d", i, code, runs[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_or_wrong_key_is_named),
        cmocka_unit_test(a_bad_case_does_not_stop_the_others),
        cmocka_unit_test(files_of_another_shape_are_refused),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(unknown_keys_inside_a_case_are_refused),
        cmocka_unit_test(lists_of_requests_have_bounds),
        cmocka_unit_test(a_threshold_may_be_zero),
        cmocka_unit_test(noise_never_crashes),
        cmocka_unit_test(exit_codes_tell_the_kind_of_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
