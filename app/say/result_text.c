/* result_text.c: a result as the lines and tables that `dbo run` prints. */
#include "app/say/result_text.h"

#include "viz/text/report.h"
#include "viz/text/wrap.h"

#include <stdio.h>

void dbo_result_decision(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_vote_result *decision = result->decision;
    char text[512];
    snprintf(text, sizeof text, "%s (%s): %s; graph %s, rank %u runs %d token%s, padding included",
             decision->should_ubatch ? "split" : "no split", dbo_vote_reason_name(decision->reason),
             dbo_vote_reason_text(decision->reason), dbo_graph_mode_name(decision->graph_mode),
             result->rank, decision->num_tokens_padded,
             decision->num_tokens_padded == 1 ? "" : "s");
    dbo_wrap(out, "Decision ", text, width);
}

void dbo_result_memory(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_footprint *f = result->footprint;
    char text[256];
    if (!f)
        return;
    snprintf(text, sizeof text,
             "rank %u: weights %.1f GB, KV cache %.1f GB, step %.1f GB, of %.1f GB%s", f->rank,
             f->weights_bytes / 1e9, f->kv_cache_bytes / 1e9, f->step_bytes / 1e9,
             f->device_bytes / 1e9, dbo_footprint_fits(f) ? "" : ": it does not fit");
    dbo_wrap(out, "Memory   ", text, width);
}

void dbo_result_warnings(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_experiment *e = result->experiment;
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    if (result->on && e->incomplete[0]) {
        dbo_strbuf_printf(&text, "not a whole layer, so no speed-up is claimed: %s", e->incomplete);
    } else if (result->on && result->left_out) {
        dbo_strbuf_printf(
            &text, "schedule %s leaves out what the built-in layer does:", e->config.schedule);
        for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
            if (result->left_out >> kind & 1u)
                dbo_strbuf_printf(&text, " %s", dbo_op_kind_name((dbo_op_kind)kind));
    }
    if (dbo_strbuf_text(&text)[0])
        dbo_wrap(out, "Warning  ", dbo_strbuf_text(&text), width);
    out->failed = out->failed || text.failed;
    dbo_strbuf_fini(&text);
}

void dbo_result_print(const dbo_result *result, dbo_text_style style, dbo_strbuf *out)
{
    if (result->notation) {
        dbo_report_notation(out, result->notation, style);
        dbo_strbuf_add(out, "\n");
    }
    dbo_report_metrics(out, result->off, result->on, dbo_result_speedup(result), style);
    if (result->split_cost) {
        dbo_strbuf_add(out, "\n");
        dbo_report_split_cost(out, result->split_cost, style);
    }
}
