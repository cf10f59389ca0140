/* real.h: exponential, logarithm, powers and their like: the same bits on every machine.
 *
 * Built on + - * / of IEEE alone, without contraction and without libm, as all that results depend
 * on. Relative error below 1e-14, which tests/core/test_real.c compares with libm.
 *
 *     double weight = dbo_exp(-exponent * dbo_log(place)); // place to the power of -exponent
 */
#ifndef DBO_REAL_H
#define DBO_REAL_H

#include <stdint.h>

/* e^x; 0 below -700, e^700 above 700. */
double dbo_exp(double x);
/* Natural logarithm of x > 0; of anything else that of the smallest normal number. */
double dbo_log(double x);
/* Square root of x >= 0; of anything else 0. */
double dbo_sqrt(double x);
/* x to a whole power, by squaring. */
double dbo_power(double x, uint64_t exponent);
/* The smallest whole number that is not below x; 0 <= x < 2^64. */
double dbo_ceil(double x);

#endif
