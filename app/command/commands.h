/* commands.h: the commands of `dbo`. A new one is a file app/command/NAME.c that defines
 * dbo_command_NAME (cli.h), a row here, and its words in say/commands.txt; help, manual page and
 * completions follow.
 *
 *     const dbo_command *command;
 *     for (size_t i = 0; (command = dbo_command_at(i)); i++)
 *         printf("%-12s %s\n", command->name, command->what);
 */
#ifndef DBO_APP_COMMANDS_H
#define DBO_APP_COMMANDS_H

#include "app/command/cli.h"

/* In the order of the help. */
#define DBO_COMMAND_MAP(X) \
    X(run)                 \
    X(scripts)             \
    X(show)                \
    X(check)               \
    X(faults)              \
    X(eval)                \
    X(bench)               \
    X(doctor)              \
    X(explain)             \
    X(completion)          \
    X(help)

#define DBO_COMMAND_DECLARE(name) extern const dbo_command dbo_command_##name;
DBO_COMMAND_MAP(DBO_COMMAND_DECLARE)
#undef DBO_COMMAND_DECLARE

/* `dbo` itself: its help lists the others (help.c). */
extern const dbo_command dbo_command_top;

/* The command at `index`, NULL past the end. */
const dbo_command *dbo_command_at(size_t index);
/* Its name, as dbo_cli_words has it. */
const char *dbo_command_name(size_t index);

#endif
