/* inputs.h: what a model is called with, cut into ubatches by their tokens.
 *
 * Every input has one axis that counts the step's tokens. A slice takes the same range of it from
 * each, as a view: nothing is copied, so graphs captured on slices replay from the same memory.
 *
 *     input_ids        (T)                   rows
 *     positions        (T)                   rows
 *                      (P, T)                columns: P position components a token (MRoPE: 3)
 *     inputs_embeds    (T, H)                rows
 *     intermediates    (T, ...) each         rows: what an earlier pipeline stage passed on
 *
 * Absent inputs stay absent. T counts padding: cut with the padded slices (slice.h).
 *
 *     dbo_model_inputs whole = {.num_tokens = T, .input_ids = dbo_tensor_vector(ids, T, 4), ...};
 *     dbo_model_inputs parts[DBO_MAX_UBATCHES];
 *     DBO_TRY(dbo_inputs_split(&whole, cut.slices_padded, cut.num_ubatches, parts, err));
 *
 * Views are borrowed throughout; any thread.
 */
#ifndef DBO_INPUTS_H
#define DBO_INPUTS_H

#include "core/base/status.h"
#include "core/decide/slice.h"
#include "core/seam/tensor.h"

#include <stdint.h>

#define DBO_MAX_INTERMEDIATES 8u

typedef struct dbo_named_tensor {
    const char *name; /* borrowed; "hidden_states", "residual" */
    dbo_tensor tensor;
} dbo_named_tensor;

typedef struct dbo_model_inputs {
    int64_t num_tokens; /* T */
    dbo_tensor input_ids, positions, inputs_embeds;
    uint32_t num_intermediates;
    dbo_named_tensor intermediates[DBO_MAX_INTERMEDIATES];
} dbo_model_inputs;

/* Is the token axis of every input T long, and is there anything to compute from? Names the input
 * that is not as above. */
dbo_status dbo_inputs_check(const dbo_model_inputs *inputs, dbo_error *err);

/* The tokens [first, stop) of every input. Equal bounds give empty inputs (0 rows; positions (P,
 * 0)); DBO_INVALID outside of [0, T] or inverted. */
dbo_status dbo_inputs_slice(const dbo_model_inputs *inputs, int64_t first, int64_t stop,
                            dbo_model_inputs *out, dbo_error *err);

/* out (num_ubatches) is each slice's part. Together the slices must cover [0, T) in order, each
 * token once; an empty slice is fine. DBO_INVALID names the slice that leaves a gap. */
dbo_status dbo_inputs_split(const dbo_model_inputs *inputs, const dbo_ubatch_slice *slices,
                            uint32_t num_ubatches, dbo_model_inputs *out, dbo_error *err);

#endif
