/* nccl_a2a.h: all-to-all between real ranks over NCCL, with LL's or HT's meaning.
 *
 * LL: a fixed-capacity exchange. Peer p owns the p-th of `size` equal parts of io->reads[0] (what
 * is sent to it) and of io->writes[0] (what comes from it). The grouped sends and receives run on
 * a stream of the communicator's own, started by `post`; `finish` is an event wait. Capturable.
 *
 * HT: exact counts. io->reads[0] holds the rows sorted by destination, io->reads[1] how many rows
 * go to each rank (int32[size], in device memory); rows are cost->bytes_per_token long. `post`
 * exchanges the counts on the caller's stream, `counts` waits for them on the host and enqueues
 * the rows there; io->writes[0] gets the rows sorted by source, io->writes[1], if there, how many
 * came from each (int32[size], at the dispatch alone). A combine goes the way back with the counts
 * of its communicator's last dispatch: no wait. Not capturable.
 *
 * Rows whose way follows from ids (io->route) are refused: nothing of route.h is here yet.
 *
 * Without an io list the cost's bytes (tokens * topk * bytes_per_token, equal parts) go through
 * scratch memory.
 *
 * One communicator an ubatch, because a communicator runs its operations one after the other; every
 * rank must post in the same order. Ids (dbo_nccl_id) are made by one rank and given to all by the
 * caller. Several ranks on one GPU: one process a rank, each with an NCCL_HOSTID of its own.
 *
 *     dbo_nccl *nccl = dbo_nccl_create(cuda, &config, &err);   // collective
 *     dbo_nccl_fill(nccl, &seam);
 *     ... run, then destroy every graph that captured a transfer: NCCL hangs otherwise ...
 *     dbo_nccl_destroy(nccl);                                  // collective; before the dbo_cuda
 */
#ifndef DBO_GPU_NCCL_A2A_H
#define DBO_GPU_NCCL_A2A_H

#include "gpu/cuda_device.h"

DBO_PUBLIC_BEGIN

typedef struct dbo_nccl dbo_nccl;

#define DBO_NCCL_ID_BYTES 128

/* What ranks need to find each other. */
typedef struct dbo_nccl_id {
    char bytes[DBO_NCCL_ID_BYTES];
} dbo_nccl_id;

dbo_status dbo_nccl_make_id(dbo_nccl_id *out, dbo_error *err);

/* "2.28.3": of the library that is loaded. */
const char *dbo_nccl_version_text(void);
/* Can ranks of one process share a GPU? From 2.30 on, with NCCL_MULTI_RANK_GPU_ENABLE=1. */
bool dbo_nccl_shares_gpu(void);

typedef struct dbo_nccl_config {
    uint32_t rank, size;
    uint32_t communicators;  /* one an ubatch, at least 1 */
    const dbo_nccl_id *ids;  /* as many */
    bool ht;                 /* HT's meaning; else LL's */
    uint32_t max_sms;        /* CTAs of a transfer at most; 0: NCCL decides */
    uint64_t capacity_bytes; /* of a transfer without buffers, at most */
} dbo_nccl_config;

/* NULL with *err on failure. Connects every pair of ranks, which needs more stack than a fiber has:
 * later transfers do not. */
dbo_nccl *dbo_nccl_create(dbo_cuda *cuda, const dbo_nccl_config *config, dbo_error *err);
void dbo_nccl_destroy(dbo_nccl *nccl);
/* Sets the seam's a2a table. */
void dbo_nccl_fill(dbo_nccl *nccl, dbo_seam *seam);

DBO_PUBLIC_END

#endif
