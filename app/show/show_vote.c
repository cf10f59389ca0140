/* show_vote.c: the vote as a table, and its derivation in words. Ranks that give the same column
 * are shown as one; the text follows the order in which the rules decide (core/decide/vote.h). */
#include "app/show/show.h"

#include <inttypes.h>
#include <stdio.h>

#define COLUMN_WIDTH 12

typedef struct vote_view {
    const dbo_experiment *experiment;
    const dbo_simulated *run;
    const dbo_vote_result *decision;
    dbo_vote_rules rules;
    uint32_t num_ranks;
    dbo_strbuf *out;
} vote_view;

static const char *row_name(const vote_view *v, uint32_t row)
{
    static const char *const seed[DBO_VOTE_SEED_ROWS] = {
        [DBO_VOTE_TOKENS] = "num_tokens",
        [DBO_VOTE_GRAPH_MODE] = "cudagraph_mode",
        [DBO_VOTE_UNIFORM_COUNT] = "uniform_token_count",
        [DBO_VOTE_MAX_QUERY] = "max_query_len",
        [DBO_VOTE_ALLOW] = "allow_ubatching",
        [DBO_VOTE_REQS] = "num_reqs",
        [DBO_VOTE_SKIP_DRAFTS] = "allow_skip_drafts"};
    static const char *const v1[DBO_VOTE_V1_ROWS] = {[DBO_VOTE_V1_TOKENS] = "num_tokens",
                                                     [DBO_VOTE_V1_PADDED] = "num_tokens_padded",
                                                     [DBO_VOTE_V1_WANTS] = "should_ubatch",
                                                     [DBO_VOTE_V1_GRAPH_MODE] = "cudagraph_mode"};
    return v->rules.rules == DBO_RULES_V1 ? v1[row] : seed[row];
}

static int32_t cell(const vote_view *v, uint32_t row, uint32_t rank)
{
    return v->run->vote[(size_t)row * v->num_ranks + rank];
}

/* ---- the matrix ---- */

static void add_cell(const vote_view *v, uint32_t row, uint32_t rank)
{
    int32_t value = cell(v, row, rank);
    bool is_mode = row == (v->rules.rules == DBO_RULES_V1 ? (uint32_t)DBO_VOTE_V1_GRAPH_MODE
                                                          : (uint32_t)DBO_VOTE_GRAPH_MODE);
    char text[32];
    if (is_mode)
        snprintf(text, sizeof text, "%" PRId32 " %s", value,
                 dbo_graph_mode_name((dbo_graph_mode)value));
    else
        snprintf(text, sizeof text, "%" PRId32, value);
    dbo_strbuf_printf(v->out, "  %*s", COLUMN_WIDTH, text);
}

/* Ranks [first, end) give the same column. */
static uint32_t stretch_end(const vote_view *v, uint32_t first)
{
    uint32_t end = first + 1;
    for (; end < v->num_ranks; end++)
        for (uint32_t row = 0; row < v->run->vote_rows; row++)
            if (cell(v, row, end) != cell(v, row, first))
                return end;
    return end;
}

static void add_heading(const vote_view *v, uint32_t first, uint32_t end)
{
    char text[32];
    snprintf(text, sizeof text, end > first + 1 ? "ranks %u-%u" : "rank %u", first, end - 1);
    dbo_strbuf_printf(v->out, "  %*s", COLUMN_WIDTH, text);
}

/* As many stretches of equal ranks as fit in a line; then the next ones below. */
static void add_matrix(const vote_view *v)
{
    enum { COLUMNS = 5 };
    for (uint32_t rank = 0; rank < v->num_ranks;) {
        uint32_t firsts[COLUMNS + 1] = {rank}, num = 0;
        while (num < COLUMNS && firsts[num] < v->num_ranks) {
            firsts[num + 1] = stretch_end(v, firsts[num]);
            num++;
        }
        dbo_strbuf_printf(v->out, "%-22s", "row");
        for (uint32_t i = 0; i < num; i++)
            add_heading(v, firsts[i], firsts[i + 1]);
        dbo_strbuf_add(v->out, "\n");
        for (uint32_t row = 0; row < v->run->vote_rows; row++) {
            dbo_strbuf_printf(v->out, "%u %-20s", row, row_name(v, row));
            for (uint32_t i = 0; i < num; i++)
                add_cell(v, row, firsts[i]);
            dbo_strbuf_add(v->out, "\n");
        }
        rank = firsts[num];
        dbo_strbuf_add(v->out, "\n");
    }
}

/* ---- what follows from it ---- */

static void range_of(const vote_view *v, uint32_t row, int32_t *least, int32_t *most)
{
    *least = *most = cell(v, row, 0);
    for (uint32_t rank = 1; rank < v->num_ranks; rank++) {
        int32_t value = cell(v, row, rank);
        *least = value < *least ? value : *least;
        *most = value > *most ? value : *most;
    }
}

static void add_uniform(const vote_view *v)
{
    int32_t count = v->decision->uniform_token_count, length = v->rules.decode_query_len;
    if (count == length)
        dbo_strbuf_printf(v->out,
                          "  kind       every request runs %" PRId32
                          " token(s), the decode query length: uniform decode\n",
                          count);
    else if (count > 0)
        dbo_strbuf_printf(v->out,
                          "  kind       every request runs %" PRId32
                          " tokens, but a decode runs %" PRId32 ": prefill\n",
                          count, length);
    else
        dbo_strbuf_add(v->out, "  kind       requests differ in their tokens: prefill\n");
}

static void add_seed_steps(const vote_view *v)
{
    int32_t least, most, allowed, unused;
    bool decode = v->decision->uniform_token_count == v->rules.decode_query_len;
    int32_t threshold = decode ? v->rules.decode_threshold : v->rules.prefill_threshold;
    range_of(v, DBO_VOTE_TOKENS, &least, &most);
    range_of(v, DBO_VOTE_ALLOW, &allowed, &unused);
    add_uniform(v);
    if (v->rules.num_ubatches < 2)
        return;
    dbo_strbuf_printf(v->out, "  allowed    %s\n",
                      allowed ? "by every rank" : "not by every rank: one 0 in row 4 is a veto");
    if (v->rules.threshold_in_vote)
        dbo_strbuf_add(v->out, "  threshold  inside row 4, each rank's own\n");
    else
        dbo_strbuf_printf(v->out,
                          "  threshold  the smallest rank has %" PRId32 " tokens, %s %" PRId32
                          ", the %s threshold\n",
                          least, least >= threshold ? "not below" : "below", threshold,
                          decode ? "decode" : "prefill");
    int32_t bucket = dbo_vote_bucket(&v->rules, most);
    if (!v->decision->should_ubatch || bucket == 0)
        return;
    dbo_strbuf_printf(v->out,
                      "  bucket     %" PRId32 ", the smallest capture size from %" PRId32 " on",
                      bucket, most);
    if (dbo_is_last_ubatch_empty(least, bucket, v->rules.num_ubatches))
        dbo_strbuf_add(v->out, "; the smallest rank's last ubatch would be empty in it: eager");
    else if (v->decision->graph_mode != DBO_GRAPH_FULL)
        dbo_strbuf_add(v->out, "; not used: only a uniform decode over a capturable all-to-all is");
    dbo_strbuf_add(v->out, "\n");
}

static void add_v1_steps(const vote_view *v)
{
    int32_t least, most, padded, unused, wants;
    range_of(v, DBO_VOTE_V1_TOKENS, &least, &unused);
    range_of(v, DBO_VOTE_V1_PADDED, &unused, &most);
    range_of(v, DBO_VOTE_V1_WANTS, &wants, &unused);
    padded = most;
    dbo_strbuf_printf(v->out, "  wanted     %s\n",
                      wants ? "by every rank (its own threshold and veto)"
                            : "not by every rank: one 0 in row 2 decides");
    if (v->rules.num_ubatches > 1 && wants)
        dbo_strbuf_printf(v->out,
                          "  last one   of %" PRId32 " padded tokens the smallest rank has %" PRId32
                          ": its last ubatch is %s\n",
                          padded, least,
                          dbo_is_last_ubatch_empty(least, padded, v->rules.num_ubatches)
                              ? "empty, so nobody splits"
                              : "not empty");
}

static void add_counts(const vote_view *v)
{
    dbo_strbuf_add(v->out, "  runs       ");
    for (uint32_t rank = 0, shown = 0; rank < v->num_ranks; shown++) {
        uint32_t end = rank;
        while (end < v->num_ranks && v->run->across_dp[end] == v->run->across_dp[rank])
            end++;
        if (shown == 8) {
            dbo_strbuf_add(v->out, ", ...");
            break;
        }
        dbo_strbuf_printf(v->out, "%s%" PRId32 " tokens on ", shown ? ", " : "",
                          v->run->across_dp[rank]);
        dbo_strbuf_printf(v->out, end > rank + 1 ? "ranks %u-%u" : "rank %u", rank, end - 1);
        rank = end;
    }
    dbo_strbuf_add(v->out, "\n");
}

void dbo_show_vote(const dbo_outcome *outcome, dbo_strbuf *out)
{
    const dbo_experiment *experiment = outcome->result.experiment;
    const dbo_vote_result *decision = outcome->result.decision;
    bool linear = experiment->has_model && experiment->model.attention == DBO_ATTENTION_LINEAR;
    vote_view v = {.experiment = experiment,
                   .run = &outcome->on,
                   .decision = decision,
                   .num_ranks = experiment->config.data_parallel_size,
                   .out = out};
    dbo_vote_rules_from_config(&v.rules, &experiment->config, v.run->caps.capturable, linear);
    dbo_strbuf_printf(out,
                      "The vote of %u rank%s, rules %s: %u rows of int32, each rank fills its "
                      "column, all get the sum\n\n",
                      v.num_ranks, v.num_ranks == 1 ? "" : "s",
                      v.rules.rules == DBO_RULES_V1 ? "v1" : "seed", v.run->vote_rows);
    add_matrix(&v);
    dbo_strbuf_add(out, "Every rank derives\n");
    if (v.rules.rules == DBO_RULES_V1)
        add_v1_steps(&v);
    else
        add_seed_steps(&v);
    dbo_strbuf_printf(
        out, "  decision   %s (%s): %s\n", decision->should_ubatch ? "split" : "no split",
        dbo_vote_reason_name(decision->reason), dbo_vote_reason_text(decision->reason));
    dbo_strbuf_printf(out, "  graph      %s\n", dbo_graph_mode_name(decision->graph_mode));
    add_counts(&v);
}
