/* fluid.c: progressive filling. Each round some resource is full, or all go at full speed; whoever
 * uses a full one keeps its rate. So there are at most as many rounds as resources, and one. */
#include "core/base/fluid.h"

/* The rate at which those that still grow fill the resource. */
static uint64_t filling_rate(const dbo_fluid *fluid, const bool *frozen, uint32_t resource)
{
    uint64_t growing = 0, used = 0;
    uint64_t capacity = fluid->capacity.of[resource] * DBO_FLUID_FULL;
    for (uint32_t i = 0; i < fluid->count; i++) {
        const dbo_fluid_job *job = &fluid->jobs[i];
        if (frozen[i])
            used += job->demand.of[resource] * job->rate;
        else
            growing += job->demand.of[resource];
    }
    if (growing == 0)
        return DBO_FLUID_FULL;
    uint64_t rate = (capacity > used ? capacity - used : 0) / growing;
    return rate < DBO_FLUID_FULL ? rate : DBO_FLUID_FULL;
}

static void set_rates(dbo_fluid *fluid)
{
    bool frozen[DBO_FLUID_MAX_JOBS] = {false};
    for (uint32_t round = 0; round <= DBO_FLUID_RESOURCES; round++) {
        uint64_t rates[DBO_FLUID_RESOURCES], rate = DBO_FLUID_FULL;
        for (uint32_t k = 0; k < DBO_FLUID_RESOURCES; k++) {
            rates[k] = filling_rate(fluid, frozen, k);
            rate = rates[k] < rate ? rates[k] : rate;
        }
        for (uint32_t i = 0; i < fluid->count; i++)
            if (!frozen[i])
                fluid->jobs[i].rate = (uint32_t)(rate > 0 ? rate : 1);
        if (rate == DBO_FLUID_FULL)
            return;
        for (uint32_t i = 0; i < fluid->count; i++)
            for (uint32_t k = 0; k < DBO_FLUID_RESOURCES; k++)
                frozen[i] = frozen[i] || (rates[k] == rate && fluid->jobs[i].demand.of[k] > 0);
    }
}

static void advance(dbo_fluid *fluid, int64_t now_ns)
{
    uint64_t elapsed = (uint64_t)(now_ns - fluid->now_ns);
    fluid->now_ns = now_ns;
    for (uint32_t i = 0; i < fluid->count && elapsed > 0; i++) {
        dbo_fluid_job *job = &fluid->jobs[i];
        uint64_t done = elapsed * job->rate;
        if (job->left != UINT64_MAX)
            job->left = done < job->left ? job->left - done : 0;
    }
}

static uint32_t find(const dbo_fluid *fluid, uint32_t who)
{
    uint32_t i = 0;
    while (i < fluid->count && fluid->jobs[i].who != who)
        i++;
    return i;
}

void dbo_fluid_init(dbo_fluid *fluid, dbo_fluid_demand capacity)
{
    *fluid = (dbo_fluid){.capacity = capacity};
}

bool dbo_fluid_begin(dbo_fluid *fluid, int64_t now_ns, uint32_t who, dbo_fluid_demand demand,
                     int64_t work_ns)
{
    uint32_t i = find(fluid, who);
    if (i == DBO_FLUID_MAX_JOBS)
        return false;
    advance(fluid, now_ns);
    fluid->count += i == fluid->count;
    fluid->jobs[i] = (dbo_fluid_job){.who = who,
                                     .demand = demand,
                                     .left = work_ns == DBO_FLUID_ENDLESS
                                                 ? UINT64_MAX
                                                 : (uint64_t)work_ns << DBO_FLUID_RATE_BITS};
    set_rates(fluid);
    return true;
}

void dbo_fluid_end(dbo_fluid *fluid, int64_t now_ns, uint32_t who)
{
    uint32_t i = find(fluid, who);
    if (i == fluid->count)
        return;
    advance(fluid, now_ns);
    for (fluid->count--; i < fluid->count; i++)
        fluid->jobs[i] = fluid->jobs[i + 1];
    set_rates(fluid);
}
