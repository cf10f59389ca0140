/* rewrite.c: the frame of a rewritten program (rewrite.h). */
#include "lab/faults/rewrite.h"

#include <stdlib.h>
#include <string.h>

void dbo_rewrite_copy_part(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++)
        dbo_rewrite_put(r, ubatch, *i);
}

/* All buffers that play the role use the first one's memory, which holds the largest. */
static void share_role(dbo_rewriting *r, uint32_t role)
{
    dbo_program *out = &r->out.program;
    uint32_t first = UINT32_MAX;
    for (uint32_t b = 0; b < out->num_buffers; b++) {
        if (out->buffers[b].role != role)
            continue;
        if (first == UINT32_MAX)
            first = b;
        else
            r->changed = true;
        r->alias[b] = (uint16_t)first;
        out->buffers[first].workspace = true;
        if (out->buffers[b].bytes > out->buffers[first].bytes)
            out->buffers[first].bytes = out->buffers[b].bytes;
    }
}

static void copy_buffers(dbo_rewriting *r)
{
    const dbo_program *in = r->in;
    for (uint32_t b = 0; b < in->num_buffers && r->out.status == DBO_OK; b++) {
        const dbo_program_buffer *buffer = &in->buffers[b];
        uint16_t number =
            dbo_program_add_buffer(&r->out, buffer->name, buffer->bytes, buffer->pool);
        if (r->out.status != DBO_OK)
            return;
        dbo_program_buffer *copy = &r->out.program.buffers[number];
        copy->workspace = buffer->workspace;
        copy->input = buffer->input;
        copy->role = buffer->role;
        r->alias[b] = number;
    }
    for (uint32_t i = 0; i < DBO_REWRITE_ROLES && r->how->shared[i] != DBO_BUFFER_NONE; i++)
        share_role(r, r->how->shared[i]);
}

/* HEAD reads a pair of tensors of each ubatch, in the order in which their rows are joined. */
static void reverse_pairs(dbo_rewriting *r, dbo_access *reads, uint32_t count)
{
    for (uint32_t i = 0, j = count & ~1u; i + 2 < j; i += 2) {
        j -= 2;
        for (uint32_t k = 0; k < 2; k++) {
            dbo_access moved = reads[i + k];
            reads[i + k] = reads[j + k];
            reads[j + k] = moved;
        }
        r->changed = true;
    }
}

/* The lists with shared buffers in place; `accesses` has room for both. */
static dbo_op_io shared_io(const dbo_rewriting *r, const dbo_op_io *io, dbo_access *accesses)
{
    dbo_op_io copy = *io;
    copy.reads = accesses;
    copy.writes = accesses + io->num_reads;
    for (uint32_t i = 0; i < io->num_reads + io->num_writes; i++) {
        accesses[i] = i < io->num_reads ? io->reads[i] : io->writes[i - io->num_reads];
        accesses[i].buffer = r->alias[accesses[i].buffer];
    }
    return copy;
}

static void copy_io(dbo_rewriting *r, const dbo_op_io *io, dbo_op_kind kind, uint16_t index)
{
    if (!io || r->out.status != DBO_OK)
        return;
    dbo_access *accesses = malloc(((size_t)io->num_reads + io->num_writes + 1) * sizeof *accesses);
    if (!accesses) {
        r->out.status = dbo_fail_memory(&r->out.error, "a program");
        return;
    }
    dbo_op_io copy = shared_io(r, io, accesses);
    if (r->how->reverse && kind == DBO_KIND_HEAD)
        reverse_pairs(r, accesses, io->num_reads);
    if (kind == DBO_KIND_DISPATCH || kind == DBO_KIND_COMBINE)
        dbo_program_set_post_io(&r->out, index, &copy);
    else
        dbo_program_set_op_io(&r->out, index, &copy);
    free(accesses);
}

static void copy_ops(dbo_rewriting *r)
{
    const dbo_program *in = r->in;
    for (uint32_t i = 0; i < in->num_ops && r->out.status == DBO_OK; i++) {
        const dbo_program_op *op = &in->ops[i];
        uint16_t number =
            dbo_program_add_op(&r->out, dbo_op_id_ubatch(op->id_bits),
                               (dbo_op_kind)dbo_op_id_kind(op->id_bits), &op->cost, op->kernels);
        copy_io(r, op->io, (dbo_op_kind)dbo_op_id_kind(op->id_bits), number);
    }
    for (uint32_t i = 0; i < in->num_posts && r->out.status == DBO_OK; i++) {
        const dbo_program_post *post = &in->posts[i];
        uint16_t number =
            dbo_program_add_post(&r->out, dbo_op_id_ubatch(post->id_bits),
                                 (dbo_a2a_direction)post->direction, &post->cost, post->handle);
        copy_io(r, post->io, (dbo_op_kind)dbo_op_id_kind(post->id_bits), number);
    }
}

/* Events and streams of its own come behind those that there are. */
static void copy_frame(dbo_rewriting *r)
{
    const dbo_program *in = r->in;
    dbo_program_builder_init(&r->out, in->name, in->num_ubatches);
    for (uint32_t s = r->out.program.num_streams; s < in->num_streams; s++)
        dbo_program_add_stream(&r->out, in->stream_names[s]);
    for (uint32_t i = 0; i < in->num_events; i++)
        dbo_program_add_event(&r->out);
    for (uint32_t i = 0; i < in->num_handles; i++)
        dbo_program_add_handle(&r->out);
    if (r->how->new_stream) {
        r->new_stream = dbo_program_add_stream(&r->out, r->how->new_stream);
        r->new_events = (uint16_t)in->num_events;
        for (uint32_t u = 0; u < in->num_ubatches; u++)
            dbo_program_add_event(&r->out);
    }
    copy_buffers(r);
    copy_ops(r);
}

/* ---- the whole ---- */

/* The program as the fault has it, beside the original; *changed false, and *out zeroed, when it is
 * as it was. */
static dbo_status apply(const dbo_rewrite *how, const dbo_program *in, dbo_program *out,
                        bool *changed, dbo_error *err)
{
    dbo_rewriting r = {.in = in, .how = how};
    memset(out, 0, sizeof *out);
    r.alias = calloc((size_t)in->num_buffers + 1, sizeof *r.alias);
    DBO_TRY(dbo_need_memory(r.alias, "a program", err));
    copy_frame(&r);
    for (uint32_t u = 0; u < in->num_ubatches && r.out.status == DBO_OK; u++)
        how->part(&r, u);
    dbo_status status = dbo_program_builder_finish(&r.out, out, err);
    free(r.alias);
    if (status == DBO_OK && !r.changed)
        dbo_program_fini(out);
    *changed = status == DBO_OK && r.changed;
    return status;
}

dbo_status dbo_rewrite_program(void *self, bool first, dbo_program *program, dbo_error *err)
{
    dbo_fault *fault = self;
    const dbo_rewrite *how = fault->kind->rewrite;
    dbo_program rewritten;
    bool changed;
    if (how->only_first && !first)
        return DBO_OK;
    DBO_TRY(apply(how, program, &rewritten, &changed, err));
    if (!changed)
        return DBO_OK;
    fault->reached++;
    dbo_program_fini(program);
    *program = rewritten;
    return DBO_OK;
}
