/* collective.h: how long an all-reduce, an all-gather or a reduce-scatter takes (docs/model.md).
 *
 * B bytes of a buffer, n GPUs. What crosses each GPU's port: 2B (n - 1) / n for an all-reduce, half
 * of it for the others, as rings (and switches, at best) do. Latencies are those of Hopper, times
 * collective_scale:
 *
 *     NCCL      the sooner of a protocol of low latency and one of high rate
 *     all-reduce of at most 8 GPUs that NVLink joins: or the sooner of two kernels of the serving
 *               engine: each GPU reads all B of each other one; or a reduce-scatter and a gather
 *
 * Beyond NVLink's domain only NCCL, over the NICs of all GPUs that the group has in a domain. Ranks
 * are taken to come together. Pure; any thread.
 *
 *     double ns = dbo_collective_ns(&hardware, &part);
 */
#ifndef DBO_COLLECTIVE_H
#define DBO_COLLECTIVE_H

#include "core/seam/op.h"
#include "sim/hardware.h"

/* SMs that a collective's kernel holds. */
#define DBO_COLLECTIVE_SMS 24u

/* part->collective is one; beside kernel_ns. A group of one GPU takes no time. */
double dbo_collective_ns(const dbo_hardware *hardware, const dbo_op_part *part);

#endif
