/* cuda_stream.c: a rank's streams and events on its GPU, and the table of the device.
 *
 * Every hot call costs one table look-up beside the CUDA call.
 *
 * A host wait polls the event instead of blocking in the driver, so that a watchdog or Ctrl-C can
 * end it; between polls it yields the processor, because the ranks of one node share its cores.
 */
#include "gpu/cuda_impl.h"
#include "gpu/cupti_trace.h"

#include <sched.h>

/* The caller's stream that takes the place of the rank's stream `number`, or NULL. */
static cudaStream_t adopted(const dbo_cuda *cuda, uint32_t number)
{
    if (number > 1)
        return NULL;
    return number == 0 ? cuda->config.compute : cuda->config.comm;
}

static dbo_status stream_create(void *self, const char *name, dbo_stream *out)
{
    dbo_cuda *cuda = self;
    (void)name;
    DBO_TRY(dbo_cuda_enter(cuda));
    DBO_TRY(dbo_cuda_reserve(cuda, &cuda->streams, &cuda->cap_streams, cuda->num_streams + 1,
                             sizeof *cuda->streams));
    cudaStream_t stream = adopted(cuda, cuda->num_streams);
    if (!stream)
        DBO_CUDA(cuda, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    *out = cuda->num_streams++;
    cuda->streams[*out] = stream;
    if (cuda->config.cupti)
        dbo_cupti_add_stream(cuda->config.cupti, stream, DBO_SPAN_RUN, (uint8_t)*out);
    return DBO_OK;
}

dbo_status dbo_cuda_internal_stream(dbo_cuda *cuda, const char *name, cudaStream_t *out)
{
    (void)name;
    DBO_TRY(dbo_cuda_enter(cuda));
    int lowest, highest;
    DBO_CUDA(cuda, cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    DBO_CUDA(cuda, cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, highest));
    if (cuda->config.cupti)
        dbo_cupti_add_stream(cuda->config.cupti, *out, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM);
    return DBO_OK;
}

static dbo_status event_create(void *self, dbo_event *out)
{
    dbo_cuda *cuda = self;
    DBO_TRY(dbo_cuda_enter(cuda));
    uint32_t index = 0;
    while (index < cuda->num_events && cuda->events[index].used)
        index++;
    DBO_TRY(
        dbo_cuda_reserve(cuda, &cuda->events, &cuda->cap_events, index + 1, sizeof *cuda->events));
    cudaEvent_t event;
    DBO_CUDA(cuda, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cuda->events[index] = (cuda_event_slot){.event = event, .used = true};
    if (index == cuda->num_events)
        cuda->num_events++;
    *out = index;
    return DBO_OK;
}

void dbo_cuda_event_destroy(void *self, dbo_event event)
{
    dbo_cuda *cuda = self;
    if (event >= cuda->num_events || !cuda->events[event].used)
        return;
    cudaEventDestroy(cuda->events[event].event);
    cuda->events[event] = (cuda_event_slot){0};
}

static bool captures(const dbo_cuda *cuda, cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cuda->capture && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

bool dbo_cuda_stream_captures(const dbo_cuda *cuda, dbo_stream stream)
{
    return captures(cuda, cuda->streams[stream]);
}

static dbo_status device_record(void *self, dbo_event event, dbo_stream stream)
{
    dbo_cuda *cuda = self;
    cuda_event_slot *slot = &cuda->events[event];
    DBO_CUDA(cuda, cudaEventRecord(slot->event, cuda->streams[stream]));
    slot->recorded = true;
    slot->captured_in = dbo_cuda_stream_captures(cuda, stream) ? cuda->capture : 0;
    return DBO_OK;
}

dbo_status dbo_cuda_wait_event(dbo_cuda *cuda, cudaStream_t stream, dbo_event event)
{
    const cuda_event_slot *slot = &cuda->events[event];
    if (!slot->recorded)
        return DBO_OK;
    if (slot->captured_in && slot->captured_in != cuda->capture)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Record it again after the replay.",
                               "a stream cannot wait for event %u: it was last recorded in a "
                               "capture that is over",
                               event);
    if (!slot->captured_in && captures(cuda, stream))
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Record it inside the capture first.",
                               "a capturing stream cannot wait for event %u: it was last recorded "
                               "outside the capture",
                               event);
    DBO_CUDA(cuda, cudaStreamWaitEvent(stream, slot->event, 0));
    return DBO_OK;
}

static dbo_status device_wait(void *self, dbo_stream stream, dbo_event event)
{
    dbo_cuda *cuda = self;
    return dbo_cuda_wait_event(cuda, cuda->streams[stream], event);
}

/* Common to query and host_wait: what cannot be asked at all. */
static dbo_status check_askable(dbo_cuda *cuda, dbo_event event, const char *what)
{
    if (cuda->capture)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Ask after the capture has ended.",
                               "%s of event %u was refused: a capture is in progress", what, event);
    if (cuda->events[event].captured_in)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Record it after the replay and ask then.",
                               "%s of event %u was refused: it was last recorded in a capture",
                               what, event);
    return DBO_OK;
}

static dbo_status query(dbo_cuda *cuda, cudaEvent_t event, bool *done)
{
    cudaError_t error = cudaEventQuery(event);
    *done = error == cudaSuccess;
    if (error == cudaErrorNotReady)
        cudaGetLastError(); /* "not ready" is no failure, but CUDA keeps it as the last error */
    else if (error != cudaSuccess)
        return dbo_cuda_failed(cuda, error, "cudaEventQuery");
    return DBO_OK;
}

static dbo_status device_event_query(void *self, dbo_event event, bool *done)
{
    dbo_cuda *cuda = self;
    DBO_TRY(check_askable(cuda, event, "A query"));
    return query(cuda, cuda->events[event].event, done);
}

dbo_status dbo_cuda_host_wait_raw(dbo_cuda *cuda, cudaEvent_t event)
{
    for (;;) {
        bool done;
        DBO_TRY(query(cuda, event, &done));
        if (done)
            return DBO_OK;
        if (dbo_cuda_cancelled(cuda))
            return dbo_cuda_refuse(cuda, DBO_CANCELLED, NULL, "a host wait was cancelled");
        sched_yield();
    }
}

static dbo_status device_host_wait(void *self, dbo_event event)
{
    dbo_cuda *cuda = self;
    DBO_TRY(check_askable(cuda, event, "A host wait"));
    return dbo_cuda_host_wait_raw(cuda, cuda->events[event].event);
}

void dbo_cuda_close_streams(dbo_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->num_events; i++)
        dbo_cuda_event_destroy(cuda, i);
    for (uint32_t i = 0; i < cuda->num_streams; i++)
        if (!adopted(cuda, i))
            cudaStreamDestroy(cuda->streams[i]);
}

const dbo_device_ops dbo_cuda_device_ops = {
    .stream_create = stream_create,
    .event_create = event_create,
    .event_destroy = dbo_cuda_event_destroy,
    .record = device_record,
    .wait = device_wait,
    .launch = dbo_cuda_launch,
    .event_query = device_event_query,
    .host_wait = device_host_wait,
    .set_compute_sms = dbo_cuda_set_compute_sms,
    .total_sms = dbo_cuda_total_sms,
    .status = dbo_cuda_status,
};
