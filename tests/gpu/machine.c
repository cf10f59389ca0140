/* machine.c: opens and closes it, and what is measured beside the seam: times, overlaps, stacks. */
#include "tests/gpu/machine.h"

#include "tests/gpu/kernels.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

dbo_status gpu_cuda(cudaError_t error, const char *what, dbo_error *err)
{
    if (error == cudaSuccess)
        return DBO_OK;
    return dbo_fail(err, DBO_DEVICE, NULL, "%s failed: %s", what, cudaGetErrorString(error));
}

dbo_status gpu_failed(const gpu_machine *m, dbo_status status, dbo_error *err)
{
    dbo_cuda_last_failure(m->cuda, err);
    return status;
}

dbo_status gpu_sync(dbo_error *err)
{
    GPU_TRY(cudaDeviceSynchronize());
    return DBO_OK;
}

double gpu_elapsed_us(cudaEvent_t start, cudaEvent_t stop)
{
    float ms = 0;
    cudaEventSynchronize(stop);
    if (cudaEventElapsedTime(&ms, start, stop) != cudaSuccess)
        return -1;
    return (double)ms * 1000;
}

int64_t test_overlap_ns(const dbo_trace *trace, test_pick a, test_pick b)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *x = dbo_trace_span(trace, i);
        for (uint64_t j = 0; a(x) && j < trace->num_spans; j++) {
            const dbo_span *y = dbo_trace_span(trace, j);
            if (!b(y))
                continue;
            int64_t from = x->start_ns > y->start_ns ? x->start_ns : y->start_ns;
            int64_t to = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
            sum += to > from ? to - from : 0;
        }
    }
    return sum;
}

enum { STACK_BYTES = 1 << 20, STACK_SCAN_BYTES = 900 << 10 };

/* Stacks are fresh mappings: a page that was never touched is not resident. Frames may skip pages,
 * so the lowest resident one counts, not the first gap. */
size_t test_stack_touched(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), deepest = 0;
    char here;
    uintptr_t top = (uintptr_t)&here & ~(page - 1);
    for (size_t down = page; down <= STACK_SCAN_BYTES; down += page) {
        unsigned char resident = 0;
        if (mincore((void *)(top - down), page, &resident) == 0 && (resident & 1))
            deepest = down;
    }
    return deepest;
}

/* ---- a machine ---- */

dbo_status gpu_open(gpu_machine *m, const gpu_options *options, dbo_error *err)
{
    dbo_status status = DBO_DEVICE;
    memset(m, 0, sizeof *m);
    dbo_trace_init(&m->trace);
    if (options->records) {
        m->cupti = dbo_cupti_create(dbo_trace_sink(), &m->trace, options->way, err);
        if (!m->cupti)
            goto fail;
    }
    const dbo_cuda_config config = {.device = options->device,
                                    .trace = dbo_trace_sink(),
                                    .trace_self = &m->trace,
                                    .cupti = m->cupti,
                                    .compute = options->compute,
                                    .comm = options->comm};
    m->cuda = dbo_cuda_create(&config, err);
    m->fibers = dbo_fiber_pool_create(STACK_BYTES, 4, err);
    if (!m->cuda || !m->fibers)
        goto fail;
    dbo_cuda_fill(m->cuda, &m->seam);
    m->seam.group = dbo_group_alone();
    m->seam.trace = dbo_trace_sink();
    m->seam.trace_self = &m->trace;
    DBO_TRY_GOTO(dbo_rank_init(&m->rank, 0, &m->seam, options->executor, 2, m->fibers, err), fail);
    DBO_TRY_GOTO(gpu_cuda(test_kernels_load(), "loading a kernel", err), fail);
    return DBO_OK;
fail:
    gpu_close(m);
    return status;
}

void gpu_close(gpu_machine *m)
{
    if (m->rank.executor)
        dbo_rank_fini(&m->rank);
    dbo_cuda_destroy(m->cuda);
    dbo_cupti_destroy(m->cupti);
    dbo_fiber_pool_destroy(m->fibers);
    dbo_trace_fini(&m->trace);
    memset(m, 0, sizeof *m);
}
