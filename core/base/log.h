/* log.h: what dbo says while it works, by subsystem, and nothing unless asked.
 *
 * A dbo_log is a level per subsystem and a sink, the function that lines are given to; a library
 * never prints, so the sink comes from the application. Who logs holds a `const dbo_log *`, never
 * NULL: &dbo_log_none where nobody listens. When a level is off, a log line costs one load and one
 * branch, and its arguments are not evaluated. A log is changed before threads share it; the sink
 * of a shared log must be thread-safe. Lines are cut at DBO_LOG_LINE_BYTES - 1 bytes.
 *
 *     dbo_log log;
 *     dbo_log_init(&log, print_line, stderr);
 *     DBO_TRY(dbo_log_set(&log, "warn,vote=debug,sim=info", err));
 *     DBO_LOG(&log, VOTE, DEBUG, "step %u: %s", step, reason);
 */
#ifndef DBO_LOG_H
#define DBO_LOG_H

#include "core/base/status.h"

#include <stdint.h>

/* X(enumerator, name, what it speaks of) */
#define DBO_LOG_SUBSYSTEM_MAP(X)                               \
    X(CONFIG, "config", "settings and what follows from them") \
    X(VOTE, "vote", "the collective decision to split")        \
    X(SLICE, "slice", "how a batch is cut")                    \
    X(ENGINE, "engine", "turns, hand-offs, hooks")             \
    X(GRAPH, "graph", "capture and replay")                    \
    X(SIM, "sim", "the simulator")                             \
    X(A2A, "a2a", "dispatch and combine")                      \
    X(ALLOC, "alloc", "the caching allocator")                 \
    X(GPU, "gpu", "the CUDA plug-in")                          \
    X(APP, "app", "the command and its scripts")

#define DBO_LOG_LEVEL_MAP(X) \
    X(OFF, "off")            \
    X(ERROR, "error")        \
    X(WARN, "warn")          \
    X(INFO, "info")          \
    X(DEBUG, "debug")        \
    X(TRACE, "trace")

typedef enum dbo_log_subsystem {
#define DBO_LOG_ENUM(enumerator, name, text) DBO_LOG_##enumerator,
    DBO_LOG_SUBSYSTEM_MAP(DBO_LOG_ENUM)
#undef DBO_LOG_ENUM
        DBO_LOG_SUBSYSTEM_COUNT
} dbo_log_subsystem;

typedef enum dbo_log_level {
#define DBO_LOG_ENUM(enumerator, name) DBO_LOG_LEVEL_##enumerator,
    DBO_LOG_LEVEL_MAP(DBO_LOG_ENUM)
#undef DBO_LOG_ENUM
        DBO_LOG_LEVEL_COUNT
} dbo_log_level;

#define DBO_LOG_LINE_BYTES 1024

/* Takes one line, without its newline; it is valid during the call only. */
typedef void (*dbo_log_sink)(void *self, dbo_log_subsystem subsystem, dbo_log_level level,
                             const char *line);

typedef struct dbo_log {
    uint8_t levels[DBO_LOG_SUBSYSTEM_COUNT]; /* lines up to this level are said */
    dbo_log_sink sink;                       /* NULL: nothing is said */
    void *sink_self;
} dbo_log;

/* Everything off. */
extern const dbo_log dbo_log_none;

/* All subsystems at `warn`. Borrows sink_self for as long as the log is used. */
void dbo_log_init(dbo_log *log, dbo_log_sink sink, void *sink_self);

/* Sets levels from a comma-separated list, left to right: "LEVEL" for all subsystems, "all=LEVEL"
 * likewise, "SUBSYSTEM=LEVEL" for one. An empty text changes nothing. DBO_INVALID names the part
 * that is not understood, hints at the nearest name, and leaves the log as it was. */
dbo_status dbo_log_set(dbo_log *log, const char *text, dbo_error *err);

/* Names as dbo_log_set reads them; "unknown" out of range. */
const char *dbo_log_subsystem_name(dbo_log_subsystem subsystem);
const char *dbo_log_level_name(dbo_log_level level);

/* Gives the formatted line to the sink, whatever the level; DBO_LOG is what checks it. */
void dbo_log_write(const dbo_log *log, dbo_log_subsystem subsystem, dbo_log_level level,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

static inline int dbo_log_enabled(const dbo_log *log, dbo_log_subsystem subsystem,
                                  dbo_log_level level)
{
    return __builtin_expect(log->levels[subsystem] >= (unsigned int)level, 0) != 0;
}

/* DBO_LOG(log, VOTE, DEBUG, "format", ...): subsystem and level by their bare names. */
#define DBO_LOG(log, subsystem, level, ...)                                                      \
    do {                                                                                         \
        const dbo_log *dbo_log_to_ = (log);                                                      \
        if (dbo_log_enabled(dbo_log_to_, DBO_LOG_##subsystem, DBO_LOG_LEVEL_##level))            \
            dbo_log_write(dbo_log_to_, DBO_LOG_##subsystem, DBO_LOG_LEVEL_##level, __VA_ARGS__); \
    } while (0)

#endif
