/* cli.h: what the commands of `dbo` share: options, colour and logs, sentences, exit codes.
 *
 * A command is `int dbo_command_NAME(int argc, char **argv)`: argv[0] is its name, the result the
 * exit code. It parses with dbo_cli_parse, which answers --help and --version itself and turns
 * every mistake on the command line into one sentence with the nearest option:
 *
 *     dbo_cli cli;
 *     int code;
 *     if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
 *         return code;
 *     ... dbo_error err = {0}; if (work(&err) != DBO_OK) return dbo_cli_fail(&err); ...
 *     return dbo_cli_end();
 *
 * Errors go to stderr as "dbo: SENTENCE" and, if there is a hint, "     HINT" below.
 */
#ifndef DBO_APP_CLI_H
#define DBO_APP_CLI_H

#include "app/io/output.h"
#include "core/base/log.h"
#include "core/base/status.h"

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

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

typedef enum dbo_color { DBO_COLOR_AUTO, DBO_COLOR_ALWAYS, DBO_COLOR_NEVER } dbo_color;

/* The options that every command takes. */
typedef struct dbo_cli {
    bool ascii;      /* no characters beyond ASCII */
    dbo_color color; /* as asked */
    bool use_color;  /* as decided: --color, NO_COLOR, a terminal */
    dbo_log log;     /* to stderr */
    const char *log_text;
} dbo_cli;

/* Parses argv by `argp`, whose options are the command's own; the shared ones are added. `input`
 * is given to argp's parser in state->input; *mistake (part of the input, or NULL) is where that
 * parser leaves its sentence when it returns EINVAL. False: *code is the exit code (help was
 * printed, or a sentence about a mistake). */
bool dbo_cli_begin(dbo_cli *cli, const struct argp *argp, int argc, char **argv, void *input,
                   const dbo_error *mistake, int *code);

/* Looks through argv for unknown options, missing and superfluous values; `first_word` (may be
 * NULL): only up to the first argument that is no option, whose index it gets (argc if none). */
dbo_status dbo_cli_check(const struct argp *argp, int argc, char **argv, int *first_word,
                         dbo_error *err);
/* The same for the options that may stand before a command's name: the shared ones. */
dbo_status dbo_cli_check_top(const struct argp *argp, int argc, char **argv, int *first_word,
                             dbo_error *err);

/* Prints the error; returns the exit code, 1. After an interruption every error is "interrupted",
 * and the code 130. */
int dbo_cli_fail(const dbo_error *err);
/* The same for a mistake on the command line; returns 2, or 130. */
int dbo_cli_fail_usage(const dbo_error *err);

/* Flushes stdout: a reader that went away is no error, a full disk is. Returns the exit code. */
int dbo_cli_end(void);

/* Are --json and --trace (NULL: not asked for) files, and other ones than `input`? */
dbo_status dbo_cli_check_outputs(const char *json_path, const char *trace_path, const char *input,
                                 dbo_error *err);
/* Opens them, and refuses one file for both. The caller discards what is open, also on failure. */
dbo_status dbo_cli_open_outputs(const char *json_path, dbo_output *json, const char *trace_path,
                                dbo_output *trace, dbo_error *err);

/* Columns of the terminal at stdout, $COLUMNS, or 80; at least 80 and at most 500. */
uint32_t dbo_cli_width(void);
/* The same for what is only running text: at least 40. */
uint32_t dbo_cli_text_width(void);

/* Prints the shared options for the manual page. */
void dbo_cli_man_shared(void);

/* ---- Ctrl-C (cli_signal.c) ---- */

/* From now on the first Ctrl-C (or SIGTERM, SIGHUP) only makes dbo_cli_interrupted true; a second
 * one ends the process at once. A closed pipe and a file that may not grow are errors of write, not
 * signals. */
void dbo_cli_catch_signals(void);
/* 128 and the number of the signal that interrupted: 130 for Ctrl-C, and if there was none. */
int dbo_cli_interruption_code(void);
/* Has there been one? The argument, which is not used, lets it be a `cancelled` slot. */
bool dbo_cli_interrupted(void *unused);

/* ---- commands ---- */

int dbo_command_run(int argc, char **argv);
int dbo_command_show(int argc, char **argv);
int dbo_command_check(int argc, char **argv);
int dbo_command_bench(int argc, char **argv);
int dbo_command_doctor(int argc, char **argv);
int dbo_command_faults(int argc, char **argv);
int dbo_command_explain(int argc, char **argv);
int dbo_command_completion(int argc, char **argv);

#endif
