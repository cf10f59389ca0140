/* ascii.c: the few characters that dbo and its scripts use, and their likenesses (ascii.h). */
#include "viz/text/ascii.h"

#include <string.h>

static const struct {
    const char *text;
    char likeness;
} rows[] = {{"µ", 'u'}, {"μ", 'u'}, {"×", 'x'}, {"–", '-'}, {"—", '-'}, {"─", '-'}, {"│", '|'},
            {"₀", '0'}, {"₁", '1'}, {"₂", '2'}, {"₃", '3'}, {"₄", '4'}, {"₅", '5'}, {"₆", '6'},
            {"₇", '7'}, {"₈", '8'}, {"₉", '9'}, {"≤", '<'}, {"≥", '>'}, {"·", '.'}, {"…", '.'}};

static char likeness_of(const char *text, size_t bytes)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].text) == bytes && memcmp(rows[i].text, text, bytes) == 0)
            return rows[i].likeness;
    return '?';
}

void dbo_ascii_write(const char *text, size_t bytes, FILE *file)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        length = 1;
        while (at + length < bytes && ((unsigned char)text[at + length] & 0xc0u) == 0x80u)
            length++;
        fputc((unsigned char)text[at] < 0x80 ? text[at] : likeness_of(text + at, length), file);
    }
}
