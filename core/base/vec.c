/* vec.c: a growing array at least doubles, from half a KiB on. */
#include "core/base/vec.h"

#include <string.h>

#define FIRST_BYTES 512u
#define LEAST_FIRST 4u

dbo_status dbo_vec_enlarge(void *at, uint32_t *cap, uint64_t count, size_t size)
{
    uint64_t larger = *cap ? (uint64_t)*cap * 2 : FIRST_BYTES / (size ? size : 1);
    size_t bytes;
    void *items;
    if (larger < LEAST_FIRST)
        larger = LEAST_FIRST;
    if (larger < count)
        larger = count;
    if (larger > UINT32_MAX || __builtin_mul_overflow((size_t)larger, size, &bytes))
        return DBO_NO_MEMORY;
    memcpy(&items, at, sizeof items); /* a pointer to items of any type */
    items = realloc(items, bytes ? bytes : 1);
    if (!items)
        return DBO_NO_MEMORY;
    memcpy(at, &items, sizeof items);
    *cap = (uint32_t)larger;
    return DBO_OK;
}

dbo_status dbo_vec_enlarge_zeroed(void *at, uint32_t *cap, uint64_t count, size_t size)
{
    uint32_t had = *cap;
    unsigned char *items;
    DBO_TRY(dbo_vec_enlarge(at, cap, count, size));
    memcpy(&items, at, sizeof items);
    memset(items + had * size, 0, (*cap - had) * size);
    return DBO_OK;
}
