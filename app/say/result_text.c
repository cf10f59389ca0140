/* result_text.c: a result as the lines and tables that `dbo run` prints (result_text.h).
 *
 * The tables are a sink of dbo_result_visit: a quantity becomes a row, under its group's side.
 * Where names and columns do not fit beside each other, each value has a line of its own.
 */
#include "app/say/result_text.h"

#include "viz/text/unit.h"
#include "viz/text/wrap.h"

#include <stdio.h>
#include <string.h>

void dbo_result_decision(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_vote_result *decision = result->decision;
    dbo_wrap_printf(
        out, "Decision ", width, "%s (%s): %s; graph %s, rank %u runs %d token%s, padding included",
        decision->should_ubatch ? "split" : "no split", dbo_vote_reason_name(decision->reason),
        dbo_vote_reason_text(decision->reason), dbo_graph_mode_name(decision->graph_mode),
        result->rank, decision->num_tokens_padded, decision->num_tokens_padded == 1 ? "" : "s");
}

void dbo_result_memory(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_footprint *f = result->footprint;
    char transfers[48] = "";
    if (!f)
        return;
    if (f->buffer_bytes >= 0.05e9) /* that shows */
        snprintf(transfers, sizeof transfers, "all-to-all %.1f GB, ", f->buffer_bytes / 1e9);
    dbo_wrap_printf(out, "Memory   ", width,
                    "rank %u: weights %.1f GB, KV cache %.1f GB, %sstep %.1f GB, of %.1f GB%s",
                    f->rank, f->weights_bytes / 1e9, f->kv_cache_bytes / 1e9, transfers,
                    f->step_bytes / 1e9, f->device_bytes / 1e9,
                    dbo_footprint_fits(f) ? "" : ": it does not fit");
}

void dbo_result_warnings(const dbo_result *result, uint32_t width, dbo_strbuf *out)
{
    const dbo_experiment *e = result->experiment;
    dbo_strbuf text = {0};
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
    dbo_strbuf_end(&text, out);
}

/* ---- notation ---- */

static void add_lines(dbo_strbuf *out, const dbo_notation *notation, dbo_notation_style style)
{
    dbo_strbuf_add(out, "Comp: ");
    dbo_notation_comp(notation, style, out);
    dbo_strbuf_add(out, "\nComm: ");
    dbo_notation_comm(notation, style, out);
    dbo_strbuf_add(out, "\nOrder: ");
    dbo_notation_order(notation, style, out);
    dbo_strbuf_add(out, "\n");
}

/* Comp, Comm and Order with real ids and, for two ubatches, once more with 0 and 1 exchanged. These
 * lines are never broken, whatever the width: they are quoted and compared as wholes. */
static void add_notation(const dbo_notation *notation, dbo_text_style style, dbo_strbuf *out)
{
    bool has_sends = false;
    dbo_wrap_printf(out, "", style.width, "layer %u as issued%s", notation->layer,
                    notation->steady ? "" : " (too few layers for a steady state)");
    for (uint32_t i = 0; i < notation->num_entries; i++)
        has_sends = has_sends || notation->entries[i].part == DBO_SPAN_SEND;
    add_lines(out, notation, (dbo_notation_style){.ascii = style.ascii});
    /* Ops that a stream holds back until the transfer has ended stand in its cell all the same. */
    if (!has_sends)
        dbo_wrap(
            out, "",
            "cells are issue order, not time: an op may wait for the transfer in its cell; see "
            "the timeline",
            style.width);
    if (notation->num_ubatches != 2)
        return;
    /* The documents label only the schedule with sends the other way round. */
    dbo_wrap(out, "",
             has_sends ? "with the documents' labels (0 and 1 exchanged)"
                       : "with 0 and 1 exchanged",
             style.width);
    add_lines(out, notation, (dbo_notation_style){.ascii = style.ascii, .exchange = true});
}

/* ---- tables ---- */

#define NAME_COLUMNS  28u
#define VALUE_COLUMNS 16u
#define ONE_ROW(...)  +1 /* NOLINT(bugprone-macro-parentheses): they are added up */

enum { OFF, ON };
static const char *const sides[] = {[OFF] = "DBO off", [ON] = "DBO on"};

typedef struct row {
    const char *key, *what;
    dbo_quantity_unit unit;
    bool told[2];
    dbo_quantity values[2];
} row;

typedef struct table {
    row rows[2 DBO_METRIC_MAP(ONE_ROW)]; /* and rows of the busiest, and the speed-up */
    uint32_t num_rows, num_sides;
} table;

typedef struct tables {
    bool split;
    uint32_t depth;
    const char *groups[8]; /* that are open */
    table metrics, parts, cost;
} tables;

static void open_group(void *self, const char *key, dbo_group group)
{
    tables *t = self;
    (void)group;
    t->groups[t->depth++] = key ? key : "";
}

static void close_group(void *self)
{
    tables *t = self;
    t->depth--;
}

static table *table_of(tables *t, const char *key)
{
    const char *group = t->groups[t->depth - 1];
    if (strcmp(group, "step_parts_us") == 0)
        return &t->parts;
    if (strcmp(group, "split_cost_us") == 0 || (key && strcmp(key, "split_saved_us") == 0))
        return &t->cost;
    return &t->metrics;
}

static void put(void *self, const char *key, const dbo_datum *datum)
{
    tables *t = self;
    table *into = table_of(t, key);
    const char *group = t->groups[t->depth - (into == &t->parts ? 2 : 1)];
    int side = t->split && group[0] == '\0' && into != &t->cost ? ON : OFF;
    uint32_t i = 0;
    /* A speed-up is of one side over the other. */
    if (datum->kind != DBO_DATUM_QUANTITY || (!t->split && strcmp(key, "speedup") == 0))
        return;
    while (i < into->num_rows && strcmp(into->rows[i].key, key) != 0)
        i++;
    row *at = &into->rows[i];
    if (i == into->num_rows)
        into->num_rows++;
    at->key = key;
    at->what = datum->what;
    at->unit = datum->unit;
    at->told[side] = true;
    at->values[side] = datum->quantity;
}

/* Nothing, on either side: no row. What is not known has one. */
static bool is_nothing(const row *r)
{
    bool present = false;
    for (int side = OFF; side <= ON; side++) {
        present = present || r->values[side].present;
        if (r->values[side].present && r->values[side].value != 0)
            return false;
    }
    return present;
}

static void leave_out_nothing(table *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->num_rows; i++)
        if (!is_nothing(&t->rows[i]))
            t->rows[kept++] = t->rows[i];
    t->num_rows = kept;
}

/* Right-aligned by columns, which printf's widths (bytes) are not. */
static void add_right(dbo_strbuf *out, const char *text, size_t columns)
{
    size_t used = dbo_text_columns(text);
    dbo_strbuf_repeat(out, " ", columns > used ? columns - used : 0);
    dbo_strbuf_add(out, text);
}

/* Units are padded to two columns so that figures stay aligned. */
static void print_value(char *text, size_t size, const row *r, double value, dbo_unit time)
{
    switch (r->unit) {
    case DBO_UNIT_US:
        snprintf(text, size, "%.*f %s", time.decimals, value / time.us, time.name);
        return;
    case DBO_UNIT_SHARE: snprintf(text, size, "%.1f %% ", value * 100.0); return;
    case DBO_UNIT_PER_S: snprintf(text, size, "%.0f   ", value); return;
    case DBO_UNIT_TIMES: snprintf(text, size, "%.3f x ", value); return;
    }
}

static void add_value(dbo_strbuf *out, const row *r, uint32_t side, dbo_unit time, bool ascii,
                      size_t columns)
{
    char text[64] = "";
    if (r->told[side] && r->values[side].present)
        print_value(text, sizeof text, r, r->values[side].value, time);
    else if (r->told[side])
        snprintf(text, sizeof text, "%s   ", ascii ? "-" : "–");
    add_right(out, text, columns);
}

static void end_line(dbo_strbuf *out)
{
    dbo_strbuf_trim(out); /* the padding of a unit */
    dbo_strbuf_add(out, "\n");
}

/* One unit for a table, so that its figures can be compared at a glance. */
static dbo_unit unit_of(const table *t, bool ascii)
{
    double largest = 0;
    for (uint32_t i = 0; i < t->num_rows; i++)
        for (uint32_t side = 0; side < t->num_sides; side++) {
            const dbo_quantity *q = &t->rows[i].values[side];
            if (t->rows[i].unit == DBO_UNIT_US && q->present && q->value > largest)
                largest = q->value;
        }
    return dbo_unit_for_us(largest, ascii);
}

/* Do names and columns stand beside each other? */
static bool fits(const table *t, uint32_t width)
{
    return NAME_COLUMNS + t->num_sides * VALUE_COLUMNS <= width;
}

static void add_wide_row(const table *t, const row *r, const char *indent, dbo_unit time,
                         bool ascii, dbo_strbuf *out)
{
    dbo_strbuf_printf(out, "%s%-*s", indent, (int)(NAME_COLUMNS - strlen(indent)), r->what);
    for (uint32_t side = 0; side < t->num_sides; side++)
        add_value(out, r, side, time, ascii, VALUE_COLUMNS);
    end_line(out);
}

static void add_narrow_row(const table *t, const row *r, const char *indent, dbo_unit time,
                           dbo_text_style style, dbo_strbuf *out)
{
    dbo_wrap(out, indent, r->what, style.width);
    for (uint32_t side = 0; side < t->num_sides; side++) {
        if (!r->told[side])
            continue;
        dbo_strbuf_printf(out, "%s  %-3s", indent, t->num_sides > 1 ? sides[side] + 4 : "");
        add_value(out, r, side, time, style.ascii, VALUE_COLUMNS - 3);
        end_line(out);
    }
}

static void add_rows(const table *t, const char *indent, dbo_text_style style, dbo_strbuf *out)
{
    dbo_unit time = unit_of(t, style.ascii);
    for (uint32_t i = 0; i < t->num_rows; i++) {
        if (fits(t, style.width))
            add_wide_row(t, &t->rows[i], indent, time, style.ascii, out);
        else
            add_narrow_row(t, &t->rows[i], indent, time, style, out);
    }
}

static void add_metrics(const table *t, dbo_text_style style, dbo_strbuf *out)
{
    if (fits(t, style.width)) {
        dbo_strbuf_repeat(out, " ", NAME_COLUMNS);
        for (uint32_t side = 0; side < t->num_sides; side++)
            add_right(out, sides[side], VALUE_COLUMNS);
    } else {
        dbo_strbuf_add(out, t->num_sides > 1 ? "DBO off and on" : sides[OFF]);
    }
    dbo_strbuf_add(out, "\n");
    add_rows(t, "", style, out);
}

void dbo_result_print(const dbo_result *result, dbo_text_style style, dbo_strbuf *out)
{
    tables t = {.split = result->on != NULL};
    const dbo_result_sink sink = {.self = &t, .open = open_group, .close = close_group, .put = put};
    dbo_result_visit(result, &sink);
    t.metrics.num_sides = t.parts.num_sides = t.split ? 2 : 1;
    t.cost.num_sides = 1;
    leave_out_nothing(&t.metrics);
    leave_out_nothing(&t.parts);
    leave_out_nothing(&t.cost);
    if (result->notation) {
        add_notation(result->notation, style, out);
        dbo_strbuf_add(out, "\n");
    }
    add_metrics(&t.metrics, style, out);
    if (t.parts.num_rows > 0) {
        dbo_strbuf_add(out, "\n");
        dbo_wrap(out, "", "where the step goes", style.width);
        add_rows(&t.parts, "  ", style, out);
    }
    if (t.cost.num_rows > 0) {
        dbo_strbuf_add(out, "\n");
        dbo_wrap(out, "", "cost of splitting, before any overlap", style.width);
        add_rows(&t.cost, "  ", style, out);
    }
}
