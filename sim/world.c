/* world.c: ranks, the event loop, parking, failures.
 *
 * The loop takes the smallest key. A rank event continues the rank, which runs ahead on its own
 * clock until it parks or ends; a stream event starts or ends the stream's head.
 */
#include "sim/meet_impl.h"
#include "sim/stream_impl.h"
#include "sim/world_impl.h"

#include <stdarg.h>

/* ---- events ---- */

void dbo_sim_schedule(dbo_sim *sim, int64_t at_ns, uint32_t entity)
{
    if (__builtin_expect(at_ns >= SIM_MAX_NS, 0)) {
        dbo_sim_fail(sim, DBO_LIMIT, "simulated time exceeds %.1f hours",
                     (double)SIM_MAX_NS / 3.6e12);
        at_ns = SIM_MAX_NS - 1;
    }
    uint64_t key = (uint64_t)at_ns << SIM_ENTITY_BITS | entity;
    if (dbo_heap_push(&sim->due, key) != DBO_OK)
        dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for events");
}

/* ---- failures ---- */

dbo_status dbo_sim_fail(dbo_sim *sim, dbo_status status, const char *format, ...)
{
    if (sim->failed)
        return status;
    va_list args;
    va_start(args, format);
    dbo_fail_args(&sim->failure, status, NULL, NULL, format, args);
    va_end(args);
    sim->failed = true;
    return status;
}

dbo_status dbo_sim_refuse(sim_rank *rank, dbo_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dbo_fail_args(&rank->failure, status, NULL, NULL, format, args);
    va_end(args);
    return status;
}

/* ---- parking ---- */

static void push_mark(const sim_rank *rank, dbo_mark_kind kind)
{
    const dbo_sim_options *options = &rank->sim->options;
    const dbo_mark m = {.host_ns = rank->host_ns,
                        .rank = (uint16_t)rank->id,
                        .ubatch = DBO_MARK_MAIN,
                        .kind = (uint8_t)kind};
    options->trace->mark(options->trace_self, &m);
}

static inline void mark(const sim_rank *rank, dbo_mark_kind kind)
{
    const dbo_trace_ops *trace = rank->sim->options.trace;
    if (trace && trace->mark)
        push_mark(rank, kind);
}

dbo_status dbo_sim_park(sim_rank *rank, sim_reason reason)
{
    dbo_sim *sim = rank->sim;
    if (sim->failed)
        return DBO_ABORTED;
    if (dbo_context_kind_of(dbo_context_self()) != sim->options.contexts)
        return dbo_sim_fail(
            sim, DBO_INVALID, "rank %u blocks in a %s, but the contexts of this world are %ss",
            rank->id, sim->options.contexts == DBO_CONTEXT_FIBER ? "thread" : "fiber",
            sim->options.contexts == DBO_CONTEXT_FIBER ? "fiber" : "thread");
    rank->reason = reason;
    mark(rank, DBO_MARK_PARK);
    rank->parked = dbo_context_self();
    dbo_context_switch(sim->world);
    rank->parked = NULL;
    if (sim->failed)
        return DBO_ABORTED;
    mark(rank, DBO_MARK_UNPARK);
    return DBO_OK;
}

void dbo_sim_skip(sim_rank *rank, int64_t to_ns)
{
    mark(rank, DBO_MARK_PARK);
    rank->host_ns = to_ns;
    mark(rank, DBO_MARK_UNPARK);
}

void dbo_sim_wake(dbo_sim *sim, sim_rank *rank, int64_t at_ns)
{
    rank->reason = SIM_AWAKE;
    if (rank->host_ns < at_ns)
        rank->host_ns = at_ns;
    dbo_sim_schedule(sim, at_ns > sim->now_ns ? at_ns : sim->now_ns, SIM_FIRST_RANK + rank->id);
}

/* ---- what everybody waits for, when nothing can move ---- */

/* The lowest rank that has not come to the meet, or not sent (LL). */
static uint32_t missing_rank(dbo_sim *sim, const sim_meet *meet)
{
    uint32_t r = 0;
    for (; r + 1 < sim->num_ranks; r++) {
        bool here = dbo_sim_has_sent(meet, r);
        for (uint32_t s = meet->first_member; s != SIM_NONE && !here;
             s = sim->streams[s].next_member)
            here = sim->streams[s].rank == r && sim_head(&sim->streams[s])->kind == SIM_MEET;
        if (!here)
            break;
    }
    return r;
}

/* `what` says which part of the transfer the rank waits for. */
static dbo_status fail_at_meet(dbo_sim *sim, const sim_rank *rank, const char *what, uint32_t slot,
                               uint32_t sequence)
{
    const sim_meet *meet = &sim->comms[slot].meets[sequence & sim->comms[slot].mask];
    uint32_t missing = missing_rank(sim, meet);
    return dbo_sim_fail(
        sim, DBO_DEADLOCK, "rank %u waits for %s%s of ubatch %u, layer %u, which rank %u %s",
        rank->id, what, dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(meet->id)),
        dbo_op_id_ubatch(meet->id), dbo_op_id_layer(meet->id), missing,
        sim->ranks[missing].posted[slot] > sequence ? "has posted behind work that cannot go on"
                                                    : "never posted");
}

static dbo_status fail_at_stream(dbo_sim *sim, const sim_rank *rank, uint32_t index)
{
    for (uint32_t hops = 0; hops < sim->num_streams; hops++) {
        sim_stream *s = &sim->streams[index];
        if (s->resolved == s->issued)
            break;
        const sim_item *head = sim_head(s);
        if (head->kind != SIM_WAIT)
            return fail_at_meet(sim, rank, "", head->slot, head->sequence);
        index = head->peer;
    }
    return dbo_sim_fail(sim, DBO_INTERNAL,
                        "rank %u waits for work that was never issued to stream %u", rank->id,
                        sim->streams[index].number);
}

static dbo_status fail_at_exchange(dbo_sim *sim, const sim_rank *rank)
{
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        const sim_rank *other = &sim->ranks[r];
        if (!other->ended && other->reason == SIM_AT_EXCHANGE)
            continue;
        return dbo_sim_fail(sim, DBO_DEADLOCK,
                            "rank %u waits in exchange '%s' %llu for rank %u, which %s", rank->id,
                            rank->exchange.tag, (unsigned long long)rank->exchange.sequence, r,
                            other->ended ? "has ended without it" : "waits elsewhere");
    }
    return dbo_sim_fail(sim, DBO_INTERNAL, "an exchange has met and nobody was woken");
}

/* Nothing is scheduled: is it the end, or are ranks or streams stuck? */
static dbo_status check_quiet(dbo_sim *sim)
{
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        const sim_rank *rank = &sim->ranks[r];
        if (rank->ended)
            continue;
        if (rank->reason == SIM_AT_EXCHANGE)
            return fail_at_exchange(sim, rank);
        if (rank->reason == SIM_AT_STREAM)
            return fail_at_stream(sim, rank, rank->blocked_on);
        return fail_at_meet(sim, rank, "the receive counts of ", rank->blocked_on,
                            rank->blocked_sequence);
    }
    for (uint32_t s = 0; s < sim->num_streams; s++)
        if (sim->streams[s].resolved != sim->streams[s].issued)
            return fail_at_stream(sim, &sim->ranks[sim->streams[s].rank], s);
    return DBO_OK;
}

/* ---- the loop ---- */

static void rank_main(void *arg)
{
    sim_rank *rank = arg;
    dbo_sim *sim = rank->sim;
    dbo_error error = {0};
    dbo_status status = sim->failed ? DBO_ABORTED : sim->main(sim->main_arg, rank->id, &error);
    if (status != DBO_OK && !sim->failed) {
        if (error.status == DBO_OK)
            dbo_fail(&error, status, NULL, "%s", dbo_status_text(status));
        sim->failed = true;
        sim->failure = error;
        if (sim->num_ranks > 1)
            dbo_error_prefix(&sim->failure, "rank %u", rank->id);
    }
    rank->ended = true;
    sim->num_ended++;
    dbo_context_leave(sim->world);
}

dbo_status dbo_sim_poll_now(dbo_sim *sim)
{
    if (sim->options.cancelled && sim->options.cancelled(sim->options.cancelled_arg))
        dbo_sim_fail(sim, DBO_CANCELLED, "stopped at %.3f ms of simulated time",
                     (double)dbo_sim_now_ns(sim) / 1e6);
    return sim->failed ? DBO_ABORTED : DBO_OK;
}

/* Has the stream been told another time since this event was scheduled? */
static inline bool is_stale(const dbo_sim *sim, uint32_t entity, int64_t at_ns)
{
    return entity < SIM_FIRST_RANK && sim->streams[entity].due != at_ns;
}

static void loop(dbo_sim *sim)
{
    while (!dbo_heap_is_empty(&sim->due) && !sim->failed) {
        uint64_t key = dbo_heap_take(&sim->due);
        uint32_t entity = (uint32_t)key & ((1u << SIM_ENTITY_BITS) - 1);
        int64_t at_ns = (int64_t)(key >> SIM_ENTITY_BITS);
        if (!is_stale(sim, entity, at_ns)) {
            sim->now_ns = at_ns;
            if (entity < SIM_FIRST_RANK)
                dbo_sim_stream_event(sim, entity);
            else if (sim->ranks[entity - SIM_FIRST_RANK].parked)
                dbo_context_switch(sim->ranks[entity - SIM_FIRST_RANK].parked);
        }
        sim_poll(sim);
    }
}

/* After a failure every parked rank is continued, finds that the world has failed, and returns. */
static void release_ranks(dbo_sim *sim)
{
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        while (!sim->ranks[r].ended && sim->ranks[r].parked)
            dbo_context_switch(sim->ranks[r].parked);
    dbo_heap_clear(&sim->due);
}

static dbo_status make_contexts(dbo_sim *sim, dbo_error *err)
{
    sim->now_ns = dbo_sim_now_ns(sim); /* of the run before: hosts cannot be earlier */
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        sim_rank *rank = &sim->ranks[r];
        if (rank->host_ns < sim->now_ns)
            rank->host_ns = sim->now_ns;
        rank->ended = false;
        rank->reason = SIM_AWAKE;
        rank->context = dbo_context_create(sim->options.contexts, sim->pool, rank_main, rank, err);
        if (!rank->context)
            return DBO_NO_MEMORY;
        rank->parked = rank->context;
        dbo_sim_schedule(sim, rank->host_ns, SIM_FIRST_RANK + r);
    }
    return DBO_OK;
}

dbo_status dbo_sim_run(dbo_sim *sim, dbo_sim_main main, void *arg, dbo_error *err)
{
    if (sim->failed)
        return dbo_fail(err, DBO_INVALID, "Make a new world.",
                        "this world has failed and cannot run again: %s", sim->failure.message);
    sim->main = main;
    sim->main_arg = arg;
    sim->num_ended = sim->num_arrived = 0;
    sim->world = dbo_context_adopt(sim->options.contexts, err);
    if (!sim->world)
        return DBO_NO_MEMORY;
    dbo_status status = make_contexts(sim, err);
    if (status == DBO_OK) {
        loop(sim);
        if (!sim->failed)
            check_quiet(sim);
        if (sim->failed)
            release_ranks(sim);
    }
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        dbo_context_destroy(sim->ranks[r].context);
        sim->ranks[r].context = NULL;
    }
    dbo_context_destroy(sim->world);
    sim->world = NULL;
    dbo_heap_clear(&sim->due);
    if (status == DBO_OK && sim->failed) {
        status = sim->failure.status;
        if (err)
            *err = sim->failure;
    }
    return status;
}

int64_t dbo_sim_now_ns(const dbo_sim *sim)
{
    return sim->last_ns > sim->now_ns ? sim->last_ns : sim->now_ns;
}

dbo_fiber_pool *dbo_sim_pool(dbo_sim *sim)
{
    return sim->pool;
}
