/* fluid.c: the kernels that run on one GPU share its SMs and its memory bandwidth.
 *
 * Each kernel has a rate, at most 1 (its speed alone), and uses rate * sms SMs and rate * mbps of
 * bandwidth. Rates are max-min fair: all grow together until a resource is full, its users stop
 * there, the others grow on. Rates change only when a kernel begins or ends. Fixed point with 16
 * fractional bits, integers only: the same on every machine. Complexity: running kernels squared,
 * and there are a handful.
 */
#include "sim/sim_impl.h"

#define FOREVER UINT64_MAX

static uint64_t sms_of(dbo_sim *sim, uint32_t stream)
{
    return sim_head(&sim->streams[stream])->sms;
}

static uint64_t mbps_of(dbo_sim *sim, uint32_t stream)
{
    const sim_item *head = sim_head(&sim->streams[stream]);
    return head->kind == SIM_OP ? head->hbm_mbps : 0;
}

static void progress(dbo_sim *sim, sim_gpu *gpu)
{
    uint64_t elapsed = (uint64_t)(sim->now_ns - gpu->updated_ns);
    gpu->updated_ns = sim->now_ns;
    for (uint32_t i = 0; i < gpu->num_running && elapsed > 0; i++) {
        sim_stream *s = &sim->streams[gpu->running[i]];
        uint64_t done = elapsed * s->rate;
        if (s->remaining != FOREVER)
            s->remaining = done < s->remaining ? s->remaining - done : 0;
    }
}

typedef uint64_t (*demand_fn)(dbo_sim *sim, uint32_t stream);

/* The rate, at most 1, at which the growing kernels fill a resource. */
static uint64_t filling_rate(dbo_sim *sim, const sim_gpu *gpu, const bool *frozen, demand_fn demand,
                             uint64_t capacity)
{
    uint64_t growing = 0, used = 0;
    for (uint32_t i = 0; i < gpu->num_running; i++) {
        uint64_t d = demand(sim, gpu->running[i]);
        if (frozen[i])
            used += d * sim->streams[gpu->running[i]].rate;
        else
            growing += d;
    }
    if (growing == 0)
        return SIM_RATE_ONE;
    uint64_t left = capacity * SIM_RATE_ONE > used ? capacity * SIM_RATE_ONE - used : 0;
    uint64_t rate = left / growing;
    return rate < SIM_RATE_ONE ? rate : SIM_RATE_ONE;
}

static void freeze_users(dbo_sim *sim, const sim_gpu *gpu, bool *frozen, demand_fn demand)
{
    for (uint32_t i = 0; i < gpu->num_running; i++)
        frozen[i] = frozen[i] || demand(sim, gpu->running[i]) > 0;
}

static void set_rates(dbo_sim *sim, const sim_gpu *gpu)
{
    const dbo_hardware *hw = sim->options.hardware;
    uint64_t sms = hw ? hw->sms : SIM_DEFAULT_SMS;
    uint64_t mbps = hw ? (uint64_t)(hw->hbm_gbps * 1000) : UINT32_MAX;
    bool frozen[SIM_MAX_RUNNING] = {false};
    for (int round = 0; round < 3; round++) {
        uint64_t by_sms = filling_rate(sim, gpu, frozen, sms_of, sms);
        uint64_t by_hbm = filling_rate(sim, gpu, frozen, mbps_of, mbps);
        uint64_t rate = by_sms < by_hbm ? by_sms : by_hbm;
        for (uint32_t i = 0; i < gpu->num_running; i++)
            if (!frozen[i])
                sim->streams[gpu->running[i]].rate = (uint32_t)(rate > 0 ? rate : 1);
        if (rate == SIM_RATE_ONE)
            return;
        if (by_sms == rate)
            freeze_users(sim, gpu, frozen, sms_of);
        if (by_hbm == rate)
            freeze_users(sim, gpu, frozen, mbps_of);
    }
}

static void rebalance(dbo_sim *sim, sim_gpu *gpu)
{
    set_rates(sim, gpu);
    for (uint32_t i = 0; i < gpu->num_running; i++) {
        sim_stream *s = &sim->streams[gpu->running[i]];
        if (s->state == SIM_STARTING)
            continue; /* holds its SMs until `due`, when it starts to move bytes */
        int64_t due = s->remaining == FOREVER
                          ? -1
                          : sim->now_ns + (int64_t)((s->remaining + s->rate - 1) / s->rate);
        if (due == s->due)
            continue;
        s->due = due;
        if (due >= 0)
            dbo_sim_schedule(sim, due, gpu->running[i]);
    }
}

void dbo_sim_share_begin(dbo_sim *sim, uint32_t stream, int64_t ns)
{
    sim_stream *s = &sim->streams[stream];
    sim_gpu *gpu = &sim->ranks[s->rank].gpu;
    progress(sim, gpu);
    if (!s->shares && gpu->num_running == SIM_MAX_RUNNING) {
        dbo_sim_fail(sim, DBO_LIMIT, "more than %d kernels run on rank %u at once", SIM_MAX_RUNNING,
                     s->rank);
        return;
    }
    if (!s->shares)
        gpu->running[gpu->num_running++] = stream;
    s->shares = true;
    s->rate = SIM_RATE_ONE;
    s->remaining = ns == INT64_MAX ? FOREVER : (uint64_t)ns * SIM_RATE_ONE;
    s->due = -1;
    rebalance(sim, gpu);
}

void dbo_sim_share_end(dbo_sim *sim, uint32_t stream)
{
    sim_stream *s = &sim->streams[stream];
    sim_gpu *gpu = &sim->ranks[s->rank].gpu;
    progress(sim, gpu);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < gpu->num_running; i++)
        if (gpu->running[i] != stream)
            gpu->running[kept++] = gpu->running[i];
    gpu->num_running = kept;
    s->shares = false;
    rebalance(sim, gpu);
}
