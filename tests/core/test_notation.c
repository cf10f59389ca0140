/* The notation of both built-in schedules, read off hand-made issues. */
#include "core/trace/notation.h"
#include "tests/support/hand_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef void (*printer)(const dbo_notation *, dbo_notation_style, dbo_strbuf *);

static void expect(const dbo_notation *n, printer print, dbo_notation_style style, const char *line)
{
    dbo_strbuf out = {0};
    print(n, style, &out);
    assert_false(out.failed);
    assert_string_equal(dbo_strbuf_text(&out), line);
    dbo_strbuf_fini(&out);
}

static const dbo_notation_style real = {0}, documents = {.exchange = true}, ascii = {.ascii = true};

typedef struct made {
    dbo_trace trace;
    hand h;
    dbo_notation notation;
} made;

static void make(made *m, void (*schedule)(hand *), uint32_t layers, uint32_t ubatches)
{
    dbo_error err;
    dbo_trace_init(&m->trace);
    hand_init(&m->h, &m->trace, layers, ubatches);
    schedule(&m->h);
    assert_int_equal(dbo_notation_init(&m->notation, &m->trace, 0, 0, &err), DBO_OK);
}

static void unmake(made *m)
{
    dbo_notation_fini(&m->notation);
    dbo_trace_fini(&m->trace);
}

static void ll_is_the_documents_schedule(void **state)
{
    (void)state;
    made m;
    make(&m, hand_ll, 4, 2);
    assert_true(m.notation.steady);
    assert_int_equal(m.notation.layer, 2);
    expect(&m.notation, dbo_notation_order, documents,
           "D₁ send, A0₀, A1₀, D₁ recv, D₀ send, MLP₁, D₀ recv, C₁ send, S₁, MLP₀, C₁ recv, "
           "C₀ send, S₀, A0₁, A1₁, C₀ recv.");
    expect(&m.notation, dbo_notation_comp, documents,
           "|-A0₀-A1₀-||-MLP₁-||-S₁-MLP₀-||-S₀-A0₁-A1₁-|");
    expect(&m.notation, dbo_notation_comm, documents,
           "|----D₁---||--D₀--||----C₁---||-----C₀-----|");
    expect(&m.notation, dbo_notation_order, real,
           "D₀ send, A0₁, A1₁, D₀ recv, D₁ send, MLP₀, D₁ recv, C₀ send, S₀, MLP₁, C₀ recv, "
           "C₁ send, S₁, A0₀, A1₀, C₁ recv.");
    expect(&m.notation, dbo_notation_comp, ascii,
           "|-A0_1-A1_1-||-MLP_0-||-S_0-MLP_1-||-S_1-A0_0-A1_0-|");
    expect(&m.notation, dbo_notation_comm, ascii,
           "|----D_0----||--D_1--||----C_0----||------C_1------|");
    unmake(&m);
}

static void ht_prints_its_own(void **state)
{
    (void)state;
    made m;
    make(&m, hand_ht, 4, 2);
    assert_true(m.notation.steady);
    expect(&m.notation, dbo_notation_order, real,
           "A0₀, A1₀, A0₁, A1₁, D₀, MLP₀, D₁, MLP₁, C₀, S₀, C₁, S₁.");
    expect(&m.notation, dbo_notation_order, documents,
           "A0₁, A1₁, A0₀, A1₀, D₁, MLP₁, D₀, MLP₀, C₁, S₁, C₀, S₀.");
    expect(&m.notation, dbo_notation_comp, real, "|-MLP₀-||-MLP₁-||-S₀-||-S₁-A0₀-A1₀-A0₁-A1₁-|");
    expect(&m.notation, dbo_notation_comm, real, "|--D₀--||--D₁--||-C₀-||---------C₁---------|");
    unmake(&m);
}

static void three_ubatches(void **state)
{
    (void)state;
    made m;
    make(&m, hand_ll, 4, 3);
    /* Exchanging labels means something for two only. */
    expect(&m.notation, dbo_notation_order, documents,
           "D₀ send, A0₁, A1₁, D₀ recv, D₁ send, A0₂, A1₂, D₁ recv, D₂ send, MLP₀, D₂ recv, "
           "C₀ send, S₀, MLP₁, C₀ recv, C₁ send, S₁, MLP₂, C₁ recv, C₂ send, S₂, A0₀, A1₀, "
           "C₂ recv.");
    expect(&m.notation, dbo_notation_comm, real,
           "|----D₀---||----D₁---||--D₂--||----C₀---||----C₁---||-----C₂-----|");
    unmake(&m);
    make(&m, hand_ht, 4, 3);
    expect(&m.notation, dbo_notation_order, real,
           "A0₀, A1₀, A0₁, A1₁, A0₂, A1₂, D₀, MLP₀, D₁, MLP₁, D₂, MLP₂, C₀, S₀, C₁, S₁, C₂, S₂.");
    unmake(&m);
}

static void unsplit_has_no_subscripts(void **state)
{
    (void)state;
    made m;
    make(&m, hand_ll, 4, 1);
    expect(&m.notation, dbo_notation_order, real,
           "D send, D recv, MLP, C send, S, C recv, A0, A1.");
    expect(&m.notation, dbo_notation_comp, real, "|-MLP-||-S-A0-A1-|");
    expect(&m.notation, dbo_notation_comm, real, "|--D--||----C----|");
    unmake(&m);
}

static void short_traces_say_that_they_are_not_steady(void **state)
{
    (void)state;
    made m;
    make(&m, hand_ll, 1, 2);
    assert_false(m.notation.steady);
    expect(&m.notation, dbo_notation_order, real,
           "D₀ send, A0₁, A1₁, D₀ recv, D₁ send, MLP₀, D₁ recv, C₀ send, S₀, MLP₁, C₀ recv, "
           "C₁ send, S₁, C₁ recv.");
    unmake(&m);
}

static void a_replayed_step_takes_its_order_from_the_capture(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_notation n;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 4, 2);
    h.step = 1;
    hand_ht(&h); /* an eager step before */
    hand_init(&h, &trace, 4, 2);
    h.step = 3;
    h.only_issues = true;
    hand_ll(&h); /* captured */
    hand_init(&h, &trace, 4, 2);
    h.step = 5;
    h.only_spans = true;
    hand_ll(&h); /* replayed */
    assert_int_equal(dbo_notation_init(&n, &trace, 0, 5, &err), DBO_OK);
    expect(&n, dbo_notation_comm, documents, "|----D₁---||--D₀--||----C₁---||-----C₀-----|");
    dbo_notation_fini(&n);
    assert_int_equal(dbo_notation_init(&n, &trace, 0, 2, &err), DBO_OK);
    expect(&n, dbo_notation_comm, real, "|--D₀--||--D₁--||-C₀-||---------C₁---------|");
    dbo_notation_fini(&n);
    dbo_trace_fini(&trace);
}

static void without_transfers_there_is_none(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_notation n;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 2, 1);
    hand_attention(&h, 0, 0);
    assert_int_equal(dbo_notation_init(&n, &trace, 0, 0, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "no transfer"));
    dbo_notation_fini(&n);
    dbo_trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ll_is_the_documents_schedule),
        cmocka_unit_test(ht_prints_its_own),
        cmocka_unit_test(three_ubatches),
        cmocka_unit_test(unsplit_has_no_subscripts),
        cmocka_unit_test(short_traces_say_that_they_are_not_steady),
        cmocka_unit_test(a_replayed_step_takes_its_order_from_the_capture),
        cmocka_unit_test(without_transfers_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
