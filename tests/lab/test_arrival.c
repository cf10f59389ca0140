/* What each rank gets in each step: as the experiment says, in another order where nobody shares a
 * block; and which ranks fold, because they get the same in every step. */
#include "lab/world/arrival.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 5u

/* Measured: lists of 3, 1 and 4 requests, for ranks 0 1 0 2 0; the last one's share blocks. Before,
 * if there is a step before: 2 and 2, for ranks 0 0 0 0 1. */
typedef struct fixture {
    dbo_experiment e;
    dbo_request requests[5][4];
    dbo_request_list lists[3], before[2];
    const dbo_request_list *ranks[RANKS], *ranks_before[RANKS];
    dbo_arrivals arrivals;
} fixture;

static void set_up(fixture *f, bool with_before, dbo_arrival order)
{
    static const uint32_t counts[5] = {3, 1, 4, 2, 2};
    static const uint32_t of_rank[RANKS] = {0, 1, 0, 2, 0}, of_rank_before[RANKS] = {0, 0, 0, 0, 1};
    dbo_error err = {0};
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < 5; i++) {
        dbo_request_list *list = i < 3 ? &f->lists[i] : &f->before[i - 3];
        list->requests = f->requests[i];
        list->count = counts[i];
        for (uint32_t r = 0; r < counts[i]; r++)
            f->requests[i][r] = (dbo_request){.id = 10 * i + r, .num_scheduled = 1};
    }
    static dbo_request_cache shared[4];
    memset(shared, 0, sizeof shared);
    shared[2].prefix = "system";
    f->lists[2].cache = shared;
    for (uint32_t r = 0; r < RANKS; r++) {
        f->ranks[r] = &f->lists[of_rank[r]];
        f->ranks_before[r] = &f->before[of_rank_before[r]];
    }
    f->e.config.data_parallel_size = RANKS;
    f->e.batch = (dbo_workload){.lists = f->lists, .num_lists = 3, .ranks = f->ranks};
    f->e.before[0] = (dbo_workload){.lists = f->before, .num_lists = 2, .ranks = f->ranks_before};
    f->e.num_before = with_before ? 1 : 0;
    assert_int_equal(dbo_arrivals_init(&f->arrivals, &f->e, order, &err), DBO_OK);
    assert_int_equal(f->arrivals.num_steps, 2);
}

static void must_get(const fixture *f, uint32_t step, uint32_t rank, const char *ids)
{
    const dbo_request_list *list = f->arrivals.requests[step * RANKS + rank];
    char got[64] = "";
    for (uint32_t i = 0; i < list->count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u ",
                 (unsigned)list->requests[i].id);
    assert_string_equal(got, ids);
}

static void orders(void **state)
{
    (void)state;
    static const struct {
        dbo_arrival order;
        const char *first, *before;
    } cases[] = {{DBO_ARRIVAL_AS_GIVEN, "0 1 2 ", "40 41 "},
                 {DBO_ARRIVAL_REVERSED, "2 1 0 ", "41 40 "},
                 {DBO_ARRIVAL_ROTATED, "1 2 0 ", "41 40 "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int with_before = 0; with_before < 2; with_before++) {
            fixture f;
            set_up(&f, with_before, cases[i].order);
            must_get(&f, 1, 0, cases[i].first);
            must_get(&f, 1, 4, cases[i].first);
            must_get(&f, 1, 1, "10 ");
            must_get(&f, 1, 3, "20 21 22 23 "); /* two of them share a block */
            must_get(&f, 0, 4, with_before ? cases[i].before : cases[i].first);
            dbo_arrivals_fini(&f.arrivals);
        }
}

static bool is_alone(const void *self, uint32_t rank)
{
    return rank == *(const uint32_t *)self;
}

static void must_fold(const fixture *f, uint32_t alone, const char *classes, const char *first)
{
    dbo_fold fold;
    dbo_error err = {0};
    char got[32] = "", heads[32] = "";
    assert_int_equal(dbo_arrivals_fold(&f->arrivals, is_alone, &alone, &fold, &err), DBO_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        snprintf(got + r, sizeof got - r, "%u", fold.class_of[r]);
    for (uint32_t c = 0; c < fold.num_classes; c++)
        snprintf(heads + c, sizeof heads - c, "%u", fold.first_rank[c]);
    assert_string_equal(got, classes);
    assert_string_equal(heads, first);
    free(fold.class_of);
    free(fold.first_rank);
}

static void folds(void **state)
{
    (void)state;
    for (uint32_t order = 0; order < 3; order++) {
        fixture f;
        set_up(&f, false, (dbo_arrival)order);
        must_fold(&f, 99, "01020", "013");
        must_fold(&f, 2, "01230", "0123");
        must_fold(&f, 0, "01232", "0123");
        dbo_arrivals_fini(&f.arrivals);
        set_up(&f, true, (dbo_arrival)order); /* rank 4 has had something else before */
        must_fold(&f, 99, "01023", "0134");
        dbo_arrivals_fini(&f.arrivals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(folds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
