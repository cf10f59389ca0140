/* need.h: how much memory a run of an experiment will take, before it is run.
 *
 * What grows is the ranks that run by themselves (rank folding: arrival.h), each with its part of
 * every vote, and what each of them does in each layer of each step, which the trace and the graphs
 * keep. The figure is of dbo_simulate on the simulator: of the order of what it really takes, and
 * rather above it.
 *
 *     DBO_TRY(dbo_need_check(&experiment, (uint64_t)256 << 20, NULL, err));
 *     DBO_TRY(dbo_simulate(&experiment, &options, &outcome, err));
 */
#ifndef DBO_NEED_H
#define DBO_NEED_H

#include "lab/experiment/experiment.h"

/* Of a finished experiment; O(ranks). */
dbo_status dbo_need_of(const dbo_experiment *experiment, uint64_t *bytes, dbo_error *err);

/* DBO_LIMIT with both figures if it needs more than max_bytes; `hint` says what allows more. */
dbo_status dbo_need_check(const dbo_experiment *experiment, uint64_t max_bytes, const char *hint,
                          dbo_error *err);

#endif
