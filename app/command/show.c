/* show.c: `dbo show PART SCRIPT`: one part of a step as a table. */
#include "app/show/show.h"

#include "app/command/script.h"
#include "viz/text/layers.h"

#include <stdio.h>

typedef enum show_part {
    SHOW_VOTE,
    SHOW_SLICES,
    SHOW_METADATA,
    SHOW_PROGRAM,
    SHOW_GRAPH,
    SHOW_COUNT
} show_part;

static const char *part_words(size_t index)
{
    static const char *const words[SHOW_COUNT] = {"vote", "slices", "metadata", "program", "graph"};
    return index < SHOW_COUNT ? words[index] : NULL;
}

typedef struct show_arguments {
    uint32_t part;
    dbo_script_arguments script;
    bool json;
    dbo_cli_number layer;
} show_arguments;

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
    uint32_t layer = arguments->layer.given ? arguments->layer.value : num_layers - 1;
    dbo_status status = DBO_OK;
    dbo_strbuf text = {0};
    if (arguments->json)
        return print_json(outcome, layer, err);
    switch ((show_part)arguments->part) {
    case SHOW_VOTE: dbo_show_vote(outcome, &text); break;
    case SHOW_SLICES: dbo_show_slices(outcome, &text); break;
    case SHOW_METADATA: dbo_show_metadata(outcome, &text); break;
    case SHOW_PROGRAM: status = dbo_show_program(outcome, layer, cli->ascii, &text, err); break;
    case SHOW_GRAPH: dbo_show_graph(outcome, &text); break;
    case SHOW_COUNT: break;
    }
    if (status == DBO_OK)
        return dbo_cli_print_document(cli, &text, err);
    dbo_strbuf_fini(&text);
    return status;
}

static int show_experiment(const dbo_cli *cli, const show_arguments *arguments,
                           const dbo_experiment *experiment)
{
    dbo_error err = {0};
    dbo_outcome outcome;
    const uint32_t layer = arguments->layer.value;
    const dbo_layers layers = {.given = arguments->layer.given, .first = layer, .last = layer};
    const dbo_simulate_options options = {.cancelled = dbo_cli_interrupted, .log = &cli->log};
    if (dbo_layers_check(&layers, experiment->num_layers, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    dbo_status status = dbo_script_check_need(&arguments->script, experiment, &err);
    if (status == DBO_OK)
        status = dbo_simulate(experiment, &options, &outcome, &err);
    if (status == DBO_OK) {
        status = print(cli, arguments, &outcome, &err);
        dbo_outcome_fini(&outcome);
    }
    return dbo_cli_end_with(status, &err);
}

static int show(dbo_cli *cli, void *given)
{
    show_arguments *arguments = given;
    dbo_error err = {0};
    dbo_experiment experiment;
    if (arguments->part != SHOW_PROGRAM && (arguments->json || arguments->layer.given)) {
        dbo_fail(&err, DBO_INVALID, NULL, "--%s is of show program",
                 arguments->json ? "json" : "layer");
        return dbo_cli_fail_usage(&err);
    }
    if (dbo_script_find_input(&arguments->script, cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    arguments->script.may_only_print = true;
    if (dbo_script_load(&arguments->script, arguments->json ? stderr : stdout, cli, &experiment,
                        &err) != DBO_OK)
        return dbo_script_fail(&arguments->script, &err);
    if (experiment.num_layers == 0) {
        char what[32];
        snprintf(what, sizeof what, "show %s", part_words(arguments->part));
        return dbo_script_fail_nothing(&arguments->script, what);
    }
    int code = show_experiment(cli, arguments, &experiment);
    dbo_experiment_fini(&experiment);
    return code;
}

const dbo_command dbo_command_show = {
    DBO_COMMAND_TEXT(show),
    .arguments =
        (const dbo_cli_option[]){{"PART", .help = "a part", .kind = DBO_CLI_WORD, .required = true,
                                  .words = part_words, .at = offsetof(show_arguments, part)},
                                 DBO_SCRIPT_ARGUMENT(show_arguments, true),
                                 {0}},
    .options =
        (const dbo_cli_option[]){DBO_SCRIPT_OPTIONS(show_arguments),
                                 {"layer", "N", .kind = DBO_CLI_NUMBER, .max = DBO_MAX_LAYERS - 1,
                                  .at = offsetof(show_arguments, layer),
                                  .help = "program: of layer N", .usual = "the last one"},
                                 {"json", .at = offsetof(show_arguments, json),
                                  .help = "program: as JSON, which dbo check --program reads"},
                                 {0}},
    .bytes = sizeof(show_arguments), .run = show};
