/* fluid.c: progressive filling. Each round some resource is full, whose users stop there and take
 * what they use out of what is left; or nothing is, and the others go at full speed. */
#include "core/base/fluid.h"

#define RESOURCES DBO_FLUID_RESOURCES

#define USUAL 2u /* most jobs ask for nothing of resources from here on */

static inline uint32_t last_asked(const dbo_fluid_demand *demand)
{
    uint32_t more = 0;
    for (uint32_t k = USUAL; k < RESOURCES; k++)
        more |= demand->of[k];
    return more != 0 ? RESOURCES : USUAL;
}

/* Adds to what is asked for, and notes of which resources that is too much. */
static void ask(dbo_fluid *fluid, const dbo_fluid_demand *more, const dbo_fluid_demand *less)
{
    uint32_t crowded = fluid->crowded, count = last_asked(more);
    if (count < RESOURCES)
        count = last_asked(less);
    for (uint32_t k = 0; k < count; k++) {
        fluid->asked[k] += (uint64_t)more->of[k] - less->of[k];
        crowded &= ~(1u << k);
        crowded |= (uint32_t)(fluid->asked[k] > fluid->capacity.of[k]) << k;
    }
    fluid->crowded = crowded;
}

/* Who grows stops at the rate if it uses a resource that is full there. */
static bool must_stop(const dbo_fluid_job *job, const uint32_t *tight, const uint64_t *rates,
                      uint32_t num_tight, uint64_t rate)
{
    bool stops = false;
    for (uint32_t t = 0; t < num_tight; t++)
        stops = stops || (rates[t] == rate && job->demand.of[tight[t]] > 0);
    return stops;
}

/* Progressive filling, of crowded resources: no other one bounds anybody. */
static void fill(dbo_fluid *fluid)
{
    uint64_t growing[RESOURCES]; /* asked for by those who grow */
    uint64_t left[RESOURCES], rates[RESOURCES];
    uint32_t tight[RESOURCES], num_tight = 0, num_growing = fluid->count;
    bool stopped[DBO_FLUID_MAX_JOBS] = {false};
    for (uint32_t k = 0; k < RESOURCES; k++)
        if (fluid->crowded >> k & 1) {
            growing[num_tight] = fluid->asked[k];
            left[num_tight] = (uint64_t)fluid->capacity.of[k] << DBO_FLUID_RATE_BITS;
            tight[num_tight++] = k;
        }
    while (num_growing > 0) {
        uint64_t rate = DBO_FLUID_FULL;
        for (uint32_t t = 0; t < num_tight; t++) {
            bool fits = growing[t] << DBO_FLUID_RATE_BITS <= left[t];
            rates[t] = fits ? DBO_FLUID_FULL : left[t] / growing[t];
            rate = rates[t] < rate ? rates[t] : rate;
        }
        for (uint32_t i = 0; i < fluid->count; i++)
            if (!stopped[i])
                fluid->jobs[i].rate = (uint32_t)(rate > 0 ? rate : 1);
        if (rate == DBO_FLUID_FULL)
            return;
        for (uint32_t i = 0; i < fluid->count; i++) {
            const dbo_fluid_job *job = &fluid->jobs[i];
            if (stopped[i] || !must_stop(job, tight, rates, num_tight, rate))
                continue;
            stopped[i] = true;
            num_growing--;
            for (uint32_t t = 0; t < num_tight; t++) {
                uint64_t used = (uint64_t)job->demand.of[tight[t]] * job->rate;
                growing[t] -= job->demand.of[tight[t]];
                left[t] -= used < left[t] ? used : left[t];
            }
        }
    }
}

static void set_rates(dbo_fluid *fluid, uint32_t was_crowded)
{
    if (fluid->crowded != 0)
        fill(fluid);
    else if (was_crowded != 0)
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
    uint32_t was_crowded = fluid->crowded;
    ask(fluid, &demand, i < fluid->count ? &job->demand : &nothing);
    fluid->count += i == fluid->count;
    job->who = who;
    job->rate = DBO_FLUID_FULL;
    job->demand = demand;
    job->left =
        work_ns == DBO_FLUID_ENDLESS ? UINT64_MAX : (uint64_t)work_ns << DBO_FLUID_RATE_BITS;
    set_rates(fluid, was_crowded);
    return true;
}

void dbo_fluid_end(dbo_fluid *fluid, int64_t now_ns, uint32_t who)
{
    uint32_t i = find(fluid, who);
    if (i == fluid->count)
        return;
    advance(fluid, now_ns);
    uint32_t was_crowded = fluid->crowded;
    ask(fluid, &nothing, &fluid->jobs[i].demand);
    for (fluid->count--; i < fluid->count; i++)
        fluid->jobs[i] = fluid->jobs[i + 1];
    set_rates(fluid, was_crowded);
}
