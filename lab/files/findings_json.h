/* findings_json.h: what a check has found, as JSON.
 *
 *     {"findings": [{"kind", "rank", "ubatch", "layer", "step", "ops": ["MLP of ubatch 0", ...],
 *                    "buffer", "missing_edge", "fix", "lost_us", "what", "times"}],
 *      "left_out": n, "orders_explored": n}
 *
 * Absent quantities are null; "left_out", how many causes there are besides, is there if there are
 * some.
 *
 *     dbo_findings_json(&findings, &scope, &writer);
 */
#ifndef DBO_FINDINGS_JSON_H
#define DBO_FINDINGS_JSON_H

#include "core/trace/findings.h"
#include "lab/files/json_write.h"

/* How ops are called; NULL: "MLP of ubatch 1 (layer 3)". */
typedef struct dbo_finding_names {
    dbo_op_text op_text;
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

/* One object; the caller begins and finishes the writer. */
void dbo_findings_json(const dbo_findings *findings, const dbo_findings_scope *scope,
                       dbo_json_writer *out);

#endif
