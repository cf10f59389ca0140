/* build_options.h: what is asked of whoever writes a layer as a program.
 *
 *     const dbo_build_options options = {.num_ubatches = 2, .host_sync = true, .memory = true};
 */
#ifndef DBO_BUILD_OPTIONS_H
#define DBO_BUILD_OPTIONS_H

#include "core/base/public.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_build_options {
    uint32_t num_ubatches; /* 1: unsplit */
    bool host_sync;        /* HT: the host waits for the receive counts of each dispatch */
    bool rocm;             /* HT, split: the host waits for each dispatch and combine to end */
    bool own_stream;       /* HT, one ubatch: transfers run on the comm stream beside the caller's,
                            * as the back end does, so that SHARED overlaps the combine; false:
                            * everything on the compute stream, as the caller sees it */
    bool memory;           /* buffers, with ALLOC and FREE; false: order and costs only */
    bool record_stream;    /* with memory: DBO announces blocks that both streams use; leaving that
                            * out is wrong */
    bool io;               /* with memory: ops and transfers say what they read and write */
    bool low_latency;      /* of the all-to-all that a schedule of one's own runs on, with io */
} dbo_build_options;

DBO_PUBLIC_END

#endif
