/* shelf.h: the free blocks of one pool and stream, by size; and how segments are cut into blocks.
 *
 * Inside the allocator (allocator.h). A segment is one piece of device memory, tiled by a list of
 * blocks in address order; two neighbours are never both free. Free blocks hang in bins, four to a
 * power of two, newest first; a bit a bin says where to look, so taking and returning are O(1) but
 * for the walk of one bin. Blocks of up to SMALL come from segments of their own, so that they do
 * not cut up the large ones.
 *
 * Nothing here calls the device: a segment's memory is handed in and out by address.
 *
 *     uint64_t rounded = dbo_shelf_round(3000); // 3072
 *     DBO_TRY(dbo_shelf_take(shelf, rounded, &block));
 *     if (!block && dbo_shelf_add(shelf, address, dbo_shelf_segment_bytes(rounded)))
 *         DBO_TRY(dbo_shelf_take(shelf, rounded, &block));
 *     dbo_segment *segment = dbo_shelf_give(block);
 *     if (segment->live == 0)
 *         dbo_shelf_remove(segment);
 */
#ifndef DBO_SHELF_H
#define DBO_SHELF_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { DBO_SHELF_BINS = 192 };

#define DBO_SHELF_ALIGN   512u
#define DBO_SHELF_SMALL   (UINT64_C(1) << 20)  /* a request up to here is small */
#define DBO_SHELF_SEGMENT (UINT64_C(2) << 20)  /* segments of small blocks; unit of large ones */
#define DBO_SHELF_MEDIUM  (UINT64_C(10) << 20) /* a large request below here shares a segment */
#define DBO_SHELF_SHARED  (UINT64_C(20) << 20) /* of this size */

typedef struct dbo_shelf dbo_shelf;
typedef struct dbo_segment dbo_segment;
typedef struct dbo_block dbo_block;

typedef enum dbo_block_state { DBO_BLOCK_FREE, DBO_BLOCK_USED, DBO_BLOCK_WAITING } dbo_block_state;

struct dbo_block {
    uint64_t address, bytes;
    uint64_t users; /* a bit a stream that record_stream announced */
    dbo_segment *segment;
    dbo_block *before, *after; /* neighbours in the segment */
    dbo_block *next, *prev;    /* in its bin, or in the allocator's list of put-off frees */
    uint32_t events;           /* still to be reached before it is free again */
    dbo_block_state state;
};

struct dbo_segment {
    uint64_t address, bytes;
    dbo_shelf *shelf;
    dbo_block *first;
    dbo_segment *next, *prev; /* of the shelf */
    uint32_t live;            /* blocks that are not free */
};

struct dbo_shelf {
    uint32_t pool, stream;
    bool small;
    dbo_segment *segments;
    dbo_block *bins[DBO_SHELF_BINS];
    uint64_t filled[DBO_SHELF_BINS / 64];
    dbo_shelf *next; /* of the allocator */
};

/* The size that a request becomes, and the segment that serves it if none is cached. */
uint64_t dbo_shelf_round(uint64_t bytes);
bool dbo_shelf_is_small(uint64_t rounded);
uint64_t dbo_shelf_segment_bytes(uint64_t rounded);

/* A free block of at least `rounded` bytes, cut to size and marked used; *out NULL if none. */
dbo_status dbo_shelf_take(dbo_shelf *shelf, uint64_t rounded, dbo_block **out);
/* A used or waiting block becomes free and merges with free neighbours. Returns its segment. */
dbo_segment *dbo_shelf_give(dbo_block *block);
/* Puts a new segment on the shelf, one free block. NULL: out of memory. */
dbo_segment *dbo_shelf_add(dbo_shelf *shelf, uint64_t address, uint64_t bytes);
/* Takes a segment off and frees its descriptions; its address is the caller's to return. */
void dbo_shelf_remove(dbo_segment *segment);

/* Is everything as described above? */
dbo_status dbo_shelf_check(const dbo_shelf *shelf, dbo_error *err);

#endif
