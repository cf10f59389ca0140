/* sm_control.c: what is reserved is decided once, at init; entering and leaving only sets it. */
#include "core/step/sm_control.h"

dbo_status dbo_sm_control_init(dbo_sm_control *control, dbo_rank *rank, const dbo_config *config,
                               bool keep_all, dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    *control = (dbo_sm_control){.rank = rank};
    control->total = seam->device->total_sms(seam->device_self);
    if (!seam->a2a || keep_all)
        return DBO_OK;
    dbo_a2a_caps caps;
    seam->a2a->caps(seam->a2a_self, &caps);
    uint32_t asked = config->dbo_comm_sms;
    if (caps.max_sms == 0 || asked == 0 || control->total == 0)
        return DBO_OK; /* total 0: a machine of given durations */
    bool fits = asked % 2 == 0 && asked < control->total;
    if (!fits && config->dbo_comm_sms_is_set)
        return dbo_fail(err, DBO_INVALID, "Give an even number below the SMs of the GPU.",
                        "dbo_comm_sms is %u, the GPU has %u SMs", asked, control->total);
    if (asked >= control->total)
        asked = control->total - 1;
    control->comm = asked - asked % 2;
    return DBO_OK;
}

static dbo_status set(dbo_sm_control *control, uint32_t comm, uint32_t compute, dbo_error *err)
{
    const dbo_seam *seam = &control->rank->seam;
    if (control->comm == 0)
        return DBO_OK;
    control->effective = seam->a2a->set_sms(seam->a2a_self, comm);
    dbo_status status = seam->device->set_compute_sms(seam->device_self, compute);
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(control->rank, status, err);
}

dbo_status dbo_sm_control_enter(dbo_sm_control *control, dbo_error *err)
{
    return set(control, control->comm, control->total - control->comm, err);
}

dbo_status dbo_sm_control_exit(dbo_sm_control *control, dbo_error *err)
{
    return set(control, control->total, control->total, err);
}
