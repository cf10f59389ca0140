/* test_api_errors.c: a caller's kernel fails in one ubatch: one sentence names it, the siblings are
 * released, and the rank goes on, on either executor, eagerly and in a capture.
 *
 * The machine is the simulator whose launch also enqueues, as a real device's does: an op with a
 * function of its own gets a native stream and may fail at its issue. */
#include "core/dbo.h"
#include "core/step/wrapper.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#include <cmocka.h> /* after what it needs */
/* clang-format on */

#define LAYERS  3u
#define MOST    4u
#define NOBODY  UINT32_MAX
#define STREAMS 2u

typedef enum manner {
    SAYS_WHY,
    SAYS_NOTHING,
    IN_THE_HOOK,
    GOES_ON,        /* a released sibling complains, too */
    IN_OWN_WORDS,   /* the ubatch does not ask the rank for the sentence */
    TOUCHES_NOTHING /* a buffer without storage */
} manner;

typedef struct bench bench;

typedef struct call { /* what one kernel call lends */
    bench *of;
    uint32_t ubatch, number;
    dbo_access cell;
    dbo_op_io io;
} call;

struct bench {
    dbo_sim *sim;
    dbo_rank rank;
    dbo_context_kind kind;
    dbo_device_ops device;
    const dbo_device_ops *simulated;
    dbo_error refusal; /* of a caller's kernel */
    uint64_t addresses[MOST];
    uint32_t count; /* ubatches */
    /* who fails: the kernel `fails_at` of ubatch `fails`, counted from 0 */
    uint32_t fails, fails_at;
    manner how;
    uint32_t step, begun, ended;
    dbo_status saw[MOST]; /* what each ubatch returned */
    uint32_t numbers[MOST];
    uint32_t enqueued[STREAMS];
    call calls[MOST][LAYERS * 4 + 1];
};

static bench *current; /* a device table knows the simulator's rank alone */
static char native[STREAMS];

/* ---- a simulated device that enqueues ---- */

static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    if (op->io && op->io->enqueue)
        DBO_TRY(op->io->enqueue(op, &native[stream], &current->refusal));
    return current->simulated->launch(self, stream, op);
}

static dbo_status device_status(void *self, dbo_error *err)
{
    dbo_status status = current->refusal.status;
    if (status == DBO_OK)
        return current->simulated->status(self, err);
    if (err)
        *err = current->refusal;
    memset(&current->refusal, 0, sizeof current->refusal);
    return status;
}

static dbo_status enqueue(const dbo_op *op, void *stream, dbo_error *err)
{
    const call *c = op->io->arg;
    bench *b = c->of;
    assert_true(stream == &native[0] || stream == &native[1]);
    b->enqueued[(char *)stream - native]++;
    if (b->fails != c->ubatch || b->fails_at != c->number)
        return DBO_OK;
    return b->how == SAYS_NOTHING ? DBO_DEVICE
                                  : dbo_fail(err, DBO_DEVICE, NULL, "the weights are gone");
}

/* ---- a model: each kernel turns its ubatch's number x into 3 x + its own number ---- */

static void reference(const dbo_op *op, const void *const *reads, void *const *writes)
{
    uint64_t x;
    memcpy(&x, reads[0], sizeof x);
    x = 3 * x + ((const call *)op->io->arg)->number;
    memcpy(writes[0], &x, sizeof x);
}

static dbo_status work(bench *b, uint32_t ubatch, uint32_t layer, dbo_op_kind kind)
{
    static const dbo_op_cost cost = {.fixed_ns = 1000};
    uint32_t number = b->numbers[ubatch]++;
    call *c = &b->calls[ubatch][number];
    bool lost = b->how == TOUCHES_NOTHING && b->fails == ubatch && b->fails_at == number;
    *c = (call){.of = b, .ubatch = ubatch, .number = number};
    c->cell = (dbo_access){.buffer = lost ? MOST - 1 : ubatch, .bytes = sizeof(uint64_t)};
    c->io = (dbo_op_io){
        1, 1, &c->cell, &c->cell, .ref = reference, .arg = c, .enqueue = lost ? NULL : enqueue};
    return dbo_kernel_launch(&b->rank, &(dbo_kernel){.kind = kind,
                                                     .step = b->step,
                                                     .layer = layer,
                                                     .ubatch = ubatch,
                                                     .occurrence = number,
                                                     .cost = &cost,
                                                     .io = &c->io,
                                                     .addresses = b->addresses});
}

static dbo_status hook(void *self, uint64_t arg)
{
    return work(self, (uint32_t)arg, LAYERS - 1, DBO_KIND_CUSTOM);
}

static dbo_status layers(dbo_ubatch *u, bench *b)
{
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        DBO_TRY(work(b, u->id, layer, DBO_KIND_A1));
        DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
        DBO_TRY(work(b, u->id, layer, DBO_KIND_DISPATCH));
        DBO_TRY(dbo_switch_to_compute_sync());
        DBO_TRY(work(b, u->id, layer, DBO_KIND_MLP));
        DBO_TRY(dbo_yield());
    }
    if (u->id > 0) /* for the next one, which runs it as it leaves: the first has gone */
        return DBO_OK;
    return dbo_register_recv_hook((dbo_recv_hook){hook, b, 1});
}

static dbo_status ubatch_main(dbo_ubatch *u, void *arg, dbo_error *err)
{
    bench *b = arg;
    b->begun++;
    dbo_status status = layers(u, b);
    b->saw[u->id] = status;
    b->ended++;
    if (status == DBO_ABORTED && b->how == GOES_ON)
        return dbo_fail(err, DBO_IO, NULL, "I was not done");
    if (status == DBO_DEVICE && b->how == IN_OWN_WORDS)
        return dbo_fail(err, status, NULL, "no more experts");
    return status;
}

/* ---- running steps ---- */

static void expect_released(const bench *b)
{
    assert_int_equal(b->begun, b->ended); /* nobody is parked */
    for (uint32_t u = 0; u < b->count; u++)
        if (u != b->fails && b->saw[u] != DBO_OK)
            assert_int_equal(b->saw[u], DBO_ABORTED);
    assert_false(dbo_enabled());
    assert_null(b->rank.forward);
}

static dbo_status run_step(bench *b, dbo_error *err)
{
    b->step++;
    b->begun = b->ended = 0;
    memset(b->numbers, 0, sizeof b->numbers);
    for (uint32_t u = 0; u < MOST; u++)
        b->saw[u] = DBO_OK;
    return dbo_ubatches_run(&b->rank, b->count, b->step, ubatch_main, b, err);
}

static void expect_failure(bench *b, dbo_error *err)
{
    static const char *const sentences[] = {
        [SAYS_WHY] = "ubatch %u: the weights are gone",
        [SAYS_NOTHING] = "ubatch %u: the GPU or its library reported an error",
        [IN_THE_HOOK] = "ubatch %u: the weights are gone",
        [GOES_ON] = "ubatch %u: the weights are gone",
        [IN_OWN_WORDS] = "ubatch %u: no more experts",
        [TOUCHES_NOTHING] = "ubatch %u: an op that computes touches buffer 3, which has no storage",
    };
    char sentence[128];
    snprintf(sentence, sizeof sentence, sentences[b->how], b->fails);
    dbo_status status = b->how == TOUCHES_NOTHING ? DBO_INVALID : DBO_DEVICE;
    assert_int_equal(run_step(b, err), status);
    assert_int_equal(err->status, status);
    assert_string_equal(err->message, sentence);
    expect_released(b);
}

/* Does the rank run a whole step, and right? */
static void expect_success(bench *b, dbo_error *err)
{
    const dbo_seam *seam = &b->rank.seam;
    uint32_t fails = b->fails, on_comm = b->enqueued[1];
    uint64_t *cells[MOST] = {0};
    b->fails = NOBODY;
    assert_int_equal(dbo_rank_synchronize(&b->rank, err), DBO_OK); /* what was issued in vain */
    for (uint32_t u = 0; u < b->count; u++)
        if ((cells[u] = seam->mem ? seam->mem->ptr(seam->mem_self, b->addresses[u]) : NULL))
            *cells[u] = u + 5;
    assert_int_equal(run_step(b, err), DBO_OK);
    if (!seam->graph->is_capturing(seam->graph_self))
        assert_int_equal(dbo_rank_synchronize(&b->rank, err), DBO_OK);
    assert_int_equal(b->ended, b->count);
    assert_int_equal(b->enqueued[1], on_comm + b->count * LAYERS);
    for (uint32_t u = 0; u < b->count && cells[u]; u++) {
        uint64_t x = u + 5;
        for (uint32_t n = 0; n < LAYERS * 3 + (u == 1); n++)
            x = 3 * x + n;
        assert_int_equal(*cells[u], x);
    }
    b->fails = fails;
}

typedef void (*scene_fn)(bench *b, dbo_error *err);
typedef struct play {
    bench *b;
    scene_fn scene;
} play;

static dbo_status rank_main(void *arg, uint32_t rank, dbo_error *err)
{
    play *p = arg;
    dbo_error own = {0};
    (void)err;
    assert_int_equal(rank, 0);
    p->scene(p->b, &own);
    return DBO_OK;
}

/* Plays a scene on a fresh rank. A test that fails inside leaves the world as it is. */
static void on_stage(bench *b, bool numeric, scene_fn scene)
{
    dbo_error err = {0};
    dbo_seam seam;
    current = b;
    b->sim = dbo_sim_create(
        &(dbo_sim_options){.num_ranks = 1, .numeric = numeric, .contexts = b->kind}, &err);
    assert_non_null(b->sim);
    dbo_sim_seam(b->sim, 0, &seam);
    b->simulated = seam.device;
    b->device = *seam.device;
    b->device.launch = launch;
    b->device.status = device_status;
    seam.device = &b->device;
    assert_int_equal(dbo_rank_init(&b->rank, 0, &seam, b->kind, MOST, dbo_sim_pool(b->sim), &err),
                     DBO_OK);
    for (uint32_t u = 0; u < MOST - 1 && numeric; u++)
        assert_int_equal(seam.mem->alloc(seam.mem_self, 8, DBO_SPACE_DEVICE, &b->addresses[u]),
                         DBO_OK);
    play p = {b, scene};
    if (dbo_sim_run(b->sim, rank_main, &p, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_rank_fini(&b->rank);
    dbo_sim_destroy(b->sim);
}

/* Both executors, N = 2 and 3, each ubatch in turn, the first kernel to the last. */
static void everywhere(bool numeric, manner how, uint32_t first, uint32_t last, scene_fn scene)
{
    for (int kind = DBO_CONTEXT_FIBER; kind <= DBO_CONTEXT_THREAD; kind++)
        for (uint32_t count = 2; count <= 3; count++)
            for (uint32_t fails = 0; fails < count; fails++)
                for (uint32_t at = first; at <= last; at++) {
                    bench b = {.kind = (dbo_context_kind)kind,
                               .count = count,
                               .fails = fails,
                               .fails_at = at,
                               .how = how};
                    on_stage(&b, numeric, scene);
                }
}

static void fails_and_goes_on(bench *b, dbo_error *err)
{
    expect_success(b, err);
    expect_failure(b, err);
    expect_success(b, err);
    expect_failure(b, err);
    expect_failure(b, err);
    expect_success(b, err);
}

static void one_sentence_and_the_rank_goes_on(void **state)
{
    (void)state;
    everywhere(true, SAYS_WHY, 0, LAYERS * 3 - 1, fails_and_goes_on);
}

static void a_kernel_that_gives_no_reason(void **state)
{
    (void)state;
    everywhere(true, SAYS_NOTHING, 4, 4, fails_and_goes_on);
}

static void siblings_with_complaints_of_their_own(void **state)
{
    (void)state;
    everywhere(true, GOES_ON, 1, 1, fails_and_goes_on);
}

/* The sentence that nobody asked for is not told as the reason of the next failure. */
static void forgets_old_sentences(bench *b, dbo_error *err)
{
    b->how = IN_OWN_WORDS;
    expect_failure(b, err);
    b->how = SAYS_NOTHING;
    expect_failure(b, err);
    expect_success(b, err);
}

static void each_failure_has_its_own_sentence(void **state)
{
    (void)state;
    everywhere(true, IN_OWN_WORDS, 0, 3, forgets_old_sentences);
}

static void an_op_without_storage(void **state)
{
    (void)state;
    everywhere(true, TOUCHES_NOTHING, 0, 5, fails_and_goes_on);
}

/* Ubatch 1 runs the hook of ubatch 0 as it leaves. */
static void a_hook_that_fails_at_the_exit(void **state)
{
    (void)state;
    for (int kind = DBO_CONTEXT_FIBER; kind <= DBO_CONTEXT_THREAD; kind++)
        for (uint32_t count = 2; count <= 3; count++) {
            bench b = {.kind = (dbo_context_kind)kind,
                       .count = count,
                       .fails = 1,
                       .fails_at = LAYERS * 3,
                       .how = IN_THE_HOOK};
            on_stage(&b, true, fails_and_goes_on);
        }
}

/* ---- captures ---- */

static void captures_after_a_failure(bench *b, dbo_error *err)
{
    const dbo_seam *seam = &b->rank.seam;
    dbo_graph graph;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(seam->graph->begin(seam->graph_self, b->rank.streams[0]), DBO_OK);
        expect_failure(b, err);
        assert_true(seam->graph->is_capturing(seam->graph_self));
        seam->graph->abandon(seam->graph_self);
        assert_false(seam->graph->is_capturing(seam->graph_self));
        expect_success(b, err);
    }
    b->fails = NOBODY;
    assert_int_equal(seam->graph->begin(seam->graph_self, b->rank.streams[0]), DBO_OK);
    assert_int_equal(run_step(b, err), DBO_OK);
    assert_int_equal(seam->graph->end(seam->graph_self, &graph), DBO_OK);
    assert_true(dbo_sim_graph_nodes(b->sim, 0, graph) > b->count * LAYERS * 3);
    assert_int_equal(seam->graph->replay(seam->graph_self, graph, b->rank.streams[0], 9), DBO_OK);
    assert_int_equal(dbo_rank_synchronize(&b->rank, err), DBO_OK);
}

static void an_abandoned_capture(void **state)
{
    (void)state;
    everywhere(false, SAYS_WHY, 0, LAYERS * 3 - 1, captures_after_a_failure);
}

/* ---- the wrapper: programs with kernels of the caller's ---- */

static void make_plan(bench *b, dbo_plan *plan, dbo_error *err)
{
    int64_t ns[DBO_KIND_COUNT];
    static dbo_layer_costs costs[DBO_MAX_UBATCHES]; /* large for a fiber */
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = 1000;
    for (uint32_t u = 0; u < b->count; u++)
        dbo_layer_costs_fixed(ns, 0, &costs[u]);
    static dbo_program layer;
    memset(&layer, 0, sizeof layer);
    *plan = (dbo_plan){.num_ubatches = b->count,
                       .num_layers = LAYERS,
                       .num_tokens_padded = 64,
                       .num_kinds = 1,
                       .layers = &layer};
    dbo_build_options options = {.num_ubatches = b->count};
    assert_int_equal(dbo_build_ll(costs, &options, &plan->layers[0], err), DBO_OK);
    for (uint32_t i = 0; i < plan->layers[0].num_ops; i++) {
        dbo_program_op *op = &plan->layers[0].ops[i];
        uint32_t ubatch = dbo_op_id_ubatch(op->id_bits);
        if (dbo_op_id_kind(op->id_bits) != DBO_KIND_MLP)
            continue;
        call *c = &b->calls[ubatch][0];
        *c = (call){.of = b, .ubatch = ubatch, .number = 0};
        c->io = (dbo_op_io){.arg = c, .enqueue = enqueue};
        op->io = &c->io;
    }
}

static void the_wrapper_abandons_it(bench *b, dbo_error *err)
{
    dbo_wrapper wrapper;
    dbo_config config;
    dbo_plan plan;
    uint16_t kinds[LAYERS] = {0};
    dbo_graph_mode ran;
    char sentence[64];
    const dbo_seam *seam = &b->rank.seam;
    dbo_config_init(&config);
    make_plan(b, &plan, err);
    plan.kind_of_layer = kinds;
    assert_int_equal(dbo_wrapper_init(&wrapper, &b->rank, &config, false, err), DBO_OK);
    snprintf(sentence, sizeof sentence, "ubatch %u: the weights are gone", b->fails);
    for (uint32_t step = 0; step < 4; step++) {
        dbo_graph_mode mode = step % 2 ? DBO_GRAPH_NONE : DBO_GRAPH_FULL;
        memset(err, 0, sizeof *err);
        assert_int_equal(dbo_wrapper_run(&wrapper, &plan, step, mode, &ran, err), DBO_DEVICE);
        assert_string_equal(err->message, sentence);
        assert_false(seam->graph->is_capturing(seam->graph_self));
        assert_int_equal(wrapper.num_graphs, 0);
    }
    b->fails = NOBODY;
    assert_int_equal(dbo_wrapper_run(&wrapper, &plan, 5, DBO_GRAPH_FULL, &ran, err), DBO_OK);
    assert_int_equal(ran, DBO_GRAPH_FULL);
    assert_int_equal(wrapper.num_graphs, 1);
    assert_int_equal(dbo_rank_synchronize(&b->rank, err), DBO_OK);
    dbo_wrapper_fini(&wrapper);
    dbo_program_fini(&plan.layers[0]);
}

static void a_wrapper_whose_capture_fails(void **state)
{
    (void)state;
    everywhere(false, SAYS_WHY, 0, 0, the_wrapper_abandons_it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sentence_and_the_rank_goes_on),
        cmocka_unit_test(a_kernel_that_gives_no_reason),
        cmocka_unit_test(siblings_with_complaints_of_their_own),
        cmocka_unit_test(each_failure_has_its_own_sentence),
        cmocka_unit_test(an_op_without_storage),
        cmocka_unit_test(a_hook_that_fails_at_the_exit),
        cmocka_unit_test(an_abandoned_capture),
        cmocka_unit_test(a_wrapper_whose_capture_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
