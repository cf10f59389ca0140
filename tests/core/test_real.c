/* Exponential, logarithm and root beside libm's. */
#include "core/base/real.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-14 * fabs(want) + 1e-300))
        fail_msg("%.17g is not %.17g", got, want);
}

static void as_libm_has_it(void **state)
{
    (void)state;
    for (double x = -699.7; x < 700; x += 0.737)
        near(dbo_exp(x), exp(x));
    for (double x = 1.7e-305; x < 1e305; x *= 1.37) {
        if (fabs(x - 1) > 0.01)
            near(dbo_log(x), log(x));
        near(dbo_sqrt(x), sqrt(x));
    }
    for (double x = 0.9; x < 1.1; x += 0.0013)
        assert_true(fabs(dbo_log(x) - log(x)) < 2e-17 + 1e-14 * fabs(log(x)));
    near(dbo_exp(0), 1);
    near(dbo_exp(1), exp(1));
    near(dbo_sqrt(2), sqrt(2));
    near(dbo_log(1), 0);
}

static void beyond_is_what_is_said(void **state)
{
    (void)state;
    assert_true(dbo_exp(-701) == 0);
    assert_true(dbo_exp(1e9) == dbo_exp(700));
    assert_true(dbo_sqrt(0) == 0);
    assert_true(dbo_sqrt(-4) == 0);
    assert_true(dbo_sqrt(NAN) == 0);
    assert_true(dbo_log(0) == dbo_log(-1));
    assert_true(dbo_log(0) < -708);
}

static void whole_numbers(void **state)
{
    (void)state;
    near(dbo_power(1.5, 7), pow(1.5, 7));
    near(dbo_power(0.99, 1000000), pow(0.99, 1000000));
    assert_true(dbo_power(7, 0) == 1);
    assert_true(dbo_ceil(3) == 3);
    assert_true(dbo_ceil(3.001) == 4);
    assert_true(dbo_ceil(0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_libm_has_it),
        cmocka_unit_test(beyond_is_what_is_said),
        cmocka_unit_test(whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
