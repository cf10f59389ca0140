/* cuda_costs.c: what the synthetic op really does, and what the host pays for its calls. */
#include "gpu/synthetic.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/machine.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- synthetic ops ---- */

enum { REPEATS = 15 };

/* Median time of one synthetic op between two events, and the longest CTA by its own clock. */
static dbo_status time_synthetic(cudaStream_t stream, int shared, uint32_t sms, int64_t ns,
                                 dbo_synthetic_mark *marks, double *event_us, double *cta_us,
                                 dbo_error *err)
{
    cudaEvent_t start, stop;
    double times[REPEATS];
    dbo_synthetic_mark seen[1024];
    GPU_TRY(cudaEventCreate(&start));
    GPU_TRY(cudaEventCreate(&stop));
    for (int i = 0; i < REPEATS; i++) {
        GPU_TRY(cudaEventRecord(start, stream));
        GPU_TRY(dbo_synthetic_launch(stream, sms, ns, shared, marks));
        GPU_TRY(cudaEventRecord(stop, stream));
        times[i] = gpu_elapsed_us(start, stop);
    }
    *event_us = median(times, REPEATS);
    GPU_TRY(cudaMemcpy(seen, marks, sms * sizeof *seen, cudaMemcpyDeviceToHost));
    *cta_us = 0;
    for (uint32_t i = 0; i < sms; i++) {
        double us = (double)(seen[i].end_ns - seen[i].start_ns) / 1e3;
        *cta_us = us > *cta_us ? us : *cta_us;
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return DBO_OK;
}

dbo_status cuda_synthetic_duration(test_line *line, dbo_error *err)
{
    static const int64_t asked_ns[] = {0, 5000, 20000, 100000, 1000000, 10000000};
    cudaStream_t stream;
    dbo_synthetic_mark *marks;
    int shared, total;
    uint64_t tick;
    GPU_TRY(dbo_synthetic_prepare(0, &shared));
    GPU_TRY(cudaDeviceGetAttribute(&total, cudaDevAttrMultiProcessorCount, 0));
    const uint32_t asked_sms[] = {1, (uint32_t)total / 2, (uint32_t)total};
    GPU_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    GPU_TRY(cudaMalloc((void **)&marks, 1024 * sizeof *marks));
    GPU_TRY(dbo_synthetic_tick_ns(stream, &tick));
    test_say(line, "clock tick %llu ns; asked -> between events (longest CTA), us:",
             (unsigned long long)tick);
    for (size_t s = 0; s < sizeof asked_sms / sizeof *asked_sms; s++) {
        test_say(line, " %u SMs:", asked_sms[s]);
        for (size_t i = 0; i < sizeof asked_ns / sizeof *asked_ns; i++) {
            double event_us, cta_us;
            DBO_TRY(time_synthetic(stream, shared, asked_sms[s], asked_ns[i], marks, &event_us,
                                   &cta_us, err));
            test_say(line, " %g -> %.1f (%.1f)", (double)asked_ns[i] / 1e3, event_us, cta_us);
            if (event_us * 1e3 < (double)asked_ns[i])
                return dbo_fail(err, DBO_INTERNAL, NULL, "An op of %lld ns took %.1f us.",
                                (long long)asked_ns[i], event_us);
        }
        test_say(line, ";");
    }
    cudaFree(marks);
    cudaStreamDestroy(stream);
    return DBO_OK;
}

/* Time that two ops of a and b SMs on two streams take together, over the time of one. */
static dbo_status together(int shared, uint32_t a, uint32_t b, int64_t ns, double *ratio,
                           dbo_error *err)
{
    cudaStream_t first, second;
    cudaEvent_t start, joined, stop;
    GPU_TRY(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    GPU_TRY(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    GPU_TRY(cudaEventCreate(&start));
    GPU_TRY(cudaEventCreate(&joined));
    GPU_TRY(cudaEventCreate(&stop));
    GPU_TRY(cudaEventRecord(start, first));
    GPU_TRY(cudaStreamWaitEvent(second, start, 0));
    GPU_TRY(dbo_synthetic_launch(first, a, ns, shared, NULL));
    GPU_TRY(dbo_synthetic_launch(second, b, ns, shared, NULL));
    GPU_TRY(cudaEventRecord(joined, second));
    GPU_TRY(cudaStreamWaitEvent(first, joined, 0));
    GPU_TRY(cudaEventRecord(stop, first));
    *ratio = gpu_elapsed_us(start, stop) * 1e3 / (double)ns;
    cudaEventDestroy(start);
    cudaEventDestroy(joined);
    cudaEventDestroy(stop);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    return DBO_OK;
}

/* Distinct SMs of one op's CTAs. */
static dbo_status distinct_sms(int shared, uint32_t sms, uint32_t *out, dbo_error *err)
{
    dbo_synthetic_mark *marks, seen[1024];
    bool used[1024] = {false};
    *out = 0;
    GPU_TRY(cudaMalloc((void **)&marks, sizeof seen));
    GPU_TRY(dbo_synthetic_launch(NULL, sms, 100000, shared, marks));
    GPU_TRY(cudaMemcpy(seen, marks, sms * sizeof *seen, cudaMemcpyDeviceToHost));
    cudaFree(marks);
    for (uint32_t i = 0; i < sms; i++) {
        if (seen[i].sm < 1024 && !used[seen[i].sm]) {
            used[seen[i].sm] = true;
            (*out)++;
        }
    }
    return DBO_OK;
}

dbo_status cuda_synthetic_sms(test_line *line, dbo_error *err)
{
    int shared, total;
    GPU_TRY(dbo_synthetic_prepare(0, &shared));
    GPU_TRY(cudaDeviceGetAttribute(&total, cudaDevAttrMultiProcessorCount, 0));
    uint32_t all = (uint32_t)total, half = all / 2;
    const struct {
        uint32_t a, b;
        double least, most;
    } cases[] = {{half, half, 1, 1.2},
                 {all - 20, 20, 1, 1.2},
                 {half, all - half + 1, 1.9, 2.3},
                 {all, all, 1.9, 2.3},
                 {all, 1, 1.9, 2.3}};
    const uint32_t sizes[] = {1, 20, half, all};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t seen;
        DBO_TRY(distinct_sms(shared, sizes[i], &seen, err));
        test_say(line, "%u asked, %u distinct; ", sizes[i], seen);
        if (seen != sizes[i])
            return dbo_fail(err, DBO_INTERNAL, NULL, "An op of %u SMs ran on %u.", sizes[i], seen);
    }
    test_say(line, "two ops at once, in times of one:");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ratio;
        DBO_TRY(together(shared, cases[i].a, cases[i].b, 2000000, &ratio, err));
        test_say(line, " %u+%u: %.2f", cases[i].a, cases[i].b, ratio);
        if (ratio < cases[i].least || ratio > cases[i].most)
            return dbo_fail(err, DBO_INTERNAL, NULL, "%u and %u SMs together took %.2f times one.",
                            cases[i].a, cases[i].b, ratio);
    }
    return DBO_OK;
}

/* ---- host ---- */

enum { CALLS = 20000, CALL_BATCH = 400 };

typedef struct call_target {
    const dbo_seam *seam;
    dbo_stream stream, other;
    cudaStream_t raw; /* `stream` */
    dbo_event event;
    dbo_op op;
} call_target;

static dbo_status do_launch(const call_target *t)
{
    return t->seam->device->launch(t->seam->device_self, t->stream, &t->op);
}

static dbo_status do_bare_launch(const call_target *t)
{
    return dbo_synthetic_launch(t->raw, 0, 0, 0, NULL) == cudaSuccess ? DBO_OK : DBO_DEVICE;
}

static dbo_status do_record(const call_target *t)
{
    return t->seam->device->record(t->seam->device_self, t->event, t->stream);
}

static dbo_status do_wait(const call_target *t)
{
    return t->seam->device->wait(t->seam->device_self, t->other, t->event);
}

static dbo_status do_set_device(const call_target *t)
{
    (void)t;
    return cudaSetDevice(0) == cudaSuccess ? DBO_OK : DBO_DEVICE;
}

/* Median over batches of the mean time of a call; the device is idle at the start of each batch. */
static dbo_status time_call(gpu_machine *m, const call_target *t,
                            dbo_status (*call)(const call_target *), double *out_ns, dbo_error *err)
{
    double batches[CALLS / CALL_BATCH];
    for (size_t b = 0; b < CALLS / CALL_BATCH; b++) {
        int64_t begin = test_now_ns();
        for (int i = 0; i < CALL_BATCH; i++)
            SEAM_TRY(call(t));
        batches[b] = (double)(test_now_ns() - begin) / CALL_BATCH;
        DBO_TRY(gpu_sync(err));
    }
    *out_ns = median(batches, CALLS / CALL_BATCH);
    return DBO_OK;
}

static dbo_status host_costs(gpu_machine *m, test_line *line, dbo_error *err)
{
    static const struct {
        const char *name;
        dbo_status (*call)(const call_target *);
    } calls[] = {{"launch", do_launch},
                 {"of which the CUDA call", do_bare_launch},
                 {"record", do_record},
                 {"wait", do_wait},
                 {"cudaSetDevice", do_set_device}};
    const dbo_op_cost cost = {.fixed_ns = 0, .fixed_sms = 0};
    call_target t = {
        .seam = &m->seam,
        .stream = m->rank.streams[DBO_STREAM_COMPUTE],
        .other = m->rank.streams[DBO_STREAM_COMM],
        .raw = dbo_cuda_stream(m->cuda, m->rank.streams[DBO_STREAM_COMPUTE]),
        .op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, 0), .cost = &cost}};
    SEAM_TRY(m->seam.device->event_create(m->seam.device_self, &t.event));
    m->trace.keep_issues = false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double ns = 0;
        DBO_TRY(time_call(m, &t, calls[i].call, &ns, err));
        test_say(line, "%s %.0f ns; ", calls[i].name, ns);
    }
    return DBO_OK;
}

dbo_status cuda_host_costs(test_line *line, dbo_error *err)
{
    gpu_machine m;
    DBO_TRY(gpu_open(&m, &(gpu_options){0}, err));
    dbo_status status = host_costs(&m, line, err);
    gpu_close(&m);
    return status;
}

/* How many launches does a busy stream take before the host has to wait? */
static dbo_status launch_queue(gpu_machine *m, test_line *line, dbo_error *err)
{
    enum { TRIES = 6000, BUSY_MS = 200 };
    const dbo_op_cost busy = {.fixed_ns = BUSY_MS * INT64_C(1000000), .fixed_sms = 1};
    const dbo_op_cost tiny = {.fixed_ns = 0, .fixed_sms = 0};
    dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, 0), .cost = &busy};
    dbo_stream stream = m->rank.streams[DBO_STREAM_COMPUTE];
    SEAM_TRY(m->seam.device->launch(m->seam.device_self, stream, &op));
    op.cost = &tiny;
    uint32_t taken = 0;
    double stalled_ms = 0;
    while (taken < TRIES && stalled_ms == 0) {
        int64_t begin = test_now_ns();
        SEAM_TRY(m->seam.device->launch(m->seam.device_self, stream, &op));
        int64_t ns = test_now_ns() - begin;
        if (ns > 5000000)
            stalled_ms = (double)ns / 1e6;
        else
            taken++;
    }
    DBO_TRY(gpu_sync(err));
    if (stalled_ms > 0)
        test_say(line, "a stream busy for %d ms took %u launches, the next one waited %.0f ms",
                 BUSY_MS, taken, stalled_ms);
    else
        test_say(line, "a stream busy for %d ms took %u launches without a wait", BUSY_MS, taken);
    return DBO_OK;
}

dbo_status cuda_launch_queue(test_line *line, dbo_error *err)
{
    gpu_machine m;
    DBO_TRY(gpu_open(&m, &(gpu_options){0}, err));
    dbo_status status = launch_queue(&m, line, err);
    gpu_close(&m);
    return status;
}

/* ---- hand-offs ---- */

typedef struct handoff_args {
    uint32_t turns;
    bool yields, launches;
} handoff_args;

static dbo_status handoff_body(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    static const dbo_op_cost tiny = {.fixed_ns = 0, .fixed_sms = 0};
    const handoff_args *args = arg;
    const dbo_seam *seam = &ubatch->rank->seam;
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, ubatch->id, DBO_KIND_SYNTHETIC, 0),
                       .cost = &tiny};
    dbo_status status = DBO_OK;
    for (uint32_t i = 0; i < args->turns && status == DBO_OK; i++) {
        if (args->launches)
            status = seam->device->launch(seam->device_self, dbo_current_stream(), &op);
        if (status == DBO_OK && args->yields)
            status = dbo_yield();
    }
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(ubatch->rank, status, err);
}

static dbo_status time_turns(gpu_machine *m, bool yields, bool launches, double *out_ns,
                             dbo_error *err)
{
    enum { RUNS = 41 };
    handoff_args args = {.turns = launches ? 200 : 2000, .yields = yields, .launches = launches};
    double runs[RUNS];
    for (size_t i = 0; i < RUNS; i++) {
        int64_t begin = test_now_ns();
        DBO_TRY(dbo_ubatches_run(&m->rank, 2, 0, handoff_body, &args, err));
        runs[i] = (double)(test_now_ns() - begin) / (2.0 * args.turns);
        DBO_TRY(gpu_sync(err));
    }
    *out_ns = median(runs, RUNS);
    return DBO_OK;
}

static dbo_status handoff_with(dbo_context_kind executor, test_line *line, dbo_error *err)
{
    gpu_machine m;
    double bare = 0, launches = 0, both = 0;
    DBO_TRY(gpu_open(&m, &(gpu_options){.executor = executor}, err));
    m.trace.keep_issues = false;
    dbo_status status = time_turns(&m, true, false, &bare, err);
    if (status == DBO_OK)
        status = time_turns(&m, false, true, &launches, err);
    if (status == DBO_OK)
        status = time_turns(&m, true, true, &both, err);
    gpu_close(&m);
    test_say(line,
             "a turn: yield alone %.0f ns, launch alone %.0f ns, launch and yield %.0f ns "
             "(the yield then costs %.0f ns)",
             bare, launches, both, both - launches);
    return status;
}

dbo_status cuda_handoff_fibers(test_line *line, dbo_error *err)
{
    return handoff_with(DBO_CONTEXT_FIBER, line, err);
}

dbo_status cuda_handoff_threads(test_line *line, dbo_error *err)
{
    return handoff_with(DBO_CONTEXT_THREAD, line, err);
}
