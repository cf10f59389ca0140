/* test_faults.c: every fault on its own scene: what comes of it is what the table says, and without
 * it nothing is found. By the built command, as a person would. */
#include "lab/faults/faults.h"
#include "lab/files/json.h"
#include "tests/support/command.h"

#include <jansson.h>
#include <math.h>

#define MAX_KINDS 6u

/* What must be found on the scene; words of a finding, a note or the error. */
typedef struct expectation {
    const char *kinds[MAX_KINDS]; /* each is found, and no others, NULL at the end */
    const char *words;
} expectation;

static const expectation expected[DBO_FAULT_COUNT] = {
    [DBO_FAULT_VOTE_SKIP] = {{"deadlock"}, "posted dispatch of ubatch 1, rank 0 never did"},
    [DBO_FAULT_EMPTY_RANK_SKIPS_STEP] = {{"missed_exchange"}, "rank 1 is 1 exchange behind"},
    [DBO_FAULT_IDLE_OPT_OUT] = {{"deadlock"}, "dispatch of ubatch 1, rank 1 never did"},
    [DBO_FAULT_PREFIX_NO_VETO] = {{"read_before_write", "rows"}, "block 1 of kv_cache0"},
    [DBO_FAULT_EVENT_AFTER_YIELD] = {{"false_dependency"}, "waits for A1 of ubatch 1"},
    [DBO_FAULT_YIELD_AFTER_DISPATCH] = {{"false_dependency"}, "waits for DISPATCH of ubatch 1"},
    [DBO_FAULT_NO_COMPUTE_WAIT] = {{"race", "rows"}, "A1 of ubatch 1 (layer 0) (compute) and"},
    [DBO_FAULT_NO_COMM_WAIT] = {{"race", "use_after_free", "rows"}, "touch recv_tokens0"},
    [DBO_FAULT_SHARED_EVENT] = {{"false_dependency"}, "waits for A1 of ubatch 1"},
    [DBO_FAULT_NO_RECORD_STREAM] = {{"use_after_free", "rows"}, "record_stream of expert_out0"},
    [DBO_FAULT_WRONG_POOL] = {{"use_after_free"}, "its block may become recv_tokens0"},
    [DBO_FAULT_SHARED_HANDLE] = {{"oversubscribed", "rows"}, "by handle0, which DISPATCH of"},
    [DBO_FAULT_TWO_SLOT_HANDLES] = {{NULL}, "has none for a third ubatch"},
    [DBO_FAULT_DOUBLE_ASYNC] = {{"race", "use_after_free", "rows"}, "touch recv_tokens0"},
    [DBO_FAULT_UNSORTED_OUTPUTS] = {{"rows"}, "step 0, the head, rank 0, token 0"},
    [DBO_FAULT_SEQ_LENS_IN_PLACE] = {{"write_to_input", "rows"}, "step 1, layer 0"},
    [DBO_FAULT_GRAPH_KEY_FIRST_TWO] = {{"rows"}, "token 96"},
    [DBO_FAULT_GRAPH_EMPTY_UBATCH] = {{"rule"}, "and 64 >= 64"},
    [DBO_FAULT_REPLAY_STALE_INPUT] = {{"rows"}, "step 1, layer 0"},
    [DBO_FAULT_CAPTURE_WHILE_SERVING] = {{"capture_while_serving"}, "in the middle of serving"},
    [DBO_FAULT_HOST_SYNC_IN_CAPTURE] = {{"capture"}, "waits for receive counts"},
    [DBO_FAULT_LAZY_INIT_IN_CAPTURE] = {{NULL}, "makes its library's handle"},
    [DBO_FAULT_UNJOINED_COMM_STREAM] = {{NULL}, "has not rejoined"},
    [DBO_FAULT_LL_THREE_IN_FLIGHT] = {{"oversubscribed"}, "DISPATCH of ubatch 2 (layer 0) clears"},
    [DBO_FAULT_WORKSPACE_REUSE] = {{"race", "rows"}, "MLP of ubatch 0 (layer 0) (compute) and"},
    [DBO_FAULT_ROCM_COMM_SMS] = {{NULL}, "warning: rocm-comm-sms"},
    [DBO_FAULT_ONE_QP] = {{"oversubscribed"}, "the queue takes 1 at once"},
    [DBO_FAULT_NO_SM_PARTITION] = {{"contention"}, "132 SMs"},
    [DBO_FAULT_LL_ALL_SMS] = {{"contention"}, "132 SMs"},
    [DBO_FAULT_LOST_WAKEUP] = {{"deadlock"}, "cleared by ubatch"},
    [DBO_FAULT_UNEVEN_YIELDS] = {{"deadlock"}, "yield"},
    [DBO_FAULT_UBATCH_ERROR_PARKS_SIBLINGS] = {{"deadlock"}, "never released its siblings"},
    [DBO_FAULT_PADDING_ROUTED] = {{"padding_waste"}, "rows of padding travel"},
    [DBO_FAULT_PROFILE_HALF_BATCH] = {{NULL}, "GB; the profile run, which was split, took"},
    [DBO_FAULT_LATE_RANK] = {{NULL}, "waiting for rank 1: rank 0 waits 220.0 us"},
};

/* ---- findings ---- */

typedef struct found {
    dbo_json *document;
    const json_t *findings;
} found;

static found read_findings(void)
{
    dbo_error err = {0};
    found f = {NULL, NULL};
    if (dbo_json_read_file(&f.document, path_of("f.json").text, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    f.findings = json_object_get(dbo_json_tree(f.document), "findings");
    assert_non_null(f.findings);
    assert_true(json_integer_value(json_object_get(dbo_json_tree(f.document), "orders_explored")) >=
                1);
    return f;
}

static uint32_t count_of(const found *f, const char *kind)
{
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(f->findings); i++)
        count += strcmp(json_string_value(json_object_get(json_array_get(f->findings, i), "kind")),
                        kind) == 0;
    return count;
}

/* The kinds that are expected, and no others. */
static void expect_kinds(const char *fault, const found *f, const char *const kinds[MAX_KINDS])
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < MAX_KINDS && kinds[i]; i++) {
        uint32_t count = count_of(f, kinds[i]);
        if (count == 0)
            fail_msg("%s: no finding of kind %s; said: %s%s", fault, kinds[i], printed, complained);
        all += count;
    }
    if (all != json_array_size(f->findings))
        fail_msg("%s: other findings than expected: %s", fault, printed);
}

static const char *const speed_kinds[] = {"false_dependency", "lost_overlap",
                                          "host_bound",       "padding_waste",
                                          "contention",       "capture_while_serving"};

/* A finding says where it is and what to do; about speed, what that costs. */
static void expect_complete(const char *fault, const found *f)
{
    for (size_t i = 0; i < json_array_size(f->findings); i++) {
        const json_t *one = json_array_get(f->findings, i);
        const char *kind = json_string_value(json_object_get(one, "kind"));
        if (json_is_null(json_object_get(one, "fix")) || !json_object_get(one, "rank"))
            fail_msg("%s: the %s has no place or no fix", fault, kind);
        bool speed = false;
        for (uint32_t k = 0; k < sizeof speed_kinds / sizeof speed_kinds[0]; k++)
            speed = speed || strcmp(kind, speed_kinds[k]) == 0;
        if (speed != !json_is_null(json_object_get(one, "lost_us")))
            fail_msg("%s: lost_us of a %s", fault, kind);
    }
}

/* ---- with and without ---- */

/* As the table's outcome has it. */
static int exit_code_of(uint32_t outcome)
{
    if (outcome & DBO_FAULT_REFUSED)
        return 1;
    return outcome & DBO_FAULT_SHOWN ? 0 : 3;
}

static void check_with(dbo_fault_id id)
{
    const dbo_fault_info info = dbo_fault_describe(id);
    const expectation *e = &expected[id];
    char line[160];
    snprintf(line, sizeof line, "dbo check --fault %s --json f.json", info.name);
    int code = run(line);
    if (code != exit_code_of(info.outcome))
        fail_msg("%s: exit code %d, said: %s%s", info.name, code, printed, complained);
    found f = read_findings();
    expect_kinds(info.name, &f, e->kinds);
    expect_complete(info.name, &f);
    assert_int_equal(count_of(&f, "rows") > 0,
                     (info.outcome & DBO_FAULT_ROWS) > 0 || id == DBO_FAULT_DOUBLE_ASYNC);
    unwrap();
    if (!strstr(printed, e->words) && !strstr(complained, e->words))
        fail_msg("%s: nothing says '%s': %s%s", info.name, e->words, printed, complained);
    dbo_json_destroy(f.document);
}

static void check_without(dbo_fault_id id)
{
    const dbo_fault_info info = dbo_fault_describe(id);
    char line[512];
    bool injected = id == DBO_FAULT_UBATCH_ERROR_PARKS_SIBLINGS; /* the scene has an error itself */
    snprintf(line, sizeof line, "dbo check %s/scripts/faults/%s.lua --json f.json", DBO_SOURCE_DIR,
             info.name);
    int code = run(line);
    if (code != (injected ? 1 : 0))
        fail_msg("without %s: exit code %d, said: %s%s", info.name, code, printed, complained);
    found f = read_findings();
    assert_int_equal(json_array_size(f.findings), 0);
    dbo_json_destroy(f.document);
}

static void every_fault(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        check_with((dbo_fault_id)id);
        check_without((dbo_fault_id)id);
    }
}

/* Names, parameters and outcomes are the table's: each has one of the five, refused and shown
 * stand alone. */
static void outcomes_make_sense(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const dbo_fault_info info = dbo_fault_describe((dbo_fault_id)id);
        assert_true(info.outcome != 0 && info.outcome < 32);
        if (info.outcome & (DBO_FAULT_REFUSED | DBO_FAULT_SHOWN))
            assert_true((info.outcome & (info.outcome - 1)) == 0);
        assert_non_null(expected[id].words);
    }
}

/* ---- special cases ---- */

static void look_alikes(void **state)
{
    (void)state;
    char line[512];
    /* the prefix's writer first: split as well, and right */
    put_file(
        "writer.lua",
        "local dbo = require 'dbo'\n"
        "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true,\n"
        "  enable_dbo = true, layers = 4, all2all_backend = 'deepep_high_throughput',\n"
        "  dbo_decode_token_threshold = 32, dbo_prefill_token_threshold = 32,\n"
        "  block_size = 16, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n"
        "  batch = dbo.batch { requests = {\n"
        "    { num_scheduled = 32, num_computed = 0, prefix = 'p', prefix_len = 32 },\n"
        "    { num_scheduled = 32, num_computed = 32, prefix = 'p', prefix_len = 32 } } } }\n");
    assert_int_equal(run("dbo check writer.lua --fault prefix-no-veto"), 0);
    assert_int_equal(run("dbo check writer.lua"), 0);
    /* a handle for all, with low latency */
    snprintf(line, sizeof line,
             "dbo check --fault shared-handle --set all2all_backend=deepep_low_latency "
             "--json f.json");
    assert_int_equal(run(line), 3);
    found f = read_findings();
    expect_kinds("shared-handle", &f, expected[DBO_FAULT_SHARED_HANDLE].kinds);
    dbo_json_destroy(f.document);
}

static void what_cannot_be_reached(void **state)
{
    (void)state;
    expect_sentence("dbo check " DBO_SOURCE_DIR
                    "/scripts/workloads/deepseek-v3-decode.lua --fault no-comm-wait",
                    2, "cannot reach the fault no-comm-wait");
    /* two ubatches' results fit into two buffers */
    expect_sentence("dbo check --fault ll-three-in-flight --set ubatch_size=2", 2,
                    "cannot reach the fault ll-three-in-flight");
    expect_sentence("dbo check --fault no-com-wait", 2, "did you mean 'no-comm-wait'?");
    expect_sentence("dbo check --fault late-rank:rank=x", 2,
                    "rank of fault late-rank is an integer from 0 to 16383, not 'x'");
    expect_sentence("dbo check --fault late-rank:rank=+1", 2, "not '+1'");
    expect_sentence("dbo check --fault late-rank:rank="
                    "00000000000000000000000000000000000000000000000000000000000000001",
                    2, "is an integer from 0 to 16383");
    expect_sentence("dbo check --fault late-rank:us=1000001", 2,
                    "from 0 to 1000000, not '1000001'");
    expect_sentence("dbo check --fault late-rank:rang=1", 2, "takes rank, us, not 'rang'");
}

/* Nothing that could go wrong is there: no graph, no buffers to hold, one transfer at a time, rows
 * that are not compared. */
static void what_makes_no_difference(void **state)
{
    (void)state;
    static const char *const prefill = DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-prefill.lua";
    static const char *const decode = DBO_SOURCE_DIR "/scripts/workloads/deepseek-v3-decode.lua";
    char line[512];
    static const char *const inert[] = {"host-sync-in-capture", "ll-three-in-flight", "one-qp"};
    for (size_t i = 0; i < sizeof inert / sizeof inert[0]; i++) {
        snprintf(line, sizeof line, "dbo check %s --fault %s", prefill, inert[i]);
        expect_sentence(line, 2, "cannot reach the fault");
    }
    snprintf(line, sizeof line, "dbo check %s --fault one-qp", decode);
    expect_sentence(line, 2, "cannot reach the fault one-qp");
    snprintf(line, sizeof line, "dbo check %s --fault unsorted-outputs", decode);
    expect_sentence(line, 2, "shows in rows alone");
    expect_sentence("dbo check --fault late-rank:rank=9", 2, "there is no rank 9");
    expect_sentence("dbo check --fault late-rank --fault one-qp", 2, "--fault is given twice");
    snprintf(line, sizeof line, "dbo run %s --fault no-comm-wait", decode);
    expect_sentence(line, 0, "made no difference");
    assert_non_null(strstr(printed, "Fault    no-comm-wait: "));
}

/* What stands in for a read script is not written over it. */
static void a_script_is_not_replaced(void **state)
{
    (void)state;
    put_file("s.lua", "return nil\n");
    expect_sentence("dbo check s.lua --json s.lua", 2, "would replace s.lua");
    expect_sentence("dbo check s.lua --trace ./s.lua", 2, "would replace s.lua");
    expect_sentence("ln -sf s.lua l.lua; dbo run s.lua --json l.lua", 2, "would replace s.lua");
    put_file("p.json", "{}");
    expect_sentence("dbo check --program p.json --json p.json", 2, "would replace p.json");
    expect_sentence("dbo check s.lua --json ''", 2, "--json needs the name of a file");
}

/* The signal comes as soon as it can; whatever the check is at, it ends as interrupted. */
static void an_interrupted_check(void **state)
{
    (void)state;
    char program[] = DBO_PROGRAM, check[] = "check",
         script[] = DBO_SOURCE_DIR "/scripts/faults/graph-key-first-two.lua", json[] = "--json",
         file[] = "i.json";
    char *const arguments[] = {program, check, script, json, file, NULL};
    assert_int_equal(run_and_signal(arguments, catches_interrupts, SIGINT), 130);
    assert_int_not_equal(access(path_of("i.json").text, F_OK), 0);
}

/* Scripts switch faults on, too. */
static void from_lua(void **state)
{
    (void)state;
    put_file("l.lua",
             "local dbo = require 'dbo'\n"
             "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true,\n"
             "  enable_dbo = true, layers = 4, all2all_backend = 'deepep_high_throughput',\n"
             "  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n"
             "  fault = 'no-compute-wait', batch = dbo.decode { num_tokens = 64 } }\n");
    assert_int_equal(run("dbo check l.lua"), 3);
    assert_int_equal(run("dbo check l.lua --set fault=none"), 0);
    assert_int_equal(run("dbo run l.lua"), 0);
}

/* ---- what a lost microsecond is ---- */

static double step_us(const char *script, const char *fault)
{
    char line[512];
    dbo_json *document;
    dbo_error err = {0};
    snprintf(line, sizeof line, "dbo run %s/scripts/faults/%s.lua --set fault=%s --json r.json",
             DBO_SOURCE_DIR, script, fault);
    assert_int_equal(run(line), 0);
    assert_int_equal(dbo_json_read_file(&document, path_of("r.json").text, NULL, &err), DBO_OK);
    double us = json_number_value(json_object_get(dbo_json_tree(document), "step_us"));
    dbo_json_destroy(document);
    return us;
}

/* With given durations what a finding says is lost is what the fault costs, to the nanosecond. */
static void lost_time_is_true(void **state)
{
    (void)state;
    static const char *const names[] = {"event-after-yield", "yield-after-dispatch",
                                        "shared-event"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "dbo check --fault %s --json f.json", names[i]);
        assert_int_equal(run(line), 3);
        found f = read_findings();
        double lost = json_number_value(json_object_get(json_array_get(f.findings, 0), "lost_us"));
        double cost = step_us(names[i], names[i]) - step_us(names[i], "none");
        if (fabs(lost - cost) > 0.0015)
            fail_msg("%s: %.3f us lost, the step is %.3f us longer", names[i], lost, cost);
        assert_true(cost > 100);
        dbo_json_destroy(f.document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes_make_sense),
        cmocka_unit_test(every_fault),
        cmocka_unit_test(look_alikes),
        cmocka_unit_test(what_cannot_be_reached),
        cmocka_unit_test(what_makes_no_difference),
        cmocka_unit_test(a_script_is_not_replaced),
        cmocka_unit_test(an_interrupted_check),
        cmocka_unit_test(from_lua),
        cmocka_unit_test(lost_time_is_true),
    };
    return cmocka_run_group_tests_name("faults", tests, make_folder, remove_folder);
}
