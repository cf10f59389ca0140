/* cuda_memory.c: device and pinned memory of a rank.
 *
 * Allocation goes straight to the driver, which may synchronise the device: the core's caching
 * allocator calls here for segments only. An allocation in the middle of a capture is legal but
 * CUDA must be told that it is meant (the relaxed mode for the length of the call), or it would
 * invalidate the capture.
 */
#include "gpu/cuda_device.h"
#include "gpu/cuda_impl.h"

/* Runs in the relaxed capture mode between the two calls; `*mode` keeps what to restore. */
static void relax_begin(enum cudaStreamCaptureMode *mode)
{
    *mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(mode);
}

static void relax_end(enum cudaStreamCaptureMode *mode)
{
    cudaThreadExchangeStreamCaptureMode(mode);
}

static dbo_status mem_alloc(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    dbo_cuda *cuda = self;
    DBO_TRY(dbo_cuda_enter(cuda));
    void *pointer = NULL;
    enum cudaStreamCaptureMode mode;
    relax_begin(&mode);
    cudaError_t error =
        space == DBO_SPACE_DEVICE ? cudaMalloc(&pointer, bytes) : cudaMallocHost(&pointer, bytes);
    relax_end(&mode);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return dbo_cuda_refuse(cuda, DBO_NO_MEMORY, NULL, "%llu bytes of %s memory are not free",
                               (unsigned long long)bytes,
                               space == DBO_SPACE_DEVICE ? "device" : "pinned");
    }
    if (error != cudaSuccess)
        return dbo_cuda_failed(cuda, error, "An allocation");
    *address = (uint64_t)(uintptr_t)pointer;
    return DBO_OK;
}

static cudaError_t memory_type(uint64_t address, enum cudaMemoryType *type)
{
    struct cudaPointerAttributes attributes;
    cudaError_t error = cudaPointerGetAttributes(&attributes, (const void *)(uintptr_t)address);
    if (error == cudaSuccess)
        *type = attributes.type;
    return error;
}

static void mem_free(void *self, uint64_t address)
{
    dbo_cuda *cuda = self;
    enum cudaStreamCaptureMode mode;
    enum cudaMemoryType type;
    if (!address || dbo_cuda_enter(cuda) != DBO_OK)
        return;
    relax_begin(&mode);
    if (memory_type(address, &type) == cudaSuccess) {
        if (type == cudaMemoryTypeHost)
            cudaFreeHost((void *)(uintptr_t)address);
        else
            cudaFree((void *)(uintptr_t)address);
    }
    relax_end(&mode);
}

static void *mem_ptr(void *self, uint64_t address)
{
    enum cudaMemoryType type;
    if (!address || dbo_cuda_enter(self) != DBO_OK)
        return NULL;
    if (memory_type(address, &type) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return type == cudaMemoryTypeHost ? (void *)(uintptr_t)address : NULL;
}

const dbo_mem_ops dbo_cuda_mem_ops = {.alloc = mem_alloc, .free = mem_free, .ptr = mem_ptr};
