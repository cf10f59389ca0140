/* numeric.c: memory of simulated ranks, and ops that really compute.
 *
 * An op's reference function runs once, at its virtual start, on what its inputs hold then; its
 * outputs go to a private copy, published at its virtual end. So two ops that race by the events of
 * the schedule give wrong rows here, deterministically. An address is a block's number plus one in
 * the upper 32 bits and an offset in the lower. A block that is freed while the rank's streams are
 * busy stays, unseen, to the end: what is in flight may still touch it, as on a device that waits.
 */
#include "sim/sim_impl.h"

#include <stdlib.h>

struct sim_numeric {
    const dbo_op_io *io;
    uint8_t *scratch;   /* all outputs, one after the other */
    const void **reads; /* num_reads */
    void **writes;      /* num_writes: where in scratch */
    void **published;   /* num_writes: where in memory */
};

#define ALIGNMENT 16u /* of each output */

/* The storage at address + offset and at least `bytes` from there, or NULL. */
static void *resolve(const sim_rank *rank, uint64_t address, uint64_t offset, uint64_t bytes)
{
    uint32_t number = (uint32_t)(address >> 32), start = (uint32_t)address;
    if (number == 0 || number > rank->num_blocks)
        return NULL;
    const sim_block *block = &rank->blocks[number - 1];
    if (block->freed || start > block->size || offset > block->size - start ||
        bytes > block->size - start - offset)
        return NULL;
    return block->bytes + start + offset;
}

static void *resolve_access(const sim_rank *rank, const dbo_access *access,
                            const uint64_t *addresses)
{
    return resolve(rank, addresses[access->buffer], access->offset_bytes, access->bytes);
}

/* Has every access storage? An op that computes needs it. */
static dbo_status check_accesses(sim_rank *rank, const dbo_access *accesses, uint32_t count,
                                 const uint64_t *addresses)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t buffer = accesses[i].buffer;
        if (!addresses || !resolve(rank, addresses[buffer], 0, 0))
            return sim_refuse(rank, DBO_INVALID,
                              "an op that computes touches buffer %u, which has no storage",
                              buffer);
        if (!resolve_access(rank, &accesses[i], addresses))
            return sim_refuse(rank, DBO_INVALID,
                              "an op that computes touches buffer %u past its end", buffer);
    }
    return DBO_OK;
}

dbo_status sim_numeric_check(sim_rank *rank, const dbo_op_io *io, const uint64_t *addresses)
{
    DBO_TRY(check_accesses(rank, io->reads, io->num_reads, addresses));
    return check_accesses(rank, io->writes, io->num_writes, addresses);
}

sim_numeric *sim_numeric_create(sim_rank *rank, const dbo_op_io *io, const uint64_t *addresses)
{
    size_t pointers = (size_t)io->num_reads + 2 * (size_t)io->num_writes;
    size_t bytes = 0;
    for (uint32_t i = 0; i < io->num_writes; i++)
        bytes += io->writes[i].bytes + ALIGNMENT;
    /* Cleared: what a reference function leaves out must be the same bytes in every run. */
    sim_numeric *n = calloc(1, sizeof *n + pointers * sizeof(void *) + bytes);
    if (!n)
        return NULL;
    n->io = io;
    n->reads = (const void **)(n + 1);
    n->writes = (void **)(n->reads + io->num_reads);
    n->published = n->writes + io->num_writes;
    n->scratch = (uint8_t *)(n->published + io->num_writes);
    for (uint32_t i = 0; i < io->num_reads; i++)
        n->reads[i] = resolve_access(rank, &io->reads[i], addresses);
    uint8_t *at = n->scratch;
    for (uint32_t i = 0; i < io->num_writes; i++) {
        at += (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT;
        n->writes[i] = at;
        at += io->writes[i].bytes;
        n->published[i] = resolve_access(rank, &io->writes[i], addresses);
    }
    return n;
}

void sim_numeric_start(sim_numeric *numeric)
{
    numeric->io->ref(numeric->io, numeric->reads, numeric->writes);
}

void sim_numeric_publish(sim_numeric *numeric)
{
    for (uint32_t i = 0; i < numeric->io->num_writes; i++)
        if (numeric->published[i])
            memcpy(numeric->published[i], numeric->writes[i], numeric->io->writes[i].bytes);
    sim_numeric_destroy(numeric);
}

void sim_numeric_destroy(sim_numeric *numeric)
{
    free(numeric);
}

/* ---- the memory table ---- */

static dbo_status mem_alloc(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    sim_rank *rank = self;
    (void)space; /* one memory is simulated */
    if (bytes > UINT32_MAX)
        return sim_refuse(rank, DBO_LIMIT, "a block of %llu bytes is too large to compute with",
                          (unsigned long long)bytes);
    if (rank->num_blocks == rank->cap_blocks) {
        uint32_t cap = rank->cap_blocks ? rank->cap_blocks * 2 : 16;
        sim_block *grown = realloc(rank->blocks, cap * sizeof *grown);
        if (!grown)
            return sim_refuse(rank, DBO_NO_MEMORY, "out of memory for simulated memory");
        rank->blocks = grown;
        rank->cap_blocks = cap;
    }
    uint8_t *block = calloc(1, bytes ? bytes : 1);
    if (!block)
        return sim_refuse(rank, DBO_NO_MEMORY, "out of memory for simulated memory");
    rank->blocks[rank->num_blocks++] = (sim_block){.bytes = block, .size = bytes};
    *address = (uint64_t)rank->num_blocks << 32;
    return DBO_OK;
}

static bool is_busy(const sim_rank *rank)
{
    for (uint32_t i = 0; i < rank->num_streams; i++) {
        const sim_stream *s = &rank->sim->streams[rank->streams[i]];
        if (s->resolved != s->issued)
            return true;
    }
    return false;
}

static void mem_free(void *self, uint64_t address)
{
    sim_rank *rank = self;
    uint32_t number = (uint32_t)(address >> 32);
    if (number == 0 || number > rank->num_blocks)
        return;
    sim_block *block = &rank->blocks[number - 1];
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

const dbo_mem_ops sim_mem_table = {.alloc = mem_alloc, .free = mem_free, .ptr = mem_ptr};

void sim_mem_fini(sim_rank *rank)
{
    for (uint32_t i = 0; i < rank->num_blocks; i++)
        free(rank->blocks[i].bytes);
    free(rank->blocks);
}
