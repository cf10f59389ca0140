#include "lab/world/cost_probe.h"

#include "sim/cost.h"
#include "sim/fabric.h"

static int64_t probe_now_ns(void *self)
{
    const dbo_seam *below = &((dbo_cost_probe *)self)->below;
    return below->host->now_ns(below->host_self);
}

static void probe_charge(void *self, dbo_charge kind, uint32_t count)
{
    dbo_cost_probe *probe = self;
    probe->sums.charge_ns[kind] += (int64_t)probe->hardware->host_ns[kind] * count;
    if (probe->below.host->charge)
        probe->below.host->charge(probe->below.host_self, kind, count);
}

static bool probe_cancelled(void *self)
{
    const dbo_seam *below = &((dbo_cost_probe *)self)->below;
    return below->host->cancelled && below->host->cancelled(below->host_self);
}

static const dbo_host_ops host_table = {
    .now_ns = probe_now_ns, .charge = probe_charge, .cancelled = probe_cancelled};

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

static dbo_status probe_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    dbo_cost_probe *probe = self;
    dbo_op_time budget, whole;
    dbo_cost_ns(probe->hardware, op->cost, probe->compute_sms, &budget);
    dbo_cost_ns(probe->hardware, op->cost, 0, &whole);
    probe->sums.op_ns += budget.ns;
    probe->sums.sm_ns += budget.ns - whole.ns;
    probe->sums.weight_ns += (int64_t)weight_ns(probe->hardware, op->cost);
    return probe->below.device->launch(probe->below.device_self, stream, op);
}

static dbo_status probe_set_compute_sms(void *self, uint32_t sms)
{
    dbo_cost_probe *probe = self;
    probe->compute_sms = sms;
    return probe->below.device->set_compute_sms(probe->below.device_self, sms);
}

/* ---- transfers ---- */

static void probe_caps(void *self, dbo_a2a_caps *out)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    b->a2a->caps(b->a2a_self, out);
}

static uint32_t probe_set_sms(void *self, uint32_t sms)
{
    dbo_cost_probe *probe = self;
    probe->comm_sms = probe->below.a2a->set_sms(probe->below.a2a_self, sms);
    return probe->comm_sms;
}

static dbo_status probe_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_cost_probe *probe = self;
    const dbo_seam *b = &probe->below;
    dbo_a2a_caps caps;
    b->a2a->caps(b->a2a_self, &caps);
    if (caps.has_hook) {
        dbo_ll_time time;
        dbo_fabric_ll(probe->hardware, probe->ep_size, probe->gpus_per_node, args->cost,
                      args->direction, 0, &time);
        probe->sums.comm_ns += time.send_ns + time.flight_ns + time.recv_ns;
    } else {
        dbo_ht_time time;
        dbo_fabric_ht(probe->hardware, probe->ep_size, probe->gpus_per_node, args->cost,
                      args->direction, probe->comm_sms, &time);
        probe->sums.comm_ns += time.ns;
    }
    return b->a2a->post(b->a2a_self, args, out);
}

static dbo_status probe_counts(void *self, dbo_a2a_handle handle)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->a2a->counts(b->a2a_self, handle);
}

static dbo_status probe_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->a2a->finish(b->a2a_self, handle, stream);
}

static const dbo_a2a_ops a2a_table = {.caps = probe_caps,
                                      .set_sms = probe_set_sms,
                                      .post = probe_post,
                                      .counts = probe_counts,
                                      .finish = probe_finish};

/* ---- forwarded as they are ---- */

static dbo_status probe_stream_create(void *self, const char *name, dbo_stream *out)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->stream_create(b->device_self, name, out);
}

static dbo_status probe_event_create(void *self, dbo_event *out)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->event_create(b->device_self, out);
}

static void probe_event_destroy(void *self, dbo_event event)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    b->device->event_destroy(b->device_self, event);
}

static dbo_status probe_record(void *self, dbo_event event, dbo_stream stream)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->record(b->device_self, event, stream);
}

static dbo_status probe_wait(void *self, dbo_stream stream, dbo_event event)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->wait(b->device_self, stream, event);
}

static dbo_status probe_event_query(void *self, dbo_event event, bool *done)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->event_query(b->device_self, event, done);
}

static dbo_status probe_host_wait(void *self, dbo_event event)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->host_wait(b->device_self, event);
}

static uint32_t probe_total_sms(void *self)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->total_sms(b->device_self);
}

static dbo_status probe_status(void *self, dbo_error *err)
{
    const dbo_seam *b = &((dbo_cost_probe *)self)->below;
    return b->device->status(b->device_self, err);
}

static const dbo_device_ops device_table = {
    .stream_create = probe_stream_create,
    .event_create = probe_event_create,
    .event_destroy = probe_event_destroy,
    .record = probe_record,
    .wait = probe_wait,
    .launch = probe_launch,
    .event_query = probe_event_query,
    .host_wait = probe_host_wait,
    .set_compute_sms = probe_set_compute_sms,
    .total_sms = probe_total_sms,
    .status = probe_status,
};

void dbo_cost_probe_wrap(dbo_cost_probe *probe, dbo_seam *seam, const dbo_hardware *hardware,
                         uint32_t ep_size, uint32_t gpus_per_node)
{
    *probe = (dbo_cost_probe){
        .below = *seam, .hardware = hardware, .ep_size = ep_size, .gpus_per_node = gpus_per_node};
    dbo_cost_probe_reset(probe, false);
    seam->host = &host_table;
    seam->host_self = probe;
    seam->a2a = &a2a_table;
    seam->a2a_self = probe;
    seam->device = &device_table;
    seam->device_self = probe;
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
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT; k++)
        probe->sums.charge_ns[k] = 0;
}
