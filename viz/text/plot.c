/* plot.c: a table as a picture of characters: points over an axis, or bars (table.h).
 *
 * Points: the vertical axis begins at 0 unless a value is below; series are drawn in order, a later
 * one over an earlier one, each with its own mark, joined by dots. An axis over equal values is
 * given some length. Bars: one scale for all series, in eighths of a character.
 */
#include "viz/text/table.h"
#include "viz/text/wrap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_WIDTH  200u
#define MAX_HEIGHT 60u
#define HEIGHTS    12u /* columns of the labels of the vertical axis */
#define LEAST_BAR  8u  /* with less the labels of bars stand above them */

static const char *const marks[2][DBO_PLOT_MAX_SERIES] = {{"●", "○", "▲", "△"},
                                                          {"*", "o", "+", "x"}};

static bool number_at(const dbo_table *table, uint32_t row, uint32_t column, double *out)
{
    const dbo_cell *cell = &table->cells[(size_t)row * table->num_columns + column];
    *out = cell->number;
    return cell->kind == DBO_CELL_NUMBER;
}

/* Smallest and largest of a column's numbers, in rows that have one in `other` too, into the range.
 */
static void widen(const dbo_table *table, uint32_t column, uint32_t other, double range[2])
{
    for (uint32_t r = 0; r < table->num_rows; r++) {
        double value, unused;
        if (!number_at(table, r, column, &value) || !number_at(table, r, other, &unused))
            continue;
        range[0] = value < range[0] ? value : range[0];
        range[1] = value > range[1] ? value : range[1];
    }
}

/* A line, wrapped if the plot may take only so many columns. */
static void add_line(const dbo_plot *plot, const char *before, const char *text, dbo_strbuf *out)
{
    dbo_wrap(out, before, text, plot->columns > 0 ? plot->columns : UINT32_MAX);
}

/* ---- points ---- */

typedef struct dbo_canvas {
    const dbo_table *table;
    const dbo_plot *plot;
    uint32_t width, height;
    double x[2], y[2];    /* ranges */
    unsigned char *cells; /* (height, width): 0 blank, 1 a dot, 2 + series */
} dbo_canvas;

/* log2 of a number above 0 by halving and squaring: the same bits everywhere. */
static double log_of(double x)
{
    double log = 0, bit = 1;
    while (x >= 2) {
        x /= 2;
        log += 1;
    }
    while (x < 1) {
        x *= 2;
        log -= 1;
    }
    for (int i = 0; i < 24; i++) {
        x *= x;
        bit /= 2;
        if (x >= 2) {
            x /= 2;
            log += bit;
        }
    }
    return log;
}

/* Where x lies between the ends: 0 at range[0], 1 at range[1]. Halves, because the distance of two
 * finite numbers need not be one; of two denormal ones even the halves may be equal. */
static double share_of(const double range[2], double x, double none)
{
    double length = range[1] / 2 - range[0] / 2;
    if (!(length > 0))
        return none;
    double share = (x / 2 - range[0] / 2) / length;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* 0 at the left end, 1 at the right. */
static double scaled_x(const dbo_canvas *canvas, double x)
{
    if (!canvas->plot->log_x)
        return share_of(canvas->x, x, 0.5);
    const double logs[2] = {log_of(canvas->x[0]), log_of(canvas->x[1])};
    return share_of(logs, log_of(x), 0.5);
}

static void set_mark(const dbo_canvas *canvas, double across, double y, unsigned char mark)
{
    double up = share_of(canvas->y, y, 0);
    uint32_t column = (uint32_t)(across * (canvas->width - 1) + 0.5);
    uint32_t row = canvas->height - 1 - (uint32_t)(up * (canvas->height - 1) + 0.5);
    unsigned char *cell = &canvas->cells[(size_t)row * canvas->width + column];
    if (mark > 1 || *cell == 0)
        *cell = mark;
}

/* The points of a series, and dots between neighbours. */
static void draw_series(const dbo_canvas *canvas, uint32_t series, bool joined)
{
    double last_x = 0, last_y = 0;
    bool has_last = false;
    for (uint32_t r = 0; r < canvas->table->num_rows; r++) {
        double x, y;
        if (!number_at(canvas->table, r, canvas->plot->x, &x) ||
            !number_at(canvas->table, r, canvas->plot->series[series], &y))
            continue;
        double across = scaled_x(canvas, x);
        if (!joined)
            set_mark(canvas, across, y, (unsigned char)(2 + series));
        for (uint32_t i = 1; joined && has_last && i < canvas->width; i++) {
            double part = (double)i / canvas->width;
            set_mark(canvas, last_x + part * (across - last_x),
                     2 * (last_y / 2 + part * (y / 2 - last_y / 2)), 1);
        }
        last_x = across;
        last_y = y;
        has_last = true;
    }
}

/* Six digits, or three where six do not fit. */
static void print_height(double y, bool ascii, dbo_strbuf *out)
{
    char text[32];
    if (snprintf(text, sizeof text, "%10.6g", y) > 10)
        snprintf(text, sizeof text, "%10.3g", y);
    dbo_strbuf_printf(out, "%s %s", text, ascii ? "+" : "┤");
}

static void print_canvas(const dbo_canvas *canvas, dbo_strbuf *out)
{
    bool ascii = canvas->plot->ascii;
    for (uint32_t row = 0; row < canvas->height; row++) {
        double down = (double)row / (canvas->height - 1);
        double y = canvas->y[1] * (1 - down) + canvas->y[0] * down;
        if (row % ((canvas->height - 1) / 3) == 0 || row + 1 == canvas->height)
            print_height(y, ascii, out);
        else
            dbo_strbuf_printf(out, "%10s %s", "", ascii ? "|" : "│");
        for (uint32_t column = 0; column < canvas->width; column++) {
            unsigned char mark = canvas->cells[(size_t)row * canvas->width + column];
            dbo_strbuf_add(out, mark == 0   ? " "
                                : mark == 1 ? (ascii ? "." : "·")
                                            : marks[ascii][mark - 2]);
        }
        dbo_strbuf_trim(out);
        dbo_strbuf_add(out, "\n");
    }
    dbo_strbuf_printf(out, "%10s %s", "", ascii ? "+" : "└");
    dbo_strbuf_repeat(out, ascii ? "-" : "─", canvas->width);
    dbo_strbuf_add(out, "\n");
}

/* The ends of the horizontal axis, and what it is: between them, or below. */
static void print_ends(const dbo_canvas *canvas, dbo_strbuf *out)
{
    const dbo_plot *plot = canvas->plot;
    char left[32], right[32];
    size_t room = HEIGHTS + canvas->width;
    dbo_strbuf name = {0};
    dbo_strbuf_printf(&name, "%s%s", canvas->table->columns[plot->x].name,
                      plot->log_x ? " (equal ratios)" : "");
    int ends = snprintf(left, sizeof left, "%.5g", canvas->x[0]) +
               snprintf(right, sizeof right, "%.5g", canvas->x[1]);
    size_t used = HEIGHTS + 2 + (size_t)ends + dbo_text_columns(dbo_strbuf_text(&name));
    bool between = plot->columns == 0 || used < plot->columns;
    if (!between)
        used -= 2 + dbo_text_columns(dbo_strbuf_text(&name));
    dbo_strbuf_printf(out, "%*s%s", (int)HEIGHTS, "", left);
    if (between)
        dbo_strbuf_printf(out, "  %s", dbo_strbuf_text(&name));
    dbo_strbuf_repeat(out, " ", used < room ? room - used : 1);
    dbo_strbuf_printf(out, "%s\n", right);
    if (!between)
        add_line(plot, "  ", dbo_strbuf_text(&name), out);
    dbo_strbuf_end(&name, out);
}

/* Equal values get an axis around them: of x on both sides, of y up or down to 0. */
static void open_ranges(dbo_canvas *canvas)
{
    double *x = canvas->x, half = x[0] == 0 ? 1 : x[0] < 0 ? -x[0] / 2 : x[0] / 2;
    if (x[0] == x[1]) {
        bool log = canvas->plot->log_x;
        x[1] = x[0] > DBL_MAX / 2 ? DBL_MAX : log ? 2 * x[0] : x[0] + half;
        x[0] = x[0] < -DBL_MAX / 2 ? -DBL_MAX : log && half > 0 ? half : log ? x[0] : x[0] - half;
    }
    if (canvas->y[0] == canvas->y[1])
        canvas->y[1] = canvas->y[0] < 0 ? 0 : 1;
}

static void print_marks(const dbo_canvas *canvas, dbo_strbuf *out)
{
    const dbo_plot *plot = canvas->plot;
    dbo_strbuf text = {0};
    for (uint32_t s = 0; s < plot->num_series; s++)
        dbo_strbuf_printf(&text, "%s%s %s", s ? "   " : "", marks[plot->ascii][s],
                          canvas->table->columns[plot->series[s]].name);
    add_line(plot, "           ", dbo_strbuf_text(&text), out);
    dbo_strbuf_end(&text, out);
}

static dbo_status plot_points(const dbo_table *table, const dbo_plot *plot, dbo_strbuf *out,
                              dbo_error *err)
{
    dbo_canvas canvas = {.table = table,
                         .plot = plot,
                         .width = plot->width ? plot->width : 60,
                         .height = plot->height ? plot->height : 13,
                         .x = {HUGE_VAL, -HUGE_VAL},
                         .y = {0, -HUGE_VAL}};
    if (plot->columns > HEIGHTS && canvas.width > plot->columns - HEIGHTS)
        canvas.width = plot->columns - HEIGHTS;
    for (uint32_t s = 0; s < plot->num_series; s++) {
        widen(table, plot->x, plot->series[s], canvas.x);
        widen(table, plot->series[s], plot->x, canvas.y);
    }
    if (canvas.x[0] > canvas.x[1] || canvas.y[0] > canvas.y[1])
        return dbo_fail(err, DBO_INVALID, NULL, "there is no row with numbers to plot");
    if (plot->log_x && canvas.x[0] <= 0)
        return dbo_fail(err, DBO_INVALID, NULL, "log_x needs numbers above 0");
    open_ranges(&canvas);
    canvas.cells = calloc((size_t)canvas.width * canvas.height, 1);
    DBO_TRY(dbo_need_memory(canvas.cells, "a plot", err));
    for (uint32_t s = 0; s < plot->num_series; s++)
        draw_series(&canvas, s, true);
    for (uint32_t s = 0; s < plot->num_series; s++)
        draw_series(&canvas, s, false);
    print_marks(&canvas, out);
    print_canvas(&canvas, out);
    print_ends(&canvas, out);
    free(canvas.cells);
    return DBO_OK;
}

/* ---- bars ---- */

static void add_bar(double share, uint32_t width, bool ascii, dbo_strbuf *out)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    uint32_t parts = (uint32_t)(share * width * 8 + 0.5);
    dbo_strbuf_repeat(out, ascii ? "#" : "█", ascii ? (parts + 4) / 8 : parts / 8);
    if (!ascii)
        dbo_strbuf_add(out, eighths[parts % 8]);
}

/* Columns that the widest label of the rows, name of the series, and value take. */
typedef struct dbo_margins {
    size_t label, name, value;
    bool above; /* labels and names have a line of their own */
} dbo_margins;

static void widen_to(size_t *columns, const char *text)
{
    size_t needed = dbo_text_columns(text);
    *columns = needed > *columns ? needed : *columns;
}

/* What a row's bar of a series is called; the row itself is named before its first one. */
static void bar_label(const dbo_table *table, const dbo_plot *plot, uint32_t row, uint32_t s,
                      const dbo_margins *margins, dbo_strbuf *out)
{
    dbo_strbuf text = {0};
    if (s == 0)
        dbo_table_cell_text(table, row, plot->x, &text);
    size_t columns = dbo_text_columns(dbo_strbuf_text(&text));
    if (!margins->above)
        dbo_strbuf_repeat(out, " ", margins->label > columns ? margins->label - columns : 0);
    dbo_strbuf_add(out, dbo_strbuf_text(&text));
    dbo_strbuf_end(&text, out);
    if (plot->num_series < 2)
        return;
    const char *series = table->columns[plot->series[s]].name;
    dbo_strbuf_printf(out, "  %s", series);
    if (!margins->above)
        dbo_strbuf_repeat(out, " ", margins->name - dbo_text_columns(series));
}

static dbo_margins measure(const dbo_table *table, const dbo_plot *plot, dbo_strbuf *out)
{
    dbo_margins margins = {0};
    dbo_strbuf text = {0};
    for (uint32_t s = 0; s < plot->num_series; s++)
        widen_to(&margins.name, table->columns[plot->series[s]].name);
    for (uint32_t r = 0; r < table->num_rows; r++)
        for (uint32_t s = 0; s <= plot->num_series; s++) {
            bool is_value = s < plot->num_series;
            dbo_strbuf_clear(&text);
            dbo_table_cell_text(table, r, is_value ? plot->series[s] : plot->x, &text);
            widen_to(is_value ? &margins.value : &margins.label, dbo_strbuf_text(&text));
        }
    dbo_strbuf_end(&text, out);
    return margins;
}

/* Columns of the longest bar; decides where labels stand. */
static uint32_t bar_width(const dbo_plot *plot, dbo_margins *margins)
{
    uint32_t width = plot->width ? plot->width : 60;
    size_t beside = margins->label + (plot->num_series > 1 ? 2 + margins->name : 0);
    size_t others = 3 + margins->value; /* the axis, and the value */
    if (plot->columns == 0 || beside + others + width <= plot->columns)
        return width;
    margins->above = beside + others + LEAST_BAR > plot->columns;
    others += margins->above ? 0 : beside;
    return others + 1 < plot->columns ? plot->columns - (uint32_t)others : 1;
}

static void add_bars(const dbo_table *table, const dbo_plot *plot, double largest, dbo_strbuf *out)
{
    dbo_margins margins = measure(table, plot, out);
    uint32_t width = bar_width(plot, &margins);
    dbo_strbuf label = {0};
    for (uint32_t r = 0; r < table->num_rows; r++) {
        for (uint32_t s = 0; s < plot->num_series; s++) {
            double value;
            bool known = number_at(table, r, plot->series[s], &value) && largest > 0;
            dbo_strbuf_clear(&label);
            bar_label(table, plot, r, s, &margins, &label);
            if (margins.above)
                add_line(plot, "", dbo_strbuf_text(&label), out);
            else
                dbo_strbuf_add(out, dbo_strbuf_text(&label));
            dbo_strbuf_add(out, plot->ascii ? " |" : " │");
            add_bar(known ? value / largest : 0, width, plot->ascii, out);
            dbo_strbuf_add(out, " ");
            dbo_table_cell_text(table, r, plot->series[s], out);
            dbo_strbuf_add(out, "\n");
        }
    }
    dbo_strbuf_end(&label, out);
}

static dbo_status plot_bars(const dbo_table *table, const dbo_plot *plot, dbo_strbuf *out,
                            dbo_error *err)
{
    double range[2] = {0, -HUGE_VAL};
    dbo_strbuf heading = {0};
    for (uint32_t s = 0; s < plot->num_series; s++)
        widen(table, plot->series[s], plot->series[s], range);
    if (range[0] < 0 || range[1] < 0)
        return dbo_fail(err, DBO_INVALID, NULL, "bars need numbers from 0 up");
    dbo_strbuf_printf(&heading, "%s by %s", table->columns[plot->series[0]].name,
                      table->columns[plot->x].name);
    if (plot->num_series < 2)
        add_line(plot, "", dbo_strbuf_text(&heading), out);
    dbo_strbuf_end(&heading, out);
    add_bars(table, plot, range[1], out);
    return DBO_OK;
}

dbo_status dbo_table_plot(const dbo_table *table, const dbo_plot *plot, dbo_strbuf *out,
                          dbo_error *err)
{
    if (plot->num_series < 1 || plot->num_series > DBO_PLOT_MAX_SERIES)
        return dbo_fail(err, DBO_INVALID, NULL, "a plot shows one to four columns");
    if (plot->width > MAX_WIDTH || plot->height > MAX_HEIGHT ||
        (plot->width > 0 && plot->width < 10) || (plot->height > 0 && plot->height < 4))
        return dbo_fail(err, DBO_INVALID, NULL,
                        "a plot is 10 to 200 characters wide and 4 to 60 high");
    return plot->kind == DBO_PLOT_BAR ? plot_bars(table, plot, out, err)
                                      : plot_points(table, plot, out, err);
}
