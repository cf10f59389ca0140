/* lua_result.c: a run's result for scripts (lua_result.h).
 *
 * The table is a sink of dbo_result_visit, so its keys are those of the JSON form. Groups under way
 * are on Lua's stack, each above its key. Spans are kept as the 32-byte records of the trace and
 * become tables one at a time.
 */
#include "app/lua/lua_result.h"

#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <string.h>

#define RESULT    "dbo.result"
#define SPANS     "dbo.spans"
#define MAX_DEPTH 8

/* ---- members ---- */

typedef struct result_table {
    lua_State *L;
    int depth;
    lua_Integer next[MAX_DEPTH]; /* of the list at that depth */
} result_table;

static void push_key(result_table *t, const char *key)
{
    if (key)
        lua_pushstring(t->L, key);
    else
        lua_pushinteger(t->L, t->next[t->depth]++);
}

static void open_group(void *self, const char *key, dbo_group group)
{
    result_table *t = self;
    if (t->depth > 0) /* the root has none */
        push_key(t, key);
    lua_newtable(t->L);
    t->next[++t->depth] = group == DBO_GROUP_ITEMS ? 1 : 0;
}

static void close_group(void *self)
{
    result_table *t = self;
    if (--t->depth > 0)
        lua_rawset(t->L, -3);
}

static void put(void *self, const char *key, const dbo_datum *datum)
{
    result_table *t = self;
    bool is_known = datum->kind != DBO_DATUM_QUANTITY || datum->quantity.present;
    if (datum->kind == DBO_DATUM_NONE || !is_known)
        return;
    push_key(t, key);
    switch (datum->kind) {
    case DBO_DATUM_BOOL: lua_pushboolean(t->L, datum->integer != 0); break;
    case DBO_DATUM_INTEGER: lua_pushinteger(t->L, datum->integer); break;
    case DBO_DATUM_TEXT: lua_pushstring(t->L, datum->text); break;
    case DBO_DATUM_QUANTITY: lua_pushnumber(t->L, datum->quantity.value); break;
    case DBO_DATUM_NONE: break;
    }
    lua_rawset(t->L, -3);
}

/* Ranks that are alike share a table. */
static void repeat(void *self)
{
    result_table *t = self;
    lua_rawgeti(t->L, -1, t->next[t->depth] - 1);
    lua_rawseti(t->L, -2, t->next[t->depth]++);
}

/* The scratch is Lua's, which may raise in the middle of the walk. */
static void push_members(lua_State *L, const dbo_result *result)
{
    result_table t = {.L = L};
    dbo_strbuf *scratch = dbo_lua_push_text(L);
    luaL_checkstack(L, 3 * MAX_DEPTH, "a result");
    const dbo_result_sink sink = {.self = &t,
                                  .open = open_group,
                                  .close = close_group,
                                  .put = put,
                                  .repeat = repeat,
                                  .scratch = scratch};
    dbo_result_visit(result, &sink);
    dbo_lua_check_text(L, scratch, "the notation");
    dbo_lua_end_text(L, scratch);
    lua_remove(L, -2);
}

/* ---- spans ---- */

typedef struct dbo_spans {
    uint64_t count;
    int64_t begin_ns;
    dbo_span items[];
} dbo_spans;

static void push_spans(lua_State *L, const dbo_outcome *outcome)
{
    const dbo_trace *trace = &outcome->on.trace;
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++)
        count += dbo_op_id_step(dbo_trace_span(trace, i)->id) == outcome->on.measured;
    dbo_spans *spans =
        lua_newuserdatauv(L, sizeof *spans + (size_t)count * sizeof spans->items[0], 0);
    spans->count = 0;
    spans->begin_ns = outcome->on.results[outcome->on.class_of[outcome->rank]].begin_ns;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (dbo_op_id_step(span->id) == outcome->on.measured)
            spans->items[spans->count++] = *span;
    }
    luaL_setmetatable(L, SPANS);
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_us(lua_State *L, const char *key, int64_t ns)
{
    lua_pushnumber(L, (double)ns / 1000.0);
    lua_setfield(L, -2, key);
}

static void push_stream(lua_State *L, uint32_t stream)
{
    static const char *const names[] = {"compute", "comm"};
    if (stream == DBO_NETWORK_STREAM)
        lua_pushliteral(L, "network");
    else if (stream < 2)
        lua_pushstring(L, names[stream]);
    else
        lua_pushfstring(L, "stream %d", (int)stream);
}

static int span_at(lua_State *L)
{
    static const char *const parts[] = {"run", "wait", "send", "flight", "recv"};
    const dbo_spans *spans = luaL_checkudata(L, 1, SPANS);
    lua_Integer index = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : 0;
    if (index < 1 || (uint64_t)index > spans->count)
        return 0;
    const dbo_span *span = &spans->items[index - 1];
    lua_createtable(L, 0, 11);
    dbo_lua_set_integer(L, "rank", dbo_op_id_rank(span->id));
    dbo_lua_set_integer(L, "layer", dbo_op_id_layer(span->id));
    dbo_lua_set_integer(L, "ubatch", dbo_op_id_ubatch(span->id));
    dbo_lua_set_integer(L, "occurrence", dbo_op_id_occurrence(span->id));
    set_text(L, "kind", dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(span->id)));
    set_text(L, "part", span->part < 5 ? parts[span->part] : "?");
    set_us(L, "start_us", span->start_ns - spans->begin_ns);
    set_us(L, "end_us", span->end_ns - spans->begin_ns);
    dbo_lua_set_integer(L, "sms", (lua_Integer)span->sms);
    dbo_lua_set_integer(L, "bytes", (lua_Integer)span->bytes);
    push_stream(L, (uint32_t)span->stream);
    lua_setfield(L, -2, "stream");
    return 1;
}

static int count_spans(lua_State *L)
{
    const dbo_spans *spans = luaL_checkudata(L, 1, SPANS);
    lua_pushinteger(L, (lua_Integer)spans->count);
    return 1;
}

/* ---- the table ---- */

void dbo_lua_push_result(lua_State *L, const dbo_outcome *outcome)
{
    push_members(L, &outcome->result);
    dbo_lua_set_integer(L, "num_ranks", outcome->result.num_ranks);
    dbo_lua_set_integer(L, "num_ubatches", outcome->split ? outcome->result.num_ubatches : 1);
    push_spans(L, outcome);
    lua_setfield(L, -2, "spans");
    luaL_setmetatable(L, RESULT);
}

void dbo_lua_open_result(lua_State *L)
{
    dbo_lua_new_type(L, RESULT, NULL);
    dbo_lua_new_type(L, SPANS, NULL);
    dbo_lua_set_function(L, "__index", span_at);
    dbo_lua_set_function(L, "__len", count_spans);
    lua_pop(L, 2);
}
