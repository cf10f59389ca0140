/* test_arena.c: pieces are aligned, apart, and where they were; refusals leave the arena usable. */
#include "core/base/arena.h"
#include "core/base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES = 2000 };

typedef struct piece {
    unsigned char *at;
    size_t bytes;
} piece;

/* Fills an arena with pieces of every size and alignment, each marked with its number. */
static void fill(dbo_arena *arena, piece *pieces, uint64_t seed)
{
    dbo_prng prng;
    dbo_prng_init(&prng, seed, 0);
    for (size_t i = 0; i < PIECES; i++) {
        size_t align = (size_t)1 << dbo_prng_below(&prng, 8);
        size_t bytes = (size_t)dbo_prng_below(&prng, i % 100 == 0 ? 5000 : 100);
        pieces[i].at = dbo_arena_alloc_aligned(arena, bytes, align);
        pieces[i].bytes = bytes;
        assert_non_null(pieces[i].at);
        assert_int_equal((uintptr_t)pieces[i].at % align, 0);
        memset(pieces[i].at, (int)(i & 0xff), bytes);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < pieces[i].bytes; k++)
            assert_int_equal(pieces[i].at[k], i & 0xff);
}

static void test_pieces_do_not_overlap(void **state)
{
    (void)state;
    piece *pieces = calloc(PIECES, sizeof *pieces);
    assert_non_null(pieces);
    dbo_arena arena = {.chunk_bytes = 1024};
    fill(&arena, pieces, 1);
    dbo_arena_fini(&arena);
    assert_int_equal(arena.held_bytes, 0);
    fill(&arena, pieces, 2); /* after fini it is empty again */
    dbo_arena_fini(&arena);
    dbo_arena_fini(NULL);
    free(pieces);
}

static void test_reset_keeps_chunks(void **state)
{
    (void)state;
    piece *pieces = calloc(PIECES, sizeof *pieces);
    assert_non_null(pieces);
    dbo_arena arena = {.chunk_bytes = 4096};
    dbo_arena_reset(&arena); /* of nothing */
    fill(&arena, pieces, 3);
    size_t held = arena.held_bytes;
    unsigned char *first = pieces[0].at;
    for (int round = 0; round < 5; round++) {
        dbo_arena_reset(&arena);
        fill(&arena, pieces, 3);
        assert_ptr_equal(pieces[0].at, first);
        assert_int_equal(arena.held_bytes, held);
    }
    dbo_arena_fini(&arena);
    free(pieces);
}

static void test_zeroed_and_copies(void **state)
{
    (void)state;
    dbo_arena arena = {0}; /* a zeroed arena is one too */
    memset(dbo_arena_alloc(&arena, 1000), 0xff, 1000);
    dbo_arena_reset(&arena);
    const uint64_t *words = DBO_ARENA_ARRAY(&arena, uint64_t, 100);
    for (int i = 0; i < 100; i++)
        assert_true(words[i] == 0);
    char text[] = "a name";
    char *copy = dbo_arena_copy_string(&arena, text);
    int32_t *numbers = dbo_arena_copy(&arena, (int32_t[]){1, 2, 3}, 3 * sizeof(int32_t));
    text[0] = 'b';
    assert_string_equal(copy, "a name");
    assert_int_equal(numbers[2], 3);
    assert_non_null(dbo_arena_copy(&arena, NULL, 0));
    assert_ptr_not_equal(dbo_arena_alloc(&arena, 0), dbo_arena_alloc(&arena, 0));
    assert_int_equal((uintptr_t)dbo_arena_alloc(&arena, 1) % _Alignof(max_align_t), 0);
    dbo_arena_fini(&arena);
}

static void test_overflow_is_refused(void **state)
{
    (void)state;
    dbo_arena arena = {0};
    assert_null(dbo_arena_alloc(&arena, SIZE_MAX));
    assert_null(dbo_arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(dbo_arena_alloc_zeroed(&arena, SIZE_MAX / 2, 3));
    assert_null(dbo_arena_alloc_zeroed(&arena, (size_t)1 << 33, (size_t)1 << 31));
    assert_int_equal(arena.held_bytes, 0);
    char *small = dbo_arena_alloc(&arena, 10);
    assert_non_null(small);
    assert_null(dbo_arena_alloc_aligned(&arena, SIZE_MAX - 1, 64));
    assert_ptr_equal(dbo_arena_alloc_aligned(&arena, 1, 1), small + 10); /* as if not asked */
    dbo_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_overlap),
        cmocka_unit_test(test_reset_keeps_chunks),
        cmocka_unit_test(test_zeroed_and_copies),
        cmocka_unit_test(test_overflow_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
