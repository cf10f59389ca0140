/* cuda_allocator.c: the caching allocator of the core with real events under it. */
#include "core/memory/allocator.h"
#include "gpu/synthetic.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/machine.h"

enum { HOLD_NS = 5000000, PAIRS = 20000, QUERIES = 20000 };

#define BLOCK_BYTES (UINT64_C(64) << 20)

static dbo_status hold(gpu_machine *m, uint32_t program_stream, int64_t ns, dbo_error *err)
{
    const dbo_op_cost cost = {.fixed_ns = ns, .fixed_sms = 1};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, 0), .cost = &cost};
    SEAM_TRY(m->seam.device->launch(m->seam.device_self, m->rank.streams[program_stream], &op));
    return DBO_OK;
}

/* Allocates and at once frees: where would a block of this stream lie now? */
static dbo_status next_address(dbo_allocator *a, dbo_stream stream, uint64_t *out, dbo_error *err)
{
    dbo_block *block;
    DBO_TRY(dbo_allocator_alloc(a, stream, BLOCK_BYTES, &block, err));
    *out = dbo_block_address(block);
    return dbo_allocator_free(a, block, err);
}

static dbo_status streams_run(gpu_machine *m, dbo_allocator *a, test_line *line, dbo_error *err)
{
    dbo_stream compute = m->rank.streams[DBO_STREAM_COMPUTE];
    dbo_stream comm = m->rank.streams[DBO_STREAM_COMM];
    dbo_block *block;
    uint64_t during, after, polls = 0;
    DBO_TRY(dbo_allocator_alloc(a, compute, BLOCK_BYTES, &block, err));
    uint64_t address = dbo_block_address(block);
    DBO_TRY(hold(m, DBO_STREAM_COMM, HOLD_NS, err)); /* comm reads the block for 5 ms */
    DBO_TRY(dbo_allocator_record_stream(a, block, comm, err));
    DBO_TRY(dbo_allocator_free(a, block, err));
    DBO_TRY(next_address(a, compute, &during, err));
    int64_t begin = test_now_ns();
    do { /* the block comes back by event_query alone: nobody waits on the host */
        DBO_TRY(next_address(a, compute, &after, err));
        polls++;
    } while (after != address && test_now_ns() - begin < 10 * (int64_t)HOLD_NS);
    double waited_us = (double)(test_now_ns() - begin) / 1e3;
    if (during == address || after != address)
        return dbo_fail(err, DBO_INTERNAL, NULL, "The block was %s.",
                        during == address ? "reused while the comm stream read it"
                                          : "never reused");
    /* The classical mistake: the same without the announcement. */
    DBO_TRY(dbo_allocator_alloc(a, compute, BLOCK_BYTES, &block, err));
    address = dbo_block_address(block);
    DBO_TRY(hold(m, DBO_STREAM_COMM, HOLD_NS, err));
    DBO_TRY(dbo_allocator_free(a, block, err));
    DBO_TRY(next_address(a, compute, &during, err));
    test_say(line,
             "announced: not reused while comm held it, reused %.0f us later, after %llu "
             "allocations; not announced: %s",
             waited_us, (unsigned long long)polls,
             during == address ? "reused under the reader" : "not reused");
    if (during != address)
        return dbo_fail(err, DBO_INTERNAL, NULL, "An unannounced block was not reused at once.");
    DBO_TRY(gpu_sync(err));
    return dbo_allocator_check(a, err);
}

static dbo_status capture_run(gpu_machine *m, dbo_allocator *a, test_line *line, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_stream compute = m->rank.streams[DBO_STREAM_COMPUTE];
    dbo_stream comm = m->rank.streams[DBO_STREAM_COMM];
    dbo_allocator_stats stats;
    dbo_block *announced, *other;
    dbo_graph graph;
    dbo_pool pool;
    uint64_t during, after, outside;
    DBO_TRY(dbo_allocator_create_pool(a, &pool, err));
    SEAM_TRY(seam->graph->begin(seam->graph_self, compute));
    dbo_status refused = dbo_allocator_alloc(a, compute, BLOCK_BYTES, &other, NULL);
    DBO_TRY(dbo_allocator_enter_pool(a, pool, err));
    DBO_TRY(dbo_allocator_alloc(a, compute, BLOCK_BYTES, &announced, err)); /* a real cudaMalloc */
    uint64_t address = dbo_block_address(announced);
    DBO_TRY(hold(m, DBO_STREAM_COMPUTE, 1000, err));
    DBO_TRY(dbo_allocator_record_stream(a, announced, comm, err));
    DBO_TRY(dbo_allocator_free(a, announced, err));
    DBO_TRY(next_address(a, compute, &during, err));
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    SEAM_TRY(seam->graph->replay(seam->graph_self, graph, compute, 0));
    DBO_TRY(next_address(a, comm, &after, err)); /* records the put-off event */
    DBO_TRY(gpu_sync(err));
    DBO_TRY(next_address(a, compute, &after, err));
    dbo_allocator_leave_pool(a);
    DBO_TRY(next_address(a, compute, &outside, err));
    seam->graph->destroy(seam->graph_self, graph);
    DBO_TRY(dbo_allocator_release_pool(a, pool, err));
    DBO_TRY(dbo_allocator_check(a, err));
    dbo_allocator_get_stats(a, &stats);
    if (refused != DBO_REFUSED || during == address || outside == address || outside == during)
        return dbo_fail(err, DBO_INTERNAL, NULL, "A block of the capture was given out again.");
    test_say(line,
             "cudaMalloc inside the capture did not break it; general pool refused; %llu "
             "free put off and taken up after the capture (%s block again); outside the pool "
             "another address",
             (unsigned long long)stats.deferred,
             after == address || after == during ? "a cached" : "no cached");
    return DBO_OK;
}

static dbo_status cost_run(gpu_machine *m, dbo_allocator *a, test_line *line, dbo_error *err)
{
    const dbo_seam *seam = &m->seam;
    dbo_stream compute = m->rank.streams[DBO_STREAM_COMPUTE];
    dbo_block *block;
    uint64_t raw;
    dbo_event event;
    bool done;
    int64_t begin = test_now_ns();
    for (int i = 0; i < 20; i++) {
        SEAM_TRY(seam->mem->alloc(seam->mem_self, BLOCK_BYTES, DBO_SPACE_DEVICE, &raw));
        seam->mem->free(seam->mem_self, raw);
    }
    double raw_us = (double)(test_now_ns() - begin) / 1e3 / 20;
    begin = test_now_ns();
    for (int i = 0; i < PAIRS; i++) {
        DBO_TRY(dbo_allocator_alloc(a, compute, 4096 * (uint64_t)(1 + i % 64), &block, err));
        DBO_TRY(dbo_allocator_free(a, block, err));
    }
    double cached_ns = (double)(test_now_ns() - begin) / PAIRS;
    begin = test_now_ns();
    for (int i = 0; i < PAIRS; i++) {
        DBO_TRY(dbo_allocator_alloc(a, compute, 4096, &block, err));
        DBO_TRY(dbo_allocator_record_stream(a, block, m->rank.streams[DBO_STREAM_COMM], err));
        DBO_TRY(dbo_allocator_free(a, block, err));
    }
    double announced_ns = (double)(test_now_ns() - begin) / PAIRS;
    SEAM_TRY(seam->device->event_create(seam->device_self, &event));
    SEAM_TRY(seam->device->record(seam->device_self, event, compute));
    DBO_TRY(gpu_sync(err));
    begin = test_now_ns();
    for (int i = 0; i < QUERIES; i++)
        SEAM_TRY(seam->device->event_query(seam->device_self, event, &done));
    double query_ns = (double)(test_now_ns() - begin) / QUERIES;
    DBO_TRY(hold(m, DBO_STREAM_COMPUTE, 50000000, err));
    SEAM_TRY(seam->device->record(seam->device_self, event, compute));
    begin = test_now_ns();
    for (int i = 0; i < QUERIES / 10; i++)
        SEAM_TRY(seam->device->event_query(seam->device_self, event, &done));
    double busy_ns = (double)(test_now_ns() - begin) / (QUERIES / 10.0);
    test_say(line,
             "alloc + free: cudaMalloc %.0f us, cached %.0f ns, announced (record, query) "
             "%.0f ns; event_query: done %.0f ns, not done %.0f ns",
             raw_us, cached_ns, announced_ns, query_ns, busy_ns);
    return gpu_sync(err);
}

typedef dbo_status (*allocator_run)(gpu_machine *m, dbo_allocator *a, test_line *line,
                                    dbo_error *err);

static dbo_status with_allocator(allocator_run run, test_line *line, dbo_error *err)
{
    gpu_machine m;
    dbo_status status = DBO_NO_MEMORY;
    DBO_TRY(gpu_open(&m, &(gpu_options){0}, err));
    dbo_allocator *a = dbo_allocator_create(&m.seam, err);
    if (a)
        status = run(&m, a, line, err);
    dbo_allocator_destroy(a);
    gpu_close(&m);
    return status;
}

dbo_status cuda_allocator_streams(test_line *line, dbo_error *err)
{
    return with_allocator(streams_run, line, err);
}

dbo_status cuda_allocator_capture(test_line *line, dbo_error *err)
{
    return with_allocator(capture_run, line, err);
}

dbo_status cuda_allocator_cost(test_line *line, dbo_error *err)
{
    return with_allocator(cost_run, line, err);
}
