/* cli_bench.c: `dbo bench [NAME]`: measures, prints a table, writes JSON. */
#include "app/bench/bench.h"
#include "app/cli.h"
#include "app/io/output.h"
#include "core/base/suggest.h"
#include "core/base/units.h"
#include "lab/files/json_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_JSON = 1, KEY_MODEL, KEY_RANKS, KEY_RUNS };

#define DEFAULT_RUNS  9
#define DEFAULT_PAIRS 31

static const struct argp_option bench_options[] = {
    {NULL, 0, NULL, 0, "Of bench:", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the figures there; - is the standard output", 1},
    {NULL, 0, NULL, 0, "Of bench sim:", 2},
    {"model", KEY_MODEL, "FILE", 0,
     "The workload as JSON: ranks, layers, dur_us, imbalance, extra_deps; what is absent is the "
     "standard's",
     2},
    {"ranks", KEY_RANKS, "N,...", 0, "Rank counts (default: the model's; 8,64,256)", 2},
    {NULL, 0, NULL, 0, "Of bench sim and bench check:", 3},
    {"runs", KEY_RUNS, "N", 0,
     "sim: fresh processes a rank count (default 9); check: pairs of runs (default 31); medians "
     "are "
     "shown",
     3},
    {0}};

static const char bench_doc[] =
    "Measure dbo itself. NAME is one of handoff (the turn passes from one ubatch to the other), "
    "sim "
    "(a step of 61 layers, simulated) and check (runs with the checker beside runs without); "
    "without it, all."
    "\vExamples:\n"
    "  dbo bench\n"
    "  dbo bench handoff --json handoff.json\n"
    "  dbo bench sim --ranks 256 --runs 21\n"
    "  dbo bench check --runs 51 --json check.json\n"
    "  echo '{\"layers\": 8, \"dur_us\": {\"x0\": 120.5}}' | dbo bench sim --model - --json -\n"
    "\nThe floor is a bare event loop, a program of its own that ./dev bench builds beside dbo.";

typedef struct bench_arguments {
    const char *name, *json_path, *model_path;
    uint32_t runs; /* 0: not given */
    uint32_t num_ranks, ranks[DBO_BENCH_MAX_RANKS];
    dbo_error err;
} bench_arguments;

/* ---- the command line ---- */

static const char *const bench_names[] = {"handoff", "sim", "check"};

static error_t parse_ranks(bench_arguments *arguments, const char *text)
{
    const char *at = text;
    arguments->num_ranks = 0;
    for (;;) {
        char *end = NULL;
        long ranks = strtol(at, &end, 10);
        if (end == at || ranks < 1 || ranks > (long)DBO_MAX_RANKS || (*end && *end != ',') ||
            arguments->num_ranks == DBO_BENCH_MAX_RANKS) {
            dbo_fail(&arguments->err, DBO_INVALID, "For example: --ranks 8,64,256",
                     "--ranks is 1 to %d numbers from 1 to %u, not '%.60s'", DBO_BENCH_MAX_RANKS,
                     DBO_MAX_RANKS, text);
            return EINVAL;
        }
        arguments->ranks[arguments->num_ranks++] = (uint32_t)ranks;
        if (*end == '\0')
            return 0;
        at = end + 1;
    }
}

static error_t parse_runs(bench_arguments *arguments, const char *text)
{
    char *end = NULL;
    long runs = strtol(text, &end, 10);
    if (end == text || *end || runs < 1 || runs > DBO_BENCH_MAX_RUNS) {
        dbo_fail(&arguments->err, DBO_INVALID, NULL, "--runs is a number from 1 to %d, not '%.40s'",
                 DBO_BENCH_MAX_RUNS, text);
        return EINVAL;
    }
    arguments->runs = (uint32_t)runs;
    return 0;
}

static error_t parse_name(bench_arguments *arguments, const char *word)
{
    char hint[128];
    dbo_suggestion near = dbo_suggest_begin(word);
    if (arguments->name) {
        dbo_fail(&arguments->err, DBO_INVALID, "Give one name, or none for all.",
                 "%.60s is one benchmark too many", word);
        return EINVAL;
    }
    for (size_t i = 0; i < sizeof bench_names / sizeof *bench_names; i++) {
        dbo_suggest_offer(&near, bench_names[i]);
        if (strcmp(word, bench_names[i]) == 0)
            arguments->name = bench_names[i];
    }
    if (arguments->name)
        return 0;
    dbo_suggest_hint(&near, hint, sizeof hint);
    dbo_fail(&arguments->err, DBO_INVALID, hint[0] ? hint : "See dbo help bench.",
             "unknown benchmark '%.60s'", word);
    return EINVAL;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    bench_arguments *arguments = state->input;
    switch (key) {
    case KEY_JSON: arguments->json_path = arg; return 0;
    case KEY_MODEL: arguments->model_path = arg; return 0;
    case KEY_RANKS: return parse_ranks(arguments, arg);
    case KEY_RUNS: return parse_runs(arguments, arg);
    case ARGP_KEY_ARG: return parse_name(arguments, arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool wanted(const bench_arguments *arguments, const char *name)
{
    return !arguments->name || strcmp(arguments->name, name) == 0;
}

/* ---- tables ---- */

static void print_handoff(FILE *file, const dbo_bench_handoff_result *result)
{
    fprintf(file, "Hand-off between two ubatches (dbo_yield), median\n");
    fprintf(file, "  fibers %8.1f ns\n  threads %7.1f ns\n", result->handoff_ns,
            result->thread_handoff_ns);
}

static void print_sim(FILE *file, const dbo_bench_sim_options *options,
                      const dbo_bench_sim_result *result)
{
    fprintf(file, "Simulation of %u layers, median of %u fresh processes\n", options->model.layers,
            options->runs);
    fprintf(file, "%7s %9s %9s %13s %9s %10s %12s %6s\n", "ranks", "ops", "spans", "makespan us",
            "wall ms", "ops/s", "floor ops/s", "ratio");
    for (uint32_t i = 0; i < result->num_rows; i++) {
        const dbo_bench_sim_row *row = &result->rows[i];
        fprintf(file, "%7u %9llu %9llu %13.3f %9.3f %10.0f", row->ranks,
                (unsigned long long)row->ops, (unsigned long long)row->spans,
                dbo_us_from_ns(row->makespan_ns), row->wall_s * 1e3, row->ops_per_s);
        if (row->floor_ratio > 0)
            fprintf(file, " %12.0f %6.2f\n", row->floor_ops_per_s, row->floor_ratio);
        else
            fprintf(file, " %12s %6s\n", "-", "-");
    }
    if (!(result->floor_ratio > 0))
        fprintf(file, "There is no floor to compare with: %s is missing; ./dev bench builds it.\n",
                result->floor_path);
}

static void print_check(FILE *file, const dbo_bench_check_options *options,
                        const dbo_bench_check_result *result)
{
    fprintf(file, "A run with the checker and without, median of %u pairs\n", options->pairs);
    fprintf(file, "%-30s %6s %7s %9s %9s %11s %6s\n", "workload", "ranks", "folded", "spans",
            "wall ms", "checked ms", "ratio");
    for (uint32_t i = 0; i < DBO_BENCH_CHECK_ROWS; i++) {
        const dbo_bench_check_row *row = &result->rows[i];
        fprintf(file, "%-30s %6u %7s %9llu %9.3f %11.3f %6.2f\n", row->workload, row->ranks,
                row->folded ? "yes" : "no", (unsigned long long)row->spans, row->wall_s * 1e3,
                row->checked_wall_s * 1e3, row->ratio);
    }
}

/* ---- JSON ---- */

static void put_ratio(dbo_json_writer *w, double ratio)
{
    if (ratio > 0)
        dbo_json_member_double(w, "floor_ratio", ratio);
    else
        dbo_json_member_null(w, "floor_ratio");
}

static void put_sim(dbo_json_writer *w, const dbo_bench_sim_result *result)
{
    put_ratio(w, result->floor_ratio);
    dbo_json_key(w, "sim");
    dbo_json_open_array(w);
    for (uint32_t i = 0; i < result->num_rows; i++) {
        const dbo_bench_sim_row *row = &result->rows[i];
        dbo_json_open_object_line(w);
        dbo_json_member_int(w, "ranks", row->ranks);
        dbo_json_member_int(w, "ops", (int64_t)row->ops);
        dbo_json_member_int(w, "spans", (int64_t)row->spans);
        dbo_json_member_double(w, "makespan_us", dbo_us_from_ns(row->makespan_ns));
        dbo_json_member_double(w, "wall_s", row->wall_s);
        dbo_json_member_double(w, "ops_per_s", row->ops_per_s);
        put_ratio(w, row->floor_ratio);
        dbo_json_close(w);
    }
    dbo_json_close(w);
}

static void put_check(dbo_json_writer *w, const dbo_bench_check_result *result)
{
    dbo_json_key(w, "check");
    dbo_json_open_array(w);
    for (uint32_t i = 0; i < DBO_BENCH_CHECK_ROWS; i++) {
        const dbo_bench_check_row *row = &result->rows[i];
        dbo_json_open_object_line(w);
        dbo_json_member_string(w, "workload", row->workload);
        dbo_json_member_int(w, "ranks", row->ranks);
        dbo_json_member_bool(w, "folded", row->folded);
        dbo_json_member_int(w, "spans", (int64_t)row->spans);
        dbo_json_member_double(w, "wall_s", row->wall_s);
        dbo_json_member_double(w, "checked_wall_s", row->checked_wall_s);
        dbo_json_member_double(w, "ratio", row->ratio);
        dbo_json_close(w);
    }
    dbo_json_close(w);
}

typedef struct measured {
    bool has_handoff, has_sim, has_check;
    dbo_bench_handoff_result handoff;
    dbo_bench_sim_result sim;
    dbo_bench_check_result check;
} measured;

static dbo_status write_json(FILE *file, const measured *m, dbo_error *err)
{
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_file, file, 1);
    dbo_json_open_object(&w);
    if (m->has_handoff) {
        dbo_json_member_double(&w, "handoff_ns", m->handoff.handoff_ns);
        dbo_json_member_double(&w, "thread_handoff_ns", m->handoff.thread_handoff_ns);
    }
    if (m->has_sim)
        put_sim(&w, &m->sim);
    if (m->has_check)
        put_check(&w, &m->check);
    dbo_json_close(&w);
    return dbo_json_writer_finish(&w, err);
}

/* ---- the command ---- */

/* Measures what is wanted; tables to `table` (NULL: none) as soon as they are known: what is known
 * is shown before the next, longer part, or not at all. */
static dbo_status measure(measured *m, const dbo_bench_sim_options *options,
                          const dbo_bench_check_options *check, FILE *table, dbo_error *err)
{
    if (m->has_handoff) {
        DBO_TRY(dbo_bench_handoff(&m->handoff, dbo_cli_interrupted, err));
        if (table)
            print_handoff(table, &m->handoff);
    }
    if (table)
        DBO_TRY(dbo_output_flush_stdout(err));
    if (m->has_check) {
        DBO_TRY(dbo_bench_check(check, &m->check, err));
        if (table)
            print_check(table, check, &m->check);
    }
    if (table)
        DBO_TRY(dbo_output_flush_stdout(err));
    if (m->has_sim) {
        DBO_TRY(dbo_bench_sim(options, &m->sim, err));
        if (table)
            print_sim(table, options, &m->sim);
    }
    return DBO_OK;
}

static dbo_status read_model(const bench_arguments *arguments, dbo_bench_sim_options *options,
                             dbo_error *err)
{
    dbo_bench_model *model = &options->model;
    dbo_bench_model_init(model);
    if (arguments->model_path)
        DBO_TRY(dbo_bench_model_read(model, arguments->model_path, err));
    if (arguments->num_ranks > 0) {
        model->num_ranks = arguments->num_ranks;
        memcpy(model->ranks, arguments->ranks, sizeof model->ranks);
    }
    return DBO_OK;
}

static int run_bench(const bench_arguments *arguments)
{
    dbo_error err = {0};
    dbo_output output = {0};
    FILE *progress = isatty(STDERR_FILENO) ? stderr : NULL;
    dbo_bench_sim_options options = {.runs = arguments->runs ? arguments->runs : DEFAULT_RUNS,
                                     .progress = progress,
                                     .cancelled = dbo_cli_interrupted};
    const dbo_bench_check_options check = {.pairs =
                                               arguments->runs ? arguments->runs : DEFAULT_PAIRS,
                                           .progress = progress,
                                           .cancelled = dbo_cli_interrupted};
    measured m = {.has_handoff = wanted(arguments, "handoff"),
                  .has_sim = wanted(arguments, "sim"),
                  .has_check = wanted(arguments, "check")};
    dbo_status status = read_model(arguments, &options, &err);
    if (status != DBO_OK)
        return status == DBO_IO ? dbo_cli_fail_usage(&err) : dbo_cli_fail(&err);
    if (arguments->json_path && dbo_output_open(&output, arguments->json_path, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    FILE *table = output.is_stdout ? NULL : stdout; /* the JSON alone */
    status = measure(&m, &options, &check, table, &err);
    if (status == DBO_OK && output.file)
        status = write_json(output.file, &m, &err);
    if (status == DBO_OK && output.file)
        status = dbo_output_commit(&output, &err);
    if (status == DBO_OK)
        return dbo_cli_end();
    dbo_output_discard(&output);
    return dbo_cli_fail(&err);
}

int dbo_command_bench(int argc, char **argv)
{
    static const struct argp argp = {bench_options, parse_option, "[NAME]", bench_doc,
                                     NULL,          NULL,         NULL};
    bench_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    int code = 0;
    if (argc == 2 && strcmp(argv[1], DBO_BENCH_ONCE) == 0)
        return dbo_bench_sim_once();
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    if (!wanted(&arguments, "sim") && (arguments.model_path || arguments.num_ranks > 0)) {
        dbo_fail(&err, DBO_INVALID, NULL, "--model and --ranks are of bench sim, not of %s",
                 arguments.name);
        return dbo_cli_fail_usage(&err);
    }
    if (!wanted(&arguments, "sim") && !wanted(&arguments, "check") && arguments.runs > 0) {
        dbo_fail(&err, DBO_INVALID, NULL, "--runs is of bench sim and bench check, not of %s",
                 arguments.name);
        return dbo_cli_fail_usage(&err);
    }
    return run_bench(&arguments);
}
