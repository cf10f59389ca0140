/* machines.c: back ends of less room, machines that are set up wrongly, ranks that are late. */
#include "lab/faults/faults.h"

/* ---- the all-to-all ---- */

#define HANDLE_SLOTS 2u

static uint32_t ubatch_of(const dbo_tap_call *call)
{
    return dbo_op_id_ubatch(((const dbo_a2a_args *)call->in)->id);
}

static dbo_status post_into_slot(dbo_tap *tap, dbo_tap_call *call)
{
    if (ubatch_of(call) < HANDLE_SLOTS)
        return DBO_OK;
    ((dbo_fault_tap *)tap->self)->fault->reached++;
    return dbo_tap_refuse(tap, DBO_LIMIT, "Size the back end's slots by the number of ubatches.",
                          "the back end keeps handles in 2 slots and has none for a third ubatch");
}
static const dbo_tap_hooks two_slots = {.before[DBO_TAP_POST] = post_into_slot};
const dbo_fault_kind dbo_fault_two_slot_handles = {.hooks = &two_slots};

static void share_results(dbo_tap *tap, dbo_tap_call *call)
{
    (void)tap;
    ((dbo_a2a_caps *)call->out)->shared_results = true;
}

static dbo_status note_third(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_a2a_caps caps;
    tap->below.a2a->caps(tap->below.a2a_self, &caps);
    ((dbo_fault_tap *)tap->self)->fault->reached += ubatch_of(call) > 1 && caps.max_in_flight > 0;
    return DBO_OK;
}
static const dbo_tap_hooks shared_buffers = {.after[DBO_TAP_CAPS] = share_results,
                                             .before[DBO_TAP_POST] = note_third};
const dbo_fault_kind dbo_fault_ll_three_in_flight = {.hooks = &shared_buffers};

static void narrow_queue(dbo_tap *tap, dbo_tap_call *call)
{
    (void)tap;
    ((dbo_a2a_caps *)call->out)->queue_depth = 1;
}

/* `count`: transfers that have been posted and not finished, where they must be. */
static dbo_status note_second(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_fault_tap *own = tap->self;
    dbo_a2a_caps caps;
    (void)call;
    tap->below.a2a->caps(tap->below.a2a_self, &caps);
    own->fault->reached += caps.has_hook && own->count++ > 0;
    return DBO_OK;
}

static dbo_status note_finish(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_fault_tap *own = tap->self;
    (void)call;
    own->count -= own->count > 0;
    return DBO_OK;
}
static const dbo_tap_hooks exclusive_queue = {
    .after[DBO_TAP_CAPS] = narrow_queue,
    .before = {[DBO_TAP_POST] = note_second, [DBO_TAP_FINISH] = note_finish}};
const dbo_fault_kind dbo_fault_one_qp = {.hooks = &exclusive_queue};

/* ---- SMs ---- */

static void keep_sms_on_rocm(void *self, const dbo_deployment *deployment, dbo_rank *rank,
                             dbo_step_setup *out)
{
    dbo_fault *fault = self;
    dbo_step_rules_default.setup(NULL, deployment, rank, out);
    fault->reached += out->keeps_all_sms;
    out->keeps_all_sms = false;
}
const dbo_fault_kind dbo_fault_rocm_comm_sms = {.rules.setup = keep_sms_on_rocm};

static void keep_none(void *self, const dbo_deployment *deployment, dbo_rank *rank,
                      dbo_step_setup *out)
{
    dbo_fault *fault = self;
    dbo_step_rules_default.setup(NULL, deployment, rank, out);
    if (out->keeps_all_sms || deployment->config->all2all_backend != DBO_BACKEND_HT)
        return;
    fault->reached++;
    out->keeps_all_sms = true;
}
static void give_transfers_all(dbo_fault *fault, const dbo_config *config, dbo_hardware *hardware)
{
    (void)fault;
    (void)config;
    if (hardware->comm_needs_sms)
        hardware->comm_sms = hardware->sms;
}
const dbo_fault_kind dbo_fault_no_sm_partition = {.rules.setup = keep_none,
                                                  .set_up = give_transfers_all};

static void give_ll_all(dbo_fault *fault, const dbo_config *config, dbo_hardware *hardware)
{
    if (hardware->ll_sms == 0 || config->all2all_backend == DBO_BACKEND_HT)
        return;
    fault->reached++;
    hardware->ll_sms = 0;
}
const dbo_fault_kind dbo_fault_ll_all_sms = {.set_up = give_ll_all};

/* ---- ranks ---- */

#define MAX_LATE_US 1000000u

/* Whoever makes a rank late counts that it has. */
const dbo_fault_kind dbo_fault_late_rank = {
    .settings = {{"rank", offsetof(dbo_fault, rank), DBO_MAX_RANKS - 1, 1},
                 {"us", offsetof(dbo_fault, late_us), MAX_LATE_US, 200}},
    .stands_out = true};
