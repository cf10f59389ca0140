/* test_workloads.c: what must hold for every workload, on experiments out of seeds.
 *
 * With and without DBO: each layer does each kind of work on each real token once, as many FLOPs
 * on real rows; streams are FIFO; step >= critical path >= busiest stream; a seed gives one trace,
 * from fibers and threads, and ranks folded or each by itself. (test_workloads_long.c: more seeds.)
 */
#include "core/step/plan.h"
#include "core/trace/critical_path.h"
#include "lab/world/outcome.h"
#include "tests/support/random_experiment.h"
#include "tests/support/trace_digest.h"

#ifndef WORKLOADS
#define WORKLOADS 150u /* seeds of a property; threads are slow and take a fifth of them */
#endif

static void simulate(const dbo_experiment *e, bool unfolded, dbo_outcome *outcome)
{
    const dbo_simulate_options options = {.unfolded = unfolded};
    dbo_error err = {0};
    if (dbo_simulate(e, &options, outcome, &err) != DBO_OK)
        fail_msg("%s: %s", e->name, err.message);
}

static const dbo_step_result *result_of(const dbo_simulated *run, uint32_t rank)
{
    return &run->results[run->class_of[rank]];
}

/* ---- every token once ---- */

/* times[layer][kind][token]: how often it was worked on in the measured step. */
typedef struct tally {
    uint32_t num_layers, num_tokens;
    uint8_t *times;
} tally;

static uint8_t *times_of(const tally *t, uint32_t layer, uint32_t kind)
{
    return t->times + ((size_t)layer * DBO_KIND_COUNT + kind) * t->num_tokens;
}

/* A transfer shows as RUN, or as SEND and RECV; all it does beside is FLIGHT and WAIT. */
static bool counts(const dbo_span *span)
{
    return span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_SEND;
}

static void tally_rank(const dbo_simulated *run, uint32_t rank, uint32_t num_layers, tally *t)
{
    const dbo_step_result *result = result_of(run, rank);
    t->num_layers = num_layers;
    t->num_tokens = (uint32_t)result->num_tokens;
    t->times = calloc((size_t)num_layers * DBO_KIND_COUNT * t->num_tokens + 1, 1);
    assert_non_null(t->times);
    for (uint64_t i = 0; i < run->trace.num_spans; i++) {
        const dbo_span *span = dbo_trace_span(&run->trace, i);
        uint32_t ubatch = dbo_op_id_ubatch(span->id), kind = dbo_op_id_kind(span->id);
        if (dbo_op_id_rank(span->id) != rank || !counts(span) ||
            dbo_op_id_step(span->id) != run->measured)
            continue;
        assert_true(ubatch < result->cut.num_ubatches);
        assert_true(dbo_op_id_layer(span->id) < num_layers);
        int32_t from = result->cut.metadata[ubatch].slot_start;
        int32_t to = result->cut.metadata[ubatch].slot_stop;
        if (kind == DBO_KIND_HEAD) { /* once for all, of the concatenated hidden states */
            from = 0;
            to = result->num_tokens;
        }
        for (int32_t token = from; token < to; token++)
            times_of(t, dbo_op_id_layer(span->id), kind)[token]++;
    }
}

/* How often each kind works on a token of this layer; -1: not every token has the same. */
static int times_each(const tally *t, uint32_t layer, uint32_t kind)
{
    const uint8_t *times = times_of(t, layer, kind);
    for (uint32_t token = 1; token < t->num_tokens; token++)
        if (times[token] != times[0])
            return -1;
    return t->num_tokens > 0 ? times[0] : 0;
}

static void compare_tallies(const dbo_experiment *e, const tally *off, const tally *on)
{
    for (uint32_t layer = 0; layer < off->num_layers; layer++) {
        for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
            int before = times_each(off, layer, kind), after = times_each(on, layer, kind);
            int most = kind == DBO_KIND_ALL_REDUCE ? 2 : 1; /* after attention, after a dense MLP */
            if (before != after || before < 0 || before > most)
                fail_msg("%s: layer %u does %s %d times without DBO and %d times with it", e->name,
                         layer, dbo_op_kind_name((dbo_op_kind)kind), before, after);
        }
        if (off->num_tokens > 0)
            assert_int_equal(times_each(off, layer, DBO_KIND_A1), 1);
    }
}

static void each_token_is_done_once(void **state)
{
    (void)state;
    uint32_t split = 0, cut_ranks = 0;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        dbo_experiment e;
        dbo_outcome o;
        random_experiment(&e, seed, RANDOM_ANY);
        simulate(&e, false, &o);
        assert_int_equal(o.off.num_classes, o.on.num_classes);
        for (uint32_t c = 0; c < o.on.num_classes; c++) {
            tally off, on;
            tally_rank(&o.off, o.off.first_rank[c], e.num_layers, &off);
            tally_rank(&o.on, o.on.first_rank[c], e.num_layers, &on);
            assert_int_equal(off.num_tokens, on.num_tokens);
            compare_tallies(&e, &off, &on);
            cut_ranks += o.on.results[c].cut.num_ubatches > 1 && on.num_tokens > 0;
            free(off.times);
            free(on.times);
        }
        split += o.split;
        dbo_outcome_fini(&o);
        dbo_experiment_fini(&e);
    }
    printf("workloads: %u random experiments, %u of them split, %u ranks compared token by token\n",
           WORKLOADS, split, cut_ranks);
    assert_true(split > WORKLOADS / 4);
}

/* ---- as many FLOPs ---- */

static void plan_of(const dbo_experiment *e, const dbo_simulated *run, uint32_t rank,
                    dbo_plan *plan)
{
    dbo_error err = {0};
    const dbo_deployment deployment = {.config = &e->config,
                                       .model = &e->model,
                                       .num_layers = e->num_layers,
                                       .ep_size = e->ep_size,
                                       .rocm = e->hardware.platform == DBO_PLATFORM_ROCM};
    if (dbo_plan_build(plan, &deployment, &result_of(run, rank)->cut, &run->caps, &err) != DBO_OK)
        fail_msg("%s: %s", e->name, err.message);
}

/* Whole numbers far below 2^53, so that sums are exact in any order. */
static double flops_of(const dbo_plan *plan, uint32_t layer, uint32_t kind)
{
    const dbo_program *p = &plan->layers[plan->kind_of_layer[layer]];
    double sum = 0;
    for (uint32_t i = 0; i < p->num_ops; i++)
        for (uint32_t part = 0; part < p->ops[i].cost.num_parts; part++)
            if (dbo_op_id_kind(p->ops[i].id_bits) == kind)
                sum += p->ops[i].cost.parts[part].flops;
    return sum;
}

static void filled_tiles_take_equal_flops(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        dbo_experiment e;
        dbo_outcome o;
        random_experiment(&e, seed, RANDOM_ALIGNED);
        simulate(&e, false, &o);
        dbo_plan off, on;
        plan_of(&e, &o.off, o.rank, &off);
        plan_of(&e, &o.on, o.rank, &on);
        for (uint32_t layer = 0; o.split && layer < e.num_layers; layer++) {
            for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++) {
                double before = flops_of(&off, layer, kind), after = flops_of(&on, layer, kind);
                if (before != after)
                    fail_msg("%s: layer %u, %s: %.0f FLOPs without DBO, %.0f with", e.name, layer,
                             dbo_op_kind_name((dbo_op_kind)kind), before, after);
                compared += before > 0;
            }
        }
        dbo_plan_fini(&off);
        dbo_plan_fini(&on);
        dbo_outcome_fini(&o);
        dbo_experiment_fini(&e);
    }
    printf("workloads: %u sums of FLOPs equal with and without DBO\n", compared);
    assert_true(compared > WORKLOADS * 2);
}

/* FLOPs of a kind whose products all have the ubatch's rows, were these not padded: a whole tile's
 * rows less the padding, in proportion. */
static double real_flops(const dbo_plan *plan, const dbo_cut *cut, uint32_t layer, uint32_t kind)
{
    const dbo_program *p = &plan->layers[plan->kind_of_layer[layer]];
    double sum = 0;
    for (uint32_t i = 0; i < p->num_ops; i++) {
        const dbo_program_op *op = &p->ops[i];
        const dbo_ubatch_metadata *m = &cut->metadata[dbo_op_id_ubatch(op->id_bits)];
        uint32_t rows = (uint32_t)(m->tok_stop - m->tok_start);
        uint32_t tile = rows <= DBO_TILE_SHORT_ROWS ? DBO_TILE_SHORT_ROWS : DBO_TILE_TALL_ROWS;
        uint32_t padded = (rows + tile - 1) / tile * tile;
        for (uint32_t part = 0; part < op->cost.num_parts; part++)
            if (dbo_op_id_kind(op->id_bits) == kind && op->cost.parts[part].flops > 0)
                sum += op->cost.parts[part].flops / padded * m->num_tokens;
    }
    return sum;
}

/* Attention has no tiles: pairs of a query and a key, however requests are cut. */
static double attention_flops(const dbo_plan *plan, uint32_t layer)
{
    const dbo_program *p = &plan->layers[plan->kind_of_layer[layer]];
    double sum = 0;
    for (uint32_t i = 0; i < p->num_ops; i++)
        for (uint32_t part = 0; part < p->ops[i].cost.num_parts; part++)
            if (p->ops[i].cost.parts[part].kind == DBO_PART_ATTENTION)
                sum += p->ops[i].cost.parts[part].flops;
    return sum;
}

/* MLA computes a decode of few tokens otherwise than a prompt's rest: a cut may turn one into the
 * other. */
static bool cut_keeps_forms(const dbo_experiment *e, const dbo_outcome *o)
{
    uint32_t decode = dbo_config_decode_query_len(&e->config);
    uint32_t decodes[2] = {0, 0};
    const dbo_cut *cuts[2] = {&result_of(&o->off, o->rank)->cut, &result_of(&o->on, o->rank)->cut};
    for (int c = 0; c < 2; c++)
        for (uint32_t u = 0; u < cuts[c]->num_ubatches; u++)
            for (int32_t r = 0; r < cuts[c]->metadata[u].num_reqs; r++) {
                const int32_t *starts = cuts[c]->metadata[u].query_start_loc;
                uint32_t query = (uint32_t)(starts[r + 1] - starts[r]);
                decodes[c] += query <= decode ? query : 0;
            }
    return e->model.attention != DBO_ATTENTION_MLA || decodes[0] == decodes[1];
}

static void real_rows_take_equal_flops(void **state)
{
    (void)state;
    static const uint32_t by_rows[] = {DBO_KIND_A0, DBO_KIND_SHARED, DBO_KIND_DENSE};
    uint32_t compared = 0, attentions = 0;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        dbo_experiment e;
        dbo_outcome o;
        random_experiment(&e, seed, RANDOM_ANY);
        simulate(&e, false, &o);
        if (!e.has_fixed && o.split) {
            dbo_plan off, on;
            plan_of(&e, &o.off, o.rank, &off);
            plan_of(&e, &o.on, o.rank, &on);
            const dbo_cut *whole = &result_of(&o.off, o.rank)->cut;
            const dbo_cut *cut = &result_of(&o.on, o.rank)->cut;
            for (uint32_t layer = 0; layer < e.num_layers; layer++) {
                for (size_t k = 0; k < sizeof by_rows / sizeof by_rows[0]; k++) {
                    double before = real_flops(&off, whole, layer, by_rows[k]);
                    assert_true(before == real_flops(&on, cut, layer, by_rows[k]));
                    compared += before > 0;
                }
                if (!cut_keeps_forms(&e, &o))
                    continue;
                assert_true(attention_flops(&off, layer) == attention_flops(&on, layer));
                attentions++;
            }
            dbo_plan_fini(&off);
            dbo_plan_fini(&on);
        }
        dbo_outcome_fini(&o);
        dbo_experiment_fini(&e);
    }
    printf("workloads: %u sums of FLOPs on real rows and %u of attention equal\n", compared,
           attentions);
    assert_true(compared > WORKLOADS / 2 && attentions > WORKLOADS / 4);
}

/* ---- streams and bounds ---- */

typedef struct span_list {
    dbo_span *spans;
    size_t count;
} span_list;

static span_list spans_of(const dbo_trace *trace, uint32_t rank, uint32_t step)
{
    span_list list = {.spans = malloc(trace->num_spans * sizeof(dbo_span) + 1)};
    assert_non_null(list.spans);
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (dbo_op_id_rank(span->id) == rank && dbo_op_id_step(span->id) == step)
            list.spans[list.count++] = *span;
    }
    return list;
}

/* Spans of a stream arrive in the order of their ends; the stream is busy for the returned time. */
static int64_t check_stream(const dbo_experiment *e, const span_list *list, uint32_t stream)
{
    const dbo_span *before = NULL;
    int64_t busy_ns = 0;
    for (size_t i = 0; i < list->count; i++) {
        const dbo_span *span = &list->spans[i];
        if (span->stream != stream)
            continue;
        assert_true(span->end_ns >= span->start_ns);
        if (before && span->start_ns < before->end_ns)
            fail_msg("%s: on stream %u layer %u's %s (%u) begins before layer %u's %s (%u) ends",
                     e->name, stream, dbo_op_id_layer(span->id),
                     dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(span->id)), (unsigned)span->part,
                     dbo_op_id_layer(before->id),
                     dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(before->id)),
                     (unsigned)before->part);
        if (span->part != DBO_SPAN_WAIT)
            busy_ns += span->end_ns - span->start_ns;
        before = span;
    }
    return busy_ns;
}

static void check_bounds(const dbo_experiment *e, const dbo_simulated *run, uint32_t rank,
                         uint32_t step)
{
    dbo_error err = {0};
    span_list list = spans_of(&run->trace, rank, step);
    int64_t first_ns = INT64_MAX, last_ns = 0, busiest_ns = 0, path_ns = 0;
    for (size_t i = 0; i < list.count; i++) {
        const dbo_span *span = &list.spans[i];
        first_ns = span->start_ns < first_ns ? span->start_ns : first_ns;
        last_ns = span->end_ns > last_ns ? span->end_ns : last_ns;
    }
    for (uint32_t stream = 0; stream < DBO_MAX_STREAMS; stream++) {
        int64_t busy_ns = check_stream(e, &list, stream);
        busiest_ns = busy_ns > busiest_ns ? busy_ns : busiest_ns;
    }
    assert_int_equal(dbo_critical_path(list.spans, list.count, &path_ns, &err), DBO_OK);
    assert_true(path_ns >= busiest_ns);
    assert_true(list.count == 0 || last_ns - first_ns >= path_ns);
    free(list.spans);
}

static void streams_are_fifo_and_bounds_hold(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        dbo_experiment e;
        dbo_outcome o;
        random_experiment(&e, seed, RANDOM_ANY);
        simulate(&e, false, &o);
        for (uint32_t c = 0; c < o.on.num_classes; c++)
            for (uint32_t step = 0; step <= o.on.measured; step++) {
                check_bounds(&e, &o.off, o.off.first_rank[c], step);
                check_bounds(&e, &o.on, o.on.first_rank[c], step);
            }
        if (o.on.metrics.step_us.present) {
            const dbo_metrics *m = &o.on.metrics;
            assert_true(m->critical_path_us.value <= m->step_us.value);
            assert_true(m->sum_bound_us.value <= m->step_us.value);
            assert_true(!m->efficiency.present || m->efficiency.value <= 1);
        }
        dbo_outcome_fini(&o);
        dbo_experiment_fini(&e);
    }
}

/* ---- one trace ---- */

static uint64_t digest_outcome(const dbo_outcome *o)
{
    return digest_trace(digest_trace(DIGEST_START, &o->off.trace), &o->on.trace);
}

static uint64_t digest_seed(uint64_t seed, dbo_context_kind executor)
{
    dbo_experiment e;
    dbo_outcome o;
    random_experiment(&e, seed, RANDOM_ANY);
    e.config.executor = executor;
    simulate(&e, false, &o);
    uint64_t digest = digest_outcome(&o);
    dbo_outcome_fini(&o);
    dbo_experiment_fini(&e);
    return digest;
}

static void a_seed_has_one_trace(void **state)
{
    (void)state;
    uint64_t first = digest_seed(0, DBO_CONTEXT_FIBER);
    uint32_t differ = 0;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        uint64_t digest = digest_seed(seed, DBO_CONTEXT_FIBER);
        assert_int_equal(digest, digest_seed(seed, DBO_CONTEXT_FIBER));
        differ += digest != first;
    }
    assert_int_equal(differ, WORKLOADS - 1); /* and another seed another one */
}

static void threads_do_what_fibers_do(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < WORKLOADS / 5; seed++)
        if (digest_seed(seed, DBO_CONTEXT_FIBER) != digest_seed(seed, DBO_CONTEXT_THREAD))
            fail_msg("seed %u: threads and fibers give different traces", (unsigned)seed);
}

static void same_ranks(const dbo_experiment *e, const dbo_simulated *folded,
                       const dbo_simulated *unfolded)
{
    for (uint32_t r = 0; r < e->config.data_parallel_size; r++) {
        if (digest_rank(&unfolded->trace, r) !=
            digest_rank(&folded->trace, folded->first_rank[folded->class_of[r]]))
            fail_msg("%s: rank %u does not do what its class %u does", e->name, r,
                     folded->class_of[r]);
    }
}

static void folded_is_unfolded(void **state)
{
    (void)state;
    uint32_t saved = 0;
    for (uint64_t seed = 0; seed < WORKLOADS; seed++) {
        dbo_experiment e;
        dbo_outcome folded, unfolded;
        random_experiment(&e, seed, RANDOM_ANY);
        simulate(&e, false, &folded);
        simulate(&e, true, &unfolded);
        assert_int_equal(unfolded.on.num_classes, e.config.data_parallel_size);
        same_ranks(&e, &folded.off, &unfolded.off);
        same_ranks(&e, &folded.on, &unfolded.on);
        saved += unfolded.on.num_classes - folded.on.num_classes;
        dbo_outcome_fini(&folded);
        dbo_outcome_fini(&unfolded);
        dbo_experiment_fini(&e);
    }
    assert_true(saved > WORKLOADS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_token_is_done_once),
        cmocka_unit_test(filled_tiles_take_equal_flops),
        cmocka_unit_test(real_rows_take_equal_flops),
        cmocka_unit_test(streams_are_fifo_and_bounds_hold),
        cmocka_unit_test(a_seed_has_one_trace),
        cmocka_unit_test(threads_do_what_fibers_do),
        cmocka_unit_test(folded_is_unfolded),
    };
    return cmocka_run_group_tests_name("workloads", tests, NULL, NULL);
}
