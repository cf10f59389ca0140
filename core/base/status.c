/* status.c: filling in a dbo_error.
 *
 * Messages are formatted in place and never allocate, so that running out of memory can be
 * reported. One that does not fit is cut at a whole UTF-8 character and ends in "...".
 */
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dbo_status_name(dbo_status status)
{
    switch (status) {
#define STATUS_NAME(enumerator, name, text) \
    case enumerator: return name;
        DBO_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "unknown";
}

const char *dbo_status_text(dbo_status status)
{
    switch (status) {
#define STATUS_TEXT(enumerator, name, text) \
    case enumerator: return text;
        DBO_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "not a status of dbo";
}

/* Ends the full buffer of `size` bytes in "...", replacing whole characters only. */
static void mark_cut(char *buffer, size_t size)
{
    size_t at = size - 4;
    while (at > 0 && ((unsigned char)buffer[at] & 0xC0) == 0x80)
        at--;
    memcpy(buffer + at, "...", 4);
}

static void format_into(char *buffer, size_t size, const char *format, va_list args)
{
    int length = vsnprintf(buffer, size, format, args);
    if (length < 0)
        snprintf(buffer, size, "(a message that cannot be formatted)");
    else if ((size_t)length >= size)
        mark_cut(buffer, size);
}

dbo_status dbo_fail(dbo_error *err, dbo_status status, const char *hint, const char *format, ...)
{
    if (!err)
        return status;
    char message[sizeof err->message]; /* filled aside: an argument may point into *err */
    char advice[sizeof err->hint];
    va_list args;
    va_start(args, format);
    format_into(message, sizeof message, format, args);
    va_end(args);
    int length = snprintf(advice, sizeof advice, "%s", hint ? hint : "");
    if (length >= (int)sizeof advice)
        mark_cut(advice, sizeof advice);
    memcpy(err->message, message, strlen(message) + 1);
    memcpy(err->hint, advice, strlen(advice) + 1);
    err->status = status;
    return status;
}

dbo_status dbo_fail_memory(dbo_error *err, const char *what)
{
    return dbo_fail(err, DBO_NO_MEMORY, NULL, "out of memory for %s", what);
}

dbo_status dbo_error_prefix(dbo_error *err, const char *format, ...)
{
    if (!err)
        return DBO_INTERNAL;
    char prefix[sizeof err->message];
    char message[sizeof err->message + sizeof prefix + 2];
    va_list args;
    va_start(args, format);
    format_into(prefix, sizeof prefix, format, args);
    va_end(args);
    snprintf(message, sizeof message, "%s: %s", prefix, err->message);
    size_t length = strlen(message);
    if (length >= sizeof err->message) {
        message[sizeof err->message - 1] = '\0';
        mark_cut(message, sizeof err->message);
        length = strlen(message);
    }
    memcpy(err->message, message, length + 1);
    return err->status;
}
