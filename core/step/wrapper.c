/* wrapper.c: which form of a step runs, and the cache of graphs: few sizes, searched front to back.
 */
#include "core/step/wrapper.h"

#include <stdlib.h>
#include <string.h>

dbo_status dbo_wrapper_init(dbo_wrapper *wrapper, dbo_rank *rank, const dbo_config *config,
                            bool keep_all, dbo_error *err)
{
    memset(wrapper, 0, sizeof *wrapper);
    wrapper->rank = rank;
    wrapper->rules = &dbo_step_rules_default;
    return dbo_sm_control_init(&wrapper->sms, rank, config, keep_all, err);
}

void dbo_wrapper_fini(dbo_wrapper *wrapper)
{
    for (uint32_t i = 0; i < wrapper->num_graphs; i++) {
        dbo_graph_entry *entry = &wrapper->graphs[i];
        wrapper->rank->seam.graph->destroy(wrapper->rank->seam.graph_self, entry->graph);
        dbo_rank_free_outputs(wrapper->rank, &entry->outputs);
    }
    if (wrapper->has_pool) /* what fails to go back now goes with the rank's allocator */
        dbo_allocator_release_pool(wrapper->rank->allocator, wrapper->pool, NULL);
    free(wrapper->graphs);
    memset(wrapper, 0, sizeof *wrapper);
}

void dbo_wrapper_memory(const dbo_wrapper *w, dbo_memory_use *out)
{
    *out = (dbo_memory_use){.num_graphs = w->num_graphs};
    if (!w->rank->allocator)
        return;
    dbo_allocator_stats stats;
    dbo_allocator_get_stats(w->rank->allocator, &stats);
    out->peak_used_bytes = stats.peak_used_bytes;
    out->peak_reserved_bytes = stats.peak_reserved_bytes;
    out->graph_bytes = w->has_pool ? dbo_allocator_pool_bytes(w->rank->allocator, w->pool) : 0;
}

void dbo_wrapper_reset_peaks(dbo_wrapper *w)
{
    if (w->rank->allocator)
        dbo_allocator_reset_peaks(w->rank->allocator);
}

/* ---- one forward ---- */

typedef struct forward {
    const dbo_plan *plan;
    uint32_t step;
} forward;

/* All layers, as one ubatch (or, with NULL, unsplit) sees them. */
static dbo_status run_layers(dbo_rank *rank, dbo_ubatch *ubatch, const forward *f, dbo_error *err)
{
    const dbo_plan *plan = f->plan;
    dbo_status status = DBO_OK;
    if (plan->embed.num_ubatches > 0)
        status = dbo_program_run(rank, ubatch, &plan->embed, f->step, 0);
    for (uint32_t layer = 0; layer < plan->num_layers && status == DBO_OK; layer++)
        status = dbo_program_run(rank, ubatch, &plan->layers[plan->kind_of_layer[layer]], f->step,
                                 layer);
    if (status == DBO_OK || status == DBO_ABORTED)
        return status;
    return dbo_rank_fail(rank, status, err);
}

static dbo_status run_part(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    return run_layers(ubatch->rank, ubatch, arg, err);
}

static dbo_status issue(dbo_wrapper *w, forward *f, dbo_error *err)
{
    if (f->plan->num_ubatches == 1)
        return run_layers(w->rank, NULL, f, err);
    dbo_status status = dbo_sm_control_enter(&w->sms, err);
    if (status == DBO_OK)
        status = dbo_ubatches_run(w->rank, f->plan->num_ubatches, f->step, run_part, f, err);
    dbo_status left = dbo_sm_control_exit(&w->sms, status == DBO_OK ? err : NULL);
    return status != DBO_OK ? status : left;
}

/* ---- graphs ---- */

static dbo_status enter_pool(dbo_wrapper *w, dbo_error *err)
{
    dbo_allocator *allocator = w->rank->allocator;
    if (!allocator)
        return DBO_OK;
    if (!w->has_pool)
        DBO_TRY(dbo_allocator_create_pool(allocator, &w->pool, err));
    w->has_pool = true;
    w->rank->keeps_workspaces = true;
    return dbo_allocator_enter_pool(allocator, w->pool, err);
}

/* Begins, issues, ends. Without a graph, what the forward has left in the frame is freed. */
static dbo_status capture_forward(dbo_wrapper *w, forward *f, dbo_graph *graph, dbo_error *err)
{
    const dbo_seam *seam = &w->rank->seam;
    dbo_status status = seam->graph->begin(seam->graph_self, w->rank->streams[DBO_STREAM_COMPUTE]);
    if (status != DBO_OK)
        return dbo_rank_fail(w->rank, status, err);
    status = issue(w, f, err);
    if (status != DBO_OK) {
        seam->graph->abandon(seam->graph_self);
    } else {
        status = seam->graph->end(seam->graph_self, graph);
        if (status != DBO_OK)
            dbo_rank_fail(w->rank, status, err);
    }
    if (status != DBO_OK)
        dbo_rank_release(w->rank, NULL);
    return status;
}

static dbo_status capture(dbo_wrapper *w, forward *f, dbo_error *err)
{
    const dbo_seam *seam = &w->rank->seam;
    dbo_graph_entry *grown = realloc(w->graphs, (w->num_graphs + 1) * sizeof *grown);
    DBO_TRY(dbo_need_memory(grown, "the graph cache", err));
    w->graphs = grown;
    DBO_TRY(enter_pool(w, err));
    uint64_t before = w->has_pool ? dbo_allocator_pool_bytes(w->rank->allocator, w->pool) : 0;
    dbo_graph_entry entry = {.num_tokens = f->plan->num_tokens_padded,
                             .num_ubatches = f->plan->num_ubatches};
    dbo_status status = capture_forward(w, f, &entry.graph, err);
    if (w->has_pool) {
        dbo_allocator_leave_pool(w->rank->allocator);
        entry.grown_bytes = dbo_allocator_pool_bytes(w->rank->allocator, w->pool) - before;
    }
    if (status != DBO_OK)
        return status;
    status = dbo_rank_take_outputs(w->rank, &entry.outputs, err);
    if (status == DBO_OK)
        w->graphs[w->num_graphs++] = entry;
    else
        seam->graph->destroy(seam->graph_self, entry.graph);
    return status;
}

static dbo_status replay(dbo_wrapper *w, const dbo_graph_entry *entry, uint32_t step,
                         dbo_error *err)
{
    const dbo_seam *seam = &w->rank->seam;
    dbo_seam_charge(seam, DBO_CHARGE_REPLAY, 1);
    dbo_status status = seam->graph->replay(seam->graph_self, entry->graph,
                                            w->rank->streams[DBO_STREAM_COMPUTE], step);
    if (status != DBO_OK)
        return dbo_rank_fail(w->rank, status, err);
    dbo_rank_lend_outputs(w->rank, &entry->outputs);
    return DBO_OK;
}

static dbo_status run_head(dbo_wrapper *w, const forward *f, dbo_error *err)
{
    if (!f->plan->has_head)
        return DBO_OK;
    dbo_status status = dbo_program_run(w->rank, NULL, &f->plan->head, f->step,
                                        f->plan->num_layers > 0 ? f->plan->num_layers - 1 : 0);
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(w->rank, status, err);
}

static dbo_status fit(dbo_wrapper *w, const dbo_plan *plan, dbo_error *err)
{
    DBO_TRY(dbo_rank_fit(w->rank, &plan->embed, err));
    DBO_TRY(dbo_rank_fit(w->rank, &plan->head, err));
    for (uint32_t k = 0; k < plan->num_kinds; k++)
        DBO_TRY(dbo_rank_fit(w->rank, &plan->layers[k], err));
    return DBO_OK;
}

/* The layers: eagerly, or by the size's graph, which is captured first if there is none. */
static dbo_status run_forward(dbo_wrapper *w, forward *f, const dbo_graph_entry *entry, bool full,
                              dbo_error *err)
{
    if (!full)
        return issue(w, f, err);
    if (!entry) {
        DBO_TRY(capture(w, f, err));
        entry = &w->graphs[w->num_graphs - 1];
    }
    return replay(w, entry, f->step, err);
}

dbo_status dbo_wrapper_run(dbo_wrapper *w, const dbo_plan *plan, uint32_t step, dbo_graph_mode mode,
                           dbo_graph_mode *ran, dbo_error *err)
{
    forward f = {.plan = plan, .step = step};
    DBO_TRY(fit(w, plan, err));
    bool full = mode == DBO_GRAPH_FULL && w->rank->seam.graph;
    const dbo_graph_entry *entry = NULL;
    if (full)
        entry = w->rules->find_graph(w->rules_self, w->graphs, w->num_graphs,
                                     plan->num_tokens_padded, plan->num_ubatches);
    if (entry && entry->num_ubatches != plan->num_ubatches)
        full = false; /* the size's one graph is of the other form */
    if (ran)
        *ran = full ? DBO_GRAPH_FULL : DBO_GRAPH_NONE;
    dbo_status status = run_forward(w, &f, entry, full, err);
    if (status == DBO_OK)
        status = run_head(w, &f, err);
    dbo_status released = dbo_rank_release(w->rank, status == DBO_OK ? err : NULL);
    return status == DBO_OK ? released : status;
}
