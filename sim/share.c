/* share.c: heads of streams as jobs of their GPU. */
#include "sim/meet_impl.h"
#include "sim/share_impl.h"
#include "sim/world_impl.h"

/* Who waits for peers (endless) holds SMs and moves nothing. */
static dbo_fluid_demand demand_of(dbo_sim *sim, sim_stream *s, int64_t ns)
{
    if (s->number == DBO_NETWORK_STREAM)
        return dbo_sim_ports_of(sim, s);
    const sim_item *item = sim_head(s);
    dbo_fluid_demand demand = {{0}};
    if (item->flows && ns != DBO_FLUID_ENDLESS)
        demand = dbo_sim_ports_of(sim, s);
    demand.of[SIM_SMS] = item->sms;
    demand.of[SIM_HBM] = item->kind == SIM_OP ? item->hbm_mbps : 0;
    return demand;
}

/* Job number i ends then, as far as is known. */
static inline void schedule_end(dbo_sim *sim, const dbo_fluid *gpu, uint32_t i)
{
    sim_stream *s = &sim->streams[gpu->jobs[i].who];
    if (s->state == SIM_STARTING)
        return; /* holds its SMs until `due`, when it starts to move bytes */
    int64_t end_ns = dbo_fluid_end_ns(gpu, i);
    int64_t due = end_ns == DBO_FLUID_ENDLESS ? -1 : end_ns;
    if (due == s->due)
        return;
    s->due = due;
    if (due >= 0)
        dbo_sim_schedule(sim, due, gpu->jobs[i].who);
}

/* Rates have changed: each job ends at another time. */
static void schedule_ends(dbo_sim *sim, const dbo_fluid *gpu)
{
    for (uint32_t i = 0; i < gpu->count; i++)
        schedule_end(sim, gpu, i);
}

/* Where nothing is crowded, before and after, all others go on at full speed. */
static void begin(dbo_sim *sim, uint32_t stream, int64_t ns)
{
    sim_stream *s = &sim->streams[stream];
    dbo_fluid *gpu = &sim->ranks[s->rank].gpu;
    bool changes = gpu->crowded != 0, is_new = !s->shares;
    if (!dbo_fluid_begin(gpu, sim->now_ns, stream, demand_of(sim, s, ns), ns)) {
        dbo_sim_fail(sim, DBO_LIMIT, "more than %d kernels and flows run on rank %u at once",
                     DBO_FLUID_MAX_JOBS, s->rank);
        return;
    }
    s->shares = true;
    s->due = -1;
    if (is_new && !changes && gpu->crowded == 0)
        schedule_end(sim, gpu, gpu->count - 1);
    else
        schedule_ends(sim, gpu);
}

static void end(dbo_sim *sim, uint32_t stream)
{
    sim_stream *s = &sim->streams[stream];
    dbo_fluid *gpu = &sim->ranks[s->rank].gpu;
    bool changes = gpu->crowded != 0;
    dbo_fluid_end(gpu, sim->now_ns, stream);
    s->shares = false;
    if (changes)
        schedule_ends(sim, gpu);
}

/* A flow that has the ports to itself goes at full speed, and is no job until another comes. */
static void end_solitude(dbo_sim *sim, sim_rank *rank)
{
    uint32_t lane = rank->alone;
    rank->alone = SIM_NONE;
    if (lane != SIM_NONE)
        begin(sim, lane, sim->streams[lane].due - sim->now_ns);
}

void dbo_sim_share_begin(dbo_sim *sim, uint32_t stream, int64_t ns)
{
    sim_stream *s = &sim->streams[stream];
    sim_rank *rank = &sim->ranks[s->rank];
    bool lane = s->number == DBO_NETWORK_STREAM;
    if (sim->options.transport == DBO_SIM_LL && lane && rank->num_flows++ == 0) {
        rank->alone = stream;
        s->due = sim->now_ns + ns;
        dbo_sim_schedule(sim, s->due, stream);
        return;
    }
    if (lane)
        end_solitude(sim, rank);
    begin(sim, stream, ns);
}

void dbo_sim_share_end(dbo_sim *sim, uint32_t stream)
{
    const sim_stream *s = &sim->streams[stream];
    sim_rank *rank = &sim->ranks[s->rank];
    rank->num_flows -= s->number == DBO_NETWORK_STREAM && sim->options.transport == DBO_SIM_LL;
    if (rank->alone == stream)
        rank->alone = SIM_NONE;
    else
        end(sim, stream);
}
