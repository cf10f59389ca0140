/* bounce_a2a.h: an all-to-all for one GPU that moves its bytes over PCIe: LL's physics without
 * peers.
 *
 * Every dispatched byte leaves for pinned host memory and comes back, by the copy engines, in
 * chunks, so that both directions of PCIe run at once, as a NIC's do. No SM takes part. The peers
 * are emulated: what returns is what this rank sent. Each communicator (one an ubatch) has two
 * streams of its own, started by `post`; `finish` is an event wait. Both are legal in a capture.
 *
 * The transfer copies io->reads[0] to io->writes[0], which have equal sizes. Without an io list the
 * bytes are the cost's (tokens * topk * bytes_per_token) and go through scratch memory.
 *
 *     dbo_bounce *bounce = dbo_bounce_create(cuda, &(dbo_bounce_config){.communicators = 2,
 *                                            .peers = 8, .capacity_bytes = 64 << 20}, &err);
 *     dbo_bounce_fill(bounce, &seam);
 *     ... run, destroy graphs ...
 *     dbo_bounce_destroy(bounce);      // before the dbo_cuda
 */
#ifndef DBO_GPU_BOUNCE_A2A_H
#define DBO_GPU_BOUNCE_A2A_H

#include "gpu/cuda_device.h"

DBO_PUBLIC_BEGIN

typedef struct dbo_bounce dbo_bounce;

typedef struct dbo_bounce_config {
    uint32_t communicators;  /* one an ubatch, at least 1 */
    uint32_t peers;          /* ranks that the group is said to have, this one included */
    uint64_t capacity_bytes; /* of one transfer at most */
    uint64_t chunk_bytes;    /* 0: a default that hides the first and last chunk well enough */
} dbo_bounce_config;

/* Allocates its pinned memory. NULL with *err on failure. Destroy waits for transfers. */
dbo_bounce *dbo_bounce_create(dbo_cuda *cuda, const dbo_bounce_config *config, dbo_error *err);
void dbo_bounce_destroy(dbo_bounce *bounce);
/* Sets the seam's a2a table. */
void dbo_bounce_fill(dbo_bounce *bounce, dbo_seam *seam);

DBO_PUBLIC_END

#endif
