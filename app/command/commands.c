/* commands.c: the table of commands (commands.h). */
#include "app/command/commands.h"

static const dbo_command *const commands[] = {
#define COMMAND_ROW(name) &dbo_command_##name,
    DBO_COMMAND_MAP(COMMAND_ROW)
#undef COMMAND_ROW
};

const dbo_command *dbo_command_at(size_t index)
{
    return index < sizeof commands / sizeof *commands ? commands[index] : NULL;
}

const char *dbo_command_name(size_t index)
{
    const dbo_command *command = dbo_command_at(index);
    return command ? command->name : NULL;
}
