/* test_lua.c: scripts: what they may do, what they are refused, and where each mistake is said to
 * be. Scripts are loaded from a text under the name t.lua. */
#include "app/lua/lua_load.h"
#include "app/lua/lua_read.h"
#include "dbo_build.h"
#include "tests/support/folder.h"
#include "tests/support/scripts.h"

/* ---- helpers ---- */

/* Runs a script's text as FOLDER/t.lua; returns the status, *out is the experiment on success. */
static dbo_status load_sets(const char *text, const char *const *sets, uint32_t num_sets,
                            dbo_experiment *out, dbo_error *err)
{
    put_file("t.lua", text);
    dbo_load_options options = {.sets = sets, .num_sets = num_sets};
    options.limits.instructions = 3000000;
    options.limits.memory_bytes = (size_t)32 << 20;
    return dbo_experiment_load(out, path_of("t.lua").text, &options, err);
}

/* The script fails with exactly this sentence, "t.lua:" standing for the path. */
static void expect_failure(const char *text, dbo_status status, const char *sentence)
{
    dbo_experiment experiment;
    dbo_error err = {0};
    dbo_status got = load_sets(text, NULL, 0, &experiment, &err);
    assert_string_equal(without_folder(err.message), sentence);
    assert_int_equal(got, status);
    assert_int_equal(err.status, status);
}

/* The sentence only begins so. */
static void expect_failure_like(const char *text, dbo_status status, const char *words)
{
    dbo_experiment experiment;
    dbo_error err = {0};
    assert_int_equal(load_sets(text, NULL, 0, &experiment, &err), status);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in: %s", words, err.message);
}

static void expect_set_failure(const char *set, const char *sentence)
{
    dbo_experiment experiment;
    dbo_error err = {0};
    const char *text = "local dbo = require 'dbo'\n"
                       "return dbo.experiment { model = 'deepseek-v3', hardware = 'H800',\n"
                       "  nodes = 2, batch = dbo.decode { num_tokens = 64 } }\n";
    assert_int_equal(load_sets(text, &set, 1, &experiment, &err), DBO_INVALID);
    assert_string_equal(err.message, sentence);
}

#define HEAD "local dbo = require 'dbo'\n"
#define TAIL "batch = dbo.decode { num_tokens = 64, context_len = 100 } }\n"

/* ---- what scripts give ---- */

static void script_fills_an_experiment(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    const char *text = HEAD "return dbo.experiment {\n"
                            "  model = { base = 'DeepSeek-V3', layers = 9, name = 'short' },\n"
                            "  hardware = 'h800', nodes = 2.0, gpus_per_node = 4,\n"
                            "  enable_expert_parallel = true, enable_dbo = true,\n"
                            "  all2all_backend = 'deepep_high_throughput', dbo_comm_sms = 16,\n"
                            "  cudagraph_capture_sizes = { 8, 4, 64 },\n"
                            "  batch = dbo.prefill { num_tokens = { 10, 20, 30, 40, 50, 60, 70,\n"
                            "    80 }, prompt_len = 16, jitter_us = 2.5 } }\n";
    if (load_sets(text, NULL, 0, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_string_equal(e.model.name, "short");
    assert_int_equal(e.model.layers, 9);
    assert_int_equal(e.model.num_experts, 256); /* the base's */
    assert_int_equal(e.hardware.sms, 132);
    assert_int_equal(e.ep_size, 8);
    assert_int_equal(e.config.all2all_backend, DBO_BACKEND_HT);
    assert_true(e.config.dbo_comm_sms_is_set);
    assert_int_equal(e.config.num_capture_sizes, 3);
    assert_int_equal(e.config.cudagraph_capture_sizes[0], 4);
    assert_int_equal(e.batch.ranks[7]->num_tokens, 80);
    assert_int_equal(e.batch.ranks[7]->count, 5);
    assert_true(e.batch.jitter_us == 2.5);
    dbo_experiment_fini(&e);
}

static void fixed_costs_need_no_model(void **state)
{
    (void)state;
    dbo_experiment e;
    const char *text = HEAD "local n = 0\nfor i = 1, 4 do n = n + i end\n"
                            "return dbo.experiment { gpus_per_node = 2, layers = 12,\n"
                            "  costs = dbo.fixed { A = 9 * n, D = 70, copy = 2 },\n"
                            "  batch = dbo.batch { requests = {\n"
                            "    { { num_scheduled = 5, num_computed = 9 } }, {} } } }\n";
    assert_int_equal(load_sets(text, NULL, 0, &e, NULL), DBO_OK);
    assert_true(e.fixed.a0_us == 45 && e.fixed.d_us == 70 && e.fixed.m_us == 0);
    assert_int_equal(e.num_layers, 12);
    assert_int_equal(e.batch.ranks[0]->requests[0].num_computed, 9);
    assert_int_equal(e.batch.ranks[1]->count, 0);
    dbo_experiment_fini(&e);
}

static void overrides_come_after_the_script(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    const char *text = HEAD "return dbo.experiment { model = 'deepseek-v3', hardware = 'H800',\n"
                            "nodes = 2, data_parallel_size = 16, " TAIL;
    const char *sets[] = {"nodes=1",
                          "data_parallel_size=8",
                          "hardware=H20",
                          "model.layers=7",
                          "batch.num_tokens=1,2,3,4,5,6,7,8",
                          "hardware.sms=60",
                          "enable_dbo=true",
                          "name=a b"};
    if (load_sets(text, sets, 8, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(e.nodes, 1);
    assert_int_equal(e.num_layers, 7);
    assert_int_equal(e.hardware.sms, 60);
    assert_true(e.config.enable_dbo);
    assert_int_equal(e.batch.ranks[7]->num_tokens, 8);
    assert_string_equal(e.name, "a b");
    dbo_experiment_fini(&e);
    expect_set_failure("nodez=1", "--set nodez=1: unknown key 'nodez' in dbo.experiment, did you "
                                  "mean 'nodes'?");
    expect_set_failure("nodes=many",
                       "--set nodes=many: nodes must be an integer, got string \"many\"");
    expect_set_failure("batch.num_token=1", "--set batch.num_token=1: unknown key 'num_token' in "
                                            "dbo.decode, did you mean 'num_tokens'?");
    expect_set_failure("nodes", "--set nodes: a setting is written KEY=VALUE");
    expect_set_failure("nodes.x=1", "--set nodes.x=1: nodes must be an integer, got a table");
}

/* ---- mistakes and their places ---- */

static void mistakes_carry_their_line(void **state)
{
    (void)state;
    expect_failure("local dbo = require 'dbo'\nreturn dbo.experiment {\n  nodes = = 3 }\n",
                   DBO_PARSE, "t.lua:3: unexpected symbol near '='");
    expect_failure(HEAD "return dbo.experiment {\n  -- enable_dob = 1\n  enable_dob = true }\n",
                   DBO_INVALID,
                   "t.lua:4: unknown key 'enable_dob' in dbo.experiment, did you "
                   "mean 'enable_dbo'?");
    expect_failure(HEAD "return dbo.experiment { gpus_per_node = 8,\n  nodes = '16', " TAIL,
                   DBO_INVALID, "t.lua:3: nodes must be an integer, got string \"16\"");
    expect_failure(HEAD "return dbo.experiment { nodes = 2.5, " TAIL, DBO_INVALID,
                   "t.lua:2: nodes must be an integer, got 2.5");
    expect_failure(HEAD "return dbo.experiment { nodes = 1e18, " TAIL, DBO_INVALID,
                   "t.lua:2: nodes is 1e+18; it must be from 1 to 4096");
    expect_failure(HEAD "return dbo.experiment { nodes = print, " TAIL, DBO_INVALID,
                   "t.lua:2: nodes must be an integer, got a function");
    expect_failure(HEAD "return dbo.experiment { enable_dbo = 1, " TAIL, DBO_INVALID,
                   "t.lua:2: enable_dbo must be true or false, got 1");
    expect_failure(HEAD "local b = dbo.decode {\n  num_tokens = -5 }\n", DBO_INVALID,
                   "t.lua:3: num_tokens is -5; it must be from 0 to 1048576");
    expect_failure(HEAD "return dbo.experiment { model = {\n layres = 3 }, " TAIL, DBO_INVALID,
                   "t.lua:3: unknown key 'layres' in the model, did you mean 'layers'?");
    expect_failure(HEAD "return dbo.experiment { model = 'deepseek-v4',\n " TAIL, DBO_INVALID,
                   "t.lua:2: unknown model 'deepseek-v4', did you mean 'deepseek-v3'?");
    expect_failure(HEAD "return dbo.experiment { model = '../models/deepseek-v3',\n " TAIL,
                   DBO_INVALID, "t.lua:2: unknown model '../models/deepseek-v3'");
    expect_failure(HEAD "return dbo.experiment { costs = dbo.fixed {},\n enable_dbo = true,\n"
                        " all2all_backend = 'deepep_high_throughput',\n dbo_comm_sms = 7, " TAIL,
                   DBO_INVALID,
                   "t.lua:5: dbo_comm_sms is 7, but deepep_high_throughput uses its SMs in pairs");
    expect_failure(HEAD "return dbo.experiment { model = 'deepseek-v3', hardware = 'H800',\n"
                        " enable_dbo = true, all2all_backend = 'deepep_high_throughput',\n"
                        " enable_expert_parallel = true, dbo_comm_sms = 132, " TAIL,
                   DBO_INVALID, "t.lua:4: dbo_comm_sms is 132, the GPU has 132 SMs");
    expect_failure(HEAD "return dbo.experiment { costs = dbo.fixed {},\n"
                        " schedule = 'mlp_shared_overlay', " TAIL,
                   DBO_INVALID,
                   "t.lua:3: unknown schedule 'mlp_shared_overlay', did you mean "
                   "'mlp_shared_overlap'?");
    expect_failure(HEAD "return dbo.experiment { costs = dbo.fixed {},\n"
                        " schedule = 'seed-prose-ht', " TAIL,
                   DBO_INVALID, "t.lua:3: schedule seed-prose-ht is for high throughput only");
    expect_failure(HEAD "local x = nil + 1\n", DBO_INVALID,
                   "t.lua:2: attempt to perform arithmetic on a nil value");
    expect_failure(HEAD "return dbo.experiment { 5 }\n", DBO_INVALID,
                   "t.lua:2: dbo.experiment takes named values only; one has no name");
    expect_failure(HEAD "return dbo.experiment { batch = { num_tokens = 5 } }\n", DBO_INVALID,
                   "t.lua:2: batch must be what dbo.decode {}, dbo.prefill {} or dbo.batch {} "
                   "gives, got a table");
    expect_failure("return 5\n", DBO_INVALID, "t.lua returns number; it must return an experiment");
    expect_failure("error({})\n", DBO_INVALID,
                   "t.lua: the script raised a table instead of a "
                   "sentence");
}

/* A request never vanishes because of a key: with any name in it, a table is one. */
static void unknown_keys_of_requests_are_errors(void **state)
{
    (void)state;
    static const struct {
        const char *requests, *sentence;
    } cases[] = {
        {"{ num_schedule = 64 }",
         "unknown key 'num_schedule' in a request, did you mean 'num_scheduled'?"},
        {"{ num_scheduled = 4 }, { num_schedule = 64 }",
         "unknown key 'num_schedule' in a request, did you mean 'num_scheduled'?"},
        {"{ { num_scheduled = 4 } }, { { prefx = 'a', num_scheduled = 64 } }",
         "unknown key 'prefx' in a request, did you mean 'prefix'?"},
        {"num_schedule = 64", "unknown key 'num_schedule' in a request, did you mean "
                              "'num_scheduled'?"},
        {"num_scheduled = 64",
         "'num_scheduled' is a key of a request, but stands in a list of requests"},
        {"{ { num_scheduled = 4 } }, { id = 3 }",
         "'id' is a key of a request, but stands in a list of requests"},
        {"", "requests is an empty list; a batch has one or more requests"},
        {"[3] = { num_scheduled = 4 }",
         "a list of requests has a hole: it is counted 1, 2, 3, ..."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256], sentence[160];
        snprintf(text, sizeof text, HEAD "dbo.batch { requests = { %s } }\n", cases[i].requests);
        snprintf(sentence, sizeof sentence, "t.lua:2: %s", cases[i].sentence);
        expect_failure(text, DBO_INVALID, sentence);
    }
}

#define COSTS HEAD "return dbo.experiment { costs = dbo.fixed { A = 9 }, gpus_per_node = 2,\n"

static void a_batch_is_one_that_a_scheduler_would_give(void **state)
{
    (void)state;
    dbo_experiment e;
    expect_failure(COSTS "  batch = dbo.decode { num_tokens = { 256, 257 } } }\n", DBO_INVALID,
                   "t.lua:3: rank 1 has 257 requests in the step, but max_num_seqs is 256");
    expect_failure(COSTS "  batch = dbo.prefill { num_tokens = 8193 } }\n", DBO_INVALID,
                   "t.lua:3: rank 0 has 8193 tokens in the step, but max_num_batched_tokens is "
                   "8192");
    expect_failure(COSTS "  num_speculative_tokens = 3, max_num_seqs = 40,\n"
                         "  max_num_batched_tokens = 100, batch = dbo.decode { num_tokens = 104 "
                         "} }\n",
                   DBO_INVALID,
                   "t.lua:4: rank 0 has 104 tokens in the step, but max_num_batched_tokens is 100");
    assert_int_equal(load_sets(COSTS "  max_num_seqs = 257,\n"
                                     "  batch = dbo.decode { num_tokens = { 256, 257 } } }\n",
                               NULL, 0, &e, NULL),
                     DBO_OK);
    dbo_experiment_fini(&e);
}

/* One fixed cost beside a model would silently make all others 0. */
static void costs_replace_a_model_as_a_whole(void **state)
{
    (void)state;
    dbo_experiment e;
    const char *set = "costs.A=12";
    expect_set_failure("costs.D=5",
                       "--set costs.D=5: costs.D cannot be set alone: costs come from the model "
                       "here, and fixed ones would make all others 0");
    assert_int_equal(
        load_sets(COSTS "batch = dbo.decode { num_tokens = 4 } }\n", &set, 1, &e, NULL), DBO_OK);
    assert_true(e.fixed.a0_us == 6);
    dbo_experiment_fini(&e);
}

static void bases_may_not_run_in_a_circle(void **state)
{
    (void)state;
    expect_failure_like(HEAD "local m = { layers = 3 }\nm.base = m\n"
                             "return dbo.experiment { model = m, " TAIL,
                        DBO_LIMIT, "a description is tables more than 16 deep");
    expect_failure_like(HEAD "local l = {}\nl[1] = l\n" /* a list has itself in it */
                             "return dbo.experiment { layers = l, " TAIL,
                        DBO_LIMIT, "a description is tables more than 16 deep");
}

/* ---- the sandbox ---- */

static void only_harmless_globals_are_there(void **state)
{
    (void)state;
    static const char *const absent[] = {"os",         "io",        "debug",      "load",
                                         "loadstring", "dofile",    "loadfile",   "collectgarbage",
                                         "package",    "coroutine", "string.dump"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "if %s ~= nil then error('it is there') end error('gone')\n",
                 absent[i]);
        expect_failure(text, DBO_INVALID, "t.lua:1: gone");
    }
    expect_failure("require 'os'\n", DBO_INVALID,
                   "t.lua:1: scripts can require \"dbo\" only, not \"os\"");
    expect_failure(HEAD "local e = dbo.experiment { costs = dbo.fixed {}, " TAIL
                        "error(tostring(getmetatable(e)))\n",
                   DBO_INVALID, "t.lua:3: false");
    expect_failure_like("\x1bLua", DBO_PARSE, "compiled Lua is not accepted");
}

static void runaway_scripts_end(void **state)
{
    (void)state;
    const char *sentence = "t.lua:1: the script ran more than 3 million instructions";
    expect_failure("while true do end\n", DBO_LIMIT, sentence);
    expect_failure("while true do pcall(function() while true do end end) end\n", DBO_LIMIT,
                   sentence);
    expect_failure_like("local t = {} for i = 1, 1e9 do t[i] = 'x' .. i end\n", DBO_LIMIT,
                        "needs more than 32 MiB of memory");
    expect_failure_like("local s = 'x' while true do s = s .. s end\n", DBO_LIMIT,
                        "needs more than 32 MiB of memory");
    expect_failure_like("local s = ('x'):rep(1e9)\n", DBO_INVALID,
                        "string.rep would build a string of more than 16 MiB");
    expect_failure("local s = (''):rep(1 << 62, '') error('[' .. s .. ']')\n", DBO_INVALID,
                   "t.lua:1: []");
    expect_failure("error(('ab'):rep(3, '-'))\n", DBO_INVALID, "t.lua:1: ab-ab-ab");
}

static bool as_told(void *flag)
{
    return atomic_load((atomic_bool *)flag);
}

static void interruption_ends_a_script(void **state)
{
    (void)state;
    dbo_error err = {0};
    atomic_bool told = false;
    dbo_sandbox_limits limits = {.cancelled = as_told, .cancelled_self = &told};
    dbo_sandbox *box = dbo_sandbox_create(&limits, &err);
    assert_non_null(box);
    put_file("t.lua", "while true do end");
    assert_int_equal(dbo_sandbox_load_file(box, path_of("t.lua").text, &err), DBO_OK);
    atomic_store(&told, true);
    assert_int_equal(dbo_sandbox_call(box, 0, 0, &err), DBO_CANCELLED);
    assert_string_equal(without_folder(err.message), "t.lua:1: the script was interrupted");
    dbo_sandbox_destroy(box);
}

static void random_numbers_are_the_same_in_every_run(void **state)
{
    (void)state;
    char first[512] = "";
    for (int i = 0; i < 2; i++) {
        dbo_experiment experiment;
        dbo_error err = {0};
        assert_int_equal(
            load_sets("error(math.random(1 << 30) .. '')\n", NULL, 0, &experiment, &err),
            DBO_INVALID);
        if (i == 0)
            snprintf(first, sizeof first, "%s", err.message);
        assert_string_equal(err.message, first);
    }
}

/* However little memory there is, the end is an experiment or a sentence, and nothing leaks. */
static void any_memory_cap_ends_in_a_sentence(void **state)
{
    (void)state;
    int loaded = 0, refused = 0;
    for (size_t bytes = 4096; bytes < 400000; bytes += bytes / 64) {
        dbo_experiment e;
        dbo_error err = {0};
        dbo_load_options options = {.limits.memory_bytes = bytes};
        const char *path = DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-prefill.lua";
        if (dbo_experiment_load(&e, path, &options, &err) == DBO_OK) {
            loaded++;
            dbo_experiment_fini(&e);
        } else {
            refused++;
            assert_true(err.status == DBO_LIMIT || err.status == DBO_NO_MEMORY);
            assert_int_not_equal(err.message[0], '\0');
        }
    }
    assert_true(loaded > 20 && refused > 20);
}

/* ---- what comes with dbo ---- */

static void shipped_presets_and_workloads_load(void **state)
{
    (void)state;
    glob_t workloads = scripts_of("workloads", 4);
    for (size_t i = 0; i < workloads.gl_pathc; i++) {
        dbo_experiment e;
        dbo_error err = {0};
        if (dbo_experiment_load(&e, workloads.gl_pathv[i], NULL, &err) != DBO_OK)
            fail_msg("%s", err.message);
        assert_true(e.config.enable_dbo);
        dbo_experiment_fini(&e);
    }
    globfree(&workloads);
    glob_t models = scripts_of("models", 9);
    for (size_t i = 0; i < models.gl_pathc; i++) {
        char text[256];
        dbo_experiment e;
        dbo_error err = {0};
        snprintf(text, sizeof text,
                 HEAD "return dbo.experiment { model = '%s', hardware = 'H200', %s",
                 script_name(&models, i).text, TAIL);
        if (load_sets(text, NULL, 0, &e, &err) != DBO_OK)
            fail_msg("%s", err.message);
        dbo_experiment_fini(&e);
    }
    globfree(&models);
}

/* ---- what scripts print and what they break ---- */

#define SCHEDULE \
    "local s = dbo.schedule { name = 'mine', layer = function(u) u.op('A0') u.yield() end }\n"

static void expect_printed(const char *text, const char *printed)
{
    dbo_experiment e;
    dbo_error err = {0};
    char got[512];
    FILE *out = tmpfile();
    assert_non_null(out);
    dbo_load_options options = {.may_return_nothing = true, .limits.print_to = out};
    put_file("t.lua", text);
    if (dbo_experiment_load(&e, path_of("t.lua").text, &options, &err) != DBO_OK)
        fail_msg("%s", err.message);
    rewind(out);
    got[fread(got, 1, sizeof got - 1, out)] = '\0';
    fclose(out);
    assert_string_equal(got, printed);
}

/* Nothing of dbo's prints an address: a script prints the same in every run. */
static void things_print_as_what_they_are(void **state)
{
    (void)state;
    expect_printed("local dbo = require 'dbo'\n" SCHEDULE
                   "local b = dbo.decode { num_tokens = 6 }\n"
                   "local c = dbo.fixed { A = 9, D = 4 }\n"
                   "local e = dbo.experiment { costs = c, gpus_per_node = 2, batch = b }\n"
                   "local r = dbo.run(e)\n"
                   "print(dbo, s, b, c, e)\n"
                   "print(r, r.spans, dbo.table { columns = { 'x' } })\n",
                   "dbo " DBO_BUILD_VERSION "\tdbo.schedule\tdbo.decode\tdbo.fixed\t"
                   "dbo.experiment\ndbo.result\tdbo.spans\tdbo.table\n");
}

/* A cell's __tostring empties the row that is being read. */
static void a_row_may_vanish_while_it_is_read(void **state)
{
    (void)state;
    expect_printed("local long = ('column '):rep(8)\n"
                   "local t = require 'dbo'.table { columns = { 'a', long } }\n"
                   "local row = { [long] = 7 }\n"
                   "row.a = setmetatable({}, { __tostring = function()\n"
                   "  for k in pairs(row) do row[k] = nil end\n"
                   "  for i = 1, 20000 do local x = { ('q'):rep(60) .. i } end\n"
                   "  return 'gone' end })\n"
                   "t:add(row) t:add { 1, 2 }\n"
                   "print(t:csv())\n",
                   "a,column column column column column column column column \n"
                   "gone,\n1,2\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(script_fills_an_experiment),
        cmocka_unit_test(fixed_costs_need_no_model),
        cmocka_unit_test(overrides_come_after_the_script),
        cmocka_unit_test(mistakes_carry_their_line),
        cmocka_unit_test(unknown_keys_of_requests_are_errors),
        cmocka_unit_test(a_batch_is_one_that_a_scheduler_would_give),
        cmocka_unit_test(costs_replace_a_model_as_a_whole),
        cmocka_unit_test(bases_may_not_run_in_a_circle),
        cmocka_unit_test(only_harmless_globals_are_there),
        cmocka_unit_test(runaway_scripts_end),
        cmocka_unit_test(interruption_ends_a_script),
        cmocka_unit_test(random_numbers_are_the_same_in_every_run),
        cmocka_unit_test(any_memory_cap_ends_in_a_sentence),
        cmocka_unit_test(shipped_presets_and_workloads_load),
        cmocka_unit_test(things_print_as_what_they_are),
        cmocka_unit_test(a_row_may_vanish_while_it_is_read),
    };
    return cmocka_run_group_tests_name("lua", tests, make_folder, remove_folder);
}
