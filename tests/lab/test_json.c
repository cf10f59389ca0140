/* test_json.c: reading foreign JSON (values, places, refusals) and printing our own. */
#include "lab/files/json.h"
#include "lab/files/json_write.h"

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

static void refuse(const char *text, size_t length, dbo_status status, const char *part)
{
    dbo_json *doc = NULL;
    dbo_error err = {0};
    dbo_status got = dbo_json_parse(&doc, text, length, NULL, &err);
    if (got != status || strstr(err.message, part) == NULL)
        fail_msg("%s: %s: \"%s\" lacks \"%s\"", text, dbo_status_name(got), err.message, part);
    assert_null(doc);
}

static void values_and_places(void **state)
{
    (void)state;
    dbo_json *doc = parse("\xEF\xBB\xBF{ \"a\": [1, -2.5,\n  true, null, \"\\u00e9\\n\"],\n"
                          "\"big\": 9223372036854775807, \"huge\": 9223372036854775808 }");
    const dbo_json_value *root = dbo_json_root(doc);
    const dbo_json_value *a = dbo_json_get(root, "a");
    assert_int_equal(dbo_json_count(root), 3);
    assert_int_equal(dbo_json_count(a), 5);
    assert_int_equal(dbo_json_int(dbo_json_at(a, 0)), 1);
    assert_int_equal(dbo_json_type_of(dbo_json_at(a, 1)), DBO_JSON_DOUBLE);
    assert_true(fabs(dbo_json_double(dbo_json_at(a, 1)) + 2.5) < 1e-12);
    assert_int_equal(dbo_json_line(dbo_json_at(a, 2)), 2);
    assert_int_equal(dbo_json_column(dbo_json_at(a, 2)), 3);
    assert_true(dbo_json_bool(dbo_json_at(a, 2)));
    assert_true(dbo_json_is_null(dbo_json_at(a, 3)));
    assert_string_equal(dbo_json_string(dbo_json_at(a, 4)), "\xC3\xA9\n");
    assert_null(dbo_json_at(a, 5));
    assert_int_equal(dbo_json_int(dbo_json_get(root, "big")), INT64_MAX);
    assert_int_equal(dbo_json_type_of(dbo_json_get(root, "huge")), DBO_JSON_DOUBLE);
    assert_string_equal(dbo_json_key_at(root, 2), "huge");
    assert_null(dbo_json_get(root, "b"));
    assert_null(dbo_json_get(a, "b"));
    dbo_json_destroy(doc);
    dbo_json_destroy(NULL);
}

static void roots_need_not_be_objects(void **state)
{
    (void)state;
    dbo_json *doc = parse("  17");
    assert_int_equal(dbo_json_int(dbo_json_root(doc)), 17);
    assert_int_equal(dbo_json_column(dbo_json_root(doc)), 3);
    dbo_json_destroy(doc);
    doc = parse("[]");
    assert_int_equal(dbo_json_count(dbo_json_root(doc)), 0);
    dbo_json_destroy(doc);
}

static void malformed_text_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "ends too early"},
        {"   \n", "line 2, column 1: not JSON: the text ends too early"},
        {"{\"a\": [1, 2", "line 1, column 12"},
        {"{\"a\": 1,\n  }", "line 2, column 3"},
        {"[1 2]", "line 1, column 4"},
        {"{\"a\" 1}", "not JSON"},
        {"nul", "not JSON"},
        {"[1]]", "not JSON"},
        {"{\"a\":1} x", "not JSON"},
        {"[01]", "not JSON"},
        {"[1e999]", "overflows a double"},
        {"[\"\xFF\"]", "not JSON"},
        {"[\"a\nb\"]", "not JSON"},
        {"[\"a\\u0000b\"]", "line 1, column 2: a string holds the character U+0000"},
        {"{\"a\": 1,\n \"a\": 2}", "line 2, column 7: the key \"a\" appears twice"},
        {"{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,"
         "\"k\":1,\"l\":1,\"m\":1,\"c\":2}",
         "the key \"c\" appears twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].text, strlen(cases[i].text), DBO_PARSE, cases[i].part);
    refuse("[1\0]", 4, DBO_PARSE, "not JSON");
}

static void depth_values_and_size_are_bounded(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    refuse(text, DEEP, DBO_LIMIT, "line 1, column 65: arrays and objects are nested more than 64");
    dbo_json_limits deep = {.max_depth = DEEP};
    dbo_json *doc = NULL;
    memset(text + DEEP / 2, ']', DEEP / 2);
    assert_int_equal(dbo_json_parse(&doc, text, DEEP, &deep, NULL), DBO_OK);
    dbo_json_destroy(doc);
    free(text);

    dbo_error err = {0};
    dbo_json_limits few = {.max_values = 3};
    assert_int_equal(dbo_json_parse(&doc, "[1,2]", 5, &few, &err), DBO_OK);
    dbo_json_destroy(doc);
    assert_int_equal(dbo_json_parse(&doc, "[1,2,3]", 7, &few, &err), DBO_LIMIT);
    dbo_json_limits small = {.max_bytes = 6};
    assert_int_equal(dbo_json_parse(&doc, "[1,2,3]", 7, &small, &err), DBO_LIMIT);
    assert_null(doc);
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
    dbo_json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    dbo_json_open_object(&w);
    for (int i = 0; i < 5000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", (i * 7919) % 5000);
        dbo_json_member_int(&w, key, i);
    }
    dbo_json_close(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
    dbo_json *doc = parse(text.bytes);
    for (int i = 0; i < 5000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", (i * 7919) % 5000);
        assert_int_equal(dbo_json_int(dbo_json_get(dbo_json_root(doc), key)), i);
        assert_string_equal(dbo_json_key_at(dbo_json_root(doc), (size_t)i), key);
    }
    assert_null(dbo_json_get(dbo_json_root(doc), "k5000"));
    dbo_json_destroy(doc);
    dbo_json_text_fini(&text);
}

static const char readable[] =
    "{\"n\": 5,\n \"x\": 2.5, \"s\": \"hi\", \"z\": null, \"l\": [1, \"a\"]}";

static void readers_take_what_fits(void **state)
{
    (void)state;
    dbo_json *doc = parse(readable);
    const dbo_json_value *root = dbo_json_root(doc), *value = NULL;
    int64_t integer = 42;
    double real = 0;
    bool flag = true;
    const char *string = NULL;
    assert_int_equal(dbo_json_need_int(root, "n", 0, 9, &integer, NULL), DBO_OK);
    assert_int_equal(integer, 5);
    assert_int_equal(dbo_json_need_double(root, "n", 0, 9, &real, NULL), DBO_OK);
    assert_true(real > 4.5 && real < 5.5);
    assert_int_equal(dbo_json_opt_int(root, "z", 0, 9, &integer, NULL), DBO_OK);
    assert_int_equal(dbo_json_opt_bool(root, "absent", &flag, NULL), DBO_OK);
    assert_int_equal(integer, 5);
    assert_true(flag);
    assert_int_equal(dbo_json_need(root, "z", &value, NULL), DBO_OK);
    assert_int_equal(dbo_json_need_string(root, "s", &string, NULL), DBO_OK);
    assert_string_equal(string, "hi");
    dbo_json_destroy(doc);
}

static void readers_name_the_key(void **state)
{
    (void)state;
    dbo_json *doc = parse(readable);
    const dbo_json_value *root = dbo_json_root(doc), *list = dbo_json_get(root, "l"), *value = NULL;
    int64_t n = 0;
    double real = 0;
    bool flag = true;
    int32_t ints[2];
    dbo_error e[10] = {0};
    assert_int_equal(dbo_json_need_int(root, "m", 0, 9, &n, &e[0]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(root, "n", 6, 9, &n, &e[1]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(root, "x", 0, 9, &n, &e[2]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(root, "z", 0, 9, &n, &e[3]), DBO_PARSE);
    assert_int_equal(dbo_json_need_double(root, "x", 0, 2, &real, &e[4]), DBO_PARSE);
    assert_int_equal(dbo_json_need_bool(root, "n", &flag, &e[5]), DBO_PARSE);
    assert_int_equal(dbo_json_need_array(root, "n", &value, &e[6]), DBO_PARSE);
    assert_int_equal(dbo_json_opt_object(root, "n", &value, &e[7]), DBO_PARSE);
    assert_int_equal(dbo_json_need_int(list, "k", 0, 9, &n, &e[8]), DBO_PARSE);
    assert_int_equal(dbo_json_array_int32(list, "l", 0, 9, ints, &e[9]), DBO_PARSE);
    static const char *const parts[] = {
        "the key \"m\" is missing",
        "\"n\" must be from 6 to 9",
        "line 2, column 7: \"x\" must be an integer, not a number",
        "not null",
        "\"x\" must be from 0 to 2",
        "must be true or false",
        "must be an array",
        "must be an object",
        "expected an object with the key \"k\", found an array",
        "\"l[1]\" must be an integer, not a string",
    };
    for (int i = 0; i < 10; i++)
        if (strstr(e[i].message, parts[i]) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", e[i].message, parts[i]);
    dbo_json_destroy(doc);
}

static void unknown_keys_are_refused_with_the_nearest_known(void **state)
{
    (void)state;
    static const char *const keys[] = {"enable_dbo", "ubatch_size", "schedule"};
    dbo_json *doc = parse("{\"schedule\": 1, \"ubatchsize\": 2}");
    dbo_error err = {0};
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 3, &err), DBO_PARSE);
    assert_non_null(strstr(err.message, "line 1, column 31: unknown key \"ubatchsize\""));
    assert_string_equal(err.hint, "did you mean 'ubatch_size'?");
    dbo_json_destroy(doc);
    doc = parse("{\"schedule\": 1, \"ubatch_size\": 2}");
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 3, &err), DBO_OK);
    assert_int_equal(dbo_json_check_keys(dbo_json_root(doc), keys, 2, &err), DBO_PARSE);
    assert_string_equal(err.hint, "");
    dbo_json_destroy(doc);
}

static void prints_the_expected_bytes(void **state)
{
    (void)state;
    dbo_json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 1);
    dbo_json_open_object(&w);
    dbo_json_member_string(&w, "s\"", "a\\\n\t\x01\x7F\xC3\xA9\xFF\xED\xA0\x80");
    dbo_json_member_double(&w, "d", 0.1);
    dbo_json_member_double(&w, "whole", 90);
    dbo_json_member_double(&w, "tiny", 5e-324);
    dbo_json_member_double(&w, "nan", NAN);
    dbo_json_member_double(&w, "inf", -INFINITY);
    dbo_json_member_string(&w, "null", NULL);
    dbo_json_member_int(&w, "min", INT64_MIN);
    dbo_json_key(&w, "empty");
    dbo_json_open_array(&w);
    dbo_json_close(&w);
    const int32_t list[] = {1, 2, 3};
    dbo_json_member_int32s(&w, "list", list, 3);
    dbo_json_key(&w, "nested");
    dbo_json_open_array(&w);
    dbo_json_open_object_line(&w);
    dbo_json_member_bool(&w, "a", true);
    dbo_json_member_null(&w, "b");
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
    dbo_json_text_fini(&text);
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
        dbo_json_text text = {0};
        dbo_json_writer w;
        dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
        dbo_json_put_double(&w, value);
        assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_OK);
        dbo_json *doc = parse(text.bytes);
        double again = dbo_json_double(dbo_json_root(doc));
        assert_memory_equal(&again, &value, sizeof value);
        dbo_json_destroy(doc);
        dbo_json_text_fini(&text);
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
    dbo_json_text text = {0};
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL); /* nothing written */
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    dbo_json_open_object(&w);
    dbo_json_put_int(&w, 1); /* no key */
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL);
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    dbo_json_open_array(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL); /* still open */
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    dbo_json_put_int(&w, 1);
    dbo_json_put_int(&w, 2); /* two roots */
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_INTERNAL);
    dbo_json_writer_init(&w, dbo_json_sink_text, &text, 0);
    for (int i = 0; i <= DBO_JSON_WRITE_DEPTH; i++)
        dbo_json_open_array(&w);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_LIMIT);
    dbo_json_writer_init(&w, sink_that_fails, NULL, 0);
    dbo_json_put_int(&w, 1);
    assert_int_equal(dbo_json_writer_finish(&w, NULL), DBO_IO);
    dbo_json_text_fini(&text);
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
        cmocka_unit_test(values_and_places),
        cmocka_unit_test(roots_need_not_be_objects),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(depth_values_and_size_are_bounded),
        cmocka_unit_test(every_prefix_of_a_document_is_refused_cleanly),
        cmocka_unit_test(large_objects_are_searched_by_key),
        cmocka_unit_test(readers_take_what_fits),
        cmocka_unit_test(readers_name_the_key),
        cmocka_unit_test(unknown_keys_are_refused_with_the_nearest_known),
        cmocka_unit_test(prints_the_expected_bytes),
        cmocka_unit_test(doubles_survive_a_round_trip),
        cmocka_unit_test(misuse_and_failing_sinks_are_reported),
        cmocka_unit_test(files_that_cannot_be_read_say_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
