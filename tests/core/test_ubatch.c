/* test_ubatch.c: the context API, call by call, over a seam that only writes down what it is asked.
 * A log line is one call: "0:R2@0" = ubatch 0 records event 2 on stream 0, "W" waits, "L" launches;
 * ubatch "-" is nobody's turn. Compute is stream 0, comm stream 1; ubatch u's compute_done is event
 * 2u, its comm_done 2u+1. */
#include "core/rank/rank.h"
#include "core/rank/ubatch.h"
#include "core/seam/null_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- the seam that writes ---- */

typedef struct fake {
    dbo_null_machine rest; /* what no test is about */
    char log[2048];
    size_t used;
    uint32_t num_streams, num_events, destroyed;
    uint32_t charges[DBO_CHARGE_COUNT];
    dbo_error refusal; /* what status() says */
    bool refuse_waits;
} fake;

static __attribute__((format(printf, 2, 3))) void note(fake *f, const char *format, ...)
{
    va_list args;
    const char *names = "0123456789", *who = dbo_enabled() ? names + dbo_current_ubatch_id() : "-";
    f->used += (size_t)snprintf(f->log + f->used, sizeof f->log - f->used,
                                "%s%.1s:", f->used ? " " : "", who);
    va_start(args, format);
    f->used += (size_t)vsnprintf(f->log + f->used, sizeof f->log - f->used, format, args);
    va_end(args);
    assert_true(f->used < sizeof f->log);
}

static int64_t now_ns(void *self)
{
    return (int64_t)((fake *)self)->used;
}
static void charge(void *self, dbo_charge kind, uint32_t count)
{
    ((fake *)self)->charges[kind] += count;
}
static dbo_status stream_create(void *self, const char *name, dbo_stream *out)
{
    (void)name;
    *out = ((fake *)self)->num_streams++;
    return DBO_OK;
}
static dbo_status event_create(void *self, dbo_event *out)
{
    *out = ((fake *)self)->num_events++;
    return DBO_OK;
}
static void event_destroy(void *self, dbo_event event)
{
    (void)event;
    ((fake *)self)->destroyed++;
}
static dbo_status record(void *self, dbo_event event, dbo_stream stream)
{
    note(self, "R%u@%u", event, stream);
    return DBO_OK;
}
static dbo_status wait_for(void *self, dbo_stream stream, dbo_event event)
{
    fake *f = self;
    if (f->refuse_waits)
        return dbo_fail(&f->refusal, DBO_DEVICE, NULL, "the device has fallen off");
    note(f, "W%u@%u", event, stream);
    return DBO_OK;
}
static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    (void)op;
    note(self, "L@%u", stream);
    return DBO_OK;
}
static dbo_status last_status(void *self, dbo_error *err)
{
    fake *f = self;
    dbo_status status = f->refusal.status;
    if (status != DBO_OK && err)
        *err = f->refusal;
    return status;
}
static void trace_span(void *self, const dbo_span *span)
{
    (void)self;
    (void)span;
}
static void trace_mark(void *self, const dbo_mark *mark)
{
    assert_int_equal(mark->kind, DBO_MARK_TURN);
    if (mark->ubatch == DBO_MARK_MAIN)
        note(self, "main");
    else
        note(self, "T%u", mark->ubatch);
}

static const dbo_host_ops host_ops = {.now_ns = now_ns, .charge = charge};
static const dbo_trace_ops trace_ops = {.span = trace_span, .mark = trace_mark};

/* ---- a rank over it ---- */

typedef struct bench {
    fake fake;
    dbo_device_ops device;
    dbo_rank rank;
    dbo_context *self;
} bench;

static void bench_open(bench *b, dbo_context_kind kind, bool turns)
{
    dbo_error err = {0};
    memset(b, 0, sizeof *b);
    b->self = dbo_context_adopt(kind, &err);
    assert_non_null(b->self);
    dbo_seam seam;
    dbo_null_machine_seam(&b->fake.rest, &seam);
    b->device = *seam.device;
    b->device.stream_create = stream_create;
    b->device.event_create = event_create;
    b->device.event_destroy = event_destroy;
    b->device.record = record;
    b->device.wait = wait_for;
    b->device.launch = launch;
    b->device.status = last_status;
    seam.host = &host_ops;
    seam.device = &b->device;
    seam.a2a = NULL;
    seam.trace = turns ? &trace_ops : NULL;
    seam.host_self = seam.device_self = seam.trace_self = &b->fake;
    assert_int_equal(dbo_rank_init(&b->rank, 0, &seam, kind, 4, NULL, &err), DBO_OK);
}

static void bench_close(bench *b)
{
    dbo_rank_fini(&b->rank);
    assert_int_equal(b->fake.destroyed, b->fake.num_events);
    dbo_context_destroy(b->self);
}

/* Runs fn in `count` ubatches, fibers and then threads; both must log this line and say this. */
static void expect(uint32_t count, dbo_ubatch_fn fn, dbo_status status, const char *log,
                   const char *message)
{
    for (int k = 0; k < 2; k++) {
        bench b;
        dbo_error err = {0};
        bench_open(&b, k == 0 ? DBO_CONTEXT_FIBER : DBO_CONTEXT_THREAD, false);
        assert_int_equal(dbo_ubatches_run(&b.rank, count, 9, fn, &b, &err), status);
        assert_string_equal(b.fake.log, log);
        if (message && !strstr(err.message, message))
            fail_msg("'%s' lacks '%s'", err.message, message);
        bench_close(&b);
    }
}

/* ---- streams ---- */

static void work(dbo_ubatch *u)
{
    u->rank->seam.device->launch(u->rank->seam.device_self, dbo_current_stream(), NULL);
}

static dbo_status yields(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    work(u);
    DBO_TRY(dbo_switch_to_comm());
    DBO_TRY(dbo_yield()); /* keeps the stream, touches no event */
    work(u);
    DBO_TRY(dbo_switch_to_compute());
    work(u);
    return DBO_OK;
}

static void a_yield_keeps_the_stream(void **state)
{
    (void)state;
    expect(2, yields, DBO_OK, "0:L@0 1:L@0 0:L@1 0:L@0 1:L@1 1:L@0", NULL);
    expect(1, yields, DBO_OK, "0:L@0 0:L@1 0:L@0", NULL);
}

static dbo_status there_and_back(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    work(u);
    DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
    work(u);
    DBO_TRY(dbo_yield_and_switch_from_comm_to_compute());
    work(u);
    return DBO_OK;
}

/* The record comes before the hand-off, the wait after it: ubatch 0's comm work waits for its own
 * compute, not for ubatch 1's. */
static void switching_with_a_yield(void **state)
{
    (void)state;
    expect(2, there_and_back, DBO_OK,
           "0:L@0 0:R0@0 1:L@0 1:R2@0 0:W0@1 0:L@1 0:R1@1 1:W2@1 1:L@1 1:R3@1 "
           "0:W1@0 0:L@0 1:W3@0 1:L@0",
           NULL);
}

static dbo_status syncs(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    DBO_TRY(dbo_switch_to_comm_sync());
    work(u);
    DBO_TRY(dbo_switch_to_compute_sync());
    work(u);
    DBO_TRY(dbo_switch_to_stream(u->comm));
    work(u);
    return dbo_get_previous_event(77); /* on compute, whatever is current */
}

static void switching_without_a_yield(void **state)
{
    (void)state;
    expect(2, syncs, DBO_OK,
           "0:R0@0 0:W0@1 0:L@1 0:R1@1 0:W1@0 0:L@0 0:L@1 0:R77@0 "
           "1:R2@0 1:W2@1 1:L@1 1:R3@1 1:W3@0 1:L@0 1:L@1 1:R77@0",
           NULL);
}

static dbo_status from_the_wrong_stream(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)u;
    (void)arg;
    (void)err;
    return dbo_yield_and_switch_from_comm_to_compute();
}

static dbo_status moved_during_its_yield(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    if (u->id == 1)
        u->ring[0].current_stream = u->comm;
    return dbo_yield_and_switch_from_compute_to_comm();
}

static dbo_status believes_in_another_stream(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    u->current_stream = u->comm; /* its thread is still on compute */
    return dbo_yield_and_switch_from_compute_to_comm();
}

static dbo_status has_another_forward_context(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    u->rank->forward = &u->ring[1].forward;
    return dbo_yield();
}

static void what_is_asserted(void **state)
{
    (void)state;
    expect(2, from_the_wrong_stream, DBO_REFUSED, "",
           "ubatch 0: yields and switches from a stream that is not current");
    expect(2, moved_during_its_yield, DBO_REFUSED, "0:R0@0 1:R2@0",
           "ubatch 0: was moved to another stream during its yield");
    expect(2, believes_in_another_stream, DBO_REFUSED, "0:R0@0",
           "ubatch 0: yields on another stream than its context's");
    expect(2, has_another_forward_context, DBO_REFUSED, "",
           "ubatch 0: yields while another ubatch's forward context is installed");
}

/* ---- hooks ---- */

static dbo_status hook(void *self, uint64_t arg)
{
    bench *b = self;
    note(&b->fake, "H%u", (unsigned)arg);
    return DBO_OK;
}

static dbo_status hook_on_me(void *self, uint64_t arg)
{
    (void)self;
    (void)arg;
    return dbo_register_recv_hook((dbo_recv_hook){.run = hook, .self = self, .arg = 99});
}

static dbo_recv_hook hook_of(void *arg, uint64_t number)
{
    return (dbo_recv_hook){.run = hook, .self = arg, .arg = number};
}

/* Registered by i, run by i+1 when it asks, once; a second one overwrites the first. */
static dbo_status registers(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    DBO_TRY(dbo_maybe_run_recv_hook());
    DBO_TRY(dbo_register_recv_hook(hook_of(arg, 10 + u->id)));
    DBO_TRY(dbo_register_recv_hook(hook_of(arg, 20 + u->id)));
    DBO_TRY(dbo_yield());
    DBO_TRY(dbo_maybe_run_recv_hook());
    return dbo_maybe_run_recv_hook();
}

static void the_next_runs_the_hook(void **state)
{
    (void)state;
    expect(2, registers, DBO_OK, "1:H20 0:H21", NULL);
    expect(3, registers, DBO_OK, "1:H20 2:H21 0:H22", NULL);
    expect(1, registers, DBO_OK, "0:H20", NULL); /* alone, the next one is me */
}

static dbo_status leaves_one_open(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    DBO_TRY(dbo_yield());
    if (u->id == 0)
        return dbo_register_recv_hook(hook_of(arg, 5));
    work(u);
    return DBO_OK;
}

/* The exit runs the pending hook outside of any ubatch, and before the turn goes on. */
static void the_exit_runs_a_pending_hook(void **state)
{
    (void)state;
    expect(2, leaves_one_open, DBO_OK, "1:L@0 -:H5", NULL);
    expect(3, leaves_one_open, DBO_OK, "1:L@0 -:H5 2:L@0", NULL);
}

static dbo_status registers_late(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    return u->id == 1 ? dbo_register_recv_hook(hook_of(arg, 5)) : DBO_OK;
}

static void nobody_hangs_a_hook_on_the_dead(void **state)
{
    (void)state;
    expect(2, registers_late, DBO_REFUSED, "",
           "ubatch 1: hangs its receive hook on an ubatch that has ended");
    expect(3, registers_late, DBO_OK, "-:H5", NULL); /* ubatch 2 has yet to run */
}

static dbo_status a_hook_registers(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    if (u->id == 0)
        DBO_TRY(dbo_register_recv_hook((dbo_recv_hook){.run = hook_on_me, .self = arg}));
    DBO_TRY(dbo_yield());
    DBO_TRY(dbo_maybe_run_recv_hook()); /* of 1: puts a hook on 0, which has ended */
    return DBO_OK;
}

static dbo_status failing_hook(void *self, uint64_t arg)
{
    bench *b = self;
    (void)arg;
    note(&b->fake, "H");
    return dbo_fail(&b->fake.refusal, DBO_DEVICE, NULL, "no bytes came");
}

static dbo_status runs_a_failing_hook(dbo_ubatch *u, void *arg, dbo_error *err)
{
    bench *b = arg;
    (void)err;
    if (u->id == 0)
        DBO_TRY(dbo_register_recv_hook((dbo_recv_hook){.run = failing_hook, .self = b}));
    DBO_TRY(dbo_yield());
    if (u->id == 0)
        return DBO_OK;
    dbo_status status = dbo_maybe_run_recv_hook();
    assert_int_equal(status, DBO_DEVICE);
    return dbo_maybe_run_recv_hook(); /* a failure left it set */
}

static dbo_status leaves_a_failing_hook(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    return u->id == 0 ? dbo_register_recv_hook((dbo_recv_hook){.run = failing_hook, .self = arg})
                      : DBO_OK;
}

static void hooks_may_fail(void **state)
{
    (void)state;
    expect(2, a_hook_registers, DBO_REFUSED, "", "an ubatch that has ended");
    expect(2, runs_a_failing_hook, DBO_DEVICE, "1:H 1:H", "ubatch 1: no bytes came");
    expect(2, leaves_a_failing_hook, DBO_DEVICE, "-:H", "ubatch 1: no bytes came");
}

/* ---- failures ---- */

static dbo_status fails_second(dbo_ubatch *u, void *arg, dbo_error *err)
{
    bench *b = arg;
    work(u);
    if (u->id == 1) {
        DBO_TRY(dbo_register_recv_hook(hook_of(arg, 1)));
        return dbo_fail(err, DBO_IO, NULL, "torn");
    }
    dbo_status status = dbo_yield();
    note(&b->fake, "%s", dbo_status_name(status));
    assert_int_equal(dbo_yield_and_switch_from_compute_to_comm(), DBO_ABORTED);
    return status;
}

/* Siblings are told; the hook that hangs on one of them is dropped, not run. */
static void a_failure_releases_the_siblings(void **state)
{
    (void)state;
    expect(2, fails_second, DBO_IO, "0:L@0 1:L@0 0:aborted 0:R0@0", "ubatch 1: torn");
}

static dbo_status waits_in_vain(dbo_ubatch *u, void *arg, dbo_error *err)
{
    bench *b = arg;
    (void)err;
    b->fake.refuse_waits = true;
    return u->id == 0 ? dbo_switch_to_comm_sync() : DBO_OK;
}

static void the_device_may_fail(void **state)
{
    (void)state;
    expect(2, waits_in_vain, DBO_DEVICE, "0:R0@0", "ubatch 0: the device has fallen off");
}

/* ---- outside, entering, turns ---- */

static void outside_nothing_happens(void **state)
{
    (void)state;
    bench b;
    for (int adopted = 0; adopted < 2; adopted++) {
        memset(&b, 0, sizeof b);
        if (adopted)
            bench_open(&b, DBO_CONTEXT_FIBER, true);
        assert_false(dbo_enabled());
        assert_int_equal(dbo_current_ubatch_id(), 0);
        assert_int_equal(dbo_current_stream(), 0);
        assert_int_equal(dbo_yield(), DBO_OK);
        assert_int_equal(dbo_yield_and_switch_from_compute_to_comm(), DBO_OK);
        assert_int_equal(dbo_yield_and_switch_from_comm_to_compute(), DBO_OK);
        assert_int_equal(dbo_switch_to_comm(), DBO_OK);
        assert_int_equal(dbo_switch_to_compute(), DBO_OK);
        assert_int_equal(dbo_switch_to_comm_sync(), DBO_OK);
        assert_int_equal(dbo_switch_to_compute_sync(), DBO_OK);
        assert_int_equal(dbo_switch_to_stream(1), DBO_OK);
        assert_int_equal(dbo_register_recv_hook(hook_of(&b, 1)), DBO_OK); /* dropped */
        assert_int_equal(dbo_maybe_run_recv_hook(), DBO_OK);
        assert_int_equal(dbo_get_previous_event(0), DBO_OK);
        assert_string_equal(b.fake.log, "");
        if (adopted)
            bench_close(&b);
    }
}

static dbo_status two_turns(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)arg;
    (void)err;
    assert_true(dbo_enabled());
    assert_int_equal(dbo_current_ubatch_id(), u->id);
    assert_int_equal(u->forward.step, 9);
    assert_int_equal(u->forward.ubatch, u->id);
    assert_ptr_equal(u->rank->forward, &u->forward);
    DBO_TRY(dbo_yield());
    assert_int_equal(dbo_current_ubatch_id(), u->id);
    assert_ptr_equal(u->rank->forward, &u->forward);
    return DBO_OK;
}

static void turns_are_marked_and_charged(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b;
        dbo_error err = {0};
        const dbo_forward_context outer = {.step = 1};
        bench_open(&b, k == 0 ? DBO_CONTEXT_FIBER : DBO_CONTEXT_THREAD, true);
        b.rank.forward = &outer;
        assert_int_equal(dbo_ubatches_run(&b.rank, 2, 9, two_turns, &b, &err), DBO_OK);
        assert_string_equal(b.fake.log, "0:T0 1:T1 0:T0 1:T1 -:main");
        assert_int_equal(b.fake.charges[DBO_CHARGE_HANDOFF], 2);
        assert_int_equal(b.fake.charges[DBO_CHARGE_EVENT], 0);
        assert_ptr_equal(b.rank.forward, &outer); /* given back */
        assert_int_equal(b.fake.num_events, 4);
        /* Fresh contexts each forward, the same events; more when there are more ubatches. */
        assert_int_equal(dbo_ubatches_run(&b.rank, 2, 9, there_and_back, &b, &err), DBO_OK);
        assert_int_equal(b.fake.num_events, 4);
        assert_int_equal(b.fake.charges[DBO_CHARGE_EVENT], 8);
        assert_int_equal(dbo_ubatches_run(&b.rank, 4, 9, two_turns, &b, &err), DBO_OK);
        assert_int_equal(b.fake.num_events, 8);
        assert_int_equal(dbo_ubatches_run(&b.rank, 5, 9, two_turns, &b, &err), DBO_LIMIT);
        assert_int_equal(dbo_ubatches_run(&b.rank, 17, 9, two_turns, &b, &err), DBO_LIMIT);
        assert_int_equal(dbo_ubatches_run(&b.rank, 0, 9, two_turns, &b, &err), DBO_LIMIT);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_yield_keeps_the_stream),
        cmocka_unit_test(switching_with_a_yield),
        cmocka_unit_test(switching_without_a_yield),
        cmocka_unit_test(what_is_asserted),
        cmocka_unit_test(the_next_runs_the_hook),
        cmocka_unit_test(the_exit_runs_a_pending_hook),
        cmocka_unit_test(nobody_hangs_a_hook_on_the_dead),
        cmocka_unit_test(hooks_may_fail),
        cmocka_unit_test(a_failure_releases_the_siblings),
        cmocka_unit_test(the_device_may_fail),
        cmocka_unit_test(outside_nothing_happens),
        cmocka_unit_test(turns_are_marked_and_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
