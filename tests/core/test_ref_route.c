/* test_ref_route.c: the rows of an all-to-all, by hand: who gets what, in which order, and what
 * stale ids and full receivers do. */
#include "core/seam/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define RANKS   2u
#define EXPERTS 4u /* 0, 1 on rank 0; 2, 3 on rank 1 */
#define TOPK    2u
#define HIDDEN  2u
#define TOKENS  3u /* rank 1 has one token fewer */
#define ROWS    8u

/* What a rank sends, and what it gets; wide enough for both forms. */
typedef struct side {
    dbo_route dispatch, combine;
    float rows[TOKENS * HIDDEN], weights[TOKENS * TOPK];
    int64_t ids[TOKENS * TOPK];
    uint8_t flags[TOKENS * RANKS];
    float got[ROWS * HIDDEN], got_weights[ROWS * TOPK], out[TOKENS * HIDDEN];
    int64_t got_ids[ROWS * TOPK];
    int32_t handle[64], counts[2];
    const void *dispatch_reads[5], *combine_reads[4];
    void *dispatch_writes[5], *combine_writes[1];
} side;

typedef struct group {
    side sides[RANKS];
} group;

enum { NONE = DBO_ROUTE_NONE };

static void set_up(group *g, bool low_latency, uint32_t capacity)
{
    static const int64_t ids[RANKS][TOKENS * TOPK] = {{0, 2, 3, 2, -1, -1}, {1, 0, 3, 1, -1, -1}};
    memset(g, 0, sizeof *g);
    for (uint32_t r = 0; r < RANKS; r++) {
        side *s = &g->sides[r];
        s->dispatch = (dbo_route){.low_latency = low_latency,
                                  .wire = DBO_FP32,
                                  .num_ranks = RANKS,
                                  .num_experts = EXPERTS,
                                  .topk = TOPK,
                                  .hidden = HIDDEN,
                                  .tokens = TOKENS - r,
                                  .capacity = capacity,
                                  .reads = {0, NONE, 1, 2, low_latency ? NONE : 3, NONE, NONE},
                                  .writes = {0, NONE, 1, 2, NONE, 3, 4}};
        s->combine = s->dispatch;
        s->combine.combine = true;
        memcpy(s->combine.reads, (uint8_t[]){0, NONE, 1, 2, NONE, 3, NONE}, 7);
        memcpy(s->ids, ids[r], sizeof s->ids);
        memset(s->flags, 1, sizeof s->flags);
        for (uint32_t i = 0; i < TOKENS * HIDDEN; i++) {
            uint32_t value = 100 * r + 10 * (i / HIDDEN) + i % HIDDEN;
            s->rows[i] = (float)value;
        }
        for (uint32_t i = 0; i < TOKENS * TOPK; i++)
            s->weights[i] = (float)(i + 1);
        memcpy(s->dispatch_reads, (const void *[]){s->rows, s->ids, s->weights, s->flags},
               4 * sizeof(void *));
        memcpy(s->dispatch_writes,
               (void *[]){s->got, s->got_ids, s->got_weights, s->handle, s->counts},
               5 * sizeof(void *));
        memcpy(s->combine_reads, (const void *[]){s->got, s->ids, s->weights, s->handle},
               4 * sizeof(void *));
        s->combine_writes[0] = s->out;
    }
}

static void dispatch(group *g)
{
    dbo_route_side views[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        views[r] = (dbo_route_side){&g->sides[r].dispatch, g->sides[r].dispatch_reads};
    for (uint32_t r = 0; r < RANKS; r++)
        dbo_route_deliver(views, r, g->sides[r].dispatch_writes);
}

static void combine(group *g)
{
    dbo_route_side views[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        views[r] = (dbo_route_side){&g->sides[r].combine, g->sides[r].combine_reads};
    for (uint32_t r = 0; r < RANKS; r++)
        dbo_route_deliver(views, r, g->sides[r].combine_writes);
}

static void ht_sends_a_token_once_to_a_rank(void **state)
{
    (void)state;
    group g;
    set_up(&g, false, ROWS);
    dispatch(&g);
    const side *a = &g.sides[0], *b = &g.sides[1];
    /* rank 0: its own token 0, then rank 1's tokens 0 and 1 */
    const float rows0[] = {0, 1, 100, 101, 110, 111};
    const int64_t ids0[] = {0, -1, 1, 0, -1, 1, -1, -1};
    const float weights0[] = {1, 0, 1, 2, 0, 4};
    const int32_t handle0[] = {0, 0, 1}, first0[] = {0, 1, 3};
    assert_memory_equal(a->got, rows0, sizeof rows0);
    assert_memory_equal(a->got_ids, ids0, sizeof ids0);
    assert_memory_equal(a->got_weights, weights0, sizeof weights0);
    assert_memory_equal(a->handle, handle0, sizeof handle0);
    assert_memory_equal(a->handle + ROWS, first0, sizeof first0);
    for (uint32_t i = 3 * TOPK; i < ROWS * TOPK; i++)
        assert_int_equal(a->got_ids[i], -1);
    /* rank 1: both experts of token 1 are here, one row */
    const float rows1[] = {0, 1, 10, 11, 110, 111};
    const int64_t ids1[] = {-1, 0, 1, 0, 1, -1, -1, -1};
    assert_memory_equal(b->got, rows1, sizeof rows1);
    assert_memory_equal(b->got_ids, ids1, sizeof ids1);
}

static void ht_combine_adds_what_ranks_made(void **state)
{
    (void)state;
    group g;
    set_up(&g, false, ROWS);
    dispatch(&g);
    for (uint32_t i = 0; i < ROWS * HIDDEN; i++) /* stands for the experts, and the sum here */
        g.sides[1].got[i] *= 3;
    g.sides[0].out[4] = 7; /* the padding token's row becomes 0 */
    combine(&g);
    const float out0[] = {0 + 0, 1 + 3, 30, 33, 0, 0}, out1[] = {100, 101, 440, 444, 0, 0};
    assert_memory_equal(g.sides[0].out, out0, sizeof out0);
    assert_memory_equal(g.sides[1].out, out1, sizeof out1);
}

static void flags_of_the_layout_decide(void **state)
{
    (void)state;
    group g;
    set_up(&g, false, ROWS);
    g.sides[0].flags[0] = 0; /* token 0 does not go to rank 0 */
    dispatch(&g);
    assert_int_equal(g.sides[0].handle[ROWS + RANKS], 2);
    assert_true(g.sides[0].got[0] == 100.0f);
}

static void ll_packs_rows_by_expert(void **state)
{
    (void)state;
    group g;
    set_up(&g, true, 2); /* rows: 2 experts * 2 ranks * 2 */
    dispatch(&g);
    const side *a = &g.sides[0], *b = &g.sides[1];
    assert_int_equal(a->counts[0], 2); /* expert 0: (0, 0), (1, 0) */
    assert_int_equal(a->counts[1], 2); /* expert 1: (1, 0), (1, 1) */
    const float rows0[] = {0, 1, 100, 101, 0, 0, 0, 0, 100, 101, 110, 111};
    const int32_t handle0[] = {0, 0, 0, 0, 0, 1}, ranges0[] = {0, 1, 1, 1, 4, 0, 4, 2};
    assert_memory_equal(a->got, rows0, sizeof rows0);
    assert_memory_equal(a->handle, handle0, sizeof handle0);
    assert_memory_equal(a->handle + ROWS, ranges0, sizeof ranges0);
    assert_int_equal(b->counts[0], 2); /* expert 2: (0, 0), (0, 1) */
    assert_int_equal(b->counts[1], 2); /* expert 3: (0, 1), (1, 1) */
}

static void ll_combine_weights(void **state)
{
    (void)state;
    group g;
    set_up(&g, true, 2);
    dispatch(&g);
    combine(&g);
    const float out0[] = {0, 1 + 2, 70, 77, 0, 0}, out1[] = {300, 303, 770, 777, 0, 0};
    assert_memory_equal(g.sides[0].out, out0, sizeof out0);
    assert_memory_equal(g.sides[1].out, out1, sizeof out1);
}

static void what_does_not_fit_is_dropped(void **state)
{
    (void)state;
    group g;
    set_up(&g, true, 1);
    dispatch(&g);
    assert_int_equal(g.sides[0].counts[1], 1); /* (1, 1) had no room beside (1, 0) */
    assert_int_equal(g.sides[1].counts[0], 1);
    set_up(&g, false, 2);
    dispatch(&g);
    assert_int_equal(g.sides[0].handle[2 + RANKS], 2);
    assert_true(g.sides[0].got[4] == 0);
}

static void stale_memory_is_harmless(void **state)
{
    (void)state;
    for (uint32_t ll = 0; ll < 2; ll++) {
        group g;
        set_up(&g, ll, ll ? 2 : ROWS);
        memset(g.sides[0].ids, 0x7b, sizeof g.sides[0].ids);
        g.sides[1].ids[0] = EXPERTS;
        g.sides[1].ids[1] = INT64_MIN;
        dispatch(&g);
        for (uint32_t i = 0; i < 64; i++) { /* handles of anything */
            g.sides[0].handle[i] = (int32_t)(i * 0x9e3779b9u);
            g.sides[1].handle[i] = INT32_MIN;
        }
        memset(g.sides[0].ids, 0, sizeof g.sides[0].ids);
        combine(&g);
        for (uint32_t i = 0; i < TOKENS * HIDDEN; i++)
            assert_true(g.sides[0].out[i] == 0);
    }
}

static void quantised_on_the_way(void **state)
{
    (void)state;
    group g;
    set_up(&g, true, 2);
    float scales[ROWS] = {0};
    int8_t narrow[ROWS * HIDDEN] = {0};
    for (uint32_t r = 0; r < RANKS; r++) {
        side *s = &g.sides[r];
        s->dispatch.wire = DBO_FP8;
        s->dispatch.quantise = true;
        s->dispatch.writes[DBO_ROUTE_SCALES] = 2; /* LL has no weights on the way */
        s->dispatch.writes[DBO_ROUTE_WEIGHTS] = DBO_ROUTE_NONE;
        s->dispatch_writes[0] = r == 0 ? (void *)narrow : s->got;
        s->dispatch_writes[2] = r == 0 ? (void *)scales : s->got_weights;
    }
    dispatch(&g);
    assert_int_equal(narrow[2], 126); /* 100 / (101 / 127) = 125.7 */
    assert_int_equal(narrow[3], 127);
    assert_true(scales[1] == 101.0f / 127.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ht_sends_a_token_once_to_a_rank),
        cmocka_unit_test(ht_combine_adds_what_ranks_made),
        cmocka_unit_test(flags_of_the_layout_decide),
        cmocka_unit_test(ll_packs_rows_by_expert),
        cmocka_unit_test(ll_combine_weights),
        cmocka_unit_test(what_does_not_fit_is_dropped),
        cmocka_unit_test(stale_memory_is_harmless),
        cmocka_unit_test(quantised_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
