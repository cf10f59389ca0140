/* plan.h: one rank's step, cut into ubatches, written as programs.
 *
 * A plan has the programs of the layers for the tokens of a cut (cut.h). Layers of one kind (dense
 * or with experts, windowed or full attention, with one routing) share a program. Built per step;
 * owns its memory.
 *
 *     dbo_plan plan;
 *     DBO_TRY(dbo_plan_build(&plan, &deployment, &cut, &caps, err));
 *     ... plan.layers[plan.kind_of_layer[layer]] ...
 *     dbo_plan_fini(&plan);
 */
#ifndef DBO_PLAN_H
#define DBO_PLAN_H

#include "core/program/program.h"
#include "core/step/cut.h"
#include "core/step/deployment.h"

/* Index of a layer's program: 1 for dense, 2 for windowed, added; with the second routing and those
 * behind it so many more for each. */
#define DBO_PLAN_LAYER_KINDS 4u

typedef struct dbo_plan {
    uint32_t num_ubatches, num_layers;
    int32_t num_tokens_padded;
    bool has_head;           /* without a model there are no ends; embed then has no op */
    dbo_program embed, head; /* zeroed: none; a built plan has at least embed's memory */
    uint32_t num_kinds;
    dbo_program *layers;     /* (num_kinds) zeroed: none */
    uint16_t *kind_of_layer; /* (num_layers) */
} dbo_plan;

/* `caps` of the back end that will run it. On failure nothing is left to free. */
dbo_status dbo_plan_build(dbo_plan *plan, const dbo_deployment *deployment, const dbo_cut *cut,
                          const dbo_a2a_caps *caps, dbo_error *err);
void dbo_plan_fini(dbo_plan *plan);

#endif
