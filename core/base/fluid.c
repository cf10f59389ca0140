/* fluid.c: progressive filling. Each round some resource is full, whose users stop there and take
 * what they use out of what is left; or nothing is, and the others go at full speed. */
#include "core/base/fluid.h"

#define RESOURCES DBO_FLUID_RESOURCES

/* Adds to what is asked for, and says whether all of it is there. */
static bool ask(dbo_fluid *fluid, const dbo_fluid_demand *more, const dbo_fluid_demand *less)
{
    bool crowded = false;
    for (uint32_t k = 0; k < RESOURCES; k++) {
        fluid->asked[k] += (uint64_t)more->of[k] - less->of[k];
        crowded |= fluid->asked[k] > fluid->capacity.of[k];
    }
    return !crowded;
}

/* Progressive filling. */
static void fill(dbo_fluid *fluid)
{
    uint64_t growing[RESOURCES]; /* asked for by those who grow */
    uint64_t left[RESOURCES], rates[RESOURCES];
    bool stopped[DBO_FLUID_MAX_JOBS] = {false};
    uint32_t num_growing = fluid->count;
    for (uint32_t k = 0; k < RESOURCES; k++) {
        growing[k] = fluid->asked[k];
        left[k] = (uint64_t)fluid->capacity.of[k] << DBO_FLUID_RATE_BITS;
    }
    while (num_growing > 0) {
        uint64_t rate = DBO_FLUID_FULL;
        for (uint32_t k = 0; k < RESOURCES; k++) {
            bool fits = growing[k] << DBO_FLUID_RATE_BITS <= left[k];
            rates[k] = fits ? DBO_FLUID_FULL : left[k] / growing[k];
            rate = rates[k] < rate ? rates[k] : rate;
        }
        for (uint32_t i = 0; i < fluid->count; i++)
            if (!stopped[i])
                fluid->jobs[i].rate = (uint32_t)(rate > 0 ? rate : 1);
        if (rate == DBO_FLUID_FULL)
            return;
        for (uint32_t i = 0; i < fluid->count; i++) {
            const dbo_fluid_job *job = &fluid->jobs[i];
            bool stops = false;
            for (uint32_t k = 0; k < RESOURCES; k++)
                stops = stops || (rates[k] == rate && job->demand.of[k] > 0);
            if (stopped[i] || !stops)
                continue;
            stopped[i] = true;
            num_growing--;
            for (uint32_t k = 0; k < RESOURCES; k++) {
                uint64_t used = (uint64_t)job->demand.of[k] * job->rate;
                growing[k] -= job->demand.of[k];
                left[k] -= used < left[k] ? used : left[k];
            }
        }
    }
}

static void set_rates(dbo_fluid *fluid, bool all_fit)
{
    bool was_crowded = fluid->crowded;
    fluid->crowded = !all_fit;
    if (!all_fit)
        fill(fluid);
    else if (was_crowded)
        for (uint32_t i = 0; i < fluid->count; i++)
            fluid->jobs[i].rate = DBO_FLUID_FULL;
}

static void advance(dbo_fluid *fluid, int64_t now_ns)
{
    uint64_t elapsed = (uint64_t)(now_ns - fluid->now_ns);
    fluid->now_ns = now_ns;
    if (elapsed == 0)
        return;
    for (uint32_t i = 0; i < fluid->count; i++) {
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

static const dbo_fluid_demand nothing;

bool dbo_fluid_begin(dbo_fluid *fluid, int64_t now_ns, uint32_t who, dbo_fluid_demand demand,
                     int64_t work_ns)
{
    uint32_t i = find(fluid, who);
    if (i == DBO_FLUID_MAX_JOBS)
        return false;
    advance(fluid, now_ns);
    dbo_fluid_job *job = &fluid->jobs[i];
    bool all_fit = ask(fluid, &demand, i < fluid->count ? &job->demand : &nothing);
    fluid->count += i == fluid->count;
    job->who = who;
    job->rate = DBO_FLUID_FULL;
    job->demand = demand;
    job->left =
        work_ns == DBO_FLUID_ENDLESS ? UINT64_MAX : (uint64_t)work_ns << DBO_FLUID_RATE_BITS;
    set_rates(fluid, all_fit);
    return true;
}

void dbo_fluid_end(dbo_fluid *fluid, int64_t now_ns, uint32_t who)
{
    uint32_t i = find(fluid, who);
    if (i == fluid->count)
        return;
    advance(fluid, now_ns);
    bool all_fit = ask(fluid, &nothing, &fluid->jobs[i].demand);
    for (fluid->count--; i < fluid->count; i++)
        fluid->jobs[i] = fluid->jobs[i + 1];
    set_rates(fluid, all_fit);
}
