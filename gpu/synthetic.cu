/* synthetic.cu: the kernel that holds SMs for a time.
 *
 * Only one thread of a CTA reads the clock; the others wait at the barrier, so that the CTA draws
 * little power and issues next to nothing. The sleep between readings is far below a tick.
 */
#include "gpu/synthetic.h"

static __device__ __forceinline__ uint64_t clock_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ __forceinline__ uint32_t sm_id()
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

static __global__ void hold_kernel(int64_t ns, dbo_synthetic_mark *marks)
{
    if (threadIdx.x == 0) {
        uint64_t start = clock_ns(), now = start;
        while ((int64_t)(now - start) < ns) {
            __nanosleep(20);
            now = clock_ns();
        }
        if (marks)
            marks[blockIdx.x] = {sm_id(), start, now};
    }
    __syncthreads();
}

static __global__ void tick_kernel(uint64_t *out)
{
    uint64_t smallest = UINT64_MAX, last = clock_ns();
    for (int changes = 0; changes < 200;) {
        uint64_t now = clock_ns();
        if (now == last)
            continue;
        if (now - last < smallest)
            smallest = now - last;
        last = now;
        changes++;
    }
    *out = smallest;
}

cudaError_t dbo_synthetic_prepare(int device, int *shared_bytes)
{
    cudaError_t error =
        cudaDeviceGetAttribute(shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess)
        return error;
    return cudaFuncSetAttribute((const void *)hold_kernel,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, *shared_bytes);
}

cudaError_t dbo_synthetic_launch(cudaStream_t stream, uint32_t sms, int64_t ns, int shared_bytes,
                                 dbo_synthetic_mark *marks)
{
    uint32_t ctas = sms ? sms : 1;
    size_t shared = sms ? (size_t)shared_bytes : 0;
    hold_kernel<<<ctas, 32, shared, stream>>>(ns, marks);
    return cudaGetLastError();
}

cudaError_t dbo_synthetic_tick_ns(cudaStream_t stream, uint64_t *out)
{
    uint64_t *device_out;
    cudaError_t error = cudaMalloc((void **)&device_out, sizeof *device_out);
    if (error != cudaSuccess)
        return error;
    tick_kernel<<<1, 1, 0, stream>>>(device_out);
    error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess)
        error = cudaMemcpy(out, device_out, sizeof *out, cudaMemcpyDeviceToHost);
    cudaFree(device_out);
    return error;
}
