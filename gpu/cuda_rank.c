/* cuda_rank.c: a rank's GPU as an object: made, filled into a seam, destroyed; and how it fails.
 *
 * Failures keep one sentence, which device.status hands out; the text of CUDA's error goes into it
 * with the call that met it.
 */
#include "core/base/vec.h"
#include "gpu/cuda_impl.h"
#include "gpu/synthetic.h"

#include <sched.h>
#include <stdarg.h>
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
    va_list args;
    va_start(args, format);
    dbo_fail_args(&cuda->failure, status, NULL, hint, format, args);
    va_end(args);
    return status;
}

dbo_status dbo_cuda_last_failure(const dbo_cuda *cuda, dbo_error *err)
{
    if (err && cuda->failure.status != DBO_OK)
        *err = cuda->failure;
    return cuda->failure.status;
}

/* Handed out once: a later failure must not be told with this sentence. */
dbo_status dbo_cuda_status(void *self, dbo_error *err)
{
    dbo_cuda *cuda = self;
    dbo_status status = dbo_cuda_last_failure(cuda, err);
    memset(&cuda->failure, 0, sizeof cuda->failure);
    return status;
}

dbo_status dbo_cuda_reserve(dbo_cuda *cuda, void *array_pointer, uint32_t *cap, uint32_t need,
                            size_t item_bytes)
{
    bool there = dbo_vec_grow_zeroed(array_pointer, cap, need, item_bytes) == DBO_OK;
    return dbo_need_memory(there, "the device's tables", &cuda->failure);
}

/* ---- host ---- */

int64_t dbo_cuda_now_ns(void *self)
{
    (void)self;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool dbo_cuda_cancelled(void *self)
{
    const dbo_cuda *cuda = self;
    return cuda->config.cancelled && cuda->config.cancelled(cuda->config.cancelled_arg);
}

static const dbo_host_ops host_ops = {.now_ns = dbo_cuda_now_ns, .cancelled = dbo_cuda_cancelled};

/* ---- the object ---- */

cudaStream_t dbo_cuda_stream(const dbo_cuda *cuda, dbo_stream stream)
{
    return cuda->streams[stream];
}

bool dbo_cuda_capturing(const dbo_cuda *cuda)
{
    return cuda->capture != 0;
}

dbo_status dbo_cuda_count_devices(uint32_t *out, dbo_error *err)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (error == cudaSuccess && count > 0) {
        *out = (uint32_t)count;
        return DBO_OK;
    }
    return dbo_fail(err, DBO_UNSUPPORTED, "nvidia-smi shows which GPUs the driver sees.",
                    "there is no GPU that CUDA can use on this machine: %s",
                    cudaGetErrorString(error == cudaSuccess ? cudaErrorNoDevice : error));
}

dbo_status dbo_cuda_synchronize(dbo_cuda *cuda)
{
    DBO_TRY(dbo_cuda_enter(cuda));
    for (uint32_t i = 0; i < cuda->num_streams; i++) {
        cudaError_t error = cudaStreamQuery(cuda->streams[i]);
        while (error == cudaErrorNotReady && !dbo_cuda_cancelled(cuda)) {
            sched_yield();
            error = cudaStreamQuery(cuda->streams[i]);
        }
        if (error == cudaErrorNotReady)
            return dbo_cuda_refuse(cuda, DBO_CANCELLED, NULL, "a wait for the GPU was cancelled");
        if (error != cudaSuccess)
            return dbo_cuda_failed(cuda, error, "cudaStreamQuery");
    }
    DBO_CUDA(cuda, cudaDeviceSynchronize());
    return DBO_OK;
}

static dbo_status open_device(dbo_cuda *cuda)
{
    uint32_t count = 0;
    int sms = 0, device = cuda->config.device;
    DBO_TRY(dbo_cuda_count_devices(&count, &cuda->failure));
    if (device < 0 || (uint32_t)device >= count)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL,
                               "device %d does not exist: this machine has %u", device, count);
    DBO_TRY(dbo_cuda_enter(cuda));
    DBO_CUDA(cuda, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    cuda->total_sms = (uint32_t)sms;
    DBO_CUDA(cuda, dbo_synthetic_prepare(device, &cuda->shared_bytes));
    return DBO_OK;
}

dbo_cuda *dbo_cuda_create(const dbo_cuda_config *config, dbo_error *err)
{
    dbo_cuda *cuda = calloc(1, sizeof *cuda);
    if (dbo_need_memory(cuda, "the CUDA back end", err) != DBO_OK)
        return NULL;
    cuda->config = *config;
    if (open_device(cuda) != DBO_OK) {
        dbo_cuda_status(cuda, err);
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
    dbo_cuda_destroy_graphs(cuda);
    dbo_cuda_close_streams(cuda);
    free(cuda->streams);
    free(cuda->events);
    free(cuda->graphs);
    free(cuda);
}

void dbo_cuda_fill(dbo_cuda *cuda, dbo_seam *seam)
{
    seam->host = &host_ops;
    seam->device = &dbo_cuda_device_ops;
    seam->mem = &dbo_cuda_mem_ops;
    seam->graph = &dbo_cuda_graph_ops;
    seam->host_self = seam->device_self = seam->mem_self = seam->graph_self = cuda;
}
