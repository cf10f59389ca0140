/* device_impl.h: events of a rank, as numbers of the seam name them.
 *
 *     DBO_TRY(dbo_sim_wait(rank, args->stream, args->previous));
 */
#ifndef DBO_SIM_DEVICE_IMPL_H
#define DBO_SIM_DEVICE_IMPL_H

#include "sim/world_impl.h"

struct sim_event {
    uint32_t stream;  /* SIM_NONE: never recorded */
    uint32_t capture; /* 0: none; else the capture that it was recorded in, and: */
    uint64_t count;
    uint32_t record; /* ... its record there */
    bool free;
};

/* What is issued to the stream from now on waits for the event's latest record. */
dbo_status dbo_sim_wait(sim_rank *rank, dbo_stream stream, dbo_event event);

#endif
