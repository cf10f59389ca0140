/* test_schedule_races.c: data races of schedules that scripts write: what built-in names touch,
 * what is given by hand, and how a script's own ops are called. By the built command. */
#include "tests/support/command.h"

#define HEAD "local dbo = require 'dbo'\n"
#define SCHEDULE(lines)                                                                          \
    HEAD "local s = dbo.schedule { name = 'mine', num_ubatches = 2, layer = function(u)\n" lines \
         "end }\n"
#define RETURN(backend, more)                                                                \
    "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true,\n"            \
    "  enable_dbo = true, layers = 4, schedule = s, all2all_backend = '" backend "',\n" more \
    "  batch = dbo.decode { num_tokens = 64 } }\n"
#define FIXED "costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },\n"
#define MODEL "model = 'deepseek-v2-lite', hardware = 'H800',\n"
#define EAGER "cudagraph_mode = 'NONE',\n" /* a capture without the waits is refused */
#define HT    "deepep_high_throughput"
#define LL    "deepep_low_latency"

/* The built-in high-throughput schedule. */
#define TO_COMM(event) \
    "local " event " = u.get_previous_event() u.yield_and_switch_from_compute_to_comm()\n"
#define FIRST_HALF "u.op('A0') u.op('A1')\n" TO_COMM("p")
#define EXPERTS                                                                         \
    "local d = u.post { name = 'dispatch', previous = p } u.host_wait(d) u.finish(d)\n" \
    "u.switch_to_compute_sync() u.op('MLP')\n" TO_COMM(                                 \
        "q") "local c = u.post { name = 'combine', previous = q } u.finish(c)\n"        \
             "u.switch_to_compute() u.op('S') u.switch_to_comm()\n"
#define TO_COMPUTE "u.yield_and_switch_from_comm_to_compute()\n"
#define HT_LAYER   FIRST_HALF EXPERTS "u.op('COPY')\n" TO_COMPUTE
#define HT_BARE    FIRST_HALF EXPERTS TO_COMPUTE

/* Low latency, whose transfers run on the comm stream. */
#define LL_LAYER                                                            \
    "u.op('A0') u.op('A1') u.yield_and_switch_from_compute_to_comm()\n"     \
    "local d = u.post('dispatch') u.finish(d) u.switch_to_compute_sync()\n" \
    "u.op('MLP') u.yield_and_switch_from_compute_to_comm()\n"               \
    "local c = u.post('combine') u.finish(c)\n" TO_COMPUTE "u.op('S')\n"

/* Low latency as it is built in, with hooks. */
#define LL_HOOKS                                                                  \
    "u.op('A0') u.op('A1') u.maybe_run_recv_hook()\n"                             \
    "local d = u.post('dispatch') u.register_recv_hook(d) u.yield()\n"            \
    "u.op('MLP') u.maybe_run_recv_hook() local c = u.post('combine') u.op('S')\n" \
    "u.register_recv_hook(c) u.yield()\n"

/* Nothing is found but perhaps about speed. */
static void expect_clean(const char *script)
{
    uint32_t all = 0, speed = 0;
    put_file("t.lua", script);
    int code = run("dbo check t.lua");
    const char *count = strstr(printed, "t.lua: ");
    bool clean = code == 0 && strstr(printed, "nothing found");
    if (code == 3 && count)
        clean = sscanf(count, "t.lua: %u finding%*[s,] %u of", &all, &speed) == 2 && all == speed;
    if (!clean)
        fail_msg("exit code %d, said: %s%s\n%s", code, printed, complained, script);
}

/* Races alone, one of them with these words. */
static void expect_race(const char *script, const char *more, const char *words)
{
    char line[128];
    put_file("t.lua", script);
    snprintf(line, sizeof line, "dbo check t.lua %s", more);
    int code = run(line);
    unwrap();
    if (code != 3 || !strstr(printed, words))
        fail_msg("%s: exit code %d, nothing says '%s': %s%s", more, code, words, printed,
                 complained);
    assert_non_null(strstr(printed, "race"));
}

static void written_out_schedules_are_clean(void **state)
{
    (void)state;
    expect_clean(SCHEDULE(HT_LAYER) RETURN(HT, FIXED));
    expect_clean(SCHEDULE(HT_LAYER) RETURN(HT, MODEL));
    expect_clean(SCHEDULE(HT_BARE) RETURN(HT, FIXED));
    expect_clean(SCHEDULE(LL_LAYER) RETURN(LL, FIXED));
    expect_clean(SCHEDULE(LL_LAYER) RETURN(LL, MODEL));
    expect_clean(SCHEDULE(LL_HOOKS) RETURN(LL, FIXED));
    expect_clean(SCHEDULE(LL_HOOKS) RETURN(LL, MODEL "cudagraph_mode = 'FULL',\n"));
}

static void missing_waits_are_found(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        SCHEDULE(HT_LAYER) RETURN(HT, FIXED), SCHEDULE(HT_LAYER) RETURN(HT, MODEL),
        SCHEDULE(LL_LAYER) RETURN(LL, FIXED EAGER), SCHEDULE(LL_LAYER) RETURN(LL, MODEL EAGER)};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        expect_race(scripts[i], "--fault no-comm-wait", "(compute) touch recv_tokens0 in no order");
        expect_race(scripts[i], "--fault no-compute-wait", "(comm) touch ffn_in1 in no order");
        expect_race(scripts[i], "--fault double-async", "(compute) touch recv_tokens1 in no order");
    }
}

/* A step that is left out has its tensor written by the step before. */
static void steps_that_are_missing_hand_on(void **state)
{
    (void)state;
    expect_race(SCHEDULE(HT_LAYER) RETURN(HT, FIXED), "--fault no-comm-wait",
                "OUTPUT_COPY of ubatch 0 (layer 0) (comm) and A0 of ubatch 0 (layer 1) (compute) "
                "touch hidden0");
    expect_race(SCHEDULE(HT_BARE) RETURN(HT, FIXED), "--fault no-comm-wait",
                "COMBINE of ubatch 0 (layer 0) (the network) and A0 of ubatch 0 (layer 1) "
                "(compute) touch hidden0");
    assert_null(strstr(printed, "combined0"));
    expect_race(
        SCHEDULE("u.op('A0') u.op('A1') u.switch_to_comm() u.op { name = 'QUANT', us = 3 }\n"
                 "u.finish(u.post('dispatch')) u.switch_to_compute_sync() u.op('MLP')\n"
                 "u.finish(u.post('combine')) u.op('S') u.yield()\n") RETURN(HT, FIXED),
        "", "(comm) touch ffn_in0 in no order");
    assert_null(strstr(printed, "DISPATCH of ubatch 0 (layer 0) (comm) touch ffn_in0"));
}

/* The schedule with ubatch 0's MLP beside its dispatch unless a hand says otherwise. */
#define EARLY_MLP(given)                                                                    \
    SCHEDULE("u.op('A0') u.op('A1') u.switch_to_comm_sync() local d = u.post('dispatch')\n" \
             "u.switch_to_compute() u.op { name = 'MLP'" given " }\n"                       \
             "u.switch_to_comm() u.finish(d) u.switch_to_compute_sync()\n"                  \
             "u.finish(u.post('combine')) u.op('S') u.yield()\n")                           \
    RETURN(HT, FIXED)

static void what_is_given_by_hand_holds(void **state)
{
    (void)state;
    expect_race(EARLY_MLP(""), "", "touch recv_tokens0 in no order");
    expect_clean(EARLY_MLP(", reads = {}"));
    expect_clean(EARLY_MLP(", reads = 'mine', writes = { 'mine', 'other' }"));
    expect_race(EARLY_MLP(", reads = { 'mine', 'recv_weights' .. u.id }"), "",
                "touch recv_weights1 in no order");
    assert_null(strstr(printed, "recv_tokens1"));
    /* What the schedule allocates holds nothing. */
    expect_race(EARLY_MLP(", reads = 'recv_tokens0', writes = 'x'"), "", "touch recv_tokens0");
    put_file("t.lua", SCHEDULE("u.alloc('x' .. u.id) u.op { name = 'A0', reads = 'x' .. u.id }\n"
                               "u.free('x' .. u.id) u.yield()\n") RETURN(HT, FIXED));
    assert_int_equal(run("dbo check t.lua"), 3);
    unwrap();
    assert_non_null(
        strstr(printed, "A0 of ubatch 0 (layer 0) reads x0, which nothing has written"));
}

/* Two ops of the script, on two streams, on one buffer. */
#define OWN_OPS                                                                       \
    SCHEDULE("u.op('A0') u.op { name = 'up_proj', us = 4, writes = 'mid' .. u.id }\n" \
             "u.switch_to_stream('side')\n"                                           \
             "u.op { name = 'down_proj', us = 3, reads = 'mid' .. u.id }\n"           \
             "u.switch_to_compute() u.yield()\n")                                     \
    RETURN(HT, FIXED)

static void own_ops_have_their_own_names(void **state)
{
    (void)state;
    expect_race(OWN_OPS, "--json f.json",
                "up_proj of ubatch 1 (layer 0) (compute) and down_proj of ubatch 1 (layer 0) "
                "(side) touch mid1 in no order");
    char text[16384];
    assert_null(strstr(printed, "SYNTHETIC"));
    get_file("f.json", text, sizeof text);
    assert_non_null(strstr(text, "\"up_proj of ubatch 0 (layer 0)\""));
    assert_null(strstr(text, "SYNTHETIC"));
    assert_int_equal(run("dbo check t.lua --trace -"), 3);
    assert_non_null(strstr(printed, "\"what\":\"up_proj of ubatch"));
}

/* Who asks for the accesses sees them; the text is about order. */
static void programs_list_what_is_touched(void **state)
{
    (void)state;
    put_file("t.lua", SCHEDULE(HT_LAYER) RETURN(HT, FIXED));
    assert_int_equal(run("dbo show program t.lua"), 0);
    assert_null(strstr(printed, "recv_tokens"));
    assert_int_equal(run("dbo show program t.lua --json"), 0);
    assert_non_null(strstr(printed, "\"recv_tokens0\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_out_schedules_are_clean),
        cmocka_unit_test(missing_waits_are_found),
        cmocka_unit_test(steps_that_are_missing_hand_on),
        cmocka_unit_test(what_is_given_by_hand_holds),
        cmocka_unit_test(own_ops_have_their_own_names),
        cmocka_unit_test(programs_list_what_is_touched),
    };
    return cmocka_run_group_tests_name("schedule races", tests, make_folder, remove_folder);
}
