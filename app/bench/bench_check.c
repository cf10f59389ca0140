/* bench_check.c: what the checker costs: a run with it beside the same run without.
 *
 * Both are dbo_simulate_one of the same experiment, in this process, in pairs of which now the one
 * and now the other comes first; the ratio is the median of the pairs' ratios, so that a machine
 * that slows down slows both sides of a pair. The run with the checker is what dbo check does to
 * the run as it was given: ops and transfers say what they touch, and the checker and the watch
 * over speed are around every seam; creating them and asking both for their findings is timed, too.
 * The run without is what dbo run does. Up to 8 ranks are simulated each by itself, more are
 * folded, as dbo check has it.
 */
#include "app/bench/bench.h"
#include "app/io/script_path.h"
#include "app/lua/lua_load.h"
#include "core/check/order/check.h"
#include "lab/check/check.h"
#include "lab/check/speed.h"
#include "lab/world/simulate.h"

#include <string.h>

/* The first pair warms up and is not counted. */
#define WARM_UP 1u

typedef struct workload {
    const char *name, *script;
    uint32_t ranks;
    const char *graph_mode; /* with graphs a step is one call, and the checker has nothing to do */
} workload;

static const workload workloads[] = {
    {"DeepSeek-V3 prefill, HT", "workloads/deepseek-v3-prefill.lua", 8, "NONE"},
    {"DeepSeek-V3 decode, LL, eager", "workloads/deepseek-v3-decode.lua", 8, "NONE"},
    {"DeepSeek-V3 prefill, HT", "workloads/deepseek-v3-prefill.lua", 256, "NONE"},
    {"DeepSeek-V3 decode, LL, eager", "workloads/deepseek-v3-decode.lua", 256, "NONE"},
};
#define NUM_WORKLOADS (sizeof workloads / sizeof workloads[0])

_Static_assert(NUM_WORKLOADS == DBO_BENCH_CHECK_ROWS, "a row each");

static dbo_status load(const workload *w, dbo_experiment *out, dbo_error *err)
{
    char path[PATH_MAX], ranks[48], nodes[32], mode[32];
    const char *sets[] = {ranks, nodes, mode};
    const dbo_load_options options = {.sets = sets, .num_sets = 3};
    snprintf(ranks, sizeof ranks, "data_parallel_size=%u", w->ranks);
    snprintf(nodes, sizeof nodes, "nodes=%u", w->ranks / 8);
    snprintf(mode, sizeof mode, "cudagraph_mode=%s", w->graph_mode);
    DBO_TRY(dbo_script_path(w->script, path, sizeof path, err));
    return dbo_experiment_load(out, path, &options, err);
}

/* ---- one run ---- */

typedef struct watched {
    dbo_checker *checker;
    dbo_perf *perf;
} watched;

static dbo_status attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    watched *w = self;
    (void)rank;
    DBO_TRY(dbo_checker_attach(w->checker, seam, err));
    return dbo_perf_attach(w->perf, seam, err);
}

typedef struct timing {
    double wall_s;
    uint64_t spans;
    int64_t last_ns; /* of the trace: the same with and without */
} timing;

static void note_run(const dbo_simulated *run, timing *out)
{
    out->spans = run->trace.num_spans;
    for (uint64_t i = 0; i < run->trace.num_spans; i++) {
        const dbo_span *span = dbo_trace_span(&run->trace, i);
        out->last_ns = span->end_ns > out->last_ns ? span->end_ns : out->last_ns;
    }
}

static dbo_status run_plain(const dbo_experiment *e, timing *out, dbo_error *err)
{
    const dbo_simulate_options options = {.unfolded = e->config.data_parallel_size <=
                                                      DBO_CHECK_UNFOLDED_RANKS};
    dbo_simulated run;
    uint32_t shown;
    double begin_s = dbo_bench_now_s();
    dbo_status status = dbo_simulate_one(e, &options, true, &run, &shown, err);
    *out = (timing){.wall_s = dbo_bench_now_s() - begin_s};
    if (status == DBO_OK)
        note_run(&run, out);
    dbo_simulated_fini(&run);
    return status;
}

/* Nothing wrong is expected: a checker that stops to explain would be timed for that. */
static dbo_status nothing_wrong(const dbo_findings *findings, dbo_error *err)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (!dbo_finding_is_speed(findings->items[i].kind))
            return dbo_fail(err, DBO_INTERNAL, NULL,
                            "the checker found something in the benchmark: %.200s",
                            findings->items[i].what);
    return DBO_OK;
}

static dbo_status run_checked(const dbo_experiment *e, timing *out, dbo_error *err)
{
    watched w = {0};
    const dbo_simulate_options options = {.unfolded = e->config.data_parallel_size <=
                                                      DBO_CHECK_UNFOLDED_RANKS,
                                          .io = true,
                                          .attach = attach,
                                          .attach_self = &w};
    dbo_findings findings = {0};
    dbo_simulated run;
    uint32_t shown;
    double begin_s = dbo_bench_now_s();
    w.checker = dbo_checker_create(NULL, err);
    w.perf = w.checker ? dbo_perf_create(err) : NULL;
    if (!w.perf) {
        dbo_checker_destroy(w.checker);
        return DBO_NO_MEMORY;
    }
    dbo_status status = dbo_simulate_one(e, &options, true, &run, &shown, err);
    if (status == DBO_OK)
        status = dbo_checker_finish(w.checker, DBO_OK, NULL, &findings, err);
    if (status == DBO_OK)
        status = dbo_speed_find(w.perf, e, &run, shown, DBO_PERF_THRESHOLD, &findings, err);
    *out = (timing){.wall_s = dbo_bench_now_s() - begin_s};
    if (status == DBO_OK)
        status = nothing_wrong(&findings, err);
    if (status == DBO_OK)
        note_run(&run, out);
    dbo_simulated_fini(&run);
    dbo_checker_destroy(w.checker);
    dbo_perf_destroy(w.perf);
    dbo_findings_fini(&findings);
    return status;
}

/* ---- pairs ---- */

static dbo_status run_pair(const dbo_experiment *e, uint32_t pair, timing *plain, timing *checked,
                           dbo_error *err)
{
    if (pair % 2 == 0)
        DBO_TRY(run_plain(e, plain, err));
    DBO_TRY(run_checked(e, checked, err));
    if (pair % 2 == 1)
        DBO_TRY(run_plain(e, plain, err));
    if (plain->spans == checked->spans && plain->last_ns == checked->last_ns)
        return DBO_OK;
    return dbo_fail(err, DBO_INTERNAL, NULL,
                    "a run differs when it is checked: %llu spans until %lld ns instead of %llu "
                    "until %lld ns",
                    (unsigned long long)checked->spans, (long long)checked->last_ns,
                    (unsigned long long)plain->spans, (long long)plain->last_ns);
}

static dbo_status time_row(const dbo_bench_check_options *options, const dbo_experiment *e,
                           uint32_t number, dbo_bench_check_row *row, dbo_error *err)
{
    double plain_s[DBO_BENCH_MAX_RUNS], checked_s[DBO_BENCH_MAX_RUNS], ratio[DBO_BENCH_MAX_RUNS];
    for (uint32_t i = 0; i < options->pairs + WARM_UP; i++) {
        timing plain, checked;
        if (options->cancelled && options->cancelled(NULL))
            return dbo_fail(err, DBO_CANCELLED, NULL, "the benchmark was interrupted");
        dbo_bench_progress(options->progress, "checker: row %u of %u, pair %u of %u ", number + 1,
                           DBO_BENCH_CHECK_ROWS, (i > 0 ? i - WARM_UP : 0) + 1, options->pairs);
        DBO_TRY(run_pair(e, i, &plain, &checked, err));
        if (i < WARM_UP)
            continue;
        plain_s[i - WARM_UP] = plain.wall_s;
        checked_s[i - WARM_UP] = checked.wall_s;
        ratio[i - WARM_UP] = checked.wall_s / plain.wall_s;
        row->spans = plain.spans;
    }
    row->ratio = dbo_bench_median(ratio, options->pairs);
    row->wall_s = dbo_bench_median(plain_s, options->pairs);
    row->checked_wall_s = dbo_bench_median(checked_s, options->pairs);
    return DBO_OK;
}

dbo_status dbo_bench_check(const dbo_bench_check_options *options, dbo_bench_check_result *out,
                           dbo_error *err)
{
    dbo_status status = DBO_OK;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < NUM_WORKLOADS && status == DBO_OK; i++) {
        const workload *w = &workloads[i];
        dbo_experiment experiment;
        out->rows[i] = (dbo_bench_check_row){
            .workload = w->name, .ranks = w->ranks, .folded = w->ranks > DBO_CHECK_UNFOLDED_RANKS};
        DBO_TRY(load(w, &experiment, err));
        status = time_row(options, &experiment, i, &out->rows[i], err);
        dbo_experiment_fini(&experiment);
        dbo_bench_progress(options->progress, "%s", "");
    }
    return status;
}
