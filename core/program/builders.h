/* builders.h: the built-in schedules as programs.
 *
 * One program is one layer. Costs come per ubatch (model_ops.h): an op whose `kernels` is 0 is left
 * out, so a model without shared experts has no SHARED, and LL with an fp8 dispatch no QUANT.
 * A program may be run for any number of layers; what one layer leaves open (the LL receive hook of
 * the last combine) the next one, or the ubatch's exit, closes.
 *
 *     dbo_build_options options = {.num_ubatches = 2, .host_sync = true};
 *     dbo_program program;
 *     DBO_TRY(dbo_build_ht(costs, &options, &program, err));
 *
 * With one ubatch there is no yield, no hook and no ubatch event: HT posts, waits and goes on; LL
 * receives its dispatch right after the send and its combine after the shared expert.
 *
 * Memory (option `memory`): an ubatch's tensors are dbo_layer_buffer(ubatch, role), taken from the
 * pool of the current stream where the reference allocates them, dropped where its last reference
 * goes. EMBED makes HIDDEN and RESIDUAL, a layer replaces HIDDEN, whoever runs the forward drops
 * both after HEAD; so every forward starts with the embed program, of no op if need be. A block is
 * given out again in the order of its pool's stream, so what another stream still does to it must
 * either be waited for before the FREE, or be announced. HT, split:
 *
 *   pool     tensor               other stream's use  dropped             safe because
 *   compute  TOKENS SCALES TOPK_* DISPATCH            after the wait for  waited for; announced too
 *            (or FFN_IN)                              comm_done
 *   compute  EXPERT_OUT           COMBINE             at its issue        announced, nothing else:
 *                                                     (SHARED allocates)  the one that must be
 *   compute  HIDDEN               COPY                in the next layer   waited for
 *   comm     RECV_* HANDLE        MLP, REDUCE         at the layer's end  comm's next post is
 *                                                                         behind the next A1
 *   comm     RECV_TOKENS, when    QUANT               after QUANT         announced: the sibling's
 *            QUANT is late                                                dispatch waits for less
 *   comm     LAYOUT COMBINED      none
 *
 * A tensor is written first by its pool's stream or behind an event recorded there after its ALLOC,
 * so what the block held before is over. `record_stream` announces TOKENS, SCALES and TOPK_* before
 * the dispatch, EXPERT_OUT before the combine, and late RECV_TOKENS. Unsplit, everything is of the
 * caller's stream, and the back end itself announces all it touches, whatever the option. LL uses
 * one stream: nothing to announce. Its two buffers in flight are the back end's own; RECV_TOKENS
 * and EXPERT_OUT live until the ubatch's turn after the combine, whose hook has run by then. Two
 * liberties: RECV_* are allocated before the receive counts are known, in their expected size, and
 * HANDLE is dropped with its layer instead of at the next dispatch.
 */
#ifndef DBO_BUILDERS_H
#define DBO_BUILDERS_H

#include "core/base/status.h"
#include "core/layer/model_ops.h"
#include "core/program/build_options.h"
#include "core/program/program.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef dbo_status (*dbo_builder_fn)(const dbo_layer_costs *costs, const dbo_build_options *options,
                                     dbo_program *out, dbo_error *err);

/* Events of the HT programs: each ubatch has these four, dbo_ht_event(u, which) is the number. */
typedef enum dbo_ht_event_role {
    DBO_HT_PREVIOUS,     /* the payload is ready: what a transfer itself waits for */
    DBO_HT_COMPUTE_DONE, /* of the ubatch context, compute to comm */
    DBO_HT_COMM_DONE,    /* of the ubatch context, comm to compute */
    DBO_HT_SYNC,         /* rocm: what the host waits for */
    DBO_HT_EVENT_ROLES
} dbo_ht_event_role;

static inline uint16_t dbo_ht_event(uint32_t ubatch, dbo_ht_event_role role)
{
    return (uint16_t)(ubatch * DBO_HT_EVENT_ROLES + (uint32_t)role);
}

/* `costs` has num_ubatches entries. On success *out is the caller's to dbo_program_fini. */

/* High throughput, 3 yields an ubatch and layer (u1 mirrors u0, one turn later):
 *   A0 A1 QUANT, record previous, record compute_done | comm: wait compute_done, LAYOUT
 *   and DISPATCH (each waits for previous, too), record comm_done; compute: wait comm_done, H2D,
 *   MLP, REDUCE, record previous, record compute_done | comm: wait compute_done, COMBINE; compute:
 *   SHARED; comm: COPY, record comm_done | compute: wait comm_done. */
dbo_status dbo_build_ht(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err);

/* Low latency, 2 yields an ubatch and layer, everything on the compute stream, no events:
 *   A0 A1, run hook, DISPATCH send, set hook | QUANT, MLP, run hook, COMBINE send, SHARED, set
 *   hook |. */
dbo_status dbo_build_ll(const dbo_layer_costs *costs, const dbo_build_options *options,
                        dbo_program *out, dbo_error *err);

/* HT as prose descriptions have it: the dispatch is received by a hook on the next ubatch's turn,
 * which takes a fourth yield. */
dbo_status dbo_build_ht_prose(const dbo_layer_costs *costs, const dbo_build_options *options,
                              dbo_program *out, dbo_error *err);

/* Experts without an all-to-all: A0 A1 QUANT, ALL_GATHER, MLP REDUCE, REDUCE_SCATTER, SHARED,
 * ALL_REDUCE, of the collectives those that the layer has; no yield. */
dbo_status dbo_build_local(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err);

/* A layer without experts: A0 A1 DENSE, no yield; each ubatch runs it in its turn. */
dbo_status dbo_build_dense(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err);

/* A prologue (EMBED), and an epilogue (HEAD, one part for all `num_ubatches`; costs[0] are those of
 * the whole batch), no yield. */
dbo_status dbo_build_embed(const dbo_layer_costs *costs, const dbo_build_options *options,
                           dbo_program *out, dbo_error *err);
dbo_status dbo_build_head(const dbo_layer_costs *costs, const dbo_build_options *options,
                          dbo_program *out, dbo_error *err);

/* The builder of a schedule name ("mlp_shared_overlap", "seed-prose-ht") for a back end, or NULL;
 * seed-prose-ht is HT only. */
dbo_builder_fn dbo_builder_of_name(const char *name, bool low_latency);

DBO_PUBLIC_END

#endif
