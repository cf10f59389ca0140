/* cli_run.c: `dbo run SCRIPT`: loads an experiment, simulates it, prints what happened. */
#include "app/cli.h"
#include "app/describe.h"
#include "app/lua_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SET = 1, KEY_WIDTH };

#define MAX_SETS 256

static const struct argp_option run_options[] = {
    {NULL, 0, NULL, 0, "Of run:", 1},
    {"set", KEY_SET, "KEY=VALUE", 0,
     "Override a key of the experiment; KEY may lead inside: batch.num_tokens, model.layers, "
     "hardware.sms, costs.D. As often as wanted",
     1},
    {"width", KEY_WIDTH, "N", 0, "Draw for N columns (default: the terminal's; at least 80)", 1},
    {0}};

static const char run_doc[] =
    "Simulate one step of the experiment that SCRIPT returns."
    "\vExamples:\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua\n"
    "  dbo run scripts/workloads/deepseek-v3-prefill.lua --set hardware=H20\n";

typedef struct dbo_run_arguments {
    const char *script;
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
    case KEY_WIDTH: return parse_width(arguments, arg);
    case ARGP_KEY_ARG:
        if (arguments->script)
            return fail(arguments, "Give one script.", "%.200s is one script too many", arg);
        arguments->script = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
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
    dbo_experiment experiment;
    if (dbo_experiment_load(&experiment, arguments.script, &options, &err) != DBO_OK)
        return err.status == DBO_IO ? dbo_cli_fail_usage(&err) : dbo_cli_fail(&err);
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_experiment_describe(&experiment, &text);
    fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    dbo_experiment_fini(&experiment);
    return dbo_cli_end(&cli);
}
