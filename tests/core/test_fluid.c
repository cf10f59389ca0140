/* Jobs that share resources: rates worked out by hand; nothing over capacity, work is done once. */
#include "core/base/fluid.h"
#include "core/base/prng.h"
#include "core/base/status.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FULL     DBO_FLUID_FULL
#define OF(a, b) ((dbo_fluid_demand){{(uint32_t)(a), (uint32_t)(b)}})

static void rates_by_hand(void **state)
{
    (void)state;
    /* a capacity of 120 and 1000; what jobs ask for; 65536ths of full speed */
    static const struct {
        uint32_t count;
        uint64_t demand[4][2];
        uint32_t rate[4];
    } cases[] = {
        {1, {{120, 1000}}, {FULL}},
        {1, {{0, 0}}, {FULL}},
        {1, {{240, 0}}, {FULL / 2}},
        {2, {{100, 0}, {20, 0}}, {FULL, FULL}},
        {2, {{100, 0}, {60, 0}}, {FULL * 3 / 4, FULL * 3 / 4}},
        {2, {{120, 0}, {0, 700}}, {FULL, FULL}}, /* other resources: nothing to share */
        /* the second resource is full at 1/2 for the first two; the third has what they leave of
         * the first: 120 - (60 + 20) / 2 = 80 for 100 */
        {3, {{60, 1500}, {20, 500}, {100, 0}}, {FULL / 2, FULL / 2, FULL * 4 / 5}},
        /* the first is full at 120/160 = 3/4: the users of it stop; the third goes on alone to
         * (1000 - 300) / 900 of its speed */
        {3, {{100, 400}, {60, 0}, {0, 900}}, {FULL * 3 / 4, FULL * 3 / 4, 50972}},
        {4, {{1, 4000}, {30, 0}, {30, 0}, {30, 0}}, {FULL / 4, FULL, FULL, FULL}},
        {2, {{UINT32_MAX, 0}, {60, 0}}, {1, 1}}, /* whatever runs gets on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        dbo_fluid fluid;
        dbo_fluid_init(&fluid, OF(120, 1000));
        for (uint32_t i = 0; i < cases[c].count; i++)
            assert_true(dbo_fluid_begin(&fluid, 5, 70 + i,
                                        OF(cases[c].demand[i][0], cases[c].demand[i][1]), 1000));
        assert_int_equal(fluid.count, cases[c].count);
        for (uint32_t i = 0; i < cases[c].count; i++) {
            assert_int_equal(fluid.jobs[i].who, 70 + i);
            assert_int_equal(fluid.jobs[i].rate, cases[c].rate[i]);
        }
    }
}

/* 100 of 120 alone for 40 ns, then beside 60 more, then alone again. */
static void ends_move(void **state)
{
    (void)state;
    dbo_fluid fluid;
    dbo_fluid_init(&fluid, OF(120, 0));
    assert_true(dbo_fluid_begin(&fluid, 1000, 3, OF(100, 0), 100));
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 1100);
    assert_true(dbo_fluid_begin(&fluid, 1040, 9, OF(60, 0), 30));
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 1040 + 80); /* 60 ns of work at 3/4 */
    assert_int_equal(dbo_fluid_end_ns(&fluid, 1), 1040 + 40);
    dbo_fluid_end(&fluid, 1080, 9);
    assert_int_equal(fluid.count, 1);
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 1080 + 30);
    dbo_fluid_end(&fluid, 1090, 4); /* whoever has no job has none to end */
    assert_int_equal(fluid.count, 1);
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 1110);
    dbo_fluid_end(&fluid, 1110, 3);
    assert_int_equal(fluid.count, 0);
}

/* A third of full speed: what is left of a ns counts as a whole one. */
static void ends_are_whole_ns(void **state)
{
    (void)state;
    dbo_fluid fluid;
    dbo_fluid_init(&fluid, OF(10, 0));
    assert_true(dbo_fluid_begin(&fluid, 0, 0, OF(30, 0), 7));
    assert_int_equal(fluid.jobs[0].rate, FULL / 3); /* rounded down */
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 22);
}

static void endless_holds(void **state)
{
    (void)state;
    dbo_fluid fluid;
    dbo_fluid_init(&fluid, OF(120, 0));
    assert_true(dbo_fluid_begin(&fluid, 0, 1, OF(60, 0), DBO_FLUID_ENDLESS));
    assert_true(dbo_fluid_begin(&fluid, 0, 2, OF(100, 0), 30));
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), DBO_FLUID_ENDLESS);
    assert_int_equal(dbo_fluid_end_ns(&fluid, 1), 40);
    /* it has met whom it waits for: in its place, with work; the other has done 15 of its 30 */
    assert_true(dbo_fluid_begin(&fluid, 20, 1, OF(20, 0), 8));
    assert_int_equal(fluid.count, 2);
    assert_int_equal(dbo_fluid_end_ns(&fluid, 0), 28);
    assert_int_equal(dbo_fluid_end_ns(&fluid, 1), 35);
}

static void no_more_than_fit(void **state)
{
    (void)state;
    dbo_fluid fluid;
    dbo_fluid_init(&fluid, OF(4, 0));
    for (uint32_t i = 0; i < DBO_FLUID_MAX_JOBS; i++)
        assert_true(dbo_fluid_begin(&fluid, 0, i, OF(1, 0), 100));
    assert_false(dbo_fluid_begin(&fluid, 9, 99, OF(1, 0), 100));
    assert_int_equal(fluid.count, DBO_FLUID_MAX_JOBS);
    assert_true(dbo_fluid_begin(&fluid, 10, 5, OF(1, 0), 100)); /* one that is there may change */
    dbo_fluid_end(&fluid, 11, 5);
    assert_true(dbo_fluid_begin(&fluid, 12, 99, OF(1, 0), 100));
    assert_int_equal(fluid.jobs[DBO_FLUID_MAX_JOBS - 1].who, 99);
}

/* ---- random jobs ---- */

#define JOBS 10u

typedef struct model { /* of each job, beside the solver: what it has done by its rates */
    bool runs;
    int64_t work_ns;
    uint64_t done; /* 65536ths of a ns */
} model;

static void check_rates(const dbo_fluid *fluid)
{
    for (uint32_t k = 0; k < DBO_FLUID_RESOURCES; k++) {
        uint64_t used = 0, floor = 0; /* a rate of 1 may be more than there is */
        for (uint32_t i = 0; i < fluid->count; i++) {
            used += (uint64_t)fluid->jobs[i].demand.of[k] * fluid->jobs[i].rate;
            floor += fluid->jobs[i].rate == 1 ? fluid->jobs[i].demand.of[k] : 0;
        }
        assert_true(used <= (uint64_t)fluid->capacity.of[k] * FULL + floor);
    }
    /* Max-min: who is slowed uses a resource that is full, but for what rounding leaves, and nobody
     * who uses it is faster. */
    for (uint32_t i = 0; i < fluid->count; i++) {
        bool bound = fluid->jobs[i].rate == FULL;
        for (uint32_t k = 0; k < DBO_FLUID_RESOURCES && !bound; k++) {
            uint64_t used = 0, asked = 0, fastest = 0;
            for (uint32_t j = 0; j < fluid->count; j++) {
                uint64_t demand = fluid->jobs[j].demand.of[k];
                used += demand * fluid->jobs[j].rate;
                asked += demand;
                fastest =
                    demand > 0 && fluid->jobs[j].rate > fastest ? fluid->jobs[j].rate : fastest;
            }
            bound = fluid->jobs[i].demand.of[k] > 0 && fastest == fluid->jobs[i].rate &&
                    used + asked >= (uint64_t)fluid->capacity.of[k] * FULL;
        }
        assert_true(bound);
    }
}

static void advance(model *jobs, const dbo_fluid *fluid, int64_t to_ns)
{
    for (uint32_t i = 0; i < fluid->count; i++)
        jobs[fluid->jobs[i].who].done += (uint64_t)(to_ns - fluid->now_ns) * fluid->jobs[i].rate;
}

/* The job that ends first; fluid->count: there is none. */
static uint32_t first_to_end(const dbo_fluid *fluid)
{
    uint32_t first = fluid->count;
    for (uint32_t i = 0; i < fluid->count; i++)
        if (first == fluid->count || dbo_fluid_end_ns(fluid, i) < dbo_fluid_end_ns(fluid, first))
            first = i;
    return first;
}

static void work_is_conserved(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 20, 3);
    for (uint32_t trial = 0; trial < 300; trial++) {
        model jobs[JOBS] = {0};
        dbo_fluid fluid;
        dbo_fluid_init(&fluid, OF((uint64_t)prng_range(&prng, 1, 150),
                                  (uint64_t)prng_range(&prng, 1, 4000000)));
        for (uint32_t begun = 0; begun < JOBS || fluid.count > 0;) {
            uint32_t i = first_to_end(&fluid);
            if (begun < JOBS && (fluid.count == 0 || dbo_prng_below(&prng, 2) == 0)) {
                int64_t at_ns = fluid.now_ns + prng_range(&prng, 0, 500);
                if (i < fluid.count && dbo_fluid_end_ns(&fluid, i) < at_ns)
                    at_ns = dbo_fluid_end_ns(&fluid, i);
                jobs[begun] = (model){true, prng_range(&prng, 0, 2000), 0};
                advance(jobs, &fluid, at_ns);
                assert_true(dbo_fluid_begin(&fluid, at_ns, begun,
                                            OF((uint64_t)prng_range(&prng, 0, 132),
                                               (uint64_t)prng_range(&prng, 0, 3000000)),
                                            jobs[begun].work_ns));
                begun++;
            } else {
                uint32_t who = fluid.jobs[i].who;
                int64_t at_ns = dbo_fluid_end_ns(&fluid, i);
                advance(jobs, &fluid, at_ns);
                uint64_t work = (uint64_t)jobs[who].work_ns << DBO_FLUID_RATE_BITS;
                assert_true(jobs[who].done >= work && jobs[who].done < work + FULL);
                dbo_fluid_end(&fluid, at_ns, who);
            }
            check_rates(&fluid);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_by_hand),     cmocka_unit_test(ends_move),
        cmocka_unit_test(ends_are_whole_ns), cmocka_unit_test(endless_holds),
        cmocka_unit_test(no_more_than_fit),  cmocka_unit_test(work_is_conserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
