/* cost_probe.c: each op and transfer costed once more, alone and with all SMs (cost_probe.h). */
#include "lab/world/cost_probe.h"

#include "sim/cost.h"
#include "sim/fabric.h"

#include <string.h>

/* The share of an op's time in which its weights are read, at the memory's speed. */
static double weight_ns(const dbo_hardware *hardware, const dbo_op_cost *cost)
{
    double ns = 0;
    for (uint32_t i = 0; cost->fixed_ns < 0 && i < cost->num_parts; i++) {
        const dbo_op_part *part = &cost->parts[i];
        double whole_ns = dbo_part_ns(hardware, part, 0);
        double read_ns =
            part->weight_bytes / (hardware->hbm_gbps * hardware->hbm_efficiency[part->kind]);
        ns += read_ns < whole_ns ? read_ns : whole_ns;
    }
    return ns;
}

static dbo_status launch(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    const dbo_op *op = call->in;
    dbo_op_time budget, whole;
    dbo_cost_ns(probe->hardware, op->cost, probe->compute_sms, &budget);
    probe->sums.op_ns += budget.ns;
    if (probe->compute_sms > 0) {
        dbo_cost_ns(probe->hardware, op->cost, 0, &whole);
        probe->sums.sm_ns += budget.ns - whole.ns;
    }
    probe->sums.weight_ns += (int64_t)weight_ns(probe->hardware, op->cost);
    return DBO_OK;
}

static dbo_status set_compute_sms(dbo_tap *tap, dbo_tap_call *call)
{
    ((dbo_cost_probe *)tap->self)->compute_sms = call->number;
    return DBO_OK;
}

static void set_comm_sms(dbo_tap *tap, dbo_tap_call *call)
{
    ((dbo_cost_probe *)tap->self)->comm_sms = call->number;
}

static dbo_status post(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    const dbo_a2a_args *args = call->in;
    dbo_a2a_caps caps;
    tap->below.a2a->caps(tap->below.a2a_self, &caps);
    if (caps.has_hook) {
        dbo_ll_time time;
        dbo_fabric_ll(probe->hardware, probe->ep_size, probe->gpus_per_node, args->cost,
                      args->direction, &time);
        probe->sums.comm_ns += time.flight_ns + time.recv_ns;
    } else {
        dbo_ht_time time;
        dbo_fabric_ht(probe->hardware, probe->ep_size, probe->gpus_per_node, args->cost,
                      args->direction, probe->comm_sms, &time);
        probe->sums.comm_ns += time.ns;
    }
    return DBO_OK;
}

static const dbo_tap_hooks hooks = {
    .before =
        {[DBO_TAP_LAUNCH] = launch, [DBO_TAP_COMPUTE_SMS] = set_compute_sms, [DBO_TAP_POST] = post},
    .after = {[DBO_TAP_A2A_SMS] = set_comm_sms},
    .counts_charges = true};

void dbo_cost_probe_wrap(dbo_cost_probe *probe, dbo_seam *seam, const dbo_hardware *hardware,
                         uint32_t ep_size, uint32_t gpus_per_node)
{
    *probe =
        (dbo_cost_probe){.hardware = hardware, .ep_size = ep_size, .gpus_per_node = gpus_per_node};
    dbo_cost_probe_reset(probe, false);
    dbo_tap_wrap(&probe->tap, &hooks, probe, seam);
}

void dbo_cost_probe_reset(dbo_cost_probe *probe, bool keep_ops)
{
    dbo_cost_sums kept = probe->sums;
    dbo_cost_sums_init(&probe->sums);
    probe->sums.op_ns = keep_ops ? kept.op_ns : 0;
    probe->sums.weight_ns = keep_ops ? kept.weight_ns : 0;
    probe->sums.sm_ns = keep_ops ? kept.sm_ns : 0;
    probe->sums.comm_ns = keep_ops ? kept.comm_ns : 0;
    probe->sums.vote_ns = 0; /* every group of several ranks votes, with DBO and without */
    memset(probe->tap.charged, 0, sizeof probe->tap.charged);
}

dbo_cost_sums dbo_cost_probe_sums(const dbo_cost_probe *probe)
{
    dbo_cost_sums sums = probe->sums;
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT; k++)
        sums.charge_ns[k] = (int64_t)probe->hardware->host_ns[k] * (int64_t)probe->tap.charged[k];
    return sums;
}
