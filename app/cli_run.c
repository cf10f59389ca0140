/* cli_run.c: `dbo run SCRIPT`: loads an experiment, simulates it, prints what happened. */
#include "app/cli.h"
#include "app/describe.h"
#include "app/lua_load.h"
#include "app/output.h"
#include "app/simulate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SET = 1, KEY_JSON, KEY_WIDTH };

#define MAX_SETS 256

static const struct argp_option run_options[] = {
    {NULL, 0, NULL, 0, "Of run:", 1},
    {"set", KEY_SET, "KEY=VALUE", 0,
     "Override a key of the experiment; KEY may lead inside: batch.num_tokens, model.layers, "
     "hardware.sms, costs.D. As often as wanted",
     1},
    {"json", KEY_JSON, "FILE", 0,
     "Write the result to FILE as JSON; - is the standard output, with nothing else on it", 1},
    {"width", KEY_WIDTH, "N", 0, "Draw for N columns (default: the terminal's; at least 80)", 1},
    {0}};

static const char run_doc[] =
    "Simulate one step of the experiment that SCRIPT returns."
    "\vExamples:\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua\n"
    "  dbo run scripts/workloads/deepseek-v3-prefill.lua --set hardware=H20\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua --json - | less\n";

typedef struct dbo_run_arguments {
    const char *script, *json;
    const char *sets[MAX_SETS];
    uint32_t num_sets;
    uint32_t width;
    dbo_error err;
} dbo_run_arguments;

static error_t fail(dbo_run_arguments *arguments, const char *hint, const char *what,
                    const char *word)
{
    dbo_fail(&arguments->err, DBO_INVALID, hint, what, word);
    return EINVAL;
}

static error_t parse_width(dbo_run_arguments *arguments, const char *text)
{
    char *end = NULL;
    long width = strtol(text, &end, 10);
    if (end == text || *end || width < 80 || width > 1000)
        return fail(arguments, NULL, "--width is a number from 80 to 1000, not '%.40s'", text);
    arguments->width = (uint32_t)width;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    dbo_run_arguments *arguments = state->input;
    switch (key) {
    case KEY_SET:
        if (arguments->num_sets == MAX_SETS)
            return fail(arguments, NULL, "more --set than dbo takes, at %.60s", arg);
        if (!strchr(arg, '=') || arg[0] == '=')
            return fail(arguments, "For example: --set nodes=4", "--set %.60s is not KEY=VALUE",
                        arg);
        arguments->sets[arguments->num_sets++] = arg;
        return 0;
    case KEY_JSON: arguments->json = arg; return 0;
    case KEY_WIDTH: return parse_width(arguments, arg);
    case ARGP_KEY_ARG:
        if (arguments->script)
            return fail(arguments, "Give one script.", "%.200s is one script too many", arg);
        arguments->script = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static dbo_text_style style_of(const dbo_cli *cli, const dbo_run_arguments *arguments)
{
    uint32_t width = arguments->width ? arguments->width : dbo_cli_width();
    return (dbo_text_style){.width = width, .ascii = cli->ascii, .colour = cli->use_color};
}

/* One steady-state layer without DBO above the same layer with it, on one scale. */
static dbo_status draw(const dbo_outcome *outcome, dbo_text_style style, dbo_strbuf *text,
                       dbo_error *err)
{
    dbo_text_run runs[2];
    uint32_t num_runs = 0;
    const struct {
        const char *title;
        const dbo_simulated *run;
    } sides[2] = {{"DBO off", &outcome->off}, {"DBO on", &outcome->on}};
    for (int i = 0; i < (outcome->split ? 2 : 1); i++) {
        const dbo_metrics *metrics = &sides[i].run->metrics;
        if (!metrics->has_steady_layer)
            continue;
        runs[num_runs++] = (dbo_text_run){.title = sides[i].title,
                                          .trace = &sides[i].run->trace,
                                          .rank = outcome->rank,
                                          .start_ns = metrics->steady_start_ns,
                                          .end_ns = metrics->steady_end_ns};
    }
    if (num_runs == 0) {
        dbo_strbuf_add(text, "\nToo few layers for one in steady state: no timeline\n");
        return DBO_OK;
    }
    dbo_strbuf_printf(text, "\nOne layer of rank %u in steady state\n", outcome->rank);
    return dbo_text_timeline(text, runs, num_runs, style, err);
}

static dbo_status print_text(const dbo_outcome *outcome, dbo_text_style style, dbo_error *err)
{
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_experiment_describe(outcome->result.experiment, &text);
    dbo_result_decision(&outcome->result, &text);
    dbo_status status = draw(outcome, style, &text, err);
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
    dbo_json_writer_init(&writer, dbo_json_sink_file, output->file, 1);
    dbo_result_json(&outcome->result, &writer);
    dbo_status status = dbo_json_writer_finish(&writer, err);
    /* A sink that failed is the file's failure, and the file knows why. */
    if (status == DBO_OK || status == DBO_IO)
        return dbo_output_commit(output, err);
    return status;
}

/* Simulates, prints, writes; `output` is open if --json was given. */
static int run_experiment(const dbo_cli *cli, const dbo_run_arguments *arguments,
                          const dbo_experiment *experiment, dbo_output *output)
{
    dbo_error err = {0};
    dbo_outcome outcome;
    dbo_simulate_options options = {.cancelled = dbo_cli_interrupted};
    dbo_status status = dbo_simulate(experiment, &options, &outcome, &err);
    if (status == DBO_OK) {
        if (!output->is_stdout)
            status = print_text(&outcome, style_of(cli, arguments), &err);
        if (status == DBO_OK && output->file)
            status = write_json(&outcome, output, &err);
        dbo_outcome_fini(&outcome);
    }
    dbo_output_discard(output); /* of a committed one: nothing */
    return status == DBO_OK ? dbo_cli_end(cli) : dbo_cli_fail(&err);
}

int dbo_command_run(int argc, char **argv)
{
    static const struct argp argp = {run_options, parse_option, "SCRIPT", run_doc,
                                     NULL,        NULL,         NULL};
    dbo_run_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    if (!arguments.script) {
        dbo_fail(&err, DBO_INVALID, "For example: dbo run scripts/workloads/deepseek-v3-decode.lua",
                 "run needs a script");
        return dbo_cli_fail_usage(&err);
    }
    dbo_load_options options = {.sets = arguments.sets, .num_sets = arguments.num_sets};
    options.limits.cancelled = dbo_cli_interrupted;
    /* What a script prints must not get into a document. */
    bool only_json = arguments.json && strcmp(arguments.json, "-") == 0;
    options.limits.print_to = only_json ? stderr : stdout;
    dbo_experiment experiment;
    if (dbo_experiment_load(&experiment, arguments.script, &options, &err) != DBO_OK)
        return err.status == DBO_IO ? dbo_cli_fail_usage(&err) : dbo_cli_fail(&err);
    dbo_output output = {0};
    if (arguments.json && dbo_output_open(&output, arguments.json, &err) != DBO_OK)
        code = dbo_cli_fail_usage(&err);
    else
        code = run_experiment(&cli, &arguments, &experiment, &output);
    dbo_experiment_fini(&experiment);
    return code;
}
