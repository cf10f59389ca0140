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

static const dbo_place here = {0};

/* A text under construction that a userdata owns. */
static dbo_strbuf *push_text(lua_State *L)
{
    dbo_strbuf *text = lua_newuserdatauv(L, sizeof *text, 0);
    dbo_strbuf_init(text);
    luaL_setmetatable(L, "dbo.text");
    return text;
}

static int collect_text(lua_State *L)
{
    dbo_strbuf_fini(lua_touserdata(L, 1));
    return 0;
}

static int collect_table(lua_State *L)
{
    dbo_table_fini(lua_touserdata(L, 1));
    return 0;
}

static void check(lua_State *L, dbo_status status, dbo_error *err)
{
    if (status != DBO_OK)
        dbo_lua_raise(L, &here, NULL, err);
}

static void check_text(lua_State *L, const dbo_strbuf *text)
{
    dbo_error err = {0};
    if (text->failed)
        check(L, dbo_fail_memory(&err, "a table's text"), &err);
}

/* ---- making ---- */

typedef struct dbo_column_keys {
    char name[64];
    uint32_t decimals;
    bool has_decimals;
} dbo_column_keys;

static void take_column_key(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    static const dbo_field fields[] = {
        {"name", DBO_FIELD_TEXT, offsetof(dbo_column_keys, name), 0, 64, true, NULL, "its name"},
        {"decimals", DBO_FIELD_U32, offsetof(dbo_column_keys, decimals), 0, 9, false, NULL,
         "digits after the point"}};
    const dbo_settings settings = {"a column", fields, 2, NULL};
    dbo_column_keys *keys = self;
    dbo_lua_set_field(L, &settings, keys, place, key);
    keys->has_decimals = keys->has_decimals || strcmp(key, "decimals") == 0;
}

/* The column description at the top of the stack. */
static void add_column(lua_State *L, dbo_table *table)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind == DBO_VALUE_TEXT) {
        check(L, dbo_table_add_column(table, value.text, -1, &err), &err);
        return;
    }
    if (value.kind != DBO_VALUE_TABLE)
        check(L,
              dbo_value_mismatch("a column", "a name or { name = ..., decimals = ... }", &value,
                                 &err),
              &err);
    dbo_column_keys keys = {0};
    dbo_lua_each(L, -1, "a column", &here, take_column_key, &keys);
    int decimals = keys.has_decimals ? (int)keys.decimals : -1;
    check(L, dbo_table_add_column(table, keys.name, decimals, &err), &err);
}

static void take_table_key(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    static const char *const keys[] = {"title", "columns", NULL};
    const dbo_settings settings = {"dbo.table", NULL, 0, keys};
    dbo_table *table = self;
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    dbo_status status = DBO_OK;
    if (strcmp(key, "title") == 0) {
        status = value.kind == DBO_VALUE_TEXT
                     ? dbo_table_set_title(table, value.text, &err)
                     : dbo_value_mismatch("title", "a string", &value, &err);
    } else if (strcmp(key, "columns") != 0) {
        status = dbo_setting_unknown(&settings, key, &err);
    } else if (value.kind != DBO_VALUE_TABLE) {
        status = dbo_value_mismatch("columns", "a list of names", &value, &err);
    } else {
        lua_Unsigned count = lua_rawlen(L, -1);
        for (lua_Unsigned i = 1; i <= count; i++) {
            lua_rawgeti(L, -1, (lua_Integer)i);
            add_column(L, table);
            lua_pop(L, 1);
        }
    }
    if (status != DBO_OK)
        dbo_lua_raise(L, place, key, &err);
}

static int make_table(lua_State *L)
{
    dbo_error err = {0};
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TTABLE)
        check(L,
              dbo_fail(&err, DBO_INVALID, NULL,
                       "dbo.table takes a table: dbo.table { columns = { \"tokens\", ... } }"),
              &err);
    dbo_table *table = lua_newuserdatauv(L, sizeof *table, 0);
    *table = (dbo_table){0};
    luaL_setmetatable(L, TABLE);
    dbo_lua_each(L, 1, "dbo.table", &here, take_table_key, table);
    if (table->num_columns == 0)
        check(L, dbo_fail(&err, DBO_INVALID, NULL, "dbo.table needs columns"), &err);
    return 1;
}

/* ---- rows ---- */

/* The table of a method; called with a colon. */
static dbo_table *self_of(lua_State *L)
{
    dbo_error err = {0};
    dbo_table *table = luaL_testudata(L, 1, TABLE);
    if (!table)
        check(L,
              dbo_fail(&err, DBO_INVALID, NULL,
                       "the methods of a table are called with a colon: t:print()"),
              &err);
    return table;
}

/* The value at the top of the stack into the last row. */
static void put_value(lua_State *L, dbo_table *table, uint32_t column)
{
    dbo_error err = {0};
    dbo_cell cell = {0};
    switch (lua_type(L, -1)) {
    case LUA_TNIL: return;
    case LUA_TNUMBER:
        cell.kind = DBO_CELL_NUMBER;
        cell.number = lua_tonumber(L, -1);
        break;
    case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, -1) ? "yes" : "no"); break;
    default: luaL_tolstring(L, -1, NULL); break;
    }
    if (cell.kind == DBO_CELL_NONE) {
        char text[256];
        snprintf(text, sizeof text, "%s", lua_tostring(L, -1));
        lua_pop(L, 1);
        cell.kind = DBO_CELL_TEXT;
        cell.text = text;
        check(L, dbo_table_put(table, column, cell, &err), &err);
        return;
    }
    check(L, dbo_table_put(table, column, cell, &err), &err);
}

static void take_named_cell(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_table *table = self;
    dbo_error err = {0};
    uint32_t column = dbo_table_column(table, key);
    if (column == table->num_columns) {
        const char *names[DBO_TABLE_MAX_COLUMNS + 1] = {0};
        for (uint32_t c = 0; c < table->num_columns; c++)
            names[c] = table->columns[c].name;
        const dbo_settings settings = {"the table", NULL, 0, names};
        dbo_setting_unknown(&settings, key, &err);
        dbo_lua_raise(L, place, NULL, &err);
    }
    put_value(L, table, column);
}

static int add_row(lua_State *L)
{
    dbo_error err = {0};
    dbo_table *table = self_of(L);
    dbo_value value = dbo_lua_value(L, 2);
    if (value.kind != DBO_VALUE_TABLE)
        check(L, dbo_value_mismatch("a row", "a table", &value, &err), &err);
    check(L, dbo_table_add_row(table, &err), &err);
    lua_pushnil(L);
    bool named = lua_next(L, 2) && lua_type(L, -2) == LUA_TSTRING;
    lua_settop(L, 2);
    if (named) {
        dbo_lua_each(L, 2, "a row", &here, take_named_cell, table);
        return 0;
    }
    if (lua_rawlen(L, 2) > table->num_columns)
        check(L,
              dbo_fail(&err, DBO_INVALID, NULL, "a row has %u values, but the table %u columns",
                       (unsigned)lua_rawlen(L, 2), table->num_columns),
              &err);
    for (uint32_t c = 0; c < table->num_columns; c++) {
        lua_rawgeti(L, 2, c + 1);
        put_value(L, table, c);
        lua_pop(L, 1);
    }
    return 0;
}

static int count_rows(lua_State *L)
{
    lua_pushinteger(L, self_of(L)->num_rows);
    return 1;
}

/* ---- out ---- */

static bool default_ascii(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, DBO_LUA_ASCII);
    bool ascii = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return ascii;
}

static void print_out(lua_State *L, const dbo_strbuf *text)
{
    check_text(L, text);
    const char *bytes = dbo_strbuf_text(text);
    dbo_sandbox_print(dbo_sandbox_of(L), bytes, strlen(bytes));
}

static int print_table(lua_State *L)
{
    const dbo_table *table = self_of(L);
    dbo_strbuf *text = push_text(L);
    dbo_table_print(table, default_ascii(L), text);
    print_out(L, text);
    return 0;
}

static int table_csv(lua_State *L)
{
    const dbo_table *table = self_of(L);
    dbo_strbuf *text = push_text(L);
    dbo_table_csv(table, text);
    check_text(L, text);
    lua_pushstring(L, dbo_strbuf_text(text));
    return 1;
}

typedef struct dbo_plot_keys {
    const dbo_table *table;
    dbo_plot plot;
    bool has_x;
} dbo_plot_keys;

static uint32_t need_column(lua_State *L, const dbo_table *table, const char *key)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TEXT)
        check(L, dbo_value_mismatch(key, "the name of a column", &value, &err), &err);
    uint32_t column = dbo_table_column(table, value.text);
    if (column == table->num_columns)
        check(L,
              dbo_fail(&err, DBO_INVALID, NULL, "%s: the table has no column '%.48s'", key,
                       value.text),
              &err);
    return column;
}

static void read_series(lua_State *L, dbo_plot_keys *keys)
{
    dbo_error err = {0};
    dbo_plot *plot = &keys->plot;
    if (lua_type(L, -1) != LUA_TTABLE) {
        plot->series[plot->num_series++] = need_column(L, keys->table, "y");
        return;
    }
    lua_Unsigned count = lua_rawlen(L, -1);
    if (count > DBO_PLOT_MAX_SERIES)
        check(L, dbo_fail(&err, DBO_INVALID, NULL, "a plot shows one to four columns"), &err);
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        plot->series[plot->num_series++] = need_column(L, keys->table, "y");
        lua_pop(L, 1);
    }
}

static void take_plot_key(lua_State *L, void *self, const dbo_place *place, const char *key)
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
    const dbo_settings settings = {"a plot", fields, sizeof fields / sizeof fields[0], extra};
    dbo_plot_keys *keys = self;
    if (strcmp(key, "x") == 0) {
        keys->plot.x = need_column(L, keys->table, "x");
        keys->has_x = true;
    } else if (strcmp(key, "y") == 0) {
        read_series(L, keys);
    } else {
        dbo_lua_set_field(L, &settings, &keys->plot, place, key);
    }
}

static int plot_table(lua_State *L)
{
    dbo_error err = {0};
    const dbo_table *table = self_of(L);
    dbo_value value = dbo_lua_value(L, 2);
    if (value.kind != DBO_VALUE_TABLE)
        check(L, dbo_value_mismatch("a plot", "{ x = ..., y = ... }", &value, &err), &err);
    dbo_plot_keys keys = {.table = table, .plot.ascii = default_ascii(L)};
    dbo_lua_each(L, 2, "a plot", &here, take_plot_key, &keys);
    if (!keys.has_x || keys.plot.num_series == 0)
        check(L, dbo_fail(&err, DBO_INVALID, NULL, "a plot needs x and y, names of columns"), &err);
    dbo_strbuf *text = push_text(L);
    check(L, dbo_table_plot(table, &keys.plot, text, &err), &err);
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
    luaL_newmetatable(L, "dbo.text");
    lua_pushcfunction(L, collect_text);
    lua_setfield(L, -2, "__gc");
    luaL_newmetatable(L, TABLE);
    lua_pushcfunction(L, collect_table);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, count_rows);
    lua_setfield(L, -2, "__len");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
    lua_pushcfunction(L, make_table);
    lua_setfield(L, -2, "table");
}
