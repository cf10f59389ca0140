/* strbuf.h: a growing piece of UTF-8 text, and how many terminal columns text takes.
 *
 * Painters and printers append; the owner reads `dbo_strbuf_text` at the end. A failed allocation
 * is remembered and later appends do nothing, so that painting code needs no checks: look at
 * `failed` once.
 *
 *     dbo_strbuf out = {0};
 *     dbo_strbuf_printf(&out, "%.1f us\n", us);
 *     fputs(dbo_strbuf_text(&out), file);
 *     dbo_strbuf_fini(&out);
 */
#ifndef DBO_STRBUF_H
#define DBO_STRBUF_H

#include "core/base/public.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

DBO_PUBLIC_BEGIN

/* {0} is an empty one. */
typedef struct dbo_strbuf {
    char *data;              /* NUL-terminated; NULL while nothing has been added */
    size_t len, cap, limit;  /* limit: what `cap` may become; 0: anything */
    bool failed, over_limit; /* the latter: for that reason */
} dbo_strbuf;

void dbo_strbuf_fini(dbo_strbuf *buf);
/* The same of a part that has gone into `whole`, which has failed if the part has. */
void dbo_strbuf_end(dbo_strbuf *part, dbo_strbuf *whole);
void dbo_strbuf_clear(dbo_strbuf *buf);
void dbo_strbuf_add(dbo_strbuf *buf, const char *text);
void dbo_strbuf_add_bytes(dbo_strbuf *buf, const char *bytes, size_t count);
void dbo_strbuf_repeat(dbo_strbuf *buf, const char *text, size_t times);
void dbo_strbuf_printf(dbo_strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dbo_strbuf_vprintf(dbo_strbuf *buf, const char *format, va_list args);
/* Takes blanks off the end. */
void dbo_strbuf_trim(dbo_strbuf *buf);
/* The text so far; "" when empty, never NULL. Valid until the next append. */
const char *dbo_strbuf_text(const dbo_strbuf *buf);

/* Terminal columns of valid UTF-8 text: code points, which is right for the characters that dbo
 * draws with (no wide, no combining ones). Colour escapes (ESC [ ... m) take none. */
size_t dbo_text_columns(const char *text);

DBO_PUBLIC_END

#endif
