/* decisions.c: ranks that decide alone, or by a rule that is not quite the right one. */
#include "lab/faults/faults.h"

/* ---- the vote ---- */

static int32_t num_ubatches(const dbo_rank_step *step)
{
    return (int32_t)dbo_config_num_ubatches(step->deployment->config);
}

/* Of a folded rank: that of the first one that it stands for. */
static uint32_t own_rank(const dbo_rank_step *step)
{
    return step->rank->seam.group->rank(step->rank->seam.group_self);
}

static void skip_vote(void *self, const dbo_rank_step *step, dbo_vote_result *out)
{
    dbo_fault *fault = self;
    dbo_step_rules_default.decision(NULL, step, out);
    if (num_ubatches(step) < 2 || own_rank(step) != fault->rank)
        return;
    fault->reached++;
    out->should_ubatch = !out->should_ubatch;
    out->graph_mode = DBO_GRAPH_NONE;
}
const dbo_fault_kind dbo_fault_vote_skip = {
    .settings = {{"rank", offsetof(dbo_fault, rank), DBO_MAX_RANKS - 1, 0}},
    .rules.decision = skip_vote,
    .stands_out = true};

static dbo_status leave_if_empty(void *self, const dbo_rank_step *step, dbo_vote_entry *out,
                                 bool *leaves, dbo_error *err)
{
    dbo_fault *fault = self;
    *leaves = step->num_reqs == 0;
    if (!*leaves)
        return dbo_step_rules_default.entry(NULL, step, out, leaves, err);
    fault->reached++;
    return DBO_OK;
}
const dbo_fault_kind dbo_fault_empty_rank_skips_step = {.rules.entry = leave_if_empty};

static void opt_out(void *self, const dbo_rank_step *step, dbo_vote_result *out)
{
    dbo_fault *fault = self;
    dbo_step_rules_default.decision(NULL, step, out);
    if (!out->should_ubatch ||
        !dbo_is_last_ubatch_empty(step->batch.num_tokens, out->num_tokens_padded,
                                  num_ubatches(step)))
        return;
    fault->reached++;
    out->should_ubatch = false;
}
const dbo_fault_kind dbo_fault_idle_opt_out = {.rules.decision = opt_out};

static dbo_status allow_all(void *self, const dbo_rank_step *step, dbo_vote_entry *out,
                            bool *leaves, dbo_error *err)
{
    dbo_fault *fault = self;
    DBO_TRY(dbo_step_rules_default.entry(NULL, step, out, leaves, err));
    fault->reached += !out->allow;
    out->allow = true;
    return DBO_OK;
}
const dbo_fault_kind dbo_fault_prefix_no_veto = {.rules.entry = allow_all};

/* The documents' literal test: a split graph serves unless 2 * smallest < bucket, which misses that
 * a last ubatch with just no token is empty, too. */
static void replay_at_the_edge(void *self, const dbo_rank_step *step, dbo_vote_result *out)
{
    dbo_fault *fault = self;
    const dbo_vote_rules *vote = &step->setup->vote;
    int32_t smallest = INT32_MAX, largest = 0, mode = DBO_GRAPH_FULL;
    dbo_step_rules_default.decision(NULL, step, out);
    for (uint32_t r = 0; r < step->group_size; r++) {
        int32_t tokens = step->matrix[r];
        int32_t wanted = step->matrix[DBO_VOTE_GRAPH_MODE * step->group_size + r];
        smallest = tokens < smallest ? tokens : smallest;
        largest = tokens > largest ? tokens : largest;
        mode = wanted < mode ? wanted : mode;
    }
    int32_t bucket = dbo_vote_bucket(vote, largest);
    bool uniform_decode = out->uniform_token_count == vote->decode_query_len;
    if (vote->rules != DBO_RULES_SEED || !out->should_ubatch || mode != DBO_GRAPH_FULL ||
        !uniform_decode || !vote->capturable || bucket == 0 || 2 * smallest < bucket ||
        !dbo_is_last_ubatch_empty(smallest, bucket, vote->num_ubatches))
        return;
    fault->reached++;
    out->graph_mode = DBO_GRAPH_FULL;
    out->num_tokens_padded = bucket;
    for (uint32_t r = 0; r < step->group_size; r++)
        step->across_dp[r] = bucket;
}
const dbo_fault_kind dbo_fault_graph_empty_ubatch = {.rules.decision = replay_at_the_edge};

/* ---- turns ---- */

/* The order of a CPU event's clear and the next one's signal concerns threads alone. */
static void clear_late(void *self, const dbo_deployment *deployment, dbo_rank *rank,
                       dbo_step_setup *out)
{
    dbo_step_rules_default.setup(NULL, deployment, rank, out);
    (void)self;
    dbo_executor_set_rules(rank->executor, (dbo_ring_rules){.clears_late = true});
}
static dbo_status note_hand_offs(void *self, dbo_rank *rank, const dbo_step_result *result,
                                 dbo_status status, dbo_error *err)
{
    dbo_fault *fault = self;
    (void)err;
    fault->reached +=
        result->cut.num_ubatches > 1 && dbo_executor_kind(rank->executor) == DBO_CONTEXT_THREAD;
    return status;
}
const dbo_fault_kind dbo_fault_lost_wakeup = {
    .rules = {.setup = clear_late, .after_step = note_hand_offs}};

static void park(void *self, const dbo_deployment *deployment, dbo_rank *rank, dbo_step_setup *out)
{
    (void)self;
    dbo_step_rules_default.setup(NULL, deployment, rank, out);
    dbo_executor_set_rules(rank->executor, (dbo_ring_rules){.parks = true});
}
static dbo_status note_parked(void *self, dbo_rank *rank, const dbo_step_result *result,
                              dbo_status status, dbo_error *err)
{
    dbo_fault *fault = self;
    (void)result;
    (void)err;
    fault->reached += dbo_executor_num_parked(rank->executor) > 0;
    return status;
}
const dbo_fault_kind dbo_fault_ubatch_error_parks_siblings = {
    .rules = {.setup = park, .after_step = note_parked}};
