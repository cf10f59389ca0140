/* arrival.h: what each rank gets in each step of a run, and which ranks get the same.
 *
 * The measured step comes last; before it come those that capture graphs and warm up: one like it,
 * or those that the experiment names. Requests of a rank that have no block in common may arrive in
 * any order. Ranks that get the same, and are nothing special, fold into one class, for which its
 * first rank is run.
 *
 *     dbo_arrivals arrivals;
 *     DBO_TRY(dbo_arrivals_init(&arrivals, &experiment, DBO_ARRIVAL_AS_GIVEN, err));
 *     DBO_TRY(dbo_arrivals_fold(&arrivals, stands_out, self, &fold, err));
 *     ... arrivals.requests[step * arrivals.num_ranks + rank] ...
 *     dbo_arrivals_fini(&arrivals);
 */
#ifndef DBO_ARRIVAL_H
#define DBO_ARRIVAL_H

#include "lab/experiment/experiment.h"

typedef enum dbo_arrival {
    DBO_ARRIVAL_AS_GIVEN,
    DBO_ARRIVAL_REVERSED,
    DBO_ARRIVAL_ROTATED /* by one */
} dbo_arrival;

typedef struct dbo_arrivals {
    uint32_t num_steps, num_ranks;
    const dbo_request_list **requests; /* (num_steps, num_ranks) */
    dbo_request_list *ordered;         /* (num_ordered) those that arrive in another order */
    uint32_t num_ordered;
} dbo_arrivals;

/* Borrows the experiment. */
dbo_status dbo_arrivals_init(dbo_arrivals *arrivals, const dbo_experiment *experiment,
                             dbo_arrival order, dbo_error *err);
void dbo_arrivals_fini(dbo_arrivals *arrivals); /* of a zeroed one is fine */

typedef struct dbo_fold {
    uint32_t num_classes;
    uint32_t *class_of;   /* (ranks) */
    uint32_t *first_rank; /* (num_classes) */
} dbo_fold;

/* `stands_out` says which ranks stay alone. Both arrays of *out are the caller's to free. */
dbo_status dbo_arrivals_fold(const dbo_arrivals *arrivals,
                             bool (*stands_out)(const void *self, uint32_t rank), const void *self,
                             dbo_fold *out, dbo_error *err);

#endif
