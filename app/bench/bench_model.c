/* bench_model.c: from the model to programs, and the run.
 *
 * Issue order is a topological order of the layer's 16 ops under the streams' orders and all
 * dependencies within a layer, taken greedily from the natural order; where the owner changes, the
 * turn does. A dependency between streams is an event: the source records it, the target waits. An
 * event that is waited for in a later layer comes in layer_delta + 1 copies used in turn, because a
 * wait binds to the latest record; so there are `period` programs, for layer modulo period.
 */
#include "app/bench/bench_model.h"

#include "core/base/units.h"
#include "lab/world/world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { C0, C1, C2, C3, C4, C5, X0, X1, NUM_NODES = 2 * DBO_BENCH_OPS };

#define NODE(mb, op)  ((uint32_t)((mb)*DBO_BENCH_OPS + (op)))
#define NODE_MB(node) ((node) / DBO_BENCH_OPS)
#define NODE_OP(node) ((node) % DBO_BENCH_OPS)
/* A few layers of run-ahead: enough to meet, few enough that all queues stay in the cache. */
#define QUEUE_DEPTH 24
#define MAX_EDGES   (64 + DBO_BENCH_MAX_DEPS)

typedef struct edge {
    uint8_t from, to, delta;
} edge;

typedef struct plan {
    uint32_t order[NUM_NODES];
    uint32_t num_edges;
    edge edges[MAX_EDGES]; /* between streams only */
    uint32_t period;
} plan;

void dbo_bench_model_init(dbo_bench_model *model)
{
    static const int64_t us[DBO_BENCH_OPS] = {40, 60, 30, 35, 90, 15, 80, 90};
    *model = (dbo_bench_model){.num_ranks = 3,
                               .ranks = {8, 64, 256},
                               .layers = 61,
                               .imbalanced_op = C4,
                               .imbalance_mul = 37,
                               .imbalance_mod = 11};
    for (uint32_t i = 0; i < DBO_BENCH_OPS; i++)
        model->dur_ns[i] = us[i] * DBO_NS_PER_US;
}

static bool on_comm(uint32_t node)
{
    return NODE_OP(node) >= X0;
}

/* ---- the order of a layer ---- */

static const uint8_t compute_order[] = {NODE(0, C0), NODE(0, C1), NODE(0, C2), NODE(0, C3),
                                        NODE(1, C0), NODE(1, C1), NODE(1, C2), NODE(1, C3),
                                        NODE(0, C4), NODE(0, C5), NODE(1, C4), NODE(1, C5)};
static const uint8_t comm_order[] = {NODE(0, X0), NODE(1, X0), NODE(0, X1), NODE(1, X1)};
static const uint8_t natural_order[] = {NODE(0, C0), NODE(0, C1), NODE(0, C2), NODE(0, X0),
                                        NODE(0, C3), NODE(1, C0), NODE(1, C1), NODE(1, C2),
                                        NODE(1, X0), NODE(1, C3), NODE(0, C4), NODE(0, C5),
                                        NODE(0, X1), NODE(1, C4), NODE(1, C5), NODE(1, X1)};

static void add_chain(bool before[NUM_NODES][NUM_NODES], const uint8_t *nodes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        before[nodes[i - 1]][nodes[i]] = true;
}

static void add_edge(plan *p, uint32_t from, uint32_t to, uint32_t delta)
{
    if (on_comm(from) == on_comm(to))
        return; /* the stream's order says so already */
    p->edges[p->num_edges++] =
        (edge){.from = (uint8_t)from, .to = (uint8_t)to, .delta = (uint8_t)delta};
    if (delta + 1 > p->period)
        p->period = delta + 1;
}

static void add_edges(const dbo_bench_model *model, plan *p)
{
    p->period = 1;
    for (uint32_t mb = 0; mb < 2; mb++) {
        add_edge(p, NODE(mb, X1), NODE(mb, C0), 1);
        add_edge(p, NODE(mb, C2), NODE(mb, X0), 0);
        add_edge(p, NODE(mb, X0), NODE(mb, C4), 0);
        add_edge(p, NODE(mb, C5), NODE(mb, X1), 0);
    }
    for (uint32_t i = 0; i < model->num_deps; i++) {
        const dbo_bench_dep *d = &model->deps[i];
        add_edge(p, NODE(d->from_mb, d->from), NODE(d->to_mb, d->to), d->layer_delta);
    }
}

static bool is_free(bool before[NUM_NODES][NUM_NODES], const bool *placed, uint32_t node)
{
    for (uint32_t i = 0; i < NUM_NODES; i++)
        if (before[i][node] && !placed[i])
            return false;
    return !placed[node];
}

static dbo_status make_plan(const dbo_bench_model *model, plan *p, dbo_error *err)
{
    bool before[NUM_NODES][NUM_NODES] = {{false}}, placed[NUM_NODES] = {false};
    memset(p, 0, sizeof *p);
    add_edges(model, p);
    add_chain(before, compute_order, sizeof compute_order);
    add_chain(before, comm_order, sizeof comm_order);
    for (uint32_t i = 0; i < model->num_deps; i++) {
        const dbo_bench_dep *d = &model->deps[i];
        if (d->layer_delta == 0)
            before[NODE(d->from_mb, d->from)][NODE(d->to_mb, d->to)] = true;
    }
    for (uint32_t i = 0; i < p->num_edges; i++)
        if (p->edges[i].delta == 0)
            before[p->edges[i].from][p->edges[i].to] = true;
    for (uint32_t n = 0; n < NUM_NODES; n++) {
        uint32_t i = 0;
        while (i < NUM_NODES && !is_free(before, placed, natural_order[i]))
            i++;
        if (i == NUM_NODES)
            return dbo_fail(err, DBO_DEADLOCK, "Make extra_deps follow the order of the streams.",
                            "the added dependencies contradict the order in which the streams run "
                            "their ops, so every rank would wait for ever");
        p->order[n] = natural_order[i];
        placed[natural_order[i]] = true;
    }
    return DBO_OK;
}

/* ---- programs ---- */

typedef struct emitter {
    dbo_program_builder builder;
    const plan *plan;
    uint16_t events[NUM_NODES][DBO_BENCH_MAX_DELTA + 1];
    bool has_event[NUM_NODES];
    uint16_t index[NUM_NODES]; /* op or post */
    uint32_t phase;            /* layer % period */
} emitter;

static void declare(emitter *e, const dbo_bench_model *model, int64_t extra_ns)
{
    for (uint32_t node = 0; node < NUM_NODES; node++) {
        uint32_t op = NODE_OP(node);
        int64_t ns = model->dur_ns[op] + (op == model->imbalanced_op ? extra_ns : 0);
        if (on_comm(node)) {
            const dbo_a2a_cost cost = {.fixed_ns = ns};
            uint16_t handle = dbo_program_add_handle(&e->builder);
            e->index[node] =
                dbo_program_add_post(&e->builder, NODE_MB(node),
                                     op == X0 ? DBO_A2A_DISPATCH : DBO_A2A_COMBINE, &cost, handle);
        } else {
            const dbo_op_cost cost = {.fixed_ns = ns};
            e->index[node] =
                dbo_program_add_op(&e->builder, NODE_MB(node), DBO_KIND_SYNTHETIC, &cost, 1);
        }
    }
    for (uint32_t i = 0; i < e->plan->num_edges; i++) {
        uint32_t from = e->plan->edges[i].from;
        for (uint32_t k = 0; k < e->plan->period && !e->has_event[from]; k++)
            e->events[from][k] = dbo_program_add_event(&e->builder);
        e->has_event[from] = true;
    }
}

static void emit_node(emitter *e, uint32_t node)
{
    const plan *p = e->plan;
    uint32_t mb = NODE_MB(node);
    uint8_t stream = on_comm(node) ? DBO_STREAM_COMM : DBO_STREAM_COMPUTE;
    for (uint32_t i = 0; i < p->num_edges; i++)
        if (p->edges[i].to == node) {
            uint32_t copy = (e->phase + p->period - p->edges[i].delta) % p->period;
            dbo_program_emit(&e->builder, mb,
                             (dbo_instr){.code = DBO_CODE_WAIT,
                                         .stream = stream,
                                         .index = e->events[p->edges[i].from][copy]});
        }
    dbo_program_emit(&e->builder, mb,
                     (dbo_instr){.code = on_comm(node) ? DBO_CODE_A2A_POST : DBO_CODE_OP,
                                 .stream = stream,
                                 .index = e->index[node],
                                 .previous = DBO_NO_INDEX});
    if (e->has_event[node])
        dbo_program_emit(&e->builder, mb,
                         (dbo_instr){.code = DBO_CODE_RECORD,
                                     .stream = stream,
                                     .index = e->events[node][e->phase]});
}

static dbo_status make_program(const dbo_bench_model *model, const plan *p, uint32_t phase,
                               int64_t extra_ns, dbo_program *out, dbo_error *err)
{
    emitter e = {.plan = p, .phase = phase};
    dbo_program_builder_init(&e.builder, "bench", 2);
    declare(&e, model, extra_ns);
    uint32_t turn = 0;
    for (uint32_t n = 0; n < NUM_NODES; n++) {
        uint32_t mb = NODE_MB(p->order[n]);
        if (mb != turn)
            dbo_program_emit(&e.builder, turn, (dbo_instr){.code = DBO_CODE_YIELD});
        turn = mb;
        emit_node(&e, p->order[n]);
    }
    if (turn == 1) /* the next layer begins with microbatch 0 */
        dbo_program_emit(&e.builder, 1, (dbo_instr){.code = DBO_CODE_YIELD});
    return dbo_program_builder_finish(&e.builder, out, err);
}

/* ---- the run ---- */

typedef struct bench_run {
    const dbo_bench_model *model;
    uint32_t period, num_variants;
    dbo_program *programs; /* [variant * period + phase] */
    int64_t *extra_ns;     /* by variant */
} bench_run;

static int64_t extra_of(const dbo_bench_model *model, uint32_t rank)
{
    if (model->imbalance_mod == 0)
        return 0;
    uint64_t us = (uint64_t)rank * model->imbalance_mul % model->imbalance_mod;
    return (int64_t)us * DBO_NS_PER_US;
}

static uint32_t variant_of(const bench_run *run, int64_t extra_ns)
{
    uint32_t v = 0;
    while (v < run->num_variants && run->extra_ns[v] != extra_ns)
        v++;
    return v;
}

typedef struct part_arg {
    const bench_run *run;
    const dbo_program *programs;
} part_arg;

static dbo_status run_part(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const part_arg *part = arg;
    for (uint32_t layer = 0; layer < part->run->model->layers; layer++) {
        dbo_status status = dbo_program_run(ubatch->rank, ubatch,
                                            &part->programs[layer % part->run->period], 0, layer);
        if (status != DBO_OK)
            return dbo_rank_fail(ubatch->rank, status, err);
    }
    return DBO_OK;
}

static dbo_status rank_main(void *arg, dbo_world_rank *rank, dbo_error *err)
{
    const bench_run *run = arg;
    uint32_t variant = variant_of(run, extra_of(run->model, rank->id));
    part_arg part = {.run = run, .programs = &run->programs[(size_t)variant * run->period]};
    for (uint32_t i = 0; i < run->period; i++)
        DBO_TRY(dbo_rank_fit(&rank->rank, &part.programs[i], err));
    return dbo_ubatches_run(&rank->rank, 2, 0, run_part, &part, err);
}

static dbo_status make_programs(bench_run *run, uint32_t num_ranks, dbo_error *err)
{
    plan p;
    DBO_TRY(make_plan(run->model, &p, err));
    run->period = p.period;
    uint32_t cap = run->model->imbalance_mod > 1 ? run->model->imbalance_mod : 1;
    cap = cap < num_ranks ? cap : num_ranks;
    run->extra_ns = malloc(cap * sizeof *run->extra_ns);
    run->programs = calloc((size_t)cap * p.period, sizeof *run->programs);
    DBO_TRY(dbo_need_memory(run->extra_ns && run->programs, "the benchmark's programs", err));
    for (uint32_t r = 0; r < num_ranks; r++) {
        int64_t extra_ns = extra_of(run->model, r);
        if (variant_of(run, extra_ns) < run->num_variants)
            continue;
        for (uint32_t phase = 0; phase < p.period; phase++)
            DBO_TRY(make_program(run->model, &p, phase, extra_ns,
                                 &run->programs[run->num_variants * p.period + phase], err));
        run->extra_ns[run->num_variants++] = extra_ns;
    }
    return DBO_OK;
}

static void run_fini(bench_run *run)
{
    for (uint32_t i = 0; run->programs && i < run->num_variants * run->period; i++)
        dbo_program_fini(&run->programs[i]);
    free(run->programs);
    free(run->extra_ns);
}

/* One span an op: no waiting for peers, no issues, no marks, which are for people. */
static void keep_span(void *self, const dbo_span *span)
{
    if (span->part != DBO_SPAN_WAIT)
        dbo_trace_add_span(self, span);
}

static const dbo_trace_ops span_sink = {.span = keep_span};

double dbo_bench_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

dbo_status dbo_bench_model_run(const dbo_bench_model *model, uint32_t num_ranks,
                               dbo_context_kind executor, dbo_trace *trace,
                               dbo_bench_result *result, dbo_error *err)
{
    double begin_s = dbo_bench_now_s();
    bench_run run = {.model = model};
    dbo_trace own;
    dbo_trace_init(&own);
    dbo_trace *spans = trace ? trace : &own;
    const dbo_world_options options = {.machine = {.num_ranks = num_ranks,
                                                   .contexts = executor,
                                                   .queue_depth = QUEUE_DEPTH,
                                                   .trace = &span_sink,
                                                   .trace_self = spans},
                                       .max_ubatches = 2};
    dbo_world world = {0};
    dbo_status status = DBO_OK;
    DBO_TRY_GOTO(make_programs(&run, num_ranks, err), done);
    DBO_TRY_GOTO(dbo_world_init(&world, &options, err), done);
    DBO_TRY_GOTO(dbo_world_run(&world, rank_main, &run, err), done);
    if (spans->failed)
        status = dbo_fail_memory(err, "the benchmark's spans");
    else
        *result = (dbo_bench_result){.ops = (uint64_t)num_ranks * model->layers * NUM_NODES,
                                     .spans = spans->num_spans,
                                     .makespan_ns = dbo_world_now_ns(&world),
                                     .wall_s = dbo_bench_now_s() - begin_s};
done:
    dbo_world_fini(&world);
    run_fini(&run);
    dbo_trace_fini(&own);
    return status;
}
