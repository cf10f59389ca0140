/* transfers.c: all-to-alls. A transfer's write is on a line of its own, a slot of the network: the
 * first whose last transfer is over for the new one, so that a slot's ticks are in order and the
 * clock is not read as knowing what it does not. */
#include "core/check/order/checker_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who has posted what ---- */

static void op_of(const check_rank *rank, dbo_finding *f, dbo_op_id a, dbo_op_id b)
{
    f->rank = rank->id;
    f->ops[0] = a;
    f->ops[1] = b;
    f->num_ops = 2;
}

/* The k-th transfer of a communicator is one: all ranks mean the same by it. */
static void match_post(check_rank *rank, dbo_op_id id)
{
    dbo_checker *checker = rank->checker;
    uint32_t comm = dbo_op_id_ubatch(id);
    if (checker->failed)
        return; /* a post that was not kept leaves a gap */
    rank->posted_step = dbo_op_id_step(id);
    uint32_t k = rank->posted[comm]++;
    if (k == checker->comms[comm].count) {
        if (DBO_VEC_PUSH(&checker->comms[comm], (check_meet){.id = id, .rank = rank->id}) != DBO_OK)
            checker->failed = true;
        return;
    }
    const check_meet *meet = &checker->comms[comm].items[k];
    dbo_op_id first = meet->id;
    if (dbo_op_id_kind(first) == dbo_op_id_kind(id) &&
        dbo_op_id_layer(first) == dbo_op_id_layer(id) &&
        dbo_op_id_step(first) == dbo_op_id_step(id))
        return;
    dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_RULE, id);
    op_of(rank, &f, first, id);
    snprintf(f.what, sizeof f.what,
             "transfer %u of ubatch %u is %s of step %u, layer %u on rank %u and %s of step %u, "
             "layer %u on rank %u",
             k, comm, dbo_op_kind_name(dbo_op_id_kind(first)), dbo_op_id_step(first),
             dbo_op_id_layer(first), meet->rank, dbo_op_kind_name(dbo_op_id_kind(id)),
             dbo_op_id_step(id), dbo_op_id_layer(id), rank->id);
    snprintf(f.fix, sizeof f.fix, "%s", "All ranks must run the same layers in the same way.");
    dbo_findings_add(&checker->findings, &f);
}

void dbo_check_replayed_posts(check_rank *rank, const check_graph *graph, uint32_t step)
{
    for (uint32_t i = 0; i < graph->posts.count; i++)
        match_post(rank, dbo_op_id_with_step(graph->posts.items[i], step));
}

/* ---- limits of the back end ---- */

/* Posts under way when a new one starts, which is at `clock`. */
static void check_queue(check_rank *rank, const dbo_call *call, const dbo_clock *clock)
{
    uint32_t depth = rank->caps.queue_depth, busy = 0;
    const check_transfer *oldest = rank->live.count > 0 ? &rank->live.items[0] : NULL;
    for (uint32_t d = DBO_CLOCK_STREAMS; depth > 0 && d < DBO_CLOCK_NEVER; d++)
        busy += !dbo_clock_has(clock, d, rank->ticks[d]);
    if (depth == 0 || busy < depth)
        return;
    dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_OVERSUBSCRIBED, call->id);
    char text[64], other[64] = "an earlier transfer";
    dbo_check_op_text(rank, call->id, text, sizeof text);
    if (oldest) {
        dbo_check_op_text(rank, oldest->id, other, sizeof other);
        op_of(rank, &f, oldest->id, call->id);
    }
    snprintf(f.what, sizeof f.what,
             "%s is posted while %s is under way: the queue takes %u at once, not %u", text, other,
             depth, busy + 1);
    snprintf(f.missing_edge, sizeof f.missing_edge, "the receive of %s before the post", other);
    snprintf(f.fix, sizeof f.fix, "%s", "Receive one transfer before the next is posted.");
    dbo_findings_add(&rank->checker->findings, &f);
}

/* `first`: what should have been over before the post of `by`; of the result itself if `of_it`. */
static void report_cleared(check_rank *rank, const check_result *result, dbo_op_id by,
                           const char *first, bool of_it)
{
    char cleared[64], clearing[64];
    dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_OVERSUBSCRIBED, by);
    op_of(rank, &f, result->id, by);
    dbo_check_op_text(rank, result->id, cleared, sizeof cleared);
    dbo_check_op_text(rank, by, clearing, sizeof clearing);
    snprintf(
        f.what, sizeof f.what,
        "%s clears the buffer that holds the result of %s, which is still in use: the back end "
        "holds %u results",
        clearing, cleared, rank->caps.max_in_flight);
    snprintf(f.missing_edge, sizeof f.missing_edge, "%s%s before the post of %s", first,
             of_it ? cleared : "", clearing);
    snprintf(f.fix, sizeof f.fix,
             "Hold at most %u results, or give each ubatch a back end of its own.",
             rank->caps.max_in_flight);
    dbo_findings_add(&rank->checker->findings, &f);
}

/* The new transfer takes the place of the one that is max_in_flight before it, whose readers must
 * be over at `clock`; its own reads are. */
static void hold_result(check_rank *rank, const check_transfer *t, const dbo_clock *clock)
{
    uint32_t most = rank->caps.max_in_flight;
    if (most == 0 || most >= CHECK_HELD)
        return;
    uint32_t comm = rank->caps.shared_results ? 0 : dbo_op_id_ubatch(t->id);
    uint32_t n = rank->num_held[comm]++;
    if (n >= most) {
        check_result *old = &rank->held[comm][(n - most) % CHECK_HELD];
        bool received = dbo_clock_has(&t->before, old->dim, old->tick), in_use = !received;
        for (uint32_t d = 0; d < DBO_CLOCK_DIMS; d++)
            in_use = in_use || !dbo_clock_has(clock, d, old->readers.at[d]);
        old->cleared = true;
        old->cleared_by = t->id;
        if (in_use)
            report_cleared(rank, old, t->id, received ? "the last read of " : "the receive of ",
                           true);
    }
    rank->held[comm][n % CHECK_HELD] =
        (check_result){.number = t->number, .id = t->id, .dim = t->dim, .tick = t->tick};
}

void dbo_check_result_read(check_rank *rank, const dbo_tenancy *tenancy, const dbo_touch *touch)
{
    uint32_t number = dbo_tenancy_transfer(tenancy);
    for (uint32_t comm = 0; number > 0 && comm < DBO_MAX_UBATCHES; comm++)
        for (uint32_t i = 0; i < CHECK_HELD; i++) {
            check_result *result = &rank->held[comm][i];
            if (result->number != number)
                continue;
            if (result->cleared) {
                char reader[64];
                dbo_check_op_text(rank, touch->id, reader, sizeof reader);
                report_cleared(rank, result, result->cleared_by, reader, false);
            }
            if (result->readers.at[touch->dim] < touch->tick)
                result->readers.at[touch->dim] = touch->tick;
            return;
        }
}

/* ---- posts and finishes ---- */

/* A combine sends rows back by what its own dispatch has left of them. */
static void check_handles(check_rank *rank, const dbo_call *call)
{
    for (uint32_t i = 0; call->io && i < call->io->num_reads; i++) {
        const check_buffer *b = dbo_check_buffer_at(rank, call->io->reads[i].buffer);
        dbo_op_id writer = b && b->handle && b->tenancy ? dbo_tenancy_writer(b->tenancy) : 0;
        if (writer == 0 || (dbo_op_id_ubatch(writer) == dbo_op_id_ubatch(call->id) &&
                            dbo_op_id_layer(writer) == dbo_op_id_layer(call->id)))
            continue;
        char combine[64], dispatch[64];
        dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_OVERSUBSCRIBED, call->id);
        op_of(rank, &f, writer, call->id);
        dbo_check_op_text(rank, call->id, combine, sizeof combine);
        dbo_check_op_text(rank, writer, dispatch, sizeof dispatch);
        snprintf(f.buffer, sizeof f.buffer, "%s", b->name);
        snprintf(f.what, sizeof f.what,
                 "%s sends rows back by %s, which %s has overwritten in use: they go to where that "
                 "one's rows came from",
                 combine, b->name, dispatch);
        snprintf(f.missing_edge, sizeof f.missing_edge, "%s before %s", combine, dispatch);
        snprintf(f.fix, sizeof f.fix, "%s", "Keep a handle for each ubatch.");
        dbo_findings_add(&rank->checker->findings, &f);
    }
}

static uint32_t free_slot(const check_rank *rank, const dbo_clock *clock)
{
    for (uint32_t d = DBO_CLOCK_STREAMS; d < DBO_CLOCK_NEVER; d++)
        if (dbo_clock_has(clock, d, rank->ticks[d]))
            return d;
    return DBO_CLOCK_NEVER;
}

void dbo_check_post(check_rank *rank, const dbo_call *call)
{
    dbo_clock before = rank->streams[call->stream];
    const dbo_clock *clock = dbo_check_issue(rank, call->stream);
    uint32_t tick = clock->at[call->stream];
    dbo_clock_join(&before, &rank->host);
    if (!rank->capturing)
        match_post(rank, call->id);
    else if (DBO_VEC_PUSH(&rank->capture.posts, call->id) != DBO_OK) /* a replay posts it */
        rank->checker->failed = true;
    if (call->direction == DBO_A2A_COMBINE)
        check_handles(rank, call);
    dbo_check_reads(rank, call, call->stream, tick, clock);
    if (rank->checker->options.unfinished_is_done) {
        dbo_check_writes(rank, call, call->stream, tick, 0, clock);
        return;
    }
    check_queue(rank, call, &before);
    check_transfer *t = DBO_VEC_ADD(&rank->live);
    if (!t) {
        rank->checker->failed = true;
        return;
    }
    uint32_t dim = free_slot(rank, clock);
    *t = (check_transfer){.id = call->id,
                          .handle = call->number,
                          .number = ++rank->num_transfers,
                          .stream = call->stream,
                          .dim = dim,
                          .tick = ++rank->ticks[dim],
                          .before = before,
                          .done = *clock};
    hold_result(rank, t, clock);
    t->done.at[dim] = t->tick;
    dbo_check_writes(rank, call, dim, t->tick, t->number, &t->done);
}

check_transfer *dbo_check_live_at(check_rank *rank, uint32_t handle)
{
    for (uint32_t i = rank->live.count; i-- > 0;)
        if (rank->live.items[i].handle == handle)
            return &rank->live.items[i];
    return NULL;
}

void dbo_check_counts(check_rank *rank, const dbo_call *call)
{
    const check_transfer *t = dbo_check_live_at(rank, call->number);
    if (!t)
        return;
    dbo_clock_join(&rank->host, &t->before);
    rank->host_changes++;
}

void dbo_check_finish(check_rank *rank, const dbo_call *call)
{
    check_transfer *t = dbo_check_live_at(rank, call->number);
    if (!t)
        return;
    dbo_clock *clock = dbo_check_issue(rank, call->stream);
    if (t->dim != DBO_CLOCK_NEVER)
        dbo_clock_join(clock, &t->done);
    rank->finished[t->dim] = (check_finished){.tick = t->tick, .stream = call->stream};
    memmove(t, t + 1, (size_t)(rank->live.items + rank->live.count - (t + 1)) * sizeof *t);
    rank->live.count--;
}

void dbo_check_slot_overwritten(check_rank *rank, uint32_t ubatch, uint32_t slot)
{
    if (rank->checker->options.unfinished_is_done)
        return;
    dbo_finding f = dbo_finding_of(DBO_FINDING_OVERSUBSCRIBED);
    f.rank = rank->id;
    f.ubatch = ubatch;
    f.step = rank->step;
    snprintf(f.what, sizeof f.what,
             "ubatch %u posts into transfer slot %u, whose last transfer nobody has received: its "
             "handle is overwritten in use",
             ubatch, slot);
    snprintf(f.missing_edge, sizeof f.missing_edge, "a finish or a hook of slot %u before the post",
             slot);
    snprintf(f.fix, sizeof f.fix, "%s", "Give every transfer in flight a slot of its own.");
    dbo_findings_add(&rank->checker->findings, &f);
}

void dbo_check_transfers_end(check_rank *rank)
{
    for (uint32_t i = 0; i < rank->live.count; i++) {
        const check_transfer *t = &rank->live.items[i];
        char text[64];
        dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_RACE, t->id);
        dbo_check_op_text(rank, t->id, text, sizeof text);
        snprintf(f.what, sizeof f.what,
                 "%s is never received: its rows may arrive at any time, or not at all", text);
        snprintf(f.missing_edge, sizeof f.missing_edge, "a finish of %s", text);
        snprintf(f.fix, sizeof f.fix, "%s",
                 "Register and run its receive hook, or finish it, before its rows are used.");
        dbo_findings_add(&rank->checker->findings, &f);
    }
}
