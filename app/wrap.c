/* wrap.c: words into lines (wrap.h). */
#include "app/wrap.h"

#include <stdbool.h>
#include <string.h>

static size_t columns_of(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xc0u) != 0x80u;
    return columns;
}

/* `length` bytes of text. */
static void wrap(dbo_strbuf *out, size_t indent, const char *text, size_t length, uint32_t width)
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
            dbo_strbuf_add_bytes(out, text, length);
            dbo_strbuf_add(out, "\n");
        } else {
            wrap(out, 0, text, length, width);
        }
        text += length + (text[length] == '\n');
    }
}
