/* eval.c: the kinds of `dbo eval`, the loop over a file's cases, and the command line. */
#include "app/eval.h"

#include "app/eval_kinds.h"
#include "core/suggest.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct eval_kind {
    const char *name;
    const char *list; /* the key of the file's list of cases */
    dbo_eval_fn run;
} eval_kind;

/* X(name, key of the file's list, function). The engine's own kinds are added here. */
#define EVAL_KIND_MAP(X)                                                       \
    X("slices", "cases", dbo_eval_slices)                                      \
    X("attn_split", "cases", dbo_eval_attn_split)                              \
    X("vote", "cases", dbo_eval_vote)                                          \
    X("vote_seed", "cases", dbo_eval_vote_seed)                                \
    X("split_seed", "cases", dbo_eval_split_seed)                              \
    X("veto", "cases", dbo_eval_veto)                                          \
    X("thresholds", "thresholds", dbo_eval_thresholds)                         \
    X("last_ubatch_empty", "is_last_ubatch_empty", dbo_eval_last_ubatch_empty) \
    X("uniform_decode", "is_uniform_decode", dbo_eval_uniform_decode)

static const eval_kind kinds[] = {
#define EVAL_KIND_ROW(name, list, run) {name, list, run},
    EVAL_KIND_MAP(EVAL_KIND_ROW)
#undef EVAL_KIND_ROW
};

#define NUM_KINDS (sizeof kinds / sizeof *kinds)

const char *dbo_eval_kind_name(size_t index)
{
    return index < NUM_KINDS ? kinds[index].name : NULL;
}

static const eval_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < NUM_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static dbo_status fail_unknown_kind(const char *name, dbo_error *err)
{
    char hint[128];
    dbo_suggestion nearest = dbo_suggest_begin(name);
    for (size_t i = 0; i < NUM_KINDS; i++)
        dbo_suggest_offer(&nearest, kinds[i].name);
    return dbo_fail(err, DBO_UNSUPPORTED, dbo_suggest_hint(&nearest, hint, sizeof hint),
                    "unknown kind %.60s", name);
}

static void run_case(const eval_kind *kind, dbo_eval_case *c)
{
    dbo_error err = {0};
    dbo_status status;
    if (dbo_json_type_of(c->in) != DBO_JSON_OBJECT)
        status = dbo_json_fail(&err, c->in, NULL, "a case must be an object, not %s",
                               dbo_json_type_name(dbo_json_type_of(c->in)));
    else
        status = kind->run(c, &err);
    if (status != DBO_OK) {
        dbo_json_open_object_line(c->out);
        dbo_json_member_string(c->out, "error", err.message);
        dbo_json_close(c->out);
    }
}

dbo_status dbo_eval(const char *kind_name, const dbo_json_value *file,
                    const dbo_eval_options *options, dbo_json_writer *out, dbo_error *err)
{
    const eval_kind *kind = find_kind(kind_name);
    const dbo_json_value *cases;
    dbo_arena arena;
    if (kind == NULL)
        return fail_unknown_kind(kind_name, err);
    DBO_TRY(dbo_json_need_array(file, kind->list, &cases, err));
    dbo_arena_init(&arena, 0);
    dbo_json_open_object(out);
    dbo_json_member_string(out, "kind", kind->name);
    dbo_json_key(out, "results");
    dbo_json_open_array(out);
    for (size_t i = 0; i < dbo_json_count(cases); i++) {
        run_case(kind,
                 &(dbo_eval_case){
                     .in = dbo_json_at(cases, i), .options = options, .arena = &arena, .out = out});
        dbo_arena_reset(&arena);
    }
    dbo_json_close(out);
    dbo_json_close(out);
    dbo_arena_fini(&arena);
    return DBO_OK;
}

/* --- the command ---------------------------------------------------------------------------- */

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_COMMAND_LINE = 2 };

typedef struct eval_arguments {
    const char *kind, *path;
    dbo_eval_options options;
} eval_arguments;

static const struct argp_option options_table[] = {
    {"in", 'i', "FILE", 0, "File of cases; - is the standard input", 0},
    {"executor", 'x', "KIND", 0, "What ubatches run in: fiber (default) or thread", 0},
    {0},
};

static const char help[] =
    "Evaluate the engine's decision functions on a file of cases.\v"
    "Prints {\"kind\": KIND, \"results\": [...]}, one result a case, in file order. A case that is "
    "rejected gives {\"error\": SENTENCE}.\n\n"
    "Examples:\n"
    "  dbo eval vote_seed --in tests/golden/vote_seed.json\n"
    "  dbo eval veto --in - < tests/golden/veto.json\n\n"
    "Kinds:"
#define EVAL_KIND_WORD(name, list, run) " " name
    EVAL_KIND_MAP(EVAL_KIND_WORD);
#undef EVAL_KIND_WORD

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    eval_arguments *arguments = state->input;
    switch (key) {
    case 'i': arguments->path = value; return 0;
    case 'x':
        if (strcmp(value, "fiber") != 0 && strcmp(value, "thread") != 0)
            argp_error(state, "--executor must be fiber or thread, not %s", value);
        arguments->options.executor =
            strcmp(value, "thread") == 0 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->kind != NULL)
            argp_error(state, "one KIND at a time; %s is a second one", value);
        arguments->kind = value;
        return 0;
    case ARGP_KEY_END:
        if (arguments->kind == NULL)
            argp_error(state, "a KIND is needed");
        if (arguments->path == NULL)
            argp_error(state, "a file of cases is needed: --in FILE");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int report(const dbo_error *err, int exit_code)
{
    fprintf(stderr, "dbo eval: %s\n", err->message);
    if (err->hint[0] != '\0')
        fprintf(stderr, "%s\n", err->hint);
    return exit_code;
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
    DBO_TRY(dbo_json_writer_finish(&out, err));
    if (fflush(stdout) != 0)
        return dbo_fail(err, DBO_IO, NULL, "the results cannot be written: %s", strerror(errno));
    return DBO_OK;
}

int dbo_command_eval(int argc, char **argv)
{
    static char name[] = "dbo eval";
    static const struct argp argp = {options_table, parse_option, "KIND", help, NULL, NULL, NULL};
    eval_arguments arguments = {.options = {.executor = DBO_CONTEXT_FIBER}};
    dbo_error err = {0};
    argv[0] = name;
    argp_err_exit_status = EXIT_COMMAND_LINE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &arguments) != 0)
        return EXIT_COMMAND_LINE;
    dbo_json *doc = NULL;
    if (find_kind(arguments.kind) == NULL) {
        (void)fail_unknown_kind(arguments.kind, &err);
        return report(&err, EXIT_COMMAND_LINE);
    }
    dbo_status status = dbo_json_read_file(&doc, arguments.path, NULL, &err);
    if (status != DBO_OK)
        return report(&err, status == DBO_IO ? EXIT_COMMAND_LINE : EXIT_FAILED);
    status = print_results(&arguments, doc, &err);
    dbo_json_destroy(doc);
    return status == DBO_OK ? EXIT_FINE : report(&err, EXIT_FAILED);
}
