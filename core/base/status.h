/* status.h: how a function of dbo fails.
 *
 * Every fallible function returns a dbo_status and takes a `dbo_error *err` (may be NULL). On
 * failure the status says which kind, err->message says what and where in one sentence, and
 * err->hint (may be empty) says what to do. What a caller may need to act on is a field: which
 * setting (key), which line of which file. Nobody takes a message apart. On success err is left
 * untouched. A library never prints and never exits.
 *
 *     dbo_error err = {0};
 *     if (dbo_config_check(&config, &err) != DBO_OK)
 *         fprintf(stderr, "%s\n", err.message);
 *
 * On its way up an error gains what its makers could not know, from the inside out:
 *
 *     dbo_fail(err, DBO_INVALID, NULL, "a size is 0");
 *     dbo_error_key(err, "[%u]", i);
 *     dbo_error_key(err, "cudagraph_capture_sizes");   // key: cudagraph_capture_sizes[2]
 *     dbo_error_at(err, "F.lua", 7);                    // message: F.lua:7: a size is 0
 *
 * Inside dbo: DBO_TRY(call) returns the status of a failing call; DBO_TRY_GOTO(call, fail) keeps
 * it in a local `dbo_status status` and jumps to a label that frees. Thread-safe: no state.
 */
#ifndef DBO_STATUS_H
#define DBO_STATUS_H

#include "core/base/public.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

/* X(enumerator, short name, text) */
#define DBO_STATUS_MAP(X)                                                      \
    X(DBO_OK, "ok", "success")                                                 \
    X(DBO_INVALID, "invalid", "an argument or a setting is not valid")         \
    X(DBO_NO_MEMORY, "no_memory", "out of memory")                             \
    X(DBO_IO, "io", "a file could not be read or written")                     \
    X(DBO_PARSE, "parse", "the input is malformed")                            \
    X(DBO_LIMIT, "limit", "a limit was exceeded")                              \
    X(DBO_UNSUPPORTED, "unsupported", "this build or back end cannot do that") \
    X(DBO_REFUSED, "refused", "the engine refuses an illegal operation")       \
    X(DBO_DEADLOCK, "deadlock", "everything waits and nothing can move")       \
    X(DBO_ABORTED, "aborted", "released because a sibling or peer failed")     \
    X(DBO_CANCELLED, "cancelled", "stopped by the user or the watchdog")       \
    X(DBO_DEVICE, "device", "the GPU or its library reported an error")        \
    X(DBO_INTERNAL, "internal", "an invariant of dbo does not hold")

typedef enum dbo_status {
#define DBO_STATUS_ENUM(enumerator, name, text) enumerator,
    DBO_STATUS_MAP(DBO_STATUS_ENUM)
#undef DBO_STATUS_ENUM
} dbo_status;

typedef struct dbo_error {
    dbo_status status;
    uint32_t line;     /* of `file`, from 1; 0: not known */
    uint32_t column;   /* of a document's line, from 1; 0: not known */
    bool key_first;    /* the message begins with the key: "sms is 0" */
    char message[512]; /* one sentence: what, where, why; begins with the place, if there is one */
    char hint[256];    /* what to do about it; may be empty */
    char key[64];   /* the setting or the member of a document: "batch.num_tokens[1]"; or empty */
    char file[128]; /* that `line` is of; or empty */
} dbo_error;

/* The short name ("invalid") and the text of a status; never NULL. */
const char *dbo_status_name(dbo_status status);
const char *dbo_status_text(dbo_status status);

/* Fills *err (if not NULL) with status, hint (may be NULL) and the formatted message; key and place
 * are empty then. Returns status. What is longer than its field ends in "..."; arguments may point
 * into *err. */
dbo_status dbo_fail(dbo_error *err, dbo_status status, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same about one setting or member, which `key` names. */
dbo_status dbo_fail_key(dbo_error *err, dbo_status status, const char *key, const char *hint,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same of a message that begins with the key: what dbo_error_key puts before the key comes
 * before the message, too. */
dbo_status dbo_fail_value(dbo_error *err, dbo_status status, const char *key, const char *hint,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

/* dbo_fail_key (or dbo_fail: `key` is NULL) for functions that take a message like them. */
dbo_status dbo_fail_args(dbo_error *err, dbo_status status, const char *key, const char *hint,
                         const char *format, va_list args);

/* The error of a file that cannot be read: "cannot read F: No such file or directory", DBO_IO;
 * `reason` is an errno. */
dbo_status dbo_fail_read(dbo_error *err, const char *path, int reason);

/* The error of a failed allocation of `what`. */
dbo_status dbo_fail_memory(dbo_error *err, const char *what);

#ifdef __clang_analyzer__ /* sees no body here, and would go on as if a failure could be DBO_OK */
#define dbo_fail(err, status, ...)       (dbo_fail(err, status, __VA_ARGS__), (status))
#define dbo_fail_key(err, status, ...)   (dbo_fail_key(err, status, __VA_ARGS__), (status))
#define dbo_fail_value(err, status, ...) (dbo_fail_value(err, status, __VA_ARGS__), (status))
#define dbo_fail_read(err, path, reason) (dbo_fail_read(err, path, reason), DBO_IO)
#define dbo_fail_memory(err, what)       (dbo_fail_memory(err, what), DBO_NO_MEMORY)
#endif

/* The same unless the memory is there:
 *
 *     int32_t *ids = calloc(count, sizeof *ids);
 *     DBO_TRY(dbo_need_memory(ids, "the blocks of a step", err));
 */
static inline dbo_status dbo_need_memory(bool there, const char *what, dbo_error *err)
{
    if (there)
        return DBO_OK;
    dbo_fail_memory(err, what);
    return DBO_NO_MEMORY;
}

/* Puts "prefix: " before the message of an error on its way up; returns its status. With err NULL
 * there is none: DBO_INTERNAL comes back, so a caller whose err may be NULL returns its own. */
dbo_status dbo_error_prefix(dbo_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts an outer part before the key, with a dot between unless the inner one begins with '['.
 * Returns as dbo_error_prefix does. */
dbo_status dbo_error_key(dbo_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where it was written: fills file (may be NULL) and line (0: not known) and puts "file:line: "
 * before the message. An error that has a place keeps it. Returns as dbo_error_prefix does. */
dbo_status dbo_error_at(dbo_error *err, const char *file, uint32_t line);

/* Hands an error that was looked at on its way on, whole: *err = *from. Returns its status. */
dbo_status dbo_error_pass(dbo_error *err, const dbo_error *from);

#define DBO_TRY(call)                                       \
    do {                                                    \
        dbo_status dbo_try_status_ = (call);                \
        if (__builtin_expect(dbo_try_status_ != DBO_OK, 0)) \
            return dbo_try_status_;                         \
    } while (0)

#define DBO_TRY_GOTO(call, label)                  \
    do {                                           \
        status = (call);                           \
        if (__builtin_expect(status != DBO_OK, 0)) \
            goto label;                            \
    } while (0)

DBO_PUBLIC_END

#endif
