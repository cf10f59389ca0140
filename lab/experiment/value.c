/* value.c: texts into values, and the sentences about a value of the wrong kind (value.h). */
#include "lab/experiment/value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_TEXT 48 /* characters of a wrong text that a sentence repeats */

/* ---- making ---- */

static void *alloc_in_arena(void *self, size_t bytes)
{
    return dbo_arena_alloc(self, bytes);
}

dbo_value_memory dbo_value_memory_of(dbo_arena *arena)
{
    return (dbo_value_memory){alloc_in_arena, arena};
}

/* The text but for spaces around it. */
static const char *copy_trimmed(const dbo_value_memory *memory, const char *text, size_t length)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = memory->alloc(memory->self, length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* A switch, a number or a text. */
static dbo_value value_of_word(const char *text)
{
    dbo_value value = {.kind = DBO_VALUE_TEXT, .text = text, .word = text};
    char *end = NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value.kind = DBO_VALUE_BOOL;
        value.boolean = text[0] == 't';
        return value;
    }
    if (!text[0] || strspn(text, "+-.0123456789eE") != strlen(text))
        return value;
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0') {
        value.kind = DBO_VALUE_INTEGER;
        value.integer = integer;
        return value;
    }
    double real = strtod(text, &end);
    if (end != text && *end == '\0') {
        value.kind = DBO_VALUE_REAL;
        value.real = real;
    }
    return value;
}

dbo_status dbo_value_of_text(const dbo_value_memory *memory, const char *text, dbo_value *out,
                             dbo_error *err)
{
    *out = value_of_word(text);
    if (!strchr(text, ','))
        return DBO_OK;
    uint32_t count = 1;
    for (const char *at = text; (at = strchr(at, ',')); at++)
        count++;
    dbo_value *items = memory->alloc(memory->self, count * sizeof *items);
    DBO_TRY(dbo_need_memory(items, "a setting", err));
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strcspn(text, ",");
        const char *word = copy_trimmed(memory, text, length);
        DBO_TRY(dbo_need_memory(word, "a setting", err));
        items[i] = value_of_word(word);
        text += length + 1;
    }
    out->kind = DBO_VALUE_LIST;
    out->list = items;
    out->count = count;
    return DBO_OK;
}

dbo_status dbo_value_of_setting(const dbo_value_memory *memory, const char *setting,
                                dbo_member *out, dbo_error *err)
{
    const char *equals = strchr(setting, '=');
    if (!equals || equals == setting)
        return dbo_fail(err, DBO_INVALID, "For example: nodes=4", "a setting is written KEY=VALUE");
    out->key = copy_trimmed(memory, setting, (size_t)(equals - setting));
    DBO_TRY(dbo_need_memory(out->key, "a setting", err));
    return dbo_value_of_text(memory, equals + 1, &out->value, err);
}

/* ---- looking ---- */

const dbo_value *dbo_value_member(const dbo_value *table, const char *key)
{
    for (uint32_t i = 0; table->kind == DBO_VALUE_TABLE && i < table->count; i++)
        if (table->table[i].key && strcmp(table->table[i].key, key) == 0)
            return &table->table[i].value;
    return NULL;
}

const char *dbo_value_text(const dbo_value *value)
{
    return value->word || value->kind != DBO_VALUE_TEXT ? value->word : value->text;
}

/* ---- checks ---- */

/* What a sentence calls the value. */
static void describe(const dbo_value *value, char *out, size_t size)
{
    switch (value->kind) {
    case DBO_VALUE_NIL: snprintf(out, size, "nil"); break;
    case DBO_VALUE_BOOL: snprintf(out, size, "%s", value->boolean ? "true" : "false"); break;
    case DBO_VALUE_INTEGER: snprintf(out, size, "%" PRId64, value->integer); break;
    case DBO_VALUE_REAL:
        if (isnan(value->real)) /* which printf may write as -nan */
            snprintf(out, size, "nan");
        else
            snprintf(out, size, "%.10g", value->real);
        break;
    case DBO_VALUE_TEXT:
        snprintf(out, size, "string \"%.*s%s\"", SHOWN_TEXT, value->text,
                 strlen(value->text) > SHOWN_TEXT ? "..." : "");
        break;
    case DBO_VALUE_LIST:
        snprintf(out, size, "%s",
                 value->count == 0 && !value->is_array ? "an empty table" : "a list");
        break;
    case DBO_VALUE_TABLE: snprintf(out, size, "a table"); break;
    case DBO_VALUE_OTHER: snprintf(out, size, "%s", value->text); break;
    }
}

dbo_status dbo_value_mismatch(const char *key, const char *wanted, const dbo_value *value,
                              dbo_error *err)
{
    char got[SHOWN_TEXT * 2];
    describe(value, got, sizeof got);
    return dbo_fail_value(err, DBO_INVALID, key, NULL, "must be %s, got %s", wanted, got);
}

static dbo_status check_range(const char *key, double number, double min, double max,
                              dbo_error *err)
{
    if (number >= min && number <= max)
        return DBO_OK;
    return dbo_fail_value(err, DBO_INVALID, key, NULL, "is %.15g; it must be from %.15g to %.15g",
                          number, min, max);
}

dbo_status dbo_value_integer(const char *key, const dbo_value *value, double min, double max,
                             uint32_t *out, dbo_error *err)
{
    double number = value->kind == DBO_VALUE_INTEGER ? (double)value->integer : value->real;
    bool is_whole = value->kind == DBO_VALUE_INTEGER;
    if (value->kind == DBO_VALUE_REAL && !isnan(number)) /* every double from 1e16 on is whole */
        is_whole = number >= 1e16 || number <= -1e16 || number == (double)(int64_t)number;
    if (!is_whole)
        return dbo_value_mismatch(key, "an integer", value, err);
    DBO_TRY(check_range(key, number, min, max, err));
    *out = (uint32_t)number;
    return DBO_OK;
}

dbo_status dbo_value_integer_at(const char *key, uint32_t index, const dbo_value *value, double min,
                                double max, uint32_t *out, dbo_error *err)
{
    char name[48];
    if (dbo_value_integer(key, value, min, max, out, NULL) == DBO_OK)
        return DBO_OK;
    snprintf(name, sizeof name, "%s[%u]", key, index);
    return dbo_value_integer(name, value, min, max, out, err);
}

dbo_status dbo_value_number(const char *key, const dbo_value *value, double min, double max,
                            double *out, dbo_error *err)
{
    double number = value->kind == DBO_VALUE_INTEGER ? (double)value->integer : value->real;
    bool is_number = value->kind == DBO_VALUE_INTEGER || value->kind == DBO_VALUE_REAL;
    if (!is_number || isnan(number))
        return dbo_value_mismatch(key, "a number", value, err);
    DBO_TRY(check_range(key, number, min, max, err));
    *out = number;
    return DBO_OK;
}

dbo_status dbo_value_table(const char *what, const char *wanted, const dbo_value *value,
                           dbo_error *err)
{
    bool is_empty = value->kind == DBO_VALUE_LIST && value->count == 0 && !value->is_array;
    if (is_empty || (value->kind == DBO_VALUE_TABLE && value->table[0].key))
        return DBO_OK;
    bool is_table = value->kind == DBO_VALUE_TABLE || value->kind == DBO_VALUE_LIST;
    if (!is_table || (value->is_array && value->count == 0))
        return dbo_value_mismatch(what, wanted, value, err);
    return dbo_fail(err, DBO_INVALID, "Write key = value.",
                    "%s takes named values only; one has no name", what);
}

static bool is_same(const dbo_value *a, const dbo_value *b)
{
    char texts[2][SHOWN_TEXT * 2];
    bool lists = a->kind == DBO_VALUE_LIST && b->kind == DBO_VALUE_LIST;
    if (lists) {
        bool same = a->count == b->count;
        for (uint32_t i = 0; same && i < a->count; i++)
            same = is_same(&a->list[i], &b->list[i]);
        return same;
    }
    if (a->kind == DBO_VALUE_TEXT && b->kind == DBO_VALUE_TEXT)
        return strcmp(a->text, b->text) == 0;
    describe(a, texts[0], sizeof texts[0]);
    describe(b, texts[1], sizeof texts[1]);
    return strcmp(texts[0], texts[1]) == 0;
}

dbo_status dbo_value_agrees(const dbo_value *table, dbo_error *err)
{
    for (uint32_t i = 0; table->kind == DBO_VALUE_TABLE && i < table->count; i++) {
        const char *key = table->table[i].key, *dot = strchr(key, '.');
        char outer[64], was[SHOWN_TEXT * 2], is[SHOWN_TEXT * 2];
        if (!dot || (size_t)(dot - key) >= sizeof outer)
            continue;
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
        const dbo_value *whole = dbo_value_member(table, outer);
        const dbo_value *other = whole ? dbo_value_member(whole, dot + 1) : NULL;
        if (!other || is_same(&table->table[i].value, other))
            continue;
        describe(&table->table[i].value, was, sizeof was);
        describe(other, is, sizeof is);
        return dbo_fail_key(err, DBO_INVALID, key, "Say it once.",
                            "%s is %s, but %s of the table %s is %s", key, was, dot + 1, outer, is);
    }
    return DBO_OK;
}

dbo_status dbo_value_list(const char *key, const char *wanted, const dbo_value *value,
                          const dbo_value **items, uint32_t *count, dbo_error *err)
{
    bool is_list = value->kind == DBO_VALUE_LIST;
    if (value->kind == DBO_VALUE_TABLE)
        return dbo_value_mismatch(key, wanted, value, err);
    if (is_list && value->count == 0)
        return dbo_fail_value(err, DBO_INVALID, key, NULL, "is an empty list");
    *items = is_list ? value->list : value;
    *count = is_list ? value->count : 1;
    return DBO_OK;
}
