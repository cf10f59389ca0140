/* result_text.h: what a run came to, for people.
 *
 *     dbo_result_decision(&result, 80, &text);
 *     dbo_result_print(&result, style, &text);
 */
#ifndef DBO_RESULT_TEXT_H
#define DBO_RESULT_TEXT_H

#include "core/base/strbuf.h"
#include "lab/world/result.h"
#include "viz/text/text.h"

/* "Decision split (ok): ..."; "Memory   ...", with a model; and each reason not to take the numbers
 * for a speed-up: a schedule that is not a whole layer, ops that it leaves out. Wrapped. */
void dbo_result_decision(const dbo_result *result, uint32_t width, dbo_strbuf *out);
void dbo_result_memory(const dbo_result *result, uint32_t width, dbo_strbuf *out);
void dbo_result_warnings(const dbo_result *result, uint32_t width, dbo_strbuf *out);

/* Notation; a row a metric, a column each without and with DBO, the speed-up; the cost of
 * splitting. What is not known is a dash. Other lines than the notation's fit in the width. */
void dbo_result_print(const dbo_result *result, dbo_text_style style, dbo_strbuf *out);

#endif
