/* show_graph.c: graphs: the sizes, the form of each, what this run captured. */
#include "app/show/show.h"

#include <inttypes.h>
#include <stdio.h>

/* Is a split graph of this size ever asked for? */
static bool may_split(const dbo_vote_rules *rules, int32_t size)
{
    return rules->num_ubatches > 1 && rules->capturable && rules->has_expert_parallelism &&
           !rules->has_linear_attention && size >= rules->decode_threshold &&
           size >= rules->num_ubatches;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

static const dbo_captured_graph *find(const dbo_simulated *run, int32_t size)
{
    for (uint32_t i = 0; i < run->num_graphs; i++)
        if (run->graphs[i].num_tokens == size)
            return &run->graphs[i];
    return NULL;
}

static void add_size(const dbo_simulated *run, const dbo_vote_rules *rules, int32_t size,
                     dbo_strbuf *out)
{
    const dbo_captured_graph *graph = find(run, size);
    dbo_strbuf_printf(out, "  %6" PRId32 "  ", size);
    if (!graph) {
        dbo_strbuf_printf(out, "%s\n", may_split(rules, size) ? "split, if all ranks do" : "whole");
        return;
    }
    char form[32];
    snprintf(form, sizeof form, graph->num_ubatches > 1 ? "split in %u" : "whole",
             graph->num_ubatches);
    dbo_strbuf_printf(out, "%-22s  %-9s  %6u  %8.1f MiB\n", form, "this step", graph->num_nodes,
                      mib(graph->grown_bytes));
}

static void add_why_none(const dbo_outcome *outcome, const dbo_vote_rules *rules, dbo_strbuf *out)
{
    const dbo_config *config = &outcome->result.experiment->config;
    if (config->cudagraph_mode == DBO_GRAPHS_NONE)
        dbo_strbuf_add(out, "cudagraph_mode is NONE: every step runs eagerly.\n");
    else if (!rules->capturable)
        dbo_strbuf_add(out, "This all-to-all waits on the host for its receive counts, so no step "
                            "with it can be captured.\n");
    else
        dbo_strbuf_printf(out, "This step captured no graph: it runs as %s.\n",
                          dbo_graph_mode_name(outcome->result.decision->graph_mode));
}

void dbo_show_graph(const dbo_outcome *outcome, dbo_strbuf *out)
{
    const dbo_experiment *experiment = outcome->result.experiment;
    const dbo_config *config = &experiment->config;
    const dbo_simulated *run = &outcome->on;
    bool linear = experiment->has_model && experiment->model.attention == DBO_ATTENTION_LINEAR;
    dbo_vote_rules rules;
    uint32_t nodes = 0;
    dbo_vote_rules_from_config(&rules, config, run->caps.capturable, linear);
    for (uint32_t i = 0; i < run->num_graphs; i++)
        nodes += run->graphs[i].num_nodes;
    const dbo_step_result *shown = &run->results[run->class_of[outcome->rank]];
    dbo_strbuf_printf(out, "Graphs of rank %u: %u captured, %u nodes, %.1f MiB in their pool\n",
                      outcome->rank, run->num_graphs, nodes, mib(shown->memory.graph_bytes));
    if (run->num_graphs == 0)
        add_why_none(outcome, &rules, out);
    if (config->cudagraph_mode == DBO_GRAPHS_NONE || !rules.capturable)
        return;
    dbo_strbuf_add(out, "One graph a size, split or whole; a step of the other form then runs "
                        "eagerly.\n\n"
                        "  tokens  form                    captured    nodes    pool grown by\n");
    for (uint32_t i = 0; i < config->num_capture_sizes; i++)
        add_size(run, &rules, config->cudagraph_capture_sizes[i], out);
}
