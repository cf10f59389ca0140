/* allocator.h: device memory that knows streams: a caching allocator over the seam.
 *
 * Asking the device for memory may stall it, so memory is taken in segments and cut into blocks. A
 * block belongs to the stream it was allocated for: after free, only that stream may get it again,
 * at once and without any synchronisation, because work of one stream runs in order. A block that
 * other streams touch must be announced with record_stream; its free then records an event on each
 * of them, and the block waits until event_query says that all are done. Leaving the announcement
 * out is the classical use-after-free of overlapped streams.
 *
 * Graphs: work in a capture runs again at each replay, so its memory must be nobody else's. A
 * capture allocates from a pool of its own (enter_pool), which keeps its blocks until the graph is
 * destroyed (release_pool). Events mean nothing in a capture: frees that need one are kept aside
 * until it has ended.
 *
 *     dbo_allocator *a = dbo_allocator_create(&seam, &err);
 *     dbo_block *block;
 *     DBO_TRY(dbo_allocator_alloc(a, compute, bytes, &block, err));
 *     launch(compute, writes dbo_block_address(block)); ... comm reads it ...
 *     DBO_TRY(dbo_allocator_record_stream(a, block, comm, err));
 *     DBO_TRY(dbo_allocator_free(a, block, err));
 *
 * Without a mem table (costs only) nothing is stored: addresses are made up, and who gets which
 * is decided as ever. Equal calls give equal addresses then. Calls come from the context that
 * holds the rank's turn. Alloc and free are O(1) save for the queries of blocks that wait.
 */
#ifndef DBO_ALLOCATOR_H
#define DBO_ALLOCATOR_H

#include "core/base/status.h"
#include "core/seam/seam.h"

#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_allocator dbo_allocator;
typedef struct dbo_block dbo_block;
typedef uint32_t dbo_pool;

#define DBO_POOL_GENERAL     0u
#define DBO_POOL_MAX_STREAMS 64u  /* stream numbers that may own or use blocks: 0 .. 63 */
#define DBO_BLOCK_BYTES      512u /* sizes are rounded up to a multiple; 0 counts as 1 */

typedef struct dbo_allocator_stats {
    uint64_t reserved_bytes, peak_reserved_bytes; /* segments taken from the device */
    uint64_t used_bytes, peak_used_bytes;         /* blocks handed out */
    uint64_t waiting_bytes;                       /* freed, but another stream may still read */
    uint64_t segments, reuses, queries;           /* segments held; allocations served from cache */
    uint64_t deferred;                            /* frees put off by a capture, so far */
} dbo_allocator_stats;

/* Borrows the seam, which must outlive it. NULL with *err on failure. */
dbo_allocator *dbo_allocator_create(const dbo_seam *seam, dbo_error *err);
/* Gives all memory back, blocks in use too: the device must be quiet. NULL is fine. */
void dbo_allocator_destroy(dbo_allocator *allocator);

/* At least `bytes`, aligned to DBO_BLOCK_BYTES, for work of `stream`. When the device has no more,
 * waits for blocks of other streams, returns cached segments and tries again; then DBO_NO_MEMORY.
 * DBO_REFUSED: in a capture, outside a private pool. */
dbo_status dbo_allocator_alloc(dbo_allocator *allocator, dbo_stream stream, uint64_t bytes,
                               dbo_block **out, dbo_error *err);
/* The owner's stream may use the memory from now on. NULL is fine. */
dbo_status dbo_allocator_free(dbo_allocator *allocator, dbo_block *block, dbo_error *err);
/* Work issued to `stream` so far or before the free touches the block. */
dbo_status dbo_allocator_record_stream(dbo_allocator *allocator, dbo_block *block,
                                       dbo_stream stream, dbo_error *err);

uint64_t dbo_block_address(const dbo_block *block);
uint64_t dbo_block_bytes(const dbo_block *block);

/* A pool for the memory of one graph, or of several that never run at the same time. */
dbo_status dbo_allocator_create_pool(dbo_allocator *allocator, dbo_pool *out, dbo_error *err);
/* Allocations come from it until leave_pool. Not nested: DBO_REFUSED. */
dbo_status dbo_allocator_enter_pool(dbo_allocator *allocator, dbo_pool pool, dbo_error *err);
void dbo_allocator_leave_pool(dbo_allocator *allocator);
/* Its graphs are gone: segments go back to the device, those with blocks in use when the last of
 * these is freed. */
dbo_status dbo_allocator_release_pool(dbo_allocator *allocator, dbo_pool pool, dbo_error *err);

void dbo_allocator_get_stats(const dbo_allocator *allocator, dbo_allocator_stats *out);
/* Device memory that a pool holds. */
uint64_t dbo_allocator_pool_bytes(const dbo_allocator *allocator, dbo_pool pool);
/* Both peaks count from now on. */
void dbo_allocator_reset_peaks(dbo_allocator *allocator);

/* Walks every structure (tests, debug builds); DBO_INTERNAL with a sentence if one is broken. */
dbo_status dbo_allocator_check(const dbo_allocator *allocator, dbo_error *err);

DBO_PUBLIC_END

#endif
