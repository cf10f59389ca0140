/* text.c: a lane is rastered to one box a column, then painted into cells (glyph and tone), then
 * written: cells make labels and separators independent of colour, and a line's width is its cell
 * count.
 */
#include "viz/text/text.h"

#include "viz/text/unit.h"
#include "viz/text/view.h"
#include "viz/text/wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUTTER        13u /* for the names of lanes */
#define NARROW        60u /* with less their names are short: */
#define NARROW_GUTTER 6u

/* How a cell looks; tones of ubatches follow one another. */
typedef enum tone {
    TONE_NONE,
    TONE_DIM,
    TONE_EXPOSED,
    TONE_WHOLE, /* not split; the runner's turns */
    TONE_UBATCH /* + ubatch % 4 */
} tone;
#define NUM_UBATCH_TONES 4u
#define NUM_TONES        (TONE_UBATCH + NUM_UBATCH_TONES)

typedef struct look {
    const char *colour, *fill, *ascii_fill;
} look;

/* Colours of the 256 that no theme changes, neither light nor dark: they stand out on black and on
 * white, and what is written on them is black. */
#define ON(background) "\033[38;5;16;48;5;" #background "m"

static const look looks[NUM_TONES] = {
    [TONE_NONE] = {"", " ", " "},
    [TONE_DIM] = {"\033[38;5;244m", "·", "."},
    [TONE_EXPOSED] = {"\033[38;5;167m", "^", "^"},
    [TONE_WHOLE] = {ON(245), "▒", "="},
    [TONE_UBATCH] = {ON(38), "▓", "#"},
    [TONE_UBATCH + 1] = {ON(172), "░", "-"},
    [TONE_UBATCH + 2] = {ON(170), "█", "+"},
    [TONE_UBATCH + 3] = {ON(70), "▚", "%"},
};

typedef struct cell {
    char glyph[5]; /* one code point, NUL-terminated */
    uint8_t tone;
} cell;

typedef struct canvas {
    dbo_strbuf *out;
    dbo_text_style style;
    uint32_t gutter;  /* columns of names */
    uint32_t columns; /* of time */
    int64_t span_ns;  /* that they stand for */
    cell *cells;
    dbo_pixel *pixels;
    bool *marks;
    dbo_strbuf label;
    bool used[NUM_TONES];
} canvas;

/* All runs and the axis are in one. */
static dbo_unit unit_of(const canvas *cv)
{
    return dbo_unit_for_us((double)cv->span_ns / 1000.0, cv->style.ascii);
}

static void add_time(canvas *cv, const char *before, int64_t ns)
{
    dbo_unit unit = unit_of(cv);
    dbo_strbuf_printf(&cv->label, "%s%.*f %s", before, unit.decimals,
                      (double)ns / (1000.0 * unit.us), unit.name);
}

static void put(cell *at, const char *glyph, size_t bytes, tone t)
{
    memcpy(at->glyph, glyph, bytes);
    at->glyph[bytes] = '\0';
    at->tone = (uint8_t)t;
}

static const char *fill_of(const canvas *cv, tone t)
{
    if (cv->style.colour && t >= TONE_WHOLE)
        return " ";
    return cv->style.ascii ? looks[t].ascii_fill : looks[t].fill;
}

static void clear_cells(canvas *cv)
{
    for (uint32_t c = 0; c < cv->columns; c++)
        put(&cv->cells[c], " ", 1, TONE_NONE);
}

/* Writes cells with colour changes only where the tone changes, and no blanks at the end. */
static void write_cells(canvas *cv)
{
    uint32_t end = cv->columns;
    tone current = TONE_NONE;
    while (end > 0 && cv->cells[end - 1].tone == TONE_NONE && cv->cells[end - 1].glyph[0] == ' ')
        end--;
    if (end == 0) /* nor behind the name of an empty lane */
        dbo_strbuf_trim(cv->out);
    for (uint32_t c = 0; c < end; c++) {
        tone t = cv->cells[c].tone;
        if (cv->style.colour && t != current) {
            if (current != TONE_NONE)
                dbo_strbuf_add(cv->out, "\033[0m");
            dbo_strbuf_add(cv->out, looks[t].colour);
            current = t;
        }
        dbo_strbuf_add(cv->out, cv->cells[c].glyph);
    }
    if (current != TONE_NONE && cv->style.colour)
        dbo_strbuf_add(cv->out, "\033[0m");
    dbo_strbuf_add(cv->out, "\n");
}

static void write_name(canvas *cv, const char *name)
{
    size_t columns = dbo_text_columns(name);
    dbo_strbuf_add(cv->out, " ");
    dbo_strbuf_add(cv->out, name);
    dbo_strbuf_repeat(cv->out, " ", cv->gutter > columns + 1 ? cv->gutter - columns - 1 : 0);
}

/* ---- boxes ---- */

static tone tone_of(const dbo_view *view, const dbo_box *box)
{
    if (box->kind == DBO_BOX_WAIT || box->kind == DBO_BOX_PARKED)
        return TONE_DIM;
    bool host = box->kind == DBO_BOX_TURN;
    if (box->ubatch == DBO_BOX_MAIN || (!host && view->num_ubatches == 1))
        return TONE_WHOLE;
    return TONE_UBATCH + box->ubatch % NUM_UBATCH_TONES;
}

/* The longest label that fits in `room` columns, into cv->label; false: none does. */
static bool choose_label(canvas *cv, const dbo_view *view, const dbo_box *box, uint32_t room)
{
    for (int level = 1; level >= 0; level--) {
        dbo_strbuf_clear(&cv->label);
        dbo_box_label(view, box, level, cv->style.ascii, &cv->label);
        /* A long label needs air around it; a short one may fill its box. */
        size_t columns = dbo_text_columns(dbo_strbuf_text(&cv->label)) + (level > 0 ? 2 : 0);
        if (columns > 0 && columns <= room)
            return true;
    }
    return false;
}

/* Columns [from, to) are the box's. */
static void paint_box(canvas *cv, const dbo_view *view, const dbo_box *box, uint32_t from,
                      uint32_t to)
{
    tone t = tone_of(view, box);
    const char *fill = fill_of(cv, t);
    bool beside = from > 0 && cv->pixels[from - 1].box != DBO_NO_BOX;
    cv->used[t] = true;
    for (uint32_t c = from; c < to; c++)
        put(&cv->cells[c], fill, strlen(fill), t);
    if (beside && to - from >= 2) {
        const char *edge = cv->style.ascii ? "|" : cv->style.colour ? "▏" : "│";
        put(&cv->cells[from++], edge, strlen(edge), t);
    }
    if (!choose_label(cv, view, box, to - from))
        return;
    const char *text = dbo_strbuf_text(&cv->label);
    uint32_t at = from + (to - from - (uint32_t)dbo_text_columns(text)) / 2;
    while (*text != '\0') {
        size_t bytes = 1;
        while (((unsigned char)text[bytes] & 0xc0u) == 0x80u)
            bytes++;
        put(&cv->cells[at++], text, bytes, t);
        text += bytes;
    }
}

static void paint_lane(canvas *cv, const dbo_view *view, uint32_t lane, uint32_t end)
{
    dbo_strbuf_clear(&cv->label);
    dbo_lane_name(&view->lanes[lane], cv->gutter < GUTTER, &cv->label);
    write_name(cv, dbo_strbuf_text(&cv->label));
    clear_cells(cv);
    dbo_view_raster(view, lane, view->start_ns, cv->span_ns, cv->columns, cv->pixels);
    for (uint32_t from = 0, to; from < end; from = to) {
        size_t box = cv->pixels[from].box;
        for (to = from + 1; to < end && cv->pixels[to].box == box; to++)
            ;
        if (box != DBO_NO_BOX)
            paint_box(cv, view, &view->boxes[box], from, to);
    }
    if (end < cv->columns) { /* where the layer ends */
        const char *edge = cv->style.ascii ? ":" : "┊";
        put(&cv->cells[end], edge, strlen(edge), TONE_DIM);
    }
    write_cells(cv);
}

static void paint_exposed(canvas *cv, const dbo_view *view, uint32_t end)
{
    write_name(cv, cv->gutter < GUTTER ? "exp." : "exposed");
    clear_cells(cv);
    dbo_intervals_raster(&view->exposed, view->start_ns, cv->span_ns, cv->columns, cv->marks);
    for (uint32_t c = 0; c < end; c++) {
        if (!cv->marks[c])
            continue;
        put(&cv->cells[c], "^", 1, TONE_EXPOSED);
        cv->used[TONE_EXPOSED] = true;
    }
    write_cells(cv);
}

/* The title, cut to the width, and the figures beside it or, where they do not fit, below. */
static void paint_title(canvas *cv, const char *title, const dbo_view *view)
{
    dbo_strbuf_clear(&cv->label);
    add_time(cv, "", view->end_ns - view->start_ns);
    add_time(cv, "; communication ", view->comm_ns);
    add_time(cv, ", exposed ", dbo_intervals_total_ns(&view->exposed));
    size_t columns = 0, bytes = 0;
    while (title[bytes] != '\0' && columns + 1 < cv->style.width) {
        do
            bytes++;
        while (((unsigned char)title[bytes] & 0xc0u) == 0x80u);
        columns++;
    }
    dbo_strbuf_add_bytes(cv->out, title, bytes);
    bool beside = columns + 2 + dbo_text_columns(dbo_strbuf_text(&cv->label)) <= cv->style.width;
    dbo_strbuf_add(cv->out, beside ? ": " : ":\n");
    dbo_wrap(cv->out, beside ? "" : " ", dbo_strbuf_text(&cv->label), cv->style.width);
}

static void paint_run(canvas *cv, const dbo_text_run *run, const dbo_view *view)
{
    int64_t window_ns = view->end_ns - view->start_ns;
    /* The column in which the window ends is its last. */
    uint32_t end = (uint32_t)(((__int128)window_ns * cv->columns + cv->span_ns - 1) / cv->span_ns);
    paint_title(cv, run->title, view);
    for (uint32_t lane = 0; lane < view->num_lanes; lane++) {
        if (view->lanes[lane].kind == DBO_LANE_HOST)
            paint_exposed(cv, view, end);
        paint_lane(cv, view, lane, end);
    }
}

/* ---- axis and legend ---- */

/* The smallest of 1, 2, 5, 10, 20, ... units that leaves a tick at least ten columns. */
static int64_t tick_ns(const canvas *cv, int64_t unit_ns)
{
    const int64_t factors[] = {2, 5, 10};
    for (int64_t decade = unit_ns;; decade *= 10) {
        if ((__int128)decade * cv->columns >= (__int128)cv->span_ns * 10)
            return decade;
        for (int i = 0; i < 2; i++)
            if ((__int128)decade * factors[i] * cv->columns >= (__int128)cv->span_ns * 10)
                return decade * factors[i];
    }
}

static void paint_axis(canvas *cv)
{
    int64_t unit_ns = (int64_t)(1000 * unit_of(cv).us), tick = tick_ns(cv, unit_ns);
    clear_cells(cv);
    for (int64_t at = 0; at < cv->span_ns; at += tick) {
        uint32_t column = (uint32_t)((__int128)at * cv->columns / cv->span_ns);
        char text[32];
        int count = snprintf(text, sizeof text, "%lld", (long long)(at / unit_ns));
        if (column + (uint32_t)count + 1 > cv->columns)
            break;
        put(&cv->cells[column], cv->style.ascii ? "|" : "│", cv->style.ascii ? 1 : 3, TONE_DIM);
        for (int i = 0; i < count; i++)
            put(&cv->cells[column + 1 + (uint32_t)i], &text[i], 1, TONE_DIM);
    }
    write_name(cv, unit_of(cv).name);
    write_cells(cv);
}

/* A sample of a tone and what it stands for; begins a new line where the width is used up. */
static void add_legend(canvas *cv, tone t, const char *text, size_t *column)
{
    size_t needed = 2 + 1 + strlen(text) + 2;
    if (!cv->used[t])
        return;
    if (*column > 0 && *column + needed > cv->style.width) {
        dbo_strbuf_add(cv->out, "\n");
        *column = 0;
    }
    dbo_strbuf_add(cv->out, *column == 0 ? " " : "  ");
    if (cv->style.colour)
        dbo_strbuf_add(cv->out, looks[t].colour);
    dbo_strbuf_repeat(cv->out, fill_of(cv, t), 2);
    if (cv->style.colour)
        dbo_strbuf_add(cv->out, "\033[0m");
    dbo_strbuf_printf(cv->out, " %s", text);
    *column += needed;
}

static void paint_legend(canvas *cv)
{
    size_t column = 0;
    add_legend(cv, TONE_WHOLE, "whole batch", &column);
    for (uint32_t u = 0; u < NUM_UBATCH_TONES; u++) {
        char text[16];
        snprintf(text, sizeof text, "ubatch %u", u);
        add_legend(cv, TONE_UBATCH + u, text, &column);
    }
    add_legend(cv, TONE_DIM, "waits", &column);
    add_legend(cv, TONE_EXPOSED,
               cv->gutter < GUTTER ? "exposed" : "exposed: bytes move, nothing computes", &column);
    dbo_strbuf_add(cv->out, "\n");
}

/* ---- the whole ---- */

static dbo_status open_canvas(canvas *cv, dbo_error *err)
{
    uint32_t width = cv->style.width;
    width = width < DBO_TEXT_MIN_WIDTH ? DBO_TEXT_MIN_WIDTH : width;
    width = width > DBO_TEXT_MAX_WIDTH ? DBO_TEXT_MAX_WIDTH : width;
    cv->style.width = width;
    cv->gutter = width < NARROW ? NARROW_GUTTER : GUTTER;
    cv->columns = width - cv->gutter;
    cv->cells = calloc(cv->columns, sizeof *cv->cells);
    cv->pixels = calloc(cv->columns, sizeof *cv->pixels);
    cv->marks = calloc(cv->columns, sizeof *cv->marks);
    DBO_TRY(dbo_need_memory(cv->cells && cv->pixels && cv->marks, "a text timeline", err));
    return DBO_OK;
}

dbo_status dbo_text_timeline(dbo_strbuf *out, const dbo_text_run *runs, uint32_t num_runs,
                             dbo_text_style style, dbo_error *err)
{
    dbo_status status = DBO_OK;
    canvas cv = {.out = out, .style = style, .span_ns = 1};
    DBO_TRY_GOTO(open_canvas(&cv, err), done);
    for (uint32_t i = 0; i < num_runs; i++)
        if (runs[i].end_ns - runs[i].start_ns > cv.span_ns)
            cv.span_ns = runs[i].end_ns - runs[i].start_ns;
    for (uint32_t i = 0; i < num_runs; i++) {
        dbo_view view;
        DBO_TRY_GOTO(dbo_view_init(&view, runs[i].trace, runs[i].rank, runs[i].start_ns,
                                   runs[i].end_ns, err),
                     done);
        if (view.num_ubatches < runs[i].num_ubatches)
            view.num_ubatches = runs[i].num_ubatches;
        paint_run(&cv, &runs[i], &view);
        dbo_view_fini(&view);
    }
    if (num_runs > 0) {
        paint_axis(&cv);
        paint_legend(&cv);
    }
    if (out->failed || cv.label.failed)
        status = dbo_fail_memory(err, "a text timeline");
done:
    free(cv.cells);
    free(cv.pixels);
    free(cv.marks);
    dbo_strbuf_fini(&cv.label);
    return status;
}
