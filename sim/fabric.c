/* fabric.c: see fabric.h for the two laws.
 *
 * The send and receive kernels of LL copy each row once in memory, read and written, at half of
 * the memory's rate: rows go one a warp. Their shares of the latency are those of a kernel that
 * posts all messages (send) and one that polls for flags (receive).
 */
#include "sim/fabric.h"

#include "core/base/units.h"

#define LL_SEND_ALPHA   0.3
#define LL_RECV_ALPHA   0.2
#define LL_FLIGHT_ALPHA 0.25 /* a flight is at least this part of alpha */
#define LL_COPY_HBM     0.5

/* ---- routing ---- */

/* C(a, k) / C(b, k), 0 <= a <= b, k <= b. */
static double choose_ratio(double a, double b, uint32_t k)
{
    double ratio = 1;
    for (uint32_t i = 0; i < k; i++)
        ratio *= a > i ? (a - i) / (b - i) : 0;
    return ratio;
}

/* C(n, k) as a double; small arguments. */
static double choose(uint32_t n, uint32_t k)
{
    double result = 1;
    if (k > n)
        return 0;
    for (uint32_t i = 0; i < k; i++)
        result = result * (n - i) / (i + 1.0);
    return result;
}

/* Probability that a token needs a block of `block` experts made of whole groups: `own` of the
 * `groups` groups, `limit` of which the token picks. */
static double hit_whole_groups(uint32_t own, uint32_t groups, uint32_t limit, double per_group,
                               uint32_t topk)
{
    double miss = 0, all = choose(groups, limit);
    for (uint32_t j = 0; j <= own && j <= limit; j++) {
        double weight = choose(own, j) * choose(groups - own, limit - j) / all;
        miss += weight * choose_ratio((limit - j) * per_group, limit * per_group, topk);
    }
    return 1 - miss;
}

double dbo_expected_blocks(const dbo_a2a_cost *cost, uint32_t blocks, uint32_t default_groups)
{
    uint32_t groups = cost->num_groups != 0 ? cost->num_groups : default_groups;
    if (groups == 0)
        groups = 1;
    uint32_t limit = cost->topk_groups;
    if (limit == 0 || limit > groups)
        limit = groups;
    double per_group = (double)cost->num_experts / groups;
    double block = (double)cost->num_experts / blocks;
    double chosen = limit * per_group;
    uint32_t topk = cost->topk < chosen ? cost->topk : (uint32_t)chosen;
    double hit;
    if (limit == groups)
        hit = 1 - choose_ratio(chosen - block, chosen, topk);
    else if (blocks < groups)
        hit = hit_whole_groups(groups / blocks, groups, limit, per_group, topk);
    else
        hit = limit / (double)groups * (1 - choose_ratio(chosen - block, chosen, topk));
    return hit * blocks;
}

/* ---- layout ---- */

typedef struct layout {
    double nodes, ranks, per_node;
} layout;

static layout lay_out(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_node)
{
    uint32_t per_node = gpus_per_node == 0 ? hardware->gpus_per_domain : gpus_per_node;
    if (per_node > ep)
        per_node = ep;
    uint32_t nodes = (ep + per_node - 1) / per_node;
    return (layout){.nodes = nodes, .ranks = ep, .per_node = per_node};
}

/* Which of the two ports takes longer; with no bytes at all, none. */
static void bind_port(dbo_port_load *load, double nic_gbps, double nvlink_gbps)
{
    double nic_ns = load->rdma_bytes / nic_gbps, nvlink_ns = load->nvlink_bytes / nvlink_gbps;
    bool nic = nic_ns > nvlink_ns;
    load->port = nic ? DBO_PORT_NIC : load->nvlink_bytes > 0 ? DBO_PORT_NVLINK : DBO_PORT_NONE;
    load->port_bytes = nic ? load->rdma_bytes : load->nvlink_bytes;
    load->port_gbps = nic ? nic_gbps : nvlink_gbps;
}

/* ---- low latency ---- */

/* One kernel's copies: read and written once, slower on few SMs. */
static double copy_ns(const dbo_hardware *hardware, double bytes, uint32_t sms)
{
    double saturating = hardware->sms * hardware->hbm_sm_fraction;
    double share = sms < saturating ? sms / saturating : 1.0;
    return 2 * bytes / (hardware->hbm_gbps * LL_COPY_HBM * share);
}

void dbo_fabric_ll(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_node,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, dbo_ll_time *out)
{
    layout l = lay_out(hardware, ep, gpus_per_node);
    double bytes = (double)cost->tokens * cost->topk * cost->bytes_per_token;
    uint32_t sms = hardware->ll_sms == 0 ? hardware->sms : hardware->ll_sms;
    *out = (dbo_ll_time){.sms = sms, .bytes_out = (uint64_t)bytes, .bytes_in = (uint64_t)bytes};
    out->load.rdma_bytes = bytes * (l.ranks - l.per_node) / l.ranks;
    out->load.nvlink_bytes = bytes * (l.per_node - 1) / l.ranks;
    bind_port(&out->load, hardware->nic_gbps, hardware->nvlink_gbps * hardware->ll_nvlink_fraction);
    if (cost->fixed_ns >= 0) {
        out->flight_ns = cost->fixed_ns;
        out->sms = 0;
        out->load = (dbo_port_load){.latency_ns = (double)cost->fixed_ns};
        return;
    }
    double alpha = hardware->ll_alpha_ns;
    double transfer = out->load.port_bytes / out->load.port_gbps;
    /* A combine's receive also sums topk rows into one: it reads all and writes a topk-th. */
    double received = direction == DBO_A2A_COMBINE ? bytes * (1 + 1.0 / cost->topk) / 2 : bytes;
    if (cost->topk == 0)
        received = 0;
    double send = alpha * LL_SEND_ALPHA + copy_ns(hardware, bytes, sms);
    double recv = alpha * LL_RECV_ALPHA + copy_ns(hardware, received, sms);
    double flight = alpha + transfer - send - recv;
    if (flight < alpha * LL_FLIGHT_ALPHA)
        flight = alpha * LL_FLIGHT_ALPHA;
    out->send_ns = dbo_round_ns(send);
    out->recv_ns = dbo_round_ns(recv);
    out->flight_ns = dbo_round_ns(flight);
    /* The bytes take what of the flight the port needs, the latency the rest. */
    if (transfer > flight)
        out->load.port_bytes = flight * out->load.port_gbps;
    out->load.latency_ns = flight - out->load.port_bytes / out->load.port_gbps;
}

/* ---- high throughput ---- */

void dbo_fabric_ht(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_node,
                   const dbo_a2a_cost *cost, uint32_t comm_sms, dbo_ht_time *out)
{
    layout l = lay_out(hardware, ep, gpus_per_node);
    uint32_t sms = comm_sms == 0 ? hardware->comm_sms : comm_sms;
    if (sms > hardware->sms)
        sms = hardware->sms;
    *out = (dbo_ht_time){.sms = hardware->comm_needs_sms ? sms : 0};
    if (cost->fixed_ns >= 0) {
        *out = (dbo_ht_time){.ns = cost->fixed_ns};
        out->load.latency_ns = (double)cost->fixed_ns;
        return;
    }
    bool one_node = l.nodes < 2;
    double row = (double)cost->tokens * cost->bytes_per_token;
    double nodes = one_node ? 1 : dbo_expected_blocks(cost, (uint32_t)l.nodes, (uint32_t)l.nodes);
    double ranks = dbo_expected_blocks(cost, (uint32_t)l.ranks, (uint32_t)l.nodes);
    out->load.rdma_bytes = one_node ? 0 : row * nodes * (l.nodes - 1) / l.nodes;
    out->load.nvlink_bytes = row * ranks;
    double nvlink = hardware->nvlink_gbps * (one_node ? 1 : hardware->ht_forward_fraction);
    double by_sms = sms * hardware->comm_sm_gbps * (one_node ? 1 : 0.5);
    if (hardware->comm_needs_sms && by_sms < nvlink)
        nvlink = by_sms;
    bind_port(&out->load, hardware->nic_gbps, nvlink);
    out->load.latency_ns = hardware->ht_alpha_ns;
    out->ns = dbo_round_ns(hardware->ht_alpha_ns + out->load.port_bytes / out->load.port_gbps);
    out->counts_ns = dbo_round_ns(hardware->ht_counts_ns);
    if (out->counts_ns > out->ns)
        out->counts_ns = out->ns;
    out->bytes = (uint64_t)(out->load.rdma_bytes + out->load.nvlink_bytes);
}
