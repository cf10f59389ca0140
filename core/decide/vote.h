/* vote.h: the collective decision of a step: split or not, how far to pad, graph or eager (section
 * a and its replacement in the project's own rules).
 *
 * Every rank fills its own column, the group exchanges columns, and every rank derives the same
 * answer from the same matrix. matrix is (rows, num_ranks), int32, row by row: what
 * group.exchange (seam.h) returns, equal to the sum of matrices that are zero but for one column.
 *
 * Two sets of rules:
 *   `seed`  7 rows: tokens, graph mode, uniform token count, longest query, allowed, requests, skip
 *           drafts. The threshold is tested once, on the smallest rank, after the sum; a rank
 *           whose last ubatch is empty runs a dummy there.
 *   `v1`    4 rows: tokens, padded tokens, wants to split, graph mode. Each rank tests its own
 *           threshold before the sum; nobody splits if a last ubatch would be empty.
 * `threshold_in_vote` and `abort_on_empty` override one row of either.
 *
 *     int32_t column[DBO_VOTE_MAX_ROWS];
 *     DBO_TRY(dbo_vote_column(&rules, &entry, column, err));
 *     DBO_TRY(group->exchange(self, "vote", step, column, dbo_vote_rows(&rules), matrix));
 *     dbo_vote_decide(&rules, matrix, num_ranks, rank, num_tokens_across_dp, &result);
 *
 * No state; any thread; nothing is allocated.
 */
#ifndef DBO_VOTE_H
#define DBO_VOTE_H

#include "core/base/status.h"
#include "core/decide/config.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_VOTE_SEED_ROWS 7
#define DBO_VOTE_V1_ROWS   4
#define DBO_VOTE_MAX_ROWS  7

enum dbo_vote_seed_row {
    DBO_VOTE_TOKENS,
    DBO_VOTE_GRAPH_MODE,
    DBO_VOTE_UNIFORM_COUNT,
    DBO_VOTE_MAX_QUERY,
    DBO_VOTE_ALLOW,
    DBO_VOTE_REQS,
    DBO_VOTE_SKIP_DRAFTS
};

enum dbo_vote_v1_row {
    DBO_VOTE_V1_TOKENS,
    DBO_VOTE_V1_PADDED,
    DBO_VOTE_V1_WANTS,
    DBO_VOTE_V1_GRAPH_MODE
};

/* What runs, as voted; the numbers are those of the vote. */
typedef enum dbo_graph_mode {
    DBO_GRAPH_NONE = 0,
    DBO_GRAPH_PIECEWISE = 1,
    DBO_GRAPH_FULL = 2
} dbo_graph_mode;

const char *dbo_graph_mode_name(dbo_graph_mode mode); /* "NONE", ... */

/* Why a step is split (ok) or not. X(enumerator, name, sentence) */
#define DBO_VOTE_REASON_MAP(X)                                                                    \
    X(DBO_VOTE_OK, "ok", "the step is split")                                                     \
    X(DBO_VOTE_DP_SIZE, "dp_size", "there is one data-parallel rank, so nothing to overlap")      \
    X(DBO_VOTE_EP_OFF, "ep_off", "expert parallelism is off, so there is no all-to-all")          \
    X(DBO_VOTE_NO_TOKENS, "no_tokens", "no rank has a token to run")                              \
    X(DBO_VOTE_OFF, "off", "dual batch overlap is not enabled")                                   \
    X(DBO_VOTE_VETOED, "vetoed", "a rank must not be split: a request reads what another writes") \
    X(DBO_VOTE_THRESHOLD, "threshold", "the smallest rank has fewer tokens than the threshold")   \
    X(DBO_VOTE_EMPTY_UBATCH, "empty_ubatch", "the last ubatch of a rank would hold only padding") \
    X(DBO_VOTE_LINEAR_ATTENTION, "linear_attention", "linear attention layers cannot be split")

typedef enum dbo_vote_reason {
#define DBO_VOTE_REASON_ENUM(enumerator, name, text) enumerator,
    DBO_VOTE_REASON_MAP(DBO_VOTE_REASON_ENUM)
#undef DBO_VOTE_REASON_ENUM
} dbo_vote_reason;

const char *dbo_vote_reason_name(dbo_vote_reason reason);
const char *dbo_vote_reason_text(dbo_vote_reason reason);

/* What all ranks share; equal on every rank. */
typedef struct dbo_vote_rules {
    dbo_rules rules;
    int32_t num_ubatches; /* below 2: off */
    int32_t decode_threshold, prefill_threshold;
    int32_t decode_query_len;     /* 1 + speculative tokens */
    const int32_t *capture_sizes; /* (num_capture_sizes), any order; borrowed */
    int32_t num_capture_sizes;
    bool capturable;             /* the all-to-all can be captured in a graph */
    bool has_expert_parallelism; /* false: never split */
    bool has_linear_attention;   /* true: never split */
    bool single_rank_may_split;
    bool threshold_in_vote; /* each rank tests its own count before the sum */
    bool abort_on_empty;    /* nobody splits when a last ubatch would be empty */
} dbo_vote_rules;

/* From a checked configuration; borrows its capture sizes. */
void dbo_vote_rules_from_config(dbo_vote_rules *rules, const dbo_config *config, bool capturable,
                                bool has_linear_attention);

/* One rank's own view of its step. */
typedef struct dbo_vote_entry {
    int32_t num_tokens;        /* scheduled, not padded */
    int32_t num_tokens_padded; /* v1: as its own graph dispatch would pad; >= num_tokens */
    int32_t num_reqs;
    int32_t uniform_token_count; /* tokens of each request when all equal, else 0 */
    int32_t max_query_len;       /* <= 0: none */
    bool allow;                  /* the caller's flag and the veto (veto.h) */
    dbo_tristate uniform_decode; /* v1: must be known where allow is set */
    bool allow_skip_drafts;
    dbo_graph_mode graph_mode;
} dbo_vote_entry;

int32_t dbo_vote_rows(const dbo_vote_rules *rules);

/* column is (dbo_vote_rows). DBO_INVALID: v1 with a padded count below the count, or allowed
 * without saying whether the batch is a uniform decode. */
dbo_status dbo_vote_column(const dbo_vote_rules *rules, const dbo_vote_entry *entry,
                           int32_t *column, dbo_error *err);

/* Adds a rank's column to a matrix that started as zeros: the sum, done by hand. */
void dbo_vote_add_column(int32_t *matrix, int32_t rows, int32_t num_ranks, int32_t rank,
                         const int32_t *column);

typedef struct dbo_vote_result {
    bool should_ubatch;
    dbo_vote_reason reason;
    dbo_graph_mode graph_mode;
    int32_t num_tokens_padded;   /* of this rank */
    int32_t uniform_token_count; /* over all ranks, 0: none; v1 does not know it: 0 */
    bool allow_skip_drafts;      /* of all ranks; v1 does not carry it: false */
} dbo_vote_result;

/* num_tokens_across_dp is (num_ranks): what each rank runs, padding included. Every rank gets the
 * same but for num_tokens_padded. */
void dbo_vote_decide(const dbo_vote_rules *rules, const int32_t *matrix, int32_t num_ranks,
                     int32_t rank, int32_t *num_tokens_across_dp, dbo_vote_result *result);

/* The last of N >= 1 ubatches begins at or after the last real token: none is left for it. */
bool dbo_is_last_ubatch_empty(int32_t num_tokens, int32_t num_tokens_padded, int32_t num_ubatches);

/* The threshold of this kind of step; whether ubatching is on is another question. */
bool dbo_vote_reaches_threshold(const dbo_vote_rules *rules, int32_t num_tokens,
                                bool uniform_decode);

/* The smallest capture size >= num_tokens; 0 when there is none. */
int32_t dbo_vote_bucket(const dbo_vote_rules *rules, int32_t num_tokens);

#endif
