/* report.h: the results of a run as text: notation, table, cost of splitting.
 *
 * Everything goes to a dbo_strbuf; a quantity that is not known prints as a dash. The table fits in
 * 60 columns. Lines of the notation are never broken: they are quoted and compared as wholes.
 */
#ifndef DBO_VIZ_REPORT_H
#define DBO_VIZ_REPORT_H

#include "core/base/strbuf.h"
#include "core/trace/metrics.h"
#include "core/trace/notation.h"
#include "viz/text/text.h"

/* Comp, Comm and Order with real ids and, for two ubatches, once more with 0 and 1 exchanged. */
void dbo_report_notation(dbo_strbuf *out, const dbo_notation *notation, dbo_text_style style);

/* One row a metric, a column each without and with DBO, and, if there are both, the speed-up, which
 * the caller may not claim. Either may be NULL. */
void dbo_report_metrics(dbo_strbuf *out, const dbo_metrics *off, const dbo_metrics *on,
                        dbo_quantity speedup, dbo_text_style style);

void dbo_report_split_cost(dbo_strbuf *out, const dbo_split_cost *cost, dbo_text_style style);

#endif
