/* cuda_records.c: the device's records against the ops issued, and what recording costs. */
#include "gpu/synthetic.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, KERNELS_PER_OP = 2, OPS = 6, OWN_COPIES = 4 }; /* filling, verifying */

/* Every op of every step must have its two records, and no other. */
static dbo_status check_all_matched(const gpu_machine *m, const dbo_cupti_counts *counts,
                                    uint32_t steps, test_line *line, dbo_error *err)
{
    uint64_t expected = (uint64_t)steps * OPS * KERNELS_PER_OP;
    uint32_t *seen = calloc(steps * OPS, sizeof *seen);
    if (!seen)
        return dbo_fail_memory(err, "the counts");
    dbo_status status = DBO_OK;
    uint32_t odd = 0;
    for (uint64_t i = 0; i < m->trace.num_spans; i++) {
        dbo_op_id id = dbo_trace_span(&m->trace, i)->id;
        uint32_t step = dbo_op_id_step(id), k = dbo_op_id_occurrence(id);
        if (step < steps && k < 3 && dbo_op_id_kind(id) == DBO_KIND_CUSTOM)
            seen[step * OPS + dbo_op_id_ubatch(id) * 3 + k]++;
        else
            odd++;
    }
    for (uint32_t i = 0; i < steps * OPS && status == DBO_OK; i++) {
        if (seen[i] != KERNELS_PER_OP)
            status = dbo_fail(err, DBO_INTERNAL, NULL, "step %u, op %u has %u records, not %d.",
                              i / OPS, i % OPS, seen[i], KERNELS_PER_OP);
    }
    free(seen);
    test_say(line,
             "%u ops issued, 2 kernels each; %llu records, %d of them own copies of the "
             "check; %llu in graphs; %llu matched, %u to no op of the schedule; %llu dropped",
             steps * OPS, (unsigned long long)counts->records, OWN_COPIES,
             (unsigned long long)counts->in_graphs, (unsigned long long)counts->matched, odd,
             (unsigned long long)counts->dropped);
    if (status == DBO_OK &&
        (counts->matched != expected || counts->records != expected + OWN_COPIES || odd))
        status = dbo_fail(err, DBO_INTERNAL, NULL, "%llu records of ops were expected.",
                          (unsigned long long)expected);
    return status;
}

/* Least time from the end of an op's last record to the start of the next op's first, over ops of
 * one ubatch: the cost of an edge to another stream that is free. */
static double least_edge_us(const dbo_trace *trace)
{
    int64_t least = INT64_MAX;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *a = dbo_trace_span(trace, i);
        const dbo_span *next = NULL;
        int64_t last_end = a->end_ns;
        for (uint64_t j = i > 40 ? i - 40 : 0; j < trace->num_spans && j < i + 40; j++) {
            const dbo_span *b = dbo_trace_span(trace, j);
            if (b->id == a->id && b->end_ns > last_end)
                last_end = b->end_ns;
            if (b->id == a->id + 1 && (!next || b->start_ns < next->start_ns))
                next = b;
        }
        if (last_end != a->end_ns || !next)
            continue;
        if (next->start_ns - a->end_ns < least)
            least = next->start_ns - a->end_ns;
    }
    return (double)least / 1e3;
}

static dbo_status trace_run(gpu_machine *m, pingpong *p, bool replay, test_line *line,
                            dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_graph graph = 0;
    dbo_cupti_counts counts;
    if (replay) {
        SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[DBO_STREAM_COMPUTE]));
        DBO_TRY(pingpong_run(p, m, 0, err));
        SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        if (replay)
            SEAM_TRY(seam->graph->replay(seam->graph_self, graph,
                                         m->rank.streams[DBO_STREAM_COMPUTE], step));
        else
            DBO_TRY(pingpong_run(p, m, step, err));
    }
    DBO_TRY(gpu_sync(err));
    DBO_TRY(pingpong_verify(p, STEPS, err));
    DBO_TRY(dbo_cupti_flush(m->cupti, &counts, err));
    DBO_TRY(check_all_matched(m, &counts, STEPS, line, err));
    test_say(line,
             "; from an op's end to the next one's start on the other stream, at least %.2f us",
             least_edge_us(&m->trace));
    return DBO_OK;
}

static dbo_status trace_with(dbo_context_kind executor, dbo_cupti_way way, bool replay,
                             test_line *line, dbo_error *err)
{
    gpu_machine m;
    pingpong p;
    const gpu_options options = {.executor = executor, .records = true, .way = way};
    DBO_TRY(gpu_open(&m, &options, err));
    dbo_status status = pingpong_init(&p, &m, 20000, 40, err);
    if (status == DBO_OK)
        status = trace_run(&m, &p, replay, line, err);
    pingpong_fini(&p);
    gpu_close(&m);
    return status;
}

dbo_status cuda_trace_eager(test_line *line, dbo_error *err)
{
    return trace_with(DBO_CONTEXT_FIBER, DBO_CUPTI_CALLBACK, false, line, err);
}

dbo_status cuda_trace_threads(test_line *line, dbo_error *err)
{
    return trace_with(DBO_CONTEXT_THREAD, DBO_CUPTI_CALLBACK, false, line, err);
}

dbo_status cuda_trace_replay(test_line *line, dbo_error *err)
{
    return trace_with(DBO_CONTEXT_FIBER, DBO_CUPTI_CALLBACK, true, line, err);
}

/* The ways to join records to ops, begun while a CUDA context exists already (as here) or not. */
dbo_status cuda_trace_ways(test_line *line, dbo_error *err)
{
    static const struct {
        const char *name;
        dbo_cupti_way way;
    } ways[] = {{"callbacks", DBO_CUPTI_CALLBACK},
                {"external ids, all calls recorded", DBO_CUPTI_EXTERNAL},
                {"external ids, launching calls recorded", DBO_CUPTI_EXTERNAL_LAUNCHES},
                {"external ids, no call recorded", DBO_CUPTI_EXTERNAL_BARE}};
    GPU_TRY(cudaFree(NULL)); /* makes the context */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        test_line own = {0};
        dbo_error lost = {0};
        dbo_status status = trace_with(DBO_CONTEXT_FIBER, ways[i].way, false, &own, &lost);
        test_say(line, "%s: %s; ", ways[i].name,
                 status == DBO_OK ? "every op matched" : lost.message);
    }
    return DBO_OK;
}

/* ---- overhead ---- */

enum { LAUNCHES = 20000, GRAPH_NODES = 200, GRAPH_REPLAYS = 50, BATCH = 500 };

typedef struct overhead {
    double launch_us, replay_host_us, replay_device_us, flush_us_per_record;
} overhead;

static dbo_status time_launches(gpu_machine *m, overhead *out, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    const dbo_op_cost cost = {.fixed_ns = 0, .fixed_sms = 0};
    dbo_stream stream = m->rank.streams[DBO_STREAM_COMPUTE];
    int64_t host = 0;
    for (uint32_t i = 0; i < LAUNCHES; i += BATCH) {
        int64_t begin = test_now_ns();
        for (uint32_t k = 0; k < BATCH; k++) {
            const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, i + k),
                               .cost = &cost};
            SEAM_TRY(seam->device->launch(seam->device_self, stream, &op));
        }
        host += test_now_ns() - begin;
        DBO_TRY(gpu_sync(err));
    }
    out->launch_us = (double)host / LAUNCHES / 1e3;
    return DBO_OK;
}

static dbo_status time_replays(gpu_machine *m, overhead *out, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    const dbo_op_cost cost = {.fixed_ns = 0, .fixed_sms = 0};
    dbo_stream stream = m->rank.streams[DBO_STREAM_COMPUTE];
    cudaEvent_t start, stop;
    dbo_graph graph;
    GPU_TRY(cudaEventCreate(&start));
    GPU_TRY(cudaEventCreate(&stop));
    SEAM_TRY(seam->graph->begin(seam->graph_self, stream));
    for (uint32_t k = 0; k < GRAPH_NODES; k++) {
        const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, k), .cost = &cost};
        SEAM_TRY(seam->device->launch(seam->device_self, stream, &op));
    }
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    SEAM_TRY(seam->graph->replay(seam->graph_self, graph, stream, 0));
    DBO_TRY(gpu_sync(err));
    int64_t host = 0;
    GPU_TRY(cudaEventRecord(start, dbo_cuda_stream(m->cuda, stream)));
    for (uint32_t i = 0; i < GRAPH_REPLAYS; i++) {
        int64_t begin = test_now_ns();
        SEAM_TRY(seam->graph->replay(seam->graph_self, graph, stream, i));
        host += test_now_ns() - begin;
    }
    GPU_TRY(cudaEventRecord(stop, dbo_cuda_stream(m->cuda, stream)));
    out->replay_device_us = gpu_elapsed_us(start, stop) / GRAPH_REPLAYS;
    out->replay_host_us = (double)host / GRAPH_REPLAYS / 1e3;
    seam->graph->destroy(seam->graph_self, graph);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return DBO_OK;
}

static dbo_status measure(bool records, dbo_cupti_way way, overhead *out, dbo_error *err)
{
    gpu_machine m;
    memset(out, 0, sizeof *out);
    DBO_TRY(gpu_open(&m, &(gpu_options){.records = records, .way = way}, err));
    dbo_status status = time_launches(&m, out, err); /* once unmeasured: first launches load */
    if (status == DBO_OK)
        status = time_launches(&m, out, err);
    if (status == DBO_OK)
        status = time_replays(&m, out, err);
    if (status == DBO_OK && m.cupti) {
        dbo_cupti_counts counts;
        int64_t begin = test_now_ns();
        status = dbo_cupti_flush(m.cupti, &counts, err);
        out->flush_us_per_record = (double)(test_now_ns() - begin) / 1e3 / (double)counts.records;
    }
    gpu_close(&m);
    return status;
}

dbo_status cuda_trace_cost(test_line *line, dbo_error *err)
{
    static const struct {
        const char *name;
        bool records;
        dbo_cupti_way way;
    } ways[] = {{"off", false, DBO_CUPTI_CALLBACK},
                {"on, callbacks", true, DBO_CUPTI_CALLBACK},
                {"on, external ids, launching calls recorded", true, DBO_CUPTI_EXTERNAL_LAUNCHES},
                {"on, external ids, all calls recorded", true, DBO_CUPTI_EXTERNAL},
                {"off again", false, DBO_CUPTI_CALLBACK}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        overhead o;
        DBO_TRY(measure(ways[i].records, ways[i].way, &o, err));
        test_say(line, "%s: launch %.2f us; replay of %d nodes: host %.1f us, device %.1f us",
                 ways[i].name, o.launch_us, GRAPH_NODES, o.replay_host_us, o.replay_device_us);
        if (ways[i].records)
            test_say(line, ", flush %.2f us a record", o.flush_us_per_record);
        test_say(line, "%s", i + 1 < sizeof ways / sizeof *ways ? " | " : "");
    }
    return DBO_OK;
}
