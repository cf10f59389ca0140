/* The growing array, and the heap of keys on it, against plain sorting. */
#include "core/base/heap.h"
#include "core/base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct odd { /* 12 bytes: no power of two */
    uint32_t a, b, c;
} odd;

static void vec_keeps_what_it_has(void **state)
{
    (void)state;
    DBO_VEC(odd) vec = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        if (i % 3 == 0) {
            odd *item = DBO_VEC_ADD(&vec);
            assert_non_null(item);
            *item = (odd){i, i + 7, i * 5};
        } else {
            assert_int_equal(DBO_VEC_PUSH(&vec, (odd){i, i + 7, i * 5}), DBO_OK);
        }
        assert_true(vec.count == i + 1 && vec.cap >= vec.count && vec.cap < 2 * vec.count + 44);
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(vec.items[i].a == i && vec.items[i].b == i + 7 && vec.items[i].c == i * 5);
    const odd *before = vec.items;
    uint32_t cap = vec.cap;
    assert_int_equal(DBO_VEC_RESERVE(&vec, 1000), DBO_OK);
    assert_true(vec.items == before && vec.cap == cap);
    DBO_VEC_FINI(&vec);
    assert_true(!vec.items && vec.count == 0 && vec.cap == 0);
}

static void vec_refuses_what_is_absurd(void **state)
{
    (void)state;
    DBO_VEC(odd) vec = {0};
    assert_int_equal(DBO_VEC_PUSH(&vec, (odd){1, 2, 3}), DBO_OK);
    uint32_t cap = vec.cap;
    assert_int_equal(DBO_VEC_RESERVE(&vec, UINT64_C(1) << 32), DBO_NO_MEMORY);
    assert_int_equal(dbo_vec_grow(&vec.items, &vec.cap, UINT32_MAX, SIZE_MAX / 16), DBO_NO_MEMORY);
    assert_true(vec.count == 1 && vec.cap == cap && vec.items[0].c == 3);
    DBO_VEC_FINI(&vec);
}

static void vec_grows_zeroed(void **state)
{
    (void)state;
    odd *items = NULL;
    uint32_t cap = 0;
    assert_int_equal(dbo_vec_grow_zeroed(&items, &cap, 3, sizeof *items), DBO_OK);
    for (uint32_t i = 0; i < cap; i++) {
        assert_true(items[i].a == 0 && items[i].b == 0 && items[i].c == 0);
        items[i] = (odd){9, 9, i};
    }
    uint32_t had = cap;
    assert_int_equal(dbo_vec_grow_zeroed(&items, &cap, 100, sizeof *items), DBO_OK);
    assert_true(cap >= 100);
    for (uint32_t i = 0; i < cap; i++)
        assert_int_equal(items[i].a, i < had ? 9 : 0);
    assert_int_equal(items[had - 1].c, had - 1);
    free(items);
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Takes and pushes mixed, so that holes are filled by either; the model is a list, sorted anew. */
static void heap_gives_the_smallest(void **state)
{
    (void)state;
    enum { MOST = 600 };
    static uint64_t model[MOST];
    dbo_prng prng;
    dbo_prng_init(&prng, 4, 1);
    for (uint32_t trial = 0; trial < 60; trial++) {
        dbo_heap heap = {0};
        uint32_t count = 0, pushes = (uint32_t)dbo_prng_below(&prng, MOST);
        while (pushes > 0 || count > 0) {
            assert_int_equal(dbo_heap_is_empty(&heap), count == 0);
            if (pushes > 0 && (count == 0 || dbo_prng_below(&prng, 5) < 3)) {
                uint64_t key = dbo_prng_below(&prng, trial % 2 ? 40 : UINT64_MAX);
                assert_int_equal(dbo_heap_push(&heap, key), DBO_OK);
                model[count++] = key;
                pushes--;
                continue;
            }
            qsort(model, count, sizeof *model, compare_keys);
            assert_true(dbo_heap_take(&heap) == model[0]);
            memmove(model, model + 1, --count * sizeof *model);
        }
        assert_true(dbo_heap_is_empty(&heap));
        dbo_heap_fini(&heap);
    }
}

static void heap_is_cleared(void **state)
{
    (void)state;
    dbo_heap heap = {0};
    for (uint64_t key = 20; key > 10; key--)
        assert_int_equal(dbo_heap_push(&heap, key), DBO_OK);
    assert_int_equal(dbo_heap_take(&heap), 11);
    dbo_heap_clear(&heap);
    assert_true(dbo_heap_is_empty(&heap));
    assert_int_equal(dbo_heap_push(&heap, 33), DBO_OK);
    assert_int_equal(dbo_heap_take(&heap), 33);
    assert_true(dbo_heap_is_empty(&heap));
    dbo_heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vec_keeps_what_it_has), cmocka_unit_test(vec_refuses_what_is_absurd),
        cmocka_unit_test(vec_grows_zeroed),      cmocka_unit_test(heap_gives_the_smallest),
        cmocka_unit_test(heap_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
