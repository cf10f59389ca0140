/* unit.h: the unit that times are shown in: us, and ms where us would have too many digits.
 *
 *     dbo_unit unit = dbo_unit_for_us(largest, ascii);      // one for all that are compared
 *     printf("%.*f %s", unit.decimals, us / unit.us, unit.name);
 */
#ifndef DBO_VIZ_UNIT_H
#define DBO_VIZ_UNIT_H

#include <stdbool.h>

typedef struct dbo_unit {
    double us;        /* one of it */
    int decimals;     /* that show what is worth knowing: 0.1 us of us, 1 us of ms */
    const char *name; /* "µs" (ASCII: "us"), "ms" */
} dbo_unit;

/* ms from 100000 us on. */
dbo_unit dbo_unit_for_us(double largest_us, bool ascii);

#endif
