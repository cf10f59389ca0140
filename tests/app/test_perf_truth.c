/* test_perf_truth.c: what a finding about speed says to be lost is lost.
 *
 * The watch over speed works it out from calls and a trace. Here the same step is simulated again
 * without what was found: by a host that takes no time, on machines that lack what costs time
 * (what_if.h), without the fault. The difference of the two steps is what a finding must say, and
 * where there is none, none may be found.
 */
#include "app/lua/lua_load.h"
#include "lab/check/speed.h"
#include "tests/support/draws.h"
#include "tests/support/random_experiment.h"
#include "tests/support/what_if.h"

#include <math.h>

#define MAX_SETS 6
#define SEEDS    400u

/* ---- runs ---- */

typedef struct run_of {
    const dbo_experiment *experiment;
    what_if *machine; /* or NULL */
    dbo_perf *perf;   /* or NULL */
} run_of;

static dbo_status attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    const run_of *r = self;
    (void)rank;
    if (r->machine)
        what_if_wrap(r->machine, seam);
    return r->perf ? dbo_perf_attach(r->perf, seam, err) : DBO_OK;
}

static void simulate(run_of *r, dbo_simulated *run, uint32_t *shown)
{
    dbo_error err = {0};
    const dbo_simulate_options options = {.unfolded = r->experiment->config.data_parallel_size <= 8,
                                          .io = true,
                                          .attach = attach,
                                          .attach_self = r};
    if (dbo_simulate_one(r->experiment, &options, true, run, shown, &err) != DBO_OK)
        fail_msg("%s: %s", r->experiment->name, err.message);
}

/* The step on another machine, or NULL. */
static double step_us(const dbo_experiment *e, what_if *machine)
{
    run_of r = {.experiment = e, .machine = machine};
    dbo_simulated run;
    uint32_t shown;
    if (machine) {
        machine->hardware = &e->hardware;
        what_if_begin(machine);
    }
    simulate(&r, &run, &shown);
    if (machine)
        what_if_end(machine);
    double us = run.metrics.step_us.present ? run.metrics.step_us.value : 0;
    dbo_simulated_fini(&run);
    return us;
}

static double step_of_free_host_us(const dbo_experiment *e)
{
    static const dbo_charge issuing[] = {DBO_CHARGE_LAUNCH, DBO_CHARGE_EVENT, DBO_CHARGE_HANDOFF,
                                         DBO_CHARGE_POST};
    dbo_experiment changed = *e; /* shares what it points to */
    for (size_t i = 0; i < sizeof issuing / sizeof issuing[0]; i++)
        changed.hardware.host_ns[issuing[i]] = 0;
    changed.fixed.launch_us = changed.fixed.event_us = 0;
    changed.fixed.handoff_us = changed.fixed.post_us = 0;
    return step_us(&changed, NULL);
}

static double step_without_fault_us(const dbo_experiment *e)
{
    dbo_experiment changed = *e;
    changed.has_fault = false;
    return step_us(&changed, NULL);
}

typedef struct watched {
    dbo_findings findings;
    double step_us, replay_us;
    bool split, eager;
} watched;

/* How long the measured step takes when it is played again as it was; 0: it cannot be. */
static double replay_us(const dbo_perf *perf, const dbo_experiment *e, const dbo_simulated *run,
                        uint32_t shown)
{
    dbo_error err = {0};
    int64_t ns = 0;
    uint32_t num_ranks = e->config.data_parallel_size;
    uint64_t *tokens = calloc(num_ranks, sizeof *tokens);
    assert_non_null(tokens);
    for (uint32_t r = 0; r < num_ranks; r++)
        tokens[r] = (uint64_t)dbo_simulated_result(run, r)->num_tokens;
    const dbo_perf_about about = {.trace = &run->trace,
                                  .rank = run->first_rank[run->class_of[shown]],
                                  .step = run->measured,
                                  .split = dbo_simulated_result(run, shown)->cut.num_ubatches > 1,
                                  .tokens = tokens,
                                  .num_ranks = num_ranks,
                                  .step_us = run->metrics.step_us.value};
    assert_int_equal(dbo_perf_replay(perf, &about, &ns, &err), DBO_OK);
    free(tokens);
    return (double)ns / 1000;
}

/* Runs it under the watch; the caller's to dbo_findings_fini. */
static watched watch(const dbo_experiment *e)
{
    dbo_error err = {0};
    watched w = {0};
    run_of r = {.experiment = e, .perf = dbo_perf_create(&err)};
    dbo_simulated run;
    uint32_t shown;
    assert_non_null(r.perf);
    simulate(&r, &run, &shown);
    assert_int_equal(dbo_speed_find(r.perf, e, &run, shown, 0, &w.findings, &err), DBO_OK);
    w.step_us = run.metrics.step_us.present ? run.metrics.step_us.value : 0;
    w.replay_us = replay_us(r.perf, e, &run, shown);
    w.split = run.results[run.class_of[shown]].cut.num_ubatches > 1;
    w.eager = run.results[run.class_of[shown]].ran != DBO_GRAPH_FULL;
    dbo_simulated_fini(&run);
    dbo_perf_destroy(r.perf);
    return w;
}

static double lost_us(const watched *w, dbo_finding_kind kind)
{
    for (uint32_t i = 0; i < w->findings.count; i++)
        if (w->findings.items[i].kind == kind)
            return w->findings.items[i].lost_us;
    return 0;
}

/* ---- true within ---- */

#define TINY_US 1.0 /* of roundings, op by op */

/* The first thing that was not as said. Scripts run on threads of their own, on which a test cannot
 * fail, so it is kept until the test looks. */
static char mistake[400];

/* What is said against what it is; `share` of it may be missed. */
static void expect_us(const char *name, const char *what, double said_us, double is_us,
                      double share)
{
    if (fabs(said_us - is_us) > TINY_US + share * fabs(is_us) && !mistake[0])
        snprintf(mistake, sizeof mistake, "%.200s: %.80s: %.3f us are said, %.3f us it is", name,
                 what, said_us, is_us);
}

static void expect_no_mistake(void)
{
    if (mistake[0])
        fail_msg("%s", mistake);
}

static void expect_step(const char *name, const watched *w)
{
    expect_us(name, "the step, played again", w->replay_us, w->step_us, 0.0001);
}

/* Who waits, and for whom, is named, and the finding is where the waiting op is. */
static void expect_ops(const char *name, const dbo_experiment *e, const watched *w)
{
    for (uint32_t i = 0; i < w->findings.count; i++) {
        const dbo_finding *f = &w->findings.items[i];
        bool pair = f->kind == DBO_FINDING_FALSE_DEPENDENCY;
        bool single = f->kind == DBO_FINDING_LOST_OVERLAP;
        char a[64], b[64], begins[176] = "";
        dbo_template_op_text(e->schedule, f->ops[0], a, sizeof a);
        dbo_template_op_text(e->schedule, f->ops[1], b, sizeof b);
        if (pair)
            snprintf(begins, sizeof begins, "%s waits for %s, ", a, b);
        else if (single)
            snprintf(begins, sizeof begins, "the host waits for %s before the next ubatch ", a);
        bool right = f->num_ops == (pair     ? 2u
                                    : single ? 1u
                                             : 0u) &&
                     strncmp(f->what, begins, strlen(begins)) == 0 &&
                     (f->num_ops == 0 || (f->ubatch == dbo_op_id_ubatch(f->ops[0]) &&
                                          f->layer == dbo_op_id_layer(f->ops[0]) &&
                                          f->rank == dbo_op_id_rank(f->ops[0])));
        if (!right && !mistake[0])
            snprintf(mistake, sizeof mistake, "%.100s: '%.200s' names other ops", name, f->what);
    }
}

/* A step of ubatches that were issued one by one: nothing that was found is there on a machine that
 * lacks it, and nothing else; of these counts how many there were. */
typedef struct counts {
    uint32_t host, sms, work, waits;
} counts;

static void expect_machines(const char *name, const dbo_experiment *e, const watched *w,
                            counts *found)
{
    what_if alone = {.alone = true}, own_work = {.own_work = true}, no_waits = {.no_waits = true};
    double host_us = lost_us(w, DBO_FINDING_HOST_BOUND);
    double sms_us = lost_us(w, DBO_FINDING_CONTENTION);
    double work_us = lost_us(w, DBO_FINDING_FALSE_DEPENDENCY);
    double waits_us = lost_us(w, DBO_FINDING_LOST_OVERLAP);
    double host_is_us = w->step_us - step_of_free_host_us(e);
    expect_us(name, "host_bound", host_us, host_is_us > 0 ? host_is_us : 0, 0.01);
    if (e->has_hardware) {
        double sms_is_us = w->step_us - step_us(e, &alone);
        expect_us(name, "contention", sms_us, sms_is_us > 0 ? sms_is_us : 0, 0.01);
    }
    double work_is_us = w->step_us - step_us(e, &own_work);
    expect_us(name, "false_dependency", work_us, work_is_us > 0 ? work_is_us : 0, 0.01);
    if (waits_us > 0) /* it is not found where the waiting ubatch goes on first */
        expect_us(name, "lost_overlap", waits_us, w->step_us - step_us(e, &no_waits), 0.1);
    found->host += host_us > TINY_US;
    found->sms += sms_us > TINY_US;
    found->work += work_us > TINY_US;
    found->waits += waits_us > TINY_US;
}

/* ---- the workloads ---- */

typedef struct workload {
    const char *script, *sets[MAX_SETS];
} workload;

#define V2      "workloads/deepseek-v2-lite-two-ranks"
#define DECODE  "workloads/deepseek-v3-decode"
#define PREFILL "workloads/deepseek-v3-prefill"
#define QWEN    "workloads/qwen3-235b-decode"
#define HT      "all2all_backend=deepep_high_throughput"
#define LL      "all2all_backend=deepep_low_latency"
#define EAGER   "cudagraph_mode=NONE"
#define ROCM    "hardware=MI300X", "check_memory=false"

static void load(const workload *w, dbo_experiment *out, char *name, size_t size)
{
    char path[512];
    dbo_error err = {0};
    dbo_load_options options = {.sets = w->sets};
    size_t length = (size_t)snprintf(name, size, "%s", w->script);
    while (options.num_sets < MAX_SETS && w->sets[options.num_sets])
        length +=
            (size_t)snprintf(name + length, size - length, " %s", w->sets[options.num_sets++]);
    snprintf(path, sizeof path, "%s/scripts/%s.lua", DBO_SOURCE_DIR, w->script);
    if (dbo_experiment_load(out, path, &options, &err) != DBO_OK)
        fail_msg("%s: %s", name, err.message);
}

static void workloads_are_told_the_truth(void **state)
{
    (void)state;
    static const workload workloads[] = {
        {V2, {0}},
        {V2, {EAGER}},
        {V2, {HT}},
        {V2, {HT, "batch.num_tokens=128,64"}},
        {V2, {HT, "batch.num_tokens=64,128", "batch.jitter_us=300"}},
        {V2, {EAGER, "batch.num_tokens=64,128", "batch.jitter_us=300"}},
        {DECODE, {0}},
        {DECODE, {EAGER}},
        {DECODE, {HT}},
        {DECODE, {HT, "executor=thread"}},
        {DECODE, {HT, "rules=v1"}},
        {DECODE, {HT, ROCM}},
        {DECODE, {HT, "enable_dbo=false", "ubatch_size=3"}},
        {DECODE, {HT, "batch.num_tokens=32"}},
        {DECODE, {HT, "batch.num_tokens=160"}},
        {PREFILL, {0}},
        {PREFILL, {LL}},
        {PREFILL, {ROCM}},
        {PREFILL, {"dbo_comm_sms=4"}},
        {PREFILL, {"dbo_comm_sms=40", "hardware.comm_sms=40"}},
        {PREFILL, {"data_parallel_size=8", "nodes=1", "check_memory=false"}},
        {QWEN, {0}},
        {QWEN, {EAGER}},
        {QWEN, {HT}},
        {QWEN, {HT, ROCM}},
        {QWEN, {HT, "enable_dbo=false", "ubatch_size=4"}},
        {PREFILL, {"fault=event-after-yield"}},
        {PREFILL, {"fault=yield-after-dispatch"}},
        {DECODE, {HT, "fault=shared-event"}},
        {DECODE, {HT, "fault=yield-after-dispatch"}},
        {V2, {HT, "fault=yield-after-dispatch"}},
        {"faults/no-sm-partition", {"fault=no-sm-partition"}},
        {"faults/ll-all-sms", {"fault=ll-all-sms", EAGER}},
    };
    counts found = {0};
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        dbo_experiment e;
        char name[256];
        load(&workloads[i], &e, name, sizeof name);
        watched w = watch(&e);
        expect_step(name, &w);
        expect_ops(name, &e, &w);
        if (w.split && w.eager)
            expect_machines(name, &e, &w, &found);
        expect_no_mistake();
        dbo_findings_fini(&w.findings);
        dbo_experiment_fini(&e);
    }
    assert_true(found.host >= 15 && found.sms >= 10 && found.work >= 3 && found.waits >= 2);
}

/* What the sweeps of scripts/whatif run. */
typedef struct sweep {
    counts found;
    uint32_t runs;
} sweep;

static dbo_status look_at_run(void *self, const dbo_experiment *e, uint64_t fault_reached,
                              dbo_error *err)
{
    (void)fault_reached;
    sweep *s = self;
    watched w = watch(e);
    (void)err;
    s->runs++;
    expect_step(e->name, &w);
    if (w.split && w.eager)
        expect_machines(e->name, e, &w, &s->found);
    dbo_findings_fini(&w.findings);
    return DBO_OK;
}

static void what_ifs_are_told_the_truth(void **state)
{
    (void)state;
    static const char *const names[] = {"comm-sms", "ep-size", "late-previous-event",
                                        "shared-expert-earlier", "threshold"};
    sweep s = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        dbo_experiment none;
        dbo_error err = {0};
        dbo_load_options options = {.may_return_nothing = true, .ran = look_at_run, .ran_self = &s};
        options.limits.print_to = fopen("/dev/null", "w");
        assert_non_null(options.limits.print_to);
        snprintf(path, sizeof path, "%s/scripts/whatif/%s.lua", DBO_SOURCE_DIR, names[i]);
        if (dbo_experiment_load(&none, path, &options, &err) != DBO_OK)
            fail_msg("%s: %s", path, err.message);
        fclose(options.limits.print_to);
        expect_no_mistake();
    }
    assert_true(s.runs >= 30 && s.found.sms >= 10 && s.found.work == 1);
}

/* ---- random ones ---- */

static void set_fault(dbo_experiment *e, const char *name)
{
    dbo_error err = {0};
    e->has_fault = true;
    assert_int_equal(dbo_fault_parse(&e->fault, name, &err), DBO_OK);
}

static void random_steps_are_told_the_truth(void **state)
{
    (void)state;
    static const char *const faults[] = {NULL, NULL, "event-after-yield", "shared-event",
                                         "yield-after-dispatch"};
    counts found = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *fault = faults[seed % (sizeof faults / sizeof faults[0])];
        dbo_experiment e;
        random_experiment(&e, seed, RANDOM_ANY);
        if (fault)
            set_fault(&e, fault);
        watched w = watch(&e);
        if (w.replay_us > 0) /* the group was not idle */
            expect_step(e.name, &w);
        if (w.split && w.eager)
            expect_machines(e.name, &e, &w, &found);
        expect_no_mistake();
        dbo_findings_fini(&w.findings);
        dbo_experiment_fini(&e);
    }
    assert_true(found.host >= SEEDS / 10 && found.sms >= SEEDS / 100);
    assert_true(found.work >= SEEDS / 50 && found.waits >= SEEDS / 100);
}

/* ---- what faults cost ---- */

/* Schedules of given durations: an event that is recorded late, or shared, costs what the step is
 * longer than without, to the nanosecond. */
static void late_events_cost_what_is_said(void **state)
{
    (void)state;
    uint32_t lost = 0;
    dbo_prng prng;
    dbo_prng_init(&prng, 5, 7);
    for (uint32_t i = 0; i < SEEDS / 2; i++) {
        dbo_experiment e;
        char name[256];
        load(&(workload){"faults/event-after-yield", {0}}, &e, name, sizeof name);
        double *const us[] = {&e.fixed.a0_us, &e.fixed.a1_us, &e.fixed.d_us,   &e.fixed.m_us,
                              &e.fixed.c_us,  &e.fixed.s_us,  &e.fixed.copy_us};
        for (size_t k = 0; k < sizeof us / sizeof us[0]; k++)
            *us[k] = (double)prng_range(&prng, 1, 200);
        set_fault(&e, i % 2 ? "event-after-yield" : "shared-event");
        watched w = watch(&e);
        double is_us = w.step_us - step_without_fault_us(&e);
        double said_us = lost_us(&w, DBO_FINDING_FALSE_DEPENDENCY);
        if (fabs(said_us - (is_us > 0 ? is_us : 0)) > 0.0015)
            fail_msg("schedule %u: %.3f us are said to be lost, %.3f us it is", i, said_us, is_us);
        lost += is_us > 10;
        dbo_findings_fini(&w.findings);
        dbo_experiment_fini(&e);
    }
    assert_true(lost >= SEEDS / 4);
}

static void captures_and_padding_cost_what_is_said(void **state)
{
    (void)state;
    static const struct {
        workload scene;
        dbo_finding_kind kind;
        double share; /* of what it is that may be missed */
    } scenes[] = {
        {{"faults/capture-while-serving", {"fault=capture-while-serving"}},
         DBO_FINDING_CAPTURE_WHILE_SERVING,
         0.001},
        {{"faults/padding-routed", {"fault=padding-routed"}}, DBO_FINDING_PADDING_WASTE, 0.1},
        {{"faults/padding-routed", {"fault=padding-routed", "batch.num_tokens=200,150"}},
         DBO_FINDING_PADDING_WASTE,
         0.1},
        {{"faults/padding-routed", {"fault=padding-routed", "batch.num_tokens=130,130"}},
         DBO_FINDING_PADDING_WASTE,
         0.1},
        {{QWEN, {"fault=padding-routed", "batch.num_tokens=121"}}, DBO_FINDING_PADDING_WASTE, 0.1},
        {{V2, {"fault=padding-routed", "batch.num_tokens=66"}}, DBO_FINDING_PADDING_WASTE, 0.1},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        dbo_experiment e;
        char name[256];
        load(&scenes[i].scene, &e, name, sizeof name);
        watched w = watch(&e);
        double is_us = w.step_us - step_without_fault_us(&e);
        expect_step(name, &w);
        /* rows fill tiles and wake experts one at a time, which a thousandth of a step may be */
        expect_us(name, dbo_finding_kind_name(scenes[i].kind), lost_us(&w, scenes[i].kind), is_us,
                  scenes[i].share + 0.001 * w.step_us / is_us);
        expect_no_mistake();
        assert_true(is_us > 10);
        dbo_findings_fini(&w.findings);
        dbo_experiment_fini(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workloads_are_told_the_truth),
        cmocka_unit_test(what_ifs_are_told_the_truth),
        cmocka_unit_test(random_steps_are_told_the_truth),
        cmocka_unit_test(late_events_cost_what_is_said),
        cmocka_unit_test(captures_and_padding_cost_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
