/* test_ref_math.c: the reference's arithmetic beside libm's and by hand; and that it is exact where
 * it says so. */
#include "core/base/prng.h"
#include "core/ref/ref_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

static void near(double got, double expected, double relative)
{
    double scale = fabs(expected) > 1e-30 ? fabs(expected) : 1e-30;
    if (!(fabs(got - expected) <= relative * scale))
        fail_msg("%.9g instead of %.9g", got, expected);
}

static void exponentials(void **state)
{
    (void)state;
    for (int i = -870; i <= 880; i++)
        near((double)dbo_ref_exp((float)i / 10), exp((double)((float)i / 10)), 2e-7);
    assert_true(dbo_ref_exp(0) == 1.0f);
    assert_true(dbo_ref_exp(1000) == dbo_ref_exp(88)); /* clamped */
    assert_true(dbo_ref_exp(-1000) == dbo_ref_exp(-87));
    assert_true(dbo_ref_exp(NAN) == dbo_ref_exp(-87));
    for (int i = -40; i <= 40; i++) {
        double x = (double)i / 4;
        near((double)dbo_ref_sigmoid((float)x), 1 / (1 + exp(-x)), 3e-7);
        near((double)dbo_ref_silu((float)x), x / (1 + exp(-x)), 3e-7);
    }
}

static void roots(void **state)
{
    (void)state;
    float x = 1e-30f;
    for (int i = 0; i < 100; i++, x *= 3.7f)
        near((double)dbo_ref_rsqrt(x), 1 / sqrt((double)x), 1e-7);
    assert_true(dbo_ref_rsqrt(4) == 0.5f);
    assert_true(dbo_ref_rsqrt(0) == 0);
    assert_true(dbo_ref_rsqrt(-1) == 0);
    assert_true(dbo_ref_rsqrt(NAN) == 0);
    assert_true(dbo_ref_rsqrt(INFINITY) == 0);
}

static void sums_are_in_order(void **state)
{
    (void)state;
    const float a[] = {1e8f, 1, -1e8f, 1}, ones[] = {1, 1, 1, 1};
    assert_true(dbo_ref_dot(a, ones, 4) == 1.0f); /* 1e8 + 1 is 1e8; another order gives 2 or 0 */
    const float w[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 10, 100};
    float out[2] = {1, 2};
    dbo_ref_linear(w, x, 2, 3, out);
    assert_true(out[0] == 321.0f && out[1] == 654.0f);
    dbo_ref_add(out, ones, 2);
    dbo_ref_add_scaled(out, -2, ones, 2);
    assert_true(out[0] == 320.0f && out[1] == 653.0f);
}

static void norms(void **state)
{
    (void)state;
    float x[] = {3, -4, 0, 12}, w[] = {1, 1, 2, 0.5f};
    dbo_ref_rms_norm(x, w, 4, x); /* in place; rms is 6.5 */
    near((double)x[0], 3 / 6.5, 1e-6);
    near((double)x[1], -4 / 6.5, 1e-6);
    assert_true(x[2] == 0);
    near((double)x[3], 6 / 6.5, 1e-6);
}

static void rotations(void **state)
{
    (void)state;
    for (uint32_t position = 0; position < 300; position += 7) {
        float x[] = {1, 2, -3, 0.5f};
        const double before[] = {1, 2, -3, 0.5};
        dbo_ref_rope(x, 4, position);
        for (size_t i = 0; i < 2; i++) {
            double angle = 2 * atan(1 / (double)(2 << i)) * position;
            double a = before[2 * i], b = before[2 * i + 1];
            double got[] = {(double)x[2 * i], (double)x[2 * i + 1]};
            assert_true(fabs(got[0] - (a * cos(angle) - b * sin(angle))) < 1e-5);
            assert_true(fabs(got[1] - (a * sin(angle) + b * cos(angle))) < 1e-5);
        }
        if (position == 0)
            assert_true(x[0] == 1.0f && x[1] == 2.0f && x[2] == -3.0f && x[3] == 0.5f);
    }
}

static void quantisation(void **state)
{
    (void)state;
    enum { N = 300 }; /* two whole groups and a part */
    float x[N], back[N], scales[3];
    int8_t q[N];
    dbo_prng prng;
    dbo_prng_init(&prng, 1, 2);
    for (int i = 0; i < N; i++)
        x[i] = (float)(dbo_prng_unit(&prng) - 0.5) * (i < 128 ? 1.0f : 100.0f);
    for (int i = 256; i < N; i++)
        x[i] = 0;
    dbo_ref_quantise(x, N, q, scales);
    dbo_ref_dequantise(q, scales, N, back);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(back[i] - x[i]) <= scales[i / 128] * 0.500001f);
    assert_true(scales[0] < 0.5f / 127 + 1e-6f && scales[1] > 40.0f / 127);
    assert_true(scales[2] == 0 && q[299] == 0);
    const float halves[] = {127, 0.5f, -0.5f, 1.5f, NAN, 2.49f};
    const int8_t expected[] = {127, 1, -1, 2, -127, 2}; /* away from zero; NaN does no harm */
    dbo_ref_quantise(halves, 6, q, scales);
    assert_memory_equal(q, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials),      cmocka_unit_test(roots),
        cmocka_unit_test(sums_are_in_order), cmocka_unit_test(norms),
        cmocka_unit_test(rotations),         cmocka_unit_test(quantisation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
