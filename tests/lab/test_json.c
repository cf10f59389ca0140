/* test_json.c: reading foreign JSON (values, places, refusals) and printing our own. */
#include "lab/files/json.h"
#include "lab/files/json_write.h"
#include "tests/support/json_text.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

static dbo_json *parse(const char *text)
{
    dbo_json *doc = NULL;
    dbo_error err = {0};
    if (dbo_json_parse(&doc, text, strlen(text), NULL, &err) != DBO_OK)
        fail_msg("%s: %s", text, err.message);
    return doc;
}

/* What is said, what its fields are, and that there is no document. */
static void refuse(const char *text, size_t length, dbo_status status, uint32_t line,
                   uint32_t column, const char *key, const char *sentence)
{
    dbo_json *doc = NULL;
    dbo_error err = {0};
    char message[512];
    dbo_status got = dbo_json_parse(&doc, text, length, NULL, &err);
    snprintf(message, sizeof message, "line %u, column %u: %s%s%s", line, column, key,
             key[0] ? ": " : "", sentence);
    if (got != status || strncmp(err.message, message, strlen(message)) != 0)
        fail_msg("%.300s: %s: \"%s\" is not \"%s\"", text, dbo_status_name(got), err.message,
                 message);
    assert_string_equal(err.key, key);
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
    assert_null(doc);
}

static void values_are_what_the_text_says(void **state)
{
    (void)state;
    dbo_json *doc = parse("\xEF\xBB\xBF{ \"a\": [1, -2.5,\n  true, null, \"\\u00e9\\n\"],\n"
                          "\"big\": 9223372036854775807, \"low\": -9223372036854775808 }");
    const dbo_json_value *root = dbo_json_root(doc);
    dbo_json_value a = dbo_json_get(root, "a"), big = dbo_json_get(root, "big");
    dbo_json_value low = dbo_json_get(root, "low"), none = dbo_json_get(&a, "b");
    static const dbo_json_type types[] = {DBO_JSON_INT,  DBO_JSON_DOUBLE, DBO_JSON_BOOL,
                                          DBO_JSON_NULL, DBO_JSON_STRING, DBO_JSON_NULL};
    assert_int_equal(dbo_json_count(&a), 5);
    assert_int_equal(dbo_json_count(root), 0);
    for (size_t i = 0; i < 6; i++) {
        dbo_json_value element = dbo_json_at(&a, i);
        assert_int_equal(dbo_json_type_of(&element), types[i]);
        assert_int_equal(element.node != NULL, i < 5);
        assert_int_equal(dbo_json_int(&element), i == 0);
        assert_string_equal(dbo_json_string(&element), i == 4 ? "\xC3\xA9\n" : "");
    }
    assert_int_equal(dbo_json_int(&big), INT64_MAX);
    assert_int_equal(dbo_json_int(&low), INT64_MIN);
    assert_null(none.node);
    assert_false(dbo_json_has(root, "b"));
    dbo_json_destroy(doc);
    dbo_json_destroy(NULL);
}

static void roots_need_not_be_objects(void **state)
{
    (void)state;
    dbo_json *doc = parse("  17");
    assert_int_equal(dbo_json_int(dbo_json_root(doc)), 17);
    dbo_json_destroy(doc);
    doc = parse("[]");
    assert_int_equal(dbo_json_count(dbo_json_root(doc)), 0);
    dbo_json_destroy(doc);
}

static void what_is_refused_has_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *key, *sentence;
    } cases[] = {
        {"", 1, 1, "", "not JSON: the text ends too early"},
        {"   \n", 2, 1, "", "not JSON: the text ends too early"},
        {"{\"a\": [1, 2", 1, 12, "a[1]", "not JSON: the text ends too early"},
        {"{\"a\": 1,\n  }", 2, 3, "", "not JSON: "},
        {"[1 2]", 1, 4, "[0]", "not JSON: "},
        {"{\"a\" 1}", 1, 6, "a", "not JSON: "},
        {"[7, {\"b\": nul}]", 1, 11, "[1].b", "not JSON: "},
        {"[1]]", 1, 4, "", "not JSON: "},
        {"{\"a\":1} x", 1, 9, "", "not JSON: "},
        {"[\"\\ud80\n\"]", 1, 2, "[0]", "not JSON: invalid escape near '\"\\ud80?'"},
        {"{\"gr\xC3\xB6\xC3\x9F\x65\": [4, nul]}", 1, 15, "gr\xC3\xB6\xC3\x9F\x65[1]",
         "not JSON: "},
        {"[3, 01]", 1, 5, "[1]", "not JSON: "},
        {"[\"a\nb\"]", 1, 2, "[0]", "not JSON: "},
        {"{\"a\": {\"b\":\n 1e999}, 5}", 2, 10, "", "not JSON: "},
        {"[1e999, 70000000000000000000, nul]", 1, 31, "[2]", "not JSON: "},
        {"[1e999", 1, 7, "[0]", "not JSON: the text ends too early"},
        {"[1e999, \"\\u0000\"]", 1, 9, "[1]", "a string holds the character U+0000"},
        {"[[], [\"\xFF\"]]", 1, 7, "[1][0]", "not JSON: the text is not UTF-8"},
        {"[[], [\"\xED\xA0\x80\"]]", 1, 7, "[1][0]", "not JSON: the text is not UTF-8"},
        {"{\"a\": [\"\xC3\xA9\", \"\\ud800\"]}", 1, 13, "a[1]", "not JSON: invalid Unicode"},
        {"{\"a\": \"\\udc00\\ud800\"}", 1, 7, "a", "not JSON: invalid Unicode"},
        {"{\"a\": \"x\\ud83d\\u0041\"}", 1, 7, "a", "not JSON: invalid Unicode"},
        {"[\"a\\u0000b\"]", 1, 2, "[0]", "a string holds the character U+0000"},
        {"{\"c\": 1, \"a\\u0000b\": 2}", 1, 10, "a\\u0000b", "a string holds the character"},
        {"{\"p\": [0, {\"a\": 1,\n \"c\": 3, \"a\": 2}]}", 2, 10, "p[1].a",
         "this key appears twice in one object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].text, strlen(cases[i].text), DBO_PARSE, cases[i].line, cases[i].column,
               cases[i].key, cases[i].sentence);
    refuse(NULL, 0, DBO_PARSE, 1, 1, "", "not JSON: the text ends too early");
    refuse("[5, 1\0]", 7, DBO_PARSE, 1, 6, "[1]", "not JSON: a byte is 0");
    dbo_json *doc = parse("[\"\\ud83d\\ude00\"]"); /* a pair is a character */
    dbo_json_value first = dbo_json_at(dbo_json_root(doc), 0);
    assert_string_equal(dbo_json_string(&first), "\xF0\x9F\x98\x80");
    dbo_json_destroy(doc);
}

/* A number of any size is read, and whoever wants it says which ones will do. */
static void numbers_of_any_size_are_read(void **state)
{
    (void)state;
    dbo_json *doc = parse("{\"a\\\"1e999\": [9223372036854775808, -9223372036854775809, 1e999,"
                          "-3.5E+400, \"7e999\\\\\", 99999999999999999999e2, 5, 1e-999, true]}");
    dbo_json_value list = dbo_json_get(dbo_json_root(doc), "a\"1e999");
    static const double numbers[] = {0x1p63, -0x1p63, DBL_MAX, -DBL_MAX, 0, 99999999999999999999e2};
    assert_int_equal(dbo_json_count(&list), 9);
    for (size_t i = 0; i < 9; i++) {
        dbo_json_value value = dbo_json_at(&list, i);
        if (i == 4)
            assert_string_equal(dbo_json_string(&value), "7e999\\");
        else if (i < 6)
            assert_true(json_real_value(value.node) == numbers[i]);
        else if (i == 6)
            assert_int_equal(dbo_json_int(&value), 5);
    }
    dbo_json_destroy(doc);
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{\"n\": 9223372036854775808}", "n: must be from -7 to 5, not 9.22337203685478e+18"},
        {"{\"n\": -9223372036854775809}", "n: must be from -7 to 5, not -9.22337203685478e+18"},
        {"{\"n\": 1e17}", "n: must be an integer, not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dbo_error err = {0};
        int32_t n = 0;
        doc = parse(cases[i].text);
        assert_int_equal(dbo_json_need_int32(dbo_json_root(doc), "n", -7, 5, &n, &err), DBO_PARSE);
        assert_string_equal(err.message, cases[i].sentence);
        dbo_json_destroy(doc);
    }
}

static bool at_third_poll(void *polls)
{
    return ++*(int *)polls == 3;
}

static void depth_values_and_size_are_bounded(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(DEEP), key[64];
    assert_non_null(text);
    memset(text, '[', DEEP);
    for (int i = 0; i < 63; i++)
        key[i] = "[0]"[i % 3];
    memcpy(key + 60, "...", 4);
    dbo_json *doc = NULL;
    dbo_error err = {0};
    assert_int_equal(dbo_json_parse(&doc, text, DEEP, NULL, &err), DBO_LIMIT);
    assert_string_equal(err.key, key);
    assert_int_equal(err.column, DBO_JSON_MAX_DEPTH + 1);
    assert_non_null(strstr(err.message, "arrays and objects are nested more than 64 deep"));
    memset(text + DBO_JSON_MAX_DEPTH, ']', DBO_JSON_MAX_DEPTH);
    assert_int_equal(dbo_json_parse(&doc, text, (size_t)2 * DBO_JSON_MAX_DEPTH, NULL, NULL),
                     DBO_OK);
    dbo_json_destroy(doc);

    const dbo_json_options few = {.max_values = 3};
    assert_int_equal(dbo_json_parse(&doc, "[1,2]", 5, &few, NULL), DBO_OK);
    dbo_json_destroy(doc);
    assert_int_equal(dbo_json_parse(&doc, "[1,\n2,3]", 8, &few, &err), DBO_LIMIT);
    assert_string_equal(err.message, "line 2, column 2: [2]: the document has more than 3 values");
    const dbo_json_options small = {.name = "f.json", .max_bytes = 6};
    assert_int_equal(dbo_json_parse(&doc, "[1,2,3]", 7, &small, &err), DBO_LIMIT);
    assert_string_equal(err.message, "f.json: the text has more than 6 bytes");

    int polls = 0;
    const dbo_json_options slow = {.cancelled = at_third_poll, .cancelled_self = &polls};
    memset(text, ' ', DEEP);
    for (int i = 0; i < DEEP; i += 2)
        text[i] = '7', text[i + 1] = ',';
    text[0] = '[';
    text[DEEP - 1] = ']';
    assert_int_equal(dbo_json_parse(&doc, text, DEEP, &slow, &err), DBO_PARSE);
    text[1] = ' ';
    polls = 0;
    assert_int_equal(dbo_json_parse(&doc, text, DEEP, &slow, &err), DBO_CANCELLED);
    assert_int_equal(polls, 3);
    assert_null(doc);
    free(text);
}

static void every_prefix_of_a_document_is_refused_cleanly(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1.5e3, {\"b\": \"\\u20ac\"}, null], \"c\": {}, \"d\": -7}";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        dbo_json *doc = NULL;
        assert_int_equal(dbo_json_parse(&doc, text, length, NULL, NULL), DBO_PARSE);
    }
    dbo_json_destroy(parse(text));
}

static void large_objects_are_searched_by_key(void **state)
{
    (void)state;
    json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    dbo_json_open(&w, NULL, '{');
    for (int i = 0; i < 5000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", (i * 7919) % 5000);
        dbo_json_put_int(&w, key, i);
    }
    dbo_json_close(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
    dbo_json *doc = parse(text.bytes);
    for (int i = 0; i < 5000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", (i * 7919) % 5000);
        dbo_json_value value = dbo_json_get(dbo_json_root(doc), key);
        assert_int_equal(dbo_json_int(&value), i);
    }
    assert_false(dbo_json_has(dbo_json_root(doc), "k5000"));
    dbo_json_destroy(doc);
    json_text_fini(&text);
}

static const char readable[] = "{\"n\": 5,\n \"x\": 2.5, \"s\": \"hi\", \"z\": null, \"f\": false, "
                               "\"l\": [1, \"a\", 9007199254740993]}";

static void readers_take_what_fits(void **state)
{
    (void)state;
    static const char *const words[] = {"ha", "he", "hi"};
    dbo_json *doc = parse(readable);
    const dbo_json_value *root = dbo_json_root(doc);
    dbo_json_value value;
    int64_t integer = 42;
    uint32_t index = 7;
    double real = 0;
    bool flag = true;
    const char *string = NULL;
    assert_int_equal(dbo_json_need_int(root, "n", 5, 5, &integer, NULL), DBO_OK);
    assert_int_equal(integer, 5);
    assert_int_equal(dbo_json_need_double(root, "n", 0, 9, &real, NULL), DBO_OK);
    assert_true(real > 4.5 && real < 5.5);
    assert_int_equal(DBO_JSON_OPT(int, root, "z", 0, 9, &integer, NULL), DBO_OK);
    assert_int_equal(integer, 5);
    assert_int_equal(DBO_JSON_OPT(bool, root, "absent", &flag, NULL), DBO_OK);
    assert_true(flag);
    assert_int_equal(DBO_JSON_OPT(bool, root, "f", &flag, NULL), DBO_OK);
    assert_false(flag);
    assert_int_equal(dbo_json_need(root, "z", DBO_JSON_ANY, &value, NULL), DBO_OK);
    assert_int_equal(dbo_json_need_string(root, "s", &string, NULL), DBO_OK);
    assert_string_equal(string, "hi");
    assert_int_equal(dbo_json_need_word(root, "s", "laugh", words, 3, &index, NULL), DBO_OK);
    assert_int_equal(index, 2);
    assert_int_equal(dbo_json_opt(root, "z", DBO_JSON_ARRAY, &value, NULL), DBO_OK);
    assert_null(value.node);
    dbo_json_destroy(doc);
}

static void readers_name_the_path(void **state)
{
    (void)state;
    static const char *const words[] = {"ha", "ho"};
    dbo_json *doc = NULL;
    const dbo_json_options options = {.name = "f.json"};
    assert_int_equal(dbo_json_parse(&doc, readable, strlen(readable), &options, NULL), DBO_OK);
    const dbo_json_value *root = dbo_json_root(doc);
    dbo_json_value list = dbo_json_get(root, "l"), value;
    int64_t n = 0, longs[3];
    uint32_t u = 3;
    double real = 0;
    bool flag = true;
    int32_t ints[3];
    dbo_error e[12] = {0};
    assert_int_equal(dbo_json_need_int(root, "m", 0, 9, &n, &e[0]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(root, "n", 6, 9, &n, &e[1]), DBO_PARSE);
    assert_int_equal(DBO_JSON_OPT(uint32, root, "n", 0, 4, &u, &e[2]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(root, "z", 0, 9, &n, &e[3]), DBO_PARSE);
    assert_int_equal(dbo_json_need_double(root, "x", 0, 2, &real, &e[4]), DBO_PARSE);
    assert_int_equal(dbo_json_need_bool(root, "n", &flag, &e[5]), DBO_PARSE);
    assert_int_equal(dbo_json_need(root, "n", DBO_JSON_ARRAY, &value, &e[6]), DBO_PARSE);
    assert_int_equal(dbo_json_opt(root, "l", DBO_JSON_OBJECT, &value, &e[7]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(&list, "k", 0, 9, &n, &e[8]), DBO_PARSE);
    assert_int_equal(dbo_json_int32s(&list, 0, 9, ints, &e[9]), DBO_PARSE);
    assert_int_equal(dbo_json_need_word(root, "s", "laugh", words, 2, &u, &e[10]), DBO_PARSE);
    assert_int_equal(dbo_json_int64s(&list, 0, 9, longs, &e[11]), DBO_PARSE);
    static const char *const messages[] = {
        "f.json: m: this key is missing",
        "f.json: n: must be from 6 to 9, not 5",
        "f.json: n: must be from 0 to 4, not 5",
        "f.json: z: must be an integer, not null",
        "f.json: x: must be from 0 to 2, not 2.5",
        "f.json: n: must be true or false, not an integer",
        "f.json: n: must be an array, not an integer",
        "f.json: l: must be an object, not an array",
        "f.json: l: must be an object, not an array",
        "f.json: l[1]: must be an integer, not a string",
        "f.json: s: no laugh is called 'hi'",
        "f.json: l[1]: must be an integer, not a string",
    };
    for (int i = 0; i < 12; i++) {
        assert_string_equal(e[i].message, messages[i]);
        assert_string_equal(e[i].file, "f.json");
    }
    assert_string_equal(e[9].key, "l[1]");
    assert_string_equal(e[10].hint, "did you mean 'ha'?");
    assert_int_equal(n, 0);
    dbo_json_destroy(doc);
}

/* 2^53 + 1 is no double, and is not taken for the next one. */
static void integers_are_not_rounded(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dbo_status status;
    } cases[] = {{"{\"d\": [{\"v\": 9007199254740992}]}", DBO_OK},
                 {"{\"d\": [{\"v\": 9007199254740993}]}", DBO_PARSE},
                 {"{\"d\": [{\"v\": -9007199254740993}]}", DBO_PARSE},
                 {"{\"d\": [{\"v\": 9007199254740993.0}]}", DBO_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dbo_json *doc = parse(cases[i].text);
        dbo_json_value list = dbo_json_get(dbo_json_root(doc), "d");
        dbo_json_value first = dbo_json_at(&list, 0);
        double value = 0;
        dbo_error err = {0};
        assert_int_equal(dbo_json_need_double(&first, "v", -1e18, 1e18, &value, &err),
                         cases[i].status);
        assert_string_equal(err.key, cases[i].status == DBO_OK ? "" : "d[0].v");
        dbo_json_destroy(doc);
    }
}

static void one_of_many_documents_names_its_line(void **state)
{
    (void)state;
    const dbo_json_options options = {.name = "f.jsonl", .line = 7};
    dbo_json *doc = NULL;
    dbo_error err = {0};
    int64_t value = 0;
    assert_int_equal(dbo_json_parse(&doc, "{\"a\": tru}", 10, &options, &err), DBO_PARSE);
    assert_memory_equal(err.message, "f.jsonl: line 7, column 7: a: not JSON", 38);
    assert_int_equal(err.line, 7);
    assert_int_equal(dbo_json_parse(&doc, "{\"a\": 3}", 8, &options, &err), DBO_OK);
    assert_int_equal(dbo_json_need_int(dbo_json_root(doc), "a", 4, 9, &value, &err), DBO_PARSE);
    assert_string_equal(err.message, "f.jsonl:7: a: must be from 4 to 9, not 3");
    assert_int_equal(err.line, 7);
    dbo_json_destroy(doc);
}

static void unknown_keys_are_refused_with_the_nearest_known(void **state)
{
    (void)state;
    static const char *const keys[] = {"enable_dbo", "ubatch_size", NULL, "schedule"};
    dbo_json *doc = parse("{\"schedule\": 1, \"ubatchsize\": 2}");
    dbo_error err = {0};
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 4, &err), DBO_PARSE);
    assert_string_equal(err.message, "ubatchsize: unknown key");
    assert_string_equal(err.hint, "did you mean 'ubatch_size'?");
    dbo_json_destroy(doc);
    doc = parse("{\"schedule\": 1, \"ubatch_size\": 2}");
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 4, &err), DBO_OK);
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 3, &err), DBO_PARSE);
    assert_string_equal(err.hint, "");
    dbo_json_destroy(doc);
}

static void prints_the_expected_bytes(void **state)
{
    (void)state;
    json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, json_text_sink, &text, 1);
    dbo_json_open(&w, NULL, '{');
    dbo_json_put_string(&w, "s\"", "a\\\n\t\x01\x7F\xC3\xA9\xFF\xED\xA0\x80");
    dbo_json_put_double(&w, "d", 0.1);
    dbo_json_put_double(&w, "whole", 90);
    dbo_json_put_double(&w, "tiny", 5e-324);
    dbo_json_put_double(&w, "nan", NAN);
    dbo_json_put_double(&w, "inf", -INFINITY);
    dbo_json_put_string(&w, "null", NULL);
    dbo_json_put_int(&w, "min", INT64_MIN);
    dbo_json_open(&w, "empty", '[');
    dbo_json_close(&w);
    const int32_t list[] = {1, 2, 3};
    dbo_json_put_int32s(&w, "list", list, 3);
    dbo_json_open(&w, "nested", '[');
    dbo_json_open_line(&w, NULL, '{');
    dbo_json_put_bool(&w, "a", true);
    dbo_json_put_null(&w, "b");
    dbo_json_close(&w);
    dbo_json_close(&w);
    dbo_json_close(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
    assert_string_equal(text.bytes,
                        "{\n"
                        " \"s\\\"\": \"a\\\\\\n\\t\\u0001\\u007f\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD"
                        "\xEF\xBF\xBD\xEF\xBF\xBD\",\n"
                        " \"d\": 0.1,\n \"whole\": 90.0,\n \"tiny\": 4.94065645841247e-324,\n"
                        " \"nan\": null,\n \"inf\": null,\n \"null\": null,\n"
                        " \"min\": -9223372036854775808,\n \"empty\": [],\n"
                        " \"list\": [1, 2, 3],\n \"nested\": [\n  {\"a\": true, \"b\": null}\n ]\n"
                        "}\n");
    dbo_json_destroy(parse(text.bytes));
    json_text_fini(&text);
}

static void doubles_survive_a_round_trip(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        json_text text = {0};
        dbo_json_writer w;
        dbo_json_writer_init(&w, json_text_sink, &text, 0);
        dbo_json_put_double(&w, NULL, value);
        assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
        dbo_json *doc = parse(text.bytes);
        double again = json_real_value(dbo_json_tree(doc));
        assert_memory_equal(&again, &value, sizeof value);
        dbo_json_destroy(doc);
        json_text_fini(&text);
    }
}

static bool sink_that_fails(void *self, const char *bytes, size_t length)
{
    (void)self;
    (void)bytes;
    (void)length;
    return false;
}

static void misuse_and_failing_sinks_are_reported(void **state)
{
    (void)state;
    json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL); /* nothing written */
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    dbo_json_open(&w, NULL, '{');
    dbo_json_put_int(&w, NULL, 1); /* no key */
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL);
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    dbo_json_open(&w, NULL, '[');
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL); /* still open */
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    dbo_json_put_int(&w, NULL, 1);
    dbo_json_put_int(&w, NULL, 2); /* two roots */
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL);
    dbo_json_writer_init(&w, json_text_sink, &text, 0);
    for (int i = 0; i <= DBO_JSON_WRITE_DEPTH; i++)
        dbo_json_open(&w, NULL, '[');
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_LIMIT);
    dbo_json_writer_init(&w, sink_that_fails, NULL, 0);
    dbo_json_put_int(&w, NULL, 1);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_IO);
    json_text_fini(&text);
}

static void files_that_cannot_be_read_say_which(void **state)
{
    (void)state;
    dbo_json *doc = NULL;
    dbo_error err = {0};
    assert_int_equal(dbo_json_read_file(&doc, "/nonexistent/x.json", NULL, &err), DBO_IO);
    assert_non_null(strstr(err.message, "/nonexistent/x.json"));
    assert_int_equal(dbo_json_read_file(&doc, "/", NULL, &err), DBO_IO);
    assert_null(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_the_text_says),
        cmocka_unit_test(roots_need_not_be_objects),
        cmocka_unit_test(what_is_refused_has_a_place),
        cmocka_unit_test(numbers_of_any_size_are_read),
        cmocka_unit_test(depth_values_and_size_are_bounded),
        cmocka_unit_test(every_prefix_of_a_document_is_refused_cleanly),
        cmocka_unit_test(large_objects_are_searched_by_key),
        cmocka_unit_test(readers_take_what_fits),
        cmocka_unit_test(readers_name_the_path),
        cmocka_unit_test(integers_are_not_rounded),
        cmocka_unit_test(one_of_many_documents_names_its_line),
        cmocka_unit_test(unknown_keys_are_refused_with_the_nearest_known),
        cmocka_unit_test(prints_the_expected_bytes),
        cmocka_unit_test(doubles_survive_a_round_trip),
        cmocka_unit_test(misuse_and_failing_sinks_are_reported),
        cmocka_unit_test(files_that_cannot_be_read_say_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
