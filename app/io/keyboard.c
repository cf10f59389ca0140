/* keyboard.c: a terminal in its own mode (keyboard.h).
 *
 * The signals that stop and continue come through a descriptor beside the keys, so that what they
 * need is done here and not in a handler, which would need a global to know the terminal.
 */
#include "app/io/keyboard.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define POLL_MS 100

static void take_terminal(const dbo_keyboard *k)
{
    struct termios raw = k->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(k->fd, TCSANOW, &raw);
}

static void give_terminal(const dbo_keyboard *k)
{
    (void)tcsetattr(k->fd, TCSANOW, &k->before);
}

void dbo_keyboard_open(dbo_keyboard *k, int fd)
{
    sigset_t signals;
    *k = (dbo_keyboard){.fd = fd, .signal_fd = -1};
    k->is_terminal = isatty(fd) && tcgetattr(fd, &k->before) == 0;
    if (!k->is_terminal)
        return;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTSTP);
    sigaddset(&signals, SIGCONT);
    sigaddset(&signals, SIGQUIT);
    if (pthread_sigmask(SIG_BLOCK, &signals, &k->mask_before) == 0)
        k->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signal_fd < 0)
        (void)pthread_sigmask(SIG_SETMASK, &k->mask_before, NULL);
    take_terminal(k);
}

void dbo_keyboard_close(dbo_keyboard *k)
{
    if (!k->is_terminal)
        return;
    give_terminal(k);
    if (k->signal_fd >= 0) {
        (void)close(k->signal_fd);
        (void)pthread_sigmask(SIG_SETMASK, &k->mask_before, NULL);
    }
    k->is_terminal = false;
}

/* Does what the signal would have done, with the terminal as it was before. */
static void take_signal(const dbo_keyboard *k)
{
    struct signalfd_siginfo info;
    if (read(k->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo != SIGCONT) { /* stopped from outside: only taken again */
        sigset_t blocked;
        give_terminal(k);
        (void)raise((int)info.ssi_signo);
        (void)pthread_sigmask(SIG_SETMASK, &k->mask_before, &blocked); /* here it stops, or ends */
        (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    }
    take_terminal(k);
}

/* One byte; false at the end of the input or when cancelled. */
static bool read_byte(const dbo_keyboard *k, bool (*cancelled)(void *unused), char *out)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = k->fd, .events = POLLIN},
                                  {.fd = k->signal_fd, .events = POLLIN}};
        if (cancelled && cancelled(NULL))
            return false;
        int number = poll(ready, 2, POLL_MS); /* a negative descriptor is passed over */
        if (number == 0 || (number < 0 && errno == EINTR))
            continue;
        if (number < 0)
            return false;
        if (ready[1].revents & POLLIN)
            take_signal(k);
        if (ready[0].revents == 0)
            continue;
        ssize_t got = read(k->fd, out, 1);
        if (got < 0 && errno == EINTR)
            continue;
        return got == 1;
    }
}

bool dbo_keyboard_read(dbo_keyboard *k, bool (*cancelled)(void *unused), char *key)
{
    char byte = 0;
    if (!read_byte(k, cancelled, key))
        return false;
    for (byte = *key; !k->is_terminal && byte != '\n';)
        if (!read_byte(k, cancelled, &byte))
            return false;
    return true;
}
