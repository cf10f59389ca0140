/* suggest.c: optimal string alignment distance over three rows, and what counts as near.
 *
 * A third of a word's letters may be wrong, at least one. A beginning of three letters or more
 * ("deepseek" for "deepseek-v3") ranks behind every name that is near by edits. Bytes are compared,
 * so a letter outside ASCII counts as several.
 */
#include "core/base/suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX_MIN_CHARS = 3, PREFIX_DISTANCE = 1000 };

static int folded(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 'a';
    return c == '-' ? '_' : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

size_t dbo_edit_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > DBO_SUGGEST_MAX_CHARS || b_length > DBO_SUGGEST_MAX_CHARS)
        return SIZE_MAX;
    size_t rows[3][DBO_SUGGEST_MAX_CHARS + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            int x = folded(a[i - 1]);
            int y = folded(b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y &&
                above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[a_length % 3][b_length];
}

/* Whether the shorter of the two, of at least three letters, begins the longer. */
static int begins(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && b[i] && folded(a[i]) == folded(b[i]))
        i++;
    return i >= PREFIX_MIN_CHARS && (!a[i] || !b[i]);
}

dbo_suggestion dbo_suggest_begin(const char *word)
{
    return (dbo_suggestion){.word = word, .distance = PREFIX_DISTANCE + 1};
}

void dbo_suggest_offer(dbo_suggestion *suggestion, const char *name)
{
    if (!name)
        return;
    size_t distance = dbo_edit_distance(suggestion->word, name);
    if (distance == SIZE_MAX)
        return;
    size_t allowed = strlen(suggestion->word) / 3;
    if (distance > (allowed ? allowed : 1)) {
        if (!begins(suggestion->word, name))
            return;
        distance = PREFIX_DISTANCE;
    }
    if (distance < suggestion->distance) {
        suggestion->nearest = name;
        suggestion->distance = distance;
    }
}

char *dbo_suggest_hint(const dbo_suggestion *suggestion, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (suggestion->nearest)
        snprintf(buffer, size, "did you mean '%s'?", suggestion->nearest);
    return buffer;
}

const char *dbo_suggest(const char *word, const char *const *names, size_t count)
{
    dbo_suggestion suggestion = dbo_suggest_begin(word);
    for (size_t i = 0; i < count; i++)
        dbo_suggest_offer(&suggestion, names[i]);
    return suggestion.nearest;
}
