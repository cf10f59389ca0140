/* test_vote.c: the collective decision: both sets of rules, their overrides, what must always hold.
 */
#include "core/base/prng.h"
#include "core/decide/vote.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define MAX_RANKS 6

static const int32_t sizes[] = {1, 2, 4, 8, 16, 24, 32, 64, 128};

static dbo_vote_rules rules_of(dbo_rules rules)
{
    bool v1 = rules == DBO_RULES_V1;
    return (dbo_vote_rules){.rules = rules,
                            .num_ubatches = 2,
                            .decode_threshold = 32,
                            .prefill_threshold = 512,
                            .decode_query_len = 1,
                            .capture_sizes = sizes,
                            .num_capture_sizes = sizeof sizes / sizeof *sizes,
                            .capturable = true,
                            .has_expert_parallelism = true,
                            .threshold_in_vote = v1,
                            .abort_on_empty = v1};
}

static dbo_vote_entry decode(int32_t tokens)
{
    return (dbo_vote_entry){.num_tokens = tokens,
                            .num_tokens_padded = tokens,
                            .num_reqs = tokens,
                            .uniform_token_count = tokens > 0 ? 1 : 0,
                            .max_query_len = tokens > 0 ? 1 : -1,
                            .allow = true,
                            .uniform_decode = DBO_TRUE,
                            .allow_skip_drafts = true,
                            .graph_mode = DBO_GRAPH_FULL};
}

static dbo_vote_entry prefill(int32_t tokens)
{
    dbo_vote_entry entry = decode(tokens);
    entry.num_reqs = 1;
    entry.uniform_token_count = tokens;
    entry.max_query_len = tokens;
    entry.uniform_decode = DBO_FALSE;
    return entry;
}

/* Votes with all ranks and checks that they agree; the result is rank 0's. */
static dbo_vote_result vote(const dbo_vote_rules *rules, const dbo_vote_entry *entries,
                            int32_t num_ranks, int32_t *across)
{
    int32_t matrix[DBO_VOTE_MAX_ROWS * MAX_RANKS] = {0}, rows = dbo_vote_rows(rules);
    dbo_vote_result first = {0};
    for (int32_t r = 0; r < num_ranks; r++) {
        int32_t column[DBO_VOTE_MAX_ROWS];
        assert_int_equal(dbo_vote_column(rules, &entries[r], column, NULL), DBO_OK);
        dbo_vote_add_column(matrix, rows, num_ranks, r, column);
    }
    for (int32_t r = num_ranks - 1; r >= 0; r--) {
        dbo_vote_result result;
        dbo_vote_decide(rules, matrix, num_ranks, r, across, &result);
        assert_int_equal(result.num_tokens_padded, across[r]);
        if (r + 1 < num_ranks) {
            assert_int_equal(result.should_ubatch, first.should_ubatch);
            assert_int_equal(result.reason, first.reason);
            assert_int_equal(result.graph_mode, first.graph_mode);
        }
        first = result;
    }
    return first;
}

static dbo_vote_reason reason_of(const dbo_vote_rules *rules, dbo_vote_entry a, dbo_vote_entry b)
{
    int32_t across[2];
    const dbo_vote_entry entries[] = {a, b};
    dbo_vote_result result = vote(rules, entries, 2, across);
    assert_int_equal(result.should_ubatch, result.reason == DBO_VOTE_OK);
    return result.reason;
}

static void seed_splits_with_a_graph_when_nobody_is_left_empty(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_SEED);
    int32_t across[2];
    dbo_vote_entry entries[] = {decode(33), decode(60)};
    dbo_vote_result result = vote(&rules, entries, 2, across);
    assert_true(result.should_ubatch);
    assert_int_equal(result.graph_mode, DBO_GRAPH_FULL);
    assert_int_equal(across[0], 64);
    entries[0].num_tokens = 32; /* exactly half: the second ubatch would hold padding only */
    result = vote(&rules, entries, 2, across);
    assert_true(result.should_ubatch);
    assert_int_equal(result.graph_mode, DBO_GRAPH_NONE);
    assert_int_equal(across[1], 60);
    rules.num_ubatches = 3; /* 64 / 3 * 2 = 42 */
    entries[0].num_tokens = 42;
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_NONE);
    entries[0].num_tokens = 43;
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_FULL);
    rules.capturable = false;
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_NONE);
}

static void seed_reasons(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_SEED);
    dbo_vote_entry vetoed = decode(64);
    vetoed.allow = false;
    assert_int_equal(reason_of(&rules, decode(64), decode(64)), DBO_VOTE_OK);
    assert_int_equal(reason_of(&rules, decode(64), decode(31)), DBO_VOTE_THRESHOLD);
    assert_int_equal(reason_of(&rules, decode(64), prefill(64)), DBO_VOTE_THRESHOLD);
    assert_int_equal(reason_of(&rules, prefill(512), prefill(900)), DBO_VOTE_OK);
    assert_int_equal(reason_of(&rules, vetoed, decode(1)), DBO_VOTE_VETOED);
    assert_int_equal(reason_of(&rules, decode(0), decode(0)), DBO_VOTE_NO_TOKENS);
    rules.has_linear_attention = true;
    assert_int_equal(reason_of(&rules, vetoed, decode(64)), DBO_VOTE_LINEAR_ATTENTION);
    rules.has_expert_parallelism = false;
    assert_int_equal(reason_of(&rules, decode(64), decode(64)), DBO_VOTE_EP_OFF);
    rules.num_ubatches = 1;
    assert_int_equal(reason_of(&rules, decode(64), decode(64)), DBO_VOTE_OFF);
}

static void one_rank_splits_only_when_told_to(void **state)
{
    (void)state;
    for (int v1 = 0; v1 < 2; v1++) {
        dbo_vote_rules rules = rules_of(v1 ? DBO_RULES_V1 : DBO_RULES_SEED);
        dbo_vote_entry entry = decode(64);
        int32_t across[1];
        assert_int_equal(vote(&rules, &entry, 1, across).reason, DBO_VOTE_DP_SIZE);
        rules.single_rank_may_split = true;
        assert_int_equal(vote(&rules, &entry, 1, across).reason, DBO_VOTE_OK);
    }
}

static void seed_overrides_change_one_row(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_SEED);
    dbo_vote_entry vetoed = decode(64);
    int32_t across[2];
    vetoed.allow = false;
    /* Mixed kinds: each rank passes its own threshold, the sum would ask 512 of the smaller. */
    assert_int_equal(reason_of(&rules, decode(64), prefill(600)), DBO_VOTE_THRESHOLD);
    rules.threshold_in_vote = true;
    assert_int_equal(reason_of(&rules, decode(64), prefill(600)), DBO_VOTE_OK);
    assert_int_equal(reason_of(&rules, decode(64), decode(31)), DBO_VOTE_THRESHOLD);
    assert_int_equal(reason_of(&rules, vetoed, decode(64)), DBO_VOTE_VETOED);
    rules.threshold_in_vote = false;
    rules.abort_on_empty = true;
    const dbo_vote_entry uneven[] = {decode(33), decode(100)};
    dbo_vote_result result = vote(&rules, uneven, 2, across);
    assert_int_equal(result.reason, DBO_VOTE_EMPTY_UBATCH);
    assert_int_equal(result.graph_mode, DBO_GRAPH_FULL); /* unsplit, in the bucket of 128 */
    assert_int_equal(across[0], 128);
    assert_int_equal(reason_of(&rules, decode(51), decode(100)), DBO_VOTE_OK);
}

static void an_unsplit_step_pads_only_for_graphs(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_SEED);
    int32_t across[2];
    dbo_vote_entry entries[] = {decode(3), decode(20)};
    dbo_vote_result result = vote(&rules, entries, 2, across);
    assert_int_equal(result.graph_mode, DBO_GRAPH_FULL);
    assert_int_equal(across[0], 24);
    entries[0].graph_mode = DBO_GRAPH_PIECEWISE;
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_PIECEWISE);
    entries[0].graph_mode = DBO_GRAPH_NONE;
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_NONE);
    assert_int_equal(across[0], 3);
    entries[0] = prefill(3);
    entries[1] = prefill(200); /* past the largest bucket */
    assert_int_equal(vote(&rules, entries, 2, across).graph_mode, DBO_GRAPH_NONE);
    assert_int_equal(across[1], 200);
    assert_int_equal(dbo_vote_bucket(&rules, 129), 0);
    assert_int_equal(dbo_vote_bucket(&rules, 128), 128);
    assert_int_equal(dbo_vote_bucket(&rules, 0), 1);
}

static void v1_reasons_and_padding(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_V1);
    dbo_vote_entry vetoed = prefill(600), padded = decode(64);
    int32_t across[2];
    vetoed.allow = false;
    assert_int_equal(reason_of(&rules, decode(64), decode(33)), DBO_VOTE_OK);
    assert_int_equal(reason_of(&rules, decode(64), decode(32)), DBO_VOTE_EMPTY_UBATCH);
    assert_int_equal(reason_of(&rules, decode(64), decode(31)), DBO_VOTE_THRESHOLD);
    assert_int_equal(reason_of(&rules, decode(64), vetoed), DBO_VOTE_VETOED);
    assert_int_equal(reason_of(&rules, decode(0), decode(0)), DBO_VOTE_NO_TOKENS);
    rules.abort_on_empty = false;
    assert_int_equal(reason_of(&rules, decode(64), decode(32)), DBO_VOTE_OK);
    padded.num_tokens_padded = 72;
    padded.graph_mode = DBO_GRAPH_NONE;
    dbo_vote_entry small = decode(8);
    small.num_tokens_padded = 16;
    const dbo_vote_entry entries[] = {padded, small};
    dbo_vote_result result = vote(&rules, entries, 2, across);
    assert_int_equal(result.graph_mode, DBO_GRAPH_NONE);
    assert_int_equal(across[0], 72); /* each its own */
    assert_int_equal(across[1], 16);
}

static void v1_refuses_entries_that_contradict_themselves(void **state)
{
    (void)state;
    dbo_vote_rules rules = rules_of(DBO_RULES_V1);
    dbo_vote_entry entry = decode(64);
    dbo_error err = {0};
    int32_t column[DBO_VOTE_MAX_ROWS];
    entry.uniform_decode = DBO_UNKNOWN;
    assert_int_equal(dbo_vote_column(&rules, &entry, column, &err), DBO_INVALID);
    entry.allow = false;
    assert_int_equal(dbo_vote_column(&rules, &entry, column, &err), DBO_OK);
    entry.num_tokens_padded = 63;
    assert_int_equal(dbo_vote_column(&rules, &entry, column, &err), DBO_INVALID);
}

static void the_empty_test_is_met_at_equality(void **state)
{
    (void)state;
    assert_true(dbo_is_last_ubatch_empty(32, 64, 2));
    assert_false(dbo_is_last_ubatch_empty(33, 64, 2));
    assert_true(dbo_is_last_ubatch_empty(42, 65, 3));
    assert_false(dbo_is_last_ubatch_empty(43, 65, 3));
    assert_true(dbo_is_last_ubatch_empty(0, 1, 2));
    assert_false(dbo_is_last_ubatch_empty(1, 9, 1));
    assert_true(dbo_is_last_ubatch_empty(INT32_MAX, INT32_MAX, 2) == false);
}

static void random_votes_keep_their_promises(void **state)
{
    (void)state;
    dbo_prng prng;
    int split = 0, graphs = 0;
    dbo_prng_init(&prng, 11, 0);
    for (int round = 0; round < 20000; round++) {
        dbo_vote_rules rules = rules_of(round % 2 ? DBO_RULES_V1 : DBO_RULES_SEED);
        dbo_vote_entry entries[MAX_RANKS] = {0};
        int32_t across[MAX_RANKS] = {0}, least = INT32_MAX, most = 0;
        int32_t ranks = (int32_t)prng_range(&prng, 2, MAX_RANKS);
        int32_t low = (int32_t)prng_range(&prng, 0, 100);
        rules.num_ubatches = (int32_t)prng_range(&prng, 2, 4);
        rules.prefill_threshold = 64;
        for (int32_t r = 0; r < ranks; r++) {
            int32_t tokens = low + (int32_t)prng_range(&prng, 0, 30);
            entries[r] = dbo_prng_below(&prng, 8) ? decode(tokens) : prefill(tokens);
            entries[r].allow = dbo_prng_below(&prng, 20) != 0;
            least = tokens < least ? tokens : least;
            most = tokens > most ? tokens : most;
        }
        dbo_vote_result result = vote(&rules, entries, ranks, across);
        for (int32_t r = 0; r < ranks; r++) {
            assert_true(across[r] >= entries[r].num_tokens);
            assert_true(!result.should_ubatch || (entries[r].allow && across[r] == across[0]));
        }
        bool empty = dbo_is_last_ubatch_empty(least, across[0], rules.num_ubatches);
        if (result.should_ubatch) {
            assert_true(least >= 32 && across[0] >= most);
            assert_false(empty && (rules.abort_on_empty || result.graph_mode == DBO_GRAPH_FULL));
        }
        split += result.should_ubatch;
        graphs += result.should_ubatch && result.graph_mode == DBO_GRAPH_FULL;
    }
    assert_true(split > 1000 && graphs > 200);
}

static void names_are_those_of_the_documents(void **state)
{
    (void)state;
    static const char *const names[] = {"ok",        "dp_size",      "ep_off",
                                        "no_tokens", "off",          "vetoed",
                                        "threshold", "empty_ubatch", "linear_attention"};
    for (int i = 0; i < 9; i++) {
        assert_string_equal(dbo_vote_reason_name((dbo_vote_reason)i), names[i]);
        assert_true(strlen(dbo_vote_reason_text((dbo_vote_reason)i)) > 10);
    }
    assert_string_equal(dbo_graph_mode_name(DBO_GRAPH_PIECEWISE), "PIECEWISE");
}

static void rules_follow_from_the_configuration(void **state)
{
    (void)state;
    dbo_config config;
    dbo_vote_rules rules;
    dbo_config_init(&config);
    config.num_speculative_tokens = 2;
    dbo_vote_rules_from_config(&rules, &config, true, false);
    assert_int_equal(rules.num_ubatches, 0);
    assert_int_equal(rules.decode_query_len, 3);
    assert_false(rules.has_expert_parallelism || rules.threshold_in_vote || rules.abort_on_empty);
    config.enable_dbo = config.enable_expert_parallel = true;
    config.rules = DBO_RULES_V1;
    dbo_vote_rules_from_config(&rules, &config, false, true);
    assert_int_equal(rules.num_ubatches, 2);
    assert_true(rules.has_expert_parallelism && rules.threshold_in_vote && rules.abort_on_empty);
    config.empty_ubatch = DBO_EMPTY_DUMMY;
    dbo_vote_rules_from_config(&rules, &config, false, true);
    assert_false(rules.abort_on_empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_splits_with_a_graph_when_nobody_is_left_empty),
        cmocka_unit_test(seed_reasons),
        cmocka_unit_test(one_rank_splits_only_when_told_to),
        cmocka_unit_test(seed_overrides_change_one_row),
        cmocka_unit_test(an_unsplit_step_pads_only_for_graphs),
        cmocka_unit_test(v1_reasons_and_padding),
        cmocka_unit_test(v1_refuses_entries_that_contradict_themselves),
        cmocka_unit_test(the_empty_test_is_met_at_equality),
        cmocka_unit_test(random_votes_keep_their_promises),
        cmocka_unit_test(names_are_those_of_the_documents),
        cmocka_unit_test(rules_follow_from_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
