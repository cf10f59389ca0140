/* table.h: rows of results under named columns: aligned, as CSV, as a small plot of text.
 *
 *     dbo_table table = {0};
 *     DBO_TRY(dbo_table_add_column(&table, "tokens", -1, err));
 *     DBO_TRY(dbo_table_add_row(&table, err));
 *     DBO_TRY(dbo_table_put(&table, 0, 0, (dbo_cell){.kind = DBO_CELL_NUMBER, .number = 8}, err));
 *     dbo_table_print(&table, false, 80, &text);
 *     dbo_table_fini(&table);
 *
 * Columns come before rows. Numbers of a column have the same decimals: those given, or none if all
 * are whole, or as many as show three digits of the largest. A zeroed table is a valid empty one;
 * texts are copied. One thread at a time.
 */
#ifndef DBO_TABLE_H
#define DBO_TABLE_H

#include "core/base/status.h"
#include "core/base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_TABLE_MAX_COLUMNS 64u
#define DBO_TABLE_MAX_ROWS    4096u
#define DBO_PLOT_MAX_SERIES   4u

typedef enum dbo_cell_kind { DBO_CELL_NONE, DBO_CELL_NUMBER, DBO_CELL_TEXT } dbo_cell_kind;

typedef struct dbo_cell {
    dbo_cell_kind kind;
    double number; /* finite */
    char *text;    /* the table's */
} dbo_cell;

typedef struct dbo_column {
    char *key;    /* as a script has it */
    char *name;   /* as it is printed: at most 60 columns */
    int decimals; /* < 0: as the values need */
} dbo_column;

typedef struct dbo_table {
    char *title; /* or NULL */
    uint32_t num_columns, num_rows, cap_rows;
    dbo_column columns[DBO_TABLE_MAX_COLUMNS];
    dbo_cell *cells;   /* (num_rows, num_columns) */
    size_t text_bytes; /* of title, names and cells, about as they are laid out in memory */
} dbo_table;

typedef enum dbo_plot_kind {
    DBO_PLOT_LINE, /* points over a number, joined */
    DBO_PLOT_BAR   /* one bar a row and series */
} dbo_plot_kind;

typedef struct dbo_plot {
    dbo_plot_kind kind;
    bool log_x; /* points: equal ratios are equally far apart */
    bool ascii;
    uint32_t x;                                       /* column */
    uint32_t num_series, series[DBO_PLOT_MAX_SERIES]; /* columns */
    uint32_t width, height; /* of the drawing in characters, without its labels; 0: 60 and 13 */
    uint32_t columns;       /* that all of it may take, labels too; 0: any number */
} dbo_plot;

void dbo_table_fini(dbo_table *table);
dbo_status dbo_table_set_title(dbo_table *table, const char *title, dbo_error *err);
dbo_status dbo_table_add_column(dbo_table *table, const char *name, int decimals, dbo_error *err);
/* An empty row, the last. */
dbo_status dbo_table_add_row(dbo_table *table, dbo_error *err);
dbo_status dbo_table_put(dbo_table *table, uint32_t row, uint32_t column, dbo_cell cell,
                         dbo_error *err);

/* What all of it takes in memory, about. */
size_t dbo_table_bytes(const dbo_table *table);
/* The column of a name, or num_columns. */
uint32_t dbo_table_column(const dbo_table *table, const char *name);
/* What a cell prints as. */
void dbo_table_cell_text(const dbo_table *table, uint32_t row, uint32_t column, dbo_strbuf *out);

/* `width` (0: any): what is wider has a line a cell instead of one a row. */
void dbo_table_print(const dbo_table *table, bool ascii, uint32_t width, dbo_strbuf *out);
/* RFC 4180, with a line of names; numbers in full. */
void dbo_table_csv(const dbo_table *table, dbo_strbuf *out);
/* Rows whose cells are not numbers are left out. DBO_INVALID if nothing is left to draw. (plot.c)
 */
dbo_status dbo_table_plot(const dbo_table *table, const dbo_plot *plot, dbo_strbuf *out,
                          dbo_error *err);

#endif
