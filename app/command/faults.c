/* faults.c: `dbo faults`: the table of faults, as text and as JSON. */
#include "app/command/cli.h"
#include "app/io/output_json.h"
#include "app/say/fault_text.h"

typedef struct faults_arguments {
    dbo_cli_output json;
} faults_arguments;

static dbo_status write_json(dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_output_json_begin(output, 2, &writer);
    dbo_fault_list_json(&writer);
    return dbo_output_json_end(output, &writer, err);
}

static dbo_status list(const dbo_cli *cli, faults_arguments *arguments, dbo_error *err)
{
    dbo_strbuf text = {0};
    if (arguments->json.path)
        DBO_TRY(write_json(&arguments->json.file, err));
    if (dbo_cli_document_on_stdout(cli))
        return DBO_OK;
    dbo_fault_list(dbo_cli_width(), &text);
    return dbo_cli_print(cli, &text, err);
}

static int faults(dbo_cli *cli, void *given)
{
    dbo_error err = {0};
    if (dbo_cli_check_outputs(cli, NULL, &err) != DBO_OK ||
        dbo_cli_open_outputs(cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    return dbo_cli_end_with(list(cli, given, &err), &err);
}

const dbo_command dbo_command_faults = {
    DBO_COMMAND_TEXT(faults),
    .options =
        (const dbo_cli_option[]){
            {"json", "FILE", .kind = DBO_CLI_OUTPUT, .at = offsetof(faults_arguments, json),
             .help = "Write the list to FILE as JSON: name, outcome, what goes wrong, parameters, "
                     "scene, reports; - is the standard output, with nothing else on it"},
            {0}},
    .bytes = sizeof(faults_arguments), .run = faults};
