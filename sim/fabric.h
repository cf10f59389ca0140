/* fabric.h: how long an all-to-all takes, alone: latency plus bytes over the narrowest port.
 *
 * Ranks are laid out node by node, gpus_per_node to a node. Routing is uniform (under the group
 * limit of the cost), so every rank sends and receives the same; expectations are exact.
 *
 * LL: every copy of a token goes by itself: B = tokens * topk * bytes_per_token. The share of
 *     the own node goes over NVLink (that of the own rank over nothing), the rest over RDMA:
 *       total = ll_alpha + max(remote B / nic, node B / (nvlink * ll_nvlink_fraction))
 *     of which the send and the receive kernel take part of alpha and their copies in memory; the
 *     flight is what remains.
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

/* What a rank's transfer puts on its ports. latency_ns + port_bytes / port_gbps is the time in
 * which bytes move, when the port is the transfer's alone. */
typedef struct dbo_port_load {
    dbo_port port;     /* the one that bounds it */
    double port_gbps;  /* its rate for this transfer */
    double port_bytes; /* this rank's bytes on it, one way */
    double latency_ns;
    double rdma_bytes, nvlink_bytes; /* on each, whichever bounds */
} dbo_port_load;

typedef struct dbo_ll_time {
    int64_t send_ns;              /* kernel: bytes into the send buffers */
    int64_t flight_ns;            /* first byte sent to last received, when all send together */
    int64_t recv_ns;              /* kernel: bytes out of the receive buffers */
    uint32_t sms;                 /* of both kernels */
    uint64_t bytes_out, bytes_in; /* all copies of this rank, own ones included */
    dbo_port_load load;
} dbo_ll_time;

typedef struct dbo_ht_time {
    int64_t ns;        /* first byte sent to last received, when all post together */
    int64_t counts_ns; /* after all have posted: when the host knows the receive counts */
    uint32_t sms;      /* held for ns */
    uint64_t bytes;    /* RDMA and NVLink bytes of this rank */
    dbo_port_load load;
} dbo_ht_time;

/* ep ranks, gpus_per_node of them a node (0: hardware->gpus_per_domain). With cost->fixed_ns the
 * flight takes exactly that, the kernels 0. */
void dbo_fabric_ll(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_node,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, dbo_ll_time *out);

/* The same for HT, whose combine carries the rows of its dispatch back, in its own row size.
 * `comm_sms`: SMs of the transfer; 0: hardware->comm_sms. With cost->fixed_ns it takes exactly
 * that, the counts 0. */
void dbo_fabric_ht(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_node,
                   const dbo_a2a_cost *cost, uint32_t comm_sms, dbo_ht_time *out);

/* Expected number of the `blocks` equal blocks of experts (nodes or ranks) that a token's topk
 * experts fall into, when it picks topk_groups of num_groups groups, then topk experts in them, all
 * choices equally likely. num_groups 0: the groups are `default_groups` (nodes). */
double dbo_expected_blocks(const dbo_a2a_cost *cost, uint32_t blocks, uint32_t default_groups);

#endif
