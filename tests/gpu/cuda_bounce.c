/* cuda_bounce.c: the PCIe transport: joined inside a capture, verified, and beside compute; then
 * the built-in LL schedule of several layers through interpreter, hooks and graph.
 */
#include "core/program/builders.h"
#include "gpu/bounce_a2a.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"

#include <stdlib.h>
#include <string.h>

enum { PEERS = 8, REPLAYS = 20 };

#define PAYLOAD_BYTES (UINT64_C(64) << 20)

typedef struct transfer {
    dbo_access from, to;
    dbo_op_io io;
    dbo_a2a_cost cost;
    uint64_t addresses[2];
    uint32_t *sent, *got; /* host copies */
} transfer;

static dbo_status transfer_init(transfer *t, gpu_machine *m, dbo_error *err)
{
    memset(t, 0, sizeof *t);
    t->from = (dbo_access){.buffer = 0, .bytes = PAYLOAD_BYTES};
    t->to = (dbo_access){.buffer = 1, .bytes = PAYLOAD_BYTES};
    t->io = (dbo_op_io){.num_reads = 1, .num_writes = 1, .reads = &t->from, .writes = &t->to};
    t->cost = (dbo_a2a_cost){.fixed_ns = -1};
    for (int i = 0; i < 2; i++)
        SEAM_TRY(m->seam.mem->alloc(m->seam.mem_self, PAYLOAD_BYTES, DBO_SPACE_DEVICE,
                                    &t->addresses[i]));
    t->sent = malloc(PAYLOAD_BYTES);
    t->got = malloc(PAYLOAD_BYTES);
    if (!t->sent || !t->got)
        return dbo_fail_memory(err, "the payload");
    return DBO_OK;
}

static void transfer_fini(transfer *t, gpu_machine *m)
{
    for (int i = 0; i < 2; i++)
        m->seam.mem->free(m->seam.mem_self, t->addresses[i]);
    free(t->sent);
    free(t->got);
}

/* New random numbers to send; the receiving side is poisoned. */
static dbo_status refill(transfer *t, uint32_t seed, dbo_error *err)
{
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < PAYLOAD_BYTES / sizeof *t->sent; i++) {
        x = x * 1664525u + 1013904223u;
        t->sent[i] = x;
    }
    GPU_TRY(cudaMemcpy((void *)(uintptr_t)t->addresses[0], t->sent, PAYLOAD_BYTES,
                       cudaMemcpyHostToDevice));
    GPU_TRY(cudaMemset((void *)(uintptr_t)t->addresses[1], 0xAB, PAYLOAD_BYTES));
    return gpu_sync(err);
}

/* The receiver gets x -> 3 x + 1 of what lay in the sender's buffer at the post. */
static dbo_status verify(const transfer *t, dbo_error *err)
{
    DBO_TRY(gpu_sync(err));
    GPU_TRY(cudaMemcpy(t->got, (const void *)(uintptr_t)t->addresses[1], PAYLOAD_BYTES,
                       cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < PAYLOAD_BYTES / sizeof *t->got; i++) {
        if (t->got[i] != 3 * t->sent[i] + 1)
            return dbo_fail(err, DBO_INTERNAL, NULL, "number %zu came back as %u, not %u.", i,
                            t->got[i], 3 * t->sent[i] + 1);
    }
    return DBO_OK;
}

static dbo_status compute_for(gpu_machine *m, int64_t ns, dbo_error *err)
{
    const dbo_op_cost cost = {
        .fixed_ns = ns, .fixed_sms = (uint16_t)m->seam.device->total_sms(m->seam.device_self)};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 1, DBO_KIND_MLP, 0), .cost = &cost};
    SEAM_TRY(m->seam.device->launch(m->seam.device_self, m->rank.streams[0], &op));
    return DBO_OK;
}

/* Work before the post, the transfer, compute beside it, its finish; parts can be left out. The
 * work after the post overwrites what was sent, so a transfer that reads late is seen. */
static dbo_status issue(gpu_machine *m, transfer *t, bool transfers, int64_t compute_ns,
                        dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_stream stream = m->rank.streams[DBO_STREAM_COMPUTE];
    cudaStream_t raw = dbo_cuda_stream(m->cuda, stream);
    dbo_a2a_handle handle;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_DISPATCH, 0),
                               .direction = DBO_A2A_DISPATCH,
                               .stream = stream,
                               .previous = DBO_NO_EVENT,
                               .cost = &t->cost,
                               .io = &t->io,
                               .addresses = t->addresses};
    if (transfers) {
        GPU_TRY(test_affine(raw, (uint32_t *)(uintptr_t)t->addresses[0], PAYLOAD_BYTES / 4, 3, 1));
        SEAM_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    }
    if (compute_ns)
        DBO_TRY(compute_for(m, compute_ns, err));
    if (transfers) {
        SEAM_TRY(seam->a2a->finish(seam->a2a_self, handle, stream));
        GPU_TRY(test_affine(raw, (uint32_t *)(uintptr_t)t->addresses[0], PAYLOAD_BYTES / 4, 1, 99));
    }
    return DBO_OK;
}

/* Median device time of one issue, eagerly. */
static dbo_status time_issue(gpu_machine *m, transfer *t, bool transfers, int64_t compute_ns,
                             double *out_us, dbo_error *err)
{
    enum { TIMES = 9 };
    cudaStream_t raw = dbo_cuda_stream(m->cuda, m->rank.streams[DBO_STREAM_COMPUTE]);
    cudaEvent_t start, stop;
    *out_us = 0;
    GPU_TRY(cudaEventCreate(&start));
    GPU_TRY(cudaEventCreate(&stop));
    double best = 1e30;
    for (int i = 0; i < TIMES; i++) {
        GPU_TRY(cudaEventRecord(start, raw));
        DBO_TRY(issue(m, t, transfers, compute_ns, err));
        GPU_TRY(cudaEventRecord(stop, raw));
        double us = gpu_elapsed_us(start, stop);
        best = us < best ? us : best;
    }
    *out_us = best;
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return DBO_OK;
}

static dbo_status replay_verified(gpu_machine *m, transfer *t, int64_t compute_ns, double *out_us,
                                  dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_stream stream = m->rank.streams[DBO_STREAM_COMPUTE];
    dbo_graph graph;
    SEAM_TRY(seam->graph->begin(seam->graph_self, stream));
    dbo_status status = issue(m, t, true, compute_ns, err);
    if (status != DBO_OK) {
        seam->graph->abandon(seam->graph_self);
        return status;
    }
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    *out_us = 1e30;
    for (uint32_t i = 0; i < REPLAYS && status == DBO_OK; i++) {
        DBO_TRY(refill(t, 100 + i, err));
        int64_t begin = test_now_ns();
        SEAM_TRY(seam->graph->replay(seam->graph_self, graph, stream, i));
        DBO_TRY(gpu_sync(err));
        double us = (double)(test_now_ns() - begin) / 1e3;
        *out_us = us < *out_us ? us : *out_us;
        status = verify(t, err);
    }
    seam->graph->destroy(seam->graph_self, graph);
    return status;
}

static dbo_status bounce_run(gpu_machine *m, transfer *t, test_line *line, dbo_error *err)
{
    double alone = 0, compute = 0, both = 0, replay = 0;
    DBO_TRY(refill(t, 1, err));
    DBO_TRY(issue(m, t, true, 0, err));
    DBO_TRY(verify(t, err));
    DBO_TRY(time_issue(m, t, true, 0, &alone, err));
    int64_t compute_ns = (int64_t)(alone * 1e3);
    DBO_TRY(time_issue(m, t, false, compute_ns, &compute, err));
    DBO_TRY(time_issue(m, t, true, compute_ns, &both, err));
    DBO_TRY(replay_verified(m, t, compute_ns, &replay, err));
    double hidden = (alone + compute - both) / (alone < compute ? alone : compute);
    test_say(line,
             "%llu MiB out and back: alone %.0f us (%.1f GB/s each way), compute on all SMs "
             "alone %.0f us, both %.0f us: %.0f %% of the shorter hidden; captured and joined, %d "
             "replays verified, %.0f us each on the host's clock",
             (unsigned long long)(PAYLOAD_BYTES >> 20), alone, (double)PAYLOAD_BYTES / alone / 1e3,
             compute, both, hidden * 100, REPLAYS, replay);
    if (hidden < 0.5)
        return dbo_fail(err, DBO_INTERNAL, NULL, "The transfer did not run beside the compute.");
    return DBO_OK;
}

dbo_status cuda_bounce(test_line *line, dbo_error *err)
{
    gpu_machine m;
    transfer t;
    DBO_TRY(gpu_open(&m, &(gpu_options){0}, err));
    const dbo_bounce_config config = {
        .communicators = 2, .peers = PEERS, .capacity_bytes = PAYLOAD_BYTES};
    dbo_bounce *bounce = dbo_bounce_create(m.cuda, &config, err);
    dbo_status status = DBO_DEVICE;
    if (bounce) {
        dbo_bounce_fill(bounce, &m.seam);
        status = transfer_init(&t, &m, err);
        if (status == DBO_OK)
            status = bounce_run(&m, &t, line, err);
        transfer_fini(&t, &m);
    }
    dbo_bounce_destroy(bounce);
    gpu_close(&m);
    return status;
}

/* ---- the LL schedule ---- */

enum { LAYERS = 8, TOKENS = 128, TOPK = 8, ROW_BYTES = 7168 };

static void schedule_costs(dbo_layer_costs *costs, uint32_t sms)
{
    static const struct {
        dbo_op_kind kind;
        int64_t ns;
    } ops[] = {{DBO_KIND_A0, 60000},
               {DBO_KIND_A1, 140000},
               {DBO_KIND_QUANT, 5000},
               {DBO_KIND_MLP, 150000},
               {DBO_KIND_SHARED, 50000}};
    memset(costs, 0, sizeof *costs);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        costs->op[ops[i].kind] = (dbo_op_cost){.fixed_ns = ops[i].ns, .fixed_sms = (uint16_t)sms};
        costs->kernels[ops[i].kind] = 1;
    }
    costs->dispatch = (dbo_a2a_cost){.fixed_ns = -1,
                                     .tokens = TOKENS,
                                     .topk = TOPK,
                                     .num_experts = 256,
                                     .bytes_per_token = ROW_BYTES};
    costs->combine = costs->dispatch;
    costs->combine.bytes_per_token = 2 * ROW_BYTES;
}

typedef struct layers_args {
    const dbo_program *program;
    uint32_t step;
} layers_args;

static dbo_status layers_body(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const layers_args *args = arg;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        dbo_status status = dbo_program_run(ubatch->rank, ubatch, args->program, args->step, layer);
        if (status != DBO_OK)
            return dbo_rank_fail(ubatch->rank, status, err);
    }
    return DBO_OK;
}

static bool is_compute(const dbo_span *span)
{
    return span->part == DBO_SPAN_RUN;
}

static bool is_flight(const dbo_span *span)
{
    return span->part == DBO_SPAN_FLIGHT;
}

static int64_t sum_of(const dbo_trace *trace, test_pick pick)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        sum += pick(span) ? span->end_ns - span->start_ns : 0;
    }
    return sum;
}

static dbo_status capture_layers(gpu_machine *m, const dbo_program *program, dbo_graph *out,
                                 dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    layers_args args = {.program = program};
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[DBO_STREAM_COMPUTE]));
    dbo_status status = dbo_ubatches_run(&m->rank, 2, 0, layers_body, &args, err);
    if (status != DBO_OK) {
        seam->graph->abandon(seam->graph_self);
        return status;
    }
    SEAM_TRY(seam->graph->end(seam->graph_self, out));
    return DBO_OK;
}

static dbo_status schedule_run(gpu_machine *m, test_line *line, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_layer_costs costs[2];
    dbo_program program;
    dbo_graph graph;
    dbo_cupti_counts counts;
    schedule_costs(&costs[0], seam->device->total_sms(seam->device_self));
    costs[1] = costs[0];
    DBO_TRY(dbo_build_ll(costs, &(dbo_build_options){.num_ubatches = 2}, &program, err));
    DBO_TRY(dbo_rank_fit(&m->rank, &program, err));
    DBO_TRY(capture_layers(m, &program, &graph, err));
    SEAM_TRY(seam->graph->replay(seam->graph_self, graph, m->rank.streams[0], 0)); /* warm */
    DBO_TRY(gpu_sync(err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &counts, err));
    dbo_trace_fini(&m->trace);
    dbo_trace_init(&m->trace);
    SEAM_TRY(seam->graph->replay(seam->graph_self, graph, m->rank.streams[0], 1));
    DBO_TRY(gpu_sync(err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &counts, err));
    seam->graph->destroy(seam->graph_self, graph);
    dbo_program_fini(&program);
    int64_t first = INT64_MAX, last = 0;
    for (uint64_t i = 0; i < m->trace.num_spans; i++) {
        const dbo_span *span = dbo_trace_span(&m->trace, i);
        first = span->start_ns < first ? span->start_ns : first;
        last = span->end_ns > last ? span->end_ns : last;
    }
    int64_t overlap = test_overlap_ns(&m->trace, is_compute, is_flight);
    int64_t flights = sum_of(&m->trace, is_flight);
    test_say(line,
             "LL schedule, 2 ubatches, %d layers, captured by fibers; one replay: %llu "
             "records, all matched: %s; step %.0f us, compute %.0f us, copies %.0f us of which "
             "%.0f %% beside compute",
             LAYERS, (unsigned long long)counts.records,
             counts.matched == counts.records ? "yes" : "no", (double)(last - first) / 1e3,
             (double)sum_of(&m->trace, is_compute) / 1e3, (double)flights / 1e3,
             flights ? 100.0 * (double)overlap / (double)flights : 0.0);
    if (counts.matched != counts.records || !flights || overlap * 2 < flights)
        return dbo_fail(err, DBO_INTERNAL, NULL, "Records are missing, or nothing overlapped.");
    return DBO_OK;
}

dbo_status cuda_bounce_schedule(test_line *line, dbo_error *err)
{
    gpu_machine m;
    DBO_TRY(gpu_open(&m, &(gpu_options){.records = true}, err));
    const dbo_bounce_config config = {.communicators = 2,
                                      .peers = PEERS,
                                      .capacity_bytes = (uint64_t)TOKENS * TOPK * 2 * ROW_BYTES};
    dbo_bounce *bounce = dbo_bounce_create(m.cuda, &config, err);
    dbo_status status = DBO_DEVICE;
    if (bounce) {
        dbo_bounce_fill(bounce, &m.seam);
        m.rank.seam = m.seam; /* the rank was made before the transport */
        status = schedule_run(&m, line, err);
    }
    dbo_bounce_destroy(bounce);
    gpu_close(&m);
    return status;
}
