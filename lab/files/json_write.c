/* json_write.c: the printer behind json_write.h.
 *
 * Every call appends to a fixed buffer that is handed to the sink when full; the stack of open
 * containers is in the writer. The first error sticks and turns later calls into no-ops.
 */
#include "lab/files/json_write.h"

#include "core/base/clean.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbo_json_writer_fail(dbo_json_writer *w, dbo_status status, const char *problem)
{
    if (w->status == DBO_OK) {
        w->status = status;
        w->problem = problem;
    }
}

static void flush(dbo_json_writer *w)
{
    if (w->status == DBO_OK && w->used > 0 && !w->sink(w->sink_self, w->buffer, w->used))
        dbo_json_writer_fail(w, DBO_IO, "the JSON text could not be written");
    w->used = 0;
}

static void put_bytes(dbo_json_writer *w, const char *bytes, size_t length)
{
    while (length > 0 && w->status == DBO_OK) {
        size_t room = sizeof w->buffer - w->used;
        size_t part = length < room ? length : room;
        memcpy(w->buffer + w->used, bytes, part);
        w->used += part;
        bytes += part;
        length -= part;
        if (w->used == sizeof w->buffer)
            flush(w);
    }
}

static void put_char(dbo_json_writer *w, char c)
{
    put_bytes(w, &c, 1);
}

static void new_line(dbo_json_writer *w, int depth)
{
    put_char(w, '\n');
    for (int i = 0; i < depth * w->indent; i++)
        put_char(w, ' ');
}

/* What stands between the item before and the next one of the innermost container. */
static void separate(dbo_json_writer *w, dbo_json_level *level)
{
    if (level->has_items)
        put_char(w, ',');
    if (w->indent > 0 && !level->on_line)
        new_line(w, w->depth);
    else if (level->has_items)
        put_char(w, ' ');
    level->has_items = true;
}

static void put_quoted(dbo_json_writer *w, const char *bytes, size_t length);

/* Everything that must come before a value; false when the value must not be written. */
static bool begin_value(dbo_json_writer *w, const char *key)
{
    dbo_json_level *level = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    bool in_object = level && level->close == '}';
    if (w->depth == 0 && w->done)
        dbo_json_writer_fail(w, DBO_INTERNAL, "a second JSON value after the root");
    else if (in_object && !key)
        dbo_json_writer_fail(w, DBO_INTERNAL, "a JSON value without a key");
    else if (key && !in_object)
        dbo_json_writer_fail(w, DBO_INTERNAL, "a JSON key where none belongs");
    w->done = true;
    if (w->status != DBO_OK)
        return false;
    if (level)
        separate(w, level);
    if (key) {
        put_quoted(w, key, strlen(key));
        put_bytes(w, ": ", 2);
    }
    return true;
}

void dbo_json_writer_init(dbo_json_writer *w, dbo_json_sink sink, void *sink_self, int indent)
{
    w->sink = sink;
    w->sink_self = sink_self;
    w->indent = indent;
    w->depth = 0;
    w->done = false;
    w->status = DBO_OK;
    w->used = 0;
}

dbo_status dbo_json_writer_finish(dbo_json_writer *w, dbo_error *err)
{
    if (w->depth > 0)
        dbo_json_writer_fail(w, DBO_INTERNAL, "a JSON object or array is still open");
    if (!w->done)
        dbo_json_writer_fail(w, DBO_INTERNAL, "no JSON value was written");
    put_char(w, '\n');
    flush(w);
    if (w->status != DBO_OK)
        return dbo_fail(err, w->status, NULL, "%s", w->problem);
    return DBO_OK;
}

static void open_container(dbo_json_writer *w, const char *key, char open, bool on_line)
{
    if (!begin_value(w, key))
        return;
    if (w->depth == DBO_JSON_WRITE_DEPTH) {
        dbo_json_writer_fail(w, DBO_LIMIT,
                             "JSON objects and arrays are nested too deep to be written");
        return;
    }
    bool outer_on_line = w->depth > 0 && w->levels[w->depth - 1].on_line;
    w->levels[w->depth++] =
        (dbo_json_level){.close = open == '{' ? '}' : ']', .on_line = on_line || outer_on_line};
    put_char(w, open);
}

void dbo_json_open(dbo_json_writer *w, const char *key, char open)
{
    open_container(w, key, open, false);
}

void dbo_json_open_line(dbo_json_writer *w, const char *key, char open)
{
    open_container(w, key, open, true);
}

void dbo_json_close(dbo_json_writer *w)
{
    if (w->depth == 0) {
        dbo_json_writer_fail(w, DBO_INTERNAL, "a JSON container is closed out of order");
        return;
    }
    dbo_json_level level = w->levels[--w->depth];
    if (level.has_items && w->indent > 0 && !level.on_line)
        new_line(w, w->depth);
    put_char(w, level.close);
}

/* --- text --------------------------------------------------------------------------------- */

/* What a terminal could take for a command and what nobody sees is escaped, too. */
static void put_escaped_char(dbo_json_writer *w, uint32_t c)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: character, letter */
    for (size_t i = 0; i + 1 < sizeof named; i += 2) {
        if ((uint32_t)named[i] == c) {
            put_char(w, '\\');
            put_char(w, named[i + 1]);
            return;
        }
    }
    char text[13];
    put_bytes(w, text, dbo_utf8_escape(c, text));
}

static void put_quoted(dbo_json_writer *w, const char *bytes, size_t length)
{
    size_t plain = 0; /* start of the run that needs no escape */
    put_char(w, '"');
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t step = dbo_utf8_decode(bytes + i, length - i, &c);
        if (step > 0 && c != '"' && c != '\\' && !dbo_utf8_is_hidden(c)) {
            i += step;
            continue;
        }
        put_bytes(w, bytes + plain, i - plain);
        if (step > 0)
            put_escaped_char(w, c);
        else
            put_bytes(w, "\xEF\xBF\xBD", 3);
        plain = i += step > 0 ? step : 1;
    }
    put_bytes(w, bytes + plain, length - plain);
    put_char(w, '"');
}

/* --- values ------------------------------------------------------------------------------- */

static void put_plain(dbo_json_writer *w, const char *key, const char *text)
{
    if (begin_value(w, key))
        put_bytes(w, text, strlen(text));
}

void dbo_json_put_null(dbo_json_writer *w, const char *key)
{
    put_plain(w, key, "null");
}

void dbo_json_put_bool(dbo_json_writer *w, const char *key, bool value)
{
    put_plain(w, key, value ? "true" : "false");
}

void dbo_json_put_int(dbo_json_writer *w, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    put_plain(w, key, text);
}

/* The decimal point of the locale, of one or more bytes, becomes a full stop. */
static void use_full_stop(char *text)
{
    char *to = text;
    bool in_point = false;
    for (const char *from = text; *from != '\0'; from++) {
        if (strchr("0123456789+-e", *from) != NULL) {
            *to++ = *from;
            in_point = false;
        } else if (!in_point) {
            *to++ = '.';
            in_point = true;
        }
    }
    *to = '\0';
}

void dbo_json_put_double(dbo_json_writer *w, const char *key, double value)
{
    if (!isfinite(value)) {
        dbo_json_put_null(w, key);
        return;
    }
    char text[48];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        double again = strtod(text, NULL);
        if (again >= value && again <= value)
            break;
    }
    use_full_stop(text);
    if (strpbrk(text, ".e") == NULL)
        (void)memcpy(text + strlen(text), ".0", 3);
    put_plain(w, key, text);
}

void dbo_json_put_string(dbo_json_writer *w, const char *key, const char *value)
{
    if (value == NULL)
        dbo_json_put_null(w, key);
    else if (begin_value(w, key))
        put_quoted(w, value, strlen(value));
}

void dbo_json_put_int32s(dbo_json_writer *w, const char *key, const int32_t *values, size_t count)
{
    if (values == NULL) {
        dbo_json_put_null(w, key);
        return;
    }
    dbo_json_open_line(w, key, '[');
    for (size_t i = 0; i < count; i++)
        dbo_json_put_int(w, NULL, values[i]);
    dbo_json_close(w);
}

/* --- sinks -------------------------------------------------------------------------------- */

bool dbo_json_sink_file(void *file, const char *bytes, size_t length)
{
    return fwrite(bytes, 1, length, file) == length;
}
