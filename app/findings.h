/* findings.h: what a check has found, as JSON and as text.
 *
 *     {"findings": [{"kind", "rank", "ubatch", "layer", "step", "ops": ["MLP of ubatch 0", ...],
 *                    "buffer", "missing_edge", "fix", "lost_us", "what", "times"}],
 *      "left_out": n, "orders_explored": n}
 *
 * Absent quantities are null; "left_out", how many causes there are besides, is there if there are
 * some.
 */
#ifndef DBO_APP_FINDINGS_H
#define DBO_APP_FINDINGS_H

#include "app/json_write.h"
#include "app/output.h"
#include "core/check/check.h"
#include "core/strbuf.h"

/* How ops are called; NULL: "MLP of ubatch 1 (layer 3)". */
typedef struct dbo_finding_names {
    dbo_check_op_text op_text;
    const void *self;
} dbo_finding_names;

/* What was looked at to find them. */
typedef struct dbo_findings_scope {
    uint32_t orders;     /* runs, and orders of hand-offs */
    uint64_t rows;       /* tokens whose rows were compared; 0: none */
    const char *no_rows; /* why not; NULL or "": not asked for */
    const char *error;   /* that the run ended with; NULL or "": with none */
    dbo_finding_names names;
} dbo_findings_scope;

/* The whole document into an output, which is committed, or discarded on failure. */
dbo_status dbo_findings_write(const dbo_findings *findings, const dbo_findings_scope *scope,
                              dbo_output *output, dbo_error *err);

/* One block a finding: kind and sentence, then what is missing, the fix, the time. `width`: where
 * lines are broken. */
void dbo_findings_text(const dbo_findings *findings, uint32_t width, dbo_strbuf *out);

#endif
