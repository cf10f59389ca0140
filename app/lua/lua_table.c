/* lua_table.c: dbo.table { columns = ... }: results in rows, printed, as CSV, drawn (table.h).
 *
 *     local t = dbo.table { title = "T", columns = { "tokens", { name = "layer", decimals = 1 } } }
 *     t:add { 64, 797.9 }   t:add { tokens = 128, layer = 812 }
 *     t:print()   print(t:csv())   t:plot { x = "tokens", y = "layer" }
 */
#include "app/lua/lua_read.h"
#include "viz/text/table.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define TABLE "dbo.table"

/* What a table is for a script. */
typedef struct dbo_lua_table {
    dbo_table table;
    size_t charged; /* for it, to the script */
} dbo_lua_table;

static int collect_table(lua_State *L)
{
    dbo_lua_table *made = lua_touserdata(L, 1);
    dbo_table_fini(&made->table);
    dbo_sandbox_charge(L, &made->charged, 0);
    return 0;
}

static void charge(lua_State *L, dbo_lua_table *made)
{
    dbo_sandbox_charge(L, &made->charged, dbo_table_bytes(&made->table));
}

/* ---- making ---- */

typedef struct dbo_column_keys {
    char name[64];
    uint32_t decimals;
} dbo_column_keys;

static dbo_status add_column(dbo_table *table, const dbo_value *value, dbo_error *err)
{
    static const dbo_field fields[] = {
        {"name", DBO_FIELD_TEXT, offsetof(dbo_column_keys, name), 0, 64, true, NULL, "its name"},
        {"decimals", DBO_FIELD_U32, offsetof(dbo_column_keys, decimals), 0, 9, false, NULL,
         "digits after the point"}};
    static const dbo_settings settings = {"a column", fields, 2, NULL, NULL};
    dbo_column_keys keys = {0};
    if (value->kind == DBO_VALUE_TEXT)
        return dbo_table_add_column(table, value->text, -1, err);
    DBO_TRY(dbo_value_table("a column", "a name or { name = ..., decimals = ... }", value, err));
    DBO_TRY(dbo_settings_set(&settings, &keys, value, err));
    int decimals = dbo_value_member(value, "decimals") ? (int)keys.decimals : -1;
    return dbo_table_add_column(table, keys.name, decimals, err);
}

static dbo_status set_table(dbo_table *table, const dbo_value *value, dbo_error *err)
{
    static const char *const keys[] = {"title", "columns", NULL};
    static const dbo_settings settings = {"dbo.table", NULL, 0, keys, NULL};
    const dbo_value *title = dbo_value_member(value, "title"),
                    *columns = dbo_value_member(value, "columns"), *items = NULL;
    uint32_t count = 0;
    DBO_TRY(dbo_value_table("dbo.table", "a table", value, err));
    DBO_TRY(dbo_settings_set(&settings, NULL, value, err)); /* refuses what is in neither */
    if (columns)
        DBO_TRY(dbo_value_list("columns", "a list of names", columns, &items, &count, err));
    for (uint32_t i = 0; i < count; i++)
        DBO_TRY(add_column(table, &items[i], err));
    if (title && title->kind != DBO_VALUE_TEXT)
        return dbo_value_mismatch("title", "a string", title, err);
    if (!columns)
        return dbo_fail(err, DBO_INVALID, NULL, "dbo.table needs columns");
    return title ? dbo_table_set_title(table, title->text, err) : DBO_OK;
}

static int make_table(lua_State *L)
{
    dbo_error err = {0};
    const dbo_value *value = dbo_lua_read_argument(L, TABLE);
    dbo_lua_table *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (dbo_lua_table){0};
    luaL_setmetatable(L, TABLE);
    dbo_lua_check(L, set_table(&made->table, value, &err), &err);
    charge(L, made);
    return 1;
}

/* ---- rows ---- */

/* The table of a method; called with a colon. */
static dbo_lua_table *made_of(lua_State *L)
{
    dbo_lua_table *made = luaL_testudata(L, 1, TABLE);
    if (!made)
        dbo_lua_fail(L, DBO_INVALID, NULL,
                     "the methods of a table are called with a colon: t:print()");
    return made;
}

static dbo_table *self_of(lua_State *L)
{
    return &made_of(L)->table;
}

/* A cell: what the script's row has at the key at the top of the stack, which is popped. Whatever
 * is no number is shown as tostring() does, which may run a script, which may add rows. */
static void put_cell(lua_State *L, dbo_table *table, uint32_t to, uint32_t column)
{
    dbo_error err = {0};
    dbo_cell cell = {0};
    char text[256];
    switch (lua_rawget(L, 2)) {
    case LUA_TNIL: break;
    case LUA_TNUMBER:
        cell.kind = DBO_CELL_NUMBER;
        cell.number = lua_tonumber(L, -1);
        break;
    case LUA_TBOOLEAN:
        cell.kind = DBO_CELL_TEXT;
        cell.text = lua_toboolean(L, -1) ? "yes" : "no";
        break;
    default:
        snprintf(text, sizeof text, "%s", luaL_tolstring(L, -1, NULL));
        lua_pop(L, 1);
        cell.kind = DBO_CELL_TEXT;
        cell.text = text;
    }
    lua_pop(L, 1);
    if (cell.kind != DBO_CELL_NONE)
        dbo_lua_check(L, dbo_table_put(table, to, column, cell, &err), &err);
}

/* The cells of a row whose keys are names of columns. */
static void put_named(lua_State *L, dbo_table *table, uint32_t to, const dbo_value *row)
{
    dbo_error err = {0};
    const char *names[DBO_TABLE_MAX_COLUMNS + 1] = {0};
    for (uint32_t c = 0; c < table->num_columns; c++)
        names[c] = table->columns[c].key;
    const dbo_settings settings = {"the table", NULL, 0, names, NULL};
    dbo_lua_check(L, dbo_settings_set(&settings, NULL, row, &err), &err);
    for (uint32_t i = 0; i < row->count; i++) {
        lua_pushstring(L, row->table[i].key);
        put_cell(L, table, to, dbo_table_column(table, row->table[i].key));
    }
}

static int add_row(lua_State *L)
{
    dbo_error err = {0};
    dbo_lua_table *made = made_of(L);
    dbo_table *table = &made->table;
    lua_settop(L, 2);
    const dbo_value *row =
        dbo_lua_read_flat(L, 2); /* the keys stay, whatever a script does meanwhile */
    if (row->kind != DBO_VALUE_TABLE && row->kind != DBO_VALUE_LIST)
        dbo_lua_check(L, dbo_value_mismatch("a row", "a table", row, &err), &err);
    dbo_lua_check(L, dbo_table_add_row(table, &err), &err);
    uint32_t to = table->num_rows - 1;
    charge(L, made);
    if (row->kind == DBO_VALUE_TABLE && row->table[row->count - 1].key) {
        put_named(L, table, to, row);
        charge(L, made);
        return 0;
    }
    lua_Unsigned count = lua_rawlen(L, 2); /* nil leaves a cell empty */
    if (count > table->num_columns)
        dbo_lua_fail(L, DBO_INVALID, NULL, "a row has %u values, but the table %u columns",
                     (unsigned)count, table->num_columns);
    for (uint32_t c = 0; c < table->num_columns; c++) {
        lua_pushinteger(L, c + 1);
        put_cell(L, table, to, c);
    }
    charge(L, made);
    return 0;
}

static int count_rows(lua_State *L)
{
    lua_pushinteger(L, self_of(L)->num_rows);
    return 1;
}

/* ---- out ---- */

static const dbo_sandbox_limits *limits_of(lua_State *L)
{
    return dbo_sandbox_limits_of(dbo_sandbox_of(L));
}

static void print_out(lua_State *L, dbo_strbuf *text)
{
    dbo_lua_check_text(L, text, "a table's text");
    const char *bytes = dbo_strbuf_text(text);
    dbo_sandbox_print(dbo_sandbox_of(L), bytes, strlen(bytes));
    dbo_lua_end_text(L, text);
    dbo_sandbox_check(L);
}

static int print_table(lua_State *L)
{
    const dbo_table *table = self_of(L);
    dbo_strbuf *text = dbo_lua_push_text(L);
    dbo_table_print(table, limits_of(L)->ascii, limits_of(L)->columns, text);
    print_out(L, text);
    return 0;
}

static int table_csv(lua_State *L)
{
    const dbo_table *table = self_of(L);
    dbo_strbuf *text = dbo_lua_push_text(L);
    dbo_table_csv(table, text);
    dbo_lua_check_text(L, text, "a table's text");
    lua_pushstring(L, dbo_strbuf_text(text));
    dbo_lua_end_text(L, text);
    return 1;
}

static dbo_status take_column(const dbo_table *table, const char *key, const dbo_value *value,
                              uint32_t *out, dbo_error *err)
{
    if (value->kind != DBO_VALUE_TEXT)
        return dbo_value_mismatch(key, "the name of a column", value, err);
    *out = dbo_table_column(table, value->text);
    if (*out < table->num_columns)
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, key, NULL, "%s: the table has no column '%.48s'", key,
                        value->text);
}

static dbo_status set_plot(dbo_plot *plot, const dbo_table *table, const dbo_value *value,
                           dbo_error *err)
{
    static const char *const kinds[] = {"line", "bar", NULL};
    static const dbo_field fields[] = {
        {"kind", DBO_FIELD_CHOICE, offsetof(dbo_plot, kind), 0, 1, false, kinds, "how"},
        {"width", DBO_FIELD_U32, offsetof(dbo_plot, width), 10, 200, false, NULL, "characters"},
        {"height", DBO_FIELD_U32, offsetof(dbo_plot, height), 4, 60, false, NULL, "lines"},
        {"log_x", DBO_FIELD_BOOL, offsetof(dbo_plot, log_x), 0, 1, false, NULL, "equal ratios"},
        {"ascii", DBO_FIELD_BOOL, offsetof(dbo_plot, ascii), 0, 1, false, NULL, "plain letters"},
    };
    static const char *const extra[] = {"x", "y", NULL};
    static const dbo_settings settings = {"a plot", fields, sizeof fields / sizeof fields[0], extra,
                                          NULL};
    const dbo_value *x = dbo_value_member(value, "x"), *y = dbo_value_member(value, "y"),
                    *items = NULL;
    uint32_t count = 0;
    DBO_TRY(dbo_value_table("a plot", "{ x = ..., y = ... }", value, err));
    DBO_TRY(dbo_settings_set(&settings, plot, value, err));
    if (!x || !y)
        return dbo_fail(err, DBO_INVALID, NULL, "a plot needs x and y, names of columns");
    DBO_TRY(take_column(table, "x", x, &plot->x, err));
    DBO_TRY(dbo_value_list("y", "a list of names of columns", y, &items, &count, err));
    if (count > DBO_PLOT_MAX_SERIES)
        return dbo_fail_key(err, DBO_INVALID, "y", NULL, "a plot shows one to four columns");
    for (; plot->num_series < count; plot->num_series++)
        DBO_TRY(take_column(table, "y", &items[plot->num_series], &plot->series[plot->num_series],
                            err));
    return DBO_OK;
}

static int plot_table(lua_State *L)
{
    dbo_error err = {0};
    const dbo_table *table = self_of(L);
    dbo_plot plot = {.ascii = limits_of(L)->ascii, .columns = limits_of(L)->columns};
    lua_settop(L, 2);
    dbo_lua_check(L, set_plot(&plot, table, dbo_lua_read(L, 2), &err), &err);
    dbo_strbuf *text = dbo_lua_push_text(L);
    dbo_lua_check(L, dbo_table_plot(table, &plot, text, &err), &err);
    print_out(L, text);
    return 0;
}

void dbo_lua_open_table(lua_State *L)
{
    static const luaL_Reg methods[] = {{"add", add_row},
                                       {"print", print_table},
                                       {"csv", table_csv},
                                       {"plot", plot_table},
                                       {NULL, NULL}};
    dbo_lua_new_type(L, TABLE, collect_table);
    dbo_lua_set_function(L, "__len", count_rows);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    dbo_lua_set_function(L, "table", make_table);
}
