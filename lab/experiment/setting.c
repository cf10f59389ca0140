/* setting.c: checks a value against its field and stores it (setting.h). */
#include "lab/experiment/setting.h"

#include "core/base/suggest.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_KEY 48 /* characters of an unknown key that a sentence repeats */

bool dbo_settings_has_extra(const dbo_settings *settings, const char *key)
{
    for (const char *const *extra = settings->extra; extra && *extra; extra++)
        if (strcmp(*extra, key) == 0)
            return true;
    return false;
}

/* Key `index`, those of `extra` first; NULL past the end. */
static const char *key_at(const dbo_settings *settings, uint32_t index)
{
    const char *const *extra = settings->extra;
    for (; extra && *extra; extra++)
        if (index-- == 0)
            return *extra;
    return index < settings->num_fields ? settings->fields[index].key : NULL;
}

/* "Its keys: a b c"; where they do not fit, whole words and how to see the others. */
static void list_keys(const dbo_settings *settings, char *out, size_t size)
{
    char rest[96] = "";
    if (settings->listed)
        snprintf(rest, sizeof rest, " ...; all: dbo explain %s", settings->listed);
    else
        snprintf(rest, sizeof rest, " ...");
    size_t used = (size_t)snprintf(out, size, "Its keys:"), room = used;
    const char *known = NULL;
    for (uint32_t i = 0; (known = key_at(settings, i)); i++) {
        size_t bytes = strlen(known) + 1;
        if (used + bytes >= size)
            break;
        snprintf(out + used, size - used, " %s", known);
        used += bytes;
        if (used + strlen(rest) < size)
            room = used; /* the list may end here */
    }
    if (known)
        snprintf(out + room, size - room, "%s", rest);
}

dbo_status dbo_setting_unknown(const dbo_settings *settings, const char *key, dbo_error *err)
{
    dbo_suggestion near = dbo_suggest_begin(key);
    char hint[sizeof err->hint];
    const char *known;
    for (uint32_t i = 0; (known = key_at(settings, i)); i++)
        dbo_suggest_offer(&near, known);
    list_keys(settings, hint, sizeof hint);
    if (near.nearest)
        return dbo_fail_key(err, DBO_INVALID, key, NULL,
                            "unknown key '%.*s' in %s, did you mean '%s'?", SHOWN_KEY, key,
                            settings->name, near.nearest);
    return dbo_fail_key(err, DBO_INVALID, key, hint, "unknown key '%.*s' in %s", SHOWN_KEY, key,
                        settings->name);
}

static dbo_status take_choice(const dbo_field *field, const dbo_value *value, uint32_t *out,
                              dbo_error *err)
{
    char wanted[256];
    const char *text = dbo_value_text(value);
    for (*out = 0; text && field->choices[*out]; ++*out)
        if (strcmp(field->choices[*out], text) == 0)
            return DBO_OK;
    dbo_suggestion near = dbo_suggest_begin(text ? text : "");
    size_t used = (size_t)snprintf(wanted, sizeof wanted, "one of");
    for (uint32_t i = 0; field->choices[i]; i++) {
        dbo_suggest_offer(&near, field->choices[i]);
        if (used < sizeof wanted)
            used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s \"%s\"", i ? "," : "",
                                     field->choices[i]);
    }
    dbo_status status = dbo_value_mismatch(field->key, wanted, value, err);
    if (err && text && near.nearest)
        snprintf(err->hint, sizeof err->hint, "Did you mean \"%s\"?", near.nearest);
    return status;
}

static dbo_status take_text(const dbo_field *field, const dbo_value *value, char *out,
                            dbo_error *err)
{
    const char *text = dbo_value_text(value);
    if (!text)
        return dbo_value_mismatch(field->key, "a string", value, err);
    if ((double)strlen(text) >= field->max)
        return dbo_fail_value(err, DBO_INVALID, field->key, NULL,
                              "has %zu characters; at most %.0f fit", strlen(text), field->max - 1);
    memcpy(out, text, strlen(text) + 1);
    return DBO_OK;
}

dbo_status dbo_setting_set(const dbo_settings *settings, void *object, const char *key,
                           const dbo_value *value, dbo_error *err)
{
    const dbo_field *field = dbo_field_find(settings->fields, settings->num_fields, key);
    if (!field)
        return dbo_setting_unknown(settings, key, err);
    char *at = (char *)object + field->offset;
    uint32_t integer = 0;
    double number = 0;
    switch (field->type) {
    case DBO_FIELD_U32:
        DBO_TRY(dbo_value_integer(key, value, field->min, field->max, &integer, err));
        memcpy(at, &integer, sizeof integer);
        break;
    case DBO_FIELD_DOUBLE:
        DBO_TRY(dbo_value_number(key, value, field->min, field->max, &number, err));
        memcpy(at, &number, sizeof number);
        break;
    case DBO_FIELD_BOOL:
        if (value->kind != DBO_VALUE_BOOL)
            return dbo_value_mismatch(key, "true or false", value, err);
        memcpy(at, &value->boolean, sizeof value->boolean);
        break;
    case DBO_FIELD_CHOICE:
        DBO_TRY(take_choice(field, value, &integer, err));
        memcpy(at, &integer, sizeof integer);
        break;
    case DBO_FIELD_TEXT: return take_text(field, value, at, err);
    }
    return DBO_OK;
}

dbo_status dbo_settings_set(const dbo_settings *settings, void *object, const dbo_value *table,
                            dbo_error *err)
{
    DBO_TRY(dbo_value_table(settings->name, "a table", table, err));
    for (uint32_t i = 0; i < table->count; i++)
        if (!dbo_settings_has_extra(settings, table->table[i].key))
            DBO_TRY(dbo_setting_set(settings, object, table->table[i].key, &table->table[i].value,
                                    err));
    return DBO_OK;
}
