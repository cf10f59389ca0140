/* vec.h: one growing array.
 *
 * A vec is any struct with `items`, `count` and `cap` (both uint32_t); zeroed, it is empty. Items
 * move when it grows. The owner calls DBO_VEC_FINI. Amortised O(1) an item.
 *
 *     DBO_VEC(dbo_op_id) posts = {0};
 *     DBO_TRY(DBO_VEC_PUSH(&posts, id));
 *     for (uint32_t i = 0; i < posts.count; i++)
 *         use(posts.items[i]);
 *     DBO_VEC_FINI(&posts);
 *
 * What cannot grow returns DBO_NO_MEMORY, without a sentence, and is as it was.
 */
#ifndef DBO_VEC_H
#define DBO_VEC_H

#include "core/base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define DBO_VEC(type)        \
    struct {                 \
        type *items;         \
        uint32_t count, cap; \
    }

/* Out of line: more than *cap. */
dbo_status dbo_vec_enlarge(void *at, uint32_t *cap, uint64_t count, size_t size);
dbo_status dbo_vec_enlarge_zeroed(void *at, uint32_t *cap, uint64_t count, size_t size);

/* `at` is the address of a pointer to *cap items of `size` bytes: makes it at least `count`. */
static inline dbo_status dbo_vec_grow(void *at, uint32_t *cap, uint64_t count, size_t size)
{
    return count <= *cap ? DBO_OK : dbo_vec_enlarge(at, cap, count, size);
}
/* The same, and all items from the old *cap on are zeroed. */
static inline dbo_status dbo_vec_grow_zeroed(void *at, uint32_t *cap, uint64_t count, size_t size)
{
    return count <= *cap ? DBO_OK : dbo_vec_enlarge_zeroed(at, cap, count, size);
}

/* Room for `wanted` items. */
#define DBO_VEC_RESERVE(vec, wanted) \
    dbo_vec_grow(&(vec)->items, &(vec)->cap, (wanted), sizeof *(vec)->items)

/* Appends a value; a status. */
#define DBO_VEC_PUSH(vec, ...)                                  \
    (DBO_VEC_RESERVE(vec, (uint64_t)(vec)->count + 1) != DBO_OK \
         ? DBO_NO_MEMORY                                        \
         : ((void)((vec)->items[(vec)->count++] = (__VA_ARGS__)), DBO_OK))

/* The address of a new last item, which holds anything; NULL: no memory. */
#define DBO_VEC_ADD(vec)                                               \
    (DBO_VEC_RESERVE(vec, (uint64_t)(vec)->count + 1) != DBO_OK ? NULL \
                                                                : &(vec)->items[(vec)->count++])

#define DBO_VEC_FINI(vec) (free((vec)->items), (vec)->items = NULL, (vec)->count = (vec)->cap = 0)

#endif
