/* check.c: `dbo check`: is a run, or a bare program, right in every order of completion?
 *
 * With a script the run is simulated and checked (check.h); with --fault alone the script is the
 * fault's own scene; with --program there is no run.
 */
#include "lab/check/check.h"

#include "app/command/check_program.h"
#include "app/command/check_runs.h"
#include "app/command/script.h"
#include "app/say/fault_text.h"
#include "app/say/findings_text.h"
#include "viz/text/wrap.h"
#include "viz/trace/trace_json.h"

#include <stdio.h>

typedef struct check_arguments {
    dbo_script_arguments script;
    const char *program;
    dbo_cli_output json, trace;
    dbo_cli_number layers;
    bool perf;
} check_arguments;

/* ---- scripts ---- */

static void say_left_out(const char *what, const char *why, dbo_strbuf *text)
{
    if (why[0])
        dbo_wrap_printf(text, "", dbo_cli_width(), "%s: %s", what, why);
}

/* What was found, and what was looked at for that. */
static void summarise(const check_arguments *arguments, const dbo_check_report *report,
                      dbo_strbuf *text)
{
    dbo_strbuf line = {0};
    dbo_strbuf_printf(&line, "%s: ", arguments->script.path);
    if (report->status != DBO_OK)
        dbo_strbuf_printf(&line, "the run ended with an error; %u order%s explored", report->orders,
                          report->orders == 1 ? "" : "s");
    else
        dbo_findings_count(&report->findings, report->orders, &line);
    if (report->turns > 0)
        dbo_strbuf_printf(&line, ", and %u states of the hand-offs of threads", report->turns);
    if (report->rows > 0)
        dbo_strbuf_printf(&line, "; rows of %llu tokens computed with DBO and without",
                          (unsigned long long)report->rows);
    dbo_strbuf_add(text, report->findings.count > 0 ? "\n" : "");
    dbo_wrap_end(text, "", &line, dbo_cli_width());
    say_left_out("rows were not compared", report->no_rows, text);
    say_left_out("hand-offs of threads were not explored", report->no_turns, text);
}

static dbo_status print_report(const dbo_cli *cli, const check_arguments *arguments,
                               const dbo_check_report *report, dbo_error *err)
{
    dbo_strbuf text = {0};
    if (dbo_cli_document_on_stdout(cli))
        return DBO_OK;
    dbo_wrap_document(&text, dbo_strbuf_text(&report->notes), dbo_cli_width());
    dbo_findings_text(&report->findings, dbo_cli_width(), &text);
    if (dbo_strbuf_text(&report->turns_text)[0]) {
        dbo_wrap_document(&text, "\nAn order of the threads' steps that leads there\n",
                          dbo_cli_width());
        dbo_wrap_document(&text, dbo_strbuf_text(&report->turns_text), dbo_cli_width());
    }
    summarise(arguments, report, &text);
    return dbo_cli_print(cli, &text, err);
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
    if (!dbo_trace_json_write(&one, 1, output->file))
        return dbo_fail_memory(err, "the trace's names");
    return dbo_output_commit(output, err);
}

/* Nothing was found: has the fault had an occasion to show? */
static dbo_status check_reached(const check_arguments *arguments, const dbo_experiment *experiment,
                                const dbo_check_report *report, dbo_error *err)
{
    if (!experiment->has_fault)
        return DBO_OK;
    const dbo_fault_info info = dbo_fault_describe(experiment->fault.id);
    if (report->fault_reached && (info.outcome != DBO_FAULT_ROWS || report->rows > 0))
        return DBO_OK;
    if (report->fault_reached)
        return dbo_fail(err, DBO_INVALID, "Check fewer tokens, or shorter contexts.",
                        "%s: %s shows in rows alone, and they were not compared",
                        arguments->script.path, info.name);
    return dbo_fail(err, DBO_INVALID, "dbo check --fault NAME alone runs the fault's own scene.",
                    "%s cannot reach the fault %s", arguments->script.path, info.name);
}

/* Writes and prints what there is; returns the exit code. */
static int conclude(const dbo_cli *cli, check_arguments *arguments,
                    const dbo_experiment *experiment, const dbo_check_report *report)
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
    if (arguments->json.path)
        status = dbo_findings_write(&report->findings, &scope, &arguments->json.file, &err);
    if (status == DBO_OK && arguments->trace.path)
        status = write_trace(experiment, report, &arguments->trace.file, &err);
    if (status == DBO_OK)
        status = print_report(cli, arguments, report, &err);
    int code = dbo_cli_end_with(status, &err);
    if (code != DBO_EXIT_OK)
        return code;
    if (report->status != DBO_OK)
        return dbo_cli_fail(&report->error);
    if (report->findings.count > 0)
        return DBO_EXIT_FINDINGS;
    return check_reached(arguments, experiment, report, &err) == DBO_OK ? DBO_EXIT_OK
                                                                        : dbo_cli_fail_usage(&err);
}

static int run_script(dbo_cli *cli, check_arguments *arguments, const dbo_check_job *job)
{
    dbo_error err = {0};
    dbo_check_report report;
    if (dbo_cli_open_outputs(cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (dbo_script_check_need(&arguments->script, job->experiment, &err) != DBO_OK ||
        dbo_check_experiment(job, &report, &err) != DBO_OK)
        return dbo_cli_fail(&err);
    int code = conclude(cli, arguments, job->experiment, &report);
    dbo_check_report_fini(&report);
    return code;
}

/* A script that returns nothing: what it has run itself. */
static dbo_status write_runs(const dbo_cli *cli, check_arguments *arguments,
                             const dbo_check_runs *runs, dbo_error *err)
{
    dbo_strbuf text = {0};
    if (arguments->json.path)
        DBO_TRY(dbo_findings_write(&runs->findings, &(dbo_findings_scope){.orders = runs->orders},
                                   &arguments->json.file, err));
    if (dbo_cli_document_on_stdout(cli))
        return DBO_OK;
    dbo_strbuf_printf(&text, "%s%s", dbo_strbuf_text(&runs->text), runs->text.len > 0 ? "\n" : "");
    dbo_check_runs_summary(runs, &text);
    return dbo_cli_print(cli, &text, err);
}

static int conclude_runs(dbo_cli *cli, check_arguments *arguments, const dbo_check_runs *runs)
{
    dbo_error err = {0};
    const char *path = arguments->script.path;
    if (runs->count == 0) {
        dbo_fail(&err, DBO_INVALID, "End the script with: return dbo.experiment { ... }",
                 "%s neither returns an experiment nor runs one: there is nothing to check", path);
        return dbo_cli_fail(&err);
    }
    if (arguments->trace.path)
        return dbo_script_fail_nothing(&arguments->script, "--trace");
    if (dbo_cli_open_outputs(cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    int code = dbo_cli_end_with(write_runs(cli, arguments, runs, &err), &err);
    if (code != DBO_EXIT_OK)
        return code;
    if (runs->findings.count > 0)
        return DBO_EXIT_FINDINGS;
    if (!runs->has_fault || runs->fault_reached)
        return DBO_EXIT_OK;
    dbo_fail(&err, DBO_INVALID, "dbo check --fault NAME alone runs the fault's own scene.",
             "no run of %s can reach its fault", path);
    return dbo_cli_fail_usage(&err);
}

/* Loads the script, which may run experiments itself, and checks those or the one it returns. One
 * that ends with an error, because its run cannot end, has findings all the same. */
static int load_and_check(dbo_cli *cli, check_arguments *arguments)
{
    dbo_error err = {0};
    dbo_experiment experiment = {0};
    dbo_check_runs runs;
    dbo_check_job job = {.experiment = &experiment,
                         .all_speed = arguments->perf,
                         .cancelled = dbo_cli_interrupted,
                         .log = &cli->log};
    dbo_check_runs_init(&runs, &job, arguments->script.path, dbo_cli_width());
    arguments->script.may_only_print = true;
    arguments->script.ran = dbo_check_runs_one;
    arguments->script.ran_self = &runs;
    dbo_status status =
        dbo_script_load(&arguments->script, dbo_cli_document_on_stdout(cli) ? stderr : stdout, cli,
                        &experiment, &err);
    int code = status == DBO_OK ? DBO_EXIT_OK : dbo_script_fail(&arguments->script, &err);
    if (experiment.num_layers > 0) {
        code = run_script(cli, arguments, &job);
        dbo_experiment_fini(&experiment);
    } else if (status == DBO_OK || (code == DBO_EXIT_FAILED && runs.findings.count > 0)) {
        code = conclude_runs(cli, arguments, &runs);
    }
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
    const char *of_run = arguments->script.fault         ? "--fault"
                         : arguments->script.path        ? "a script"
                         : arguments->trace.path         ? "--trace"
                         : arguments->perf               ? "--perf"
                         : arguments->script.executor[0] ? "--executor"
                         : arguments->script.num_sets    ? "--set"
                                                         : NULL;
    if (arguments->program && of_run)
        return dbo_fail(err, DBO_INVALID, "See dbo help check.",
                        "--program is checked alone: there is no run for %s", of_run);
    if (arguments->layers.given && !arguments->program)
        return dbo_fail(err, DBO_INVALID, "The script's own setting is --set layers=N.",
                        "--layers is for --program only");
    return DBO_OK;
}

/* --fault alone runs the fault's own scene. */
static dbo_status find_input(dbo_cli *cli, check_arguments *arguments, dbo_error *err)
{
    dbo_script_arguments *script = &arguments->script;
    DBO_TRY(check_arguments_fit(arguments, err));
    if (arguments->program)
        return dbo_cli_check_outputs(cli, arguments->program, err);
    if (script->path)
        return dbo_script_find_input(script, cli, err);
    DBO_TRY(dbo_fault_scene(script->fault, script->found, sizeof script->found, err));
    script->path = script->found;
    return dbo_cli_check_outputs(cli, script->path, err);
}

static int check(dbo_cli *cli, void *given)
{
    check_arguments *arguments = given;
    dbo_error err = {0};
    if (find_input(cli, arguments, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (arguments->program)
        return dbo_cli_check_program(cli, arguments->program, arguments->layers.value,
                                     &arguments->json);
    return load_and_check(cli, arguments);
}

const dbo_command dbo_command_check = {
    DBO_COMMAND_TEXT(check),
    .arguments = (const dbo_cli_option[]){DBO_SCRIPT_ARGUMENT(check_arguments, false), {0}},
    .options =
        (const dbo_cli_option[]){
            DBO_SCRIPT_OPTIONS(check_arguments),
            {"perf", .at = offsetof(check_arguments, perf),
             .help = "Report lost time of any size, not only what costs more than 2 % of the step"},
            {"json", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(check_arguments, json),
             .help = "Write the findings as JSON; - is stdout"},
            {"trace", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(check_arguments, trace),
             .help = "Write what happened to FILE as trace events, findings marked, for "
                     "ui.perfetto.dev"},
            {"program", "FILE", .kind = DBO_CLI_TEXT, .at = offsetof(check_arguments, program),
             .help = "A program as JSON, as dbo show program --json prints it; - is stdin"},
            {"layers", "N", .kind = DBO_CLI_NUMBER, .min = 1, .max = 64,
             .at = offsetof(check_arguments, layers), .usual = "1",
             .help = "With --program: run it as N layers, one after the other"},
            {0}},
    .bytes = sizeof(check_arguments), .run = check};
