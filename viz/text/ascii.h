/* ascii.h: text in ASCII for --ascii, a character for a character, so that columns stay aligned.
 *
 *     dbo_ascii_write("layer µs", 9, stdout);      // "layer us"
 */
#ifndef DBO_ASCII_H
#define DBO_ASCII_H

#include <stddef.h>
#include <stdio.h>

/* Writes `bytes` of UTF-8; what has no likeness in ASCII becomes '?'. */
void dbo_ascii_write(const char *text, size_t bytes, FILE *file);

#endif
