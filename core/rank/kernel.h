/* kernel.h: the caller's own kernels on a rank: issue one, wait for all.
 *
 * A kernel is an op that brings its own functions (op.h): `enqueue` puts it on the native stream of
 * a real device; `ref` computes it on the CPU in the simulator's numeric mode, reading at its
 * virtual start and writing at its virtual end. Either may be NULL. It is issued to the stream that
 * is current for the running ubatch, outside any ubatch to the compute stream, so the same model
 * code runs split and unsplit:
 *
 *     const dbo_access in = {.buffer = 0, .bytes = n}, out = {.buffer = 1, .bytes = n};
 *     const dbo_op_io io = {1, 1, &in, &out, .ref = my_reference, .arg = &my_arguments,
 *                           .enqueue = my_cuda_launcher};
 *     const dbo_kernel k = {.kind = DBO_KIND_MLP, .layer = layer, .ubatch = ubatch->id,
 *                           .io = &io, .addresses = addresses};
 *     DBO_TRY(dbo_kernel_launch(ubatch->rank, &k));
 *
 * The kind is the kernel's name in traces, notation and metrics: the one that it stands for (its
 * class decides what counts as compute and what as communication), or DBO_KIND_CUSTOM.
 */
#ifndef DBO_KERNEL_H
#define DBO_KERNEL_H

#include "core/rank/rank.h"

DBO_PUBLIC_BEGIN

typedef struct dbo_kernel {
    dbo_op_kind kind;
    uint32_t step, layer;
    uint32_t ubatch;           /* the owner: whose tokens; 0 when unsplit */
    uint32_t occurrence;       /* tells kernels of one kind, ubatch, layer and step apart */
    uint32_t launches;         /* charged to the host; 0: 1 */
    const dbo_op_cost *cost;   /* what the simulator takes for it; NULL: no time at all */
    const dbo_op_io *io;       /* or NULL: costs only */
    const uint64_t *addresses; /* of the buffers that io names, by number; NULL without storage */
} dbo_kernel;

/* Copies the kernel; borrows cost, io and addresses until it has run. A bare status, as every hot
 * call: an ubatch that returns it gets the sentence added; elsewhere dbo_rank_fail gives it. */
dbo_status dbo_kernel_launch(dbo_rank *rank, const dbo_kernel *kernel);

/* Blocks the rank until all work issued so far to any of its streams is done. Refused in a capture.
 */
dbo_status dbo_rank_synchronize(dbo_rank *rank, dbo_error *err);

DBO_PUBLIC_END

#endif
