/* cli_run.c: `dbo run SCRIPT`: loads an experiment, simulates it, prints what happened. */
#include "app/cli.h"
#include "app/cli_script.h"
#include "app/io/output_json.h"
#include "app/say/describe.h"
#include "app/say/result_text.h"
#include "app/show/stepper.h"
#include "lab/world/simulate.h"
#include "viz/text/layers.h"
#include "viz/trace/trace_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_JSON = 1, KEY_WIDTH, KEY_LAYERS, KEY_TRACE, KEY_STEP };

static const struct argp_option run_options[] = {
    {NULL, 0, NULL, 0, "Of run:", 1},
    DBO_SCRIPT_OPTIONS,
    DBO_SCRIPT_OPTION_FAULT,
    {"layers", KEY_LAYERS, "A:B", 0,
     "Show the layers A to B, both included, on the timeline and in the trace (default: one in "
     "steady state, and the whole step); --set layers=N runs fewer",
     1},
    {"json", KEY_JSON, "FILE", 0,
     "Write the result to FILE as JSON; - is the standard output, with nothing else on it", 1},
    {"trace", KEY_TRACE, "FILE", 0,
     "Write what happened to FILE as trace events, for ui.perfetto.dev; - as with --json", 1},
    {"step", KEY_STEP, NULL, 0,
     "Go through the step by hand-offs: each key (or line of input) is one, q ends", 1},
    {"width", KEY_WIDTH, "N", 0, "Draw for N columns (default: the terminal's; at least 80)", 1},
    {0}};

static const char run_doc[] =
    "Simulate one step of the experiment that SCRIPT returns."
    "\vExamples:\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua\n"
    "  dbo run scripts/workloads/deepseek-v3-prefill.lua --set hardware=H20\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua --layers 4:5 --trace decode.json\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua --step\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua --json - | less\n";

typedef struct dbo_run_arguments {
    dbo_script_arguments script;
    const char *json, *trace;
    dbo_layers layers;
    bool step;
    uint32_t width;
} dbo_run_arguments;

static error_t parse_width(dbo_run_arguments *arguments, const char *text)
{
    char *end = NULL;
    long width = strtol(text, &end, 10);
    if (end == text || *end || width < 80 || width > 1000) {
        dbo_fail(&arguments->script.err, DBO_INVALID, NULL,
                 "--width is a number from 80 to 1000, not '%.40s'", text);
        return EINVAL;
    }
    arguments->width = (uint32_t)width;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    dbo_run_arguments *arguments = state->input;
    switch (key) {
    case KEY_JSON: arguments->json = arg; return 0;
    case KEY_TRACE: arguments->trace = arg; return 0;
    case KEY_STEP: arguments->step = true; return 0;
    case KEY_WIDTH: return parse_width(arguments, arg);
    case KEY_LAYERS:
        return dbo_layers_parse(arg, &arguments->layers, &arguments->script.err) == DBO_OK ? 0
                                                                                           : EINVAL;
    default: return dbo_script_option(&arguments->script, key, arg);
    }
}

/* The window of a run that the timeline shows; false: it has none of it. */
static bool window_of(const dbo_simulated *run, const dbo_layers *layers, uint32_t rank,
                      int64_t *start_ns, int64_t *end_ns)
{
    if (layers->given)
        return dbo_layers_window(layers, &run->trace, rank, run->measured, start_ns, end_ns);
    *start_ns = run->metrics.steady_start_ns;
    *end_ns = run->metrics.steady_end_ns;
    return run->metrics.has_steady_layer && *start_ns < *end_ns;
}

static void add_heading(const dbo_layers *layers, uint32_t rank, dbo_strbuf *text)
{
    if (!layers->given)
        dbo_strbuf_printf(text, "\nOne layer of rank %u in steady state\n", rank);
    else if (layers->first == layers->last)
        dbo_strbuf_printf(text, "\nLayer %u of rank %u\n", layers->first, rank);
    else
        dbo_strbuf_printf(text, "\nLayers %u to %u of rank %u\n", layers->first, layers->last,
                          rank);
}

typedef struct dbo_side {
    const char *title;
    const dbo_simulated *run;
} dbo_side;

/* Without DBO, and with it if the step is split. Returns how many there are. */
static uint32_t sides_of(const dbo_outcome *outcome, dbo_side sides[2])
{
    sides[0] = (dbo_side){"DBO off", &outcome->off};
    sides[1] = (dbo_side){"DBO on", &outcome->on};
    return outcome->split ? 2 : 1;
}

/* The layers without DBO above the same with it, on one scale. */
static dbo_status draw(const dbo_outcome *outcome, const dbo_layers *layers, dbo_text_style style,
                       dbo_strbuf *text, dbo_error *err)
{
    dbo_text_run runs[2];
    dbo_side sides[2];
    uint32_t num_runs = 0, num_sides = sides_of(outcome, sides);
    for (uint32_t i = 0; i < num_sides; i++) {
        dbo_text_run *run = &runs[num_runs];
        *run = (dbo_text_run){
            .title = sides[i].title, .trace = &sides[i].run->trace, .rank = outcome->rank};
        num_runs += window_of(sides[i].run, layers, outcome->rank, &run->start_ns, &run->end_ns);
    }
    if (num_runs == 0) {
        bool is_there = layers->given || outcome->off.metrics.has_steady_layer;
        dbo_strbuf_add(text, is_there ? "\nNothing takes any time there: no timeline\n"
                                      : "\nToo few layers for one in steady state: no timeline\n");
        return DBO_OK;
    }
    add_heading(layers, outcome->rank, text);
    return dbo_text_timeline(text, runs, num_runs, style, err);
}

static dbo_status print_text(const dbo_outcome *outcome, const dbo_layers *layers,
                             dbo_text_style style, dbo_error *err)
{
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_experiment_describe(outcome->result.experiment, style.width, &text);
    dbo_result_decision(&outcome->result, style.width, &text);
    dbo_result_memory(&outcome->result, style.width, &text);
    dbo_result_warnings(&outcome->result, style.width, &text);
    dbo_status status = draw(outcome, layers, style, &text, err);
    if (status == DBO_OK) {
        dbo_strbuf_add(&text, "\n");
        dbo_result_print(&outcome->result, style, &text);
        if (text.failed)
            status = dbo_fail_memory(err, "the printed result");
        else
            fputs(dbo_strbuf_text(&text), stdout);
    }
    dbo_strbuf_fini(&text);
    return status;
}

static dbo_status write_json(const dbo_outcome *outcome, dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_output_json_begin(output, 1, &writer);
    dbo_result_json(&outcome->result, &writer);
    return dbo_output_json_end(output, &writer, err);
}

/* Both runs of every simulated rank: the whole measured step, or the layers asked for. */
static dbo_status write_trace(const dbo_outcome *outcome, const dbo_layers *layers,
                              dbo_output *output, dbo_error *err)
{
    dbo_trace_json_run runs[2];
    dbo_side sides[2];
    uint32_t num_runs = 0, num_sides = sides_of(outcome, sides);
    for (uint32_t i = 0; i < num_sides; i++) {
        const dbo_simulated *run = sides[i].run;
        const dbo_step_result *shown = &run->results[run->class_of[outcome->rank]];
        dbo_trace_json_run *one = &runs[num_runs];
        *one = (dbo_trace_json_run){.title = sides[i].title,
                                    .trace = &run->trace,
                                    .num_ranks = run->num_classes,
                                    .ranks = run->first_rank,
                                    .start_ns = shown->begin_ns,
                                    .end_ns = shown->end_ns,
                                    .sms = outcome->result.experiment->hardware.sms};
        num_runs +=
            !layers->given || window_of(run, layers, outcome->rank, &one->start_ns, &one->end_ns);
    }
    if (!dbo_trace_json_write(runs, num_runs, output->file))
        return dbo_fail_memory(err, "the trace's names");
    return dbo_output_commit(output, err);
}

/* The files of --json and --trace; open before the work is done. */
typedef struct dbo_run_outputs {
    dbo_output json, trace;
} dbo_run_outputs;

static dbo_status check_arguments(const dbo_run_arguments *arguments, dbo_error *err)
{
    bool json = dbo_output_names_stdout(arguments->json);
    bool trace = dbo_output_names_stdout(arguments->trace);
    if (json && trace)
        return dbo_fail(err, DBO_INVALID, "Give one of them a file.",
                        "--json and --trace cannot both go to the standard output");
    if (arguments->step && (json || trace))
        return dbo_fail(err, DBO_INVALID, NULL,
                        "--step prints to the standard output, which --%s takes for itself",
                        json ? "json" : "trace");
    return dbo_cli_check_outputs(arguments->json, arguments->trace, arguments->script.path, err);
}

static dbo_status show(const dbo_cli *cli, const dbo_run_arguments *arguments,
                       const dbo_outcome *outcome, dbo_run_outputs *outputs, dbo_error *err)
{
    const dbo_layers *layers = &arguments->layers;
    uint32_t width = arguments->width ? arguments->width : dbo_cli_width();
    const dbo_text_style style = {.width = width, .ascii = cli->ascii, .colour = cli->use_color};
    if (arguments->step)
        DBO_TRY(dbo_step_through(outcome, layers, style, STDIN_FILENO, stdout, dbo_cli_interrupted,
                                 err));
    else if (!outputs->json.is_stdout && !outputs->trace.is_stdout)
        DBO_TRY(print_text(outcome, layers, style, err));
    if (outputs->json.file)
        DBO_TRY(write_json(outcome, &outputs->json, err));
    if (outputs->trace.file)
        DBO_TRY(write_trace(outcome, layers, &outputs->trace, err));
    return DBO_OK;
}

/* Simulates, prints, writes. */
static int run_experiment(const dbo_cli *cli, const dbo_run_arguments *arguments,
                          const dbo_experiment *experiment, dbo_run_outputs *outputs)
{
    dbo_error err = {0};
    dbo_outcome outcome;
    uint64_t fault_reached = 0;
    const dbo_simulate_options options = {.cancelled = dbo_cli_interrupted, .log = &cli->log};
    dbo_status status = dbo_layers_check(&arguments->layers, experiment->num_layers, &err);
    if (status != DBO_OK)
        return dbo_cli_fail_usage(&err);
    status = dbo_simulate(experiment, &options, &outcome, &err);
    if (status == DBO_OK) {
        fault_reached = outcome.on.fault_reached;
        status = show(cli, arguments, &outcome, outputs, &err);
        dbo_outcome_fini(&outcome);
    }
    if (status == DBO_OK && experiment->has_fault && fault_reached == 0)
        fprintf(stderr, "dbo: warning: the fault %s made no difference: this run cannot reach it\n",
                dbo_fault_describe(experiment->fault.id).name);
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail(&err);
}

/* The script returned no experiment, and printed: was more than that asked for? */
static int end_of_printing(const dbo_run_arguments *arguments)
{
    const char *option = arguments->json           ? "--json"
                         : arguments->trace        ? "--trace"
                         : arguments->step         ? "--step"
                         : arguments->layers.given ? "--layers"
                                                   : NULL;
    dbo_error err = {0};
    if (!option)
        return dbo_cli_end();
    dbo_fail(&err, DBO_INVALID, "It would have to return an experiment.",
             "%.200s only prints: there is nothing for %s", arguments->script.path, option);
    return dbo_cli_fail_usage(&err);
}

int dbo_command_run(int argc, char **argv)
{
    static const struct argp argp = {run_options, parse_option, "SCRIPT", run_doc,
                                     NULL,        NULL,         NULL};
    dbo_run_arguments arguments = {0};
    dbo_run_outputs outputs = {0};
    dbo_error err = {0};
    dbo_cli cli;
    dbo_experiment experiment;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.script.err, &code))
        return code;
    if (check_arguments(&arguments, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    /* What a script prints must not get into a document. */
    bool only_document =
        dbo_output_names_stdout(arguments.json) || dbo_output_names_stdout(arguments.trace);
    arguments.script.may_only_print = true;
    arguments.script.ascii = cli.ascii;
    if (!dbo_script_load(&arguments.script, "run", only_document ? stderr : stdout, &experiment,
                         &code))
        return code;
    if (experiment.num_layers == 0) /* it only prints */
        return end_of_printing(&arguments);
    if (dbo_cli_open_outputs(arguments.json, &outputs.json, arguments.trace, &outputs.trace,
                             &err) != DBO_OK)
        code = dbo_cli_fail_usage(&err);
    else
        code = run_experiment(&cli, &arguments, &experiment, &outputs);
    dbo_output_discard(&outputs.json); /* of a committed one: nothing */
    dbo_output_discard(&outputs.trace);
    dbo_experiment_fini(&experiment);
    return code;
}
