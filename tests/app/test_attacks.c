/* test_attacks.c: the scripts of attacks.txt, as a user runs them: dbo does not crash, takes at
 * most 1.5 times the limit of memory, ends within the limit of time and a second, prints nothing
 * that commands a terminal or hides, and opens nothing that it may not (as strace sees it).
 *
 * Those of kind `slow` take all the time that there is: test_attacks_long runs them, too. Under the
 * sanitizers a report of theirs is a crash, and memory and time are not looked at. */
#include "tests/support/folder.h"
#include "tests/support/opened.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#else
#define SANITIZED false
#endif
#define MEMORY_MIB 48L
#define LIMIT_S    1.0
#define FEW_SLOW   3 /* of the slow ones, in the short test */
#ifndef ATTACKS_LONG
#define ATTACKS_LONG 0
#endif

static const char head[] =
    "local dbo = require 'dbo' local e = dbo.experiment { gpus_per_node = 2, layers = 2, "
    "enable_expert_parallel = true, enable_dbo = true, costs = dbo.fixed { A = 9, D = 7 }, "
    "batch = dbo.decode { num_tokens = 64 } } ";

static char attacks[1 << 16], printed[1 << 20];
static uint32_t num_run, num_slow;

/* ---- what was printed ---- */

/* The character at *at, which it passes; 0x110000 if it is none. */
static uint32_t next_character(const unsigned char **at, const unsigned char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t first = *(*at)++;
    uint32_t length = first < 0x80             ? 1
                      : (first & 0xe0) == 0xc0 ? 2
                      : (first & 0xf0) == 0xe0 ? 3
                      : (first & 0xf8) == 0xf0 ? 4
                                               : 0;
    uint32_t value = length > 1 ? first & (0x7fu >> length) : first;
    for (uint32_t i = 1; i < length; i++, (*at)++) {
        if (*at == end || (**at & 0xc0) != 0x80)
            return 0x110000;
        value = value << 6 | (**at & 0x3fu);
    }
    bool is_one = length > 0 && value >= least[length] && (value < 0xd800 || value > 0xdfff);
    return is_one ? value : 0x110000;
}

/* Said here once more, and not by the cleaner's own table: what no text from a script may have. */
static bool is_unfit(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 8},           {11, 31},           {127, 159},          {0xad, 0xad},
        {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},    {0x2060, 0x206f},
        {0xfeff, 0xfeff}, {0xe0000, 0xe0fff}, {0x110000, 0x110000}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

static void check_text(const char *name, const char *text, size_t length, bool whole)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        size_t place = (size_t)(at - (const unsigned char *)text);
        uint32_t c = next_character(&at, end);
        if (is_unfit(c) && (whole || length - place > 4))
            fail_msg("%s prints U+%04X at %zu: %.60s", name, c, place,
                     text + (place > 20 ? place - 20 : 0));
    }
}

/* ---- one ---- */

static pid_t start(bool traced, int out)
{
    const char *const plain[] = {DBO_PROGRAM,    "run", "--memory-limit", "48",
                                 "--time-limit", "1",   "t.lua",          NULL};
    const char *const under[] = {
        "strace", "-f",           "-y",        "-e",    "trace=?open,openat,?openat2,?creat",
        "-o",     "../trace",     DBO_PROGRAM, "run",   "--memory-limit",
        "48",     "--time-limit", "1",         "t.lua", NULL};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    if (chdir(path_of("in").text) != 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    execvp(traced ? under[0] : plain[0], (char *const *)(uintptr_t)(traced ? under : plain));
    _exit(127);
}

static void attack(const char *name, bool traced)
{
    int status = 0, out = open(path_of("out").text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct rusage used;
    assert_true(out >= 0);
    pid_t child = start(traced, out);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    double cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    ssize_t length = pread(out, printed, sizeof printed - 1, 0);
    off_t all = lseek(out, 0, SEEK_END);
    close(out);
    assert_true(length >= 0);
    printed[length] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        fail_msg("%s ends with status %x: %.800s", name, (unsigned)status, printed);
    if (strstr(printed, "Sanitizer") || strstr(printed, "runtime error:"))
        fail_msg("%s: %.2000s", name, printed);
    if (strstr(printed, "unexpected symbol") && strncmp(name, "parse", 5) != 0)
        fail_msg("%s is no script: %s", name, printed);
    if (!traced && !SANITIZED && used.ru_maxrss > MEMORY_MIB * 1024 * 3 / 2)
        fail_msg("%s takes %ld KiB", name, used.ru_maxrss);
    if (!traced && !SANITIZED && cpu_s > LIMIT_S + 1)
        fail_msg("%s takes %.1f s", name, cpu_s);
    check_text(name, printed, (size_t)length, length == all);
    if (traced)
        assert_true(check_opened("trace", name) > 3); /* of which one is the script */
    num_run++;
}

/* ---- all ---- */

/* Writes the script, with `word` for each '@'. */
static void put_script(const char *text, size_t length, const char *word)
{
    FILE *file = fopen(path_of("in/t.lua").text, "w");
    assert_non_null(file);
    fputs(head, file);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '@' && word)
            fputs(word, file);
        else
            fputc(text[i], file);
    }
    assert_int_equal(fclose(file), 0);
}

static bool is_wanted(const char *name)
{
    bool slow = strncmp(name, "slow ", 5) == 0;
    return !slow || num_slow++ < FEW_SLOW || ATTACKS_LONG;
}

/* A block: its line, which it cuts, and its text. */
static void attack_with(char *line, const char *text, size_t length, bool traced)
{
    char name[256], *words = strstr(line, " @ "), *rest = NULL;
    if (!words) {
        put_script(text, length, NULL);
        if (is_wanted(line))
            attack(line, traced);
        return;
    }
    *words = '\0';
    for (char *word = strtok_r(words + 3, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        snprintf(name, sizeof name, "%s, %s", line, word);
        put_script(text, length, word);
        if (is_wanted(line))
            attack(name, traced);
    }
}

static void attack_all(bool traced)
{
    FILE *file = fopen(DBO_SOURCE_DIR "/tests/app/attacks.txt", "r");
    assert_non_null(file);
    size_t length = fread(attacks, 1, sizeof attacks - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_true(length < sizeof attacks - 1);
    attacks[length] = '\0';
    num_run = num_slow = 0;
    for (char *at = strstr(attacks, "\n== "), *next; at; at = next) {
        char *line = at + 4, *text = strchr(line, '\n');
        assert_non_null(text);
        next = strstr(text, "\n== ");
        *text++ = '\0';
        attack_with(line, text, next ? (size_t)(next - text) : strlen(text), traced);
    }
    printf("%u attacks%s\n", num_run, traced ? ", traced" : "");
}

static void every_attack_is_held(void **state)
{
    (void)state;
    attack_all(false);
    assert_true(num_run >= 200);
}

#if ATTACKS_LONG
static void nothing_outside_is_opened(void **state)
{
    (void)state;
    if (SANITIZED)
        not_run("a sanitizer cannot be traced: which files attacks open is not tested");
    need_trace();
    attack_all(true);
}
#endif

static int make_in(void **state)
{
    char shell[64];
    if (make_folder(state) != 0)
        return -1;
    snprintf(shell, sizeof shell, "mkdir %s/in", folder);
    return system(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attack_is_held),
#if ATTACKS_LONG
        cmocka_unit_test(nothing_outside_is_opened),
#endif
    };
    setenv("LC_ALL", "C.UTF-8", 1);
    return cmocka_run_group_tests_name("attacks", tests, make_in, remove_folder);
}
