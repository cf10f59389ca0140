/* eval_read.c: what the kinds of `dbo eval` read from a case: integers, lists, tables. */
#include "app/eval/eval_impl.h"

dbo_status dbo_eval_int(const dbo_json_value *object, const char *key, int32_t min, int32_t *out,
                        dbo_error *err)
{
    return dbo_json_need_int32(object, key, min, INT32_MAX, out, err);
}

dbo_status dbo_eval_int_or_null(const dbo_json_value *object, const char *key, int32_t min,
                                int32_t absent, int32_t *out, dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ANY, &value, err));
    *out = absent;
    return dbo_json_is_null(&value) ? DBO_OK : dbo_eval_int(object, key, min, out, err);
}

dbo_status dbo_eval_tristate(const dbo_json_value *object, const char *key, dbo_tristate *out,
                             dbo_error *err)
{
    dbo_json_value value;
    bool known = false;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ANY, &value, err));
    *out = DBO_UNKNOWN;
    if (dbo_json_is_null(&value))
        return DBO_OK;
    DBO_TRY(dbo_json_need_bool(object, key, &known, err));
    *out = known ? DBO_TRUE : DBO_FALSE;
    return DBO_OK;
}

dbo_status dbo_eval_alloc(dbo_eval_case *c, int64_t count, int32_t **out, dbo_error *err)
{
    *out = DBO_ARENA_ARRAY(c->arena, int32_t, (size_t)count);
    return *out != NULL ? DBO_OK : dbo_fail_memory(err, "the arrays of a case");
}

/* Lists of a case are indexed with int32, which the limits of a document see to. */
static dbo_status copy_list(dbo_eval_case *c, const dbo_json_value *list, int32_t min,
                            const int32_t **out, dbo_error *err)
{
    int32_t *values;
    DBO_TRY(dbo_eval_alloc(c, (int64_t)dbo_json_count(list), &values, err));
    DBO_TRY(dbo_json_int32s(list, min, INT32_MAX, values, err));
    *out = values;
    return DBO_OK;
}

dbo_status dbo_eval_ints(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                         int32_t min, const int32_t **out, int32_t *count, dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ARRAY, &list, err));
    *count = (int32_t)dbo_json_count(&list);
    return copy_list(c, &list, min, out, err);
}

dbo_status dbo_eval_ints_of(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                            bool nullable, int32_t count, const int32_t **out, dbo_error *err)
{
    dbo_json_value list;
    *out = NULL;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ANY, &list, err));
    if (nullable && dbo_json_is_null(&list))
        return DBO_OK;
    DBO_TRY(dbo_json_expect(&list, DBO_JSON_ARRAY, err));
    if (dbo_json_count(&list) != (size_t)count)
        return dbo_json_fail(err, &list, NULL, "must have %d elements, not %zu", count,
                             dbo_json_count(&list));
    return copy_list(c, &list, 0, out, err);
}

dbo_status dbo_eval_table(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                          int32_t min_rows, const int32_t **out, int32_t *columns, dbo_error *err)
{
    dbo_json_value table;
    int32_t *cells;
    DBO_TRY(dbo_json_need(object, key, DBO_JSON_ARRAY, &table, err));
    dbo_json_value row = dbo_json_at(&table, 0);
    int32_t rows = (int32_t)dbo_json_count(&table);
    *columns = (int32_t)dbo_json_count(&row);
    if (rows < min_rows)
        return dbo_json_fail(err, &table, NULL, "must have at least %d rows, not %d", min_rows,
                             rows);
    DBO_TRY(dbo_eval_alloc(c, (int64_t)rows * *columns, &cells, err));
    for (int32_t r = 0; r < rows; r++) {
        row = dbo_json_at(&table, (size_t)r);
        DBO_TRY(dbo_json_expect(&row, DBO_JSON_ARRAY, err));
        if (dbo_json_count(&row) != (size_t)*columns)
            return dbo_json_fail(err, &row, NULL, "has %zu columns, the first row has %d",
                                 dbo_json_count(&row), *columns);
        DBO_TRY(dbo_json_int32s(&row, INT32_MIN, INT32_MAX, cells + (ptrdiff_t)r * *columns, err));
    }
    *out = cells;
    return DBO_OK;
}
