/* unit.c: us or ms (unit.h). */
#include "viz/text/unit.h"

#define LARGE_US 100000.0

dbo_unit dbo_unit_for_us(double largest_us, bool ascii)
{
    if (largest_us >= LARGE_US || largest_us <= -LARGE_US)
        return (dbo_unit){.us = 1000.0, .decimals = 3, .name = "ms"};
    return (dbo_unit){.us = 1.0, .decimals = 1, .name = ascii ? "us" : "µs"};
}
