/* fabric.h: what an all-to-all asks of its rank: bytes, ports, latencies (docs/model.md).
 *
 * Ranks are laid out node by node, gpus_per_domain to a node. Each has four ports: NVLink and NIC,
 * out and in. Unless the cost says how many rows cross each port (core/layer/routing.h), routing is
 * uniform (under the group limit of the cost): what a rank sends goes to all alike, and a rank
 * receives the mean of what all send; expectations are exact. A rank's part
 * in a transfer is a flow out and a flow in: so many bytes on each port of the side, which alone
 * take
 *
 *     latency + max(NIC bytes / NIC rate, NVLink bytes / NVLink rate)
 *
 * and ask for bytes / that time of each port meanwhile; sharing is core/base/fluid.h.
 *
 * LL: every copy of a token goes by itself: B = tokens * topk * bytes_per_token, the own node's
 *     share over NVLink (the own rank's over nothing), the rest over RDMA. Bytes leave while the
 *     send kernel posts them: the flow out takes no less than its copies, and ends with it or
 *     later. The last byte is there a wire's latency later, and the receive kernel copies it out.
 *     Alone:
 *       first byte sent to receive done = ll_alpha + max(port, send's copies) + receive's copies
 * HT: a token crosses RDMA once a remote node that it needs, and NVLink once a rank that it needs:
 *       total = ht_alpha + max(RDMA bytes / nic, NVLink bytes / min(nvlink, SMs * comm_sm_gbps))
 *     NVLink bytes count the own rank's, as measured bandwidths do. Between nodes NVLink reaches
 *     ht_forward_fraction, and half of the SMs forward while the others send.
 *
 * ht_alpha bounds small transfers from below, on one node as well: 64 rows of 4 KiB are 1.5 us of
 * xGMI beside 30 us of latency, so that dispatch and combine of two ranks take nearly the same.
 *
 * Calibrated on the figures that DeepEP publishes for H800 (docs/legacy.md, README.md there);
 * tests/sim/test_fabric.c prints each with its error. Pure; any thread; no libm.
 *
 *     dbo_ll_time time;
 *     dbo_fabric_ll(&hardware, 16, 8, &cost, DBO_A2A_DISPATCH, &time);
 */
#ifndef DBO_FABRIC_H
#define DBO_FABRIC_H

#include "core/seam/op.h"
#include "core/seam/seam.h"
#include "sim/hardware.h"

#include <stdint.h>

typedef enum dbo_port { DBO_PORT_NONE, DBO_PORT_NVLINK, DBO_PORT_NIC } dbo_port;

/* One side of a rank's part in a transfer. */
typedef struct dbo_flow {
    double nvlink_bytes, nic_bytes;
    int64_t ns;                     /* alone, latency included */
    uint32_t nvlink_mbps, nic_mbps; /* what it asks of its ports meanwhile, 1e6 B/s */
    dbo_port port;                  /* the one that bounds it */
} dbo_flow;

typedef struct dbo_ll_time {
    int64_t send_ns;   /* kernel: bytes into the send buffers */
    int64_t wire_ns;   /* from the last byte's leaving to its being there */
    int64_t flight_ns; /* first byte sent to last received, alone, when all send together */
    int64_t recv_ns;   /* kernel: bytes out of the receive buffers */
    uint32_t sms;      /* of both kernels */
    uint64_t bytes_out, bytes_in; /* all copies, those to and from the own rank included */
    dbo_flow out, in;             /* both begin with the send */
} dbo_ll_time;

typedef struct dbo_ht_time {
    int64_t ns;        /* first byte sent to last received, alone, when all post together */
    int64_t counts_ns; /* after all have posted: when the host knows the receive counts */
    uint32_t sms;      /* held meanwhile */
    uint64_t bytes;    /* RDMA and NVLink bytes that this rank sends */
    dbo_flow out, in;
} dbo_ht_time;

/* ep ranks, gpus_per_domain of them a node (0: hardware->gpus_per_domain). With cost->fixed_ns the
 * flight takes exactly that and asks for no port, the kernels take 0. */
void dbo_fabric_ll(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_domain,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, dbo_ll_time *out);

/* The same for HT, whose combine carries the rows of its dispatch back, in its own row size.
 * `comm_sms`: SMs of the transfer; 0: hardware->comm_sms. With cost->fixed_ns it takes exactly
 * that, the counts 0. */
void dbo_fabric_ht(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_domain,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, uint32_t comm_sms,
                   dbo_ht_time *out);

/* Expected number of the `blocks` equal blocks of experts (nodes or ranks) that a token's topk
 * experts fall into, when it picks topk_groups of num_groups groups, then topk experts in them, all
 * choices equally likely. num_groups 0: the groups are `default_groups` (nodes). */
double dbo_expected_blocks(const dbo_a2a_cost *cost, uint32_t blocks, uint32_t default_groups);

#endif
