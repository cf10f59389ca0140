/* clock.h: vector clocks of one rank's device.
 *
 * A dimension is a line on which things happen one after the other: a stream, or a slot of the
 * network that transfers take in turn. A thing that happens is an epoch: a dimension and its tick.
 * A clock says, for each dimension, up to which tick everything is known to be over. What is over
 * for X is ordered before X; two accesses of which neither is over for the other may happen in
 * either order.
 *
 * The host of a rank has a clock but no dimension: it touches no buffer, so nobody is ordered after
 * it by anything but what it knew when it issued.
 *
 *     clock.at[stream] = ++ticks[stream];                     // an op of the stream
 *     dbo_clock_join(&clock, &event_clock);                   // behind an event
 *     if (!dbo_clock_has(&clock, touch->dim, touch->tick))    // the touch may still be under way
 */
#ifndef DBO_CHECK_CLOCK_H
#define DBO_CHECK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DBO_CLOCK_DIMS = 32,
    DBO_CLOCK_STREAMS = 12, /* dimensions 0 .. 11 are streams */
    DBO_CLOCK_NEVER = 31    /* its ticks are over for nobody: transfers beyond all slots */
};

typedef struct dbo_clock {
    uint32_t at[DBO_CLOCK_DIMS];
} dbo_clock;

static inline void dbo_clock_join(dbo_clock *into, const dbo_clock *from)
{
    for (int i = 0; i < DBO_CLOCK_DIMS; i++)
        into->at[i] = into->at[i] > from->at[i] ? into->at[i] : from->at[i];
}

static inline bool dbo_clock_has(const dbo_clock *clock, uint32_t dim, uint32_t tick)
{
    return clock->at[dim] >= tick;
}

#endif
