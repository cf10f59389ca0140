/* seam_failures.c: what fails comes out as a sentence, at once or at the next wait, and nothing
 * hangs: kernels that fail at their issue or on the device, and runs that are cancelled.
 */
#include "core/rank/ubatch.h"
#include "tests/gpu/rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- a kernel that cannot be issued ---- */

typedef struct bad_kernel {
    rig *r;
    uint32_t fails_at; /* op of ubatch 1; OPS: none */
} bad_kernel;

enum { OPS = 6 };

static dbo_status model(dbo_ubatch *u, void *arg, dbo_error *err)
{
    const bad_kernel *b = arg;
    (void)err;
    for (uint32_t i = 0; i < OPS; i++) {
        uint32_t slot = rig_prepare(b->r, u->id, RIG_NO_SOURCE, 3 + 2 * i, u->id, 50000);
        b->r->mixes[slot].fails = u->id == 1 && i == b->fails_at;
        DBO_TRY(rig_issue_slot(b->r, dbo_current_stream(), slot));
        DBO_TRY(dbo_yield());
    }
    return DBO_OK;
}

static dbo_status step(rig *r, uint32_t fails_at, dbo_error *err)
{
    bad_kernel b = {.r = r, .fails_at = fails_at};
    return dbo_ubatches_run(&r->rank->rank, 2, 0, model, &b, err);
}

static const char *sentence(const rig *r)
{
    return r->is_simulated ? "ubatch 1: an op that computes touches buffer 19, which has no storage"
                           : "ubatch 1: no weights";
}

/* The step fails, the rank does not: a capture is given up, later steps are right. */
static dbo_status bad_steps(rig *r, dbo_error *err)
{
    for (uint32_t in_capture = 0; in_capture < 2; in_capture++) {
        dbo_error said = {0};
        if (in_capture)
            RIG_TRY(RIG_GRAPH(begin, r->compute));
        dbo_status status = step(r, OPS - 2, &said);
        if (in_capture)
            r->seam->graph->abandon(r->seam->graph_self);
        if (status == DBO_OK || strcmp(said.message, sentence(r)) != 0)
            return rig_wrong(err, "a failing kernel was told as '%s'", said.message);
        DBO_TRY(rig_reset(r, 1 + in_capture, err));
        DBO_TRY(step(r, OPS, err));
        for (uint32_t u = 0; u < 2; u++)
            for (uint32_t i = 0; i < OPS; i++)
                rig_expect(r, u, RIG_NO_SOURCE, 3 + 2 * i, u);
        DBO_TRY(rig_check(r, 2, err));
    }
    if (r->report->line.used == 0)
        test_say(&r->report->line, "\"%s\"", sentence(r));
    return step(r, 1, err); /* and out of the world */
}

dbo_status seam_bad_kernel(const test_run *run, dbo_error *err)
{
    const rig_options options = {
        .low_latency = true, .silent = true, .contexts = (dbo_context_kind)run->variant};
    for (uint32_t world = 0; world < 2; world++) { /* the second finds nothing of the first */
        dbo_error said = {0};
        dbo_status status = rig_run(run, &options, bad_steps, &said);
        if (status == DBO_INTERNAL || !strstr(said.message, "ubatch 1: "))
            return rig_wrong(err, "the world's end was told as '%s'", said.message);
    }
    return DBO_OK;
}

/* ---- a kernel that fails on the device ---- */

static dbo_status trap(rig *r, dbo_error *err)
{
    uint32_t slot = rig_prepare(r, 0, RIG_NO_SOURCE, 3, 1, RIG_MS(1));
    dbo_event event;
    RIG_TRY(RIG_DEVICE(event_create, &event));
    r->mixes[slot].in_flight = true;
    RIG_TRY(rig_issue_slot(r, r->compute, slot));
    RIG_TRY(RIG_DEVICE(record, event, r->compute));
    RIG_TRY(RIG_DEVICE(host_wait, event));
    return rig_wrong(err, "nobody noticed a kernel that failed");
}

/* Its world ends, and tells why. On a GPU the process has lost it; what is told is CUDA's. */
dbo_status seam_trap(const test_run *run, dbo_error *err)
{
    dbo_error said = {0};
    const rig_options options = {.low_latency = true, .silent = true};
    dbo_status status = rig_run(run, &options, trap, &said);
    if (status == DBO_OK || status == DBO_INTERNAL || !said.message[0])
        return rig_wrong(err, "%s: '%s'", dbo_status_name(status), said.message);
    test_tell(run->reports, "the world has ended");
    test_say(&run->reports->line, "\"%s\"", said.message);
    return DBO_OK;
}

/* ---- a run that is cancelled ---- */

typedef struct stop {
    atomic_uint polls;
    atomic_bool wanted;
} stop;

static bool is_cancelled(void *arg)
{
    stop *s = arg;
    return atomic_load(&s->wanted) && atomic_fetch_add(&s->polls, 1) >= 3;
}

/* Rank 0 of several waits for a peer that never comes; the last one works on and on. */
static dbo_status wait_for_nobody(rig *r, dbo_error *err)
{
    dbo_a2a_handle handle;
    const dbo_a2a_cost cost = {.fixed_ns = 1000, .tokens = 8, .topk = 2, .bytes_per_token = 64};
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, r->rank->id, 0, 0, DBO_KIND_DISPATCH, 0),
                               .stream = r->comm,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost};
    RIG_TRY(RIG_A2A(post, &args, &handle));
    RIG_TRY(RIG_A2A(counts, handle));
    return rig_wrong(err, "rank 0 has the counts of a peer that sent none");
}

static dbo_status work_on(rig *r, dbo_error *err)
{
    stop *s = r->arg;
    dbo_event event;
    uint32_t slot = rig_prepare(r, 0, RIG_NO_SOURCE, 3, 1, RIG_MS(1));
    RIG_TRY(RIG_DEVICE(event_create, &event));
    for (uint32_t i = 0; i < 100000; i++) { /* the simulator asks now and then */
        atomic_store(&s->wanted, i >= 100);
        RIG_TRY(rig_issue_slot(r, r->compute, slot));
        RIG_TRY(RIG_DEVICE(record, event, r->compute));
        RIG_TRY(RIG_DEVICE(host_wait, event));
    }
    return rig_wrong(err, "rank %u was not cancelled", r->rank->logical);
}

static dbo_status until_cancelled(rig *r, dbo_error *err)
{
    bool first = r->run->num_ranks > 1 && r->rank->logical == 0;
    if (first && r->run->peer) /* alone in its process: nobody else says so */
        atomic_store(&((stop *)r->arg)->wanted, true);
    return first ? wait_for_nobody(r, err) : work_on(r, err);
}

dbo_status seam_cancelled(const test_run *run, dbo_error *err)
{
    stop s = {0};
    dbo_error said = {0};
    const rig_options options = {.silent = true,
                                 .transport = "nccl",
                                 .cancelled = is_cancelled,
                                 .cancelled_arg = &s,
                                 .arg = &s};
    dbo_status status = rig_run(run, &options, until_cancelled, &said);
    uint32_t first = run->peer ? run->peer->rank : 0;
    uint32_t last = run->peer ? first : run->num_ranks - 1;
    for (uint32_t rank = first; rank <= last; rank++)
        test_tell(&run->reports[rank], "%s", dbo_status_name(status));
    test_say(&run->reports[first].line, "\"%s\"", said.message);
    return status == DBO_CANCELLED && said.message[0]
               ? DBO_OK
               : rig_wrong(err, "%s: '%s'", dbo_status_name(status), said.message);
}
