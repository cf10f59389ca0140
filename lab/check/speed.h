/* speed.h: what a simulated step has lost: the watch over speed, told of the machine.
 *
 *     dbo_perf_attach(perf, &seam, &err);                 each rank's
 *     ... dbo_simulate_one(experiment, ..., true, &run, &shown, &err) ...
 *     dbo_speed_find(perf, experiment, &run, shown, DBO_PERF_THRESHOLD, &findings, &err);
 */
#ifndef DBO_SPEED_H
#define DBO_SPEED_H

#include "core/check/lost/perf.h"
#include "lab/experiment/experiment.h"
#include "lab/world/simulate.h"

/* Adds what was found in the measured step of a run that has ended well. `threshold`: of the step;
 * 0: everything. */
dbo_status dbo_speed_find(const dbo_perf *perf, const dbo_experiment *experiment,
                          const dbo_simulated *run, uint32_t shown, double threshold,
                          dbo_findings *out, dbo_error *err);

#endif
