/* kernels.h: a kernel whose result tells in which order it ran, and one that fails.
 *
 * x -> mul * x + add (+ source) over n 32-bit numbers, modulo 2^32. Different (mul, add) do not
 * commute, so the values after a schedule are those of one order only.
 *
 *     DBO_TRY(gpu_cuda(test_affine(stream, numbers, 4096, 3, 1), "a kernel", err));
 */
#ifndef DBO_TESTS_GPU_KERNELS_H
#define DBO_TESTS_GPU_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernel: a first launch inside a capture would load it there. */
cudaError_t test_kernels_load(void);
/* `source` may be NULL. */
cudaError_t test_mix(cudaStream_t stream, uint32_t *x, const uint32_t *source, uint64_t n,
                     uint32_t mul, uint32_t add);
/* Ends what the process can do with its GPU. */
cudaError_t test_trap(cudaStream_t stream);

static inline cudaError_t test_affine(cudaStream_t stream, uint32_t *x, uint64_t n, uint32_t mul,
                                      uint32_t add)
{
    return test_mix(stream, x, 0, n, mul, add);
}

#ifdef __cplusplus
}
#endif

#endif
