/* report.c: both appends stop at the end of their room. */
#include "tests/gpu/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void test_say(test_line *line, const char *format, ...)
{
    va_list args;
    size_t room = sizeof line->text - line->used;
    va_start(args, format);
    int n = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    line->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

void test_put(test_report *report, const void *bytes, size_t count)
{
    if (report->output_bytes + count <= TEST_MAX_OUTPUT)
        memcpy(report->output + report->output_bytes, bytes, count);
    report->output_bytes += count;
}

int64_t test_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
