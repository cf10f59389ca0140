/* vote.c: what both sets of rules share, and the choice between them. */
#include "core/decide/vote.h"

#include "core/decide/slice.h"
#include "core/decide/vote_impl.h"

#include <stddef.h>

const char *dbo_graph_mode_name(dbo_graph_mode mode)
{
    static const char *const names[] = {"NONE", "PIECEWISE", "FULL"};
    return (size_t)mode < sizeof names / sizeof *names ? names[mode] : "?";
}

const char *dbo_vote_reason_name(dbo_vote_reason reason)
{
    switch (reason) {
#define DBO_VOTE_REASON_NAME(enumerator, name, text) \
    case enumerator: return name;
        DBO_VOTE_REASON_MAP(DBO_VOTE_REASON_NAME)
#undef DBO_VOTE_REASON_NAME
    }
    return "?";
}

const char *dbo_vote_reason_text(dbo_vote_reason reason)
{
    switch (reason) {
#define DBO_VOTE_REASON_TEXT(enumerator, name, text) \
    case enumerator: return text;
        DBO_VOTE_REASON_MAP(DBO_VOTE_REASON_TEXT)
#undef DBO_VOTE_REASON_TEXT
    }
    return "?";
}

void dbo_vote_rules_from_config(dbo_vote_rules *rules, const dbo_config *config, bool capturable,
                                bool has_linear_attention)
{
    *rules = (dbo_vote_rules){
        .rules = config->rules,
        .num_ubatches =
            dbo_config_use_ubatching(config) ? (int32_t)dbo_config_num_ubatches(config) : 0,
        .decode_threshold = (int32_t)config->dbo_decode_token_threshold,
        .prefill_threshold = (int32_t)config->dbo_prefill_token_threshold,
        .decode_query_len = (int32_t)dbo_config_decode_query_len(config),
        .capture_sizes = config->cudagraph_capture_sizes,
        .num_capture_sizes = (int32_t)config->num_capture_sizes,
        .capturable = capturable,
        .has_expert_parallelism = config->enable_expert_parallel,
        .has_linear_attention = has_linear_attention,
        .single_rank_may_split = config->ubatch_single_rank,
        .threshold_in_vote = dbo_config_threshold_at(config) == DBO_THRESHOLD_VOTE,
        .abort_on_empty = dbo_config_empty_ubatch(config) == DBO_EMPTY_ABORT,
    };
}

int32_t dbo_vote_rows(const dbo_vote_rules *rules)
{
    return rules->rules == DBO_RULES_V1 ? DBO_VOTE_V1_ROWS : DBO_VOTE_SEED_ROWS;
}

dbo_status dbo_vote_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry,
                           int32_t *column, dbo_error *err)
{
    if (rules->rules == DBO_RULES_V1)
        return dbo_vote_v1_column(rules, entry, column, err);
    dbo_vote_seed_column(rules, entry, column);
    return DBO_OK;
}

void dbo_vote_add_column(int32_t *matrix, int32_t rows, int32_t num_ranks, int32_t rank,
                         const int32_t *column)
{
    for (int32_t row = 0; row < rows; row++)
        matrix[(ptrdiff_t)row * num_ranks + rank] += column[row];
}

void dbo_vote_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                     int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result)
{
    if (rules->rules == DBO_RULES_V1)
        dbo_vote_v1_decide(rules, matrix, num_ranks, rank, num_tokens_across_dp, result);
    else
        dbo_vote_seed_decide(rules, matrix, num_ranks, rank, num_tokens_across_dp, result);
}

bool dbo_is_last_ubatch_empty(int32_t num_tokens, int32_t num_tokens_padded, int32_t num_ubatches)
{
    return dbo_slice_begin(num_tokens_padded, num_ubatches, num_ubatches - 1) >= num_tokens;
}

int32_t dbo_vote_bucket(const dbo_vote_rules *rules, int32_t num_tokens)
{
    int32_t bucket = 0;
    for (int32_t i = 0; i < rules->num_capture_sizes; i++) {
        int32_t size = rules->capture_sizes[i];
        if (size >= num_tokens && (bucket == 0 || size < bucket))
            bucket = size;
    }
    return bucket;
}

dbo_vote_row dbo_vote_row_of(const int32_t *matrix, int32_t num_ranks, int32_t row)
{
    const int32_t *values = matrix + (ptrdiff_t)row * num_ranks;
    dbo_vote_row result = {.min = values[0], .max = values[0]};
    for (int32_t r = 1; r < num_ranks; r++) {
        result.min = values[r] < result.min ? values[r] : result.min;
        result.max = values[r] > result.max ? values[r] : result.max;
    }
    result.all_equal = result.min == result.max;
    return result;
}

dbo_vote_reason dbo_vote_standing_reason(const dbo_vote_rules *rules, int32_t num_ranks)
{
    if (num_ranks == 1 && !rules->single_rank_may_split)
        return DBO_VOTE_DP_SIZE;
    if (rules->num_ubatches < 2)
        return DBO_VOTE_OFF;
    if (!rules->has_expert_parallelism)
        return DBO_VOTE_EP_OFF;
    return rules->has_linear_attention ? DBO_VOTE_LINEAR_ATTENTION : DBO_VOTE_OK;
}

bool dbo_vote_reaches_threshold(const dbo_vote_rules *rules, int32_t num_tokens,
                                bool uniform_decode)
{
    return num_tokens >= (uniform_decode ? rules->decode_threshold : rules->prefill_threshold);
}
