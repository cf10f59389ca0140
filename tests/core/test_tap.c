/* test_tap.c: a tap forwards every slot with its arguments, keeps what is missing missing, and its
 * hooks see, change and refuse. */
#include "core/seam/tap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- a machine that writes down what it is asked ---- */

static char asked[4096];
static int device_self, mem_self, graph_self, a2a_self, group_self, trace_self, host_self;

__attribute__((format(printf, 3, 4))) static void note(const void *self, const void *wanted,
                                                       const char *format, ...)
{
    va_list args;
    size_t used = strlen(asked);
    assert_ptr_equal(self, wanted);
    va_start(args, format);
    vsnprintf(asked + used, sizeof asked - used, format, args);
    va_end(args);
}

#define NOTE(table, ...) note(self, &table##_self, __VA_ARGS__)

static int64_t now_ns(void *self)
{
    NOTE(host, "now ");
    return 41;
}
static void charge(void *self, dbo_charge kind, uint32_t count)
{
    NOTE(host, "charge %d %u ", (int)kind, count);
}
static bool cancelled(void *self)
{
    NOTE(host, "cancelled ");
    return true;
}
static dbo_status stream_create(void *self, const char *name, dbo_stream *out)
{
    NOTE(device, "stream %s ", name);
    *out = 7;
    return DBO_OK;
}
static dbo_status event_create(void *self, dbo_event *out)
{
    NOTE(device, "event ");
    *out = 8;
    return DBO_OK;
}
static void event_destroy(void *self, dbo_event event)
{
    NOTE(device, "destroy %u ", event);
}
static dbo_status record(void *self, dbo_event event, dbo_stream stream)
{
    NOTE(device, "record %u %u ", event, stream);
    return DBO_OK;
}
static dbo_status wait(void *self, dbo_stream stream, dbo_event event)
{
    NOTE(device, "wait %u %u ", stream, event);
    return DBO_DEVICE;
}
static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    NOTE(device, "launch %u %llu ", stream, (unsigned long long)op->id);
    return DBO_OK;
}
static dbo_status event_query(void *self, dbo_event event, bool *done)
{
    NOTE(device, "query %u ", event);
    *done = true;
    return DBO_OK;
}
static dbo_status host_wait(void *self, dbo_event event)
{
    NOTE(device, "host_wait %u ", event);
    return DBO_OK;
}
static dbo_status set_compute_sms(void *self, uint32_t sms)
{
    NOTE(device, "compute_sms %u ", sms);
    return DBO_OK;
}
static uint32_t total_sms(void *self)
{
    NOTE(device, "total ");
    return 132;
}
static dbo_status status(void *self, dbo_error *err)
{
    NOTE(device, "status ");
    return dbo_fail(err, DBO_DEVICE, NULL, "the machine's own");
}
static dbo_status mem_alloc(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    NOTE(mem, "alloc %llu %d ", (unsigned long long)bytes, (int)space);
    *address = 4096;
    return DBO_OK;
}
static void mem_free(void *self, uint64_t address)
{
    NOTE(mem, "free %llu ", (unsigned long long)address);
}
static void *ptr(void *self, uint64_t address)
{
    NOTE(mem, "ptr %llu ", (unsigned long long)address);
    return self;
}
static dbo_status begin(void *self, dbo_stream stream)
{
    NOTE(graph, "begin %u ", stream);
    return DBO_OK;
}
static bool is_capturing(void *self)
{
    NOTE(graph, "capturing ");
    return true;
}
static dbo_status end(void *self, dbo_graph *out)
{
    NOTE(graph, "end ");
    *out = 9;
    return DBO_OK;
}
static void abandon(void *self)
{
    NOTE(graph, "abandon ");
}
static dbo_status replay(void *self, dbo_graph graph, dbo_stream stream, uint32_t step)
{
    NOTE(graph, "replay %u %u %u ", graph, stream, step);
    return DBO_OK;
}
static void graph_destroy(void *self, dbo_graph graph)
{
    NOTE(graph, "graph_destroy %u ", graph);
}
static void caps(void *self, dbo_a2a_caps *out)
{
    NOTE(a2a, "caps ");
    *out = (dbo_a2a_caps){.queue_depth = 5};
}
static uint32_t set_sms(void *self, uint32_t sms)
{
    NOTE(a2a, "sms %u ", sms);
    return sms / 2;
}
static dbo_status post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    NOTE(a2a, "post %u %llu ", args->stream, (unsigned long long)args->id);
    *out = 10;
    return DBO_OK;
}
static dbo_status counts(void *self, dbo_a2a_handle handle)
{
    NOTE(a2a, "counts %u ", handle);
    return DBO_OK;
}
static dbo_status finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    NOTE(a2a, "finish %u %u ", handle, stream);
    return DBO_OK;
}
static void a2a_abort(void *self)
{
    NOTE(a2a, "abort ");
}
static uint32_t rank_of(void *self)
{
    NOTE(group, "rank ");
    return 3;
}
static uint32_t size_of(void *self)
{
    NOTE(group, "size ");
    return 4;
}
static dbo_status exchange(void *self, const char *tag, uint64_t sequence, const int32_t *column,
                           uint32_t rows, int32_t *matrix)
{
    NOTE(group, "exchange %s %llu %d %u ", tag, (unsigned long long)sequence, column[0], rows);
    matrix[0] = 77;
    return DBO_OK;
}
static dbo_status barrier(void *self)
{
    NOTE(group, "barrier ");
    return DBO_OK;
}
static void op_issued(void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream, int64_t ns)
{
    NOTE(trace, "issued %llu %d %u %lld ", (unsigned long long)id, (int)part, stream,
         (long long)ns);
}
static void span(void *self, const dbo_span *s)
{
    NOTE(trace, "span %lld ", (long long)s->start_ns);
}
static void mark(void *self, const dbo_mark *m)
{
    NOTE(trace, "mark %u ", m->step);
}
static void turn(void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    NOTE(trace, "turn %d %u %u ", (int)event, ubatch, arg);
}
static void memory(void *self, const dbo_memory_event *event)
{
    NOTE(trace, "memory %u ", event->buffer);
}

static const dbo_host_ops host = {.now_ns = now_ns, .charge = charge, .cancelled = cancelled};
static const dbo_host_ops bare_host = {.now_ns = now_ns};
static const dbo_device_ops device = {.stream_create = stream_create,
                                      .event_create = event_create,
                                      .event_destroy = event_destroy,
                                      .record = record,
                                      .wait = wait,
                                      .launch = launch,
                                      .event_query = event_query,
                                      .host_wait = host_wait,
                                      .set_compute_sms = set_compute_sms,
                                      .total_sms = total_sms,
                                      .status = status};
static const dbo_mem_ops mem = {.alloc = mem_alloc, .free = mem_free, .ptr = ptr};
static const dbo_graph_ops graph = {.begin = begin,
                                    .is_capturing = is_capturing,
                                    .end = end,
                                    .abandon = abandon,
                                    .replay = replay,
                                    .destroy = graph_destroy};
static const dbo_a2a_ops a2a = {.caps = caps,
                                .set_sms = set_sms,
                                .post = post,
                                .counts = counts,
                                .finish = finish,
                                .abort = a2a_abort};
static const dbo_a2a_ops bare_a2a = {
    .caps = caps, .set_sms = set_sms, .post = post, .finish = finish};
static const dbo_group_ops group = {
    .rank = rank_of, .size = size_of, .exchange = exchange, .barrier = barrier};
static const dbo_group_ops bare_group = {.rank = rank_of, .size = size_of, .exchange = exchange};
static const dbo_trace_ops trace = {
    .op_issued = op_issued, .span = span, .mark = mark, .turn = turn, .memory = memory};

static dbo_seam machine(void)
{
    asked[0] = '\0';
    return (dbo_seam){.host = &host,
                      .device = &device,
                      .mem = &mem,
                      .graph = &graph,
                      .a2a = &a2a,
                      .group = &group,
                      .trace = &trace,
                      .host_self = &host_self,
                      .device_self = &device_self,
                      .mem_self = &mem_self,
                      .graph_self = &graph_self,
                      .a2a_self = &a2a_self,
                      .group_self = &group_self,
                      .trace_self = &trace_self};
}

/* ---- every slot ---- */

static const char everything[] =
    "now charge 2 3 cancelled stream s event destroy 11 record 12 13 wait 14 15 launch 16 17 "
    "query 18 host_wait 19 compute_sms 20 total status alloc 21 1 free 22 ptr 23 begin 24 "
    "capturing end abandon replay 25 26 27 graph_destroy 28 caps sms 30 post 31 32 counts 33 "
    "finish 34 35 abort rank size exchange vote 36 37 1 barrier issued 38 1 39 40 span 41 mark 42 "
    "turn 1 43 44 memory 45 ";

static void call_device(const dbo_seam *s)
{
    void *self = s->device_self;
    uint32_t number;
    bool done = false;
    dbo_error err = {0};
    const dbo_op op = {.id = 17};
    assert_int_equal(s->device->stream_create(self, "s", &number), DBO_OK);
    assert_int_equal(number, 7);
    assert_int_equal(s->device->event_create(self, &number), DBO_OK);
    assert_int_equal(number, 8);
    s->device->event_destroy(self, 11);
    assert_int_equal(s->device->record(self, 12, 13), DBO_OK);
    assert_int_equal(s->device->wait(self, 14, 15), DBO_DEVICE);
    assert_int_equal(s->device->launch(self, 16, &op), DBO_OK);
    assert_int_equal(s->device->event_query(self, 18, &done), DBO_OK);
    assert_true(done);
    assert_int_equal(s->device->host_wait(self, 19), DBO_OK);
    assert_int_equal(s->device->set_compute_sms(self, 20), DBO_OK);
    assert_int_equal(s->device->total_sms(self), 132);
    assert_int_equal(s->device->status(self, &err), DBO_DEVICE);
    assert_string_equal(err.message, "the machine's own");
}

static void call_memory_and_graphs(const dbo_seam *s)
{
    uint64_t address;
    dbo_graph number;
    assert_int_equal(s->mem->alloc(s->mem_self, 21, DBO_SPACE_PINNED, &address), DBO_OK);
    assert_int_equal(address, 4096);
    s->mem->free(s->mem_self, 22);
    assert_ptr_equal(s->mem->ptr(s->mem_self, 23), &mem_self);
    assert_int_equal(s->graph->begin(s->graph_self, 24), DBO_OK);
    assert_true(s->graph->is_capturing(s->graph_self));
    assert_int_equal(s->graph->end(s->graph_self, &number), DBO_OK);
    assert_int_equal(number, 9);
    s->graph->abandon(s->graph_self);
    assert_int_equal(s->graph->replay(s->graph_self, 25, 26, 27), DBO_OK);
    s->graph->destroy(s->graph_self, 28);
}

static void call_peers(const dbo_seam *s)
{
    dbo_a2a_caps c;
    dbo_a2a_handle handle;
    int32_t column = 37, matrix = 0;
    const dbo_a2a_args args = {.id = 32, .stream = 31};
    s->a2a->caps(s->a2a_self, &c);
    assert_int_equal(c.queue_depth, 5);
    assert_int_equal(s->a2a->set_sms(s->a2a_self, 30), 15);
    assert_int_equal(s->a2a->post(s->a2a_self, &args, &handle), DBO_OK);
    assert_int_equal(handle, 10);
    assert_int_equal(s->a2a->counts(s->a2a_self, 33), DBO_OK);
    assert_int_equal(s->a2a->finish(s->a2a_self, 34, 35), DBO_OK);
    s->a2a->abort(s->a2a_self);
    assert_int_equal(s->group->rank(s->group_self), 3);
    assert_int_equal(s->group->size(s->group_self), 4);
    assert_int_equal(s->group->exchange(s->group_self, "vote", 36, &column, 1, &matrix), DBO_OK);
    assert_int_equal(matrix, 77);
    assert_int_equal(s->group->barrier(s->group_self), DBO_OK);
}

static void call_everything(const dbo_seam *s)
{
    assert_int_equal(s->host->now_ns(s->host_self), 41);
    s->host->charge(s->host_self, DBO_CHARGE_HANDOFF, 3);
    assert_true(s->host->cancelled(s->host_self));
    call_device(s);
    call_memory_and_graphs(s);
    call_peers(s);
    s->trace->op_issued(s->trace_self, 38, DBO_SPAN_WAIT, 39, 40);
    s->trace->span(s->trace_self, &(dbo_span){.start_ns = 41});
    s->trace->mark(s->trace_self, &(dbo_mark){.step = 42});
    s->trace->turn(s->trace_self, DBO_TURN_RESUME, 43, 44);
    s->trace->memory(s->trace_self, &(dbo_memory_event){.buffer = 45});
}

static uint32_t met[DBO_TAP_COUNT];

static dbo_status meet_before(dbo_tap *tap, dbo_tap_call *call)
{
    assert_ptr_equal(tap->self, met);
    met[call->kind] += 1;
    return DBO_OK;
}

static void meet_after(dbo_tap *tap, dbo_tap_call *call)
{
    assert_ptr_equal(tap->self, met);
    met[call->kind] += 16;
    assert_int_equal(call->status, call->kind == DBO_TAP_WAIT ? DBO_DEVICE : DBO_OK);
}

/* Hooked or not, one tap or two: the machine is asked the same and its answers arrive. */
static void everything_is_forwarded(void **state)
{
    (void)state;
    dbo_tap_hooks all = {.counts_charges = true}, one = {.after[DBO_TAP_FINISH] = meet_after};
    dbo_tap tap, other;
    dbo_seam seam = machine();
    call_everything(&seam);
    assert_string_equal(asked, everything);
    for (uint32_t i = 0; i < DBO_TAP_COUNT; i++) {
        all.before[i] = meet_before;
        all.after[i] = meet_after;
    }
    seam = machine();
    dbo_tap_wrap(&tap, &all, met, &seam);
    dbo_tap_wrap(&other, &one, met, &seam);
    call_everything(&seam);
    assert_string_equal(asked, everything);
    assert_int_equal(tap.charged[DBO_CHARGE_HANDOFF], 3);
    assert_int_equal(other.charged[DBO_CHARGE_HANDOFF], 0); /* it does not want to know */
    for (uint32_t i = 0; i < DBO_TAP_COUNT; i++)
        assert_int_equal(met[i], i == DBO_TAP_FINISH ? 1 + 16 + 16 : 1 + 16);
    /* a hook a kind: only that kind meets it, and the rest of its table passes */
    for (uint32_t i = 0; i < DBO_TAP_COUNT; i++) {
        dbo_tap_hooks single = {0};
        single.before[i] = meet_before;
        memset(met, 0, sizeof met);
        seam = machine();
        dbo_tap_wrap(&tap, &single, met, &seam);
        call_everything(&seam);
        assert_string_equal(asked, everything);
        for (uint32_t k = 0; k < DBO_TAP_COUNT; k++)
            assert_int_equal(met[k], k == i);
    }
}

/* ---- what is missing ---- */

static void what_is_missing_stays_missing(void **state)
{
    (void)state;
    static const dbo_tap_hooks calls = {.before = {[DBO_TAP_LAUNCH] = meet_before,
                                                   [DBO_TAP_POST] = meet_before,
                                                   [DBO_TAP_COUNTS] = meet_before,
                                                   [DBO_TAP_ABORT] = meet_before,
                                                   [DBO_TAP_ALLOC] = meet_before,
                                                   [DBO_TAP_REPLAY] = meet_before,
                                                   [DBO_TAP_BARRIER] = meet_before}};
    static const dbo_tap_hooks more = {.before = {[DBO_TAP_TURN] = meet_before},
                                       .counts_charges = true};
    dbo_tap tap, second;
    dbo_seam seam = machine();
    seam.host = &bare_host;
    seam.mem = NULL;
    seam.graph = NULL;
    seam.a2a = &bare_a2a;
    seam.group = &bare_group;
    seam.trace = NULL;
    dbo_tap_wrap(&tap, &calls, met, &seam);
    assert_ptr_equal(seam.host, &bare_host); /* no hook in it: as it was */
    assert_ptr_equal(seam.host_self, &host_self);
    assert_true(!seam.mem && !seam.graph && !seam.trace);
    assert_true(!seam.a2a->counts && !seam.a2a->abort && !seam.group->barrier);
    /* what has a hook is there although nobody is below */
    memset(met, 0, sizeof met);
    dbo_tap_wrap(&second, &more, met, &seam);
    assert_true(!seam.host->cancelled && !seam.trace->mark && !seam.trace->op_issued);
    seam.host->charge(seam.host_self, DBO_CHARGE_HANDOFF, 2);
    seam.trace->turn(seam.trace_self, DBO_TURN_EXIT, 1, 0);
    seam.trace->span(seam.trace_self, &(dbo_span){.start_ns = 1});
    assert_int_equal(second.charged[DBO_CHARGE_HANDOFF], 2);
    assert_int_equal(met[DBO_TAP_TURN], 1);
    assert_string_equal(asked, "");
    seam.a2a = NULL; /* and a seam that has no all-to-all at all */
    dbo_tap_wrap(&tap, &calls, met, &seam);
    assert_null(seam.a2a);
}

/* ---- hooks that act ---- */

static dbo_status refuse_second(dbo_tap *tap, dbo_tap_call *call)
{
    (void)call;
    if (++*(uint32_t *)tap->self < 2)
        return DBO_OK;
    return dbo_tap_refuse(tap, DBO_LIMIT, "Fewer.", "one is enough");
}

static void deepen(dbo_tap *tap, dbo_tap_call *call)
{
    (void)tap;
    ((dbo_a2a_caps *)call->out)->queue_depth += 1;
}

static void hide(dbo_tap *tap, dbo_tap_call *call)
{
    (void)tap;
    assert_int_equal(call->status, DBO_LIMIT);
    call->status = DBO_REFUSED;
}

static void hooks_refuse_and_change(void **state)
{
    (void)state;
    static const dbo_tap_hooks hooks = {.before[DBO_TAP_POST] = refuse_second,
                                        .after[DBO_TAP_CAPS] = deepen};
    static const dbo_tap_hooks outer = {.before[DBO_TAP_COUNTS] = refuse_second};
    dbo_tap_hooks hiding = {.before[DBO_TAP_POST] = refuse_second, .after[DBO_TAP_POST] = NULL};
    uint32_t posts = 0, waits = 0;
    dbo_a2a_handle handle = 0;
    dbo_a2a_caps c;
    dbo_error err = {0};
    dbo_tap tap, around;
    dbo_seam seam = machine();
    const dbo_a2a_args args = {.id = 1, .stream = 2};
    dbo_tap_wrap(&tap, &hooks, &posts, &seam);
    dbo_tap_wrap(&around, &outer, &waits, &seam);
    seam.a2a->caps(seam.a2a_self, &c);
    assert_int_equal(c.queue_depth, 6);
    assert_int_equal(seam.a2a->post(seam.a2a_self, &args, &handle), DBO_OK);
    assert_int_equal(handle, 10);
    handle = 0;
    assert_int_equal(seam.a2a->post(seam.a2a_self, &args, &handle), DBO_LIMIT);
    assert_int_equal(handle, 0); /* the machine was not asked */
    assert_string_equal(asked, "caps post 2 1 ");
    assert_int_equal(seam.device->status(seam.device_self, &err), DBO_LIMIT);
    assert_string_equal(err.message, "one is enough");
    assert_string_equal(err.hint, "Fewer.");
    assert_int_equal(seam.device->status(seam.device_self, &err), DBO_DEVICE); /* asked once */
    seam = machine();
    posts = 1;
    hiding.after[DBO_TAP_POST] = hide;
    dbo_tap_wrap(&tap, &hiding, &posts, &seam);
    assert_int_equal(seam.a2a->post(seam.a2a_self, &args, &handle), DBO_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_forwarded),
        cmocka_unit_test(what_is_missing_stays_missing),
        cmocka_unit_test(hooks_refuse_and_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
