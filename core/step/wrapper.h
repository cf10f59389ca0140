/* wrapper.h: runs a plan: split or not, eagerly or from a graph.
 *
 * Split and eager: the ubatches take turns. FULL: the first run of a size captures the whole
 * forward of all ubatches in one graph, later ones replay it without turns. A size has one graph,
 * split or not; an unsplit run of a size whose graph is split runs eagerly rather than capture
 * while serving. Graphs belong to the wrapper and are destroyed with it.
 *
 * Memory: captures allocate from one pool that all graphs of the wrapper share, as the reference's
 * do. That is sound because a rank's graphs run one at a time on one stream, each writes what it
 * reads, and a graph's outputs, the only values that outlive its replay, stay allocated: so graphs
 * together need the largest one's memory and all outputs, not the sum. The pool goes back with the
 * last graph. Workspaces are the rank's, outside the pool, the same for eager runs and graphs.
 *
 *     DBO_TRY(dbo_wrapper_init(&wrapper, &rank, &config, false, err));
 *     DBO_TRY(dbo_wrapper_run(&wrapper, &plan, step, DBO_GRAPH_FULL, &ran, err));
 *     dbo_wrapper_fini(&wrapper);
 */
#ifndef DBO_WRAPPER_H
#define DBO_WRAPPER_H

#include "core/rank/rank_memory.h"
#include "core/step/plan.h"
#include "core/step/sm_control.h"
#include "core/step/step_rules.h"

typedef struct dbo_wrapper {
    dbo_rank *rank;
    dbo_sm_control sms;
    const dbo_step_rules *rules; /* the engine's own unless set after init */
    void *rules_self;
    dbo_graph_entry *graphs;
    uint32_t num_graphs;
    dbo_pool pool; /* of all graphs */
    bool has_pool;
} dbo_wrapper;

/* `keep_all`: as in dbo_sm_control_init. */
dbo_status dbo_wrapper_init(dbo_wrapper *wrapper, dbo_rank *rank, const dbo_config *config,
                            bool keep_all, dbo_error *err);
void dbo_wrapper_fini(dbo_wrapper *wrapper); /* before the rank's */

/* Runs the plan as step `step`; returns once everything is issued. `mode` is the voted one; *ran is
 * what was really used (or NULL). */
dbo_status dbo_wrapper_run(dbo_wrapper *wrapper, const dbo_plan *plan, uint32_t step,
                           dbo_graph_mode mode, dbo_graph_mode *ran, dbo_error *err);

void dbo_wrapper_memory(const dbo_wrapper *wrapper, dbo_memory_use *out);
void dbo_wrapper_reset_peaks(dbo_wrapper *wrapper);

#endif
