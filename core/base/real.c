/* real.c: argument reduction by powers of 2, then series (real.h). */
#include "core/base/real.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#define LN2      0.693147180559945309417232121458
#define LN2_HIGH 0x1.62e42fee00000p-1 /* its leading bits: k * LN2_HIGH is exact */
#define LN2_LOW  1.90821492927058770002e-10

/* 2^k, -1022 <= k <= 1023. */
static double two_to(int k)
{
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* x = m 2^k, 1 <= m < 2. */
static double mantissa(double x, int *k)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *k = (int)(bits >> 52) - 1023;
    return x / two_to(*k);
}

double dbo_exp(double x)
{
    if (x < -700)
        return 0;
    if (x > 700)
        x = 700;
    int k = (int)(x / LN2 + (x < 0 ? -0.5 : 0.5));
    double r = (x - k * LN2_HIGH) - k * LN2_LOW, term = 1, sum = 1;
    for (int i = 1; i < 16; i++) { /* |r| <= ln(2) / 2: the next term is below 1e-21 */
        term = term * r / i;
        sum += term;
    }
    return sum * two_to(k);
}

double dbo_log(double x)
{
    int k;
    double m = mantissa(x >= DBL_MIN ? x : DBL_MIN, &k);
    if (m > 1.4142135623730951) {
        m /= 2;
        k++;
    }
    double s = (m - 1) / (m + 1), square = s * s, power = s, sum = s; /* artanh, |s| <= 0.172 */
    for (int i = 3; i < 24; i += 2) {
        power *= square;
        sum += power / i;
    }
    return k * LN2_HIGH + (2 * sum + k * LN2_LOW);
}

double dbo_sqrt(double x)
{
    int k;
    if (!(x >= DBL_MIN))
        return 0;
    double m = mantissa(x, &k);
    if (k % 2 != 0) {
        m *= 2;
        k--;
    }
    double root = (1 + m) / 2; /* 1 <= m < 4 */
    for (int i = 0; i < 6; i++)
        root = (root + m / root) / 2;
    return root * two_to(k / 2);
}

double dbo_power(double x, uint64_t exponent)
{
    double result = 1.0;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result *= x;
        x *= x;
    }
    return result;
}

double dbo_ceil(double x)
{
    uint64_t floor = (uint64_t)x;
    return (double)floor < x ? (double)(floor + 1) : (double)floor;
}
