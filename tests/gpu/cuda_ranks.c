/* cuda_ranks.c: real ranks, a process each: the exchange on an internal stream and its hook, HT's
 * counts, a capture, schedules, the device's records.
 */
#include "core/program/builders.h"
#include "gpu/nccl_a2a.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/machine.h"

#include <stdlib.h>
#include <string.h>

enum { COMMUNICATORS = 2, ID_WORDS = COMMUNICATORS * DBO_NCCL_ID_BYTES / 4 };
enum { TRANSFER_SMS = 8 }; /* left free by the compute beside a transfer, on a GPU of its own */

typedef struct world {
    gpu_machine m;
    dbo_nccl *nccl;
    test_peer peer;
    uint32_t rank, size;
    uint16_t compute_sms;  /* of the compute beside a transfer */
    uint64_t addresses[4]; /* sent, received, counts sent, counts received */
    dbo_access reads[2], writes[2];
    dbo_op_io io;
    dbo_a2a_cost cost;
} world;

/* What rank `from` sends to rank `to` at byte i. */
static uint8_t payload(uint32_t from, uint32_t to, uint64_t i, uint32_t round)
{
    return (uint8_t)(from * 37 + to * 101 + i * 7 + (i >> 9) + round * 13);
}

/* Rank 0 makes them. */
static dbo_status agree_on_ids(world *w, dbo_nccl_id *ids, dbo_error *err)
{
    int32_t column[ID_WORDS] = {0}, matrix[ID_WORDS * TEST_MAX_PEERS];
    for (uint32_t i = 0; w->rank == 0 && i < COMMUNICATORS; i++)
        DBO_TRY(dbo_nccl_make_id(&ids[i], err));
    if (w->rank == 0)
        memcpy(column, ids, sizeof column);
    DBO_TRY(test_peer_ops()->exchange(&w->peer, "ids", 0, column, ID_WORDS, matrix));
    for (uint32_t row = 0; row < ID_WORDS; row++)
        column[row] = matrix[row * w->size];
    memcpy(ids, column, sizeof column);
    return DBO_OK;
}

/* Ranks that share a GPU share its SMs. */
static dbo_status choose_device(world *w, int *out, dbo_error *err)
{
    int devices = 0, total_sms = 0;
    GPU_TRY(cudaGetDeviceCount(&devices));
    GPU_TRY(cudaDeviceGetAttribute(&total_sms, cudaDevAttrMultiProcessorCount, 0));
    bool shared = (uint32_t)devices < w->size;
    *out = shared ? 0 : (int)w->rank;
    w->compute_sms = (uint16_t)(((uint32_t)total_sms - TRANSFER_SMS) / (shared ? w->size : 1));
    return DBO_OK;
}

static dbo_status world_open(world *w, bool records, bool ht, dbo_error *err)
{
    gpu_machine *m = &w->m;
    dbo_nccl_id ids[COMMUNICATORS];
    int device = 0;
    w->rank = w->peer.rank;
    w->size = test_peer_ops()->size(&w->peer);
    DBO_TRY(choose_device(w, &device, err));
    DBO_TRY(agree_on_ids(w, ids, err));
    DBO_TRY(gpu_open(m, &(gpu_options){.records = records, .device = device}, err));
    const dbo_nccl_config config = {.rank = w->rank,
                                    .size = w->size,
                                    .ht = ht,
                                    .communicators = COMMUNICATORS,
                                    .ids = ids,
                                    .max_sms = TRANSFER_SMS,
                                    .capacity_bytes = UINT64_C(64) << 20};
    w->nccl = dbo_nccl_create(m->cuda, &config, err);
    if (!w->nccl) {
        gpu_close(m);
        return DBO_DEVICE;
    }
    dbo_nccl_fill(w->nccl, &m->seam);
    m->rank.seam = m->seam;
    for (int i = 0; i < 4; i++)
        SEAM_TRY(m->seam.mem->alloc(m->seam.mem_self, i < 2 ? UINT64_C(64) << 20 : 4096,
                                    DBO_SPACE_DEVICE, &w->addresses[i]));
    return DBO_OK;
}

static void world_close(world *w)
{
    for (int i = 0; i < 4; i++)
        w->m.seam.mem->free(w->m.seam.mem_self, w->addresses[i]);
    dbo_nccl_destroy(w->nccl);
    gpu_close(&w->m);
}

static void describe(world *w, uint64_t bytes_per_peer)
{
    for (uint32_t i = 0; i < 2; i++) {
        w->reads[i] = (dbo_access){.buffer = 2 * i, .bytes = i ? 4096 : bytes_per_peer * w->size};
        w->writes[i] = (dbo_access){.buffer = 2 * i + 1, .bytes = w->reads[i].bytes};
    }
    w->io = (dbo_op_io){.num_reads = 1, .num_writes = 1, .reads = w->reads, .writes = w->writes};
    w->cost = (dbo_a2a_cost){.fixed_ns = -1, .bytes_per_token = 1024};
}

static dbo_status fill_sent(world *w, uint64_t bytes_per_peer, uint32_t round, dbo_error *err)
{
    uint8_t *bytes = malloc(bytes_per_peer * w->size);
    if (!bytes)
        return dbo_fail_memory(err, "the payload");
    for (uint32_t p = 0; p < w->size; p++) {
        for (uint64_t i = 0; i < bytes_per_peer; i++)
            bytes[p * bytes_per_peer + i] = payload(w->rank, p, i, round);
    }
    dbo_status status = gpu_cuda(cudaMemcpy((void *)(uintptr_t)w->addresses[0], bytes,
                                            bytes_per_peer * w->size, cudaMemcpyHostToDevice),
                                 "filling the payload", err);
    free(bytes);
    GPU_TRY(cudaMemset((void *)(uintptr_t)w->addresses[1], 0xEE, bytes_per_peer * w->size));
    return status == DBO_OK ? gpu_sync(err) : status;
}

static dbo_status check_got(world *w, uint64_t bytes_per_peer, uint32_t round, dbo_error *err)
{
    uint8_t *bytes = malloc(bytes_per_peer * w->size);
    if (!bytes)
        return dbo_fail_memory(err, "the payload");
    dbo_status status = gpu_sync(err);
    if (status == DBO_OK)
        status = gpu_cuda(cudaMemcpy(bytes, (const void *)(uintptr_t)w->addresses[1],
                                     bytes_per_peer * w->size, cudaMemcpyDeviceToHost),
                          "reading what came", err);
    for (uint64_t k = 0; k < bytes_per_peer * w->size && status == DBO_OK; k++) {
        uint32_t p = (uint32_t)(k / bytes_per_peer);
        if (bytes[k] != payload(p, w->rank, k % bytes_per_peer, round))
            status = dbo_fail(err, DBO_INTERNAL, NULL, "byte %llu from rank %u is wrong.",
                              (unsigned long long)(k % bytes_per_peer), p);
    }
    free(bytes);
    return status;
}

/* ---- LL ---- */

static dbo_status compute_for(world *w, int64_t ns, dbo_error *err)
{
    gpu_machine *m = &w->m;
    const dbo_op_cost cost = {.fixed_ns = ns, .fixed_sms = w->compute_sms};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 1, DBO_KIND_MLP, 0), .cost = &cost};
    SEAM_TRY(m->seam.device->launch(m->seam.device_self, m->rank.streams[0], &op));
    return DBO_OK;
}

static dbo_status ll_issue(world *w, bool transfers, int64_t compute_ns, dbo_error *err)
{
    gpu_machine *m = &w->m;
    const dbo_seam *seam = &m->seam;
    dbo_a2a_handle handle = DBO_NO_HANDLE;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_DISPATCH, 0),
                               .stream = m->rank.streams[0],
                               .previous = DBO_NO_EVENT,
                               .cost = &w->cost,
                               .io = &w->io,
                               .addresses = w->addresses};
    if (transfers)
        SEAM_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    if (compute_ns)
        DBO_TRY(compute_for(w, compute_ns, err));
    if (transfers)
        SEAM_TRY(seam->a2a->finish(seam->a2a_self, handle, m->rank.streams[0]));
    return DBO_OK;
}

/* Best device time of several issues, all ranks starting together after a small exchange. */
static dbo_status ll_time(world *w, uint64_t bytes_per_peer, bool transfers, int64_t compute_ns,
                          double *out_us, dbo_error *err)
{
    cudaStream_t raw = dbo_cuda_stream(w->m.cuda, w->m.rank.streams[0]);
    cudaEvent_t start, stop;
    *out_us = 1e30;
    GPU_TRY(cudaEventCreate(&start));
    GPU_TRY(cudaEventCreate(&stop));
    for (int i = 0; i < 9; i++) {
        describe(w, 16);
        DBO_TRY(ll_issue(w, true, 0, err));
        DBO_TRY(gpu_sync(err));
        describe(w, bytes_per_peer);
        GPU_TRY(cudaEventRecord(start, raw));
        DBO_TRY(ll_issue(w, transfers, compute_ns, err));
        GPU_TRY(cudaEventRecord(stop, raw));
        double us = gpu_elapsed_us(start, stop);
        *out_us = us < *out_us ? us : *out_us;
        DBO_TRY(gpu_sync(err));
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return DBO_OK;
}

static dbo_status ll_overlap(world *w, test_line *line, dbo_error *err)
{
    static const uint64_t sizes[] = {16 << 10, 1 << 20, 16 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double alone, compute, both;
        describe(w, sizes[s]);
        DBO_TRY(fill_sent(w, sizes[s], (uint32_t)s, err));
        DBO_TRY(ll_issue(w, true, 50000, err));
        DBO_TRY(check_got(w, sizes[s], (uint32_t)s, err));
        DBO_TRY(ll_time(w, sizes[s], true, 0, &alone, err));
        int64_t ns = alone > 300 ? (int64_t)(alone * 1e3) : 300000;
        DBO_TRY(ll_time(w, sizes[s], false, ns, &compute, err));
        DBO_TRY(ll_time(w, sizes[s], true, ns, &both, err));
        double hidden = (alone + compute - both) / (alone < compute ? alone : compute);
        test_say(line,
                 "%llu KiB a peer verified: alone %.0f us, compute %.0f us, both %.0f us "
                 "(%.0f %% of the shorter hidden); ",
                 (unsigned long long)(sizes[s] >> 10), alone, compute, both, 100 * hidden);
        if (hidden < 0.3)
            return dbo_fail(err, DBO_INTERNAL, NULL, "Nothing of the transfer was hidden.");
    }
    return DBO_OK;
}

static dbo_status ll_capture(world *w, test_line *line, dbo_error *err)
{
    enum { BYTES = 1 << 20, REPLAYS = 20 };
    gpu_machine *m = &w->m;
    const dbo_seam *seam = &m->seam;
    dbo_graph graph;
    describe(w, BYTES);
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[0]));
    dbo_status status = ll_issue(w, true, 300000, err);
    if (status != DBO_OK) {
        seam->graph->abandon(seam->graph_self);
        return status;
    }
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    for (uint32_t i = 0; i < REPLAYS && status == DBO_OK; i++) {
        status = fill_sent(w, BYTES, 40 + i, err);
        if (status == DBO_OK &&
            seam->graph->replay(seam->graph_self, graph, m->rank.streams[0], i) != DBO_OK)
            status = gpu_failed(m, DBO_DEVICE, err);
        if (status == DBO_OK)
            status = check_got(w, BYTES, 40 + i, err);
    }
    seam->graph->destroy(seam->graph_self, graph); /* before its communicator */
    test_say(line, "captured and joined by finish, %d replays verified; ", REPLAYS);
    return status;
}

/* ---- schedules ---- */

enum { LAYERS = 8, TOKENS = 64, TOPK = 4, ROW_BYTES = 1024 };

typedef struct layers_args {
    const dbo_program *program;
    uint32_t step;
    size_t stack_bytes;
} layers_args;

static dbo_status layers_body(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    layers_args *args = arg;
    dbo_status status = DBO_OK;
    for (uint32_t layer = 0; layer < LAYERS && status == DBO_OK; layer++)
        status = dbo_program_run(ubatch->rank, ubatch, args->program, args->step, layer);
    size_t touched = test_stack_touched();
    args->stack_bytes = touched > args->stack_bytes ? touched : args->stack_bytes;
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(ubatch->rank, status, err);
}

static void schedule_costs(const world *w, dbo_layer_costs *costs)
{
    static const dbo_op_kind kinds[] = {DBO_KIND_A0,   DBO_KIND_A1,    DBO_KIND_LAYOUT,
                                        DBO_KIND_H2D,  DBO_KIND_MLP,   DBO_KIND_REDUCE,
                                        DBO_KIND_COPY, DBO_KIND_SHARED};
    memset(costs, 0, sizeof *costs);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool copy = dbo_op_kind_class(kinds[i]) == DBO_CLASS_COPY;
        costs->op[kinds[i]] =
            (dbo_op_cost){.fixed_ns = copy ? 2000 : 60000, .fixed_sms = copy ? 1 : w->compute_sms};
        costs->kernels[kinds[i]] = 1;
    }
    costs->dispatch = (dbo_a2a_cost){.fixed_ns = -1,
                                     .tokens = TOKENS,
                                     .topk = TOPK,
                                     .num_experts = 16,
                                     .bytes_per_token = ROW_BYTES};
    costs->combine = costs->dispatch;
}

/* Best time of a step of the built-in schedule with so many ubatches. */
static dbo_status schedule_time(world *w, bool ht, uint32_t ubatches, double *out_us,
                                size_t *stack_bytes, dbo_error *err)
{
    gpu_machine *m = &w->m;
    dbo_layer_costs costs[2];
    dbo_program program;
    schedule_costs(w, &costs[0]);
    costs[1] = costs[0];
    if (ubatches == 1) /* the same work at once: the sum of both halves */
        for (int k = 0; k < DBO_KIND_COUNT; k++)
            costs[0].op[k].fixed_ns *= 2;
    if (ubatches == 1)
        costs[0].dispatch.tokens = costs[0].combine.tokens = 2 * TOKENS;
    const dbo_build_options options = {.num_ubatches = ubatches, .host_sync = true};
    DBO_TRY(ht ? dbo_build_ht(costs, &options, &program, err)
               : dbo_build_ll(costs, &options, &program, err));
    DBO_TRY(dbo_rank_fit(&m->rank, &program, err));
    *out_us = 1e30;
    dbo_status status = DBO_OK;
    for (uint32_t step = 0; step < 7 && status == DBO_OK; step++) {
        layers_args args = {.program = &program, .step = step};
        status = gpu_sync(err);
        int64_t begin = test_now_ns();
        if (status == DBO_OK)
            status = dbo_ubatches_run(&m->rank, ubatches, step, layers_body, &args, err);
        if (status == DBO_OK)
            status = gpu_sync(err);
        double us = (double)(test_now_ns() - begin) / 1e3;
        *out_us = us < *out_us ? us : *out_us;
        *stack_bytes = args.stack_bytes;
    }
    dbo_program_fini(&program);
    return status;
}

static dbo_status schedule(world *w, bool ht, test_line *line, dbo_error *err)
{
    double one, two;
    size_t stack_bytes = 0;
    DBO_TRY(schedule_time(w, ht, 1, &one, &stack_bytes, err));
    DBO_TRY(schedule_time(w, ht, 2, &two, &stack_bytes, err));
    test_say(line,
             "%s schedule, %d layers, synthetic compute on %u SMs: 1 ubatch %.0f us, 2 "
             "ubatches %.0f us a step; stack touched by an ubatch %zu KiB",
             ht ? "HT" : "LL", LAYERS, w->compute_sms, one, two, stack_bytes >> 10);
    return DBO_OK;
}

/* ---- HT ---- */

static int32_t rows_between(uint32_t from, uint32_t to)
{
    return (int32_t)(from * 300 + to * 500 + 7) % 1000;
}

/* Uneven rows there and back: what returns must be what was sent. */
static dbo_status ht_round(world *w, test_line *line, dbo_error *err)
{
    gpu_machine *m = &w->m;
    const dbo_seam *seam = &m->seam;
    int32_t sent[TEST_MAX_PEERS];
    dbo_a2a_handle handle;
    uint64_t rows = 0;
    describe(w, 1 << 20);
    DBO_TRY(fill_sent(w, 1 << 20, 9, err));
    for (uint32_t p = 0; p < w->size; p++) {
        sent[p] = rows_between(w->rank, p);
        rows += (uint64_t)sent[p];
    }
    GPU_TRY(
        cudaMemcpy((void *)(uintptr_t)w->addresses[2], sent, sizeof sent, cudaMemcpyHostToDevice));
    w->io.num_reads = 2;
    dbo_a2a_args args = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_DISPATCH, 0),
                         .stream = m->rank.streams[1],
                         .previous = DBO_NO_EVENT,
                         .cost = &w->cost,
                         .io = &w->io,
                         .addresses = w->addresses};
    SEAM_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    int64_t begin = test_now_ns();
    SEAM_TRY(seam->a2a->counts(seam->a2a_self, handle));
    double counts_us = (double)(test_now_ns() - begin) / 1e3;
    SEAM_TRY(seam->a2a->finish(seam->a2a_self, handle, m->rank.streams[0]));
    DBO_TRY(gpu_sync(err));
    /* Back: the received rows into the upper half of the sending buffer. */
    const dbo_access from = {.buffer = 1, .bytes = w->reads[0].bytes};
    const dbo_access to = {.buffer = 0, .offset_bytes = UINT64_C(32) << 20};
    const dbo_op_io back = {.num_reads = 1, .num_writes = 1, .reads = &from, .writes = &to};
    args.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_COMBINE, 0);
    args.direction = DBO_A2A_COMBINE;
    args.io = &back;
    SEAM_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    SEAM_TRY(seam->a2a->finish(seam->a2a_self, handle, m->rank.streams[0]));
    DBO_TRY(gpu_sync(err));
    uint64_t bytes = rows * w->cost.bytes_per_token;
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    GPU_TRY(cudaMemcpy(a, (const void *)(uintptr_t)w->addresses[0], bytes, cudaMemcpyDeviceToHost));
    GPU_TRY(cudaMemcpy(b, (const void *)(uintptr_t)(w->addresses[0] + to.offset_bytes), bytes,
                       cudaMemcpyDeviceToHost));
    bool same = a && b && memcmp(a, b, bytes) == 0;
    free(a);
    free(b);
    if (!same)
        return dbo_fail(err, DBO_INTERNAL, NULL, "HT rows did not come back as they left.");
    test_say(line,
             "%llu rows in uneven parts went out and came back verified; the host waited "
             "%.0f us for the counts; ",
             (unsigned long long)rows, counts_us);
    return DBO_OK;
}

/* ---- records ---- */

static dbo_status trace_transfers(world *w, test_line *line, dbo_error *err)
{
    enum { TRANSFERS = 50 };
    gpu_machine *m = &w->m;
    const dbo_seam *seam = &m->seam;
    dbo_cupti_counts eager, replayed;
    dbo_graph graph;
    describe(w, 64 << 10);
    DBO_TRY(ll_issue(w, true, 20000, err)); /* connects: copies of NCCL's own */
    DBO_TRY(gpu_sync(err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &eager, err));
    for (int i = 0; i < TRANSFERS; i++)
        DBO_TRY(ll_issue(w, true, 20000, err));
    DBO_TRY(gpu_sync(err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &eager, err));
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[0]));
    DBO_TRY(ll_issue(w, true, 20000, err));
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    for (uint32_t i = 0; i < TRANSFERS; i++)
        SEAM_TRY(seam->graph->replay(seam->graph_self, graph, m->rank.streams[0], i));
    DBO_TRY(gpu_sync(err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &replayed, err));
    seam->graph->destroy(seam->graph_self, graph);
    test_say(line,
             "%d transfers beside compute: eager %llu records, %llu matched; replayed %llu "
             "records, %llu in graphs, %llu matched",
             TRANSFERS, (unsigned long long)eager.records, (unsigned long long)eager.matched,
             (unsigned long long)replayed.records, (unsigned long long)replayed.in_graphs,
             (unsigned long long)replayed.matched);
    if (eager.matched != 2 * TRANSFERS || replayed.matched != 2 * TRANSFERS)
        return dbo_fail(err, DBO_INTERNAL, NULL, "%d records were expected of each.",
                        2 * TRANSFERS);
    return DBO_OK;
}

/* ---- a rank ---- */

typedef dbo_status (*rank_part)(world *w, test_line *line, dbo_error *err);

/* The parts, in order, on a machine with a transport of its own. */
static dbo_status run_parts(const test_peer *peer, test_line *line, bool records, bool ht,
                            const rank_part *parts, dbo_error *err)
{
    world w = {.peer = *peer};
    DBO_TRY(world_open(&w, records, ht, err));
    dbo_status status = DBO_OK;
    for (size_t i = 0; parts[i] && status == DBO_OK; i++)
        status = parts[i](&w, line, err);
    int64_t begin = test_now_ns();
    world_close(&w);
    test_say(line, "; closed in %.0f ms", (double)(test_now_ns() - begin) / 1e6);
    return status;
}

static dbo_status ll_schedule(world *w, test_line *line, dbo_error *err)
{
    return schedule(w, false, line, err);
}

static dbo_status ht_schedule(world *w, test_line *line, dbo_error *err)
{
    return schedule(w, true, line, err);
}

dbo_status cuda_ranks_ll(const test_peer *peer, test_line *line, dbo_error *err)
{
    static const rank_part parts[] = {ll_overlap, ll_capture, ll_schedule, NULL};
    return run_parts(peer, line, false, false, parts, err);
}

dbo_status cuda_ranks_ht(const test_peer *peer, test_line *line, dbo_error *err)
{
    static const rank_part parts[] = {ht_round, ht_round, ht_schedule, NULL};
    return run_parts(peer, line, false, true, parts, err);
}

dbo_status cuda_ranks_records(const test_peer *peer, test_line *line, dbo_error *err)
{
    static const rank_part parts[] = {trace_transfers, NULL};
    return run_parts(peer, line, true, false, parts, err);
}
