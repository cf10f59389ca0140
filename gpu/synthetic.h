/* synthetic.h: an op with a given duration that holds a given number of SMs.
 *
 * The kernel has one CTA an SM, each of which asks for all the shared memory that a CTA may have,
 * so that no second CTA fits beside it on its SM (of this kernel or of any other), and spins
 * until the device's clock has advanced by the duration. The clock ticks coarsely
 * (dbo_synthetic_tick_ns), so a duration is exact to about one tick plus the launch of the grid.
 *
 * With more CTAs than free SMs the rest waits for a free one and then takes the whole duration
 * again: what a real kernel of that many full tiles does.
 *
 *     int shared_bytes;
 *     cudaError_t error = dbo_synthetic_prepare(0, &shared_bytes);
 *     if (error == cudaSuccess) // 90 us on 66 SMs
 *         error = dbo_synthetic_launch(stream, 66, 90000, shared_bytes, NULL);
 */
#ifndef DBO_GPU_SYNTHETIC_H
#define DBO_GPU_SYNTHETIC_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one CTA saw: its SM, and its first and last reading of the device's clock. */
typedef struct dbo_synthetic_mark {
    uint64_t sm;
    uint64_t start_ns, end_ns;
} dbo_synthetic_mark;

/* Once per device, before the first launch: lets the kernel have the shared memory; *shared_bytes
 * is then the launch's argument. */
cudaError_t dbo_synthetic_prepare(int device, int *shared_bytes);

/* sms == 0: one small CTA that shares its SM with others. `marks` (device memory, sms of them, at
 * least one) may be NULL. */
cudaError_t dbo_synthetic_launch(cudaStream_t stream, uint32_t sms, int64_t ns, int shared_bytes,
                                 dbo_synthetic_mark *marks);

/* The smallest step of the device's clock that one thread sees. Blocks. */
cudaError_t dbo_synthetic_tick_ns(cudaStream_t stream, uint64_t *out);

#ifdef __cplusplus
}
#endif

#endif
