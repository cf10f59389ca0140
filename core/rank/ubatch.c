/* ubatch.c: the context API. Turns are the executor's; this file is about streams, events, hooks.
 *
 * Invariants checked at every hand-off, as the reference asserts them: the installed forward
 * context is mine, and the thread's stream is the one that the context believes in.
 */
#include "core/rank/ubatch.h"

#include "core/rank/rank_state.h"

#include <string.h>

static inline dbo_ubatch *running_ubatch(void)
{
    return dbo_context_local();
}

/* Who was refused is put before the sentence by the executor. */
static dbo_status refuse(dbo_ubatch *u, const char *message)
{
    return dbo_fail(&u->rank->failure, DBO_REFUSED, NULL, "%s", message);
}

static inline void tell(const dbo_rank *rank, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    const dbo_seam *seam = &rank->seam;
    if (__builtin_expect(seam->trace && seam->trace->turn, 0))
        seam->trace->turn(seam->trace_self, event, ubatch, arg);
}

static inline uint32_t next_of(const dbo_ubatch *u)
{
    return u->id + 1 == u->count ? 0 : u->id + 1;
}

static void update_stream(dbo_ubatch *u, dbo_stream stream)
{
    if (u->thread_stream != stream)
        tell(u->rank, DBO_TURN_STREAM, u->id, stream);
    u->current_stream = stream;
    u->thread_stream = stream;
}

/* A hand-off that nobody traces calls nothing. */
static inline void mark_turn(const dbo_rank *rank, uint32_t ubatch, uint32_t step)
{
    if (rank->seam.trace && rank->seam.trace->mark)
        dbo_rank_mark(rank, DBO_MARK_TURN, ubatch, step);
}

/* Gives the turn to the next ubatch and comes back with it; touches no stream. */
static dbo_status cpu_yield(dbo_ubatch *u)
{
    dbo_rank *rank = u->rank;
    if (__builtin_expect(rank->forward != &u->forward, 0))
        return refuse(u, "yields while another ubatch's forward context is installed");
    if (__builtin_expect(u->thread_stream != u->current_stream, 0))
        return refuse(u, "yields on another stream than its context's");
    dbo_seam_charge(&rank->seam, DBO_CHARGE_HANDOFF, 1);
    tell(rank, DBO_TURN_SIGNAL, u->id, next_of(u));
    dbo_status status = dbo_executor_handoff(rank->executor, u->id);
    rank->forward = &u->forward; /* the turn is mine, be it to end */
    DBO_TRY(status);
    tell(rank, DBO_TURN_RESUME, u->id, 0);
    mark_turn(rank, u->id, u->forward.step);
    return DBO_OK;
}

static dbo_status record(dbo_ubatch *u, dbo_event event, dbo_stream stream)
{
    dbo_seam_charge(&u->rank->seam, DBO_CHARGE_EVENT, 1);
    return u->rank->seam.device->record(u->rank->seam.device_self, event, stream);
}

static dbo_status wait(dbo_ubatch *u, dbo_stream stream, dbo_event event)
{
    dbo_seam_charge(&u->rank->seam, DBO_CHARGE_EVENT, 1);
    return u->rank->seam.device->wait(u->rank->seam.device_self, stream, event);
}

bool dbo_enabled(void)
{
    return running_ubatch() != NULL;
}

uint32_t dbo_current_ubatch_id(void)
{
    const dbo_ubatch *u = running_ubatch();
    return u ? u->id : 0;
}

dbo_stream dbo_current_stream(void)
{
    const dbo_ubatch *u = running_ubatch();
    return u ? u->thread_stream : DBO_STREAM_COMPUTE;
}

dbo_status dbo_yield(void)
{
    dbo_ubatch *u = running_ubatch();
    if (!u)
        return DBO_OK;
    u->current_stream = u->thread_stream;
    DBO_TRY(cpu_yield(u));
    update_stream(u, u->current_stream);
    return DBO_OK;
}

/* Records `event` on `from`, yields, switches to `to`, which then waits for the event. */
static dbo_status yield_and_switch(dbo_ubatch *u, dbo_stream from, dbo_stream to, dbo_event event)
{
    if (u->thread_stream != from)
        return refuse(u, "yields and switches from a stream that is not current");
    DBO_TRY(record(u, event, from));
    DBO_TRY(cpu_yield(u));
    if (u->current_stream != from)
        return refuse(u, "was moved to another stream during its yield");
    update_stream(u, to);
    return wait(u, to, event);
}

dbo_status dbo_yield_and_switch_from_compute_to_comm(void)
{
    dbo_ubatch *u = running_ubatch();
    return u ? yield_and_switch(u, u->compute, u->comm, u->compute_done) : DBO_OK;
}

dbo_status dbo_yield_and_switch_from_comm_to_compute(void)
{
    dbo_ubatch *u = running_ubatch();
    return u ? yield_and_switch(u, u->comm, u->compute, u->comm_done) : DBO_OK;
}

dbo_status dbo_switch_to_comm(void)
{
    dbo_ubatch *u = running_ubatch();
    if (u)
        update_stream(u, u->comm);
    return DBO_OK;
}

dbo_status dbo_switch_to_compute(void)
{
    dbo_ubatch *u = running_ubatch();
    if (u)
        update_stream(u, u->compute);
    return DBO_OK;
}

dbo_status dbo_switch_to_stream(dbo_stream stream)
{
    dbo_ubatch *u = running_ubatch();
    if (u)
        update_stream(u, stream);
    return DBO_OK;
}

dbo_status dbo_switch_to_comm_sync(void)
{
    dbo_ubatch *u = running_ubatch();
    if (!u)
        return DBO_OK;
    DBO_TRY(record(u, u->compute_done, u->compute));
    update_stream(u, u->comm);
    return wait(u, u->comm, u->compute_done);
}

dbo_status dbo_switch_to_compute_sync(void)
{
    dbo_ubatch *u = running_ubatch();
    if (!u)
        return DBO_OK;
    DBO_TRY(record(u, u->comm_done, u->comm));
    update_stream(u, u->compute);
    return wait(u, u->compute, u->comm_done);
}

dbo_status dbo_register_recv_hook(dbo_recv_hook hook)
{
    dbo_ubatch *u = running_ubatch();
    if (!u)
        return DBO_OK;
    dbo_ubatch *next = &u->ring[next_of(u)];
    if (next->exited)
        return refuse(u, "hangs its receive hook on an ubatch that has ended");
    next->recv_hook = hook;
    return DBO_OK;
}

/* Runs and clears the pending hook; a failure leaves it set. */
static dbo_status run_hook(dbo_ubatch *u)
{
    if (!u->recv_hook.run)
        return DBO_OK;
    DBO_TRY(u->recv_hook.run(u->recv_hook.self, u->recv_hook.arg));
    u->recv_hook.run = NULL;
    return DBO_OK;
}

dbo_status dbo_maybe_run_recv_hook(void)
{
    dbo_ubatch *u = running_ubatch();
    return u ? run_hook(u) : DBO_OK;
}

dbo_status dbo_get_previous_event(dbo_event event)
{
    dbo_ubatch *u = running_ubatch();
    return u ? record(u, event, u->compute) : DBO_OK;
}

/* ---- entering and leaving ---- */

typedef struct forward_run {
    dbo_rank *rank;
    dbo_ubatch_fn fn;
    void *arg;
} forward_run;

static dbo_status ubatch_main(void *arg, uint32_t id, dbo_error *err)
{
    forward_run *run = arg;
    dbo_rank *rank = run->rank;
    dbo_ubatch *u = &rank->ubatches[id];
    dbo_context_set_local(u);
    rank->forward = &u->forward;
    tell(rank, DBO_TURN_RESUME, id, 0);
    update_stream(u, u->compute);
    mark_turn(rank, id, u->forward.step);
    dbo_status status = run->fn(u, run->arg, err);
    u->exited = true;
    tell(rank, DBO_TURN_EXIT, id, 0);
    dbo_context_set_local(NULL); /* the pending hook runs outside any ubatch */
    if (status == DBO_OK)
        status = run_hook(u);
    if (status != DBO_OK && status != DBO_ABORTED && err->status == DBO_OK)
        dbo_rank_fail(rank, status, err);
    if (status == DBO_OK)
        tell(rank, DBO_TURN_SIGNAL, id, next_of(u));
    return status;
}

static dbo_status make_events(dbo_rank *rank, uint32_t count, dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    for (; rank->num_context_events < count; rank->num_context_events++) {
        uint32_t i = rank->num_context_events;
        dbo_status status = seam->device->event_create(seam->device_self, &rank->compute_done[i]);
        if (status != DBO_OK)
            return dbo_rank_fail(rank, status, err);
        status = seam->device->event_create(seam->device_self, &rank->comm_done[i]);
        if (status != DBO_OK) { /* only pairs are counted, and destroyed with the rank */
            seam->device->event_destroy(seam->device_self, rank->compute_done[i]);
            return dbo_rank_fail(rank, status, err);
        }
    }
    return DBO_OK;
}

/* The run's one error has been told; what else was refused on the way must not be taken for the
 * cause of a later failure. */
static void forget_failures(dbo_rank *rank)
{
    memset(&rank->failure, 0, sizeof rank->failure);
    rank->seam.device->status(rank->seam.device_self, NULL);
}

dbo_status dbo_ubatches_run(dbo_rank *rank, uint32_t count, uint32_t step, dbo_ubatch_fn fn,
                            void *arg, dbo_error *err)
{
    if (count < 1 || count > DBO_MAX_UBATCHES || count > rank->max_ubatches)
        return dbo_fail(err, DBO_LIMIT, NULL, "%u ubatches asked, the rank was made for 1 to %u",
                        count, rank->max_ubatches);
    if (!fn || step >= DBO_MAX_STEPS)
        return dbo_fail(err, DBO_INVALID, NULL, "step %u of a run%s; steps are below %u", step,
                        fn ? "" : " without a function", DBO_MAX_STEPS);
    DBO_TRY(make_events(rank, count, err));
    forward_run run = {.rank = rank, .fn = fn, .arg = arg};
    for (uint32_t i = 0; i < count; i++)
        rank->ubatches[i] = (dbo_ubatch){.id = i,
                                         .count = count,
                                         .rank = rank,
                                         .ring = rank->ubatches,
                                         .compute = rank->streams[DBO_STREAM_COMPUTE],
                                         .comm = rank->streams[DBO_STREAM_COMM],
                                         .current_stream = rank->streams[DBO_STREAM_COMPUTE],
                                         .thread_stream = rank->streams[DBO_STREAM_COMPUTE],
                                         .compute_done = rank->compute_done[i],
                                         .comm_done = rank->comm_done[i],
                                         .forward = {.step = step, .ubatch = i}};
    const dbo_forward_context *outer = rank->forward;
    rank->forward = NULL;
    tell(rank, DBO_TURN_SIGNAL, DBO_MARK_MAIN, 0);
    dbo_status status = dbo_executor_run(rank->executor, count, ubatch_main, &run, err);
    rank->forward = outer;
    mark_turn(rank, DBO_MARK_MAIN, step);
    if (status != DBO_OK)
        forget_failures(rank);
    return status;
}
