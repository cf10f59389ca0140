/* kernels.cu: one thread a number, grid-stride. */
#include "tests/gpu/kernels.h"

static __global__ void affine_kernel(uint32_t *x, uint64_t n, uint32_t mul, uint32_t add)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = mul * x[i] + add;
}

cudaError_t test_kernels_load(void)
{
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)affine_kernel);
}

cudaError_t test_affine(cudaStream_t stream, uint32_t *x, uint64_t n, uint32_t mul, uint32_t add)
{
    uint64_t ctas = (n + 255) / 256;
    affine_kernel<<<(unsigned)(ctas < 512 ? ctas : 512), 256, 0, stream>>>(x, n, mul, add);
    return cudaGetLastError();
}
