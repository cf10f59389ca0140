/* cli_check.c: `dbo check --program F`: is a bare program right in every order of completion? */
#include "app/cli.h"
#include "app/findings.h"
#include "app/output.h"
#include "app/program_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEY_PROGRAM = 1, KEY_JSON };

static const struct argp_option check_options[] = {
    {NULL, 0, NULL, 0, "Of check:", 1},
    {"program", KEY_PROGRAM, "FILE", 0,
     "A program as JSON, as dbo show program --json prints it; - is stdin", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the findings as JSON; - is stdout", 1},
    {0}};

static const char check_doc[] =
    "Look for what may go wrong in any order in which the work of a program can complete: races, "
    "blocks that are freed too early, waits without end. Exit code 3 if there is something."
    "\vExamples:\n"
    "  dbo show program scripts/workloads/deepseek-v3-prefill.lua --json >p.json\n"
    "  dbo check --program p.json\n"
    "  dbo check --program p.json --json findings.json\n";

typedef struct check_arguments {
    const char *program, *json;
    dbo_error err;
} check_arguments;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    check_arguments *arguments = state->input;
    switch (key) {
    case KEY_PROGRAM: arguments->program = arg; return 0;
    case KEY_JSON: arguments->json = arg; return 0;
    case ARGP_KEY_ARG:
        dbo_fail(&arguments->err, DBO_INVALID, "See dbo help check.", "check takes no '%.200s'",
                 arg);
        return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- names ---- */

/* "up_proj of ubatch 1": as the file calls it. */
static void op_text(const void *self, dbo_op_id id, char *out, size_t size)
{
    const dbo_program_file *file = self;
    const dbo_program *p = &file->program;
    const dbo_op_id own =
        dbo_op_id_make(0, 0, 0, dbo_op_id_ubatch(id), dbo_op_id_kind(id), dbo_op_id_occurrence(id));
    const char *name = dbo_op_kind_name(dbo_op_id_kind(id));
    for (uint32_t i = 0; i < p->num_ops && i < file->op_names.count; i++)
        if (p->ops[i].id_bits == own)
            name = file->op_names.names[i];
    snprintf(out, size, "%.40s of ubatch %u", name, dbo_op_id_ubatch(id));
}

/* ---- what is written ---- */

static dbo_status write_json(const dbo_findings *findings, uint32_t orders,
                             const dbo_finding_names *names, dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, dbo_json_sink_file, output->file, 2);
    dbo_findings_json(findings, orders, names, &writer);
    dbo_status status = dbo_json_writer_finish(&writer, err);
    if (status == DBO_OK || status == DBO_IO) /* a sink that failed is the file's failure */
        return dbo_output_commit(output, err);
    dbo_output_discard(output);
    return status;
}

static dbo_status print(const check_arguments *arguments, const dbo_program *program,
                        const dbo_findings *findings, dbo_error *err)
{
    uint32_t instrs = 0;
    dbo_strbuf text;
    if (dbo_output_names_stdout(arguments->json))
        return DBO_OK; /* stdout is the document's */
    dbo_strbuf_init(&text);
    for (uint32_t u = 0; u < program->num_ubatches; u++)
        instrs += program->num_instrs[u];
    dbo_findings_text(findings, dbo_cli_width(), &text);
    if (findings->count == 0)
        dbo_strbuf_printf(&text,
                          "%s: nothing found in any order of completion (%u ubatches, %u "
                          "instructions)\n",
                          arguments->program, program->num_ubatches, instrs);
    dbo_status status = text.failed ? dbo_fail_memory(err, "the printed findings") : DBO_OK;
    if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status;
}

/* ---- the command ---- */

static dbo_status check_program(const check_arguments *arguments, const dbo_program_file *file,
                                dbo_findings *findings, dbo_error *err)
{
    const dbo_finding_names names = {.op_text = op_text, .self = file};
    const dbo_check_program_options options = {.op_text = op_text, .op_text_self = file};
    dbo_output output = {0};
    uint32_t orders = 0;
    if (arguments->json)
        DBO_TRY(dbo_output_open(&output, arguments->json, err));
    dbo_status status = dbo_check_program(&file->program, &options, findings, &orders, err);
    if (status != DBO_OK) {
        dbo_output_discard(&output);
        return status;
    }
    if (arguments->json)
        DBO_TRY(write_json(findings, orders, &names, &output, err));
    return print(arguments, &file->program, findings, err);
}

static dbo_status read_and_check(const check_arguments *arguments, dbo_findings *findings,
                                 dbo_error *err)
{
    dbo_json *document;
    dbo_program_file file;
    DBO_TRY(dbo_json_read_file(&document, arguments->program, NULL, err));
    dbo_status status = dbo_program_json_read(dbo_json_root(document), &file, err);
    dbo_json_destroy(document);
    if (status != DBO_OK) {
        dbo_error_prefix(err, "%s", arguments->program);
        return status;
    }
    status = check_program(arguments, &file, findings, err);
    dbo_program_file_fini(&file);
    return status;
}

int dbo_command_check(int argc, char **argv)
{
    static const struct argp argp = {check_options, parse_option, "--program FILE", check_doc, NULL,
                                     NULL,          NULL};
    check_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    dbo_findings findings;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    if (!arguments.program) {
        dbo_fail(&err, DBO_INVALID, "See dbo help check.", "check what? Give --program FILE");
        return dbo_cli_fail_usage(&err);
    }
    if (strcmp(arguments.program, "-") != 0 && access(arguments.program, R_OK) != 0) {
        dbo_fail(&err, DBO_IO, NULL, "cannot read %.200s: %s", arguments.program, strerror(errno));
        return dbo_cli_fail_usage(&err);
    }
    dbo_findings_init(&findings);
    dbo_status status = read_and_check(&arguments, &findings, &err);
    bool found = findings.count > 0;
    dbo_findings_fini(&findings);
    if (status != DBO_OK)
        return dbo_cli_fail(&err);
    code = dbo_cli_end();
    return code == DBO_EXIT_OK && found ? DBO_EXIT_FINDINGS : code;
}
