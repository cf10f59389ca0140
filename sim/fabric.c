/* fabric.c: see fabric.h for the two laws.
 *
 * The send and receive kernels of LL copy each row once in memory, read and written, at half of
 * the memory's rate: rows go one a warp. An empty transfer takes ll_alpha: the send kernel, until
 * it has told all peers how many rows there are, the wire, and the receive kernel, until it has
 * seen all flags.
 */
#include "sim/fabric.h"

#include "core/base/units.h"

#define LL_SEND_ALPHA 0.3
#define LL_WIRE_ALPHA 0.5
#define LL_RECV_ALPHA 0.2
#define LL_COPY_HBM   0.5

/* ---- routing ---- */

/* C(a, k) / C(b, k), 0 <= a <= b, k <= b. */
static double choose_ratio(double a, double b, uint32_t k)
{
    double ratio = 1;
    for (uint32_t i = 0; i < k; i++)
        ratio *= a > i ? (a - i) / (b - i) : 0;
    return ratio;
}

#define LARGE 1e200 /* weights are scaled down from here on */

/* Probability that a token needs a block of experts made of whole groups: `own` of the `groups`
 * groups, `limit` of which the token picks. Of these j are own ones with a weight that the one
 * before gives; binomials of thousands of groups are beyond doubles. */
static double hit_whole_groups(uint32_t own, uint32_t groups, uint32_t limit, double per_group,
                               uint32_t topk)
{
    uint32_t others = groups - own, first = limit > others ? limit - others : 0;
    double weight = 1, sum = 0, miss = 0;
    for (uint32_t j = first; j <= own && j <= limit; j++) {
        sum += weight;
        miss += weight * choose_ratio((limit - j) * per_group, limit * per_group, topk);
        weight *= (double)(own - j) * (limit - j) / ((j + 1.0) * (others - (limit - j) + 1.0));
        if (weight > LARGE) {
            weight /= LARGE;
            sum /= LARGE;
            miss /= LARGE;
        }
    }
    return 1 - miss / sum;
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

static layout lay_out(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_domain)
{
    uint32_t per_node = gpus_per_domain == 0 ? hardware->gpus_per_domain : gpus_per_domain;
    if (per_node > ep)
        per_node = ep;
    uint32_t nodes = (ep + per_node - 1) / per_node;
    return (layout){.nodes = nodes, .ranks = ep, .per_node = per_node};
}

/* bytes / ns in 1e6 B/s, and no more than the port has. */
static uint32_t mbps(double bytes, int64_t ns, double port_gbps)
{
    double asked = ns > 0 ? bytes / (double)ns : 0;
    return (uint32_t)((asked < port_gbps ? asked : port_gbps) * 1000);
}

/* The bytes are set: their time at these rates, no less than least_ns, behind the latency. */
static void time_flow(dbo_flow *flow, const dbo_hardware *hardware, double nvlink_gbps,
                      double latency_ns, double least_ns)
{
    double nic_ns = flow->nic_bytes / hardware->nic_gbps;
    double nvlink_ns = flow->nvlink_bytes / nvlink_gbps;
    double port_ns = nic_ns > nvlink_ns ? nic_ns : nvlink_ns;
    flow->port = nic_ns > nvlink_ns       ? DBO_PORT_NIC
                 : flow->nvlink_bytes > 0 ? DBO_PORT_NVLINK
                                          : DBO_PORT_NONE;
    flow->ns = dbo_round_ns(latency_ns + (port_ns > least_ns ? port_ns : least_ns));
    flow->nic_mbps = mbps(flow->nic_bytes, flow->ns, hardware->nic_gbps);
    flow->nvlink_mbps = mbps(flow->nvlink_bytes, flow->ns, hardware->nvlink_gbps);
}

/* Tokens that the rank sends and receives rows of. */
typedef struct token_flow {
    double out, in;
} token_flow;

static token_flow tokens_of(const dbo_a2a_cost *cost, dbo_a2a_direction direction)
{
    double own = cost->tokens, mean = cost->mean_tokens > 0 ? cost->mean_tokens : own;
    return direction == DBO_A2A_DISPATCH ? (token_flow){own, mean} : (token_flow){mean, own};
}

/* But for what sums of doubles lose. */
static bool is_near(double a, double b)
{
    double less = a < b ? a : b;
    return (a < b ? b - a : a - b) <= 1e-9 * less;
}

/* Known rows, as bytes on the ports; is the flow in like the flow out? */
static bool port_bytes(const dbo_a2a_cost *cost, dbo_a2a_direction direction, dbo_flow *out,
                       dbo_flow *in)
{
    bool dispatches = direction == DBO_A2A_DISPATCH;
    const dbo_a2a_rows *sent = dispatches ? &cost->sent : &cost->received;
    const dbo_a2a_rows *received = dispatches ? &cost->received : &cost->sent;
    double each = cost->bytes_per_token;
    *out = (dbo_flow){.nic_bytes = sent->nic * each, .nvlink_bytes = sent->nvlink * each};
    *in = (dbo_flow){.nic_bytes = received->nic * each, .nvlink_bytes = received->nvlink * each};
    return is_near(out->nic_bytes, in->nic_bytes) && is_near(out->nvlink_bytes, in->nvlink_bytes);
}

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* ---- low latency ---- */

/* One kernel's copies: read and written once, slower on few SMs. */
static double copy_ns(const dbo_hardware *hardware, double bytes, uint32_t sms)
{
    double saturating = dbo_hardware_peak_sms(hardware) * hardware->hbm_sm_fraction;
    double share = sms < saturating ? sms / saturating : 1.0;
    return 2 * bytes / (hardware->hbm_gbps * LL_COPY_HBM * share);
}

void dbo_fabric_ll(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_domain,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, dbo_ll_time *out)
{
    layout l = lay_out(hardware, ep, gpus_per_domain);
    token_flow tokens = tokens_of(cost, direction);
    double row = (double)cost->topk * cost->bytes_per_token;
    double sent = tokens.out * row, received = tokens.in * row;
    if (cost->has_rows) {
        bool dispatches = direction == DBO_A2A_DISPATCH;
        sent = (dispatches ? cost->sent : cost->received).all * cost->bytes_per_token;
        received = (dispatches ? cost->received : cost->sent).all * cost->bytes_per_token;
    }
    uint32_t sms = hardware->ll_sms == 0 ? hardware->sms : hardware->ll_sms;
    *out = (dbo_ll_time){
        .sms = sms, .bytes_out = (uint64_t)(sent + 0.5), .bytes_in = (uint64_t)(received + 0.5)};
    if (cost->fixed_ns >= 0) {
        out->flight_ns = out->out.ns = out->in.ns = cost->fixed_ns;
        out->sms = 0;
        return;
    }
    double remote = (l.ranks - l.per_node) / l.ranks, near = (l.per_node - 1) / l.ranks;
    double nvlink_gbps = hardware->nvlink_gbps * hardware->ll_nvlink_fraction;
    double alpha = hardware->ll_alpha_ns, issue_ns = alpha * LL_SEND_ALPHA;
    double copied_ns = copy_ns(hardware, sent, sms);
    out->out = (dbo_flow){.nic_bytes = sent * remote, .nvlink_bytes = sent * near};
    out->in = (dbo_flow){.nic_bytes = received * remote, .nvlink_bytes = received * near};
    bool alike = sent == received;
    if (cost->has_rows)
        alike = port_bytes(cost, direction, &out->out, &out->in);
    time_flow(&out->out, hardware, nvlink_gbps, issue_ns, copied_ns);
    if (alike) /* bytes come as they leave the others, alike */
        out->in = out->out;
    else
        time_flow(&out->in, hardware, nvlink_gbps, issue_ns, 0);
    /* A combine's receive also sums topk rows into one: it reads all and writes a topk-th. */
    double copies = direction == DBO_A2A_COMBINE && cost->topk > 0 ? (1 + 1.0 / cost->topk) / 2 : 1;
    out->send_ns = dbo_round_ns(issue_ns + copied_ns);
    out->wire_ns = dbo_round_ns(alpha * LL_WIRE_ALPHA);
    out->recv_ns = dbo_round_ns(alpha * LL_RECV_ALPHA + copy_ns(hardware, received * copies, sms));
    out->flight_ns = later(later(out->out.ns, out->in.ns), out->send_ns) + out->wire_ns;
}

/* ---- high throughput ---- */

void dbo_fabric_ht(const dbo_hardware *hardware, uint32_t ep, uint32_t gpus_per_domain,
                   const dbo_a2a_cost *cost, dbo_a2a_direction direction, uint32_t comm_sms,
                   dbo_ht_time *out)
{
    layout l = lay_out(hardware, ep, gpus_per_domain);
    uint32_t sms = comm_sms == 0 ? hardware->comm_sms : comm_sms;
    if (sms > hardware->sms)
        sms = hardware->sms;
    *out = (dbo_ht_time){.sms = hardware->comm_needs_sms ? sms : 0};
    if (cost->fixed_ns >= 0) {
        *out = (dbo_ht_time){.ns = cost->fixed_ns};
        out->out.ns = out->in.ns = cost->fixed_ns;
        return;
    }
    bool one_node = l.nodes < 2;
    token_flow tokens = tokens_of(cost, direction);
    double sent = tokens.out * cost->bytes_per_token, received = tokens.in * cost->bytes_per_token;
    double ranks = dbo_expected_blocks(cost, (uint32_t)l.ranks, (uint32_t)l.nodes);
    double nodes = dbo_expected_blocks(cost, (uint32_t)l.nodes, (uint32_t)l.nodes);
    double crossing = nodes * (l.nodes - 1) / l.nodes; /* on one node 0 */
    /* What crosses nodes is handed on over NVLink by the GPU that it comes to, the other's rows. */
    double own = ranks / l.nodes, handed = ranks - own;
    bool dispatches = direction == DBO_A2A_DISPATCH;
    double passed = dispatches ? received : sent;
    out->out =
        (dbo_flow){.nic_bytes = sent * crossing, .nvlink_bytes = sent * own + passed * handed};
    out->in = (dbo_flow){.nic_bytes = received * crossing,
                         .nvlink_bytes = received * own + passed * handed};
    bool alike = sent == received;
    if (cost->has_rows)
        alike = port_bytes(cost, direction, &out->out, &out->in);
    double nvlink = hardware->nvlink_gbps * (one_node ? 1 : hardware->ht_forward_fraction);
    double by_sms = sms * hardware->comm_sm_gbps * (one_node ? 1 : 0.5);
    if (hardware->comm_needs_sms && by_sms < nvlink)
        nvlink = by_sms;
    time_flow(&out->out, hardware, nvlink, hardware->ht_alpha_ns, 0);
    if (alike)
        out->in = out->out;
    else
        time_flow(&out->in, hardware, nvlink, hardware->ht_alpha_ns, 0);
    out->ns = later(out->out.ns, out->in.ns);
    int64_t counts_ns = dbo_round_ns(hardware->ht_counts_ns);
    out->counts_ns = counts_ns < out->ns ? counts_ns : out->ns;
    out->bytes = (uint64_t)(out->out.nic_bytes + out->out.nvlink_bytes);
}
