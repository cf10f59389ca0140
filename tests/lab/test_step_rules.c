/* test_step_rules.c: rules of a step that somebody else gives: each slot is asked where it should
 * be, defaults in them change nothing, and what a slot does otherwise happens. */
#include "core/step/step_rules.h"
#include "lab/experiment/fixed_costs.h"
#include "lab/world/world.h"
#include "tests/support/trace_digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 3u
#define RANKS 2u
#define LISTS (STEPS * RANKS)

/* Two ranks of 60 and 41 tokens, then 3 and 2, which are too few to be split, then as at first. */
typedef struct fixture {
    dbo_config config;
    dbo_layer_costs costs;
    dbo_hardware hardware;
    dbo_deployment deployment;
    dbo_request_list lists[LISTS];
    dbo_request requests[LISTS][60];
    const dbo_request_list *pointers[LISTS];
    dbo_trace trace;
    uint32_t num_ubatches[LISTS];
    dbo_graph_mode ran[LISTS];
} fixture;

typedef struct asked {
    uint32_t setups, entries, decisions, cuts, programs, first_programs, finds, ends;
    bool splits, leaves, forgets, fails;
} asked;

static dbo_status ended(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    fixture *f = self;
    (void)err;
    f->num_ubatches[step * RANKS + rank->id] = rank->result.cut.num_ubatches;
    f->ran[step * RANKS + rank->id] = rank->result.ran;
    return DBO_OK;
}

static dbo_status run(fixture *f, const dbo_step_rules *rules, asked *self, dbo_error *err)
{
    static const uint32_t tokens[LISTS] = {60, 41, 3, 2, 60, 41};
    static const dbo_fixed_costs costs = {
        .a0_us = 3, .a1_us = 5, .d_us = 17, .m_us = 41, .c_us = 19};
    memset(f, 0, sizeof *f);
    dbo_config_init(&f->config);
    f->config.enable_dbo = f->config.enable_expert_parallel = true;
    f->config.data_parallel_size = RANKS;
    f->config.dbo_decode_token_threshold = 9;
    f->config.cudagraph_mode = DBO_GRAPHS_FULL;
    f->config.num_capture_sizes = 2;
    f->config.cudagraph_capture_sizes[0] = 4;
    f->config.cudagraph_capture_sizes[1] = 64;
    dbo_hardware_init(&f->hardware);
    dbo_fixed_costs_use(&costs, 1, &f->costs, &f->hardware);
    for (uint32_t i = 0; i < LISTS; i++) {
        for (uint32_t r = 0; r < tokens[i]; r++)
            f->requests[i][r] = (dbo_request){.id = i * 100 + r, .num_scheduled = 1};
        f->lists[i] = (dbo_request_list){.count = tokens[i], .requests = f->requests[i]};
        f->pointers[i] = &f->lists[i];
    }
    f->deployment = (dbo_deployment){.config = &f->config,
                                     .fixed = &f->costs,
                                     .num_layers = 3,
                                     .ep_size = RANKS,
                                     .rules = rules,
                                     .rules_self = self};
    dbo_trace_init(&f->trace);
    const dbo_world_options options = {
        .machine = {.hardware = &f->hardware, .num_ranks = RANKS, .low_latency = true},
        .deployment = &f->deployment,
        .trace = &f->trace};
    const dbo_world_batches batches = {
        .num_steps = STEPS, .requests = f->pointers, .ended = ended, .self = f};
    dbo_world world;
    DBO_TRY(dbo_world_init(&world, &options, err));
    dbo_status status = dbo_world_steps(&world, &batches, err);
    dbo_world_fini(&world);
    return status;
}

/* ---- rules that ask the engine's own ---- */

static void setup(void *self, const dbo_deployment *deployment, dbo_rank *rank, dbo_step_setup *out)
{
    ((asked *)self)->setups++;
    dbo_step_rules_default.setup(NULL, deployment, rank, out);
}

static dbo_status entry(void *self, const dbo_rank_step *step, dbo_vote_entry *out, bool *leaves,
                        dbo_error *err)
{
    asked *a = self;
    a->entries++;
    assert_false(*leaves);
    *leaves = a->leaves;
    return dbo_step_rules_default.entry(NULL, step, out, leaves, err);
}

static void decision(void *self, const dbo_rank_step *step, dbo_vote_result *out)
{
    asked *a = self;
    a->decisions++;
    dbo_step_rules_default.decision(NULL, step, out);
    out->should_ubatch = out->should_ubatch && a->splits;
}

static dbo_status cut(void *self, const dbo_rank_step *step, const dbo_vote_result *decided,
                      dbo_cut *out, dbo_error *err)
{
    ((asked *)self)->cuts++;
    return dbo_step_rules_default.cut(NULL, step, decided, out, err);
}

static dbo_status program(void *self, bool first, dbo_program *built, dbo_error *err)
{
    asked *a = self;
    a->programs++;
    a->first_programs += first;
    assert_int_equal(built->num_ubatches, 2);
    return dbo_step_rules_default.program(NULL, first, built, err);
}

static const dbo_graph_entry *find_graph(void *self, const dbo_graph_entry *graphs, uint32_t count,
                                         int32_t num_tokens, uint32_t num_ubatches)
{
    asked *a = self;
    a->finds++;
    if (a->forgets)
        return NULL;
    return dbo_step_rules_default.find_graph(NULL, graphs, count, num_tokens, num_ubatches);
}

static dbo_status after_step(void *self, dbo_rank *rank, const dbo_step_result *result,
                             dbo_status status, dbo_error *err)
{
    asked *a = self;
    assert_int_equal(status, DBO_OK);
    if (++a->ends == 4 && a->fails)
        return dbo_fail(err, DBO_REFUSED, NULL, "four are enough");
    return dbo_step_rules_default.after_step(NULL, rank, result, status, err);
}

static const dbo_step_rules *counting(void)
{
    static dbo_step_rules rules;
    rules = dbo_step_rules_default;
    rules.setup = setup;
    rules.entry = entry;
    rules.decision = decision;
    rules.cut = cut;
    rules.program = program;
    rules.find_graph = find_graph;
    rules.after_step = after_step;
    return &rules;
}

static void must_run(fixture *f, const dbo_step_rules *rules, asked *self)
{
    dbo_error err = {0};
    if (run(f, rules, self, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static void slots_are_asked(void **state)
{
    (void)state;
    static const uint32_t split[LISTS] = {2, 2, 1, 1, 2, 2};
    static fixture own, asking;
    asked a = {.splits = true};
    must_run(&own, NULL, NULL);
    must_run(&asking, counting(), &a);
    assert_true(digest_trace(DIGEST_START, &own.trace) ==
                digest_trace(DIGEST_START, &asking.trace));
    for (uint32_t i = 0; i < LISTS; i++) {
        assert_int_equal(own.num_ubatches[i], split[i]);
        assert_int_equal(asking.ran[i], DBO_GRAPH_FULL);
    }
    assert_int_equal(a.setups, RANKS);
    assert_int_equal(a.entries, LISTS);
    assert_int_equal(a.decisions, LISTS);
    assert_int_equal(a.cuts, LISTS);
    assert_int_equal(a.first_programs, 4); /* of the two split steps of two ranks */
    assert_int_equal(a.programs, 8);       /* the embedding's and the layer's */
    assert_int_equal(a.finds, LISTS);
    assert_int_equal(a.ends, LISTS);
    dbo_trace_fini(&own.trace);
    dbo_trace_fini(&asking.trace);
}

static void what_they_say_is_done(void **state)
{
    (void)state;
    static fixture f;
    asked whole = {.splits = false}, gone = {.leaves = true},
          again = {.splits = true, .forgets = true};
    asked failing = {.splits = true, .fails = true};
    dbo_error err = {0};
    must_run(&f, counting(), &whole);
    for (uint32_t i = 0; i < LISTS; i++)
        assert_int_equal(f.num_ubatches[i], 1);
    assert_int_equal(whole.programs, 0);
    dbo_trace_fini(&f.trace);
    must_run(&f, counting(), &gone); /* nobody votes, nothing runs */
    assert_int_equal(gone.decisions, 0);
    assert_int_equal(gone.ends, 0);
    assert_int_equal(f.trace.num_spans, 0);
    dbo_trace_fini(&f.trace);
    must_run(&f, NULL, NULL);
    uint64_t spans = f.trace.num_spans, issues = f.trace.num_issues;
    dbo_trace_fini(&f.trace);
    must_run(&f, counting(), &again); /* the third step captures again, which issues its ops */
    assert_true(f.trace.num_spans == spans);
    assert_true(f.trace.num_issues > issues);
    dbo_trace_fini(&f.trace);
    assert_int_equal(run(&f, counting(), &failing, &err), DBO_REFUSED);
    assert_string_equal(err.message, "rank 1: four are enough");
    dbo_trace_fini(&f.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_asked),
        cmocka_unit_test(what_they_say_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
