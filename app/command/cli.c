/* cli.c: runs a command by its table (cli.h).
 *
 * argp finds options and arguments; mistakes that it would report itself are found before
 * (options.c), and what a value says is checked by its row.
 */
#include "app/command/cli.h"

#include "app/io/input.h"
#include "core/base/clean.h"
#include "dbo_build.h"
#include "viz/text/ascii.h"
#include "viz/text/wrap.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAX_OPTIONS 32   /* of a command, shared ones included */
#define FIRST_KEY   1000 /* argp's, of the options in order; a letter is its own key */

static const char *color_words(size_t index)
{
    static const char *const words[] = {"auto", "always", "never"};
    return index < 3 ? words[index] : NULL;
}

static const dbo_cli_option shared[] = {
    {"ascii", .help = "Draw with ASCII characters only, as where the locale is not UTF-8",
     .at = offsetof(dbo_cli, ascii)},
    {"color", "WHEN", .help = "auto, always or never; NO_COLOR means never", .usual = "auto",
     .kind = DBO_CLI_WORD, .words = color_words, .at = offsetof(dbo_cli, color)},
    {"log", "LEVELS", .kind = DBO_CLI_TEXT, .at = offsetof(dbo_cli, log_text),
     .help = "Say more on stderr: LEVEL, or SUBSYSTEM=LEVEL, separated by commas; levels are off, "
             "error, warn, info, debug, trace. DBO_LOG is read first",
     .example = "vote=debug"},
    {"help", .letter = 'h', .help = "Print this help and exit", .at = offsetof(dbo_cli, help)},
    {"version", .letter = 'V', .help = "Print the version and exit",
     .at = offsetof(dbo_cli, version)},
    {0}};

const dbo_cli_option *dbo_cli_option_at(const dbo_command *command, size_t index)
{
    size_t own = 0;
    while (command->options && command->options[own].name)
        own++;
    if (index < own)
        return &command->options[index];
    return index - own < sizeof shared / sizeof *shared - 1 ? &shared[index - own] : NULL;
}

bool dbo_cli_is_shared(const dbo_cli_option *option)
{
    return option >= shared && option < shared + sizeof shared / sizeof *shared;
}

/* ---- values ---- */

static dbo_status take_number(const dbo_cli_option *option, dbo_cli_number *out, const char *text,
                              dbo_error *err)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || number < (long)option->min ||
        number > (long)option->max)
        return dbo_fail(err, DBO_INVALID, NULL, "--%s is a number from %u to %u, not '%.40s'",
                        option->name, option->min, option->max, text);
    *out = (dbo_cli_number){.given = true, .value = (uint32_t)number};
    return DBO_OK;
}

static dbo_status take_word(const dbo_cli_option *option, uint32_t *out, const char *text,
                            dbo_error *err)
{
    for (uint32_t i = 0; option->words(i); i++) {
        if (strcmp(option->words(i), text) == 0) {
            *out = i;
            return DBO_OK;
        }
    }
    return dbo_cli_fail_word(option, text, err);
}

static dbo_status take(const dbo_cli_option *option, void *at, const char *text, dbo_error *err)
{
    if (text && !text[0] && option->value && strcmp(option->value, "FILE") == 0)
        return dbo_fail(err, DBO_INVALID, NULL, "--%s needs the name of a file", option->name);
    if (text && !text[0] && !option->value)
        return dbo_fail(err, DBO_INVALID, NULL, "%s is empty: it is the name of %s", option->name,
                        option->help);
    if (!text) { /* as a flag has none */
        *(bool *)at = true;
        return DBO_OK;
    }
    switch (option->kind) {
    case DBO_CLI_FLAG: return DBO_OK;
    case DBO_CLI_TEXT:
    case DBO_CLI_SCRIPT: *(const char **)at = text; return DBO_OK;
    case DBO_CLI_OUTPUT: ((dbo_cli_output *)at)->path = text; return DBO_OK;
    case DBO_CLI_NUMBER: return take_number(option, at, text, err);
    case DBO_CLI_WORD: return take_word(option, at, text, err);
    case DBO_CLI_TAKEN: return option->take(at, text, err);
    }
    return DBO_OK;
}

/* ---- parsing ---- */

typedef struct dbo_parse {
    dbo_cli *cli;
    uint64_t given;     /* bit i: option i */
    uint32_t num_words; /* arguments so far */
    dbo_error err;
} dbo_parse;

/* The row of the next argument, or NULL with a sentence. */
static const dbo_cli_option *next_argument(dbo_parse *parse, const char *text)
{
    const dbo_command *command = parse->cli->command;
    const dbo_cli_option *row = command->arguments;
    if (!row) {
        dbo_fail(&parse->err, DBO_INVALID, NULL, "%s takes no arguments, not '%.60s'",
                 command->name, text);
        return NULL;
    }
    for (uint32_t i = parse->num_words; i > 0 && row[1].name; i--)
        row++;
    uint32_t place = (uint32_t)(row - command->arguments);
    if (parse->num_words++ <= place || row->many)
        return row;
    dbo_fail(&parse->err, DBO_INVALID, NULL, "%.200s is one %s too many", text,
             strchr(row->help, ' ') + 1);
    return NULL;
}

static error_t parse_one(int key, char *text, struct argp_state *state)
{
    dbo_parse *parse = state->input;
    const dbo_cli *cli = parse->cli;
    const dbo_cli_option *row = NULL;
    size_t i = 0;
    if (key == ARGP_KEY_ARG) {
        row = next_argument(parse, text);
    } else {
        while ((row = dbo_cli_option_at(cli->command, i)) &&
               key != (row->letter ? row->letter : FIRST_KEY + (int)i))
            i++;
        if (!row)
            return ARGP_ERR_UNKNOWN;
        if (row->value && !row->many && (parse->given >> i & 1)) {
            dbo_fail(&parse->err, DBO_INVALID, NULL, "--%s is given twice", row->name);
            return EINVAL;
        }
        parse->given |= UINT64_C(1) << i;
    }
    if (!row)
        return EINVAL;
    char *base = dbo_cli_is_shared(row) ? (char *)parse->cli : cli->arguments;
    dbo_status status = take(row, base + row->at, text, &parse->err);
    if (status != DBO_OK && row->example && !parse->err.hint[0])
        snprintf(parse->err.hint, sizeof parse->err.hint, "For example: --%s %s", row->name,
                 row->example);
    return status == DBO_OK ? 0 : EINVAL;
}

/* What has to be there and is not. */
static dbo_status check_required(const dbo_parse *parse, dbo_error *err)
{
    const dbo_command *command = parse->cli->command;
    const dbo_cli_option *row = command->arguments;
    char hint[160];
    const char *example = command->examples ? strstr(command->examples, "dbo ") : NULL;
    if (example)
        snprintf(hint, sizeof hint, "For example: %.*s", (int)strcspn(example, "\n)"), example);
    else
        snprintf(hint, sizeof hint, "See dbo %s --help.", command->name);
    for (uint32_t i = 0; row && row[i].name; i++)
        if (row[i].required && i >= parse->num_words)
            return dbo_fail(err, DBO_INVALID, hint, "%s needs %s", command->name, row[i].help);
    for (size_t i = 0; (row = dbo_cli_option_at(command, i)); i++)
        if (row->required && !(parse->given >> i & 1))
            return dbo_fail(err, DBO_INVALID, hint, "%s needs --%s %s", command->name, row->name,
                            row->value);
    return DBO_OK;
}

static dbo_status parse_all(dbo_parse *parse, int argc, char **argv)
{
    struct argp_option options[MAX_OPTIONS + 1] = {{0}};
    const dbo_cli_option *row;
    for (size_t i = 0; i < MAX_OPTIONS && (row = dbo_cli_option_at(parse->cli->command, i)); i++)
        options[i] = (struct argp_option){.name = row->name,
                                          .key = row->letter ? row->letter : FIRST_KEY + (int)i,
                                          .arg = row->value};
    const struct argp argp = {.options = options, .parser = parse_one};
    DBO_TRY(dbo_cli_check(parse->cli->command, argc, argv, NULL, &parse->err));
    error_t failed =
        argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, parse);
    if (parse->cli->help || parse->cli->version)
        return DBO_OK;
    if (failed && !parse->err.message[0])
        dbo_fail(&parse->err, DBO_INVALID, "See --help.", "the command line is not understood");
    return failed ? DBO_INVALID : check_required(parse, &parse->err);
}

/* ---- sentences ---- */

/* Does the terminal's encoding have more than ASCII? Asked of the names: the locale itself need not
 * be installed. */
static bool has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *locale = getenv(names[i]);
        if (locale && locale[0])
            return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return false;
}

/* A line for the terminal out of a text that a script or a file may have made. */
static void put_line(const char *before, const char *text)
{
    dbo_strbuf line = {0};
    dbo_strbuf_add(&line, before);
    dbo_text_clean(&line, text, strlen(text));
    dbo_strbuf_add(&line, "\n");
    const char *whole = line.failed ? "dbo: out of memory\n" : dbo_strbuf_text(&line);
    if (has_utf8())
        fputs(whole, stderr);
    else
        dbo_ascii_write(whole, strlen(whole), stderr);
    dbo_strbuf_fini(&line);
}

/* After an interruption every failure is one, whatever noticed it first: a read that was
 * interrupted, a script, the simulator. */
static int print_error(const dbo_error *err, int code)
{
    (void)fflush(stdout); /* what was printed before stays before */
    if (err->status == DBO_CANCELLED || dbo_cli_interrupted(NULL)) {
        if (dbo_cli_says_interruption())
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
    return print_error(err, err->status == DBO_IO ? DBO_EXIT_USAGE : DBO_EXIT_FAILED);
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

int dbo_cli_end_with(dbo_status status, const dbo_error *err)
{
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail(err);
}

dbo_status dbo_cli_print(const dbo_cli *cli, dbo_strbuf *text, dbo_error *err)
{
    dbo_strbuf page = {0};
    dbo_text_clean_page(&page, dbo_strbuf_text(text), text->len, cli->use_color);
    dbo_strbuf_end(text, &page);
    dbo_status status = page.failed ? dbo_fail_memory(err, "the text") : DBO_OK;
    errno = 0;
    if (status == DBO_OK && cli->ascii)
        dbo_ascii_write(dbo_strbuf_text(&page), page.len, stdout);
    else if (status == DBO_OK)
        fputs(dbo_strbuf_text(&page), stdout);
    if (status == DBO_OK)
        status = dbo_output_check_stdout(errno, err); /* a later flush would know no reason */
    dbo_strbuf_fini(&page);
    return status;
}

dbo_status dbo_cli_print_document(const dbo_cli *cli, dbo_strbuf *text, dbo_error *err)
{
    dbo_strbuf lines = {0};
    dbo_wrap_document(&lines, dbo_strbuf_text(text), dbo_cli_width());
    dbo_strbuf_end(text, &lines);
    return dbo_cli_print(cli, &lines, err);
}

/* ---- outputs ---- */

/* The next option from *index on that names a file which is asked for, or NULL. */
static dbo_cli_output *next_output(const dbo_cli *cli, size_t *index, const char **name)
{
    const dbo_cli_option *row;
    while ((row = dbo_cli_option_at(cli->command, (*index)++))) {
        dbo_cli_output *output = (dbo_cli_output *)(void *)((char *)cli->arguments + row->at);
        *name = row->name;
        if (row->kind == DBO_CLI_OUTPUT && output->path)
            return output;
    }
    return NULL;
}

const char *dbo_cli_document_on_stdout(const dbo_cli *cli)
{
    const dbo_cli_output *output;
    const char *name;
    for (size_t i = 0; (output = next_output(cli, &i, &name));)
        if (dbo_output_names_stdout(output->path))
            return name;
    return NULL;
}

static dbo_status check_replaced(const char *name, const char *path, dbo_error *err)
{
    const char *read = dbo_input_replaced_by(path);
    if (!read)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, "Give it a file of its own.",
                    "--%s would replace %.300s, which is read", name, read);
}

dbo_status dbo_cli_check_outputs(const dbo_cli *cli, const char *input, dbo_error *err)
{
    const char *name, *on_stdout = dbo_cli_document_on_stdout(cli);
    const dbo_cli_output *output;
    if (input)
        DBO_TRY(dbo_input_remember(input, err));
    for (size_t i = 0; (output = next_output(cli, &i, &name));) {
        if (name != on_stdout && dbo_output_names_stdout(output->path))
            return dbo_fail(err, DBO_INVALID, "Give one of them a file.",
                            "--%s and --%s cannot both go to the standard output", on_stdout, name);
        DBO_TRY(check_replaced(name, output->path, err));
    }
    return DBO_OK;
}

dbo_status dbo_cli_open_outputs(dbo_cli *cli, dbo_error *err)
{
    const char *name, *earlier = "";
    dbo_cli_output *output, *other;
    for (size_t i = 0; (output = next_output(cli, &i, &name));) {
        DBO_TRY(check_replaced(name, output->path, err)); /* what a script has read, too */
        DBO_TRY(dbo_output_open(&output->file, output->path, dbo_cli_interrupted, err));
        for (size_t k = 0; (other = next_output(cli, &k, &earlier)) != output;)
            if (dbo_output_is_same(&other->file, &output->file))
                return dbo_fail(err, DBO_INVALID, "Give each a file of its own.",
                                "--%s and --%s both write %.300s", earlier, name, output->path);
    }
    return DBO_OK;
}

/* ---- running ---- */

static void log_line(void *self, dbo_log_subsystem subsystem, dbo_log_level level, const char *line)
{
    char before[64];
    (void)self;
    snprintf(before, sizeof before, "dbo: %s: %s: ", dbo_log_subsystem_name(subsystem),
             dbo_log_level_name(level));
    put_line(before, line);
}

static dbo_status begin_log(dbo_cli *cli, dbo_error *err)
{
    dbo_log_init(&cli->log, log_line, NULL);
    const char *environment = getenv("DBO_LOG");
    if (environment && dbo_log_set(&cli->log, environment, err) != DBO_OK)
        return dbo_error_prefix(err, "DBO_LOG");
    if (cli->log_text && dbo_log_set(&cli->log, cli->log_text, err) != DBO_OK)
        return dbo_error_prefix(err, "--log");
    return DBO_OK;
}

/* Terminals are known by parts of their names, as there is no database to ask; what is not known
 * has to be told. */
static bool knows_colours(const char *term)
{
    static const char *const parts[] = {
        "xterm",   "color", "ansi",  "linux", "screen", "tmux",      "rxvt",    "cygwin", "putty",
        "konsole", "gnome", "kitty", "foot",  "mlterm", "alacritty", "wezterm", "ghostty"};
    bool mono = term && strcasestr(term, "mono");
    for (size_t i = 0; term && !mono && i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(term, parts[i]))
            return true;
    return false;
}

static bool decide_color(const dbo_cli *cli)
{
    if (cli->color != DBO_COLOR_AUTO)
        return cli->color == DBO_COLOR_ALWAYS;
    const char *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(none && none[0]) && knows_colours(getenv("TERM"));
}

static int run_parsed(dbo_cli *cli)
{
    dbo_error err = {0};
    dbo_strbuf text = {0};
    if (cli->help)
        dbo_cli_add_help(cli->command, &text);
    else if (cli->version)
        dbo_strbuf_printf(&text, "dbo %s\n", DBO_BUILD_VERSION);
    if (cli->help || cli->version)
        return dbo_cli_end_with(dbo_cli_print(cli, &text, &err), &err);
    if (begin_log(cli, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    cli->use_color = decide_color(cli);
    cli->ascii = cli->ascii || !has_utf8();
    int code = cli->command->run(cli, cli->arguments);
    dbo_cli_output *output;
    const char *name;
    for (size_t i = 0; (output = next_output(cli, &i, &name));)
        dbo_output_discard(&output->file); /* of a committed one: nothing */
    return code;
}

int dbo_cli_run(const dbo_command *command, int argc, char **argv)
{
    dbo_cli cli = {.command = command, .arguments = calloc(1, command->bytes + 1)};
    dbo_parse parse = {.cli = &cli};
    if (dbo_need_memory(cli.arguments, "the arguments", &parse.err) != DBO_OK)
        return dbo_cli_fail(&parse.err);
    int code =
        parse_all(&parse, argc, argv) == DBO_OK ? run_parsed(&cli) : dbo_cli_fail_usage(&parse.err);
    free(cli.arguments);
    return code;
}

/* ---- the terminal ---- */

uint32_t dbo_cli_columns(void)
{
    struct winsize size = {0};
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    return columns <= 0 ? 0 : columns < 20 ? 20 : columns > 500 ? 500 : (uint32_t)columns;
}

uint32_t dbo_cli_width(void)
{
    uint32_t columns = dbo_cli_columns();
    return columns > 0 ? columns : 80;
}
