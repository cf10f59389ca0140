/* test_lua_run.c: dbo.run, dbo.load and requests with caches, as scripts use them. A script checks
 * for itself and ends with error("fine"); what else comes back is a failure. */
#include "app/lua/lua_load.h"
#include "tests/support/folder.h"

#include <stdatomic.h>

/* The script's error, without the folder. */
static dbo_error run(const char *text, bool (*cancelled)(void *), const char *set)
{
    dbo_error err = {0};
    dbo_experiment e = {0};
    put_file("t.lua", text);
    dbo_load_options options = {.sets = &set, .num_sets = set ? 1 : 0};
    options.limits.cancelled = cancelled;
    if (dbo_experiment_load(&e, path_of("t.lua").text, &options, &err) == DBO_OK)
        dbo_experiment_fini(&e);
    const char *message = without_folder(err.message);
    memmove(err.message, message, strlen(message) + 1);
    return err;
}

static void expect(const char *text, const char *sentence)
{
    dbo_error err = run(text, NULL, NULL);
    assert_string_equal(err.message, sentence);
}

#define HEAD                                                                                \
    "local dbo = require 'dbo'\n"                                                           \
    "local function same(a, b) if a ~= b then\n"                                            \
    "  error(tostring(a) .. ' is not ' .. tostring(b), 2) end end\n"                        \
    "local function make(batch) return dbo.experiment { gpus_per_node = 2, layers = 6,\n"   \
    "  enable_expert_parallel = true, enable_dbo = true,\n"                                 \
    "  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 }, batch = batch } end\n" \
    "local e = make(dbo.decode { num_tokens = { 64, 48 } })\n"

/* Line of the first statement after HEAD. */
#define FIRST "t.lua:8: "
#define FINE  "error('fine', 0)\n"

/* Unsplit, the costs of both ubatches: A, D, M and C one after the other, S under C. */
static void results_have_the_metrics(void **state)
{
    (void)state;
    expect(HEAD "local r = dbo.run(e)\n"
                "same(r.layer_us, 360) same(r.speedup > 1, true) same(r.rank, 0)\n"
                "same(r.decision.should_ubatch, true) same(r.decision.reason, 'ok')\n"
                "same(r.decision.num_tokens_padded, 64) same(r.without_dbo.layer_us, 2 * 280)\n"
                "same(r.split_cost_us.total ~= nil, true) same(r.efficiency <= 1, true)\n"
                "same(r.notation.order:find('D₀ send, A0₁, A1₁', 1, true), 1)\n"
                "same(r.notation.order_labels01:find('D₁ send, A0₀, A1₀', 1, true), 1)\n" FINE,
           "fine");
    expect(HEAD "local r = dbo.run(e, { enable_dbo = false, ubatch_size = 0 })\n"
                "same(r.speedup, 1.0) same(r.ubatch_slices, nil) same(r.split_cost_us, nil)\n"
                "same(r.decision.reason, 'off') same(r.num_ubatches, 1)\n" FINE,
           "fine");
}

static void slices_begin_with_0(void **state)
{
    (void)state;
    expect(HEAD "local s = dbo.run(e).ubatch_slices\n"
                "same(s[0][0].tok[1], 0) same(s[0][0].tok[2], 32) same(s[0][1].tok[2], 64)\n"
                "same(s[1][1].tok[2], 48) same(s[1][1].tok_padded[2], 64) same(s[2], nil)\n"
                "same(s[0][0].req[2], 32) same(s[0][2], nil)\n" FINE,
           "fine");
}

static void spans_are_read_one_at_a_time(void **state)
{
    (void)state;
    expect(HEAD "local spans = dbo.run(e).spans\n"
                "local busy, flights, last = 0, 0, 0\n"
                "for i, s in ipairs(spans) do\n"
                "  last = i\n"
                "  if s.rank == 0 and s.stream == 'compute' then\n"
                "    busy = busy + s.end_us - s.start_us end\n"
                "  if s.rank == 0 and s.part == 'flight' then flights = flights + 1\n"
                "    same(s.stream, 'network')\n"
                "    same(s.kind == 'DISPATCH' or s.kind == 'COMBINE', true) end\n"
                "end\n"
                "same(last, #spans) same(flights, 6 * 4) same(spans[0], nil)\n"
                "same(spans[#spans + 1], nil) same(busy, 6.0 * 2 * 160)\n"
                "local first = spans[1]\n"
                "same(first.kind, 'A0') same(first.start_us, 0.0) same(first.ubatch, 0)\n" FINE,
           "fine");
}

/* A rank that is late after the vote makes its peers' transfers wait; the one shown waits. */
static void late_ranks_are_waited_for(void **state)
{
    (void)state;
    expect(HEAD "same(dbo.run(e).waiting_us, 0.0)\n"
                "local b = dbo.decode { num_tokens = 64, jitter_us = 500 }\n"
                "for _, seed in ipairs { 0, 2, 3 } do\n"
                "  for _, a2a in ipairs { 'deepep_low_latency', 'deepep_high_throughput' } do\n"
                "    local r = dbo.run(e, { batch = b, seed = seed, all2all_backend = a2a })\n"
                "    same(r.waiting_us > 0, true) same(r.exposed_waiting_us > 0, true)\n"
                "    same(r.without_dbo.exposed_waiting_us > 0, true)\n"
                "    same(r.exposed_waiting_us <= 500, true)\n"
                "  end\nend\n" FINE,
           "fine");
}

static void overrides_are_keys_as_set_takes_them(void **state)
{
    (void)state;
    expect(HEAD
           "same(dbo.run(e, { ['costs.S'] = 20, costs = { M = 60, C = 110 } }).layer_us, 380)\n"
           "same(dbo.run(e, { costs = { A = 10 } }).without_dbo.layer_us, 2 * 200)\n"
           "same(dbo.run(e).layer_us, 360)\n"
           "same(dbo.run(e, { layers = 4 }).experiment.layers, 4)\n"
           "same(dbo.run(e, { batch = dbo.decode { num_tokens = 4 } }).decision.reason,\n"
           "  'threshold')\n"
           "same(dbo.run(e, { batch = { num_tokens = 4 } }).decision.reason, 'threshold')\n"
           "same(dbo.run(e, { parallel_config = { enable_dbo = false, ubatch_size = 0 } })\n"
           "  .decision.reason, 'off')\n"
           "same(dbo.run(e, { ['parallel_config.enable_dbo'] = false, ubatch_size = 0 })\n"
           "  .decision.reason, 'off')\n"
           "local m = dbo.experiment { model = 'deepseek-v3', hardware = 'H800', nodes = 2,\n"
           "  layers = 6, batch = dbo.decode { num_tokens = 8 } }\n"
           "local before = dbo.run(m).step_us\n"
           "same(dbo.run(m, { hardware = { hbm_gbps = 500 } }).step_us > before, true)\n"
           "same(dbo.run(m, { model = { layers = 6, first_k_dense = 6 } }).comm_us, 0.0)\n"
           "same(dbo.run(m, { hardware = { base = 'H20' } }).experiment.hardware, 'H20')\n" FINE,
           "fine");
}

/* --set comes before the overrides of a run, which are the sweep. */
static void the_command_line_comes_first(void **state)
{
    (void)state;
    dbo_error err = run(HEAD "same(dbo.run(e).experiment.layers, 5)\n"
                             "same(dbo.run(e, { costs = { S = 30 } }).experiment.layers, 5)\n"
                             "same(dbo.run(e, { layers = 7 }).experiment.layers, 7)\n" FINE,
                        NULL, "layers=5");
    assert_string_equal(err.message, "fine");
}

/* A description is what it was when the experiment was made. */
static void later_changes_of_tables_do_not_count(void **state)
{
    (void)state;
    expect(HEAD "local b = dbo.decode { num_tokens = 64 }\n"
                "local x = make(b)\n"
                "b.num_tokens = 4\n"
                "same(dbo.run(x, { layers = 5 }).decision.reason, 'ok')\n" FINE,
           "fine");
}

static void mistakes_of_a_run_carry_the_line(void **state)
{
    (void)state;
    expect(HEAD "dbo.run(e,\n { layers = 0 })\n",
           "t.lua:9: layers is 0; it must be from 1 to 1023");
    expect(HEAD "dbo.run(e, { layerz = 3 })\n",
           FIRST "unknown key 'layerz' in dbo.experiment, did you mean 'layers'?");
    expect(HEAD "dbo.run(e, { batch = { prompt_len = 3 } })\n",
           FIRST "unknown key 'prompt_len' in dbo.decode");
    expect(HEAD "dbo.run(e, { nodes = { x = 3 } })\n",
           FIRST "nodes must be an integer, got a table");
    expect(HEAD "dbo.run(e, { ['nodes.x'] = 3 })\n", FIRST "nodes must be an integer, got a table");
    expect(HEAD "dbo.run({ layers = 3 })\n",
           FIRST "dbo.run takes an experiment and, if wanted, a table of overrides: dbo.run(e, { "
                 "nodes = 4 })");
    expect(HEAD "dbo.run(e, 5)\n",
           FIRST "dbo.run takes an experiment and, if wanted, a table of overrides: dbo.run(e, { "
                 "nodes = 4 })");
    expect(HEAD "local ok, text = pcall(dbo.run, e, { layers = 0 })\n"
                "same(text:match('layers is 0') ~= nil, true)\n" FINE,
           "fine");
}

/* Memory in use at most is the measured step's, not that of a larger step before it; what the
 * allocator holds on to is. */
static void peaks_are_of_the_measured_step(void **state)
{
    (void)state;
    expect("local dbo = require 'dbo'\n"
           "local function most(before)\n"
           "  return dbo.run(dbo.experiment { gpus_per_node = 2, model = 'deepseek-v2-lite',\n"
           "    hardware = 'H800', layers = 3, enable_expert_parallel = true, enable_dbo = true,\n"
           "    cudagraph_mode = 'NONE', before = { dbo.decode { num_tokens = before } },\n"
           "    batch = dbo.decode { num_tokens = 64 } }).memory\n"
           "end\n"
           "local small, large = most(48), most(256)\n"
           "assert(small.peak_used_bytes == large.peak_used_bytes, 'used')\n"
           "assert(small.peak_reserved_bytes < large.peak_reserved_bytes, 'reserved')\n"
           "error('fine', 0)\n",
           "fine");
}

static atomic_int times_asked; /* by the script's thread and by the one that waits */

static bool after_a_while(void *unused)
{
    (void)unused;
    return atomic_fetch_add(&times_asked, 1) >= 30; /* the parser asks with each line */
}

/* The run that is interrupted ends the script, pcall or not: it does not go round for ever, nor
 * until somebody loses patience with it. */
static void a_run_can_be_interrupted(void **state)
{
    (void)state;
    dbo_error err =
        run(HEAD "while true do pcall(dbo.run, e, { layers = 512 }) end\n", after_a_while, NULL);
    assert_int_equal(err.status, DBO_CANCELLED);
    assert_string_equal(err.message, FIRST "the script was interrupted");
    assert_true(atomic_load(&times_asked) > 30 && atomic_load(&times_asked) < 40);
}

/* ---- dbo.load ---- */

static void scripts_load_each_other(void **state)
{
    (void)state;
    put_file("other.lua", HEAD "return e\n");
    put_file("nothing.lua", "local x = 1\n");
    put_file("wrong.lua", "local x = = 1\n");
    put_file("self.lua", "return require('dbo').load 'self.lua'\n");
    expect(HEAD "same(dbo.run(dbo.load 'other.lua').layer_us, 360)\n"
                "same(dbo.run(dbo.load('./other.lua'), { layers = 4 }).experiment.layers, 4)\n"
                "for i = 1, 20 do pcall(dbo.load, 'wrong.lua') end\n"
                "same(dbo.run(dbo.load 'other.lua').layer_us, 360)\n" FINE,
           "fine");
    expect("require('dbo').load 'wrong.lua'\n", "wrong.lua:1: unexpected symbol near '='");
    expect("require('dbo').load 'other'\n",
           "t.lua:1: dbo.load takes the path of a .lua file, relative to the script, not 'other'");
    expect("require('dbo').load '/etc/passwd.lua'\n",
           "t.lua:1: dbo.load takes a path relative to the script, not the absolute "
           "'/etc/passwd.lua'");
    dbo_error err = run("require('dbo').load 'missing.lua'\n", NULL, NULL);
    assert_int_equal(err.status, DBO_INVALID);
    assert_non_null(strstr(err.message, "t.lua:1: cannot read"));
    err = run("require('dbo').load 'nothing.lua'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "nothing.lua returns nothing, not an experiment"));
    err = run("require('dbo').load 'self.lua'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "more than 8 scripts load each other"));
}

/* ---- requests with caches ---- */

static void prefixes_share_blocks(void **state)
{
    (void)state;
    /* b reads what a writes in this step: the veto. */
    expect(HEAD "local a = { id = 7, num_scheduled = 256, prefix = 'p' }\n"
                "local b = { num_scheduled = 64, num_computed = 256, prefix = 'p' }\n"
                "local function reason() return dbo.run(make(dbo.batch { requests = { a, b } }),\n"
                "  { dbo_prefill_token_threshold = 32 }).decision.reason end\n"
                "same(reason(), 'vetoed')\n"
                "b.prefix = 'q' same(reason(), 'ok')\n"
                "b.prefix, b.prefix_len = 'p', 8 same(reason(), 'ok')\n"
                "b.prefix_len = 32 same(reason(), 'vetoed')\n"
                "b.prefix, b.prefix_len, b.blocks = nil, nil, {}\n"
                "for i = 1, 20 do b.blocks[i] = i end\n"
                "same(reason(), 'ok')\n"
                "a.prefix, a.blocks = nil, b.blocks same(reason(), 'vetoed')\n"
                /* Decoding requests of one prefix write into blocks of their own. */
                "a = { num_scheduled = 1, num_computed = 255, prefix = 'p' }\n"
                "b = { num_scheduled = 64, num_computed = 512, prefix = 'p' }\n"
                "same(reason(), 'ok')\n" FINE,
           "fine");
    expect(HEAD "make(dbo.batch { requests = { { num_scheduled = 40,\n blocks = { 1, 2 } } } })\n",
           "t.lua:6: request 0 has 2 blocks, but its 40 tokens need 3 of 16 tokens");
    expect(HEAD "dbo.batch { requests = { { num_scheduled = 4, blocks = { 0 } } } }\n",
           FIRST "requests[0].blocks[0] is 0; it must be from 1 to 1073741824");
    expect(HEAD
           "dbo.batch { requests = { { num_scheduled = 4, blocks = { 1 }, prefix = 'a' } } }\n",
           FIRST "a request has blocks beside a prefix, which says which blocks it has");
    expect(HEAD "dbo.batch { requests = { { num_scheduled = 4, prefix = 4 } } }\n",
           FIRST "requests[0].prefix must be a name, got 4");
}

static void request_files_are_lists(void **state)
{
    (void)state;
    put_file("r.jsonl", "{\"id\": \"a\", \"input_ids\": [1, 2, 3], \"max_new\": 4}\n\n"
                        "{\"input_len\": 9, \"arrival_step\": 2}\r\n");
    put_file("bad.jsonl", "{\"input_len\": 9}\n{\"input_len\": 0}\n");
    expect(HEAD "local r = dbo.requests 'r.jsonl'\n"
                "same(#r, 2) same(r[1].id, 'a') same(r[1].input_len, 3) same(r[1].max_new, 4)\n"
                "same(r[1].arrival_step, 0) same(r[2].id, 1) same(r[2].input_len, 9)\n"
                "same(r[2].arrival_step, 2)\n" FINE,
           "fine");
    dbo_error err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl:2: input_len: must be from 1 to "));
    assert_string_equal(err.key, "input_len");
    assert_int_equal(err.line, 2);
    put_file("bad.jsonl", "{\"input_len\": 9}\n\n{\"input_len\": 9, \"max_new\": 3,}\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl: line 3, column 31: not JSON: "));
    put_file("bad.jsonl", "{\"input_len\": 9, \"max_nem\": 3}\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl:1: max_nem: unknown key"));
    assert_string_equal(err.hint, "did you mean 'max_new'?");
    put_file("bad.jsonl", " \n\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl has no request; it needs one or more"));
    put_file("bad.jsonl", "{\"input_ids\": [7, 8], \"id\": 2.5}\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl:1: id: must be a string, not a number"));
    put_file("bad.jsonl", "{\"id\": 7, \"input_len\": 9}\n{\"id\": \"7\", \"input_len\": 8}\n\n"
                          "{\"input_len\": 3, \"id\": 7}\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(
        strstr(err.message, "bad.jsonl:4: id: line 1 has a request with this id (7) already"));
    put_file("bad.jsonl", "{\"id\": 1, \"input_len\": 9}\n{\"input_len\": 3}\n");
    err = run("require('dbo').requests 'bad.jsonl'\n", NULL, NULL);
    assert_non_null(strstr(err.message, "bad.jsonl:2: line 1 has a request with this id (1)"));
    expect("require('dbo').requests '/etc/x.jsonl'\n",
           "t.lua:1: dbo.requests takes a path relative to the script, not the absolute "
           "'/etc/x.jsonl'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_the_metrics),
        cmocka_unit_test(slices_begin_with_0),
        cmocka_unit_test(spans_are_read_one_at_a_time),
        cmocka_unit_test(late_ranks_are_waited_for),
        cmocka_unit_test(overrides_are_keys_as_set_takes_them),
        cmocka_unit_test(the_command_line_comes_first),
        cmocka_unit_test(later_changes_of_tables_do_not_count),
        cmocka_unit_test(mistakes_of_a_run_carry_the_line),
        cmocka_unit_test(peaks_are_of_the_measured_step),
        cmocka_unit_test(a_run_can_be_interrupted),
        cmocka_unit_test(scripts_load_each_other),
        cmocka_unit_test(prefixes_share_blocks),
        cmocka_unit_test(request_files_are_lists),
    };
    return cmocka_run_group_tests_name("lua_run", tests, make_folder, remove_folder);
}
