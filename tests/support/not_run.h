/* not_run.h: a test that this machine or this build cannot run says so. `./dev test` repeats it.
 *
 *     if (!can_trace())
 *         not_run("strace is missing: nobody looks at which files are opened");
 */
#ifndef TESTS_NOT_RUN_H
#define TESTS_NOT_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Ends the test, as neither passed nor failed. */
static inline void not_run(const char *why)
{
    fprintf(stderr, "NOT RUN: %s\n", why);
    skip();
}

#endif
