/* log.c: reading which subsystems speak, and handing their lines to the sink. */
#include "core/base/log.h"

#include "core/base/suggest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64, ALL = DBO_LOG_SUBSYSTEM_COUNT };

static const char *const subsystem_names[] = {
#define NAME(enumerator, name, text) name,
    DBO_LOG_SUBSYSTEM_MAP(NAME)
#undef NAME
        "all",
};

static const char *const level_names[] = {
#define NAME(enumerator, name) name,
    DBO_LOG_LEVEL_MAP(NAME)
#undef NAME
};

const dbo_log dbo_log_none = {.sink = NULL};

void dbo_log_init(dbo_log *log, dbo_log_sink sink, void *sink_self)
{
    memset(log->levels, sink ? DBO_LOG_LEVEL_WARN : DBO_LOG_LEVEL_OFF, sizeof log->levels);
    log->sink = sink;
    log->sink_self = sink_self;
}

const char *dbo_log_subsystem_name(dbo_log_subsystem subsystem)
{
    return (unsigned int)subsystem < DBO_LOG_SUBSYSTEM_COUNT ? subsystem_names[subsystem]
                                                             : "unknown";
}

const char *dbo_log_level_name(dbo_log_level level)
{
    return (unsigned int)level < DBO_LOG_LEVEL_COUNT ? level_names[level] : "unknown";
}

/* The index of `word` among names; fails with what is known and what is near. */
static dbo_status find(const char *what, const char *word, const char *const *names, size_t count,
                       size_t *index, dbo_error *err)
{
    dbo_suggestion near = dbo_suggest_begin(word);
    char known[200] = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) {
            *index = i;
            return DBO_OK;
        }
        dbo_suggest_offer(&near, names[i]);
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    }
    char hint[sizeof err->hint];
    return dbo_fail(err, DBO_INVALID, dbo_suggest_hint(&near, hint, sizeof hint),
                    "unknown log %s '%s' (known: %s)", what, word, known);
}

/* One part of the list: "LEVEL" or "SUBSYSTEM=LEVEL", `length` bytes long. */
static dbo_status set_part(dbo_log *log, const char *part, size_t length, dbo_error *err)
{
    char words[NAME_BYTES];
    if (length == 0 || length >= sizeof words)
        return dbo_fail(err, DBO_INVALID, "write it like vote=debug,sim=info",
                        length ? "a part of the log setting is longer than any name"
                               : "a part of the log setting is empty");
    memcpy(words, part, length);
    words[length] = '\0';
    char *equals = strchr(words, '=');
    size_t subsystem = ALL;
    size_t level;
    if (equals) {
        *equals = '\0';
        DBO_TRY(find("subsystem", words, subsystem_names, ALL + 1, &subsystem, err));
    } else if (find("subsystem", words, subsystem_names, ALL + 1, &level, NULL) == DBO_OK) {
        return dbo_fail(err, DBO_INVALID, "write it like vote=debug", "log '%s' lacks its level",
                        words);
    }
    DBO_TRY(
        find("level", equals ? equals + 1 : words, level_names, DBO_LOG_LEVEL_COUNT, &level, err));
    if (subsystem == ALL)
        memset(log->levels, (int)level, sizeof log->levels);
    else
        log->levels[subsystem] = (uint8_t)level;
    return DBO_OK;
}

dbo_status dbo_log_set(dbo_log *log, const char *text, dbo_error *err)
{
    dbo_log changed = *log;
    if (!*text)
        return DBO_OK;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        DBO_TRY(set_part(&changed, at, length, err));
        at += length;
        if (!*at)
            break;
    }
    *log = changed;
    return DBO_OK;
}

void dbo_log_write(const dbo_log *log, dbo_log_subsystem subsystem, dbo_log_level level,
                   const char *format, ...)
{
    if (!log->sink)
        return;
    char line[DBO_LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length >= 0)
        log->sink(log->sink_self, subsystem, level, line);
}
