/* heap.h: the smallest of many 64-bit keys.
 *
 * What orders and what is meant share the key: time << 20 | entity orders by time, then by entity.
 * A 4-ary heap in one array, all inline, because event loops live in it. What is taken leaves a
 * hole at the top, which the next push fills: "one ends, the next begins" costs one walk, not two.
 * O(log n) a push or a take.
 *
 *     dbo_heap heap = {0};
 *     DBO_TRY(dbo_heap_push(&heap, (uint64_t)at_ns << 20 | entity));
 *     while (!dbo_heap_is_empty(&heap))
 *         handle(dbo_heap_take(&heap));
 *     dbo_heap_fini(&heap);
 */
#ifndef DBO_HEAP_H
#define DBO_HEAP_H

#include "core/base/vec.h"

#include <stdbool.h>

typedef struct dbo_heap {
    uint64_t *items;
    uint32_t count, cap; /* a vec */
    bool hole;           /* items[0] has been taken */
} dbo_heap;

/* Puts the key where it belongs on the way down from the top. */
static inline void dbo_heap_sink(const dbo_heap *heap, uint64_t key)
{
    uint64_t *items = heap->items;
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 4 * i + 1, least = child;
        if (child >= heap->count)
            break;
        uint32_t last = child + 4 < heap->count ? child + 4 : heap->count;
        for (uint32_t c = child + 1; c < last; c++)
            least = items[c] < items[least] ? c : least;
        if (items[least] >= key)
            break;
        items[i] = items[least];
        i = least;
    }
    items[i] = key;
}

/* DBO_NO_MEMORY: it is not in the heap. */
static inline dbo_status dbo_heap_push(dbo_heap *heap, uint64_t key)
{
    if (heap->hole) {
        heap->hole = false;
        dbo_heap_sink(heap, key);
        return DBO_OK;
    }
    DBO_TRY(DBO_VEC_PUSH(heap, key));
    uint64_t *items = heap->items;
    uint32_t i = heap->count - 1;
    for (; i > 0 && items[(i - 1) / 4] > key; i = (i - 1) / 4)
        items[i] = items[(i - 1) / 4];
    items[i] = key;
    return DBO_OK;
}

static inline bool dbo_heap_is_empty(const dbo_heap *heap)
{
    return heap->count == (uint32_t)heap->hole;
}

/* The smallest key, which leaves the heap; it must not be empty. */
static inline uint64_t dbo_heap_take(dbo_heap *heap)
{
    if (heap->hole) {
        uint64_t last = heap->items[--heap->count];
        dbo_heap_sink(heap, last);
    }
    heap->hole = true;
    return heap->items[0];
}

static inline void dbo_heap_clear(dbo_heap *heap)
{
    heap->count = 0;
    heap->hole = false;
}

static inline void dbo_heap_fini(dbo_heap *heap)
{
    DBO_VEC_FINI(heap);
    heap->hole = false;
}

#endif
