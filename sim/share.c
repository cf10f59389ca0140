/* share.c: heads of streams as jobs of their GPU. */
#include "sim/share_impl.h"
#include "sim/world_impl.h"

static dbo_fluid_demand demand_of(const sim_item *item)
{
    return (dbo_fluid_demand){{item->sms, item->kind == SIM_OP ? item->hbm_mbps : 0}};
}

/* Rates have changed: each head ends at another time. */
static void schedule_ends(dbo_sim *sim, const dbo_fluid *gpu)
{
    for (uint32_t i = 0; i < gpu->count; i++) {
        sim_stream *s = &sim->streams[gpu->jobs[i].who];
        if (s->state == SIM_STARTING)
            continue; /* holds its SMs until `due`, when it starts to move bytes */
        int64_t end_ns = dbo_fluid_end_ns(gpu, i);
        int64_t due = end_ns == DBO_FLUID_ENDLESS ? -1 : end_ns;
        if (due == s->due)
            continue;
        s->due = due;
        if (due >= 0)
            dbo_sim_schedule(sim, due, gpu->jobs[i].who);
    }
}

void dbo_sim_share_begin(dbo_sim *sim, uint32_t stream, int64_t ns)
{
    sim_stream *s = &sim->streams[stream];
    dbo_fluid *gpu = &sim->ranks[s->rank].gpu;
    if (!dbo_fluid_begin(gpu, sim->now_ns, stream, demand_of(sim_head(s)), ns)) {
        dbo_sim_fail(sim, DBO_LIMIT, "more than %d kernels run on rank %u at once",
                     DBO_FLUID_MAX_JOBS, s->rank);
        return;
    }
    s->shares = true;
    s->due = -1;
    schedule_ends(sim, gpu);
}

void dbo_sim_share_end(dbo_sim *sim, uint32_t stream)
{
    sim_stream *s = &sim->streams[stream];
    dbo_fluid *gpu = &sim->ranks[s->rank].gpu;
    dbo_fluid_end(gpu, sim->now_ns, stream);
    s->shares = false;
    schedule_ends(sim, gpu);
}
