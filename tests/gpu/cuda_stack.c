/* cuda_stack.c: how much stack CUDA and NCCL want of a fiber when everything happens there for the
 * first time: making the context, loading kernels, a capture, its instantiation, a communicator.
 */
#include "gpu/nccl_a2a.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"

enum { COLD_STACK_BYTES = 1 << 20 };

typedef struct cold {
    dbo_fiber *runner, *fiber;
    test_line *line;
    dbo_error *err;
    dbo_status status;
} cold;

static void note(cold *c, const char *after)
{
    test_say(c->line, "%s %zu KiB, ", after, test_stack_touched() >> 10);
}

static dbo_status use_graph(cold *c, const dbo_seam *seam)
{
    const dbo_op_cost cost = {.fixed_ns = 1000, .fixed_sms = 1};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_SYNTHETIC, 0), .cost = &cost};
    dbo_stream stream;
    dbo_graph graph;
    DBO_TRY(seam->device->stream_create(seam->device_self, "compute", &stream));
    DBO_TRY(seam->device->launch(seam->device_self, stream, &op));
    note(c, "first launch");
    DBO_TRY(seam->graph->begin(seam->graph_self, stream));
    for (int i = 0; i < 100; i++)
        DBO_TRY(seam->device->launch(seam->device_self, stream, &op));
    DBO_TRY(seam->graph->end(seam->graph_self, &graph));
    DBO_TRY(seam->graph->replay(seam->graph_self, graph, stream, 0));
    note(c, "capture and replay");
    return DBO_OK;
}

static dbo_status use_nccl(cold *c, dbo_cuda *cuda)
{
    dbo_nccl_id id;
    DBO_TRY(dbo_nccl_make_id(&id, c->err));
    const dbo_nccl_config config = {
        .rank = 0, .size = 1, .communicators = 1, .ids = &id, .capacity_bytes = 4096};
    dbo_nccl *nccl = dbo_nccl_create(cuda, &config, c->err);
    if (!nccl)
        return DBO_DEVICE;
    note(c, "communicator");
    dbo_seam seam = {0};
    const dbo_a2a_cost cost = {.fixed_ns = -1, .tokens = 1, .topk = 1, .bytes_per_token = 4096};
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_DISPATCH, 0),
                               .previous = DBO_NO_EVENT,
                               .cost = &cost};
    dbo_a2a_handle handle;
    dbo_nccl_fill(nccl, &seam);
    dbo_status status = seam.a2a->post(seam.a2a_self, &args, &handle);
    if (status == DBO_OK)
        status = seam.a2a->finish(seam.a2a_self, handle, 0);
    note(c, "first transfer");
    dbo_nccl_destroy(nccl);
    return status;
}

static dbo_status use_everything(cold *c)
{
    dbo_seam seam = {0};
    note(c, "stack of a fiber touched: before");
    dbo_cuda *cuda = dbo_cuda_create(&(dbo_cuda_config){0}, c->err);
    if (!cuda)
        return DBO_DEVICE;
    note(c, "context and a kernel loaded");
    dbo_cuda_fill(cuda, &seam);
    dbo_status status = use_graph(c, &seam);
    if (status == DBO_OK)
        status = use_nccl(c, cuda);
    if (status != DBO_OK)
        dbo_cuda_last_failure(cuda, c->err);
    dbo_cuda_destroy(cuda);
    note(c, "all destroyed");
    return status;
}

static void cold_body(void *arg)
{
    cold *c = arg;
    c->status = use_everything(c);
    dbo_fiber_switch(c->fiber, c->runner);
}

dbo_status cuda_stack_cold(test_line *line, dbo_error *err)
{
    cold c = {.line = line, .err = err, .status = DBO_NO_MEMORY};
    dbo_fiber_pool *pool = dbo_fiber_pool_create(COLD_STACK_BYTES, 1, err);
    c.runner = dbo_fiber_adopt_thread(err);
    c.fiber = pool ? dbo_fiber_create(pool, cold_body, &c, err) : NULL;
    if (c.runner && c.fiber)
        dbo_fiber_switch(c.runner, c.fiber);
    test_say(line, "of %d", COLD_STACK_BYTES >> 10);
    dbo_fiber_destroy(c.fiber);
    dbo_fiber_destroy(c.runner);
    dbo_fiber_pool_destroy(pool);
    return c.status;
}
