/* status.c: filling in a dbo_error.
 *
 * Messages are formatted in place and never allocate, so that running out of memory can be
 * reported. One that does not fit is cut at a whole UTF-8 character and ends in "...".
 */
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __clang_analyzer__
#undef dbo_fail
#undef dbo_fail_key
#undef dbo_fail_value
#undef dbo_fail_read
#undef dbo_fail_memory
#endif

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

/* Copies a text (NULL: the empty one) into a field of `size` bytes. */
static void put_text(char *field, size_t size, const char *text)
{
    if (snprintf(field, size, "%s", text ? text : "") >= (int)size)
        mark_cut(field, size);
}

static void format_into(char *buffer, size_t size, const char *format, va_list args)
{
    int length = vsnprintf(buffer, size, format, args);
    if (length < 0)
        snprintf(buffer, size, "(a message that cannot be formatted)");
    else if ((size_t)length >= size)
        mark_cut(buffer, size);
}

/* Everything is formatted aside first: an argument may point into *err. */
dbo_status dbo_fail_args(dbo_error *err, dbo_status status, const char *key, const char *hint,
                         const char *format, va_list args)
{
    if (!err)
        return status;
    dbo_error made = {.status = status};
    format_into(made.message, sizeof made.message, format, args);
    put_text(made.hint, sizeof made.hint, hint);
    put_text(made.key, sizeof made.key, key);
    *err = made;
    return status;
}

dbo_status dbo_fail(dbo_error *err, dbo_status status, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dbo_fail_args(err, status, NULL, hint, format, args);
    va_end(args);
    return status;
}

dbo_status dbo_fail_key(dbo_error *err, dbo_status status, const char *key, const char *hint,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dbo_fail_args(err, status, key, hint, format, args);
    va_end(args);
    return status;
}

dbo_status dbo_fail_value(dbo_error *err, dbo_status status, const char *key, const char *hint,
                          const char *format, ...)
{
    char after[sizeof err->message];
    va_list args;
    va_start(args, format);
    format_into(after, sizeof after, format, args);
    va_end(args);
    dbo_fail_key(err, status, key, hint, "%s %s", key, after);
    if (err)
        err->key_first = true;
    return status;
}

dbo_status dbo_fail_read(dbo_error *err, const char *path, int reason)
{
    return dbo_fail(err, DBO_IO, NULL, "cannot read %.300s: %s", path, strerror(reason));
}

dbo_status dbo_fail_memory(dbo_error *err, const char *what)
{
    return dbo_fail(err, DBO_NO_MEMORY, NULL, "out of memory for %s", what);
}

/* Writes outer, joint and the field one after the other into the field of `size` bytes. */
static void put_before(char *field, size_t size, const char *outer, const char *joint)
{
    char inner[sizeof((dbo_error *)0)->message];
    snprintf(inner, sizeof inner, "%s", field);
    if (snprintf(field, size, "%s%s%s", outer, joint, inner) >= (int)size)
        mark_cut(field, size);
}

dbo_status dbo_error_prefix(dbo_error *err, const char *format, ...)
{
    if (!err)
        return DBO_INTERNAL;
    char prefix[sizeof err->message];
    va_list args;
    va_start(args, format);
    format_into(prefix, sizeof prefix, format, args);
    va_end(args);
    put_before(err->message, sizeof err->message, prefix, ": ");
    err->key_first = false;
    return err->status;
}

dbo_status dbo_error_key(dbo_error *err, const char *format, ...)
{
    if (!err)
        return DBO_INTERNAL;
    char outer[sizeof err->key];
    va_list args;
    va_start(args, format);
    format_into(outer, sizeof outer, format, args);
    va_end(args);
    const char *joint = err->key[0] == '\0' || err->key[0] == '[' ? "" : ".";
    put_before(err->key, sizeof err->key, outer, joint);
    if (err->key_first)
        put_before(err->message, sizeof err->message, outer, joint);
    return err->status;
}

dbo_status dbo_error_at(dbo_error *err, const char *file, uint32_t line)
{
    if (!err)
        return DBO_INTERNAL;
    if (err->line > 0 || err->file[0] != '\0' || (!file && line == 0))
        return err->status;
    put_text(err->file, sizeof err->file, file);
    err->line = line;
    if (!file)
        return dbo_error_prefix(err, "line %u", line);
    return line > 0 ? dbo_error_prefix(err, "%s:%u", file, line)
                    : dbo_error_prefix(err, "%s", file);
}

dbo_status dbo_error_pass(dbo_error *err, const dbo_error *from)
{
    if (err)
        *err = *from;
    return from->status;
}
