/* eval.c: `dbo eval KIND --in FILE`: reads the file, prints the answers. */
#include "app/eval/eval.h"

#include "app/command/cli.h"
#include "app/command/script.h"

#include <stdio.h>
#include <string.h>

typedef struct eval_arguments {
    uint32_t kind, executor;
    const char *path;
} eval_arguments;

static dbo_status print_results(const eval_arguments *arguments, const dbo_json *doc,
                                dbo_error *err)
{
    const dbo_eval_options options = {.executor = arguments->executor == 1 ? DBO_CONTEXT_THREAD
                                                                           : DBO_CONTEXT_FIBER};
    dbo_json_writer out;
    dbo_json_writer_init(&out, dbo_json_sink_file, stdout, 1);
    DBO_TRY(dbo_eval(arguments->kind, dbo_json_root(doc), &options, &out, err));
    dbo_status status = dbo_json_writer_finish(&out, err);
    return status == DBO_IO ? DBO_OK : status; /* dbo_cli_end says what stdout suffered */
}

static int eval(dbo_cli *cli, void *given)
{
    const eval_arguments *arguments = given;
    dbo_error err = {0};
    dbo_json *doc = NULL;
    (void)cli;
    dbo_status status = dbo_json_read_file(&doc, arguments->path, NULL, &err);
    if (status != DBO_OK)
        return dbo_cli_fail(&err);
    status = print_results(arguments, doc, &err);
    dbo_json_destroy(doc);
    return dbo_cli_end_with(status, &err);
}

const dbo_command dbo_command_eval = {
    DBO_COMMAND_TEXT(eval),
    .notes = "Kinds:"
#define EVAL_KIND_WORD(name, list, run) " " name
    DBO_EVAL_KIND_MAP(EVAL_KIND_WORD),
#undef EVAL_KIND_WORD
    .arguments = (const dbo_cli_option[]){{"KIND", .help = "a kind", .kind = DBO_CLI_WORD,
                                           .required = true, .words = dbo_eval_kind_name,
                                           .at = offsetof(eval_arguments, kind)},
                                          {0}},
    .options =
        (const dbo_cli_option[]){
            {"in", "FILE", .letter = 'i', .kind = DBO_CLI_TEXT, .required = true,
             .at = offsetof(eval_arguments, path),
             .help = "The file of cases; - is the standard input"},
            {"executor", "KIND", .kind = DBO_CLI_WORD, .at = offsetof(eval_arguments, executor),
             .words = dbo_executor_words, .help = "What ubatches run in: fiber or thread",
             .usual = "fiber"},
            {0}},
    .bytes = sizeof(eval_arguments),
    .run = eval};
