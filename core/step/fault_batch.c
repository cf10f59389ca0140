/* fault_batch.c: what each request has lost so far; few requests lie over a cut, so a list. */
#include "core/step/fault_batch.h"

#include <stdlib.h>
#include <string.h>

static int32_t lost_of(const dbo_fault_batch *batch, uint64_t id)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->items[i].id == id)
            return batch->items[i].lost;
    return 0;
}

dbo_status dbo_fault_batch_before(dbo_fault_batch *batch, const dbo_fault *fault,
                                  const dbo_request **requests, int32_t num_reqs, dbo_error *err)
{
    if (!dbo_fault_is(fault, DBO_FAULT_SEQ_LENS_IN_PLACE) || batch->count == 0)
        return DBO_OK;
    dbo_request *grown = realloc(batch->shortened, (size_t)num_reqs * sizeof *grown + 1);
    if (!grown)
        return dbo_fail_memory(err, "a step's requests");
    batch->shortened = grown;
    for (int32_t r = 0; r < num_reqs; r++) {
        grown[r] = (*requests)[r];
        int32_t lost = lost_of(batch, grown[r].id), computed = grown[r].num_computed;
        grown[r].num_computed -= lost < computed ? lost : computed;
    }
    *requests = grown;
    return DBO_OK;
}

static dbo_status lose(dbo_fault_batch *batch, uint64_t id, int32_t tokens, dbo_error *err)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->items[i].id == id) {
            batch->items[i].lost += tokens;
            return DBO_OK;
        }
    struct dbo_lost_tokens *grown =
        realloc(batch->items, (batch->count + 1) * sizeof *batch->items);
    if (!grown)
        return dbo_fail_memory(err, "lengths of requests");
    batch->items = grown;
    batch->items[batch->count++] = (struct dbo_lost_tokens){.id = id, .lost = tokens};
    return DBO_OK;
}

dbo_status dbo_fault_batch_after(dbo_fault_batch *batch, dbo_fault *fault,
                                 const dbo_request *requests, int32_t num_reqs, dbo_cut *cut,
                                 dbo_error *err)
{
    if (!dbo_fault_is(fault, DBO_FAULT_SEQ_LENS_IN_PLACE))
        return DBO_OK;
    for (uint32_t i = 0; i + 1 < cut->num_ubatches; i++) {
        const dbo_ubatch_metadata *m = &cut->metadata[i];
        int32_t last = m->req_start + m->num_reqs - 1;
        if (m->num_reqs == 0 || last >= num_reqs)
            continue;
        int32_t seen = m->seq_lens[m->num_reqs - 1];
        if (seen >= cut->seq_lens[last])
            continue;
        fault->reached++;
        DBO_TRY(lose(batch, requests[last].id, cut->seq_lens[last] - seen, err));
        cut->seq_lens[last] = seen;
    }
    return DBO_OK;
}

void dbo_fault_batch_fini(dbo_fault_batch *batch)
{
    free(batch->items);
    free(batch->shortened);
    memset(batch, 0, sizeof *batch);
}
