/* fixed_costs.h: given durations (dbo.fixed) as a layer's costs and a machine.
 *
 * The machine has only host times, the layer only durations. They are those of an ubatch; the whole
 * batch takes as long as all its ubatches one after the other. Pure.
 *
 *     dbo_layer_costs costs;
 *     dbo_fixed_costs_use(&experiment->fixed, 2, &costs, &hardware); // of one of two ubatches
 */
#ifndef DBO_FIXED_COSTS_H
#define DBO_FIXED_COSTS_H

#include "core/layer/model_ops.h"
#include "lab/experiment/experiment.h"

/* Fills *out, and the host's times in *hardware. `ubatches`: whose work is one op's; 1 when split.
 */
void dbo_fixed_costs_use(const dbo_fixed_costs *fixed, uint32_t ubatches, dbo_layer_costs *out,
                         dbo_hardware *hardware);

#endif
