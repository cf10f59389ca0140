/* test_check_runs.c: the checker around real back ends and both executors: it finds the same by
 * fibers and threads, explains a world that has stopped, and follows captures. */
#include "core/check/order/check.h"
#include "core/program/builders.h"
#include "tests/support/mutants.h"
#include "tests/support/sim_world.h"

#include <stdio.h>

/* ---- executors ---- */

static void executors_find_the_same(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint64_t seed = 500; seed < 700; seed++) {
        dbo_program original, mutant;
        dbo_findings findings[2] = {0};
        dbo_error err = {0};
        char what[256];
        assert_int_equal(mutants_make(seed, &original, &err), DBO_OK);
        assert_int_equal(mutants_mutate(seed, &original, &mutant, what, sizeof what, &err), DBO_OK);
        for (int i = 0; i < 2; i++) {
            const dbo_check_program_options options = {.contexts = i ? DBO_CONTEXT_THREAD
                                                                     : DBO_CONTEXT_FIBER};
            assert_int_equal(dbo_check_program(&mutant, &options, &findings[i], &err), DBO_OK);
        }
        assert_int_equal(findings[0].count, findings[1].count);
        for (uint32_t f = 0; f < findings[0].count; f++)
            assert_string_equal(findings[0].items[f].what, findings[1].items[f].what);
        found += findings[0].count > 0;
        dbo_findings_fini(&findings[0]);
        dbo_findings_fini(&findings[1]);
        dbo_program_fini(&mutant);
        dbo_program_fini(&original);
    }
    assert_true(found > 50);
}

/* ---- the simulator ---- */

typedef struct fixture {
    dbo_checker *checker;
    dbo_program program;
    dbo_layer_costs costs[2];
    bool one_alone; /* rank 1 does not split */
    bool captured, asks;
} fixture;

static void build(fixture *f, bool ll)
{
    static const dbo_build_options options = {
        .num_ubatches = 2, .memory = true, .record_stream = true, .io = true};
    int64_t ns[DBO_KIND_COUNT];
    dbo_error err = {0};
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = 1000;
    dbo_layer_costs_fixed(ns, 0, &f->costs[0]);
    f->costs[1] = f->costs[0];
    if ((ll ? dbo_build_ll : dbo_build_ht)(f->costs, &options, &f->program, &err) != DBO_OK)
        fail_msg("%s", err.message);
    /* a layer alone: what the last one would leave to it is there for good */
    for (uint32_t u = 0; u < 2; u++)
        for (uint32_t i = 0; i < f->program.num_instrs[u]; i++) {
            dbo_instr *instr = &f->program.instrs[u][i];
            bool memory = instr->code == DBO_CODE_ALLOC || instr->code == DBO_CODE_FREE;
            if (memory && instr->index == dbo_layer_buffer(u, DBO_BUFFER_HIDDEN))
                instr->code = DBO_CODE_SET_STREAM;
        }
    for (uint32_t b = 0; b < f->program.num_buffers; b++) {
        dbo_buffer_role role = dbo_layer_buffer_role(b);
        bool stays = role == DBO_BUFFER_HIDDEN || role == DBO_BUFFER_RESIDUAL;
        f->program.buffers[b].workspace = f->program.buffers[b].workspace || stays;
        f->program.buffers[b].input = f->program.buffers[b].input || stays;
    }
}

static dbo_status run_layers(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    fixture *f = arg;
    for (uint32_t layer = 0; layer < 3; layer++) {
        dbo_status status = dbo_program_run(ubatch->rank, ubatch, &f->program, 0, layer);
        if (status == DBO_ABORTED)
            return status;
        if (status != DBO_OK)
            return dbo_rank_fail(ubatch->rank, status, err);
    }
    return DBO_OK;
}

/* Begins a capture, may ask an event in it, issues, ends and replays twice. */
static dbo_status run_captured(dbo_rank *rank, fixture *f, dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    dbo_graph graph;
    dbo_event event;
    dbo_pool pool;
    DBO_TRY(dbo_allocator_create_pool(rank->allocator, &pool, err));
    DBO_TRY(dbo_allocator_enter_pool(rank->allocator, pool, err));
    DBO_TRY(seam->device->event_create(seam->device_self, &event));
    DBO_TRY(seam->graph->begin(seam->graph_self, rank->streams[0]));
    if (f->asks) {
        assert_int_equal(seam->device->host_wait(seam->device_self, event), DBO_REFUSED);
        assert_int_equal(seam->device->status(seam->device_self, NULL), DBO_REFUSED);
    }
    DBO_TRY(dbo_ubatches_run(rank, 2, 0, run_layers, f, err));
    DBO_TRY(seam->graph->end(seam->graph_self, &graph));
    dbo_allocator_leave_pool(rank->allocator);
    for (uint32_t step = 1; step < 3; step++)
        DBO_TRY(seam->graph->replay(seam->graph_self, graph, rank->streams[0], step));
    seam->graph->destroy(seam->graph_self, graph);
    return DBO_OK;
}

static dbo_status rank_main(sim_world *w, uint32_t id, dbo_error *err)
{
    fixture *f = w->arg;
    dbo_rank *rank = &w->ranks[id];
    DBO_TRY(dbo_checker_attach(f->checker, &w->seams[id], err));
    DBO_TRY(dbo_rank_init(rank, id, &w->seams[id], w->contexts, 2, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_rank_fit(rank, &f->program, err));
    if (f->captured)
        return run_captured(rank, f, err);
    if (!f->one_alone || id == 0)
        return dbo_ubatches_run(rank, 2, 0, run_layers, f, err);
    for (uint32_t layer = 0; layer < 3; layer++) {
        dbo_status status = dbo_program_run(rank, NULL, &f->program, 0, layer);
        if (status != DBO_OK)
            return dbo_rank_fail(rank, status, err);
    }
    return DBO_OK;
}

/* Runs it and leaves the findings to the caller. */
static void run(fixture *f, bool ll, dbo_findings *findings)
{
    sim_world w;
    dbo_error err = {0};
    build(f, ll);
    f->checker = dbo_checker_create(NULL, &err);
    assert_non_null(f->checker);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = f->captured ? 1 : 2,
                                         .transport = ll ? DBO_SIM_LL : DBO_SIM_HT});
    dbo_status status = sim_world_run(&w, rank_main, f);
    assert_int_equal(status, f->one_alone ? DBO_DEADLOCK : DBO_OK);
    *findings = (dbo_findings){0};
    assert_int_equal(dbo_checker_finish(f->checker, status, &w.err, findings, &err), DBO_OK);
    for (uint32_t i = 0; i < findings->count && !f->one_alone && !f->asks; i++)
        printf("%s: %s\n", dbo_finding_kind_name(findings->items[i].kind), findings->items[i].what);
    sim_world_close(&w);
    dbo_checker_destroy(f->checker);
    dbo_program_fini(&f->program);
}

static void runs_of_the_simulator_are_right(void **state)
{
    (void)state;
    for (int ll = 0; ll < 2; ll++)
        for (int captured = 0; captured < 2; captured++) {
            fixture f = {.captured = captured};
            dbo_findings findings;
            run(&f, ll, &findings);
            assert_int_equal(findings.count, 0);
            dbo_findings_fini(&findings);
        }
}

static void a_capture_waits_for_nothing(void **state)
{
    (void)state;
    fixture f = {.captured = true, .asks = true};
    dbo_findings findings;
    run(&f, true, &findings);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].kind, DBO_FINDING_CAPTURE);
    assert_non_null(strstr(findings.items[0].what, "waits for an event while a graph is captured"));
    dbo_findings_fini(&findings);
}

/* One rank splits, the other does not: who posted what, and who did not. */
static void a_stopped_world_is_explained(void **state)
{
    (void)state;
    fixture f = {.one_alone = true};
    dbo_findings findings;
    run(&f, true, &findings);
    assert_true(findings.count >= 1);
    bool explained = false;
    for (uint32_t i = 0; i < findings.count; i++)
        explained = explained || (findings.items[i].kind == DBO_FINDING_DEADLOCK &&
                                  strstr(findings.items[i].what,
                                         "rank 0 posted dispatch of ubatch 1, rank 1 never did"));
    assert_true(explained);
    dbo_findings_fini(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executors_find_the_same),
        cmocka_unit_test(runs_of_the_simulator_are_right),
        cmocka_unit_test(a_capture_waits_for_nothing),
        cmocka_unit_test(a_stopped_world_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
