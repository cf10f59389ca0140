/* locked_trace.c: each slot of the sink under one mutex. */
#include "gpu/locked_trace.h"

#define LOCKED(call)                    \
    do {                                \
        dbo_locked_trace *t = self;     \
        pthread_mutex_lock(&t->lock);   \
        t->sink->call;                  \
        pthread_mutex_unlock(&t->lock); \
    } while (0)

static void op_issued(void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream,
                      int64_t host_ns)
{
    LOCKED(op_issued(t->sink_self, id, part, stream, host_ns));
}

static void span(void *self, const dbo_span *one)
{
    LOCKED(span(t->sink_self, one));
}

static void mark(void *self, const dbo_mark *one)
{
    LOCKED(mark(t->sink_self, one));
}

static void turn(void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    LOCKED(turn(t->sink_self, event, ubatch, arg));
}

static void memory(void *self, const dbo_memory_event *event)
{
    LOCKED(memory(t->sink_self, event));
}

void dbo_locked_trace_init(dbo_locked_trace *locked, const dbo_trace_ops *sink, void *sink_self)
{
    pthread_mutex_init(&locked->lock, NULL);
    locked->sink = sink;
    locked->sink_self = sink_self;
    locked->ops = (dbo_trace_ops){.op_issued = sink->op_issued ? op_issued : NULL,
                                  .span = span,
                                  .mark = sink->mark ? mark : NULL,
                                  .turn = sink->turn ? turn : NULL,
                                  .memory = sink->memory ? memory : NULL};
}

void dbo_locked_trace_fini(dbo_locked_trace *locked)
{
    pthread_mutex_destroy(&locked->lock);
}
