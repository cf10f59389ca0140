/* wrap.c: words into lines (wrap.h). */
#include "viz/text/wrap.h"

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

void dbo_text_clean(dbo_strbuf *out, const char *text, size_t bytes)
{
    size_t from = 0, i = 0;
    while (i < bytes) {
        unsigned char c = (unsigned char)text[i];
        bool blank = c == '\n' || c == '\t' || c == '\r';
        size_t gone =
            c < 0x20 || c == 0x7f ? 1 : command_bytes((const unsigned char *)text + i, bytes - i);
        if (gone > 0) {
            dbo_strbuf_add_bytes(out, text + from, i - from);
            dbo_strbuf_add(out, blank ? " " : "?");
            from = i + gone;
        }
        i += gone > 0 ? gone : 1;
    }
    dbo_strbuf_add_bytes(out, text + from, bytes - from);
}

/* `length` bytes of text. */
static void wrap_clean(dbo_strbuf *out, size_t indent, const char *text, size_t length,
                       uint32_t width)
{
    size_t column = indent;
    const char *end = text + length;
    for (bool first = true; text < end; first = false) {
        size_t bytes = 0;
        while (text + bytes < end && text[bytes] != ' ')
            bytes++;
        size_t columns = columns_of(text, bytes);
        if (!first && column + 1 + columns > width) {
            dbo_strbuf_add(out, "\n");
            dbo_strbuf_repeat(out, " ", indent);
            column = indent;
        } else if (!first) {
            dbo_strbuf_add(out, " ");
            column++;
        }
        dbo_strbuf_add_bytes(out, text, bytes);
        column += columns;
        text += bytes + (text + bytes < end);
    }
    dbo_strbuf_add(out, "\n");
}

static void wrap(dbo_strbuf *out, size_t indent, const char *text, size_t length, uint32_t width)
{
    dbo_strbuf clean;
    dbo_strbuf_init(&clean);
    dbo_text_clean(&clean, text, length);
    wrap_clean(out, indent, dbo_strbuf_text(&clean), clean.len, width);
    out->failed = out->failed || clean.failed;
    dbo_strbuf_fini(&clean);
}

void dbo_wrap(dbo_strbuf *out, const char *label, const char *text, uint32_t width)
{
    dbo_strbuf_add(out, label);
    wrap(out, columns_of(label, strlen(label)), text, strlen(text), width);
}

void dbo_wrap_document(dbo_strbuf *out, const char *text, uint32_t width)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (text[0] == ' ') {
            dbo_text_clean(out, text, length);
            dbo_strbuf_add(out, "\n");
        } else {
            wrap(out, 0, text, length, width);
        }
        text += length + (text[length] == '\n');
    }
}
