/* cli_show.c: `dbo show WHAT SCRIPT`: one part of a step as a table. */
#include "app/cli.h"
#include "app/cli_script.h"
#include "app/show/show.h"
#include "core/base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 1, KEY_LAYER };

static const struct argp_option show_options[] = {
    {NULL, 0, NULL, 0, "Of show:", 1},
    DBO_SCRIPT_OPTIONS,
    DBO_SCRIPT_OPTION_FAULT,
    {"layer", KEY_LAYER, "N", 0, "program: of layer N (default: the last one)", 1},
    {"json", KEY_JSON, NULL, 0, "program: as JSON, which dbo check --program reads", 1},
    {0}};

static const char show_doc[] =
    "Show one part of the step that SCRIPT describes. WHAT is one of"
    "\n  vote      the matrix that the ranks exchange, and what follows from it"
    "\n  slices    requests and tokens of each ubatch, as cut and as padded"
    "\n  metadata  what attention is told in each ubatch"
    "\n  program   the schedule of a layer, instruction by instruction"
    "\n  graph     captured graphs: sizes, forms, nodes"
    "\vExamples:\n"
    "  dbo show vote scripts/workloads/deepseek-v3-decode.lua\n"
    "  dbo show slices scripts/workloads/deepseek-v3-prefill.lua --set batch.num_tokens=1000\n"
    "  dbo show program scripts/workloads/deepseek-v3-prefill.lua --json\n"
    "  dbo show program scripts/faults/no-comm-wait.lua --fault no-comm-wait\n";

typedef enum show_what {
    SHOW_VOTE,
    SHOW_SLICES,
    SHOW_METADATA,
    SHOW_PROGRAM,
    SHOW_GRAPH,
    SHOW_COUNT
} show_what;

static const char *const words[SHOW_COUNT] = {"vote", "slices", "metadata", "program", "graph"};

typedef struct show_arguments {
    const char *word;
    show_what what;
    dbo_script_arguments script;
    bool json, has_layer;
    uint32_t layer;
} show_arguments;

static error_t parse_layer(show_arguments *arguments, const char *text)
{
    char *end = NULL;
    long layer = strtol(text, &end, 10);
    if (end == text || *end || layer < 0 || layer >= (long)DBO_MAX_LAYERS) {
        dbo_fail(&arguments->script.err, DBO_INVALID, NULL,
                 "--layer is the number of a layer, not '%.40s'", text);
        return EINVAL;
    }
    arguments->has_layer = true;
    arguments->layer = (uint32_t)layer;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    show_arguments *arguments = state->input;
    switch (key) {
    case KEY_JSON: arguments->json = true; return 0;
    case KEY_LAYER: return parse_layer(arguments, arg);
    case ARGP_KEY_ARG:
        if (!arguments->word) {
            arguments->word = arg;
            return 0;
        }
        return dbo_script_option(&arguments->script, key, arg);
    default: return dbo_script_option(&arguments->script, key, arg);
    }
}

static dbo_status check_arguments(show_arguments *arguments, dbo_error *err)
{
    char hint[128];
    if (!arguments->word)
        return dbo_fail(err, DBO_INVALID, "See dbo help show.", "show what?");
    dbo_suggestion near = dbo_suggest_begin(arguments->word);
    arguments->what = SHOW_COUNT;
    for (int i = 0; i < SHOW_COUNT; i++) {
        dbo_suggest_offer(&near, words[i]);
        if (strcmp(words[i], arguments->word) == 0)
            arguments->what = (show_what)i;
    }
    if (arguments->what == SHOW_COUNT) {
        dbo_suggest_hint(&near, hint, sizeof hint);
        return dbo_fail(err, DBO_INVALID, hint[0] ? hint : "See dbo help show.",
                        "show knows no '%.60s'", arguments->word);
    }
    if (arguments->what != SHOW_PROGRAM && (arguments->json || arguments->has_layer))
        return dbo_fail(err, DBO_INVALID, NULL, "--%s is of show program",
                        arguments->json ? "json" : "layer");
    return DBO_OK;
}

static dbo_status print_json(const dbo_outcome *outcome, uint32_t layer, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, dbo_json_sink_file, stdout, 1);
    DBO_TRY(dbo_show_program_json(outcome, layer, &writer, err));
    dbo_status status = dbo_json_writer_finish(&writer, err);
    return status == DBO_IO ? DBO_OK : status; /* dbo_cli_end says what stdout suffered */
}

static dbo_status print(const dbo_cli *cli, const show_arguments *arguments,
                        const dbo_outcome *outcome, dbo_error *err)
{
    uint32_t num_layers = outcome->result.experiment->num_layers;
    uint32_t layer = arguments->has_layer ? arguments->layer : num_layers - 1;
    dbo_status status = DBO_OK;
    dbo_strbuf text;
    if (arguments->json)
        return print_json(outcome, layer, err);
    dbo_strbuf_init(&text);
    switch (arguments->what) {
    case SHOW_VOTE: dbo_show_vote(outcome, &text); break;
    case SHOW_SLICES: dbo_show_slices(outcome, &text); break;
    case SHOW_METADATA: dbo_show_metadata(outcome, &text); break;
    case SHOW_PROGRAM: status = dbo_show_program(outcome, layer, cli->ascii, &text, err); break;
    case SHOW_GRAPH: dbo_show_graph(outcome, &text); break;
    case SHOW_COUNT: break;
    }
    if (status == DBO_OK && text.failed)
        status = dbo_fail_memory(err, "the printed table");
    if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status;
}

int dbo_command_show(int argc, char **argv)
{
    static const struct argp argp = {show_options, parse_option, "WHAT SCRIPT", show_doc,
                                     NULL,         NULL,         NULL};
    show_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    dbo_experiment experiment;
    dbo_outcome outcome;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.script.err, &code))
        return code;
    if (check_arguments(&arguments, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    arguments.script.ascii = cli.ascii;
    char command[32];
    snprintf(command, sizeof command, "show %s", words[arguments.what]);
    if (!dbo_script_load(&arguments.script, command, arguments.json ? stderr : stdout, &experiment,
                         &code))
        return code;
    const dbo_simulate_options options = {.cancelled = dbo_cli_interrupted, .log = &cli.log};
    dbo_status status = dbo_simulate(&experiment, &options, &outcome, &err);
    if (status == DBO_OK) {
        status = print(&cli, &arguments, &outcome, &err);
        dbo_outcome_fini(&outcome);
    }
    dbo_experiment_fini(&experiment);
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail(&err);
}
