/* cuda_device.c: streams, events and launches of a rank on its GPU, and how they fail.
 *
 * Every hot call costs one table look-up beside the CUDA call. Failures keep one sentence, which
 * device.status hands out; the text of CUDA's error goes into it with the call that met it.
 *
 * A host wait polls the event instead of blocking in the driver, so that a watchdog or Ctrl-C can
 * end it; between polls it yields the processor, because the ranks of one node share its cores.
 */
#include "gpu/cuda_device.h"

#include "gpu/cuda_internal.h"
#include "gpu/cupti_trace.h"
#include "gpu/synthetic.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- failures ---- */

static dbo_status status_of(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return DBO_NO_MEMORY;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent: return DBO_REFUSED;
    default: return DBO_DEVICE;
    }
}

dbo_status dbo_cuda_failed(dbo_cuda *cuda, cudaError_t error, const char *what)
{
    cudaGetLastError(); /* an error that is not sticky must not surface again in a later call */
    return dbo_fail(&cuda->failure, status_of(error), NULL, "%.*s failed: %s (%s)",
                    (int)strcspn(what, "("), what, cudaGetErrorString(error),
                    cudaGetErrorName(error));
}

dbo_status dbo_cuda_refuse(dbo_cuda *cuda, dbo_status status, const char *hint, const char *format,
                           ...)
{
    char message[sizeof cuda->failure.message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return dbo_fail(&cuda->failure, status, hint, "%s", message);
}

dbo_status dbo_cuda_last_failure(const dbo_cuda *cuda, dbo_error *err)
{
    if (err && cuda->failure.status != DBO_OK)
        *err = cuda->failure;
    return cuda->failure.status;
}

/* Handed out once: a later failure must not be told with this sentence. */
static dbo_status device_status(void *self, dbo_error *err)
{
    dbo_cuda *cuda = self;
    dbo_status status = dbo_cuda_last_failure(cuda, err);
    memset(&cuda->failure, 0, sizeof cuda->failure);
    return status;
}

dbo_status dbo_cuda_reserve(dbo_cuda *cuda, void *array_pointer, uint32_t *cap, uint32_t need,
                            size_t item_bytes)
{
    if (need <= *cap)
        return DBO_OK;
    uint32_t grown = *cap ? *cap : 16;
    while (grown < need)
        grown *= 2;
    void **array = array_pointer;
    char *bigger = realloc(*array, grown * item_bytes);
    if (!bigger)
        return dbo_fail_memory(&cuda->failure, "the device's tables");
    memset(bigger + *cap * item_bytes, 0, (grown - *cap) * item_bytes);
    *array = bigger;
    *cap = grown;
    return DBO_OK;
}

/* ---- host ---- */

static int64_t host_now_ns(void *self)
{
    (void)self;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool host_cancelled(void *self)
{
    const dbo_cuda *cuda = self;
    return cuda->config.cancelled && *cuda->config.cancelled;
}

static const dbo_host_ops host_ops = {.now_ns = host_now_ns, .cancelled = host_cancelled};

/* ---- streams and events ---- */

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

static void event_destroy(void *self, dbo_event event)
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
                               "A stream cannot wait for event %u: it was last recorded in a "
                               "capture that is over.",
                               event);
    if (!slot->captured_in && captures(cuda, stream))
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Record it inside the capture first.",
                               "A capturing stream cannot wait for event %u: it was last recorded "
                               "outside the capture.",
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
                               "%s of event %u was refused: a capture is in progress.", what,
                               event);
    if (cuda->events[event].captured_in)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Record it after the replay and ask then.",
                               "%s of event %u was refused: it was last recorded in a capture.",
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
        if (host_cancelled(cuda))
            return dbo_cuda_refuse(cuda, DBO_CANCELLED, NULL, "A host wait was cancelled.");
        sched_yield();
    }
}

static dbo_status device_host_wait(void *self, dbo_event event)
{
    dbo_cuda *cuda = self;
    DBO_TRY(check_askable(cuda, event, "A host wait"));
    return dbo_cuda_host_wait_raw(cuda, cuda->events[event].event);
}

/* ---- launches ---- */

void dbo_cuda_op_begin(dbo_cuda *cuda, dbo_op_id id, dbo_span_part issued_as, dbo_stream stream)
{
    const dbo_trace_ops *trace = cuda->config.trace;
    bool flight = issued_as == DBO_SPAN_SEND;
    if (trace && trace->op_issued)
        trace->op_issued(cuda->config.trace_self, id, issued_as, stream, host_now_ns(cuda));
    if (cuda->config.cupti)
        dbo_cupti_push(cuda->config.cupti, id, flight ? DBO_SPAN_FLIGHT : DBO_SPAN_RUN,
                       flight ? DBO_NETWORK_STREAM : (uint8_t)stream);
}

void dbo_cuda_op_end(dbo_cuda *cuda)
{
    if (cuda->config.cupti)
        dbo_cupti_pop(cuda->config.cupti);
}

static dbo_status launch_synthetic(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    uint32_t kind = dbo_op_id_kind(op->id);
    if (!op->cost || op->cost->fixed_ns < 0)
        return dbo_cuda_refuse(cuda, DBO_UNSUPPORTED,
                               "Register a kernel for its kind, or give the op a fixed duration.",
                               "No kernel is registered for ops of kind %u, and this one has no "
                               "fixed duration to stand in for it.",
                               kind);
    uint32_t budget = cuda->compute_sms ? cuda->compute_sms : cuda->total_sms;
    uint32_t sms = op->cost->fixed_sms < budget ? op->cost->fixed_sms : budget;
    DBO_CUDA(cuda, dbo_synthetic_launch(stream, sms, op->cost->fixed_ns, cuda->shared_bytes, NULL));
    return DBO_OK;
}

/* The caller's kernels, with the caller's sentence when they fail. */
static dbo_status enqueue_own(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    dbo_error error = {0};
    dbo_status status = op->io->enqueue(op, stream, &error);
    if (status == DBO_OK)
        return DBO_OK;
    if (error.status == DBO_OK)
        return dbo_cuda_refuse(cuda, status, NULL, "The caller's kernel of kind %u failed: %s.",
                               dbo_op_id_kind(op->id), dbo_status_text(status));
    cuda->failure = error;
    return status;
}

static dbo_status enqueue(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    uint32_t kind = dbo_op_id_kind(op->id);
    if (op->io && op->io->enqueue)
        return enqueue_own(cuda, stream, op);
    if (kind < DBO_KIND_COUNT && cuda->kernels[kind])
        return cuda->kernels[kind](cuda, stream, op, cuda->kernel_args[kind]);
    return launch_synthetic(cuda, stream, op);
}

static dbo_status device_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    dbo_cuda *cuda = self;
    DBO_TRY(dbo_cuda_enter(cuda));
    dbo_cuda_op_begin(cuda, op->id, DBO_SPAN_RUN, stream);
    dbo_status status = enqueue(cuda, cuda->streams[stream], op);
    dbo_cuda_op_end(cuda);
    return status;
}

void dbo_cuda_set_kernel(dbo_cuda *cuda, dbo_op_kind kind, dbo_cuda_kernel_fn fn, void *arg)
{
    cuda->kernels[kind] = fn;
    cuda->kernel_args[kind] = arg;
}

static dbo_status set_compute_sms(void *self, uint32_t sms)
{
    dbo_cuda *cuda = self;
    if (sms > cuda->total_sms)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL,
                               "%u SMs for compute were asked of a device that has %u.", sms,
                               cuda->total_sms);
    cuda->compute_sms = sms;
    return DBO_OK;
}

static uint32_t total_sms(void *self)
{
    return ((dbo_cuda *)self)->total_sms;
}

static const dbo_device_ops device_ops = {
    .stream_create = stream_create,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .record = device_record,
    .wait = device_wait,
    .launch = device_launch,
    .event_query = device_event_query,
    .host_wait = device_host_wait,
    .set_compute_sms = set_compute_sms,
    .total_sms = total_sms,
    .status = device_status,
};

/* ---- the object ---- */

cudaStream_t dbo_cuda_stream(const dbo_cuda *cuda, dbo_stream stream)
{
    return cuda->streams[stream];
}

bool dbo_cuda_capturing(const dbo_cuda *cuda)
{
    return cuda->capture != 0;
}

static dbo_status open_device(dbo_cuda *cuda)
{
    int count = 0, sms = 0, device = cuda->config.device;
    DBO_CUDA(cuda, cudaGetDeviceCount(&count));
    if (device < 0 || device >= count)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL,
                               "Device %d does not exist: this machine has %d.", device, count);
    DBO_TRY(dbo_cuda_enter(cuda));
    DBO_CUDA(cuda, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    cuda->total_sms = (uint32_t)sms;
    DBO_CUDA(cuda, dbo_synthetic_prepare(device, &cuda->shared_bytes));
    return DBO_OK;
}

dbo_cuda *dbo_cuda_create(const dbo_cuda_config *config, dbo_error *err)
{
    dbo_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        dbo_fail_memory(err, "the CUDA back end");
        return NULL;
    }
    cuda->config = *config;
    if (open_device(cuda) != DBO_OK) {
        device_status(cuda, err);
        free(cuda);
        return NULL;
    }
    return cuda;
}

void dbo_cuda_destroy(dbo_cuda *cuda)
{
    if (!cuda)
        return;
    cudaSetDevice(cuda->config.device);
    cudaDeviceSynchronize();
    for (uint32_t i = 0; i < cuda->num_graphs; i++)
        dbo_cuda_graph_ops.destroy(cuda, i);
    for (uint32_t i = 0; i < cuda->num_events; i++)
        event_destroy(cuda, i);
    for (uint32_t i = 0; i < cuda->num_streams; i++)
        if (!adopted(cuda, i))
            cudaStreamDestroy(cuda->streams[i]);
    free(cuda->streams);
    free(cuda->events);
    free(cuda->graphs);
    free(cuda);
}

void dbo_cuda_fill(dbo_cuda *cuda, dbo_seam *seam)
{
    seam->host = &host_ops;
    seam->device = &device_ops;
    seam->mem = &dbo_cuda_mem_ops;
    seam->graph = &dbo_cuda_graph_ops;
    seam->host_self = seam->device_self = seam->mem_self = seam->graph_self = cuda;
}
