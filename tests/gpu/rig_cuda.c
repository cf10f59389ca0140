/* rig_cuda.c: what a rig needs of CUDA. */
#include "gpu/cuda_device.h"
#include "gpu/synthetic.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"
#include "tests/gpu/rig.h"

dbo_status rig_cuda_load(dbo_error *err)
{
    return gpu_cuda(test_kernels_load(), "loading a kernel", err);
}

dbo_status rig_cuda_mix(const dbo_op *op, void *stream, dbo_error *err)
{
    const rig_mixed *m = op->io->arg;
    uint32_t *target = dbo_cuda_pointer(op->addresses, &m->access[0]);
    const uint32_t *source =
        op->io->num_reads > 1 ? dbo_cuda_pointer(op->addresses, &m->access[1]) : NULL;
    if (m->fails)
        return dbo_fail(err, DBO_IO, NULL, "no weights");
    if (m->cost.fixed_ns > 0) /* on a small CTA that shares its SM */
        GPU_TRY(dbo_synthetic_launch(stream, 0, m->cost.fixed_ns, 0, NULL));
    if (m->in_flight)
        GPU_TRY(test_trap(stream));
    GPU_TRY(test_mix(stream, target, source, RIG_NUMBERS, m->mul, m->add));
    return DBO_OK;
}

/* Device addresses are host pointers' numbers: CUDA sees whose they are. */
dbo_status rig_cuda_copy(uint64_t to, uint64_t from, size_t bytes, dbo_error *err)
{
    GPU_TRY(
        cudaMemcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, cudaMemcpyDefault));
    return DBO_OK;
}
