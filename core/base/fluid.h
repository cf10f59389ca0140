/* fluid.h: jobs that share resources, as fluids do pipes.
 *
 * A job is so many ns of work, and asks for so much of each resource while it goes at full speed;
 * at a rate of a half it uses half of that. Rates are max-min fair: all grow together until a
 * resource is full, whoever uses it stops there, the others grow on, up to full speed. They change
 * only when a job begins or ends. Fixed point with 16 fractional bits, integers only: the same on
 * every machine. Whatever runs gets on: a rate is at least one unit, so together with more than
 * 2^16 times the capacity asked for, a little more than all of it is in use.
 *
 *     dbo_fluid gpu;
 *     dbo_fluid_init(&gpu, (dbo_fluid_demand){{132, 3350000}});   // SMs, MB/s
 *     dbo_fluid_begin(&gpu, now_ns, stream, (dbo_fluid_demand){{100, 0}}, 5000);
 *     for (uint32_t i = 0; i < gpu.count; i++)
 *         look_at(gpu.jobs[i].who, dbo_fluid_end_ns(&gpu, i));    // unless something changes
 *     dbo_fluid_end(&gpu, end_ns, stream);
 *
 * Plain data, owned by whoever embeds it. O(jobs) a change and resource of which too much is asked.
 */
#ifndef DBO_FLUID_H
#define DBO_FLUID_H

#include <stdbool.h>
#include <stdint.h>

#define DBO_FLUID_RESOURCES 6
#define DBO_FLUID_MAX_JOBS  32
#define DBO_FLUID_RATE_BITS 16
#define DBO_FLUID_FULL      (1u << DBO_FLUID_RATE_BITS) /* the rate of a job alone */
#define DBO_FLUID_ENDLESS   INT64_MAX /* work: it holds what it asks for until somebody ends it */

typedef struct dbo_fluid_demand {
    uint32_t of[DBO_FLUID_RESOURCES];
} dbo_fluid_demand;

typedef struct dbo_fluid_job {
    uint32_t who;  /* the caller's number */
    uint32_t rate; /* 1 to DBO_FLUID_FULL */
    dbo_fluid_demand demand;
    uint64_t left; /* work << DBO_FLUID_RATE_BITS; UINT64_MAX: endless */
} dbo_fluid_job;

typedef struct dbo_fluid {
    dbo_fluid_demand capacity;
    uint32_t count;
    uint64_t asked[DBO_FLUID_RESOURCES];    /* by all jobs together */
    uint32_t crowded;                       /* bit k: more is asked of resource k than there is */
    int64_t now_ns;                         /* of the last change */
    dbo_fluid_job jobs[DBO_FLUID_MAX_JOBS]; /* in the order of their beginning */
} dbo_fluid;

void dbo_fluid_init(dbo_fluid *fluid, dbo_fluid_demand capacity);

/* A job begins; one that `who` has already gets this demand and work instead. now_ns never goes
 * back; work is from 0 to below 2^47 ns (39 hours), or endless. False: there are
 * DBO_FLUID_MAX_JOBS.
 */
bool dbo_fluid_begin(dbo_fluid *fluid, int64_t now_ns, uint32_t who, dbo_fluid_demand demand,
                     int64_t work_ns);
/* It ends, whatever is left of it; nothing if `who` has none. */
void dbo_fluid_end(dbo_fluid *fluid, int64_t now_ns, uint32_t who);

/* When job number i will have done its work if nothing begins or ends before: rounded up to whole
 * ns; DBO_FLUID_ENDLESS if it never will. */
static inline int64_t dbo_fluid_end_ns(const dbo_fluid *fluid, uint32_t i)
{
    const dbo_fluid_job *job = &fluid->jobs[i];
    if (job->left == UINT64_MAX)
        return DBO_FLUID_ENDLESS;
    uint64_t ns = job->rate == DBO_FLUID_FULL
                      ? (job->left + (DBO_FLUID_FULL - 1)) >> DBO_FLUID_RATE_BITS
                      : (job->left + job->rate - 1) / job->rate;
    return fluid->now_ns + (int64_t)ns;
}

/* The rate at which jobs that ask for `asked` together fill a capacity: at most full speed. */
static inline uint64_t dbo_fluid_rate(uint64_t asked, uint64_t capacity)
{
    return asked > capacity ? (capacity << DBO_FLUID_RATE_BITS) / asked : DBO_FLUID_FULL;
}

#endif
