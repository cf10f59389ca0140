/* Records come back as they went in, across chunks; text buffers grow and count columns. */
#include "core/base/strbuf.h"
#include "tests/support/hand_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RECORDS 150000u /* 19 chunks: the lone one, two groups, into a third */

static void records_come_back(void **state)
{
    (void)state;
    dbo_trace trace;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    for (uint32_t i = 0; i < RECORDS; i++) {
        dbo_op_id id = dbo_op_id_make(i & 7, 3, i % 61, i & 1, DBO_KIND_MLP, i & 0xffff);
        hand_span(&h, id, DBO_SPAN_RUN, i & 1, i, i + 10);
        h.host_ns = i;
        hand_issue(&h, id, DBO_SPAN_SEND, 5);
        hand_mark(&h, DBO_MARK_TURN, i & 1);
    }
    assert_int_equal(trace.num_spans, RECORDS);
    assert_int_equal(trace.num_issues, RECORDS);
    assert_int_equal(trace.num_marks, RECORDS);
    assert_false(trace.failed);
    const dbo_span *first = dbo_trace_span(&trace, 0);
    for (uint32_t i = 0; i < RECORDS; i++) {
        dbo_op_id id = dbo_op_id_make(i & 7, 3, i % 61, i & 1, DBO_KIND_MLP, i & 0xffff);
        const dbo_span *span = dbo_trace_span(&trace, i);
        assert_int_equal(span->id, id);
        assert_int_equal(span->end_ns - span->start_ns, 10);
        assert_int_equal(dbo_trace_issue(&trace, i)->host_ns, i);
        assert_int_equal(dbo_trace_issue(&trace, i)->part, DBO_SPAN_SEND);
        assert_int_equal(dbo_trace_mark(&trace, i)->ubatch, i & 1);
    }
    assert_ptr_equal(first, dbo_trace_span(&trace, 0)); /* addresses are stable */
    dbo_trace_fini(&trace);
    dbo_trace_fini(&trace);
}

static void issues_can_be_left_out(void **state)
{
    (void)state;
    dbo_trace trace;
    hand h;
    dbo_trace_init(&trace);
    trace.keep_issues = false;
    hand_init(&h, &trace, 2, 2);
    hand_ll(&h);
    assert_int_equal(trace.num_issues, 0);
    assert_int_equal(trace.num_marks, 0);
    assert_true(trace.num_spans > 0);
    dbo_trace_fini(&trace);
}

static void a_span_fits_in_32_bytes(void **state)
{
    (void)state;
    assert_int_equal(sizeof(dbo_span), 32);
    dbo_span span = {.bytes = (1ull << 40) - 1, .sms = 4095, .part = 15, .stream = 255};
    assert_int_equal(span.bytes, (1ull << 40) - 1);
    assert_int_equal(span.sms, 4095);
    assert_int_equal(span.part, 15);
    assert_int_equal(span.stream, 255);
    span.packed = UINT64_C(7) | UINT64_C(5) << 40 | UINT64_C(3) << 52 | UINT64_C(9) << 56;
    assert_int_equal(span.bytes, 7);
    assert_int_equal(span.sms, 5);
    assert_int_equal(span.part, 3);
    assert_int_equal(span.stream, 9);
}

static void text_grows(void **state)
{
    (void)state;
    dbo_strbuf buf = {0};
    assert_string_equal(dbo_strbuf_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        dbo_strbuf_printf(&buf, "%03d,", i);
    dbo_strbuf_add(&buf, "");
    dbo_strbuf_repeat(&buf, "₀", 300);
    assert_int_equal(buf.len, 1000 * 4 + 300 * 3);
    assert_int_equal(strlen(dbo_strbuf_text(&buf)), buf.len);
    assert_memory_equal(dbo_strbuf_text(&buf) + 4 * 999, "999,₀", 7);
    assert_int_equal(dbo_text_columns(dbo_strbuf_text(&buf)), 4300);
    dbo_strbuf_clear(&buf);
    assert_string_equal(dbo_strbuf_text(&buf), "");
    assert_false(buf.failed);
    dbo_strbuf_fini(&buf);
}

static void columns_are_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(dbo_text_columns("D₁ send"), 7);
    assert_int_equal(dbo_text_columns("\033[30;46mA0₀\033[0m"), 3);
    assert_int_equal(dbo_text_columns("\033[3"), 0); /* cut off */
    assert_int_equal(dbo_text_columns(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),       cmocka_unit_test(issues_can_be_left_out),
        cmocka_unit_test(a_span_fits_in_32_bytes), cmocka_unit_test(text_grows),
        cmocka_unit_test(columns_are_not_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
