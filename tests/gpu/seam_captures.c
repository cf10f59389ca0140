/* seam_captures.c: what a capture refuses, with a sentence and without harm; and what its graph
 * does at each replay. A refusal is one whatever the machine: the device is not asked.
 */
#include "core/rank/ubatch.h"
#include "tests/gpu/rig.h"

enum { A, B, C };

/* ---- refusals ---- */

static dbo_status refused(rig *r, const char *what, dbo_status status, dbo_status expected,
                          dbo_error *err)
{
    dbo_error said = {0};
    dbo_status kept = r->seam->device->status(r->seam->device_self, &said);
    test_tell(r->report, "%s: %s", what, dbo_status_name(status));
    if (status != expected || kept != expected || !said.message[0])
        return rig_wrong(err, "%s: %s, and the sentence is '%s'", what, dbo_status_name(status),
                         said.message);
    return DBO_OK;
}

#define REFUSED(what, call)       DBO_TRY(refused(r, what, call, DBO_REFUSED, err))
#define REFUSED_AS(s, what, call) DBO_TRY(refused(r, what, call, s, err))

/* Both streams still do what they are told, in a capture as well. */
static dbo_status usable(rig *r, dbo_error *err)
{
    dbo_graph graph;
    dbo_event event;
    RIG_TRY(RIG_DEVICE(event_create, &event));
    RIG_TRY(RIG_GRAPH(begin, r->comm));
    DBO_TRY(rig_mix(r, r->comm, A, RIG_NO_SOURCE, 3, 7, 0, err));
    RIG_TRY(RIG_GRAPH(end, &graph));
    RIG_TRY(RIG_GRAPH(replay, graph, r->compute, 1));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    RIG_TRY(RIG_DEVICE(wait, r->comm, event));
    DBO_TRY(rig_mix(r, r->comm, B, A, 5, 9, 0, err));
    rig_expect(r, A, RIG_NO_SOURCE, 3, 7);
    rig_expect(r, B, A, 5, 9);
    DBO_TRY(rig_check(r, 2, err));
    r->seam->graph->destroy(r->seam->graph_self, graph);
    r->seam->device->event_destroy(r->seam->device_self, event);
    return DBO_OK;
}

static dbo_status begins_and_ends(rig *r, dbo_error *err)
{
    dbo_graph graph;
    REFUSED("an end without a begin", RIG_GRAPH(end, &graph));
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    REFUSED("a begin in a capture", RIG_GRAPH(begin, r->comm));
    if (!r->seam->graph->is_capturing(r->seam->graph_self))
        return rig_wrong(err, "a refused begin has ended the capture");
    r->seam->graph->abandon(r->seam->graph_self);
    if (r->seam->graph->is_capturing(r->seam->graph_self))
        return rig_wrong(err, "an abandoned capture goes on");
    REFUSED_AS(DBO_INVALID, "a replay of no graph", RIG_GRAPH(replay, 77, r->compute, 0));
    return usable(r, err);
}

/* The capture goes on after each, and its graph is good. */
static dbo_status asked_inside(rig *r, dbo_event outside, dbo_graph other, dbo_error *err)
{
    bool done;
    dbo_graph graph;
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    DBO_TRY(rig_mix(r, r->compute, A, RIG_NO_SOURCE, 3, 1, 0, err));
    REFUSED("a wait for an outside event", RIG_DEVICE(wait, r->compute, outside));
    REFUSED("a query in a capture", RIG_DEVICE(event_query, outside, &done));
    REFUSED("a host wait in a capture", RIG_DEVICE(host_wait, outside));
    REFUSED("a replay in a capture", RIG_GRAPH(replay, other, r->compute, 0));
    RIG_TRY(RIG_DEVICE(wait, r->comm, outside)); /* which does not capture */
    RIG_TRY(RIG_GRAPH(end, &graph));
    RIG_TRY(RIG_GRAPH(replay, graph, r->compute, 2));
    rig_expect(r, A, RIG_NO_SOURCE, 3, 1);
    DBO_TRY(rig_check(r, 1, err));
    r->seam->graph->destroy(r->seam->graph_self, graph);
    return usable(r, err);
}

/* An event of a capture that is over must be recorded again first. */
static dbo_status asked_afterwards(rig *r, dbo_event event, dbo_graph *out, dbo_error *err)
{
    bool done;
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    DBO_TRY(rig_mix(r, r->compute, B, RIG_NO_SOURCE, 3, 1, 0, err));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    RIG_TRY(RIG_GRAPH(end, out));
    REFUSED("a wait for an event of a past capture", RIG_DEVICE(wait, r->comm, event));
    REFUSED("a query of one", RIG_DEVICE(event_query, event, &done));
    REFUSED("a host wait for one", RIG_DEVICE(host_wait, event));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    RIG_TRY(RIG_DEVICE(wait, r->comm, event));
    RIG_TRY(RIG_DEVICE(host_wait, event));
    RIG_TRY(RIG_DEVICE(event_query, event, &done));
    return done ? usable(r, err) : rig_wrong(err, "an event that was waited for is not done");
}

static dbo_status not_rejoined(rig *r, dbo_event event, dbo_error *err)
{
    dbo_graph graph;
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    DBO_TRY(rig_mix(r, r->compute, C, RIG_NO_SOURCE, 3, 1, 0, err));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    RIG_TRY(RIG_DEVICE(wait, r->comm, event));
    DBO_TRY(rig_mix(r, r->comm, C, RIG_NO_SOURCE, 5, 1, 0, err));
    REFUSED("an end while a stream has not rejoined", RIG_GRAPH(end, &graph));
    return usable(r, err); /* and C is as it was: nothing has run */
}

static dbo_status refusals(rig *r, dbo_error *err)
{
    dbo_event event, outside;
    dbo_graph graph;
    RIG_TRY(RIG_DEVICE(event_create, &event));
    RIG_TRY(RIG_DEVICE(event_create, &outside));
    RIG_TRY(RIG_DEVICE(record, outside, r->compute));
    DBO_TRY(begins_and_ends(r, err));
    DBO_TRY(asked_afterwards(r, event, &graph, err));
    DBO_TRY(asked_inside(r, outside, graph, err));
    DBO_TRY(not_rejoined(r, event, err));
    return rig_check(r, 3, err);
}

dbo_status seam_refusals(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, refusals, err);
}

/* ---- ubatches, eagerly and from a graph ---- */

enum { LAYERS = 3, OPS = 3 };

/* Ubatch u works on vector u; every op waits for the one before on the other stream. */
static dbo_status model(dbo_ubatch *u, void *arg, dbo_error *err)
{
    rig *r = arg;
    (void)err;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        uint32_t mul = 3 + 2 * u->id + 4 * layer;
        DBO_TRY(rig_issue(r, dbo_current_stream(), u->id, RIG_NO_SOURCE, mul, 1, 100000));
        DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
        DBO_TRY(rig_issue(r, dbo_current_stream(), u->id, RIG_NO_SOURCE, mul, 2, 100000));
        DBO_TRY(dbo_switch_to_compute_sync());
        DBO_TRY(rig_issue(r, dbo_current_stream(), u->id, RIG_NO_SOURCE, mul, 3, 0));
        DBO_TRY(dbo_yield());
    }
    return DBO_OK;
}

static void expect_model(rig *r)
{
    for (uint32_t u = 0; u < 2; u++)
        for (uint32_t i = 0; i < LAYERS * OPS; i++)
            rig_expect(r, u, RIG_NO_SOURCE, 3 + 2 * u + 4 * (i / OPS), 1 + i % OPS);
}

static dbo_status turns(rig *r, dbo_error *err)
{
    for (uint32_t step = 0; step < 3; step++) {
        DBO_TRY(rig_reset(r, step, err));
        DBO_TRY(dbo_ubatches_run(&r->rank->rank, 2, step, model, r, err));
        expect_model(r);
        DBO_TRY(rig_check(r, RIG_VECTORS, err));
    }
    return DBO_OK;
}

static dbo_status replays(rig *r, dbo_error *err)
{
    dbo_graph graph;
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    dbo_status status = dbo_ubatches_run(&r->rank->rank, 2, 0, model, r, err);
    if (status != DBO_OK) {
        r->seam->graph->abandon(r->seam->graph_self);
        return status;
    }
    RIG_TRY(RIG_GRAPH(end, &graph));
    DBO_TRY(rig_check(r, 2, err)); /* nothing has run */
    for (uint32_t step = 1; step <= 3; step++) {
        DBO_TRY(rig_reset(r, 10 + step, err));
        for (uint32_t again = 0; again < step; again++) {
            RIG_TRY(RIG_GRAPH(replay, graph, r->compute, 10 * step + again));
            expect_model(r);
        }
        DBO_TRY(rig_check(r, RIG_VECTORS, err));
    }
    test_say(&r->report->line, "%u nodes; 6 replays, inputs renewed twice",
             dbo_world_graph_nodes(r->rank, graph));
    r->seam->graph->destroy(r->seam->graph_self, graph);
    return DBO_OK;
}

dbo_status seam_turns(const test_run *run, dbo_error *err)
{
    const rig_options options = {.low_latency = true, .contexts = (dbo_context_kind)run->variant};
    return rig_run(run, &options, turns, err);
}

dbo_status seam_replays(const test_run *run, dbo_error *err)
{
    const rig_options options = {.low_latency = true, .contexts = (dbo_context_kind)run->variant};
    return rig_run(run, &options, replays, err);
}
