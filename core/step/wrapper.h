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
 */
#ifndef DBO_WRAPPER_H
#define DBO_WRAPPER_H

#include "core/decide/vote.h"
#include "core/rank/rank_memory.h"
#include "core/step/plan.h"
#include "core/step/sm_control.h"

typedef struct dbo_graph_entry {
    int32_t num_tokens;
    int32_t key; /* that it is found by: its tokens */
    uint32_t num_ubatches;
    dbo_graph graph;
    dbo_rank_outputs outputs;
    uint64_t grown_bytes; /* what its capture added to the pool */
} dbo_graph_entry;

typedef struct dbo_wrapper {
    dbo_rank *rank;
    dbo_sm_control sms;
    dbo_fault *fault; /* NULL unless set after init */
    dbo_graph_entry *graphs;
    uint32_t num_graphs;
    dbo_pool pool; /* of all graphs */
    bool has_pool;
} dbo_wrapper;

/* Bytes of device memory of a rank. Peaks are since the last dbo_wrapper_reset_peaks; a replay
 * allocates nothing, so then it is the reserved ones that tell. */
typedef struct dbo_memory_use {
    uint64_t peak_used_bytes;     /* in blocks that were handed out */
    uint64_t peak_reserved_bytes; /* taken from the device, cached blocks included */
    uint64_t graph_bytes;         /* of them, the graphs' pool now */
    uint32_t num_graphs;
} dbo_memory_use;

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
