/* vote_v1.c: the 4-row vote of the V1 runner.
 *
 * The reason of a "no" is derived, so that all ranks name the same: the matrix says who did not
 * want to split, not why. A rank with fewer tokens than both thresholds must have failed its test;
 * one that reaches both must have been vetoed; in between the threshold is named, as a batch
 * shorter than the prefill threshold is far more often a mixed one than a vetoed decode.
 */
#include "core/decide/vote_impl.h"

#include <stddef.h>

dbo_status dbo_vote_v1_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry,
                              int32_t *column, dbo_error *err)
{
    bool wants = false;
    if (entry->allow) {
        if (entry->uniform_decode == DBO_UNKNOWN)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "a rank that may split must say whether its batch is a uniform decode");
        wants = rules->num_ubatches >= 2 &&
                (!rules->threshold_in_vote ||
                 dbo_vote_reaches_threshold(rules, entry->num_tokens,
                                            entry->uniform_decode == DBO_TRUE));
    }
    if (entry->num_tokens_padded < entry->num_tokens)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "a rank cannot be padded to %d tokens when it has %d",
                        entry->num_tokens_padded, entry->num_tokens);
    column[DBO_VOTE_V1_TOKENS] = entry->num_tokens;
    column[DBO_VOTE_V1_PADDED] = entry->num_tokens_padded;
    column[DBO_VOTE_V1_WANTS] = wants ? 1 : 0;
    column[DBO_VOTE_V1_GRAPH_MODE] = (int32_t)entry->graph_mode;
    return DBO_OK;
}

static dbo_vote_reason reason_of_refusal(const dbo_vote_rules *rules, const int32_t *matrix,
                                         int32_t num_ranks)
{
    const int32_t *tokens = matrix + (ptrdiff_t)DBO_VOTE_V1_TOKENS * num_ranks;
    const int32_t *wants = matrix + (ptrdiff_t)DBO_VOTE_V1_WANTS * num_ranks;
    for (int32_t r = 0; r < num_ranks; r++)
        if (wants[r] == 0 && (!dbo_vote_reaches_threshold(rules, tokens[r], false) ||
                              !dbo_vote_reaches_threshold(rules, tokens[r], true)))
            return DBO_VOTE_THRESHOLD;
    return DBO_VOTE_VETOED;
}

static dbo_vote_reason reason_of_batch(const dbo_vote_rules *rules, const int32_t *matrix,
                                       int32_t num_ranks)
{
    dbo_vote_row tokens = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_V1_TOKENS);
    dbo_vote_row padded = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_V1_PADDED);
    dbo_vote_reason standing = dbo_vote_standing_reason(rules, num_ranks);
    if (tokens.max == 0)
        return DBO_VOTE_NO_TOKENS;
    if (standing != DBO_VOTE_OK)
        return standing;
    if (dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_V1_WANTS).min == 0)
        return reason_of_refusal(rules, matrix, num_ranks);
    if (rules->abort_on_empty &&
        dbo_is_last_ubatch_empty(tokens.min, padded.max, rules->num_ubatches))
        return DBO_VOTE_EMPTY_UBATCH;
    return DBO_VOTE_OK;
}

void dbo_vote_v1_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                        int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result)
{
    dbo_vote_row padded = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_V1_PADDED);
    dbo_vote_row mode = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_V1_GRAPH_MODE);

    *result = (dbo_vote_result){.graph_mode = (dbo_graph_mode)mode.min};
    result->reason = reason_of_batch(rules, matrix, num_ranks);
    result->should_ubatch = result->reason == DBO_VOTE_OK;
    bool pad = result->should_ubatch || result->graph_mode != DBO_GRAPH_NONE;
    /* One rank has nobody to agree with: its own padding stands. */
    for (int32_t r = 0; r < num_ranks; r++)
        num_tokens_across_dp[r] =
            pad ? padded.max : matrix[(ptrdiff_t)DBO_VOTE_V1_PADDED * num_ranks + r];
    result->num_tokens_padded = num_tokens_across_dp[rank];
}
