/* choice.h: which experts a token picks: the probability that it needs a given set of them.
 *
 * A token picks topk different experts out of at most topk_groups groups. How often each is picked
 * is given (`load`); beyond that choices are as random as they can be: a set S of topk experts has
 * a probability proportional to the product of its members' weights, times the number of choices of
 * topk_groups groups that contain it. With equal loads these are exactly the uniform choices of
 * groups first and experts in them then. Weights are fitted until every expert is picked as often
 * as its load says, to 1e-6; loads that no such choice has (three groups that a token would need
 * all, out of two) are approached as far as 200 rounds and doubles come.
 *
 *     dbo_choice *choice = dbo_choice_create(&shape, load, err);
 *     double reached = dbo_choice_needs(choice, experts, share, count); // any of a node's experts
 *     dbo_choice_destroy(choice);
 *
 * Sums over sets are products of polynomials: a round takes O(experts * topk^2), and with a
 * limit of groups O(groups * topk^2 * min(topk, topk_groups)^2) more. Pure.
 */
#ifndef DBO_CHOICE_H
#define DBO_CHOICE_H

#include "core/base/status.h"

#include <stdint.h>

#define DBO_CHOICE_MAX_TOPK    64u
#define DBO_CHOICE_MAX_EXPERTS 4096u

typedef struct dbo_choice dbo_choice;

typedef struct dbo_choice_shape {
    uint32_t num_experts, topk;
    uint32_t num_groups, topk_groups; /* 0: none, no limit */
} dbo_choice_shape;

/* load: (num_experts) probability that a token picks the expert: above 0, below 1, of sum topk.
 * num_groups divides num_experts, and topk_groups hold topk of them. NULL on failure: DBO_LIMIT
 * beyond the two maxima and where groups make too much of it, DBO_NO_MEMORY. */
dbo_choice *dbo_choice_create(const dbo_choice_shape *shape, const double *load, dbo_error *err);
void dbo_choice_destroy(dbo_choice *choice); /* NULL is fine */

/* Probability that a token picks the expert, by the fitted weights. */
double dbo_choice_picks(const dbo_choice *choice, uint32_t expert);

/* Probability that a token needs at least one of `count` copies of experts; share[i] of the tokens
 * that pick experts[i] go to the copy, the others elsewhere. */
double dbo_choice_needs(dbo_choice *choice, const uint32_t *experts, const double *share,
                        uint32_t count);

#endif
