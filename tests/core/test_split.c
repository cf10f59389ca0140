/* test_split.c: cutting a batch: slices, the exact metadata split, the tolerant one.
 *
 * The tolerant split is compared with a token-by-token model that knows no searches, and the exact
 * one with the tolerant one wherever both apply.
 */
#include "core/base/prng.h"
#include "core/decide/attn_metadata.h"
#include "core/decide/slice.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define MAX_REQS     24
#define MAX_UBATCHES 6

static void assert_slice(const dbo_ubatch_slice *slice, int32_t req_start, int32_t req_stop,
                         int32_t tok_start, int32_t tok_stop)
{
    assert_int_equal(slice->req_start, req_start);
    assert_int_equal(slice->req_stop, req_stop);
    assert_int_equal(slice->tok_start, tok_start);
    assert_int_equal(slice->tok_stop, tok_stop);
}

static void cut(const int32_t *scheduled, int32_t reqs, int32_t padded, int32_t ubatches,
                int32_t split, dbo_ubatch_slice *slices)
{
    int32_t starts[MAX_REQS + 1];
    assert_true(reqs <= MAX_REQS);
    assert_int_equal(dbo_slice_prefix_sums(scheduled, reqs, starts, NULL), DBO_OK);
    assert_int_equal(dbo_slice_make(starts, reqs, padded, ubatches, split, slices, NULL), DBO_OK);
}

static void the_remainder_lands_in_the_last_slice(void **state)
{
    (void)state;
    const int32_t scheduled[] = {5, 7, 8, 15, 30};
    dbo_ubatch_slice s[3];
    cut(scheduled, 5, 65, 3, DBO_SPLIT_EVEN, s);
    assert_slice(&s[0], 0, 4, 0, 21);
    assert_slice(&s[1], 3, 5, 21, 42);
    assert_slice(&s[2], 4, 5, 42, 65);
    dbo_slice_pad(s, 3, 72, 9);
    assert_slice(&s[1], 3, 5, 21, 42);
    assert_slice(&s[2], 4, 9, 42, 72);
}

static void padding_that_swallows_an_ubatch_gives_odd_slices(void **state)
{
    (void)state;
    const int32_t ten[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    dbo_ubatch_slice s[4];
    cut(ten, 10, 64, 2, DBO_SPLIT_EVEN, s);
    assert_slice(&s[0], 0, 11, 0, 32);
    assert_slice(&s[1], 10, 10, 32, 10);
    assert_int_equal(dbo_slice_num_tokens(&s[1]), -22);
    assert_true(dbo_slice_is_empty(&s[1]));
    dbo_slice_pad(s, 2, 64, 64);
    assert_slice(&s[1], 10, 64, 32, 64);
    cut(ten, 10, 64, 4, DBO_SPLIT_EVEN, s);
    assert_slice(&s[1], 10, 11, 16, 32);
    assert_slice(&s[3], 10, 10, 48, 10);
    cut(ten, 1, 1, 2, DBO_SPLIT_EVEN, s);
    assert_slice(&s[0], 0, 0, 0, 0);
    assert_slice(&s[1], 0, 1, 0, 1);
}

static void requests_without_tokens_are_dropped_in_front_only(void **state)
{
    (void)state;
    const int32_t scheduled[] = {0, 0, 4, 0, 4, 0};
    dbo_ubatch_slice s[2];
    cut(scheduled, 6, 8, 2, DBO_SPLIT_EVEN, s);
    assert_slice(&s[0], 2, 3, 0, 4);
    assert_slice(&s[1], 4, 5, 4, 8);
}

static void an_explicit_distance_moves_the_cuts(void **state)
{
    (void)state;
    const int32_t scheduled[] = {8, 8};
    dbo_ubatch_slice s[3];
    cut(scheduled, 2, 16, 3, 3, s);
    assert_slice(&s[1], 0, 1, 3, 6);
    assert_slice(&s[2], 0, 2, 6, 16);
    cut(scheduled, 2, 16, 2, 0, s);
    assert_slice(&s[0], 0, 0, 0, 0);
    cut(scheduled, 2, 16, 1, DBO_SPLIT_EVEN, s);
    assert_slice(&s[0], 0, 2, 0, 16);
}

static void what_cannot_be_cut_is_refused(void **state)
{
    (void)state;
    const int32_t starts[] = {0, 4}, negative[] = {1, -1}, huge[] = {INT32_MAX, 1};
    int32_t sums[3];
    dbo_ubatch_slice s[4];
    dbo_error err = {0};
    assert_int_equal(dbo_slice_make(starts, 1, 4, 0, DBO_SPLIT_EVEN, s, &err), DBO_INVALID);
    assert_int_equal(dbo_slice_make(starts, 1, 4, 2, -5, s, &err), DBO_INVALID);
    assert_int_equal(dbo_slice_make(starts, 1, 4, 4, INT32_MAX, s, &err), DBO_LIMIT);
    assert_int_equal(dbo_slice_prefix_sums(negative, 2, sums, &err), DBO_INVALID);
    assert_int_equal(dbo_slice_prefix_sums(huge, 2, sums, &err), DBO_LIMIT);
}

/* --- random batches ------------------------------------------------------------------------ */

typedef struct batch {
    int32_t scheduled[MAX_REQS], lengths[MAX_REQS], starts[MAX_REQS + 1];
    dbo_ubatch_batch view;
} batch;

static void random_batch(dbo_prng *prng, batch *b)
{
    int32_t reqs = (int32_t)prng_range(prng, 0, 10);
    int32_t longest = (int32_t)prng_range(prng, 1, 12);
    for (int32_t r = 0; r < reqs; r++) {
        b->scheduled[r] = (int32_t)prng_range(prng, 1, longest);
        b->lengths[r] = b->scheduled[r] + (int32_t)prng_range(prng, 0, 40);
    }
    assert_int_equal(dbo_slice_prefix_sums(b->scheduled, reqs, b->starts, NULL), DBO_OK);
    b->view = (dbo_ubatch_batch){
        .query_start_loc = b->starts,
        .seq_lens = b->lengths,
        .num_reqs = reqs,
        .num_reqs_padded = reqs + (int32_t)prng_range(prng, 0, 8),
        .num_tokens_padded = b->starts[reqs] + (int32_t)prng_range(prng, 0, 30),
        .num_ubatches = (int32_t)prng_range(prng, 1, MAX_UBATCHES),
    };
    if (b->view.num_tokens_padded < b->view.num_ubatches)
        b->view.num_tokens_padded = b->view.num_ubatches;
}

/* The tokens of request r that lie in [start, stop), counted one by one. */
static int32_t count_in(const batch *b, int32_t r, int32_t start, int32_t stop)
{
    int32_t count = 0;
    for (int32_t t = b->starts[r]; t < b->starts[r + 1]; t++)
        count += t >= start && t < stop;
    return count;
}

static int32_t check_ubatch(const batch *b, int32_t i, const dbo_ubatch_metadata *m)
{
    int32_t covered = 0, reqs = 0, longest = 0;
    const dbo_ubatch_batch *v = &b->view;
    assert_int_equal(m->tok_start, i * (v->num_tokens_padded / v->num_ubatches));
    for (int32_t r = 0; r < v->num_reqs; r++) {
        int32_t here = count_in(b, r, m->tok_start, m->tok_stop), row = r - m->req_start;
        covered += here;
        reqs += here > 0;
        longest = here > longest ? here : longest;
        if (here == 0)
            continue;
        assert_true(r >= m->req_start && r < m->req_stop);
        assert_int_equal(m->query_start_loc[row + 1] - m->query_start_loc[row], here);
        assert_int_equal(m->seq_lens[row], b->lengths[r] - count_in(b, r, m->tok_stop, INT32_MAX));
    }
    assert_int_equal(m->num_tokens, covered);
    assert_int_equal(m->num_reqs, reqs);
    assert_int_equal(m->max_query_len, longest);
    assert_int_equal(m->slot_stop - m->slot_start, covered);
    int32_t rows = m->req_stop - m->req_start;
    bool is_last = i + 1 == v->num_ubatches;
    assert_int_equal(rows, reqs + (is_last ? v->num_reqs_padded - v->num_reqs : 0));
    assert_int_equal(m->query_start_loc[0], 0);
    for (int32_t row = reqs; row < rows; row++) { /* padding requests */
        assert_int_equal(m->query_start_loc[row + 1], covered);
        assert_int_equal(m->seq_lens[row], 0);
    }
    return covered;
}

static void every_real_token_is_in_one_ubatch(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 7, 0);
    for (int round = 0; round < 4000; round++) {
        batch b = {0};
        random_batch(&prng, &b);
        batch before = b;
        int32_t covered = 0, next = 0;
        for (int32_t i = 0; i < b.view.num_ubatches; i++) {
            int32_t starts[MAX_REQS + 1], lengths[MAX_REQS];
            dbo_ubatch_metadata m = {.query_start_loc = starts, .seq_lens = lengths};
            dbo_ubatch_metadata_split(&b.view, i, &m);
            assert_int_equal(m.tok_start, next);
            next = m.tok_stop;
            covered += check_ubatch(&b, i, &m);
        }
        assert_int_equal(next, b.view.num_tokens_padded);
        assert_int_equal(covered, b.starts[b.view.num_reqs]);
        assert_memory_equal(before.starts, b.starts,
                            sizeof b.starts[0] * (size_t)(b.view.num_reqs + 1));
        assert_memory_equal(before.lengths, b.lengths,
                            sizeof b.lengths[0] * (size_t)b.view.num_reqs);
    }
}

/* The batch as the exact split sees it, with the padding requests that a full graph adds. */
typedef struct exact {
    int32_t starts[MAX_REQS + 1], lengths[MAX_REQS], table[MAX_REQS];
    int64_t slots[256];
    int32_t out[5][MAX_REQS + 1];
    dbo_attn_metadata in, part;
    dbo_attn_buffers buffers;
} exact;

static void fill_exact(const batch *b, exact *e)
{
    int32_t rows = b->view.num_reqs_padded, total = b->starts[b->view.num_reqs];
    for (int32_t r = 0; r <= rows; r++)
        e->starts[r] = r <= b->view.num_reqs ? b->starts[r] : total;
    for (int32_t r = 0; r < rows; r++) {
        e->lengths[r] = r < b->view.num_reqs ? b->lengths[r] : 0;
        e->table[r] = 100 + r;
    }
    for (int32_t t = 0; t < b->view.num_tokens_padded; t++)
        e->slots[t] = 1000 + t;
    e->in = (dbo_attn_metadata){.num_rows = rows,
                                .num_slots = b->view.num_tokens_padded,
                                .block_table_columns = 1,
                                .query_start_loc = e->starts,
                                .query_start_loc_cpu = e->starts,
                                .seq_lens = e->lengths,
                                .seq_lens_cpu_upper_bound = e->lengths,
                                .block_table = e->table,
                                .slot_mapping = e->slots,
                                .num_reqs = rows,
                                .num_actual_tokens = b->view.num_tokens_padded,
                                .max_query_len = 77,
                                .max_seq_len = 5};
    e->buffers =
        (dbo_attn_buffers){MAX_REQS + 1, e->out[0], e->out[1], e->out[2], e->out[3], e->out[4]};
}

static void check_against_tolerant(const batch *b, const exact *e, int32_t i)
{
    int32_t starts[MAX_REQS + 1], lengths[MAX_REQS];
    dbo_ubatch_metadata m = {.query_start_loc = starts, .seq_lens = lengths};
    dbo_ubatch_metadata_split(&b->view, i, &m);
    assert_int_equal(e->part.num_reqs, m.req_stop - m.req_start);
    assert_int_equal(e->part.num_actual_tokens, m.tok_stop - m.tok_start);
    assert_memory_equal(e->part.query_start_loc_cpu, starts,
                        sizeof *starts * (size_t)(e->part.num_rows + 1));
    assert_memory_equal(e->part.seq_lens, lengths, sizeof *lengths * (size_t)e->part.num_rows);
    assert_int_equal(e->part.max_query_len, m.max_query_len);
    assert_ptr_equal(e->part.block_table, e->table + m.req_start);
    assert_ptr_equal(e->part.slot_mapping, e->slots + m.tok_start);
    assert_int_equal(e->part.num_slots, m.tok_stop - m.tok_start);
    for (int32_t r = 0; r < e->part.num_rows; r++)
        assert_true(e->part.max_seq_len >= lengths[r]);
    assert_true(e->part.max_seq_len >= 5);
    assert_null(e->part.seq_lens_cpu);
    assert_null(e->part.num_computed_tokens_cpu);
}

static void the_exact_split_agrees_where_every_ubatch_is_real(void **state)
{
    (void)state;
    dbo_prng prng;
    int compared = 0, refused = 0;
    dbo_prng_init(&prng, 8, 0);
    for (int round = 0; round < 3000; round++) {
        batch b = {0};
        exact e = {0};
        dbo_ubatch_slice s[MAX_UBATCHES];
        random_batch(&prng, &b);
        fill_exact(&b, &e);
        int32_t ubatches = b.view.num_ubatches, real = b.starts[b.view.num_reqs];
        cut(b.scheduled, b.view.num_reqs, b.view.num_tokens_padded, ubatches, DBO_SPLIT_EVEN, s);
        dbo_slice_pad(s, ubatches, b.view.num_tokens_padded, b.view.num_reqs_padded);
        for (int32_t i = 0; i < ubatches; i++) {
            dbo_status status = dbo_attn_metadata_split(&e.in, &s[i], &e.buffers, &e.part, NULL);
            if (s[i].tok_start >= real) { /* only padding */
                assert_int_equal(status, DBO_REFUSED);
                refused++;
            } else if (s[i].tok_stop <= real || i + 1 == ubatches) {
                assert_int_equal(status, DBO_OK);
                check_against_tolerant(&b, &e, i);
                compared++;
            }
        }
    }
    assert_true(compared > 3000 && refused > 500);
}

static void a_request_cut_on_both_sides_loses_both_parts(void **state)
{
    (void)state;
    const int32_t starts[] = {0, 30}, lengths[] = {130}, table[] = {9};
    int64_t slots[30] = {0};
    int32_t out[5][2];
    dbo_attn_metadata in = {.num_rows = 1,
                            .num_slots = 30,
                            .block_table_columns = 1,
                            .query_start_loc = starts,
                            .query_start_loc_cpu = starts,
                            .seq_lens = lengths,
                            .seq_lens_cpu = lengths,
                            .seq_lens_cpu_upper_bound = lengths,
                            .num_computed_tokens_cpu = lengths,
                            .block_table = table,
                            .slot_mapping = slots,
                            .num_reqs = 1,
                            .num_actual_tokens = 30,
                            .max_query_len = 30,
                            .max_seq_len = 130};
    dbo_attn_buffers buffers = {2, out[0], out[1], out[2], out[3], out[4]};
    dbo_attn_metadata part;
    dbo_ubatch_slice middle = {0, 1, 10, 20};
    assert_int_equal(dbo_attn_metadata_split(&in, &middle, &buffers, &part, NULL), DBO_OK);
    assert_int_equal(part.query_start_loc[1], 10);
    assert_int_equal(part.seq_lens[0], 120);
    assert_int_equal(part.seq_lens_cpu[0], 120);
    assert_int_equal(part.num_computed_tokens_cpu[0], 130);
    assert_int_equal(part.max_seq_len, 130);
    assert_int_equal(starts[1], 30);

    dbo_error err = {0};
    const dbo_ubatch_slice wrong[] = {{0, 0, 0, 10},  {0, 1, 5, 5},   {0, 2, 0, 10},
                                      {1, 2, 30, 31}, {0, 1, 30, 40}, {-1, 1, 0, 10}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dbo_attn_metadata_split(&in, &wrong[i], &buffers, &part, &err),
                         DBO_REFUSED);
    in.seq_lens_cpu_upper_bound = NULL;
    assert_int_equal(dbo_attn_metadata_split(&in, &middle, &buffers, &part, &err), DBO_REFUSED);
    in.seq_lens_cpu_upper_bound = lengths;
    buffers.capacity = 1;
    assert_int_equal(dbo_attn_metadata_split(&in, &middle, &buffers, &part, &err), DBO_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_remainder_lands_in_the_last_slice),
        cmocka_unit_test(padding_that_swallows_an_ubatch_gives_odd_slices),
        cmocka_unit_test(requests_without_tokens_are_dropped_in_front_only),
        cmocka_unit_test(an_explicit_distance_moves_the_cuts),
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(every_real_token_is_in_one_ubatch),
        cmocka_unit_test(the_exact_split_agrees_where_every_ubatch_is_real),
        cmocka_unit_test(a_request_cut_on_both_sides_loses_both_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
