/* test_bad_input.c: what cannot be run is answered with one sentence and exit code 1, by the built
 * command: settings that clash, schedules that would never end, scripts that would not either
 * (those that run into the limits of time: test_cli.c, and quicker ones in test_sandbox.c).
 */
#include "tests/support/command.h"

#define EXPERIMENT "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 2,\n"
#define MODEL      "model = 'deepseek-v2-lite', hardware = 'H800', layers = 3,\n"
#define REST                                              \
    "enable_expert_parallel = true, enable_dbo = true,\n" \
    "batch = dbo.decode { num_tokens = 64, context_len = 100 } }\n"
#define FIXED "costs = dbo.fixed { A = 9, D = 7, M = 5, C = 7, S = 3 },\n"

static void settings_that_clash(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT MODEL REST);
    static const struct {
        const char *sets, *words;
    } cases[] = {
        {"dbo_decode_token_threshold=1", "fewer tokens than its 2 ubatches would be split"},
        {"dbo_prefill_token_threshold=0", "is 0, so a step with fewer tokens than its 2 ubatches"},
        {"enable_dbo=false --set ubatch_size=4 --set dbo_decode_token_threshold=3",
         "fewer tokens than its 4 ubatches"},
        {"enable_dbo=false --set ubatch_size=17", "more than the 16 ubatches"},
        {"dbo_comm_sms=7 --set all2all_backend=deepep_high_throughput",
         "dbo_comm_sms is 7, but deepep_high_throughput uses its SMs in pairs"},
        {"dbo_comm_sms=132 --set all2all_backend=deepep_high_throughput",
         "dbo_comm_sms is 132, the GPU has 132 SMs"},
        {"dbo_comm_sms=4000 --set all2all_backend=deepep_high_throughput",
         "dbo_comm_sms is 4000, the GPU has 132 SMs"},
        {"dbo_comm_sms=-2", "dbo_comm_sms is -2; it must be from 0"},
        {"all2all_backend=deepep_low_latancy",
         "must be one of \"deepep_low_latency\", \"deepep_high_throughput\", \"nixl_ep\", got"},
        {"all2all_backend=pplx", "pplx has no dispatch and combine that a second ubatch could"},
        {"schedule=mlp_shared_overlab", "did you mean 'mlp_shared_overlap'?"},
        {"schedule=seed-prose-ht", "schedule seed-prose-ht is for high throughput only"},
        {"rules=v2", "rules must be one of \"seed\", \"v1\", got string \"v2\""},
        {"executor=threads", "executor must be one of \"fiber\", \"thread\", got string"},
        {"cudagraph_mode=FULLEST",
         "cudagraph_mode must be one of \"NONE\", \"PIECEWISE\", \"FULL\","},
        {"cudagraph_capture_sizes=8,x",
         "cudagraph_capture_sizes[1] must be an integer, got string \"x\""},
        {"hardware=H801", "unknown hardware 'H801', did you mean 'H800'?"},
        {"model=deepseek-v4", "unknown model 'deepseek-v4', did you mean 'deepseek-v3'?"},
        {"batch.num_tokens=-1", "num_tokens is -1"},
        {"batch.num_tokens=1,2,3", "num_tokens has 3 values"},
        {"routing=random --set enable_expert_parallel=false",
         "routing is given, but no rank sends tokens to experts elsewhere"},
        {"routing.redundant_experts=4097", "redundant_experts is 4097; it must be from 0 to 4096"},
        {"routing.load=1,2,3", "load has 3 counts, but"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "dbo run t.lua --set %s", cases[i].sets);
        expect_sentence(line, 1, cases[i].words);
        assert_string_equal(printed, "");
    }
    expect_sentence("VLLM_DBO_COMM_SMS=x dbo run t.lua", 1,
                    "VLLM_DBO_COMM_SMS: dbo_comm_sms must be an integer, got string \"x\"");
}

/* A node of more GPUs than NVLink joins, more tokens than low latency holds: what to set. */
static void machines_that_nobody_has(void **state)
{
    (void)state;
    put_file("t.lua", "local dbo = require 'dbo' return dbo.experiment { model = 'deepseek-v3',\n"
                      "  hardware = 'H800', enable_expert_parallel = true, nodes = 2,\n"
                      "  gpus_per_node = 64, check_memory = false,\n"
                      "  batch = dbo.decode { num_tokens = 64, context_len = 64 } }");
    expect_sentence("dbo run t.lua", 1,
                    "If NVLink joins them, set hardware.gpus_per_domain = 64; "
                    "else nodes = 16 and gpus_per_node = 8.");
    expect_sentence(
        "dbo run t.lua --set hardware.gpus_per_domain=12 --set nodes=1 --set gpus_per_node=16", 1,
        "set hardware.gpus_per_domain = 16.");
    assert_int_equal(run("dbo run t.lua --set hardware.gpus_per_domain=64"), 0);
    put_file("t.lua", "local dbo = require 'dbo' return dbo.experiment { model = 'deepseek-v3',\n"
                      "  hardware = 'H800', enable_expert_parallel = true, nodes = 16,\n"
                      "  batch = dbo.prefill { num_tokens = 8192, prompt_len = 64 } }");
    expect_sentence("dbo run t.lua", 1,
                    "Set max_num_batched_tokens = 8192, for buffers of 122.1 GB a rank, or "
                    "all2all_backend = \"deepep_high_throughput\".");
}

/* Given durations are of a machine without SMs: there are none to take. */
static void a_machine_without_sms_gives_none(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT FIXED "all2all_backend = 'deepep_high_throughput',\n" REST);
    assert_int_equal(run("dbo run t.lua --set dbo_comm_sms=16"), 0);
    assert_string_equal(complained, "");
}

static void expect_schedule(const char *body, const char *words)
{
    char script[1024];
    snprintf(script, sizeof script,
             "local dbo = require 'dbo'\n"
             "local s = dbo.schedule { name = 'mine', layer = function(u)\n%s\nend }\n"
             "return dbo.experiment { gpus_per_node = 2, schedule = s,\n" FIXED REST,
             body);
    put_file("t.lua", script);
    expect_sentence("dbo run t.lua", 1, words);
}

static void schedules_that_never_end(void **state)
{
    (void)state;
    expect_schedule("u.op('A0') u.yield() if u.id == 1 then u.yield() end",
                    "waits for its turn for ever");
    expect_schedule("u.op('A0') u.wait('never')", "waits for an event that nobody records");
    expect_schedule("u.post('dispatch') u.yield()", "nobody has received the last one");
    expect_schedule("local d = u.post('dispatch')\n"
                    "if u.id == 0 then u.register_recv_hook(d) end u.yield()",
                    "nobody has received the last one");
    expect_schedule("u.register_recv_hook(nil)", "a handle that u.post() gave is needed here");
    expect_schedule("u.register_recv_hook(u.post('dispatch'))\n"
                    "u.register_recv_hook(u.post('combine')) u.yield()",
                    "displaces one that has not been run");
}

/* It would look faster than it is. */
static void a_schedule_without_all_reduces_needs_tp_1(void **state)
{
    (void)state;
    put_file("t.lua", "local dbo = require 'dbo'\n"
                      "local s = dbo.schedule { name = 'mine', layer = function(u)\n"
                      "u.op('A0') u.op('A1') u.maybe_run_recv_hook()\n"
                      "u.register_recv_hook(u.post('dispatch')) u.yield() u.op('MLP')\n"
                      "u.maybe_run_recv_hook() u.op('S')\n"
                      "u.register_recv_hook(u.post('combine')) u.yield() end }\n"
                      "return dbo.experiment { gpus_per_node = 4, schedule = s,\n" MODEL REST);
    assert_int_equal(run("dbo run t.lua"), 0);
    expect_sentence("dbo run t.lua --set tensor_parallel_size=2", 1,
                    "schedule mine has no all-reduce, which tensor_parallel_size 2 needs");
}

static void expect_runaway(const char *script, const char *words)
{
    put_file("t.lua", script);
    expect_sentence("dbo run t.lua", 1, words);
}

static void scripts_that_run_away(void **state)
{
    (void)state;
    expect_runaway("local s = string.rep('x', 1 << 40)\n", "string.rep would build a string");
    expect_runaway("local t = {} while true do t[#t + 1] = { #t } end\n", "memory");
    expect_runaway("local s = 'x' while true do s = s .. s end\n", "memory");
    expect_runaway("local function f() return 1 + f() end f()\n", "stack overflow");
    expect_runaway("local t = setmetatable({}, { __index = function(t, k) return t[k] end })\n"
                   "return t.x\n",
                   "stack overflow");
}

/* A request's keys in the place of a list of requests were once read as an empty list. */
static void lists_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *requests, *words;
    } cases[] = {
        {"{ { num_tokens = 4 } }", "unknown key 'num_tokens' in a request"},
        {"{ num_scheduled = 4 }",
         "'num_scheduled' is a key of a request, but stands in a list of requests"},
        {"{ { { num_scheduled = 4 }, rank = 3 }, {} }", "one has no name"},
        {"{ { num_scheduled = 4 }, [3] = { num_scheduled = 4 } }", "a list of requests has a hole"},
        {"{ { num_scheduled = 0 } }", "num_scheduled is 0"},
        {"{ { num_scheduled = 4, blocks = { 1 }, prefix = 'p' } }", "blocks beside a prefix"},
        {"{ { num_scheduled = 400, blocks = { 1 } } }", "blocks"},
        {"{ {}, {}, {} }", "batch.requests has 3 lists"},
        {"7", "requests must be a list"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[512];
        snprintf(script, sizeof script,
                 EXPERIMENT FIXED "enable_expert_parallel = true,\n"
                                  "batch = dbo.batch { requests = %s } }\n",
                 cases[i].requests);
        put_file("t.lua", script);
        expect_sentence("dbo run t.lua", 1, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_clash),
        cmocka_unit_test(machines_that_nobody_has),
        cmocka_unit_test(a_machine_without_sms_gives_none),
        cmocka_unit_test(schedules_that_never_end),
        cmocka_unit_test(a_schedule_without_all_reduces_needs_tp_1),
        cmocka_unit_test(scripts_that_run_away),
        cmocka_unit_test(lists_that_are_none),
    };
    return cmocka_run_group_tests_name("bad_input", tests, make_folder, remove_folder);
}
