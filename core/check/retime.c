/* retime.c: plays a step's calls again, in their order, each op at the earliest moment that its
 * stream, the events before it and its host allow.
 *
 * The host's clock goes on from issue to issue by what it was measured to take without being
 * blocked; where it waits for receive counts or an event it goes on from that transfer's start, or
 * that event, as late after it as it was measured to be.
 */
#include "core/check/retime.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS  32u
#define UBATCHES (DBO_MAX_UBATCHES + 1u) /* the last: nobody's turn */

#define WITHOUT_PLACE \
    (~(((uint64_t)(DBO_MAX_STEPS - 1) << 50) | ((uint64_t)(DBO_MAX_RANKS - 1) << 36)))

/* ---- what was measured ---- */

static uint64_t key_of(dbo_op_id id, uint32_t part)
{
    return (id & WITHOUT_PLACE) | (uint64_t)part << 50;
}

static int compare_ops(const void *a, const void *b)
{
    const dbo_timed_op *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static bool is_of(dbo_op_id id, uint32_t rank, uint32_t step)
{
    return dbo_op_id_rank(id) == rank && dbo_op_id_step(id) == step;
}

static bool occupies_stream(const dbo_span *span)
{
    return span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_SEND || span->part == DBO_SPAN_RECV;
}

static bool is_transfer(dbo_op_id id)
{
    return dbo_op_id_kind(id) == DBO_KIND_DISPATCH || dbo_op_id_kind(id) == DBO_KIND_COMBINE;
}

static void read_spans(dbo_timed_ops *out, const dbo_trace *trace, uint32_t rank, uint32_t step)
{
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (!is_of(span->id, rank, step))
            continue;
        if (is_transfer(span->id) && span->part != DBO_SPAN_WAIT)
            out->transfers_ns += span->end_ns - span->start_ns;
        if (dbo_op_id_kind(span->id) == DBO_KIND_MLP)
            out->experts_ns += span->end_ns - span->start_ns;
        if (occupies_stream(span))
            out->ops[out->count++] = (dbo_timed_op){.key = key_of(span->id, span->part),
                                                    .start_ns = span->start_ns,
                                                    .end_ns = span->end_ns,
                                                    .issued_ns = INT64_MIN,
                                                    .resumed_ns = INT64_MIN};
    }
    qsort(out->ops, out->count, sizeof *out->ops, compare_ops);
}

typedef struct host_walk {
    const dbo_trace *trace;
    uint32_t rank;
    uint64_t next; /* mark */
    int64_t parked_at, parked_ns, resumed_ns;
} host_walk;

/* Goes through the marks before the one numbered `end`. */
static void walk_marks(host_walk *w, uint64_t end)
{
    for (; w->next < end && w->next < w->trace->num_marks; w->next++) {
        const dbo_mark *mark = dbo_trace_mark(w->trace, w->next);
        if (mark->rank != w->rank)
            continue;
        if (mark->kind == DBO_MARK_PARK)
            w->parked_at = mark->host_ns;
        if (mark->kind == DBO_MARK_UNPARK && w->parked_at != INT64_MIN) {
            w->parked_ns += mark->host_ns - w->parked_at;
            w->resumed_ns = mark->host_ns;
            w->parked_at = INT64_MIN;
        }
    }
}

static void read_issues(dbo_timed_ops *out, const dbo_trace *trace, uint32_t rank, uint32_t step)
{
    host_walk walk = {
        .trace = trace, .rank = rank, .parked_at = INT64_MIN, .resumed_ns = INT64_MIN};
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(trace, i);
        if (dbo_op_id_rank(issue->id) != rank)
            continue;
        walk_marks(&walk, issue->marks);
        dbo_timed_op wanted = {.key = key_of(issue->id, issue->part)};
        dbo_timed_op *op = dbo_op_id_step(issue->id) != step || out->count == 0
                               ? NULL
                               : bsearch(&wanted, out->ops, out->count, sizeof wanted, compare_ops);
        if (op) {
            op->issued_ns = issue->host_ns;
            op->parked_ns = walk.parked_ns;
            op->resumed_ns = walk.resumed_ns;
        }
        walk.parked_ns = 0;
        walk.resumed_ns = INT64_MIN;
    }
}

dbo_status dbo_timed_ops_init(dbo_timed_ops *out, const dbo_trace *trace, uint32_t rank,
                              uint32_t step, dbo_error *err)
{
    *out = (dbo_timed_ops){0};
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++)
        count += is_of(dbo_trace_span(trace, i)->id, rank, step);
    out->ops = malloc((count + 1) * sizeof *out->ops);
    if (!out->ops)
        return dbo_fail_memory(err, "a step's schedule");
    read_spans(out, trace, rank, step);
    read_issues(out, trace, rank, step);
    for (uint64_t i = 0; i < trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(trace, i);
        if (mark->rank != rank || mark->step != step)
            continue;
        if (mark->kind == DBO_MARK_STEP_BEGIN)
            out->begin_ns = mark->host_ns;
        if (mark->kind == DBO_MARK_STEP_END)
            out->end_ns = mark->host_ns;
    }
    return DBO_OK;
}

void dbo_timed_ops_fini(dbo_timed_ops *ops)
{
    free(ops->ops);
    *ops = (dbo_timed_ops){0};
}

const dbo_timed_op *dbo_timed_op_find(const dbo_timed_ops *ops, dbo_op_id id, dbo_span_part part)
{
    const dbo_timed_op wanted = {.key = key_of(id, part)};
    return ops->count == 0 ? NULL
                           : bsearch(&wanted, ops->ops, ops->count, sizeof wanted, compare_ops);
}

/* ---- playing it again ---- */

typedef struct play_event {
    int64_t all_ns;          /* everything that was on the stream at the record */
    int64_t by_ns[UBATCHES]; /* of each ubatch's */
    dbo_op_id last;          /* the last op there */
} play_event;

typedef struct play_wait { /* what a stream waits for before its next op */
    int64_t all_ns, own_ns;
    dbo_op_id last;
} play_wait;

typedef struct play_stream {
    int64_t end_ns, by_ns[UBATCHES];
    dbo_op_id last;
    play_wait wait;
} play_stream;

typedef struct play_transfer {
    uint32_t handle;
    dbo_op_id id;
    int64_t start_ns, landed_ns;
} play_transfer;

typedef struct play {
    const dbo_timed_ops *ops;
    const dbo_retime_rules *rules;
    play_stream streams[STREAMS];
    play_event *events;
    uint32_t num_events;
    play_transfer *transfers; /* posted, not finished */
    uint32_t num_transfers, cap_transfers;
    int64_t host_ns, issued_ns;
    int64_t held_ns[UBATCHES]; /* the host of this ubatch goes on then */
    dbo_op_id waits_for;       /* what the host has waited for since its last issue, 0: nothing */
    uint32_t waits_in;         /* ... in this ubatch's turn */
    int64_t waited_from_ns;    /* what it waited for began, as measured; and as played: */
    int64_t wait_ns;
    int64_t last_ns;
    dbo_retime_worst *worst_event, *worst_host;
} play;

static uint32_t turn_of(const dbo_call *call)
{
    return call->ubatch < DBO_MAX_UBATCHES ? call->ubatch : DBO_MAX_UBATCHES;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static play_event *event_at(play *p, uint32_t number, dbo_error *err)
{
    if (number >= p->num_events) {
        uint32_t count = number + 16;
        play_event *grown = realloc(p->events, count * sizeof *grown);
        if (!grown) {
            dbo_fail_memory(err, "a step's schedule");
            return NULL;
        }
        memset(grown + p->num_events, 0, (count - p->num_events) * sizeof *grown);
        p->events = grown;
        p->num_events = count;
    }
    return &p->events[number];
}

static dbo_status record(play *p, const dbo_call *call, dbo_error *err)
{
    const play_stream *s = &p->streams[call->stream];
    play_event *e = event_at(p, call->number, err);
    if (!e)
        return DBO_NO_MEMORY;
    e->all_ns = later(s->end_ns, s->wait.all_ns);
    memcpy(e->by_ns, s->by_ns, sizeof e->by_ns);
    e->last = s->last;
    return DBO_OK;
}

static dbo_status wait(play *p, const dbo_call *call, uint32_t number, dbo_error *err)
{
    const play_event *e = event_at(p, number, err);
    play_wait *w = &p->streams[call->stream].wait;
    uint32_t turn = turn_of(call);
    if (!e)
        return DBO_NO_MEMORY;
    int64_t own_ns = turn < DBO_MAX_UBATCHES ? e->by_ns[turn] : e->all_ns;
    if (e->all_ns > w->all_ns)
        w->last = e->last;
    w->all_ns = later(w->all_ns, p->rules->own_work ? own_ns : e->all_ns);
    w->own_ns = later(w->own_ns, own_ns);
    return DBO_OK;
}

/* The host has come to its next issue. */
static int64_t host_comes(play *p, const dbo_timed_op *op, uint32_t turn)
{
    int64_t busy_ns = 0;
    if (op->issued_ns != INT64_MIN) {
        if (p->issued_ns != INT64_MIN)
            busy_ns = op->issued_ns - p->issued_ns - op->parked_ns;
        p->issued_ns = op->issued_ns;
    }
    if (p->waits_for != 0) {
        int64_t late_ns = op->resumed_ns == INT64_MIN ? 0 : op->resumed_ns - p->waited_from_ns;
        int64_t on_ns = p->wait_ns + (late_ns > 0 ? late_ns : 0);
        int64_t lost_ns = on_ns - p->host_ns;
        if (p->worst_host && turn != p->waits_in && lost_ns > p->worst_host->ns)
            *p->worst_host = (dbo_retime_worst){lost_ns, 0, p->waits_for};
        if (p->rules->own_waits)
            p->held_ns[p->waits_in] = later(p->held_ns[p->waits_in], on_ns);
        else
            p->host_ns = later(p->host_ns, on_ns);
        p->waits_for = 0;
    }
    if (!p->rules->free_host && busy_ns > 0)
        p->host_ns += busy_ns;
    return later(p->host_ns, p->held_ns[turn]);
}

static void note_wait(play *p, const play_stream *s, int64_t issued_ns, dbo_op_id id)
{
    int64_t without_ns = later(later(s->end_ns, issued_ns), s->wait.own_ns);
    int64_t lost_ns = s->wait.all_ns - without_ns;
    if (p->worst_event && lost_ns > p->worst_event->ns)
        *p->worst_event = (dbo_retime_worst){lost_ns, id, s->wait.last};
}

/* An op at its stream's end; returns its start. `from_ns`: not before. */
static int64_t place(play *p, const dbo_call *call, dbo_op_id id, const dbo_timed_op *op,
                     int64_t from_ns)
{
    play_stream *s = &p->streams[call->stream];
    int64_t issued_ns = host_comes(p, op, turn_of(call));
    note_wait(p, s, issued_ns, id);
    int64_t start_ns = later(later(s->end_ns, s->wait.all_ns), later(issued_ns, from_ns));
    s->end_ns = start_ns + (op->end_ns - op->start_ns);
    s->by_ns[turn_of(call)] = s->end_ns;
    s->last = id;
    s->wait = (play_wait){0};
    p->last_ns = later(p->last_ns, s->end_ns);
    return start_ns;
}

static dbo_status post(play *p, const dbo_call *call, dbo_error *err)
{
    const dbo_timed_op *run = dbo_timed_op_find(p->ops, call->id, DBO_SPAN_RUN);
    const dbo_timed_op *send = dbo_timed_op_find(p->ops, call->id, DBO_SPAN_SEND);
    const dbo_timed_op *recv = dbo_timed_op_find(p->ops, call->id, DBO_SPAN_RECV);
    if (call->other != DBO_NO_EVENT)
        DBO_TRY(wait(p, call, call->other, err));
    if (!run && !send)
        return DBO_OK;
    int64_t start_ns = place(p, call, call->id, run ? run : send, 0);
    if (p->num_transfers == p->cap_transfers) {
        uint32_t cap = p->cap_transfers ? p->cap_transfers * 2 : 16;
        play_transfer *grown = realloc(p->transfers, cap * sizeof *grown);
        if (!grown)
            return dbo_fail_memory(err, "a step's schedule");
        p->transfers = grown;
        p->cap_transfers = cap;
    }
    /* A receive that had to wait began when the bytes had landed. */
    int64_t flight_ns = send && recv ? recv->start_ns - send->start_ns : 0;
    p->transfers[p->num_transfers++] = (play_transfer){.handle = call->number,
                                                       .id = call->id,
                                                       .start_ns = start_ns,
                                                       .landed_ns = start_ns + flight_ns};
    return DBO_OK;
}

static play_transfer *transfer_at(play *p, uint32_t handle)
{
    for (uint32_t i = p->num_transfers; i-- > 0;)
        if (p->transfers[i].handle == handle)
            return &p->transfers[i];
    return NULL;
}

static void finish(play *p, const dbo_call *call)
{
    play_transfer *t = transfer_at(p, call->number);
    if (!t)
        return;
    const dbo_timed_op *recv = dbo_timed_op_find(p->ops, t->id, DBO_SPAN_RECV);
    if (recv)
        place(p, call, t->id, recv, t->landed_ns);
    *t = p->transfers[--p->num_transfers];
}

static void wait_on_host(play *p, const dbo_call *call, dbo_op_id id, int64_t from_ns,
                         int64_t measured_ns)
{
    p->waits_for = id;
    p->waits_in = turn_of(call);
    p->wait_ns = from_ns;
    p->waited_from_ns = measured_ns;
}

static void counts(play *p, const dbo_call *call)
{
    const play_transfer *t = transfer_at(p, call->number);
    const dbo_timed_op *op = t ? dbo_timed_op_find(p->ops, t->id, DBO_SPAN_RUN) : NULL;
    if (op)
        wait_on_host(p, call, t->id, t->start_ns, op->start_ns);
}

/* The host waits for an event: that of its last op, whose measured end is known. */
static dbo_status host_wait(play *p, const dbo_call *call, dbo_error *err)
{
    const play_event *e = event_at(p, call->number, err);
    if (!e)
        return DBO_NO_MEMORY;
    const dbo_timed_op *op = e->last ? dbo_timed_op_find(p->ops, e->last, DBO_SPAN_RUN) : NULL;
    if (op)
        wait_on_host(p, call, e->last, e->all_ns, op->end_ns);
    return DBO_OK;
}

static dbo_status play_call(play *p, const dbo_call *call, dbo_error *err)
{
    const dbo_timed_op *op;
    if (call->stream >= STREAMS || call->status != DBO_OK)
        return DBO_OK;
    switch ((dbo_call_kind)call->kind) {
    case DBO_CALL_LAUNCH:
        op = dbo_timed_op_find(p->ops, call->id, DBO_SPAN_RUN);
        if (op)
            place(p, call, call->id, op, 0);
        return DBO_OK;
    case DBO_CALL_RECORD: return record(p, call, err);
    case DBO_CALL_WAIT: return wait(p, call, call->number, err);
    case DBO_CALL_POST: return post(p, call, err);
    case DBO_CALL_FINISH: finish(p, call); return DBO_OK;
    case DBO_CALL_COUNTS: counts(p, call); return DBO_OK;
    case DBO_CALL_HOST_WAIT: return host_wait(p, call, err);
    default: return DBO_OK;
    }
}

dbo_status dbo_retime(const dbo_recorder *log, uint64_t first, uint64_t end, uint32_t rank,
                      const dbo_timed_ops *ops, const dbo_retime_rules *rules, int64_t *out_ns,
                      dbo_retime_worst *worst_event, dbo_retime_worst *worst_host, dbo_error *err)
{
    dbo_status status = DBO_OK;
    play *p = calloc(1, sizeof *p);
    *out_ns = 0;
    if (!p)
        return dbo_fail_memory(err, "a step's schedule");
    p->ops = ops;
    p->rules = rules;
    p->issued_ns = INT64_MIN;
    p->worst_event = worst_event;
    p->worst_host = worst_host;
    for (uint64_t i = first; i < end && status == DBO_OK; i++)
        if (dbo_recorder_at(log, i)->rank == rank)
            status = play_call(p, dbo_recorder_at(log, i), err);
    *out_ns = p->last_ns;
    free(p->events);
    free(p->transfers);
    free(p);
    return status;
}
