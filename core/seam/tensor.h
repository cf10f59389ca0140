/* tensor.h: a borrowed view of a vector or a matrix in memory.
 *
 * A view says where the elements lie and owns nothing; slicing one makes another view of the same
 * memory. Addresses may be a device's: only dbo_tensor_copy touches the elements. A vector is
 * (rows), a matrix (rows, cols); distances between neighbours are in bytes, so that a part of the
 * columns of a larger buffer is a view like any other.
 *
 *     dbo_tensor hidden = dbo_tensor_matrix(data, num_tokens, 7168, 2);    // bf16, row by row
 *     DBO_TRY(dbo_tensor_rows(&hidden, 64, 64, &second_half, err));
 *
 * A zeroed view is absent: no tensor at all. A view of no rows is empty, and its data may be NULL.
 * No state; any thread.
 */
#ifndef DBO_TENSOR_H
#define DBO_TENSOR_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dbo_tensor {
    void *data;         /* element (0, 0); borrowed */
    int64_t rows, cols; /* of a vector: cols 1 */
    int64_t row_bytes, col_bytes;
    uint32_t elem_bytes; /* 0: absent */
    uint32_t dims;       /* 1 or 2 */
} dbo_tensor;

/* Dense: (rows), and (rows, cols) row by row. */
dbo_tensor dbo_tensor_vector(void *data, int64_t rows, uint32_t elem_bytes);
dbo_tensor dbo_tensor_matrix(void *data, int64_t rows, int64_t cols, uint32_t elem_bytes);

static inline bool dbo_tensor_is_absent(const dbo_tensor *tensor)
{
    return tensor->elem_bytes == 0;
}

/* Dimensions, counts and data that go together; the sentence calls the tensor `name`. An absent one
 * is fine. */
dbo_status dbo_tensor_check(const dbo_tensor *tensor, const char *name, dbo_error *err);

/* The rows [first, first + count) of a tensor, the columns of a matrix. DBO_INVALID outside of it.
 * `out` may be the tensor itself. */
dbo_status dbo_tensor_rows(const dbo_tensor *tensor, int64_t first, int64_t count, dbo_tensor *out,
                           dbo_error *err);
dbo_status dbo_tensor_cols(const dbo_tensor *tensor, int64_t first, int64_t count, dbo_tensor *out,
                           dbo_error *err);

/* Of tensors that are alike: the very same elements in memory. */
static inline bool dbo_tensor_is_same(const dbo_tensor *a, const dbo_tensor *b)
{
    return a->data == b->data && a->row_bytes == b->row_bytes && a->col_bytes == b->col_bytes;
}

/* Same number of dimensions, rows, columns and bytes an element. */
bool dbo_tensor_is_alike(const dbo_tensor *a, const dbo_tensor *b);

/* Copies the elements of `from` into those of `to`, both in memory that the CPU sees and alike.
 * Nothing is done when they are the same memory; views that overlap otherwise are not for this. */
void dbo_tensor_copy(const dbo_tensor *to, const dbo_tensor *from);

#endif
