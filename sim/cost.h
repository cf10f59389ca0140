/* cost.h: how long an op takes alone on a GPU: a roofline per kernel.
 *
 * A kernel takes kernel_ns + max(math, memory):
 *
 *     math    waves * (flops / tiles) / (peak * efficiency / peak_sms),
 *             waves = ceil(tiles / SMs given);
 *             without tiles flops / (peak * efficiency * SMs given / peak_sms)
 *     memory  bytes / (hbm_gbps * efficiency * share),
 *             share = min(1, active SMs / (peak_sms * hbm_sm_fraction)):
 *             few SMs cannot draw the whole memory bandwidth
 *
 * A kernel of a group of GPUs takes what collective.h says, kernel_ns included. An op is its
 * kernels one after the other. Only + - * / on doubles, so results are the same bytes everywhere.
 * Pure; any thread.
 *
 *     dbo_op_time time;
 *     dbo_cost_ns(&hardware, &cost, 0, &time);
 */
#ifndef DBO_COST_H
#define DBO_COST_H

#include "core/seam/op.h"
#include "sim/hardware.h"

#include <stdint.h>

typedef struct dbo_op_time {
    int64_t ns;        /* at least 0 */
    uint32_t sms;      /* SMs that its widest kernel occupies */
    uint32_t hbm_mbps; /* mean draw on the memory, 1e6 B/s */
} dbo_op_time;

/* `sm_budget` SMs may be used; 0 or more than there are: all. A cost with fixed_ns takes exactly
 * that, on fixed_sms SMs (at most the budget), and draws no memory. */
void dbo_cost_ns(const dbo_hardware *hardware, const dbo_op_cost *cost, uint32_t sm_budget,
                 dbo_op_time *out);

/* One kernel of it, in ns, unrounded: for reports that say what bounds an op. */
double dbo_part_ns(const dbo_hardware *hardware, const dbo_op_part *part, uint32_t sm_budget);

#endif
