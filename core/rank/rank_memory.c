/* rank_memory.c: buffers of programs over the allocator. Everything is O(1) a call but for release,
 * which walks the frame once a forward. */
#include "core/rank/rank_memory.h"

#include "core/base/vec.h"

#include <stdlib.h>
#include <string.h>

static void tell(const dbo_rank *rank, dbo_memory_event event)
{
    const dbo_seam *seam = &rank->seam;
    if (__builtin_expect(seam->trace && seam->trace->memory, 0))
        seam->trace->memory(seam->trace_self, &event);
}

/* ---- the interpreter's ---- */

static dbo_status refuse(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr,
                         const char *what, const char *hint)
{
    return dbo_fail(&rank->failure, DBO_REFUSED, hint, "program %s: %s of buffer %s, which %s",
                    program->name, dbo_code_name((dbo_code)instr->code),
                    program->buffers[instr->index].name, what);
}

/* Names the buffer. A world that has failed says so itself. */
static dbo_status failed(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr,
                         dbo_status status)
{
    if (status == DBO_ABORTED)
        memset(&rank->failure, 0, sizeof rank->failure);
    else
        dbo_error_prefix(&rank->failure, "buffer %s", program->buffers[instr->index].name);
    return status;
}

static void put(dbo_rank *rank, uint32_t buffer, dbo_block *block, bool workspace, bool lent)
{
    rank->buffers[buffer] =
        (dbo_frame_buffer){.block = block, .workspace = workspace, .lent = lent};
    rank->addresses[buffer] = block ? dbo_block_address(block) : 0;
}

/* Buffer `buffer` gets a block, which a program or a workspace (`is`) takes on a stream. */
static dbo_status take(dbo_rank *rank, const dbo_program_buffer *is, uint32_t buffer,
                       uint8_t stream, bool workspace, dbo_error *err)
{
    dbo_block *block;
    DBO_TRY(dbo_allocator_alloc(rank->allocator, rank->streams[stream], is->bytes, &block, err));
    put(rank, buffer, block, workspace, false);
    tell(rank, (dbo_memory_event){.what = DBO_MEMORY_TAKE,
                                  .buffer = buffer,
                                  .stream = rank->streams[stream],
                                  .bytes = is->bytes,
                                  .name = is->name,
                                  .filled = is->input});
    return DBO_OK;
}

dbo_status dbo_rank_alloc(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr)
{
    if (rank->buffers[instr->index].block)
        return refuse(rank, program, instr, "has memory already", "Free it before.");
    dbo_status status = take(rank, &program->buffers[instr->index], instr->index, instr->stream,
                             false, &rank->failure);
    return __builtin_expect(status == DBO_OK, 1) ? DBO_OK : failed(rank, program, instr, status);
}

dbo_status dbo_rank_free(dbo_rank *rank, const dbo_program *program, const dbo_instr *instr)
{
    dbo_frame_buffer *buffer = &rank->buffers[instr->index];
    if (!buffer->block || buffer->workspace || buffer->lent)
        return refuse(rank, program, instr, "has no memory of the program's",
                      "Allocate it before.");
    dbo_block *block = buffer->block;
    put(rank, instr->index, NULL, false, false);
    dbo_status status = dbo_allocator_free(rank->allocator, block, &rank->failure);
    tell(rank, (dbo_memory_event){.what = DBO_MEMORY_DROP, .buffer = instr->index});
    return status == DBO_OK ? DBO_OK : failed(rank, program, instr, status);
}

dbo_status dbo_rank_record_stream(dbo_rank *rank, const dbo_program *program,
                                  const dbo_instr *instr)
{
    dbo_block *block = rank->buffers[instr->index].block;
    if (!block)
        return refuse(rank, program, instr, "has no memory", "Allocate it before.");
    dbo_status status = dbo_allocator_record_stream(rank->allocator, block,
                                                    rank->streams[instr->stream], &rank->failure);
    tell(rank, (dbo_memory_event){.what = DBO_MEMORY_USE,
                                  .buffer = instr->index,
                                  .stream = rank->streams[instr->stream]});
    return status == DBO_OK ? DBO_OK : failed(rank, program, instr, status);
}

/* ---- around a forward ---- */

dbo_status dbo_rank_release(dbo_rank *rank, dbo_error *err)
{
    dbo_status first = DBO_OK;
    for (uint32_t i = 0; i < rank->num_buffers; i++) {
        dbo_frame_buffer buffer = rank->buffers[i];
        if (!buffer.block || buffer.workspace)
            continue;
        put(rank, i, NULL, false, false);
        if (buffer.lent)
            continue;
        tell(rank, (dbo_memory_event){.what = DBO_MEMORY_DROP, .buffer = i});
        dbo_status status =
            dbo_allocator_free(rank->allocator, buffer.block, first == DBO_OK ? err : NULL);
        if (first == DBO_OK)
            first = status;
    }
    return first;
}

dbo_status dbo_rank_take_outputs(dbo_rank *rank, dbo_rank_outputs *out, dbo_error *err)
{
    *out = (dbo_rank_outputs){0};
    if (rank->num_buffers == 0)
        return DBO_OK;
    out->blocks = calloc(rank->num_buffers, sizeof *out->blocks);
    DBO_TRY(dbo_need_memory(out->blocks, "a graph's outputs", err));
    out->count = rank->num_buffers;
    for (uint32_t i = 0; i < rank->num_buffers; i++) {
        if (!rank->buffers[i].block || rank->buffers[i].workspace)
            continue;
        out->blocks[i] = rank->buffers[i].block;
        put(rank, i, NULL, false, false);
    }
    return DBO_OK;
}

void dbo_rank_lend_outputs(dbo_rank *rank, const dbo_rank_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++)
        if (outputs->blocks[i]) {
            put(rank, i, outputs->blocks[i], false, true);
            tell(rank, (dbo_memory_event){.what = DBO_MEMORY_TAKE,
                                          .buffer = i,
                                          .bytes = dbo_block_bytes(outputs->blocks[i]),
                                          .name = "a graph's output",
                                          .filled = true,
                                          .lent = true});
        }
}

void dbo_rank_free_outputs(dbo_rank *rank, dbo_rank_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++)
        dbo_allocator_free(rank->allocator, outputs->blocks[i], NULL);
    free(outputs->blocks);
    *outputs = (dbo_rank_outputs){0};
}

/* ---- fitting ---- */

static dbo_status grow_frame(dbo_rank *rank, uint32_t count, dbo_error *err)
{
    uint32_t i = rank->num_buffers, cap = i;
    if (dbo_vec_grow(&rank->addresses, &cap, count, sizeof *rank->addresses) != DBO_OK ||
        dbo_vec_grow(&rank->buffers, &rank->num_buffers, count, sizeof *rank->buffers) != DBO_OK)
        return dbo_fail_memory(err, "a rank's buffers");
    for (; i < rank->num_buffers; i++)
        put(rank, i, NULL, false, false);
    return DBO_OK;
}

static dbo_status leave_behind(dbo_rank *rank, dbo_block *block, dbo_error *err)
{
    uint32_t cap = rank->num_left_behind;
    if (dbo_vec_grow(&rank->left_behind, &cap, (uint64_t)cap + 1, sizeof(dbo_block *)) != DBO_OK)
        return dbo_fail_memory(err, "a rank's workspaces");
    rank->left_behind[rank->num_left_behind++] = block;
    return DBO_OK;
}

/* Makes buffer `buffer`, a workspace or wanted as one, what the program says. */
static dbo_status fit_workspace(dbo_rank *rank, const dbo_program_buffer *wanted, uint32_t buffer,
                                dbo_error *err)
{
    dbo_block *old = rank->buffers[buffer].block;
    if (old && wanted->workspace && dbo_block_bytes(old) >= wanted->bytes)
        return DBO_OK;
    if (old)
        tell(rank, (dbo_memory_event){.what = DBO_MEMORY_DROP, .buffer = buffer});
    if (old)
        DBO_TRY(rank->keeps_workspaces ? leave_behind(rank, old, err)
                                       : dbo_allocator_free(rank->allocator, old, err));
    put(rank, buffer, NULL, false, false);
    if (!wanted->workspace || wanted->bytes == 0)
        return DBO_OK;
    dbo_status status = take(rank, wanted, buffer, wanted->pool, true, err);
    if (status != DBO_OK)
        dbo_error_prefix(err, "workspace %s", wanted->name);
    return status;
}

dbo_status dbo_rank_memory_fit(dbo_rank *rank, const dbo_program *program, dbo_error *err)
{
    if (program->num_buffers == 0)
        return DBO_OK;
    if (!rank->allocator) {
        dbo_error own = {0};
        rank->allocator = dbo_allocator_create(&rank->seam, &own);
        if (!rank->allocator)
            return dbo_error_pass(err, &own);
    }
    DBO_TRY(grow_frame(rank, program->num_buffers, err));
    for (uint32_t i = 0; i < program->num_buffers; i++)
        if (program->buffers[i].workspace || rank->buffers[i].workspace)
            DBO_TRY(fit_workspace(rank, &program->buffers[i], i, err));
    return DBO_OK;
}

void dbo_rank_memory_fini(dbo_rank *rank)
{
    dbo_allocator_destroy(rank->allocator);
    free(rank->buffers);
    free(rank->addresses);
    free(rank->left_behind);
}
