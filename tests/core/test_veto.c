/* test_veto.c: when a batch must not be split; random batches against a set-by-set model. */
#include "core/base/prng.h"
#include "core/decide/veto.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define REQS    4
#define COLUMNS 4
#define BLOCKS  32

typedef struct small_batch {
    int32_t computed[REQS], scheduled[REQS], table[REQS][COLUMNS];
    dbo_kv_group group;
    dbo_veto_batch batch;
} small_batch;

/* Written as sets of blocks, without sorting or early ends. */
static bool model_allows(const small_batch *s)
{
    bool written[BLOCKS] = {false};
    int32_t n = s->batch.num_reqs, size = s->group.block_size;
    int32_t threshold = s->batch.reorder_batch_threshold > 0 ? s->batch.reorder_batch_threshold : 1;
    if (!s->batch.use_ubatching || n < 2)
        return true;
    for (int32_t r = 0; r < n; r++)
        for (int32_t c = 0; c < 64; c++) /* a column is written if one of its tokens is ours */
            if (c >= s->computed[r] / size && c * size < s->computed[r] + s->scheduled[r])
                written[s->table[r][c < COLUMNS ? c : COLUMNS - 1]] = true;
    for (int32_t r = 0; r < n; r++)
        for (int32_t c = 0; c < COLUMNS; c++)
            if (s->scheduled[r] > threshold && (c + 1) * size <= s->computed[r] &&
                written[s->table[r][c]])
                return false;
    return true;
}

static void random_batches_agree_with_the_model(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_veto_scratch scratch = {0};
    int allowed = 0, vetoed = 0;
    dbo_prng_init(&prng, 3, 0);
    for (int round = 0; round < 20000; round++) {
        small_batch s;
        for (int32_t r = 0; r < REQS; r++) {
            s.computed[r] = (int32_t)prng_range(&prng, 0, 18);
            s.scheduled[r] = (int32_t)prng_range(&prng, 0, 6);
            for (int32_t c = 0; c < COLUMNS; c++)
                s.table[r][c] = (int32_t)prng_range(&prng, 0, BLOCKS - 1);
        }
        s.group = (dbo_kv_group){.block_size = (int32_t)prng_range(&prng, 1, 5),
                                 .columns = COLUMNS,
                                 .block_table = &s.table[0][0]};
        s.batch = (dbo_veto_batch){
            .use_ubatching = dbo_prng_below(&prng, 10) != 0,
            .reorder_batch_threshold = (int32_t)prng_range(&prng, 0, 3),
            .num_reqs = (int32_t)prng_range(&prng, 0, REQS),
            .num_computed = s.computed,
            .num_scheduled = s.scheduled,
            .num_groups = 1,
            .groups = &s.group,
        };
        bool allow = false;
        assert_int_equal(dbo_veto_allows(&s.batch, &scratch, &allow, NULL), DBO_OK);
        assert_int_equal(allow, model_allows(&s));
        allowed += allow;
        vetoed += !allow;
    }
    assert_true(allowed > 2000 && vetoed > 2000);
    dbo_veto_scratch_fini(&scratch);
}

static void any_group_can_veto(void **state)
{
    (void)state;
    const int32_t computed[] = {0, 32}, scheduled[] = {64, 32};
    const int32_t apart[] = {1, 2, 3, 4, 7, 8, 5, 6}, shared[] = {1, 2, 3, 4, 1, 2, 5, 6};
    dbo_kv_group groups[] = {{16, 4, apart}, {16, 4, shared}, {16, 0, NULL}};
    dbo_veto_batch batch = {.use_ubatching = true,
                            .num_reqs = 2,
                            .num_computed = computed,
                            .num_scheduled = scheduled,
                            .num_groups = 3,
                            .groups = groups};
    dbo_veto_scratch scratch = {0};
    bool allow = true;
    assert_int_equal(dbo_veto_allows(&batch, &scratch, &allow, NULL), DBO_OK);
    assert_false(allow);
    batch.num_groups = 1;
    assert_int_equal(dbo_veto_allows(&batch, &scratch, &allow, NULL), DBO_OK);
    assert_true(allow);
    groups[0].block_size = 0;
    dbo_error err = {0};
    assert_int_equal(dbo_veto_allows(&batch, &scratch, &allow, &err), DBO_INVALID);
    dbo_veto_scratch_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_batches_agree_with_the_model),
        cmocka_unit_test(any_group_can_veto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
