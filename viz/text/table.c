/* table.c: storage, alignment, CSV (table.h). */
#include "viz/text/table.h"

#include "core/base/clean.h"
#include "core/base/vec.h"
#include "viz/text/wrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A piece of memory's own, beside what is in it. */
#define PIECE_BYTES 24u

/* So many columns of a column's name are printed: every row is as wide. */
#define NAME_COLUMNS 60u

/* Cuts a valid text to so many columns, of which the last are "...". */
static void cut_to(char *text, size_t columns)
{
    char *end = text;
    if (dbo_text_columns(text) <= columns)
        return;
    for (size_t kept = 0; kept < columns - 2; end++)
        kept += ((unsigned char)*end & 0xc0u) != 0x80u;
    memcpy(end - 1, "...", 4);
}

/* A copy of a text that the table keeps, `shown` as it is printed; NULL: no memory. */
static char *keep(dbo_table *table, const char *text, bool shown)
{
    dbo_strbuf clean = {0};
    if (shown && text[0])
        dbo_text_clean(&clean, text, strlen(text));
    char *copy = clean.failed ? NULL
                 : clean.data ? realloc(clean.data, clean.len + 1)
                              : strdup(text);
    if (!copy)
        dbo_strbuf_fini(&clean);
    table->text_bytes += copy ? strlen(copy) + PIECE_BYTES : 0;
    return copy;
}

size_t dbo_table_bytes(const dbo_table *table)
{
    return table->text_bytes + (size_t)table->cap_rows * table->num_columns * sizeof(dbo_cell);
}

static void cell_fini(dbo_cell *cell)
{
    free(cell->text);
    *cell = (dbo_cell){0};
}

void dbo_table_fini(dbo_table *table)
{
    for (size_t i = 0; i < (size_t)table->num_rows * table->num_columns; i++)
        cell_fini(&table->cells[i]);
    for (uint32_t c = 0; c < table->num_columns; c++) {
        free(table->columns[c].key);
        free(table->columns[c].name);
    }
    free(table->cells);
    free(table->title);
    *table = (dbo_table){0};
}

dbo_status dbo_table_set_title(dbo_table *table, const char *title, dbo_error *err)
{
    char *copy = keep(table, title, true);
    DBO_TRY(dbo_need_memory(copy, "a table", err));
    free(table->title);
    table->title = copy;
    return DBO_OK;
}

dbo_status dbo_table_add_column(dbo_table *table, const char *name, int decimals, dbo_error *err)
{
    if (table->num_columns == DBO_TABLE_MAX_COLUMNS || table->num_rows > 0)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "a table has at most %u columns, named before its "
                        "first row",
                        DBO_TABLE_MAX_COLUMNS);
    dbo_column *column = &table->columns[table->num_columns++];
    *column = (dbo_column){keep(table, name, false), keep(table, name, true), decimals};
    DBO_TRY(dbo_need_memory(column->key && column->name, "a table", err));
    cut_to(column->name, NAME_COLUMNS);
    return DBO_OK;
}

dbo_status dbo_table_add_row(dbo_table *table, dbo_error *err)
{
    if (table->num_rows == DBO_TABLE_MAX_ROWS)
        return dbo_fail(err, DBO_LIMIT, NULL, "a table has at most %u rows", DBO_TABLE_MAX_ROWS);
    if (dbo_vec_grow(&table->cells, &table->cap_rows, (uint64_t)table->num_rows + 1,
                     table->num_columns * sizeof *table->cells) != DBO_OK)
        return dbo_fail_memory(err, "a table");
    size_t at = (size_t)table->num_rows++ * table->num_columns;
    for (uint32_t c = 0; c < table->num_columns; c++)
        table->cells[at + c] = (dbo_cell){0};
    return DBO_OK;
}

dbo_status dbo_table_put(dbo_table *table, uint32_t row, uint32_t column, dbo_cell cell,
                         dbo_error *err)
{
    dbo_cell *at = &table->cells[(size_t)row * table->num_columns + column];
    if (cell.kind == DBO_CELL_TEXT) {
        cell.text = keep(table, cell.text, false);
        DBO_TRY(dbo_need_memory(cell.text, "a table", err));
    }
    if (cell.kind == DBO_CELL_NUMBER && !isfinite(cell.number))
        cell.kind = DBO_CELL_NONE;
    table->text_bytes -= at->text ? strlen(at->text) + PIECE_BYTES : 0;
    cell_fini(at);
    *at = cell;
    return DBO_OK;
}

uint32_t dbo_table_column(const dbo_table *table, const char *name)
{
    uint32_t c = 0;
    while (c < table->num_columns && strcmp(table->columns[c].key, name) != 0)
        c++;
    return c;
}

static const dbo_cell *cell_at(const dbo_table *table, uint32_t row, uint32_t column)
{
    return &table->cells[(size_t)row * table->num_columns + column];
}

/* Decimals that a column's numbers are printed with. */
static int decimals_of(const dbo_table *table, uint32_t column)
{
    if (table->columns[column].decimals >= 0)
        return table->columns[column].decimals;
    double largest = 0;
    bool whole = true;
    for (uint32_t r = 0; r < table->num_rows; r++) {
        const dbo_cell *cell = cell_at(table, r, column);
        if (cell->kind != DBO_CELL_NUMBER)
            continue;
        double size = cell->number < 0 ? -cell->number : cell->number;
        largest = size > largest ? size : largest;
        whole = whole && size < 1e15 && size == (double)(int64_t)size;
    }
    if (whole)
        return 0;
    return largest >= 100 ? 1 : largest >= 1 ? 2 : 3;
}

/* Digits of a number from so much on would be those of its binary form. */
#define LONGEST_PLAIN 1e15

static void add_cell(const dbo_cell *cell, int decimals, dbo_strbuf *out)
{
    bool is_long = cell->number >= LONGEST_PLAIN || cell->number <= -LONGEST_PLAIN;
    if (cell->kind == DBO_CELL_NUMBER && is_long)
        dbo_strbuf_printf(out, "%.6g", cell->number);
    else if (cell->kind == DBO_CELL_NUMBER)
        dbo_strbuf_printf(out, "%.*f", decimals, cell->number);
    else if (cell->kind == DBO_CELL_TEXT)
        dbo_text_clean(out, cell->text, strlen(cell->text));
    else
        dbo_strbuf_add(out, "-");
}

void dbo_table_cell_text(const dbo_table *table, uint32_t row, uint32_t column, dbo_strbuf *out)
{
    add_cell(cell_at(table, row, column), decimals_of(table, column), out);
}

/* How a column is laid out. */
typedef struct dbo_layout {
    int decimals;
    bool left; /* it has texts */
    size_t width;
} dbo_layout;

/* What cannot be measured for want of memory makes `out` a failure. */
static dbo_layout lay_out(const dbo_table *table, uint32_t column, dbo_strbuf *out)
{
    dbo_layout layout = {.decimals = decimals_of(table, column),
                         .width = dbo_text_columns(table->columns[column].name)};
    dbo_strbuf text = {0};
    for (uint32_t r = 0; r < table->num_rows; r++) {
        const dbo_cell *cell = cell_at(table, r, column);
        layout.left = layout.left || cell->kind == DBO_CELL_TEXT;
        dbo_strbuf_clear(&text);
        add_cell(cell, layout.decimals, &text);
        size_t width = dbo_text_columns(dbo_strbuf_text(&text));
        layout.width = width > layout.width ? width : layout.width;
    }
    dbo_strbuf_end(&text, out);
    return layout;
}

static void add_padded(const char *text, const dbo_layout *layout, bool last, dbo_strbuf *out)
{
    size_t columns = dbo_text_columns(text);
    size_t blanks = layout->width > columns ? layout->width - columns : 0;
    if (!layout->left)
        dbo_strbuf_repeat(out, " ", blanks);
    dbo_strbuf_add(out, text);
    if (layout->left && !last)
        dbo_strbuf_repeat(out, " ", blanks);
    dbo_strbuf_add(out, last ? "\n" : "  ");
}

/* Column by column, where they do not fit beside each other. */
static void print_rows_apart(const dbo_table *table, const dbo_layout *layouts, uint32_t width,
                             dbo_strbuf *out)
{
    size_t names = 0;
    dbo_strbuf label = {0}, text = {0};
    for (uint32_t c = 0; c < table->num_columns; c++) {
        size_t columns = dbo_text_columns(table->columns[c].name);
        names = columns > names ? columns : names;
    }
    for (uint32_t r = 0; r < table->num_rows; r++) {
        dbo_strbuf_add(out, r > 0 ? "\n" : "");
        for (uint32_t c = 0; c < table->num_columns; c++) {
            const char *name = table->columns[c].name;
            dbo_strbuf_clear(&label);
            dbo_strbuf_clear(&text);
            add_cell(cell_at(table, r, c), layouts[c].decimals, &text);
            dbo_strbuf_add(&label, name);
            dbo_strbuf_repeat(&label, " ", names + 2 - dbo_text_columns(name));
            dbo_wrap(out, dbo_strbuf_text(&label), dbo_strbuf_text(&text), width);
        }
    }
    dbo_strbuf_end(&label, out);
    dbo_strbuf_end(&text, out);
}

void dbo_table_print(const dbo_table *table, bool ascii, uint32_t width, dbo_strbuf *out)
{
    dbo_layout layouts[DBO_TABLE_MAX_COLUMNS];
    size_t total = 0;
    dbo_strbuf text = {0};
    if (table->title && width > 0)
        dbo_wrap(out, "", table->title, width);
    else if (table->title)
        dbo_strbuf_printf(out, "%s\n", table->title);
    for (uint32_t c = 0; c < table->num_columns; c++) {
        layouts[c] = lay_out(table, c, out);
        total += layouts[c].width + (c > 0 ? 2 : 0);
    }
    if (width > 0 && total > width) {
        print_rows_apart(table, layouts, width, out);
        return;
    }
    for (uint32_t c = 0; c < table->num_columns; c++)
        add_padded(table->columns[c].name, &layouts[c], c + 1 == table->num_columns, out);
    for (uint32_t c = 0; c < table->num_columns; c++) {
        dbo_strbuf_repeat(out, ascii ? "-" : "─", layouts[c].width);
        dbo_strbuf_add(out, c + 1 == table->num_columns ? "\n" : "  ");
    }
    for (uint32_t r = 0; r < table->num_rows; r++) {
        for (uint32_t c = 0; c < table->num_columns; c++) {
            dbo_strbuf_clear(&text);
            add_cell(cell_at(table, r, c), layouts[c].decimals, &text);
            add_padded(dbo_strbuf_text(&text), &layouts[c], c + 1 == table->num_columns, out);
        }
    }
    dbo_strbuf_end(&text, out);
}

static void add_quoted(const char *text, dbo_strbuf *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        dbo_strbuf_add(out, text);
        return;
    }
    dbo_strbuf_add(out, "\"");
    for (; *text; text++)
        dbo_strbuf_add_bytes(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    dbo_strbuf_add(out, "\"");
}

void dbo_table_csv(const dbo_table *table, dbo_strbuf *out)
{
    for (uint32_t c = 0; c < table->num_columns; c++) {
        add_quoted(table->columns[c].key, out);
        dbo_strbuf_add(out, c + 1 == table->num_columns ? "\n" : ",");
    }
    for (uint32_t r = 0; r < table->num_rows; r++) {
        for (uint32_t c = 0; c < table->num_columns; c++) {
            const dbo_cell *cell = cell_at(table, r, c);
            if (cell->kind == DBO_CELL_NUMBER)
                dbo_strbuf_printf(out, "%.15g", cell->number);
            else if (cell->kind == DBO_CELL_TEXT)
                add_quoted(cell->text, out);
            dbo_strbuf_add(out, c + 1 == table->num_columns ? "\n" : ",");
        }
    }
}
