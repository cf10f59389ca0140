/* routing.h: how many rows an all-to-all carries from whom to whom when experts are not alike.
 *
 * Experts get tokens as a load says; where they live is a placement. All ranks route alike, so the
 * rows that rank s sends to rank d are tokens(s) * copies(d), and sums over nodes say all that the
 * ports of a rank carry: a routing is O(ranks), pairs are never stored. HT sends a token once to
 * each node and each rank that need it: how often one is needed is choice.h's.
 *
 * `draws`: tokens do not go where they are expected to, they are drawn, for each ubatch anew: a
 * rank's rows are then normally distributed around what is expected, with the variance of so many
 * draws, and their sum is fixed. Good from some ten rows a rank on.
 *
 *     dbo_routing *routing = dbo_routing_create(&shape, err);
 *     dbo_rank_traffic traffic;
 *     dbo_routing_of_rank(routing, &(dbo_routing_tokens){.rank = 3, .own = 128, ...}, &traffic);
 *     dbo_routing_destroy(routing);
 *
 * Ranks are GPUs here, node by node. Read-only once made: any thread.
 */
#ifndef DBO_ROUTING_H
#define DBO_ROUTING_H

#include "core/base/status.h"
#include "core/layer/placement.h"
#include "core/seam/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dbo_routing dbo_routing;

typedef struct dbo_routing_shape {
    const dbo_placement *placement; /* read by create alone */
    const double *load;             /* (num_experts) in any unit; read by create alone */
    uint32_t topk, num_groups, topk_groups;
    uint32_t ranks_per_node;
    uint32_t num_ubatches; /* that draw for themselves; 0: 1 */
    bool low_latency;      /* a copy for each expert; else HT, once a node and a rank */
    bool draws;
    uint64_t seed; /* of the draws */
} dbo_routing_shape;

/* Tokens of an ubatch that ranks dispatch. */
typedef struct dbo_routing_tokens {
    uint32_t rank, ubatch;
    double own, node, all; /* of the rank, of its node, of all ranks */
    double rail;           /* of the ranks of other nodes with its place in the node */
} dbo_routing_tokens;

typedef struct dbo_rank_traffic {
    dbo_a2a_rows sent, received; /* of the dispatch */
    double rows;                 /* (token, expert) pairs that come here */
    double tokens;               /* distinct tokens that come here */
    double touched;              /* expected number of its slots with at least a row */
} dbo_rank_traffic;

/* `load` is scaled to topk copies of a token; an expert that would get a token more than once gets
 * each once, and the others the rest. DBO_INVALID: a load that is negative, not finite, or 0 for so
 * many experts that a token cannot pick topk. NULL on failure. */
dbo_routing *dbo_routing_create(const dbo_routing_shape *shape, dbo_error *err);
void dbo_routing_destroy(dbo_routing *routing); /* NULL is fine */

void dbo_routing_of_rank(const dbo_routing *routing, const dbo_routing_tokens *tokens,
                         dbo_rank_traffic *out);

size_t dbo_routing_bytes(const dbo_routing *routing);

/* Expected copies of a token that go to the rank; the mean is topk / ranks. */
double dbo_routing_copies(const dbo_routing *routing, uint32_t rank);

#endif
