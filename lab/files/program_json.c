/* program_json.c: programs out as JSON (program_json.h). */
#include "lab/files/program_json.h"

#include "core/program/builders.h"
#include "core/trace/notation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dbo_program_event_name(const dbo_program *program, uint32_t event, char *out, size_t size)
{
    static const char *const roles[DBO_HT_EVENT_ROLES] = {[DBO_HT_PREVIOUS] = "previous",
                                                          [DBO_HT_COMPUTE_DONE] = "compute_done",
                                                          [DBO_HT_COMM_DONE] = "comm_done",
                                                          [DBO_HT_SYNC] = "sync"};
    bool built_in = program->num_events == program->num_ubatches * DBO_HT_EVENT_ROLES &&
                    (strcmp(program->name, "mlp_shared_overlap") == 0 ||
                     strcmp(program->name, "seed-prose-ht") == 0);
    if (built_in)
        snprintf(out, size, "%s_%u", roles[event % DBO_HT_EVENT_ROLES], event / DBO_HT_EVENT_ROLES);
    else
        snprintf(out, size, "event_%u", event);
}

const char *dbo_program_op_name(const dbo_program_op *op)
{
    dbo_op_kind kind = (dbo_op_kind)dbo_op_id_kind(op->id_bits);
    return dbo_op_kind_is_noted(kind) ? dbo_op_kind_symbol(kind) : dbo_op_kind_name(kind);
}

static void put_stream(const dbo_program *p, const dbo_instr *instr, dbo_json_writer *out)
{
    dbo_json_put_string(out, "stream", p->stream_names[instr->stream]);
}

static void put_event(const dbo_program *p, const char *key, uint32_t event, dbo_json_writer *out)
{
    char name[32];
    dbo_program_event_name(p, event, name, sizeof name);
    dbo_json_put_string(out, key, name);
}

static void put_numbered(const char *key, const char *what, uint32_t number, dbo_json_writer *out)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%u", what, number);
    dbo_json_put_string(out, key, name);
}

static void put_us(double us, dbo_json_writer *out)
{
    dbo_json_put_double(out, "us", us >= 0 ? us : NAN);
}

static void put_accesses(const dbo_program *p, const char *key, const dbo_access *accesses,
                         uint32_t count, dbo_json_writer *out)
{
    dbo_json_open_line(out, key, '[');
    for (uint32_t i = 0; i < count; i++)
        dbo_json_put_string(out, NULL, p->buffers[accesses[i].buffer].name);
    dbo_json_close(out);
}

static void put_io(const dbo_program *p, const dbo_op_io *io, dbo_json_writer *out)
{
    put_accesses(p, "reads", io ? io->reads : NULL, io ? io->num_reads : 0, out);
    put_accesses(p, "writes", io ? io->writes : NULL, io ? io->num_writes : 0, out);
}

static void put_op(const dbo_program *p, const dbo_instr *instr, const dbo_program_times *times,
                   dbo_json_writer *out)
{
    const dbo_program_op *op = &p->ops[instr->index];
    uint32_t sms = 0;
    double us = times->op_us(times->self, op, &sms);
    dbo_json_put_string(out, "name", dbo_program_op_name(op));
    dbo_json_put_string(out, "kind", dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(op->id_bits)));
    put_stream(p, instr, out);
    put_us(us, out);
    dbo_json_put_int(out, "sms", sms);
    put_io(p, op->io, out);
}

static void put_post(const dbo_program *p, const dbo_instr *instr, const dbo_program_times *times,
                     dbo_json_writer *out)
{
    const dbo_program_post *post = &p->posts[instr->index];
    dbo_json_put_string(out, "dir", post->direction == DBO_A2A_DISPATCH ? "dispatch" : "combine");
    put_numbered("handle", "handle", post->handle, out);
    put_stream(p, instr, out);
    put_us(times->post_us(times->self, post), out);
    put_io(p, post->io, out);
    if (instr->previous != DBO_NO_INDEX)
        put_event(p, "prev_event", instr->previous, out);
    else
        dbo_json_put_null(out, "prev_event");
}

static void put_instr(const dbo_program *p, const dbo_instr *instr, const dbo_program_times *times,
                      dbo_json_writer *out)
{
    dbo_json_open_line(out, NULL, '{');
    dbo_json_put_string(out, "i", dbo_code_name((dbo_code)instr->code));
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP: put_op(p, instr, times, out); break;
    case DBO_CODE_RECORD:
    case DBO_CODE_WAIT:
        put_event(p, "event", instr->index, out);
        put_stream(p, instr, out);
        break;
    case DBO_CODE_SET_STREAM: put_stream(p, instr, out); break;
    case DBO_CODE_HOOK_SET: put_numbered("handle", "handle", instr->index, out); break;
    case DBO_CODE_A2A_POST: put_post(p, instr, times, out); break;
    case DBO_CODE_A2A_FINISH:
        put_numbered("handle", "handle", instr->index, out);
        put_stream(p, instr, out);
        break;
    case DBO_CODE_HOST_WAIT:
        if (instr->wait_event)
            put_event(p, "event", instr->index, out);
        else
            put_numbered("handle", "handle", instr->index, out);
        break;
    case DBO_CODE_ALLOC:
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM:
        dbo_json_put_string(out, "buffer", p->buffers[instr->index].name);
        put_stream(p, instr, out);
        break;
    case DBO_CODE_YIELD:
    case DBO_CODE_HOOK_RUN:
    case DBO_CODE_COUNT: break;
    }
    dbo_json_close(out);
}

static void put_buffer(const dbo_program *p, const dbo_program_buffer *buffer, dbo_json_writer *out)
{
    dbo_json_open_line(out, NULL, '{');
    dbo_json_put_string(out, "name", buffer->name);
    dbo_json_put_string(out, "pool", p->stream_names[buffer->pool]);
    if (buffer->bytes > 0)
        dbo_json_put_int(out, "bytes", (int64_t)buffer->bytes);
    if (buffer->workspace)
        dbo_json_put_bool(out, "workspace", true);
    if (buffer->input)
        dbo_json_put_bool(out, "input", true);
    dbo_json_close(out);
}

void dbo_program_json(const dbo_program *program, const dbo_program_times *times,
                      dbo_json_writer *out)
{
    dbo_json_open(out, NULL, '{');
    dbo_json_put_int(out, "num_ubatches", program->num_ubatches);
    dbo_json_open_line(out, "streams", '[');
    for (uint32_t i = 0; i < program->num_streams; i++)
        dbo_json_put_string(out, NULL, program->stream_names[i]);
    dbo_json_close(out);
    dbo_json_open(out, "buffers", '[');
    for (uint32_t i = 0; i < program->num_buffers; i++)
        put_buffer(program, &program->buffers[i], out);
    dbo_json_close(out);
    dbo_json_open(out, "ubatches", '[');
    for (uint32_t u = 0; u < program->num_ubatches; u++) {
        dbo_json_open(out, NULL, '[');
        for (uint32_t i = 0; i < program->num_instrs[u]; i++)
            put_instr(program, &program->instrs[u][i], times, out);
        dbo_json_close(out);
    }
    dbo_json_close(out);
    dbo_json_close(out);
}
