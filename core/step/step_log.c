/* step_log.c: values as Python prints them (step_log.h). */
#include "core/step/step_log.h"

#include "core/base/strbuf.h"

#include <inttypes.h>

/* Longer tensors are shown by their ends, three each. */
#define SHOWN_RANKS 100u
#define SHOWN_ENDS  3u

static const char *python_bool(bool value)
{
    return value ? "True" : "False";
}

static void add_counts(dbo_strbuf *text, const int32_t *counts, uint32_t num)
{
    if (num < 2) {
        dbo_strbuf_add(text, "None");
        return;
    }
    dbo_strbuf_add(text, "tensor([");
    for (uint32_t i = 0; i < num; i++) {
        if (num > SHOWN_RANKS && i == SHOWN_ENDS) {
            dbo_strbuf_add(text, ",  ...");
            i = num - SHOWN_ENDS;
        }
        dbo_strbuf_printf(text, "%s%" PRId32, i > 0 ? ", " : "", counts[i]);
    }
    dbo_strbuf_add(text, "], dtype=torch.int32)");
}

void dbo_step_log_vote(const dbo_log *log, const dbo_vote_result *decision, int32_t num_reqs_padded,
                       const int32_t *across_dp, uint32_t num_ranks)
{
    if (!dbo_log_enabled(log, DBO_LOG_VOTE, DBO_LOG_LEVEL_DEBUG))
        return;
    bool full = decision->graph_mode == DBO_GRAPH_FULL;
    dbo_strbuf text = {0};
    dbo_strbuf_printf(&text, "BatchDescriptor(num_tokens=%" PRId32, decision->num_tokens_padded);
    if (full)
        dbo_strbuf_printf(&text, ", num_reqs=%" PRId32, num_reqs_padded);
    else
        dbo_strbuf_add(&text, ", num_reqs=None");
    dbo_strbuf_printf(&text, ", uniform=%s, has_lora=False), should_ubatch: %s", python_bool(full),
                      python_bool(decision->should_ubatch));
    dbo_strbuf_add(&text, ", num_tokens_across_dp: ");
    add_counts(&text, across_dp, num_ranks);
    if (!text.failed)
        DBO_LOG(log, VOTE, DEBUG, "Running batch with cudagraph_mode: %s, batch_descriptor: %s",
                dbo_graph_mode_name(decision->graph_mode), dbo_strbuf_text(&text));
    dbo_strbuf_fini(&text);
}

static void add_slices(dbo_strbuf *text, const dbo_ubatch_slice *slices, uint32_t num)
{
    if (num < 2) {
        dbo_strbuf_add(text, "None");
        return;
    }
    dbo_strbuf_add(text, "[");
    for (uint32_t i = 0; i < num; i++)
        dbo_strbuf_printf(text,
                          "%sUBatchSlice(request_slice=slice(%" PRId32 ", %" PRId32
                          ", None), token_slice=slice(%" PRId32 ", %" PRId32 ", None))",
                          i > 0 ? ", " : "", slices[i].req_start, slices[i].req_stop,
                          slices[i].tok_start, slices[i].tok_stop);
    dbo_strbuf_add(text, "]");
}

void dbo_step_log_slices(const dbo_log *log, const dbo_cut *cut)
{
    if (!dbo_log_enabled(log, DBO_LOG_SLICE, DBO_LOG_LEVEL_DEBUG))
        return;
    dbo_strbuf text = {0};
    add_slices(&text, cut->slices, cut->num_ubatches);
    dbo_strbuf_add(&text, ", ubatch_slices_padded: ");
    add_slices(&text, cut->slices_padded, cut->num_ubatches);
    if (!text.failed)
        DBO_LOG(log, SLICE, DEBUG, "ubatch_slices: %s", dbo_strbuf_text(&text));
    dbo_strbuf_fini(&text);
}
