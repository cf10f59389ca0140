/* setting.c: checks a value against its field and stores it (setting.h).
 *
 * Every sentence about a wrong setting is made here, so that `--set`, scripts and presets speak
 * alike. Values are checked before anything is stored.
 */
#include "lab/experiment/setting.h"

#include "core/base/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_TEXT 48 /* characters of a wrong text that a sentence repeats */

dbo_status dbo_setting_unknown(const dbo_settings *settings, const char *key, dbo_error *err)
{
    dbo_suggestion near = dbo_suggest_begin(key);
    for (uint32_t i = 0; i < settings->num_fields; i++)
        dbo_suggest_offer(&near, settings->fields[i].key);
    for (const char *const *extra = settings->extra; extra && *extra; extra++)
        dbo_suggest_offer(&near, *extra);
    if (near.nearest) {
        return dbo_fail(err, DBO_INVALID, NULL, "unknown key '%.*s' in %s, did you mean '%s'?",
                        SHOWN_TEXT, key, settings->name, near.nearest);
    }
    char hint[sizeof err->hint];
    size_t used = (size_t)snprintf(hint, sizeof hint, "Its keys:");
    for (const char *const *extra = settings->extra; extra && *extra; extra++) {
        if (used < sizeof hint)
            used += (size_t)snprintf(hint + used, sizeof hint - used, " %s", *extra);
    }
    for (uint32_t i = 0; i < settings->num_fields && used < sizeof hint; i++) {
        const char *known = settings->fields[i].key;
        used += (size_t)snprintf(hint + used, sizeof hint - used, " %s", known);
    }
    return dbo_fail(err, DBO_INVALID, hint, "unknown key '%.*s' in %s", SHOWN_TEXT, key,
                    settings->name);
}

dbo_status dbo_value_mismatch(const char *key, const char *wanted, const dbo_value *value,
                              dbo_error *err)
{
    switch (value->kind) {
    case DBO_VALUE_BOOL:
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got %s", key, wanted,
                        value->boolean ? "true" : "false");
    case DBO_VALUE_INTEGER:
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got %" PRId64, key, wanted,
                        value->integer);
    case DBO_VALUE_REAL:
        if (isnan(value->real)) /* which printf may write as -nan */
            return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got nan", key, wanted);
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got %.10g", key, wanted,
                        value->real);
    case DBO_VALUE_TEXT:
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got string \"%.*s%s\"", key, wanted,
                        SHOWN_TEXT, value->text, strlen(value->text) > SHOWN_TEXT ? "..." : "");
    case DBO_VALUE_TABLE:
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got a table", key, wanted);
    case DBO_VALUE_OTHER: break;
    }
    return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, got %s", key, wanted,
                    value->text ? value->text : "nil");
}

static dbo_status fail_range(const char *key, double number, double min, double max, dbo_error *err)
{
    return dbo_fail(err, DBO_INVALID, NULL, "%s is %.15g; it must be from %.15g to %.15g", key,
                    number, min, max);
}

dbo_status dbo_value_integer(const char *key, const dbo_value *value, double min, double max,
                             uint32_t *out, dbo_error *err)
{
    bool is_whole = value->kind == DBO_VALUE_INTEGER;
    if (value->kind == DBO_VALUE_REAL && value->real > -1e15 && value->real < 1e15)
        is_whole = value->real == (double)(int64_t)value->real;
    if (!is_whole)
        return dbo_value_mismatch(key, "an integer", value, err);
    if (!(value->real >= min && value->real <= max))
        return fail_range(key, value->real, min, max, err);
    *out = (uint32_t)value->real;
    return DBO_OK;
}

dbo_status dbo_value_number(const char *key, const dbo_value *value, double min, double max,
                            double *out, dbo_error *err)
{
    if (value->kind != DBO_VALUE_INTEGER && value->kind != DBO_VALUE_REAL)
        return dbo_value_mismatch(key, "a number", value, err);
    if (isnan(value->real))
        return dbo_value_mismatch(key, "a number", value, err);
    if (!(value->real >= min && value->real <= max))
        return fail_range(key, value->real, min, max, err);
    *out = value->real;
    return DBO_OK;
}

/* "one of "a", "b"" for a sentence. */
static void list_choices(const dbo_field *field, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "one of");
    for (size_t i = 0; field->choices[i] && used < size; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s \"%s\"", i ? "," : "", field->choices[i]);
    }
}

static dbo_status set_choice(const dbo_field *field, void *object, const dbo_value *value,
                             dbo_error *err)
{
    char wanted[256];
    list_choices(field, wanted, sizeof wanted);
    if (value->kind != DBO_VALUE_TEXT)
        return dbo_value_mismatch(field->key, wanted, value, err);
    dbo_suggestion near = dbo_suggest_begin(value->text);
    for (size_t i = 0; field->choices[i]; i++) {
        if (strcmp(field->choices[i], value->text) == 0)
            return dbo_field_set_text(field, object, value->text, err);
        dbo_suggest_offer(&near, field->choices[i]);
    }
    dbo_status status = dbo_value_mismatch(field->key, wanted, value, err);
    if (err && near.nearest)
        snprintf(err->hint, sizeof err->hint, "Did you mean \"%s\"?", near.nearest);
    return status;
}

static dbo_status set_text(const dbo_field *field, void *object, const dbo_value *value,
                           dbo_error *err)
{
    if (value->kind != DBO_VALUE_TEXT)
        return dbo_value_mismatch(field->key, "a string", value, err);
    if ((double)strlen(value->text) >= field->max) {
        return dbo_fail(err, DBO_INVALID, NULL, "%s has %zu characters; at most %.0f fit",
                        field->key, strlen(value->text), field->max - 1);
    }
    return dbo_field_set_text(field, object, value->text, err);
}

dbo_status dbo_setting_set(const dbo_settings *settings, void *object, const char *key,
                           const dbo_value *value, dbo_error *err)
{
    const dbo_field *field = dbo_field_find(settings->fields, settings->num_fields, key);
    if (!field)
        return dbo_setting_unknown(settings, key, err);
    uint32_t integer = 0;
    double number = 0;
    switch (field->type) {
    case DBO_FIELD_U32:
        DBO_TRY(dbo_value_integer(key, value, field->min, field->max, &integer, err));
        return dbo_field_set_number(field, object, integer, err);
    case DBO_FIELD_DOUBLE:
        DBO_TRY(dbo_value_number(key, value, field->min, field->max, &number, err));
        return dbo_field_set_number(field, object, number, err);
    case DBO_FIELD_BOOL:
        if (value->kind != DBO_VALUE_BOOL)
            return dbo_value_mismatch(key, "true or false", value, err);
        return dbo_field_set_bool(field, object, value->boolean, err);
    case DBO_FIELD_CHOICE: return set_choice(field, object, value, err);
    case DBO_FIELD_TEXT: return set_text(field, object, value, err);
    }
    return dbo_fail(err, DBO_INTERNAL, NULL, "the key '%s' has no type", key);
}

dbo_value dbo_value_of_text(const char *text)
{
    dbo_value value = {.kind = DBO_VALUE_TEXT, .text = text};
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value.kind = DBO_VALUE_BOOL;
        value.boolean = text[0] == 't';
        return value;
    }
    if (!text[0] || strspn(text, "+-.0123456789eE") != strlen(text))
        return value;
    char *end = NULL;
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0') {
        value.kind = DBO_VALUE_INTEGER;
        value.integer = integer;
        value.real = (double)integer;
        return value;
    }
    double real = strtod(text, &end);
    if (end != text && *end == '\0') {
        value.kind = DBO_VALUE_REAL;
        value.real = real;
    }
    return value;
}
