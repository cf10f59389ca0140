/* locked_trace.h: a trace sink that several threads push into, one at a time.
 *
 *     dbo_locked_trace locked;
 *     dbo_locked_trace_init(&locked, dbo_trace_sink(), &trace);
 *     config.trace = &locked.ops;  config.trace_self = &locked;      // of each rank
 *     dbo_locked_trace_fini(&locked);
 */
#ifndef DBO_GPU_LOCKED_TRACE_H
#define DBO_GPU_LOCKED_TRACE_H

#include "core/seam/seam.h"

#include <pthread.h>

typedef struct dbo_locked_trace {
    pthread_mutex_t lock;
    dbo_trace_ops ops; /* has the slots that the sink has */
    const dbo_trace_ops *sink;
    void *sink_self;
} dbo_locked_trace;

/* Borrows the sink. Stays where it was initialised. */
void dbo_locked_trace_init(dbo_locked_trace *locked, const dbo_trace_ops *sink, void *sink_self);
void dbo_locked_trace_fini(dbo_locked_trace *locked);

#endif
