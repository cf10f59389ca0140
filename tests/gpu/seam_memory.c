/* seam_memory.c: memory of a rank, and the core's caching allocator with the machine's events
 * under it. */
#include "core/memory/allocator.h"
#include "tests/gpu/rig.h"

#include <stdlib.h>

/* ---- the table ---- */

enum { BLOCKS = 6 };

static const uint64_t sizes[BLOCKS] = {1, 513, 4096, 65537, 3 << 20, 77};

static uint8_t pattern(uint32_t block, uint64_t i)
{
    return (uint8_t)(block * 41 + i * 7 + (i >> 11));
}

static dbo_space space_of(uint32_t block)
{
    return block % 2 ? DBO_SPACE_PINNED : DBO_SPACE_DEVICE;
}

/* Block by block: all are written before the first is read. */
static dbo_status visit(rig *r, const uint64_t *addresses, bool write, dbo_error *err)
{
    dbo_status status = DBO_OK;
    for (uint32_t b = 0; b < BLOCKS && status == DBO_OK; b++) {
        uint8_t *bytes = malloc(sizes[b]);
        if (!bytes)
            return dbo_fail_memory(err, "a block");
        for (uint64_t i = 0; i < sizes[b] && write; i++)
            bytes[i] = pattern(b, i);
        status = write ? rig_put(r, addresses[b], bytes, sizes[b], err)
                       : rig_get(r, addresses[b], bytes, sizes[b], err);
        for (uint64_t i = 0; i < sizes[b] && status == DBO_OK && !write; i++)
            if (bytes[i] != pattern(b, i))
                status =
                    rig_wrong(err, "block %u, byte %llu is %u", b, (unsigned long long)i, bytes[i]);
        free(bytes);
    }
    return status;
}

static dbo_status memory(rig *r, dbo_error *err)
{
    const dbo_mem_ops *mem = r->seam->mem;
    uint64_t addresses[BLOCKS], none = 0;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        RIG_TRY(mem->alloc(r->seam->mem_self, sizes[b], space_of(b), &addresses[b]));
        bool seen = mem->ptr(r->seam->mem_self, addresses[b]) != NULL;
        if (!addresses[b] || (!seen && space_of(b) == DBO_SPACE_PINNED))
            return rig_wrong(err, "block %u cannot be used by the host", b);
    }
    DBO_TRY(visit(r, addresses, true, err));
    DBO_TRY(visit(r, addresses, false, err));
    for (uint32_t b = 0; b < BLOCKS; b++)
        mem->free(r->seam->mem_self, addresses[b]);
    mem->free(r->seam->mem_self, 0);
    if (mem->ptr(r->seam->mem_self, 0))
        return rig_wrong(err, "address 0 is memory");
    dbo_error said = {0};
    dbo_status status = mem->alloc(r->seam->mem_self, UINT64_C(1) << 50, DBO_SPACE_DEVICE, &none);
    if (status == DBO_OK || dbo_seam_fail(r->seam, status, &said) == DBO_OK || !said.message[0])
        return rig_wrong(err, "a block of 1 PiB: %s '%s'", dbo_status_name(status), said.message);
    test_tell(r->report, "%d blocks kept what was written; 1 PiB is refused", BLOCKS);
    test_say(&r->report->line, "\"%s\"", said.message);
    return rig_check(r, 2, err); /* and nothing else was touched */
}

dbo_status seam_memory(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, memory, err);
}

/* ---- the allocator ---- */

#define BLOCK_BYTES (UINT64_C(3) << 20)

/* Allocates and at once frees: where would a block of this stream lie now? */
static dbo_status next_address(dbo_allocator *a, dbo_stream stream, uint64_t *out, dbo_error *err)
{
    dbo_block *block;
    DBO_TRY(dbo_allocator_alloc(a, stream, BLOCK_BYTES, &block, err));
    *out = dbo_block_address(block);
    return dbo_allocator_free(a, block, err);
}

/* comm reads a block of compute's for 20 ms; compute frees it meanwhile. */
static dbo_status lend(rig *r, dbo_allocator *a, bool announced, uint64_t *address, dbo_error *err)
{
    dbo_block *block;
    DBO_TRY(dbo_allocator_alloc(a, r->compute, BLOCK_BYTES, &block, err));
    *address = dbo_block_address(block);
    DBO_TRY(rig_mix(r, r->comm, 0, RIG_NO_SOURCE, 3, 1, RIG_MS(20), err));
    rig_expect(r, 0, RIG_NO_SOURCE, 3, 1);
    if (announced)
        DBO_TRY(dbo_allocator_record_stream(a, block, r->comm, err));
    return dbo_allocator_free(a, block, err);
}

static dbo_status streams(rig *r, dbo_allocator *a, dbo_error *err)
{
    uint64_t address, during, after;
    DBO_TRY(lend(r, a, true, &address, err));
    DBO_TRY(next_address(a, r->compute, &during, err));
    DBO_TRY(rig_sync(r, err));
    DBO_TRY(next_address(a, r->compute, &after, err));
    if (during == address || (after != address && after != during))
        return rig_wrong(err, "an announced block was %s",
                         during == address ? "given out under its reader" : "never given out");
    test_tell(r->report, "announced: kept while it is read");
    DBO_TRY(lend(r, a, false, &address, err));
    DBO_TRY(next_address(a, r->compute, &during, err));
    if (during != address)
        return rig_wrong(err, "an unannounced block was not given out at once");
    test_tell(r->report, "not announced: given out at once");
    DBO_TRY(next_address(a, r->comm, &during, err));
    if (during == address)
        return rig_wrong(err, "a block of one stream was given to another");
    DBO_TRY(rig_sync(r, err));
    return dbo_allocator_check(a, err);
}

static dbo_status in_capture(rig *r, dbo_allocator *a, dbo_error *err)
{
    dbo_allocator_stats stats;
    dbo_block *block, *other;
    dbo_graph graph;
    dbo_pool pool;
    uint64_t during, outside;
    DBO_TRY(dbo_allocator_create_pool(a, &pool, err));
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    dbo_status refused = dbo_allocator_alloc(a, r->compute, BLOCK_BYTES, &other, NULL);
    DBO_TRY(dbo_allocator_enter_pool(a, pool, err));
    DBO_TRY(dbo_allocator_alloc(a, r->compute, BLOCK_BYTES, &block, err));
    uint64_t address = dbo_block_address(block);
    DBO_TRY(rig_mix(r, r->compute, 1, RIG_NO_SOURCE, 3, 1, 0, err));
    DBO_TRY(dbo_allocator_record_stream(a, block, r->comm, err));
    DBO_TRY(dbo_allocator_free(a, block, err));
    DBO_TRY(next_address(a, r->compute, &during, err));
    RIG_TRY(RIG_GRAPH(end, &graph));
    dbo_allocator_leave_pool(a);
    DBO_TRY(next_address(a, r->compute, &outside, err));
    RIG_TRY(RIG_GRAPH(replay, graph, r->compute, 3));
    rig_expect(r, 1, RIG_NO_SOURCE, 3, 1);
    DBO_TRY(rig_check(r, 2, err));
    r->seam->graph->destroy(r->seam->graph_self, graph);
    DBO_TRY(dbo_allocator_release_pool(a, pool, err));
    dbo_allocator_get_stats(a, &stats);
    if (refused != DBO_REFUSED || during == address || outside == address || outside == during)
        return rig_wrong(err, "memory of a capture was given out again, or came from outside");
    test_tell(r->report, "in a capture: only its own pool's, %llu free put off",
              (unsigned long long)stats.deferred);
    return dbo_allocator_check(a, err);
}

static dbo_status allocator(rig *r, dbo_error *err)
{
    dbo_allocator *a = dbo_allocator_create(r->seam, err);
    if (!a)
        return DBO_NO_MEMORY;
    dbo_status status = streams(r, a, err);
    if (status == DBO_OK)
        status = in_capture(r, a, err);
    if (status == DBO_OK)
        status = rig_sync(r, err);
    dbo_allocator_destroy(a);
    return status;
}

dbo_status seam_allocator(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, allocator, err);
}
