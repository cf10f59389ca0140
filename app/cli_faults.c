/* cli_faults.c: `dbo faults`: the table of faults, as text and as JSON. */
#include "app/cli.h"
#include "app/io/output_json.h"
#include "app/say/fault_text.h"

#include <errno.h>
#include <stdio.h>

enum { KEY_JSON = 1 };

static const struct argp_option faults_options[] = {
    {NULL, 0, NULL, 0, "Of faults:", 1},
    {"json", KEY_JSON, "FILE", 0,
     "Write the list to FILE as JSON: name, outcome, what goes wrong, parameters, scene, reports; "
     "- is the standard output, with nothing else on it",
     1},
    {0}};

static const char faults_doc[] =
    "List the pitfalls that a run with DBO can be given: name, what comes of it, what goes wrong, "
    "and where it was reported. Outcomes: dbo check finds that something is not ordered or waits "
    "for ever (order), that outputs differ from those without DBO (rows), that the step is right, "
    "but slower (time), exit code 3 for each; the run is refused, exit code 1; it is no defect and "
    "only shown, exit code 0."
    "\vExamples:\n"
    "  dbo faults\n"
    "  dbo explain no-comm-wait\n"
    "  dbo check --fault no-comm-wait\n"
    "  dbo run scripts/faults/late-rank.lua --fault late-rank:rank=1,us=200\n"
    "  dbo faults --json faults.json\n";

typedef struct faults_arguments {
    const char *json;
    dbo_error err;
} faults_arguments;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    faults_arguments *arguments = state->input;
    switch (key) {
    case KEY_JSON: arguments->json = arg; return 0;
    case ARGP_KEY_ARG:
        dbo_fail(&arguments->err, DBO_INVALID, "dbo explain NAME tells the story of one.",
                 "faults takes no arguments, at %.60s", arg);
        return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static dbo_status write_json(dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_output_json_begin(output, 2, &writer);
    dbo_fault_list_json(&writer);
    return dbo_output_json_end(output, &writer, err);
}

static dbo_status print(dbo_error *err)
{
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_fault_list(dbo_cli_text_width(), &text);
    dbo_status status = text.failed ? dbo_fail_memory(err, "the list of faults") : DBO_OK;
    if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status;
}

int dbo_command_faults(int argc, char **argv)
{
    static const struct argp argp = {faults_options, parse_option, "",  faults_doc,
                                     NULL,           NULL,         NULL};
    faults_arguments arguments = {0};
    dbo_error err = {0};
    dbo_output output = {0};
    dbo_cli cli;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    if (arguments.json && dbo_output_open(&output, arguments.json, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    dbo_status status = arguments.json ? write_json(&output, &err) : DBO_OK;
    if (status == DBO_OK && !dbo_output_names_stdout(arguments.json))
        status = print(&err);
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail(&err);
}
