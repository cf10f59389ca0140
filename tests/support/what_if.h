/* what_if.h: simulated machines without something that costs time, for tests of what that costs.
 *
 *   alone      kernels take the time that they take alone, and no SMs: nobody is slowed
 *   own_work   an event that an ubatch waits for covers what that ubatch has queued, no more
 *   no_waits   the host waits for no receive counts, nor for events, while an ubatch has the turn
 *
 * They are put around a rank's seam before it is used. The tables are the seam's own but for a few
 * functions, which find their rank by the self that they are called with.
 *
 *     what_if w = {.alone = true, .hardware = &experiment.hardware};
 *     what_if_begin(&w);
 *     ... in the hook that sees seams: what_if_wrap(&w, seam); ...
 *     what_if_end(&w);
 */
#ifndef DBO_TESTS_WHAT_IF_H
#define DBO_TESTS_WHAT_IF_H

#include "core/rank/ubatch.h"
#include "core/seam/seam.h"
#include "sim/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WHAT_IF_RANKS   256
#define WHAT_IF_STREAMS 8
#define WHAT_IF_TURNS   (DBO_MAX_UBATCHES + 1)

typedef struct what_if_event { /* what it covers, by whose work */
    bool recorded;
    dbo_event own[WHAT_IF_TURNS];
} what_if_event;

typedef struct what_if_rank {
    const void *device_self, *a2a_self;
    const dbo_device_ops *device;
    const dbo_a2a_ops *a2a;
    dbo_seam seam;
    uint32_t sms;                                   /* of compute kernels */
    dbo_event last[WHAT_IF_STREAMS][WHAT_IF_TURNS]; /* behind the last work of each */
    what_if_event *events;                          /* by number */
    uint32_t num_events;
} what_if_rank;

typedef struct what_if {
    bool alone, own_work, no_waits;
    const dbo_hardware *hardware;
    what_if_rank *ranks;
    uint32_t num_ranks;
    dbo_device_ops device;
    dbo_a2a_ops a2a;
} what_if;

static what_if *what_if_now; /* one at a time */

static what_if_rank *what_if_of(const void *self)
{
    for (uint32_t i = 0; i < what_if_now->num_ranks; i++)
        if (what_if_now->ranks[i].device_self == self || what_if_now->ranks[i].a2a_self == self)
            return &what_if_now->ranks[i];
    abort();
}

static uint32_t what_if_turn(void)
{
    return dbo_enabled() ? dbo_current_ubatch_id() : DBO_MAX_UBATCHES;
}

/* Something has been queued by whoever has the turn: what he waits for later ends with it. */
static dbo_status what_if_note(what_if_rank *r, dbo_stream stream)
{
    dbo_event event;
    if (!what_if_now->own_work || stream >= WHAT_IF_STREAMS)
        return DBO_OK;
    DBO_TRY(r->device->event_create(r->seam.device_self, &event));
    r->last[stream][what_if_turn()] = event;
    return r->device->record(r->seam.device_self, event, stream);
}

static dbo_status what_if_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    what_if_rank *r = what_if_of(self);
    dbo_op copy = *op;
    dbo_op_cost cost = {0};
    if (what_if_now->alone) {
        dbo_op_time time;
        dbo_cost_ns(what_if_now->hardware, op->cost, r->sms, &time);
        cost.fixed_ns = time.ns;
        copy.cost = &cost;
    }
    DBO_TRY(r->device->launch(self, stream, &copy));
    return what_if_note(r, stream);
}

static dbo_status what_if_set_compute_sms(void *self, uint32_t sms)
{
    what_if_of(self)->sms = sms;
    return what_if_of(self)->device->set_compute_sms(self, sms);
}

static void what_if_fit(what_if_rank *r, dbo_event event)
{
    if (event < r->num_events)
        return;
    uint32_t count = 2 * event + 64;
    r->events = realloc(r->events, count * sizeof *r->events);
    if (!r->events)
        abort();
    memset(r->events + r->num_events, 0, (count - r->num_events) * sizeof *r->events);
    r->num_events = count;
}

static dbo_status what_if_record(void *self, dbo_event event, dbo_stream stream)
{
    what_if_rank *r = what_if_of(self);
    if (stream >= WHAT_IF_STREAMS)
        abort();
    what_if_fit(r, event);
    r->events[event].recorded = true;
    memcpy(r->events[event].own, r->last[stream], sizeof r->last[stream]);
    return r->device->record(self, event, stream);
}

/* The event that covers the waiting ubatch's own part of it. */
static dbo_event what_if_own(const what_if_rank *r, dbo_event event)
{
    uint32_t turn = what_if_turn();
    if (event == DBO_NO_EVENT || turn == DBO_MAX_UBATCHES || !what_if_now->own_work)
        return event;
    bool recorded = event < r->num_events && r->events[event].recorded;
    return recorded ? r->events[event].own[turn] : DBO_NO_EVENT;
}

static dbo_status what_if_wait(void *self, dbo_stream stream, dbo_event event)
{
    what_if_rank *r = what_if_of(self);
    dbo_event own = what_if_own(r, event);
    return own == DBO_NO_EVENT ? DBO_OK : r->device->wait(self, stream, own);
}

static dbo_status what_if_host_wait(void *self, dbo_event event)
{
    bool waits = !what_if_now->no_waits || what_if_turn() == DBO_MAX_UBATCHES;
    return waits ? what_if_of(self)->device->host_wait(self, event) : DBO_OK;
}

static dbo_status what_if_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    what_if_rank *r = what_if_of(self);
    dbo_a2a_args own = *args;
    own.previous = what_if_own(r, args->previous);
    DBO_TRY(r->a2a->post(self, &own, out));
    return what_if_note(r, args->stream);
}

static dbo_status what_if_counts(void *self, dbo_a2a_handle handle)
{
    return what_if_now->no_waits ? DBO_OK : what_if_of(self)->a2a->counts(self, handle);
}

static dbo_status what_if_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    what_if_rank *r = what_if_of(self);
    dbo_a2a_caps caps;
    DBO_TRY(r->a2a->finish(self, handle, stream));
    r->a2a->caps(self, &caps);
    return caps.has_hook ? what_if_note(r, stream) : DBO_OK; /* else it queues nothing */
}

static inline void what_if_begin(what_if *w)
{
    w->ranks = calloc(WHAT_IF_RANKS, sizeof *w->ranks);
    assert_non_null(w->ranks);
    w->num_ranks = 0;
    what_if_now = w;
}

static inline void what_if_end(what_if *w)
{
    for (uint32_t i = 0; i < w->num_ranks; i++)
        free(w->ranks[i].events);
    free(w->ranks);
    w->ranks = NULL;
    what_if_now = NULL;
}

static inline void what_if_wrap(what_if *w, dbo_seam *seam)
{
    assert_true(w->num_ranks < WHAT_IF_RANKS);
    what_if_rank *r = &w->ranks[w->num_ranks++];
    r->device_self = seam->device_self; /* zeroed; too large for a fiber's stack */
    r->a2a_self = seam->a2a_self;
    r->device = seam->device;
    r->a2a = seam->a2a;
    r->seam = *seam;
    for (uint32_t s = 0; s < WHAT_IF_STREAMS; s++)
        for (uint32_t t = 0; t < WHAT_IF_TURNS; t++)
            r->last[s][t] = DBO_NO_EVENT;
    w->device = *seam->device;
    w->device.launch = what_if_launch;
    w->device.set_compute_sms = what_if_set_compute_sms;
    w->device.record = what_if_record;
    w->device.wait = what_if_wait;
    w->device.host_wait = what_if_host_wait;
    w->a2a = *seam->a2a;
    w->a2a.post = what_if_post;
    w->a2a.finish = what_if_finish;
    w->a2a.counts = seam->a2a->counts ? what_if_counts : NULL;
    seam->device = &w->device;
    seam->a2a = &w->a2a;
}

#endif
