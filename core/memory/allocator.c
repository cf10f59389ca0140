/* allocator.c: who may have a block again, and when.
 *
 * Per stream there is a queue of (event, block) in the order of their records. Events of one stream
 * complete in that order, so only the head is ever asked: a poll costs one query per stream with
 * something waiting. A block freed with several users sits in several queues and counts them down.
 * Spent events are kept and recorded again.
 *
 * During a capture neither a record outside the graph nor a query means anything: frees of blocks
 * with users go to a list of their own, which the first call after the capture works off.
 */
#include "core/memory/allocator.h"

#include "core/base/vec.h"
#include "core/memory/shelf.h"

#include <stdlib.h>
#include <string.h>

typedef struct waiting_event {
    dbo_event event;
    dbo_block *block;
} waiting_event;

/* A ring: `count` items from `first`; `cap` is 0 or a power of two. */
typedef struct waiting_queue {
    waiting_event *items;
    uint32_t first, count, cap;
} waiting_queue;

typedef struct pool_state {
    dbo_shelf *shelves;
    bool exists, released;
} pool_state;

struct dbo_allocator {
    const dbo_seam *seam;
    pool_state *pools; /* [0] is the general one */
    uint32_t num_pools, cap_pools;
    dbo_pool pool; /* where allocations come from now */
    waiting_queue queues[DBO_POOL_MAX_STREAMS];
    uint32_t num_waiting; /* items in all queues */
    DBO_VEC(dbo_event) spare_events;
    dbo_block *put_off;    /* frees of a capture */
    uint64_t next_address; /* made up, when nothing is stored */
    dbo_allocator_stats stats;
};

/* ---- the seam ---- */

static dbo_status seam_failed(const dbo_allocator *a, dbo_status status, dbo_error *err)
{
    dbo_error device = {0};
    if (a->seam->device->status(a->seam->device_self, &device) != DBO_OK && device.message[0])
        return dbo_fail(err, status, device.hint, "%s", device.message);
    return dbo_fail(err, status, NULL, "the device refused a call of the allocator");
}

static bool capturing(const dbo_allocator *a)
{
    return a->seam->graph && a->seam->graph->is_capturing(a->seam->graph_self);
}

static dbo_status take_event(dbo_allocator *a, dbo_event *out)
{
    if (a->spare_events.count > 0) {
        *out = a->spare_events.items[--a->spare_events.count];
        return DBO_OK;
    }
    return a->seam->device->event_create(a->seam->device_self, out);
}

static void keep_event(dbo_allocator *a, dbo_event event)
{
    if (DBO_VEC_PUSH(&a->spare_events, event) != DBO_OK)
        a->seam->device->event_destroy(a->seam->device_self, event);
}

/* ---- segments ---- */

static dbo_status device_alloc(dbo_allocator *a, uint64_t bytes, uint64_t *address)
{
    if (a->seam->mem)
        return a->seam->mem->alloc(a->seam->mem_self, bytes, DBO_SPACE_DEVICE, address);
    if (bytes > UINT64_MAX - a->next_address)
        return DBO_NO_MEMORY;
    *address = a->next_address;
    a->next_address += bytes;
    return DBO_OK;
}

static void return_segment(dbo_allocator *a, dbo_segment *segment)
{
    if (a->seam->mem)
        a->seam->mem->free(a->seam->mem_self, segment->address);
    a->stats.reserved_bytes -= segment->bytes;
    a->stats.segments--;
    dbo_shelf_remove(segment);
}

static void return_empty_segments(dbo_allocator *a, dbo_shelf *shelf)
{
    for (dbo_segment *segment = shelf->segments, *next; segment; segment = next) {
        next = segment->next;
        if (segment->live == 0)
            return_segment(a, segment);
    }
}

static dbo_status shelf_of(dbo_allocator *a, dbo_stream stream, bool small, dbo_shelf **out)
{
    pool_state *pool = &a->pools[a->pool];
    for (dbo_shelf *shelf = pool->shelves; shelf; shelf = shelf->next) {
        if (shelf->stream == stream && shelf->small == small) {
            *out = shelf;
            return DBO_OK;
        }
    }
    dbo_shelf *shelf = calloc(1, sizeof *shelf);
    if (!shelf)
        return DBO_NO_MEMORY;
    *shelf = (dbo_shelf){.pool = a->pool, .stream = stream, .small = small, .next = pool->shelves};
    pool->shelves = shelf;
    *out = shelf;
    return DBO_OK;
}

/* ---- blocks that wait for other streams ---- */

/* A released pool without segments is forgotten; its number may be given out again. */
static void forget_if_empty(dbo_allocator *a, dbo_pool pool)
{
    for (const dbo_shelf *shelf = a->pools[pool].shelves; shelf; shelf = shelf->next) {
        if (shelf->segments)
            return;
    }
    for (dbo_shelf *shelf = a->pools[pool].shelves, *next; shelf; shelf = next) {
        next = shelf->next;
        free(shelf);
    }
    a->pools[pool] = (pool_state){0};
}

static void set_free(dbo_allocator *a, dbo_block *block)
{
    dbo_segment *segment = dbo_shelf_give(block);
    dbo_pool pool = segment->shelf->pool;
    if (segment->live == 0 && a->pools[pool].released) {
        return_segment(a, segment);
        forget_if_empty(a, pool);
    }
}

static dbo_status queue_push(waiting_queue *queue, dbo_event event, dbo_block *block)
{
    if (queue->count == queue->cap) {
        uint32_t cap = queue->cap ? queue->cap * 2 : 16;
        waiting_event *items = cap > queue->cap ? malloc(cap * sizeof *items) : NULL;
        if (!items)
            return DBO_NO_MEMORY;
        for (uint32_t i = 0; i < queue->count; i++)
            items[i] = queue->items[(queue->first + i) & (queue->cap - 1)];
        free(queue->items);
        *queue = (waiting_queue){.items = items, .count = queue->count, .cap = cap};
    }
    queue->items[(queue->first + queue->count++) & (queue->cap - 1)] =
        (waiting_event){.event = event, .block = block};
    return DBO_OK;
}

/* The head's event has been reached. */
static void queue_pop(dbo_allocator *a, waiting_queue *queue)
{
    waiting_event head = queue->items[queue->first];
    queue->first = (queue->first + 1) & (queue->cap - 1);
    queue->count--;
    a->num_waiting--;
    keep_event(a, head.event);
    if (--head.block->events == 0 && !head.block->users) {
        a->stats.waiting_bytes -= head.block->bytes;
        set_free(a, head.block);
    }
}

/* Records an event on each user's stream; the block waits for all of them. */
static dbo_status wait_for_users(dbo_allocator *a, dbo_block *block)
{
    const dbo_seam *seam = a->seam;
    while (block->users) {
        dbo_stream stream = (dbo_stream)__builtin_ctzll(block->users);
        dbo_event event;
        DBO_TRY(take_event(a, &event));
        dbo_status status = seam->device->record(seam->device_self, event, stream);
        if (status == DBO_OK)
            status = queue_push(&a->queues[stream], event, block);
        if (status != DBO_OK) {
            keep_event(a, event);
            return status;
        }
        a->num_waiting++;
        block->events++;
        block->users &= block->users - 1;
    }
    return DBO_OK;
}

static dbo_status work_off_put_off(dbo_allocator *a)
{
    while (a->put_off) {
        dbo_block *block = a->put_off;
        DBO_TRY(wait_for_users(a, block));
        a->put_off = block->next;
        block->next = NULL;
    }
    return DBO_OK;
}

static dbo_status poll_streams(dbo_allocator *a)
{
    const dbo_seam *seam = a->seam;
    DBO_TRY(work_off_put_off(a));
    for (uint32_t s = 0; s < DBO_POOL_MAX_STREAMS && a->num_waiting; s++) {
        waiting_queue *queue = &a->queues[s];
        while (queue->count) {
            bool done = false;
            DBO_TRY(seam->device->event_query(seam->device_self, queue->items[queue->first].event,
                                              &done));
            a->stats.queries++;
            if (!done)
                break;
            queue_pop(a, queue);
        }
    }
    return DBO_OK;
}

/* Takes up blocks whose other streams are done. Nothing in a capture. */
static dbo_status poll(dbo_allocator *a, dbo_error *err)
{
    if ((!a->num_waiting && !a->put_off) || capturing(a))
        return DBO_OK;
    dbo_status status = poll_streams(a);
    return status == DBO_OK ? DBO_OK : seam_failed(a, status, err);
}

/* Blocks the rank until no block waits. */
static dbo_status wait_for_all(dbo_allocator *a)
{
    const dbo_seam *seam = a->seam;
    DBO_TRY(work_off_put_off(a));
    for (uint32_t s = 0; s < DBO_POOL_MAX_STREAMS; s++) {
        waiting_queue *queue = &a->queues[s];
        while (queue->count) {
            DBO_TRY(seam->device->host_wait(seam->device_self, queue->items[queue->first].event));
            queue_pop(a, queue);
        }
    }
    return DBO_OK;
}

/* ---- alloc, free ---- */

/* A new segment. With no device memory left: once more after all that is cached went back. */
static dbo_status add_segment(dbo_allocator *a, dbo_shelf *shelf, uint64_t rounded, dbo_error *err)
{
    uint64_t bytes = dbo_shelf_segment_bytes(rounded), address = 0;
    dbo_status status = device_alloc(a, bytes, &address);
    if (status == DBO_NO_MEMORY && !capturing(a)) {
        dbo_status waited = wait_for_all(a);
        if (waited != DBO_OK)
            return seam_failed(a, waited, err);
        for (dbo_shelf *of = a->pools[DBO_POOL_GENERAL].shelves; of; of = of->next)
            return_empty_segments(a, of);
        status = device_alloc(a, bytes, &address);
    }
    if (status == DBO_NO_MEMORY)
        return dbo_fail(err, DBO_NO_MEMORY, "Use smaller batches or fewer captured sizes.",
                        "the device has no %llu bytes left; %llu are held, %llu of them in use",
                        (unsigned long long)bytes, (unsigned long long)a->stats.reserved_bytes,
                        (unsigned long long)a->stats.used_bytes);
    if (status != DBO_OK)
        return seam_failed(a, status, err);
    if (!dbo_shelf_add(shelf, address, bytes)) {
        if (a->seam->mem)
            a->seam->mem->free(a->seam->mem_self, address);
        return dbo_fail_memory(err, "a segment of the allocator");
    }
    a->stats.segments++;
    a->stats.reserved_bytes += bytes;
    if (a->stats.reserved_bytes > a->stats.peak_reserved_bytes)
        a->stats.peak_reserved_bytes = a->stats.reserved_bytes;
    return DBO_OK;
}

static dbo_status check_request(const dbo_allocator *a, dbo_stream stream, dbo_error *err)
{
    if (stream >= DBO_POOL_MAX_STREAMS)
        return dbo_fail(err, DBO_LIMIT, NULL, "stream %u cannot use the allocator: at most %u can",
                        stream, DBO_POOL_MAX_STREAMS);
    if (a->pool == DBO_POOL_GENERAL && capturing(a))
        return dbo_fail(err, DBO_REFUSED, "Enter a pool of the graph around the capture.",
                        "an allocation in a capture came from the general pool, whose blocks "
                        "others reuse between replays");
    return DBO_OK;
}

dbo_status dbo_allocator_alloc(dbo_allocator *a, dbo_stream stream, uint64_t bytes, dbo_block **out,
                               dbo_error *err)
{
    uint64_t rounded = dbo_shelf_round(bytes);
    dbo_shelf *shelf;
    DBO_TRY(check_request(a, stream, err));
    DBO_TRY(poll(a, err));
    if (shelf_of(a, stream, dbo_shelf_is_small(rounded), &shelf) != DBO_OK ||
        dbo_shelf_take(shelf, rounded, out) != DBO_OK)
        return dbo_fail_memory(err, "a block of the allocator");
    if (*out) {
        a->stats.reuses++;
    } else {
        DBO_TRY(add_segment(a, shelf, rounded, err));
        if (dbo_shelf_take(shelf, rounded, out) != DBO_OK)
            return dbo_fail_memory(err, "a block of the allocator");
    }
    a->stats.used_bytes += (*out)->bytes;
    if (a->stats.used_bytes > a->stats.peak_used_bytes)
        a->stats.peak_used_bytes = a->stats.used_bytes;
    return DBO_OK;
}

dbo_status dbo_allocator_free(dbo_allocator *a, dbo_block *block, dbo_error *err)
{
    if (!block)
        return DBO_OK;
    if (block->state != DBO_BLOCK_USED)
        return dbo_fail(err, DBO_REFUSED, NULL, "the block at %llx was freed twice",
                        (unsigned long long)block->address);
    a->stats.used_bytes -= block->bytes;
    if (!block->users) {
        set_free(a, block);
        return DBO_OK;
    }
    block->state = DBO_BLOCK_WAITING;
    a->stats.waiting_bytes += block->bytes;
    if (capturing(a)) {
        a->stats.deferred++;
        block->next = a->put_off;
        a->put_off = block;
        return DBO_OK;
    }
    dbo_status status = wait_for_users(a, block);
    return status == DBO_OK ? DBO_OK : seam_failed(a, status, err);
}

dbo_status dbo_allocator_record_stream(dbo_allocator *a, dbo_block *block, dbo_stream stream,
                                       dbo_error *err)
{
    DBO_TRY(stream < DBO_POOL_MAX_STREAMS ? DBO_OK : check_request(a, stream, err));
    if (block->state != DBO_BLOCK_USED)
        return dbo_fail(err, DBO_REFUSED, NULL,
                        "stream %u was announced for the block at %llx after its free", stream,
                        (unsigned long long)block->address);
    if (stream != block->segment->shelf->stream)
        block->users |= UINT64_C(1) << stream;
    return DBO_OK;
}

uint64_t dbo_block_address(const dbo_block *block)
{
    return block->address;
}

uint64_t dbo_block_bytes(const dbo_block *block)
{
    return block->bytes;
}

/* ---- pools ---- */

dbo_status dbo_allocator_create_pool(dbo_allocator *a, dbo_pool *out, dbo_error *err)
{
    uint32_t index = 1;
    while (index < a->num_pools && a->pools[index].exists)
        index++;
    if (dbo_vec_grow(&a->pools, &a->cap_pools, (uint64_t)index + 1, sizeof *a->pools) != DBO_OK)
        return dbo_fail_memory(err, "a pool of the allocator");
    if (index == a->num_pools)
        a->num_pools++;
    a->pools[index] = (pool_state){.exists = true};
    *out = index;
    return DBO_OK;
}

static dbo_status check_pool(const dbo_allocator *a, dbo_pool pool, dbo_error *err)
{
    if (pool == DBO_POOL_GENERAL || pool >= a->num_pools || !a->pools[pool].exists ||
        a->pools[pool].released)
        return dbo_fail(err, DBO_INVALID, NULL, "pool %u is not one of a graph", pool);
    return DBO_OK;
}

dbo_status dbo_allocator_enter_pool(dbo_allocator *a, dbo_pool pool, dbo_error *err)
{
    DBO_TRY(check_pool(a, pool, err));
    if (a->pool != DBO_POOL_GENERAL)
        return dbo_fail(err, DBO_REFUSED, "Leave it first.", "pool %u was entered while pool %u is",
                        pool, a->pool);
    a->pool = pool;
    return DBO_OK;
}

void dbo_allocator_leave_pool(dbo_allocator *a)
{
    a->pool = DBO_POOL_GENERAL;
}

dbo_status dbo_allocator_release_pool(dbo_allocator *a, dbo_pool pool, dbo_error *err)
{
    DBO_TRY(check_pool(a, pool, err));
    if (a->pool == pool)
        return dbo_fail(err, DBO_REFUSED, "Leave it first.", "pool %u is in use", pool);
    DBO_TRY(poll(a, err));
    a->pools[pool].released = true;
    for (dbo_shelf *shelf = a->pools[pool].shelves; shelf; shelf = shelf->next)
        return_empty_segments(a, shelf);
    forget_if_empty(a, pool);
    return DBO_OK;
}

/* ---- the object ---- */

dbo_allocator *dbo_allocator_create(const dbo_seam *seam, dbo_error *err)
{
    dbo_allocator *a = calloc(1, sizeof *a);
    pool_state *pools = calloc(4, sizeof *pools);
    if (!a || !pools) {
        free(a);
        free(pools);
        dbo_fail_memory(err, "the allocator");
        return NULL;
    }
    a->seam = seam;
    a->pools = pools;
    a->cap_pools = 4;
    a->num_pools = 1;
    a->pools[DBO_POOL_GENERAL].exists = true;
    a->next_address = UINT64_C(1) << 32;
    return a;
}

void dbo_allocator_destroy(dbo_allocator *a)
{
    if (!a)
        return;
    const dbo_seam *seam = a->seam;
    for (uint32_t s = 0; s < DBO_POOL_MAX_STREAMS; s++) {
        for (uint32_t i = 0; i < a->queues[s].count; i++) {
            waiting_queue *queue = &a->queues[s];
            keep_event(a, queue->items[(queue->first + i) & (queue->cap - 1)].event);
        }
        free(a->queues[s].items);
    }
    for (uint32_t i = 0; i < a->spare_events.count; i++)
        seam->device->event_destroy(seam->device_self, a->spare_events.items[i]);
    for (uint32_t p = 0; p < a->num_pools; p++) {
        for (dbo_shelf *shelf = a->pools[p].shelves, *next; shelf; shelf = next) {
            next = shelf->next;
            while (shelf->segments)
                return_segment(a, shelf->segments);
            free(shelf);
        }
    }
    DBO_VEC_FINI(&a->spare_events);
    free(a->pools);
    free(a);
}

uint64_t dbo_allocator_pool_bytes(const dbo_allocator *a, dbo_pool pool)
{
    uint64_t bytes = 0;
    for (const dbo_shelf *shelf = pool < a->num_pools ? a->pools[pool].shelves : NULL; shelf;
         shelf = shelf->next)
        for (const dbo_segment *segment = shelf->segments; segment; segment = segment->next)
            bytes += segment->bytes;
    return bytes;
}

void dbo_allocator_reset_peaks(dbo_allocator *a)
{
    a->stats.peak_reserved_bytes = a->stats.reserved_bytes;
    a->stats.peak_used_bytes = a->stats.used_bytes;
}

void dbo_allocator_get_stats(const dbo_allocator *a, dbo_allocator_stats *out)
{
    *out = a->stats;
}

dbo_status dbo_allocator_check(const dbo_allocator *a, dbo_error *err)
{
    uint64_t used = 0, waiting = 0, reserved = 0;
    for (uint32_t p = 0; p < a->num_pools; p++) {
        for (const dbo_shelf *shelf = a->pools[p].shelves; shelf; shelf = shelf->next) {
            DBO_TRY(dbo_shelf_check(shelf, err));
            for (const dbo_segment *segment = shelf->segments; segment; segment = segment->next) {
                reserved += segment->bytes;
                for (const dbo_block *block = segment->first; block; block = block->after) {
                    used += block->state == DBO_BLOCK_USED ? block->bytes : 0;
                    waiting += block->state == DBO_BLOCK_WAITING ? block->bytes : 0;
                }
            }
        }
    }
    if (used != a->stats.used_bytes || waiting != a->stats.waiting_bytes ||
        reserved != a->stats.reserved_bytes)
        return dbo_fail(err, DBO_INTERNAL, NULL,
                        "the allocator's sums are wrong: used %llu of %llu, waiting %llu of %llu",
                        (unsigned long long)a->stats.used_bytes, (unsigned long long)used,
                        (unsigned long long)a->stats.waiting_bytes, (unsigned long long)waiting);
    return DBO_OK;
}
