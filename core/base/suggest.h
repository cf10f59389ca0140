/* suggest.h: "unknown key 'batchs': did you mean 'batch'?"
 *
 * Finds, among known names, the one nearest to a word that was not found: by edits (insert, delete,
 * replace, swap neighbours; case and the difference between '-' and '_' are free), or by one being
 * the beginning of the other. A name too far away is not suggested. All state is in the caller's
 * dbo_suggestion; names are borrowed, nothing is allocated.
 *
 *     const char *near = dbo_suggest("gpus_per_nod", names, count);
 *
 *     dbo_suggestion s = dbo_suggest_begin(word);       // names that are not an array
 *     for (size_t i = 0; i < count; i++)
 *         dbo_suggest_offer(&s, table[i].name);
 *     dbo_suggest_hint(&s, hint, sizeof hint);          // "did you mean 'batch'?", or empty
 */
#ifndef DBO_SUGGEST_H
#define DBO_SUGGEST_H

#include <stddef.h>

/* Words longer than this are too strange to be a slip; no name is suggested for them. */
#define DBO_SUGGEST_MAX_CHARS 63

typedef struct dbo_suggestion {
    const char *word;
    const char *nearest; /* NULL: none offered yet is near enough */
    size_t distance;     /* of nearest, or how near a name must come */
} dbo_suggestion;

dbo_suggestion dbo_suggest_begin(const char *word);

/* Considers one name (NULL is passed over). Of equally near ones the first offered stays. */
void dbo_suggest_offer(dbo_suggestion *suggestion, const char *name);

/* Writes "did you mean 'NAME'?" or the empty string, cut to size (> 0); returns buffer. */
char *dbo_suggest_hint(const dbo_suggestion *suggestion, char *buffer, size_t size);

/* The nearest of count names, or NULL. */
const char *dbo_suggest(const char *word, const char *const *names, size_t count);

/* Edits between two words; SIZE_MAX if one is longer than DBO_SUGGEST_MAX_CHARS. */
size_t dbo_edit_distance(const char *a, const char *b);

#endif
