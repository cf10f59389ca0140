/* bench.c: `dbo bench [NAME]`: measures, prints a table, writes JSON. */
#include "app/bench/bench_report.h"
#include "app/command/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_RUNS  9
#define DEFAULT_PAIRS 31

typedef struct bench_ranks {
    uint32_t count, ranks[DBO_BENCH_MAX_RANKS];
} bench_ranks;

typedef struct bench_arguments {
    const char *name; /* NULL: all */
    const char *model_path;
    dbo_cli_output json;
    dbo_cli_number runs;
    bench_ranks ranks;
} bench_arguments;

static const char *bench_words(size_t index)
{
    static const char *const words[] = {"handoff", "sim", "check"};
    return index < sizeof words / sizeof *words ? words[index] : NULL;
}

static dbo_status take_name(void *at, const char *text, dbo_error *err);

static dbo_status take_ranks(void *at, const char *text, dbo_error *err)
{
    bench_ranks *list = at;
    list->count = 0;
    for (const char *from = text;; from++) {
        char *end = NULL;
        long ranks = strtol(from, &end, 10);
        if (end == from || ranks < 1 || ranks > (long)DBO_MAX_RANKS || (*end && *end != ',') ||
            list->count == DBO_BENCH_MAX_RANKS)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "--ranks is 1 to %d numbers from 1 to %u, not '%.60s'",
                            DBO_BENCH_MAX_RANKS, DBO_MAX_RANKS, text);
        list->ranks[list->count++] = (uint32_t)ranks;
        if (*end == '\0')
            return DBO_OK;
        from = end;
    }
}

static bool wanted(const bench_arguments *arguments, const char *name)
{
    return !arguments->name || strcmp(arguments->name, name) == 0;
}

/* Measures what is wanted; tables to `table` (NULL: none) as soon as they are known: what is known
 * is shown before the next, longer part, or not at all. */
static dbo_status measure(dbo_bench_results *m, const dbo_bench_sim_options *options,
                          const dbo_bench_check_options *check, FILE *table, dbo_error *err)
{
    if (m->has_handoff) {
        DBO_TRY(dbo_bench_handoff(&m->handoff, dbo_cli_interrupted, err));
        if (table)
            dbo_bench_print_handoff(table, &m->handoff);
    }
    if (table)
        DBO_TRY(dbo_output_flush_stdout(err));
    if (m->has_check) {
        DBO_TRY(dbo_bench_check(check, &m->check, err));
        if (table)
            dbo_bench_print_check(table, check, &m->check);
    }
    if (table)
        DBO_TRY(dbo_output_flush_stdout(err));
    if (m->has_sim) {
        DBO_TRY(dbo_bench_sim(options, &m->sim, err));
        if (table)
            dbo_bench_print_sim(table, options, &m->sim);
    }
    return DBO_OK;
}

static dbo_status read_model(const bench_arguments *arguments, dbo_bench_model *model,
                             dbo_error *err)
{
    dbo_bench_model_init(model);
    if (arguments->model_path)
        DBO_TRY(dbo_bench_model_read(model, arguments->model_path, err));
    if (arguments->ranks.count > 0) {
        model->num_ranks = arguments->ranks.count;
        memcpy(model->ranks, arguments->ranks.ranks, sizeof model->ranks);
    }
    return DBO_OK;
}

static dbo_status run_bench(dbo_cli *cli, bench_arguments *arguments, dbo_error *err)
{
    FILE *progress = isatty(STDERR_FILENO) ? stderr : NULL;
    const dbo_cli_number *runs = &arguments->runs;
    dbo_bench_sim_options options = {.runs = runs->given ? runs->value : DEFAULT_RUNS,
                                     .progress = progress,
                                     .cancelled = dbo_cli_interrupted};
    const dbo_bench_check_options check = {.pairs = runs->given ? runs->value : DEFAULT_PAIRS,
                                           .progress = progress,
                                           .cancelled = dbo_cli_interrupted};
    dbo_bench_results m = {.has_handoff = wanted(arguments, "handoff"),
                           .has_sim = wanted(arguments, "sim"),
                           .has_check = wanted(arguments, "check")};
    FILE *table = dbo_cli_document_on_stdout(cli) ? NULL : stdout; /* the JSON alone */
    DBO_TRY(read_model(arguments, &options.model, err));
    DBO_TRY(dbo_cli_open_outputs(cli, err));
    DBO_TRY(measure(&m, &options, &check, table, err));
    if (!arguments->json.path)
        return DBO_OK;
    DBO_TRY(dbo_bench_write_json(arguments->json.file.file, &m, err));
    return dbo_output_commit(&arguments->json.file, err);
}

static int bench(dbo_cli *cli, void *given)
{
    bench_arguments *arguments = given;
    const char *of_sim = arguments->model_path ? "model" : "ranks";
    dbo_error err = {0};
    if (arguments->name && strcmp(arguments->name, DBO_BENCH_ONCE) == 0)
        return dbo_bench_sim_once();
    if (!wanted(arguments, "sim") && (arguments->model_path || arguments->ranks.count > 0))
        dbo_fail(&err, DBO_INVALID, NULL, "--%s is of bench sim, not of %s", of_sim,
                 arguments->name);
    else if (arguments->runs.given && !wanted(arguments, "sim") && !wanted(arguments, "check"))
        dbo_fail(&err, DBO_INVALID, NULL, "--runs is of bench sim and bench check, not of %s",
                 arguments->name);
    else
        dbo_cli_check_outputs(cli, arguments->model_path, &err);
    if (err.status != DBO_OK)
        return dbo_cli_fail_usage(&err);
    return dbo_cli_end_with(run_bench(cli, arguments, &err), &err);
}

const dbo_command dbo_command_bench = {
    DBO_COMMAND_TEXT(bench),
    .arguments = (const dbo_cli_option[]){{"NAME", .help = "a benchmark", .kind = DBO_CLI_TAKEN,
                                           .at = offsetof(bench_arguments, name),
                                           .words = bench_words, .take = take_name},
                                          {0}},
    .options =
        (const dbo_cli_option[]){
            {"json", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(bench_arguments, json),
             .help = "Write the figures there; - is the standard output"},
            {"model", "FILE", .kind = DBO_CLI_TEXT, .at = offsetof(bench_arguments, model_path),
             .help =
                 "sim: the workload as JSON: ranks, layers, dur_us, imbalance, extra_deps; what "
                 "is absent is the standard's"},
            {"ranks", "N,...", .kind = DBO_CLI_TAKEN, .take = take_ranks, .example = "8,64,256",
             .at = offsetof(bench_arguments, ranks), .help = "sim: rank counts",
             .usual = "the model's; 8,64,256"},
            {"runs", "N", .kind = DBO_CLI_NUMBER, .min = 1, .max = DBO_BENCH_MAX_RUNS,
             .at = offsetof(bench_arguments, runs), .usual = "9 and 31",
             .help = "sim: fresh processes a rank count; check: pairs of runs; medians are shown"},
            {0}},
    .bytes = sizeof(bench_arguments), .run = bench};

static dbo_status take_name(void *at, const char *text, dbo_error *err)
{
    const char **name = at;
    for (size_t i = 0; bench_words(i); i++)
        if (strcmp(text, bench_words(i)) == 0)
            *name = bench_words(i);
    if (strcmp(text, DBO_BENCH_ONCE) == 0)
        *name = DBO_BENCH_ONCE;
    return *name ? DBO_OK : dbo_cli_fail_word(dbo_command_bench.arguments, text, err);
}
