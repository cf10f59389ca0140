/* sm_control.h: SM budgets in force while ubatches are issued.
 *
 * Inside the scope transfers get `comm` SMs and compute kernels the rest, so that they do not take
 * each other's; outside both may use all, as far as the back end lets them: one that was created
 * with fewer SMs keeps those. Kernels take the budget at their launch (or capture). A back end
 * whose transfers need no SMs reserves none, and then nothing is set.
 *
 *     DBO_TRY(dbo_sm_control_init(&control, &rank, &config, false, err));
 *     DBO_TRY(dbo_sm_control_enter(&control, err));
 *     ... launches, posts ...
 *     DBO_TRY(dbo_sm_control_exit(&control, err));
 */
#ifndef DBO_SM_CONTROL_H
#define DBO_SM_CONTROL_H

#include "core/decide/config.h"
#include "core/rank/rank.h"

typedef struct dbo_sm_control {
    dbo_rank *rank;
    uint32_t total, comm; /* comm 0: nothing is reserved */
    uint32_t effective;   /* what the back end made of comm */
} dbo_sm_control;

/* From config.dbo_comm_sms, capped by what the back end can use. `keep_all`: reserve nothing (HT on
 * ROCm). Asked for an odd number or for all SMs: DBO_INVALID if the user set it, else lowered to
 * what fits. */
dbo_status dbo_sm_control_init(dbo_sm_control *control, dbo_rank *rank, const dbo_config *config,
                               bool keep_all, dbo_error *err);
dbo_status dbo_sm_control_enter(dbo_sm_control *control, dbo_error *err);
dbo_status dbo_sm_control_exit(dbo_sm_control *control, dbo_error *err);

#endif
