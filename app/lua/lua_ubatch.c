/* lua_ubatch.c: the context `u` of a layer function: each function records what it is named after.
 *
 * `u` has closures over the recording (upvalue 1), u itself (2), the recording's serial (3) and
 * the function's row (4). Transfers and events
 * come back as handles: userdata that know which part of which recording made them and refuse
 * everything that would make the program depend on them. Events, buffers and streams with a name
 * are shared by all ubatches; the recording's user value maps their names to numbers.
 */
#include "app/lua/lua_read.h"
#include "app/lua/lua_schedule.h"
#include "core/base/suggest.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define HANDLE     "dbo.handle"
#define MAX_INSTRS 65536u
#define MAX_IO     64u

typedef enum dbo_handle_kind { HANDLE_TRANSFER, HANDLE_EVENT } dbo_handle_kind;

typedef struct dbo_handle {
    dbo_handle_kind kind;
    uint16_t index;
    lua_Integer serial;
} dbo_handle;

/* ---- where we are, and refusals ---- */

static int refuse(lua_State *L, const char *hint, const char *sentence)
{
    return dbo_lua_fail(L, DBO_REFUSED, hint, "%s", sentence);
}

static dbo_recording *recording_of(lua_State *L)
{
    dbo_recording *r = lua_touserdata(L, lua_upvalueindex(1));
    if (lua_type(L, 1) == LUA_TTABLE && lua_rawequal(L, 1, lua_upvalueindex(2)))
        refuse(L, "For example: u.yield()", "the functions of u are called with a dot");
    if (!r->open || r->serial != lua_tointeger(L, lua_upvalueindex(3)))
        refuse(L, NULL, "u is used after its layer function has returned");
    return r;
}

static void emit(lua_State *L, dbo_recording *r, dbo_instr instr)
{
    lua_Debug ar;
    uint32_t line = 0;
    if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "l", &ar) && ar.currentline > 0)
        line = (uint32_t)ar.currentline;
    if (r->t->builder.program.num_instrs[r->ubatch] >= MAX_INSTRS)
        refuse(L, "A program is one layer; the engine repeats it.",
               "a layer has more than 65536 instructions");
    dbo_template_emit(r->t, r->ubatch, instr, line);
    dbo_sandbox_charge(L, &r->charged, dbo_template_bytes(r->t));
}

static void emit_code(lua_State *L, dbo_recording *r, dbo_code code, uint8_t stream, uint16_t index)
{
    emit(L, r, (dbo_instr){.code = (uint8_t)code, .stream = stream, .index = index});
}

static void set_stream(lua_State *L, dbo_recording *r, uint8_t stream)
{
    emit_code(L, r, DBO_CODE_SET_STREAM, stream, 0);
    r->stream = stream;
}

/* ---- names and handles ---- */

typedef enum dbo_name_kind { NAME_EVENT, NAME_BUFFER, NAME_STREAM } dbo_name_kind;

static uint16_t new_number(lua_State *L, dbo_recording *r, dbo_name_kind kind, const char *name)
{
    if (kind == NAME_EVENT)
        return dbo_program_add_event(&r->t->builder);
    if (kind == NAME_BUFFER)
        return dbo_program_add_buffer(&r->t->builder, name, 0, r->stream);
    if (strcmp(name, "compute") == 0)
        return DBO_STREAM_COMPUTE;
    if (strcmp(name, "comm") == 0)
        return DBO_STREAM_COMM;
    const char *kept = dbo_arena_copy_string(&r->t->arena, name);
    if (!kept || r->t->builder.program.num_streams == DBO_MAX_STREAMS)
        refuse(L, NULL, "a schedule has more than 8 streams");
    return dbo_program_add_stream(&r->t->builder, kept);
}

/* The number of a name, made at its first use. */
static uint16_t number_of(lua_State *L, dbo_recording *r, dbo_name_kind kind, const char *name)
{
    static const char *const prefixes[] = {"event ", "buffer ", "stream "};
    lua_getiuservalue(L, lua_upvalueindex(1), 1);
    lua_pushfstring(L, "%s%s", prefixes[kind], name);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushinteger(L, new_number(L, r, kind, name));
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    uint16_t number = (uint16_t)lua_tointeger(L, -1);
    lua_pop(L, 3);
    return number;
}

/* A text at a stack index; copied, it stays while the function runs. */
static const char *need_name(lua_State *L, int index, const char *what)
{
    dbo_error err = {0};
    const dbo_value *value = dbo_lua_read(L, index);
    if (value->kind != DBO_VALUE_TEXT) {
        dbo_value_mismatch(what, "a string", value, &err);
        dbo_lua_raise(L, &err);
    }
    return value->text;
}

static int push_handle(lua_State *L, const dbo_recording *r, dbo_handle_kind kind, uint16_t index)
{
    dbo_handle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    *handle = (dbo_handle){kind, index, r->serial};
    luaL_setmetatable(L, HANDLE);
    return 1;
}

/* The handle at an index, of this ubatch's recording. */
static uint16_t need_handle(lua_State *L, const dbo_recording *r, int index, dbo_handle_kind kind)
{
    const dbo_handle *handle = luaL_testudata(L, index, HANDLE);
    if (!handle || handle->kind != kind)
        return (uint16_t)refuse(L, NULL,
                                kind == HANDLE_TRANSFER
                                    ? "a handle that u.post() gave is needed here"
                                    : "an event is needed here: what u.event() or "
                                      "u.get_previous_event() gave, or a name");
    if (handle->serial != r->serial)
        refuse(L, "Share events by name: u.record(\"x\"), u.wait(\"x\").",
               "a handle belongs to the ubatch that made it, and cannot be carried to another");
    return handle->index;
}

/* An event: a handle, or a name that all ubatches share. */
static uint16_t need_event(lua_State *L, dbo_recording *r, int index)
{
    if (lua_type(L, index) == LUA_TSTRING)
        return number_of(L, r, NAME_EVENT, lua_tostring(L, index));
    return need_handle(L, r, index, HANDLE_EVENT);
}

/* ---- ops and transfers ---- */

/* What an op or a post is said to be. */
typedef struct dbo_work {
    char name[64];
    double us; /* < 0: not given */
    uint32_t sms;
    uint16_t previous; /* of a post */
    bool is_post, has_io;
    uint32_t num_reads, num_writes;
    uint16_t reads[MAX_IO], writes[MAX_IO];
} dbo_work;

/* The numbers of buffers that a value names, one or a list; a list of none is fine. */
static uint32_t read_buffers(lua_State *L, dbo_recording *r, const char *key,
                             const dbo_value *value, uint16_t *out)
{
    dbo_error err = {0};
    bool is_list = value->kind == DBO_VALUE_LIST;
    const dbo_value *items = is_list ? value->list : value;
    uint32_t count = is_list ? value->count : 1;
    if (count > MAX_IO)
        refuse(L, NULL, "an op reads or writes more than 64 buffers");
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kind != DBO_VALUE_TEXT) {
            dbo_value_mismatch(is_list ? "a buffer's name" : key, "a string", &items[i], &err);
            dbo_lua_raise(L, &err);
        }
        out[i] = number_of(L, r, NAME_BUFFER, items[i].text);
    }
    return count;
}

static const dbo_field work_fields[] = {
    {"name", DBO_FIELD_TEXT, offsetof(dbo_work, name), 0, sizeof((dbo_work *)0)->name, true, NULL,
     "the op, or the direction of a post"},
    {"us", DBO_FIELD_DOUBLE, offsetof(dbo_work, us), 0, 1e6, false, NULL, "how long it takes"},
    {"sms", DBO_FIELD_U32, offsetof(dbo_work, sms), 0, 4095, false, NULL, "SMs of an op"},
};

/* The table of an op or a post at stack index `index`. */
static void read_table(lua_State *L, dbo_recording *r, int index, dbo_work *work)
{
    static const char *const op_keys[] = {"reads", "writes", NULL};
    static const char *const post_keys[] = {"previous", "reads", "writes", NULL};
    const dbo_settings settings = {work->is_post ? "u.post" : "u.op", work_fields,
                                   work->is_post ? 2 : 3, work->is_post ? post_keys : op_keys,
                                   NULL};
    dbo_error err = {0};
    const dbo_value *table = dbo_lua_read(L, index);
    const dbo_value *reads = dbo_value_member(table, "reads");
    const dbo_value *writes = dbo_value_member(table, "writes");
    dbo_lua_check(L, dbo_settings_set(&settings, work, table, &err), &err);
    if (reads)
        work->num_reads = read_buffers(L, r, "reads", reads, work->reads);
    if (writes)
        work->num_writes = read_buffers(L, r, "writes", writes, work->writes);
    work->has_io = reads || writes;
    if (dbo_value_member(table, "sms") && work->us < 0)
        refuse(L, "Give us, too.", "an op's sms are for an op with a duration of its own");
    if (dbo_value_member(table, "previous")) {
        lua_pushliteral(L, "previous");
        lua_rawget(L, index);
        work->previous = need_event(L, r, lua_gettop(L));
    }
}

/* "A0", or { name = "A0", ... }, at stack index `index`. */
static void read_work(lua_State *L, dbo_recording *r, int index, dbo_work *work)
{
    work->us = -1;
    work->previous = DBO_NO_INDEX;
    if (lua_type(L, index) == LUA_TTABLE)
        read_table(L, r, index, work);
    else
        snprintf(work->name, sizeof work->name, "%s",
                 need_name(L, index, work->is_post ? "the direction" : "the op"));
    if (!work->name[0])
        refuse(L, NULL,
               work->is_post ? "u.post needs name = \"dispatch\" or \"combine\""
                             : "u.op needs a name");
}

/* What an op or a post touches, whole buffers; `lists` has room for both. */
static dbo_op_io io_of(const dbo_work *work, dbo_access lists[2 * MAX_IO])
{
    for (uint32_t i = 0; i < work->num_reads; i++)
        lists[i] = (dbo_access){.buffer = work->reads[i]};
    for (uint32_t i = 0; i < work->num_writes; i++)
        lists[MAX_IO + i] = (dbo_access){.buffer = work->writes[i]};
    return (dbo_op_io){.num_reads = work->num_reads,
                       .num_writes = work->num_writes,
                       .reads = lists,
                       .writes = lists + MAX_IO};
}

/* A kind of the layer; with a duration, any other name is a synthetic op. */
static dbo_op_kind kind_of(lua_State *L, const dbo_work *work)
{
    dbo_op_kind kind = dbo_op_kind_of_name(work->name);
    bool transfer = kind < DBO_KIND_COUNT && dbo_op_kind_class(kind) == DBO_CLASS_COMM;
    if (transfer || strcmp(work->name, "dispatch") == 0 || strcmp(work->name, "combine") == 0)
        refuse(L, "u.post(\"dispatch\"), u.post(\"combine\")",
               "a transfer is not an op: it is posted");
    if (kind < DBO_KIND_COUNT && kind != DBO_KIND_NONE)
        return kind;
    if (work->us >= 0)
        return DBO_KIND_SYNTHETIC;
    const char *nearest = dbo_op_kind_suggest(work->name);
    return (dbo_op_kind)dbo_lua_fail(
        L, DBO_INVALID, "An op of another name needs us = its duration.",
        nearest ? "unknown op '%.40s', did you mean '%s'?" : "unknown op '%.40s'", work->name,
        nearest);
}

static int64_t to_ns(double us)
{
    return us < 0 ? -1 : (int64_t)(us * 1000.0 + 0.5);
}

static int add_op(lua_State *L, dbo_recording *r, uint32_t owner, int index)
{
    dbo_work work = {0};
    read_work(L, r, index, &work);
    dbo_op_kind kind = kind_of(L, &work);
    const dbo_op_cost cost = {.fixed_ns = to_ns(work.us), .fixed_sms = (uint16_t)work.sms};
    dbo_access lists[2 * MAX_IO];
    const dbo_op_io io = io_of(&work, lists);
    uint16_t op = dbo_program_add_op(&r->t->builder, owner, kind, &cost, 1);
    if (work.has_io)
        dbo_program_set_op_io(&r->t->builder, op, &io);
    if (kind == DBO_KIND_SYNTHETIC)
        dbo_template_name_op(r->t, op, work.name);
    emit_code(L, r, DBO_CODE_OP, r->stream, op);
    return 0;
}

static int u_op(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    return add_op(L, r, r->ubatch, 1);
}

static int u_op_of(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    dbo_error err = {0};
    uint32_t owner = 0;
    dbo_lua_check(L,
                  dbo_value_integer("the ubatch of u.op_of", dbo_lua_read(L, 1), 0,
                                    r->t->builder.program.num_ubatches - 1, &owner, &err),
                  &err);
    return add_op(L, r, owner, 2);
}

static int u_post(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    dbo_work work = {.is_post = true};
    read_work(L, r, 1, &work);
    bool dispatch = strcmp(work.name, "dispatch") == 0;
    if (!dispatch && strcmp(work.name, "combine") != 0)
        refuse(L, NULL, "a transfer is a \"dispatch\" or a \"combine\"");
    const dbo_a2a_cost cost = {.fixed_ns = to_ns(work.us)};
    dbo_access lists[2 * MAX_IO];
    const dbo_op_io io = io_of(&work, lists);
    uint16_t handle = dbo_program_add_handle(&r->t->builder);
    uint16_t post = dbo_program_add_post(
        &r->t->builder, r->ubatch, dispatch ? DBO_A2A_DISPATCH : DBO_A2A_COMBINE, &cost, handle);
    if (work.has_io)
        dbo_program_set_post_io(&r->t->builder, post, &io);
    emit(L, r,
         (dbo_instr){.code = DBO_CODE_A2A_POST,
                     .stream = r->stream,
                     .index = post,
                     .previous = work.previous});
    return push_handle(L, r, HANDLE_TRANSFER, handle);
}

/* ---- the others ---- */

typedef enum dbo_argument { NOTHING, A_TRANSFER, AN_EVENT, A_BUFFER } dbo_argument;

/* A function of u. What it needs to know of itself is a row; its closure has it as upvalue 4. */
typedef struct dbo_function {
    const char *name;
    lua_CFunction func;
    dbo_code code;         /* u_emit: of the instruction */
    dbo_argument argument; /* u_emit: what is given */
    uint8_t stream;        /* u_switch: to it; u_switch_sync: from it */
    bool yields;           /* u_switch_sync: between */
} dbo_function;

static const dbo_function *self_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(4));
}

/* One instruction with at most one argument. */
static int u_emit(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    const dbo_function *self = self_of(L);
    uint16_t index = 0;
    if (self->argument == A_TRANSFER)
        index = need_handle(L, r, 1, HANDLE_TRANSFER);
    else if (self->argument == AN_EVENT)
        index = need_event(L, r, 1);
    else if (self->argument == A_BUFFER)
        index = number_of(L, r, NAME_BUFFER, need_name(L, 1, "the buffer"));
    emit_code(L, r, self->code, r->stream, index);
    return 0;
}

static int u_switch(lua_State *L)
{
    set_stream(L, recording_of(L), self_of(L)->stream);
    return 0;
}

static int u_switch_to_stream(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    set_stream(L, r, (uint8_t)number_of(L, r, NAME_STREAM, need_name(L, 1, "the stream")));
    return 0;
}

/* compute_done or comm_done of the ubatch, whichever is recorded on `stream`. */
static uint16_t context_event(dbo_recording *r, uint8_t stream)
{
    uint16_t *event =
        stream == DBO_STREAM_COMPUTE ? &r->compute_done[r->ubatch] : &r->comm_done[r->ubatch];
    if (*event == DBO_NO_INDEX)
        *event = dbo_program_add_event(&r->t->builder);
    return *event;
}

static int u_switch_sync(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    const dbo_function *self = self_of(L);
    uint8_t to = self->stream == DBO_STREAM_COMPUTE ? DBO_STREAM_COMM : DBO_STREAM_COMPUTE;
    uint16_t event = context_event(r, self->stream);
    if (self->yields && r->stream != self->stream)
        refuse(L, NULL, "u yields and switches from a stream that is not current");
    emit_code(L, r, DBO_CODE_RECORD, self->stream, event);
    if (self->yields)
        emit_code(L, r, DBO_CODE_YIELD, self->stream, 0);
    set_stream(L, r, to);
    emit_code(L, r, DBO_CODE_WAIT, to, event);
    return 0;
}

static int u_event(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    return push_handle(L, r, HANDLE_EVENT, dbo_program_add_event(&r->t->builder));
}

static int u_get_previous_event(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    uint16_t event = dbo_program_add_event(&r->t->builder);
    emit_code(L, r, DBO_CODE_RECORD, DBO_STREAM_COMPUTE, event);
    return push_handle(L, r, HANDLE_EVENT, event);
}

static int u_host_wait(lua_State *L)
{
    dbo_recording *r = recording_of(L);
    const dbo_handle *handle = luaL_testudata(L, 1, HANDLE);
    bool transfer = handle && handle->kind == HANDLE_TRANSFER;
    uint16_t index = transfer ? need_handle(L, r, 1, HANDLE_TRANSFER) : need_event(L, r, 1);
    emit(L, r,
         (dbo_instr){.code = DBO_CODE_HOST_WAIT,
                     .stream = r->stream,
                     .index = index,
                     .wait_event = !transfer});
    return 0;
}

/* ---- u ---- */

static const dbo_function functions[] = {
    {"op", .func = u_op},
    {"op_of", .func = u_op_of},
    {"post", .func = u_post},
    {"finish", .func = u_emit, .code = DBO_CODE_A2A_FINISH, .argument = A_TRANSFER},
    {"register_recv_hook", .func = u_emit, .code = DBO_CODE_HOOK_SET, .argument = A_TRANSFER},
    {"maybe_run_recv_hook", .func = u_emit, .code = DBO_CODE_HOOK_RUN, .argument = NOTHING},
    {"yield", .func = u_emit, .code = DBO_CODE_YIELD, .argument = NOTHING},
    {"yield_and_switch_from_compute_to_comm", .func = u_switch_sync, .stream = DBO_STREAM_COMPUTE,
     .yields = true},
    {"yield_and_switch_from_comm_to_compute", .func = u_switch_sync, .stream = DBO_STREAM_COMM,
     .yields = true},
    {"switch_to_comm", .func = u_switch, .stream = DBO_STREAM_COMM},
    {"switch_to_compute", .func = u_switch, .stream = DBO_STREAM_COMPUTE},
    {"switch_to_comm_sync", .func = u_switch_sync, .stream = DBO_STREAM_COMPUTE},
    {"switch_to_compute_sync", .func = u_switch_sync, .stream = DBO_STREAM_COMM},
    {"switch_to_stream", .func = u_switch_to_stream},
    {"event", .func = u_event},
    {"record", .func = u_emit, .code = DBO_CODE_RECORD, .argument = AN_EVENT},
    {"wait", .func = u_emit, .code = DBO_CODE_WAIT, .argument = AN_EVENT},
    {"get_previous_event", .func = u_get_previous_event},
    {"host_wait", .func = u_host_wait},
    {"alloc", .func = u_emit, .code = DBO_CODE_ALLOC, .argument = A_BUFFER},
    {"free", .func = u_emit, .code = DBO_CODE_FREE, .argument = A_BUFFER},
    {"record_stream", .func = u_emit, .code = DBO_CODE_RECORD_STREAM, .argument = A_BUFFER},
};
#define NUM_FUNCTIONS (sizeof functions / sizeof functions[0])

/* __index of u: a function that does not exist. */
static int unknown_function(lua_State *L)
{
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    dbo_suggestion near = dbo_suggest_begin(key);
    for (size_t i = 0; i < NUM_FUNCTIONS; i++)
        dbo_suggest_offer(&near, functions[i].name);
    return dbo_lua_fail(L, DBO_INVALID, NULL,
                        near.nearest ? "u has no '%.40s', did you mean '%s'?" : "u has no '%.40s'",
                        key, near.nearest);
}

void dbo_lua_push_ubatch(lua_State *L, int recording)
{
    const dbo_recording *r = lua_touserdata(L, recording);
    lua_createtable(L, 0, NUM_FUNCTIONS + 2);
    for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
        lua_pushvalue(L, recording);
        lua_pushvalue(L, -2);
        lua_pushinteger(L, r->serial);
        lua_pushlightuserdata(L, (void *)(uintptr_t)&functions[i]);
        lua_pushcclosure(L, functions[i].func, 4);
        lua_setfield(L, -2, functions[i].name);
    }
    dbo_lua_set_integer(L, "id", r->ubatch);
    dbo_lua_set_integer(L, "num_ubatches", r->t->builder.program.num_ubatches);
    luaL_setmetatable(L, "dbo.ubatch");
}

static int refuse_data(lua_State *L)
{
    return refuse(L, "A schedule is recorded before anything runs.",
                  "a handle of a schedule has no value: it can only be given to a function of u");
}

void dbo_lua_open_ubatch(lua_State *L)
{
    static const char *const operators[] = {
        "__eq",  "__lt",  "__le",   "__add",    "__sub",   "__mul",      "__div",     "__mod",
        "__pow", "__unm", "__idiv", "__band",   "__bor",   "__bxor",     "__bnot",    "__shl",
        "__shr", "__len", "__call", "__concat", "__index", "__newindex", "__tostring"};
    dbo_lua_new_type(L, HANDLE, NULL);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        dbo_lua_set_function(L, operators[i], refuse_data);
    }
    dbo_lua_new_type(L, "dbo.ubatch", NULL);
    dbo_lua_set_function(L, "__index", unknown_function);
    lua_pop(L, 2);
}
