/* memory.h: who has touched a buffer, and which touches are in no order.
 *
 * A *tenancy* is a buffer's time in its memory, from ALLOC to FREE. Per range of bytes it knows the
 * writes that no later write is ordered after (normally one) and, per dimension, the latest read.
 * That suffices: whoever is ordered after those is ordered after all. Accesses of a whole buffer,
 * the rule, have one range; others split it.
 *
 * What counts as wrong is what somebody can see:
 *   - a read and a write in no order: the read may find either value;
 *   - two writes in no order, once a read, or the end, finds what they left. Two that a third one
 *     replaces before anybody looks do no harm, and are not reported;
 *   - a read of what nobody has written.
 *
 * FREE and ALLOC: a block that is free may become any later tenancy of the same pool. Which one it
 * becomes is a matter of sizes and luck, so every later tenancy of the pool answers for all tenants
 * that have left: the latest touch of each dimension is kept with the pool. A touch that FREE put
 * under an event (record_stream) is over before the block is given out, and is not kept.
 *
 *     dbo_tenancy *t = dbo_tenancy_begin(&memory, "x", buffer, pool, bytes);
 *     dbo_tenancy_write(&memory, t, 0, 0, &touch, &clock);
 *     dbo_tenancy_end(&memory, t, &announced);
 */
#ifndef DBO_CHECK_MEMORY_H
#define DBO_CHECK_MEMORY_H

#include "core/base/vec.h"
#include "core/check/order/clock.h"
#include "core/seam/op.h"

#include <stddef.h>

/* One access. */
typedef struct dbo_touch {
    dbo_op_id id;
    uint32_t tick;
    uint8_t dim;
    bool received;      /* written by a transfer */
    bool past;          /* of an earlier tenancy of the pool */
    uint32_t transfer;  /* of the rank, from 1; 0: none */
    const char *buffer; /* the earlier tenancy's name, when past */
} dbo_touch;

typedef struct dbo_touches {
    dbo_touch *items;
    uint32_t count, cap;
} dbo_touches;

typedef struct dbo_range {
    uint64_t begin, end;
    dbo_touches writes, reads;
    bool answered; /* its first write has been held against earlier tenancies */
} dbo_range;

typedef struct dbo_tenancy {
    const char *name;
    uint32_t buffer, pool;
    uint64_t serial;   /* no two have the same */
    uint64_t users;    /* a bit a stream of record_stream */
    bool filled;       /* holds data from the start */
    bool read_only;    /* an input: nobody may write it */
    bool write_once;   /* a step writes a place of it before it reads it (a KV cache) */
    uint32_t block;    /* so many places are a block; 0: not in blocks */
    uint32_t noted[2]; /* the user's: in which capture its read and its write have been noted */
    dbo_touches old_reads, old_writes; /* of the pool, when it began */
    dbo_range *ranges;
    uint32_t num_ranges, cap_ranges;
    uint64_t bytes;
    struct dbo_tenancy *next, *prev; /* of the memory's list */
} dbo_tenancy;

typedef enum dbo_conflict_kind {
    DBO_CONFLICT_READ_WRITE,  /* in no order; `first` was issued first */
    DBO_CONFLICT_WRITE_WRITE, /* in no order, and somebody sees it */
    DBO_CONFLICT_UNWRITTEN,   /* `second` reads what nobody has written */
    DBO_CONFLICT_LATE_WRITE,  /* write once: `second` writes what `first` has read in this step */
    DBO_CONFLICT_READ_ONLY    /* `second` writes an input */
} dbo_conflict_kind;

/* Places of different layers in a cache are so far apart. */
#define DBO_TENANCY_LAYER_BITS 40u

typedef struct dbo_conflict {
    dbo_conflict_kind kind;
    const dbo_tenancy *tenancy;
    uint64_t begin;                  /* of the range */
    const dbo_touch *first, *second; /* first NULL where there is none */
} dbo_conflict;

typedef void (*dbo_conflict_fn)(void *self, const dbo_conflict *conflict);

typedef struct dbo_pool_past {
    uint32_t pool;
    dbo_touches reads, writes;
} dbo_pool_past;

typedef struct dbo_check_memory {
    dbo_conflict_fn report;
    void *report_self;
    dbo_tenancy *tenancies, *spare;
    DBO_VEC(dbo_pool_past) pools;
    uint64_t num_begun;
    bool failed; /* out of memory: stops looking */
} dbo_check_memory;

void dbo_check_memory_init(dbo_check_memory *memory, dbo_conflict_fn report, void *self);
void dbo_check_memory_fini(dbo_check_memory *memory);

/* Begins a tenancy in a pool (any number); NULL when out of memory. The name is borrowed. */
dbo_tenancy *dbo_tenancy_begin(dbo_check_memory *memory, const char *name, uint32_t buffer,
                               uint32_t pool, uint64_t bytes);
/* Ends it. `announced`: the clock of what FREE put under events. The pointer is no longer valid. */
void dbo_tenancy_end(dbo_check_memory *memory, dbo_tenancy *tenancy, const dbo_clock *announced);

/* An access of `bytes` from `offset` on (0 bytes: all of it), for which `clock` is over; it
 * includes the touch itself. An op's reads come before its writes. */
void dbo_tenancy_read(dbo_check_memory *memory, dbo_tenancy *tenancy, uint64_t offset,
                      uint64_t bytes, const dbo_touch *touch, const dbo_clock *clock);
void dbo_tenancy_write(dbo_check_memory *memory, dbo_tenancy *tenancy, uint64_t offset,
                       uint64_t bytes, const dbo_touch *touch, const dbo_clock *clock);

/* What has written the tenancy; 0: nothing, or more than one op in no order. */
dbo_op_id dbo_tenancy_writer(const dbo_tenancy *tenancy);
/* The transfer whose rows a reader of the tenancy finds; 0: none, or more than one write. */
uint32_t dbo_tenancy_transfer(const dbo_tenancy *tenancy);

/* The end: what is still in memory is looked at. */
void dbo_check_memory_end(dbo_check_memory *memory);

#endif
