/* commands.h: every command of `dbo`, once: its group in the help, its arguments, what it does.
 *
 * A command NAME is `int dbo_command_NAME(int argc, char **argv)` (cli.h). A new one is a row here;
 * help, man page and completion follow.
 */
#ifndef DBO_APP_COMMANDS_H
#define DBO_APP_COMMANDS_H

#include <stddef.h>

/* Groups in the order of the help. X(number, heading) */
#define DBO_COMMAND_GROUP_MAP(X) \
    X(1, "Predict:")             \
    X(2, "See:")                 \
    X(3, "Prove:")               \
    X(4, "Real machines:")       \
    X(5, "Learn:")

/* X(name, group, arguments, what it does) */
#define DBO_COMMAND_MAP(X)                                                                   \
    X(run, 1, " SCRIPT", "Simulate a step with DBO off and on, and compare")                 \
    X(show, 2, " WHAT SCRIPT", "A part of a step: vote, slices, metadata, program, graph")   \
    X(check, 3, " [SCRIPT]", "What may go wrong in some order of completion, and lost time") \
    X(faults, 3, "", "Pitfalls that a run can be given, to see what they look like")         \
    X(eval, 3, " KIND", "The engine's decisions on a file of cases")                         \
    X(bench, 3, " [NAME]", "How fast dbo itself is")                                         \
    X(doctor, 4, "", "What this build and this machine have")                                \
    X(explain, 5, " [TERM]", "What a word means: of a timeline, a result, a key, a fault")   \
    X(completion, 5, " SHELL", "The completion of a shell: bash or zsh")

typedef struct dbo_command {
    const char *name;
    int group;
    const char *arguments, *what;
    int (*run)(int argc, char **argv);
} dbo_command;

/* The command at `index`, NULL past the end. */
const dbo_command *dbo_command_at(size_t index);
/* The command of that name, or NULL. */
const dbo_command *dbo_command_find(const char *name);

/* Prints the manual page of all commands (cli_man.c). */
void dbo_print_man_page(void);

#endif
