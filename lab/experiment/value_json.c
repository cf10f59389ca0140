/* value_json.c: JSON into values (value_json.h). */
#include "lab/experiment/value_json.h"

#include <stdlib.h>
#include <string.h>

static const char *copy_text(const dbo_value_memory *memory, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = memory->alloc(memory->self, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const dbo_member *)a)->key, ((const dbo_member *)b)->key);
}

static dbo_status take_array(const dbo_value_memory *memory, const dbo_json_value *json,
                             dbo_value *out, dbo_error *err)
{
    dbo_value *list = memory->alloc(memory->self, out->count * sizeof *list);
    if (!list)
        return dbo_fail_memory(err, "settings");
    for (uint32_t i = 0; i < out->count; i++)
        DBO_TRY(dbo_value_of_json(memory, dbo_json_at(json, i), &list[i], err));
    out->list = list;
    return DBO_OK;
}

static dbo_status take_object(const dbo_value_memory *memory, const dbo_json_value *json,
                              dbo_value *out, dbo_error *err)
{
    dbo_member *table = memory->alloc(memory->self, out->count * sizeof *table);
    for (uint32_t i = 0; table && i < out->count; i++) {
        table[i].key = copy_text(memory, dbo_json_key_at(json, i));
        if (!table[i].key)
            return dbo_fail_memory(err, "settings");
        DBO_TRY(dbo_value_of_json(memory, dbo_json_at(json, i), &table[i].value, err));
    }
    if (!table)
        return dbo_fail_memory(err, "settings");
    qsort(table, out->count, sizeof *table, compare_members);
    out->table = table;
    return DBO_OK;
}

dbo_status dbo_value_of_json(const dbo_value_memory *memory, const dbo_json_value *json,
                             dbo_value *out, dbo_error *err)
{
    *out = (dbo_value){.kind = DBO_VALUE_NIL, .count = (uint32_t)dbo_json_count(json)};
    switch (dbo_json_type_of(json)) {
    case DBO_JSON_NULL: break;
    case DBO_JSON_BOOL:
        out->kind = DBO_VALUE_BOOL;
        out->boolean = dbo_json_bool(json);
        break;
    case DBO_JSON_INT:
        out->kind = DBO_VALUE_INTEGER;
        out->integer = dbo_json_int(json);
        break;
    case DBO_JSON_DOUBLE:
        out->kind = DBO_VALUE_REAL;
        out->real = dbo_json_double(json);
        break;
    case DBO_JSON_STRING:
        out->kind = DBO_VALUE_TEXT;
        out->text = copy_text(memory, dbo_json_string(json));
        return out->text ? DBO_OK : dbo_fail_memory(err, "settings");
    case DBO_JSON_ARRAY: out->kind = DBO_VALUE_LIST; return take_array(memory, json, out, err);
    case DBO_JSON_OBJECT:
        out->kind = out->count > 0 ? DBO_VALUE_TABLE : DBO_VALUE_LIST;
        return out->count > 0 ? take_object(memory, json, out, err) : DBO_OK;
    }
    return DBO_OK;
}
