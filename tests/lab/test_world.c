/* One loop over ranks: steps of unequal batches, bare runs, folding, one rank a process; and every
 * way to fail names who failed and leaves nothing behind. */
#include "lab/experiment/fixed_costs.h"
#include "lab/world/backends.h"
#include "lab/world/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 2u
#define RANKS 3u
#define LISTS (STEPS * RANKS)

/* Three ranks with 70, 9 and 31 tokens, then 5, 64 and 33. */
typedef struct fixture {
    dbo_config config;
    dbo_layer_costs costs;
    dbo_hardware hardware;
    dbo_deployment deployment;
    dbo_request_list lists[LISTS];
    dbo_request requests[LISTS][70];
    const dbo_request_list *pointers[LISTS];
    dbo_trace trace;
    dbo_world_options options;
    dbo_world_batches batches;
    uint32_t begun, ended, attached, detached; /* how often */
    int32_t tokens[LISTS];                     /* that results speak of */
    uint32_t fail_rank;                        /* of a callback, at its step `fail_step` */
    uint32_t fail_step;
} fixture;

#define NOBODY 99u

static dbo_status begin(void *self, dbo_world_rank *rank, dbo_error *err)
{
    fixture *f = self;
    (void)err;
    assert_ptr_equal(rank->runner.rank, &rank->rank);
    f->begun++;
    return DBO_OK;
}

static dbo_status ended(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    fixture *f = self;
    f->ended++;
    f->tokens[step * RANKS + rank->logical] = rank->result.num_tokens;
    if (rank->id == f->fail_rank && step == f->fail_step)
        return dbo_fail(err, DBO_LIMIT, "Breathe.", "had enough");
    return DBO_OK;
}

static void set_up(fixture *f)
{
    static const uint32_t tokens[LISTS] = {70, 9, 31, 5, 64, 33};
    memset(f, 0, sizeof *f);
    dbo_config_init(&f->config);
    f->config.enable_dbo = f->config.enable_expert_parallel = true;
    f->config.data_parallel_size = RANKS;
    f->config.dbo_decode_token_threshold = 4;
    f->config.cudagraph_mode = DBO_GRAPHS_NONE;
    const dbo_fixed_costs costs = {.a0_us = 3, .a1_us = 5, .d_us = 17, .m_us = 41, .c_us = 19};
    dbo_hardware_init(&f->hardware);
    dbo_fixed_costs_use(&costs, 1, &f->costs, &f->hardware);
    for (uint32_t i = 0; i < LISTS; i++) {
        for (uint32_t r = 0; r < tokens[i]; r++)
            f->requests[i][r] = (dbo_request){.id = i * 100 + r, .num_scheduled = 1};
        f->lists[i] = (dbo_request_list){.count = tokens[i], .requests = f->requests[i]};
        f->pointers[i] = &f->lists[i];
    }
    f->deployment = (dbo_deployment){
        .config = &f->config, .fixed = &f->costs, .num_layers = 3, .ep_size = RANKS};
    dbo_trace_init(&f->trace);
    f->options = (dbo_world_options){
        .machine = {.hardware = &f->hardware, .num_ranks = RANKS, .low_latency = true},
        .deployment = &f->deployment,
        .trace = &f->trace};
    f->batches = (dbo_world_batches){
        .num_steps = STEPS, .requests = f->pointers, .begin = begin, .ended = ended, .self = f};
    f->fail_rank = f->fail_step = NOBODY;
}

static dbo_status run_steps(fixture *f, dbo_error *err)
{
    dbo_world world;
    DBO_TRY(dbo_world_init(&world, &f->options, err));
    dbo_status status = dbo_world_steps(&world, &f->batches, err);
    dbo_world_fini(&world);
    return status;
}

static void must_fail(fixture *f, dbo_status status, const char *part)
{
    dbo_error err = {0};
    dbo_status got = run_steps(f, &err);
    if (got != status || !strstr(err.message, part))
        fail_msg("%s: '%s' lacks '%s'", dbo_status_name(got), err.message, part);
    dbo_trace_fini(&f->trace);
}

/* ---- steps ---- */

static void steps(void **state)
{
    (void)state;
    fixture f;
    dbo_error err = {0};
    dbo_world world;
    set_up(&f);
    assert_int_equal(dbo_world_init(&world, &f.options, &err), DBO_OK);
    assert_int_equal(world.num_ranks, RANKS);
    if (dbo_world_steps(&world, &f.batches, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f.begun, RANKS);
    assert_int_equal(f.ended, LISTS);
    for (uint32_t i = 0; i < LISTS; i++)
        assert_int_equal(f.tokens[i], f.lists[i].count);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(world.ranks[r].logical, r);
        assert_int_equal(world.ranks[r].result.num_tokens, f.lists[RANKS + r].count);
    }
    assert_true(f.trace.num_spans > 0);
    assert_true(dbo_world_now_ns(&world) >=
                dbo_trace_span(&f.trace, f.trace.num_spans - 1)->end_ns);
    /* again: ranks stay as they are, and time goes on */
    int64_t before_ns = dbo_world_now_ns(&world);
    const dbo_stream stream = world.ranks[2].rank.num_streams;
    f.batches.num_steps = 1;
    assert_int_equal(dbo_world_steps(&world, &f.batches, &err), DBO_OK);
    assert_int_equal(world.ranks[2].rank.num_streams, stream);
    assert_int_equal(world.ranks[2].result.num_tokens, 31);
    assert_true(dbo_world_now_ns(&world) > before_ns);
    dbo_world_fini(&world);
    dbo_trace_fini(&f.trace);
}

/* Ranks 0 and 2 are one class, alone; 1 stands for itself. */
static void folded(void **state)
{
    (void)state;
    static const uint32_t class_of[] = {0, 1, 0};
    fixture f;
    dbo_error err = {0};
    dbo_world world;
    set_up(&f);
    f.pointers[2] = f.pointers[0];
    f.pointers[5] = f.pointers[3];
    f.options.machine.num_classes = 2;
    f.options.machine.class_of = class_of;
    assert_int_equal(dbo_world_init(&world, &f.options, &err), DBO_OK);
    if (dbo_world_steps(&world, &f.batches, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(world.num_ranks, 2);
    assert_int_equal(world.ranks[1].logical, 1);
    assert_int_equal(f.tokens[3], 5);
    assert_int_equal(f.tokens[4], 64);
    assert_int_equal(f.tokens[5], 0); /* nobody is rank 2 */
    dbo_world_fini(&world);
    dbo_trace_fini(&f.trace);
}

/* ---- without a runner ---- */

static dbo_status yield_rank(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    uint32_t *order = arg;
    *order = *order * 10 + ubatch->id + 1;
    dbo_status status = dbo_yield();
    *order = *order * 10 + ubatch->id + 1;
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(ubatch->rank, status, err);
}

static dbo_status bare_main(void *arg, dbo_world_rank *rank, dbo_error *err)
{
    return dbo_ubatches_run(&rank->rank, 2 + rank->id, 0, yield_rank, (uint32_t *)arg + rank->id,
                            err);
}

static void bare(void **state)
{
    (void)state;
    static const dbo_context_kind kinds[] = {DBO_CONTEXT_FIBER, DBO_CONTEXT_THREAD};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t order[2] = {0};
        dbo_error err = {0};
        dbo_world world;
        const dbo_world_options options = {.machine = {.num_ranks = 2, .contexts = kinds[i]},
                                           .max_ubatches = 3};
        assert_int_equal(dbo_world_init(&world, &options, &err), DBO_OK);
        if (dbo_world_run(&world, bare_main, order, &err) != DBO_OK)
            fail_msg("%s", err.message);
        assert_int_equal(order[0], 1212);
        assert_int_equal(order[1], 123123);
        dbo_world_fini(&world);
    }
}

/* ---- what is put around a seam ---- */

static dbo_status first_attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    fixture *f = self;
    (void)err;
    assert_ptr_not_equal(seam->trace_self, f);
    seam->trace_self = f;
    f->attached += 1 + 10 * rank;
    return DBO_OK;
}

static dbo_status second_attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    fixture *f = self;
    assert_ptr_equal(seam->trace_self, f); /* the first is nearer to the machine */
    seam->trace_self = &f->trace;
    f->detached++;
    return rank == f->fail_rank ? dbo_fail(err, DBO_REFUSED, NULL, "no room for it") : DBO_OK;
}

static void attached(void **state)
{
    (void)state;
    fixture f;
    dbo_error err = {0};
    set_up(&f);
    f.options.attachments[1] = (dbo_attachment){.attach = first_attach, .self = &f};
    f.options.attachments[3] = (dbo_attachment){.attach = second_attach, .self = &f};
    assert_int_equal(run_steps(&f, &err), DBO_OK);
    assert_int_equal(f.attached, 3 + 10 * (0 + 1 + 2));
    assert_int_equal(f.detached, RANKS);
    dbo_trace_fini(&f.trace);
    set_up(&f);
    f.options.attachments[1] = (dbo_attachment){.attach = first_attach, .self = &f};
    f.options.attachments[3] = (dbo_attachment){.attach = second_attach, .self = &f};
    f.fail_rank = 1;
    must_fail(&f, DBO_REFUSED, "rank 1: no room for it");
}

/* ---- failures ---- */

static void failures(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    f.fail_rank = 2;
    f.fail_step = 1;
    must_fail(&f, DBO_LIMIT, "rank 2: had enough");
    assert_true(f.ended > 3 && f.ended <= LISTS);
    set_up(&f);
    f.requests[4][63].num_scheduled = -3;
    must_fail(&f, DBO_INVALID, "rank 1: ");
    set_up(&f);
    f.options.machine.num_ranks = 0;
    must_fail(&f, DBO_LIMIT, "0 ranks asked");
    set_up(&f);
    f.options.machine.group = dbo_group_alone();
    must_fail(&f, DBO_UNSUPPORTED, "ranks of several processes cannot be simulated");
}

/* Transfers have 20 SMs where nobody says how many; of a small GPU, what leaves one, and pairs. */
static void small_gpus_keep_an_sm(void **state)
{
    (void)state;
    static const uint32_t cases[][2] = {{132, 20}, {22, 20}, {21, 20}, {20, 18}, {19, 18}, {3, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        dbo_error err = {0};
        dbo_world world;
        set_up(&f);
        f.config.all2all_backend = DBO_BACKEND_HT;
        f.options.machine.low_latency = false;
        f.hardware.sms = cases[i][0];
        assert_int_equal(dbo_world_init(&world, &f.options, &err), DBO_OK);
        if (dbo_world_steps(&world, &f.batches, &err) != DBO_OK)
            fail_msg("%s", err.message);
        assert_int_equal(world.ranks[1].runner.wrapper.sms.comm, cases[i][1]);
        dbo_world_fini(&world);
        dbo_trace_fini(&f.trace);
    }
}

/* ---- a device without room for an event ---- */

typedef struct few_events {
    dbo_device_ops ops;
    const dbo_device_ops *below;
    void *below_self;
    uint32_t made, live, refuse_at;
} few_events;

static few_events few;

static dbo_status make_event(void *self, dbo_event *out)
{
    if (++few.made == few.refuse_at)
        return DBO_LIMIT;
    dbo_status status = few.below->event_create(self, out);
    few.live += status == DBO_OK;
    return status;
}

static dbo_status few_status(void *self, dbo_error *err)
{
    if (few.made < few.refuse_at)
        return few.below->status(self, err);
    return dbo_fail(err, DBO_LIMIT, NULL, "no room for event %u", few.made);
}

static void drop_event(void *self, dbo_event event)
{
    few.live--;
    few.below->event_destroy(self, event);
}

static dbo_status attach_few(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    (void)self;
    (void)rank;
    (void)err;
    few.below = seam->device;
    few.ops = *seam->device;
    few.ops.event_create = make_event;
    few.ops.event_destroy = drop_event;
    few.ops.status = few_status;
    seam->device = &few.ops;
    return DBO_OK;
}

/* What SMs compute may use is refused to rank 1: on the way in, on the way out. */
static dbo_status refuse_sms(dbo_tap *tap, dbo_tap_call *call)
{
    uint32_t *calls_left = tap->self;
    (void)call;
    return (*calls_left)-- > 0 ? DBO_OK
                               : dbo_tap_refuse(tap, DBO_LIMIT, NULL, "no SMs are to spare");
}

static struct {
    dbo_tap tap;
    uint32_t calls_left;
} few_sms;

static dbo_status attach_few_sms(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    static const dbo_tap_hooks hooks = {.before[DBO_TAP_COMPUTE_SMS] = refuse_sms};
    (void)self;
    (void)err;
    if (rank == 1)
        dbo_tap_wrap(&few_sms.tap, &hooks, &few_sms.calls_left, seam);
    return DBO_OK;
}

static void refused_sms(void **state)
{
    (void)state;
    fixture f;
    for (uint32_t calls = 0; calls < 2; calls++) {
        set_up(&f);
        f.hardware.sms = 90;
        f.config.all2all_backend = DBO_BACKEND_HT;
        f.options.machine.low_latency = false;
        f.options.attachments[0].attach = attach_few_sms;
        few_sms.calls_left = calls;
        must_fail(&f, DBO_LIMIT, "no SMs are to spare");
    }
}

/* Each event in turn is refused: it is said, and what was made is destroyed, and no more. */
static void events_run_out(void **state)
{
    (void)state;
    dbo_status status;
    uint32_t refusals = 0;
    do {
        fixture f;
        dbo_error err = {0};
        set_up(&f);
        f.options.machine.num_ranks = f.config.data_parallel_size = f.deployment.ep_size = 1;
        f.config.ubatch_single_rank = true;
        f.options.attachments[0] = (dbo_attachment){.attach = attach_few};
        few = (few_events){.refuse_at = refusals + 1};
        status = run_steps(&f, &err);
        if (few.live != 0)
            fail_msg("event %u refused: %u are left (%s)", refusals + 1, few.live, err.message);
        if (status != DBO_OK) {
            char sentence[40];
            snprintf(sentence, sizeof sentence, "no room for event %u", ++refusals);
            assert_int_equal(status, DBO_LIMIT);
            assert_non_null(strstr(err.message, sentence));
        }
        dbo_trace_fini(&f.trace);
    } while (status != DBO_OK);
    assert_int_equal(few.made, refusals);
    assert_int_equal(refusals, 5); /* of the runner, of two ubatches */
}

static bool is_cancelled(void *arg)
{
    (void)arg;
    return true;
}

static void cancelled(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    f.options.machine.cancelled = is_cancelled;
    f.batches.num_steps = 0;
    dbo_error err = {0};
    assert_int_equal(run_steps(&f, &err), DBO_OK); /* nothing to stop */
    dbo_trace_fini(&f.trace);
    set_up(&f);
    f.options.machine.cancelled = is_cancelled;
    f.deployment.num_layers = 500; /* it is asked now and then */
    must_fail(&f, DBO_CANCELLED, "stopped at ");
}

/* ---- another back end ---- */

static void loaded(void **state)
{
    (void)state;
    fixture f;
    dbo_error err = {0};
    set_up(&f);
    assert_int_equal(dbo_backend_find("null", &f.options.backend, &err), DBO_OK);
    if (run_steps(&f, &err) != DBO_OK)
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < LISTS; i++)
        assert_int_equal(f.tokens[i], f.lists[i].count);
    assert_true(f.trace.num_spans > 0);
    dbo_trace_fini(&f.trace);
    set_up(&f);
    assert_int_equal(dbo_backend_find("null", &f.options.backend, &err), DBO_OK);
    f.fail_rank = 1;
    f.fail_step = 0;
    must_fail(&f, DBO_LIMIT, "rank 1: had enough");
    set_up(&f);
    assert_int_equal(dbo_backend_find("null", &f.options.backend, &err), DBO_OK);
    f.options.machine.num_classes = 2;
    must_fail(&f, DBO_UNSUPPORTED, "'null' runs ranks, and cannot let one stand for others");
    set_up(&f);
    assert_int_equal(dbo_backend_find("absent", &f.options.backend, &err), DBO_OK);
    must_fail(&f, DBO_UNSUPPORTED, "this machine has no such device");
    dbo_world none = {0};
    dbo_world_fini(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(folded),
        cmocka_unit_test(bare),
        cmocka_unit_test(attached),
        cmocka_unit_test(failures),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(loaded),
        cmocka_unit_test(events_run_out),
        cmocka_unit_test(small_gpus_keep_an_sm),
        cmocka_unit_test(refused_sms),
    };
    setenv(DBO_BACKEND_PATH, DBO_TEST_BACKENDS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
