/* test_table.c: tables of results: alignment, CSV, plots; and what scripts may do with them. */
#include "app/lua/lua_load.h"
#include "viz/text/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void add(dbo_table *table, double x, double y, char *text)
{
    dbo_error err = {0};
    assert_int_equal(dbo_table_add_row(table, &err), DBO_OK);
    dbo_cell cell = {.kind = DBO_CELL_NUMBER, .number = x};
    assert_int_equal(dbo_table_put(table, table->num_rows - 1, 0, cell, &err), DBO_OK);
    cell.number = y;
    assert_int_equal(dbo_table_put(table, table->num_rows - 1, 1, cell, &err), DBO_OK);
    cell = (dbo_cell){.kind = DBO_CELL_TEXT, .text = text};
    if (text)
        assert_int_equal(dbo_table_put(table, table->num_rows - 1, 2, cell, &err), DBO_OK);
}

static void make(dbo_table *table)
{
    dbo_error err = {0};
    *table = (dbo_table){0};
    assert_int_equal(dbo_table_add_column(table, "tokens", -1, &err), DBO_OK);
    assert_int_equal(dbo_table_add_column(table, "µs", -1, &err), DBO_OK);
    assert_int_equal(dbo_table_add_column(table, "why", -1, &err), DBO_OK);
    add(table, 8, 1.5, "o₁k");
    add(table, 64, 12, "a, \"b\"");
    add(table, 512, 3, NULL);
}

/* Every row is as wide as a name: not as 100 characters. */
static void a_long_name_is_cut(void **state)
{
    (void)state;
    dbo_table table = {0};
    dbo_strbuf out = {0};
    dbo_error err = {0};
    char name[5][512] = {""};
    static const int lengths[5] = {59, 60, 61, 62, 100};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < lengths[i]; k++)
            strcat(name[i], k % 3 ? "ä" : "n");
        assert_int_equal(dbo_table_add_column(&table, name[i], -1, &err), DBO_OK);
    }
    for (int i = 0; i < 5; i++) {
        size_t kept = 19 * (size_t)5; /* 57 characters */
        const char *shown = table.columns[i].name;
        assert_int_equal(dbo_text_columns(shown), lengths[i] < 60 ? lengths[i] : 60);
        if (lengths[i] <= 60)
            assert_string_equal(shown, name[i]);
        else
            assert_string_equal(shown + kept, "...");
        assert_int_equal(dbo_table_column(&table, name[i]), i);
    }
    dbo_table_csv(&table, &out);
    assert_non_null(strstr(dbo_strbuf_text(&out), name[4]));
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

static void columns_line_up(void **state)
{
    (void)state;
    dbo_table table;
    dbo_strbuf out = {0};
    make(&table);
    dbo_table_print(&table, false, 0, &out);
    assert_string_equal(dbo_strbuf_text(&out), "tokens     µs  why\n"
                                               "──────  ─────  ──────\n"
                                               "     8   1.50  o₁k\n"
                                               "    64  12.00  a, \"b\"\n"
                                               "   512   3.00  -\n");
    dbo_strbuf_clear(&out);
    assert_int_equal(dbo_table_set_title(&table, "T", NULL), DBO_OK);
    table.columns[1].decimals = 1;
    dbo_table_print(&table, true, 0, &out);
    assert_string_equal(dbo_strbuf_text(&out), "T\n"
                                               "tokens    µs  why\n"
                                               "------  ----  ------\n"
                                               "     8   1.5  o₁k\n"
                                               "    64  12.0  a, \"b\"\n"
                                               "   512   3.0  -\n");
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

static void csv_is_quoted(void **state)
{
    (void)state;
    dbo_table table;
    dbo_strbuf out = {0};
    make(&table);
    dbo_table_csv(&table, &out);
    assert_string_equal(dbo_strbuf_text(&out),
                        "tokens,µs,why\n8,1.5,o₁k\n64,12,\"a, \"\"b\"\"\"\n512,3,\n");
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

static void plots_are_drawn(void **state)
{
    (void)state;
    dbo_table table;
    dbo_strbuf out = {0};
    dbo_error err = {0};
    make(&table);
    dbo_plot plot = {
        .log_x = true, .ascii = true, .num_series = 1, .series = {1}, .width = 21, .height = 4};
    assert_int_equal(dbo_table_plot(&table, &plot, &out, &err), DBO_OK);
    assert_string_equal(dbo_strbuf_text(&out), "           * µs\n"
                                               "        12 +        ..*..\n"
                                               "         8 +    .....   ......\n"
                                               "         4 +.....            ...*\n"
                                               "         0 +*\n"
                                               "           +---------------------\n"
                                               "            8  tokens (equal ratios) 512\n");
    dbo_strbuf_clear(&out);
    plot = (dbo_plot){.kind = DBO_PLOT_BAR, .num_series = 1, .series = {1}, .width = 10};
    assert_int_equal(dbo_table_plot(&table, &plot, &out, &err), DBO_OK);
    assert_string_equal(dbo_strbuf_text(&out), "µs by tokens\n"
                                               "  8 │█▎ 1.50\n"
                                               " 64 │██████████ 12.00\n"
                                               "512 │██▌ 3.00\n");
    plot.num_series = 0;
    assert_int_equal(dbo_table_plot(&table, &plot, &out, &err), DBO_INVALID);
    plot = (dbo_plot){.num_series = 1, .series = {2}};
    assert_int_equal(dbo_table_plot(&table, &plot, &out, &err), DBO_INVALID);
    assert_string_equal(err.message, "there is no row with numbers to plot");
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

/* The distance of two finite numbers, and their ratio, need not be finite. */
static void plots_of_huge_numbers_stay_inside(void **state)
{
    (void)state;
    static const double numbers[][2] = {{5e-324, 1e308}, {1, -1e308}, {1e308, 1e308}};
    dbo_table table = {0};
    dbo_strbuf out = {0};
    dbo_error err = {0};
    assert_int_equal(dbo_table_add_column(&table, "x", -1, &err), DBO_OK);
    assert_int_equal(dbo_table_add_column(&table, "y", -1, &err), DBO_OK);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(dbo_table_add_row(&table, &err), DBO_OK);
        for (uint32_t c = 0; c < 2; c++) {
            const dbo_cell cell = {.kind = DBO_CELL_NUMBER, .number = numbers[r][c]};
            assert_int_equal(dbo_table_put(&table, table.num_rows - 1, c, cell, &err), DBO_OK);
        }
    }
    const dbo_plot plot = {
        .log_x = true, .ascii = true, .num_series = 1, .series = {1}, .width = 21, .height = 4};
    assert_int_equal(dbo_table_plot(&table, &plot, &out, &err), DBO_OK);
    assert_string_equal(dbo_strbuf_text(&out),
                        "           * y\n"
                        "    1e+308 +*.                 .*\n"
                        " 3.33e+307 +  ....         ....\n"
                        "-3.33e+307 +     ....   ....\n"
                        "   -1e+308 +         .*..\n"
                        "           +---------------------\n"
                        "            4.9407e-324  x (equal ratios) 1e+308\n");
    dbo_strbuf_clear(&out);
    dbo_table_csv(&table, &out);
    dbo_table_print(&table, true, 0, &out);
    assert_non_null(strstr(dbo_strbuf_text(&out), "1e+308"));
    assert_true(dbo_text_columns(dbo_strbuf_text(&out)) < 200);
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

/* Two columns of numbers, drawn; NULL, with the error's sentence in err, if they cannot be. */
static const char *drawn(dbo_plot plot, const double (*numbers)[2], uint32_t count, dbo_error *err)
{
    static char text[4096];
    dbo_table table = {0};
    dbo_strbuf out = {0};
    assert_int_equal(dbo_table_add_column(&table, "x", -1, err), DBO_OK);
    assert_int_equal(dbo_table_add_column(&table, "y", -1, err), DBO_OK);
    for (uint32_t r = 0; r < count; r++) {
        assert_int_equal(dbo_table_add_row(&table, err), DBO_OK);
        for (uint32_t c = 0; c < 2; c++) {
            const dbo_cell cell = {.kind = DBO_CELL_NUMBER, .number = numbers[r][c]};
            assert_int_equal(dbo_table_put(&table, table.num_rows - 1, c, cell, err), DBO_OK);
        }
    }
    plot.ascii = true;
    plot.num_series = 1;
    plot.series[0] = 1;
    dbo_status status = dbo_table_plot(&table, &plot, &out, err);
    snprintf(text, sizeof text, "%s", dbo_strbuf_text(&out));
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
    return status == DBO_OK ? text : NULL;
}

#define BASE "           +-------------\n"

/* An axis has some length also where all values are the same, and the points are on it. */
static void plots_of_equal_values(void **state)
{
    (void)state;
    const dbo_plot line = {.width = 13, .height = 4}, log = {.width = 13, .height = 4, .log_x = 1};
    const dbo_plot bar = {.kind = DBO_PLOT_BAR, .width = 10};
    const double zeros[][2] = {{3, 0}, {9, 0}}, below[][2] = {{3, -6}, {9, -6}};
    const double one[][2] = {{64, 5}}, column[][2] = {{-3, 2}, {-3, 5}}, nothing[][2] = {{0, 0}};
    dbo_error err = {0};
    assert_string_equal(drawn(line, zeros, 2, &err),
                        "           * y\n"
                        "         1 +\n"
                        "  0.666667 +\n"
                        "  0.333333 +\n"
                        "         0 +*...........*\n" BASE "            3  x        9\n");
    assert_string_equal(drawn(line, below, 2, &err),
                        "           * y\n"
                        "         0 +\n"
                        "        -2 +\n"
                        "        -4 +\n"
                        "        -6 +*...........*\n" BASE "            3  x        9\n");
    assert_string_equal(drawn(log, one, 1, &err),
                        "           * y\n"
                        "         5 +      *\n"
                        "   3.33333 +\n"
                        "   1.66667 +\n"
                        "         0 +\n" BASE "            32  x (equal ratios) 128\n");
    assert_string_equal(drawn(line, column, 2, &err),
                        "           * y\n"
                        "         5 +      *\n"
                        "   3.33333 +      .\n"
                        "   1.66667 +      *\n"
                        "         0 +\n" BASE "            -4.5  x  -1.5\n");
    assert_non_null(strstr(drawn(line, nothing, 1, &err), "\n            -1  x       1\n"));
    assert_string_equal(drawn(bar, zeros, 2, &err), "y by x\n3 | 0\n9 | 0\n");
}

/* What is no number is left out; of nothing there is no plot. */
static void plots_of_what_is_no_number(void **state)
{
    (void)state;
    const dbo_plot line = {.width = 13, .height = 4}, bar = {.kind = DBO_PLOT_BAR, .width = 10};
    const double some[][2] = {{3, NAN}, {9, 2}, {11, 1}, {INFINITY, 7}}, none[][2] = {{3, NAN}};
    const double below[][2] = {{3, -1}, {9, 4}};
    dbo_error err = {0};
    assert_string_equal(drawn(line, some, 4, &err),
                        "           * y\n"
                        "         2 +*....\n"
                        "   1.33333 +     .......*\n"
                        "  0.666667 +\n"
                        "         0 +\n" BASE "            9  x       11\n");
    assert_null(drawn(line, none, 1, &err));
    assert_string_equal(err.message, "there is no row with numbers to plot");
    assert_null(drawn(line, NULL, 0, &err));
    assert_null(drawn(bar, none, 1, &err));
    assert_null(drawn(bar, below, 2, &err));
    assert_string_equal(err.message, "bars need numbers from 0 up");
}

/* In a narrow terminal a drawing shrinks, and labels go above bars. */
static void plots_shrink(void **state)
{
    (void)state;
    const double numbers[][2] = {{64, 12}, {512.5, 3}};
    dbo_error err = {0};
    assert_string_equal(drawn((dbo_plot){.height = 4, .columns = 20}, numbers, 2, &err),
                        "           * y\n"
                        "        12 +*.\n"
                        "         8 +  ...\n"
                        "         4 +     ..*\n"
                        "         0 +\n"
                        "           +--------\n"
                        "            64 512.5\n"
                        "  x\n");
    assert_string_equal(drawn((dbo_plot){.kind = DBO_PLOT_BAR, .columns = 20}, numbers, 2, &err),
                        "y by x\n"
                        " 64.0 |########## 12\n"
                        "512.5 |### 3\n");
    assert_string_equal(drawn((dbo_plot){.kind = DBO_PLOT_BAR, .columns = 17}, numbers, 2, &err),
                        "y by x\n"
                        "64.0\n"
                        " |############ 12\n"
                        "512.5\n"
                        " |### 3\n");
}

/* A table that is too wide has a line a cell. */
static void wide_tables_are_turned(void **state)
{
    (void)state;
    dbo_table table;
    dbo_strbuf out = {0};
    make(&table);
    assert_int_equal(dbo_table_set_title(&table, "a title of some words", NULL), DBO_OK);
    dbo_table_print(&table, true, 21, &out);
    assert_non_null(strstr(dbo_strbuf_text(&out), "words\ntokens     µs  why\n------  -----"));
    dbo_strbuf_clear(&out);
    dbo_table_print(&table, true, 20, &out);
    assert_string_equal(dbo_strbuf_text(&out), "a title of some\nwords\n"
                                               "tokens  8\nµs      1.50\nwhy     o₁k\n\n"
                                               "tokens  64\nµs      12.00\nwhy     a, \"b\"\n\n"
                                               "tokens  512\nµs      3.00\nwhy     -\n");
    dbo_strbuf_fini(&out);
    dbo_table_fini(&table);
}

/* ---- from scripts ---- */

/* Runs a script that only prints; what it printed, or its error's sentence. */
static const char *run(const char *text, bool ascii)
{
    static char printed[4096];
    char path[] = "/tmp/dbo-test-table-XXXXXX";
    dbo_error err = {0};
    dbo_experiment none;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    FILE *out = tmpfile();
    dbo_load_options options = {.may_return_nothing = true};
    options.limits.print_to = out;
    options.limits.ascii = ascii;
    dbo_status status = dbo_experiment_load(&none, path, &options, &err);
    unlink(path);
    rewind(out);
    size_t length = fread(printed, 1, sizeof printed - 1, out);
    printed[length] = '\0';
    fclose(out);
    if (status != DBO_OK)
        snprintf(printed, sizeof printed, "%s", strstr(err.message, ":") + 1);
    return printed;
}

#define HEAD "local t = require('dbo').table { columns = { 'a', { name = 'b', decimals = 2 } } }\n"

static void scripts_fill_tables(void **state)
{
    (void)state;
    assert_string_equal(run(HEAD "t:add { 1, 2 } t:add { b = true } t:add { nil, 0.125 }\n"
                                 "t:print() print(#t) print(t:csv())\n",
                            true),
                        "a  b\n-  ----\n1  2.00\n-  yes\n-  0.12\n3\na,b\n1,2\n,yes\n,0.125\n\n");
    assert_string_equal(run(HEAD "t:add { 1, 4 } t:add { 2, 2 }\n"
                                 "t:plot { x = 'a', y = 'b', kind = 'bar', width = 10 }\n",
                            true),
                        "b by a\n1 |########## 4.00\n2 |##### 2.00\n");
    assert_string_equal(run(HEAD "t:add { 1, 2, 3 }\n", false),
                        "2: a row has 3 values, but the table 2 columns");
    assert_string_equal(run(HEAD "t:add { c = 2 }\n", false),
                        "2: unknown key 'c' in the table, did you mean 'a'?");
    assert_string_equal(run(HEAD "t.print()\n", false),
                        "2: the methods of a table are called with a colon: t:print()");
    assert_string_equal(run(HEAD "t:plot { x = 'a', y = 'c' }\n", false),
                        "2: y: the table has no column 'c'");
    assert_string_equal(run(HEAD "t:plot { x = 'a', y = 'b', kind = 'pie' }\n", false),
                        "2: kind must be one of \"line\", \"bar\", got string \"pie\"");
    assert_string_equal(run("require('dbo').table { columns = {} }\n", false),
                        "1: columns is an empty list");
    assert_string_equal(run("require('dbo').table { title = 't' }\n", false),
                        "1: dbo.table needs columns");
}

/* The first and the last value that a key may have, and the next ones, which are refused. */
static void keys_have_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int least, most;
    } keys[] = {{"decimals", 0, 9}, {"width", 10, 200}, {"height", 4, 60}};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const int values[] = {keys[k].least, keys[k].most, keys[k].least - 1, keys[k].most + 1};
        for (size_t i = 0; i < 4; i++) {
            char text[512], sentence[128];
            snprintf(text, sizeof text,
                     k == 0
                         ? "\nlocal t = require('dbo').table { columns = { { name = 'a', %s = %d "
                           "} } } print('fine')\n"
                         : HEAD "t:add { 1, 2 } t:plot { x = 'a', y = 'b', %s = %d }\n",
                     keys[k].key, values[i]);
            snprintf(sentence, sizeof sentence, "2: %s is %d; it must be from %d to %d",
                     keys[k].key, values[i], keys[k].least, keys[k].most);
            assert_int_equal(strcmp(run(text, true), sentence) == 0, i >= 2);
        }
    }
    assert_string_equal(run("local t = require('dbo').table { title = 'T', columns = { 'x', { name "
                            "= 'b', decimals = 0 }, { name = 'c', decimals = 9 } } }\n"
                            "t:add { false, 2.6, 1 / 8 } t:print()\n",
                            true),
                        "T\n"
                        "x   b            c\n"
                        "--  -  -----------\n"
                        "no  3  0.125000000\n");
    assert_string_equal(run(HEAD
                            "t:add { 1, 2 }\nt:plot { x = 'a', y = { 'b', 'b', 'b', 'b', 'b' } "
                            "}\n",
                            false),
                        "3: a plot shows one to four columns");
    assert_string_equal(run(HEAD "t:plot { x = 'a' }\n", false),
                        "2: a plot needs x and y, names of columns");
    assert_string_equal(run(HEAD "t:plot { y = 'a' }\n", false),
                        "2: a plot needs x and y, names of columns");
    assert_string_equal(run(HEAD "t:add(7)\n", false), "2: a row must be a table, got 7");
    assert_string_equal(run("require('dbo').table { title = 7, columns = { 'a' } }\n", false),
                        "1: title must be a string, got 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(columns_line_up),
        cmocka_unit_test(csv_is_quoted),
        cmocka_unit_test(plots_are_drawn),
        cmocka_unit_test(plots_of_huge_numbers_stay_inside),
        cmocka_unit_test(plots_of_equal_values),
        cmocka_unit_test(plots_of_what_is_no_number),
        cmocka_unit_test(plots_shrink),
        cmocka_unit_test(wide_tables_are_turned),
        cmocka_unit_test(scripts_fill_tables),
        cmocka_unit_test(keys_have_ranges),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
