/* strbuf.c: text that doubles when full; the first failure to grow sticks (strbuf.h). */
#include "core/base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbo_strbuf_fini(dbo_strbuf *buf)
{
    free(buf->data);
    *buf = (dbo_strbuf){0};
}

void dbo_strbuf_end(dbo_strbuf *part, dbo_strbuf *whole)
{
    whole->failed = whole->failed || part->failed;
    dbo_strbuf_fini(part);
}

void dbo_strbuf_clear(dbo_strbuf *buf)
{
    buf->len = 0;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

/* Room for `more` bytes and the NUL; doubling keeps appends amortised O(1). */
static bool make_room(dbo_strbuf *buf, size_t more)
{
    if (buf->failed)
        return false;
    if (buf->cap - buf->len > more)
        return true;
    size_t cap = buf->cap == 0 ? 256 : buf->cap;
    while (cap - buf->len <= more) {
        if (cap > SIZE_MAX / 2) {
            buf->failed = true;
            return false;
        }
        cap *= 2;
    }
    if (buf->limit > 0 && cap > buf->limit) {
        buf->failed = buf->over_limit = true;
        return false;
    }
    char *data = realloc(buf->data, cap);
    if (data == NULL) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void dbo_strbuf_add_bytes(dbo_strbuf *buf, const char *bytes, size_t count)
{
    if (!make_room(buf, count))
        return;
    memcpy(buf->data + buf->len, bytes, count);
    buf->len += count;
    buf->data[buf->len] = '\0';
}

void dbo_strbuf_add(dbo_strbuf *buf, const char *text)
{
    dbo_strbuf_add_bytes(buf, text, strlen(text));
}

void dbo_strbuf_repeat(dbo_strbuf *buf, const char *text, size_t times)
{
    size_t bytes = strlen(text);
    for (size_t i = 0; i < times && !buf->failed; i++)
        dbo_strbuf_add_bytes(buf, text, bytes);
}

void dbo_strbuf_printf(dbo_strbuf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dbo_strbuf_vprintf(buf, format, args);
    va_end(args);
}

void dbo_strbuf_vprintf(dbo_strbuf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = buf->failed ? 0 : buf->cap - buf->len;
    int count = vsnprintf(room ? buf->data + buf->len : NULL, room, format, args);
    if (count >= 0 && (size_t)count < room) {
        buf->len += (size_t)count;
    } else if (count >= 0 && make_room(buf, (size_t)count)) {
        vsnprintf(buf->data + buf->len, (size_t)count + 1, format, again);
        buf->len += (size_t)count;
    } else {
        buf->failed = true;
        if (room > 0)
            buf->data[buf->len] = '\0'; /* not what fitted of it */
    }
    va_end(again);
}

void dbo_strbuf_trim(dbo_strbuf *buf)
{
    while (buf->len > 0 && buf->data[buf->len - 1] == ' ')
        buf->data[--buf->len] = '\0';
}

const char *dbo_strbuf_text(const dbo_strbuf *buf)
{
    return buf->data == NULL ? "" : buf->data;
}

size_t dbo_text_columns(const char *text)
{
    size_t columns = 0;
    while (*text != '\0') {
        if (text[0] == '\033' && text[1] == '[') {
            text += 2;
            while (*text != '\0' && *text != 'm')
                text++;
            if (*text == 'm')
                text++;
            continue;
        }
        columns += ((unsigned char)*text & 0xc0u) != 0x80u; /* not a continuation byte */
        text++;
    }
    return columns;
}
