/* hardware.c: the table of a machine's fields and the defaults that presets share. */
#include "sim/hardware.h"

const char *const dbo_platform_names[] = {"cuda", "rocm", NULL};

_Static_assert(sizeof(dbo_platform) == sizeof(uint32_t), "a CHOICE member has 32 bits");

const dbo_field *dbo_hardware_fields(uint32_t *count)
{
    static const dbo_field fields[] = {
#define DBO_ROW(member, key, type, min, max, required, choices, what) \
    {key, DBO_FIELD_##type, offsetof(dbo_hardware, member), min, max, required, choices, what},
        DBO_HARDWARE_FIELDS(DBO_ROW)
#undef DBO_ROW
    };
    *count = sizeof fields / sizeof fields[0];
    return fields;
}

void dbo_hardware_init(dbo_hardware *hardware)
{
    *hardware = (dbo_hardware){
        .platform = DBO_PLATFORM_CUDA,
        .peak_tflops = {[DBO_FP32] = 60},
        .hbm_sm_fraction = 0.45,
        /* fp8 grouped GEMMs of DeepGEMM and FlashMLA on SM90: 0.55..0.7 of the dense peak when
         * large; 85..90 % of the memory when bound by it. */
        .flop_efficiency = {[DBO_PART_GEMM] = 0.62,
                            [DBO_PART_GROUPED] = 0.55,
                            [DBO_PART_ATTENTION] = 0.62,
                            [DBO_PART_STREAM] = 0.5},
        .hbm_efficiency = {[DBO_PART_GEMM] = 0.85,
                           [DBO_PART_GROUPED] = 0.85,
                           [DBO_PART_ATTENTION] = 0.88,
                           [DBO_PART_STREAM] = 0.8},
        .kernel_ns = 2500,
        .nic_gbps = 45,
        .gpus_per_domain = 8,
        .gpus_per_host = 8,
        .ll_alpha_ns = 20000,
        .ll_nvlink_fraction = 0.92,
        .ht_alpha_ns = 30000,
        .ht_counts_ns = 20000,
        .ht_forward_fraction = 0.84,
        .collective_scale = 1,
        .comm_sm_gbps = 14,
        .comm_sms = 20,
        .ll_sms = 0,
        .comm_needs_sms = true,
        /* A launch through a Python framework; a bare CUDA launch is about 3.7 us. The hand-off is
         * a threading.Event set and wait between two Python threads. */
        .host_ns = {[DBO_CHARGE_LAUNCH] = 6000,
                    [DBO_CHARGE_EVENT] = 1500,
                    [DBO_CHARGE_HANDOFF] = 16400,
                    [DBO_CHARGE_REPLAY] = 20000,
                    [DBO_CHARGE_POST] = 15000,
                    [DBO_CHARGE_METADATA] = 150000,
                    [DBO_CHARGE_STEP] = 1500000},
    };
}

dbo_status dbo_hardware_check(const dbo_hardware *hardware, dbo_error *err)
{
    uint32_t count;
    const dbo_field *fields = dbo_hardware_fields(&count);
    DBO_TRY(dbo_fields_check(fields, count, hardware, "hardware", err));
    if (hardware->comm_sms > hardware->sms || hardware->ll_sms > hardware->sms)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "hardware %s: comm_sms and ll_sms must not be larger than sms (%u)",
                        hardware->name, hardware->sms);
    if (hardware->comm_needs_sms && hardware->comm_sms == 0)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "hardware %s: comm_sms is 0, but comm_needs_sms is true", hardware->name);
    return DBO_OK;
}
