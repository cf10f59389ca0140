/* report.h: what one rank says of a case: what it measured, and what must be the same everywhere.
 *
 *     test_say(&report->line, "%u replays verified; ", replays);
 *     test_put(report, numbers, sizeof numbers);      // compared with what the simulator put
 *
 * A report lies in memory that the process which runs the case shares with the one that judges it,
 * so it has no pointers.
 */
#ifndef DBO_TESTS_GPU_REPORT_H
#define DBO_TESTS_GPU_REPORT_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test_line {
    char text[1600];
    size_t used;
} test_line;

enum { TEST_MAX_OUTPUT = 1 << 20 };

typedef struct test_report {
    bool ended; /* else its process was stopped or crashed */
    dbo_status status;
    char message[512];
    test_line line;
    size_t output_bytes; /* more than there is room for: it did not fit */
    uint8_t output[TEST_MAX_OUTPUT];
} test_report;

/* Appends to the line. */
void test_say(test_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends to the output. */
void test_put(test_report *report, const void *bytes, size_t count);

int64_t test_now_ns(void);

#endif
