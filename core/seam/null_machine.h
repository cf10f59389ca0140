/* null_machine.h: a back end that only keeps books: no time, no memory, no work.
 *
 * Every call succeeds at once and events are never seen done, so that a program's issue order is
 * all that happens. The checker runs bare programs on it. One rank.
 *
 *     dbo_null_machine machine = {.caps = {.max_in_flight = 2}};
 *     dbo_null_machine_seam(&machine, &seam);
 *
 * Whoever wants to do something in a call has this machine as the first member of one of its own,
 * and slots of its own in copies of the tables; all slots get that machine as self:
 *
 *     dbo_device_ops device = *seam.device;
 *     device.launch = my_launch;
 *     seam.device = &device;
 */
#ifndef DBO_NULL_MACHINE_H
#define DBO_NULL_MACHINE_H

#include "core/seam/seam.h"

typedef struct dbo_null_machine {
    uint32_t streams, events, handles; /* given out */
    dbo_a2a_caps caps;                 /* what it says of itself; set before the seam is used */
} dbo_null_machine;

/* Fills the tables; the machine is borrowed. */
void dbo_null_machine_seam(dbo_null_machine *machine, dbo_seam *out);

#endif
