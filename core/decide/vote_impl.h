/* vote_impl.h: the two sets of rules behind vote.h; for core/decide/vote*.c alone.
 *
 * A set of rules fills a column and derives the result; vote.c picks the set.
 *
 *     const dbo_vote_row tokens = dbo_vote_row_of(matrix, num_ranks, DBO_VOTE_TOKENS);
 *     if (!dbo_vote_reaches_threshold(rules, tokens.min, uniform_decode))
 *         return DBO_VOTE_THRESHOLD;
 */
#ifndef DBO_VOTE_IMPL_H
#define DBO_VOTE_IMPL_H

#include "core/decide/vote.h"

/* A row of the matrix, over the ranks. */
typedef struct dbo_vote_row {
    int32_t min, max;
    bool all_equal;
} dbo_vote_row;

dbo_vote_row dbo_vote_row_of(const int32_t *matrix, int32_t num_ranks, int32_t row);

/* Reasons that do not depend on the batch: dp_size, off, ep_off, linear_attention; else ok. */
dbo_vote_reason dbo_vote_standing_reason(const dbo_vote_rules *rules, int32_t num_ranks);

void dbo_vote_seed_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry,
                          int32_t *column);
void dbo_vote_seed_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                          int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result);

dbo_status dbo_vote_v1_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry,
                              int32_t *column, dbo_error *err);
void dbo_vote_v1_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                        int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result);

#endif
