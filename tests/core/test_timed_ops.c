/* test_timed_ops.c: what a trace says of the ops of a step: where each was, how often it was
 * interrupted, and how long it would have taken alone; every number worked out on paper. */
#include "core/check/lost/timed_ops.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define STEP    7u
#define COMPUTE 0u
#define COMM    1u

static dbo_op_id op(uint32_t step, uint32_t rank, uint32_t kind)
{
    return dbo_op_id_make(step, rank, 3, 1, kind, 0);
}

static void add(dbo_trace *trace, dbo_op_id id, dbo_span_part part, uint32_t stream, uint32_t sms,
                int64_t start_ns, int64_t end_ns)
{
    dbo_span span = {.id = id, .start_ns = start_ns, .end_ns = end_ns};
    span.part = (uint64_t)part & 0xfu;
    span.stream = stream & 0xffu;
    span.sms = sms & 0xfffu;
    dbo_trace_add_span(trace, &span);
}

static void read_ops(dbo_timed_ops *out, const uint32_t *ranks, uint32_t num_ranks,
                     const dbo_trace *trace, uint32_t total_sms)
{
    dbo_error err = {0};
    assert_int_equal(dbo_timed_ops_read(out, ranks, num_ranks, trace, STEP, total_sms, &err),
                     DBO_OK);
}

static void expect(const dbo_timed_ops *ops, uint32_t kind, dbo_span_part part, int64_t start_ns,
                   int64_t end_ns, int64_t work_ns, uint32_t sms, uint32_t pieces)
{
    const dbo_timed_op *found = dbo_timed_op_find(ops, op(9, 11, kind), part);
    assert_non_null(found);
    assert_int_equal(found->start_ns, start_ns);
    assert_int_equal(found->end_ns, end_ns);
    assert_int_equal(found->work_ns, work_ns);
    assert_int_equal(found->sms, sms);
    assert_int_equal(found->pieces, pieces);
}

/* Of this step, of the ranks that are asked for, in the order in which they are. */
static void a_step_has_its_own_spans_alone(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {5, 2};
    dbo_timed_ops ops[2];
    dbo_trace trace;
    dbo_trace_init(&trace);
    add(&trace, op(STEP - 1, 5, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 4, 10, 17);
    add(&trace, op(STEP, 5, DBO_KIND_MLP), DBO_SPAN_RUN, COMPUTE, 4, 100, 113);
    add(&trace, op(STEP, 3, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 4, 20, 27);
    add(&trace, op(STEP, 5, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 6, 50, 81);
    add(&trace, op(STEP, 2, DBO_KIND_A0), DBO_SPAN_RUN, COMM, 9, 60, 65);
    add(&trace, op(STEP, DBO_MAX_RANKS - 1, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 4, 30, 37);
    add(&trace, op(STEP + 1, 2, DBO_KIND_A1), DBO_SPAN_RUN, COMPUTE, 4, 120, 127);
    read_ops(ops, ranks, 2, &trace, 0);
    assert_int_equal(ops[0].count, 2);
    assert_int_equal(ops[1].count, 1);
    expect(&ops[0], DBO_KIND_A0, DBO_SPAN_RUN, 50, 81, 31, 6, 1);
    expect(&ops[0], DBO_KIND_MLP, DBO_SPAN_RUN, 100, 113, 13, 4, 1);
    expect(&ops[1], DBO_KIND_A0, DBO_SPAN_RUN, 60, 65, 5, 9, 1);
    assert_null(dbo_timed_op_find(&ops[1], op(STEP, 2, DBO_KIND_A1), DBO_SPAN_RUN));
    assert_null(dbo_timed_op_find(&ops[1], op(STEP, 2, DBO_KIND_A0), DBO_SPAN_SEND));
    dbo_timed_ops_fini(&ops[0]);
    dbo_timed_ops_fini(&ops[1]);
    assert_null(dbo_timed_op_find(&ops[0], op(STEP, 5, DBO_KIND_A0), DBO_SPAN_RUN));
    dbo_trace_fini(&trace);
}

/* A flight that waited for peers comes in pieces, which the trace may have in any order; the first
 * stands for it. The network has no SMs to take. */
static void a_flight_in_pieces_is_one(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    const dbo_op_id id = op(STEP, 0, DBO_KIND_DISPATCH), met = op(STEP, 0, DBO_KIND_NONE);
    dbo_timed_ops ops;
    dbo_trace trace;
    dbo_trace_init(&trace);
    add(&trace, id, DBO_SPAN_SEND, COMPUTE, 20, 3, 8);
    add(&trace, id, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, 20, 40, 51);
    add(&trace, id, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, 20, 4, 15);
    add(&trace, id, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, 20, 20, 33);
    add(&trace, id, DBO_SPAN_RECV, COMPUTE, 21, 60, 67);
    add(&trace, met, DBO_SPAN_RUN, COMM, 0, 80, 91);
    add(&trace, met, DBO_SPAN_RUN, COMM, 0, 95, 97);
    read_ops(&ops, ranks, 1, &trace, 132);
    assert_int_equal(ops.count, 4);
    expect(&ops, DBO_KIND_NONE, DBO_SPAN_RUN, 80, 91, 11, 0, 2);
    expect(&ops, DBO_KIND_DISPATCH, DBO_SPAN_SEND, 3, 8, 5, 20, 1);
    expect(&ops, DBO_KIND_DISPATCH, DBO_SPAN_FLIGHT, 4, 15, 11, 0, 3);
    expect(&ops, DBO_KIND_DISPATCH, DBO_SPAN_RECV, 60, 67, 7, 21, 1);
    assert_int_equal(ops.crowded_ns, 0);
    dbo_timed_ops_fini(&ops);
    dbo_trace_fini(&trace);
}

/* Of 100 SMs, 60 and 80 are asked for from 300 to 900: both go at 100/140 of their speed. */
static void who_shares_sms_had_less_work(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    dbo_timed_ops ops;
    dbo_trace trace;
    dbo_trace_init(&trace);
    add(&trace, op(STEP, 0, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 60, 17, 1000);
    add(&trace, op(STEP, 0, DBO_KIND_DISPATCH), DBO_SPAN_WAIT, COMM, 80, 300, 310);
    add(&trace, op(STEP, 0, DBO_KIND_DISPATCH), DBO_SPAN_RUN, COMM, 80, 310, 900);
    add(&trace, op(STEP, 0, DBO_KIND_A1), DBO_SPAN_RUN, COMPUTE, 40, 950, 975);
    add(&trace, op(STEP, 0, DBO_KIND_COPY), DBO_SPAN_RUN, COMPUTE, 0, 400, 411);
    add(&trace, op(STEP, 0, DBO_KIND_QUANT), DBO_SPAN_RUN, COMPUTE, 99, 500, 500);
    add(&trace, op(STEP, 0, DBO_KIND_MLP), DBO_SPAN_RUN, COMPUTE, 100, 1000, 1300);
    add(&trace, op(STEP, 0, DBO_KIND_COMBINE), DBO_SPAN_RUN, COMM, 1, 1200, 1207);
    read_ops(&ops, ranks, 1, &trace, 100);
    expect(&ops, DBO_KIND_A0, DBO_SPAN_RUN, 17, 1000, 812, 60, 1);       /* 383 + 600 / 1.4 */
    expect(&ops, DBO_KIND_DISPATCH, DBO_SPAN_WAIT, 300, 310, 7, 80, 1);  /* 10 / 1.4 */
    expect(&ops, DBO_KIND_DISPATCH, DBO_SPAN_RUN, 310, 900, 421, 80, 1); /* 590 / 1.4 */
    expect(&ops, DBO_KIND_A1, DBO_SPAN_RUN, 950, 975, 25, 40, 1);        /* 100 fit */
    expect(&ops, DBO_KIND_COPY, DBO_SPAN_RUN, 400, 411, 11, 0, 1);       /* asks for none */
    expect(&ops, DBO_KIND_QUANT, DBO_SPAN_RUN, 500, 500, 0, 99, 1);      /* for no time */
    expect(&ops, DBO_KIND_MLP, DBO_SPAN_RUN, 1000, 1300, 300, 100, 1);   /* 293 + 7 / 1.01 */
    expect(&ops, DBO_KIND_COMBINE, DBO_SPAN_RUN, 1200, 1207, 7, 1, 1);   /* 7 / 1.01, rounded */
    assert_int_equal(ops.crowded_ns, 600 + 7);
    dbo_timed_ops_fini(&ops);

    read_ops(&ops, ranks, 1, &trace, 0); /* of a device of which nothing is known */
    expect(&ops, DBO_KIND_A0, DBO_SPAN_RUN, 17, 1000, 983, 60, 1);
    assert_int_equal(ops.crowded_ns, 0);
    dbo_timed_ops_fini(&ops);
    dbo_trace_fini(&trace);
}

/* Two ask for the only SM there is: each has it half of the time. */
static void one_sm_is_shared_too(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0};
    dbo_timed_ops ops;
    dbo_trace trace;
    dbo_trace_init(&trace);
    add(&trace, op(STEP, 0, DBO_KIND_A0), DBO_SPAN_RUN, COMPUTE, 1, 10, 20);
    add(&trace, op(STEP, 0, DBO_KIND_COMBINE), DBO_SPAN_RUN, COMM, 1, 10, 11);
    read_ops(&ops, ranks, 1, &trace, 1);
    expect(&ops, DBO_KIND_A0, DBO_SPAN_RUN, 10, 20, 10, 1, 1); /* 9.5, rounded */
    expect(&ops, DBO_KIND_COMBINE, DBO_SPAN_RUN, 10, 11, 1, 1, 1);
    assert_int_equal(ops.crowded_ns, 1);
    dbo_timed_ops_fini(&ops);
    dbo_trace_fini(&trace);
}

static void a_step_without_spans_has_no_ops(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {4};
    dbo_timed_ops ops;
    dbo_trace trace;
    dbo_trace_init(&trace);
    read_ops(&ops, ranks, 1, &trace, 132);
    assert_int_equal(ops.count, 0);
    assert_null(dbo_timed_op_find(&ops, op(STEP, 4, DBO_KIND_A0), DBO_SPAN_RUN));
    dbo_timed_ops_fini(&ops);
    dbo_trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_its_own_spans_alone),
        cmocka_unit_test(a_flight_in_pieces_is_one),
        cmocka_unit_test(who_shares_sms_had_less_work),
        cmocka_unit_test(one_sm_is_shared_too),
        cmocka_unit_test(a_step_without_spans_has_no_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
