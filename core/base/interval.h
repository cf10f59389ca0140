/* interval.h: sets of time, as lists of half-open intervals [start_ns, end_ns).
 *
 * Add intervals in any order, normalise once (sorts and merges: O(n log n)), then ask. Integer ns
 * throughout, so that sums are exact. The owner calls fini.
 *
 *     dbo_intervals busy = {0};
 *     DBO_TRY(dbo_intervals_add(&busy, 0, 10, err));
 *     dbo_intervals_normalise(&busy);
 *     int64_t ns = dbo_intervals_total_ns(&busy);
 */
#ifndef DBO_INTERVAL_H
#define DBO_INTERVAL_H

#include "core/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dbo_interval {
    int64_t start_ns, end_ns;
} dbo_interval;

typedef struct dbo_intervals {
    dbo_interval *items;
    uint32_t count, cap; /* a vec */
} dbo_intervals;

/* Empty and inverted intervals are left out. */
dbo_status dbo_intervals_add(dbo_intervals *set, int64_t start_ns, int64_t end_ns, dbo_error *err);
/* Sorted, disjoint, not even touching. */
void dbo_intervals_normalise(dbo_intervals *set);
void dbo_intervals_fini(dbo_intervals *set); /* fini of a zeroed one is fine */

/* The rest takes normalised sets. */
int64_t dbo_intervals_total_ns(const dbo_intervals *set);
int64_t dbo_intervals_common_ns(const dbo_intervals *a, const dbo_intervals *b);
/* out = a without b; `out` is a zeroed or used set of its own. */
dbo_status dbo_intervals_subtract(const dbo_intervals *a, const dbo_intervals *b,
                                  dbo_intervals *out, dbo_error *err);

#endif
