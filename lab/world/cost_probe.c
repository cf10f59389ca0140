/* cost_probe.c: each op and transfer costed once more, alone and with all SMs (cost_probe.h). */
#include "lab/world/cost_probe.h"

#include "core/base/vec.h"
#include "sim/cost.h"
#include "sim/fabric.h"

#include <stdlib.h>
#include <string.h>

/* What runs now, or is captured for later. */
static dbo_cost_sums *sums_of(dbo_cost_probe *probe)
{
    return probe->captures ? &probe->captured : &probe->sums;
}

static void add_kernel(dbo_cost_probe *probe, dbo_op_kind kind, const dbo_op_part *part)
{
    const dbo_hardware *hardware = probe->hardware;
    dbo_cost_sums *sums = sums_of(probe);
    dbo_op_sum *sum = &sums->ops[kind][part->of_kv ? DBO_COST_OF_KV : part->kind];
    double whole_ns = dbo_part_ns(hardware, part, 0);
    sum->work_ns += whole_ns - hardware->kernel_ns;
    sum->weight_ns +=
        part->weight_bytes / (hardware->hbm_gbps * hardware->hbm_efficiency[part->kind]);
    sums->kernel_ns += hardware->kernel_ns;
    if (probe->compute_sms > 0)
        sums->sm_ns += dbo_part_ns(hardware, part, probe->compute_sms) - whole_ns;
}

static dbo_status launch(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    const dbo_op *op = call->in;
    dbo_op_kind kind = (dbo_op_kind)dbo_op_id_kind(op->id);
    if (op->cost->fixed_ns >= 0)
        sums_of(probe)->ops[kind][DBO_PART_STREAM].work_ns += (double)op->cost->fixed_ns;
    for (uint32_t i = 0; op->cost->fixed_ns < 0 && i < op->cost->num_parts; i++)
        add_kernel(probe, kind, &op->cost->parts[i]);
    return DBO_OK;
}

static void begin_sums(dbo_cost_sums *sums)
{
    dbo_cost_sums_init(sums);
    sums->has_ops = true;
    sums->comm_ns = 0;
    sums->vote_ns = 0; /* every group of several ranks votes, with DBO and without */
}

static dbo_status capture_begin(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    (void)call;
    begin_sums(&probe->captured);
    probe->captures = true;
    return DBO_OK;
}

static void capture_end(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    probe->captures = false;
    if (call->kind != DBO_TAP_CAPTURE_END || call->status != DBO_OK)
        return;
    dbo_cost_probe_graph graph = {*(const dbo_graph *)call->out, probe->captured};
    if (DBO_VEC_PUSH(&probe->graphs, graph) != DBO_OK)
        call->status = DBO_NO_MEMORY;
}

/* The latest of that number: numbers may be given out again. */
static dbo_status replay(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_cost_probe *probe = tap->self;
    for (uint32_t i = probe->graphs.count; i-- > 0;) {
        if (probe->graphs.items[i].graph != call->number)
            continue;
        dbo_cost_sums_add_ops(&probe->sums, &probe->graphs.items[i].sums);
        break;
    }
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
        dbo_fabric_ll(probe->hardware, probe->ep_size, probe->gpus_per_domain, args->cost,
                      args->direction, &time);
        sums_of(probe)->comm_ns += time.flight_ns + time.recv_ns;
    } else {
        dbo_ht_time time;
        dbo_fabric_ht(probe->hardware, probe->ep_size, probe->gpus_per_domain, args->cost,
                      args->direction, probe->comm_sms, &time);
        sums_of(probe)->comm_ns += time.ns;
    }
    return DBO_OK;
}

static const dbo_tap_hooks hooks = {.before =
                                        {
                                            [DBO_TAP_LAUNCH] = launch,
                                            [DBO_TAP_COMPUTE_SMS] = set_compute_sms,
                                            [DBO_TAP_POST] = post,
                                            [DBO_TAP_CAPTURE_BEGIN] = capture_begin,
                                            [DBO_TAP_REPLAY] = replay,
                                        },
                                    .after = {[DBO_TAP_A2A_SMS] = set_comm_sms,
                                              [DBO_TAP_CAPTURE_END] = capture_end,
                                              [DBO_TAP_CAPTURE_ABANDON] = capture_end},
                                    .counts_charges = true};

void dbo_cost_probe_wrap(dbo_cost_probe *probe, dbo_seam *seam, const dbo_hardware *hardware,
                         uint32_t ep_size, uint32_t gpus_per_domain)
{
    *probe = (dbo_cost_probe){
        .hardware = hardware, .ep_size = ep_size, .gpus_per_domain = gpus_per_domain};
    dbo_cost_probe_reset(probe);
    dbo_tap_wrap(&probe->tap, &hooks, probe, seam);
}

void dbo_cost_probe_fini(dbo_cost_probe *probe)
{
    free(probe->graphs.items);
    *probe = (dbo_cost_probe){0};
}

void dbo_cost_probe_reset(dbo_cost_probe *probe)
{
    begin_sums(&probe->sums);
    memset(probe->tap.charged, 0, sizeof probe->tap.charged);
}

dbo_cost_sums dbo_cost_probe_sums(const dbo_cost_probe *probe)
{
    dbo_cost_sums sums = probe->sums;
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT; k++)
        sums.charge_ns[k] = (int64_t)probe->hardware->host_ns[k] * (int64_t)probe->tap.charged[k];
    return sums;
}
