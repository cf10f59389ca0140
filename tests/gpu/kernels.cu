/* kernels.cu: one thread a number, grid-stride. */
#include "tests/gpu/kernels.h"

static __global__ void mix_kernel(uint32_t *x, const uint32_t *source, uint64_t n, uint32_t mul,
                                  uint32_t add)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = mul * x[i] + add + (source ? source[i] : 0);
}

static __global__ void trap_kernel()
{
    __trap();
}

cudaError_t test_kernels_load(void)
{
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)mix_kernel);
}

cudaError_t test_mix(cudaStream_t stream, uint32_t *x, const uint32_t *source, uint64_t n,
                     uint32_t mul, uint32_t add)
{
    uint64_t ctas = (n + 255) / 256;
    mix_kernel<<<(unsigned)(ctas < 512 ? ctas : 512), 256, 0, stream>>>(x, source, n, mul, add);
    return cudaGetLastError();
}

cudaError_t test_trap(cudaStream_t stream)
{
    trap_kernel<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}
