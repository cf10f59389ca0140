/* test_alloc_failure.c: memory runs out at every place where it can.
 *
 * Allocations go through functions that can refuse (tests/support/refusals.h). A piece
 * of work is done again and again, its 1st, 2nd, 3rd, ... allocation refused, until none was:
 * alone, and with all that follow. Each time it must fail with a sentence, leave nothing allocated,
 * and at the end work as if nothing had been.
 */
#include "app/command/commands.h"
#include "app/lua/lua_load.h"
#include "app/say/result_text.h"
#include "core/check/order/check.h"
#include "core/program/builders.h"
#include "lab/check/speed.h"
#include "lab/files/program_json.h"
#include "lab/world/outcome.h"
#include "sim/sim.h"
#include "tests/support/eval_kind.h"
#include "tests/support/json_text.h"
#include "tests/support/random_experiment.h"
#include "tests/support/refusals.h"
#include "tests/support/trace_digest.h"

#include <locale.h>
#include <unistd.h>

/* ---- a small run ---- */

static void small_experiment(dbo_experiment *e, dbo_all2all_backend backend, dbo_graphs graphs)
{
    dbo_prng prng;
    dbo_error err = {0};
    dbo_prng_init(&prng, 7, 0);
    dbo_experiment_init(e);
    e->nodes = 1;
    e->gpus_per_node = 2;
    e->has_model = e->has_hardware = true;
    random_model(&prng, &e->model, false);
    random_hardware(&prng, &e->hardware);
    e->hardware.gpus_per_domain = 8;
    e->model.layers = 3;
    e->model.first_k_dense = 1;
    e->model.attention = DBO_ATTENTION_GQA;
    e->config.enable_dbo = e->config.enable_expert_parallel = true;
    e->config.all2all_backend = backend;
    e->config.cudagraph_mode = graphs;
    e->batch.kind = DBO_WORKLOAD_DECODE;
    put_number(&e->batch.num_tokens, 0, 64);
    put_number(&e->batch.num_tokens, 1, 40);
    if (dbo_experiment_finish(e, &err) != DBO_OK)
        fail_msg("%s", err.message);
}

static dbo_status run_experiment(void *arg, uint64_t *digest, dbo_error *err)
{
    const dbo_simulate_options options = {0};
    dbo_outcome o;
    DBO_TRY(dbo_simulate(arg, &options, &o, err));
    bool split = o.split;
    *digest = digest_trace(digest_trace(DIGEST_START, &o.off.trace), &o.on.trace);
    dbo_outcome_fini(&o);
    return split ? DBO_OK : dbo_fail(err, DBO_INTERNAL, NULL, "not split");
}

static void runs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        dbo_all2all_backend backend;
        dbo_graphs graphs;
        dbo_context_kind executor;
    } forms[] = {
        {"LL, a graph", DBO_BACKEND_LL, DBO_GRAPHS_FULL, DBO_CONTEXT_FIBER},
        {"LL, eager", DBO_BACKEND_LL, DBO_GRAPHS_NONE, DBO_CONTEXT_FIBER},
        {"HT, eager", DBO_BACKEND_HT, DBO_GRAPHS_NONE, DBO_CONTEXT_FIBER},
        {"LL, a graph, threads", DBO_BACKEND_LL, DBO_GRAPHS_FULL, DBO_CONTEXT_THREAD},
        {"HT, eager, threads", DBO_BACKEND_HT, DBO_GRAPHS_NONE, DBO_CONTEXT_THREAD},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        dbo_experiment e;
        small_experiment(&e, forms[i].backend, forms[i].graphs);
        e.config.executor = forms[i].executor;
        assert_true(fail_each(forms[i].name, run_experiment, &e, false, true) > 100);
        if (forms[i].executor == DBO_CONTEXT_FIBER)
            fail_each(forms[i].name, run_experiment, &e, true, true);
        dbo_experiment_fini(&e);
    }
}

/* ---- a run that is checked ---- */

static uint64_t digest_text(const char *text)
{
    uint64_t digest = DIGEST_START;
    for (; *text; text++)
        digest = digest_add(digest, (unsigned char)*text);
    return digest;
}

typedef struct watchers {
    dbo_checker *checker;
    dbo_perf *perf;
} watchers;

static dbo_status attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    const watchers *w = self;
    (void)rank;
    DBO_TRY(dbo_checker_attach(w->checker, seam, err));
    return dbo_perf_attach(w->perf, seam, err);
}

static dbo_status check_run(const dbo_experiment *e, const watchers *w, dbo_findings *findings,
                            dbo_error *err)
{
    const dbo_simulate_options options = {
        .unfolded = true, .io = true, .attach = attach, .attach_self = (void *)(uintptr_t)w};
    dbo_simulated run;
    uint32_t shown;
    dbo_status status = dbo_simulate_one(e, &options, true, &run, &shown, err);
    if (status == DBO_OK)
        status = dbo_checker_finish(w->checker, DBO_OK, NULL, findings, err);
    if (status == DBO_OK)
        status = dbo_speed_find(w->perf, e, &run, shown, 0, findings, err);
    dbo_simulated_fini(&run);
    return status == DBO_OK && findings->failed ? dbo_fail_memory(err, "findings") : status;
}

static dbo_status check_experiment(void *arg, uint64_t *digest, dbo_error *err)
{
    dbo_findings findings = {0};
    watchers w = {.checker = dbo_checker_create(NULL, err)};
    if (w.checker)
        w.perf = dbo_perf_create(err);
    dbo_status status = w.perf ? check_run(arg, &w, &findings, err) : DBO_NO_MEMORY;
    *digest = DIGEST_START;
    for (uint32_t i = 0; i < findings.count; i++)
        *digest = digest_add(*digest, digest_text(findings.items[i].what));
    bool found = findings.count > 0;
    dbo_findings_fini(&findings);
    dbo_perf_destroy(w.perf);
    dbo_checker_destroy(w.checker);
    return status != DBO_OK || found ? status
                                     : dbo_fail(err, DBO_INTERNAL, NULL, "nothing was found");
}

static void checks(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        dbo_all2all_backend backend;
        dbo_graphs graphs;
    } forms[] = {
        {"event-after-yield", DBO_BACKEND_HT, DBO_GRAPHS_NONE},
        {"no-comm-wait", DBO_BACKEND_HT, DBO_GRAPHS_NONE},
        {"padding-routed", DBO_BACKEND_LL, DBO_GRAPHS_FULL},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        dbo_experiment e;
        dbo_error err = {0};
        small_experiment(&e, forms[i].backend, forms[i].graphs);
        e.has_fault = true;
        assert_int_equal(dbo_fault_parse(&e.fault, forms[i].fault, &err), DBO_OK);
        for (int all = 0; all < 2; all++)
            assert_true(fail_each(forms[i].fault, check_experiment, &e, all != 0, true) > 100);
        dbo_experiment_fini(&e);
    }
}

/* ---- programs that are checked ---- */

/* A layer that drops what it was left: the checker gives it that first. */
static dbo_status check_programs(void *arg, uint64_t *digest, dbo_error *err)
{
    const dbo_build_options options = {
        .num_ubatches = 2, .host_sync = true, .memory = true, .record_stream = true, .io = true};
    int64_t ns[DBO_KIND_COUNT] = {0};
    dbo_layer_costs costs[2];
    dbo_program layer = {0};
    dbo_findings findings = {0};
    (void)arg;
    dbo_layer_costs_fixed(ns, 0, &costs[0]);
    costs[1] = costs[0];
    DBO_TRY(dbo_build_ht(costs, &options, &layer, err));
    dbo_status status = dbo_check_program(&layer, NULL, &findings, err);
    *digest = digest_add(DIGEST_START, findings.count);
    dbo_findings_fini(&findings);
    dbo_program_fini(&layer);
    return status;
}

static void programs(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++)
        assert_true(fail_each("a layer alone", check_programs, NULL, all != 0, true) > 30);
}

/* ---- a queue that grows ---- */

static uint32_t records_without_memory; /* that said they had been made */

/* While the long op runs, whose end is known by then, waits for it are put off until something
 * follows in the stream: here, records. */
static dbo_status record_much(void *arg, uint32_t rank, dbo_error *err)
{
    enum { LONG, SHORT, WAITING, STREAMS };
    const dbo_seam *seam = arg;
    const dbo_device_ops *device = seam->device;
    const dbo_op_cost second = {.fixed_ns = 1000000000}, moment = {.fixed_ns = 7000};
    const dbo_op long_op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_A0, 0), .cost = &second};
    dbo_stream streams[STREAMS];
    dbo_event events[STREAMS];
    (void)rank;
    (void)err;
    for (uint32_t i = 0; i < STREAMS; i++) {
        DBO_TRY(device->stream_create(seam->device_self, "s", &streams[i]));
        DBO_TRY(device->event_create(seam->device_self, &events[i]));
    }
    DBO_TRY(device->launch(seam->device_self, streams[LONG], &long_op));
    DBO_TRY(device->record(seam->device_self, events[LONG], streams[LONG]));
    for (uint32_t i = 1; i <= 70; i++) {
        const dbo_op op = {.id = dbo_op_id_make(0, 0, i, 0, DBO_KIND_A0, 0), .cost = &moment};
        DBO_TRY(device->launch(seam->device_self, streams[SHORT], &op));
        DBO_TRY(device->record(seam->device_self, events[SHORT], streams[SHORT]));
        DBO_TRY(device->host_wait(seam->device_self, events[SHORT]));
        DBO_TRY(device->wait(seam->device_self, streams[WAITING], events[LONG]));
        long before = atomic_load(&refused);
        DBO_TRY(device->record(seam->device_self, events[WAITING], streams[WAITING]));
        records_without_memory += atomic_load(&refused) != before;
    }
    return device->host_wait(seam->device_self, events[WAITING]);
}

static dbo_status run_queue(void *arg, uint64_t *digest, dbo_error *err)
{
    dbo_seam seam;
    const dbo_sim_options options = {.num_ranks = 1};
    (void)arg;
    dbo_sim *sim = dbo_sim_create(&options, err);
    if (!sim)
        return DBO_NO_MEMORY;
    dbo_sim_seam(sim, 0, &seam);
    dbo_status status = dbo_sim_run(sim, record_much, &seam, err);
    if (status != DBO_OK && err->status == DBO_OK)
        dbo_seam_fail(&seam, status, err);
    *digest = (uint64_t)seam.host->now_ns(seam.host_self);
    dbo_sim_destroy(sim);
    return status;
}

static void queues(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++)
        assert_true(fail_each("a queue", run_queue, NULL, all != 0, false) > 5);
    assert_int_equal(records_without_memory, 0);
}

/* ---- results ---- */

static dbo_status write_result(void *arg, uint64_t *digest, dbo_error *err)
{
    const dbo_outcome *o = arg;
    json_text text = {0};
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, json_text_sink, &text, 1);
    dbo_result_json(&o->result, &writer);
    dbo_status status = dbo_json_writer_finish(&writer, err);
    *digest = text.bytes ? digest_text(text.bytes) : 0;
    json_text_fini(&text);
    return status;
}

static dbo_status print_result(void *arg, uint64_t *digest, dbo_error *err)
{
    const dbo_outcome *o = arg;
    dbo_strbuf text = {0};
    dbo_result_print(&o->result, (dbo_text_style){.width = 100}, &text);
    bool failed = text.failed;
    *digest = digest_text(dbo_strbuf_text(&text));
    dbo_strbuf_fini(&text);
    return failed ? dbo_fail_memory(err, "the text") : DBO_OK;
}

static dbo_status print_help(void *arg, uint64_t *digest, dbo_error *err)
{
    dbo_strbuf text = {0};
    (void)arg;
    dbo_cli_add_help(&dbo_command_top, &text);
    bool failed = text.failed;
    *digest = digest_text(dbo_strbuf_text(&text));
    dbo_strbuf_fini(&text);
    return failed ? dbo_fail_memory(err, "the help") : DBO_OK;
}

static void results(void **state)
{
    (void)state;
    const dbo_simulate_options options = {0};
    dbo_experiment e;
    dbo_outcome o;
    small_experiment(&e, DBO_BACKEND_LL, DBO_GRAPHS_FULL);
    assert_int_equal(dbo_simulate(&e, &options, &o, NULL), DBO_OK);
    for (int all = 0; all < 2; all++) {
        assert_true(fail_each("result as JSON", write_result, &o, all != 0, false) > 0);
        assert_true(fail_each("help", print_help, NULL, all != 0, false) > 0);
        assert_true(fail_each("result as text", print_result, &o, all != 0, false) > 0);
    }
    dbo_outcome_fini(&o);
    dbo_experiment_fini(&e);
}

/* ---- readers ---- */

typedef struct reader_case {
    const char *kind, *text; /* kind NULL: a program */
    bool threads;
} reader_case;

static dbo_status read_and_eval(const reader_case *c, const dbo_json *doc, uint64_t *digest,
                                dbo_error *err)
{
    const dbo_eval_options options = {.executor =
                                          c->threads ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER};
    json_text text = {0};
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, json_text_sink, &text, 1);
    dbo_status status = dbo_eval(eval_kind(c->kind), dbo_json_root(doc), &options, &writer, err);
    if (status == DBO_OK)
        status = dbo_json_writer_finish(&writer, err);
    *digest = text.bytes ? digest_text(text.bytes) : 0;
    /* No case of these fails for another reason than memory or threads. */
    assert_true(status != DBO_OK || !strstr(text.bytes, "\"error\""));
    json_text_fini(&text);
    return status;
}

static dbo_status read_text(void *arg, uint64_t *digest, dbo_error *err)
{
    const reader_case *c = arg;
    dbo_json *doc;
    DBO_TRY(dbo_json_parse(&doc, c->text, strlen(c->text), NULL, err));
    dbo_status status;
    if (c->kind) {
        status = read_and_eval(c, doc, digest, err);
    } else {
        dbo_program_file file;
        status = dbo_program_json_read(dbo_json_root(doc), NULL, &file, err);
        *digest = 1;
        if (status == DBO_OK)
            dbo_program_file_fini(&file);
    }
    dbo_json_destroy(doc);
    return status;
}

static void readers(void **state)
{
    (void)state;
    static const reader_case cases[] = {
        {.kind = "veto",
         .text = "{\"cases\": [{\"use_ubatching\": true, \"reorder_batch_threshold\": 1,"
                 "\"num_reqs\": 2, \"num_computed_tokens\": [0, 32], \"num_scheduled_tokens\":"
                 "[64, 32], \"groups\": [{\"block_size\": 16, \"block_table\":"
                 "[[1, 2, 3, 4], [1, 2, 5, 6]]}]}]}"},
        {.kind = "pingpong",
         .text = "{\"cases\": [{\"backend\": \"LL\", \"num_ubatches\": 2, \"layers\": 2,"
                 "\"shared_experts\": true, \"dbo\": true, \"rocm\": false}]}"},
        {.kind = "pingpong",
         .text = "{\"cases\": [{\"backend\": \"HT\", \"num_ubatches\": 3, \"layers\": 1,"
                 "\"shared_experts\": false, \"dbo\": true, \"rocm\": false}]}",
         .threads = true},
        {.kind = "slices",
         .text = "{\"cases\": [{\"should_ubatch\": true, \"num_scheduled_tokens\": [1, 70, 1],"
                 "\"num_tokens_padded\": 80, \"num_reqs_padded\": 3, \"num_ubatches\": 2,"
                 "\"split_point\": null}]}"},
        {.text = "{\"num_ubatches\": 2, \"streams\": [\"compute\", \"comm\", \"third\"],"
                 "\"buffers\": [{\"name\": \"x\", \"pool\": \"comm\", \"bytes\": 512}],"
                 "\"ubatches\": [[{\"i\": \"ALLOC\", \"buffer\": \"x\", \"stream\": \"comm\"},"
                 "{\"i\": \"OP\", \"name\": \"caf\\u00e9\", \"kind\": \"A0\", \"us\": 3,"
                 "\"writes\": [\"x\"]}, {\"i\": \"RECORD\", \"event\": \"e\"},"
                 "{\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": \"d\", \"us\": 9,"
                 "\"reads\": [\"x\"], \"prev_event\": \"e\"}, {\"i\": \"HOOK_SET\", \"handle\": "
                 "\"d\"}, {\"i\": \"YIELD\"}], [{\"i\": \"HOOK_RUN\"}, {\"i\": \"YIELD\"}]]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = cases[i].kind ? cases[i].kind : "program";
        void *arg = (void *)(uintptr_t)&cases[i];
        for (int all = 0; all < 2; all++)
            assert_true(fail_each(name, read_text, arg, all != 0, false) > 3);
    }
}

/* Names until their array and their table have grown twice. */
static dbo_status add_names(void *arg, uint64_t *digest, dbo_error *err)
{
    dbo_arena arena = {.chunk_bytes = 8};
    dbo_name_list list = {0};
    dbo_status status = DBO_OK;
    (void)arg;
    *digest = 0;
    for (uint32_t i = 0; i < 40 && status == DBO_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "name %u", i);
        status = dbo_name_add(&list, &arena, name, err);
    }
    for (uint32_t i = 0; i < list.count; i++)
        *digest += i * dbo_name_find(&list, list.names[i]);
    dbo_arena_fini(&arena);
    return status;
}

static void names(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++)
        assert_true(fail_each("names", add_names, NULL, all != 0, false) > 40);
}

/* ---- scripts ---- */

static char script[] = "/tmp/dbo-test-alloc-XXXXXX";

static void write_script(const char *text)
{
    int file = mkstemp(script);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}

static dbo_status load_script(void *arg, uint64_t *digest, dbo_error *err)
{
    dbo_experiment e;
    static const char *const sets[] = {"layers=3", "enable_dbo=true"};
    const dbo_load_options options = {.sets = sets, .num_sets = 2};
    (void)arg;
    DBO_TRY(dbo_experiment_load(&e, script, &options, err));
    *digest = e.num_layers + e.batch.ranks[0]->num_tokens;
    dbo_experiment_fini(&e);
    return DBO_OK;
}

/* A script's layer with what it touches, of its own and as built in. */
static dbo_status build_layer(void *arg, uint64_t *digest, dbo_error *err)
{
    const dbo_experiment *e = arg;
    const dbo_schedule *schedule = &e->schedule->schedule;
    const dbo_build_options options = {.num_ubatches = 2, .io = true};
    int64_t ns[DBO_KIND_COUNT] = {0};
    dbo_layer_costs *costs = malloc(2 * sizeof *costs);
    dbo_program layer;
    if (!costs)
        return dbo_fail_memory(err, "costs");
    dbo_layer_costs_fixed(ns, 0, &costs[0]);
    costs[1] = costs[0];
    dbo_status status = schedule->build(schedule->self, costs, &options, &layer, err);
    free(costs);
    DBO_TRY(status);
    *digest = layer.num_buffers;
    for (uint32_t i = 0; i < layer.num_ops; i++)
        *digest =
            digest_add(*digest, layer.ops[i].io->num_reads + 100 * layer.ops[i].io->num_writes);
    dbo_program_fini(&layer);
    return DBO_OK;
}

static void scripts(void **state)
{
    dbo_experiment e;
    dbo_error err = {0};
    (void)state;
    write_script("local dbo = require 'dbo'\n"
                 "local s = dbo.schedule { name = 'mine', layer = function(u)\n"
                 "  u.op { name = 'up', us = 1, reads = 'x', writes = 'y' }\n"
                 "  u.op('A0') u.maybe_run_recv_hook()\n"
                 "  u.register_recv_hook(u.post('dispatch')) u.yield() end }\n"
                 "return dbo.experiment { gpus_per_node = 2, costs = dbo.fixed { A = 9, D = 7 },\n"
                 "  enable_expert_parallel = true, schedule = s,\n"
                 "  batch = dbo.batch { requests = { { num_scheduled = 40, num_computed = 64,\n"
                 "    prefix = 'system' }, { num_scheduled = 40, blocks = { 1, 2, 3 } } } } }\n");
    for (int all = 0; all < 2; all++)
        assert_true(fail_each("a script", load_script, NULL, all != 0, true) > 300);
    const dbo_load_options options = {0};
    assert_int_equal(dbo_experiment_load(&e, script, &options, &err), DBO_OK);
    for (int all = 0; all < 2; all++)
        assert_true(fail_each("a layer that is checked", build_layer, &e, all != 0, false) > 10);
    dbo_experiment_fini(&e);
    assert_int_equal(unlink(script), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),   cmocka_unit_test(checks),  cmocka_unit_test(programs),
        cmocka_unit_test(queues), cmocka_unit_test(results), cmocka_unit_test(readers),
        cmocka_unit_test(names),  cmocka_unit_test(scripts),
    };
    return cmocka_run_group_tests_name("alloc_failure", tests, NULL, NULL);
}
