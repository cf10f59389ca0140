/* test_config.c: configuration keys, their defaults, what cannot be combined; batches of requests.
 */
#include "core/decide/batch.h"
#include "core/decide/config.h"
#include "core/decide/vote.h"
#include "core/seam/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

static void defaults_are_valid_and_off(void **state)
{
    (void)state;
    dbo_config config;
    dbo_config_init(&config);
    assert_int_equal(dbo_config_resolve(&config, NULL), DBO_OK);
    assert_false(dbo_config_use_ubatching(&config));
    assert_int_equal(dbo_config_num_ubatches(&config), 0);
    assert_int_equal(config.dbo_decode_token_threshold, 32);
    assert_int_equal(config.dbo_prefill_token_threshold, 512);
    assert_int_equal(config.dbo_comm_sms, 20);
    assert_int_equal(config.num_capture_sizes, 3 + 31 + 17); /* 1 2 4, 8..248, 256..512 */
    assert_int_equal(config.cudagraph_capture_sizes[2], 4);
    assert_int_equal(config.cudagraph_capture_sizes[50], 512);
    for (uint32_t i = 1; i < config.num_capture_sizes; i++)
        assert_true(config.cudagraph_capture_sizes[i] > config.cudagraph_capture_sizes[i - 1]);
}

static void enable_dbo_overrides_ubatch_size(void **state)
{
    (void)state;
    dbo_config config;
    dbo_config_init(&config);
    config.ubatch_size = 1;
    assert_false(dbo_config_use_ubatching(&config));
    config.ubatch_size = 4;
    assert_true(dbo_config_use_ubatching(&config));
    assert_int_equal(dbo_config_num_ubatches(&config), 4);
    config.enable_dbo = true;
    assert_int_equal(dbo_config_num_ubatches(&config), 2);
}

static bool reaches(const dbo_config *config, int32_t num_tokens, bool uniform_decode)
{
    dbo_vote_rules rules;
    dbo_vote_rules_from_config(&rules, config, true, false);
    return dbo_vote_reaches_threshold(&rules, num_tokens, uniform_decode);
}

static void decode_and_prefill_have_thresholds(void **state)
{
    (void)state;
    dbo_config config;
    dbo_config_init(&config);
    config.enable_dbo = true;
    assert_true(reaches(&config, 32, true));
    assert_false(reaches(&config, 31, true));
    assert_true(reaches(&config, 512, false));
    assert_false(reaches(&config, 511, false));
}

static void refuse(const dbo_config *config, const char *key)
{
    dbo_error err = {0};
    assert_int_equal(dbo_config_check(config, &err), DBO_INVALID);
    assert_string_equal(err.key, key);
    if (strstr(err.message, key) == NULL || err.hint[0] == '\0')
        fail_msg("\"%s\" lacks %s, or its hint \"%s\" is empty", err.message, key, err.hint);
}

static dbo_config good_config(void)
{
    dbo_config good;
    dbo_config_init(&good);
    good.enable_dbo = good.enable_expert_parallel = true;
    good.data_parallel_size = 8;
    assert_int_equal(dbo_config_check(&good, NULL), DBO_OK);
    return good;
}

static void ubatches_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const dbo_config good = good_config();
    dbo_config config = good;
    config.dbo_decode_token_threshold = 1;
    refuse(&config, "dbo_decode_token_threshold");
    config.enable_dbo = false; /* then it does not matter */
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK);
    config = good;
    config.enable_dbo = false;
    config.ubatch_size = 3;
    config.dbo_prefill_token_threshold = 2;
    refuse(&config, "dbo_prefill_token_threshold");
    config.dbo_prefill_token_threshold = 3;
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK);
    config.dbo_decode_token_threshold = config.dbo_prefill_token_threshold = 99;
    config.ubatch_size = DBO_MAX_UBATCHES;
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK);
    config.ubatch_size = DBO_MAX_UBATCHES + 1;
    refuse(&config, "ubatch_size");
    config.ubatch_size = 3; /* enable_dbo means 2 */
    config.enable_dbo = true;
    refuse(&config, "ubatch_size");
    config.ubatch_size = 1;
    refuse(&config, "ubatch_size");
    config.ubatch_size = 2;
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK);
}

static void combinations_that_cannot_work_are_refused(void **state)
{
    (void)state;
    const dbo_config good = good_config();
    dbo_config config = good;
    config.rules = DBO_RULES_V1;
    config.threshold_at = DBO_THRESHOLD_SUM;
    refuse(&config, "threshold_at");

    config = good;
    config.dbo_comm_sms = 21;
    config.dbo_comm_sms_is_set = true;
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK); /* low latency needs none */
    config.all2all_backend = DBO_BACKEND_HT;
    refuse(&config, "dbo_comm_sms");
    config.dbo_comm_sms_is_set = false;
    assert_int_equal(dbo_config_check(&config, NULL), DBO_OK);

    config = good;
    config.max_num_batched_tokens = 100;
    refuse(&config, "max_num_batched_tokens");
    config = good;
    config.num_speculative_tokens = 9000;
    refuse(&config, "num_speculative_tokens");
    config = good;
    config.num_capture_sizes = 2;
    config.cudagraph_capture_sizes[0] = config.cudagraph_capture_sizes[1] = 8;
    refuse(&config, "cudagraph_capture_sizes");
    config = good;
    config.tensor_parallel_size = 0;
    dbo_error err = {0};
    assert_int_equal(dbo_config_check(&config, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "tensor_parallel_size"));
}

/* Sizes come in any order; a graph of one token is one. */
static void capture_sizes_are_put_in_order(void **state)
{
    (void)state;
    const int32_t sizes[] = {24, 1, 7, 24, 3, 1}, wrong[] = {5, 0};
    static const int32_t ordered[] = {1, 3, 7, 24};
    dbo_config config = good_config();
    dbo_error err = {0};
    assert_int_equal(dbo_config_set_capture_sizes(&config, sizes, 6, &err), DBO_OK);
    assert_int_equal(config.num_capture_sizes, 4);
    assert_memory_equal(config.cudagraph_capture_sizes, ordered, sizeof ordered);
    assert_int_equal(dbo_config_resolve(&config, &err), DBO_OK);
    assert_int_equal(config.num_capture_sizes, 4); /* they are not filled in */
    assert_int_equal(dbo_config_set_capture_sizes(&config, wrong, 2, &err), DBO_INVALID);
    assert_string_equal(err.message, "cudagraph_capture_sizes has a 0");
    config.cudagraph_capture_sizes[0] = 0;
    refuse(&config, "cudagraph_capture_sizes");
    assert_int_equal(dbo_config_set_capture_sizes(&config, sizes, 0, &err), DBO_OK);
    assert_int_equal(config.num_capture_sizes, 0);
}

/* --- batches -------------------------------------------------------------------------------- */

static void a_batch_sums_its_requests(void **state)
{
    (void)state;
    const int32_t blocks[] = {7, 3, 9};
    const dbo_request requests[] = {
        {.id = 10, .num_scheduled = 3, .num_computed = 30, .blocks = blocks, .num_blocks = 3},
        {.id = 11, .num_scheduled = 3, .num_computed = 0, .blocks = blocks + 2, .num_blocks = 1}};
    dbo_batch batch;
    int32_t starts[3], lengths[2], positions[6];
    int64_t slots[6];
    assert_int_equal(dbo_batch_summarize(requests, 2, 3, &batch, NULL), DBO_OK);
    assert_int_equal(batch.num_tokens, 6);
    assert_int_equal(batch.max_seq_len, 33);
    assert_int_equal(batch.uniform_token_count, 3);
    assert_true(batch.uniform_decode);
    assert_int_equal(dbo_batch_summarize(requests, 2, 1, &batch, NULL), DBO_OK);
    assert_false(batch.uniform_decode);
    dbo_batch_fill(requests, 2, starts, lengths);
    assert_int_equal(starts[2], 6);
    assert_int_equal(lengths[0], 33);
    assert_int_equal(dbo_batch_fill_slots(requests, 2, 16, slots, positions, NULL), DBO_OK);
    assert_int_equal(slots[1], 3 * 16 + 15);
    assert_int_equal(slots[2], 9 * 16);
    assert_int_equal(positions[2], 32);
    assert_int_equal(slots[3], 9 * 16);
    assert_int_equal(positions[3], 0);
}

static void batches_that_cannot_run_are_refused(void **state)
{
    (void)state;
    dbo_request r[] = {{.id = 10, .num_scheduled = 1}, {.id = 11, .num_scheduled = 0}};
    dbo_batch batch;
    dbo_error err = {0};
    int64_t slots[8];
    assert_int_equal(dbo_batch_summarize(r, 0, 1, &batch, &err), DBO_OK);
    assert_false(batch.uniform_decode);
    assert_int_equal(batch.num_tokens, 0);
    assert_int_equal(dbo_batch_summarize(r, 2, 1, &batch, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "request 11"));
    r[1].num_scheduled = INT32_MAX;
    assert_int_equal(dbo_batch_summarize(r, 2, 1, &batch, &err), DBO_INVALID);
    r[1].num_computed = 1;
    assert_int_equal(dbo_batch_summarize(r, 2, 1, &batch, &err), DBO_INVALID);
    r[1].num_computed = -1;
    assert_int_equal(dbo_batch_summarize(r, 2, 1, &batch, &err), DBO_INVALID);
    assert_int_equal(dbo_batch_fill_slots(r, 1, 16, slots, NULL, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "request 10"));
    assert_int_equal(dbo_batch_fill_slots(r, 1, 0, slots, NULL, &err), DBO_INVALID);
}

static void uniform_decode_can_be_forced(void **state)
{
    (void)state;
    assert_true(dbo_is_uniform_decode(2, 2, 8, 4, DBO_UNKNOWN));
    assert_false(dbo_is_uniform_decode(2, 2, 7, 4, DBO_UNKNOWN));
    assert_false(dbo_is_uniform_decode(2, 1, 8, 4, DBO_UNKNOWN));
    assert_true(dbo_is_uniform_decode(2, 1, 7, 4, DBO_TRUE));
    assert_false(dbo_is_uniform_decode(2, 2, 8, 4, DBO_FALSE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_valid_and_off),
        cmocka_unit_test(enable_dbo_overrides_ubatch_size),
        cmocka_unit_test(decode_and_prefill_have_thresholds),
        cmocka_unit_test(ubatches_that_cannot_be_are_refused),
        cmocka_unit_test(combinations_that_cannot_work_are_refused),
        cmocka_unit_test(capture_sizes_are_put_in_order),
        cmocka_unit_test(a_batch_sums_its_requests),
        cmocka_unit_test(batches_that_cannot_run_are_refused),
        cmocka_unit_test(uniform_decode_can_be_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
