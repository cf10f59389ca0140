/* lua_result.c: a run's result for scripts (lua_result.h).
 *
 * The keys are those of the JSON form because the table is made from it: one list of names, not
 * two. Two parts are made otherwise: slices, which all ranks of a class share, and spans, which are
 * kept as the 32-byte records of the trace and become tables one at a time.
 */
#include "app/lua/lua_result.h"

#include "app/lua/lua_read.h"
#include "lab/files/json.h"

#include <lauxlib.h>
#include <string.h>

#define SPANS "dbo.spans"

/* ---- JSON into tables ---- */

static void push_json(lua_State *L, const dbo_json_value *value)
{
    luaL_checkstack(L, 4, "a result");
    switch (dbo_json_type_of(value)) {
    case DBO_JSON_BOOL: lua_pushboolean(L, dbo_json_bool(value)); return;
    case DBO_JSON_INT: lua_pushinteger(L, dbo_json_int(value)); return;
    case DBO_JSON_DOUBLE: lua_pushnumber(L, dbo_json_double(value)); return;
    case DBO_JSON_STRING: lua_pushstring(L, dbo_json_string(value)); return;
    case DBO_JSON_ARRAY:
        lua_newtable(L);
        for (size_t i = 0; i < dbo_json_count(value); i++) {
            push_json(L, dbo_json_at(value, i));
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        return;
    case DBO_JSON_OBJECT:
        lua_newtable(L);
        for (size_t i = 0; i < dbo_json_count(value); i++) {
            push_json(L, dbo_json_at(value, i));
            lua_setfield(L, -2, dbo_json_key_at(value, i));
        }
        return;
    case DBO_JSON_NULL: break;
    }
    lua_pushnil(L);
}

/* What must be freed whether or not building the table raises. */
typedef struct dbo_document {
    dbo_json_text text;
    dbo_json *json;
} dbo_document;

static int collect_document(lua_State *L)
{
    dbo_document *document = lua_touserdata(L, 1);
    dbo_json_destroy(document->json);
    dbo_json_text_fini(&document->text);
    memset(document, 0, sizeof *document);
    return 0;
}

static dbo_status make_document(const dbo_outcome *outcome, dbo_document *document, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_result result = outcome->result;
    result.slices = NULL;
    dbo_json_writer_init(&writer, dbo_json_sink_text, &document->text, 0);
    dbo_result_json(&result, &writer);
    DBO_TRY(dbo_json_writer_finish(&writer, err));
    return dbo_json_parse(&document->json, document->text.bytes, document->text.length, NULL, err);
}

/* ---- slices ---- */

static void set_range(lua_State *L, const char *key, int32_t start, int32_t stop)
{
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, start);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, stop);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, key);
}

/* {[0] = {req = {a, b}, tok = ..., tok_padded = ...}, [1] = ...} of a rank. */
static void push_slices_of(lua_State *L, const dbo_result *result, uint32_t rank)
{
    lua_createtable(L, (int)result->num_ubatches, 1);
    for (uint32_t i = 0; i < result->num_ubatches; i++) {
        size_t at = (size_t)rank * result->num_ubatches + i;
        lua_createtable(L, 0, 3);
        set_range(L, "req", result->slices[at].req_start, result->slices[at].req_stop);
        set_range(L, "tok", result->slices[at].tok_start, result->slices[at].tok_stop);
        set_range(L, "tok_padded", result->slices_padded[at].tok_start,
                  result->slices_padded[at].tok_stop);
        lua_rawseti(L, -2, i);
    }
}

/* Ranks of a class have one table. */
static void push_slices(lua_State *L, const dbo_outcome *outcome)
{
    const dbo_result *result = &outcome->result;
    if (!result->slices) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, (int)result->num_ranks, 1);
    lua_newtable(L); /* by class */
    for (uint32_t rank = 0; rank < result->num_ranks; rank++) {
        uint32_t class_index = outcome->on.class_of[rank];
        if (lua_rawgeti(L, -1, class_index) == LUA_TNIL) {
            lua_pop(L, 1);
            push_slices_of(L, result, rank);
            lua_pushvalue(L, -1);
            lua_rawseti(L, -3, class_index);
        }
        lua_rawseti(L, -3, rank);
    }
    lua_pop(L, 1);
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

static void set_integer(lua_State *L, const char *key, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
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
    set_integer(L, "rank", dbo_op_id_rank(span->id));
    set_integer(L, "layer", dbo_op_id_layer(span->id));
    set_integer(L, "ubatch", dbo_op_id_ubatch(span->id));
    set_integer(L, "occurrence", dbo_op_id_occurrence(span->id));
    set_text(L, "kind", dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(span->id)));
    set_text(L, "part", span->part < 5 ? parts[span->part] : "?");
    set_us(L, "start_us", span->start_ns - spans->begin_ns);
    set_us(L, "end_us", span->end_ns - spans->begin_ns);
    set_integer(L, "sms", (lua_Integer)span->sms);
    set_integer(L, "bytes", (lua_Integer)span->bytes);
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
    static const dbo_place here = {0};
    dbo_error err = {0};
    dbo_document *document = lua_newuserdatauv(L, sizeof *document, 0);
    memset(document, 0, sizeof *document);
    luaL_setmetatable(L, "dbo.document");
    if (make_document(outcome, document, &err) != DBO_OK)
        dbo_lua_raise(L, &here, NULL, &err);
    push_json(L, dbo_json_root(document->json));
    lua_remove(L, -2);
    push_slices(L, outcome);
    lua_setfield(L, -2, "ubatch_slices");
    set_integer(L, "num_ranks", outcome->result.num_ranks);
    set_integer(L, "num_ubatches", outcome->split ? outcome->result.num_ubatches : 1);
    push_spans(L, outcome);
    lua_setfield(L, -2, "spans");
}

void dbo_lua_open_result(lua_State *L)
{
    luaL_newmetatable(L, "dbo.document");
    lua_pushcfunction(L, collect_document);
    lua_setfield(L, -2, "__gc");
    luaL_newmetatable(L, SPANS);
    lua_pushcfunction(L, span_at);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, count_spans);
    lua_setfield(L, -2, "__len");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}
