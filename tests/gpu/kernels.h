/* kernels.h: a kernel whose result tells in which order it ran.
 *
 * x -> mul * x + add over n 32-bit numbers, modulo 2^32. Different (mul, add) do not commute, so
 * the values after a schedule are those of one order only.
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
cudaError_t test_affine(cudaStream_t stream, uint32_t *x, uint64_t n, uint32_t mul, uint32_t add);

#ifdef __cplusplus
}
#endif

#endif
