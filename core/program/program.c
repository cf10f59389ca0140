/* program.c: building and checking programs. Growth doubles; the first failure sticks. */
#include "core/program/program.h"

#include "core/base/vec.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_CHUNK_BYTES 4096

static const char *const code_names[DBO_CODE_COUNT] = {
    "OP",       "RECORD",     "WAIT",      "SET_STREAM", "YIELD", "HOOK_SET",     "HOOK_RUN",
    "A2A_POST", "A2A_FINISH", "HOST_WAIT", "ALLOC",      "FREE",  "RECORD_STREAM"};

const char *dbo_code_name(dbo_code code)
{
    return (unsigned)code < DBO_CODE_COUNT ? code_names[code] : "?";
}

/* Makes room for one more of `size` bytes; false (and a sticky error) when there is none. */
static bool grow(dbo_program_builder *builder, void *array, uint32_t count, uint32_t *cap,
                 size_t size)
{
    if (builder->status != DBO_OK)
        return false;
    if (dbo_vec_grow(array, cap, (uint64_t)count + 1, size) == DBO_OK)
        return true;
    builder->status = dbo_fail_memory(&builder->error, "a program");
    return false;
}

static void fail(dbo_program_builder *builder, dbo_status status, const char *message)
{
    if (builder->status == DBO_OK)
        builder->status = dbo_fail(&builder->error, status, NULL, "program %s: %s",
                                   builder->program.name, message);
}

void dbo_program_builder_init(dbo_program_builder *builder, const char *name, uint32_t num_ubatches)
{
    memset(builder, 0, sizeof *builder);
    builder->program.name = name;
    builder->program.num_ubatches = num_ubatches;
    builder->program.num_streams = 2;
    builder->program.stream_names[DBO_STREAM_COMPUTE] = "compute";
    builder->program.stream_names[DBO_STREAM_COMM] = "comm";
    builder->program.texts.chunk_bytes = TEXT_CHUNK_BYTES;
    if (num_ubatches < 1 || num_ubatches > DBO_MAX_UBATCHES) {
        fail(builder, DBO_LIMIT, "the number of ubatches must be 1 to 16");
        builder->program.num_ubatches = 0; /* so that whatever is added is refused */
    }
}

static dbo_op_id next_id(dbo_program_builder *builder, uint32_t ubatch, dbo_op_kind kind)
{
    if (ubatch >= builder->program.num_ubatches || kind >= DBO_KIND_COUNT) {
        fail(builder, DBO_INVALID, "an op names an unknown ubatch or kind");
        return 0;
    }
    uint16_t *occurrence = &builder->occurrences[ubatch][kind];
    if (*occurrence == UINT16_MAX)
        fail(builder, DBO_LIMIT, "more than 65535 ops of one kind in an ubatch");
    return dbo_op_id_make(0, 0, 0, ubatch, (uint32_t)kind, (*occurrence)++);
}

uint16_t dbo_program_add_op(dbo_program_builder *builder, uint32_t ubatch, dbo_op_kind kind,
                            const dbo_op_cost *cost, uint32_t kernels)
{
    dbo_program *p = &builder->program;
    if (p->num_ops >= DBO_NO_INDEX)
        fail(builder, DBO_LIMIT, "more than 65535 ops");
    dbo_op_id id = next_id(builder, ubatch, kind);
    if (!grow(builder, &p->ops, p->num_ops, &builder->cap_ops, sizeof *p->ops))
        return 0;
    p->ops[p->num_ops] = (dbo_program_op){
        .id_bits = id, .kernels = (uint16_t)(kernels > 0 ? kernels : 1), .cost = *cost};
    return (uint16_t)p->num_ops++;
}

uint16_t dbo_program_add_post(dbo_program_builder *builder, uint32_t ubatch,
                              dbo_a2a_direction direction, const dbo_a2a_cost *cost,
                              uint16_t handle)
{
    dbo_program *p = &builder->program;
    if (p->num_posts >= DBO_NO_INDEX)
        fail(builder, DBO_LIMIT, "more than 65535 transfers");
    dbo_op_kind kind = direction == DBO_A2A_DISPATCH ? DBO_KIND_DISPATCH : DBO_KIND_COMBINE;
    dbo_op_id id = next_id(builder, ubatch, kind);
    if (!grow(builder, &p->posts, p->num_posts, &builder->cap_posts, sizeof *p->posts))
        return 0;
    p->posts[p->num_posts] = (dbo_program_post){
        .id_bits = id, .handle = handle, .direction = (uint8_t)direction, .cost = *cost};
    return (uint16_t)p->num_posts++;
}

static uint16_t next_number(dbo_program_builder *builder, uint32_t *count)
{
    if (*count >= DBO_NO_INDEX) {
        fail(builder, DBO_LIMIT, "more than 65535 events, handles or buffers");
        return 0;
    }
    return (uint16_t)(*count)++;
}

uint16_t dbo_program_add_event(dbo_program_builder *builder)
{
    return next_number(builder, &builder->program.num_events);
}

uint16_t dbo_program_add_handle(dbo_program_builder *builder)
{
    return next_number(builder, &builder->program.num_handles);
}

uint16_t dbo_program_add_buffer(dbo_program_builder *builder, const char *name, uint64_t bytes,
                                uint8_t pool)
{
    dbo_program *p = &builder->program;
    if (!grow(builder, &p->buffers, p->num_buffers, &builder->cap_buffers, sizeof *p->buffers))
        return 0;
    const char *copy = dbo_arena_copy_string(&p->texts, name);
    if (!copy) {
        builder->status = dbo_fail_memory(&builder->error, "a program");
        return 0;
    }
    uint16_t index = next_number(builder, &p->num_buffers);
    if (builder->status == DBO_OK)
        p->buffers[index] = (dbo_program_buffer){.name = copy, .bytes = bytes, .pool = pool};
    return index;
}

uint16_t dbo_program_add_workspace(dbo_program_builder *builder, const char *name, uint64_t bytes,
                                   uint8_t pool)
{
    uint16_t index = dbo_program_add_buffer(builder, name, bytes, pool);
    if (builder->status == DBO_OK)
        builder->program.buffers[index].workspace = true;
    return index;
}

void dbo_program_set_input(dbo_program_builder *builder, uint16_t buffer)
{
    if (buffer < builder->program.num_buffers)
        builder->program.buffers[buffer].input = true;
    else
        fail(builder, DBO_INVALID, "an input is no buffer of the program");
}

/* A copy in one piece, lists behind the head. */
static const dbo_op_io *copy_io(dbo_program_builder *builder, const dbo_op_io *io)
{
    size_t reads = io->num_reads * sizeof *io->reads, writes = io->num_writes * sizeof *io->writes;
    dbo_op_io *copy = dbo_arena_alloc(&builder->program.texts, sizeof *io + reads + writes);
    if (!copy) {
        builder->status = dbo_fail_memory(&builder->error, "a program");
        return NULL;
    }
    dbo_access *lists = (dbo_access *)(copy + 1);
    *copy = *io;
    copy->reads = lists;
    copy->writes = lists + io->num_reads;
    if (reads)
        memcpy(lists, io->reads, reads);
    if (writes)
        memcpy(lists + io->num_reads, io->writes, writes);
    return copy;
}

void dbo_program_set_op_io(dbo_program_builder *builder, uint16_t op, const dbo_op_io *io)
{
    if (builder->status == DBO_OK && op >= builder->program.num_ops)
        fail(builder, DBO_INVALID, "accesses are given to an unknown op");
    if (builder->status == DBO_OK)
        builder->program.ops[op].io = copy_io(builder, io);
}

void dbo_program_set_post_io(dbo_program_builder *builder, uint16_t post, const dbo_op_io *io)
{
    if (builder->status == DBO_OK && post >= builder->program.num_posts)
        fail(builder, DBO_INVALID, "accesses are given to an unknown transfer");
    if (builder->status == DBO_OK)
        builder->program.posts[post].io = copy_io(builder, io);
}

uint8_t dbo_program_add_stream(dbo_program_builder *builder, const char *name)
{
    dbo_program *p = &builder->program;
    if (p->num_streams >= DBO_MAX_STREAMS) {
        fail(builder, DBO_LIMIT, "more than 8 streams");
        return 0;
    }
    p->stream_names[p->num_streams] = name;
    return (uint8_t)p->num_streams++;
}

void dbo_program_emit(dbo_program_builder *builder, uint32_t ubatch, dbo_instr instr)
{
    dbo_program *p = &builder->program;
    if (ubatch >= p->num_ubatches) {
        fail(builder, DBO_INVALID, "an instruction names an unknown ubatch");
        return;
    }
    if (!grow(builder, &p->instrs[ubatch], p->num_instrs[ubatch], &builder->cap_instrs[ubatch],
              sizeof(dbo_instr)))
        return;
    p->instrs[ubatch][p->num_instrs[ubatch]++] = instr;
}

dbo_status dbo_program_builder_finish(dbo_program_builder *builder, dbo_program *out,
                                      dbo_error *err)
{
    dbo_status status = builder->status;
    if (status == DBO_OK)
        status = dbo_program_check(&builder->program, err);
    else if (err)
        *err = builder->error;
    if (status != DBO_OK)
        dbo_program_fini(&builder->program);
    else
        *out = builder->program;
    memset(builder, 0, sizeof *builder);
    return status;
}

/* ---- checking ---- */

/* How many things the instruction's index may name; 0: it names nothing. */
static uint32_t index_limit(const dbo_program *p, const dbo_instr *instr)
{
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP: return p->num_ops;
    case DBO_CODE_RECORD:
    case DBO_CODE_WAIT: return p->num_events;
    case DBO_CODE_HOOK_SET:
    case DBO_CODE_A2A_FINISH: return p->num_handles;
    case DBO_CODE_A2A_POST: return p->num_posts;
    case DBO_CODE_HOST_WAIT: return instr->wait_event ? p->num_events : p->num_handles;
    case DBO_CODE_ALLOC:
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM: return p->num_buffers;
    case DBO_CODE_SET_STREAM:
    case DBO_CODE_YIELD:
    case DBO_CODE_HOOK_RUN:
    case DBO_CODE_COUNT: break;
    }
    return UINT32_MAX;
}

static dbo_status check_instr(const dbo_program *p, uint32_t ubatch, uint32_t number,
                              dbo_error *err)
{
    const dbo_instr *instr = &p->instrs[ubatch][number];
    const char *wrong = NULL;
    if (instr->code >= DBO_CODE_COUNT)
        wrong = "is of no known kind";
    else if (instr->stream >= p->num_streams)
        wrong = "names an unknown stream";
    else if (instr->index >= index_limit(p, instr))
        wrong = "names an op, event, handle or buffer that the program does not have";
    else if ((instr->code == DBO_CODE_ALLOC || instr->code == DBO_CODE_FREE) &&
             p->buffers[instr->index].workspace)
        wrong = "names a workspace, which is there for good";
    else if (instr->code == DBO_CODE_A2A_POST && instr->previous != DBO_NO_INDEX &&
             instr->previous >= p->num_events)
        wrong = "waits for an unknown event";
    if (!wrong)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL, "program %s, ubatch %u, instruction %u: %s %s", p->name,
                    ubatch, number, dbo_code_name((dbo_code)instr->code), wrong);
}

static bool within(const dbo_program *p, const dbo_access *accesses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const dbo_access *a = &accesses[i];
        if (a->buffer >= p->num_buffers || a->bytes > p->buffers[a->buffer].bytes ||
            a->offset_bytes > p->buffers[a->buffer].bytes - a->bytes)
            return false;
    }
    return true;
}

static dbo_status check_io(const dbo_program *p, const char *what, uint32_t number,
                           const dbo_op_io *io, dbo_error *err)
{
    if (!io || (within(p, io->reads, io->num_reads) && within(p, io->writes, io->num_writes)))
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL,
                    "program %s: %s %u touches memory outside the program's buffers", p->name, what,
                    number);
}

static dbo_status check_tables(const dbo_program *p, dbo_error *err)
{
    for (uint32_t i = 0; i < p->num_buffers; i++)
        if (p->buffers[i].pool >= p->num_streams)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "program %s: buffer %s belongs to an unknown stream", p->name,
                            p->buffers[i].name);
    for (uint32_t i = 0; i < p->num_ops; i++)
        DBO_TRY(check_io(p, "op", i, p->ops[i].io, err));
    for (uint32_t i = 0; i < p->num_posts; i++)
        DBO_TRY(check_io(p, "transfer", i, p->posts[i].io, err));
    return DBO_OK;
}

dbo_status dbo_program_check(const dbo_program *p, dbo_error *err)
{
    if (p->num_ubatches < 1 || p->num_ubatches > DBO_MAX_UBATCHES ||
        p->num_streams > DBO_MAX_STREAMS)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "program %s has %u ubatches and %u streams; 1 to %u and at most %u are "
                        "possible",
                        p->name, p->num_ubatches, p->num_streams, DBO_MAX_UBATCHES,
                        DBO_MAX_STREAMS);
    DBO_TRY(check_tables(p, err));
    for (uint32_t i = 0; i < p->num_ops; i++)
        if (dbo_op_cost_check(&p->ops[i].cost, err) != DBO_OK)
            return dbo_error_prefix(err, "program %s: op %u", p->name, i);
    for (uint32_t i = 0; i < p->num_posts; i++)
        if (p->posts[i].handle >= p->num_handles)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "program %s: transfer %u leaves its handle in unknown slot %u", p->name,
                            i, p->posts[i].handle);
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++)
            DBO_TRY(check_instr(p, u, i, err));
    return DBO_OK;
}

void dbo_program_fini(dbo_program *program)
{
    free(program->ops);
    free(program->posts);
    free(program->buffers);
    dbo_arena_fini(&program->texts);
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        free(program->instrs[u]);
    memset(program, 0, sizeof *program);
}
