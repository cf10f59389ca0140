/* split_cost.h: what splitting a step costs before any overlap, share by share.
 *
 * Two sums over a step of a rank, of the same batch whole and split, each of ops alone on the GPU.
 * What an op takes is its kernels' own times, what not having all SMs adds, and its work: the
 * larger of math and memory. Work is summed by kind of op and of kernel. Where a bin has grown,
 * reading weights again explains as much as that reading takes and the bin has grown, no more:
 * where math bounds, it is free. The rest is keys and values read (or expanded, MLA) again for a
 * request that lies on both sides of a cut, in the bins of these, else smaller tiles: fewer of them
 * than SMs, and more padding in them.
 *
 * A share is at least 0, and they add up to `total`. What splitting makes cheaper (graphs that only
 * the split step has, less padding) is in none of them, but in `saved`: the sums differ by
 * total - saved.
 *
 *     dbo_split_cost cost;
 *     dbo_split_cost_compute(&cost, &whole, &split);
 *     if (cost.weights.present)
 *         printf("%.1f us of %.1f us\n", cost.weights.value, cost.total.value);
 */
#ifndef DBO_SPLIT_COST_H
#define DBO_SPLIT_COST_H

#include "core/seam/op.h"
#include "core/seam/seam.h"
#include "core/trace/metrics.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

/* Kernels of a bin: of a dbo_part_kind, or those whose work is keys and values. */
#define DBO_COST_OF_KV (DBO_NUM_PART_KINDS)
#define DBO_COST_BINS  (DBO_NUM_PART_KINDS + 1)

typedef struct dbo_op_sum {
    double work_ns;   /* without the kernels' own times, with all SMs */
    double weight_ns; /* what reading weights takes at the memory's speed; at most work_ns */
} dbo_op_sum;

/* Of one step of one rank, in ns; those of -1 and, without has_ops, those of ops are not known. */
typedef struct dbo_cost_sums {
    bool has_ops;
    dbo_op_sum ops[DBO_KIND_COUNT][DBO_COST_BINS];
    double kernel_ns; /* kernels' own times */
    double sm_ns;     /* what not having all SMs adds */
    int64_t comm_ns;  /* durations of transfers, sends and receives */
    int64_t charge_ns[DBO_CHARGE_COUNT];
    int64_t vote_ns; /* only if this run votes */
} dbo_cost_sums;

/* X(name, what): all in us. `launches` are launches, posts and replays. */
#define DBO_SPLIT_COST_MAP(X)         \
    X(weights, "weights read again")  \
    X(kv, "keys and values again")    \
    X(tiles, "smaller tiles")         \
    X(kernels, "more kernels")        \
    X(sms, "SMs kept for transfers")  \
    X(transfers, "smaller transfers") \
    X(launches, "launches")           \
    X(handoffs, "hand-offs")          \
    X(events, "events")               \
    X(metadata, "metadata")           \
    X(vote, "vote")                   \
    X(total, "together")

typedef struct dbo_split_cost {
#define DBO_SPLIT_COST_FIELD(name, what) dbo_quantity name;
    DBO_SPLIT_COST_MAP(DBO_SPLIT_COST_FIELD)
#undef DBO_SPLIT_COST_FIELD
    dbo_quantity saved;
} dbo_split_cost;

/* All not known. */
void dbo_cost_sums_init(dbo_cost_sums *sums);
/* The ops of `more` and its transfers, too: a graph that runs. */
void dbo_cost_sums_add_ops(dbo_cost_sums *sums, const dbo_cost_sums *more);
void dbo_split_cost_compute(dbo_split_cost *out, const dbo_cost_sums *without,
                            const dbo_cost_sums *with);

DBO_PUBLIC_END

#endif
