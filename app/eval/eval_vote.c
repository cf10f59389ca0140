/* eval_vote.c: `dbo eval` on the collective decision and what it is made of.
 *
 * A case holds all ranks: each fills its column, the columns are summed as the exchange does, and
 * every rank derives its answer from the sum.
 */
#include "app/eval/eval_impl.h"
#include "core/decide/vote.h"

static dbo_status read_shared(const dbo_json_value *in, dbo_vote_rules *rules, dbo_error *err)
{
    rules->has_expert_parallelism = true;
    DBO_TRY(dbo_eval_int(in, "num_ubatches", 0, &rules->num_ubatches, err));
    DBO_TRY(dbo_eval_int(in, "dbo_decode_token_threshold", 0, &rules->decode_threshold, err));
    return dbo_eval_int(in, "dbo_prefill_token_threshold", 0, &rules->prefill_threshold, err);
}

static dbo_status read_mode(const dbo_json_value *in, const char *key, dbo_graph_mode *mode,
                            dbo_error *err)
{
    uint32_t value;
    DBO_TRY(dbo_json_need_uint32(in, key, DBO_GRAPH_NONE, DBO_GRAPH_FULL, &value, err));
    *mode = (dbo_graph_mode)value;
    return DBO_OK;
}

static dbo_status read_v1_entry(const dbo_json_value *in, dbo_vote_entry *entry, dbo_error *err)
{
    DBO_TRY(dbo_eval_int(in, "unpadded", 0, &entry->num_tokens, err));
    DBO_TRY(
        dbo_eval_int_or_null(in, "padded", 0, entry->num_tokens, &entry->num_tokens_padded, err));
    DBO_TRY(dbo_json_need_bool(in, "allow", &entry->allow, err));
    DBO_TRY(dbo_eval_tristate(in, "uniform", &entry->uniform_decode, err));
    return read_mode(in, "cg", &entry->graph_mode, err);
}

static dbo_status read_seed_entry(const dbo_json_value *in, dbo_vote_entry *entry, dbo_error *err)
{
    DBO_TRY(dbo_eval_int(in, "num_tokens", 0, &entry->num_tokens, err));
    DBO_TRY(dbo_eval_int(in, "num_reqs", 0, &entry->num_reqs, err));
    DBO_TRY(
        dbo_eval_int_or_null(in, "uniform_token_count", 0, 0, &entry->uniform_token_count, err));
    DBO_TRY(dbo_eval_int_or_null(in, "max_query_len", -1, -1, &entry->max_query_len, err));
    DBO_TRY(dbo_json_need_bool(in, "allow_ubatching", &entry->allow, err));
    DBO_TRY(read_mode(in, "cudagraph_mode", &entry->graph_mode, err));
    return dbo_json_need_bool(in, "allow_skip_drafts", &entry->allow_skip_drafts, err);
}

typedef struct eval_vote {
    dbo_vote_rules rules;
    dbo_json_value ranks;
    int32_t num_ranks, rows;
    int32_t *matrix;     /* (rows, num_ranks) */
    int32_t *across;     /* (num_ranks) */
    dbo_graph_mode only; /* the first rank's own mode */
} eval_vote;

static dbo_status read_ranks(dbo_eval_case *c, eval_vote *vote, dbo_error *err)
{
    DBO_TRY(dbo_json_need(c->in, "ranks", DBO_JSON_ARRAY, &vote->ranks, err));
    size_t count = dbo_json_count(&vote->ranks);
    if (count < 1 || count > INT32_MAX / DBO_VOTE_MAX_ROWS)
        return dbo_json_fail(err, &vote->ranks, NULL, "has %zu elements", count);
    vote->num_ranks = (int32_t)count;
    vote->rows = dbo_vote_rows(&vote->rules);
    DBO_TRY(dbo_eval_alloc(c, (int64_t)vote->rows * vote->num_ranks, &vote->matrix, err));
    return dbo_eval_alloc(c, vote->num_ranks, &vote->across, err);
}

static dbo_status fill_matrix(eval_vote *vote, dbo_error *err)
{
    for (int32_t r = 0; r < vote->num_ranks; r++) {
        dbo_json_value in = dbo_json_at(&vote->ranks, (size_t)r);
        dbo_vote_entry entry = {.uniform_decode = DBO_UNKNOWN};
        int32_t column[DBO_VOTE_MAX_ROWS];
        DBO_TRY(vote->rules.rules == DBO_RULES_V1 ? read_v1_entry(&in, &entry, err)
                                                  : read_seed_entry(&in, &entry, err));
        if (r == 0)
            vote->only = entry.graph_mode;
        if (vote->rules.rules == DBO_RULES_V1 && vote->num_ranks == 1)
            return DBO_OK; /* alone, nobody votes and nothing is checked */
        dbo_status status = dbo_vote_column(&vote->rules, &entry, column, err);
        if (status != DBO_OK)
            return dbo_error_prefix(err, "rank %d", r);
        dbo_vote_add_column(vote->matrix, vote->rows, vote->num_ranks, r, column);
    }
    return DBO_OK;
}

static void write_reduced(dbo_json_writer *out, const eval_vote *vote)
{
    dbo_json_open(out, "reduced", '[');
    for (int32_t row = 0; row < vote->rows; row++)
        dbo_json_put_int32s(out, NULL, vote->matrix + (ptrdiff_t)row * vote->num_ranks,
                            (size_t)vote->num_ranks);
    dbo_json_close(out);
}

/* --- v1 ------------------------------------------------------------------------------------ */

static void write_v1_result(dbo_json_writer *out, bool should, const int32_t *across,
                            int32_t num_ranks, dbo_graph_mode mode)
{
    dbo_json_open(out, NULL, '{');
    dbo_json_put_bool(out, "should_ubatch", should);
    dbo_json_put_int32s(out, "num_tokens_across_dp", across, (size_t)num_ranks);
    dbo_json_put_int(out, "synced_cudagraph_mode", mode);
    dbo_json_close(out);
}

dbo_status dbo_eval_vote(dbo_eval_case *c, dbo_error *err)
{
    eval_vote vote = {
        .rules = {.rules = DBO_RULES_V1, .threshold_in_vote = true, .abort_on_empty = true}};
    DBO_TRY(read_shared(c->in, &vote.rules, err));
    DBO_TRY(read_ranks(c, &vote, err));
    int32_t dp_size;
    DBO_TRY(dbo_eval_int(c->in, "dp_size", 1, &dp_size, err));
    if (dp_size != vote.num_ranks)
        return dbo_json_fail(err, &vote.ranks, NULL, "has %d elements, dp_size is %d",
                             vote.num_ranks, dp_size);
    DBO_TRY(fill_matrix(&vote, err));
    if (vote.num_ranks == 1)
        dbo_json_put_null(c->out, "reduced");
    else
        write_reduced(c->out, &vote);
    dbo_json_open(c->out, "result", '[');
    if (vote.num_ranks == 1)
        write_v1_result(c->out, false, NULL, 0, vote.only);
    for (int32_t r = 0; r < vote.num_ranks && vote.num_ranks > 1; r++) {
        dbo_vote_result result;
        dbo_vote_decide(&vote.rules, vote.matrix, vote.num_ranks, r, vote.across, &result);
        write_v1_result(c->out, result.should_ubatch, vote.across, vote.num_ranks,
                        result.graph_mode);
    }
    dbo_json_close(c->out);
    return DBO_OK;
}

/* --- seed ---------------------------------------------------------------------------------- */

static void write_seed_result(dbo_json_writer *out, const dbo_vote_result *result,
                              const eval_vote *vote)
{
    dbo_json_open(out, NULL, '{');
    dbo_json_put_bool(out, "should_ubatch", result->should_ubatch);
    dbo_json_put_string(out, "reason", dbo_vote_reason_name(result->reason));
    dbo_json_put_int32s(out, "num_tokens_across_dp", vote->across, (size_t)vote->num_ranks);
    dbo_json_put_int(out, "cudagraph_mode", result->graph_mode);
    dbo_json_put_int(out, "num_tokens_padded", result->num_tokens_padded);
    if (result->uniform_token_count == 0)
        dbo_json_put_null(out, "uniform_token_count");
    else
        dbo_json_put_int(out, "uniform_token_count", result->uniform_token_count);
    dbo_json_put_bool(out, "allow_skip_drafts", result->allow_skip_drafts);
    dbo_json_close(out);
}

dbo_status dbo_eval_vote_seed(dbo_eval_case *c, dbo_error *err)
{
    eval_vote vote = {.rules = {.rules = DBO_RULES_SEED}};
    DBO_TRY(read_shared(c->in, &vote.rules, err));
    DBO_TRY(dbo_eval_int(c->in, "decode_query_len", 1, &vote.rules.decode_query_len, err));
    DBO_TRY(dbo_eval_ints(c, c->in, "capture_sizes", 1, &vote.rules.capture_sizes,
                          &vote.rules.num_capture_sizes, err));
    DBO_TRY(dbo_json_need_bool(c->in, "capturable", &vote.rules.capturable, err));
    DBO_TRY(read_ranks(c, &vote, err));
    DBO_TRY(fill_matrix(&vote, err));
    write_reduced(c->out, &vote);
    dbo_json_open(c->out, "result", '[');
    for (int32_t r = 0; r < vote.num_ranks; r++) {
        dbo_vote_result result;
        dbo_vote_decide(&vote.rules, vote.matrix, vote.num_ranks, r, vote.across, &result);
        write_seed_result(c->out, &result, &vote);
    }
    dbo_json_close(c->out);
    return DBO_OK;
}

/* --- parts of the decision ------------------------------------------------------------------ */

dbo_status dbo_eval_thresholds(dbo_eval_case *c, dbo_error *err)
{
    dbo_config config;
    dbo_vote_rules rules;
    bool uniform = false;
    int32_t tokens;
    dbo_config_init(&config);
    DBO_TRY(dbo_json_need_bool(c->in, "enable_dbo", &config.enable_dbo, err));
    DBO_TRY(dbo_json_need_uint32(c->in, "ubatch_size", 0, INT32_MAX, &config.ubatch_size, err));
    DBO_TRY(dbo_json_need_uint32(c->in, "decode_threshold", 0, INT32_MAX,
                                 &config.dbo_decode_token_threshold, err));
    DBO_TRY(dbo_json_need_uint32(c->in, "prefill_threshold", 0, INT32_MAX,
                                 &config.dbo_prefill_token_threshold, err));
    DBO_TRY(dbo_json_need_bool(c->in, "uniform_decode", &uniform, err));
    DBO_TRY(dbo_eval_int(c->in, "num_tokens", 0, &tokens, err));
    dbo_vote_rules_from_config(&rules, &config, false, false);
    dbo_json_put_bool(c->out, "use_ubatching", dbo_config_use_ubatching(&config));
    dbo_json_put_int(c->out, "num_ubatches", dbo_config_num_ubatches(&config));
    dbo_json_put_bool(c->out, "result",
                      dbo_config_use_ubatching(&config) &&
                          dbo_vote_reaches_threshold(&rules, tokens, uniform));
    return DBO_OK;
}

dbo_status dbo_eval_last_ubatch_empty(dbo_eval_case *c, dbo_error *err)
{
    int32_t original, padded, ubatches;
    DBO_TRY(dbo_eval_int(c->in, "orig", 0, &original, err));
    DBO_TRY(dbo_eval_int(c->in, "padded", 0, &padded, err));
    DBO_TRY(dbo_eval_int(c->in, "num_ubatches", 1, &ubatches, err));
    dbo_json_put_bool(c->out, "result", dbo_is_last_ubatch_empty(original, padded, ubatches));
    return DBO_OK;
}
