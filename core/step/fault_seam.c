/* fault_seam.c: forwards every call of two tables but for what a fault refuses or says. */
#include "core/step/fault_seam.h"

#include <string.h>

#define HANDLE_SLOTS 2u

static dbo_status refuse(dbo_fault_seam *m, dbo_status status, const char *hint,
                         const char *sentence)
{
    m->fault->reached++;
    return dbo_fail(&m->refusal, status, hint, "%s", sentence);
}

/* ---- the all-to-all ---- */

static void a2a_caps(void *self, dbo_a2a_caps *out)
{
    const dbo_fault_seam *m = self;
    m->inner.a2a->caps(m->inner.a2a_self, out);
    if (dbo_fault_is(m->fault, DBO_FAULT_LL_THREE_IN_FLIGHT))
        out->shared_results = true;
    if (dbo_fault_is(m->fault, DBO_FAULT_ONE_QP))
        out->queue_depth = 1;
}

static uint32_t a2a_set_sms(void *self, uint32_t sms)
{
    const dbo_fault_seam *m = self;
    return m->inner.a2a->set_sms(m->inner.a2a_self, sms);
}

static dbo_status a2a_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_fault_seam *m = self;
    uint32_t ubatch = dbo_op_id_ubatch(args->id);
    dbo_a2a_caps caps;
    m->inner.a2a->caps(m->inner.a2a_self, &caps);
    if (caps.has_hook && m->in_flight++ > 0)
        dbo_fault_strikes(m->fault, DBO_FAULT_ONE_QP);
    if (ubatch > 1 && caps.max_in_flight > 0)
        dbo_fault_strikes(m->fault, DBO_FAULT_LL_THREE_IN_FLIGHT);
    if (dbo_fault_is(m->fault, DBO_FAULT_TWO_SLOT_HANDLES) && ubatch >= HANDLE_SLOTS)
        return refuse(m, DBO_LIMIT, "Size the back end's slots by the number of ubatches.",
                      "the back end keeps handles in 2 slots and has none for a third ubatch");
    return m->inner.a2a->post(m->inner.a2a_self, args, out);
}

static dbo_status a2a_counts(void *self, dbo_a2a_handle handle)
{
    const dbo_fault_seam *m = self;
    return m->inner.a2a->counts(m->inner.a2a_self, handle);
}

static dbo_status a2a_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    dbo_fault_seam *m = self;
    m->in_flight -= m->in_flight > 0;
    return m->inner.a2a->finish(m->inner.a2a_self, handle, stream);
}

static void a2a_abort(void *self)
{
    const dbo_fault_seam *m = self;
    m->inner.a2a->abort(m->inner.a2a_self);
}

static const dbo_a2a_ops a2a_table = {
    .caps = a2a_caps, .set_sms = a2a_set_sms, .post = a2a_post, .finish = a2a_finish};

/* ---- the device ---- */

static dbo_status device_stream_create(void *self, const char *name, dbo_stream *out)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->stream_create(m->inner.device_self, name, out);
}

static dbo_status device_event_create(void *self, dbo_event *out)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->event_create(m->inner.device_self, out);
}

static void device_event_destroy(void *self, dbo_event event)
{
    const dbo_fault_seam *m = self;
    m->inner.device->event_destroy(m->inner.device_self, event);
}

static dbo_status device_record(void *self, dbo_event event, dbo_stream stream)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->record(m->inner.device_self, event, stream);
}

static dbo_status device_wait(void *self, dbo_stream stream, dbo_event event)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->wait(m->inner.device_self, stream, event);
}

static bool is_capturing(const dbo_fault_seam *m)
{
    return m->inner.graph && m->inner.graph->is_capturing(m->inner.graph_self);
}

/* The experts' kernel is the library's. */
static dbo_status device_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    dbo_fault_seam *m = self;
    if (dbo_fault_is(m->fault, DBO_FAULT_LAZY_INIT_IN_CAPTURE) && !m->has_handle &&
        dbo_op_id_kind(op->id) == DBO_KIND_MLP) {
        if (is_capturing(m))
            return refuse(m, DBO_REFUSED, "Use the library once before the capture begins.",
                          "the experts' first kernel makes its library's handle, which allocates "
                          "device memory and cannot be captured");
        m->has_handle = true;
    }
    return m->inner.device->launch(m->inner.device_self, stream, op);
}

static dbo_status device_event_query(void *self, dbo_event event, bool *done)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->event_query(m->inner.device_self, event, done);
}

static dbo_status device_host_wait(void *self, dbo_event event)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->host_wait(m->inner.device_self, event);
}

static dbo_status device_set_compute_sms(void *self, uint32_t sms)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->set_compute_sms(m->inner.device_self, sms);
}

static uint32_t device_total_sms(void *self)
{
    const dbo_fault_seam *m = self;
    return m->inner.device->total_sms(m->inner.device_self);
}

/* The own sentence first. */
static dbo_status device_status(void *self, dbo_error *err)
{
    dbo_fault_seam *m = self;
    if (m->refusal.status == DBO_OK)
        return m->inner.device->status(m->inner.device_self, err);
    dbo_status status = m->refusal.status;
    if (err)
        *err = m->refusal;
    memset(&m->refusal, 0, sizeof m->refusal);
    return status;
}

static const dbo_device_ops device_table = {.stream_create = device_stream_create,
                                            .event_create = device_event_create,
                                            .event_destroy = device_event_destroy,
                                            .record = device_record,
                                            .wait = device_wait,
                                            .launch = device_launch,
                                            .event_query = device_event_query,
                                            .host_wait = device_host_wait,
                                            .set_compute_sms = device_set_compute_sms,
                                            .total_sms = device_total_sms,
                                            .status = device_status};

void dbo_fault_seam_wrap(dbo_fault_seam *machine, dbo_fault *fault, dbo_seam *seam)
{
    *machine = (dbo_fault_seam){.fault = fault, .inner = *seam};
    if (!dbo_fault_is(fault, DBO_FAULT_TWO_SLOT_HANDLES) &&
        !dbo_fault_is(fault, DBO_FAULT_LAZY_INIT_IN_CAPTURE) &&
        !dbo_fault_is(fault, DBO_FAULT_LL_THREE_IN_FLIGHT) &&
        !dbo_fault_is(fault, DBO_FAULT_ONE_QP))
        return;
    seam->device = &device_table;
    seam->device_self = machine;
    if (!seam->a2a)
        return;
    machine->a2a = a2a_table;
    machine->a2a.counts = seam->a2a->counts ? a2a_counts : NULL;
    machine->a2a.abort = seam->a2a->abort ? a2a_abort : NULL;
    seam->a2a = &machine->a2a;
    seam->a2a_self = machine;
}
