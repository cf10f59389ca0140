/* numeric.c: memory of simulated ranks, and ops and transfers that really compute.
 *
 * An op's reference function runs once, at its virtual start, on what its inputs hold then; it
 * writes to a private copy, and what it has changed there is published at its virtual end. A
 * transfer copies its inputs when it starts (LL: when its send does) and delivers to each rank when
 * it ends there (LL: when its receive does). So two ops that race by the events of the schedule
 * give wrong rows here, deterministically. A graph keeps a record a node, which each replay copies.
 *
 * An address is a block's number plus one in the upper 32 bits and an offset in the lower. A block
 * that is freed while the rank's streams are busy stays, unseen, to the end: what is in flight may
 * still touch it, as on a device that waits.
 */
#include "core/seam/route.h"
#include "sim/numeric_impl.h"

#include <stdlib.h>
#include <string.h>

/* Owns copies of all that describes the op but `arg`: it may outlive the program, in a graph. */
struct sim_numeric {
    dbo_op op;
    dbo_op_io io;
    dbo_route route;     /* of a transfer */
    uint64_t *addresses; /* of each read, then of each write */
    void **memory;       /* likewise: where they are */
    void **copies;       /* of what is private: an op's writes, a transfer's reads */
    void **before;       /* an op's writes at its start */
};

#define ALIGNMENT 16u /* of each output */

/* The storage at address + offset and at least `bytes` from there, or NULL. */
static void *resolve(const sim_rank *rank, uint64_t address, uint64_t offset, uint64_t bytes)
{
    uint32_t number = (uint32_t)(address >> 32), start = (uint32_t)address;
    if (number == 0 || number > rank->blocks.count)
        return NULL;
    const sim_block *block = &rank->blocks.items[number - 1];
    if (block->freed || start > block->size || offset > block->size - start ||
        bytes > block->size - start - offset)
        return NULL;
    return block->bytes + start + offset;
}

static uint32_t num_private(const dbo_op_io *io)
{
    return io->route ? io->num_reads : io->num_writes;
}

/* Finds the storage of every access by its address. */
static dbo_status find_storage(sim_rank *rank, sim_numeric *n)
{
    for (uint32_t i = 0; i < n->io.num_reads + n->io.num_writes; i++) {
        bool read = i < n->io.num_reads;
        const dbo_access *access = read ? &n->io.reads[i] : &n->io.writes[i - n->io.num_reads];
        if (!resolve(rank, n->addresses[i], 0, 0))
            return dbo_sim_refuse(rank, DBO_INVALID,
                                  "an op that computes touches buffer %u, which has no storage",
                                  access->buffer);
        n->memory[i] = resolve(rank, n->addresses[i], access->offset_bytes, access->bytes);
        if (!n->memory[i])
            return dbo_sim_refuse(rank, DBO_INVALID,
                                  "an op that computes touches buffer %u past its end",
                                  access->buffer);
    }
    return DBO_OK;
}

/* The record of an op without its addresses; all in one piece. NULL: out of memory. */
static sim_numeric *make_record(dbo_op_id id, const dbo_op_io *io)
{
    uint32_t accesses = io->num_reads + io->num_writes, own = num_private(io);
    const dbo_access *private = io->route ? io->reads : io->writes;
    size_t bytes = ALIGNMENT, pointers = accesses + 2 * (size_t)own;
    for (uint32_t i = 0; i < own; i++)
        bytes += 2 * (private[i].bytes + ALIGNMENT);
    sim_numeric *n = calloc(1, sizeof *n + accesses * (sizeof *n->addresses + sizeof *io->reads) +
                                   pointers * sizeof(void *) + bytes);
    if (!n)
        return NULL;
    dbo_access *lists = (dbo_access *)(n + 1);
    n->addresses = (uint64_t *)(lists + accesses);
    n->memory = (void **)(n->addresses + accesses);
    n->copies = n->memory + accesses;
    n->before = n->copies + own;
    for (uint32_t i = 0; i < accesses; i++)
        lists[i] = i < io->num_reads ? io->reads[i] : io->writes[i - io->num_reads];
    n->io = *io;
    n->io.reads = lists;
    n->io.writes = lists + io->num_reads;
    if (io->route) {
        n->route = *io->route;
        n->io.route = &n->route;
    }
    n->op = (dbo_op){.id = id, .io = &n->io};
    uint8_t *at = (uint8_t *)(n->before + own);
    for (uint32_t i = 0; i < 2 * own; i++) {
        at += (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT;
        n->copies[i] = at; /* `before` follows */
        at += private[i % own].bytes;
    }
    return n;
}

/* Hands out a record whose addresses are known. */
static dbo_status give(sim_rank *rank, sim_numeric *n, sim_numeric **out)
{
    dbo_status status = find_storage(rank, n);
    if (status == DBO_OK)
        *out = n;
    else
        free(n);
    return status;
}

dbo_status dbo_sim_numeric_create(sim_rank *rank, dbo_op_id id, const dbo_op_io *io,
                                  const uint64_t *addresses, sim_numeric **out)
{
    sim_numeric *n = make_record(id, io);
    if (!n)
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for an op's rows");
    for (uint32_t i = 0; i < io->num_reads + io->num_writes && addresses; i++)
        n->addresses[i] = addresses[n->io.reads[i].buffer]; /* the writes follow */
    return give(rank, n, out);
}

dbo_status dbo_sim_numeric_repeat(sim_rank *rank, const sim_numeric *node, dbo_op_id id,
                                  sim_numeric **out)
{
    sim_numeric *n = make_record(id, &node->io);
    if (!n)
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for an op's rows");
    memcpy(n->addresses, node->addresses,
           (node->io.num_reads + node->io.num_writes) * sizeof *n->addresses);
    return give(rank, n, out);
}

void dbo_sim_numeric_start(sim_numeric *n)
{
    void *const *memory = n->memory + n->io.num_reads;
    for (uint32_t i = 0; i < n->io.num_writes; i++) {
        memcpy(n->copies[i], memory[i], n->io.writes[i].bytes);
        memcpy(n->before[i], memory[i], n->io.writes[i].bytes);
    }
    n->io.ref(&n->op, (const void *const *)n->memory, n->copies);
}

/* Most of a buffer is often as it was. */
static void publish_changes(uint8_t *to, const uint8_t *from, const uint8_t *before, uint64_t bytes)
{
    enum { STRIDE = 64 };
    for (uint64_t first = 0; first < bytes; first += STRIDE) {
        uint64_t end = bytes - first < STRIDE ? bytes : first + STRIDE;
        if (memcmp(from + first, before + first, end - first) == 0)
            continue;
        for (uint64_t i = first; i < end; i++)
            if (from[i] != before[i])
                to[i] = from[i];
    }
}

void dbo_sim_numeric_publish(sim_numeric *n)
{
    for (uint32_t i = 0; i < n->io.num_writes; i++)
        publish_changes(n->memory[n->io.num_reads + i], n->copies[i], n->before[i],
                        n->io.writes[i].bytes);
    dbo_sim_numeric_destroy(n);
}

void dbo_sim_numeric_take(sim_numeric *n)
{
    for (uint32_t i = 0; i < n->io.num_reads; i++)
        memcpy(n->copies[i], n->memory[i], n->io.reads[i].bytes);
}

dbo_status dbo_sim_numeric_deliver(dbo_sim *sim, sim_numeric *const *sides, uint32_t rank)
{
    dbo_route_side *views = malloc(sim->num_ranks * sizeof *views);
    if (!views)
        return dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for a transfer's rows");
    dbo_status status = DBO_OK;
    for (uint32_t r = 0; r < sim->num_ranks && status == DBO_OK; r++) {
        if (!sides[r])
            status = dbo_sim_fail(sim, DBO_INVALID,
                                  "rank %u moves rows in a transfer in which rank %u moves none",
                                  rank, r);
        else
            views[r] = (dbo_route_side){&sides[r]->route, (const void *const *)sides[r]->copies};
    }
    if (status == DBO_OK)
        dbo_route_deliver(views, rank, sides[rank]->memory + sides[rank]->io.num_reads);
    free(views);
    return status;
}

void dbo_sim_numeric_destroy(sim_numeric *numeric)
{
    free(numeric);
}

/* ---- the memory table ---- */

static dbo_status mem_alloc(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    sim_rank *rank = self;
    (void)space; /* one memory is simulated */
    if (bytes > UINT32_MAX)
        return dbo_sim_refuse(rank, DBO_LIMIT, "a block of %llu bytes is too large to compute with",
                              (unsigned long long)bytes);
    sim_block block = {.bytes = calloc(1, bytes ? bytes : 1), .size = bytes};
    if (!block.bytes || DBO_VEC_PUSH(&rank->blocks, block) != DBO_OK) {
        free(block.bytes);
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for simulated memory");
    }
    *address = (uint64_t)rank->blocks.count << 32;
    return DBO_OK;
}

static bool is_busy(const sim_rank *rank)
{
    for (uint32_t i = 0; i < rank->streams.count; i++) {
        const sim_stream *s = &rank->sim->streams[rank->streams.items[i]];
        if (s->resolved != s->issued)
            return true;
    }
    return false;
}

static void mem_free(void *self, uint64_t address)
{
    sim_rank *rank = self;
    uint32_t number = (uint32_t)(address >> 32);
    if (number == 0 || number > rank->blocks.count)
        return;
    sim_block *block = &rank->blocks.items[number - 1];
    block->freed = true;
    if (is_busy(rank))
        return;
    free(block->bytes);
    block->bytes = NULL;
}

static void *mem_ptr(void *self, uint64_t address)
{
    return resolve(self, address, 0, 0);
}

const dbo_mem_ops dbo_sim_mem_table = {.alloc = mem_alloc, .free = mem_free, .ptr = mem_ptr};

void dbo_sim_mem_fini(sim_rank *rank)
{
    for (uint32_t i = 0; i < rank->blocks.count; i++)
        free(rank->blocks.items[i].bytes);
    DBO_VEC_FINI(&rank->blocks);
}
