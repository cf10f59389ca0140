/* test_log.c: which lines reach the sink, and how a setting is refused. */
#include "core/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct heard {
    char line[2 * DBO_LOG_LINE_BYTES];
    dbo_log_subsystem subsystem;
    dbo_log_level level;
    int count;
} heard;

static void hear(void *self, dbo_log_subsystem subsystem, dbo_log_level level, const char *line)
{
    heard *to = self;
    to->subsystem = subsystem;
    to->level = level;
    to->count++;
    snprintf(to->line, sizeof to->line, "%s", line);
}

static int evaluated(int *count)
{
    return ++*count;
}

static void test_levels(void **state)
{
    (void)state;
    heard to = {0};
    int count = 0;
    dbo_log log;
    dbo_log_init(&log, hear, &to);
    DBO_LOG(&log, VOTE, INFO, "not said: %d", evaluated(&count));
    assert_int_equal(to.count, 0);
    assert_int_equal(count, 0); /* off: arguments are not evaluated */
    DBO_LOG(&log, VOTE, WARN, "said: %d", evaluated(&count));
    assert_int_equal(to.count, 1);
    assert_string_equal(to.line, "said: 1");
    assert_int_equal(to.subsystem, DBO_LOG_VOTE);
    assert_int_equal(to.level, DBO_LOG_LEVEL_WARN);
    DBO_LOG(&log, SIM, ERROR, "plain");
    assert_int_equal(to.count, 2);
    assert_int_equal(to.subsystem, DBO_LOG_SIM);
}

static void test_silent_logs(void **state)
{
    (void)state;
    int count = 0;
    DBO_LOG(&dbo_log_none, APP, ERROR, "%d", evaluated(&count));
    dbo_log log;
    dbo_log_init(&log, NULL, NULL);
    DBO_LOG(&log, APP, ERROR, "%d", evaluated(&count));
    assert_int_equal(count, 0);
    assert_int_equal(dbo_log_set(&log, "trace", NULL), DBO_OK);
    DBO_LOG(&log, APP, TRACE, "%d", evaluated(&count)); /* on, and nobody to hear it */
    assert_int_equal(count, 1);
}

static void test_settings(void **state)
{
    (void)state;
    heard to = {0};
    dbo_log log;
    dbo_log_init(&log, hear, &to);
    assert_int_equal(dbo_log_set(&log, "", NULL), DBO_OK);
    assert_int_equal(log.levels[DBO_LOG_GPU], DBO_LOG_LEVEL_WARN);
    assert_int_equal(dbo_log_set(&log, "error,vote=debug,sim=info", NULL), DBO_OK);
    assert_int_equal(log.levels[DBO_LOG_VOTE], DBO_LOG_LEVEL_DEBUG);
    assert_int_equal(log.levels[DBO_LOG_SIM], DBO_LOG_LEVEL_INFO);
    assert_int_equal(log.levels[DBO_LOG_GPU], DBO_LOG_LEVEL_ERROR);
    assert_int_equal(dbo_log_set(&log, "vote=off,all=trace", NULL), DBO_OK); /* left to right */
    for (int i = 0; i < DBO_LOG_SUBSYSTEM_COUNT; i++)
        assert_int_equal(log.levels[i], DBO_LOG_LEVEL_TRACE);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *hint;
    } cases[] = {
        {"vot=debug", "unknown log subsystem 'vot'", "did you mean 'vote'?"},
        {"vote=debgu", "unknown log level 'debgu'", "did you mean 'debug'?"},
        {"sim=info,vote=loud", "unknown log level 'loud' (known: off, error", ""},
        {"verbose", "unknown log level 'verbose'", ""},
        {"vote", "log 'vote' lacks its level", "write it like vote=debug"},
        {"vote=", "unknown log level ''", ""},
        {"=info", "unknown log subsystem ''", ""},
        {"info,", "is empty", "write it like vote=debug,sim=info"},
        {",", "is empty", "write it like vote=debug,sim=info"},
        {"vote=iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
         "longer than any name", "write it like vote=debug,sim=info"},
    };
    dbo_log log;
    dbo_log_init(&log, hear, NULL);
    dbo_log before = log;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dbo_error err = {0};
        assert_int_equal(dbo_log_set(&log, cases[i].text, &err), DBO_INVALID);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s' is refused with: %s", cases[i].text, err.message);
        assert_string_equal(err.hint, cases[i].hint);
        assert_memory_equal(log.levels, before.levels, sizeof log.levels);
    }
}

static void test_long_lines_and_names(void **state)
{
    (void)state;
    heard to = {0};
    dbo_log log;
    dbo_log_init(&log, hear, &to);
    DBO_LOG(&log, A2A, ERROR, "%*d", 3 * DBO_LOG_LINE_BYTES, 1);
    assert_int_equal(strlen(to.line), DBO_LOG_LINE_BYTES - 1);
    assert_string_equal(dbo_log_subsystem_name(DBO_LOG_A2A), "a2a");
    assert_string_equal(dbo_log_level_name(DBO_LOG_LEVEL_OFF), "off");
    assert_string_equal(dbo_log_level_name((dbo_log_level)77), "unknown");
    assert_string_equal(dbo_log_subsystem_name(DBO_LOG_SUBSYSTEM_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_silent_logs),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_lines_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
