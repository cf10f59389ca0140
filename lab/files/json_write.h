/* json_write.h: JSON out, as a stream, always the same bytes for the same calls.
 *
 * A writer keeps a fixed buffer and a fixed stack: nothing is allocated after _init, so writing a
 * trace of any length costs no memory. Integers print exactly; doubles print the shortest form
 * that reads back as the same double, with ".0" when it would look like an integer; NaN and
 * infinities print as null; strings are escaped, bytes that are not UTF-8 become U+FFFD. The
 * locale does not matter.
 *
 * Layout: `indent` > 0 puts each member on a line of its own, except inside a container opened
 * with a _line call, which stays on one line; indent 0 is one line throughout.
 *
 *     dbo_json_writer w;
 *     dbo_json_writer_init(&w, dbo_json_sink_file, stdout, 1);
 *     dbo_json_open(&w, NULL, '{');
 *     dbo_json_put_double(&w, "layer_us", 350.0);
 *     dbo_json_close(&w);
 *     DBO_TRY(dbo_json_writer_finish(&w, err));
 *
 * Errors are kept and reported by _finish: a failing sink (DBO_IO), nesting over
 * DBO_JSON_WRITE_DEPTH (DBO_LIMIT), calls in an order that is not JSON (DBO_INTERNAL); calls after
 * an error do nothing. One thread at a time.
 */
#ifndef DBO_JSON_WRITE_H
#define DBO_JSON_WRITE_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBO_JSON_WRITE_DEPTH  64
#define DBO_JSON_WRITE_BUFFER 8192

/* Takes `length` bytes; false means that they could not be written. */
typedef bool (*dbo_json_sink)(void *self, const char *bytes, size_t length);

bool dbo_json_sink_file(void *file /* FILE * */, const char *bytes, size_t length);

typedef struct dbo_json_level {
    char close;     /* '}' or ']' */
    bool on_line;   /* members stay on one line */
    bool has_items; /* something was written */
} dbo_json_level;

typedef struct dbo_json_writer {
    dbo_json_sink sink;
    void *sink_self;
    int indent;
    int depth;
    bool done; /* the root value is complete */
    dbo_status status;
    const char *problem;
    size_t used;
    dbo_json_level levels[DBO_JSON_WRITE_DEPTH];
    char buffer[DBO_JSON_WRITE_BUFFER];
} dbo_json_writer;

/* Borrows sink_self until _finish. indent: spaces per level, 0 for one line. */
void dbo_json_writer_init(dbo_json_writer *w, dbo_json_sink sink, void *sink_self, int indent);

/* Flushes, with a newline at the end; fails with the first error, or when the root is missing or
 * not closed. */
dbo_status dbo_json_writer_finish(dbo_json_writer *w, dbo_error *err);

/* What should be written is not to be had: _finish fails with this, unless an error came before.
 * `problem` is borrowed. */
void dbo_json_writer_fail(dbo_json_writer *w, dbo_status status, const char *problem);

/* `key` is a member's of an object; NULL in an array, and of the root. `open` is '{' or '['. */
void dbo_json_open(dbo_json_writer *w, const char *key, char open);
void dbo_json_open_line(dbo_json_writer *w, const char *key, char open);
void dbo_json_close(dbo_json_writer *w); /* the innermost open object or array */

void dbo_json_put_null(dbo_json_writer *w, const char *key);
void dbo_json_put_bool(dbo_json_writer *w, const char *key, bool value);
void dbo_json_put_int(dbo_json_writer *w, const char *key, int64_t value);
void dbo_json_put_double(dbo_json_writer *w, const char *key, double value);
/* NULL prints null. */
void dbo_json_put_string(dbo_json_writer *w, const char *key, const char *value);
/* A whole array on one line; values NULL prints null. */
void dbo_json_put_int32s(dbo_json_writer *w, const char *key, const int32_t *values, size_t count);

#endif
