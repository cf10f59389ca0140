/* kv_access.c: see kv_access.h. */
#include "core/step/kv_access.h"

#include "core/layer/layer_sizes.h"

#include <string.h>

/* Ranges of tokens' places; neighbours become one. */
typedef struct ranges {
    dbo_access *items;
    uint32_t count;
} ranges;

/* Tokens [first, end) of a request. */
static void add_tokens(ranges *out, const dbo_request *q, uint32_t first, uint32_t end,
                       uint32_t block_size)
{
    while (first < end && first / block_size < (uint32_t)q->num_blocks) {
        uint32_t offset = first % block_size, room = block_size - offset;
        uint32_t count = end - first < room ? end - first : room;
        uint64_t place = (uint64_t)q->blocks[first / block_size] * block_size + offset;
        dbo_access *last = out->count > 0 ? &out->items[out->count - 1] : NULL;
        if (last && last->offset_bytes + last->bytes == place)
            last->bytes += count;
        else
            out->items[out->count++] =
                (dbo_access){.buffer = dbo_layer_buffer(0, DBO_BUFFER_KV_CACHE),
                             .offset_bytes = place,
                             .bytes = count};
        first += count;
    }
}

/* What ubatch `u` reads, or writes, of the cache. */
static void add_requests(ranges *out, const dbo_ubatch_metadata *m, const dbo_request *requests,
                         bool writes, uint32_t block_size)
{
    for (int32_t r = 0; r < m->num_reqs; r++) {
        const dbo_request *q = &requests[m->req_start + r];
        int32_t length = m->seq_lens[r];
        int32_t query = m->query_start_loc[r + 1] - m->query_start_loc[r];
        if (q->blocks)
            add_tokens(out, q, writes ? (uint32_t)(length - query) : 0, (uint32_t)length,
                       block_size);
    }
}

static uint32_t most_ranges(const dbo_ubatch_metadata *m, const dbo_request *requests)
{
    uint32_t blocks = 0;
    for (int32_t r = 0; r < m->num_reqs; r++)
        if (requests[m->req_start + r].blocks)
            blocks += (uint32_t)requests[m->req_start + r].num_blocks;
    return blocks;
}

/* The list without its access of the cache, which was to all of it, and with the ranges. */
static dbo_status replace(dbo_program *program, const dbo_access *list, uint32_t count,
                          const ranges *cache, const dbo_access **out, uint32_t *num_out,
                          dbo_error *err)
{
    dbo_access *copy =
        dbo_arena_alloc(&program->texts, ((size_t)count + cache->count + 1) * sizeof *copy);
    uint32_t kept = 0;
    DBO_TRY(dbo_need_memory(copy, "accesses of the KV cache", err));
    for (uint32_t i = 0; i < count; i++)
        if (list[i].buffer != dbo_layer_buffer(0, DBO_BUFFER_KV_CACHE))
            copy[kept++] = list[i];
    memcpy(copy + kept, cache->items, cache->count * sizeof *copy);
    *out = copy;
    *num_out = kept + cache->count;
    return DBO_OK;
}

static bool touches_cache(const dbo_access *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].buffer == dbo_layer_buffer(0, DBO_BUFFER_KV_CACHE))
            return true;
    return false;
}

static dbo_status set_op(dbo_program *program, dbo_program_op *op, const dbo_ubatch_metadata *m,
                         const dbo_request *requests, uint32_t block_size, dbo_error *err)
{
    bool writes = dbo_op_id_kind(op->id_bits) == DBO_KIND_A0;
    if (!touches_cache(writes ? op->io->writes : op->io->reads,
                       writes ? op->io->num_writes : op->io->num_reads))
        return DBO_OK; /* its writer says what it touches */
    dbo_op_io *io = dbo_arena_copy(&program->texts, op->io, sizeof *io);
    ranges cache = {.items = dbo_arena_alloc(&program->texts,
                                             (most_ranges(m, requests) + 1) * sizeof *cache.items)};
    DBO_TRY(dbo_need_memory(io && cache.items, "accesses of the KV cache", err));
    add_requests(&cache, m, requests, writes, block_size);
    if (writes)
        DBO_TRY(replace(program, io->writes, io->num_writes, &cache, &io->writes, &io->num_writes,
                        err));
    else
        DBO_TRY(
            replace(program, io->reads, io->num_reads, &cache, &io->reads, &io->num_reads, err));
    op->io = io;
    return DBO_OK;
}

dbo_status dbo_kv_accesses_set(dbo_plan *plan, const dbo_cut *cut, const dbo_request *requests,
                               uint32_t block_size, dbo_error *err)
{
    for (uint32_t k = 0; k < plan->num_kinds; k++)
        for (uint32_t i = 0; i < plan->layers[k].num_ops; i++) {
            dbo_program_op *op = &plan->layers[k].ops[i];
            uint32_t kind = dbo_op_id_kind(op->id_bits);
            if (op->io && (kind == DBO_KIND_A0 || kind == DBO_KIND_A1))
                DBO_TRY(set_op(&plan->layers[k], op, &cut->metadata[dbo_op_id_ubatch(op->id_bits)],
                               requests, block_size, err));
        }
    return DBO_OK;
}
