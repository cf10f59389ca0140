/* runner.c: the order of a step. Each idea is in its own file; this one only calls them in turn. */
#include "core/step/runner.h"

#include "core/decide/veto.h"
#include "core/step/kv_access.h"
#include "core/step/step_log.h"

#include <stdlib.h>
#include <string.h>

/* Do compute kernels keep all SMs, and HT's transfers none? So on ROCm. */
static bool keeps_all(const dbo_deployment *d)
{
    if (d->config->all2all_backend != DBO_BACKEND_HT)
        return false;
    if (d->rocm)
        return !dbo_fault_strikes(d->fault, DBO_FAULT_ROCM_COMM_SMS);
    return dbo_fault_strikes(d->fault, DBO_FAULT_NO_SM_PARTITION);
}

dbo_status dbo_runner_init(dbo_runner *runner, dbo_rank *rank, const dbo_deployment *deployment,
                           dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    memset(runner, 0, sizeof *runner);
    runner->rank = rank;
    runner->deployment = deployment;
    if (seam->a2a)
        seam->a2a->caps(seam->a2a_self, &runner->caps);
    if (dbo_fault_is(deployment->fault, DBO_FAULT_HOST_SYNC_IN_CAPTURE))
        runner->caps.capturable = true;
    bool linear = deployment->model && deployment->model->attention == DBO_ATTENTION_LINEAR;
    dbo_vote_rules_from_config(&runner->rules, deployment->config, runner->caps.capturable, linear);
    runner->rules.literal_graph_test =
        dbo_fault_is(deployment->fault, DBO_FAULT_GRAPH_EMPTY_UBATCH);
    runner->group_size = seam->group->size(seam->group_self);
    runner->matrix = calloc((size_t)runner->group_size * DBO_VOTE_MAX_ROWS, sizeof(int32_t));
    runner->across_dp = calloc(runner->group_size, sizeof(int32_t));
    dbo_status status = DBO_OK;
    if (!runner->matrix || !runner->across_dp)
        status = dbo_fail_memory(err, "a runner");
    if (status == DBO_OK)
        status = dbo_wrapper_init(&runner->wrapper, rank, deployment->config, keeps_all(deployment),
                                  err);
    runner->wrapper.fault = deployment->fault;
    if (dbo_fault_is(deployment->fault, DBO_FAULT_UBATCH_ERROR_PARKS_SIBLINGS))
        dbo_executor_park_siblings(rank->executor, &deployment->fault->reached);
    if (status == DBO_OK) {
        status = seam->device->event_create(seam->device_self, &runner->step_done);
        runner->has_event = status == DBO_OK;
        if (status != DBO_OK)
            dbo_rank_fail(rank, status, err);
    }
    if (status != DBO_OK)
        dbo_runner_fini(runner);
    return status;
}

void dbo_runner_fini(dbo_runner *runner)
{
    if (runner->has_event)
        runner->rank->seam.device->event_destroy(runner->rank->seam.device_self, runner->step_done);
    dbo_wrapper_fini(&runner->wrapper);
    dbo_fault_batch_fini(&runner->lens);
    free(runner->matrix);
    free(runner->across_dp);
    memset(runner, 0, sizeof *runner);
}

static void charge(const dbo_rank *rank, dbo_charge kind, uint32_t count)
{
    if (rank->seam.host->charge)
        rank->seam.host->charge(rank->seam.host_self, kind, count);
}

static int64_t mark(const dbo_rank *rank, dbo_mark_kind kind, uint32_t step)
{
    const dbo_seam *seam = &rank->seam;
    const dbo_mark m = {.host_ns = seam->host->now_ns(seam->host_self),
                        .rank = (uint16_t)rank->id,
                        .ubatch = DBO_MARK_MAIN,
                        .kind = (uint8_t)kind,
                        .step = step};
    if (seam->trace && seam->trace->mark)
        seam->trace->mark(seam->trace_self, &m);
    return m.host_ns;
}

/* ---- what this rank brings to the vote ---- */

/* Cache blocks of all requests as one table; NULL blocks count as none. */
static dbo_status ask_veto(const dbo_config *config, const dbo_request *requests, int32_t num_reqs,
                           bool *allow, dbo_error *err)
{
    int32_t columns = 1;
    for (int32_t r = 0; r < num_reqs; r++)
        columns = requests[r].num_blocks > columns ? requests[r].num_blocks : columns;
    size_t reqs = (size_t)num_reqs;
    int32_t *table = calloc(reqs * ((size_t)columns + 2) + 1, sizeof *table);
    if (!table)
        return dbo_fail_memory(err, "the block table");
    int32_t *computed = table + reqs * (size_t)columns, *scheduled = computed + reqs;
    bool any = false;
    for (int32_t r = 0; r < num_reqs; r++) {
        computed[r] = requests[r].num_computed;
        scheduled[r] = requests[r].num_scheduled;
        for (int32_t c = 0; c < requests[r].num_blocks && requests[r].blocks; c++)
            table[(size_t)r * (size_t)columns + (size_t)c] = requests[r].blocks[c];
        any = any || (requests[r].blocks && requests[r].num_blocks > 0);
    }
    const dbo_kv_group group = {
        .block_size = (int32_t)config->block_size, .columns = columns, .block_table = table};
    const dbo_veto_batch batch = {.use_ubatching = dbo_config_use_ubatching(config),
                                  .reorder_batch_threshold =
                                      (int32_t)config->reorder_batch_threshold,
                                  .num_reqs = num_reqs,
                                  .num_computed = computed,
                                  .num_scheduled = scheduled,
                                  .num_groups = any ? 1 : 0,
                                  .groups = &group};
    dbo_veto_scratch scratch = {0};
    dbo_status status = dbo_veto_allows(&batch, &scratch, allow, err);
    dbo_veto_scratch_fini(&scratch);
    free(table);
    return status;
}

/* The graph mode that this rank's own batch asks for. HT cannot be captured, so with it there are
 * no graphs at all. */
static dbo_graph_mode wanted_mode(const dbo_runner *runner, const dbo_batch *batch)
{
    if (!runner->caps.capturable)
        return DBO_GRAPH_NONE;
    if (dbo_vote_bucket(&runner->rules, batch->num_tokens) == 0)
        return DBO_GRAPH_NONE;
    switch (runner->deployment->config->cudagraph_mode) {
    case DBO_GRAPHS_NONE: break;
    case DBO_GRAPHS_PIECEWISE: return DBO_GRAPH_PIECEWISE;
    case DBO_GRAPHS_FULL: return DBO_GRAPH_FULL;
    case DBO_GRAPHS_FULL_DECODE_ONLY:
        return batch->uniform_decode ? DBO_GRAPH_FULL : DBO_GRAPH_NONE;
    case DBO_GRAPHS_FULL_AND_PIECEWISE:
        return batch->uniform_decode ? DBO_GRAPH_FULL : DBO_GRAPH_PIECEWISE;
    }
    return DBO_GRAPH_NONE;
}

static dbo_status make_entry(const dbo_runner *runner, const dbo_request *requests,
                             int32_t num_reqs, const dbo_batch *batch, dbo_vote_entry *entry,
                             dbo_error *err)
{
    *entry = (dbo_vote_entry){.num_tokens = batch->num_tokens,
                              .num_tokens_padded = batch->num_tokens,
                              .num_reqs = num_reqs,
                              .uniform_token_count = batch->uniform_token_count,
                              .max_query_len = batch->max_query_len,
                              .uniform_decode = batch->uniform_decode ? DBO_TRUE : DBO_FALSE,
                              .allow_skip_drafts = true,
                              .graph_mode = wanted_mode(runner, batch)};
    if (entry->graph_mode != DBO_GRAPH_NONE) {
        int32_t bucket = dbo_vote_bucket(&runner->rules, batch->num_tokens);
        entry->num_tokens_padded = bucket > 0 ? bucket : batch->num_tokens;
    }
    DBO_TRY(ask_veto(runner->deployment->config, requests, num_reqs, &entry->allow, err));
    if (!entry->allow && dbo_fault_strikes(runner->deployment->fault, DBO_FAULT_PREFIX_NO_VETO))
        entry->allow = true;
    return DBO_OK;
}

/* The collective decision. One rank decides alone, by the same rules. */
static dbo_status vote(dbo_runner *runner, const dbo_vote_entry *entry, dbo_vote_result *out,
                       dbo_error *err)
{
    const dbo_seam *seam = &runner->rank->seam;
    int32_t column[DBO_VOTE_MAX_ROWS];
    DBO_TRY(dbo_vote_column(&runner->rules, entry, column, err));
    uint32_t rows = (uint32_t)dbo_vote_rows(&runner->rules);
    if (runner->group_size == 1) {
        memcpy(runner->matrix, column, rows * sizeof *column);
    } else {
        dbo_status status = seam->group->exchange(seam->group_self, "vote", runner->num_votes++,
                                                  column, rows, runner->matrix);
        if (status != DBO_OK)
            return dbo_rank_fail(runner->rank, status, err);
    }
    dbo_vote_decide(&runner->rules, runner->matrix, (int32_t)runner->group_size,
                    (int32_t)seam->group->rank(seam->group_self), runner->across_dp, out);
    return DBO_OK;
}

/* What faults make of the decision on this rank alone. */
static void misdecide(const dbo_runner *runner, int32_t num_tokens, dbo_vote_result *decision)
{
    dbo_fault *fault = runner->deployment->fault;
    int32_t n = (int32_t)dbo_config_num_ubatches(runner->deployment->config);
    int32_t smallest = INT32_MAX;
    const dbo_seam *seam = &runner->rank->seam;
    uint32_t own = seam->group->rank(seam->group_self); /* of a class, the first member's */
    for (uint32_t r = 0; r < runner->group_size; r++)
        smallest = runner->matrix[r] < smallest ? runner->matrix[r] : smallest;
    if (decision->should_ubatch && decision->graph_mode == DBO_GRAPH_FULL &&
        dbo_is_last_ubatch_empty(smallest, decision->num_tokens_padded, n))
        dbo_fault_strikes(fault, DBO_FAULT_GRAPH_EMPTY_UBATCH);
    if (n > 1 && dbo_fault_is(fault, DBO_FAULT_VOTE_SKIP) && own == fault->rank) {
        fault->reached++;
        decision->should_ubatch = !decision->should_ubatch;
        decision->graph_mode = DBO_GRAPH_NONE;
    }
    if (decision->should_ubatch &&
        dbo_is_last_ubatch_empty(num_tokens, decision->num_tokens_padded, n) &&
        dbo_fault_strikes(fault, DBO_FAULT_IDLE_OPT_OUT))
        decision->should_ubatch = false;
}

/* ---- the step ---- */

static int32_t padded_requests(const dbo_config *config, const dbo_vote_result *decision,
                               int32_t num_reqs)
{
    if (decision->graph_mode != DBO_GRAPH_FULL)
        return num_reqs;
    int32_t fit = decision->num_tokens_padded / (int32_t)dbo_config_decode_query_len(config);
    int32_t most = (int32_t)config->max_num_seqs;
    int32_t padded = fit < most ? fit : most;
    return padded > num_reqs ? padded : num_reqs;
}

static const dbo_log *log_of(const dbo_runner *runner)
{
    return runner->deployment->log ? runner->deployment->log : &dbo_log_none;
}

static void log_decision(const dbo_runner *runner, const dbo_vote_result *decision,
                         int32_t num_reqs)
{
    dbo_step_log_vote(log_of(runner), decision,
                      padded_requests(runner->deployment->config, decision, num_reqs),
                      runner->across_dp, runner->group_size);
}

/* Cuts the step as decided; row 0 of either vote has every rank's real tokens. */
static dbo_status make_cut(dbo_runner *runner, const dbo_request *requests, int32_t num_reqs,
                           dbo_step_result *result, dbo_error *err)
{
    const dbo_config *config = runner->deployment->config;
    const dbo_vote_result *decision = &result->decision;
    uint32_t num_ubatches = decision->should_ubatch ? dbo_config_num_ubatches(config) : 1;
    dbo_fault *fault = runner->deployment->fault;
    const dbo_request *kept = requests;
    DBO_TRY(dbo_fault_batch_before(&runner->lens, fault, &kept, num_reqs, err));
    DBO_TRY(dbo_cut_make(&result->cut, kept, num_reqs, decision->num_tokens_padded,
                         padded_requests(config, decision, num_reqs), num_ubatches, runner->matrix,
                         runner->group_size, err));
    DBO_TRY(dbo_fault_batch_after(&runner->lens, fault, requests, num_reqs, &result->cut, err));
    charge(runner->rank, DBO_CHARGE_METADATA, num_ubatches);
    return DBO_OK;
}

/* What transfers had, and what the back end lets them have again. */
static void log_sms(const dbo_runner *runner)
{
    const dbo_sm_control *sms = &runner->wrapper.sms;
    if (sms->comm > 0)
        DBO_LOG(log_of(runner), A2A, INFO,
                "comm SMs: %u of %u while ubatches ran, %u of them afterwards", sms->comm,
                sms->total, sms->effective);
    else
        DBO_LOG(log_of(runner), A2A, INFO, "comm SMs: none are kept for this back end");
}

/* An engine that sizes its KV cache by a profile run of the split batch alone, here the first split
 * step: one that is not split finds too little left. */
static dbo_status fit_profile(dbo_runner *runner, const dbo_step_result *result, dbo_error *err)
{
    dbo_fault *fault = runner->deployment->fault;
    bool split = result->cut.num_ubatches > 1;
    uint64_t used = result->memory.peak_used_bytes, profiled = runner->profiled_bytes;
    if (!dbo_fault_is(fault, DBO_FAULT_PROFILE_HALF_BATCH))
        return DBO_OK;
    if (split && profiled == 0)
        runner->profiled_bytes = used;
    if (split || profiled == 0 || used <= profiled)
        return DBO_OK;
    fault->reached++;
    return dbo_fail(
        err, DBO_REFUSED, "Profile the largest batch unsplit as well.",
        "a step of %d tokens that is not split takes %.2f GB; the profile run, which was "
        "split, took %.2f GB, and the KV cache got the rest",
        result->num_tokens, (double)used / 1e9, (double)profiled / 1e9);
}

/* Issues the step's programs and waits for the device. */
static dbo_status run_plan(dbo_runner *runner, const dbo_plan *plan, uint32_t step,
                           dbo_step_result *result, dbo_error *err)
{
    dbo_wrapper_reset_peaks(&runner->wrapper);
    if (result->decision.graph_mode == DBO_GRAPH_FULL && runner->caps.needs_host_sync)
        dbo_fault_strikes(runner->deployment->fault, DBO_FAULT_HOST_SYNC_IN_CAPTURE);
    dbo_status status = dbo_wrapper_run(&runner->wrapper, plan, step, result->decision.graph_mode,
                                        &result->ran, err);
    const dbo_seam *seam = &runner->rank->seam;
    if (status == DBO_OK) {
        charge(runner->rank, DBO_CHARGE_EVENT, 1);
        status = seam->device->record(seam->device_self, runner->step_done,
                                      runner->rank->streams[DBO_STREAM_COMPUTE]);
        if (status == DBO_OK)
            status = seam->device->host_wait(seam->device_self, runner->step_done);
        if (status != DBO_OK)
            dbo_rank_fail(runner->rank, status, err);
    }
    dbo_wrapper_memory(&runner->wrapper, &result->memory);
    if (status == DBO_OK && result->cut.num_ubatches > 1)
        log_sms(runner);
    return status == DBO_OK ? fit_profile(runner, result, err) : status;
}

/* The programs of the cut; for who checks them, with the blocks of the KV cache that they touch. */
static dbo_status build_plan(const dbo_runner *runner, const dbo_cut *cut,
                             const dbo_request *requests, dbo_plan *plan, dbo_error *err)
{
    const dbo_deployment *d = runner->deployment;
    DBO_TRY(dbo_plan_build(plan, d, cut, &runner->caps, err));
    if (!d->io || d->numbers)
        return DBO_OK;
    dbo_status status = dbo_kv_accesses_set(plan, cut, requests, d->config->block_size, err);
    if (status != DBO_OK)
        dbo_plan_fini(plan);
    return status;
}

/* Cuts the step, writes its programs, lets the hook see them, and runs them. */
static dbo_status forward(dbo_runner *runner, uint32_t step, const dbo_request *requests,
                          int32_t num_reqs, dbo_step_result *result, dbo_error *err)
{
    dbo_plan plan;
    DBO_TRY(make_cut(runner, requests, num_reqs, result, err));
    dbo_step_log_slices(log_of(runner), &result->cut);
    DBO_TRY(build_plan(runner, &result->cut, requests, &plan, err));
    const dbo_step_view view = {.runner = runner,
                                .step = step,
                                .requests = requests,
                                .num_reqs = num_reqs,
                                .cut = &result->cut};
    dbo_status status = DBO_OK;
    if (runner->hook.prepare)
        status = runner->hook.prepare(runner->hook.self, &view, &plan, err);
    if (status == DBO_OK)
        status = run_plan(runner, &plan, step, result, err);
    dbo_plan_fini(&plan);
    return status;
}

/* A rank without a token still takes part in the transfers of those that have some. */
static bool group_is_idle(const dbo_runner *runner)
{
    for (uint32_t r = 0; r < runner->group_size; r++)
        if (runner->matrix[r] > 0)
            return false;
    return true;
}

dbo_status dbo_runner_step(dbo_runner *runner, uint32_t step, const dbo_request *requests,
                           int32_t num_reqs, dbo_step_result *result, dbo_error *err)
{
    memset(result, 0, sizeof *result);
    dbo_batch batch;
    dbo_vote_entry entry;
    DBO_TRY(dbo_batch_summarize(requests, num_reqs,
                                (int32_t)dbo_config_decode_query_len(runner->deployment->config),
                                &batch, err));
    result->num_tokens = batch.num_tokens;
    result->begin_ns = mark(runner->rank, DBO_MARK_STEP_BEGIN, step);
    charge(runner->rank, DBO_CHARGE_STEP, 1);
    if (num_reqs == 0 &&
        dbo_fault_strikes(runner->deployment->fault, DBO_FAULT_EMPTY_RANK_SKIPS_STEP)) {
        result->end_ns = mark(runner->rank, DBO_MARK_STEP_END, step);
        return DBO_OK;
    }
    DBO_TRY(make_entry(runner, requests, num_reqs, &batch, &entry, err));
    DBO_TRY(vote(runner, &entry, &result->decision, err));
    if (runner->deployment->fault)
        misdecide(runner, batch.num_tokens, &result->decision);
    log_decision(runner, &result->decision, num_reqs);
    if (!group_is_idle(runner)) {
        dbo_status status = forward(runner, step, requests, num_reqs, result, err);
        if (status != DBO_OK) {
            dbo_step_result_fini(result);
            return status;
        }
    }
    result->end_ns = mark(runner->rank, DBO_MARK_STEP_END, step);
    return DBO_OK;
}

void dbo_step_result_fini(dbo_step_result *result)
{
    dbo_cut_fini(&result->cut);
}
