/* cli.h: a command of `dbo`, described once: its table of options is what parses, and what --help,
 * the manual page and the completions say.
 *
 * A command is one file, app/command/NAME.c, one row in commands.h, and its words in
 * say/commands.txt:
 *
 *     typedef struct greet_arguments { const char *name; bool loud; } greet_arguments;
 *     static const dbo_cli_option arguments[] = {
 *         {"NAME", .help = "a name", .kind = DBO_CLI_TEXT, .required = true,
 *          .at = offsetof(greet_arguments, name)},
 *         {0}};
 *     static const dbo_cli_option options[] = {
 *         {"loud", .help = "In capitals", .at = offsetof(greet_arguments, loud)}, {0}};
 *     static int greet(dbo_cli *cli, void *given) { ... return dbo_cli_end(); }
 *     const dbo_command dbo_command_greet = {DBO_COMMAND_TEXT(greet), .arguments = arguments,
 *         .options = options, .bytes = sizeof(greet_arguments), .run = greet};
 *
 * Every mistake on the command line is one sentence with the nearest option. Errors go to stderr as
 * "dbo: SENTENCE" and, if there is a hint, "     HINT" below.
 */
#ifndef DBO_APP_CLI_H
#define DBO_APP_CLI_H

#include "app/io/output.h"
#include "command_texts.h" /* generated from app/say/commands.txt */
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- exit codes ---- */

/* For --help and the manual page. */
#define DBO_EXIT_DOC                                                                             \
    "Exit codes: 0 fine; 1 the run failed: something in a script, in a file or in the value of " \
    "--set KEY=VALUE is wrong; 2 the command line cannot be understood, or a path on it cannot " \
    "be read or written; 3 a check found something; 130 Ctrl-C (128 and the number of another "  \
    "signal)."

#define DBO_EXIT_OK          0
#define DBO_EXIT_FAILED      1
#define DBO_EXIT_USAGE       2
#define DBO_EXIT_FINDINGS    3
#define DBO_EXIT_INTERRUPTED 130

/* ---- the table of a command ---- */

/* Words one by one: NULL past the end; "" is left out. */
typedef const char *(*dbo_cli_words)(size_t index);

/* What an option fills in, at `at` of the command's arguments, which begin as zero. */
typedef enum dbo_cli_kind {
    DBO_CLI_FLAG,   /* bool; no value */
    DBO_CLI_TEXT,   /* const char *; completed by files */
    DBO_CLI_SCRIPT, /* const char *; completed by files and the names of scripts */
    DBO_CLI_NUMBER, /* dbo_cli_number, from min to max */
    DBO_CLI_WORD,   /* uint32_t: the index of one of `words`; not given is the first */
    DBO_CLI_OUTPUT, /* dbo_cli_output: a file that is written */
    DBO_CLI_TAKEN,  /* `take` does it */
} dbo_cli_kind;

typedef struct dbo_cli_number {
    bool given;
    uint32_t value;
} dbo_cli_number;

typedef struct dbo_cli_output {
    const char *path; /* NULL: not asked for */
    dbo_output file;  /* open between dbo_cli_open_outputs and its commit */
} dbo_cli_output;

/* An option, or an argument: a word without dashes, by its place. */
typedef struct dbo_cli_option {
    const char *name;    /* "layers"; of an argument "SCRIPT" */
    const char *value;   /* "A:B"; NULL: the option takes none */
    const char *help;    /* a sentence without its point; of an argument "a script" */
    const char *usual;   /* the default, if it is worth saying */
    const char *example; /* of a value, for whoever gave a wrong one */
    char letter;         /* 'i': -i is the same; or 0 */
    bool required;
    bool many; /* an argument that takes all words that are left; an option that may come again */
    dbo_cli_kind kind;
    size_t at;
    uint32_t min, max;
    dbo_cli_words words;    /* what it can be, and what completes it; NULL: anything */
    bool (*is_there)(void); /* false: this build is without what it needs; NULL: it never is */
    /* DBO_CLI_TAKEN: reads the text into what is `at`; a failure is a mistake on the command line.
     */
    dbo_status (*take)(void *at, const char *text, dbo_error *err);
} dbo_cli_option;

typedef enum dbo_color { DBO_COLOR_AUTO, DBO_COLOR_ALWAYS, DBO_COLOR_NEVER } dbo_color;

typedef struct dbo_command dbo_command;

/* A running command: what the options of every command say, and the command itself. */
typedef struct dbo_cli {
    bool ascii;     /* as asked, or because the locale has no more */
    bool use_color; /* as decided: --color, NO_COLOR, a terminal */
    dbo_log log;    /* to stderr */
    const dbo_command *command;
    void *arguments;
    uint32_t color; /* dbo_color, as asked */
    const char *log_text;
    bool help, version;
} dbo_cli;

/* Its name, group, what, help and examples, and its notes if it has some, from
 * app/say/commands.txt. */
#define DBO_COMMAND_TEXT(name) DBO_COMMAND_TEXT_##name

struct dbo_command {
    const char *name, *group, *what;                 /* `group` is its heading in dbo --help */
    const char *help, *examples, *notes;             /* paragraphs; lines that begin with blanks */
    const dbo_cli_option *arguments, *options;       /* they end with a row of zeroes; or NULL */
    size_t bytes;                                    /* of the struct that they fill in */
    int (*run)(dbo_cli *cli, void *given_arguments); /* returns the exit code */
};

/* Parses argv (argv[0] is not looked at) and runs the command, or answers --help and --version, or
 * says what is wrong. Outputs that are still open afterwards are discarded. Returns the exit code.
 */
int dbo_cli_run(const dbo_command *command, int argc, char **argv);

/* Option `index` of a command, with those of every command behind its own; NULL past the end. */
const dbo_cli_option *dbo_cli_option_at(const dbo_command *command, size_t index);
/* Is it one of every command? */
bool dbo_cli_is_shared(const dbo_cli_option *option);

/* Looks through argv for unknown options, missing and superfluous values (options.c);
 * `first_word` (may be NULL): only up to the first argument that is no option, whose index it gets
 * (argc if none). */
dbo_status dbo_cli_check(const dbo_command *command, int argc, char **argv, int *first_word,
                         dbo_error *err);
/* A value that is none of the option's words. */
dbo_status dbo_cli_fail_word(const dbo_cli_option *option, const char *text, dbo_error *err);

/* Appends the help of a command (help.c). */
void dbo_cli_add_help(const dbo_command *command, dbo_strbuf *out);
/* Appends "SCRIPT [NAME]": its arguments. */
void dbo_cli_add_arguments(const dbo_command *command, dbo_strbuf *out);

/* ---- ends ---- */

/* Prints the error and returns the exit code that its status has, for all commands: 2 where a path
 * cannot be read or written, else 1. After an interruption every error is "interrupted", 130. */
int dbo_cli_fail(const dbo_error *err);
/* The same for a mistake on the command line; returns 2, or 130. */
int dbo_cli_fail_usage(const dbo_error *err);
/* Flushes stdout: a reader that went away is no error, a full disk is. Returns the exit code. */
int dbo_cli_end(void);
/* One of the two. */
int dbo_cli_end_with(dbo_status status, const dbo_error *err);
/* Prints and frees the text, in ASCII if so asked. */
dbo_status dbo_cli_print(const dbo_cli *cli, dbo_strbuf *text, dbo_error *err);
/* The same of a document: its lines are wrapped (viz/text/wrap.h). */
dbo_status dbo_cli_print_document(const dbo_cli *cli, dbo_strbuf *text, dbo_error *err);

/* ---- outputs: the options of kind DBO_CLI_OUTPUT ---- */

/* Have they names, at most one of them stdout, and none that of a file that is read: `input` (or
 * NULL), or one remembered before (input.h)? */
dbo_status dbo_cli_check_outputs(const dbo_cli *cli, const char *input, dbo_error *err);
/* Opens those that were asked for; refuses one file for two, and one that was read since. */
dbo_status dbo_cli_open_outputs(dbo_cli *cli, dbo_error *err);
/* Which goes to stdout, and leaves no room there for anything else? Its name or NULL. */
const char *dbo_cli_document_on_stdout(const dbo_cli *cli);

/* Columns of the terminal at stdout, or $COLUMNS: from 20 to 500; 0: not known. */
uint32_t dbo_cli_columns(void);
uint32_t dbo_cli_width(void); /* the same, or 80 */

/* ---- Ctrl-C (signal.c) ---- */

/* From now on the first Ctrl-C (or SIGTERM, SIGHUP) only makes dbo_cli_interrupted true; a second
 * one ends the process at once. A closed pipe and a file that may not grow are errors of write, not
 * signals. */
void dbo_cli_catch_signals(void);
/* 128 and the number of the signal that interrupted: 130 for Ctrl-C, and if there was none. */
int dbo_cli_interruption_code(void);
/* Whether an interruption ends the process within 0.2 s even if the command does not (not at
 * first).
 */
void dbo_cli_insist(bool on);
/* Is it for the caller to say so? True once. */
bool dbo_cli_says_interruption(void);
/* Has there been one? The argument, which is not used, lets it be a `cancelled` slot. */
bool dbo_cli_interrupted(void *unused);

#endif
