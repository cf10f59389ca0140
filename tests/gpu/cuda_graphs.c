/* cuda_graphs.c: two ubatches captured into one graph, by fibers and by threads; what a capture
 * forbids.
 *
 * The order of the replay is judged twice: by its numbers (the ops do not commute) and by the
 * records of the device, in which an op of one ubatch must not begin before the one before it
 * ended, and the comm stream must have run beside the compute stream.
 */
#include "gpu/synthetic.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/machine.h"

#include <string.h>

enum { REPLAYS = 10, OP_NS = 200000, OP_SMS = 40 };

static bool on_compute(const dbo_span *span)
{
    return span->stream == DBO_STREAM_COMPUTE;
}

static bool on_comm(const dbo_span *span)
{
    return span->stream == DBO_STREAM_COMM;
}

static dbo_status capture(pingpong *p, gpu_machine *m, dbo_graph *out, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[DBO_STREAM_COMPUTE]));
    dbo_status status = pingpong_run(p, m, 0, err);
    if (status != DBO_OK) {
        seam->graph->abandon(seam->graph_self);
        return status;
    }
    SEAM_TRY(seam->graph->end(seam->graph_self, out));
    return DBO_OK;
}

/* First start and last end of the records of one op in one step. */
static void bounds(const dbo_trace *trace, dbo_op_id id, int64_t *start, int64_t *end)
{
    *start = INT64_MAX;
    *end = INT64_MIN;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (span->id != id)
            continue;
        *start = span->start_ns < *start ? span->start_ns : *start;
        *end = span->end_ns > *end ? span->end_ns : *end;
    }
}

/* Per step and ubatch: every op begins after the one before it has ended. */
static dbo_status check_order(const gpu_machine *m, uint32_t steps, dbo_error *err)
{
    for (uint32_t step = 0; step < steps; step++) {
        for (uint32_t u = 0; u < 2; u++) {
            int64_t before = INT64_MIN;
            for (uint32_t k = 0; k < 3; k++) {
                int64_t start, end;
                bounds(&m->trace, dbo_op_id_make(step, 0, 0, u, DBO_KIND_CUSTOM, k), &start, &end);
                if (end < start || start < before)
                    return dbo_fail(err, DBO_INTERNAL, NULL, "step %u, ubatch %u, op %u: %s.", step,
                                    u, k,
                                    end < start ? "no record" : "begins before the one before it");
                before = end;
            }
        }
    }
    return DBO_OK;
}

static dbo_status replay_all(pingpong *p, gpu_machine *m, dbo_graph graph, test_line *line,
                             dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_cupti_counts counts;
    int64_t begin = test_now_ns();
    for (uint32_t step = 0; step < REPLAYS; step++)
        SEAM_TRY(seam->graph->replay(seam->graph_self, graph, m->rank.streams[DBO_STREAM_COMPUTE],
                                     step));
    int64_t issued = test_now_ns();
    DBO_TRY(gpu_sync(err));
    DBO_TRY(pingpong_verify(p, REPLAYS, err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &counts, err));
    DBO_TRY(check_order(m, REPLAYS, err));
    int64_t overlap = test_overlap_ns(&m->trace, on_compute, on_comm);
    if (overlap < REPLAYS * (int64_t)OP_NS / 2)
        return dbo_fail(err, DBO_INTERNAL, NULL, "The two streams overlapped for %lld ns only.",
                        (long long)overlap);
    const dbo_span *last = dbo_trace_span(&m->trace, m->trace.num_spans - 1);
    const dbo_span *first = dbo_trace_span(&m->trace, 0);
    test_say(line,
             "%d replays verified; %.1f us a replay on the device, compute and comm overlap "
             "%.1f us of it; a replay costs the host %.2f us (first ones included); ",
             REPLAYS, (double)(last->end_ns - first->start_ns) / 1e3 / REPLAYS,
             (double)overlap / 1e3 / REPLAYS, (double)(issued - begin) / 1e3 / REPLAYS);
    return DBO_OK;
}

static dbo_status graph_run(gpu_machine *m, pingpong *p, test_line *line, dbo_error *err)
{
    dbo_graph graph;
    DBO_TRY(pingpong_run(p, m, 0, err)); /* eagerly once: everything is loaded */
    DBO_TRY(gpu_sync(err));
    DBO_TRY(pingpong_verify(p, 1, err));
    DBO_TRY(pingpong_reset(p, err));
    dbo_cupti_counts counts;
    DBO_TRY(dbo_cupti_flush(m->cupti, &counts, err));
    dbo_trace_fini(&m->trace);
    dbo_trace_init(&m->trace);
    for (int i = 0; i < 3; i++) {
        int64_t begin = test_now_ns();
        DBO_TRY(capture(p, m, &graph, err));
        test_say(line, i == 0 ? "captured 6 ops (12 kernels) and instantiated in %.0f" : ", %.0f",
                 (double)(test_now_ns() - begin) / 1e3);
        if (i < 2)
            m->seam.graph->destroy(m->seam.graph_self, graph);
    }
    test_say(line, " us; ");
    dbo_status status = replay_all(p, m, graph, line, err);
    m->seam.graph->destroy(m->seam.graph_self, graph);
    return status;
}

static dbo_status graph_with(dbo_context_kind executor, test_line *line, dbo_error *err)
{
    gpu_machine m;
    pingpong p;
    DBO_TRY(gpu_open(&m, &(gpu_options){.executor = executor, .records = true}, err));
    dbo_status status = pingpong_init(&p, &m, OP_NS, OP_SMS, err);
    if (status == DBO_OK)
        status = graph_run(&m, &p, line, err);
    if (p.stack_bytes)
        test_say(line, "stack touched by an ubatch: %zu KiB", p.stack_bytes >> 10);
    pingpong_fini(&p);
    gpu_close(&m);
    return status;
}

dbo_status cuda_graph_fibers(test_line *line, dbo_error *err)
{
    return graph_with(DBO_CONTEXT_FIBER, line, err);
}

dbo_status cuda_graph_threads(test_line *line, dbo_error *err)
{
    return graph_with(DBO_CONTEXT_THREAD, line, err);
}

/* ---- a capture whose fork never comes back ---- */

static dbo_status unjoined(gpu_machine *m, test_line *line, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    const dbo_op_cost cost = {.fixed_ns = 1000, .fixed_sms = 1};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, 0), .cost = &cost};
    dbo_stream compute = m->rank.streams[DBO_STREAM_COMPUTE];
    dbo_stream comm = m->rank.streams[DBO_STREAM_COMM];
    dbo_event event;
    dbo_graph graph;
    dbo_error sentence = {0};
    SEAM_TRY(seam->device->event_create(seam->device_self, &event));
    SEAM_TRY(seam->graph->begin(seam->graph_self, compute));
    SEAM_TRY(seam->device->launch(seam->device_self, compute, &op));
    SEAM_TRY(seam->device->record(seam->device_self, event, compute));
    SEAM_TRY(seam->device->wait(seam->device_self, comm, event));
    SEAM_TRY(seam->device->launch(seam->device_self, comm, &op));
    dbo_status status = seam->graph->end(seam->graph_self, &graph);
    dbo_cuda_last_failure(m->cuda, &sentence);
    if (status != DBO_REFUSED)
        return dbo_fail(err, DBO_INTERNAL, NULL, "An unjoined capture ended with \"%s\".",
                        dbo_status_name(status));
    /* Both streams are usable again, in a capture of their own and outside. */
    SEAM_TRY(seam->device->launch(seam->device_self, comm, &op));
    SEAM_TRY(seam->graph->begin(seam->graph_self, comm));
    SEAM_TRY(seam->device->launch(seam->device_self, comm, &op));
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    SEAM_TRY(seam->graph->replay(seam->graph_self, graph, compute, 0));
    DBO_TRY(gpu_sync(err));
    test_say(line, "refused, streams usable after: \"%s\"", sentence.message);
    return DBO_OK;
}

dbo_status cuda_graph_unjoined(test_line *line, dbo_error *err)
{
    gpu_machine m;
    DBO_TRY(gpu_open(&m, &(gpu_options){0}, err));
    dbo_status status = unjoined(&m, line, err);
    gpu_close(&m);
    return status;
}

/* ---- what CUDA itself says to calls that the seam refuses ---- */

typedef struct rules {
    cudaStream_t stream, other;
    cudaEvent_t outside, inside; /* recorded before the capture; in a capture that is over */
} rules;

/* Runs `probe` in a capture: its own answer, and whether the capture still ends well. */
static void probe_in_capture(const rules *r, const char *name, cudaError_t (*probe)(const rules *),
                             test_line *line)
{
    cudaGraph_t graph = NULL;
    cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal);
    cudaError_t said = probe(r);
    cudaError_t ended = cudaStreamEndCapture(r->stream, &graph);
    cudaGetLastError();
    if (graph)
        cudaGraphDestroy(graph);
    test_say(line, "%s: %s, capture %s; ", name, cudaGetErrorName(said),
             ended == cudaSuccess ? "lives" : "dies");
}

static cudaError_t query_outside(const rules *r)
{
    return cudaEventQuery(r->outside);
}

static cudaError_t wait_outside(const rules *r)
{
    return cudaStreamWaitEvent(r->stream, r->outside, 0);
}

static cudaError_t query_inside(const rules *r)
{
    cudaEventRecord(r->inside, r->stream);
    return cudaEventQuery(r->inside);
}

static cudaError_t sync_stream(const rules *r)
{
    return cudaStreamSynchronize(r->stream);
}

static cudaError_t sync_other(const rules *r)
{
    return cudaStreamSynchronize(r->other);
}

static cudaError_t plain_malloc(const rules *r)
{
    void *pointer = NULL;
    (void)r;
    cudaError_t error = cudaMalloc(&pointer, 1 << 20);
    if (error == cudaSuccess)
        cudaFree(pointer);
    return error;
}

static cudaError_t relaxed_malloc(const rules *r)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaError_t error = plain_malloc(r);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

dbo_status cuda_capture_rules(test_line *line, dbo_error *err)
{
    rules r;
    GPU_TRY(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    GPU_TRY(cudaStreamCreateWithFlags(&r.other, cudaStreamNonBlocking));
    GPU_TRY(cudaEventCreateWithFlags(&r.outside, cudaEventDisableTiming));
    GPU_TRY(cudaEventCreateWithFlags(&r.inside, cudaEventDisableTiming));
    GPU_TRY(cudaEventRecord(r.outside, r.other));
    probe_in_capture(&r, "query of an outside event", query_outside, line);
    probe_in_capture(&r, "wait for an outside event", wait_outside, line);
    probe_in_capture(&r, "query of an inside event", query_inside, line);
    probe_in_capture(&r, "sync of the stream", sync_stream, line);
    probe_in_capture(&r, "sync of another stream", sync_other, line);
    probe_in_capture(&r, "cudaMalloc", plain_malloc, line);
    probe_in_capture(&r, "cudaMalloc, relaxed", relaxed_malloc, line);
    cudaError_t queried = cudaEventQuery(r.inside);
    cudaGetLastError();
    cudaError_t waited = cudaStreamWaitEvent(r.stream, r.inside, 0);
    cudaGetLastError();
    test_say(line, "afterwards, an event of the capture: query %s, wait %s",
             cudaGetErrorName(queried), cudaGetErrorName(waited));
    DBO_TRY(gpu_sync(err));
    cudaEventDestroy(r.inside);
    cudaEventDestroy(r.outside);
    cudaStreamDestroy(r.other);
    cudaStreamDestroy(r.stream);
    return DBO_OK;
}
