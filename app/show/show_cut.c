/* show_cut.c: how each kind of rank's batch is cut: slices, and the metadata of attention. */
#include "app/show/show.h"

#include <inttypes.h>
#include <stdio.h>

#define SHOWN_CLASSES 8u
#define SHOWN_FIRST   6 /* of a long array */
#define SHOWN_LAST    2

/* "rank 3", "ranks 0-127", "ranks 0, 2-5": the ranks of class `class_id`. */
static void add_ranks(const dbo_simulated *run, uint32_t num_ranks, uint32_t class_id,
                      dbo_strbuf *out)
{
    uint32_t members = 0, stretches = 0;
    for (uint32_t rank = 0; rank < num_ranks; rank++)
        members += run->class_of[rank] == class_id;
    dbo_strbuf_add(out, members == 1 ? "rank " : "ranks ");
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        if (run->class_of[rank] != class_id)
            continue;
        uint32_t end = rank;
        while (end + 1 < num_ranks && run->class_of[end + 1] == class_id)
            end++;
        if (stretches++ > 0)
            dbo_strbuf_add(out, ", ");
        if (stretches > 6) {
            dbo_strbuf_add(out, "...");
            return;
        }
        dbo_strbuf_printf(out, end > rank ? "%u-%u" : "%u", rank, end);
        rank = end;
    }
}

typedef void (*cut_fn)(const dbo_step_result *result, dbo_strbuf *out);

/* Calls `show` for each kind of rank, below a line that names the ranks. */
static void each_class(const dbo_outcome *outcome, cut_fn show, dbo_strbuf *out)
{
    uint32_t num_ranks = outcome->result.experiment->config.data_parallel_size;
    const dbo_simulated *run = &outcome->on;
    for (uint32_t c = 0; c < run->num_classes; c++) {
        const dbo_step_result *result = &run->results[c];
        if (c == SHOWN_CLASSES) {
            dbo_strbuf_printf(out, "\n... and %u more kinds of ranks\n", run->num_classes - c);
            return;
        }
        dbo_strbuf_add(out, c > 0 ? "\n" : "");
        add_ranks(run, num_ranks, c, out);
        dbo_strbuf_printf(out, ": %" PRId32 " tokens, padded to %" PRId32 "\n", result->num_tokens,
                          result->cut.num_tokens_padded);
        show(result, out);
    }
}

static bool add_not_split(const dbo_outcome *outcome, dbo_strbuf *out)
{
    const dbo_vote_result *decision = outcome->result.decision;
    if (decision->should_ubatch)
        return false;
    dbo_strbuf_printf(out, "The step is not split (%s): %s. One ubatch has it all.\n\n",
                      dbo_vote_reason_name(decision->reason),
                      dbo_vote_reason_text(decision->reason));
    return true;
}

/* ---- slices ---- */

static void add_range(dbo_strbuf *out, int32_t start, int32_t stop)
{
    char text[32];
    snprintf(text, sizeof text, "[%" PRId32 ", %" PRId32 ")", start, stop);
    dbo_strbuf_printf(out, "  %-14s", text);
}

static void add_slice_rows(const dbo_step_result *result, dbo_strbuf *out)
{
    const dbo_cut *cut = &result->cut;
    dbo_strbuf_add(out, "  ubatch  requests        tokens          padded requests padded tokens"
                        "    num_tokens\n");
    for (uint32_t i = 0; i < cut->num_ubatches; i++) {
        const dbo_ubatch_slice *slice = &cut->slices[i], *padded = &cut->slices_padded[i];
        dbo_strbuf_printf(out, "  %-6u", i);
        add_range(out, slice->req_start, slice->req_stop);
        add_range(out, slice->tok_start, slice->tok_stop);
        add_range(out, padded->req_start, padded->req_stop);
        add_range(out, padded->tok_start, padded->tok_stop);
        dbo_strbuf_printf(out, "  %" PRId32, dbo_slice_num_tokens(slice));
        if (dbo_slice_num_tokens(slice) < 0)
            dbo_strbuf_add(out, " inverted: only padding is left");
        else if (dbo_slice_is_empty(slice))
            dbo_strbuf_add(out, " empty: only padding is left");
        dbo_strbuf_add(out, "\n");
    }
}

void dbo_show_slices(const dbo_outcome *outcome, dbo_strbuf *out)
{
    if (!add_not_split(outcome, out))
        dbo_strbuf_add(out, "Cuts are at multiples of padded / N; ranges are half-open; only the "
                            "last slice is padded.\n\n");
    each_class(outcome, add_slice_rows, out);
}

/* ---- metadata ---- */

static void add_array(const char *name, const int32_t *values, int32_t count, dbo_strbuf *out)
{
    dbo_strbuf_printf(out, "    %-16s[", name);
    for (int32_t i = 0; i < count; i++) {
        if (count > SHOWN_FIRST + SHOWN_LAST + 1 && i == SHOWN_FIRST) {
            dbo_strbuf_add(out, ", ...");
            i = count - SHOWN_LAST;
        }
        dbo_strbuf_printf(out, "%s%" PRId32, i > 0 ? ", " : "", values[i]);
    }
    dbo_strbuf_printf(out, "]%s", count == 0 ? "\n" : "");
    if (count > 0)
        dbo_strbuf_printf(out, "  (%" PRId32 ")\n", count);
}

static void add_metadata_rows(const dbo_step_result *result, dbo_strbuf *out)
{
    const dbo_cut *cut = &result->cut;
    for (uint32_t i = 0; i < cut->num_ubatches; i++) {
        const dbo_ubatch_metadata *m = &cut->metadata[i];
        int32_t rows = m->req_stop - m->req_start;
        dbo_strbuf_printf(out,
                          "  ubatch %u: requests [%" PRId32 ", %" PRId32 "), %" PRId32
                          " real; tokens [%" PRId32 ", %" PRId32 "), %" PRId32
                          " real; max_query_len %" PRId32 "\n",
                          i, m->req_start, m->req_stop, m->num_reqs, m->tok_start, m->tok_stop,
                          m->num_tokens, m->max_query_len);
        add_array("query_start_loc", m->query_start_loc, rows + 1, out);
        add_array("seq_lens", m->seq_lens, rows, out);
        dbo_strbuf_printf(out, "    %-16s[%" PRId32 ", %" PRId32 ") of the step's slot mapping\n",
                          "slots", m->slot_start, m->slot_stop);
    }
}

void dbo_show_metadata(const dbo_outcome *outcome, dbo_strbuf *out)
{
    if (!add_not_split(outcome, out))
        dbo_strbuf_add(out, "A request that is cut has a part in both ubatches: the earlier one "
                            "sees its sequence end at the cut.\n\n");
    each_class(outcome, add_metadata_rows, out);
}
