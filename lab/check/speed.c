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
    dbo_hardware hardware;
    dbo_experiment_machine(e, &hardware);
    dbo_cost_ns(&hardware, cost, 0, &time);
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
        dbo_fabric_ht(&e->hardware, e->ep_size, e->gpus_per_domain, cost, direction, 0, &ht);
        out->run_ns = ht.ns;
        return;
    }
    dbo_fabric_ll(&e->hardware, e->ep_size, e->gpus_per_domain, cost, direction, &ll);
    *out =
        (dbo_perf_transfer){.run_ns = ll.send_ns, .flight_ns = ll.flight_ns, .recv_ns = ll.recv_ns};
}

dbo_status dbo_speed_find(const dbo_perf *perf, const dbo_experiment *experiment,
                          const dbo_simulated *run, uint32_t shown, double threshold,
                          dbo_findings *out, dbo_error *err)
{
    const dbo_perf_machine machine = {.self = experiment, .op_ns = op_ns, .transfer = transfer};
    uint32_t num_ranks = experiment->config.data_parallel_size;
    if (!run->metrics.step_us.present)
        return DBO_OK;
    uint64_t *tokens = malloc(num_ranks * sizeof *tokens);
    DBO_TRY(dbo_need_memory(tokens, "the ranks", err));
    for (uint32_t r = 0; r < num_ranks; r++)
        tokens[r] = (uint64_t)dbo_simulated_result(run, r)->num_tokens;
    const dbo_perf_about about = {.trace = &run->trace,
                                  .rank = run->first_rank[run->class_of[shown]],
                                  .step = run->measured,
                                  .split = dbo_simulated_result(run, shown)->cut.num_ubatches > 1,
                                  .tokens = tokens,
                                  .num_ranks = num_ranks,
                                  .step_us = run->metrics.step_us.value,
                                  .threshold = threshold,
                                  .machine = experiment->has_hardware ? &machine : NULL,
                                  .op_text = dbo_template_op_text,
                                  .op_text_self = experiment->schedule};
    dbo_status status = dbo_perf_find(perf, &about, out, err);
    free(tokens);
    return status;
}
