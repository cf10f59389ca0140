/* units.h: time, bytes and rates as dbo counts them.
 *
 * Simulated time is a whole number of nanoseconds (int64_t, 292 years); microseconds are doubles
 * and exist only where people read or write them. Rates are decimal (1 GB/s is 1e9 bytes per
 * second), storage is binary. The conversions are exact up to one rounding and use no libm, so that
 * they give the same bits on every machine.
 *
 *     int64_t start_ns = dbo_ns_from_us(12.5); // 12500
 */
#ifndef DBO_UNITS_H
#define DBO_UNITS_H

#include <stdint.h>

#define DBO_NS_PER_US INT64_C(1000)
#define DBO_NS_PER_MS INT64_C(1000000)
#define DBO_NS_PER_S  INT64_C(1000000000)

#define DBO_KIB (INT64_C(1) << 10)
#define DBO_MIB (INT64_C(1) << 20)
#define DBO_GIB (INT64_C(1) << 30)

/* The longest time the conversions below give: about 146 years, so that two can be added. */
#define DBO_NS_MAX (INT64_MAX / 2)

/* The nearest whole number to a finite or infinite x (halves away from zero), held within
 * +-DBO_NS_MAX; 0 for NaN. */
static inline int64_t dbo_round_ns(double x_ns)
{
    if (x_ns >= (double)DBO_NS_MAX)
        return DBO_NS_MAX;
    if (x_ns <= -(double)DBO_NS_MAX)
        return -DBO_NS_MAX;
    if (x_ns != x_ns)
        return 0;
    int64_t whole = (int64_t)x_ns;
    double rest = x_ns - (double)whole;
    return rest >= 0.5 ? whole + 1 : rest <= -0.5 ? whole - 1 : whole;
}

static inline int64_t dbo_ns_from_us(double us)
{
    return dbo_round_ns(us * 1e3);
}

static inline double dbo_us_from_ns(int64_t ns)
{
    return (double)ns / 1e3;
}

#endif
