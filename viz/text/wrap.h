/* wrap.h: running text in lines that fit, with what stands before it hanging out.
 *
 *     dbo_wrap(&out, "Batch    ", "decode, tokens a rank: 128", 80);   // a line or more
 *
 * Columns are characters. No line is longer than the width, but for a path, which is kept whole: a
 * word that no line can hold is broken, and where a label leaves too little room the text goes on
 * below it. Texts come clean out of here (clean.h). No state.
 */
#ifndef DBO_WRAP_H
#define DBO_WRAP_H

#include "core/base/strbuf.h"

#include <stdint.h>

/* Appends `label` and the words of `text` behind it; lines after the first begin with as many
 * blanks as the label has columns. Ends the last line. */
void dbo_wrap(dbo_strbuf *out, const char *label, const char *text, uint32_t width);

/* The same of a text that is made as printf does. */
void dbo_wrap_printf(dbo_strbuf *out, const char *label, uint32_t width, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of a text that is freed then; if it has failed, so has out. */
void dbo_wrap_end(dbo_strbuf *out, const char *label, dbo_strbuf *text, uint32_t width);

/* Appends a command of `length` bytes, indented; where it is broken a shell goes on to read. */
void dbo_wrap_command(dbo_strbuf *out, size_t indent, const char *command, size_t length,
                      uint32_t width);

/* Appends a document: each of its lines is a paragraph, wrapped. Those that begin with a blank
 * (examples, lists) are kept as they are if they fit; if not, commands of dbo are broken as such,
 * of others what is too much goes below. */
void dbo_wrap_document(dbo_strbuf *out, const char *text, uint32_t width);

#endif
