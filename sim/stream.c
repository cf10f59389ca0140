/* stream.c: FIFO streams. The simulator's hot path: issue, start, resolve, wake.
 *
 * The head is the first unresolved item. If its start is known and nothing can change its length,
 * it is resolved on the spot and the next one is looked at; so a chain of plain kernels costs no
 * event at all. A head that must meet others in time is started by an event and resolved at its
 * end. Resolving may unblock other streams: they are put on a list and looked at in turn, never
 * recursively, so chains may be as long as a run.
 */
#include "sim/meet_impl.h"
#include "sim/numeric_impl.h"
#include "sim/share_impl.h"
#include "sim/stream_impl.h"
#include "sim/world_impl.h"

#include <stdlib.h>

#define MAX_LOOKED_AHEAD 32 /* items of a queue, to answer a query without waiting */

static dbo_status grow_streams(dbo_sim *sim)
{
    uint32_t had = sim->cap_streams, cap = had ? had * 2 : 16;
    uint32_t *work = malloc(cap * sizeof *work);
    if (!work)
        return DBO_NO_MEMORY;
    for (uint32_t i = 0; i < sim->work_count; i++)
        work[i] = sim->work[(sim->work_first + i) & (had - 1)];
    dbo_status status = dbo_vec_grow(&sim->streams, &sim->cap_streams, cap, sizeof *sim->streams);
    free(status == DBO_OK ? sim->work : work);
    if (status != DBO_OK)
        return status;
    sim->work = work;
    sim->work_first = 0;
    return DBO_OK;
}

uint32_t dbo_sim_stream_create(dbo_sim *sim, uint32_t rank, uint32_t number, dbo_error *err)
{
    if (sim->num_streams >= SIM_FIRST_RANK) {
        dbo_fail(err, DBO_LIMIT, "Fold identical ranks.", "more than %u streams", SIM_FIRST_RANK);
        return SIM_NONE;
    }
    if (sim->num_streams == sim->cap_streams && grow_streams(sim) != DBO_OK) {
        dbo_fail_memory(err, "a stream");
        return SIM_NONE;
    }
    sim->streams[sim->num_streams] = (sim_stream){.rank = rank,
                                                  .number = number,
                                                  .state = SIM_READY,
                                                  .due = -1,
                                                  .first_wait = SIM_NO_WAIT,
                                                  .last_wait = SIM_NO_WAIT,
                                                  .first_count = UINT64_MAX,
                                                  .room = sim->options.queue_depth,
                                                  .next_member = SIM_NONE};
    return sim->num_streams++;
}

void dbo_sim_stream_fini(sim_stream *s)
{
    for (; s->resolved != s->issued; s->resolved++) /* queued ops own their private outputs */
        if (sim_head(s)->kind == SIM_OP)
            dbo_sim_numeric_destroy(sim_head(s)->numeric);
    free(s->ring);
}

void dbo_sim_push_span(dbo_sim *sim, const sim_item *item, dbo_span_part part, uint32_t number,
                       int64_t start_ns, int64_t end_ns)
{
    if (!sim->options.trace)
        return;
    /* One word is one store; four bit-fields are a dozen steps. */
    uint64_t bytes = item->kind >= SIM_MEET ? item->bytes & DBO_SPAN_MAX_BYTES : 0;
    const dbo_span span = {.id = item->id,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .packed = bytes | (uint64_t)(item->sms & 0xfffu) << 40 |
                                     (uint64_t)part << 52 | (uint64_t)(number & 0xffu) << 56};
    sim->options.trace->span(sim->options.trace_self, &span);
}

/* ---- resolving ---- */

void dbo_sim_look_at(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    s->state = SIM_READY;
    if (s->queued)
        return;
    s->queued = true;
    sim->work[(sim->work_first + sim->work_count++) & (sim->cap_streams - 1)] = index;
}

/* Tells the items that wait for one of the resolved items of s. */
static void release_waits(dbo_sim *sim, sim_stream *s)
{
    while (s->first_wait != SIM_NO_WAIT) {
        uint32_t index = SIM_WAIT_STREAM(s->first_wait);
        uint64_t number = SIM_WAIT_NUMBER(s->first_wait);
        sim_stream *waiting = &sim->streams[index];
        sim_item *item = &waiting->ring[number & waiting->mask];
        if (item->count > s->resolved) {
            s->first_count = item->count;
            return;
        }
        item->ready_ns = s->end_ns;
        s->first_wait = item->next_wait;
        if (waiting->resolved == number && waiting->state == SIM_BLOCKED)
            dbo_sim_look_at(sim, index);
    }
    s->last_wait = SIM_NO_WAIT;
    s->first_count = UINT64_MAX;
}

/* The head ends then. */
static inline void resolve(dbo_sim *sim, sim_stream *s, sim_item *head, int64_t end_ns)
{
    head->end_ns = end_ns;
    s->end_ns = end_ns;
    s->resolved++;
    s->state = SIM_READY;
    if (end_ns > sim->last_ns) {
        sim->last_ns = end_ns;
        if (__builtin_expect(end_ns >= SIM_MAX_NS, 0))
            dbo_sim_fail(sim, DBO_LIMIT, "simulated time exceeds %.1f hours",
                         (double)SIM_MAX_NS / 3.6e12);
    }
    if (s->resolved >= s->first_count)
        release_waits(sim, s);
    if (__builtin_expect(s->host_count != 0, 0) && s->resolved >= s->host_count) {
        s->host_count = 0;
        dbo_sim_wake(sim, &sim->ranks[s->rank], end_ns);
    }
}

static const dbo_span_part part_of_kind[] = {[SIM_OP] = DBO_SPAN_RUN,
                                             [SIM_WAIT] = DBO_SPAN_RUN,
                                             [SIM_MEET] = DBO_SPAN_RUN,
                                             [SIM_SEND] = DBO_SPAN_SEND,
                                             [SIM_RECV] = DBO_SPAN_RECV};

/* The head has run; its span, its resources, its end. */
static inline void end_head(dbo_sim *sim, sim_stream *s, int64_t start_ns, int64_t end_ns)
{
    sim_item *head = sim_head(s);
    dbo_sim_push_span(sim, head, part_of_kind[head->kind], s->number, start_ns, end_ns);
    if (head->kind == SIM_MEET || head->kind == SIM_RECV)
        dbo_sim_meet_leave(sim, head);
    else if (head->kind == SIM_SEND)
        dbo_sim_send_end(sim, head, s->rank, end_ns);
    resolve(sim, s, head, end_ns);
}

/* A head that must meet others in time: now, or by an event at its start. */
static void run_by_events(dbo_sim *sim, uint32_t index, int64_t start_ns, int64_t ns)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    s->started = start_ns;
    if (start_ns > sim->now_ns) {
        s->met = true;
        s->state = SIM_STARTING;
        s->due = start_ns;
        dbo_sim_schedule(sim, start_ns, index);
        return;
    }
    s->state = SIM_RUNNING;
    if (head->kind == SIM_OP && head->numeric)
        dbo_sim_numeric_start(head->numeric);
    if (sim_shares(head)) {
        dbo_sim_share_begin(sim, index, ns);
        return;
    }
    s->due = start_ns + ns;
    dbo_sim_schedule(sim, s->due, index);
}

bool dbo_sim_run_head(dbo_sim *sim, uint32_t index, int64_t start_ns, int64_t ns)
{
    sim_stream *s = &sim->streams[index];
    if (__builtin_expect(sim_needs_event(sim_head(s)), 0)) {
        run_by_events(sim, index, start_ns, ns);
        return false;
    }
    end_head(sim, s, start_ns, start_ns + ns);
    return true;
}

/* The head could begin at `at`, not earlier than now. */
static void begin_head(dbo_sim *sim, uint32_t index, const sim_item *head, int64_t at)
{
    sim_stream *s = &sim->streams[index];
    /* Sends queue at the rank's port in the order of time, so they come at their moment. */
    if (at > sim->now_ns && head->kind != SIM_OP &&
        (head->kind == SIM_SEND || sim_needs_event(head))) {
        s->met = false;
        s->state = SIM_STARTING;
        s->due = at;
        dbo_sim_schedule(sim, at, index);
        return;
    }
    switch ((sim_item_kind)head->kind) {
    case SIM_OP: dbo_sim_run_head(sim, index, at, head->ns); return;
    case SIM_MEET: dbo_sim_meet_join(sim, index, at); return;
    case SIM_SEND:
        dbo_sim_send_begin(sim, index, at);
        dbo_sim_run_head(sim, index, at, head->ns);
        return;
    case SIM_RECV: dbo_sim_recv_begin(sim, index, at); return;
    case SIM_WAIT: return;
    }
}

/* Resolves heads until one must wait for something. */
static void advance(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    while (s->state == SIM_READY && s->resolved != s->issued) {
        sim_item *head = sim_head(s);
        int64_t at = head->not_before > s->end_ns ? head->not_before : s->end_ns;
        if (head->kind == SIM_OP && !sim_needs_event(head))
            end_head(sim, s, at, at + head->ns);
        else if (head->kind != SIM_WAIT) {
            begin_head(sim, index, head, at);
            s = &sim->streams[index]; /* a new lane may have moved them all */
        } else if (head->ready_ns == SIM_UNKNOWN)
            s->state = SIM_BLOCKED;
        else
            resolve(sim, s, head, head->ready_ns > at ? head->ready_ns : at);
    }
}

/* Of hundreds of ranks that come into motion one after the other, the next are fetched while one is
 * worked on: first the stream, then, when it is here, its head. */
static inline void fetch_ahead(const dbo_sim *sim)
{
    uint32_t mask = sim->cap_streams - 1, first = sim->work_first;
    if (sim->work_count < 4)
        return;
    __builtin_prefetch(&sim->streams[sim->work[(first + 3) & mask]]);
    __builtin_prefetch(sim_head(&sim->streams[sim->work[(first + 1) & mask]]));
}

/* Until no head can go on. */
static void settle(dbo_sim *sim)
{
    if (sim->settling)
        return;
    sim->settling = true;
    while (sim->work_count > 0) {
        uint32_t index = sim->work[sim->work_first];
        sim->work_first = (sim->work_first + 1) & (sim->cap_streams - 1);
        sim->work_count--;
        sim->streams[index].queued = false;
        fetch_ahead(sim);
        advance(sim, index);
    }
    sim->settling = false;
}

void dbo_sim_end_now(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    sim_item *head = sim_head(s);
    if (s->shares)
        dbo_sim_share_end(sim, index);
    if (head->kind == SIM_OP && head->numeric)
        dbo_sim_numeric_publish(head->numeric);
    if (head->moves)
        dbo_sim_meet_deliver(sim, head, s->rank);
    end_head(sim, s, s->started, sim->now_ns);
    dbo_sim_look_at(sim, index);
}

/* The head was to start now. */
static void start_now(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    s->state = SIM_READY;
    if (s->met)
        run_by_events(sim, index, sim->now_ns, head->ns);
    else
        begin_head(sim, index, head, sim->now_ns);
    if (sim->streams[index].state == SIM_READY) /* a new lane may have moved them all */
        dbo_sim_look_at(sim, index);
}

void dbo_sim_stream_event(dbo_sim *sim, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    s->due = -1;
    if (s->number == DBO_NETWORK_STREAM)
        dbo_sim_flow_end(sim, index);
    else if (s->state == SIM_STARTING)
        start_now(sim, index);
    else if (s->state == SIM_RUNNING && sim_head(s)->kind == SIM_MEET && sim_head(s)->flows)
        dbo_sim_meet_left(sim, index);
    else if (s->state == SIM_RUNNING)
        dbo_sim_end_now(sim, index);
    settle(sim);
}

/* ---- issuing ---- */

static bool grow_ring(const dbo_sim *sim, sim_stream *s)
{
    uint32_t cap = s->ring ? (s->mask + 1) * 2 : 16;
    while (!s->ring && cap < sim->options.queue_depth)
        cap *= 2;
    if (cap > UINT32_C(1) << 26)
        return false;
    sim_item *ring = malloc(cap * sizeof *ring);
    if (!ring)
        return false;
    uint64_t held = s->ring ? (uint64_t)s->mask + 1 : 0;
    for (uint64_t i = s->issued > held ? s->issued - held : 0; i != s->issued; i++)
        ring[i & (cap - 1)] = s->ring[i & s->mask];
    free(s->ring);
    s->ring = ring;
    s->mask = cap - 1;
    return true;
}

/* The oldest item of the launch queue is over, or the host is about to wait for its end. */
static inline void pass_oldest(sim_stream *s)
{
    const sim_item *item = &s->ring[s->oldest++ & s->mask];
    s->room += item->kind != SIM_WAIT && !item->node;
}

/* Frees the place of the item a ring's length ago for one issued at host_ns, if it is over. */
static bool free_place(sim_stream *s, int64_t host_ns)
{
    if (!s->ring || s->oldest >= s->resolved || s->ring[s->oldest & s->mask].end_ns > host_ns)
        return false;
    pass_oldest(s);
    return true;
}

/* The place of the stream's next item, to be issued at host_ns; NULL: no memory. Items are written
 * where they stay: a copy would wait for the narrow stores that made it. */
static inline sim_item *next_place(dbo_sim *sim, sim_stream *s, int64_t host_ns)
{
    while (__builtin_expect(s->issued - s->oldest > s->mask || !s->ring, 0))
        if (!free_place(s, host_ns) && !grow_ring(sim, s)) {
            dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for a stream's queue");
            return NULL;
        }
    return &s->ring[s->issued & s->mask];
}

/* The item in its place counts from now on; whoever calls then lets the stream go on. */
static inline void take_place(sim_stream *s, sim_item *item)
{
    s->issued++;
    if (s->floor_ns > item->not_before)
        item->not_before = s->floor_ns;
    s->floor_ns = 0;
}

/* The stream has a new item; if it is the head, it may be able to go on. */
static inline void go_on(dbo_sim *sim, uint32_t index)
{
    const sim_stream *s = &sim->streams[index];
    if (s->issued != s->resolved + 1 || s->state != SIM_READY)
        return;
    advance(sim, index);
    if (sim->work_count > 0)
        settle(sim);
}

void dbo_sim_queue(dbo_sim *sim, uint32_t index, sim_item *item)
{
    take_place(&sim->streams[index], item);
    go_on(sim, index);
}

dbo_status dbo_sim_enqueue(dbo_sim *sim, uint32_t index, const sim_item *item)
{
    sim_item *place = next_place(sim, &sim->streams[index], item->not_before);
    if (!place)
        return DBO_NO_MEMORY;
    *place = *item;
    dbo_sim_queue(sim, index, place);
    return DBO_OK;
}

int64_t dbo_sim_end_of(const sim_stream *s, uint64_t count, int64_t host_ns)
{
    if (count == 0)
        return 0;
    if (count > s->resolved)
        return SIM_UNKNOWN;
    if (count <= s->oldest)
        return host_ns; /* over by now, and perhaps no longer in the ring */
    return s->ring[(count - 1) & s->mask].end_ns;
}

int64_t dbo_sim_earliest_end(const sim_stream *s, uint64_t count)
{
    int64_t at = s->end_ns;
    uint64_t last = count - s->resolved > MAX_LOOKED_AHEAD ? s->resolved + MAX_LOOKED_AHEAD : count;
    for (uint64_t n = s->resolved; n != last; n++) {
        const sim_item *item = &s->ring[n & s->mask];
        at = item->not_before > at ? item->not_before : at;
        if (item->kind != SIM_WAIT)
            at += item->ns;
        else if (item->ready_ns != SIM_UNKNOWN && item->ready_ns > at)
            at = item->ready_ns;
    }
    return at;
}

dbo_status dbo_sim_host_await(sim_rank *rank, uint32_t index, uint64_t count)
{
    sim_stream *s = &rank->sim->streams[index];
    int64_t end_ns = dbo_sim_end_of(s, count, rank->host_ns);
    if (end_ns == SIM_UNKNOWN) {
        s->host_count = count;
        rank->blocked_on = index;
        return dbo_sim_park(rank, SIM_AT_STREAM);
    }
    if (end_ns > rank->host_ns)
        dbo_sim_skip(rank, end_ns);
    return DBO_OK;
}

/* The host waits until the stream's launch queue has room. Launches alone count: whether a wait
 * became an item depends on what was known at its issue, which must not show in times. */
static dbo_status make_room(sim_rank *rank, uint32_t index)
{
    sim_stream *s = &rank->sim->streams[index];
    uint64_t oldest = s->oldest;
    while (s->room < 0)
        pass_oldest(s);
    /* A rank that never parks must be stoppable, too. */
    if (__builtin_expect((oldest ^ s->oldest) >> 12 != 0, 0))
        DBO_TRY(dbo_sim_poll_now(rank->sim));
    if (s->oldest > s->resolved)
        return dbo_sim_host_await(rank, index, s->oldest);
    int64_t end_ns = s->ring[(s->oldest - 1) & s->mask].end_ns;
    if (end_ns > rank->host_ns)
        dbo_sim_skip(rank, end_ns);
    return DBO_OK;
}

dbo_status dbo_sim_make_room(sim_rank *rank, uint32_t index)
{
    return --rank->sim->streams[index].room < 0 ? make_room(rank, index) : DBO_OK;
}

sim_item *dbo_sim_reserve(sim_rank *rank, uint32_t index)
{
    dbo_sim *sim = rank->sim;
    if (--sim->streams[index].room < 0 && make_room(rank, index) != DBO_OK)
        return NULL;
    return next_place(sim, &sim->streams[index], rank->host_ns);
}

dbo_status dbo_sim_issue(sim_rank *rank, uint32_t index, const sim_item *item)
{
    sim_item *place = dbo_sim_reserve(rank, index);
    if (!place)
        return DBO_ABORTED;
    *place = *item;
    place->not_before = rank->host_ns;
    dbo_sim_queue(rank->sim, index, place);
    return DBO_OK;
}

/* ---- waits ---- */

static sim_item *waiting_item(dbo_sim *sim, uint64_t wait)
{
    sim_stream *s = &sim->streams[SIM_WAIT_STREAM(wait)];
    return &s->ring[SIM_WAIT_NUMBER(wait) & s->mask];
}

/* Puts the wait into the list of its target, in the order of counts. */
static void add_wait(dbo_sim *sim, sim_stream *target, uint64_t wait)
{
    sim_item *item = waiting_item(sim, wait);
    uint64_t *link = &target->first_wait;
    if (target->last_wait != SIM_NO_WAIT) {
        sim_item *tail = waiting_item(sim, target->last_wait);
        if (tail->count <= item->count)
            link = &tail->next_wait;
    }
    while (*link != SIM_NO_WAIT && waiting_item(sim, *link)->count <= item->count)
        link = &waiting_item(sim, *link)->next_wait;
    item->next_wait = *link;
    *link = wait;
    if (item->next_wait == SIM_NO_WAIT)
        target->last_wait = wait;
    if (link == &target->first_wait)
        target->first_count = item->count;
}

/* A wait stands in its place: binds it to its target, and lets the stream go on. */
static void queue_wait(dbo_sim *sim, uint32_t index, sim_item *item)
{
    sim_stream *s = &sim->streams[index], *target = &sim->streams[item->peer];
    item->ready_ns = dbo_sim_end_of(target, item->count, item->not_before);
    item->next_wait = SIM_NO_WAIT;
    uint64_t number = s->issued;
    take_place(s, item);
    if (item->ready_ns == SIM_UNKNOWN)
        add_wait(sim, target, SIM_WAIT_AT(index, number));
    go_on(sim, index);
}

dbo_status dbo_sim_enqueue_wait(dbo_sim *sim, uint32_t index, const sim_item *wait)
{
    sim_item *place = next_place(sim, &sim->streams[index], wait->not_before);
    if (!place)
        return DBO_NO_MEMORY;
    *place = *wait;
    queue_wait(sim, index, place);
    return DBO_OK;
}

dbo_status dbo_sim_issue_wait(sim_rank *rank, uint32_t index, uint32_t peer, uint64_t count)
{
    dbo_sim *sim = rank->sim;
    sim_stream *s = &sim->streams[index];
    int64_t end_ns = dbo_sim_end_of(&sim->streams[peer], count, rank->host_ns);
    if (end_ns != SIM_UNKNOWN) {
        if (end_ns > rank->host_ns && end_ns > s->floor_ns)
            s->floor_ns = end_ns;
        return DBO_OK;
    }
    sim_item *place = next_place(sim, s, rank->host_ns);
    if (!place)
        return DBO_NO_MEMORY;
    *place =
        (sim_item){.kind = SIM_WAIT, .not_before = rank->host_ns, .peer = peer, .count = count};
    queue_wait(sim, index, place);
    return DBO_OK;
}

dbo_status dbo_sim_flush_wait(sim_rank *rank, uint32_t index)
{
    const sim_stream *s = &rank->sim->streams[index];
    if (__builtin_expect(s->floor_ns == 0, 1))
        return DBO_OK;
    const sim_item item = {.kind = SIM_WAIT,
                           .not_before = rank->host_ns,
                           .ready_ns = s->floor_ns,
                           .next_wait = SIM_NO_WAIT};
    return dbo_sim_enqueue(rank->sim, index, &item);
}
