/* checker.c: calls become clocks. A call costs a join or two of 32 numbers, an access a comparison
 * for each line of work that touched the buffer; nothing is kept of what is over. */
#include "core/check/order/checker_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPTURE_POOL CHECK_POOLS /* pools of graphs are the streams' numbers above this */
#define LENT_POOL    0x200u      /* nobody allocates from it */
#define STATIC_POOL  0x201u

/* ---- names, buffers ---- */

static const char *intern(dbo_checker *checker, const char *text)
{
    const char *copy = dbo_arena_copy_string(&checker->names, text);
    checker->failed = checker->failed || !copy;
    return copy ? copy : "";
}

check_buffer *dbo_check_buffer_at(check_rank *rank, uint32_t buffer)
{
    uint32_t i = rank->num_buffers;
    if (dbo_vec_grow_zeroed(&rank->buffers, &rank->num_buffers, (uint64_t)buffer + 1,
                            sizeof *rank->buffers) != DBO_OK) {
        rank->checker->failed = true;
        return NULL;
    }
    for (; i < rank->num_buffers; i++)
        rank->buffers[i].name = "";
    return &rank->buffers[buffer];
}

static void begin_tenancy(check_rank *rank, uint32_t buffer, uint32_t pool, uint64_t bytes,
                          bool filled)
{
    check_buffer *b = &rank->buffers[buffer];
    b->tenancy =
        dbo_tenancy_begin(&rank->memory, b->name, buffer, pool, b->write_once ? UINT64_MAX : bytes);
    b->known = true;
    if (!b->tenancy)
        return;
    b->tenancy->filled = filled || b->read_only || b->write_once;
    b->tenancy->read_only = b->read_only;
    b->tenancy->write_once = b->write_once;
    b->tenancy->block = b->block;
}

static void take_buffer(check_rank *rank, const dbo_call *call)
{
    check_buffer *b = dbo_check_buffer_at(rank, call->number);
    bool lent = (call->other & 2u) != 0;
    if (!b || (lent && b->tenancy))
        return; /* a graph's output is what its capture left there */
    if (call->what && strcmp(b->name, call->what) != 0)
        b->name = intern(rank->checker, call->what);
    uint32_t pool = lent ? LENT_POOL : call->stream + (rank->capturing ? CAPTURE_POOL : 0);
    begin_tenancy(rank, call->number, pool, call->bytes, (call->other & 1u) != 0);
}

static void drop_buffer(check_rank *rank, const dbo_call *call)
{
    check_buffer *b = dbo_check_buffer_at(rank, call->number);
    dbo_clock announced = {0};
    if (!b || !b->tenancy)
        return;
    for (uint32_t s = 0; s < DBO_CLOCK_STREAMS; s++)
        if (b->tenancy->users >> s & 1u)
            dbo_clock_join(&announced, &rank->streams[s]);
    if (rank->capturing || b->tenancy->pool < CAPTURE_POOL)
        dbo_tenancy_end(&rank->memory, b->tenancy, &announced);
    b->tenancy = NULL;
}

/* The memory of an access; NULL: it has none, which is reported, or memory has run out. */
static dbo_tenancy *tenancy_of(check_rank *rank, const dbo_call *call, uint32_t buffer, bool write)
{
    check_buffer *b = dbo_check_buffer_at(rank, buffer);
    if (!b)
        return NULL;
    if (call->addresses && call->addresses[buffer] == 0) {
        dbo_check_no_memory(rank, b, call->id, write);
        return NULL;
    }
    if (!b->tenancy)
        begin_tenancy(rank, buffer, STATIC_POOL, UINT64_MAX, true);
    return b->tenancy;
}

/* ---- accesses ---- */

/* Each layer has places of its own in a cache. */
static uint64_t place_of(const dbo_tenancy *tenancy, const dbo_call *call, const dbo_access *access)
{
    uint64_t layer = tenancy->write_once ? dbo_op_id_layer(call->id) : 0;
    return access->offset_bytes + (layer << DBO_TENANCY_LAYER_BITS);
}

/* Once for each tenancy and capture. */
static void keep_captured(check_rank *rank, dbo_tenancy *tenancy, dbo_op_id id, bool write)
{
    check_graph *g = &rank->capture;
    if (tenancy->noted[write] == rank->num_captures)
        return;
    tenancy->noted[write] = rank->num_captures;
    if (DBO_VEC_PUSH(&g->accesses, (check_access){.buffer = tenancy->buffer,
                                                  .serial = tenancy->serial,
                                                  .id = id,
                                                  .write = write}) != DBO_OK)
        rank->checker->failed = true;
}

void dbo_check_reads(check_rank *rank, const dbo_call *call, uint32_t dim, uint32_t tick,
                     const dbo_clock *clock)
{
    const dbo_touch touch = {.id = call->id, .dim = (uint8_t)dim, .tick = tick};
    for (uint32_t i = 0; call->io && i < call->io->num_reads; i++) {
        const dbo_access *access = &call->io->reads[i];
        dbo_tenancy *t = tenancy_of(rank, call, access->buffer, false);
        if (!t)
            continue;
        dbo_tenancy_read(&rank->memory, t, place_of(t, call, access), access->bytes, &touch, clock);
        if (rank->caps.max_in_flight > 0 && !rank->buffers[access->buffer].handle)
            dbo_check_result_read(rank, t, &touch);
        if (rank->capturing)
            keep_captured(rank, t, call->id, false);
    }
}

void dbo_check_writes(check_rank *rank, const dbo_call *call, uint32_t dim, uint32_t tick,
                      uint32_t transfer, const dbo_clock *clock)
{
    const dbo_touch touch = {.id = call->id,
                             .dim = (uint8_t)dim,
                             .tick = tick,
                             .transfer = transfer,
                             .received = dim >= DBO_CLOCK_STREAMS};
    for (uint32_t i = 0; call->io && i < call->io->num_writes; i++) {
        const dbo_access *access = &call->io->writes[i];
        dbo_tenancy *t = tenancy_of(rank, call, access->buffer, true);
        if (!t)
            continue;
        dbo_tenancy_write(&rank->memory, t, place_of(t, call, access), access->bytes, &touch,
                          clock);
        if (rank->capturing)
            keep_captured(rank, t, call->id, true);
    }
}

/* ---- streams and events ---- */

dbo_clock *dbo_check_issue(check_rank *rank, uint32_t stream)
{
    dbo_clock *clock = &rank->streams[stream];
    if (rank->seen_changes[stream] != rank->host_changes) {
        dbo_clock_join(clock, &rank->host);
        rank->seen_changes[stream] = rank->host_changes;
    }
    clock->at[stream] = ++rank->ticks[stream];
    return clock;
}

static void run_op(check_rank *rank, const dbo_call *call)
{
    const dbo_clock *clock = dbo_check_issue(rank, call->stream);
    if (!call->io)
        return;
    dbo_check_reads(rank, call, call->stream, clock->at[call->stream], clock);
    dbo_check_writes(rank, call, call->stream, clock->at[call->stream], 0, clock);
}

static check_event *event_at(check_rank *rank, uint32_t event)
{
    if (dbo_vec_grow_zeroed(&rank->events, &rank->num_events, (uint64_t)event + 1,
                            sizeof *rank->events) == DBO_OK)
        return &rank->events[event];
    rank->checker->failed = true;
    return NULL;
}

static void create_event(check_rank *rank, const dbo_call *call)
{
    check_event *event = event_at(rank, call->number);
    if (event)
        event->recorded = false;
}

static void record_event(check_rank *rank, const dbo_call *call)
{
    check_event *event = event_at(rank, call->number);
    if (!event)
        return;
    event->recorded = true;
    event->clock = rank->streams[call->stream];
    dbo_clock_join(&event->clock, &rank->host);
}

/* What the latest record covers is over for the stream, or for the host. */
static void wait_event(check_rank *rank, dbo_clock *waiter, uint32_t number)
{
    const check_event *event = event_at(rank, number);
    if (event && event->recorded)
        dbo_clock_join(waiter, &event->clock);
    if (waiter == &rank->host)
        rank->host_changes++;
}

/* ---- captures ---- */

static void forbid(check_rank *rank, const dbo_call *call, const char *what)
{
    if (!rank->capturing)
        return;
    dbo_finding f = dbo_finding_of(DBO_FINDING_CAPTURE);
    f.rank = rank->id;
    f.step = rank->step;
    f.ubatch = call->ubatch == DBO_MARK_MAIN ? DBO_NOWHERE : call->ubatch;
    snprintf(f.what, sizeof f.what,
             "rank %u %s while a graph is captured: nothing of the graph runs before its end",
             rank->id, what);
    snprintf(f.fix, sizeof f.fix, "%s", "Wait before the capture or after its replay.");
    dbo_findings_add(&rank->checker->findings, &f);
}

/* The memory that a captured op touched, if it is still there. */
static dbo_tenancy *captured_tenancy(const check_rank *rank, const check_access *access)
{
    dbo_tenancy *t = rank->buffers[access->buffer].tenancy;
    return t && t->serial == access->serial ? t : NULL;
}

static void end_capture(check_rank *rank, const dbo_call *call, bool keep)
{
    check_graph *g = &rank->capture;
    rank->capturing = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->accesses.count;
         i++) /* those that ended in the capture are its own */
        if (captured_tenancy(rank, &g->accesses.items[i]))
            g->accesses.items[kept++] = g->accesses.items[i];
    g->accesses.count = kept;
    g->graph = call->number;
    if (keep && DBO_VEC_PUSH(&rank->graphs, *g) == DBO_OK) {
        *g = (check_graph){0};
        return;
    }
    rank->checker->failed = rank->checker->failed || keep;
    g->accesses.count = g->posts.count = 0;
}

static void replay_graph(check_rank *rank, const dbo_call *call)
{
    const dbo_clock *clock = dbo_check_issue(rank, call->stream);
    const check_graph *graph = NULL;
    for (uint32_t i = 0; i < rank->graphs.count; i++)
        if (rank->graphs.items[i].graph == call->number)
            graph = &rank->graphs.items[i];
    rank->replayed = true;
    if (graph)
        dbo_check_replayed_posts(rank, graph, call->other);
    for (uint32_t write = 0; write < 2 && graph; write++)
        for (uint32_t i = 0; i < graph->accesses.count; i++) {
            const check_access *a = &graph->accesses.items[i];
            const dbo_touch touch = {
                .id = a->id, .dim = (uint8_t)call->stream, .tick = clock->at[call->stream]};
            dbo_tenancy *t = captured_tenancy(rank, a);
            if (!t || a->write != (write == 1) || t->write_once)
                continue; /* a cache: a replay has other requests, whose places nobody tells */
            if (a->write)
                dbo_tenancy_write(&rank->memory, t, 0, 0, &touch, clock);
            else if (t->filled || t->ranges[0].writes.count > 0)
                dbo_tenancy_read(&rank->memory, t, 0, 0, &touch, clock);
        }
}

/* ---- calls ---- */

static void name_stream(check_rank *rank, const dbo_call *call)
{
    if (call->number < DBO_CLOCK_STREAMS)
        rank->stream_names[call->number] = intern(rank->checker, call->what ? call->what : "?");
    else
        rank->checker->too_many_streams = true;
}

static void use_buffer(check_rank *rank, const dbo_call *call)
{
    const check_buffer *b = dbo_check_buffer_at(rank, call->number);
    if (b && b->tenancy)
        b->tenancy->users |= UINT64_C(1) << call->stream;
}

static void host_call(check_rank *rank, const dbo_call *call)
{
    switch ((dbo_call_kind)call->kind) {
    case DBO_CALL_EVENT_QUERY:
        forbid(rank, call, "asks an event");
        if (call->status == DBO_OK && call->other)
            wait_event(rank, &rank->host, call->number);
        return;
    case DBO_CALL_HOST_WAIT:
        if (call->status == DBO_OK)
            wait_event(rank, &rank->host, call->number);
        return;
    case DBO_CALL_COUNTS:
        if (call->status == DBO_OK)
            dbo_check_counts(rank, call);
        return;
    case DBO_CALL_TURN: dbo_check_turn_event(rank, call); return;
    case DBO_CALL_STEP: dbo_check_step_mark(rank, call); return;
    default: return;
    }
}

static void device_call(check_rank *rank, const dbo_call *call)
{
    switch ((dbo_call_kind)call->kind) {
    case DBO_CALL_STREAM_CREATE: name_stream(rank, call); return;
    case DBO_CALL_EVENT_CREATE: create_event(rank, call); return;
    case DBO_CALL_RECORD: record_event(rank, call); return;
    case DBO_CALL_WAIT: wait_event(rank, &rank->streams[call->stream], call->number); return;
    case DBO_CALL_LAUNCH: run_op(rank, call); return;
    case DBO_CALL_POST:
        if (call->other != DBO_NO_EVENT)
            wait_event(rank, &rank->streams[call->stream], call->other);
        dbo_check_post(rank, call);
        return;
    case DBO_CALL_FINISH: dbo_check_finish(rank, call); return;
    case DBO_CALL_CAPTURE_BEGIN:
        rank->capturing = true;
        rank->num_captures++;
        return;
    case DBO_CALL_CAPTURE_END: end_capture(rank, call, true); return;
    case DBO_CALL_CAPTURE_ABANDON: end_capture(rank, call, false); return;
    case DBO_CALL_REPLAY: replay_graph(rank, call); return;
    case DBO_CALL_BUFFER_TAKE: take_buffer(rank, call); return;
    case DBO_CALL_BUFFER_DROP: drop_buffer(rank, call); return;
    case DBO_CALL_BUFFER_USE: use_buffer(rank, call); return;
    default: return;
    }
}

static void call_begins(check_rank *rank, const dbo_call *call)
{
    if (!rank->aborted) {
        rank->open = true;
        rank->waits_in = *call;
    }
    if (call->kind == DBO_CALL_HOST_WAIT)
        forbid(rank, call, "waits for an event");
    if (call->kind == DBO_CALL_COUNTS)
        forbid(rank, call, "waits for receive counts");
    if (call->kind == DBO_CALL_EXCHANGE)
        dbo_check_exchange_begins(rank);
}

static void watch(void *self, const dbo_call *call)
{
    dbo_checker *checker = self;
    bool in_order = call->rank < checker->num_ranks && checker->ranks[call->rank]->id == call->rank;
    uint32_t i = in_order ? call->rank : 0;
    while (i < checker->num_ranks && checker->ranks[i]->id != call->rank)
        i++;
    if (i == checker->num_ranks || call->stream >= DBO_CLOCK_STREAMS || checker->failed)
        return;
    check_rank *rank = checker->ranks[i];
    if (call->status == DBO_CALL_OPEN) {
        call_begins(rank, call);
        return;
    }
    if (call->status == DBO_ABORTED && !rank->aborted) {
        rank->aborted = rank->open = true;
        rank->waits_in = *call;
    }
    if (rank->open && rank->waits_in.kind == call->kind && call->status == DBO_OK)
        rank->open = rank->aborted;
    host_call(rank, call);
    if (call->status == DBO_OK)
        device_call(rank, call);
}

/* ---- the object ---- */

dbo_checker *dbo_checker_create(const dbo_check_options *options, dbo_error *err)
{
    dbo_checker *checker = calloc(1, sizeof *checker);
    if (dbo_need_memory(checker, "a checker", err) != DBO_OK)
        return NULL;
    if (options)
        checker->options = *options;
    checker->names.chunk_bytes = 4096;
    dbo_recorder_init(&checker->recorder, 0);
    checker->recorder.forgets = true;
    checker->recorder.watch = watch;
    checker->recorder.watch_self = checker;
    return checker;
}

static void destroy_graph(check_graph *graph)
{
    DBO_VEC_FINI(&graph->accesses);
    DBO_VEC_FINI(&graph->posts);
}

static void destroy_rank(check_rank *rank)
{
    dbo_check_memory_fini(&rank->memory);
    for (uint32_t i = 0; i < rank->graphs.count; i++)
        destroy_graph(&rank->graphs.items[i]);
    DBO_VEC_FINI(&rank->graphs);
    destroy_graph(&rank->capture);
    free(rank->events);
    free(rank->buffers);
    DBO_VEC_FINI(&rank->live);
    free(rank);
}

void dbo_checker_destroy(dbo_checker *checker)
{
    if (!checker)
        return;
    for (uint32_t i = 0; i < checker->num_ranks; i++)
        destroy_rank(checker->ranks[i]);
    for (uint32_t c = 0; c < DBO_MAX_UBATCHES; c++)
        DBO_VEC_FINI(&checker->comms[c]);
    free(checker->ranks);
    dbo_findings_fini(&checker->findings);
    dbo_recorder_fini(&checker->recorder);
    dbo_arena_fini(&checker->names);
    free(checker);
}

static dbo_status declare_buffers(check_rank *rank, dbo_error *err)
{
    const dbo_check_options *o = &rank->checker->options;
    for (uint32_t i = 0; i < o->num_buffers; i++) {
        check_buffer *b = dbo_check_buffer_at(rank, o->buffers[i].buffer);
        DBO_TRY(dbo_need_memory(b, "a checker", err));
        if (o->buffers[i].name)
            b->name = intern(rank->checker, o->buffers[i].name);
        b->read_only = o->buffers[i].read_only;
        b->write_once = o->buffers[i].write_once;
        b->block = o->buffers[i].block;
        b->handle = o->buffers[i].handle;
    }
    return DBO_OK;
}

dbo_status dbo_checker_attach(dbo_checker *checker, dbo_seam *seam, dbo_error *err)
{
    if (dbo_vec_grow(&checker->ranks, &checker->cap_ranks, (uint64_t)checker->num_ranks + 1,
                     sizeof(check_rank *)) != DBO_OK)
        return dbo_fail_memory(err, "a checker");
    check_rank *rank = calloc(1, sizeof *rank);
    DBO_TRY(dbo_need_memory(rank, "a checker", err));
    rank->checker = checker;
    rank->step = rank->posted_step = DBO_NOWHERE;
    rank->id = seam->group->rank(seam->group_self);
    if (seam->a2a)
        seam->a2a->caps(seam->a2a_self, &rank->caps);
    dbo_check_memory_init(&rank->memory, dbo_check_conflict, rank);
    dbo_status status = declare_buffers(rank, err);
    if (status == DBO_OK)
        status = dbo_recorder_wrap(&checker->recorder, seam, err);
    if (status != DBO_OK) {
        destroy_rank(rank);
        return status;
    }
    checker->ranks[checker->num_ranks++] = rank;
    return DBO_OK;
}

dbo_status dbo_checker_finish(dbo_checker *checker, dbo_status status, const dbo_error *error,
                              dbo_findings *out, dbo_error *err)
{
    bool failed = checker->failed || checker->findings.failed;
    if (checker->too_many_streams)
        return dbo_fail(err, DBO_LIMIT, NULL, "the checker follows %d streams of a rank at most",
                        DBO_CLOCK_STREAMS);
    for (uint32_t i = 0; i < checker->num_ranks && status == DBO_OK; i++) {
        dbo_check_memory_end(&checker->ranks[i]->memory);
        dbo_check_transfers_end(checker->ranks[i]);
    }
    if (status == DBO_DEADLOCK)
        dbo_check_deadlock(checker, error);
    for (uint32_t i = 0; i < checker->num_ranks; i++)
        failed = failed || checker->ranks[i]->memory.failed;
    dbo_findings_add_all(out, &checker->findings);
    dbo_findings_sort(out);
    return failed || out->failed ? dbo_fail_memory(err, "what a checker looks at") : DBO_OK;
}
