/* a2a_handles.h: transfers in flight: small numbers with a completion event each.
 *
 * Shared by the all-to-all back ends of this room. A handle is open from its post to its finish;
 * its number and event are used again afterwards. Events are made at the first use, before any
 * capture needs them if dbo_a2a_handles_reserve was called.
 *
 *     uint32_t communicator = dbo_op_id_ubatch(args->id);
 *     DBO_TRY(dbo_a2a_handles_open(handles, cuda, args, communicator, &handle)); // in `post`
 *     dbo_a2a_slot *slot = dbo_a2a_handles_get(handles, cuda, handle);
 *     cudaEventRecord(slot->done, stream);
 *     slot->complete = true;
 *     DBO_TRY(dbo_a2a_handles_finish(handles, cuda, handle, args->stream)); // in `finish`
 */
#ifndef DBO_GPU_A2A_HANDLES_H
#define DBO_GPU_A2A_HANDLES_H

#include "gpu/cuda_device.h"

enum { DBO_A2A_MAX_HANDLES = 64 };

typedef struct dbo_a2a_slot {
    cudaEvent_t done;
    bool open;
    bool complete; /* everything is enqueued and `done` is recorded */
    uint32_t communicator;
    dbo_a2a_args args; /* of the post */
} dbo_a2a_slot;

typedef struct dbo_a2a_handles {
    dbo_a2a_slot slots[DBO_A2A_MAX_HANDLES];
} dbo_a2a_handles;

dbo_status dbo_a2a_handles_reserve(dbo_a2a_handles *handles, dbo_cuda *cuda);
void dbo_a2a_handles_fini(dbo_a2a_handles *handles);
/* DBO_LIMIT when all are open. */
dbo_status dbo_a2a_handles_open(dbo_a2a_handles *handles, dbo_cuda *cuda, const dbo_a2a_args *args,
                                uint32_t communicator, dbo_a2a_handle *out);
/* The slot of an open handle; of any other NULL: DBO_REFUSED, with its sentence at the device. */
dbo_a2a_slot *dbo_a2a_handles_get(dbo_a2a_handles *handles, dbo_cuda *cuda, dbo_a2a_handle handle);
/* `stream` waits for the transfer and the handle closes: the common `finish`. */
dbo_status dbo_a2a_handles_finish(dbo_a2a_handles *handles, dbo_cuda *cuda, dbo_a2a_handle handle,
                                  dbo_stream stream);

/* Refuses a transfer that moves rows by ids (route.h): no back end of this room does. */
dbo_status dbo_a2a_refuse_route(dbo_cuda *cuda, const dbo_a2a_args *args);

#endif
