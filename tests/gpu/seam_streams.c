/* seam_streams.c: streams run in order; an event is what its latest record said when it was waited
 * for; what may be asked of one. Ops are held back so long that a missing edge shows as old numbers
 * and an edge too many as new ones.
 */
#include "tests/gpu/rig.h"

enum { A, B, C, D, E, F };

/* ---- first in, first out ---- */

static dbo_status fifo(rig *r, dbo_error *err)
{
    for (uint32_t i = 0; i < 20; i++) { /* both streams busy, the later op of each often shorter */
        int64_t hold_ns = i % 3 == 0 ? 200000 : i % 3 == 1 ? 0 : 70000;
        DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 3 + 2 * i, i, hold_ns, err));
        DBO_TRY(rig_mix(r, r->comm, B, RIG_NO_SOURCE, 5 + 2 * i, 11 * i, 200000 - hold_ns, err));
        DBO_TRY(rig_mix(r, r->compute, C, A, 7, i, 0, err));
        rig_expect(r, A, RIG_NO_SOURCE, 3 + 2 * i, i);
        rig_expect(r, B, RIG_NO_SOURCE, 5 + 2 * i, 11 * i);
        rig_expect(r, C, A, 7, i);
    }
    return rig_check(r, 3, err);
}

dbo_status seam_fifo(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, fifo, err);
}

/* ---- edges ---- */

/* An edge makes comm see what compute has written; without a record there is none. */
static dbo_status one_edge(rig *r, dbo_event edge, dbo_event never, dbo_error *err)
{
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 3, 5, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(wait, r->comm, never));
    DBO_TRY(rig_mix(r, r->comm, B, A, 1, 2, 0, err)); /* reads while A is held back */
    rig_expect(r, B, A, 1, 2);
    rig_expect(r, A, RIG_NO_SOURCE, 3, 5);
    RIG_TRY(RIG_DEVICE(record, edge, r->compute));
    RIG_TRY(RIG_DEVICE(wait, r->comm, edge));
    DBO_TRY(rig_mix(r, r->comm, C, A, 1, 1, 0, err));
    rig_expect(r, C, A, 1, 1);
    return DBO_OK;
}

/* A second record takes the event over; a third one comes too late for whoever waits already. */
static dbo_status rebound(rig *r, dbo_event edge, dbo_error *err)
{
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 7, 1, RIG_MS(5), err));
    RIG_TRY(RIG_DEVICE(record, edge, r->compute));
    RIG_TRY(RIG_DEVICE(wait, r->comm, edge));
    DBO_TRY(rig_mix(r, r->comm, D, A, 1, 3, 0, err));
    rig_expect(r, A, RIG_NO_SOURCE, 7, 1);
    rig_expect(r, D, A, 1, 3);
    RIG_TRY(RIG_DEVICE(wait, r->comm, edge));
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 11, 3, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(record, edge, r->compute));
    DBO_TRY(rig_mix(r, r->comm, E, A, 1, 4, 0, err));
    rig_expect(r, E, A, 1, 4);
    rig_expect(r, A, RIG_NO_SOURCE, 11, 3);
    return DBO_OK;
}

/* Back again; a stream's own event; a number that is given out again remembers nothing. */
static dbo_status edges(rig *r, dbo_error *err)
{
    dbo_event edge, never, back;
    RIG_TRY(RIG_DEVICE(event_create, &edge));
    RIG_TRY(RIG_DEVICE(event_create, &never));
    RIG_TRY(RIG_DEVICE(event_create, &back));
    DBO_TRY(one_edge(r, edge, never, err));
    DBO_TRY(rebound(r, edge, err));
    DBO_TRY(rig_mix(r, r->comm, E, RIG_NO_SOURCE, 13, 1, RIG_MS(60), err));
    RIG_TRY(RIG_DEVICE(record, back, r->comm));
    RIG_TRY(RIG_DEVICE(wait, r->comm, back));
    RIG_TRY(RIG_DEVICE(wait, r->compute, back));
    DBO_TRY(rig_mix(r, r->compute, A, E, 1, 6, 0, err));
    rig_expect(r, E, RIG_NO_SOURCE, 13, 1);
    rig_expect(r, A, E, 1, 6);
    DBO_TRY(rig_sync(r, err));
    DBO_TRY(rig_mix(r, r->compute, F, RIG_NO_SOURCE, 3, 1, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(record, back, r->compute));
    r->seam->device->event_destroy(r->seam->device_self, back);
    RIG_TRY(RIG_DEVICE(event_create, &back));
    RIG_TRY(RIG_DEVICE(wait, r->comm, back));
    DBO_TRY(rig_mix(r, r->comm, B, F, 1, 7, 0, err)); /* F as it was */
    rig_expect(r, B, F, 1, 7);
    rig_expect(r, F, RIG_NO_SOURCE, 3, 1);
    return rig_check(r, RIG_VECTORS, err);
}

dbo_status seam_events(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, edges, err);
}

/* ---- asking ---- */

static dbo_status ask(rig *r, dbo_event event, const char *when, bool expected, dbo_error *err)
{
    bool done;
    RIG_TRY(RIG_DEVICE(event_query, event, &done));
    test_tell(r->report, "%s: %s", when, done ? "done" : "not done");
    return done == expected
               ? DBO_OK
               : rig_wrong(err, "%s, an event is said to be %s", when, done ? "done" : "not done");
}

static dbo_status queries(rig *r, dbo_error *err)
{
    dbo_event event, early;
    RIG_TRY(RIG_DEVICE(event_create, &event));
    RIG_TRY(RIG_DEVICE(event_create, &early));
    DBO_TRY(ask(r, event, "never recorded", true, err));
    RIG_TRY(RIG_DEVICE(host_wait, event));
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 3, 1, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(record, early, r->compute));
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 5, 2, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    DBO_TRY(ask(r, event, "behind work that runs", false, err));
    RIG_TRY(RIG_DEVICE(host_wait, early));
    DBO_TRY(ask(r, early, "waited for", true, err));
    DBO_TRY(ask(r, event, "one op later", false, err));
    RIG_TRY(RIG_DEVICE(host_wait, event));
    DBO_TRY(ask(r, event, "waited for, too", true, err));
    DBO_TRY(rig_mix(r, r->comm, B, RIG_NO_SOURCE, 3, 1, RIG_MS(30), err));
    RIG_TRY(RIG_DEVICE(record, early, r->comm));
    DBO_TRY(ask(r, early, "recorded again on a busy stream", false, err));
    RIG_TRY(RIG_DEVICE(host_wait, early));
    rig_expect(r, A, RIG_NO_SOURCE, 3, 1);
    rig_expect(r, A, RIG_NO_SOURCE, 5, 2);
    rig_expect(r, B, RIG_NO_SOURCE, 3, 1);
    return rig_check(r, 2, err);
}

dbo_status seam_queries(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, queries, err);
}
