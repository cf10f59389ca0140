/* test_padding.c: a course without the rows of padding that it has sent: who sent how many, and
 * what is left of each item's time, worked out on paper. */
#include "core/check/lost/padding.h"
#include "core/layer/model_ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RANKS 3u

typedef struct hand {
    dbo_course course;
    dbo_a2a_cost a2a[16];
    uint32_t num_a2a;
} hand;

static void begin(hand *h, const uint32_t *ranks, uint32_t num_ranks)
{
    *h = (hand){.course = {.num_ranks = num_ranks}};
    h->course.ranks = calloc(RANKS, sizeof *h->course.ranks);
    assert_non_null(h->course.ranks);
    for (uint32_t r = 0; r < num_ranks; r++)
        h->course.ranks[r].rank = ranks[r];
}

static uint32_t add(hand *h, uint32_t r, dbo_course_item item)
{
    dbo_course *c = &h->course;
    const dbo_course_action issue = {.kind = DBO_COURSE_ISSUE, .index = c->items.count};
    assert_int_equal(DBO_VEC_PUSH(&c->items, item), DBO_OK);
    assert_int_equal(DBO_VEC_PUSH(&c->ranks[r].actions, issue), DBO_OK);
    return issue.index;
}

/* A transfer of so many rows, of 64 experts, 8 a row. */
static uint32_t transfer(hand *h, uint32_t r, dbo_course_kind kind, uint32_t layer, uint32_t ubatch,
                         uint32_t op, uint32_t rows)
{
    dbo_a2a_cost *cost = &h->a2a[h->num_a2a++];
    *cost = (dbo_a2a_cost){.fixed_ns = -1, .tokens = rows, .topk = 8, .num_experts = 64};
    return add(h, r,
               (dbo_course_item){.kind = (uint8_t)kind,
                                 .id = dbo_op_id_make(0, r, layer, ubatch, op, 0),
                                 .cost = cost,
                                 .work_ns = 2000,
                                 .flight_ns = 6000});
}

static uint32_t kernel(hand *h, uint32_t r, uint32_t ubatch, uint32_t op, const dbo_op_cost *cost)
{
    return add(h, r,
               (dbo_course_item){.kind = DBO_COURSE_OP,
                                 .id = dbo_op_id_make(0, r, 2, ubatch, op, 0),
                                 .cost = cost,
                                 .work_ns = 9000});
}

static int64_t work_ns(const hand *h, uint32_t item)
{
    return h->course.items.items[item].work_ns;
}

static int64_t flight_ns(const hand *h, uint32_t item)
{
    return h->course.items.items[item].flight_ns;
}

/* Without a machine, time that depends on rows goes with their number. */
static bool leave_out(hand *h, const uint64_t *tokens, uint32_t num_ranks, dbo_padding *out)
{
    const dbo_perf_about about = {.tokens = tokens, .num_ranks = num_ranks};
    *out = (dbo_padding){.rank = 99};
    return dbo_padding_leave_out(&h->course, &about, out);
}

/* ---- who sent how many ---- */

/* Ubatches of 40 and 30 rows; 55 tokens are real: the last 15 rows are padding. Rows of layers
 * behind count once, other transfers and those that nobody posts here not at all. */
static void the_last_rows_are_padding(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    static const uint64_t tokens[] = {55};
    hand h;
    dbo_padding padding;
    begin(&h, ranks, 1);
    transfer(&h, 0, DBO_COURSE_MEET, 2, 0, DBO_KIND_COMBINE, 900);
    uint32_t first = transfer(&h, 0, DBO_COURSE_MEET, 3, 0, DBO_KIND_DISPATCH, 40);
    transfer(&h, 0, DBO_COURSE_RECV, 3, 1, DBO_KIND_DISPATCH, 800);
    uint32_t next = transfer(&h, 0, DBO_COURSE_MEET, 4, 0, DBO_KIND_DISPATCH, 41);
    uint32_t second = transfer(&h, 0, DBO_COURSE_SEND, 3, 1, DBO_KIND_DISPATCH, 30);
    transfer(&h, 0, DBO_COURSE_MEET, 5, 1, DBO_KIND_DISPATCH, 700);
    transfer(&h, 0, DBO_COURSE_MEET, 3, 1, DBO_KIND_DISPATCH, 600);
    assert_true(leave_out(&h, tokens, 1, &padding));
    assert_int_equal(padding.rank, 0);
    assert_int_equal(padding.sent, 70);
    assert_int_equal(padding.real, 55);
    assert_int_equal(work_ns(&h, first), 2000);
    assert_int_equal(work_ns(&h, next), 2000);
    assert_int_equal(work_ns(&h, second), 1000); /* 15 of 30 */
    assert_int_equal(flight_ns(&h, second), 3000);
    dbo_course_fini(&h.course);
}

/* Of several ranks the one with the most, the first of equal ones. One that nobody watches sends
 * as one that has as many tokens, or as the first. */
static void the_rank_with_the_most_is_named(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {3, 1};
    static const struct {
        uint64_t tokens[5];
        uint32_t rank;
        uint64_t sent, real;
    } cases[] = {
        {{20, 12, 20, 20, 20}, 1, 17, 12},
        {{20, 14, 20, 17, 20}, 1, 17, 14}, /* 3 each, of ranks 1 and 3 */
        {{20, 17, 17, 13, 18}, 3, 20, 13},
        {{17, 17, 11, 20, 20}, 2, 20, 11}, /* like rank 3 */
        {{20, 13, 13, 20, 20}, 1, 17, 13}, /* rank 2 is like rank 1 */
        {{11, 17, 12, 20, 20}, 0, 20, 11}, /* as the first, rank 3: like none */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hand h;
        dbo_padding padding;
        begin(&h, ranks, 2);
        transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 20);
        transfer(&h, 1, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 17);
        assert_true(leave_out(&h, cases[i].tokens, 5, &padding));
        assert_int_equal(padding.rank, cases[i].rank);
        assert_int_equal(padding.sent, cases[i].sent);
        assert_int_equal(padding.real, cases[i].real);
        dbo_course_fini(&h.course);
    }
}

static void without_padding_nothing_changes(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {1};
    static const uint64_t tokens[] = {20, 21};
    hand h;
    dbo_padding padding;
    begin(&h, ranks, 1);
    uint32_t sent = transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 20);
    assert_false(leave_out(&h, tokens, 2, &padding));
    h.a2a[0].tokens = 30;
    assert_false(leave_out(&h, tokens, 1, &padding)); /* of rank 1 nothing is known */
    assert_false(leave_out(&h, tokens, 0, &padding));
    assert_int_equal(work_ns(&h, sent), 2000);
    assert_true(leave_out(&h, tokens, 2, &padding));
    assert_int_equal(work_ns(&h, sent), 1400);
    dbo_course_fini(&h.course);
}

/* The only row of an ubatch may be padding. */
static void nothing_may_be_left(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    static const uint64_t tokens[] = {4};
    hand h;
    dbo_padding padding;
    begin(&h, ranks, 1);
    uint32_t first = transfer(&h, 0, DBO_COURSE_MEET, 0, 0, DBO_KIND_DISPATCH, 4);
    uint32_t second = transfer(&h, 0, DBO_COURSE_MEET, 0, 1, DBO_KIND_DISPATCH, 1);
    assert_true(leave_out(&h, tokens, 1, &padding));
    assert_int_equal(padding.sent - padding.real, 1);
    assert_int_equal(work_ns(&h, first), 2000);
    assert_int_equal(work_ns(&h, second), 0);
    dbo_course_fini(&h.course);
}

/* ---- what is left of it ---- */

/* Rank 0 sends 30 of 40 rows for real, rank 1 all of its 24: 54 of 64 go through experts. */
static void experts_have_the_rows_of_all(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0, 1};
    static const uint64_t tokens[] = {30, 24};
    static const dbo_op_cost rows = {
        .fixed_ns = -1, .num_parts = 1, .parts = {{.kind = DBO_PART_STREAM, .hbm_bytes = 640}}};
    static const dbo_op_cost dense = {
        .fixed_ns = -1,
        .num_parts = DBO_OP_MAX_PARTS,
        .parts = {{.kind = DBO_PART_GEMM, .hbm_bytes = 500, .weight_bytes = 180},
                  {.kind = DBO_PART_STREAM, .hbm_bytes = 140}}};
    static const dbo_op_cost grouped = {
        .fixed_ns = -1,
        .num_parts = 1,
        .parts = {{.kind = DBO_PART_GROUPED, .hbm_bytes = 1000, .weight_bytes = 900}}};
    static const dbo_op_cost fixed = {.fixed_ns = 0, .num_parts = 1, .parts = {{.hbm_bytes = 640}}};
    static const dbo_op_cost nothing = {.fixed_ns = -1};
    hand h;
    dbo_padding padding;
    begin(&h, ranks, 2);
    transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 40);
    uint32_t combine = transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_COMBINE, 40);
    uint32_t received = transfer(&h, 0, DBO_COURSE_RECV, 0, 0, DBO_KIND_COMBINE, 40);
    uint32_t given = transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_COMBINE, 40);
    h.a2a[h.num_a2a - 1].fixed_ns = 0;
    transfer(&h, 1, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 24);
    uint32_t other = transfer(&h, 1, DBO_COURSE_RECV, 0, 0, DBO_KIND_DISPATCH, 24);
    uint32_t quant = kernel(&h, 1, 0, DBO_KIND_QUANT, &rows);
    uint32_t reduce = kernel(&h, 1, 0, DBO_KIND_REDUCE, &dense);
    uint32_t mlp = kernel(&h, 0, 0, DBO_KIND_MLP, &grouped);
    uint32_t shared = kernel(&h, 0, 0, DBO_KIND_SHARED, &rows);
    uint32_t exactly = kernel(&h, 0, 0, DBO_KIND_MLP, &fixed);
    uint32_t no_part = kernel(&h, 0, 0, DBO_KIND_MLP, &nothing);
    uint32_t unknown = kernel(&h, 0, 0, DBO_KIND_MLP, NULL);
    uint32_t idle = kernel(&h, 0, 1, DBO_KIND_MLP, &rows); /* of an ubatch that sends nothing */
    assert_true(leave_out(&h, tokens, 2, &padding));
    assert_int_equal(work_ns(&h, combine), 1500);
    assert_int_equal(flight_ns(&h, combine), 4500);
    assert_int_equal(work_ns(&h, received), 1500);
    assert_int_equal(flight_ns(&h, received), 6000); /* which it has not */
    assert_int_equal(work_ns(&h, given), 2000);
    assert_int_equal(work_ns(&h, other), 2000);
    assert_int_equal(work_ns(&h, quant), 9000 * 54 / 64);
    assert_int_equal(work_ns(&h, reduce), 9000 * (180 + 460 * 54 / 64.0) / 640);
    double touched = dbo_touched_experts(64, 8, 1, 54) / dbo_touched_experts(64, 8, 1, 64);
    assert_true(touched < 0.9999);
    assert_int_equal(work_ns(&h, mlp), (int64_t)(9 * (900 * touched + 100 * 54 / 64.0)));
    assert_int_equal(work_ns(&h, shared), 9000);
    assert_int_equal(work_ns(&h, exactly), 9000);
    assert_int_equal(work_ns(&h, no_part), 9000);
    assert_int_equal(work_ns(&h, unknown), 9000);
    assert_int_equal(work_ns(&h, idle), 9000);
    dbo_course_fini(&h.course);
}

/* ---- a machine says how long work takes ---- */

/* FLOPs, tiles and bytes add up; whole tiles are done. */
static int64_t op_ns(const void *self, const dbo_op_cost *cost)
{
    double ns = 0;
    (void)self;
    for (uint32_t i = 0; i < cost->num_parts; i++)
        ns += cost->parts[i].flops + 1000.0 * cost->parts[i].tiles + cost->parts[i].hbm_bytes;
    return (int64_t)ns;
}

/* Combines take twice as long as dispatches; a flight has its latency, a receive none. */
static void transfer_ns(const void *self, const dbo_a2a_cost *cost, dbo_a2a_direction direction,
                        dbo_perf_transfer *out)
{
    int64_t row_ns = direction == DBO_A2A_COMBINE ? 20 : 10;
    (void)self;
    out->run_ns = row_ns * cost->tokens + 100;
    out->flight_ns = row_ns * cost->tokens + 600;
    out->recv_ns = row_ns * cost->tokens;
}

static void the_machine_says_what_is_saved(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    static const uint64_t tokens[] = {25};
    static const dbo_op_cost dense = {
        .fixed_ns = -1,
        .num_parts = 1,
        .parts = {{.kind = DBO_PART_GEMM, .flops = 500, .hbm_bytes = 500}}};
    static const dbo_op_cost tiled = {
        .fixed_ns = -1,
        .num_parts = 2,
        .parts = {{.kind = DBO_PART_GEMM, .tiles = 7, .hbm_bytes = 400, .weight_bytes = 400},
                  {.kind = DBO_PART_STREAM, .tiles = 8}}};
    static const dbo_op_cost few = {
        .fixed_ns = -1,
        .num_parts = 2,
        .parts = {{.kind = DBO_PART_GROUPED, .tiles = 2, .hbm_bytes = 10, .weight_bytes = 10},
                  {.kind = DBO_PART_GROUPED, .tiles = 100}}};
    static const dbo_perf_machine machine = {.op_ns = op_ns, .transfer = transfer_ns};
    const dbo_perf_about about = {.tokens = tokens, .num_ranks = 1, .machine = &machine};
    hand h;
    dbo_padding padding;
    begin(&h, ranks, 1);
    uint32_t dispatch = transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_DISPATCH, 40);
    uint32_t combine = transfer(&h, 0, DBO_COURSE_SEND, 0, 0, DBO_KIND_COMBINE, 40);
    uint32_t received = transfer(&h, 0, DBO_COURSE_RECV, 0, 0, DBO_KIND_COMBINE, 40);
    uint32_t quant = kernel(&h, 0, 0, DBO_KIND_QUANT, &dense);
    uint32_t mlp = kernel(&h, 0, 0, DBO_KIND_MLP, &few);
    uint32_t reduce = kernel(&h, 0, 0, DBO_KIND_REDUCE, &tiled);
    assert_true(dbo_padding_leave_out(&h.course, &about, &padding));
    assert_int_equal(work_ns(&h, dispatch), 2000 * 350 / 500);
    assert_int_equal(flight_ns(&h, dispatch), 6000 * 850 / 1000);
    assert_int_equal(work_ns(&h, combine), 2000 * 600 / 900);
    assert_int_equal(flight_ns(&h, combine), 6000 * 1100 / 1400);
    assert_int_equal(work_ns(&h, received), 1250);
    assert_int_equal(work_ns(&h, quant), 9000 * 625 / 1000);
    /* 5 of 7 and 5 of 8 tiles hold 25 of 40 rows */
    assert_int_equal(work_ns(&h, reduce), 9000 * 10400LL / 15400);
    /* whole tiles, of the experts that are still touched */
    double touched = dbo_touched_experts(64, 8, 1, 25) / dbo_touched_experts(64, 8, 1, 40);
    int64_t tiles = (int64_t)(100 * touched + 0.999), bytes = (int64_t)(10 * touched);
    assert_in_range(tiles, 96, 98);
    assert_int_equal(work_ns(&h, mlp), 9000 * (2000 + 1000 * tiles + bytes) / 102010);
    dbo_course_fini(&h.course);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rows_are_padding),
        cmocka_unit_test(the_rank_with_the_most_is_named),
        cmocka_unit_test(without_padding_nothing_changes),
        cmocka_unit_test(nothing_may_be_left),
        cmocka_unit_test(experts_have_the_rows_of_all),
        cmocka_unit_test(the_machine_says_what_is_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
