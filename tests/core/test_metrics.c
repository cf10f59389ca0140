/* Quantities of a step: worked out on paper for hand-made schedules, and compared with a count of
 * nanosecond by nanosecond on random small traces. */
#include "core/base/interval.h"
#include "core/trace/critical_path.h"
#include "core/trace/metrics.h"
#include "tests/support/hand_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(dbo_quantity quantity, double value)
{
    assert_true(quantity.present);
    double off = quantity.value - value;
    double size = value > 1 ? value : 1;
    assert_true(off < 1e-9 * size && off > -1e-9 * size);
}

static void measure(dbo_metrics *m, const dbo_trace *trace, uint64_t tokens)
{
    dbo_error err;
    assert_int_equal(dbo_metrics_compute(m, trace, 0, 0, tokens, &err), DBO_OK);
}

/* Unsplit LL: A0 20, A1 40, D 50, MLP 60, C 70 with S 10 inside: 240 a layer. */
static void unsplit_ll(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 5, 1);
    hand_ll(&h);
    h.host_ns = INT64_C(100) * 1000; /* the host was busy for 100 us, then waited */
    hand_end(&h);
    measure(&m, &trace, 120);
    expect(m.step_us, 5 * 240);
    expect(m.layer_us, 240);
    expect(m.compute_us, 5 * 130);
    expect(m.comm_us, 5 * 120);
    expect(m.exposed_comm_us, 5 * 110);
    expect(m.hidden_fraction, 10.0 / 120);
    expect(m.waiting_us, 0);
    expect(m.exposed_waiting_us, 0);
    expect(m.host_us, 100);
    expect(m.sum_bound_us, 5 * 130);
    expect(m.critical_path_us, 5 * 240); /* nothing could have been earlier */
    expect(m.bound_us, 5 * 240);
    expect(m.efficiency, 1);
    expect(m.tokens_per_s_per_gpu, 120 / 1200e-6);
    assert_true(m.has_steady_layer);
    assert_int_equal(m.steady_end_ns - m.steady_start_ns, 240 * 1000);
    dbo_trace_fini(&trace);
}

/* Two ubatches, HT, transfers that fit under compute: the compute stream never idles in steady
 * state: 2 * 130 a layer. */
static void split_ht_hides(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 8, 2);
    h.us[DBO_KIND_DISPATCH] = 30;
    h.us[DBO_KIND_COMBINE] = 30;
    h.us[DBO_KIND_LAYOUT] = 1;
    hand_ht(&h);
    hand_end(&h);
    measure(&m, &trace, 0);
    expect(m.layer_us, 260);
    expect(m.compute_us, 8 * 260);
    expect(m.comm_us, 8 * 120);
    assert_true(m.hidden_fraction.value > 0.9);
    assert_false(m.tokens_per_s_per_gpu.present);
    assert_true(m.critical_path_us.value >= m.compute_us.value);
    assert_true(m.bound_us.value <= m.step_us.value);
    dbo_trace_fini(&trace);
}

static void waiting_is_not_comm(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    dbo_op_id d = hand_id(&h, 0, 0, DBO_KIND_DISPATCH), c = hand_id(&h, 0, 0, DBO_KIND_COMBINE);
    hand_span(&h, d, DBO_SPAN_WAIT, 1, 0, 30000);    /* no byte moves */
    hand_span(&h, d, DBO_SPAN_RUN, 1, 30000, 50000); /* 20 us */
    hand_span(&h, c, DBO_SPAN_SEND, 0, 50000, 52000);
    hand_span(&h, c, DBO_SPAN_WAIT, 0, 60000, 90000); /* inside its own flight */
    hand_span(&h, c, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, 50000, 100000);
    hand_span(&h, c, DBO_SPAN_RECV, 0, 100000, 103000);
    hand_span(&h, hand_id(&h, 0, 0, DBO_KIND_A0), DBO_SPAN_RUN, 2, 10000, 40000);
    hand_span(&h, hand_id(&h, 0, 0, DBO_KIND_COPY), DBO_SPAN_RUN, 2, 40000, 95000);
    measure(&m, &trace, 0);
    expect(m.step_us, 103);   /* no marks: first to last span */
    expect(m.compute_us, 30); /* a copy is no compute */
    expect(m.waiting_us, 60);
    expect(m.exposed_waiting_us, 10 + 30);
    expect(m.comm_us, 20 + 20);
    expect(m.exposed_comm_us, 10 + 20);
    expect(m.hidden_fraction, 10.0 / 40);
    assert_false(m.host_us.present);
    assert_false(m.layer_us.present);
    assert_false(m.has_steady_layer);
    dbo_trace_fini(&trace);
}

static void nothing_traced_is_absent(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 3, 1);
    h.rank = 1;
    hand_ll(&h);
    measure(&m, &trace, 10); /* of rank 0 */
#define ABSENT(name, unit, what) assert_false(m.name.present);
    DBO_METRIC_MAP(ABSENT)
#undef ABSENT
    assert_false(dbo_metrics_speedup(&m, &m).present);
    dbo_trace_fini(&trace);

    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    hand_attention(&h, 0, 0);
    measure(&m, &trace, 10);
    expect(m.comm_us, 0);                    /* known: nothing moved */
    assert_false(m.hidden_fraction.present); /* of nothing */
    dbo_trace_fini(&trace);
}

static void parks_are_not_busy(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    const struct {
        int64_t us;
        dbo_mark_kind kind;
    } marks[] = {{0, DBO_MARK_PARK},        {5, DBO_MARK_UNPARK},    {10, DBO_MARK_STEP_BEGIN},
                 {20, DBO_MARK_PARK},       {24, DBO_MARK_UNPARK},   {30, DBO_MARK_TURN},
                 {31, DBO_MARK_PARK},       {60, DBO_MARK_STEP_END}, {61, DBO_MARK_UNPARK},
                 {100, DBO_MARK_STEP_BEGIN}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        h.host_ns = marks[i].us * 1000;
        h.step = i == 9 ? 1 : 0;
        hand_mark(&h, marks[i].kind, 0);
    }
    measure(&m, &trace, 0);
    expect(m.step_us, 50);
    expect(m.host_us, 50 - 4 - 29);
    dbo_trace_fini(&trace);
}

/* A dense layer among the first and an odd one in the middle do not move the median. */
static void the_median_layer(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    const int64_t starts[] = {0, 10, 20, 25, 125, 425, 525, 625};
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    for (uint32_t layer = 0; layer < 8; layer++) {
        int64_t at = starts[layer] * 1000;
        hand_span(&h, hand_id(&h, layer, 0, DBO_KIND_A0), DBO_SPAN_RUN, 0, at, at + 1000);
        hand_span(&h, hand_id(&h, layer, 1, DBO_KIND_A0), DBO_SPAN_RUN, 0, at + 1000, at + 2000);
        if (layer >= 3)
            hand_span(&h, hand_id(&h, layer, 0, DBO_KIND_DISPATCH), DBO_SPAN_RUN, 1, at, at + 1);
    }
    measure(&m, &trace, 0);
    expect(m.layer_us, 100); /* of 100 300 100 100: layer 2 (5 us) has no transfer */
    assert_int_equal(m.steady_layer, 5);
    dbo_trace_fini(&trace);
}

/* ---- against counting ---- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

#define SPAN_NS 64

typedef struct counted {
    bool compute[SPAN_NS], comm[SPAN_NS], waiting[SPAN_NS];
} counted;

/* A random trace: spans on three streams and flights, with the marks of what they mean. */
static void random_trace(hand *h, counted *c)
{
    const uint32_t kinds[] = {DBO_KIND_A0, DBO_KIND_MLP, DBO_KIND_COPY, DBO_KIND_DISPATCH,
                              DBO_KIND_COMBINE};
    memset(c, 0, sizeof *c);
    uint32_t num = draw(9);
    for (uint32_t i = 0; i < num; i++) {
        uint32_t kind = kinds[draw(5)];
        dbo_op_id id = dbo_op_id_make(0, 0, i, draw(2), kind, 0); /* ids of their own */
        uint32_t from = draw(SPAN_NS), to = from + draw(SPAN_NS - from + 1);
        bool comm = kind == DBO_KIND_DISPATCH || kind == DBO_KIND_COMBINE;
        hand_span(h, id, comm && draw(2) ? DBO_SPAN_FLIGHT : DBO_SPAN_RUN, draw(3), from, to);
        bool waits[SPAN_NS] = {false};
        for (uint32_t k = comm ? draw(3) : 0; k > 0; k--) {
            uint32_t w_from = draw(SPAN_NS), w_to = w_from + draw(SPAN_NS - w_from + 1);
            hand_span(h, id, DBO_SPAN_WAIT, 1, w_from, w_to);
            for (uint32_t t = w_from; t < w_to; t++)
                waits[t] = true;
        }
        for (uint32_t t = 0; t < SPAN_NS; t++) {
            bool in = t >= from && t < to;
            c->compute[t] |= in && !comm && kind != DBO_KIND_COPY;
            c->comm[t] |= in && comm && !waits[t];
            c->waiting[t] |= waits[t];
        }
    }
}

static void same_as_counting(void **state)
{
    (void)state;
    random_state = 7;
    for (int round = 0; round < 3000; round++) {
        dbo_trace trace;
        dbo_metrics m;
        hand h;
        counted c;
        dbo_trace_init(&trace);
        hand_init(&h, &trace, 1, 1);
        random_trace(&h, &c);
        measure(&m, &trace, 0);
        int compute = 0, comm = 0, exposed = 0, waiting = 0, exposed_waiting = 0;
        for (int t = 0; t < SPAN_NS; t++) {
            compute += c.compute[t];
            comm += c.comm[t];
            exposed += c.comm[t] && !c.compute[t];
            waiting += c.waiting[t];
            exposed_waiting += c.waiting[t] && !c.compute[t];
        }
        if (trace.num_spans > 0) {
            expect(m.compute_us, compute / 1000.0);
            expect(m.comm_us, comm / 1000.0);
            expect(m.exposed_comm_us, exposed / 1000.0);
            expect(m.waiting_us, waiting / 1000.0);
            expect(m.exposed_waiting_us, exposed_waiting / 1000.0);
            assert_int_equal(m.hidden_fraction.present, comm > 0);
            assert_true(m.critical_path_us.value <= m.step_us.value);
        }
        dbo_trace_fini(&trace);
    }
}

static void interval_differences(void **state)
{
    (void)state;
    dbo_error err;
    random_state = 3;
    for (int round = 0; round < 2000; round++) {
        dbo_intervals sets[3] = {{0}};
        bool in[2][SPAN_NS] = {{false}};
        for (uint32_t s = 0; s < 2; s++) {
            for (uint32_t i = draw(6); i > 0; i--) {
                uint32_t from = draw(SPAN_NS), to = draw(SPAN_NS);
                assert_int_equal(dbo_intervals_add(&sets[s], from, to, &err), DBO_OK);
                for (uint32_t t = from; t < to; t++)
                    in[s][t] = true;
            }
            dbo_intervals_normalise(&sets[s]);
        }
        assert_int_equal(dbo_intervals_subtract(&sets[0], &sets[1], &sets[2], &err), DBO_OK);
        int only = 0, both = 0;
        for (int t = 0; t < SPAN_NS; t++) {
            only += in[0][t] && !in[1][t];
            both += in[0][t] && in[1][t];
        }
        assert_int_equal(dbo_intervals_total_ns(&sets[2]), only);
        assert_int_equal(dbo_intervals_common_ns(&sets[0], &sets[1]), both);
        for (size_t i = 0; i + 1 < sets[2].count; i++)
            assert_true(sets[2].items[i].end_ns < sets[2].items[i + 1].start_ns);
        for (int s = 0; s < 3; s++)
            dbo_intervals_fini(&sets[s]);
    }
}

/* ---- the critical path ---- */

static int64_t path_us(const dbo_trace *trace)
{
    dbo_metrics m;
    measure(&m, trace, 0);
    return (int64_t)m.critical_path_us.value;
}

static void a_late_host_does_not_lengthen_the_path(void **state)
{
    (void)state;
    int64_t path = 0;
    for (int64_t issue_us = 0; issue_us <= 60; issue_us += 30) {
        dbo_trace trace;
        dbo_metrics m;
        hand h;
        dbo_trace_init(&trace);
        hand_init(&h, &trace, 4, 2);
        h.issue_ns = issue_us * 1000;
        hand_ht(&h);
        measure(&m, &trace, 0);
        if (issue_us == 0)
            path = path_us(&trace);
        assert_int_equal(path_us(&trace), path);
        if (issue_us == 60)
            assert_true(m.step_us.value > (double)path * 1.2);
        dbo_trace_fini(&trace);
    }
}

static void the_path_of_one_layer_by_hand(void **state)
{
    (void)state;
    dbo_trace trace;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 2);
    hand_ht(&h);
    /* compute: A 0-60, 60-120; comm: D0 60-110 (after A1_0), D1 120-170; MLP0 120-180 (FIFO),
     * MLP1 180-240; C0 180-250, C1 250-320; S0 240-250, S1 250-260. */
    assert_int_equal(path_us(&trace), 320);
    dbo_trace_fini(&trace);

    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 2);
    h.send_us = 3;
    h.recv_us = 4;
    hand_ll(&h);
    /* A_0 0-60; D0 send 60-63, flight to 110; A_1 63-123; D0 recv 123-127; D1 send 127-130, flight
     * to 177; MLP0 130-190; D1 recv 190-194; C0 send 194-197, flight to 264; S0 197-207; MLP1
     * 207-267; C0 recv 267-271; C1 send 271-274, flight to 341; S1 274-284; C1 recv 341-345. */
    assert_int_equal(path_us(&trace), 345);
    dbo_trace_fini(&trace);
}

static void ops_of_no_length_keep_the_path(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_metrics m;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 6, 2);  /* sends and receives take 0 */
    h.us[DBO_KIND_COMBINE] = 100; /* so that flights are what takes longest */
    hand_ll(&h);
    measure(&m, &trace, 0);
    expect(m.critical_path_us, m.step_us.value);
    dbo_trace_fini(&trace);
}

static void contradicted_edges_are_none(void **state)
{
    (void)state;
    dbo_trace trace;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    /* A1 began before A0 ended, on another stream: whatever ran, it did not wait. */
    hand_span(&h, hand_id(&h, 0, 0, DBO_KIND_A0), DBO_SPAN_RUN, 0, 0, 50000);
    hand_span(&h, hand_id(&h, 0, 0, DBO_KIND_A1), DBO_SPAN_RUN, 2, 10000, 55000);
    assert_int_equal(path_us(&trace), 50);
    dbo_trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsplit_ll),
        cmocka_unit_test(split_ht_hides),
        cmocka_unit_test(waiting_is_not_comm),
        cmocka_unit_test(nothing_traced_is_absent),
        cmocka_unit_test(parks_are_not_busy),
        cmocka_unit_test(the_median_layer),
        cmocka_unit_test(same_as_counting),
        cmocka_unit_test(interval_differences),
        cmocka_unit_test(a_late_host_does_not_lengthen_the_path),
        cmocka_unit_test(the_path_of_one_layer_by_hand),
        cmocka_unit_test(ops_of_no_length_keep_the_path),
        cmocka_unit_test(contradicted_edges_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
