/* a2a_handles.c: a table of transfers, searched linearly: a few are open at a time. */
#include "gpu/a2a_handles.h"

#include <string.h>

dbo_status dbo_a2a_handles_reserve(dbo_a2a_handles *handles, dbo_cuda *cuda)
{
    memset(handles, 0, sizeof *handles);
    for (uint32_t i = 0; i < DBO_A2A_MAX_HANDLES; i++)
        DBO_CUDA(cuda, cudaEventCreateWithFlags(&handles->slots[i].done, cudaEventDisableTiming));
    return DBO_OK;
}

void dbo_a2a_handles_fini(dbo_a2a_handles *handles)
{
    for (uint32_t i = 0; i < DBO_A2A_MAX_HANDLES; i++) {
        if (handles->slots[i].done)
            cudaEventDestroy(handles->slots[i].done);
    }
}

dbo_status dbo_a2a_handles_open(dbo_a2a_handles *handles, dbo_cuda *cuda, const dbo_a2a_args *args,
                                uint32_t communicator, dbo_a2a_handle *out)
{
    for (uint32_t i = 0; i < DBO_A2A_MAX_HANDLES; i++) {
        dbo_a2a_slot *slot = &handles->slots[i];
        if (slot->open)
            continue;
        slot->open = true;
        slot->complete = false;
        slot->communicator = communicator;
        slot->args = *args;
        *out = i;
        return DBO_OK;
    }
    return dbo_cuda_refuse(cuda, DBO_LIMIT, "Finish transfers before posting more.",
                           "all %d handles of transfers are open", DBO_A2A_MAX_HANDLES);
}

dbo_a2a_slot *dbo_a2a_handles_get(dbo_a2a_handles *handles, dbo_cuda *cuda, dbo_a2a_handle handle)
{
    if (handle < DBO_A2A_MAX_HANDLES && handles->slots[handle].open)
        return &handles->slots[handle];
    dbo_cuda_refuse(cuda, DBO_REFUSED, NULL,
                    "transfer %u is not open: never posted, or finished already", handle);
    return NULL;
}

dbo_status dbo_a2a_handles_finish(dbo_a2a_handles *handles, dbo_cuda *cuda, dbo_a2a_handle handle,
                                  dbo_stream stream)
{
    dbo_a2a_slot *slot = dbo_a2a_handles_get(handles, cuda, handle);
    if (!slot)
        return DBO_REFUSED;
    if (!slot->complete)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Wait for its receive counts first.",
                               "transfer %u was finished before its counts were known", handle);
    slot->open = false;
    DBO_CUDA(cuda, cudaStreamWaitEvent(dbo_cuda_stream(cuda, stream), slot->done, 0));
    return DBO_OK;
}

dbo_status dbo_a2a_refuse_route(dbo_cuda *cuda, const dbo_a2a_args *args)
{
    if (!args->io || !args->io->route)
        return DBO_OK;
    return dbo_cuda_refuse(cuda, DBO_UNSUPPORTED, "Give the rows sorted by rank, without a route.",
                           "rows that find their way by experts' ids are not on GPUs yet");
}
