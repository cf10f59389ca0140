/* fault_batch.h: batches as faults have them: a persistent buffer of lengths that the split writes.
 *
 * Lengths of requests lie in one buffer for good and grow by what each step computes. The split
 * shortens the length of a request over a cut, for the earlier ubatch, which wants a copy: written
 * into the buffer itself (seq-lens-in-place), the request is so much shorter from the next step on.
 *
 *     dbo_fault_batch_before(&lens, fault, &kept, n, err);             each step, then the cut
 *     dbo_fault_batch_after(&lens, fault, requests, n, &cut, err);
 *     dbo_fault_batch_fini(&lens);
 *
 * A runner's own. Without the fault nothing is kept and nothing costs more than a test.
 */
#ifndef DBO_FAULT_BATCH_H
#define DBO_FAULT_BATCH_H

#include "core/step/plan.h"

typedef struct dbo_fault_batch {
    struct dbo_lost_tokens {
        uint64_t id; /* of the request */
        int32_t lost;
    } * items;
    uint32_t count;
    dbo_request *shortened; /* the step's requests as the buffer has them */
} dbo_fault_batch;

/* Replaces *requests by what the buffer of lengths makes of them, where something was lost; valid
 * until the next call. */
dbo_status dbo_fault_batch_before(dbo_fault_batch *batch, const dbo_fault *fault,
                                  const dbo_request **requests, int32_t num_reqs, dbo_error *err);
/* The ubatches have their metadata: the buffer, cut->seq_lens, gets the shortened lengths. */
dbo_status dbo_fault_batch_after(dbo_fault_batch *batch, dbo_fault *fault,
                                 const dbo_request *requests, int32_t num_reqs, dbo_cut *cut,
                                 dbo_error *err);
void dbo_fault_batch_fini(dbo_fault_batch *batch); /* of a zeroed one is fine */

#endif
