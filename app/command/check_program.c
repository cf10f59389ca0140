/* check_program.c: `dbo check --program` (check_program.h).
 *
 * A path that cannot be read or written is a mistake on the command line, what the file says wrong
 * is a failure. The last line says what was looked at and what was taken for granted. */
#include "app/command/check_program.h"

#include "app/io/input.h"
#include "app/say/findings_text.h"
#include "core/check/order/check.h"
#include "lab/files/program_json.h"
#include "viz/text/wrap.h"

#include <stdio.h>
#include <string.h>

typedef struct check_arguments {
    const char *path; /* of the program; "-": stdin */
    uint32_t layers;  /* it is run so often; 0: once */
    dbo_cli_output *json;
} check_arguments;

static const char *plural(uint32_t count, const char *many)
{
    return count == 1 ? "" : many;
}

/* ---- what is printed ---- */

static void summarise(const check_arguments *arguments, const dbo_program *program,
                      const dbo_findings *findings, dbo_strbuf *text)
{
    uint32_t instrs = 0, count = findings->count, ubatches = program->num_ubatches;
    uint32_t layers = arguments->layers > 0 ? arguments->layers : 1;
    dbo_strbuf line = {0};
    for (uint32_t u = 0; u < ubatches; u++)
        instrs += program->num_instrs[u];
    dbo_strbuf_printf(&line, "%s: ", arguments->path);
    if (count == 0)
        dbo_strbuf_add(&line, "nothing found in any order of completion");
    else
        dbo_strbuf_printf(&line, "%u finding%s", count, plural(count, "s"));
    dbo_strbuf_printf(&line, " (%u ubatch%s, %u instruction%s); the layer was run ", ubatches,
                      plural(ubatches, "es"), instrs, plural(instrs, "s"));
    if (layers == 1)
        dbo_strbuf_add(&line, "once");
    else
        dbo_strbuf_printf(&line, "%u times, one after the other", layers);
    if (dbo_check_program_has_bare_posts(program))
        dbo_strbuf_add(&line, "; its transfers are taken as ops of their stream: nothing finishes "
                              "them");
    dbo_strbuf_add(text, count > 0 ? "\n" : "");
    dbo_wrap_end(text, "", &line, dbo_cli_width());
}

static dbo_status print(const dbo_cli *cli, const check_arguments *arguments,
                        const dbo_program *program, const dbo_findings *findings, dbo_error *err)
{
    dbo_strbuf text = {0};
    if (dbo_cli_document_on_stdout(cli))
        return DBO_OK;
    dbo_findings_text(findings, dbo_cli_width(), &text);
    summarise(arguments, program, findings, &text);
    return dbo_cli_print(cli, &text, err);
}

/* ---- the check ---- */

static dbo_status check(const dbo_cli *cli, const check_arguments *arguments,
                        const dbo_program_file *file, dbo_findings *findings, dbo_error *err)
{
    const dbo_finding_names names = {.op_text = dbo_program_file_op_text, .self = file};
    const dbo_check_program_options options = {.layers = arguments->layers,
                                               .op_text = dbo_program_file_op_text,
                                               .op_text_self = file,
                                               .cancelled = dbo_cli_interrupted};
    DBO_TRY(dbo_check_program(&file->program, &options, findings, err));
    if (arguments->json->path)
        DBO_TRY(dbo_findings_write(findings, &(dbo_findings_scope){.orders = 1, .names = names},
                                   &arguments->json->file, err));
    return print(cli, arguments, &file->program, findings, err);
}

static dbo_status read_program(const char *path, dbo_program_file *file, dbo_error *err)
{
    dbo_json *document;
    const dbo_json_options options = {.cancelled = dbo_cli_interrupted};
    DBO_TRY(dbo_input_remember(path, err));
    DBO_TRY(dbo_json_read_file(&document, path, &options, err));
    dbo_status status =
        dbo_program_json_read(dbo_json_root(document), dbo_cli_interrupted, file, err);
    dbo_json_destroy(document);
    if (status != DBO_OK)
        dbo_error_at(err, strcmp(path, "-") == 0 ? "stdin" : path, 0);
    return status;
}

int dbo_cli_check_program(dbo_cli *cli, const char *path, uint32_t layers, dbo_cli_output *json)
{
    const check_arguments arguments = {.path = path, .layers = layers, .json = json};
    dbo_error err = {0};
    dbo_findings findings = {0};
    dbo_program_file file;
    bool found = false;
    if (read_program(path, &file, &err) != DBO_OK)
        return dbo_cli_fail(&err);
    file.many_layers = layers > 1;
    dbo_status status = dbo_cli_open_outputs(cli, &err);
    if (status == DBO_OK) {
        status = check(cli, &arguments, &file, &findings, &err);
        found = findings.count > 0;
        dbo_findings_fini(&findings);
    }
    dbo_program_file_fini(&file);
    int code = dbo_cli_end_with(status, &err);
    return code == DBO_EXIT_OK && found ? DBO_EXIT_FINDINGS : code;
}
