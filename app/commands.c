/* commands.c: the table of commands (commands.h). */
#include "app/commands.h"

#include "app/cli.h"
#include "app/eval/eval.h"

#include <string.h>

static const dbo_command commands[] = {
#define COMMAND_ROW(name, group, arguments, what) \
    {#name, group, arguments, what, dbo_command_##name},
    DBO_COMMAND_MAP(COMMAND_ROW)
#undef COMMAND_ROW
};

#define NUM_COMMANDS (sizeof commands / sizeof *commands)

const dbo_command *dbo_command_at(size_t index)
{
    return index < NUM_COMMANDS ? &commands[index] : NULL;
}

const dbo_command *dbo_command_find(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
