/* test_tensor.c: views of memory, and a step's inputs and outputs as views.
 *
 * Values say where they come from (row * 100 + column), so a wrong stride or offset is a wrong
 * number. Outputs are given in every order of finishing; the whole must not depend on it. */
#include "core/rank/inputs.h"
#include "core/rank/outputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define T 10
#define H 3

static void fill(int32_t *data, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            data[r * cols + c] = r * 100 + c;
}

static int32_t at(const dbo_tensor *t, int64_t row, int64_t col)
{
    int32_t value;
    assert_true(row >= 0 && row < t->rows && col >= 0 && col < t->cols);
    memcpy(&value, (const char *)t->data + row * t->row_bytes + col * t->col_bytes, sizeof value);
    return value;
}

/* ---- views ---- */

static void a_slice_of_a_slice(void **state)
{
    (void)state;
    int32_t data[5 * 7];
    fill(data, 5, 7);
    dbo_tensor t = dbo_tensor_matrix(data, 5, 7, 4), rows, cols;
    assert_int_equal(dbo_tensor_rows(&t, 1, 3, &rows, NULL), DBO_OK);
    assert_int_equal(dbo_tensor_cols(&rows, 2, 4, &cols, NULL), DBO_OK);
    assert_int_equal(cols.rows, 3);
    assert_int_equal(cols.cols, 4);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            assert_int_equal(at(&cols, r, c), (r + 1) * 100 + c + 2);
    assert_int_equal(dbo_tensor_rows(&cols, 3, 0, &cols, NULL), DBO_OK); /* in place; the end */
    assert_int_equal(cols.rows, 0);
}

static void slices_outside_are_refused(void **state)
{
    (void)state;
    int32_t data[12] = {0};
    dbo_error err;
    dbo_tensor t = dbo_tensor_matrix(data, 3, 4, 4), v = dbo_tensor_vector(data, 12, 4), out;
    const struct {
        int64_t first, count;
    } bad[] = {{-1, 1}, {0, 4}, {3, 1}, {4, 0}, {1, -1}, {1, INT64_MAX}, {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dbo_tensor_rows(&t, bad[i].first, bad[i].count, &out, &err), DBO_INVALID);
    assert_string_equal(err.message, "1 rows from 9223372036854775807 on, of a tensor that has 3");
    assert_int_equal(dbo_tensor_cols(&t, 0, 5, &out, &err), DBO_INVALID);
    assert_int_equal(dbo_tensor_cols(&v, 0, 1, &out, &err), DBO_INVALID);
    assert_int_equal(dbo_tensor_rows(&t, 3, 0, &out, &err), DBO_OK);
}

static void what_a_view_must_be(void **state)
{
    (void)state;
    int32_t data[4] = {0};
    dbo_error err;
    dbo_tensor none = {0}, t = dbo_tensor_matrix(NULL, 2, 2, 4);
    assert_int_equal(dbo_tensor_check(&none, "x", &err), DBO_OK);
    assert_int_equal(dbo_tensor_check(&t, "positions", &err), DBO_INVALID);
    assert_string_equal(err.message, "positions is (2, 2) and has no data");
    t = dbo_tensor_matrix(NULL, 0, 7168, 2);
    assert_int_equal(dbo_tensor_check(&t, "x", &err), DBO_OK);
    t = dbo_tensor_matrix(data, -1, 2, 4);
    assert_int_equal(dbo_tensor_check(&t, "x", &err), DBO_INVALID);
    t = dbo_tensor_vector(data, 4, 4);
    t.cols = 2;
    assert_int_equal(dbo_tensor_check(&t, "x", &err), DBO_INVALID);
    t.dims = 3;
    assert_int_equal(dbo_tensor_check(&t, "x", &err), DBO_INVALID);
}

static void copies_follow_strides(void **state)
{
    (void)state;
    int32_t from[3 * 4], to[4 * 3];
    fill(from, 3, 4);
    memset(to, 0xff, sizeof to);
    dbo_tensor a = dbo_tensor_matrix(from, 3, 4, 4);
    dbo_tensor transposed = {.data = to,
                             .rows = 3,
                             .cols = 4,
                             .row_bytes = 4,
                             .col_bytes = 12,
                             .elem_bytes = 4,
                             .dims = 2};
    assert_true(dbo_tensor_is_alike(&a, &transposed));
    dbo_tensor_copy(&transposed, &a);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            assert_int_equal(to[c * 3 + r], r * 100 + c);
    dbo_tensor empty = dbo_tensor_matrix(NULL, 0, 4, 4);
    dbo_tensor_copy(&empty, &empty);
}

/* ---- inputs ---- */

typedef struct step {
    int32_t ids[T], positions[3 * (T + 6)], embeds[T * H], hidden[T * H], residual[T * H];
    dbo_model_inputs inputs;
} step;

/* MRoPE positions are the first T columns of a larger buffer, as an engine keeps them. */
static void make_step(step *s)
{
    memset(s, 0, sizeof *s);
    fill(s->ids, T, 1);
    fill(s->positions, 3, T + 6);
    fill(s->embeds, T, H);
    fill(s->hidden, T, H);
    fill(s->residual, T, H);
    dbo_tensor buffer = dbo_tensor_matrix(s->positions, 3, T + 6, 4);
    s->inputs = (dbo_model_inputs){
        .num_tokens = T,
        .input_ids = dbo_tensor_vector(s->ids, T, 4),
        .inputs_embeds = dbo_tensor_matrix(s->embeds, T, H, 4),
        .num_intermediates = 2,
        .intermediates = {{"hidden_states", dbo_tensor_matrix(s->hidden, T, H, 4)},
                          {"residual", dbo_tensor_matrix(s->residual, T, H, 4)}}};
    assert_int_equal(dbo_tensor_cols(&buffer, 0, T, &s->inputs.positions, NULL), DBO_OK);
}

static void expect_tokens(const dbo_model_inputs *part, int first, int count)
{
    assert_int_equal(part->num_tokens, count);
    assert_int_equal(part->input_ids.rows, count);
    assert_int_equal(part->positions.rows, 3);
    assert_int_equal(part->positions.cols, count);
    assert_int_equal(part->inputs_embeds.rows, count);
    assert_int_equal(part->num_intermediates, 2);
    assert_string_equal(part->intermediates[1].name, "residual");
    for (int t = 0; t < count; t++) {
        assert_int_equal(at(&part->input_ids, t, 0), (first + t) * 100);
        for (int p = 0; p < 3; p++)
            assert_int_equal(at(&part->positions, p, t), p * 100 + first + t);
        for (int c = 0; c < H; c++) {
            assert_int_equal(at(&part->inputs_embeds, t, c), (first + t) * 100 + c);
            assert_int_equal(at(&part->intermediates[0].tensor, t, c), (first + t) * 100 + c);
            assert_int_equal(at(&part->intermediates[1].tensor, t, c), (first + t) * 100 + c);
        }
    }
}

static void every_input_along_its_axis(void **state)
{
    (void)state;
    step s;
    dbo_model_inputs part;
    make_step(&s);
    for (int first = 0; first <= T; first++)
        for (int stop = first; stop <= T; stop++) {
            assert_int_equal(dbo_inputs_slice(&s.inputs, first, stop, &part, NULL), DBO_OK);
            expect_tokens(&part, first, stop - first);
        }
    assert_int_equal(dbo_inputs_check(&part, NULL), DBO_OK); /* an empty part is inputs, too */
}

static void one_component_positions_are_rows(void **state)
{
    (void)state;
    step s;
    dbo_model_inputs part;
    make_step(&s);
    s.inputs.positions = dbo_tensor_vector(s.ids, T, 4);
    s.inputs.inputs_embeds = (dbo_tensor){0};
    assert_int_equal(dbo_inputs_slice(&s.inputs, 7, 10, &part, NULL), DBO_OK);
    assert_int_equal(part.positions.rows, 3);
    assert_int_equal(at(&part.positions, 2, 0), 900);
    assert_true(dbo_tensor_is_absent(&part.inputs_embeds));
}

/* N = 3 of 10 padded tokens, 7 real: the last ubatch has padding alone, or nothing at all. */
static void three_ubatches_with_padding(void **state)
{
    (void)state;
    step s;
    dbo_model_inputs parts[3];
    const int32_t scheduled[] = {4, 3};
    int32_t starts[3];
    dbo_ubatch_slice slices[3];
    make_step(&s);
    assert_int_equal(dbo_slice_prefix_sums(scheduled, 2, starts, NULL), DBO_OK);
    assert_int_equal(dbo_slice_make(starts, 2, T, 3, DBO_SPLIT_EVEN, slices, NULL), DBO_OK);
    assert_int_equal(dbo_inputs_split(&s.inputs, slices, 3, parts, NULL), DBO_INVALID);
    dbo_slice_pad(slices, 3, T, 2);
    assert_int_equal(dbo_inputs_split(&s.inputs, slices, 3, parts, NULL), DBO_OK);
    expect_tokens(&parts[0], 0, 3);
    expect_tokens(&parts[1], 3, 3);
    expect_tokens(&parts[2], 6, 4);
    slices[1].tok_stop = slices[2].tok_start = T;
    assert_int_equal(dbo_inputs_split(&s.inputs, slices, 3, parts, NULL), DBO_OK);
    expect_tokens(&parts[2], T, 0);
}

static void expect_split(const dbo_model_inputs *inputs, dbo_ubatch_slice a, dbo_ubatch_slice b,
                         const char *message)
{
    dbo_error err = {0};
    dbo_model_inputs parts[2];
    const dbo_ubatch_slice slices[] = {a, b};
    assert_int_equal(dbo_inputs_split(inputs, slices, 2, parts, &err), DBO_INVALID);
    assert_string_equal(err.message, message);
}

static void gaps_and_inverted_slices_are_named(void **state)
{
    (void)state;
    step s;
    make_step(&s);
    expect_split(&s.inputs, (dbo_ubatch_slice){0, 1, 0, 4}, (dbo_ubatch_slice){1, 2, 5, T},
                 "ubatch 1 begins at token 5, those before it end at 4");
    expect_split(&s.inputs, (dbo_ubatch_slice){0, 1, 0, 6}, (dbo_ubatch_slice){1, 2, 5, T},
                 "ubatch 1 begins at token 5, those before it end at 6");
    expect_split(&s.inputs, (dbo_ubatch_slice){0, 1, 0, 5}, (dbo_ubatch_slice){1, 2, 5, 9},
                 "the ubatches end at token 9 of a step of 10");
    expect_split(&s.inputs, (dbo_ubatch_slice){0, 1, 0, 5}, (dbo_ubatch_slice){1, 2, 5, 3},
                 "tokens [5, 3) of a step of 10");
    expect_split(&s.inputs, (dbo_ubatch_slice){0, 1, 0, 5}, (dbo_ubatch_slice){1, 2, 5, 11},
                 "tokens [5, 11) of a step of 10");
}

static void expect_inputs(const dbo_model_inputs *inputs, const char *message)
{
    dbo_error err = {0};
    assert_int_not_equal(dbo_inputs_check(inputs, &err), DBO_OK);
    assert_string_equal(err.message, message);
}

static void inputs_that_do_not_fit(void **state)
{
    (void)state;
    step s;
    make_step(&s);
    s.inputs.positions.cols = T + 6;
    expect_inputs(&s.inputs, "positions has 16 columns, the step has 10 tokens");
    make_step(&s);
    s.inputs.input_ids.rows = T - 1;
    expect_inputs(&s.inputs, "input_ids has 9 rows, the step has 10 tokens");
    s.inputs.input_ids = dbo_tensor_matrix(s.ids, 1, T, 4);
    expect_inputs(&s.inputs, "input_ids is a matrix; it has one id a token");
    make_step(&s);
    s.inputs.intermediates[1].tensor.rows = 4;
    expect_inputs(&s.inputs, "residual has 4 rows, the step has 10 tokens");
    s.inputs.intermediates[1].tensor = (dbo_tensor){0};
    expect_inputs(&s.inputs, "intermediate tensor 1 (residual) is absent");
    s.inputs.num_intermediates = DBO_MAX_INTERMEDIATES + 1;
    expect_inputs(&s.inputs, "9 intermediate tensors, 8 are possible");
    make_step(&s);
    s.inputs.input_ids = s.inputs.inputs_embeds = (dbo_tensor){0};
    assert_int_equal(dbo_inputs_check(&s.inputs, NULL), DBO_OK);
    s.inputs.num_intermediates = 0;
    expect_inputs(&s.inputs, "the model is called with nothing to compute from");
}

/* ---- outputs ---- */

/* A hidden state and two auxiliary ones, of other widths. */
typedef struct result {
    int32_t hidden[T * H], aux[2][T * 2];
    dbo_output output;
} result;

static void make_result(result *r)
{
    memset(r, 0xff, sizeof *r);
    r->output = (dbo_output){.num_components = 3,
                             .components = {dbo_tensor_matrix(r->hidden, T, H, 4),
                                            dbo_tensor_matrix(r->aux[0], T, 2, 4),
                                            dbo_tensor_matrix(r->aux[1], T, 2, 4)}};
}

static void compute(result *r, const dbo_ubatch_slice *slice)
{
    make_result(r);
    for (uint32_t c = 0; c < 3; c++) {
        dbo_tensor *t = &r->output.components[c];
        t->rows = slice->tok_stop - slice->tok_start;
        for (int64_t row = 0; row < t->rows; row++)
            for (int64_t col = 0; col < t->cols; col++) {
                int32_t value =
                    (int32_t)(c * 10000 + (uint32_t)(row + slice->tok_start) * 100 + (uint32_t)col);
                memcpy((char *)t->data + row * t->row_bytes + col * t->col_bytes, &value, 4);
            }
    }
}

static void expect_whole(const result *whole)
{
    for (uint32_t c = 0; c < 3; c++)
        for (int64_t row = 0; row < T; row++)
            for (int64_t col = 0; col < whole->output.components[c].cols; col++)
                assert_int_equal(at(&whole->output.components[c], row, col),
                                 c * 10000 + (uint32_t)row * 100 + (uint32_t)col);
}

static const dbo_ubatch_slice thirds[3] = {{0, 1, 0, 3}, {1, 2, 3, 6}, {2, 3, 6, T}};

static void by_id_whoever_finishes_first(void **state)
{
    (void)state;
    const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++) {
        result parts[3], whole;
        dbo_outputs outputs;
        dbo_outputs_init(&outputs, 3);
        for (int i = 0; i < 3; i++) {
            uint32_t u = orders[o][i];
            compute(&parts[u], &thirds[u]);
            assert_int_equal(dbo_outputs_give(&outputs, u, &parts[u].output, NULL), DBO_OK);
        }
        make_result(&whole);
        assert_int_equal(dbo_outputs_concat(&outputs, NULL, NULL, &whole.output, NULL), DBO_OK);
        expect_whole(&whole);
    }
}

static void an_empty_ubatch_adds_no_rows(void **state)
{
    (void)state;
    const dbo_ubatch_slice slices[3] = {{0, 1, 0, 4}, {1, 2, 4, T}, {2, 2, T, T}};
    result parts[3], whole;
    dbo_outputs outputs;
    dbo_outputs_init(&outputs, 3);
    for (uint32_t u = 0; u < 3; u++) {
        compute(&parts[u], &slices[u]);
        if (u == 2)
            for (uint32_t c = 0; c < 3; c++)
                parts[u].output.components[c].data = NULL;
        assert_int_equal(dbo_outputs_give(&outputs, u, &parts[u].output, NULL), DBO_OK);
    }
    make_result(&whole);
    assert_int_equal(dbo_outputs_concat(&outputs, NULL, NULL, &whole.output, NULL), DBO_OK);
    expect_whole(&whole);
}

typedef struct copier {
    uint32_t copies, fails_at;
} copier;

static dbo_status counted_copy(void *arg, const dbo_tensor *to, const dbo_tensor *from,
                               dbo_error *err)
{
    copier *c = arg;
    assert_true(dbo_tensor_is_alike(to, from));
    if (++c->copies == c->fails_at)
        return dbo_fail(err, DBO_DEVICE, NULL, "the copy engine is out");
    dbo_tensor_copy(to, from);
    return DBO_OK;
}

/* Ubatch 1 writes where its rows belong; the others are copied, by the caller's function. */
static void rows_in_their_place_are_left_alone(void **state)
{
    (void)state;
    result parts[3], whole;
    dbo_outputs outputs;
    copier copies = {0};
    dbo_outputs_init(&outputs, 3);
    make_result(&whole);
    for (uint32_t u = 0; u < 3; u++) {
        compute(&parts[u], &thirds[u]);
        dbo_output given = parts[u].output;
        if (u == 1) {
            assert_int_equal(dbo_output_part(&whole.output, &thirds[1], &given, NULL), DBO_OK);
            for (uint32_t c = 0; c < 3; c++)
                dbo_tensor_copy(&given.components[c], &parts[u].output.components[c]);
        }
        assert_int_equal(dbo_outputs_give(&outputs, u, &given, NULL), DBO_OK);
    }
    assert_int_equal(dbo_outputs_concat(&outputs, counted_copy, &copies, &whole.output, NULL),
                     DBO_OK);
    assert_int_equal(copies.copies, 6); /* 2 ubatches, 3 components */
    expect_whole(&whole);
    dbo_error err = {0};
    copies = (copier){.fails_at = 4};
    assert_int_equal(dbo_outputs_concat(&outputs, counted_copy, &copies, &whole.output, &err),
                     DBO_DEVICE);
    assert_int_equal(copies.copies, 4);
    assert_string_equal(err.message, "the copy engine is out");
}

static void expect_concat(const dbo_outputs *outputs, const char *message)
{
    result whole, untouched;
    dbo_error err = {0};
    make_result(&whole);
    make_result(&untouched);
    assert_int_equal(dbo_outputs_concat(outputs, NULL, NULL, &whole.output, &err), DBO_INVALID);
    assert_string_equal(err.message, message);
    assert_memory_equal(whole.hidden, untouched.hidden, sizeof whole.hidden);
    assert_memory_equal(whole.aux, untouched.aux, sizeof whole.aux);
}

static void outputs_that_do_not_fit(void **state)
{
    (void)state;
    result parts[3];
    dbo_error err = {0};
    dbo_outputs outputs;
    dbo_outputs_init(&outputs, 3);
    for (uint32_t u = 0; u < 3; u++)
        compute(&parts[u], &thirds[u]);
    assert_int_equal(dbo_outputs_give(&outputs, 0, &parts[0].output, NULL), DBO_OK);
    assert_int_equal(dbo_outputs_give(&outputs, 2, &parts[2].output, NULL), DBO_OK);
    expect_concat(&outputs, "ubatch 1 gave no output");
    assert_int_equal(dbo_outputs_give(&outputs, 2, &parts[2].output, &err), DBO_REFUSED);
    assert_string_equal(err.message, "ubatch 2 gives its output twice");
    assert_int_equal(dbo_outputs_give(&outputs, 3, &parts[2].output, &err), DBO_INVALID);
    parts[1].output.components[2] = (dbo_tensor){0};
    assert_int_equal(dbo_outputs_give(&outputs, 1, &parts[1].output, &err), DBO_INVALID);
    assert_string_equal(err.message, "component 2 of an output is absent");
    parts[1].output.num_components = 0;
    assert_int_equal(dbo_outputs_give(&outputs, 1, &parts[1].output, &err), DBO_LIMIT);
    parts[1].output.num_components = 2;
    assert_int_equal(dbo_outputs_give(&outputs, 1, &parts[1].output, &err), DBO_OK);
    expect_concat(&outputs, "ubatch 1 gave 2 components, the whole output has 3");
    compute(&parts[1], &thirds[1]);
    outputs.of[1] = parts[1].output;
    outputs.of[1].components[1].cols = 1;
    expect_concat(&outputs, "component 1 of ubatch 1 has 1 columns of 4 bytes in 2 dimensions, the "
                            "whole output 2 of 4 in 2");
    outputs.of[1] = parts[1].output;
    outputs.of[1].components[2].rows = 2;
    expect_concat(&outputs, "component 2 of the ubatches has 9 rows together, the whole 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_of_a_slice),
        cmocka_unit_test(slices_outside_are_refused),
        cmocka_unit_test(what_a_view_must_be),
        cmocka_unit_test(copies_follow_strides),
        cmocka_unit_test(every_input_along_its_axis),
        cmocka_unit_test(one_component_positions_are_rows),
        cmocka_unit_test(three_ubatches_with_padding),
        cmocka_unit_test(gaps_and_inverted_slices_are_named),
        cmocka_unit_test(inputs_that_do_not_fit),
        cmocka_unit_test(by_id_whoever_finishes_first),
        cmocka_unit_test(an_empty_ubatch_adds_no_rows),
        cmocka_unit_test(rows_in_their_place_are_left_alone),
        cmocka_unit_test(outputs_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
