/* runner.c: the order of a step. Each idea is in its own file; this one only calls them in turn. */
#include "core/step/runner.h"

#include "core/step/kv_access.h"
#include "core/step/step_log.h"

#include <stdlib.h>
#include <string.h>

dbo_status dbo_runner_init(dbo_runner *runner, dbo_rank *rank, const dbo_deployment *deployment,
                           dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    memset(runner, 0, sizeof *runner);
    runner->rank = rank;
    runner->deployment = deployment;
    runner->rules = dbo_step_rules_of(deployment);
    runner->rules->setup(deployment->rules_self, deployment, rank, &runner->setup);
    runner->group_size = seam->group->size(seam->group_self);
    runner->matrix = calloc((size_t)runner->group_size * DBO_VOTE_MAX_ROWS, sizeof(int32_t));
    runner->across_dp = calloc(runner->group_size, sizeof(int32_t));
    dbo_status status = dbo_need_memory(runner->matrix && runner->across_dp, "a runner", err);
    if (status == DBO_OK)
        status = dbo_wrapper_init(&runner->wrapper, rank, deployment->config,
                                  runner->setup.keeps_all_sms, err);
    runner->wrapper.rules = runner->rules;
    runner->wrapper.rules_self = deployment->rules_self;
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
    free(runner->matrix);
    free(runner->across_dp);
    memset(runner, 0, sizeof *runner);
}

/* ---- the vote ---- */

/* What the step is, for the rules. */
static dbo_rank_step rank_step(const dbo_runner *runner, const dbo_request *requests,
                               int32_t num_reqs)
{
    return (dbo_rank_step){.deployment = runner->deployment,
                           .rank = runner->rank,
                           .setup = &runner->setup,
                           .requests = requests,
                           .num_reqs = num_reqs,
                           .group_size = runner->group_size,
                           .matrix = runner->matrix,
                           .across_dp = runner->across_dp};
}

/* The collective decision. One rank decides alone, by the same rules. */
static dbo_status vote(dbo_runner *runner, const dbo_rank_step *step, dbo_vote_result *out,
                       bool *leaves, dbo_error *err)
{
    const dbo_seam *seam = &runner->rank->seam;
    const dbo_vote_rules *vote = &runner->setup.vote;
    void *self = runner->deployment->rules_self;
    int32_t column[DBO_VOTE_MAX_ROWS];
    dbo_vote_entry entry;
    DBO_TRY(runner->rules->entry(self, step, &entry, leaves, err));
    if (*leaves)
        return DBO_OK;
    DBO_TRY(dbo_vote_column(vote, &entry, column, err));
    uint32_t rows = (uint32_t)dbo_vote_rows(vote);
    if (runner->group_size == 1) {
        memcpy(runner->matrix, column, rows * sizeof *column);
    } else {
        dbo_status status = seam->group->exchange(seam->group_self, "vote", runner->num_votes++,
                                                  column, rows, runner->matrix);
        if (status != DBO_OK)
            return dbo_rank_fail(runner->rank, status, err);
    }
    runner->rules->decision(self, step, out);
    return DBO_OK;
}

/* ---- the step ---- */

static const dbo_log *log_of(const dbo_runner *runner)
{
    return runner->deployment->log ? runner->deployment->log : &dbo_log_none;
}

static void log_decision(const dbo_runner *runner, const dbo_vote_result *decision,
                         int32_t num_reqs)
{
    dbo_step_log_vote(log_of(runner), decision,
                      dbo_cut_padded_reqs(runner->deployment->config, decision, num_reqs),
                      runner->across_dp, runner->group_size);
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

/* The step ends when all that it has issued has ended, on whatever stream, as after a device-wide
 * synchronise: what a stream still carries would else run into the next step. */
static dbo_status await_device(const dbo_runner *runner)
{
    const dbo_rank *rank = runner->rank;
    const dbo_seam *seam = &rank->seam;
    dbo_seam_charge(seam, DBO_CHARGE_EVENT, 1);
    for (uint32_t s = 0; s < rank->num_streams; s++) {
        DBO_TRY(seam->device->record(seam->device_self, runner->step_done, rank->streams[s]));
        DBO_TRY(seam->device->host_wait(seam->device_self, runner->step_done));
    }
    return DBO_OK;
}

/* Issues the step's programs and waits for the device. */
static dbo_status run_plan(dbo_runner *runner, const dbo_plan *plan, uint32_t step,
                           dbo_step_result *result, dbo_error *err)
{
    dbo_wrapper_reset_peaks(&runner->wrapper);
    dbo_status status = dbo_wrapper_run(&runner->wrapper, plan, step, result->decision.graph_mode,
                                        &result->ran, err);
    if (status == DBO_OK) {
        status = await_device(runner);
        if (status != DBO_OK)
            dbo_rank_fail(runner->rank, status, err);
    }
    dbo_wrapper_memory(&runner->wrapper, &result->memory);
    if (status == DBO_OK && result->cut.num_ubatches > 1)
        log_sms(runner);
    return runner->rules->after_step(runner->deployment->rules_self, runner->rank, result, status,
                                     err);
}

/* The programs of the cut; for whoever checks them, with the blocks of the KV cache that they
 * touch. */
static dbo_status build_plan(const dbo_runner *runner, const dbo_cut *cut,
                             const dbo_request *requests, dbo_plan *plan, dbo_error *err)
{
    const dbo_deployment *d = runner->deployment;
    DBO_TRY(dbo_plan_build(plan, d, cut, &runner->setup.caps, err));
    if (!d->io || d->numbers)
        return DBO_OK;
    dbo_status status = dbo_kv_accesses_set(plan, cut, requests, d->config->block_size, err);
    if (status != DBO_OK)
        dbo_plan_fini(plan);
    return status;
}

/* Cuts the step, writes its programs, lets the hook see them, and runs them. */
static dbo_status forward(dbo_runner *runner, uint32_t step, const dbo_rank_step *decided,
                          dbo_step_result *result, dbo_error *err)
{
    dbo_plan plan;
    DBO_TRY(runner->rules->cut(runner->deployment->rules_self, decided, &result->decision,
                               &result->cut, err));
    dbo_seam_charge(&runner->rank->seam, DBO_CHARGE_METADATA, result->cut.num_ubatches);
    dbo_step_log_slices(log_of(runner), &result->cut);
    DBO_TRY(build_plan(runner, &result->cut, decided->requests, &plan, err));
    const dbo_step_view view = {.runner = runner,
                                .step = step,
                                .requests = decided->requests,
                                .num_reqs = decided->num_reqs,
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
    bool leaves = false;
    dbo_rank_step decided = rank_step(runner, requests, num_reqs);
    DBO_TRY(dbo_batch_summarize(requests, num_reqs,
                                (int32_t)dbo_config_decode_query_len(runner->deployment->config),
                                &decided.batch, err));
    result->num_tokens = decided.batch.num_tokens;
    result->begin_ns = dbo_rank_mark(runner->rank, DBO_MARK_STEP_BEGIN, DBO_MARK_MAIN, step);
    dbo_seam_charge(&runner->rank->seam, DBO_CHARGE_STEP, 1);
    DBO_TRY(vote(runner, &decided, &result->decision, &leaves, err));
    if (!leaves)
        log_decision(runner, &result->decision, num_reqs);
    if (!leaves && !group_is_idle(runner)) {
        dbo_status status = forward(runner, step, &decided, result, err);
        if (status != DBO_OK) {
            dbo_step_result_fini(result);
            return status;
        }
    }
    result->end_ns = dbo_rank_mark(runner->rank, DBO_MARK_STEP_END, DBO_MARK_MAIN, step);
    return DBO_OK;
}

void dbo_step_result_fini(dbo_step_result *result)
{
    dbo_cut_fini(&result->cut);
}
