/* test_perf.c: what a watch over speed finds in a step of a few calls, on a machine whose clock and
 * spans are given; every figure was worked out on paper. Steps of whole worlds: test_perf_truth.c.
 */
#include "core/check/lost/perf.h"
#include "core/seam/null_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define STEP    3u
#define COMPUTE 0u
#define COMM    1u

/* ---- a machine with a clock ---- */

typedef struct machine {
    dbo_null_machine null;   /* first */
    int64_t now_ns, over_ns; /* the host that waits is told then */
} machine;

typedef struct hand {
    machine machine;
    dbo_seam seam;
    dbo_perf *perf;
    dbo_trace trace;
    dbo_findings findings;
    dbo_op_cost op_costs[8];
    dbo_a2a_cost a2a_costs[8];
    uint32_t num_costs;
} hand;

static int64_t now_ns(void *self)
{
    return ((machine *)self)->now_ns;
}

static dbo_status host_wait(void *self, dbo_event event)
{
    machine *m = self;
    (void)event;
    m->now_ns = m->over_ns;
    return DBO_OK;
}

static uint32_t total_sms(void *self)
{
    (void)self;
    return 100;
}

static void mark(hand *h, dbo_mark_kind kind, int64_t at_ns)
{
    const dbo_mark m = {.kind = (uint8_t)kind, .ubatch = DBO_MARK_MAIN, .step = STEP};
    h->machine.now_ns = at_ns;
    h->seam.trace->mark(h->seam.trace_self, &m);
}

static void begin(hand *h, int64_t at_ns)
{
    static dbo_host_ops host;
    static dbo_device_ops device;
    dbo_error err = {0};
    memset(h, 0, sizeof *h);
    dbo_null_machine_seam(&h->machine.null, &h->seam);
    host = *h->seam.host;
    device = *h->seam.device;
    host.now_ns = now_ns;
    device.host_wait = host_wait;
    device.total_sms = total_sms;
    h->seam.host = &host;
    h->seam.device = &device;
    dbo_trace_init(&h->trace);
    h->perf = dbo_perf_create(&err);
    assert_non_null(h->perf);
    assert_int_equal(dbo_perf_attach(h->perf, &h->seam, &err), DBO_OK);
    mark(h, DBO_MARK_STEP_BEGIN, at_ns);
}

static void end(hand *h)
{
    dbo_findings_fini(&h->findings);
    dbo_trace_fini(&h->trace);
    dbo_perf_destroy(h->perf);
}

static void span(hand *h, dbo_op_id id, uint32_t stream, uint32_t sms, int64_t start_ns,
                 int64_t end_ns)
{
    dbo_span s = {.id = id, .start_ns = start_ns, .end_ns = end_ns};
    s.stream = stream & 0xffu;
    s.sms = sms & 0xfffu;
    dbo_trace_add_span(&h->trace, &s);
}

/* An op of so many bytes, issued at a time, that ran at another. */
static void op(hand *h, dbo_op_kind kind, uint32_t stream, double bytes, int64_t at_ns,
               uint32_t sms, int64_t start_ns, int64_t end_ns)
{
    dbo_op_cost *cost = &h->op_costs[h->num_costs++];
    *cost = (dbo_op_cost){
        .fixed_ns = -1,
        .num_parts = 1,
        .parts = {{.kind = DBO_PART_STREAM, .hbm_bytes = bytes + 80, .weight_bytes = bytes}}};
    const dbo_op o = {
        .id = dbo_op_id_make(STEP, 0, 6, h->num_costs % 2, (uint32_t)kind, h->num_costs),
        .cost = cost};
    h->machine.now_ns = at_ns;
    assert_int_equal(h->seam.device->launch(h->seam.device_self, stream, &o), DBO_OK);
    span(h, o.id, stream, sms, start_ns, end_ns);
    *cost = (dbo_op_cost){0}; /* it lives no longer than its program */
}

static void dispatch(hand *h, uint32_t ubatch, uint32_t rows, int64_t at_ns, int64_t start_ns,
                     int64_t end_ns)
{
    dbo_a2a_cost *cost = &h->a2a_costs[h->num_costs++];
    *cost = (dbo_a2a_cost){.fixed_ns = -1, .tokens = rows};
    const dbo_a2a_args args = {.id = dbo_op_id_make(STEP, 0, 6, ubatch, DBO_KIND_DISPATCH, 0),
                               .direction = DBO_A2A_DISPATCH,
                               .stream = COMM,
                               .previous = DBO_NO_EVENT,
                               .cost = cost};
    dbo_a2a_handle handle;
    h->machine.now_ns = at_ns;
    assert_int_equal(h->seam.a2a->post(h->seam.a2a_self, &args, &handle), DBO_OK);
    span(h, args.id, COMM, 20, start_ns, end_ns);
    *cost = (dbo_a2a_cost){0};
}

/* The host waits until everything on the stream is over, and the step ends. */
static void wait_and_end(hand *h, uint32_t stream, int64_t at_ns, int64_t end_ns)
{
    dbo_event event;
    h->machine.now_ns = at_ns;
    h->machine.over_ns = end_ns;
    assert_int_equal(h->seam.device->event_create(h->seam.device_self, &event), DBO_OK);
    assert_int_equal(h->seam.device->record(h->seam.device_self, event, stream), DBO_OK);
    assert_int_equal(h->seam.device->host_wait(h->seam.device_self, event), DBO_OK);
    mark(h, DBO_MARK_STEP_END, end_ns);
}

static dbo_perf_about about_of(const hand *h, double step_us)
{
    return (dbo_perf_about){
        .trace = &h->trace, .step = STEP, .split = true, .step_us = step_us, .threshold = 0.02};
}

static void find(hand *h, const dbo_perf_about *about)
{
    dbo_error err = {0};
    dbo_findings_fini(&h->findings);
    h->findings = (dbo_findings){0};
    assert_int_equal(dbo_perf_find(h->perf, about, &h->findings, &err), DBO_OK);
}

static void expect(const hand *h, uint32_t i, dbo_finding_kind kind, double lost_us,
                   const char *what)
{
    assert_in_range(i, 0, h->findings.count - 1);
    const dbo_finding *f = &h->findings.items[i];
    assert_int_equal(f->kind, kind);
    assert_int_equal(f->rank, 0);
    assert_int_equal(f->step, STEP);
    assert_int_equal(f->num_ops, 0);
    /* shares of SMs are in fixed point */
    assert_true(f->lost_us > lost_us - 0.0015 && f->lost_us < lost_us + 0.0015);
    assert_string_equal(f->what, what);
    assert_true(f->fix[0] != '\0');
}

static void expect_replay(const hand *h, const dbo_perf_about *about, int64_t step_ns)
{
    dbo_error err = {0};
    int64_t ns = -1;
    assert_int_equal(dbo_perf_replay(h->perf, about, &ns, &err), DBO_OK);
    assert_int_equal(ns, step_ns);
}

/* ---- what is found ---- */

/* The device is idle until 9 us, and between 20 and 40: 4 us of its host are before issuing. */
static void the_device_waits_for_the_host(void **state)
{
    (void)state;
    hand h;
    begin(&h, 5000);
    op(&h, DBO_KIND_A0, COMPUTE, 0, 9000, 0, 9000, 20000);
    op(&h, DBO_KIND_A1, COMPUTE, 0, 40000, 0, 40000, 47000);
    wait_and_end(&h, COMPUTE, 41000, 47000);
    dbo_perf_about about = about_of(&h, 42);
    expect_replay(&h, &about, 42000);
    find(&h, &about);
    assert_int_equal(h.findings.count, 1);
    expect(&h, 0, DBO_FINDING_HOST_BOUND, 20,
           "the device waits for the host: if launches, events and hand-offs took no time, the "
           "step would be 20 us shorter");
    about.step_us = 40;
    about.threshold = 0.5; /* just as much */
    find(&h, &about);
    assert_int_equal(h.findings.count, 1);
    about.threshold = 20.001 / 40;
    find(&h, &about);
    assert_int_equal(h.findings.count, 0);
    about.threshold = 0.4;
    about.split = false; /* then it is no schedule of ubatches */
    find(&h, &about);
    assert_int_equal(h.findings.count, 0);
    about.split = true;
    about.rank = 1; /* which has no such step */
    find(&h, &about);
    assert_int_equal(h.findings.count, 0);
    end(&h);
}

/* Of 100 SMs, 80 and 45 are asked for from 2 to 12 us: each is done 10 / 1.25 = 8. */
static void kernels_slow_each_other_down(void **state)
{
    (void)state;
    hand h;
    begin(&h, 0);
    op(&h, DBO_KIND_A0, COMM, 0, 0, 80, 0, 20000);
    op(&h, DBO_KIND_A1, COMPUTE, 0, 2000, 45, 2000, 12000);
    op(&h, DBO_KIND_SHARED, COMPUTE, 0, 2000, 0, 12000, 30000);
    wait_and_end(&h, COMPUTE, 2000, 30000);
    const dbo_perf_about about = about_of(&h, 30);
    find(&h, &about);
    assert_int_equal(h.findings.count, 2);
    expect(&h, 0, DBO_FINDING_HOST_BOUND, 2,
           "the device waits for the host: if launches, events and hand-offs took no time, the "
           "step would be 2 us shorter");
    expect(&h, 1, DBO_FINDING_CONTENTION, 2,
           "for 10 us transfers and kernels that run at the same time ask for more than the 100 "
           "SMs of the device; if each had its own and none slowed another down, the step would "
           "be 2 us shorter: a partition saves a part of that");
    end(&h);
}

/* Ubatches of 30 and 20 rows, 38 tokens: 12 of the second are padding, so its dispatch takes 8 of
 * its 20 us, and its experts, of 80 bytes of rows and 120 of weights, 15.2 of their 20. Costs are
 * told apart: those of the other ubatch and of what is no expert do not change. */
static void padding_costs_what_its_rows_do(void **state)
{
    (void)state;
    static const uint64_t tokens[] = {38};
    hand h;
    begin(&h, 0);
    op(&h, DBO_KIND_MLP, COMPUTE, 900, 0, 0, 0, 5000); /* of ubatch 1: all of it weights, nearly */
    dispatch(&h, 0, 30, 0, 0, 10000);
    op(&h, DBO_KIND_MLP, COMM, 120, 0, 0, 10000, 30000);
    op(&h, DBO_KIND_SHARED, COMM, 0, 0, 0, 30000, 37000);
    dispatch(&h, 1, 20, 0, 37000, 57000);
    dispatch(&h, 2, 0, 0, 57000, 57000);
    wait_and_end(&h, COMM, 0, 57000);
    dbo_perf_about about = about_of(&h, 57);
    find(&h, &about); /* nobody says how many tokens there are */
    assert_int_equal(h.findings.count, 0);
    about.tokens = tokens;
    about.num_ranks = 1;
    find(&h, &about);
    assert_int_equal(h.findings.count, 1);
    expect(&h, 0, DBO_FINDING_PADDING_WASTE, 12 + 4.8,
           "each layer dispatches 50 rows for 38 tokens: 12 rows of padding travel and go through "
           "experts. Without them the step would be 17 us shorter");
    about.split = false;
    find(&h, &about);
    assert_int_equal(h.findings.count, 1);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_waits_for_the_host),
        cmocka_unit_test(kernels_slow_each_other_down),
        cmocka_unit_test(padding_costs_what_its_rows_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
