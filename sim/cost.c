/* cost.c: see cost.h for the law. An op asks for at most 8 kernels, each a handful of divisions. */
#include "sim/cost.h"

#include "core/base/units.h"
#include "sim/collective.h"

#include <assert.h>

static double peak_flops_per_ns(const dbo_hardware *hardware, const dbo_op_part *part)
{
    double tflops = hardware->peak_tflops[part->dtype];
    /* Without fp8 units the weights are widened and the bf16 units compute. */
    if (tflops <= 0)
        tflops = hardware->peak_tflops[DBO_BF16];
    return tflops * 1000.0 * hardware->flop_efficiency[part->kind];
}

static uint32_t clamp_budget(const dbo_hardware *hardware, uint32_t sm_budget)
{
    return sm_budget == 0 || sm_budget > hardware->sms ? hardware->sms : sm_budget;
}

static double math_ns(const dbo_hardware *hardware, const dbo_op_part *part, uint32_t budget)
{
    assert(budget > 0 && "dbo_hardware_check asks for an SM");
    double per_sm = peak_flops_per_ns(hardware, part) / dbo_hardware_peak_sms(hardware);
    if (part->tiles == 0)
        return part->flops / (per_sm * budget);
    uint32_t waves = part->tiles / budget + (part->tiles % budget != 0);
    return waves * (part->flops / part->tiles) / per_sm;
}

static double memory_ns(const dbo_hardware *hardware, const dbo_op_part *part, uint32_t active)
{
    double saturating = dbo_hardware_peak_sms(hardware) * hardware->hbm_sm_fraction;
    double share = active < saturating ? active / saturating : 1.0;
    return part->hbm_bytes / (hardware->hbm_gbps * hardware->hbm_efficiency[part->kind] * share);
}

static uint32_t active_sms(const dbo_op_part *part, uint32_t budget)
{
    if (part->collective != DBO_COLLECTIVE_NONE)
        return DBO_COLLECTIVE_SMS < budget ? DBO_COLLECTIVE_SMS : budget;
    return part->tiles != 0 && part->tiles < budget ? part->tiles : budget;
}

double dbo_part_ns(const dbo_hardware *hardware, const dbo_op_part *part, uint32_t sm_budget)
{
    if (part->collective != DBO_COLLECTIVE_NONE) /* its latency is a kernel's */
        return dbo_collective_ns(hardware, part);
    uint32_t budget = clamp_budget(hardware, sm_budget);
    double memory = memory_ns(hardware, part, active_sms(part, budget));
    double math = part->flops > 0 ? math_ns(hardware, part, budget) : 0;
    return hardware->kernel_ns + (math > memory ? math : memory);
}

void dbo_cost_ns(const dbo_hardware *hardware, const dbo_op_cost *cost, uint32_t sm_budget,
                 dbo_op_time *out)
{
    uint32_t budget = clamp_budget(hardware, sm_budget);
    if (cost->fixed_ns >= 0) {
        uint32_t sms = cost->fixed_sms < budget ? cost->fixed_sms : budget;
        *out = (dbo_op_time){.ns = cost->fixed_ns, .sms = sms};
        return;
    }
    double ns = 0, bytes = 0;
    uint32_t sms = 0;
    for (uint32_t i = 0; i < cost->num_parts; i++) {
        const dbo_op_part *part = &cost->parts[i];
        uint32_t active = active_sms(part, budget);
        ns += dbo_part_ns(hardware, part, budget);
        bytes += part->hbm_bytes;
        sms = active > sms ? active : sms;
    }
    /* bytes per ns is GB/s; a draw above the memory's own cannot come out. */
    double mbps = ns > 0 ? bytes / ns * 1000.0 : 0;
    *out = (dbo_op_time){.ns = dbo_round_ns(ns), .sms = sms, .hbm_mbps = (uint32_t)mbps};
}
