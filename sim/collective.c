/* collective.c: see collective.h. Constants are fitted to measured collectives (docs/model.md). */
#include "sim/collective.h"

#define ONE_SHOT_NS   4300.0
#define ONE_SHOT_RATE 0.51 /* of nvlink_gbps, as all rates here */
#define TWO_SHOT_NS   7200.0
#define TWO_SHOT_RATE 0.65
#define MOST_CUSTOM   8u /* GPUs */

typedef struct protocols {
    double soon_ns, soon_gpu_ns, soon_rate; /* low latency: so long, and so long for each GPU */
    double fast_ns, fast_rate;
} protocols;

static const protocols reduce = {3600, 1550, 0.46, 32000, 0.90};
static const protocols gather = {4400, 800, 0.33, 22400, 0.81};

static double sooner(double a, double b)
{
    return a < b ? a : b;
}

static double nccl_ns(const dbo_hardware *hardware, const protocols *p, double gpus, double bytes,
                      double most_gbps)
{
    double scale = hardware->collective_scale;
    double soon = sooner(hardware->nvlink_gbps * p->soon_rate, most_gbps);
    double fast = sooner(hardware->nvlink_gbps * p->fast_rate, most_gbps);
    return sooner(scale * (p->soon_ns + p->soon_gpu_ns * gpus) + bytes / soon,
                  scale * p->fast_ns + bytes / fast);
}

/* The serving engine's own all-reduce kernels. */
static double custom_ns(const dbo_hardware *hardware, double gpus, double bytes, double crossing)
{
    double scale = hardware->collective_scale, nvlink = hardware->nvlink_gbps;
    return sooner(scale * ONE_SHOT_NS + bytes * (gpus - 1) / (nvlink * ONE_SHOT_RATE),
                  scale * TWO_SHOT_NS + crossing / (nvlink * TWO_SHOT_RATE));
}

double dbo_collective_ns(const dbo_hardware *hardware, const dbo_op_part *part)
{
    bool reduces = part->collective == DBO_COLLECTIVE_ALL_REDUCE;
    uint32_t near = hardware->gpus_per_domain / part->apart; /* of the group in a domain */
    double gpus = part->gpus, bytes = part->hbm_bytes;
    double crossing = bytes * (gpus - 1) / gpus * (reduces ? 2 : 1);
    if (part->gpus < 2)
        return 0;
    if (near == 0)
        near = 1;
    bool joined = part->gpus <= near;
    double most_gbps = joined ? hardware->nvlink_gbps : near * hardware->nic_gbps;
    double ns = nccl_ns(hardware, reduces ? &reduce : &gather, gpus, crossing, most_gbps);
    if (reduces && joined && part->gpus <= MOST_CUSTOM)
        ns = sooner(ns, custom_ns(hardware, gpus, bytes, crossing));
    return ns;
}
