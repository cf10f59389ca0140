/* recorder.c: see recorder.h. A tap is the self of all tables that it leaves in a seam: the seam
 * under it, and those tables that have optional slots. A call is noted first, because a call that
 * blocks lets other ranks make theirs; it is completed from its tap, which has the rank's current
 * call, because the array may have moved. The forwarders differ only in what they note, so they are
 * written as a list. */
#include "core/rank/recorder.h"

#include "core/rank/ubatch.h"

#include <stdlib.h>

struct dbo_recorder_tap {
    dbo_recorder *recorder;
    dbo_recorder_tap *next;
    dbo_call current; /* of the rank, which makes one at a time */
    uint16_t rank;
    dbo_seam under;
    dbo_a2a_ops a2a;
    dbo_group_ops group;
    dbo_trace_ops trace;
};

const char *dbo_call_name(dbo_call_kind kind)
{
    static const char *const names[] = {
#define DBO_CALL_NAME(kind, number, other) #kind,
        DBO_CALL_MAP(DBO_CALL_NAME)
#undef DBO_CALL_NAME
    };
    return (unsigned)kind < DBO_CALL_COUNT ? names[kind] : "?";
}

/* ---- noting ---- */

static bool grow(dbo_recorder *r)
{
    uint64_t cap = r->cap ? r->cap * 2 : 1024;
    dbo_call *calls = realloc(r->calls, cap * sizeof *calls);
    if (!calls)
        return false;
    r->calls = calls;
    r->cap = cap;
    return true;
}

static bool may_block(uint8_t kind)
{
    return kind == DBO_CALL_HOST_WAIT || kind == DBO_CALL_COUNTS || kind == DBO_CALL_EXCHANGE ||
           kind == DBO_CALL_BARRIER;
}

/* Notes a call; its number, or one beyond all when it was not kept. */
static uint64_t note(dbo_recorder_tap *tap, dbo_call call)
{
    dbo_recorder *r = tap->recorder;
    if (r->skips >> call.kind & 1u) {
        tap->current.kind = call.kind;
        return UINT64_MAX;
    }
    call.status = DBO_CALL_OPEN;
    call.rank = tap->rank;
    call.ubatch = (uint8_t)(dbo_enabled() ? dbo_current_ubatch_id() : DBO_MARK_MAIN);
    const void *kept = r->keep ? r->keep(r->keep_self, &call) : NULL;
    call.what = kept ? kept : call.what;
    if (r->reads_clock)
        call.begin_ns = tap->under.host->now_ns(tap->under.host_self);
    tap->current = call;
    if (r->watch && may_block(call.kind))
        r->watch(r->watch_self, &tap->current);
    if (r->forgets)
        return UINT64_MAX;
    if ((r->limit > 0 && r->count == r->limit) || (r->count == r->cap && !grow(r))) {
        r->dropped++;
        return UINT64_MAX;
    }
    r->calls[r->count] = call;
    return r->count++;
}

/* A call has returned, with what that added to tap->current. */
static void complete(dbo_recorder_tap *tap, uint64_t at, dbo_status status)
{
    dbo_recorder *r = tap->recorder;
    if (r->skips >> tap->current.kind & 1u)
        return;
    tap->current.status = (uint8_t)status;
    if (r->reads_clock)
        tap->current.end_ns = tap->under.host->now_ns(tap->under.host_self);
    if (at < r->count)
        r->calls[at] = tap->current;
    if (r->watch)
        r->watch(r->watch_self, &tap->current);
}

/* A function of a table that notes itself, calls the same below, and adds what that gave out. */
#define TAP(name, parameters, call, addition, ...)              \
    static dbo_status tap_##name parameters                     \
    {                                                           \
        dbo_recorder_tap *tap = self;                           \
        const uint64_t at = note(tap, (dbo_call){__VA_ARGS__}); \
        const dbo_status status = tap->under.call;              \
        dbo_call *noted = &tap->current;                        \
        if (status == DBO_OK) {                                 \
            addition;                                           \
        }                                                       \
        complete(tap, at, status);                              \
        return status;                                          \
    }
/* One that returns nothing and cannot fail. */
#define TAP_VOID(name, parameters, call, ...)                   \
    static void tap_##name parameters                           \
    {                                                           \
        dbo_recorder_tap *tap = self;                           \
        const uint64_t at = note(tap, (dbo_call){__VA_ARGS__}); \
        tap->under.call;                                        \
        complete(tap, at, DBO_OK);                              \
    }
/* One that only asks and is not noted. */
#define TAP_SILENT(type, name, parameters, call) \
    static type tap_##name parameters            \
    {                                            \
        const dbo_recorder_tap *tap = self;      \
        return tap->under.call;                  \
    }

#define TAP_SILENT_VOID(name, parameters, call) \
    static void tap_##name parameters           \
    {                                           \
        const dbo_recorder_tap *tap = self;     \
        tap->under.call;                        \
    }

#define KIND(name) .kind = DBO_CALL_##name
#define STREAM     .stream = (uint16_t)stream
#define NOTHING    (void)noted

/* ---- the tables ---- */

/* clang-format off */
TAP(stream_create, (void *self, const char *name, dbo_stream *out),
    device->stream_create(tap->under.device_self, name, out),
    noted->number = *out, KIND(STREAM_CREATE), .what = name)
TAP(event_create, (void *self, dbo_event *out),
    device->event_create(tap->under.device_self, out),
    noted->number = *out, KIND(EVENT_CREATE))
TAP_VOID(event_destroy, (void *self, dbo_event event),
    device->event_destroy(tap->under.device_self, event),
    KIND(EVENT_DESTROY), .number = event)
TAP(record, (void *self, dbo_event event, dbo_stream stream),
    device->record(tap->under.device_self, event, stream),
    NOTHING, KIND(RECORD), STREAM, .number = event)
TAP(wait, (void *self, dbo_stream stream, dbo_event event),
    device->wait(tap->under.device_self, stream, event),
    NOTHING, KIND(WAIT), STREAM, .number = event)
TAP(launch, (void *self, dbo_stream stream, const dbo_op *op),
    device->launch(tap->under.device_self, stream, op),
    NOTHING, KIND(LAUNCH), STREAM, .id = op->id, .what = op->cost, .io = op->io,
    .addresses = op->addresses)
TAP(event_query, (void *self, dbo_event event, bool *done),
    device->event_query(tap->under.device_self, event, done),
    noted->other = *done, KIND(EVENT_QUERY), .number = event)
TAP(host_wait, (void *self, dbo_event event),
    device->host_wait(tap->under.device_self, event),
    NOTHING, KIND(HOST_WAIT), .number = event)
TAP(set_compute_sms, (void *self, uint32_t sms),
    device->set_compute_sms(tap->under.device_self, sms),
    NOTHING, KIND(COMPUTE_SMS), .number = sms)
TAP_SILENT(uint32_t, total_sms, (void *self), device->total_sms(tap->under.device_self))
TAP_SILENT(dbo_status, status, (void *self, dbo_error *err),
    device->status(tap->under.device_self, err))

TAP(alloc, (void *self, uint64_t bytes, dbo_space space, uint64_t *address),
    mem->alloc(tap->under.mem_self, bytes, space, address),
    noted->id = *address, KIND(ALLOC), .number = (uint32_t)space, .bytes = bytes)
TAP_VOID(free, (void *self, uint64_t address),
    mem->free(tap->under.mem_self, address), KIND(FREE), .id = address)
TAP_SILENT(void *, ptr, (void *self, uint64_t address), mem->ptr(tap->under.mem_self, address))

TAP(begin, (void *self, dbo_stream stream),
    graph->begin(tap->under.graph_self, stream), NOTHING, KIND(CAPTURE_BEGIN), STREAM)
TAP(end, (void *self, dbo_graph *out),
    graph->end(tap->under.graph_self, out), noted->number = *out, KIND(CAPTURE_END))
TAP_VOID(abandon, (void *self), graph->abandon(tap->under.graph_self), KIND(CAPTURE_ABANDON))
TAP(replay, (void *self, dbo_graph graph, dbo_stream stream, uint32_t step),
    graph->replay(tap->under.graph_self, graph, stream, step),
    NOTHING, KIND(REPLAY), STREAM, .number = graph, .other = step)
TAP_VOID(graph_destroy, (void *self, dbo_graph graph),
    graph->destroy(tap->under.graph_self, graph), KIND(GRAPH_DESTROY), .number = graph)
TAP_SILENT(bool, is_capturing, (void *self), graph->is_capturing(tap->under.graph_self))

TAP(post, (void *self, const dbo_a2a_args *args, dbo_a2a_handle *out),
    a2a->post(tap->under.a2a_self, args, out),
    noted->number = *out, KIND(POST), .stream = (uint16_t)args->stream, .id = args->id,
    .other = args->previous, .direction = (uint8_t)args->direction, .what = args->cost,
    .io = args->io, .addresses = args->addresses)
TAP(counts, (void *self, dbo_a2a_handle handle),
    a2a->counts(tap->under.a2a_self, handle), NOTHING, KIND(COUNTS), .number = handle)
TAP(finish, (void *self, dbo_a2a_handle handle, dbo_stream stream),
    a2a->finish(tap->under.a2a_self, handle, stream),
    NOTHING, KIND(FINISH), STREAM, .number = handle)
TAP_VOID(abort, (void *self), a2a->abort(tap->under.a2a_self), KIND(ABORT))
TAP_SILENT_VOID(caps, (void *self, dbo_a2a_caps *out), a2a->caps(tap->under.a2a_self, out))

TAP(exchange, (void *self, const char *tag, uint64_t sequence, const int32_t *column,
               uint32_t rows, int32_t *matrix),
    group->exchange(tap->under.group_self, tag, sequence, column, rows, matrix),
    NOTHING, KIND(EXCHANGE), .what = tag, .number = (uint32_t)sequence, .other = rows)
TAP(barrier, (void *self), group->barrier(tap->under.group_self), NOTHING, KIND(BARRIER))
TAP_SILENT(uint32_t, rank, (void *self), group->rank(tap->under.group_self))
TAP_SILENT(uint32_t, size, (void *self), group->size(tap->under.group_self))

TAP_SILENT_VOID(op_issued, (void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream,
                             int64_t host_ns),
    trace->op_issued(tap->under.trace_self, id, part, stream, host_ns))
/* clang-format on */

static uint32_t tap_set_sms(void *self, uint32_t sms)
{
    dbo_recorder_tap *tap = self;
    uint32_t effective = tap->under.a2a->set_sms(tap->under.a2a_self, sms);
    dbo_call call = {KIND(A2A_SMS), .number = effective};
    complete(tap, note(tap, call), DBO_OK);
    return effective;
}

static void tap_span(void *self, const dbo_span *span)
{
    const dbo_recorder_tap *tap = self;
    if (tap->under.trace)
        tap->under.trace->span(tap->under.trace_self, span);
}

/* Only steps are noted: turns are told in more detail. */
static void tap_mark(void *self, const dbo_mark *mark)
{
    dbo_recorder_tap *tap = self;
    dbo_call call = {KIND(STEP), .number = mark->kind, .other = mark->step};
    if (mark->kind == DBO_MARK_STEP_BEGIN || mark->kind == DBO_MARK_STEP_END)
        complete(tap, note(tap, call), DBO_OK);
    if (tap->under.trace && tap->under.trace->mark)
        tap->under.trace->mark(tap->under.trace_self, mark);
}

static void tap_memory(void *self, const dbo_memory_event *event)
{
    static const dbo_call_kind kinds[] = {[DBO_MEMORY_TAKE] = DBO_CALL_BUFFER_TAKE,
                                          [DBO_MEMORY_DROP] = DBO_CALL_BUFFER_DROP,
                                          [DBO_MEMORY_USE] = DBO_CALL_BUFFER_USE};
    dbo_recorder_tap *tap = self;
    dbo_call call = {.kind = (uint8_t)kinds[event->what],
                     .number = event->buffer,
                     .other = (event->filled ? 1u : 0u) | (event->lent ? 2u : 0u),
                     .stream = (uint16_t)event->stream,
                     .bytes = event->bytes,
                     .what = event->name};
    complete(tap, note(tap, call), DBO_OK);
    if (tap->under.trace && tap->under.trace->memory)
        tap->under.trace->memory(tap->under.trace_self, event);
}

static void tap_turn(void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    dbo_recorder_tap *tap = self;
    dbo_call call = {KIND(TURN), .number = (uint32_t)event, .other = arg};
    const uint64_t at = note(tap, call);
    tap->current.ubatch = (uint8_t)ubatch;
    complete(tap, at, DBO_OK);
    if (tap->under.trace && tap->under.trace->turn)
        tap->under.trace->turn(tap->under.trace_self, event, ubatch, arg);
}

/* ---- wrapping ---- */

static const dbo_device_ops device_table = {.stream_create = tap_stream_create,
                                            .event_create = tap_event_create,
                                            .event_destroy = tap_event_destroy,
                                            .record = tap_record,
                                            .wait = tap_wait,
                                            .launch = tap_launch,
                                            .event_query = tap_event_query,
                                            .host_wait = tap_host_wait,
                                            .set_compute_sms = tap_set_compute_sms,
                                            .total_sms = tap_total_sms,
                                            .status = tap_status};
static const dbo_mem_ops mem_table = {.alloc = tap_alloc, .free = tap_free, .ptr = tap_ptr};
static const dbo_graph_ops graph_table = {.begin = tap_begin,
                                          .is_capturing = tap_is_capturing,
                                          .end = tap_end,
                                          .abandon = tap_abandon,
                                          .replay = tap_replay,
                                          .destroy = tap_graph_destroy};

static void fill_tables(dbo_recorder_tap *tap, dbo_seam *seam)
{
    const dbo_seam *under = &tap->under;
    const dbo_a2a_ops *a2a = under->a2a;
    if (a2a)
        tap->a2a = (dbo_a2a_ops){.caps = tap_caps,
                                 .set_sms = tap_set_sms,
                                 .post = tap_post,
                                 .counts = a2a->counts ? tap_counts : NULL,
                                 .finish = tap_finish,
                                 .abort = a2a->abort ? tap_abort : NULL};
    tap->group = (dbo_group_ops){.rank = tap_rank,
                                 .size = tap_size,
                                 .exchange = tap_exchange,
                                 .barrier = under->group->barrier ? tap_barrier : NULL};
    tap->trace =
        (dbo_trace_ops){.op_issued = under->trace && under->trace->op_issued ? tap_op_issued : NULL,
                        .span = tap_span,
                        .mark = tap_mark,
                        .turn = tap_turn,
                        .memory = tap_memory};
    seam->device = &device_table;
    seam->mem = under->mem ? &mem_table : NULL;
    seam->graph = under->graph ? &graph_table : NULL;
    seam->a2a = a2a ? &tap->a2a : NULL;
    seam->group = &tap->group;
    seam->trace = &tap->trace;
    seam->device_self = seam->mem_self = seam->graph_self = tap;
    seam->a2a_self = seam->group_self = seam->trace_self = tap;
}

dbo_status dbo_recorder_wrap(dbo_recorder *recorder, dbo_seam *seam, dbo_error *err)
{
    DBO_TRY(dbo_seam_check(seam, err));
    dbo_recorder_tap *tap = calloc(1, sizeof *tap);
    if (!tap)
        return dbo_fail_memory(err, "a recorder");
    tap->recorder = recorder;
    tap->next = recorder->taps;
    recorder->taps = tap;
    tap->under = *seam;
    tap->rank = (uint16_t)seam->group->rank(seam->group_self);
    fill_tables(tap, seam);
    return DBO_OK;
}

void dbo_recorder_init(dbo_recorder *recorder, uint64_t limit)
{
    *recorder = (dbo_recorder){.limit = limit};
}

void dbo_recorder_fini(dbo_recorder *recorder)
{
    while (recorder->taps) {
        dbo_recorder_tap *tap = recorder->taps;
        recorder->taps = tap->next;
        free(tap);
    }
    free(recorder->calls);
    *recorder = (dbo_recorder){0};
}
