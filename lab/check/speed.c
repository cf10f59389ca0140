/* speed.c: see speed.h. The machine's law is the simulator's own, with all SMs: only ratios of it
 * are used. */
#include "lab/check/speed.h"

#include "sim/cost.h"
#include "sim/fabric.h"

#include <stdlib.h>

static int64_t op_ns(const void *self, const dbo_op_cost *cost)
{
    const dbo_experiment *e = self;
    dbo_op_time time;
    dbo_cost_ns(&e->hardware, cost, 0, &time);
    return time.ns;
}

static void transfer(const void *self, const dbo_a2a_cost *cost, dbo_a2a_direction direction,
                     dbo_perf_transfer *out)
{
    const dbo_experiment *e = self;
    dbo_ht_time ht;
    dbo_ll_time ll;
    *out = (dbo_perf_transfer){0};
    if (e->config.all2all_backend == DBO_BACKEND_HT) {
        dbo_fabric_ht(&e->hardware, e->ep_size, e->gpus_per_node, cost, 0, &ht);
        out->run_ns = ht.ns;
        return;
    }
    dbo_fabric_ll(&e->hardware, e->ep_size, e->gpus_per_node, cost, direction, &ll);
    *out =
        (dbo_perf_transfer){.run_ns = ll.send_ns, .flight_ns = ll.flight_ns, .recv_ns = ll.recv_ns};
}

/* What is asked about the run; `tokens` is (dp size) and filled in. */
static dbo_perf_about about_run(const dbo_experiment *e, const dbo_simulated *run, uint32_t shown,
                                uint64_t *tokens)
{
    uint32_t num_ranks = e->config.data_parallel_size;
    for (uint32_t r = 0; r < num_ranks; r++)
        tokens[r] = (uint64_t)run->results[run->class_of[r]].num_tokens;
    return (dbo_perf_about){.trace = &run->trace,
                            .rank = run->first_rank[run->class_of[shown]],
                            .step = run->measured,
                            .split = run->results[run->class_of[shown]].cut.num_ubatches > 1,
                            .tokens = tokens,
                            .num_ranks = num_ranks,
                            .step_us = run->metrics.step_us.value,
                            .op_text = dbo_template_op_text,
                            .op_text_self = e->schedule};
}

dbo_status dbo_speed_find(const dbo_perf *perf, const dbo_experiment *experiment,
                          const dbo_simulated *run, uint32_t shown, double threshold,
                          dbo_findings *out, dbo_error *err)
{
    const dbo_perf_machine machine = {.self = experiment, .op_ns = op_ns, .transfer = transfer};
    uint64_t *tokens = malloc(experiment->config.data_parallel_size * sizeof *tokens);
    DBO_TRY(dbo_need_memory(tokens, "the ranks", err));
    dbo_perf_about about = about_run(experiment, run, shown, tokens);
    about.threshold = threshold;
    if (experiment->has_hardware)
        about.machine = &machine;
    dbo_status status =
        run->metrics.step_us.present ? dbo_perf_find(perf, &about, out, err) : DBO_OK;
    free(tokens);
    return status;
}

dbo_status dbo_speed_replay(const dbo_perf *perf, const dbo_experiment *experiment,
                            const dbo_simulated *run, uint32_t shown, int64_t *out_ns,
                            dbo_error *err)
{
    uint64_t *tokens = malloc(experiment->config.data_parallel_size * sizeof *tokens);
    DBO_TRY(dbo_need_memory(tokens, "the ranks", err));
    const dbo_perf_about about = about_run(experiment, run, shown, tokens);
    dbo_status status = dbo_perf_replay(perf, &about, out_ns, err);
    free(tokens);
    return status;
}
