/* result.h: what a run came to.
 *
 * A dbo_result is a view: it borrows everything. Keys of the JSON form are fixed; top-level numbers
 * are those of the step as it was decided (split or not), `without_dbo` has the same for the step
 * that is not split. What is not known is null.
 *
 *     dbo_result_json(&result, &writer);     // {"step_us": ..., "decision": {...}, ...}
 */
#ifndef DBO_APP_RESULT_H
#define DBO_APP_RESULT_H

#include "core/base/strbuf.h"
#include "core/decide/slice.h"
#include "core/decide/vote.h"
#include "core/step/wrapper.h"
#include "core/trace/metrics.h"
#include "core/trace/notation.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/footprint.h"
#include "lab/files/json_write.h"

#include <stdint.h>

typedef struct dbo_result {
    const dbo_experiment *experiment;
    const dbo_vote_result *decision; /* of the rank that the numbers are of */
    uint32_t rank;
    const dbo_metrics *off;           /* the step not split */
    const dbo_metrics *on;            /* the step split; NULL: it is not */
    const dbo_split_cost *split_cost; /* NULL: not split */
    const dbo_notation *notation;     /* of the step as decided; NULL: it has no transfers */
    const dbo_memory_use *memory_off, *memory_on;   /* NULL: not known; memory_on as `on` */
    const dbo_footprint *footprint;                 /* of the fullest rank; NULL: fixed costs */
    uint32_t left_out;                              /* kinds of ops, by bit, that `on` lacks */
    uint32_t num_ranks, num_ubatches;               /* of the slices */
    const dbo_ubatch_slice *slices, *slices_padded; /* (num_ranks, num_ubatches); NULL: not split */
} dbo_result;

/* One object; the caller begins and finishes the writer. */
void dbo_result_json(const dbo_result *result, dbo_json_writer *out);

/* Absent unless split and a whole layer. */
dbo_quantity dbo_result_speedup(const dbo_result *result);

#endif
