/* tensor.c: arithmetic on views; the only loop is the copy. */
#include "core/seam/tensor.h"

#include <stddef.h>
#include <string.h>

dbo_tensor dbo_tensor_vector(void *data, int64_t rows, uint32_t elem_bytes)
{
    return (dbo_tensor){.data = data,
                        .rows = rows,
                        .cols = 1,
                        .row_bytes = elem_bytes,
                        .col_bytes = elem_bytes,
                        .elem_bytes = elem_bytes,
                        .dims = 1};
}

dbo_tensor dbo_tensor_matrix(void *data, int64_t rows, int64_t cols, uint32_t elem_bytes)
{
    return (dbo_tensor){.data = data,
                        .rows = rows,
                        .cols = cols,
                        .row_bytes = cols * (int64_t)elem_bytes,
                        .col_bytes = elem_bytes,
                        .elem_bytes = elem_bytes,
                        .dims = 2};
}

dbo_status dbo_tensor_check(const dbo_tensor *t, const char *name, dbo_error *err)
{
    if (dbo_tensor_is_absent(t))
        return DBO_OK;
    if (t->dims != 1 && t->dims != 2)
        return dbo_fail(err, DBO_INVALID, "Make views with dbo_tensor_vector and _matrix.",
                        "%s has %u dimensions; 1 and 2 are possible", name, t->dims);
    if (t->rows < 0 || t->cols < 0 || (t->dims == 1 && t->cols != 1))
        return dbo_fail(err, DBO_INVALID, NULL, "%s has %lld rows and %lld columns", name,
                        (long long)t->rows, (long long)t->cols);
    if (!t->data && t->rows > 0 && t->cols > 0)
        return dbo_fail(err, DBO_INVALID, NULL, "%s is (%lld, %lld) and has no data", name,
                        (long long)t->rows, (long long)t->cols);
    return DBO_OK;
}

/* The view that begins `bytes` further on. */
static void *advance(void *data, int64_t bytes)
{
    return data ? (char *)data + bytes : NULL;
}

static dbo_status check_range(int64_t first, int64_t count, int64_t all, const char *what,
                              dbo_error *err)
{
    if (first >= 0 && count >= 0 && first <= all && count <= all - first)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL, "%lld %s from %lld on, of a tensor that has %lld",
                    (long long)count, what, (long long)first, (long long)all);
}

dbo_status dbo_tensor_rows(const dbo_tensor *t, int64_t first, int64_t count, dbo_tensor *out,
                           dbo_error *err)
{
    DBO_TRY(check_range(first, count, t->rows, "rows", err));
    *out = *t;
    out->data = advance(t->data, first * t->row_bytes);
    out->rows = count;
    return DBO_OK;
}

dbo_status dbo_tensor_cols(const dbo_tensor *t, int64_t first, int64_t count, dbo_tensor *out,
                           dbo_error *err)
{
    if (t->dims != 2)
        return dbo_fail(err, DBO_INVALID, NULL, "columns of a tensor that is no matrix");
    DBO_TRY(check_range(first, count, t->cols, "columns", err));
    *out = *t;
    out->data = advance(t->data, first * t->col_bytes);
    out->cols = count;
    return DBO_OK;
}

bool dbo_tensor_is_alike(const dbo_tensor *a, const dbo_tensor *b)
{
    return a->dims == b->dims && a->rows == b->rows && a->cols == b->cols &&
           a->elem_bytes == b->elem_bytes;
}

void dbo_tensor_copy(const dbo_tensor *to, const dbo_tensor *from)
{
    if (dbo_tensor_is_same(to, from) || from->rows == 0 || from->cols == 0)
        return;
    bool dense = to->col_bytes == to->elem_bytes && from->col_bytes == from->elem_bytes;
    for (int64_t r = 0; r < from->rows; r++) {
        char *target = (char *)to->data + r * to->row_bytes;
        const char *source = (const char *)from->data + r * from->row_bytes;
        if (dense) {
            memcpy(target, source, (size_t)from->cols * from->elem_bytes);
            continue;
        }
        for (int64_t c = 0; c < from->cols; c++)
            memcpy(target + c * to->col_bytes, source + c * from->col_bytes, from->elem_bytes);
    }
}
