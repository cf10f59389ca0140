/* cli_signal.c: Ctrl-C as a flag.
 *
 * The one variable of the program outside any object: a signal handler has no other way to say
 * something. Simulator and scripts poll it; whoever wrote half a file removes it on the way out.
 */
#include "app/cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    if (interrupted)
        _exit(DBO_EXIT_INTERRUPTED);
    interrupted = 1;
}

void dbo_cli_catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

bool dbo_cli_interrupted(void *unused)
{
    (void)unused;
    return interrupted != 0;
}
