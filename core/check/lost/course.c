/* course.c: calls -> a course (course.h). A replay stands for the calls of its capture, wherever in
 * the log that was; a call that has left no span, because nobody traced it, is no item.
 *
 * The host's own time is what passed between calls and in those that do not wait. It starts with
 * the first turn, or the first thing that is issued: what a step decides before is none of its
 * schedule.
 */
#include "core/check/lost/course.h"

#include <stdlib.h>
#include <string.h>

#define NOBODYS DBO_MAX_UBATCHES
#define NOBODY  UINT16_MAX

typedef struct event_state {
    bool recorded;
    uint8_t stream;
    uint32_t all, own[DBO_COURSE_TURNS];
    dbo_op_id last;
} event_state;

typedef struct transfer_state { /* posted, not finished */
    uint32_t handle, meet, position;
    const void *cost;
    uint8_t stream;
    dbo_op_id id;
} transfer_state;

typedef struct graph_state {
    uint32_t graph;
    uint64_t first, end; /* calls of its capture */
    bool in_step;        /* which was in the step */
} graph_state;

typedef struct rank_state {
    dbo_course_rank *out;
    bool in_step, started, capturing;
    int64_t last_ns, busy_ns;
    uint32_t own[DBO_COURSE_STREAMS][DBO_COURSE_TURNS]; /* items up to the last of that turn */
    dbo_op_id last[DBO_COURSE_STREAMS];
    event_state *events;
    uint32_t num_events;
    DBO_VEC(transfer_state) transfers;
    uint32_t posted[DBO_MAX_UBATCHES];
    uint64_t capture_first;
    DBO_VEC(graph_state) graphs;
    int64_t counts_late_ns, counts_least_ns; /* after the start: at most when waited for; else */
} rank_state;

typedef struct build {
    dbo_course *course;
    const dbo_course_source *source;
    rank_state *ranks;
    uint16_t *index;                                                /* of a rank, or NOBODY */
    uint32_t *meets[DBO_MAX_UBATCHES], cap_meets[DBO_MAX_UBATCHES]; /* + 1, by number; 0: none */
} build;

/* ---- by number ---- */

static event_state *event_at(rank_state *r, uint32_t number)
{
    if (dbo_vec_grow_zeroed(&r->events, &r->num_events, (uint64_t)number + 1, sizeof *r->events) !=
        DBO_OK)
        return NULL;
    return &r->events[number];
}

/* The meet that transfer `number` of a communicator is; DBO_COURSE_NO_MEET: out of memory. */
static uint32_t meet_of(build *b, uint32_t comm, uint32_t number)
{
    dbo_course *c = b->course;
    if (dbo_vec_grow_zeroed(&b->meets[comm], &b->cap_meets[comm], (uint64_t)number + 1,
                            sizeof *b->meets[comm]) != DBO_OK)
        return DBO_COURSE_NO_MEET;
    uint32_t *meet = &b->meets[comm][number];
    if (*meet == 0 &&
        DBO_VEC_PUSH(&c->meets, (dbo_course_meet){.last_start_ns = INT64_MIN}) == DBO_OK)
        *meet = c->meets.count;
    return *meet - 1;
}

/* ---- what is added ---- */

static uint8_t turn_of(const dbo_call *call)
{
    return call->ubatch < DBO_MAX_UBATCHES ? call->ubatch : NOBODYS;
}

static bool add_action(rank_state *r, dbo_course_action action)
{
    action.busy_ns = r->busy_ns;
    r->busy_ns = 0;
    return DBO_VEC_PUSH(&r->out->actions, action) == DBO_OK;
}

/* An item at its stream's end, and its issue. */
static bool add_item(build *b, rank_state *r, const dbo_call *call, dbo_course_item item)
{
    dbo_course *c = b->course;
    dbo_course_rank *out = r->out;
    item.stream = (uint8_t)call->stream;
    item.turn = turn_of(call);
    if (DBO_VEC_PUSH(&out->items[item.stream], c->items.count) != DBO_OK ||
        DBO_VEC_PUSH(&c->items, item) != DBO_OK)
        return false;
    if (out->num_streams <= item.stream)
        out->num_streams = item.stream + 1u;
    r->own[item.stream][item.turn] = out->items[item.stream].count;
    if (item.kind != DBO_COURSE_WAIT)
        r->last[item.stream] = item.id;
    return add_action(r, (dbo_course_action){.kind = DBO_COURSE_ISSUE,
                                             .turn = item.turn,
                                             .index = c->items.count - 1});
}

static bool add_record(rank_state *r, const dbo_call *call)
{
    event_state *e = event_at(r, call->number);
    if (!e)
        return false;
    e->recorded = true;
    e->stream = (uint8_t)call->stream;
    e->all = r->out->items[call->stream].count;
    memcpy(e->own, r->own[call->stream], sizeof e->own);
    e->last = r->last[call->stream];
    return true;
}

static bool add_wait(build *b, rank_state *r, const dbo_call *call, uint32_t number)
{
    const event_state *e = event_at(r, number);
    uint8_t turn = turn_of(call);
    if (!e)
        return false;
    if (!e->recorded || e->stream == call->stream || e->all == 0)
        return true;
    return add_item(b, r, call,
                    (dbo_course_item){.kind = DBO_COURSE_WAIT,
                                      .peer = e->stream,
                                      .all = e->all,
                                      .own = turn == NOBODYS ? e->all : e->own[turn],
                                      .id = e->last});
}

static bool add_op(build *b, rank_state *r, const dbo_call *call)
{
    const dbo_timed_op *op = dbo_timed_op_find(&r->out->ops, call->id, DBO_SPAN_RUN);
    return !op || add_item(b, r, call,
                           (dbo_course_item){.kind = DBO_COURSE_OP,
                                             .id = call->id,
                                             .cost = call->what,
                                             .work_ns = op->work_ns,
                                             .sms = (uint16_t)op->sms});
}

/* How long rows fly after the start of their send. In one piece, the flight ends when the last rank
 * has sent and all is here, so it is counted from there; settled when all ranks' sends are known.
 */
static int64_t flight_of(const rank_state *r, const dbo_call *call, const dbo_timed_op *send)
{
    const dbo_timed_op *flight = dbo_timed_op_find(&r->out->ops, call->id, DBO_SPAN_FLIGHT);
    const dbo_timed_op *recv = dbo_timed_op_find(&r->out->ops, call->id, DBO_SPAN_RECV);
    if (flight && flight->pieces > 1)
        return flight->end_ns - flight->start_ns;
    if (flight)
        return -flight->end_ns; /* until settle_flights */
    return recv ? recv->start_ns - send->start_ns : 0;
}

static bool add_post(build *b, rank_state *r, const dbo_call *call)
{
    const dbo_timed_op *run = dbo_timed_op_find(&r->out->ops, call->id, DBO_SPAN_RUN);
    const dbo_timed_op *send = dbo_timed_op_find(&r->out->ops, call->id, DBO_SPAN_SEND);
    const dbo_timed_op *op = run ? run : send;
    uint32_t comm = dbo_op_id_ubatch(call->id);
    if (call->other != DBO_NO_EVENT && !add_wait(b, r, call, call->other))
        return false;
    if (!op)
        return true;
    uint32_t meet = meet_of(b, comm, r->posted[comm]++);
    if (meet == DBO_COURSE_NO_MEET)
        return false;
    dbo_course_meet *m = &b->course->meets.items[meet];
    m->ranks++;
    m->last_start_ns = op->start_ns > m->last_start_ns ? op->start_ns : m->last_start_ns;
    if (!add_item(b, r, call,
                  (dbo_course_item){.kind = run ? DBO_COURSE_MEET : DBO_COURSE_SEND,
                                    .id = call->id,
                                    .cost = call->what,
                                    .meet = meet,
                                    .work_ns = op->work_ns,
                                    .flight_ns = run ? 0 : flight_of(r, call, send),
                                    .sms = (uint16_t)op->sms}))
        return false;
    return DBO_VEC_PUSH(&r->transfers,
                        (transfer_state){.handle = call->number,
                                         .meet = meet,
                                         .position = r->out->items[call->stream].count,
                                         .cost = call->what,
                                         .stream = (uint8_t)call->stream,
                                         .id = call->id}) == DBO_OK;
}

static transfer_state *transfer_at(rank_state *r, uint32_t handle)
{
    for (uint32_t i = r->transfers.count; i-- > 0;)
        if (r->transfers.items[i].handle == handle)
            return &r->transfers.items[i];
    return NULL;
}

static bool add_finish(build *b, rank_state *r, const dbo_call *call)
{
    transfer_state *t = transfer_at(r, call->number);
    if (!t)
        return true;
    const transfer_state done = *t;
    *t = r->transfers.items[--r->transfers.count];
    const dbo_timed_op *recv = dbo_timed_op_find(&r->out->ops, done.id, DBO_SPAN_RECV);
    if (recv)
        return add_item(b, r, call,
                        (dbo_course_item){.kind = DBO_COURSE_RECV,
                                          .id = done.id,
                                          .cost = done.cost,
                                          .meet = done.meet,
                                          .work_ns = recv->work_ns,
                                          .sms = (uint16_t)recv->sms});
    bool here = done.stream == call->stream ||
                dbo_timed_op_find(&r->out->ops, done.id, DBO_SPAN_RUN) == NULL;
    return here || add_item(b, r, call,
                            (dbo_course_item){.kind = DBO_COURSE_WAIT,
                                              .peer = done.stream,
                                              .all = done.position,
                                              .own = done.position,
                                              .id = done.id});
}

/* ---- the host's waits ---- */

/* Counts that were there already say only how late they were at most. */
static bool add_counts(rank_state *r, const dbo_call *call)
{
    const transfer_state *t = transfer_at(r, call->number);
    const dbo_timed_op *op = t ? dbo_timed_op_find(&r->out->ops, t->id, DBO_SPAN_RUN) : NULL;
    if (!op)
        return true;
    bool waited = call->end_ns > call->begin_ns;
    int64_t late_ns = (waited ? call->end_ns : call->begin_ns) - op->start_ns;
    late_ns = late_ns > 0 ? late_ns : 0;
    if (waited && late_ns > r->counts_late_ns)
        r->counts_late_ns = late_ns;
    if (!waited && late_ns < r->counts_least_ns)
        r->counts_least_ns = late_ns;
    return add_action(r, (dbo_course_action){.kind = DBO_COURSE_COUNTS,
                                             .turn = turn_of(call),
                                             .index = t->meet,
                                             .id = t->id,
                                             .late_ns = waited ? late_ns : -1});
}

static bool add_host_wait(build *b, rank_state *r, const dbo_call *call)
{
    const event_state *e = event_at(r, call->number);
    if (!e)
        return false;
    if (!e->recorded || e->all == 0)
        return true;
    const dbo_course_item *last =
        &b->course->items.items[r->out->items[e->stream].items[e->all - 1]];
    const dbo_timed_op *op = dbo_timed_op_find(&r->out->ops, last->id, DBO_SPAN_RUN);
    int64_t late_ns = op && last->kind != DBO_COURSE_WAIT && call->end_ns > call->begin_ns
                          ? call->end_ns - op->end_ns
                          : 0;
    return add_action(r, (dbo_course_action){.kind = DBO_COURSE_EVENT,
                                             .turn = turn_of(call),
                                             .index = e->stream,
                                             .count = e->all,
                                             .id = e->last,
                                             .late_ns = late_ns > 0 ? late_ns : 0});
}

/* Receive counts come as late after the start as they do when somebody waits. */
static void settle_counts(rank_state *r)
{
    int64_t usual_ns = r->counts_late_ns > 0 ? r->counts_late_ns : r->counts_least_ns;
    for (uint32_t i = 0; i < r->out->actions.count; i++) {
        dbo_course_action *a = &r->out->actions.items[i];
        if (a->kind == DBO_COURSE_COUNTS && a->late_ns < 0)
            a->late_ns = usual_ns;
    }
}

static void settle_flights(dbo_course *c)
{
    for (uint32_t i = 0; i < c->items.count; i++) {
        dbo_course_item *item = &c->items.items[i];
        if (item->flight_ns < 0)
            item->flight_ns = -item->flight_ns - c->meets.items[item->meet].last_start_ns;
    }
}

/* ---- calls ---- */

static bool add_device_call(build *b, rank_state *r, const dbo_call *call)
{
    if (call->status != DBO_OK || call->stream >= DBO_COURSE_STREAMS)
        return true;
    switch ((dbo_call_kind)call->kind) {
    case DBO_CALL_LAUNCH: return add_op(b, r, call);
    case DBO_CALL_RECORD: return add_record(r, call);
    case DBO_CALL_WAIT: return add_wait(b, r, call, call->number);
    case DBO_CALL_POST: return add_post(b, r, call);
    case DBO_CALL_FINISH: return add_finish(b, r, call);
    case DBO_CALL_COUNTS: return add_counts(r, call);
    case DBO_CALL_HOST_WAIT: return add_host_wait(b, r, call);
    default: return true;
    }
}

static const graph_state *graph_of(const rank_state *r, uint32_t number)
{
    for (uint32_t i = r->graphs.count; i-- > 0;)
        if (r->graphs.items[i].graph == number)
            return &r->graphs.items[i];
    return NULL;
}

/* What a graph runs, at once. */
static bool add_replay(build *b, rank_state *r, const graph_state *graph)
{
    for (uint64_t i = graph->first; i < graph->end; i++) {
        const dbo_call *captured = dbo_recorder_at(b->source->log, i);
        if (captured->rank == r->out->rank && !add_device_call(b, r, captured))
            return false;
    }
    return true;
}

static bool note_capture(rank_state *r, const dbo_call *call, uint64_t at)
{
    if (call->status != DBO_OK)
        return true;
    r->capturing = call->kind == DBO_CALL_CAPTURE_BEGIN;
    if (r->capturing)
        r->capture_first = at;
    if (call->kind != DBO_CALL_CAPTURE_END)
        return true;
    return DBO_VEC_PUSH(&r->graphs, (graph_state){.graph = call->number,
                                                  .first = r->capture_first,
                                                  .end = at,
                                                  .in_step = r->in_step}) == DBO_OK;
}

static bool waits(const dbo_call *call)
{
    return call->kind == DBO_CALL_COUNTS || call->kind == DBO_CALL_HOST_WAIT ||
           call->kind == DBO_CALL_EXCHANGE || call->kind == DBO_CALL_BARRIER;
}

static bool is_capture(const dbo_call *call)
{
    return call->kind == DBO_CALL_CAPTURE_BEGIN || call->kind == DBO_CALL_CAPTURE_END ||
           call->kind == DBO_CALL_CAPTURE_ABANDON;
}

/* Time of the host up to the call. */
static void pass_time(rank_state *r, const dbo_call *call)
{
    bool begins = call->kind == DBO_CALL_TURN || call->kind == DBO_CALL_LAUNCH ||
                  call->kind == DBO_CALL_POST || call->kind == DBO_CALL_REPLAY;
    if (r->started)
        r->busy_ns += call->begin_ns - r->last_ns;
    if (r->started || !begins)
        return;
    r->started = true;
    r->out->start_ns = call->begin_ns;
}

static bool add_call_in_step(build *b, rank_state *r, const dbo_call *call, uint64_t at)
{
    const graph_state *graph =
        call->kind == DBO_CALL_REPLAY && call->status == DBO_OK ? graph_of(r, call->number) : NULL;
    bool fine = true;
    if (graph && graph->in_step && b->source->eager) { /* there would be no replay */
        r->last_ns = call->end_ns;
        return true;
    }
    pass_time(r, call);
    b->course->captures = b->course->captures || is_capture(call);
    if (is_capture(call))
        fine = note_capture(r, call, at);
    else if (graph)
        fine = add_replay(b, r, graph);
    else if (!r->capturing || b->source->eager)
        fine = add_device_call(b, r, call);
    if (!waits(call) && r->started)
        r->busy_ns += call->end_ns - call->begin_ns;
    r->last_ns = call->end_ns;
    return fine;
}

static bool is_step(const dbo_call *call, uint32_t step, dbo_mark_kind kind)
{
    return call->kind == DBO_CALL_STEP && call->other == step && call->number == (uint32_t)kind;
}

static bool add_call(build *b, const dbo_call *call, uint64_t at)
{
    if (b->index[call->rank] == NOBODY)
        return true;
    rank_state *r = &b->ranks[b->index[call->rank]];
    if (is_step(call, b->course->step, DBO_MARK_STEP_BEGIN)) {
        r->in_step = true;
        r->out->begin_ns = r->out->start_ns = r->last_ns = call->begin_ns;
        return true;
    }
    if (is_step(call, b->course->step, DBO_MARK_STEP_END)) {
        r->in_step = false;
        r->out->rest_ns = r->busy_ns + (r->started ? call->begin_ns - r->last_ns : 0);
        return true;
    }
    if (r->in_step)
        return add_call_in_step(b, r, call, at);
    return !is_capture(call) || note_capture(r, call, at);
}

/* ---- the whole ---- */

/* Ranks that have begun the step, in the order in which they did. */
static dbo_status find_ranks(build *b, dbo_error *err)
{
    dbo_course *c = b->course;
    const dbo_recorder *log = b->source->log;
    memset(b->index, 0xff, DBO_MAX_RANKS * sizeof *b->index);
    for (uint64_t i = 0; i < log->count; i++) {
        const dbo_call *call = dbo_recorder_at(log, i);
        if (!is_step(call, c->step, DBO_MARK_STEP_BEGIN) || b->index[call->rank] != NOBODY)
            continue;
        if (dbo_vec_grow(&c->ranks, &c->cap_ranks, (uint64_t)c->num_ranks + 1, sizeof *c->ranks) !=
            DBO_OK)
            return dbo_fail_memory(err, "a step's course");
        b->index[call->rank] = (uint16_t)c->num_ranks;
        c->ranks[c->num_ranks++] = (dbo_course_rank){.rank = call->rank};
    }
    b->ranks = calloc((size_t)c->num_ranks + 1, sizeof *b->ranks);
    DBO_TRY(dbo_need_memory(b->ranks, "a step's course", err));
    for (uint32_t r = 0; r < c->num_ranks; r++)
        b->ranks[r] = (rank_state){.out = &c->ranks[r], .counts_least_ns = INT64_MAX};
    return DBO_OK;
}

static dbo_status read_trace(dbo_course *c, const dbo_course_source *source, dbo_error *err)
{
    uint32_t *ranks = malloc(((size_t)c->num_ranks + 1) * sizeof *ranks);
    dbo_timed_ops *ops = malloc(((size_t)c->num_ranks + 1) * sizeof *ops);
    dbo_status status = dbo_need_memory(ranks && ops, "a step's course", err);
    for (uint32_t r = 0; r < c->num_ranks && status == DBO_OK; r++)
        ranks[r] = c->ranks[r].rank;
    if (status == DBO_OK) {
        status = dbo_timed_ops_read(ops, ranks, c->num_ranks, source->trace, source->step,
                                    source->total_sms, err);
        for (uint32_t r = 0; r < c->num_ranks; r++)
            c->ranks[r].ops = ops[r];
    }
    free(ranks);
    free(ops);
    return status;
}

static dbo_status read_calls(build *b, dbo_error *err)
{
    const dbo_recorder *log = b->source->log;
    bool fine = true;
    for (uint64_t i = 0; i < log->count && fine; i++)
        fine = add_call(b, dbo_recorder_at(log, i), i);
    for (uint32_t r = 0; r < b->course->num_ranks; r++)
        settle_counts(&b->ranks[r]);
    settle_flights(b->course);
    return fine ? DBO_OK : dbo_fail_memory(err, "a step's course");
}

static void build_fini(build *b)
{
    for (uint32_t r = 0; r < b->course->num_ranks && b->ranks; r++) {
        free(b->ranks[r].events);
        DBO_VEC_FINI(&b->ranks[r].transfers);
        DBO_VEC_FINI(&b->ranks[r].graphs);
    }
    for (uint32_t comm = 0; comm < DBO_MAX_UBATCHES; comm++)
        free(b->meets[comm]);
    free(b->ranks);
    free(b->index);
}

dbo_status dbo_course_init(dbo_course *out, const dbo_course_source *source, dbo_error *err)
{
    build b = {.course = out, .source = source};
    *out = (dbo_course){.step = source->step, .total_sms = source->total_sms};
    b.index = malloc(DBO_MAX_RANKS * sizeof *b.index);
    dbo_status status = dbo_need_memory(b.index, "a step's course", err);
    if (status == DBO_OK)
        status = find_ranks(&b, err);
    if (status == DBO_OK)
        status = read_trace(out, source, err);
    if (status == DBO_OK)
        status = read_calls(&b, err);
    build_fini(&b);
    if (status != DBO_OK)
        dbo_course_fini(out);
    return status;
}

void dbo_course_fini(dbo_course *course)
{
    for (uint32_t r = 0; r < course->num_ranks; r++) {
        dbo_course_rank *rank = &course->ranks[r];
        dbo_timed_ops_fini(&rank->ops);
        DBO_VEC_FINI(&rank->actions);
        for (uint32_t s = 0; s < DBO_COURSE_STREAMS; s++)
            DBO_VEC_FINI(&rank->items[s]);
    }
    free(course->ranks);
    DBO_VEC_FINI(&course->items);
    DBO_VEC_FINI(&course->meets);
    *course = (dbo_course){0};
}

const dbo_course_rank *dbo_course_rank_of(const dbo_course *course, uint32_t rank)
{
    for (uint32_t r = 0; r < course->num_ranks; r++)
        if (course->ranks[r].rank == rank)
            return &course->ranks[r];
    return NULL;
}
