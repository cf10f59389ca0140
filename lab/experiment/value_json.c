/* value_json.c: JSON into values (value_json.h). */
#include "lab/experiment/value_json.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool take(const dbo_value_memory *memory, const json_t *json, dbo_value *out);

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

static bool take_array(const dbo_value_memory *memory, const json_t *json, dbo_value *out)
{
    out->kind = DBO_VALUE_LIST;
    out->is_array = true;
    out->count = (uint32_t)json_array_size(json);
    dbo_value *list = memory->alloc(memory->self, out->count * sizeof *list);
    out->list = list;
    for (uint32_t i = 0; i < out->count; i++)
        if (!list || !take(memory, json_array_get(json, i), &list[i]))
            return false;
    return true;
}

static bool take_object(const dbo_value_memory *memory, json_t *json, dbo_value *out)
{
    const char *key;
    json_t *inner;
    uint32_t i = 0;
    out->count = (uint32_t)json_object_size(json);
    out->kind = out->count > 0 ? DBO_VALUE_TABLE : DBO_VALUE_LIST;
    dbo_member *table = memory->alloc(memory->self, out->count * sizeof *table);
    json_object_foreach(json, key, inner)
    {
        if (!table || !(table[i].key = copy_text(memory, key)) ||
            !take(memory, inner, &table[i++].value))
            return false;
    }
    if (out->count > 0)
        qsort(table, out->count, sizeof *table, compare_members);
    out->table = table;
    return true;
}

/* False: no memory. */
static bool take(const dbo_value_memory *memory, const json_t *json, dbo_value *out)
{
    *out = (dbo_value){.kind = DBO_VALUE_NIL};
    switch (json_typeof(json)) {
    case JSON_NULL: break;
    case JSON_TRUE:
    case JSON_FALSE:
        out->kind = DBO_VALUE_BOOL;
        out->boolean = json_is_true(json);
        break;
    case JSON_INTEGER:
        out->kind = DBO_VALUE_INTEGER;
        out->integer = json_integer_value(json);
        break;
    case JSON_REAL:
        out->kind = DBO_VALUE_REAL;
        out->real = json_real_value(json);
        if (fabs(out->real) == DBL_MAX) /* what json.h makes of 1e400 is 1e400 in other texts */
            out->real = copysign(INFINITY, out->real);
        break;
    case JSON_STRING:
        out->kind = DBO_VALUE_TEXT;
        out->text = copy_text(memory, json_string_value(json));
        return out->text != NULL;
    case JSON_ARRAY: return take_array(memory, json, out);
    case JSON_OBJECT: return take_object(memory, (json_t *)(uintptr_t)json, out);
    }
    return true;
}

dbo_status dbo_value_of_json(const dbo_value_memory *memory, const dbo_json *doc, dbo_value *out,
                             dbo_error *err)
{
    return take(memory, dbo_json_tree(doc), out) ? DBO_OK : dbo_fail_memory(err, "settings");
}
