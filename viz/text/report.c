/* report.c: the columns of a result: names on the left, the run without DBO, the run with it. */
#include "viz/text/report.h"

#include "viz/text/unit.h"

#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS  28
#define VALUE_COLUMNS 16

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

void dbo_report_notation(dbo_strbuf *out, const dbo_notation *notation, dbo_text_style style)
{
    dbo_notation_style real = {.ascii = style.ascii};
    dbo_strbuf_printf(out, "layer %u as issued%s\n", notation->layer,
                      notation->steady ? "" : " (too few layers for a steady state)");
    bool has_sends = false;
    for (uint32_t i = 0; i < notation->num_entries; i++)
        has_sends = has_sends || notation->entries[i].part == DBO_SPAN_SEND;
    add_lines(out, notation, real);
    /* Ops that a stream holds back until the transfer has ended stand in its cell all the same. */
    if (!has_sends)
        dbo_strbuf_add(out, "cells are issue order, not time: an op may wait for the transfer in "
                            "its cell; see the timeline\n");
    if (notation->num_ubatches != 2)
        return;
    /* The documents label only the schedule with sends the other way round. */
    dbo_strbuf_add(out, has_sends ? "with the documents' labels (0 and 1 exchanged)\n"
                                  : "with 0 and 1 exchanged\n");
    add_lines(out, notation, (dbo_notation_style){.ascii = style.ascii, .exchange = true});
}

/* ---- table ---- */

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Right-aligned by columns, which printf's widths (bytes) are not. */
static void add_right(dbo_strbuf *out, const char *text, size_t columns)
{
    size_t used = dbo_text_columns(text);
    dbo_strbuf_repeat(out, " ", columns > used ? columns - used : 0);
    dbo_strbuf_add(out, text);
}

static void add_left(dbo_strbuf *out, const char *text, size_t columns)
{
    size_t used = dbo_text_columns(text);
    dbo_strbuf_add(out, text);
    dbo_strbuf_repeat(out, " ", columns > used ? columns - used : 0);
}

/* The key says the unit, and `time` which of time. Units are padded to two columns so that figures
 * stay aligned. */
static void add_value(dbo_strbuf *out, const char *key, dbo_quantity quantity, dbo_unit time,
                      bool ascii)
{
    char text[64];
    if (!quantity.present)
        snprintf(text, sizeof text, "%s   ", ascii ? "-" : "–");
    else if (ends_in(key, "_us"))
        snprintf(text, sizeof text, "%.*f %s", time.decimals, quantity.value / time.us, time.name);
    else if (ends_in(key, "_gpu"))
        snprintf(text, sizeof text, "%.0f   ", quantity.value);
    else if (ends_in(key, "speedup"))
        snprintf(text, sizeof text, "%.3f x ", quantity.value);
    else
        snprintf(text, sizeof text, "%.1f %% ", quantity.value * 100.0);
    add_right(out, text, VALUE_COLUMNS);
}

static void end_row(dbo_strbuf *out)
{
    dbo_strbuf_trim(out); /* the padding of a unit */
    dbo_strbuf_add(out, "\n");
}

static void add_row(dbo_strbuf *out, const char *key, const char *what, const dbo_quantity *off,
                    const dbo_quantity *on, dbo_unit time, bool ascii)
{
    add_left(out, what, NAME_COLUMNS);
    if (off != NULL)
        add_value(out, key, *off, time, ascii);
    if (on != NULL)
        add_value(out, key, *on, time, ascii);
    end_row(out);
}

static double larger(double value, dbo_quantity quantity)
{
    return quantity.present && quantity.value > value ? quantity.value : value;
}

/* One unit for a table, so that its figures can be compared at a glance. */
static dbo_unit unit_of_metrics(const dbo_metrics *off, const dbo_metrics *on, bool ascii)
{
    double largest = 0;
    if (off != NULL)
        largest = larger(larger(largest, off->step_us), off->host_us);
    if (on != NULL)
        largest = larger(larger(largest, on->step_us), on->host_us);
    return dbo_unit_for_us(largest, ascii);
}

void dbo_report_metrics(dbo_strbuf *out, const dbo_metrics *off, const dbo_metrics *on,
                        dbo_quantity speedup, dbo_text_style style)
{
    dbo_unit time = unit_of_metrics(off, on, style.ascii);
    dbo_strbuf_repeat(out, " ", NAME_COLUMNS);
    if (off != NULL)
        add_right(out, "DBO off", VALUE_COLUMNS);
    if (on != NULL)
        add_right(out, "DBO on", VALUE_COLUMNS);
    dbo_strbuf_add(out, "\n");
#define ROW(name, what)                                                                       \
    add_row(out, #name, what, off == NULL ? NULL : &off->name, on == NULL ? NULL : &on->name, \
            time, style.ascii);
    DBO_METRIC_MAP(ROW)
#undef ROW
    if (off == NULL || on == NULL)
        return;
    add_left(out, "speed-up", NAME_COLUMNS);
    dbo_strbuf_repeat(out, " ", VALUE_COLUMNS);
    add_value(out, "speedup", speedup, time, style.ascii);
    end_row(out);
}

void dbo_report_split_cost(dbo_strbuf *out, const dbo_split_cost *cost, dbo_text_style style)
{
    double largest = 0;
#define LARGEST(name, what) largest = larger(largest, cost->name);
    DBO_SPLIT_COST_MAP(LARGEST)
#undef LARGEST
    dbo_unit time = dbo_unit_for_us(largest, style.ascii);
    dbo_strbuf_add(out, "cost of splitting, before any overlap\n");
#define ROW(name, what) add_row(out, #name "_us", "  " what, &cost->name, NULL, time, style.ascii);
    DBO_SPLIT_COST_MAP(ROW)
#undef ROW
}
