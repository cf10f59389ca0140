/* main.c: the `dbo` command: finds the command in its table and runs it.
 *
 * Shared options may stand before the command's name; they are handed on behind it. Everything
 * else is the command's own (cli.h).
 */
#include "app/commands.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Without this, a file opened later could become the standard output that was closed. */
static void keep_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) /* open takes the lowest number: this one */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(DBO_EXIT_FAILED);
}

int main(int argc, char **argv)
{
    dbo_error err = {0};
    int first = argc;
    size_t i = 0;
    keep_standard_files();
    dbo_cli_catch_signals();
    if (dbo_cli_check(&dbo_command_top, argc, argv, &first, &err) != DBO_OK)
        return dbo_cli_fail_usage(&err);
    if (first >= argc) /* no command: --help, --version, or nothing to do */
        return dbo_cli_run(&dbo_command_top, argc, argv);
    while (dbo_command_at(i) && strcmp(dbo_command_name(i), argv[first]) != 0)
        i++;
    if (!dbo_command_at(i)) {
        dbo_cli_fail_word(dbo_command_top.arguments, argv[first], &err);
        return dbo_cli_fail_usage(&err);
    }
    /* What stood before the name takes its place: argv[0] is not looked at. */
    memmove(argv + 1, argv, (size_t)first * sizeof *argv);
    return dbo_cli_run(dbo_command_at(i), argc - 1, argv + 1);
}
