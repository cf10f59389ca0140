/* outputs.h: what ubatches computed, put together again.
 *
 * Each ubatch gives its output once, under its id; the whole is the outputs one after the other by
 * id, whoever finished first. An output has one component or several (a hidden state beside the
 * auxiliary ones that a drafter reads); components are put together one by one, along their rows.
 *
 *     dbo_outputs outputs;
 *     dbo_outputs_init(&outputs, num_ubatches);
 *     ... in ubatch i, when it ends: dbo_outputs_give(&outputs, i, &output, err) ...
 *     DBO_TRY(dbo_outputs_concat(&outputs, NULL, NULL, &whole, err));     // whole (T, H)
 *
 * The rows of the whole are those of all ubatches, padding included: padding is the tail, so the
 * first `num_tokens` rows are the real ones. To save the copy, let an ubatch write where its rows
 * belong (dbo_output_part): rows that already lie in their place are left alone.
 *
 * Borrows all memory. dbo_outputs_give may be called by ubatches of either executor, as only one of
 * them runs at a time.
 */
#ifndef DBO_OUTPUTS_H
#define DBO_OUTPUTS_H

#include "core/base/status.h"
#include "core/decide/slice.h"
#include "core/seam/op.h"
#include "core/seam/tensor.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_MAX_COMPONENTS 8u

typedef struct dbo_output {
    uint32_t num_components;
    dbo_tensor components[DBO_MAX_COMPONENTS]; /* (rows, ...) each, none absent */
} dbo_output;

typedef struct dbo_outputs {
    uint32_t num_ubatches;
    bool given[DBO_MAX_UBATCHES];
    dbo_output of[DBO_MAX_UBATCHES]; /* by ubatch id */
} dbo_outputs;

void dbo_outputs_init(dbo_outputs *outputs, uint32_t num_ubatches);

/* Keeps the views of the output of one ubatch. Refused the second time. */
dbo_status dbo_outputs_give(dbo_outputs *outputs, uint32_t ubatch, const dbo_output *output,
                            dbo_error *err);

/* Copies one part into its place: both alike, never overlapping. A device enqueues it. */
typedef dbo_status (*dbo_copy_fn)(void *arg, const dbo_tensor *to, const dbo_tensor *from,
                                  dbo_error *err);

/* Fills `whole`, whose components have the columns of the parts and the rows of all parts together.
 * `copy` NULL: memory that the CPU sees. An ubatch that gave nothing, components that differ in
 * number, columns or element size, a whole of another size: DBO_INVALID, and nothing is copied. */
dbo_status dbo_outputs_concat(const dbo_outputs *outputs, dbo_copy_fn copy, void *copy_arg,
                              const dbo_output *whole, dbo_error *err);

/* Where the rows of a (padded) slice belong in the whole. */
dbo_status dbo_output_part(const dbo_output *whole, const dbo_ubatch_slice *slice, dbo_output *out,
                           dbo_error *err);

#endif
