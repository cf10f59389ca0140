/* report.c: both appends stop at the end of their room. */
#include "tests/gpu/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void append(char *text, size_t bytes, size_t *used, const char *format, va_list args)
{
    size_t room = bytes - *used;
    int n = vsnprintf(text + *used, room, format, args);
    *used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

void test_say(test_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(line->text, sizeof line->text, &line->used, format, args);
    va_end(args);
}

void test_tell(test_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(report->told, sizeof report->told - 1, &report->used, format, args);
    va_end(args);
    report->told[report->used++] = '\n';
}

const char *test_first_difference(test_report *report, test_report *other, const char **own)
{
    char *a = report->told, *b = other->told;
    for (;;) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        bool same = n == m && memcmp(a, b, n) == 0, last = !a[n] && !b[m];
        if (same && last)
            return NULL;
        if (!same || !a[n] || !b[m]) {
            a[n] = b[m] = '\0';
            *own = *a ? a : "(nothing)";
            return *b ? b : "(nothing)";
        }
        a += n + 1;
        b += m + 1;
    }
}

int64_t test_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
