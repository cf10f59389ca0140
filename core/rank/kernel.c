/* kernel.c: ops issued by hand, as the interpreter issues those of a program. */
#include "core/rank/kernel.h"

static const dbo_op_cost no_time = {.fixed_ns = 0};

dbo_status dbo_kernel_launch(dbo_rank *rank, const dbo_kernel *kernel)
{
    const dbo_seam *seam = &rank->seam;
    if (kernel->kind >= DBO_KIND_COUNT || kernel->step >= DBO_MAX_STEPS ||
        kernel->layer >= DBO_MAX_LAYERS || kernel->ubatch >= DBO_MAX_UBATCHES ||
        kernel->occurrence >= 1u << DBO_OP_OCCUR_BITS)
        return dbo_fail(&rank->failure, DBO_LIMIT, "op.h has the sizes of an op's identity.",
                        "a kernel of kind %u, step %u, layer %u, ubatch %u, occurrence %u has no "
                        "place among the op ids",
                        (unsigned)kernel->kind, kernel->step, kernel->layer, kernel->ubatch,
                        kernel->occurrence);
    if (kernel->cost)
        DBO_TRY(dbo_op_cost_check(kernel->cost, &rank->failure));
    if (kernel->io && !kernel->addresses && kernel->io->num_reads + kernel->io->num_writes > 0)
        return dbo_fail(&rank->failure, DBO_INVALID, "Say where the buffers are: addresses.",
                        "a kernel of layer %u, ubatch %u names buffers without addresses",
                        kernel->layer, kernel->ubatch);
    dbo_seam_charge(seam, DBO_CHARGE_LAUNCH, kernel->launches ? kernel->launches : 1);
    const dbo_op op = {.id = dbo_op_id_make(kernel->step, rank->id, kernel->layer, kernel->ubatch,
                                            kernel->kind, kernel->occurrence),
                       .cost = kernel->cost ? kernel->cost : &no_time,
                       .io = kernel->io,
                       .addresses = kernel->addresses};
    dbo_stream stream = dbo_enabled() ? dbo_current_stream() : rank->streams[DBO_STREAM_COMPUTE];
    return seam->device->launch(seam->device_self, stream, &op);
}

dbo_status dbo_rank_synchronize(dbo_rank *rank, dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    dbo_event event;
    dbo_status status = seam->device->event_create(seam->device_self, &event);
    if (status != DBO_OK)
        return dbo_rank_fail(rank, status, err);
    for (uint32_t i = 0; i < rank->num_streams && status == DBO_OK; i++) {
        status = seam->device->record(seam->device_self, event, rank->streams[i]);
        if (status == DBO_OK)
            status = seam->device->host_wait(seam->device_self, event);
    }
    seam->device->event_destroy(seam->device_self, event);
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(rank, status, err);
}
