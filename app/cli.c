/* cli.c: shared options, sentences and exit codes (cli.h). */
#include "app/cli.h"

#include "app/cli_man.h"
#include "dbo_build.h"
#include "viz/text/wrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELP_COLUMNS 79u /* as argp has */

enum { KEY_ASCII = 1000, KEY_COLOR, KEY_LOG, KEY_DESCRIBE };

static const struct argp_option shared_options[] = {
    {NULL, 0, NULL, 0, "Everywhere:", 90},
    {"ascii", KEY_ASCII, NULL, 0, "Draw with ASCII characters only", 90},
    {"color", KEY_COLOR, "WHEN", 0, "auto (the default), always or never; NO_COLOR means never",
     90},
    {"log", KEY_LOG, "LEVELS", 0,
     "Say more on stderr: LEVEL, or SUBSYSTEM=LEVEL, separated by commas; levels are off, error, "
     "warn, info, debug, trace. DBO_LOG is read first",
     90},
    {"describe-as", KEY_DESCRIBE, "FORM", OPTION_HIDDEN, "man or words", 91},
    {"help", 'h', NULL, 0, "Print this help and exit", 91},
    {"version", 'V', NULL, 0, "Print the version and exit", 91},
    {0}};

/* What argp's parsers write into: the shared options, and the command's own. */
typedef struct dbo_parse {
    dbo_cli *cli;
    const struct argp *command;
    void *input;
    bool help, version;
    const char *form; /* of --describe-as: for the manual page, for completions */
    dbo_error err;
} dbo_parse;

static error_t parse_color(dbo_parse *parse, const char *text)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            parse->cli->color = (dbo_color)i;
            return 0;
        }
    }
    dbo_fail(&parse->err, DBO_INVALID, NULL, "--color is auto, always or never, not '%.40s'", text);
    return EINVAL;
}

static error_t parse_shared(int key, char *arg, struct argp_state *state)
{
    dbo_parse *parse = state->input;
    switch (key) {
    case KEY_ASCII: parse->cli->ascii = true; return 0;
    case KEY_COLOR: return parse_color(parse, arg);
    case KEY_LOG: parse->cli->log_text = arg; return 0;
    case KEY_DESCRIBE: parse->form = arg; return 0;
    case 'h': parse->help = true; return 0;
    case 'V': parse->version = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The command's options and the shared ones in one parser; the command's gets its own input. */
// NOLINTNEXTLINE(readability-non-const-parameter): argp's type
static error_t parse_all(int key, char *arg, struct argp_state *state)
{
    dbo_parse *parse = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = parse->input;
        state->child_inputs[1] = parse;
        return 0;
    }
    (void)arg;
    return ARGP_ERR_UNKNOWN;
}

/* ---- sentences ---- */

/* A line for the terminal out of a text that a script or a file may have made. */
static void put_line(const char *before, const char *text)
{
    dbo_strbuf line;
    dbo_strbuf_init(&line);
    dbo_text_clean(&line, text, strlen(text));
    fprintf(stderr, "%s%s\n", before, line.failed ? "out of memory" : dbo_strbuf_text(&line));
    dbo_strbuf_fini(&line);
}

/* After an interruption every failure is one, whatever noticed it first: a read that was
 * interrupted, a script, the simulator. */
static int print_error(const dbo_error *err, int code)
{
    (void)fflush(stdout); /* what was printed before stays before */
    if (err->status == DBO_CANCELLED || dbo_cli_interrupted(NULL)) {
        put_line("dbo: ", "interrupted");
        return dbo_cli_interruption_code();
    }
    put_line("dbo: ", err->message[0] ? err->message : dbo_status_text(err->status));
    if (err->hint[0])
        put_line("     ", err->hint);
    return code;
}

int dbo_cli_fail(const dbo_error *err)
{
    return print_error(err, DBO_EXIT_FAILED);
}

int dbo_cli_fail_usage(const dbo_error *err)
{
    return print_error(err, DBO_EXIT_USAGE);
}

int dbo_cli_end(void)
{
    dbo_error err = {0};
    return dbo_output_flush_stdout(&err) == DBO_OK ? DBO_EXIT_OK : dbo_cli_fail(&err);
}

static dbo_status check_output(const char *option, const char *path, const char *input,
                               dbo_error *err)
{
    struct stat to, from;
    if (!path)
        return DBO_OK;
    if (path[0] == '\0')
        return dbo_fail(err, DBO_INVALID, NULL, "%s needs the name of a file", option);
    if (!input || stat(path, &to) != 0 || stat(input, &from) != 0 || !S_ISREG(to.st_mode) ||
        to.st_dev != from.st_dev || to.st_ino != from.st_ino)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, "Give it a file of its own.",
                    "%s would replace %.300s, which is read", option, input);
}

dbo_status dbo_cli_check_outputs(const char *json_path, const char *trace_path, const char *input,
                                 dbo_error *err)
{
    DBO_TRY(check_output("--json", json_path, input, err));
    return check_output("--trace", trace_path, input, err);
}

dbo_status dbo_cli_open_outputs(const char *json_path, dbo_output *json, const char *trace_path,
                                dbo_output *trace, dbo_error *err)
{
    if (dbo_output_names_stdout(json_path) && dbo_output_names_stdout(trace_path))
        return dbo_fail(err, DBO_INVALID, "Give one of them a file.",
                        "--json and --trace cannot both go to the standard output");
    if (json_path)
        DBO_TRY(dbo_output_open(json, json_path, err));
    if (trace_path)
        DBO_TRY(dbo_output_open(trace, trace_path, err));
    if (json_path && trace_path && dbo_output_is_same(json, trace))
        return dbo_fail(err, DBO_INVALID, "Give each a file of its own.",
                        "--json and --trace both write %.300s", trace_path);
    return DBO_OK;
}

/* ---- begin ---- */

static void log_line(void *self, dbo_log_subsystem subsystem, dbo_log_level level, const char *line)
{
    fprintf(self, "dbo: %s: %s: %s\n", dbo_log_subsystem_name(subsystem), dbo_log_level_name(level),
            line);
}

static dbo_status begin_log(dbo_cli *cli, dbo_error *err)
{
    dbo_log_init(&cli->log, log_line, stderr);
    const char *environment = getenv("DBO_LOG");
    if (environment && dbo_log_set(&cli->log, environment, err) != DBO_OK)
        return dbo_error_prefix(err, "DBO_LOG");
    if (cli->log_text && dbo_log_set(&cli->log, cli->log_text, err) != DBO_OK)
        return dbo_error_prefix(err, "--log");
    return DBO_OK;
}

static bool decide_color(const dbo_cli *cli)
{
    if (cli->color != DBO_COLOR_AUTO)
        return cli->color == DBO_COLOR_ALWAYS;
    const char *none = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(none && none[0]) && term && strcmp(term, "dumb") != 0;
}

static const struct argp shared = {shared_options, parse_shared, NULL, NULL, NULL, NULL, NULL};

dbo_status dbo_cli_check_top(const struct argp *argp, int argc, char **argv, int *first_word,
                             dbo_error *err)
{
    struct argp_child children[] = {{&shared, 0, NULL, 0}, {0}};
    struct argp all = *argp;
    all.children = children;
    return dbo_cli_check(&all, argc, argv, first_word, err);
}

/* argp would wrap examples, too, so it prints the options only. */
static void print_help(const struct argp *argp, const struct argp *all, char *name)
{
    const char *doc = argp->doc ? argp->doc : "";
    size_t before = strcspn(doc, "\v");
    dbo_strbuf text, first;
    dbo_strbuf_init(&text);
    dbo_strbuf_init(&first);
    dbo_strbuf_add_bytes(&first, doc, before);
    dbo_wrap_document(&text, dbo_strbuf_text(&first), HELP_COLUMNS);
    fputs(dbo_strbuf_text(&text), stdout);
    putchar('\n');
    argp_help(all, stdout, ARGP_HELP_LONG, name);
    dbo_strbuf_clear(&text);
    dbo_wrap_document(&text, doc[before] ? doc + before + 1 : "", HELP_COLUMNS);
    printf("\n%s", dbo_strbuf_text(&text));
    dbo_strbuf_fini(&first);
    dbo_strbuf_fini(&text);
}

/* What --help, --version and --describe-as print. */
static void describe(const dbo_parse *parse, const struct argp *all, const char *word)
{
    const struct argp *argp = parse->command;
    char name[64];
    snprintf(name, sizeof name, strcmp(word, "dbo") == 0 ? "%s" : "dbo %s", word);
    if (parse->form && strcmp(parse->form, "man") == 0) {
        dbo_man_command(name, argp);
    } else if (parse->form) {
        dbo_man_words(argp->options);
        dbo_man_words(shared_options);
    } else if (parse->help) {
        const char *words = argp->args_doc ? argp->args_doc : "";
        printf("Usage: %s [OPTION...]%s%s\n", name, words[0] ? " " : "", words);
        print_help(argp, all, name);
    } else {
        printf("dbo %s\n", DBO_BUILD_VERSION);
    }
}

void dbo_cli_man_shared(void)
{
    dbo_man_options(shared_options);
}

bool dbo_cli_begin(dbo_cli *cli, const struct argp *argp, int argc, char **argv, void *input,
                   const dbo_error *mistake, int *code)
{
    struct argp_child children[] = {{argp, 0, NULL, 0}, {&shared, 0, NULL, 0}, {0}};
    struct argp all = {NULL, parse_all, argp->args_doc, argp->doc, children, NULL, NULL};
    struct argp bare = *argp; /* argp prints the child's documents, too: it must have none */
    bare.args_doc = bare.doc = NULL;
    children[0].argp = &bare;

    *cli = (dbo_cli){0};
    dbo_parse parse = {.cli = cli, .command = argp, .input = input};
    *code = DBO_EXIT_USAGE;
    if (dbo_cli_check(&all, argc, argv, NULL, &parse.err) != DBO_OK) {
        dbo_cli_fail_usage(&parse.err);
        return false;
    }
    unsigned flags = ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP;
    error_t failed = argp_parse(&all, argc, argv, flags, NULL, &parse);
    if (parse.form || parse.help || parse.version) {
        describe(&parse, &all, argv[0]);
        *code = parse.form ? DBO_EXIT_OK : dbo_cli_end(); /* a form is part of an output */
        return false;
    }
    if (failed) {
        if (mistake && mistake->message[0])
            parse.err = *mistake;
        if (!parse.err.message[0])
            dbo_fail(&parse.err, DBO_INVALID, "See --help.", "the command line is not understood");
        dbo_cli_fail_usage(&parse.err);
        return false;
    }
    dbo_error err = {0};
    if (begin_log(cli, &err) != DBO_OK) {
        dbo_cli_fail_usage(&err);
        return false;
    }
    cli->use_color = decide_color(cli);
    return true;
}

/* 0: not known. */
static long find_columns(void)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        return size.ws_col;
    return columns ? strtol(columns, NULL, 10) : 0;
}

uint32_t dbo_cli_width(void)
{
    long width = find_columns();
    return width < 80 ? 80 : width > 500 ? 500 : (uint32_t)width;
}

uint32_t dbo_cli_text_width(void)
{
    long width = find_columns();
    return width >= 40 && width < 80 ? (uint32_t)width : dbo_cli_width();
}
