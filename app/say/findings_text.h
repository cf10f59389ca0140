/* findings_text.h: what a check has found, for people, and as a file.
 *
 *     dbo_findings_text(&findings, 80, &text);
 */
#ifndef DBO_FINDINGS_TEXT_H
#define DBO_FINDINGS_TEXT_H

#include "app/io/output.h"
#include "core/base/strbuf.h"
#include "lab/files/findings_json.h"

/* One block a finding: kind and sentence, then what is missing, the fix, the time. `width`: where
 * lines are broken. */
void dbo_findings_text(const dbo_findings *findings, uint32_t width, dbo_strbuf *out);

/* "nothing found; 1 order explored", "3 findings, 1 of them about speed; 7 orders explored". */
void dbo_findings_count(const dbo_findings *findings, uint32_t orders, dbo_strbuf *out);

/* The JSON document into an output, which is committed, or discarded on failure. */
dbo_status dbo_findings_write(const dbo_findings *findings, const dbo_findings_scope *scope,
                              dbo_output *output, dbo_error *err);

#endif
