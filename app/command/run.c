/* run.c: `dbo run SCRIPT`: loads an experiment, simulates it, prints what happened. */
#include "app/command/script.h"
#include "app/io/output_json.h"
#include "app/say/describe.h"
#include "app/say/result_text.h"
#include "app/show/stepper.h"
#include "lab/world/backends.h"
#include "lab/world/outcome.h"
#include "viz/text/layers.h"
#include "viz/text/wrap.h"
#include "viz/trace/trace_json.h"

#include <stdio.h>
#include <unistd.h>

typedef struct run_arguments {
    dbo_script_arguments script;
    dbo_cli_output json, trace;
    const dbo_backend *backend; /* NULL: the simulator */
    dbo_layers layers;
    bool step;
    dbo_cli_number width;
} run_arguments;

static dbo_status take_backend(void *at, const char *text, dbo_error *err)
{
    return dbo_backend_find(text, at, err);
}

static dbo_status take_layers(void *at, const char *text, dbo_error *err)
{
    return dbo_layers_parse(text, at, err);
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

static void add_heading(const dbo_layers *layers, uint32_t rank, uint32_t width, dbo_strbuf *text)
{
    char heading[80];
    if (!layers->given)
        snprintf(heading, sizeof heading, "\nOne layer of rank %u in steady state\n", rank);
    else if (layers->first == layers->last)
        snprintf(heading, sizeof heading, "\nLayer %u of rank %u\n", layers->first, rank);
    else
        snprintf(heading, sizeof heading, "\nLayers %u to %u of rank %u\n", layers->first,
                 layers->last, rank);
    dbo_wrap_document(text, heading, width);
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
        dbo_wrap_document(text,
                          is_there ? "\nNothing takes any time there: no timeline\n"
                                   : "\nToo few layers for one in steady state: no timeline\n",
                          style.width);
        return DBO_OK;
    }
    add_heading(layers, outcome->rank, style.width, text);
    return dbo_text_timeline(text, runs, num_runs, style, err);
}

static dbo_status print_text(const dbo_cli *cli, const run_arguments *arguments,
                             const dbo_outcome *outcome, dbo_text_style style, dbo_error *err)
{
    dbo_strbuf text = {0};
    dbo_experiment_describe(outcome->result.experiment, style.width, &text);
    if (arguments->backend && !arguments->backend->simulated)
        dbo_strbuf_printf(&text, "Ran on   the back end '%s': times are its own\n",
                          arguments->backend->name);
    dbo_result_decision(&outcome->result, style.width, &text);
    dbo_result_memory(&outcome->result, style.width, &text);
    dbo_result_warnings(&outcome->result, style.width, &text);
    dbo_status status = draw(outcome, &arguments->layers, style, &text, err);
    if (status == DBO_OK) {
        dbo_strbuf_add(&text, "\n");
        dbo_result_print(&outcome->result, style, &text);
        status = dbo_cli_print(cli, &text, err);
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

static dbo_status show(const dbo_cli *cli, run_arguments *arguments, const dbo_outcome *outcome,
                       dbo_error *err)
{
    const dbo_layers *layers = &arguments->layers;
    uint32_t width = arguments->width.given ? arguments->width.value : dbo_cli_width();
    const dbo_text_style style = {.width = width, .ascii = cli->ascii, .colour = cli->use_color};
    dbo_cli_insist(!arguments->step); /* the terminal is given back by whoever took it */
    if (arguments->step)
        DBO_TRY(dbo_step_through(outcome, layers, style, STDIN_FILENO, stdout, dbo_cli_interrupted,
                                 err));
    else if (!dbo_cli_document_on_stdout(cli))
        DBO_TRY(print_text(cli, arguments, outcome, style, err));
    if (arguments->json.path)
        DBO_TRY(write_json(outcome, &arguments->json.file, err));
    if (arguments->trace.path)
        DBO_TRY(write_trace(outcome, layers, &arguments->trace.file, err));
    return DBO_OK;
}

static void warn_unreached(dbo_fault_id id)
{
    fprintf(stderr, "dbo: warning: the fault %s made no difference: this run cannot reach it\n",
            dbo_fault_describe(id).name);
}

/* Simulates, prints, writes. */
static int run_experiment(dbo_cli *cli, run_arguments *arguments, const dbo_experiment *experiment)
{
    dbo_error err = {0};
    dbo_outcome outcome;
    uint64_t fault_reached = 0;
    const dbo_simulate_options options = {
        .backend = arguments->backend, .cancelled = dbo_cli_interrupted, .log = &cli->log};
    if (dbo_layers_check(&arguments->layers, experiment->num_layers, &err) != DBO_OK ||
        dbo_cli_open_outputs(cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    dbo_status status = dbo_script_check_need(&arguments->script, experiment, &err);
    if (status == DBO_OK)
        status = dbo_simulate(experiment, &options, &outcome, &err);
    if (status == DBO_OK) {
        fault_reached = outcome.on.fault_reached;
        status = show(cli, arguments, &outcome, &err);
        dbo_outcome_fini(&outcome);
    }
    if (status == DBO_OK && experiment->has_fault && fault_reached == 0)
        warn_unreached(experiment->fault.id);
    return dbo_cli_end_with(status, &err);
}

/* What a script runs itself, with --fault. */
typedef struct reached {
    uint32_t num_runs;
    uint64_t times;
    dbo_fault_id id;
} reached;

static dbo_status count_reached(void *self, const dbo_experiment *experiment,
                                uint64_t fault_reached, dbo_error *err)
{
    reached *r = self;
    (void)err;
    if (experiment->has_fault) {
        r->num_runs++;
        r->times += fault_reached;
        r->id = experiment->fault.id;
    }
    return DBO_OK;
}

/* The script returned no experiment, and printed: was more than that asked for? */
static int end_of_printing(const run_arguments *arguments, const reached *r)
{
    const dbo_script_arguments *script = &arguments->script;
    const char *option = arguments->json.path      ? "--json"
                         : arguments->trace.path   ? "--trace"
                         : arguments->step         ? "--step"
                         : arguments->backend      ? "--backend"
                         : arguments->layers.given ? "--layers"
                         : script->num_made > 0    ? NULL /* which took what was set */
                         : script->fault           ? "--fault"
                         : script->executor[0]     ? "--executor"
                         : script->num_sets > 0    ? "--set"
                                                   : NULL;
    if (option)
        return dbo_script_fail_nothing(script, option);
    if (script->fault && r->num_runs == 0)
        return dbo_script_fail_nothing(script, "--fault");
    if (r->num_runs > 0 && r->times == 0)
        warn_unreached(r->id);
    return dbo_cli_end();
}

static int run(dbo_cli *cli, void *given)
{
    run_arguments *arguments = given;
    const char *document = dbo_cli_document_on_stdout(cli);
    dbo_error err = {0};
    dbo_experiment experiment;
    if (arguments->step && document) {
        dbo_fail(&err, DBO_INVALID, NULL,
                 "--step prints to the standard output, which --%s takes for itself", document);
        return dbo_cli_fail_usage(&err);
    }
    if (dbo_script_find_input(&arguments->script, cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    reached runs = {0};
    arguments->script.may_only_print = true;
    arguments->script.ran = count_reached;
    arguments->script.ran_self = &runs;
    if (arguments->backend && !arguments->backend->simulated)
        arguments->script.no_runs = "--backend";
    /* What a script prints must not get into a document. */
    if (dbo_script_load(&arguments->script, document ? stderr : stdout, cli, &experiment, &err) !=
        DBO_OK)
        return dbo_script_fail(&arguments->script, &err);
    if (experiment.num_layers == 0)
        return end_of_printing(arguments, &runs);
    int code = run_experiment(cli, arguments, &experiment);
    dbo_experiment_fini(&experiment);
    return code;
}

const dbo_command dbo_command_run = {
    DBO_COMMAND_TEXT(run),
    .arguments = (const dbo_cli_option[]){DBO_SCRIPT_ARGUMENT(run_arguments, true), {0}},
    .options =
        (const dbo_cli_option[]){
            DBO_SCRIPT_OPTIONS(run_arguments),
            {"backend", "NAME", .kind = DBO_CLI_TAKEN, .take = take_backend,
             .at = offsetof(run_arguments, backend), .example = "sim",
             .help = "Run on the back end NAME: sim, or what libdbo_NAME.so gives, which is "
                     "looked for in DBO_BACKEND_PATH, beside dbo, in ../lib/dbo, and where the "
                     "system's loader looks",
             .usual = "sim"},
            {"layers", "A:B", .kind = DBO_CLI_TAKEN, .take = take_layers,
             .at = offsetof(run_arguments, layers), .example = "4:5",
             .help = "Show the layers A to B, both included, on the timeline and in the trace; "
                     "--set layers=N runs fewer",
             .usual = "one in steady state, and the whole step"},
            {"json", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(run_arguments, json),
             .help =
                 "Write the result to FILE as JSON; - is the standard output, with nothing else "
                 "on it"},
            {"trace", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(run_arguments, trace),
             .help = "Write what happened to FILE as trace events, for ui.perfetto.dev; - as with "
                     "--json"},
            {"step", .at = offsetof(run_arguments, step),
             .help =
                 "Go through the step by hand-offs: each key (or line of input) is one, q ends"},
            {"width", "N", .kind = DBO_CLI_NUMBER, .min = 20, .max = 1000,
             .at = offsetof(run_arguments, width),
             .help = "Draw for N columns, at least 20; the lines of the notation are never broken",
             .usual = "the terminal's"},
            {0}},
    .bytes = sizeof(run_arguments), .run = run};
