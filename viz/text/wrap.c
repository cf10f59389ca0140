/* wrap.c: words into lines (wrap.h). */
#include "viz/text/wrap.h"

#include "core/base/clean.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static size_t columns_of(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xc0u) != 0x80u;
    return columns;
}

#define LEAST_ROOM 16u /* beside a label; with less, lines begin below it */
#define HANG       2u

/* The bytes of `text` that take at most `columns`. */
static size_t bytes_of(const char *text, size_t bytes, size_t columns)
{
    size_t at = 0;
    while (at < bytes && columns_of(text, at + 1) <= columns)
        at++;
    return at;
}

static void next_line(dbo_strbuf *out, size_t hang)
{
    dbo_strbuf_trim(out);
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        dbo_strbuf_add(out, "\n");
    dbo_strbuf_repeat(out, " ", hang);
}

/* `length` bytes of text, the first of them in column `column`. */
static void wrap_clean(dbo_strbuf *out, size_t column, size_t hang, const char *text, size_t length,
                       uint32_t width)
{
    const char *end = text + length;
    for (bool first = true; text < end; first = false) {
        size_t bytes = 0;
        while (text + bytes < end && text[bytes] != ' ')
            bytes++;
        size_t columns = columns_of(text, bytes);
        if (columns > 0 && column > hang && column + !first + columns > width) {
            next_line(out, hang);
            column = hang;
        } else if (!first) {
            dbo_strbuf_add(out, " ");
            column++;
        }
        while (column + columns > width && width > hang && !memchr(text, '/', bytes)) {
            size_t part = bytes_of(text, bytes, width - column);
            dbo_strbuf_add_bytes(out, text, part);
            next_line(out, hang);
            text += part;
            bytes -= part;
            columns = columns_of(text, bytes);
            column = hang;
        }
        dbo_strbuf_add_bytes(out, text, bytes);
        column += columns;
        text += bytes + (text + bytes < end);
    }
    dbo_strbuf_add(out, "\n");
}

static void wrap(dbo_strbuf *out, size_t column, size_t hang, const char *text, size_t length,
                 uint32_t width)
{
    dbo_strbuf clean = {0};
    dbo_text_clean(&clean, text, length);
    wrap_clean(out, column, hang, dbo_strbuf_text(&clean), clean.len, width);
    dbo_strbuf_end(&clean, out);
}

void dbo_wrap(dbo_strbuf *out, const char *label, const char *text, uint32_t width)
{
    size_t length = strlen(label), blanks = strspn(label, " "), columns = columns_of(label, length);
    bool below = columns > HANG && columns + LEAST_ROOM > width;
    while (length > blanks && label[length - 1] == ' ')
        length--;
    if (below && columns_of(label, length) > width) { /* not even the label fits */
        dbo_strbuf_repeat(out, " ", blanks);
        wrap(out, blanks, HANG, label + blanks, length - blanks, width);
        dbo_strbuf_repeat(out, " ", columns = HANG);
    } else {
        dbo_strbuf_add(out, label);
    }
    wrap(out, columns, below ? HANG : columns, text, strlen(text), width);
}

void dbo_wrap_end(dbo_strbuf *out, const char *label, dbo_strbuf *text, uint32_t width)
{
    dbo_wrap(out, label, dbo_strbuf_text(text), width);
    dbo_strbuf_end(text, out);
}

void dbo_wrap_printf(dbo_strbuf *out, const char *label, uint32_t width, const char *format, ...)
{
    dbo_strbuf text = {0};
    va_list args;
    va_start(args, format);
    dbo_strbuf_vprintf(&text, format, args);
    va_end(args);
    dbo_wrap_end(out, label, &text, width);
}

/* To the next blank that is not quoted. */
static size_t shell_word(const char *text, size_t length)
{
    size_t bytes = 0;
    for (bool quoted = false; bytes < length && (quoted || text[bytes] != ' '); bytes++)
        quoted = quoted != (text[bytes] == '\'');
    return bytes;
}

/* A word, with the value behind it if it is an option and both fit in `room` columns. */
static size_t command_word(const char *text, size_t length, size_t room)
{
    size_t bytes = shell_word(text, length), both = bytes + 1;
    if (bytes == length || strncmp(text, "--", 2) != 0 || text[both] == '-')
        return bytes;
    while (both < length && text[both] != ' ')
        both++;
    return columns_of(text, both) <= room ? both : bytes;
}

void dbo_wrap_command(dbo_strbuf *out, size_t indent, const char *command, size_t length,
                      uint32_t width)
{
    size_t column = indent, begin = 2 * indent;
    dbo_strbuf_repeat(out, " ", indent);
    for (size_t at = 0, bytes; at < length; at += bytes + 1) {
        bytes = command_word(command + at, length - at, width > begin ? width - begin : 0);
        size_t columns = columns_of(command + at, bytes);
        size_t behind = at + bytes < length ? 2 : 0; /* a line that is not the last ends in " \" */
        if (at > 0 && column + 1 + columns + behind > width) {
            dbo_strbuf_add(out, " \\\n");
            dbo_strbuf_repeat(out, " ", begin);
            column = begin;
        } else if (at > 0) {
            dbo_strbuf_add(out, " ");
            column++;
        }
        dbo_text_clean(out, command + at, bytes);
        column += columns;
    }
    dbo_strbuf_add(out, "\n");
}

/* Is it a command of dbo, perhaps behind a pipe? */
static bool is_command(const char *line, size_t length)
{
    const char *found = strstr(line, "dbo ");
    return found && found < line + length && (found == line || found[-1] == ' ');
}

void dbo_wrap_document(dbo_strbuf *out, const char *text, uint32_t width)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), blanks = strspn(text, " ");
        if (blanks == 0) {
            wrap(out, 0, 0, text, length, width);
        } else if (columns_of(text, length) <= width) {
            dbo_text_clean(out, text, length);
            dbo_strbuf_add(out, "\n");
        } else if (is_command(text + blanks, length - blanks)) {
            dbo_wrap_command(out, blanks, text + blanks, length - blanks, width);
        } else {
            dbo_strbuf_repeat(out, " ", blanks);
            wrap(out, blanks, blanks + HANG, text + blanks, length - blanks, width);
        }
        text += length + (text[length] == '\n');
    }
}
