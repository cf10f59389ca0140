/* report.h: what one rank says of a case: what it measured, and what must be the same everywhere.
 *
 *     test_say(&report->line, "%u replays verified; ", replays);
 *     test_tell(report, "rank %u got %d rows", rank, rows);    // compared with the simulator's
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

typedef struct test_report {
    bool ended; /* else its process was stopped or crashed */
    dbo_status status;
    char message[512];
    test_line line;
    size_t used;
    char told[1 << 19]; /* a line a fact */
} test_report;

/* Appends to the line. */
void test_say(test_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a line to what is told. */
void test_tell(test_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first line in which `other` differs, or NULL; *own is what is there instead. Both are cut at
 * their ends: the reports cannot be compared again. */
const char *test_first_difference(test_report *report, test_report *other, const char **own);

int64_t test_now_ns(void);

#endif
