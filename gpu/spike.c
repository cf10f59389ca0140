/* spike.c: runs the checks of the seam on this machine's GPU: dbo_gpu_spike [check ...]
 *
 * Prints one line a check with what was measured; exit code 1 if one fails, 2 if there is no GPU.
 * Names given run those alone. `ncclN` (not run unasked) starts N ranks as processes of this
 * program: on one GPU they want the MPS service running, or they take turns of milliseconds.
 */
#include "gpu/spike.h"

#include "gpu/spike_kernels.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void spike_say(spike_line *line, const char *format, ...)
{
    va_list args;
    size_t room = sizeof line->text - line->used;
    va_start(args, format);
    int n = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    line->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

dbo_status spike_cuda(cudaError_t error, const char *what, dbo_error *err)
{
    if (error == cudaSuccess)
        return DBO_OK;
    return dbo_fail(err, DBO_DEVICE, NULL, "%s failed: %s", what, cudaGetErrorString(error));
}

dbo_status spike_failed(const spike_machine *m, dbo_status status, dbo_error *err)
{
    dbo_cuda_last_failure(m->cuda, err);
    return status;
}

int64_t spike_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

dbo_status spike_sync(dbo_error *err)
{
    SPIKE_CUDA(cudaDeviceSynchronize());
    return DBO_OK;
}

double spike_elapsed_us(cudaEvent_t start, cudaEvent_t stop)
{
    float ms = 0;
    cudaEventSynchronize(stop);
    if (cudaEventElapsedTime(&ms, start, stop) != cudaSuccess)
        return -1;
    return (double)ms * 1000;
}

int64_t spike_overlap_ns(const dbo_trace *trace, spike_pick a, spike_pick b)
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
size_t spike_stack_touched(void)
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

dbo_status spike_open(spike_machine *m, const spike_options *options, dbo_error *err)
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
    DBO_TRY_GOTO(spike_cuda(dbo_spike_prepare(), "loading a kernel", err), fail);
    return DBO_OK;
fail:
    spike_close(m);
    return status;
}

void spike_close(spike_machine *m)
{
    if (m->rank.executor)
        dbo_rank_fini(&m->rank);
    dbo_cuda_destroy(m->cuda);
    dbo_cupti_destroy(m->cupti);
    dbo_fiber_pool_destroy(m->fibers);
    dbo_trace_fini(&m->trace);
    memset(m, 0, sizeof *m);
}

/* ---- the list ---- */

static const struct {
    const char *name;
    spike_check check;
} checks[] = {
    {"stack_cold", spike_stack_cold}, /* first: this process has made no context yet */
    {"synthetic_duration", spike_synthetic_duration},
    {"synthetic_sms", spike_synthetic_sms},
    {"host_costs", spike_host_costs},
    {"launch_queue", spike_launch_queue},
    {"handoff_fibers", spike_handoff_fibers},
    {"handoff_threads", spike_handoff_threads},
    {"graph_fibers", spike_graph_fibers},
    {"graph_threads", spike_graph_threads},
    {"graph_unjoined", spike_graph_unjoined},
    {"capture_rules", spike_capture_rules},
    {"trace_eager", spike_trace_eager},
    {"trace_threads", spike_trace_threads},
    {"trace_replay", spike_trace_replay},
    {"trace_ways", spike_trace_ways},
    {"trace_cost", spike_trace_cost},
    {"allocator_streams", spike_allocator_streams},
    {"allocator_capture", spike_allocator_capture},
    {"allocator_cost", spike_allocator_cost},
    {"own_kernels", spike_own_kernels},
    {"bounce", spike_bounce},
    {"bounce_schedule", spike_bounce_schedule},
};

static bool wanted(const char *name, int argc, char **argv)
{
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}

static int report(const char *name, dbo_status status, const spike_line *line, const dbo_error *err)
{
    if (status == DBO_OK)
        printf("ok    %-19s %s\n", name, line->text);
    else
        printf("FAIL  %-19s %s %s [%s]\n", name, err->message, line->text, dbo_status_name(status));
    fflush(stdout);
    return status != DBO_OK;
}

static int run_rank(char **argv)
{
    dbo_error err = {0};
    uint32_t rank = (uint32_t)strtoul(argv[2], NULL, 10);
    dbo_status status = spike_nccl_rank(rank, (uint32_t)strtoul(argv[3], NULL, 10), argv[4], &err);
    if (status != DBO_OK)
        printf("FAIL  nccl rank %u: %s\n", rank, err.message);
    fflush(stdout);
    return status != DBO_OK;
}

static bool name_device(void)
{
    struct cudaDeviceProp device;
    int driver = 0, runtime = 0, count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ||
        cudaGetDeviceProperties(&device, 0) != cudaSuccess)
        return false;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    printf("device: %s, %d SMs, %d on this machine; CUDA driver %d, runtime %d; fibers: %s\n",
           device.name, device.multiProcessorCount, count, driver, runtime, dbo_fiber_backend());
    return true;
}

int main(int argc, char **argv)
{
    int failures = 0;
    dbo_error err = {0};
    dbo_context *self = dbo_context_adopt(DBO_CONTEXT_FIBER, &err);
    if (!self)
        return 2;
    if (argc == 5 && strcmp(argv[1], "nccl-rank") == 0)
        return run_rank(argv);
    /* Ranks are started first: this process has not touched the GPU yet. */
    for (int i = 1; i < argc; i++) {
        unsigned ranks = 0;
        if (sscanf(argv[i], "nccl%u", &ranks) != 1)
            continue;
        err = (dbo_error){0};
        dbo_status status = spike_nccl(ranks, &err);
        if (status != DBO_OK)
            failures += report(argv[i], status, &(spike_line){0}, &err);
    }
    if (!name_device()) {
        fprintf(stderr, "dbo_gpu_spike: no GPU that CUDA can use.\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        spike_line line = {0};
        err = (dbo_error){0};
        if (wanted(checks[i].name, argc, argv))
            failures += report(checks[i].name, checks[i].check(&line, &err), &line, &err);
    }
    printf("%d failed\n", failures);
    return failures != 0;
}
