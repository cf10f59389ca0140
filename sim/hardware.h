/* hardware.h: a GPU, its links and its host, as numbers.
 *
 * Rates are in GB/s (1e9 bytes/s, which is bytes per ns) and TFLOP/s, times in ns. Peaks are the
 * data sheet's dense figures; efficiencies say what kernels of a kind reach of them when they fill
 * the chip. A GPU with other SMs than its peaks are of (peak_sms) has SMs of the same speed: math
 * scales, memory only where its SMs are too few to draw all of it. Link rates are what transfers
 * reach, not what is printed on the box. Host times are those of a serving engine written in
 * Python; a C engine sets its own. Plain data, owned by the caller. DBO_HARDWARE_FIELDS is the one
 * list of its members; scripts/hardware/ has a file a machine with these keys.
 *
 *     dbo_hardware h100;
 *     dbo_hardware_init(&h100);                 // efficiencies, latencies, host times
 *     h100.sms = DBO_DEFAULT_SMS;
 *     h100.hbm_gbps = 3350;                     // ... and the other required ones
 *     DBO_TRY(dbo_hardware_check(&h100, err));
 */
#ifndef DBO_HARDWARE_H
#define DBO_HARDWARE_H

#include "core/base/field.h"
#include "core/base/status.h"
#include "core/seam/op.h"
#include "core/seam/seam.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef enum dbo_platform { DBO_PLATFORM_CUDA, DBO_PLATFORM_ROCM } dbo_platform;

#define DBO_DEFAULT_SMS 132 /* of a GPU where nothing says otherwise: an H100's */
#define DBO_NUM_DTYPES  3   /* of dbo_dtype */

typedef struct dbo_hardware {
    char name[64], source[160], confidence[64];
    dbo_platform platform;
    uint32_t sms;                               /* of a GPU (CUs on ROCm) */
    uint32_t peak_sms;                          /* that the peaks and hbm_sm_fraction are of */
    double mem_gb;                              /* device memory, 1e9 bytes */
    double peak_tflops[DBO_NUM_DTYPES];         /* dense; fp8 0: no such units, bf16's are used */
    double hbm_gbps;                            /* read + write, data sheet */
    double hbm_sm_fraction;                     /* this share of the SMs saturates the memory */
    double flop_efficiency[DBO_NUM_PART_KINDS]; /* of the peak, by dbo_part_kind */
    double hbm_efficiency[DBO_NUM_PART_KINDS];  /* of hbm_gbps, by dbo_part_kind */
    double kernel_ns;                           /* device time of a kernel beside its work */
    /* links, one way, per GPU */
    double nvlink_gbps;       /* reached by large transfers inside a domain */
    double nic_gbps;          /* reached by large RDMA transfers */
    uint32_t gpus_per_domain; /* GPUs that NVLink (xGMI) joins */
    uint32_t gpus_per_host;   /* GPUs that machines are sold with; a larger domain joins machines */
    /* all-to-all kernels */
    double ll_alpha_ns;         /* LL: latency of an empty dispatch or combine */
    double ll_nvlink_fraction;  /* LL: of nvlink_gbps, reached by its small messages */
    double ht_alpha_ns;         /* HT: the same for a transfer */
    double ht_counts_ns;        /* HT: layout seen by all to receive counts at the host */
    double ht_forward_fraction; /* HT: of nvlink_gbps, reached when rows also come from RDMA */
    double collective_scale;    /* latency of collectives, of those on Hopper */
    double comm_sm_gbps;        /* HT: bytes an SM moves; half of it when rows are forwarded */
    uint32_t comm_sms;          /* HT: SMs that transfers get by default */
    uint32_t ll_sms;            /* LL: SMs of its send and receive kernels; 0: all */
    bool comm_needs_sms;        /* HT: transfers run on SMs (false: copy engines) */
    double host_ns[DBO_CHARGE_COUNT]; /* by dbo_charge */
} dbo_hardware;

/* X(member, key, type, min, max, required, choices, what) */
#define DBO_HARDWARE_FIELDS(X)                                                                     \
    X(name, "name", TEXT, 0, 64, 1, NULL, "what people call it")                                   \
    X(source, "source", TEXT, 0, 160, 0, NULL, "where the numbers were read")                      \
    X(confidence, "confidence", TEXT, 0, 64, 0, NULL, "A primary, B copy, C recalled, D derived")  \
    X(platform, "platform", CHOICE, 0, 1, 0, dbo_platform_names, "cuda or rocm")                   \
    X(sms, "sms", U32, 1, 4095, 1, NULL, "SMs (CUs) of a GPU")                                     \
    X(peak_sms, "peak_sms", U32, 0, 4095, 0, NULL, "SMs that the peaks are of; 0: of sms")         \
    X(mem_gb, "mem_gb", DOUBLE, 0.1, 1e6, 1, NULL, "memory of a GPU, 1e9 bytes")                   \
    X(peak_tflops[DBO_FP8], "peak_fp8_tflops", DOUBLE, 0, 1e6, 0, NULL, "dense fp8; 0: none")      \
    X(peak_tflops[DBO_BF16], "peak_bf16_tflops", DOUBLE, 0.01, 1e6, 1, NULL, "dense bf16")         \
    X(peak_tflops[DBO_FP32], "peak_fp32_tflops", DOUBLE, 0.01, 1e6, 0, NULL, "fp32")               \
    X(hbm_gbps, "hbm_gbps", DOUBLE, 0.1, 1e6, 1, NULL, "memory, read and write, data sheet")       \
    X(hbm_sm_fraction, "hbm_sm_fraction", DOUBLE, 0.01, 1, 0, NULL,                                \
      "share of the SMs that saturates the memory")                                                \
    X(flop_efficiency[DBO_PART_GEMM], "gemm_flop_efficiency", DOUBLE, 0.001, 1, 0, NULL,           \
      "of the peak, dense GEMM")                                                                   \
    X(flop_efficiency[DBO_PART_GROUPED], "grouped_flop_efficiency", DOUBLE, 0.001, 1, 0, NULL,     \
      "of the peak, grouped GEMM")                                                                 \
    X(flop_efficiency[DBO_PART_ATTENTION], "attention_flop_efficiency", DOUBLE, 0.001, 1, 0, NULL, \
      "of the peak, core attention")                                                               \
    X(flop_efficiency[DBO_PART_STREAM], "stream_flop_efficiency", DOUBLE, 0.001, 1, 0, NULL,       \
      "of the peak, elementwise kernels")                                                          \
    X(hbm_efficiency[DBO_PART_GEMM], "gemm_hbm_efficiency", DOUBLE, 0.001, 1, 0, NULL,             \
      "of hbm_gbps, dense GEMM")                                                                   \
    X(hbm_efficiency[DBO_PART_GROUPED], "grouped_hbm_efficiency", DOUBLE, 0.001, 1, 0, NULL,       \
      "of hbm_gbps, grouped GEMM")                                                                 \
    X(hbm_efficiency[DBO_PART_ATTENTION], "attention_hbm_efficiency", DOUBLE, 0.001, 1, 0, NULL,   \
      "of hbm_gbps, core attention")                                                               \
    X(hbm_efficiency[DBO_PART_STREAM], "stream_hbm_efficiency", DOUBLE, 0.001, 1, 0, NULL,         \
      "of hbm_gbps, elementwise kernels")                                                          \
    X(kernel_ns, "kernel_ns", DOUBLE, 0, 1e6, 0, NULL, "device time of a kernel beside its work")  \
    X(nvlink_gbps, "nvlink_gbps", DOUBLE, 0.1, 1e5, 1, NULL, "one way, reached, per GPU")          \
    X(nic_gbps, "nic_gbps", DOUBLE, 0.1, 1e5, 0, NULL, "one way, reached, per GPU")                \
    X(gpus_per_domain, "gpus_per_domain", U32, 1, 16384, 0, NULL, "GPUs that NVLink joins")        \
    X(gpus_per_host, "gpus_per_host", U32, 1, 256, 0, NULL,                                        \
      "GPUs of a machine as it is sold; NVLink joins machines if gpus_per_domain is larger")       \
    X(ll_alpha_ns, "ll_alpha_ns", DOUBLE, 0, 1e9, 0, NULL, "LL: latency of an empty transfer")     \
    X(ll_nvlink_fraction, "ll_nvlink_fraction", DOUBLE, 0.01, 1, 0, NULL,                          \
      "LL: of nvlink_gbps, reached by its messages")                                               \
    X(ht_alpha_ns, "ht_alpha_ns", DOUBLE, 0, 1e9, 0, NULL, "HT: latency of an empty transfer")     \
    X(ht_counts_ns, "ht_counts_ns", DOUBLE, 0, 1e9, 0, NULL, "HT: until the receive counts")       \
    X(ht_forward_fraction, "ht_forward_fraction", DOUBLE, 0.01, 1, 0, NULL,                        \
      "HT: of nvlink_gbps, reached between nodes")                                                 \
    X(collective_scale, "collective_scale", DOUBLE, 0.01, 100, 0, NULL,                            \
      "latency of collectives, of those on Hopper")                                                \
    X(comm_sm_gbps, "comm_sm_gbps", DOUBLE, 0.01, 1e4, 0, NULL, "HT: bytes that an SM moves")      \
    X(comm_sms, "comm_sms", U32, 0, 4095, 0, NULL, "HT: SMs of transfers by default")              \
    X(ll_sms, "ll_sms", U32, 0, 4095, 0, NULL, "LL: SMs of send and receive; 0: all")              \
    X(comm_needs_sms, "comm_needs_sms", BOOL, 0, 1, 0, NULL, "HT: transfers run on SMs")           \
    X(host_ns[DBO_CHARGE_LAUNCH], "host_launch_ns", DOUBLE, 0, 1e9, 0, NULL, "a kernel launch")    \
    X(host_ns[DBO_CHARGE_EVENT], "host_event_ns", DOUBLE, 0, 1e9, 0, NULL, "a record or a wait")   \
    X(host_ns[DBO_CHARGE_HANDOFF], "host_handoff_ns", DOUBLE, 0, 1e9, 0, NULL,                     \
      "a hand-off between ubatches")                                                               \
    X(host_ns[DBO_CHARGE_REPLAY], "host_replay_ns", DOUBLE, 0, 1e9, 0, NULL, "a graph replay")     \
    X(host_ns[DBO_CHARGE_POST], "host_post_ns", DOUBLE, 0, 1e9, 0, NULL, "an all-to-all call")     \
    X(host_ns[DBO_CHARGE_METADATA], "host_metadata_ns", DOUBLE, 0, 1e9, 0, NULL,                   \
      "the attention metadata of an ubatch")                                                       \
    X(host_ns[DBO_CHARGE_STEP], "host_step_ns", DOUBLE, 0, 1e9, 0, NULL, "a step, beside these")

/* Names of dbo_platform in enum order, NULL at the end. */
extern const char *const dbo_platform_names[];

/* The table as an array; *count members. */
const dbo_field *dbo_hardware_fields(uint32_t *count);

/* Nothing of a particular GPU, but every efficiency, latency and host time that the files of
 * scripts/hardware leave out: what a reader starts from. */
void dbo_hardware_init(dbo_hardware *hardware);

/* How many SMs the peaks, and the share that saturates the memory, are of. */
static inline uint32_t dbo_hardware_peak_sms(const dbo_hardware *hardware)
{
    return hardware->peak_sms > 0 ? hardware->peak_sms : hardware->sms;
}

/* Ranges, and what must hold between fields; the sentence names the field. */
dbo_status dbo_hardware_check(const dbo_hardware *hardware, dbo_error *err);

DBO_PUBLIC_END

#endif
