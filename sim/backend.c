/* backend.c: the simulator as one back end among others (core/rank/backend.h). */
#include "sim/sim.h"

static dbo_status open(const dbo_backend_options *o, void **self, dbo_error *err)
{
    const dbo_sim_options options = {
        .hardware = o->hardware,
        .num_ranks = o->num_ranks,
        .num_classes = o->num_classes,
        .class_of = o->class_of,
        .ep_size = o->ep_size,
        .gpus_per_domain = o->gpus_per_domain,
        .transport = o->low_latency ? DBO_SIM_LL : DBO_SIM_HT,
        .contexts = o->contexts,
        .queue_depth = o->queue_depth,
        .exchange_ns = o->exchange_ns,
        .numeric = o->numeric,
        .trace = o->trace,
        .trace_self = o->trace_self,
        .cancelled = o->cancelled,
        .cancelled_arg = o->cancelled_arg,
    };
    if (o->group)
        return dbo_fail(err, DBO_UNSUPPORTED, "Run them in one process.",
                        "ranks of several processes cannot be simulated together");
    dbo_error own = {0};
    *self = dbo_sim_create(&options, &own);
    return *self ? DBO_OK : dbo_error_pass(err, &own);
}

static dbo_status fill(void *self, uint32_t rank, dbo_seam *out, dbo_error *err)
{
    (void)err;
    dbo_sim_seam(self, rank, out);
    return DBO_OK;
}

static dbo_status run(void *self, dbo_rank_main main, void *arg, dbo_error *err)
{
    return dbo_sim_run(self, main, arg, err);
}

static dbo_fiber_pool *pool(void *self)
{
    return dbo_sim_pool(self);
}

static void delay(void *self, uint32_t rank, int64_t ns)
{
    dbo_sim_delay(self, rank, ns);
}

static int64_t now_ns(void *self)
{
    return dbo_sim_now_ns(self);
}

static uint32_t graph_nodes(void *self, uint32_t rank, dbo_graph graph)
{
    return dbo_sim_graph_nodes(self, rank, graph);
}

static void close(void *self)
{
    dbo_sim_destroy(self);
}

const dbo_backend *dbo_sim_backend(void)
{
    static const dbo_backend backend = {
        .api_version = DBO_BACKEND_API,
        .name = "sim",
        .simulated = true,
        .open = open,
        .fill = fill,
        .run = run,
        .pool = pool,
        .delay = delay,
        .now_ns = now_ns,
        .graph_nodes = graph_nodes,
        .close = close,
    };
    return &backend;
}
