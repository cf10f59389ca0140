/* cli_check.c: `dbo check`: is a run, or a bare program, right in every order of completion?
 *
 * With a script the run is simulated and checked (check.h); with --fault alone the script is the
 * fault's own scene; with --program there is no run.
 */
#include "app/cli.h"
#include "app/cli_check_program.h"
#include "app/cli_check_runs.h"
#include "app/cli_script.h"
#include "app/io/output.h"
#include "app/say/fault_text.h"
#include "app/say/findings_text.h"
#include "lab/check/check.h"
#include "viz/text/wrap.h"
#include "viz/trace/trace_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_PROGRAM = 1, KEY_JSON, KEY_TRACE, KEY_PERF, KEY_LAYERS };

static const struct argp_option check_options[] = {
    {NULL, 0, NULL, 0, "Of check:", 1},
    DBO_SCRIPT_OPTIONS,
    DBO_SCRIPT_OPTION_FAULT,
    {"perf", KEY_PERF, NULL, 0,
     "Report lost time of any size, not only what costs more than 2 % of the step", 1},
    {"trace", KEY_TRACE, "FILE", 0,
     "Write what happened to FILE as trace events, findings marked, for ui.perfetto.dev", 1},
    {"program", KEY_PROGRAM, "FILE", 0,
     "A program as JSON, as dbo show program --json prints it; - is stdin", 1},
    {"layers", KEY_LAYERS, "N", 0,
     "With --program: run it as N layers, one after the other, 1 to 64; else once", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the findings as JSON; - is stdout", 1},
    {0}};

static const char check_doc[] =
    "Look for what may go wrong in any order in which the work of a run can complete: races, "
    "blocks that are freed too early, waits without end, rows that differ from those without DBO; "
    "and for lost time. SCRIPT is simulated, also with other ranks late and requests in another "
    "order; if it returns no experiment, each that it runs is. Without one, --fault runs the "
    "fault's "
    "own scene. Exit code 3 if there is something, 1 "
    "if the run was refused, 2 if the script cannot reach the fault."
    "\vExamples:\n"
    "  dbo check scripts/workloads/deepseek-v3-prefill.lua\n"
    "  dbo check --fault no-comm-wait\n"
    "  dbo check scripts/workloads/deepseek-v3-prefill.lua --fault event-after-yield\n"
    "  dbo show program scripts/workloads/deepseek-v3-prefill.lua --json >p.json\n"
    "  dbo check scripts/whatif/late-previous-event.lua\n"
    "  dbo check --program p.json\n"
    "  dbo check --program p.json --layers=3 --json findings.json\n";

typedef struct check_arguments {
    dbo_script_arguments script;
    const char *program, *json, *trace;
    uint32_t layers; /* 0: not said */
    bool perf;
} check_arguments;

static error_t parse_layers(check_arguments *arguments, const char *text)
{
    char *end;
    errno = 0;
    long layers = strtol(text, &end, 10);
    bool number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!number || layers < 1 || layers > (long)DBO_CHECK_MAX_LAYERS) {
        dbo_fail(&arguments->script.err, DBO_INVALID, NULL,
                 "--layers is a number from 1 to %u, not '%.40s'", DBO_CHECK_MAX_LAYERS, text);
        return EINVAL;
    }
    arguments->layers = (uint32_t)layers;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    check_arguments *arguments = state->input;
    switch (key) {
    case KEY_PROGRAM: arguments->program = arg; return 0;
    case KEY_JSON: arguments->json = arg; return 0;
    case KEY_TRACE: arguments->trace = arg; return 0;
    case KEY_LAYERS: return parse_layers(arguments, arg);
    case KEY_PERF: arguments->perf = true; return 0;
    default: return dbo_script_option(&arguments->script, key, arg);
    }
}

/* ---- scripts ---- */

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void say_left_out(const char *what, const char *why, dbo_strbuf *text)
{
    dbo_strbuf line;
    if (!why[0])
        return;
    dbo_strbuf_init(&line);
    dbo_strbuf_printf(&line, "%s: %s", what, why);
    dbo_wrap(text, "", dbo_strbuf_text(&line), dbo_cli_text_width());
    text->failed = text->failed || line.failed;
    dbo_strbuf_fini(&line);
}

/* What was found, and what was looked at for that. */
static void summarise(const check_arguments *arguments, const dbo_check_report *report,
                      dbo_strbuf *text)
{
    uint32_t speed = 0, count = report->findings.count;
    dbo_strbuf line;
    dbo_strbuf_init(&line);
    for (uint32_t i = 0; i < count; i++)
        speed += dbo_finding_is_speed(report->findings.items[i].kind);
    dbo_strbuf_printf(&line, "%s: ", arguments->script.path);
    if (report->status != DBO_OK)
        dbo_strbuf_add(&line, "the run ended with an error");
    else if (count == 0)
        dbo_strbuf_add(&line, "nothing found");
    else
        dbo_strbuf_printf(&line, "%u finding%s, %u of them about speed", count, plural(count),
                          speed);
    dbo_strbuf_printf(&line, "; %u order%s explored", report->orders, plural(report->orders));
    if (report->turns > 0)
        dbo_strbuf_printf(&line, ", and %u states of the hand-offs of threads", report->turns);
    if (report->rows > 0)
        dbo_strbuf_printf(&line, "; rows of %llu tokens computed with DBO and without",
                          (unsigned long long)report->rows);
    dbo_strbuf_add(text, count > 0 ? "\n" : "");
    dbo_wrap(text, "", dbo_strbuf_text(&line), dbo_cli_text_width());
    say_left_out("rows were not compared", report->no_rows, text);
    say_left_out("hand-offs of threads were not explored", report->no_turns, text);
    text->failed = text->failed || line.failed;
    dbo_strbuf_fini(&line);
}

static dbo_status print_report(const check_arguments *arguments, const dbo_check_report *report,
                               dbo_error *err)
{
    dbo_strbuf text;
    if (dbo_output_names_stdout(arguments->json) || dbo_output_names_stdout(arguments->trace))
        return DBO_OK;
    dbo_strbuf_init(&text);
    dbo_wrap_document(&text, dbo_strbuf_text(&report->notes), dbo_cli_text_width());
    dbo_findings_text(&report->findings, dbo_cli_text_width(), &text);
    if (dbo_strbuf_text(&report->turns_text)[0]) {
        dbo_strbuf_add(&text, "\nAn order of the threads' steps that leads there\n");
        dbo_wrap_document(&text, dbo_strbuf_text(&report->turns_text), dbo_cli_text_width());
    }
    summarise(arguments, report, &text);
    dbo_status status = text.failed ? dbo_fail_memory(err, "the printed findings") : DBO_OK;
    if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status;
}

/* The measured step; a run that has failed has none, so all that it came to. */
static dbo_status write_trace(const dbo_experiment *experiment, const dbo_check_report *report,
                              dbo_output *output, dbo_error *err)
{
    const dbo_simulated *run = &report->run;
    dbo_trace_json_run one = {.title = "DBO on",
                              .trace = &run->trace,
                              .num_ranks = run->num_classes,
                              .ranks = run->first_rank,
                              .sms = experiment->hardware.sms,
                              .findings = &report->findings};
    if (run->results) {
        one.start_ns = run->results[run->class_of[report->shown]].begin_ns;
        one.end_ns = run->results[run->class_of[report->shown]].end_ns;
    }
    for (uint64_t i = 0; !run->results && i < run->trace.num_spans; i++) {
        const dbo_span *span = dbo_trace_span(&run->trace, i);
        one.end_ns = span->end_ns > one.end_ns ? span->end_ns : one.end_ns;
    }
    if (!run->results) { /* nor are its ranks known, unless each was simulated by itself */
        uint32_t ranks = experiment->config.data_parallel_size;
        one.num_ranks = ranks <= DBO_CHECK_UNFOLDED_RANKS ? ranks : 1;
        one.ranks = NULL;
    }
    if (!dbo_trace_json_write(&one, 1, output->file)) {
        dbo_output_discard(output);
        return dbo_fail_memory(err, "the trace's names");
    }
    return dbo_output_commit(output, err);
}

/* Nothing was found: has the fault had an occasion to show? */
static dbo_status check_reached(const check_arguments *arguments, const dbo_experiment *experiment,
                                const dbo_check_report *report, dbo_error *err)
{
    const dbo_fault *fault = &experiment->fault;
    uint32_t ranks = experiment->config.data_parallel_size;
    if (!experiment->has_fault)
        return DBO_OK;
    const dbo_fault_info info = dbo_fault_describe(fault->id);
    if (report->fault_reached && (info.outcome != DBO_FAULT_ROWS || report->rows > 0))
        return DBO_OK;
    if (report->fault_reached)
        return dbo_fail(err, DBO_INVALID, "Check fewer tokens, or shorter contexts.",
                        "%s: %s shows in rows alone, and they were not compared",
                        arguments->script.path, info.name);
    if (fault->rank >= ranks)
        return dbo_fail(err, DBO_INVALID, NULL, "%s has %u rank%s: there is no rank %u for %s",
                        arguments->script.path, ranks, plural(ranks), fault->rank, info.name);
    return dbo_fail(err, DBO_INVALID, "dbo check --fault NAME alone runs the fault's own scene.",
                    "%s cannot reach the fault %s", arguments->script.path, info.name);
}

/* Writes and prints what there is; returns the exit code. */
static int conclude(const check_arguments *arguments, const dbo_experiment *experiment,
                    const dbo_check_report *report, dbo_output *json, dbo_output *trace)
{
    const dbo_finding_names names = {.op_text = dbo_template_op_text, .self = experiment->schedule};
    const dbo_findings_scope scope = {.orders = report->orders,
                                      .rows = report->rows,
                                      .no_rows = report->no_rows,
                                      .error =
                                          report->status == DBO_OK ? NULL : report->error.message,
                                      .names = names};
    dbo_error err = {0};
    dbo_status status = DBO_OK;
    if (json->file)
        status = dbo_findings_write(&report->findings, &scope, json, &err);
    if (status == DBO_OK && trace->file)
        status = write_trace(experiment, report, trace, &err);
    if (status == DBO_OK)
        status = print_report(arguments, report, &err);
    if (status != DBO_OK)
        return dbo_cli_fail(&err);
    int code = dbo_cli_end();
    if (code != DBO_EXIT_OK)
        return code;
    if (report->status != DBO_OK)
        return dbo_cli_fail(&report->error);
    if (report->findings.count > 0)
        return DBO_EXIT_FINDINGS;
    return check_reached(arguments, experiment, report, &err) == DBO_OK ? DBO_EXIT_OK
                                                                        : dbo_cli_fail_usage(&err);
}

static int run_script(const check_arguments *arguments, const dbo_check_job *job)
{
    dbo_error err = {0};
    dbo_output json = {0}, trace = {0};
    dbo_check_report report;
    int code;
    if (dbo_cli_open_outputs(arguments->json, &json, arguments->trace, &trace, &err) != DBO_OK) {
        code = dbo_cli_fail_usage(&err);
    } else if (dbo_check_experiment(job, &report, &err) != DBO_OK) {
        code = dbo_cli_fail(&err);
    } else {
        code = conclude(arguments, job->experiment, &report, &json, &trace);
        dbo_check_report_fini(&report);
    }
    dbo_output_discard(&json);
    dbo_output_discard(&trace);
    return code;
}

/* A script that returns nothing: what it has run itself. */
static dbo_status write_runs(const check_arguments *arguments, const dbo_check_runs *runs,
                             dbo_output *json, dbo_error *err)
{
    dbo_strbuf text;
    if (json->file)
        DBO_TRY(dbo_findings_write(&runs->findings, &(dbo_findings_scope){.orders = runs->orders},
                                   json, err));
    if (dbo_output_names_stdout(arguments->json))
        return DBO_OK;
    dbo_strbuf_init(&text);
    dbo_strbuf_printf(&text, "%s%s", dbo_strbuf_text(&runs->text), runs->text.len > 0 ? "\n" : "");
    dbo_check_runs_summary(runs, &text);
    dbo_status status = text.failed ? dbo_fail_memory(err, "the printed findings") : DBO_OK;
    if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status;
}

static dbo_status check_runs_fit(const check_arguments *arguments, const dbo_check_runs *runs,
                                 dbo_error *err)
{
    const char *path = arguments->script.path;
    if (runs->count == 0)
        return dbo_fail(err, DBO_INVALID, "End the script with: return dbo.experiment { ... }",
                        "%s neither returns an experiment nor runs one: there is nothing to check",
                        path);
    if (arguments->trace)
        return dbo_fail(err, DBO_INVALID, "Let the script return one of its experiments.",
                        "%s returns no experiment whose run --trace could write", path);
    return DBO_OK;
}

static int conclude_runs(const check_arguments *arguments, const dbo_check_runs *runs)
{
    dbo_error err = {0};
    dbo_output json = {0};
    if (check_runs_fit(arguments, runs, &err) != DBO_OK)
        return dbo_cli_fail(&err);
    if (arguments->json && dbo_output_open(&json, arguments->json, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (write_runs(arguments, runs, &json, &err) != DBO_OK)
        return dbo_cli_fail(&err);
    int code = dbo_cli_end();
    if (code != DBO_EXIT_OK)
        return code;
    if (runs->findings.count > 0)
        return DBO_EXIT_FINDINGS;
    if (!runs->has_fault || runs->fault_reached)
        return DBO_EXIT_OK;
    dbo_fail(&err, DBO_INVALID, "dbo check --fault NAME alone runs the fault's own scene.",
             "no run of %s can reach its fault", arguments->script.path);
    return dbo_cli_fail_usage(&err);
}

/* Loads the script, which may run experiments itself, and checks those or the one it returns. One
 * that ends with an error, because its run cannot end, has findings all the same. */
static int load_and_check(const dbo_cli *cli, check_arguments *arguments)
{
    dbo_experiment experiment = {0};
    dbo_check_runs runs;
    int code;
    bool only_document =
        dbo_output_names_stdout(arguments->json) || dbo_output_names_stdout(arguments->trace);
    dbo_check_job job = {.experiment = &experiment,
                         .all_speed = arguments->perf,
                         .cancelled = dbo_cli_interrupted,
                         .log = &cli->log};
    dbo_check_runs_init(&runs, &job, arguments->script.path, dbo_cli_width());
    arguments->script.may_only_print = true;
    arguments->script.ran = dbo_check_runs_one;
    arguments->script.ran_self = &runs;
    bool loaded = dbo_script_load(&arguments->script, "check", only_document ? stderr : stdout,
                                  &experiment, &code);
    if (loaded && experiment.num_layers > 0)
        code = run_script(arguments, &job);
    else if (loaded || (code == DBO_EXIT_FAILED && runs.findings.count > 0))
        code = conclude_runs(arguments, &runs);
    if (loaded && experiment.num_layers > 0)
        dbo_experiment_fini(&experiment);
    dbo_check_runs_fini(&runs);
    return code;
}

/* ---- the command ---- */

static dbo_status check_arguments_fit(const check_arguments *arguments, dbo_error *err)
{
    bool script = arguments->script.path || arguments->script.fault;
    if (!arguments->program && !script)
        return dbo_fail(err, DBO_INVALID, "See dbo help check.",
                        "check what? Give a script, --fault NAME or --program FILE");
    if (arguments->program &&
        (script || arguments->trace || arguments->perf || arguments->script.num_sets > 0))
        return dbo_fail(err, DBO_INVALID, "See dbo help check.",
                        "--program is checked alone: there is no run");
    if (arguments->layers > 0 && !arguments->program)
        return dbo_fail(err, DBO_INVALID, "The script's own setting is --set layers=N.",
                        "--layers is for --program only");
    if (dbo_output_names_stdout(arguments->json) && dbo_output_names_stdout(arguments->trace))
        return dbo_fail(err, DBO_INVALID, "Give one of them a file.",
                        "--json and --trace cannot both go to the standard output");
    return dbo_cli_check_outputs(arguments->json, arguments->trace,
                                 arguments->program ? arguments->program : arguments->script.path,
                                 err);
}

int dbo_command_check(int argc, char **argv)
{
    static const struct argp argp = {check_options, parse_option, "[SCRIPT]", check_doc,
                                     NULL,          NULL,         NULL};
    check_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    char scene[4096];
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.script.err, &code))
        return code;
    if (check_arguments_fit(&arguments, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (arguments.program)
        return dbo_cli_check_program(&(dbo_check_program_arguments){
            .path = arguments.program, .json = arguments.json, .layers = arguments.layers});
    if (!arguments.script.path) {
        if (dbo_fault_scene(arguments.script.fault, scene, sizeof scene, &err) != DBO_OK)
            return dbo_cli_fail_usage(&err);
        arguments.script.path = scene;
    }
    return load_and_check(&cli, &arguments);
}
