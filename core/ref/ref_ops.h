/* ref_ops.h: makes a program's ops compute: every kind's reference, and the route of its transfers.
 *
 * The built-in schedules say what each op touches (builders.h, option `io`); a buffer's number says
 * which tensor it is. dbo_ref_attach gives each op that has such a list its function and each
 * transfer its route; what the tensors hold is core/ref's business alone:
 *
 *     kind       file             what it does with rows
 *     EMBED      ref_ops          HIDDEN = embedding of INPUT_IDS, RESIDUAL = 0
 *     A0         ref_attention    RESIDUAL += HIDDEN; norm, projections, rope; KV by slot mapping
 *     A1         ref_attention    attention over the blocks of the request, RESIDUAL += its output,
 *                                 norm, router; padding rows: no attention, ids -1
 *     QUANT      ref_math         rows to int8 with scales, before the dispatch or after
 *     LAYOUT     ref_ops          which rank gets which token, counts
 *     DISPATCH   ref_route        rows to their experts
 *     H2D        -                nothing: the experts read the ids
 *     MLP        ref_experts      received rows through their experts
 *     REDUCE     ref_experts      HT: weight and sum a token's results here
 *     COMBINE    ref_route        rows back, summed in the order of ranks (HT), experts (LL)
 *     COPY       ref_ops          HT: COMBINED to HIDDEN
 *     SHARED     ref_experts      SHARED_OUT; RESIDUAL += it
 *     DENSE      ref_experts      HIDDEN = MLP of FFN_IN
 *     HEAD       ref_ops          norm of RESIDUAL + HIDDEN, logits, of all ubatches, into OUTPUT
 *
 * A row's result depends on that row, on its request's cache and on weights: never on its
 * neighbours. So a split batch gives the same bits as a whole one, and any difference is a defect.
 *
 *     const dbo_ref_context context = {.model = &model, .limits = limits, .num_ranks = 2};
 *     DBO_TRY(dbo_ref_attach(&context, true, &program, err));
 */
#ifndef DBO_REF_OPS_H
#define DBO_REF_OPS_H

#include "core/program/program.h"
#include "core/ref/ref_model.h"

/* One rank's reference. Lives as long as the programs, and the graphs captured of them. */
typedef struct dbo_ref_context {
    const dbo_ref_model *model;
    dbo_ref_limits limits;
    uint32_t rank, num_ranks;
    /* (num_layers + 1, max_tokens, H), or NULL: the residual stream as it enters each layer, and
     * the last one's result, by the step's tokens; notes for whoever asks where rows differ */
    float *notes;
} dbo_ref_context;

/* Every op and transfer of the program that says what it touches. `low_latency`: which form its
 * transfers have. The program borrows the context. */
dbo_status dbo_ref_attach(const dbo_ref_context *context, bool low_latency, dbo_program *program,
                          dbo_error *err);

#endif
