/* stream.c: FIFO streams. The simulator's hot path: issue, start, complete, wake.
 *
 * A stream runs its head only. A kernel that takes no part in sharing gets its end at once, even
 * when it starts in the future; one that shares, or computes, is started by an event of its own so
 * that it meets the others at its start. Waits are items, too; they complete without an event.
 */
#include "sim/sim_impl.h"

#include <stdlib.h>

uint32_t sim_stream_create(dbo_sim *sim, uint32_t rank, uint32_t number, dbo_error *err)
{
    if (sim->num_streams >= SIM_FIRST_RANK) {
        dbo_fail(err, DBO_LIMIT, "Fold identical ranks.", "more than %u streams", SIM_FIRST_RANK);
        return SIM_NONE;
    }
    if (sim->num_streams == sim->cap_streams) {
        uint32_t cap = sim->cap_streams ? sim->cap_streams * 2 : 16;
        sim_stream *grown = realloc(sim->streams, cap * sizeof *grown);
        if (!grown) {
            dbo_fail_memory(err, "a stream");
            return SIM_NONE;
        }
        sim->streams = grown;
        sim->cap_streams = cap;
    }
    sim->streams[sim->num_streams] = (sim_stream){.rank = rank,
                                                  .number = number,
                                                  .state = SIM_IDLE,
                                                  .due = -1,
                                                  .first_waiter = SIM_NONE,
                                                  .next_member = SIM_NONE};
    return sim->num_streams++;
}

void sim_stream_fini(sim_stream *stream) { free(stream->ring); }

static sim_waiter *waiter_of(dbo_sim *sim, uint32_t entity)
{
    return entity < SIM_FIRST_RANK ? &sim->streams[entity].waiter
                                   : &sim->ranks[entity - SIM_FIRST_RANK].waiter;
}

void sim_await(dbo_sim *sim, uint32_t entity, uint32_t stream, uint64_t count)
{
    sim_waiter *waiter = waiter_of(sim, entity);
    waiter->count = count;
    waiter->next = sim->streams[stream].first_waiter;
    sim->streams[stream].first_waiter = entity;
}

void sim_push_span(dbo_sim *sim, const sim_item *item, dbo_span_part part, uint32_t number,
                   int64_t start_ns, int64_t end_ns)
{
    if (!sim->options.trace)
        return;
    const dbo_span span = {.id = item->id,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .bytes = (item->kind >= SIM_MEET ? item->bytes : 0) & DBO_SPAN_MAX_BYTES,
                           .sms = item->sms & 0xfffu,
                           .part = (unsigned)part & 0xfu,
                           .stream = number & 0xffu};
    sim->options.trace->span(sim->options.trace_self, &span);
}

/* ---- starting the head ---- */

void sim_run_head(dbo_sim *sim, uint32_t index, int64_t start_ns, int64_t ns)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    s->state = SIM_RUNNING;
    s->started = start_ns;
    if (__builtin_expect(sim_needs_start(head), 0)) {
        if (head->numeric)
            sim_numeric_start(head->numeric);
        if (head->sms != 0 || (head->kind == SIM_OP && head->hbm_mbps != 0)) {
            sim_share_begin(sim, index, ns);
            return;
        }
    }
    s->due = start_ns + ns;
    sim_schedule(sim, s->due, index);
}

/* The head may begin at `at`, not earlier than now. */
static void begin_head(dbo_sim *sim, uint32_t index, int64_t at)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    if (at > sim->now_ns && sim_needs_start(head)) {
        s->state = SIM_STARTING;
        s->due = at;
        sim_schedule(sim, at, index);
        return;
    }
    switch ((sim_item_kind)head->kind) {
    case SIM_OP: sim_run_head(sim, index, at, head->ns); return;
    case SIM_MEET: sim_meet_join(sim, index, at); return;
    case SIM_SEND:
        sim_send_begin(sim, index, at);
        sim_run_head(sim, index, at, head->ns);
        return;
    case SIM_RECV: sim_recv_begin(sim, index, at); return;
    case SIM_WAIT: return;
    }
}

static void notify(dbo_sim *sim, uint32_t index);

/* Goes on to the first item that takes time, or to the end of the queue. */
static void advance(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    while (s->done != s->issued) {
        const sim_item *head = sim_head(s);
        if (head->kind != SIM_WAIT) {
            int64_t at = head->not_before > sim->now_ns ? head->not_before : sim->now_ns;
            begin_head(sim, index, at);
            return;
        }
        if (sim->streams[head->peer].done < (uint64_t)head->ns) {
            s->state = SIM_BLOCKED;
            sim_await(sim, index, head->peer, (uint64_t)head->ns);
            return;
        }
        s->done++;
        if (s->first_waiter != SIM_NONE)
            notify(sim, index);
    }
    s->state = SIM_IDLE;
}

/* Continues everybody whose count the stream has reached, in the order of their numbers. */
static void notify(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    uint32_t ready = SIM_NONE, *link = &s->first_waiter;
    while (*link != SIM_NONE) {
        uint32_t entity = *link;
        sim_waiter *waiter = waiter_of(sim, entity);
        if (waiter->count > s->done) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        uint32_t *place = &ready;
        while (*place != SIM_NONE && *place < entity)
            place = &waiter_of(sim, *place)->next;
        waiter->next = *place;
        *place = entity;
    }
    while (ready != SIM_NONE) {
        uint32_t entity = ready;
        ready = waiter_of(sim, entity)->next;
        if (entity >= SIM_FIRST_RANK)
            sim_wake(sim, &sim->ranks[entity - SIM_FIRST_RANK], sim->now_ns);
        else
            advance(sim, entity);
    }
}

/* ---- completing the head ---- */

static void complete_head(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    static const uint8_t parts[] = {[SIM_OP] = DBO_SPAN_RUN,
                                    [SIM_WAIT] = DBO_SPAN_RUN,
                                    [SIM_MEET] = DBO_SPAN_RUN,
                                    [SIM_SEND] = DBO_SPAN_SEND,
                                    [SIM_RECV] = DBO_SPAN_RECV};
    s->due = -1;
    sim_push_span(sim, head, (dbo_span_part)parts[head->kind], s->number, s->started, sim->now_ns);
    if (__builtin_expect(s->shares, 0))
        sim_share_end(sim, index);
    if (__builtin_expect(head->numeric != NULL, 0))
        sim_numeric_publish(head->numeric);
    if (head->kind == SIM_MEET || head->kind == SIM_RECV)
        sim_meet_leave(sim, head);
    s->done++;
    if (s->first_waiter != SIM_NONE)
        notify(sim, index);
    advance(sim, index);
}

void sim_stream_event(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    if (s->due != sim->now_ns)
        return; /* stale: its end has moved */
    if (s->state == SIM_RUNNING) {
        complete_head(sim, index);
    } else if (s->state == SIM_STARTING) {
        s->due = -1;
        if (s->met)
            sim_run_head(sim, index, sim->now_ns, sim_head(s)->ns);
        else
            begin_head(sim, index, sim->now_ns);
    }
}

/* ---- issuing ---- */

static bool grow_ring(sim_stream *s)
{
    uint32_t cap = s->ring ? (s->mask + 1) * 2 : 64;
    if (cap > UINT32_C(1) << 26)
        return false;
    sim_item *ring = malloc(cap * sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t i = s->done; i != s->issued; i++)
        ring[i & (cap - 1)] = s->ring[i & s->mask];
    free(s->ring);
    s->ring = ring;
    s->mask = cap - 1;
    return true;
}

dbo_status sim_enqueue(dbo_sim *sim, uint32_t index, const sim_item *item)
{
    sim_stream *s = &sim->streams[index];
    if (s->issued - s->done > s->mask || !s->ring)
        if (!grow_ring(s))
            return sim_fail(sim, DBO_NO_MEMORY, "out of memory for a stream's queue");
    s->ring[s->issued & s->mask] = *item;
    s->issued++;
    if (s->state == SIM_IDLE)
        advance(sim, index);
    return DBO_OK;
}

dbo_status sim_issue(sim_rank *rank, uint32_t index, sim_item *item)
{
    dbo_sim *sim = rank->sim;
    const sim_stream *s = &sim->streams[index];
    while (s->issued - s->done >= sim->options.queue_depth) {
        sim_await(sim, SIM_FIRST_RANK + rank->id, index,
                  s->issued - sim->options.queue_depth + 1);
        rank->blocked_on = index;
        DBO_TRY(sim_park(rank, SIM_AT_STREAM));
        s = &sim->streams[index];
    }
    item->not_before = rank->host_ns;
    return sim_enqueue(sim, index, item);
}
