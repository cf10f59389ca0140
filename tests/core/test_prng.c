/* test_prng.c: the published sequences, and what is built on them. */
#include "core/base/prng.h"
#include "core/base/units.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_published_vectors(void **state)
{
    (void)state;
    /* xoshiro256** from the state 1, 2, 3, 4. */
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
    };
    dbo_prng prng = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(dbo_prng_next(&prng) == expected[i]);
    /* SplitMix64 from 0 fills the state of seed 0, stream 0. */
    dbo_prng_init(&prng, 0, 0);
    assert_true(prng.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(prng.state[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(prng.state[2] == UINT64_C(0x06c45d188009454f));
}

static void test_streams_differ(void **state)
{
    (void)state;
    enum { STREAMS = 64 };
    uint64_t firsts[STREAMS * STREAMS];
    size_t count = 0;
    for (uint64_t seed = 0; seed < STREAMS; seed++) {
        for (uint64_t stream = 0; stream < STREAMS; stream++) {
            dbo_prng prng;
            dbo_prng_init(&prng, seed, stream);
            firsts[count++] = dbo_prng_next(&prng);
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (firsts[i] == firsts[j])
                fail_msg("sequences %zu and %zu begin alike", i, j);
}

/* Counts of 7 faces within 5 standard deviations, and a bound that modulo would bias by half. */
static void test_below_is_uniform(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 42, 1);
    int counts[7] = {0};
    for (int i = 0; i < 70000; i++) {
        uint64_t face = dbo_prng_below(&prng, 7);
        assert_true(face < 7);
        counts[face]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 10000 - 463, 10000 + 463);
    uint64_t bound = UINT64_C(3) << 62;
    int low = 0;
    for (int i = 0; i < 30000; i++) {
        uint64_t value = dbo_prng_below(&prng, bound);
        assert_true(value < bound);
        low += value < bound / 3;
    }
    assert_in_range(low, 10000 - 410, 10000 + 410); /* modulo would give 15000 */
    assert_true(dbo_prng_below(&prng, 0) == 0);
    assert_true(dbo_prng_below(&prng, 1) == 0);
}

static void test_range(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 7, 7);
    int seen[5] = {0};
    for (int i = 0; i < 1000; i++) {
        int64_t value = prng_range(&prng, -2, 2);
        assert_true(value >= -2 && value <= 2);
        seen[value + 2]++;
    }
    for (int i = 0; i < 5; i++)
        assert_true(seen[i] > 100);
    assert_true(prng_range(&prng, INT64_MAX, INT64_MAX) == INT64_MAX);
    int negative = 0;
    for (int i = 0; i < 1000; i++)
        negative += prng_range(&prng, INT64_MIN, INT64_MAX) < 0;
    assert_in_range(negative, 400, 600);
}

static void test_unit(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 9, 0);
    double sum = 0.0;
    for (int i = 0; i < 10000; i++) {
        double x = dbo_prng_unit(&prng);
        assert_true(x >= 0.0 && x < 1.0);
        sum += x;
    }
    assert_true(sum > 4850.0 && sum < 5150.0);
}

/* Every position reached by every item. */
static void test_shuffle(void **state)
{
    (void)state;
    enum { ITEMS = 8, ROUNDS = 4000 };
    uint32_t items[ITEMS];
    int places[ITEMS][ITEMS] = {{0}};
    dbo_prng prng;
    dbo_prng_init(&prng, 3, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < ITEMS; i++)
            items[i] = i;
        prng_shuffle(&prng, items, ITEMS);
        uint32_t all = 0;
        for (uint32_t i = 0; i < ITEMS; i++) {
            all |= UINT32_C(1) << items[i];
            places[items[i]][i]++;
        }
        assert_int_equal(all, 0xff);
    }
    for (int i = 0; i < ITEMS; i++)
        for (int k = 0; k < ITEMS; k++)
            assert_in_range(places[i][k], 500 - 105, 500 + 105); /* 5 standard deviations */
    prng_shuffle(&prng, items, 0);
}

static void test_units(void **state)
{
    (void)state;
    assert_int_equal(dbo_ns_from_us(12.5), 12500);
    assert_int_equal(dbo_ns_from_us(0.0005), 1);
    assert_int_equal(dbo_ns_from_us(-0.0005), -1);
    assert_int_equal(dbo_ns_from_us(0.00049), 0);
    assert_true(dbo_us_from_ns(1500) == 1.5);
    assert_true(dbo_round_ns(1e30) == DBO_NS_MAX);
    assert_true(dbo_round_ns(-1e30) == -DBO_NS_MAX);
    assert_true(dbo_round_ns(__builtin_nan("")) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
