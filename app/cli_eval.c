/* cli_eval.c: `dbo eval KIND --in FILE`: reads the file, prints the answers. */
#include "app/cli.h"
#include "app/eval/eval.h"
#include "core/base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KEY_IN = 'i', KEY_EXECUTOR = 1 };

static const struct argp_option eval_options[] = {
    {NULL, 0, NULL, 0, "Of eval:", 1},
    {"in", KEY_IN, "FILE", 0, "The file of cases; - is the standard input", 1},
    {"executor", KEY_EXECUTOR, "KIND", 0, "What ubatches run in: fiber (default) or thread", 1},
    {0}};

static const char eval_doc[] =
    "Evaluate the engine's decisions on the cases of FILE. Prints {\"kind\": KIND, \"results\": "
    "[...]}, one result a case, in order; a case that is rejected gives {\"error\": SENTENCE}."
    "\vExamples:\n"
    "  dbo eval vote_seed --in tests/golden/vote_seed.json\n"
    "  dbo eval veto --in - < tests/golden/veto.json\n"
    "  dbo eval pingpong --in tests/golden/pingpong.json --executor thread\n"
    "\nKinds:"
#define EVAL_KIND_WORD(name, list, run) " " name
    DBO_EVAL_KIND_MAP(EVAL_KIND_WORD);
#undef EVAL_KIND_WORD

typedef struct eval_arguments {
    const char *kind, *path;
    dbo_eval_options options;
    dbo_error err;
} eval_arguments;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    eval_arguments *arguments = state->input;
    switch (key) {
    case KEY_IN: arguments->path = arg; return 0;
    case KEY_EXECUTOR:
        if (strcmp(arg, "fiber") != 0 && strcmp(arg, "thread") != 0) {
            dbo_fail(&arguments->err, DBO_INVALID, NULL,
                     "--executor is fiber or thread, not '%.40s'", arg);
            return EINVAL;
        }
        arguments->options.executor =
            strcmp(arg, "thread") == 0 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->kind != NULL) {
            dbo_fail(&arguments->err, DBO_INVALID, "Give one kind.", "%.60s is one kind too many",
                     arg);
            return EINVAL;
        }
        arguments->kind = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool is_kind(const char *word)
{
    for (size_t i = 0; dbo_eval_kind_name(i) != NULL; i++)
        if (strcmp(dbo_eval_kind_name(i), word) == 0)
            return true;
    return false;
}

static dbo_status check_arguments(const eval_arguments *arguments, dbo_error *err)
{
    const char *example = "For example: dbo eval veto --in tests/golden/veto.json";
    char hint[128];
    if (arguments->kind == NULL)
        return dbo_fail(err, DBO_INVALID, example, "eval needs a kind");
    if (!is_kind(arguments->kind)) {
        dbo_suggestion nearest = dbo_suggest_begin(arguments->kind);
        for (size_t i = 0; dbo_eval_kind_name(i) != NULL; i++)
            dbo_suggest_offer(&nearest, dbo_eval_kind_name(i));
        dbo_suggest_hint(&nearest, hint, sizeof hint);
        return dbo_fail(err, DBO_INVALID, hint[0] != '\0' ? hint : "See dbo help eval.",
                        "unknown kind '%.60s'", arguments->kind);
    }
    if (arguments->path == NULL)
        return dbo_fail(err, DBO_INVALID, example, "eval needs a file of cases, --in FILE");
    return DBO_OK;
}

static dbo_status print_results(const eval_arguments *arguments, const dbo_json *doc,
                                dbo_error *err)
{
    dbo_json_writer out;
    dbo_json_writer_init(&out, dbo_json_sink_file, stdout, 1);
    dbo_status status =
        dbo_eval(arguments->kind, dbo_json_root(doc), &arguments->options, &out, err);
    if (status != DBO_OK)
        return dbo_error_prefix(err, "%s",
                                strcmp(arguments->path, "-") == 0 ? "stdin" : arguments->path);
    status = dbo_json_writer_finish(&out, err);
    return status == DBO_IO ? DBO_OK : status; /* dbo_cli_end says what stdout suffered */
}

int dbo_command_eval(int argc, char **argv)
{
    static const struct argp argp = {eval_options, parse_option, "KIND", eval_doc,
                                     NULL,         NULL,         NULL};
    eval_arguments arguments = {.options = {.executor = DBO_CONTEXT_FIBER}};
    dbo_error err = {0};
    dbo_cli cli;
    dbo_json *doc = NULL;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    if (check_arguments(&arguments, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    dbo_status status = dbo_json_read_file(&doc, arguments.path, NULL, &err);
    if (status != DBO_OK)
        return status == DBO_IO ? dbo_cli_fail_usage(&err) : dbo_cli_fail(&err);
    status = print_results(&arguments, doc, &err);
    dbo_json_destroy(doc);
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail(&err);
}
