/* json_read.c: asking a document for what one expects, with sentences when it differs. */
#include "core/base/suggest.h"
#include "lab/files/json.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EXACT_INT (INT64_C(1) << 53) /* a double holds every integer up to here */

static const char *const type_names[] = {
    [DBO_JSON_NULL] = "null",        [DBO_JSON_BOOL] = "true or false",
    [DBO_JSON_INT] = "an integer",   [DBO_JSON_DOUBLE] = "a number",
    [DBO_JSON_STRING] = "a string",  [DBO_JSON_ARRAY] = "an array",
    [DBO_JSON_OBJECT] = "an object", [DBO_JSON_ANY] = "a value",
};

dbo_json_type dbo_json_type_of(const dbo_json_value *value)
{
    static const dbo_json_type types[] = {
        [JSON_OBJECT] = DBO_JSON_OBJECT, [JSON_ARRAY] = DBO_JSON_ARRAY,
        [JSON_STRING] = DBO_JSON_STRING, [JSON_INTEGER] = DBO_JSON_INT,
        [JSON_REAL] = DBO_JSON_DOUBLE,   [JSON_TRUE] = DBO_JSON_BOOL,
        [JSON_FALSE] = DBO_JSON_BOOL,    [JSON_NULL] = DBO_JSON_NULL,
    };
    return value->node ? types[json_typeof(value->node)] : DBO_JSON_NULL;
}

bool dbo_json_is_null(const dbo_json_value *value)
{
    return dbo_json_type_of(value) == DBO_JSON_NULL;
}

size_t dbo_json_count(const dbo_json_value *value)
{
    return json_array_size(value->node);
}

dbo_json_value dbo_json_at(const dbo_json_value *array, size_t index)
{
    return (dbo_json_value){
        .node = json_array_get(array->node, index), .in = array, .index = index};
}

dbo_json_value dbo_json_get(const dbo_json_value *object, const char *key)
{
    return (dbo_json_value){.node = json_object_get(object->node, key), .in = object, .key = key};
}

int64_t dbo_json_int(const dbo_json_value *value)
{
    return json_integer_value(value->node);
}

const char *dbo_json_string(const dbo_json_value *value)
{
    const char *text = json_string_value(value->node);
    return text ? text : "";
}

/* ---- failing ---- */

/* Writes the path and returns its length; what does not fit is left out. */
static size_t put_path(const dbo_json_value *value, char *out, size_t size)
{
    if (!value->in) {
        out[0] = '\0';
        return 0;
    }
    size_t length = put_path(value->in, out, size);
    int more = value->key ? snprintf(out + length, size - length, "%s%.64s", length > 0 ? "." : "",
                                     value->key)
                          : snprintf(out + length, size - length, "[%zu]", value->index);
    length += (size_t)more;
    return length < size ? length : size - 1;
}

dbo_status dbo_json_fail(dbo_error *err, const dbo_json_value *value, const char *hint,
                         const char *format, ...)
{
    char path[200];
    const dbo_json_value *document = value;
    va_list args;
    va_start(args, format);
    dbo_fail_args(err, DBO_PARSE, NULL, hint, format, args);
    va_end(args);
    if (put_path(value, path, sizeof path) > 0) {
        dbo_error_prefix(err, "%s", path);
        dbo_error_key(err, "%s", path);
    }
    while (document->in)
        document = document->in;
    dbo_error_at(err, document->key, (uint32_t)document->index);
    return DBO_PARSE;
}

dbo_status dbo_json_expect(const dbo_json_value *value, dbo_json_type type, dbo_error *err)
{
    dbo_json_type have = dbo_json_type_of(value);
    if (have == type || type == DBO_JSON_ANY)
        return DBO_OK;
    return dbo_json_fail(err, value, NULL, "must be %s, not %s", type_names[type],
                         type_names[have]);
}

static dbo_status expect_int(const dbo_json_value *value, int64_t min, int64_t max, dbo_error *err)
{
    double number = json_number_value(value->node);
    if (fabs(number) >= 0x1p63 && dbo_json_type_of(value) == DBO_JSON_DOUBLE) /* surely whole */
        return dbo_json_fail(err, value, NULL, "must be from %lld to %lld, not %.15g",
                             (long long)min, (long long)max, number);
    DBO_TRY(dbo_json_expect(value, DBO_JSON_INT, err));
    int64_t integer = dbo_json_int(value);
    if (integer < min || integer > max)
        return dbo_json_fail(err, value, NULL, "must be from %lld to %lld, not %lld",
                             (long long)min, (long long)max, (long long)integer);
    return DBO_OK;
}

/* ---- members ---- */

dbo_status dbo_json_need(const dbo_json_value *object, const char *key, dbo_json_type type,
                         dbo_json_value *out, dbo_error *err)
{
    DBO_TRY(dbo_json_expect(object, DBO_JSON_OBJECT, err));
    *out = dbo_json_get(object, key);
    if (!out->node)
        return dbo_json_fail(err, out, NULL, "this key is missing");
    return dbo_json_expect(out, type, err);
}

dbo_status dbo_json_need_bool(const dbo_json_value *object, const char *key, bool *out,
                              dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_BOOL, &value, err));
    *out = json_is_true(value.node);
    return DBO_OK;
}

dbo_status dbo_json_need_int(const dbo_json_value *object, const char *key, int64_t min,
                             int64_t max, int64_t *out, dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ANY, &value, err));
    DBO_TRY(expect_int(&value, min, max, err));
    *out = dbo_json_int(&value);
    return DBO_OK;
}

dbo_status dbo_json_need_int32(const dbo_json_value *object, const char *key, int32_t min,
                               int32_t max, int32_t *out, dbo_error *err)
{
    int64_t value = 0;
    DBO_TRY(dbo_json_need_int(object, key, min, max, &value, err));
    *out = (int32_t)value;
    return DBO_OK;
}

dbo_status dbo_json_need_uint32(const dbo_json_value *object, const char *key, uint32_t min,
                                uint32_t max, uint32_t *out, dbo_error *err)
{
    int64_t value = 0;
    DBO_TRY(dbo_json_need_int(object, key, min, max, &value, err));
    *out = (uint32_t)value;
    return DBO_OK;
}

dbo_status dbo_json_need_double(const dbo_json_value *object, const char *key, double min,
                                double max, double *out, dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ANY, &value, err));
    if (dbo_json_type_of(&value) == DBO_JSON_INT)
        DBO_TRY(expect_int(&value, -EXACT_INT, EXACT_INT, err));
    else
        DBO_TRY(dbo_json_expect(&value, DBO_JSON_DOUBLE, err));
    double number = json_number_value(value.node);
    if (!(number >= min && number <= max))
        return dbo_json_fail(err, &value, NULL, "must be from %g to %g, not %g", min, max, number);
    *out = number;
    return DBO_OK;
}

dbo_status dbo_json_need_string(const dbo_json_value *object, const char *key, const char **out,
                                dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_STRING, &value, err));
    *out = dbo_json_string(&value);
    return DBO_OK;
}

dbo_status dbo_json_need_word(const dbo_json_value *object, const char *key, const char *what,
                              const char *const *words, size_t count, uint32_t *out, dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_STRING, &value, err));
    const char *word = dbo_json_string(&value);
    for (*out = 0; *out < count; ++*out)
        if (strcmp(words[*out], word) == 0)
            return DBO_OK;
    char hint[128];
    dbo_suggestion near = dbo_suggest_begin(word);
    for (size_t i = 0; i < count; i++)
        dbo_suggest_offer(&near, words[i]);
    return dbo_json_fail(err, &value, dbo_suggest_hint(&near, hint, sizeof hint),
                         "no %s is called '%.40s'", what, word);
}

bool dbo_json_has(const dbo_json_value *object, const char *key)
{
    dbo_json_value value = dbo_json_get(object, key);
    return !dbo_json_is_null(&value);
}

dbo_status dbo_json_opt(const dbo_json_value *object, const char *key, dbo_json_type type,
                        dbo_json_value *out, dbo_error *err)
{
    *out = (dbo_json_value){0};
    return dbo_json_has(object, key) ? dbo_json_need(object, key, type, out, err) : DBO_OK;
}

/* ---- arrays and keys ---- */

dbo_status dbo_json_int32s(const dbo_json_value *array, int32_t min, int32_t max, int32_t *out,
                           dbo_error *err)
{
    DBO_TRY(dbo_json_expect(array, DBO_JSON_ARRAY, err));
    for (size_t i = 0, count = dbo_json_count(array); i < count; i++) {
        dbo_json_value value = dbo_json_at(array, i);
        DBO_TRY(expect_int(&value, min, max, err));
        out[i] = (int32_t)dbo_json_int(&value);
    }
    return DBO_OK;
}

dbo_status dbo_json_int64s(const dbo_json_value *array, int64_t min, int64_t max, int64_t *out,
                           dbo_error *err)
{
    DBO_TRY(dbo_json_expect(array, DBO_JSON_ARRAY, err));
    for (size_t i = 0, count = dbo_json_count(array); i < count; i++) {
        dbo_json_value value = dbo_json_at(array, i);
        DBO_TRY(expect_int(&value, min, max, err));
        out[i] = dbo_json_int(&value);
    }
    return DBO_OK;
}

dbo_status dbo_json_check_keys(const dbo_json_value *object, const char *const *keys,
                               size_t num_keys, dbo_error *err)
{
    const char *key;
    json_t *member;
    DBO_TRY(dbo_json_expect(object, DBO_JSON_OBJECT, err));
    json_object_foreach(object->node, key, member)
    {
        size_t k = 0;
        while (k < num_keys && (!keys[k] || strcmp(key, keys[k]) != 0))
            k++;
        if (k < num_keys)
            continue;
        char hint[128];
        dbo_json_value unknown = {.node = member, .in = object, .key = key};
        dbo_suggestion nearest = dbo_suggest_begin(key);
        for (k = 0; k < num_keys; k++)
            dbo_suggest_offer(&nearest, keys[k]);
        return dbo_json_fail(err, &unknown, dbo_suggest_hint(&nearest, hint, sizeof hint),
                             "unknown key");
    }
    return DBO_OK;
}
