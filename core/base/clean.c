/* clean.c: characters are decoded strictly and looked up in a table of ranges (clean.h). An
 * overlong form, which some terminals read as the control that it stands for, is no UTF-8. */
#include "core/base/clean.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t first, last;
} hidden[] = {{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
              {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},
              {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
              {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
              {0x3164, 0x3164},   {0xd800, 0xdfff},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
              {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x110bd, 0x110bd},
              {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
              {0xe0000, 0xe0fff}};

bool dbo_utf8_is_hidden(uint32_t character)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden && character >= hidden[i].first; i++)
        if (character <= hidden[i].last)
            return true;
    return (character & 0xfffeu) == 0xfffeu;
}

size_t dbo_utf8_decode(const char *at, size_t left, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* that needs so many bytes */
    const unsigned char *byte = (const unsigned char *)at;
    size_t bytes = byte[0] < 0x80 ? 1 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    uint32_t code = bytes == 1 ? byte[0] : byte[0] & (0x7fu >> bytes);
    if (bytes > left || (byte[0] >= 0x80 && byte[0] < 0xc0) || byte[0] >= 0xf8)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((byte[i] & 0xc0u) != 0x80u)
            return 0;
        code = code << 6 | (byte[i] & 0x3fu);
    }
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *character = code;
    return bytes;
}

size_t dbo_utf8_escape(uint32_t character, char out[13])
{
    int length = character < 0x10000
                     ? snprintf(out, 13, "\\u%04x", character)
                     : snprintf(out, 13, "\\u%04x\\u%04x", 0xd7c0 + (character >> 10),
                                0xdc00 + (character & 0x3ff));
    return (size_t)length;
}

/* Bytes of a sequence that sets colours. */
static size_t colour_bytes(const char *at, size_t left)
{
    size_t bytes = 2;
    if (left < 3 || at[0] != '\033' || at[1] != '[')
        return 0;
    while (bytes < left && ((at[bytes] >= '0' && at[bytes] <= '9') || at[bytes] == ';'))
        bytes++;
    return bytes < left && at[bytes] == 'm' ? bytes + 1 : 0;
}

static void clean(dbo_strbuf *out, const char *text, size_t bytes, bool lines, bool colours)
{
    size_t from = 0, step;
    for (size_t i = 0; i < bytes; i += step) {
        uint32_t c = 0;
        size_t whole = dbo_utf8_decode(text + i, bytes - i, &c);
        size_t colour = colours ? colour_bytes(text + i, bytes - i) : 0;
        bool ends = c == '\n' || c == '\t', blank = whole > 0 && (ends || c == '\r');
        step = colour > 0 ? colour : whole > 0 ? whole : 1;
        if (colour > 0 || (whole > 0 && !dbo_utf8_is_hidden(c)) || (lines && whole > 0 && ends))
            continue;
        dbo_strbuf_add_bytes(out, text + from, i - from);
        dbo_strbuf_add(out, blank ? " " : "?");
        from = i + step;
    }
    dbo_strbuf_add_bytes(out, text + from, bytes - from);
}

void dbo_text_clean(dbo_strbuf *out, const char *text, size_t bytes)
{
    clean(out, text, bytes, false, false);
}

void dbo_text_clean_page(dbo_strbuf *out, const char *text, size_t bytes, bool colours)
{
    clean(out, text, bytes, true, colours);
}
