/* signal.c: Ctrl-C as a flag.
 *
 * The one variable of the program outside any object: a signal handler has no other way to say
 * something. Simulator and scripts poll it, scripts from a thread of their own, hence an atomic
 * (a lock-free one is as good in a handler); whoever wrote half a file removes it on the way out.
 *
 * A signal that comes just before a read that blocks would not interrupt it. So from the first one
 * on an alarm rings twenty times a second, which ends any such call. A command that runs scripts
 * insists: what has not ended at the third ring (a lock that a thread in a full pipe holds, memory
 * by the gigabyte that is given back) is ended there, in the handler, with the sentence, the code
 * and the half-written files as on the way out.
 */
#include "app/command/cli.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define RINGS 3

static atomic_int interrupted; /* the number of the first signal */
static atomic_int rings;
static atomic_bool insists, is_said;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2,
               "a signal handler may touch lock-free atomics only");

static void ring(void)
{
    const struct timeval often = {.tv_usec = 50000};
    (void)setitimer(ITIMER_REAL, &(struct itimerval){often, often}, NULL);
}

static void on_signal(int number)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&interrupted, &none, number)) {
        dbo_output_drop_all();
        _exit(128 + number);
    }
    ring();
}

static void on_alarm(int number)
{
    static const char sentence[] = "dbo: interrupted\n";
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    (void)number; /* what it interrupts is what it is for */
    if (atomic_fetch_add(&rings, 1) + 1 < RINGS || !atomic_load(&insists))
        return;
    dbo_output_drop_all();
    if (dbo_cli_says_interruption() && poll(&out, 1, 0) == 1)
        (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(dbo_cli_interruption_code());
}

void dbo_cli_insist(bool on)
{
    atomic_store(&insists, on);
}

bool dbo_cli_says_interruption(void)
{
    return !atomic_exchange(&is_said, true);
}

void dbo_cli_catch_signals(void)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

bool dbo_cli_interrupted(void *unused)
{
    (void)unused;
    return atomic_load(&interrupted) != 0;
}

int dbo_cli_interruption_code(void)
{
    int number = atomic_load(&interrupted);
    return number != 0 ? 128 + number : DBO_EXIT_INTERRUPTED;
}
