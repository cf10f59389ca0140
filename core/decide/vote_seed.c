/* vote_seed.c: the 7-row vote, the rules that a run uses unless told otherwise.
 *
 * The threshold is tested on the smallest rank after the sum, so one answer holds for all and no
 * rank's test can differ from another's. A uniform count holds only if every rank has the same.
 */
#include "core/decide/vote_impl.h"

#include <stddef.h>

void dbo_vote_seed_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry, int32_t *column)
{
    bool allow = entry->allow;
    if (rules->threshold_in_vote)
        allow = allow &&
                dbo_vote_reaches_threshold(rules, entry->num_tokens,
                                           entry->uniform_token_count == rules->decode_query_len);
    column[DBO_VOTE_TOKENS] = entry->num_tokens;
    column[DBO_VOTE_GRAPH_MODE] = (int32_t)entry->graph_mode;
    column[DBO_VOTE_UNIFORM_COUNT] = entry->uniform_token_count;
    column[DBO_VOTE_MAX_QUERY] = entry->max_query_len > 0 ? entry->max_query_len : -1;
    column[DBO_VOTE_ALLOW] = allow ? 1 : 0;
    column[DBO_VOTE_REQS] = entry->num_reqs;
    column[DBO_VOTE_SKIP_DRAFTS] = entry->allow_skip_drafts ? 1 : 0;
}

/* With the threshold inside the vote a 0 in the allow row has two causes; the other rows tell. */
static bool some_rank_was_below(const dbo_vote_rules *rules, const int32_t *matrix,
                                int32_t num_ranks)
{
    const int32_t *tokens = matrix + (ptrdiff_t)DBO_VOTE_TOKENS * num_ranks;
    const int32_t *uniform = matrix + (ptrdiff_t)DBO_VOTE_UNIFORM_COUNT * num_ranks;
    for (int32_t r = 0; r < num_ranks; r++)
        if (!dbo_vote_reaches_threshold(rules, tokens[r], uniform[r] == rules->decode_query_len))
            return true;
    return false;
}

static dbo_vote_reason reason_of_batch(const dbo_vote_rules *rules, const int32_t *matrix,
                                       int32_t num_ranks, int32_t min_tokens, bool uniform_decode)
{
    dbo_vote_reason standing = dbo_vote_standing_reason(rules, num_ranks);
    if (standing != DBO_VOTE_OK)
        return standing;
    bool all_allow = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_ALLOW).min != 0;
    if (rules->threshold_in_vote) {
        if (all_allow)
            return DBO_VOTE_OK;
        return some_rank_was_below(rules, matrix, num_ranks) ? DBO_VOTE_THRESHOLD : DBO_VOTE_VETOED;
    }
    if (!all_allow)
        return DBO_VOTE_VETOED;
    if (!dbo_vote_reaches_threshold(rules, min_tokens, uniform_decode))
        return DBO_VOTE_THRESHOLD;
    return DBO_VOTE_OK;
}

/* Tries to split; false when only padding would be left for a last ubatch and that aborts. */
static bool decide_split(const dbo_vote_rules *rules, dbo_vote_row tokens, dbo_graph_mode mode,
                         bool uniform_decode, int32_t *padded, dbo_vote_result *result)
{
    int32_t bucket = 0;
    if (mode == DBO_GRAPH_FULL && uniform_decode && rules->capturable)
        bucket = dbo_vote_bucket(rules, tokens.max);
    if (bucket != 0 && dbo_is_last_ubatch_empty(tokens.min, bucket, rules->num_ubatches))
        bucket = 0;
    *padded = bucket != 0 ? bucket : tokens.max;
    if (rules->abort_on_empty &&
        dbo_is_last_ubatch_empty(tokens.min, *padded, rules->num_ubatches)) {
        result->reason = DBO_VOTE_EMPTY_UBATCH;
        return false;
    }
    result->should_ubatch = true;
    result->graph_mode = bucket != 0 ? DBO_GRAPH_FULL : DBO_GRAPH_NONE;
    return true;
}

/* The number that all ranks pad to, or 0: nobody pads. */
static int32_t decide_whole(const dbo_vote_rules *rules, int32_t max_tokens, dbo_graph_mode mode,
                            dbo_vote_result *result)
{
    int32_t bucket = mode != DBO_GRAPH_NONE ? dbo_vote_bucket(rules, max_tokens) : 0;
    if (bucket == 0)
        result->graph_mode = DBO_GRAPH_NONE;
    else if (mode == DBO_GRAPH_FULL && result->uniform_token_count != 0)
        result->graph_mode = DBO_GRAPH_FULL;
    else
        result->graph_mode = DBO_GRAPH_PIECEWISE;
    return bucket;
}

void dbo_vote_seed_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                          int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result)
{
    dbo_vote_row tokens = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_TOKENS);
    dbo_vote_row uniform = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_UNIFORM_COUNT);
    dbo_graph_mode mode =
        (dbo_graph_mode)dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_GRAPH_MODE).min;

    *result = (dbo_vote_result){.reason = DBO_VOTE_NO_TOKENS, .graph_mode = DBO_GRAPH_NONE};
    result->uniform_token_count = uniform.all_equal ? uniform.min : 0;
    result->allow_skip_drafts = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_SKIP_DRAFTS).min != 0;
    for (int32_t r = 0; r < num_ranks; r++)
        num_tokens_across_dp[r] = matrix[(ptrdiff_t)DBO_VOTE_TOKENS * num_ranks + r];
    if (tokens.max > 0) {
        bool uniform_decode = result->uniform_token_count == rules->decode_query_len;
        int32_t padded = 0;
        result->reason = reason_of_batch(rules, matrix, num_ranks, tokens.min, uniform_decode);
        if (result->reason != DBO_VOTE_OK ||
            !decide_split(rules, tokens, mode, uniform_decode, &padded, result))
            padded = decide_whole(rules, tokens.max, mode, result);
        for (int32_t r = 0; r < num_ranks && padded != 0; r++)
            num_tokens_across_dp[r] = padded;
    }
    result->num_tokens_padded = num_tokens_across_dp[rank];
}
