/* placement.h: which rank holds which experts, copies of busy ones included.
 *
 * Experts live in slots, num_experts + redundant of them, dealt out to the ranks in order: where
 * slots do not divide evenly the first ranks hold one more. The linear placement fills them in the
 * order of the experts and puts the copies behind, expert 0's first, as vLLM begins. The balanced
 * one is EPLB's: groups of experts go to nodes, inside of a node the busiest experts are copied,
 * the copies go to ranks; each time the heaviest comes first and goes to the lightest that still
 * has room. Where groups or slots do not divide evenly, all ranks count as one node. Tokens
 * are spread evenly over an expert's copies.
 *
 *     dbo_placement placement;
 *     const dbo_placement_shape shape = {.num_experts = 256, .redundant = 32, .num_groups = 8,
 *                                        .num_ranks = 144, .ranks_per_node = 8};
 *     DBO_TRY(dbo_placement_balance(&shape, load, &placement, err));
 *     ... experts placement.expert_of[placement.first[rank]] and on are rank's ...
 *     dbo_placement_fini(&placement);
 *
 * A placement owns its memory. Balancing takes O(slots * ranks + redundant * experts) at worst.
 * Source: DeepSeek's EPLB, README.md.
 */
#ifndef DBO_PLACEMENT_H
#define DBO_PLACEMENT_H

#include "core/base/status.h"

#include <stdint.h>

typedef struct dbo_placement_shape {
    uint32_t num_experts, redundant; /* redundant: copies beside the experts themselves */
    uint32_t num_groups;             /* of experts; 0: none */
    uint32_t num_ranks;              /* GPUs that share the experts */
    uint32_t ranks_per_node;
} dbo_placement_shape;

typedef struct dbo_placement {
    uint32_t num_experts, num_slots, num_ranks;
    uint32_t *first;     /* (num_ranks + 1) slots of rank r: first[r] <= slot < first[r + 1] */
    uint32_t *expert_of; /* (num_slots) */
    uint32_t *copies;    /* (num_experts) slots that an expert has, at least 1 */
} dbo_placement;

/* DBO_INVALID when a shape is without experts or ranks, DBO_LIMIT beyond 2^20 slots. On failure
 * nothing is left to free. */
dbo_status dbo_placement_linear(const dbo_placement_shape *shape, dbo_placement *out,
                                dbo_error *err);
/* load: (num_experts) tokens an expert gets, in any unit, not negative. */
dbo_status dbo_placement_balance(const dbo_placement_shape *shape, const double *load,
                                 dbo_placement *out, dbo_error *err);
void dbo_placement_fini(dbo_placement *placement);

#endif
