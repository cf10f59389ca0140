/* main.c: the `dbo` command: finds the command in its table and calls it.
 *
 * Shared options may stand before the command's name; they are handed on behind it. Everything
 * else is the command's own (cli.h).
 */
#include "app/cli.h"
#include "app/commands.h"
#include "core/base/suggest.h"
#include "dbo_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct argp_option command_docs[] = {
#define GROUP_ROW(number, heading) {NULL, 0, NULL, 0, heading, number},
    DBO_COMMAND_GROUP_MAP(GROUP_ROW)
#undef GROUP_ROW
#define COMMAND_ROW(name, group, arguments, what) \
    {#name arguments, 0, NULL, OPTION_DOC, what, group},
        DBO_COMMAND_MAP(COMMAND_ROW)
#undef COMMAND_ROW
            {"help COMMAND", 0, NULL, OPTION_DOC, "The options of a command, with examples", 5},
    {0}};

static const char top_doc[] =
    "Teaches, predicts and runs Dual Batch Overlap: two microbatches of a Mixture-of-Experts "
    "model, one communicating while the other computes."
    "\vExamples:\n"
    "  dbo run scripts/workloads/deepseek-v3-decode.lua\n"
    "  dbo run scripts/workloads/deepseek-v3-prefill.lua --set hardware=H20\n"
    "  dbo help run\n"
    "\n" DBO_EXIT_DOC;

// NOLINTNEXTLINE(readability-non-const-parameter): argp's type
static error_t parse_top(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    (void)state;
    return key == ARGP_KEY_ARG ? EINVAL : ARGP_ERR_UNKNOWN;
}

static const struct argp top = {command_docs, parse_top, "COMMAND ...", top_doc, NULL, NULL, NULL};

static int unknown_command(const char *name)
{
    dbo_error err = {0};
    dbo_suggestion near = dbo_suggest_begin(name);
    for (size_t i = 0; dbo_command_at(i); i++)
        dbo_suggest_offer(&near, dbo_command_at(i)->name);
    dbo_suggest_offer(&near, "help");
    if (near.nearest)
        dbo_fail(&err, DBO_INVALID, NULL, "unknown command '%.60s', did you mean '%s'?", name,
                 near.nearest);
    else
        dbo_fail(&err, DBO_INVALID, "See dbo --help.", "unknown command '%.60s'", name);
    return dbo_cli_fail_usage(&err);
}

/* Calls a command with `before` words that stood before its name. */
static int call(const dbo_command *command, char **before, int num_before, char **after,
                int num_after)
{
    char **argv = calloc((size_t)(num_before + num_after) + 2, sizeof *argv);
    if (!argv)
        return DBO_EXIT_FAILED;
    char name[16];
    snprintf(name, sizeof name, "%s", command->name);
    argv[0] = name;
    for (int i = 0; i < num_before; i++)
        argv[1 + i] = before[i];
    for (int i = 0; i < num_after; i++)
        argv[1 + num_before + i] = after[i];
    int code = command->run(num_before + num_after + 1, argv);
    free(argv);
    return code;
}

/* `dbo help`, `dbo help COMMAND`, `dbo help --man`. */
static int help(const char *word)
{
    dbo_cli cli;
    int code = DBO_EXIT_OK;
    char name[] = "dbo", option[] = "--help";
    char *words[] = {name, option, NULL};
    if (word && strcmp(word, "--man") == 0) {
        dbo_print_man_page();
        return dbo_cli_end();
    }
    const dbo_command *command = word ? dbo_command_find(word) : NULL;
    if (command)
        return call(command, words + 1, 1, NULL, 0);
    if (word && word[0] != '-')
        return unknown_command(word);
    dbo_cli_begin(&cli, &top, 2, words, NULL, NULL, &code);
    return code;
}

/* Without this, a file opened later could become the standard output that was closed. */
static void keep_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) /* open takes the lowest number: this one */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(DBO_EXIT_FAILED);
}

int main(int argc, char **argv)
{
    dbo_cli cli;
    dbo_error err = {0};
    int code = DBO_EXIT_USAGE, first = argc;
    char name[] = "dbo";
    keep_standard_files();
    dbo_cli_catch_signals();
    if (argc < 1)
        return DBO_EXIT_USAGE;
    argv[0] = name;
    if (dbo_cli_check_top(&top, argc, argv, &first, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (first == argc) { /* no command: --help, --version, or nothing to do */
        if (!dbo_cli_begin(&cli, &top, argc, argv, NULL, NULL, &code))
            return code;
        dbo_fail(&err, DBO_INVALID, "See dbo --help.", "which command?");
        return dbo_cli_fail_usage(&err);
    }
    if (strcmp(argv[first], "help") == 0)
        return help(first + 1 < argc ? argv[first + 1] : NULL);
    const dbo_command *command = dbo_command_find(argv[first]);
    if (!command)
        return unknown_command(argv[first]);
    return call(command, argv + 1, first - 1, argv + first + 1, argc - first - 1);
}
