/* cli_signal.c: Ctrl-C as a flag.
 *
 * The one variable of the program outside any object: a signal handler has no other way to say
 * something. Simulator and scripts poll it, scripts from a thread of their own, hence an atomic
 * (a lock-free one is as good in a handler); whoever wrote half a file removes it on the way out.
 */
#include "app/cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int interrupted;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may touch lock-free atomics only");

static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&interrupted, 1) != 0)
        _exit(DBO_EXIT_INTERRUPTED);
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
    return atomic_load(&interrupted) != 0;
}
