/* explain.h: what a word of dbo means: `dbo explain TERM`.
 *
 * Terms are those of the design (ubatch, hand-off, bound, ...), of the rules (vote, threshold,
 * ...), of the screens (lanes, rows, headings), reasons of decisions, kinds of ops, measures,
 * instructions, findings, faults (with their story: fault_text.h), and every key of a script. Most
 * come from their own tables, so that none can be missing. Case does not matter, nor does whether
 * words are joined by blanks, '-' or '_'; a word may be written as a screen writes it: "D₁ send",
 * "ubatch 0", "batch.num_tokens", "late-rank:rank=1". The name of a section is all of it.
 *
 *     DBO_TRY(dbo_explain("hand-off", 80, &text, err));    // DBO_INVALID names the nearest term
 */
#ifndef DBO_APP_EXPLAIN_H
#define DBO_APP_EXPLAIN_H

#include "core/base/status.h"
#include "core/base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dbo_term {
    const char *name, *section;
    const char *text; /* paragraphs, not wrapped */
} dbo_term;

/* The terms one after the other, sections together; false past the end. A name may occur in two
 * sections; both are its meaning. */
bool dbo_term_at(size_t index, dbo_term *out);

/* Appends everything that `word` means, wrapped at `width` columns. DBO_INVALID names the nearest
 * term, if there is one. */
dbo_status dbo_explain(const char *word, uint32_t width, dbo_strbuf *out, dbo_error *err);

/* Appends the names of all terms by section. */
void dbo_explain_list(uint32_t width, dbo_strbuf *out);

#endif
