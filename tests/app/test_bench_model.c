/* test_bench_model.c: the benchmark's model against longest paths through a graph of its own.
 *
 * The reference knows nothing of streams, events, turns or virtual time: one node an op of a rank,
 * one more for each all-to-all, an edge for each "after", and the longest path to every node. A
 * cycle is a contradiction. It shares no code with the model: orders and edges are written anew.
 */
#include "app/bench/bench_model.h"
#include "core/base/prng.h"
#include "core/seam/op.h"
#include "tests/support/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 8, LANES = 2, PER_LAYER = LANES * OPS, X0 = 6, X1 = 7, MAX_OUT = 40 };

/* ---- the reference ---- */

typedef struct node {
    int64_t ns, start_ns;
    uint32_t num_in, num_out;
    uint32_t out[MAX_OUT];
} node;

typedef struct graph {
    const dbo_bench_model *model;
    uint32_t num_ranks, num_nodes, first_meet;
    node *nodes;
} graph;

static uint32_t op_node(const graph *g, uint32_t rank, uint32_t layer, uint32_t mb, uint32_t op)
{
    return ((rank * g->model->layers + layer) * LANES + mb) * OPS + op;
}

static uint32_t meet_node(const graph *g, uint32_t layer, uint32_t mb, uint32_t op)
{
    return g->first_meet + (layer * LANES + mb) * 2 + (op - X0);
}

/* What starts the op: an all-to-all starts on all ranks together. */
static uint32_t start_node(const graph *g, uint32_t rank, uint32_t layer, uint32_t mb, uint32_t op)
{
    return op >= X0 ? meet_node(g, layer, mb, op) : op_node(g, rank, layer, mb, op);
}

static void add_edge(graph *g, uint32_t from, uint32_t to)
{
    node *n = &g->nodes[from];
    assert_true(n->num_out < MAX_OUT);
    n->out[n->num_out++] = to;
    g->nodes[to].num_in++;
}

static int64_t duration_ns(const dbo_bench_model *model, uint32_t rank, uint32_t op)
{
    int64_t ns = model->dur_ns[op];
    if (op == model->imbalanced_op && model->imbalance_mod != 0)
        ns += (int64_t)((uint64_t)rank * model->imbalance_mul % model->imbalance_mod) * 1000;
    return ns;
}

/* The two streams of a rank, as (microbatch, op) in the order of a layer. */
static void add_streams(graph *g, uint32_t rank)
{
    static const char *const orders[2] = {"A0A1A2A3B0B1B2B3A4A5B4B5", "A6B6A7B7"};
    for (int stream = 0; stream < 2; stream++) {
        uint32_t last = UINT32_MAX;
        for (uint32_t layer = 0; layer < g->model->layers; layer++)
            for (const char *at = orders[stream]; *at; at += 2) {
                uint32_t mb = (uint32_t)(at[0] - 'A'), op = (uint32_t)(at[1] - '0');
                if (last != UINT32_MAX)
                    add_edge(g, last, start_node(g, rank, layer, mb, op));
                last = op_node(g, rank, layer, mb, op);
            }
    }
}

static void add_dep(graph *g, uint32_t rank, const dbo_bench_dep *d)
{
    for (uint32_t layer = 0; layer + d->layer_delta < g->model->layers; layer++)
        add_edge(g, op_node(g, rank, layer, d->from_mb, d->from),
                 start_node(g, rank, layer + d->layer_delta, d->to_mb, d->to));
}

static void add_rank(graph *g, uint32_t rank)
{
    static const dbo_bench_dep own[] = {{0, 0, 1, 0, 0},  {1, 0, 2, 0, 0},  {2, 0, 3, 0, 0},
                                        {2, 0, X0, 0, 0}, {X0, 0, 4, 0, 0}, {3, 0, 4, 0, 0},
                                        {4, 0, 5, 0, 0},  {5, 0, X1, 0, 0}, {X1, 0, 0, 0, 1}};
    add_streams(g, rank);
    for (uint32_t mb = 0; mb < LANES; mb++)
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            dbo_bench_dep d = own[i];
            d.from_mb = d.to_mb = (uint8_t)mb;
            add_dep(g, rank, &d);
        }
    for (uint32_t i = 0; i < g->model->num_deps; i++)
        add_dep(g, rank, &g->model->deps[i]);
    for (uint32_t layer = 0; layer < g->model->layers; layer++)
        for (uint32_t mb = 0; mb < LANES; mb++)
            for (uint32_t op = 0; op < OPS; op++) {
                g->nodes[op_node(g, rank, layer, mb, op)].ns = duration_ns(g->model, rank, op);
                if (op >= X0)
                    g->nodes[op_node(g, rank, layer, mb, op)].num_in++; /* from its meet */
            }
}

static graph make_graph(const dbo_bench_model *model, uint32_t num_ranks)
{
    graph g = {.model = model, .num_ranks = num_ranks};
    g.first_meet = num_ranks * model->layers * PER_LAYER;
    g.num_nodes = g.first_meet + model->layers * LANES * 2;
    g.nodes = calloc(g.num_nodes, sizeof *g.nodes);
    assert_non_null(g.nodes);
    for (uint32_t rank = 0; rank < num_ranks; rank++)
        add_rank(&g, rank);
    return g;
}

static void arrive(graph *g, uint32_t to, int64_t at_ns, uint32_t *ready, uint32_t *num_ready)
{
    node *n = &g->nodes[to];
    if (n->start_ns < at_ns)
        n->start_ns = at_ns;
    if (--n->num_in == 0)
        ready[(*num_ready)++] = to;
}

/* Longest paths; the latest end of all, or -1 where there is a cycle. */
static int64_t solve(graph *g)
{
    uint32_t *ready = malloc(g->num_nodes * sizeof *ready);
    uint32_t num_ready = 0;
    int64_t makespan_ns = 0;
    assert_non_null(ready);
    for (uint32_t i = 0; i < g->num_nodes; i++)
        if (g->nodes[i].num_in == 0)
            ready[num_ready++] = i;
    for (uint32_t done = 0; done < num_ready; done++) {
        uint32_t at = ready[done];
        int64_t end_ns = g->nodes[at].start_ns + g->nodes[at].ns;
        if (makespan_ns < end_ns)
            makespan_ns = end_ns;
        for (uint32_t i = 0; i < g->nodes[at].num_out; i++)
            arrive(g, g->nodes[at].out[i], end_ns, ready, &num_ready);
        if (at < g->first_meet)
            continue;
        uint32_t meet = at - g->first_meet;
        for (uint32_t rank = 0; rank < g->num_ranks; rank++)
            arrive(g, op_node(g, rank, meet / 4, meet / 2 % 2, X0 + meet % 2), end_ns, ready,
                   &num_ready);
    }
    free(ready);
    return num_ready == g->num_nodes ? makespan_ns : -1;
}

/* ---- comparing ---- */

static uint32_t op_of_id(dbo_op_id id)
{
    switch (dbo_op_id_kind(id)) {
    case DBO_KIND_DISPATCH: return X0;
    case DBO_KIND_COMBINE: return X1;
    default: return dbo_op_id_occurrence(id);
    }
}

/* Every op has one span, at the reference's time. */
static void check_spans(const graph *g, const dbo_trace *trace)
{
    uint8_t *seen = calloc(g->first_meet, 1);
    assert_non_null(seen);
    assert_int_equal(trace->num_spans, g->first_meet);
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        uint32_t at = op_node(g, dbo_op_id_rank(span->id), dbo_op_id_layer(span->id),
                              dbo_op_id_ubatch(span->id), op_of_id(span->id));
        assert_int_equal(seen[at]++, 0);
        assert_int_equal(span->start_ns, g->nodes[at].start_ns);
        assert_int_equal(span->end_ns, g->nodes[at].start_ns + g->nodes[at].ns);
    }
    free(seen);
}

/* Returns whether the model could run. */
static bool compare(const dbo_bench_model *model, uint32_t num_ranks, dbo_context_kind kind)
{
    graph g = make_graph(model, num_ranks);
    int64_t makespan_ns = solve(&g);
    dbo_trace trace;
    dbo_trace_init(&trace);
    dbo_bench_result result = {0};
    dbo_error err = {0};
    dbo_status status = dbo_bench_model_run(model, num_ranks, kind, &trace, &result, &err);
    if (makespan_ns < 0) {
        assert_int_equal(status, DBO_DEADLOCK);
        assert_non_null(strstr(err.message, "contradict"));
    } else {
        if (status != DBO_OK)
            fail_msg("%s", err.message);
        assert_int_equal(result.makespan_ns, makespan_ns);
        assert_int_equal(result.ops, g.first_meet);
        assert_int_equal(result.spans, g.first_meet);
        check_spans(&g, &trace);
    }
    dbo_trace_fini(&trace);
    free(g.nodes);
    return makespan_ns >= 0;
}

/* ---- tests ---- */

static void the_standard_model_takes_what_is_published(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {8, 64, 256};
    static const int64_t makespan_ns[] = {34128000, 34250000, 34250000};
    dbo_bench_model model;
    dbo_bench_model_init(&model);
    assert_int_equal(model.num_ranks, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(model.ranks[i], ranks[i]);
        graph g = make_graph(&model, ranks[i]);
        assert_int_equal(solve(&g), makespan_ns[i]);
        free(g.nodes);
        assert_true(compare(&model, ranks[i], DBO_CONTEXT_FIBER));
    }
}

static void random_model(dbo_bench_model *model, dbo_prng *prng, uint32_t num_deps)
{
    dbo_bench_model_init(model);
    model->layers = (uint32_t)prng_range(prng, 1, 12);
    for (uint32_t op = 0; op < OPS; op++) /* sometimes nothing at all, sometimes equal */
        model->dur_ns[op] = dbo_prng_below(prng, 8) == 0   ? 0
                            : dbo_prng_below(prng, 2) == 0 ? prng_range(prng, 1, 200000)
                                                           : prng_range(prng, 1, 9) * 10000;
    model->imbalanced_op = (uint32_t)dbo_prng_below(prng, OPS);
    model->imbalance_mul = (uint32_t)dbo_prng_below(prng, 50);
    model->imbalance_mod = (uint32_t)dbo_prng_below(prng, 13); /* 0 and 1: none */
    model->num_deps = num_deps;
    for (uint32_t i = 0; i < num_deps; i++)
        model->deps[i] = (dbo_bench_dep){.from = (uint8_t)dbo_prng_below(prng, OPS),
                                         .from_mb = (uint8_t)dbo_prng_below(prng, LANES),
                                         .to = (uint8_t)dbo_prng_below(prng, OPS),
                                         .to_mb = (uint8_t)dbo_prng_below(prng, LANES),
                                         .layer_delta = (uint8_t)dbo_prng_below(prng, 4)};
}

static void random_models_agree_with_longest_paths(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 20, 5);
    uint32_t possible = 0, impossible = 0;
    for (uint32_t i = 0; i < 600; i++) {
        dbo_bench_model model;
        random_model(&model, &prng, i % 3 + i % 5 / 4);
        uint32_t num_ranks = (uint32_t)prng_range(&prng, 1, 9);
        if (compare(&model, num_ranks, DBO_CONTEXT_FIBER))
            possible++;
        else
            impossible++;
    }
    assert_true(possible >= 300);
    assert_true(impossible >= 30);
}

static void every_single_dependency_agrees(void **state)
{
    (void)state;
    dbo_bench_model model;
    dbo_bench_model_init(&model);
    model.layers = 6;
    model.num_deps = 1;
    for (uint32_t code = 0; code < PER_LAYER * PER_LAYER * 4; code++) {
        model.deps[0] = (dbo_bench_dep){.from = (uint8_t)(code & 7),
                                        .from_mb = (uint8_t)(code >> 3 & 1),
                                        .to = (uint8_t)(code >> 4 & 7),
                                        .to_mb = (uint8_t)(code >> 7 & 1),
                                        .layer_delta = (uint8_t)(code >> 8 & 3)};
        compare(&model, 3, DBO_CONTEXT_FIBER);
    }
}

static void threads_do_what_fibers_do(void **state)
{
    (void)state;
    dbo_prng prng;
    dbo_prng_init(&prng, 7, 7);
    for (uint32_t i = 0; i < 12; i++) {
        dbo_bench_model model;
        random_model(&model, &prng, i % 3);
        compare(&model, (uint32_t)prng_range(&prng, 1, 4), DBO_CONTEXT_THREAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_model_takes_what_is_published),
        cmocka_unit_test(random_models_agree_with_longest_paths),
        cmocka_unit_test(every_single_dependency_agrees),
        cmocka_unit_test(threads_do_what_fibers_do),
    };
    return cmocka_run_group_tests_name("bench_model", tests, NULL, NULL);
}
