/* interpreter.c: runs programs. The hot loop of every simulated and real run.
 *
 * One switch over instructions of 8 bytes; everything that it needs is resolved before the ubatches
 * run (dbo_rank_fit). Turns and hooks go through the public context API, so that a schedule written
 * as data and the same schedule written in C behave alike.
 */
#include "core/rank/rank.h"
#include "core/rank/rank_memory.h"

typedef struct frame {
    dbo_rank *rank;
    dbo_ubatch *ubatch; /* NULL: unsplit */
    const dbo_program *program;
    dbo_op_id base; /* step, rank, layer */
} frame;

static inline dbo_status run_op(const frame *f, const dbo_instr *instr)
{
    const dbo_seam *seam = &f->rank->seam;
    const dbo_program_op *op = &f->program->ops[instr->index];
    dbo_seam_charge(seam, DBO_CHARGE_LAUNCH, op->kernels);
    const dbo_op issued = {.id = f->base | op->id_bits,
                           .cost = &op->cost,
                           .io = op->io,
                           .addresses = f->rank->addresses};
    return seam->device->launch(seam->device_self, f->rank->streams[instr->stream], &issued);
}

static dbo_status run_post(const frame *f, const dbo_instr *instr)
{
    dbo_rank *rank = f->rank;
    const dbo_seam *seam = &rank->seam;
    if (!seam->a2a)
        return dbo_fail(&rank->failure, DBO_UNSUPPORTED, NULL, "this machine has no all-to-all");
    const dbo_program_post *post = &f->program->posts[instr->index];
    const dbo_a2a_args args = {
        .id = f->base | post->id_bits,
        .direction = (dbo_a2a_direction)post->direction,
        .stream = rank->streams[instr->stream],
        .previous = instr->previous == DBO_NO_INDEX ? DBO_NO_EVENT : rank->events[instr->previous],
        .cost = &post->cost,
        .io = post->io,
        .addresses = rank->addresses,
    };
    dbo_flight *flight = &rank->flights[post->handle];
    dbo_seam_charge(seam, DBO_CHARGE_POST, 1);
    if (__builtin_expect(flight->handle != DBO_NO_HANDLE, 0) && seam->trace && seam->trace->turn)
        seam->trace->turn(seam->trace_self, DBO_TURN_SLOT, dbo_current_ubatch_id(), post->handle);
    DBO_TRY(seam->a2a->post(seam->a2a_self, &args, &flight->handle));
    flight->id = args.id;
    flight->stream = args.stream;
    return DBO_OK;
}

static dbo_status finish(dbo_rank *rank, uint32_t handle, dbo_stream stream)
{
    dbo_flight *flight = &rank->flights[handle];
    if (flight->handle == DBO_NO_HANDLE)
        return dbo_fail(&rank->failure, DBO_REFUSED, "Post a transfer before its finish or hook.",
                        "transfer slot %u is finished, but nothing was posted into it", handle);
    dbo_a2a_handle posted = flight->handle;
    flight->handle = DBO_NO_HANDLE;
    dbo_seam_charge(&rank->seam, DBO_CHARGE_POST, 1);
    return rank->seam.a2a->finish(rank->seam.a2a_self, posted, stream);
}

/* A receive hook: arg is the transfer slot. The receive runs on the stream that the post was made
 * on, whatever is current when the hook is set or run: the kernel has bound it at its send. */
static dbo_status finish_hook(void *self, uint64_t arg)
{
    dbo_rank *rank = self;
    return finish(rank, (uint32_t)arg, rank->flights[arg].stream);
}

static dbo_status set_hook(const frame *f, const dbo_instr *instr)
{
    if (!f->ubatch)
        return finish_hook(f->rank, instr->index);
    return dbo_register_recv_hook(
        (dbo_recv_hook){.run = finish_hook, .self = f->rank, .arg = instr->index});
}

static dbo_status host_wait(const frame *f, const dbo_instr *instr)
{
    dbo_rank *rank = f->rank;
    const dbo_seam *seam = &rank->seam;
    if (instr->wait_event)
        return seam->device->host_wait(seam->device_self, rank->events[instr->index]);
    dbo_a2a_handle handle = rank->flights[instr->index].handle;
    if (handle == DBO_NO_HANDLE)
        return dbo_fail(&rank->failure, DBO_REFUSED, NULL,
                        "the host waits for transfer slot %u, but nothing was posted into it",
                        instr->index);
    if (!seam->a2a->counts)
        return dbo_fail(&rank->failure, DBO_UNSUPPORTED, NULL,
                        "this all-to-all has no receive counts to wait for");
    return seam->a2a->counts(seam->a2a_self, handle);
}

static dbo_status run_instr(const frame *f, const dbo_instr *instr)
{
    dbo_rank *rank = f->rank;
    const dbo_seam *seam = &rank->seam;
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP: return run_op(f, instr);
    case DBO_CODE_RECORD:
        dbo_seam_charge(seam, DBO_CHARGE_EVENT, 1);
        return seam->device->record(seam->device_self, rank->events[instr->index],
                                    rank->streams[instr->stream]);
    case DBO_CODE_WAIT:
        dbo_seam_charge(seam, DBO_CHARGE_EVENT, 1);
        return seam->device->wait(seam->device_self, rank->streams[instr->stream],
                                  rank->events[instr->index]);
    case DBO_CODE_SET_STREAM: return dbo_switch_to_stream(rank->streams[instr->stream]);
    case DBO_CODE_YIELD: return dbo_yield();
    case DBO_CODE_HOOK_SET: return set_hook(f, instr);
    case DBO_CODE_HOOK_RUN: return dbo_maybe_run_recv_hook();
    case DBO_CODE_A2A_POST: return run_post(f, instr);
    case DBO_CODE_A2A_FINISH: return finish(rank, instr->index, rank->streams[instr->stream]);
    case DBO_CODE_HOST_WAIT: return host_wait(f, instr);
    case DBO_CODE_ALLOC: return dbo_rank_alloc(rank, f->program, instr);
    case DBO_CODE_FREE: return dbo_rank_free(rank, f->program, instr);
    case DBO_CODE_RECORD_STREAM: return dbo_rank_record_stream(rank, f->program, instr);
    case DBO_CODE_COUNT: break;
    }
    return DBO_INTERNAL;
}

dbo_status dbo_program_run(dbo_rank *rank, dbo_ubatch *ubatch, const dbo_program *program,
                           uint32_t step, uint32_t layer)
{
    const frame f = {.rank = rank,
                     .ubatch = ubatch,
                     .program = program,
                     .base = dbo_op_id_make(step, rank->id, layer, 0, 0, 0)};
    uint32_t part = ubatch ? ubatch->id : 0;
    if (part >= program->num_ubatches)
        return dbo_fail(&rank->failure, DBO_INVALID, NULL, "program %s has no part for ubatch %u",
                        program->name, part);
    if (program->num_instrs[part] == 0)
        return DBO_OK; /* no array either */
    const dbo_instr *end = program->instrs[part] + program->num_instrs[part];
    for (const dbo_instr *instr = program->instrs[part]; instr < end; instr++) {
        dbo_status status = run_instr(&f, instr);
        if (__builtin_expect(status != DBO_OK, 0))
            return status;
    }
    return DBO_OK;
}
