/* keyboard.h: keys one by one from a terminal, whose settings come back whatever happens.
 *
 * While it is open the terminal neither waits for whole lines nor shows what is typed; Ctrl-C stays
 * what it is. When the process is stopped (Ctrl-Z) or quits, the terminal is first put back, and is
 * taken again when it goes on. Where the input is no terminal, a key is a line.
 *
 *     dbo_keyboard keyboard;
 *     dbo_keyboard_open(&keyboard, STDIN_FILENO);
 *     while (dbo_keyboard_read(&keyboard, cancelled, &key)) ...
 *     dbo_keyboard_close(&keyboard);
 *
 * SIGTSTP, SIGCONT and SIGQUIT are blocked in the calling thread meanwhile. One thread; no two on
 * one terminal.
 */
#ifndef DBO_APP_KEYBOARD_H
#define DBO_APP_KEYBOARD_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

typedef struct dbo_keyboard {
    int fd, signal_fd; /* signal_fd < 0: none */
    bool is_terminal;
    struct termios before;
    sigset_t mask_before;
} dbo_keyboard;

void dbo_keyboard_open(dbo_keyboard *keyboard, int fd);
void dbo_keyboard_close(dbo_keyboard *keyboard);

/* Waits for a key, or for a line, of which *key is the first byte. False at the end of the input,
 * and when `cancelled` (may be NULL) says so. */
bool dbo_keyboard_read(dbo_keyboard *keyboard, bool (*cancelled)(void *unused), char *key);

#endif
