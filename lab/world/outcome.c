/* outcome.c: two runs side by side: does it fit, is it all there, what was gained. */
#include "lab/world/outcome.h"

#include <stdlib.h>
#include <string.h>

/* ---- does it fit, and is it all there ---- */

/* The fullest rank's memory, with what its step as decided took. */
static dbo_status weigh(const dbo_experiment *experiment, dbo_outcome *o, dbo_error *err)
{
    const dbo_simulated *run = o->split ? &o->on : &o->off;
    for (uint32_t c = 0; c < run->num_classes; c++) {
        dbo_footprint f;
        DBO_TRY(dbo_footprint_of_rank(experiment, run->first_rank[c], &f, err));
        f.step_bytes = (double)run->results[c].memory.peak_reserved_bytes;
        if (c == 0 || dbo_footprint_bytes(&f) > dbo_footprint_bytes(&o->footprint))
            o->footprint = f;
    }
    return dbo_footprint_check(&o->footprint, experiment, err);
}

/* Kinds of ops that ran in the measured step, by bit. */
static uint32_t kinds_of(const dbo_simulated *run)
{
    uint32_t kinds = 0;
    for (uint64_t i = 0; i < run->trace.num_spans; i++) {
        dbo_op_id id = dbo_trace_span(&run->trace, i)->id;
        if (dbo_op_id_step(id) == run->measured && dbo_op_id_kind(id) < DBO_KIND_COUNT)
            kinds |= 1u << dbo_op_id_kind(id);
    }
    return kinds;
}

/* ---- the outcome ---- */

static dbo_status copy_slices(const dbo_experiment *experiment, dbo_outcome *o, dbo_error *err)
{
    uint32_t num_ranks = experiment->config.data_parallel_size;
    uint32_t n = dbo_simulated_result(&o->on, o->rank)->cut.num_ubatches;
    o->slices = calloc((size_t)num_ranks * n, sizeof *o->slices);
    o->slices_padded = calloc((size_t)num_ranks * n, sizeof *o->slices_padded);
    DBO_TRY(dbo_need_memory(o->slices && o->slices_padded, "the slices", err));
    for (uint32_t r = 0; r < num_ranks; r++) {
        const dbo_cut *cut = &dbo_simulated_result(&o->on, r)->cut;
        memcpy(&o->slices[(size_t)r * n], cut->slices, n * sizeof *o->slices);
        memcpy(&o->slices_padded[(size_t)r * n], cut->slices_padded, n * sizeof *o->slices);
    }
    return DBO_OK;
}

static dbo_status conclude(const dbo_experiment *experiment, bool real, dbo_outcome *o,
                           dbo_error *err)
{
    const dbo_step_result *shown = dbo_simulated_result(&o->on, o->rank);
    o->split = shown->decision.should_ubatch;
    if (o->split) {
        dbo_split_cost_compute(&o->split_cost, &o->off.sums, &o->on.sums);
        DBO_TRY(copy_slices(experiment, o, err));
    }
    if (!experiment->has_fixed)
        DBO_TRY(weigh(experiment, o, err));
    dbo_error none = {0};
    o->has_notation =
        dbo_notation_init(&o->notation, &o->on.trace, o->rank, o->on.measured, &none) == DBO_OK;
    if (!o->has_notation && none.status != DBO_INVALID)
        return dbo_error_pass(err, &none);
    o->result = (dbo_result){
        .experiment = experiment,
        .decision = &shown->decision,
        .rank = o->rank,
        .off = &o->off.metrics,
        .on = o->split ? &o->on.metrics : NULL,
        .split_cost = o->split && !real ? &o->split_cost : NULL,
        .notation = o->has_notation ? &o->notation : NULL,
        .memory_off =
            experiment->has_fixed ? NULL : &dbo_simulated_result(&o->off, o->rank)->memory,
        .memory_on = experiment->has_fixed || !o->split ? NULL : &shown->memory,
        .footprint = experiment->has_fixed ? NULL : &o->footprint,
        .left_out = o->split ? kinds_of(&o->off) & ~kinds_of(&o->on) : 0,
        .num_ranks = experiment->config.data_parallel_size,
        .num_ubatches = o->split ? shown->cut.num_ubatches : 0,
        .slices = o->slices,
        .slices_padded = o->slices_padded,
    };
    return DBO_OK;
}

dbo_status dbo_simulate(const dbo_experiment *experiment, const dbo_simulate_options *options,
                        dbo_outcome *outcome, dbo_error *err)
{
    memset(outcome, 0, sizeof *outcome);
    if (!experiment->has_fixed) {
        DBO_TRY(dbo_footprint_of(experiment, &outcome->footprint, err));
        DBO_TRY(dbo_footprint_check(&outcome->footprint, experiment, err));
    }
    bool real = options->backend && !options->backend->simulated;
    dbo_status status =
        dbo_simulate_one(experiment, options, false, &outcome->off, &outcome->rank, err);
    if (status == DBO_OK)
        status = dbo_simulate_one(experiment, options, true, &outcome->on, &outcome->rank, err);
    if (status == DBO_OK)
        status = conclude(experiment, real, outcome, err);
    if (status != DBO_OK)
        dbo_outcome_fini(outcome);
    return status;
}

void dbo_outcome_fini(dbo_outcome *outcome)
{
    dbo_simulated_fini(&outcome->off);
    dbo_simulated_fini(&outcome->on);
    dbo_notation_fini(&outcome->notation);
    free(outcome->slices);
    free(outcome->slices_padded);
    memset(outcome, 0, sizeof *outcome);
}
