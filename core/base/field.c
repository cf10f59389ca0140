/* field.c: see field.h. Members are reached by offset and type; nothing here knows a struct. */
#include "core/base/field.h"

#include <stdio.h>
#include <string.h>

const char *const dbo_dtype_names[] = {"fp8", "bf16", "fp32", NULL};

static const void *member(const dbo_field *field, const void *object)
{
    return (const char *)object + field->offset;
}

static uint32_t choice_count(const dbo_field *field)
{
    uint32_t count = 0;
    while (field->choices[count] != NULL)
        count++;
    return count;
}

const dbo_field *dbo_field_find(const dbo_field *fields, uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

double dbo_field_number(const dbo_field *field, const void *object)
{
    uint32_t integer;
    double real;
    bool truth;
    switch (field->type) {
    case DBO_FIELD_U32:
    case DBO_FIELD_CHOICE: memcpy(&integer, member(field, object), sizeof integer); return integer;
    case DBO_FIELD_DOUBLE: memcpy(&real, member(field, object), sizeof real); return real;
    case DBO_FIELD_BOOL:
        memcpy(&truth, member(field, object), sizeof truth);
        return truth ? 1.0 : 0.0;
    case DBO_FIELD_TEXT: break;
    }
    return 0.0;
}

const char *dbo_field_text(const dbo_field *field, const void *object)
{
    if (field->type == DBO_FIELD_TEXT)
        return member(field, object);
    if (field->type != DBO_FIELD_CHOICE)
        return NULL;
    uint32_t index;
    memcpy(&index, member(field, object), sizeof index);
    return index < choice_count(field) ? field->choices[index] : "?";
}

static dbo_status fail_range(const dbo_field *field, double value, dbo_error *err)
{
    return dbo_fail(err, DBO_INVALID, NULL, "%s is %.10g; it must be %s from %.10g to %.10g",
                    field->key, value, field->type == DBO_FIELD_U32 ? "an integer" : "a number",
                    field->min, field->max);
}

dbo_status dbo_field_set_number(const dbo_field *field, void *object, double value, dbo_error *err)
{
    char *at = (char *)object + field->offset;
    if (field->type != DBO_FIELD_U32 && field->type != DBO_FIELD_DOUBLE)
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, not a number", field->key,
                        field->type == DBO_FIELD_BOOL ? "true or false" : "a text");
    /* Written so that a NaN is out of range. */
    if (!(value >= field->min && value <= field->max))
        return fail_range(field, value, err);
    if (field->type == DBO_FIELD_DOUBLE) {
        memcpy(at, &value, sizeof value);
        return DBO_OK;
    }
    uint32_t integer = (uint32_t)value;
    if ((double)integer != value)
        return fail_range(field, value, err);
    memcpy(at, &integer, sizeof integer);
    return DBO_OK;
}

/* "mla, gqa or linear" into out. */
static void list_choices(const dbo_field *field, char *out, size_t size)
{
    uint32_t count = choice_count(field);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && used < size; i++) {
        const char *join = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", join, field->choices[i]);
    }
}

dbo_status dbo_field_set_text(const dbo_field *field, void *object, const char *value,
                              dbo_error *err)
{
    char *at = (char *)object + field->offset;
    size_t length = strlen(value);
    if (field->type == DBO_FIELD_TEXT) {
        if ((double)length >= field->max)
            return dbo_fail(err, DBO_INVALID, NULL, "%s is longer than %.0f characters", field->key,
                            field->max - 1);
        memcpy(at, value, length + 1);
        return DBO_OK;
    }
    if (field->type != DBO_FIELD_CHOICE)
        return dbo_fail(err, DBO_INVALID, NULL, "%s must be %s, not a text", field->key,
                        field->type == DBO_FIELD_BOOL ? "true or false" : "a number");
    for (uint32_t i = 0; field->choices[i] != NULL; i++)
        if (strcmp(field->choices[i], value) == 0) {
            memcpy(at, &i, sizeof i);
            return DBO_OK;
        }
    char names[128];
    list_choices(field, names, sizeof names);
    return dbo_fail(err, DBO_INVALID, NULL, "%s is '%s'; it must be %s", field->key, value, names);
}

dbo_status dbo_field_set_bool(const dbo_field *field, void *object, bool value, dbo_error *err)
{
    if (field->type != DBO_FIELD_BOOL)
        return dbo_fail(err, DBO_INVALID, NULL, "%s must not be true or false", field->key);
    memcpy((char *)object + field->offset, &value, sizeof value);
    return DBO_OK;
}

static dbo_status check_one(const dbo_field *field, const void *object, dbo_error *err)
{
    double value = dbo_field_number(field, object);
    if (field->type == DBO_FIELD_TEXT) {
        const char *text = member(field, object);
        if (memchr(text, '\0', (size_t)field->max) == NULL)
            return dbo_fail(err, DBO_INVALID, NULL, "%s does not end", field->key);
        if (field->required && text[0] == '\0')
            return dbo_fail(err, DBO_INVALID, NULL, "%s is missing", field->key);
        return DBO_OK;
    }
    if (field->type == DBO_FIELD_CHOICE && value >= (double)choice_count(field))
        return dbo_fail(err, DBO_INVALID, NULL, "%s has no such value: %.0f", field->key, value);
    if (field->type == DBO_FIELD_U32 || field->type == DBO_FIELD_DOUBLE)
        if (!(value >= field->min && value <= field->max))
            return fail_range(field, value, err);
    return DBO_OK;
}

dbo_status dbo_fields_check(const dbo_field *fields, uint32_t count, const void *object,
                            const char *what, dbo_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        dbo_error local = {0};
        dbo_status status = check_one(&fields[i], object, &local);
        if (status != DBO_OK)
            return dbo_fail(err, status, NULL, "%s: %s", what, local.message);
    }
    return DBO_OK;
}
