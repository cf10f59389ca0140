/* trace_json_finding.c: what a check has found, where it happened: a mark on the track at each op
 * that a finding names, in every layer that has it, and the kind among the op's own arguments. What
 * names no op, or one that never ran, stands at the end of its host's track. */
#include "viz/trace/trace_json_impl.h"

static bool is_marked(const dbo_tj_writer *w, uint32_t i)
{
    return i < DBO_TJ_FINDINGS && (w->marked[i / 64] >> (i % 64) & 1);
}

static bool names(const dbo_finding *finding, dbo_op_id id)
{
    for (uint32_t k = 0; k < finding->num_ops; k++)
        if (dbo_finding_op_alike(finding->ops[k]) == dbo_finding_op_alike(id))
            return true;
    return false;
}

const dbo_finding *dbo_tj_next_finding(dbo_tj_writer *w, const dbo_span *span, uint32_t *at)
{
    const dbo_findings *findings = w->run->findings;
    bool begins = span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_SEND;
    while (begins && findings && *at < findings->count) {
        uint32_t i = (*at)++;
        if (!names(&findings->items[i], span->id))
            continue;
        if (i < DBO_TJ_FINDINGS)
            w->marked[i / 64] |= UINT64_C(1) << (i % 64);
        return &findings->items[i];
    }
    return NULL;
}

void dbo_tj_put_finding(dbo_tj_writer *w, const dbo_finding *finding, uint32_t tid, int64_t ns)
{
    dbo_tj_open(w, dbo_finding_kind_name(finding->kind), 'i', tid, ns);
    fputs(",\"s\":\"t\",\"cat\":\"finding\",\"args\":{", w->file);
    dbo_tj_text(w, "what", finding->what);
    fputc(',', w->file);
    dbo_tj_text(w, "missing", finding->missing_edge);
    fputc(',', w->file);
    dbo_tj_text(w, "fix", finding->fix);
    fputc('}', w->file);
    dbo_tj_close(w);
}

void dbo_tj_put_other_findings(dbo_tj_writer *w)
{
    const dbo_findings *findings = w->run->findings;
    for (uint32_t i = 0; findings && i < findings->count; i++) {
        const dbo_finding *f = &findings->items[i];
        bool own_track = f->ubatch < w->num_ubatches && w->num_ubatches > 1;
        if (!is_marked(w, i) && (f->rank == DBO_NOWHERE || f->rank == w->rank))
            dbo_tj_put_finding(w, f, DBO_TJ_TID_HOST + (own_track ? 1 + f->ubatch : 0),
                               w->run->end_ns);
    }
}
