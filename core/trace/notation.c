/* notation.c: reading and printing. To read, the rank's issues of one step are filtered to what the
 * notation shows, in host order; then a layer is chosen and two windows of that list are found, one
 * for `Order`, one for the rows. They are the same window unless transfers have no separate send.
 * Printing never sorts: order is what is being shown. O(issues of the trace).
 */
#include "core/trace/notation.h"

#include <stdlib.h>
#include <string.h>

static dbo_op_kind kind_of(dbo_op_id id)
{
    return (dbo_op_kind)dbo_op_id_kind(id);
}

static bool is_transfer(dbo_op_id id)
{
    return kind_of(id) == DBO_KIND_DISPATCH || kind_of(id) == DBO_KIND_COMBINE;
}

/* A transfer leaves here: a send, or a rendezvous transfer as a whole. */
static bool is_send(const dbo_notation_entry *entry)
{
    return is_transfer(entry->id) && entry->part != DBO_SPAN_RECV;
}

/* ---- reading ---- */

/* The latest step, up to `step`, in which the rank issued a transfer. */
static bool find_issued_step(const dbo_trace *trace, uint32_t rank, uint32_t step, uint32_t *out)
{
    bool found = false;
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        dbo_op_id id = dbo_trace_issue(trace, i)->id;
        uint32_t s = dbo_op_id_step(id);
        if (dbo_op_id_rank(id) != rank || !is_transfer(id) || s > step || (found && s < *out))
            continue;
        *out = s;
        found = true;
    }
    return found;
}

static bool is_shown(const dbo_issue *issue, uint32_t rank, uint32_t step)
{
    return dbo_op_id_rank(issue->id) == rank && dbo_op_id_step(issue->id) == step &&
           dbo_op_kind_is_noted(kind_of(issue->id));
}

static dbo_status collect(dbo_notation *out, const dbo_trace *trace, uint32_t rank, uint32_t step,
                          dbo_error *err)
{
    uint64_t num = 0;
    for (uint64_t i = 0; i < trace->num_issues; i++)
        num += is_shown(dbo_trace_issue(trace, i), rank, step);
    out->entries = calloc((size_t)num + 1, sizeof *out->entries);
    DBO_TRY(dbo_need_memory(out->entries, "the notation", err));
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(trace, i);
        if (!is_shown(issue, rank, step))
            continue;
        out->entries[out->num_entries++] = (dbo_notation_entry){issue->id, issue->part};
        if (dbo_op_id_ubatch(issue->id) >= out->num_ubatches)
            out->num_ubatches = dbo_op_id_ubatch(issue->id) + 1;
    }
    return DBO_OK;
}

/* The first entry from `from` on of layer `layer` (a send if `send`), or num_entries. */
static uint32_t first_of(const dbo_notation *n, uint32_t from, uint32_t layer, bool send)
{
    uint32_t i = from;
    while (i < n->num_entries &&
           (dbo_op_id_layer(n->entries[i].id) != layer || (send && !is_send(&n->entries[i]))))
        i++;
    return i;
}

/* The first layer >= 2 whose neighbours have transfers too; else the first with a next one; else
 * the first with a transfer at all. */
static void choose_layer(dbo_notation *n)
{
    bool has[DBO_MAX_LAYERS + 2] = {false};
    uint32_t any = DBO_MAX_LAYERS, with_next = DBO_MAX_LAYERS;
    for (uint32_t i = 0; i < n->num_entries; i++)
        has[dbo_op_id_layer(n->entries[i].id)] |= is_send(&n->entries[i]);
    for (uint32_t layer = 0; layer < DBO_MAX_LAYERS; layer++) {
        if (!has[layer])
            continue;
        if (any == DBO_MAX_LAYERS)
            any = layer;
        if (!has[layer + 1])
            continue;
        if (with_next == DBO_MAX_LAYERS)
            with_next = layer;
        if (layer >= 2 && has[layer - 1]) {
            n->layer = layer;
            n->steady = true;
            return;
        }
    }
    n->layer = with_next != DBO_MAX_LAYERS ? with_next : any;
}

static void find_windows(dbo_notation *n)
{
    n->rows_begin = first_of(n, 0, n->layer, true);
    n->rows_end = first_of(n, n->rows_begin, n->layer + 1, true);
    n->order_begin = n->rows_begin;
    n->order_end = n->rows_end;
    bool rendezvous = false;
    for (uint32_t i = n->rows_begin; i < n->rows_end; i++)
        rendezvous |= is_transfer(n->entries[i].id) && n->entries[i].part == DBO_SPAN_RUN;
    if (rendezvous) {
        n->order_begin = first_of(n, 0, n->layer, false);
        n->order_end = first_of(n, n->order_begin, n->layer + 1, false);
    }
}

dbo_status dbo_notation_init(dbo_notation *out, const dbo_trace *trace, uint32_t rank,
                             uint32_t step, dbo_error *err)
{
    uint32_t issued = 0;
    *out = (dbo_notation){0};
    if (!find_issued_step(trace, rank, step, &issued))
        return dbo_fail(err, DBO_INVALID, "Only layers with a dispatch and a combine have one.",
                        "rank %u issued no transfer up to step %u, so there is no schedule to "
                        "write down",
                        rank, step);
    dbo_status status = collect(out, trace, rank, issued, err);
    if (status != DBO_OK) {
        dbo_notation_fini(out);
        return status;
    }
    choose_layer(out);
    find_windows(out);
    return DBO_OK;
}

void dbo_notation_fini(dbo_notation *notation)
{
    free(notation->entries);
    *notation = (dbo_notation){0};
}

/* ---- printing ---- */

static void add_digits(uint32_t number, bool ascii, dbo_strbuf *out)
{
    if (number >= 10)
        add_digits(number / 10, ascii, out);
    if (ascii)
        dbo_strbuf_printf(out, "%u", number % 10);
    else /* U+2080 + digit */
        dbo_strbuf_add_bytes(out, (const char[]){'\xe2', '\x82', (char)(0x80 + number % 10)}, 3);
}

void dbo_notation_label(const char *symbol, uint32_t ubatch, bool ascii, dbo_strbuf *out)
{
    dbo_strbuf_add(out, symbol);
    if (ascii)
        dbo_strbuf_add(out, "_");
    add_digits(ubatch, ascii, out);
}

static void add_entry(const dbo_notation *n, const dbo_notation_entry *entry,
                      dbo_notation_style style, dbo_strbuf *out)
{
    const char *symbol = dbo_op_kind_symbol(kind_of(entry->id));
    uint32_t ubatch = dbo_op_id_ubatch(entry->id);
    if (style.exchange && n->num_ubatches == 2)
        ubatch = 1 - ubatch;
    if (n->num_ubatches == 1)
        dbo_strbuf_add(out, symbol);
    else
        dbo_notation_label(symbol, ubatch, style.ascii, out);
}

void dbo_notation_order(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out)
{
    for (uint32_t i = notation->order_begin; i < notation->order_end; i++) {
        const dbo_notation_entry *entry = &notation->entries[i];
        if (i > notation->order_begin)
            dbo_strbuf_add(out, ", ");
        add_entry(notation, entry, style, out);
        if (entry->part == DBO_SPAN_SEND)
            dbo_strbuf_add(out, " send");
        if (entry->part == DBO_SPAN_RECV)
            dbo_strbuf_add(out, " recv");
    }
    dbo_strbuf_add(out, ".");
}

/* One cell: the compute ops from the send at `begin` up to the next one, and that send's name. */
static uint32_t make_cell(const dbo_notation *n, uint32_t begin, dbo_notation_style style,
                          dbo_strbuf *ops, dbo_strbuf *name)
{
    dbo_strbuf_clear(ops);
    dbo_strbuf_clear(name);
    add_entry(n, &n->entries[begin], style, name);
    uint32_t i = begin + 1;
    for (; i < n->rows_end && !is_send(&n->entries[i]); i++) {
        if (is_transfer(n->entries[i].id))
            continue;
        dbo_strbuf_add(ops, "-");
        add_entry(n, &n->entries[i], style, ops);
    }
    dbo_strbuf_add(ops, "-");
    return i;
}

static void add_row(const dbo_notation *n, dbo_notation_style style, bool comm, dbo_strbuf *out)
{
    dbo_strbuf ops = {0}, name = {0};
    for (uint32_t i = n->rows_begin; i < n->rows_end;) {
        i = make_cell(n, i, style, &ops, &name);
        size_t ops_columns = dbo_text_columns(dbo_strbuf_text(&ops));
        size_t name_columns = dbo_text_columns(dbo_strbuf_text(&name));
        size_t width = ops_columns > name_columns + 2 ? ops_columns : name_columns + 2;
        const dbo_strbuf *shown = comm ? &name : &ops;
        size_t dashes = width - (comm ? name_columns : ops_columns);
        /* A name stands in the middle, the odd dash to its left; ops begin at the left. */
        size_t left = comm ? (dashes + 1) / 2 : 0;
        dbo_strbuf_add(out, "|");
        dbo_strbuf_repeat(out, "-", left);
        dbo_strbuf_add(out, dbo_strbuf_text(shown));
        dbo_strbuf_repeat(out, "-", dashes - left);
        dbo_strbuf_add(out, "|");
    }
    out->failed |= ops.failed || name.failed;
    dbo_strbuf_fini(&ops);
    dbo_strbuf_fini(&name);
}

void dbo_notation_comp(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out)
{
    add_row(notation, style, false, out);
}

void dbo_notation_comm(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out)
{
    add_row(notation, style, true, out);
}
