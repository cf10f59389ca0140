/* test_memory.c: no memory is used by two at once, in all built-in schedules.
 *
 * Forwards run through wrapper, interpreter, allocator and simulator with random durations and
 * random tensor sizes. A probe in the seam notes which addresses each op and transfer touches; the
 * trace says when it ran. Two uses of one address that meet in time, one of them a write, are a
 * clash: a block was handed out too early, or an order is missing. */
#include "core/base/prng.h"
#include "core/program/builders.h"
#include "core/step/wrapper.h"
#include "core/trace/trace.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define LAYERS   4u
#define RANKS    2u
#define STEPS    3u
#define MAX_USES 8192u

/* The bytes that an access touches, and of which op. */
typedef struct use {
    dbo_op_id id;
    uint64_t from, to;
    uint64_t writes; /* no padding: uses are compared byte by byte */
} use;

typedef struct probe {
    dbo_device_ops device;
    dbo_a2a_ops a2a;
    dbo_seam inner;
    use *uses;
    uint32_t num_uses;
} probe;

typedef struct scene {
    dbo_builder_fn build;
    bool low_latency, graph, late_quant, memory, record_stream, wrong_pool;
    uint32_t num_ubatches;
    dbo_context_kind executor;
    uint64_t seed;
} scene;

typedef struct world {
    const scene *scene;
    dbo_hardware hardware;
    dbo_config config;
    dbo_layer_costs costs[3];
    dbo_plan plan;
    dbo_trace trace;
    dbo_sim *sim;
    dbo_rank ranks[RANKS];
    dbo_wrapper wrappers[RANKS];
    probe probes[RANKS];
    dbo_memory_use memory;
} world;

/* ---- the probe ---- */

static void note(probe *p, dbo_op_id id, const dbo_access *accesses, uint32_t count,
                 const uint64_t *addresses, bool writes)
{
    for (uint32_t i = 0; i < count; i++) {
        const dbo_access *a = &accesses[i];
        uint64_t from = addresses[a->buffer] + a->offset_bytes;
        assert_true(addresses[a->buffer] != 0); /* nothing is used that has no memory */
        assert_true(p->num_uses < MAX_USES);
        p->uses[p->num_uses++] = (use){id, from, from + a->bytes, writes};
    }
}

static void note_io(probe *p, dbo_op_id id, const dbo_op_io *io, const uint64_t *addresses)
{
    if (!io)
        return;
    note(p, id, io->reads, io->num_reads, addresses, false);
    note(p, id, io->writes, io->num_writes, addresses, true);
}

static probe *probe_of; /* by device self: set for the run's ranks, in order */
static void *selves[RANKS];

static probe *find_probe(void *self)
{
    uint32_t r = 0;
    while (r < RANKS && selves[r] != self)
        r++;
    assert_true(r < RANKS);
    return &probe_of[r];
}

static dbo_status probe_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    probe *p = find_probe(self);
    note_io(p, op->id, op->io, op->addresses);
    return p->inner.device->launch(self, stream, op);
}

static dbo_status probe_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    probe *p = find_probe(self);
    note_io(p, args->id, args->io, args->addresses);
    return p->inner.a2a->post(self, args, out);
}

static void wrap(world *w, uint32_t r, dbo_seam *seam)
{
    probe *p = &w->probes[r];
    p->inner = *seam;
    p->uses = calloc(MAX_USES, sizeof *p->uses);
    assert_non_null(p->uses);
    selves[r] = seam->device_self;
    probe_of = w->probes;
    p->device = *seam->device;
    p->device.launch = probe_launch;
    p->a2a = *seam->a2a;
    p->a2a.post = probe_post;
    seam->device = &p->device;
    seam->a2a = &p->a2a;
}

/* ---- a run ---- */

/* Sizes of all orders of magnitude, so that blocks are cut, merged and swapped between roles. */
static void random_costs(world *w)
{
    static const uint64_t scale[] = {512, 3000, 40000, 700000, 3000000, 9000000};
    dbo_prng prng;
    dbo_prng_init(&prng, w->scene->seed, 1);
    for (uint32_t u = 0; u < w->scene->num_ubatches; u++) {
        int64_t ns[DBO_KIND_COUNT];
        for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
            ns[k] = 1 + (int64_t)dbo_prng_below(&prng, 60000);
        ns[DBO_KIND_EMBED] = w->scene->seed % 3 == 0 ? -1 : ns[DBO_KIND_EMBED];
        ns[DBO_KIND_REDUCE] = w->scene->seed % 4 == 1 ? -1 : ns[DBO_KIND_REDUCE];
        dbo_layer_costs_fixed(ns, 0, &w->costs[u]);
        w->costs[u].quant_late = w->scene->late_quant;
        for (uint32_t role = 1; role < DBO_BUFFER_ROLES; role++)
            w->costs[u].sizes.bytes[role] =
                1 + dbo_prng_below(&prng, scale[dbo_prng_below(&prng, 6)]);
    }
    dbo_hardware_init(&w->hardware);
    for (uint32_t c = 0; c < DBO_CHARGE_COUNT; c++)
        w->hardware.host_ns[c] = (double)dbo_prng_below(&prng, 4000);
}

/* What a dispatch brings comes from compute's pool, whose blocks comm does not wait for. */
static void spoil_pools(dbo_program *program)
{
    for (uint32_t u = 0; u < program->num_ubatches; u++)
        for (uint32_t i = 0; i < program->num_instrs[u]; i++) {
            dbo_instr *instr = &program->instrs[u][i];
            if (instr->code == DBO_CODE_ALLOC && instr->stream == DBO_STREAM_COMM)
                instr->stream = DBO_STREAM_COMPUTE;
        }
}

static void make_plan(world *w)
{
    const dbo_build_options options = {.num_ubatches = w->scene->num_ubatches,
                                       .host_sync = !w->scene->low_latency && !w->scene->graph,
                                       .own_stream = true,
                                       .memory = w->scene->memory,
                                       .record_stream = w->scene->record_stream,
                                       .io = w->scene->memory};
    w->plan = (dbo_plan){.num_ubatches = options.num_ubatches,
                         .num_layers = LAYERS,
                         .num_tokens_padded = 64,
                         .has_head = true,
                         .num_kinds = DBO_PLAN_LAYER_KINDS,
                         .layers = calloc(DBO_PLAN_LAYER_KINDS, sizeof(dbo_program)),
                         .kind_of_layer = calloc(LAYERS, sizeof(uint16_t))};
    assert_non_null(w->plan.layers);
    assert_non_null(w->plan.kind_of_layer);
    assert_int_equal(w->scene->build(w->costs, &options, &w->plan.layers[0], NULL), DBO_OK);
    assert_int_equal(dbo_build_dense(w->costs, &options, &w->plan.layers[1], NULL), DBO_OK);
    assert_int_equal(dbo_build_embed(w->costs, &options, &w->plan.embed, NULL), DBO_OK);
    assert_int_equal(dbo_build_head(w->costs, &options, &w->plan.head, NULL), DBO_OK);
    w->plan.kind_of_layer[0] = 1;
    if (w->scene->wrong_pool)
        spoil_pools(&w->plan.layers[0]);
}

static dbo_status rank_main(void *arg, uint32_t id, dbo_error *err)
{
    world *w = arg;
    const dbo_seam *seam = &w->ranks[id].seam;
    dbo_event done;
    DBO_TRY(seam->device->event_create(seam->device_self, &done));
    for (uint32_t step = 0; step < STEPS; step++) {
        DBO_TRY(dbo_wrapper_run(&w->wrappers[id], &w->plan, step,
                                w->scene->graph ? DBO_GRAPH_FULL : DBO_GRAPH_NONE, NULL, err));
        DBO_TRY(seam->device->record(seam->device_self, done, w->ranks[id].streams[0]));
        if (step % 2 == 0)
            DBO_TRY(seam->device->host_wait(seam->device_self, done));
    }
    return DBO_OK;
}

static void start(world *w, const scene *s)
{
    memset(w, 0, sizeof *w);
    w->scene = s;
    random_costs(w);
    make_plan(w);
    dbo_config_init(&w->config);
    dbo_trace_init(&w->trace);
    const dbo_sim_options options = {.hardware = &w->hardware,
                                     .num_ranks = RANKS,
                                     .transport = s->low_latency ? DBO_SIM_LL : DBO_SIM_HT,
                                     .contexts = s->executor,
                                     .trace = dbo_trace_sink(),
                                     .trace_self = &w->trace};
    w->sim = dbo_sim_create(&options, NULL);
    assert_non_null(w->sim);
    for (uint32_t r = 0; r < RANKS; r++) {
        dbo_seam seam;
        dbo_sim_seam(w->sim, r, &seam);
        wrap(w, r, &seam);
        assert_int_equal(
            dbo_rank_init(&w->ranks[r], r, &seam, s->executor, 3, dbo_sim_pool(w->sim), NULL),
            DBO_OK);
        assert_int_equal(dbo_wrapper_init(&w->wrappers[r], &w->ranks[r], &w->config, false, NULL),
                         DBO_OK);
    }
}

static void run(world *w, const scene *s)
{
    dbo_error err = {0};
    start(w, s);
    if (dbo_sim_run(w->sim, rank_main, w, &err) != DBO_OK)
        fail_msg("seed %d: %s", (int)s->seed, err.message);
    dbo_wrapper_memory(&w->wrappers[0], &w->memory);
    for (uint32_t r = 0; r < RANKS && s->memory; r++)
        assert_int_equal(dbo_allocator_check(w->ranks[r].allocator, &err), DBO_OK);
}

static void end(world *w)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        dbo_wrapper_fini(&w->wrappers[r]);
        dbo_rank_fini(&w->ranks[r]);
        free(w->probes[r].uses);
    }
    dbo_sim_destroy(w->sim);
    dbo_plan_fini(&w->plan);
    dbo_trace_fini(&w->trace);
}

/* ---- clashes ---- */

typedef struct timed_use {
    const use *use;
    int64_t start_ns, end_ns;
} timed_use;

static int by_id(const void *a, const void *b)
{
    dbo_op_id x = (*(const dbo_span *const *)a)->id, y = (*(const dbo_span *const *)b)->id;
    return (x > y) - (x < y);
}

static int use_by_id(const void *a, const void *b)
{
    dbo_op_id x = ((const use *)a)->id, y = ((const use *)b)->id;
    return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const timed_use *)a)->start_ns, y = ((const timed_use *)b)->start_ns;
    return (x > y) - (x < y);
}

static int use_of_id(const void *key, const void *element)
{
    dbo_op_id x = *(const dbo_op_id *)key, y = ((const use *)element)->id;
    return (x > y) - (x < y);
}

/* The first use of an op. A replayed one has those of the capture, in step 0. */
static const use *first_use(const probe *p, dbo_op_id id)
{
    const use *u = bsearch(&id, p->uses, p->num_uses, sizeof *u, use_of_id);
    dbo_op_id captured = dbo_op_id_with_step(id, 0);
    if (!u)
        u = bsearch(&captured, p->uses, p->num_uses, sizeof *u, use_of_id);
    while (u && u > p->uses && u[-1].id == u->id)
        u--;
    return u;
}

/* Uses of one rank with their times. All parts of an op count, from its first start to its last
 * end: while a transfer is under way it may touch what it names. Returns how many. */
static size_t time_uses(const world *w, uint32_t rank, timed_use *out)
{
    const probe *p = &w->probes[rank];
    qsort(p->uses, p->num_uses, sizeof *p->uses, use_by_id);
    const dbo_span **spans = calloc(w->trace.num_spans + 1, sizeof *spans);
    assert_non_null(spans);
    size_t num_spans = 0, count = 0;
    for (uint64_t i = 0; i < w->trace.num_spans; i++)
        if (dbo_op_id_rank(dbo_trace_span(&w->trace, i)->id) == rank)
            spans[num_spans++] = dbo_trace_span(&w->trace, i);
    qsort(spans, num_spans, sizeof *spans, by_id);
    for (size_t i = 0; i < num_spans;) {
        dbo_op_id id = spans[i]->id;
        int64_t start_ns = INT64_MAX, end_ns = 0;
        for (; i < num_spans && spans[i]->id == id; i++) {
            start_ns = spans[i]->start_ns < start_ns ? spans[i]->start_ns : start_ns;
            end_ns = spans[i]->end_ns > end_ns ? spans[i]->end_ns : end_ns;
        }
        const use *first = first_use(p, id);
        for (const use *u = first; u && u < p->uses + p->num_uses && u->id == first->id; u++)
            out[count++] = (timed_use){u, start_ns, end_ns};
    }
    free(spans);
    return count;
}

static uint32_t count_clashes(const world *w, uint32_t rank, dbo_op_kind *who)
{
    size_t cap = (size_t)MAX_USES * STEPS;
    timed_use *uses = calloc(cap, sizeof *uses);
    assert_non_null(uses);
    size_t count = time_uses(w, rank, uses);
    assert_true(count > 0 && count <= cap);
    qsort(uses, count, sizeof *uses, by_start);
    uint32_t clashes = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count && uses[k].start_ns < uses[i].end_ns; k++) {
            const use *a = uses[i].use, *b = uses[k].use;
            if (a->id == b->id || !(a->writes || b->writes) || a->to <= b->from || b->to <= a->from)
                continue;
            *who = (dbo_op_kind)dbo_op_id_kind(a->id);
            clashes++;
        }
    free(uses);
    return clashes;
}

static uint32_t clashes_of(const scene *s)
{
    world w;
    uint32_t clashes = 0;
    dbo_op_kind who = DBO_KIND_NONE;
    run(&w, s);
    for (uint32_t r = 0; r < RANKS; r++)
        clashes += count_clashes(&w, r, &who);
    if (clashes > 0 && s->record_stream && !s->wrong_pool)
        fail_msg("%s, N=%u, graph %d, seed %d: %u clashes, one with %s", w.plan.layers[0].name,
                 s->num_ubatches, s->graph, (int)s->seed, clashes, dbo_op_kind_name(who));
    end(&w);
    return clashes;
}

static const struct {
    dbo_builder_fn build;
    bool low_latency;
} schedules[] = {{dbo_build_ht, false}, {dbo_build_ht_prose, false}, {dbo_build_ll, true}};

static void nothing_is_used_by_two_at_once(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 252; round++) {
        const scene s = {.build = schedules[round % 3].build,
                         .low_latency = schedules[round % 3].low_latency,
                         .num_ubatches = 1 + round / 3 % 3,
                         .graph = round / 9 % 2 == 1,
                         .late_quant = round / 18 % 2 == 1,
                         .memory = true,
                         .record_stream = true,
                         .seed = round};
        assert_int_equal(clashes_of(&s), 0);
    }
}

/* Rounds of a schedule in which something clashes without record_stream. */
static uint32_t bad_rounds(dbo_builder_fn build, bool low_latency, uint32_t num_ubatches,
                           bool late_quant)
{
    uint32_t bad = 0;
    for (uint32_t round = 0; round < 30; round++) {
        const scene s = {.build = build,
                         .low_latency = low_latency,
                         .num_ubatches = num_ubatches,
                         .late_quant = late_quant,
                         .memory = true,
                         .seed = round};
        bad += clashes_of(&s) > 0;
    }
    return bad;
}

static void without_announcements_blocks_are_reused_too_early(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 3; n++) {
        assert_true(bad_rounds(dbo_build_ht, false, n, false) > 0);
        assert_true(bad_rounds(dbo_build_ht, false, n, true) > 0);
        assert_true(bad_rounds(dbo_build_ht_prose, false, n, false) > 0);
        assert_int_equal(bad_rounds(dbo_build_ll, true, n, false), 0);
    }
    /* unsplit, the back end itself announces what it uses */
    assert_int_equal(bad_rounds(dbo_build_ht, false, 1, false), 0);
    assert_int_equal(bad_rounds(dbo_build_ht, false, 1, true), 0);
}

static void pools_of_the_other_stream_clash(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 3; n++) {
        uint32_t bad = 0;
        for (uint32_t round = 0; round < 12; round++) {
            const scene s = {.build = dbo_build_ht,
                             .num_ubatches = n,
                             .memory = true,
                             .record_stream = true,
                             .wrong_pool = true,
                             .seed = round};
            bad += clashes_of(&s) > 0;
        }
        assert_true(bad > 6);
    }
}

/* ---- times ---- */

static int span_order(const void *a, const void *b)
{
    const dbo_span *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (int)x->part - (int)y->part;
}

static dbo_span *sorted_spans(const world *w)
{
    dbo_span *spans = calloc(w->trace.num_spans, sizeof *spans);
    assert_non_null(spans);
    for (uint64_t i = 0; i < w->trace.num_spans; i++)
        spans[i] = *dbo_trace_span(&w->trace, i);
    qsort(spans, w->trace.num_spans, sizeof *spans, span_order);
    return spans;
}

/* Asking events makes a rank wait for the world, never the other way round. */
static void memory_takes_no_time(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 54; round++) {
        scene s = {.build = schedules[round % 3].build,
                   .low_latency = schedules[round % 3].low_latency,
                   .num_ubatches = 1 + round / 3 % 3,
                   .graph = round / 9 % 2 == 1,
                   .memory = true,
                   .record_stream = true,
                   .executor = round % 7 == 3 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER,
                   .seed = round};
        world with, without;
        run(&with, &s);
        scene bare = s;
        bare.memory = false;
        run(&without, &bare);
        assert_int_equal(with.trace.num_spans, without.trace.num_spans);
        dbo_span *a = sorted_spans(&with), *b = sorted_spans(&without);
        assert_memory_equal(a, b, with.trace.num_spans * sizeof *a);
        assert_null(without.ranks[0].allocator);
        free(a);
        free(b);
        end(&with);
        end(&without);
    }
}

/* The same run twice, and on threads: the same addresses. */
static void addresses_repeat(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 9; round++) {
        scene s = {.build = schedules[round % 3].build,
                   .low_latency = schedules[round % 3].low_latency,
                   .num_ubatches = 1 + round / 3 % 3,
                   .memory = true,
                   .record_stream = true,
                   .seed = round};
        world first, second;
        run(&first, &s);
        scene threads = s;
        threads.executor = DBO_CONTEXT_THREAD;
        run(&second, &threads);
        for (uint32_t r = 0; r < RANKS; r++) {
            const probe *p = &first.probes[r], *q = &second.probes[r];
            assert_int_equal(p->num_uses, q->num_uses);
            assert_memory_equal(p->uses, q->uses, p->num_uses * sizeof *p->uses);
            /* equal ranks, equal addresses: what folding takes for granted */
            assert_int_equal(p->num_uses, first.probes[0].num_uses);
            for (uint32_t i = 0; i < p->num_uses; i++)
                assert_int_equal(p->uses[i].from, first.probes[0].uses[i].from);
        }
        assert_memory_equal(&first.memory, &second.memory, sizeof first.memory);
        end(&first);
        end(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_used_by_two_at_once),
        cmocka_unit_test(without_announcements_blocks_are_reused_too_early),
        cmocka_unit_test(pools_of_the_other_stream_clash),
        cmocka_unit_test(memory_takes_no_time),
        cmocka_unit_test(addresses_repeat),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
