/* tap.c: a forwarder a slot, written as a list. One whose call has no hook, though its table has,
 * costs a test and a call more than the bare slot. */
#include "core/seam/tap.h"

static bool is_hooked(const dbo_tap *tap, dbo_tap_kind kind)
{
    return (tap->hooked >> kind & 1u) != 0;
}

static dbo_status before(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_tap_before_fn hook = tap->hooks->before[call->kind];
    call->status = hook ? hook(tap, call) : DBO_OK;
    return call->status;
}

static dbo_status after(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_tap_after_fn hook = tap->hooks->after[call->kind];
    if (hook)
        hook(tap, call);
    return call->status;
}

/* A slot that can fail. With hooks around it the call is written down, apart, so that without it is
 * a jump. */
#define TAP(name, parameters, arguments, forward, tap_kind, ...)         \
    __attribute__((noinline)) static dbo_status hooked_##name parameters \
    {                                                                    \
        dbo_tap *tap = self;                                             \
        dbo_tap_call call = {.kind = DBO_TAP_##tap_kind, __VA_ARGS__};   \
        if (before(tap, &call) == DBO_OK)                                \
            call.status = tap->below.forward;                            \
        return after(tap, &call);                                        \
    }                                                                    \
    static dbo_status tap_##name parameters                              \
    {                                                                    \
        dbo_tap *tap = self;                                             \
        if (is_hooked(tap, DBO_TAP_##tap_kind))                          \
            return hooked_##name arguments;                              \
        return tap->below.forward;                                       \
    }
/* One that returns nothing: it cannot be refused. */
#define TAP_VOID(name, parameters, forward, tap_kind, ...)             \
    static void tap_##name parameters                                  \
    {                                                                  \
        dbo_tap *tap = self;                                           \
        dbo_tap_call call = {.kind = DBO_TAP_##tap_kind, __VA_ARGS__}; \
        if (is_hooked(tap, DBO_TAP_##tap_kind))                        \
            before(tap, &call);                                        \
        forward;                                                       \
        call.status = DBO_OK;                                          \
        if (is_hooked(tap, DBO_TAP_##tap_kind))                        \
            after(tap, &call);                                         \
    }
/* Of a trace, which may have no such slot below. */
#define TRACED(name, ...)                           \
    if (tap->below.trace && tap->below.trace->name) \
    tap->below.trace->name(tap->below.trace_self, __VA_ARGS__)

/* One that only asks, or that no hook wants. */
#define TAP_SILENT(type, name, parameters, forward) \
    static type tap_##name parameters               \
    {                                               \
        const dbo_tap *tap = self;                  \
        return tap->below.forward;                  \
    }

/* clang-format off */
TAP_SILENT(int64_t, now_ns, (void *self), host->now_ns(tap->below.host_self))
TAP_SILENT(bool, cancelled, (void *self), host->cancelled(tap->below.host_self))

TAP(stream_create, (void *self, const char *name, dbo_stream *out), (self, name, out),
    device->stream_create(tap->below.device_self, name, out),
    STREAM_CREATE, .in = name, .out = out)
TAP(event_create, (void *self, dbo_event *out), (self, out),
    device->event_create(tap->below.device_self, out), EVENT_CREATE, .out = out)
TAP_VOID(event_destroy, (void *self, dbo_event event),
    tap->below.device->event_destroy(tap->below.device_self, event), EVENT_DESTROY, .number = event)
TAP(record, (void *self, dbo_event event, dbo_stream stream), (self, event, stream),
    device->record(tap->below.device_self, event, stream),
    RECORD, .stream = stream, .number = event)
TAP(wait, (void *self, dbo_stream stream, dbo_event event), (self, stream, event),
    device->wait(tap->below.device_self, stream, event),
    WAIT, .stream = stream, .number = event)
TAP(launch, (void *self, dbo_stream stream, const dbo_op *op), (self, stream, op),
    device->launch(tap->below.device_self, stream, op), LAUNCH, .stream = stream, .in = op)
TAP(event_query, (void *self, dbo_event event, bool *done), (self, event, done),
    device->event_query(tap->below.device_self, event, done),
    EVENT_QUERY, .number = event, .out = done)
TAP(host_wait, (void *self, dbo_event event), (self, event),
    device->host_wait(tap->below.device_self, event), HOST_WAIT, .number = event)
TAP(set_compute_sms, (void *self, uint32_t sms), (self, sms),
    device->set_compute_sms(tap->below.device_self, sms), COMPUTE_SMS, .number = sms)
TAP_SILENT(uint32_t, total_sms, (void *self), device->total_sms(tap->below.device_self))

TAP(alloc, (void *self, uint64_t bytes, dbo_space space, uint64_t *address),
    (self, bytes, space, address),
    mem->alloc(tap->below.mem_self, bytes, space, address),
    ALLOC, .number = (uint32_t)space, .bytes = bytes, .out = address)
TAP_VOID(free, (void *self, uint64_t address),
    tap->below.mem->free(tap->below.mem_self, address), FREE, .address = address)
TAP_SILENT(void *, ptr, (void *self, uint64_t address), mem->ptr(tap->below.mem_self, address))

TAP(begin, (void *self, dbo_stream stream), (self, stream),
    graph->begin(tap->below.graph_self, stream), CAPTURE_BEGIN, .stream = stream)
TAP_SILENT(bool, is_capturing, (void *self), graph->is_capturing(tap->below.graph_self))
TAP(end, (void *self, dbo_graph *out), (self, out),
    graph->end(tap->below.graph_self, out), CAPTURE_END, .out = out)
TAP_VOID(abandon, (void *self), tap->below.graph->abandon(tap->below.graph_self), CAPTURE_ABANDON)
TAP(replay, (void *self, dbo_graph graph, dbo_stream stream, uint32_t step),
    (self, graph, stream, step),
    graph->replay(tap->below.graph_self, graph, stream, step),
    REPLAY, .stream = stream, .number = graph, .other = step)
TAP_VOID(graph_destroy, (void *self, dbo_graph graph),
    tap->below.graph->destroy(tap->below.graph_self, graph), GRAPH_DESTROY, .number = graph)

TAP_VOID(caps, (void *self, dbo_a2a_caps *out), tap->below.a2a->caps(tap->below.a2a_self, out),
    CAPS, .out = out)
TAP(post, (void *self, const dbo_a2a_args *args, dbo_a2a_handle *out), (self, args, out),
    a2a->post(tap->below.a2a_self, args, out),
    POST, .stream = args->stream, .in = args, .out = out)
TAP(counts, (void *self, dbo_a2a_handle handle), (self, handle),
    a2a->counts(tap->below.a2a_self, handle), COUNTS, .number = handle)
TAP(finish, (void *self, dbo_a2a_handle handle, dbo_stream stream), (self, handle, stream),
    a2a->finish(tap->below.a2a_self, handle, stream),
    FINISH, .stream = stream, .number = handle)
TAP_VOID(abort, (void *self), tap->below.a2a->abort(tap->below.a2a_self), ABORT)

TAP_SILENT(uint32_t, rank, (void *self), group->rank(tap->below.group_self))
TAP_SILENT(uint32_t, size, (void *self), group->size(tap->below.group_self))
TAP(exchange, (void *self, const char *tag, uint64_t sequence, const int32_t *column,
               uint32_t rows, int32_t *matrix), (self, tag, sequence, column, rows, matrix),
    group->exchange(tap->below.group_self, tag, sequence, column, rows, matrix),
    EXCHANGE, .number = (uint32_t)sequence, .other = rows, .in = tag)
TAP(barrier, (void *self), (self), group->barrier(tap->below.group_self), BARRIER)

TAP_VOID(mark, (void *self, const dbo_mark *mark), TRACED(mark, mark),
    MARK, .in = mark)
TAP_VOID(turn, (void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg),
    TRACED(turn, event, ubatch, arg),
    TURN, .number = (uint32_t)event, .other = arg, .in = &ubatch)
TAP_VOID(memory, (void *self, const dbo_memory_event *event), TRACED(memory, event),
    MEMORY, .in = event)
/* clang-format on */

static void tap_op_issued(void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream,
                          int64_t host_ns)
{
    const dbo_tap *tap = self;
    tap->below.trace->op_issued(tap->below.trace_self, id, part, stream, host_ns);
}

static void tap_span(void *self, const dbo_span *span)
{
    const dbo_tap *tap = self;
    if (tap->below.trace)
        tap->below.trace->span(tap->below.trace_self, span);
}

/* Without a slot below nothing is charged; what would have been is seen all the same. */
static void tap_charge(void *self, dbo_charge kind, uint32_t count)
{
    dbo_tap *tap = self;
    tap->charged[kind] += count;
    if (tap->below.host->charge)
        tap->below.host->charge(tap->below.host_self, kind, count);
}

static uint32_t tap_set_sms(void *self, uint32_t sms)
{
    dbo_tap *tap = self;
    dbo_tap_call call = {.kind = DBO_TAP_A2A_SMS, .number = sms};
    if (is_hooked(tap, DBO_TAP_A2A_SMS))
        before(tap, &call);
    call.number = tap->below.a2a->set_sms(tap->below.a2a_self, sms);
    call.status = DBO_OK;
    if (is_hooked(tap, DBO_TAP_A2A_SMS))
        after(tap, &call);
    return call.number;
}

/* The own sentence first. */
static dbo_status tap_status(void *self, dbo_error *err)
{
    dbo_tap *tap = self;
    dbo_status status = tap->refused;
    if (status == DBO_OK)
        return tap->below.device->status(tap->below.device_self, err);
    tap->refused = DBO_OK;
    return dbo_fail(err, status, tap->refused_hint, "%s", tap->refused_why);
}

dbo_status dbo_tap_refuse(dbo_tap *tap, dbo_status status, const char *hint, const char *sentence)
{
    tap->refused_hint = hint;
    tap->refused_why = sentence;
    return tap->refused = status;
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

/* The bit of a table of the seam, by where its pointer is. */
#define TABLE_BIT(table) (1u << offsetof(dbo_seam, table) / sizeof(void *))

/* The bits of tables that have a hooked call. */
static uint32_t hooked_tables(const dbo_tap *tap)
{
    static const uint32_t table_of[DBO_TAP_COUNT] = {
#define TABLE_OF(call, table, ...) TABLE_BIT(table),
        DBO_TAP_MAP(TABLE_OF)
#undef TABLE_OF
    };
    uint32_t tables = 0;
    for (uint32_t kind = 0; kind < DBO_TAP_COUNT; kind++)
        tables |= is_hooked(tap, (dbo_tap_kind)kind) ? table_of[kind] : 0;
    return tables;
}

/* Tables with optional slots: what was missing stays so, unless it is hooked. */
static void fill_tables(dbo_tap *tap)
{
    const dbo_seam *below = &tap->below;
    const dbo_trace_ops none = {0}, *traced = below->trace ? below->trace : &none;
    tap->host = (dbo_host_ops){.now_ns = tap_now_ns,
                               .charge = tap_charge,
                               .cancelled = below->host->cancelled ? tap_cancelled : NULL};
    if (below->a2a)
        tap->a2a = (dbo_a2a_ops){.caps = tap_caps,
                                 .set_sms = tap_set_sms,
                                 .post = tap_post,
                                 .counts = below->a2a->counts ? tap_counts : NULL,
                                 .finish = tap_finish,
                                 .abort = below->a2a->abort ? tap_abort : NULL};
    tap->group = (dbo_group_ops){.rank = tap_rank,
                                 .size = tap_size,
                                 .exchange = tap_exchange,
                                 .barrier = below->group->barrier ? tap_barrier : NULL};
    tap->trace = (dbo_trace_ops){
        .op_issued = traced->op_issued ? tap_op_issued : NULL,
        .span = tap_span,
        .mark = traced->mark || is_hooked(tap, DBO_TAP_MARK) ? tap_mark : NULL,
        .turn = traced->turn || is_hooked(tap, DBO_TAP_TURN) ? tap_turn : NULL,
        .memory = traced->memory || is_hooked(tap, DBO_TAP_MEMORY) ? tap_memory : NULL};
}

/* A refusal of either table is asked for at the device. */
#define SPEAKING (TABLE_BIT(device) | TABLE_BIT(a2a))

void dbo_tap_wrap(dbo_tap *tap, const dbo_tap_hooks *hooks, void *self, dbo_seam *seam)
{
    *tap = (dbo_tap){.self = self, .below = *seam, .hooks = hooks};
    for (uint32_t kind = 0; kind < DBO_TAP_COUNT; kind++)
        if (hooks->before[kind] || hooks->after[kind])
            tap->hooked |= 1u << kind;
    uint32_t tables = hooked_tables(tap);
    fill_tables(tap);
#define REPLACE(name, with)                         \
    if ((tables & TABLE_BIT(name)) && seam->name) { \
        seam->name = (with);                        \
        seam->name##_self = tap;                    \
    }
    if (tables & SPEAKING)
        tables |= TABLE_BIT(device);
    if (!seam->trace)
        seam->trace = tables & TABLE_BIT(trace) ? &tap->trace : NULL;
    if (hooks->counts_charges) {
        seam->host = &tap->host;
        seam->host_self = tap;
    }
    REPLACE(device, &device_table)
    REPLACE(mem, &mem_table)
    REPLACE(graph, &graph_table)
    REPLACE(a2a, &tap->a2a)
    REPLACE(group, &tap->group)
    REPLACE(trace, &tap->trace)
#undef REPLACE
}
