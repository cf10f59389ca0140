/* json_read.c: asking a parsed document for what one expects, with sentences when it differs. */
#include "core/base/suggest.h"
#include "lab/files/json.h"
#include "lab/files/json_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_CHUNK_BYTES ((size_t)64 * 1024)

const dbo_json_value *dbo_json_root(const dbo_json *doc)
{
    return doc != NULL ? &doc->root : NULL;
}

dbo_json_type dbo_json_type_of(const dbo_json_value *value)
{
    return value != NULL ? (dbo_json_type)value->type : DBO_JSON_NULL;
}

const char *dbo_json_type_name(dbo_json_type type)
{
    static const char *const names[] = {
        [DBO_JSON_NULL] = "null",        [DBO_JSON_BOOL] = "true or false",
        [DBO_JSON_INT] = "an integer",   [DBO_JSON_DOUBLE] = "a number",
        [DBO_JSON_STRING] = "a string",  [DBO_JSON_ARRAY] = "an array",
        [DBO_JSON_OBJECT] = "an object",
    };
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "an unknown type";
}

bool dbo_json_is_null(const dbo_json_value *value)
{
    return dbo_json_type_of(value) == DBO_JSON_NULL;
}

int dbo_json_line(const dbo_json_value *value)
{
    return value != NULL ? (int)value->line : 0;
}

int dbo_json_column(const dbo_json_value *value)
{
    return value != NULL ? (int)value->column : 0;
}

static bool is_container(const dbo_json_value *value)
{
    dbo_json_type type = dbo_json_type_of(value);
    return type == DBO_JSON_ARRAY || type == DBO_JSON_OBJECT;
}

size_t dbo_json_count(const dbo_json_value *value)
{
    return is_container(value) ? value->count : 0;
}

const dbo_json_value *dbo_json_at(const dbo_json_value *value, size_t index)
{
    return index < dbo_json_count(value) ? &value->u.items[index] : NULL;
}

const char *dbo_json_key_at(const dbo_json_value *object, size_t index)
{
    const dbo_json_value *member = dbo_json_at(object, index);
    return member != NULL ? member->key : NULL;
}

static int compare_to_key(const void *key, const void *element)
{
    const dbo_json_value *const *member = element;
    return strcmp(key, (*member)->key);
}

const dbo_json_value *dbo_json_get(const dbo_json_value *object, const char *key)
{
    if (dbo_json_type_of(object) != DBO_JSON_OBJECT)
        return NULL;
    const dbo_json_value *items = object->u.items;
    if (object->count > DBO_JSON_SMALL) {
        const dbo_json_value *const *found = bsearch(key, (const void *)(items + object->count),
                                                     object->count, sizeof(void *), compare_to_key);
        return found != NULL ? *found : NULL;
    }
    for (uint32_t i = 0; i < object->count; i++)
        if (strcmp(items[i].key, key) == 0)
            return &items[i];
    return NULL;
}

bool dbo_json_bool(const dbo_json_value *value)
{
    return dbo_json_type_of(value) == DBO_JSON_BOOL && value->u.boolean;
}

int64_t dbo_json_int(const dbo_json_value *value)
{
    return dbo_json_type_of(value) == DBO_JSON_INT ? value->u.integer : 0;
}

double dbo_json_double(const dbo_json_value *value)
{
    if (dbo_json_type_of(value) == DBO_JSON_INT)
        return (double)value->u.integer;
    return dbo_json_type_of(value) == DBO_JSON_DOUBLE ? value->u.real : 0.0;
}

const char *dbo_json_string(const dbo_json_value *value)
{
    return dbo_json_type_of(value) == DBO_JSON_STRING ? value->u.text : "";
}

dbo_status dbo_json_fail(dbo_error *err, const dbo_json_value *value, const char *hint,
                         const char *format, ...)
{
    char sentence[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (value == NULL)
        return dbo_fail(err, DBO_PARSE, hint, "%s", sentence);
    return dbo_fail(err, DBO_PARSE, hint, "line %d, column %d: %s", dbo_json_line(value),
                    dbo_json_column(value), sentence);
}

/* --- need and opt ------------------------------------------------------------------------- */

static bool fits(dbo_json_type have, dbo_json_type want)
{
    return have == want || (want == DBO_JSON_DOUBLE && have == DBO_JSON_INT);
}

static dbo_status fail_type(dbo_error *err, const dbo_json_value *value, const char *key,
                            dbo_json_type want)
{
    return dbo_json_fail(err, value, NULL, "\"%.80s\" must be %s, not %s", key,
                         dbo_json_type_name(want), dbo_json_type_name(dbo_json_type_of(value)));
}

dbo_status dbo_json_need(const dbo_json_value *object, const char *key, const dbo_json_value **out,
                         dbo_error *err)
{
    if (dbo_json_type_of(object) != DBO_JSON_OBJECT)
        return dbo_json_fail(err, object, NULL,
                             "expected an object with the key \"%.80s\", found %s", key,
                             dbo_json_type_name(dbo_json_type_of(object)));
    *out = dbo_json_get(object, key);
    if (*out == NULL)
        return dbo_json_fail(err, object, NULL, "the key \"%.80s\" is missing", key);
    return DBO_OK;
}

static dbo_status need_typed(const dbo_json_value *object, const char *key, dbo_json_type want,
                             const dbo_json_value **out, dbo_error *err)
{
    DBO_TRY(dbo_json_need(object, key, out, err));
    return fits(dbo_json_type_of(*out), want) ? DBO_OK : fail_type(err, *out, key, want);
}

dbo_status dbo_json_need_object(const dbo_json_value *object, const char *key,
                                const dbo_json_value **out, dbo_error *err)
{
    return need_typed(object, key, DBO_JSON_OBJECT, out, err);
}

dbo_status dbo_json_need_array(const dbo_json_value *object, const char *key,
                               const dbo_json_value **out, dbo_error *err)
{
    return need_typed(object, key, DBO_JSON_ARRAY, out, err);
}

dbo_status dbo_json_need_bool(const dbo_json_value *object, const char *key, bool *out,
                              dbo_error *err)
{
    const dbo_json_value *value = NULL;
    DBO_TRY(need_typed(object, key, DBO_JSON_BOOL, &value, err));
    *out = dbo_json_bool(value);
    return DBO_OK;
}

static dbo_status check_int(const dbo_json_value *value, const char *key, int64_t min, int64_t max,
                            dbo_error *err)
{
    if (dbo_json_type_of(value) != DBO_JSON_INT)
        return fail_type(err, value, key, DBO_JSON_INT);
    if (value->u.integer < min || value->u.integer > max)
        return dbo_json_fail(err, value, NULL, "\"%.80s\" must be from %lld to %lld, not %lld", key,
                             (long long)min, (long long)max, (long long)value->u.integer);
    return DBO_OK;
}

dbo_status dbo_json_need_int(const dbo_json_value *object, const char *key, int64_t min,
                             int64_t max, int64_t *out, dbo_error *err)
{
    const dbo_json_value *value = NULL;
    DBO_TRY(dbo_json_need(object, key, &value, err));
    DBO_TRY(check_int(value, key, min, max, err));
    *out = dbo_json_int(value);
    return DBO_OK;
}

dbo_status dbo_json_need_double(const dbo_json_value *object, const char *key, double min,
                                double max, double *out, dbo_error *err)
{
    const dbo_json_value *value = NULL;
    DBO_TRY(need_typed(object, key, DBO_JSON_DOUBLE, &value, err));
    double real = dbo_json_double(value);
    if (!(real >= min && real <= max))
        return dbo_json_fail(err, value, NULL, "\"%.80s\" must be from %g to %g, not %g", key, min,
                             max, real);
    *out = real;
    return DBO_OK;
}

dbo_status dbo_json_need_string(const dbo_json_value *object, const char *key, const char **out,
                                dbo_error *err)
{
    const dbo_json_value *value = NULL;
    DBO_TRY(need_typed(object, key, DBO_JSON_STRING, &value, err));
    *out = dbo_json_string(value);
    return DBO_OK;
}

dbo_status dbo_json_opt_object(const dbo_json_value *object, const char *key,
                               const dbo_json_value **out, dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_object(object, key, out, err);
}

dbo_status dbo_json_opt_array(const dbo_json_value *object, const char *key,
                              const dbo_json_value **out, dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_array(object, key, out, err);
}

dbo_status dbo_json_opt_bool(const dbo_json_value *object, const char *key, bool *out,
                             dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_bool(object, key, out, err);
}

dbo_status dbo_json_opt_int(const dbo_json_value *object, const char *key, int64_t min, int64_t max,
                            int64_t *out, dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_int(object, key, min, max, out, err);
}

dbo_status dbo_json_opt_double(const dbo_json_value *object, const char *key, double min,
                               double max, double *out, dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_double(object, key, min, max, out, err);
}

dbo_status dbo_json_opt_string(const dbo_json_value *object, const char *key, const char **out,
                               dbo_error *err)
{
    if (dbo_json_is_null(dbo_json_get(object, key)))
        return DBO_OK;
    return dbo_json_need_string(object, key, out, err);
}

/* --- arrays, keys, files ------------------------------------------------------------------ */

static dbo_status check_int_array(const dbo_json_value *array, const char *name, int64_t min,
                                  int64_t max, dbo_error *err)
{
    if (dbo_json_type_of(array) != DBO_JSON_ARRAY)
        return fail_type(err, array, name, DBO_JSON_ARRAY);
    for (uint32_t i = 0; i < array->count; i++) {
        char element[112];
        const dbo_json_value *value = &array->u.items[i];
        if (dbo_json_type_of(value) == DBO_JSON_INT && value->u.integer >= min &&
            value->u.integer <= max)
            continue;
        (void)snprintf(element, sizeof element, "%.80s[%u]", name, (unsigned)i);
        return check_int(value, element, min, max, err);
    }
    return DBO_OK;
}

dbo_status dbo_json_array_int32(const dbo_json_value *array, const char *name, int32_t min,
                                int32_t max, int32_t *out, dbo_error *err)
{
    DBO_TRY(check_int_array(array, name, min, max, err));
    for (uint32_t i = 0; i < array->count; i++)
        out[i] = (int32_t)array->u.items[i].u.integer;
    return DBO_OK;
}

dbo_status dbo_json_array_int64(const dbo_json_value *array, const char *name, int64_t min,
                                int64_t max, int64_t *out, dbo_error *err)
{
    DBO_TRY(check_int_array(array, name, min, max, err));
    for (uint32_t i = 0; i < array->count; i++)
        out[i] = array->u.items[i].u.integer;
    return DBO_OK;
}

dbo_status dbo_json_check_keys(const dbo_json_value *object, const char *const *keys,
                               size_t num_keys, dbo_error *err)
{
    for (size_t i = 0; i < dbo_json_count(object); i++) {
        const char *key = dbo_json_key_at(object, i);
        bool known = key == NULL; /* an array has no keys to check */
        for (size_t k = 0; k < num_keys && !known; k++)
            known = strcmp(key, keys[k]) == 0;
        if (known)
            continue;
        char hint[128];
        dbo_suggestion nearest = dbo_suggest_begin(key);
        for (size_t k = 0; k < num_keys; k++)
            dbo_suggest_offer(&nearest, keys[k]);
        return dbo_json_fail(err, dbo_json_at(object, i),
                             dbo_suggest_hint(&nearest, hint, sizeof hint), "unknown key \"%.80s\"",
                             key);
    }
    return DBO_OK;
}

static dbo_status read_stream(FILE *file, size_t max_bytes, const dbo_json_limits *limits,
                              char **out, size_t *length, dbo_error *err)
{
    size_t capacity = 0;
    *out = NULL;
    *length = 0;
    for (;;) {
        if (limits && limits->cancelled && limits->cancelled(limits->cancelled_self))
            return dbo_fail(err, DBO_CANCELLED, NULL, "interrupted");
        if (capacity - *length < READ_CHUNK_BYTES) {
            capacity = capacity * 2 + READ_CHUNK_BYTES;
            char *larger = realloc(*out, capacity);
            if (larger == NULL)
                return dbo_fail_memory(err, "the text of a JSON file");
            *out = larger;
        }
        size_t got = fread(*out + *length, 1, capacity - *length, file);
        *length += got;
        if (*length > max_bytes)
            return dbo_fail(err, DBO_LIMIT, NULL, "the file has more than %zu bytes", max_bytes);
        if (got == 0)
            break;
    }
    if (ferror(file))
        return dbo_fail(err, DBO_IO, NULL, "cannot be read: %s", strerror(errno));
    return DBO_OK;
}

dbo_status dbo_json_read_file(dbo_json **out, const char *path, const dbo_json_limits *limits,
                              dbo_error *err)
{
    *out = NULL;
    bool is_stdin = strcmp(path, "-") == 0;
    size_t max_bytes =
        limits != NULL && limits->max_bytes != 0 ? limits->max_bytes : (size_t)1 << 30;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (file == NULL)
        return dbo_fail(err, DBO_IO, "Check the path.", "%s cannot be opened: %s", path,
                        strerror(errno));
    char *text = NULL;
    size_t length = 0;
    dbo_status status = read_stream(file, max_bytes, limits, &text, &length, err);
    if (status == DBO_OK)
        status = dbo_json_parse(out, text, length, limits, err);
    if (!is_stdin)
        (void)fclose(file);
    free(text);
    if (status != DBO_OK)
        return dbo_error_prefix(err, "%s", is_stdin ? "stdin" : path);
    return DBO_OK;
}
