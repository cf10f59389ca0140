/* dbo.h: the public C API of dbo: overlap your own model code.
 *
 * You write the forward pass of a batch as a function of an ubatch, and say where its turn may end.
 * dbo runs it once per ubatch, one at a time, in a ring; streams and events see to it that one
 * ubatch's transfers travel while the other computes:
 *
 *     static dbo_status forward(dbo_ubatch *ubatch, void *arg, dbo_error *err)
 *     {
 *         DBO_TRY(my_attention(ubatch, arg));                        // compute stream
 *         DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());      // the sibling's turn
 *         DBO_TRY(my_dispatch(ubatch, arg));                         // comm stream
 *         DBO_TRY(dbo_switch_to_compute_sync());                     // compute waits for it
 *         return my_experts(ubatch, arg);
 *     }
 *     ...
 *     dbo_sim_seam(sim, 0, &seam);                      // or dbo_cuda_fill: the machine
 *     DBO_TRY(dbo_rank_init(&rank, 0, &seam, DBO_CONTEXT_FIBER, 2, NULL, err));
 *     DBO_TRY(dbo_ubatches_run(&rank, 2, step, forward, my_model, err));   // issues all of it
 *     DBO_TRY(dbo_rank_synchronize(&rank, err));                           // and it is done
 *     dbo_rank_fini(&rank);
 *
 * my_* issue kernels with dbo_kernel_launch (kernel.h), or enqueue them themselves on the stream
 * that dbo_current_stream names. With one ubatch, or outside of any, the same function runs the
 * batch unsplit. examples/own_kernels.c is this, whole; docs/api.md explains it.
 *
 * Failure: an ubatch that returns a status ends the run. The others get DBO_ABORTED from the call
 * that they wait in, and must return it; dbo_ubatches_run returns one error, "ubatch 1: ...". The
 * rank can run the next step. In a capture, abandon it and go on.
 *
 * Installed are the headers below and what they include, as <dbo/core/...>, and the simulator's
 * <dbo/sim/sim.h>; `pkg-config --cflags --libs dbo`, or CMake's find_package(dbo) and dbo::core.
 */
#ifndef DBO_DBO_H
#define DBO_DBO_H

#include "core/base/status.h"      /* how functions fail */
#include "core/base/version.h"     /* which version this is */
#include "core/decide/slice.h"     /* where to cut a batch */
#include "core/program/builders.h" /* the built-in schedules as programs */
#include "core/program/program.h"  /* schedules as data */
#include "core/rank/kernel.h"      /* your own kernels */
#include "core/rank/rank.h"        /* a rank over a seam; running programs */
#include "core/rank/ubatch.h"      /* the context API: turns, streams, hooks */
#include "core/seam/op.h"          /* identity, cost and buffers of an op */
#include "core/seam/seam.h"        /* what a machine is: write your own back end */
#include "core/trace/metrics.h"    /* what a trace means */
#include "core/trace/notation.h"   /* how a schedule is written */
#include "core/trace/split_cost.h" /* what splitting costs, by share */
#include "core/trace/trace.h"      /* what happened */
#include "core/turn/context.h"     /* fibers and threads; dbo_context_adopt */

#endif
