/* simulate.c: experiment -> simulator and runners -> traces and metrics. */
#include "lab/world/simulate.h"

#include "core/base/prng.h"
#include "core/base/units.h"
#include "lab/experiment/fixed_costs.h"
#include "lab/world/cost_probe.h"
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* The vote is an all-reduce of a few integers over TCP: up and down a tree of the ranks. A hop is
 * one small message between two hosts of a cluster, both network stacks included: 10 to 30 µs, an
 * order of magnitude and no more. Every step pays it, with and without DBO. */
#define EXCHANGE_HOP_NS (15 * DBO_NS_PER_US)

typedef struct simulation simulation;

typedef struct class_state {
    simulation *simulation;
    dbo_rank rank;
    dbo_runner runner;
    dbo_cost_probe probe;
    dbo_step_result result;
    uint32_t logical; /* the first rank that it stands for */
} class_state;

struct simulation {
    const dbo_experiment *experiment;
    dbo_config config;
    dbo_hardware hardware;
    dbo_layer_costs fixed;
    dbo_fault own_fault, *fault; /* the run's; NULL: none */
    dbo_deployment deployment;
    const dbo_simulate_options *options; /* of the run with DBO; else none */
    dbo_sim *sim;
    uint32_t num_classes;
    class_state *classes;
};

/* ---- what stays equal folds ---- */

/* The step that is measured comes after so many others. */
static uint32_t num_before(const dbo_experiment *e)
{
    return e->num_before > 0 ? e->num_before : 1;
}

static const dbo_workload *batch_of(const dbo_experiment *e, uint32_t step)
{
    return step < e->num_before ? &e->before[step] : &e->batch;
}

static bool stands_out(const simulation *s, uint32_t rank)
{
    return (s->options->late_ns > 0 && rank == s->options->late_rank) ||
           dbo_fault_stands_out(s->fault, rank);
}

static bool are_alike(const simulation *s, uint32_t a, uint32_t b)
{
    for (uint32_t step = 0; step <= s->experiment->num_before; step++) {
        const dbo_workload *batch = batch_of(s->experiment, step);
        if (batch->ranks[a] != batch->ranks[b])
            return false;
    }
    return !stands_out(s, a) && !stands_out(s, b);
}

static dbo_status make_classes(simulation *s, bool unfolded, dbo_simulated *out, dbo_error *err)
{
    uint32_t num_ranks = s->config.data_parallel_size;
    bool alike = !unfolded && s->experiment->batch.jitter_us <= 0;
    s->classes = calloc(num_ranks, sizeof *s->classes);
    out->class_of = calloc(num_ranks, sizeof *out->class_of);
    out->first_rank = calloc(num_ranks, sizeof *out->first_rank);
    if (!s->classes || !out->class_of || !out->first_rank)
        return dbo_fail_memory(err, "the ranks");
    for (uint32_t r = 0; r < num_ranks; r++) {
        uint32_t c = alike ? 0 : s->num_classes;
        while (c < s->num_classes && !are_alike(s, s->classes[c].logical, r))
            c++;
        if (c == s->num_classes) {
            out->first_rank[c] = r;
            s->classes[s->num_classes++].logical = r;
        }
        out->class_of[r] = c;
    }
    return DBO_OK;
}

static int64_t exchange_ns(const simulation *s)
{
    if (s->experiment->has_fixed)
        return 0;
    int64_t hops = 0;
    for (uint32_t reached = 1; reached < s->config.data_parallel_size; reached *= 2)
        hops++;
    return 2 * hops * EXCHANGE_HOP_NS;
}

static void install_fault(simulation *s)
{
    s->own_fault = s->experiment->fault;
    s->fault = &s->own_fault;
    s->deployment.rules = &s->fault->rules;
    s->deployment.rules_self = s->fault;
    dbo_fault_set_up(s->fault, &s->config, &s->hardware);
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
    s->config = experiment->config;
    uint32_t ubatches = with_dbo ? 1 : dbo_config_num_ubatches(&s->config);
    if (!with_dbo) {
        s->config.enable_dbo = false;
        s->config.ubatch_size = 0;
    }
    s->hardware = experiment->hardware;
    if (!experiment->has_hardware)
        dbo_hardware_init(&s->hardware);
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
        .rocm = s->hardware.platform == DBO_PLATFORM_ROCM,
        .io = s->options->io,
        .log = s->options->log,
    };
    if (with_dbo && experiment->has_fault)
        install_fault(s);
}

/* ---- the run ---- */

/* How late a rank comes, as options, a fault and its seed say. */
static int64_t lateness_ns(const simulation *s, uint32_t index)
{
    uint32_t rank = s->classes[index].logical;
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
    const class_state *c = self;
    simulation *s = c->simulation;
    if (step->step != num_before(s->experiment))
        return DBO_OK;
    if (dbo_fault_late_us(s->fault, c->logical) > 0)
        s->fault->reached++;
    dbo_sim_delay(s->sim, c->rank.id, lateness_ns(s, c->rank.id));
    return DBO_OK;
}

/* Have two requests of the list a block in common? */
static bool shares_blocks(const dbo_request_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->cache && (list->cache[i].prefix || list->cache[i].blocks))
            return true;
    return false;
}

/* A step of the rank, its requests in the order of the options. */
static dbo_status run_step(simulation *s, class_state *c, uint32_t step, dbo_error *err)
{
    const dbo_request_list *list = batch_of(s->experiment, step)->ranks[c->logical];
    uint32_t count = list->count, arrival = s->options->arrival;
    if (arrival == 0 || count < 2 || shares_blocks(list))
        return dbo_runner_step(&c->runner, step, list->requests, (int32_t)count, &c->result, err);
    dbo_request *ordered = calloc(count, sizeof *ordered);
    if (!ordered)
        return dbo_fail_memory(err, "the requests");
    for (uint32_t i = 0; i < count; i++)
        ordered[i] = list->requests[arrival == 1 ? count - 1 - i : (i + 1) % count];
    dbo_status status = dbo_runner_step(&c->runner, step, ordered, (int32_t)count, &c->result, err);
    free(ordered);
    return status;
}

static dbo_status rank_main(void *arg, uint32_t index, dbo_error *err)
{
    simulation *s = arg;
    class_state *c = &s->classes[index];
    dbo_seam seam;
    dbo_sim_seam(s->sim, index, &seam);
    DBO_TRY(dbo_fault_attach(s->fault, index, &seam, err));
    if (s->options->attach)
        DBO_TRY(s->options->attach(s->options->attach_self, index, &seam, err));
    dbo_cost_probe_wrap(&c->probe, &seam, &s->hardware, s->experiment->ep_size,
                        s->experiment->gpus_per_node);
    uint32_t most = dbo_config_num_ubatches(&s->config);
    DBO_TRY(dbo_rank_init(&c->rank, index, &seam, s->config.executor, most > 1 ? most : 1,
                          dbo_sim_pool(s->sim), err));
    DBO_TRY(dbo_runner_init(&c->runner, &c->rank, &s->deployment, err));
    c->simulation = s;
    c->runner.hook = (dbo_plan_hook){.prepare = delay, .self = c};
    uint32_t measured = num_before(s->experiment);
    for (uint32_t step = 0; step <= measured; step++) {
        dbo_step_result_fini(&c->result);
        dbo_cost_probe_reset(&c->probe, step > 0 && c->result.ran == DBO_GRAPH_FULL);
        DBO_TRY(run_step(s, c, step, err));
    }
    return DBO_OK;
}

static dbo_status run(simulation *s, const dbo_simulate_options *options, dbo_simulated *out,
                      dbo_error *err)
{
    const dbo_sim_options sim_options = {
        .hardware = &s->hardware,
        .num_ranks = s->config.data_parallel_size,
        .num_classes = s->num_classes,
        .class_of = out->class_of,
        .ep_size = s->experiment->ep_size,
        .gpus_per_node = s->experiment->gpus_per_node,
        .transport = s->config.all2all_backend == DBO_BACKEND_HT ? DBO_SIM_HT : DBO_SIM_LL,
        .contexts = s->config.executor,
        .exchange_ns = exchange_ns(s),
        .trace = dbo_trace_sink(),
        .trace_self = &out->trace,
        .cancelled = options->cancelled,
        .cancelled_arg = options->cancelled_arg,
    };
    s->sim = dbo_sim_create(&sim_options, err);
    if (!s->sim)
        return err && err->status != DBO_OK ? err->status : DBO_NO_MEMORY;
    DBO_TRY(dbo_sim_run(s->sim, rank_main, s, err));
    return out->trace.failed ? dbo_fail_memory(err, "the trace") : DBO_OK;
}

static void simulation_fini(simulation *s)
{
    for (uint32_t c = 0; s->classes && c < s->num_classes; c++) {
        dbo_step_result_fini(&s->classes[c].result);
        dbo_runner_fini(&s->classes[c].runner);
        dbo_rank_fini(&s->classes[c].rank);
    }
    dbo_sim_destroy(s->sim);
    dbo_fault_end(s->fault);
    free(s->classes);
}

/* The matrix of the last vote and what each rank ran: equal on all ranks. */
static dbo_status copy_vote(const simulation *s, dbo_simulated *out, dbo_error *err)
{
    const dbo_runner *runner = &s->classes[0].runner;
    size_t ranks = s->config.data_parallel_size, rows = (size_t)dbo_vote_rows(&runner->setup.vote);
    out->vote_rows = (uint32_t)rows;
    out->vote = calloc(ranks * rows, sizeof *out->vote);
    out->across_dp = calloc(ranks, sizeof *out->across_dp);
    if (!out->vote || !out->across_dp)
        return dbo_fail_memory(err, "the vote");
    memcpy(out->vote, runner->matrix, ranks * rows * sizeof *out->vote);
    memcpy(out->across_dp, runner->across_dp, ranks * sizeof *out->across_dp);
    out->caps = runner->setup.caps;
    out->turns = dbo_executor_rules(s->classes[0].rank.executor);
    out->comm_sms = runner->wrapper.sms.comm;
    return DBO_OK;
}

static void copy_graphs(const simulation *s, uint32_t shown, dbo_simulated *out)
{
    const dbo_wrapper *wrapper = &s->classes[shown].runner.wrapper;
    for (uint32_t i = 0; i < wrapper->num_graphs && i < DBO_MAX_SHOWN_GRAPHS; i++) {
        const dbo_graph_entry *entry = &wrapper->graphs[i];
        out->graphs[out->num_graphs++] =
            (dbo_captured_graph){.num_tokens = entry->num_tokens,
                                 .num_ubatches = entry->num_ubatches,
                                 .num_nodes = dbo_sim_graph_nodes(s->sim, shown, entry->graph),
                                 .grown_bytes = entry->grown_bytes};
    }
}

/* Takes the results out of the simulation, and measures. */
static dbo_status collect(simulation *s, uint32_t *shown, dbo_simulated *out, dbo_error *err)
{
    out->results = calloc(s->num_classes, sizeof *out->results);
    if (!out->results)
        return dbo_fail_memory(err, "the results");
    out->num_classes = s->num_classes;
    uint32_t most = 0; /* class with the most tokens; of several the least late, which waits */
    for (uint32_t c = 0; c < s->num_classes; c++) {
        out->results[c] = s->classes[c].result;
        memset(&s->classes[c].result, 0, sizeof s->classes[c].result);
        int32_t more = out->results[c].num_tokens - out->results[most].num_tokens;
        if (more > 0 || (more == 0 && lateness_ns(s, c) < lateness_ns(s, most)))
            most = c;
    }
    DBO_TRY(copy_vote(s, out, err));
    copy_graphs(s, most, out);
    out->sums = s->classes[most].probe.sums;
    dbo_trace_rename_ranks(&out->trace, out->first_rank); /* the simulator knows classes only */
    *shown = out->first_rank[most];
    return dbo_metrics_compute(&out->metrics, &out->trace, *shown, out->measured,
                               (uint64_t)out->results[most].num_tokens, err);
}

static dbo_status run_one(const dbo_experiment *experiment, const dbo_simulate_options *options,
                          bool with_dbo, uint32_t *shown, dbo_simulated *out, dbo_error *err)
{
    simulation s;
    prepare(&s, experiment, with_dbo, options);
    dbo_trace_init(&out->trace);
    out->measured = num_before(experiment);
    dbo_status status = make_classes(&s, options->unfolded, out, err);
    if (status == DBO_OK)
        status = run(&s, options, out, err);
    if (status == DBO_OK)
        status = collect(&s, shown, out, err);
    out->fault_reached = s.fault ? s.fault->reached : 0;
    simulation_fini(&s);
    return status;
}

/* ---- does it fit, and is it all there ---- */

/* The fullest rank's memory, with what its step as decided took. */
static dbo_status weigh(const dbo_experiment *experiment, dbo_outcome *o, dbo_error *err)
{
    const dbo_simulated *run = o->split ? &o->on : &o->off;
    for (uint32_t c = 0; c < run->num_classes; c++) {
        dbo_footprint f;
        DBO_TRY(dbo_footprint_of_rank(experiment, run->first_rank[c], &f, err));
        f.step_bytes = (double)run->results[c].memory.peak_reserved_bytes;
        if (c == 0 || dbo_footprint_bytes(&f) > dbo_footprint_bytes(&o->footprint))
            o->footprint = f;
    }
    return dbo_footprint_check(&o->footprint, experiment, err);
}

/* Kinds of ops that ran in the measured step, by bit. */
static uint32_t kinds_of(const dbo_simulated *run)
{
    uint32_t kinds = 0;
    for (uint64_t i = 0; i < run->trace.num_spans; i++) {
        dbo_op_id id = dbo_trace_span(&run->trace, i)->id;
        if (dbo_op_id_step(id) == run->measured && dbo_op_id_kind(id) < DBO_KIND_COUNT)
            kinds |= 1u << dbo_op_id_kind(id);
    }
    return kinds;
}

/* ---- the outcome ---- */

static const dbo_step_result *result_of(const dbo_simulated *run, uint32_t rank)
{
    return &run->results[run->class_of[rank]];
}

static dbo_status copy_slices(const dbo_experiment *experiment, dbo_outcome *o, dbo_error *err)
{
    uint32_t num_ranks = experiment->config.data_parallel_size;
    uint32_t n = result_of(&o->on, o->rank)->cut.num_ubatches;
    o->slices = calloc((size_t)num_ranks * n, sizeof *o->slices);
    o->slices_padded = calloc((size_t)num_ranks * n, sizeof *o->slices_padded);
    if (!o->slices || !o->slices_padded)
        return dbo_fail_memory(err, "the slices");
    for (uint32_t r = 0; r < num_ranks; r++) {
        const dbo_cut *cut = &result_of(&o->on, r)->cut;
        memcpy(&o->slices[(size_t)r * n], cut->slices, n * sizeof *o->slices);
        memcpy(&o->slices_padded[(size_t)r * n], cut->slices_padded, n * sizeof *o->slices);
    }
    return DBO_OK;
}

static dbo_status conclude(const dbo_experiment *experiment, dbo_outcome *o, dbo_error *err)
{
    const dbo_step_result *shown = result_of(&o->on, o->rank);
    o->split = shown->decision.should_ubatch;
    if (o->split) {
        dbo_split_cost_compute(&o->split_cost, &o->off.sums, &o->on.sums);
        DBO_TRY(copy_slices(experiment, o, err));
    }
    if (!experiment->has_fixed)
        DBO_TRY(weigh(experiment, o, err));
    dbo_error none = {0};
    o->has_notation =
        dbo_notation_init(&o->notation, &o->on.trace, o->rank, o->on.measured, &none) == DBO_OK;
    if (!o->has_notation && none.status != DBO_INVALID)
        return dbo_fail(err, none.status, none.hint, "%s", none.message);
    o->result = (dbo_result){
        .experiment = experiment,
        .decision = &shown->decision,
        .rank = o->rank,
        .off = &o->off.metrics,
        .on = o->split ? &o->on.metrics : NULL,
        .split_cost = o->split ? &o->split_cost : NULL,
        .notation = o->has_notation ? &o->notation : NULL,
        .memory_off = experiment->has_fixed ? NULL : &result_of(&o->off, o->rank)->memory,
        .memory_on = experiment->has_fixed || !o->split ? NULL : &shown->memory,
        .footprint = experiment->has_fixed ? NULL : &o->footprint,
        .left_out = o->split ? kinds_of(&o->off) & ~kinds_of(&o->on) : 0,
        .num_ranks = experiment->config.data_parallel_size,
        .num_ubatches = o->split ? shown->cut.num_ubatches : 0,
        .slices = o->slices,
        .slices_padded = o->slices_padded,
    };
    return DBO_OK;
}

dbo_status dbo_simulate(const dbo_experiment *experiment, const dbo_simulate_options *options,
                        dbo_outcome *outcome, dbo_error *err)
{
    memset(outcome, 0, sizeof *outcome);
    if (!experiment->has_fixed) {
        DBO_TRY(dbo_footprint_of(experiment, &outcome->footprint, err));
        DBO_TRY(dbo_footprint_check(&outcome->footprint, experiment, err));
    }
    dbo_status status = run_one(experiment, options, false, &outcome->rank, &outcome->off, err);
    if (status == DBO_OK)
        status = run_one(experiment, options, true, &outcome->rank, &outcome->on, err);
    if (status == DBO_OK)
        status = conclude(experiment, outcome, err);
    if (status != DBO_OK)
        dbo_outcome_fini(outcome);
    return status;
}

dbo_status dbo_simulate_one(const dbo_experiment *experiment, const dbo_simulate_options *options,
                            dbo_simulated *out, uint32_t *shown, dbo_error *err)
{
    memset(out, 0, sizeof *out);
    return run_one(experiment, options, true, shown, out, err);
}

dbo_status dbo_simulated_plan(const dbo_experiment *experiment, const dbo_simulated *run,
                              uint32_t rank, dbo_plan *out, dbo_error *err)
{
    simulation s;
    const dbo_simulate_options options = {0};
    prepare(&s, experiment, true, &options);
    s.deployment.io = true; /* whoever looks at a program wants to see it */
    dbo_status status =
        dbo_plan_build(out, &s.deployment, &result_of(run, rank)->cut, &run->caps, err);
    dbo_fault_end(s.fault);
    return status;
}

dbo_status dbo_outcome_plan(const dbo_outcome *outcome, uint32_t rank, dbo_plan *out,
                            dbo_error *err)
{
    return dbo_simulated_plan(outcome->result.experiment, &outcome->on, rank, out, err);
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

void dbo_outcome_fini(dbo_outcome *outcome)
{
    dbo_simulated_fini(&outcome->off);
    dbo_simulated_fini(&outcome->on);
    dbo_notation_fini(&outcome->notation);
    free(outcome->slices);
    free(outcome->slices_padded);
    memset(outcome, 0, sizeof *outcome);
}
