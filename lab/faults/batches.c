/* batches.c: batches that are cut, padded or measured wrongly. */
#include "lab/faults/faults.h"

#include <stdlib.h>

/* ---- seq-lens-in-place ----
 *
 * Lengths of requests lie in one buffer for good and grow by what each step computes. The split
 * shortens the length of a request over a cut, for the earlier ubatch, which wants a copy: written
 * into the buffer itself, the request is so much shorter from the next step on. What a rank's
 * requests have lost so far is noted by their ids. */

/* The step's requests as the buffer has them. */
static dbo_status shorten(dbo_fault *fault, const dbo_rank_step *step, dbo_error *err)
{
    dbo_request *grown = realloc(fault->requests, (size_t)step->num_reqs * sizeof *grown + 1);
    DBO_TRY(dbo_need_memory(grown, "a step's requests", err));
    fault->requests = grown;
    for (int32_t r = 0; r < step->num_reqs; r++) {
        grown[r] = step->requests[r];
        int32_t lost = (int32_t)dbo_fault_noted(fault, step->rank->id, grown[r].id);
        int32_t computed = grown[r].num_computed;
        grown[r].num_computed -= lost < computed ? lost : computed;
    }
    return DBO_OK;
}

/* The ubatches have their metadata: the buffer gets the shortened lengths. */
static dbo_status write_in_place(dbo_fault *fault, const dbo_rank_step *step, dbo_cut *cut,
                                 dbo_error *err)
{
    for (uint32_t i = 0; i + 1 < cut->num_ubatches; i++) {
        const dbo_ubatch_metadata *m = &cut->metadata[i];
        int32_t last = m->req_start + m->num_reqs - 1;
        if (m->num_reqs == 0 || last >= step->num_reqs)
            continue;
        int32_t seen = m->seq_lens[m->num_reqs - 1];
        if (seen >= cut->seq_lens[last])
            continue;
        uint64_t *lost = dbo_fault_note_of(fault, step->rank->id, step->requests[last].id);
        DBO_TRY(dbo_need_memory(lost, "lengths of requests", err));
        fault->reached++;
        *lost += (uint64_t)(cut->seq_lens[last] - seen);
        cut->seq_lens[last] = seen;
    }
    return DBO_OK;
}

static dbo_status cut_in_place(void *self, const dbo_rank_step *step,
                               const dbo_vote_result *decision, dbo_cut *out, dbo_error *err)
{
    dbo_fault *fault = self;
    dbo_rank_step kept = *step;
    DBO_TRY(shorten(fault, step, err));
    kept.requests = fault->requests;
    DBO_TRY(dbo_step_rules_default.cut(NULL, &kept, decision, out, err));
    dbo_status status = write_in_place(fault, step, out, err);
    if (status != DBO_OK)
        dbo_cut_fini(out);
    return status;
}
const dbo_fault_kind dbo_fault_seq_lens_in_place = {.rules.cut = cut_in_place};

/* ---- padding-routed ---- */

/* What moves and what experts compute is that of all rows. */
static dbo_status route_padding(void *self, const dbo_deployment *d, const dbo_layer_shape *real,
                                dbo_layer_costs *out, dbo_error *err)
{
    static const dbo_op_kind routed_kinds[] = {DBO_KIND_QUANT, DBO_KIND_MLP, DBO_KIND_REDUCE};
    dbo_fault *fault = self;
    dbo_layer_shape all = *real;
    DBO_TRY(dbo_step_rules_default.costs(NULL, d, real, out, err));
    if (real->padded_tokens == real->tokens)
        return DBO_OK;
    fault->reached++;
    dbo_layer_costs *routed = malloc(sizeof *routed);
    DBO_TRY(dbo_need_memory(routed, "a step's costs", err));
    const dbo_request_shape one = {1, real->padded_tokens, real->padded_tokens};
    all.tokens = real->padded_tokens;
    all.group_tokens = (uint64_t)real->padded_tokens * d->config->data_parallel_size;
    all.num_requests = 1;
    all.requests = &one;
    dbo_status status = dbo_layer_costs_compute(d->model, &all, routed, err);
    for (uint32_t k = 0; k < 3 && status == DBO_OK; k++)
        out->op[routed_kinds[k]] = routed->op[routed_kinds[k]];
    if (status == DBO_OK) {
        out->dispatch = routed->dispatch;
        out->combine = routed->combine;
        out->sizes = routed->sizes;
    }
    free(routed);
    return status;
}
const dbo_fault_kind dbo_fault_padding_routed = {.rules.costs = route_padding};

/* ---- profile-half-batch ---- */

/* An engine that sizes its KV cache by a profile run of the split batch alone, here the first split
 * step: one that is not split finds too little left. */
static dbo_status fit_profile(void *self, dbo_rank *rank, const dbo_step_result *result,
                              dbo_status status, dbo_error *err)
{
    dbo_fault *fault = self;
    bool split = result->cut.num_ubatches > 1;
    uint64_t used = result->memory.peak_used_bytes;
    if (status != DBO_OK)
        return status;
    uint64_t *profiled = dbo_fault_note_of(fault, rank->id, 0);
    DBO_TRY(dbo_need_memory(profiled, "a profile", err));
    if (split && *profiled == 0)
        *profiled = used;
    if (split || *profiled == 0 || used <= *profiled)
        return DBO_OK;
    fault->reached++;
    return dbo_fail(
        err, DBO_REFUSED, "Profile the largest batch unsplit as well.",
        "a step of %d tokens that is not split takes %.2f GB; the profile run, which was "
        "split, took %.2f GB, and the KV cache got the rest",
        result->num_tokens, (double)used / 1e9, (double)*profiled / 1e9);
}
const dbo_fault_kind dbo_fault_profile_half_batch = {.rules.after_step = fit_profile};
