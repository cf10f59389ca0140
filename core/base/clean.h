/* clean.h: text that somebody else has written, made fit for a terminal.
 *
 * What a terminal could take for a command (escapes, other controls, bytes that are no UTF-8), and
 * characters that nobody sees (marks of direction, of no width, tags), which make a text read other
 * than it is, become '?', one each. Whatever is printed of a script or a file goes through here.
 *
 *     dbo_text_clean(&line, "\033[2Jname\u202e", 12);   // "?[2Jname?"
 *
 * No state; a text that is too large for memory makes the strbuf a failed one.
 */
#ifndef DBO_CLEAN_H
#define DBO_CLEAN_H

#include "core/base/strbuf.h"

#include <stdint.h>

/* Appends `bytes` bytes as a piece of one line: ends of lines and tabs become blanks. */
void dbo_text_clean(dbo_strbuf *out, const char *text, size_t bytes);
/* The same of whole lines: ends of lines and tabs stay; with `colours`, so do the sequences that
 * set colours, "\033[...m". */
void dbo_text_clean_page(dbo_strbuf *out, const char *text, size_t bytes, bool colours);

/* The character at `at` and the bytes that it has; 0: it is none of UTF-8, or a part of one.
 * `left` > 0. */
size_t dbo_utf8_decode(const char *at, size_t left, uint32_t *character);
/* Is it a command, or does nobody see it? Unicode's Cc, Cf, Zl, Zp, what is to be ignored where it
 * cannot be shown, and what is no character. */
bool dbo_utf8_is_hidden(uint32_t character);
/* Writes the character as JSON escapes it, "\\u00ad", or by its two halves, "\\udb40\\udc41", and
 * returns the length. */
size_t dbo_utf8_escape(uint32_t character, char out[13]);

#endif
