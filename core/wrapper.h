/* wrapper.h: runs a plan: split or not, eagerly or from a graph (section g).
 *
 * Split and eager: the ubatches take turns. FULL: the first run of a size captures the whole
 * forward of all ubatches in one graph, later ones replay it without turns. A size has one graph,
 * split or not; an unsplit run of a size whose graph is split runs eagerly rather than capture
 * while serving. Graphs belong to the wrapper and are destroyed with it.
 */
#ifndef DBO_WRAPPER_H
#define DBO_WRAPPER_H

#include "core/plan.h"
#include "core/rank.h"
#include "core/sm_control.h"
#include "core/vote.h"

typedef struct dbo_graph_entry {
    int32_t num_tokens;
    uint32_t num_ubatches;
    dbo_graph graph;
} dbo_graph_entry;

typedef struct dbo_wrapper {
    dbo_rank *rank;
    dbo_sm_control sms;
    dbo_graph_entry *graphs;
    uint32_t num_graphs;
} dbo_wrapper;

dbo_status dbo_wrapper_init(dbo_wrapper *wrapper, dbo_rank *rank, const dbo_config *config,
                            bool rocm, dbo_error *err);
void dbo_wrapper_fini(dbo_wrapper *wrapper); /* before the rank's */

/* Runs the plan as step `step`; returns once everything is issued. `mode` is the voted one; *ran is
 * what was really used (or NULL). */
dbo_status dbo_wrapper_run(dbo_wrapper *wrapper, const dbo_plan *plan, uint32_t step,
                           dbo_graph_mode mode, dbo_graph_mode *ran, dbo_error *err);

#endif
