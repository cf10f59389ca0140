/* split_cost.c: differences of sums, a share each; whole ns, so that shares add up (split_cost.h).
 */
#include "core/trace/split_cost.h"

#include <string.h>

void dbo_cost_sums_init(dbo_cost_sums *sums)
{
    *sums = (dbo_cost_sums){.comm_ns = -1, .vote_ns = -1};
    for (int i = 0; i < DBO_CHARGE_COUNT; i++)
        sums->charge_ns[i] = -1;
}

void dbo_cost_sums_add_ops(dbo_cost_sums *sums, const dbo_cost_sums *more)
{
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++) {
        for (uint32_t b = 0; b < DBO_COST_BINS; b++) {
            sums->ops[k][b].work_ns += more->ops[k][b].work_ns;
            sums->ops[k][b].weight_ns += more->ops[k][b].weight_ns;
        }
    }
    sums->kernel_ns += more->kernel_ns;
    sums->sm_ns += more->sm_ns;
    sums->comm_ns += more->comm_ns;
}

/* Shares while they are whole ns. */
typedef struct shares {
    int64_t total_ns, saved_ns;
    dbo_split_cost *out;
} shares;

static void put_ns(dbo_quantity *quantity, int64_t ns)
{
    *quantity = (dbo_quantity){(double)ns / 1000.0, true};
}

static int64_t whole_ns(double ns)
{
    return (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

/* A difference becomes a share, or is saved. */
static void add_share(shares *s, dbo_quantity *share, int64_t ns)
{
    put_ns(share, ns > 0 ? ns : 0);
    s->total_ns += ns > 0 ? ns : 0;
    s->saved_ns -= ns < 0 ? ns : 0;
}

static void add_known(shares *s, dbo_quantity *share, int64_t without_ns, int64_t with_ns)
{
    if (without_ns >= 0 && with_ns >= 0)
        add_share(s, share, with_ns - without_ns);
}

/* Bin by bin: what has grown, by its reason; what has shrunk, together. */
static void add_ops(shares *s, const dbo_cost_sums *without, const dbo_cost_sums *with)
{
    int64_t weights = 0, kv = 0, tiles = 0;
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++) {
        for (uint32_t b = 0; b < DBO_COST_BINS; b++) {
            const dbo_op_sum *is = &with->ops[k][b], *was = &without->ops[k][b];
            int64_t more = whole_ns(is->work_ns - was->work_ns);
            int64_t again = whole_ns(is->weight_ns - was->weight_ns);
            if (more < 0) {
                s->saved_ns -= more;
                continue;
            }
            again = again < 0 ? 0 : again > more ? more : again;
            weights += again;
            *(b == DBO_COST_OF_KV ? &kv : &tiles) += more - again;
        }
    }
    add_share(s, &s->out->weights, weights);
    add_share(s, &s->out->kv, kv);
    add_share(s, &s->out->tiles, tiles);
    add_share(s, &s->out->kernels, whole_ns(with->kernel_ns - without->kernel_ns));
    add_share(s, &s->out->sms, whole_ns(with->sm_ns - without->sm_ns));
}

void dbo_split_cost_compute(dbo_split_cost *out, const dbo_cost_sums *without,
                            const dbo_cost_sums *with)
{
    static const dbo_charge launches[] = {DBO_CHARGE_LAUNCH, DBO_CHARGE_POST, DBO_CHARGE_REPLAY};
    const int64_t *a = without->charge_ns, *b = with->charge_ns;
    int64_t launched[2] = {-1, -1};
    memset(out, 0, sizeof *out);
    shares s = {.out = out};
    if (without->has_ops && with->has_ops)
        add_ops(&s, without, with);
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        if (a[launches[i]] < 0 || b[launches[i]] < 0)
            continue;
        launched[0] = (launched[0] < 0 ? 0 : launched[0]) + a[launches[i]];
        launched[1] = (launched[1] < 0 ? 0 : launched[1]) + b[launches[i]];
    }
    add_known(&s, &out->transfers, without->comm_ns, with->comm_ns);
    add_known(&s, &out->launches, launched[0], launched[1]);
    add_known(&s, &out->handoffs, a[DBO_CHARGE_HANDOFF], b[DBO_CHARGE_HANDOFF]);
    add_known(&s, &out->events, a[DBO_CHARGE_EVENT], b[DBO_CHARGE_EVENT]);
    add_known(&s, &out->metadata, a[DBO_CHARGE_METADATA], b[DBO_CHARGE_METADATA]);
    add_known(&s, &out->vote, without->vote_ns, with->vote_ns);
    bool known = s.out->weights.present || out->transfers.present || out->launches.present ||
                 out->handoffs.present || out->events.present || out->metadata.present ||
                 out->vote.present;
    if (!known)
        return;
    put_ns(&out->total, s.total_ns);
    put_ns(&out->saved, s.saved_ns);
}
