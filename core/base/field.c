/* field.c: see field.h. Members are reached by offset and type; nothing here knows a struct. */
#include "core/base/field.h"

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

static dbo_status check_one(const dbo_field *field, const void *object, const char *what,
                            dbo_error *err)
{
    double value = dbo_field_number(field, object);
    if (field->type == DBO_FIELD_TEXT) {
        const char *text = member(field, object);
        if (memchr(text, '\0', (size_t)field->max) == NULL)
            return dbo_fail_key(err, DBO_INVALID, field->key, NULL, "%s: %s does not end", what,
                                field->key);
        if (field->required && text[0] == '\0')
            return dbo_fail_key(err, DBO_INVALID, field->key, NULL, "%s: %s is missing", what,
                                field->key);
        return DBO_OK;
    }
    if (field->type == DBO_FIELD_CHOICE && value >= (double)choice_count(field))
        return dbo_fail_key(err, DBO_INVALID, field->key, NULL, "%s: %s has no such value: %.0f",
                            what, field->key, value);
    if (field->type == DBO_FIELD_U32 || field->type == DBO_FIELD_DOUBLE)
        if (!(value >= field->min && value <= field->max)) /* a NaN is out of range */
            return dbo_fail_key(
                err, DBO_INVALID, field->key, NULL,
                "%s: %s is %.10g; it must be %s from %.10g to %.10g", what, field->key, value,
                field->type == DBO_FIELD_U32 ? "an integer" : "a number", field->min, field->max);
    return DBO_OK;
}

dbo_status dbo_fields_check(const dbo_field *fields, uint32_t count, const void *object,
                            const char *what, dbo_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        DBO_TRY(check_one(&fields[i], object, what, err));
    return DBO_OK;
}
