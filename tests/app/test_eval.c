/* test_eval.c: `dbo eval` on cases that are wrong: missing keys, other types, noise; and its exit
 * codes. */
#include "app/commands.h"
#include "app/eval/eval.h"
#include "core/base/prng.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"

#include <fcntl.h>
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
    dbo_json_text out_text = {0};
    dbo_json_writer out;
    *answer = NULL;
    DBO_TRY(dbo_json_parse(&file, text, length, NULL, err));
    dbo_json_writer_init(&out, dbo_json_sink_text, &out_text, 1);
    dbo_status status = dbo_eval(kind, dbo_json_root(file), &fibers, &out, err);
    if (status == DBO_OK)
        status = dbo_json_writer_finish(&out, err);
    if (status == DBO_OK)
        status = dbo_json_parse(answer, out_text.bytes, out_text.length, NULL, err);
    dbo_json_text_fini(&out_text);
    dbo_json_destroy(file);
    return status;
}

static void write_value(dbo_json_writer *w, const dbo_json_value *value)
{
    switch (dbo_json_type_of(value)) {
    case DBO_JSON_NULL: dbo_json_put_null(w); return;
    case DBO_JSON_BOOL: dbo_json_put_bool(w, dbo_json_bool(value)); return;
    case DBO_JSON_INT: dbo_json_put_int(w, dbo_json_int(value)); return;
    case DBO_JSON_DOUBLE: dbo_json_put_double(w, dbo_json_double(value)); return;
    case DBO_JSON_STRING: dbo_json_put_string(w, dbo_json_string(value)); return;
    case DBO_JSON_ARRAY: dbo_json_open_array(w); break;
    case DBO_JSON_OBJECT: dbo_json_open_object(w); break;
    }
    for (size_t i = 0; i < dbo_json_count(value); i++) {
        if (dbo_json_key_at(value, i) != NULL)
            dbo_json_key(w, dbo_json_key_at(value, i));
        write_value(w, dbo_json_at(value, i));
    }
    dbo_json_close(w);
}

/* A file with one case: `c` without the key `left_out`, or with a text in its place. */
static void write_case(dbo_json_text *text, const char *list, const dbo_json_value *c,
                       const char *left_out, bool as_text)
{
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_text, text, 0);
    dbo_json_open_object(&w);
    dbo_json_key(&w, list);
    dbo_json_open_array(&w);
    dbo_json_open_object(&w);
    for (size_t i = 0; i < dbo_json_count(c); i++) {
        const char *key = dbo_json_key_at(c, i);
        bool is_left_out = strcmp(key, left_out) == 0;
        if (is_left_out && !as_text)
            continue;
        dbo_json_key(&w, key);
        if (is_left_out)
            dbo_json_put_string(&w, "what");
        else
            write_value(&w, dbo_json_at(c, i));
    }
    dbo_json_close(&w);
    dbo_json_close(&w);
    dbo_json_close(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
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
static bool is_error_naming(const char *kind, const char *list, const dbo_json_value *c,
                            const char *key, bool as_text)
{
    dbo_json_text text = {0};
    dbo_json *answer = NULL;
    dbo_error err = {0};
    char quoted[96];
    write_case(&text, list, c, key, as_text);
    if (eval_text(kind, text.bytes, text.length, &answer, &err) != DBO_OK)
        fail_msg("%s without %s: %s", kind, key, err.message);
    const dbo_json_value *result = dbo_json_at(dbo_json_get(dbo_json_root(answer), "results"), 0);
    const char *sentence = dbo_json_string(dbo_json_get(result, "error"));
    (void)snprintf(quoted, sizeof quoted, "\"%s", key);
    bool names = sentence[0] != '\0' && strstr(sentence, quoted) != NULL;
    if (sentence[0] != '\0' && !names)
        fail_msg("%s without %s: %s", kind, key, sentence);
    dbo_json_destroy(answer);
    dbo_json_text_fini(&text);
    return names;
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
        const dbo_json_value *c = dbo_json_at(dbo_json_get(dbo_json_root(file), kinds[k].list), 0);
        int missing = 0, wrong = 0;
        for (size_t i = 0; i < dbo_json_count(c); i++) {
            const char *key = dbo_json_key_at(c, i);
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
    const dbo_json_value *results = dbo_json_get(dbo_json_root(answer), "results");
    assert_int_equal(dbo_json_count(results), 4);
    assert_true(dbo_json_bool(dbo_json_get(dbo_json_at(results, 0), "result")));
    assert_non_null(dbo_json_get(dbo_json_at(results, 1), "error"));
    assert_non_null(dbo_json_get(dbo_json_at(results, 2), "error"));
    assert_false(dbo_json_bool(dbo_json_get(dbo_json_at(results, 3), "result")));
    assert_null(dbo_json_get(dbo_json_at(results, 3), "error"));
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
        assert_non_null(strstr(err.message, "\"cases\""));
    }
    dbo_error err = {0};
    assert_int_equal(eval_text("vetto", "{}", 2, &answer, &err), DBO_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "veto"));
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
        const dbo_json_value *cases = dbo_json_get(dbo_json_root(files[round % 6]), "cases");
        dbo_json_text text = {0};
        write_case(&text, "cases", dbo_json_at(cases, dbo_prng_below(&prng, dbo_json_count(cases))),
                   "tag", false);
        for (uint64_t hits = dbo_prng_below(&prng, 3) + 1; hits > 0; hits--)
            text.bytes[dbo_prng_below(&prng, text.length)] =
                replacement[dbo_prng_below(&prng, sizeof replacement - 1)];
        dbo_status status = eval_text(kind, text.bytes, text.length, &answer, NULL);
        assert_true(status == DBO_OK || status == DBO_PARSE || status == DBO_LIMIT);
        refused += status != DBO_OK;
        answered += status == DBO_OK;
        dbo_json_destroy(answer);
        dbo_json_text_fini(&text);
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
        cmocka_unit_test(noise_never_crashes),
        cmocka_unit_test(exit_codes_tell_the_kind_of_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
