/* simulate.c: experiment -> a world and its steps -> a trace and metrics. */
#include "lab/world/simulate.h"

#include "core/base/prng.h"
#include "core/base/units.h"
#include "lab/experiment/fixed_costs.h"
#include "lab/world/cost_probe.h"
#include "lab/world/world.h"

#include <stdlib.h>
#include <string.h>

/* The vote is an all-reduce of a few integers over TCP: up and down a tree of the ranks. A hop is
 * one small message between two hosts of a cluster, both network stacks included: 10 to 30 µs, an
 * order of magnitude and no more. Every step pays it, with and without DBO. */
#define EXCHANGE_HOP_NS (15 * DBO_NS_PER_US)

typedef struct simulation {
    const dbo_experiment *experiment;
    const dbo_simulate_options *options; /* of the run with DBO; else none */
    const dbo_backend *real;             /* NULL: time is virtual */
    bool unfolded;
    dbo_config config;
    dbo_hardware hardware;
    dbo_layer_costs fixed;
    dbo_fault own_fault, *fault; /* the run's; NULL: none */
    dbo_deployment deployment;
    dbo_arrivals arrivals;
    dbo_fold fold;
    dbo_cost_probe *probes; /* (fold.num_classes) */
    dbo_world world;
} simulation;

/* ---- what is run ---- */

static int64_t exchange_ns(const simulation *s)
{
    if (s->experiment->has_fixed)
        return 0;
    int64_t hops = 0;
    for (uint32_t reached = 1; reached < s->config.data_parallel_size; reached *= 2)
        hops++;
    return 2 * hops * EXCHANGE_HOP_NS;
}

/* An op that no cost is given for does not exist, rather than take no time. A0, where a layer
 * begins, and the transfers are always there; so is everything where data is looked at. */
static void leave_out_free_ops(dbo_layer_costs *costs)
{
    static const dbo_op_kind kinds[] = {DBO_KIND_A1, DBO_KIND_MLP, DBO_KIND_SHARED, DBO_KIND_COPY};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (costs->op[kinds[i]].fixed_ns == 0)
            costs->kernels[kinds[i]] = 0;
}

static void prepare(simulation *s, const dbo_experiment *experiment, bool with_dbo,
                    const dbo_simulate_options *options)
{
    static const dbo_simulate_options none = {0};
    memset(s, 0, sizeof *s);
    s->experiment = experiment;
    s->options = with_dbo ? options : &none;
    s->unfolded = options->unfolded;
    if (options->backend && !options->backend->simulated)
        s->real = options->backend;
    s->config = experiment->config;
    uint32_t ubatches = with_dbo ? 1 : dbo_config_num_ubatches(&s->config);
    if (!with_dbo)
        dbo_config_switch_off(&s->config);
    dbo_experiment_machine(experiment, &s->hardware);
    if (experiment->has_fixed)
        dbo_fixed_costs_use(&experiment->fixed, ubatches > 1 ? ubatches : 1, &s->fixed,
                            &s->hardware);
    if (experiment->has_fixed && !s->options->io)
        leave_out_free_ops(&s->fixed);
    s->deployment = (dbo_deployment){
        .config = &s->config,
        .model = experiment->has_fixed ? NULL : &experiment->model,
        .fixed = &s->fixed,
        .schedule = experiment->schedule ? &experiment->schedule->schedule : NULL,
        .num_layers = experiment->num_layers,
        .ep_size = experiment->ep_size,
        .ll_capacity = dbo_experiment_ll_capacity(experiment),
        .no_all_to_all = experiment->no_all_to_all && !experiment->has_fixed,
        .expert_tp = experiment->expert_tp,
        .redundant_experts = experiment->routing.redundant_experts,
        .gpus_per_domain = experiment->gpus_per_domain,
        .num_routings = experiment->routings.count,
        .routings = (const dbo_routing *const *)experiment->routings.items,
        .rocm = s->hardware.platform == DBO_PLATFORM_ROCM,
        .io = s->options->io,
        .log = s->options->log,
    };
    if (with_dbo && experiment->has_fault)
        s->fault = dbo_fault_begin(&s->own_fault, &experiment->fault, &s->deployment);
    dbo_fault_set_up(s->fault, &s->config, &s->hardware);
}

/* ---- the run ---- */

/* Does the rank run by itself? */
static bool stands_out(const void *self, uint32_t rank)
{
    const simulation *s = self;
    return s->unfolded || s->real || s->experiment->batch.jitter_us > 0 ||
           s->experiment->routings.count > 0 ||
           (s->options->late_ns > 0 && rank == s->options->late_rank) ||
           dbo_fault_stands_out(s->fault, rank);
}

/* How late a rank comes, as options, a fault and its seed say. */
static int64_t lateness_ns(const simulation *s, uint32_t index)
{
    uint32_t rank = s->fold.first_rank[index];
    int64_t ns = s->options->late_ns > 0 && rank == s->options->late_rank ? s->options->late_ns : 0;
    ns += (int64_t)dbo_fault_late_us(s->fault, rank) * DBO_NS_PER_US;
    uint64_t most_ns = (uint64_t)dbo_ns_from_us(s->experiment->batch.jitter_us);
    dbo_prng prng;
    dbo_prng_init(&prng, s->experiment->seed, index);
    return most_ns == 0 ? ns : ns + (int64_t)dbo_prng_below(&prng, most_ns + 1);
}

/* Late between the vote and the first launch of the measured step: before the vote, everybody would
 * wait there, and nobody's transfers for anybody. */
static dbo_status delay(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err)
{
    (void)plan;
    (void)err;
    simulation *s = self;
    dbo_world_rank *rank = &s->world.ranks[step->runner->rank->id];
    if (step->step + 1 != s->arrivals.num_steps)
        return DBO_OK;
    if (dbo_fault_late_us(s->fault, rank->logical) > 0)
        s->fault->reached++;
    if (!s->real)
        dbo_world_delay(rank, lateness_ns(s, rank->id));
    return DBO_OK;
}

static dbo_status attach_probe(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    simulation *s = self;
    (void)err;
    dbo_cost_probe_wrap(&s->probes[rank], seam, &s->hardware, s->experiment->ep_size,
                        s->experiment->gpus_per_domain);
    return DBO_OK;
}

static dbo_status begin(void *self, dbo_world_rank *rank, dbo_error *err)
{
    (void)err;
    rank->runner.hook = (dbo_plan_hook){.prepare = delay, .self = self};
    return DBO_OK;
}

/* The costs of the step that comes are counted. */
static dbo_status ended(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    simulation *s = self;
    (void)err;
    if (step + 1 < s->arrivals.num_steps)
        dbo_cost_probe_reset(&s->probes[rank->id]);
    return DBO_OK;
}

/* What only a simulated machine can have. */
static dbo_status check_real(const simulation *s, dbo_error *err)
{
    bool late = s->options->late_ns > 0 || (s->fault && s->fault->late_us > 0);
    const char *what = s->experiment->batch.jitter_us > 0   ? "jitter_us"
                       : late                               ? "a late rank"
                       : s->fault && s->fault->kind->set_up ? "a machine that is set up wrongly"
                                                            : NULL;
    if (!s->real || !what)
        return DBO_OK;
    return dbo_fail(err, DBO_UNSUPPORTED, "Leave it out, or simulate.",
                    "the back end '%s' is a real machine: it cannot have %s", s->real->name, what);
}

static dbo_status run(simulation *s, const dbo_simulate_options *options, dbo_simulated *out,
                      dbo_error *err)
{
    const dbo_world_options world = {
        .backend = options->backend,
        .machine = {.hardware = &s->hardware,
                    .num_ranks = s->config.data_parallel_size,
                    .num_classes = s->real ? 0 : s->fold.num_classes,
                    .class_of = s->real ? NULL : s->fold.class_of,
                    .ep_size = s->experiment->ep_size,
                    .gpus_per_domain = s->experiment->gpus_per_domain,
                    .low_latency = s->config.all2all_backend != DBO_BACKEND_HT,
                    .transport = dbo_config_transport(&s->config),
                    .contexts = s->config.executor,
                    .exchange_ns = exchange_ns(s),
                    .cancelled = options->cancelled,
                    .cancelled_arg = options->cancelled_arg},
        .deployment = &s->deployment,
        .trace = &out->trace,
        .attachments = {{dbo_fault_attach, s->fault},
                        {s->options->attach, s->options->attach_self},
                        {attach_probe, s}},
    };
    const dbo_world_batches batches = {.num_steps = s->arrivals.num_steps,
                                       .requests = s->arrivals.requests,
                                       .begin = begin,
                                       .ended = ended,
                                       .self = s};
    s->probes = calloc(s->fold.num_classes, sizeof *s->probes);
    DBO_TRY(dbo_need_memory(s->probes, "the ranks", err));
    DBO_TRY(dbo_world_init(&s->world, &world, err));
    return dbo_world_steps(&s->world, &batches, err);
}

static void simulation_fini(simulation *s)
{
    dbo_world_fini(&s->world);
    dbo_arrivals_fini(&s->arrivals);
    dbo_fault_end(s->fault);
    for (uint32_t c = 0; s->probes && c < s->fold.num_classes; c++)
        dbo_cost_probe_fini(&s->probes[c]);
    free(s->probes);
}

/* The matrix of the last vote and what each rank ran: equal on all ranks. */
static dbo_status copy_vote(const simulation *s, dbo_simulated *out, dbo_error *err)
{
    const dbo_runner *runner = &s->world.ranks[0].runner;
    size_t ranks = s->config.data_parallel_size, rows = (size_t)dbo_vote_rows(&runner->setup.vote);
    out->vote_rows = (uint32_t)rows;
    out->vote = calloc(ranks * rows, sizeof *out->vote);
    out->across_dp = calloc(ranks, sizeof *out->across_dp);
    DBO_TRY(dbo_need_memory(out->vote && out->across_dp, "the vote", err));
    memcpy(out->vote, runner->matrix, ranks * rows * sizeof *out->vote);
    memcpy(out->across_dp, runner->across_dp, ranks * sizeof *out->across_dp);
    out->caps = runner->setup.caps;
    out->turns = dbo_executor_rules(runner->rank->executor);
    out->comm_sms = runner->wrapper.sms.comm;
    return DBO_OK;
}

static void copy_graphs(const simulation *s, uint32_t shown, dbo_simulated *out)
{
    const dbo_wrapper *wrapper = &s->world.ranks[shown].runner.wrapper;
    for (uint32_t i = 0; i < wrapper->num_graphs && i < DBO_MAX_SHOWN_GRAPHS; i++) {
        const dbo_graph_entry *entry = &wrapper->graphs[i];
        out->graphs[out->num_graphs++] = (dbo_captured_graph){
            .num_tokens = entry->num_tokens,
            .num_ubatches = entry->num_ubatches,
            .num_nodes = dbo_world_graph_nodes(&s->world.ranks[shown], entry->graph),
            .grown_bytes = entry->grown_bytes};
    }
}

/* Takes the results out of the world, and measures. */
static dbo_status collect(simulation *s, uint32_t *shown, dbo_simulated *out, dbo_error *err)
{
    out->results = calloc(s->fold.num_classes, sizeof *out->results);
    DBO_TRY(dbo_need_memory(out->results, "the results", err));
    out->num_classes = s->fold.num_classes;
    uint32_t most = 0; /* class with the most tokens; of several the least late, which waits */
    for (uint32_t c = 0; c < s->fold.num_classes; c++) {
        out->results[c] = s->world.ranks[c].result;
        memset(&s->world.ranks[c].result, 0, sizeof s->world.ranks[c].result);
        int32_t more = out->results[c].num_tokens - out->results[most].num_tokens;
        if (more > 0 || (more == 0 && lateness_ns(s, c) < lateness_ns(s, most)))
            most = c;
    }
    DBO_TRY(copy_vote(s, out, err));
    copy_graphs(s, most, out);
    out->sums = dbo_cost_probe_sums(&s->probes[most]);
    dbo_trace_rename_ranks(&out->trace, s->fold.first_rank); /* the machine knows classes only */
    *shown = s->fold.first_rank[most];
    dbo_metrics *metrics = &out->metrics;
    uint32_t ranks = s->config.data_parallel_size;
    uint64_t tokens = 0; /* of all: busy ranks and idle ones share a step */
    for (uint32_t r = 0; r < ranks; r++)
        tokens += (uint64_t)out->results[s->fold.class_of[r]].num_tokens;
    DBO_TRY(dbo_metrics_compute(metrics, &out->trace, *shown, out->measured, tokens, err));
    metrics->tokens_per_s_per_gpu.value /= (double)ranks * s->config.tensor_parallel_size;
    return DBO_OK;
}

dbo_status dbo_simulate_one(const dbo_experiment *experiment, const dbo_simulate_options *options,
                            bool with_dbo, dbo_simulated *out, uint32_t *shown, dbo_error *err)
{
    simulation s;
    memset(out, 0, sizeof *out);
    prepare(&s, experiment, with_dbo, options);
    dbo_trace_init(&out->trace);
    dbo_status status = DBO_OK;
    DBO_TRY_GOTO(check_real(&s, err), done);
    DBO_TRY_GOTO(dbo_arrivals_init(&s.arrivals, experiment, s.options->arrival, err), done);
    out->measured = s.arrivals.num_steps - 1;
    DBO_TRY_GOTO(dbo_arrivals_fold(&s.arrivals, stands_out, &s, &s.fold, err), done);
    out->class_of = s.fold.class_of; /* whose they are from here on */
    out->first_rank = s.fold.first_rank;
    DBO_TRY_GOTO(run(&s, options, out, err), done);
    status = collect(&s, shown, out, err);
done:
    out->fault_reached = s.fault ? s.fault->reached : 0;
    simulation_fini(&s);
    return status;
}

dbo_status dbo_simulated_plan(const dbo_experiment *experiment, const dbo_simulated *run,
                              uint32_t rank, dbo_plan *out, dbo_error *err)
{
    simulation s;
    const dbo_simulate_options options = {0};
    prepare(&s, experiment, true, &options);
    s.deployment.io = true; /* whoever looks at a program wants to see it */
    dbo_status status =
        dbo_plan_build(out, &s.deployment, &dbo_simulated_result(run, rank)->cut, &run->caps, err);
    dbo_fault_end(s.fault);
    return status;
}

void dbo_simulated_fini(dbo_simulated *s)
{
    for (uint32_t c = 0; s->results && c < s->num_classes; c++)
        dbo_step_result_fini(&s->results[c]);
    free(s->results);
    free(s->class_of);
    free(s->first_rank);
    free(s->vote);
    free(s->across_dp);
    dbo_trace_fini(&s->trace);
}
