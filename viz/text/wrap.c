/* wrap.c: words into lines (wrap.h). */
#include "viz/text/wrap.h"

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

/* Bytes of a character beyond ASCII that is a command: C1 controls, and what Unicode has for the
 * direction of text (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and for ends of lines
 * (U+2028, U+2029); 0: it is none. */
static size_t command_bytes(const unsigned char *at, size_t left)
{
    if (left >= 2 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
        return 2;
    if (left >= 2 && at[0] == 0xd8 && at[1] == 0x9c)
        return 2;
    if (left < 3 || at[0] != 0xe2)
        return 0;
    bool marks = at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f);
    bool embeds = at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae;
    bool isolates = at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
    return marks || embeds || isolates ? 3 : 0;
}

/* Bytes of the character there; 0: it is none of UTF-8, or only a part of one. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < bytes; i++)
        if (i == left || (at[i] & 0xc0u) != 0x80u)
            return 0;
    return at[0] < 0xf5 ? bytes : 0;
}

void dbo_text_clean(dbo_strbuf *out, const char *text, size_t bytes)
{
    size_t from = 0, i = 0;
    while (i < bytes) {
        const unsigned char *at = (const unsigned char *)text + i, c = *at;
        bool blank = c == '\n' || c == '\t' || c == '\r';
        size_t whole = character_bytes(at, bytes - i);
        size_t gone = c < 0x20 || c == 0x7f || whole == 0 ? 1 : command_bytes(at, bytes - i);
        if (gone > 0) {
            dbo_strbuf_add_bytes(out, text + from, i - from);
            dbo_strbuf_add(out, blank ? " " : "?");
            from = i + gone;
        }
        i += gone > 0 ? gone : whole;
    }
    dbo_strbuf_add_bytes(out, text + from, bytes - from);
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
