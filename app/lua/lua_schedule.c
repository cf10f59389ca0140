/* lua_schedule.c: dbo.schedule {}: checks the table, records, compares, checks what was recorded.
 *
 * A schedule must not depend on data, since it runs when there is none left to look at: the program
 * is made once. What a script can see of its own operations are handles that cannot be compared or
 * computed with (lua_ubatch.c); whatever else it may depend on, such as a counter that survives, is
 * caught by recording twice.
 */
#include "app/lua/lua_schedule.h"

#include "app/lua/lua_read.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define RECORDING "dbo.recording"
#define SERIALS   "dbo.recordings" /* registry key: how many parts were recorded so far */

typedef struct dbo_schedule_keys {
    char name[DBO_TEMPLATE_NAME];
    uint32_t num_ubatches, layers;
} dbo_schedule_keys;

static dbo_status set_keys(dbo_schedule_keys *keys, const dbo_value *table, dbo_error *err)
{
    static const dbo_field fields[] = {
        {"name", DBO_FIELD_TEXT, offsetof(dbo_schedule_keys, name), 0, DBO_TEMPLATE_NAME, true,
         NULL, "what people call it"},
        {"num_ubatches", DBO_FIELD_U32, offsetof(dbo_schedule_keys, num_ubatches), 2,
         DBO_MAX_UBATCHES, false, NULL, "that it is written for"},
        {"layers", DBO_FIELD_U32, offsetof(dbo_schedule_keys, layers), 1, DBO_MAX_LAYERS - 1, false,
         NULL, "that run, unless the experiment says"},
    };
    static const char *const extra[] = {"layer", NULL};
    static const dbo_settings settings = {"dbo.schedule", fields, sizeof fields / sizeof fields[0],
                                          extra, NULL};
    const dbo_value *layer = dbo_value_member(table, "layer");
    DBO_TRY(dbo_settings_set(&settings, keys, table, err));
    if (!keys->name[0] || !layer)
        return dbo_fail(err, DBO_INVALID,
                        "dbo.schedule { name = \"mine\", layer = function(u) ... end }",
                        "dbo.schedule needs %s", keys->name[0] ? "layer" : "name");
    return DBO_OK;
}

/* Large, and not the collector's: it does not wait for it. Closed, nobody looks at it any more. */
static void release(lua_State *L, dbo_recording *recording)
{
    dbo_template_release(recording->t);
    recording->t = NULL;
    dbo_sandbox_charge(L, &recording->charged, 0);
}

static int collect_recording(lua_State *L)
{
    release(L, lua_touserdata(L, 1));
    return 0;
}

static int collect_schedule(lua_State *L)
{
    dbo_lua_schedule *box = lua_touserdata(L, 1);
    dbo_template_release(box->t);
    box->t = NULL;
    dbo_sandbox_charge(L, &box->charged, 0);
    return 0;
}

/* A new recording on the stack, with its table of names as user value. */
static dbo_recording *push_recording(lua_State *L, const dbo_schedule_keys *keys)
{
    dbo_error err = {0};
    dbo_recording *r = lua_newuserdatauv(L, sizeof *r, 1);
    memset(r, 0, sizeof *r);
    luaL_setmetatable(L, RECORDING);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        r->compute_done[u] = r->comm_done[u] = DBO_NO_INDEX;
    r->t = dbo_template_create(keys->name, keys->num_ubatches, &err);
    if (!r->t)
        dbo_lua_raise(L, &err);
    r->t->num_layers = keys->layers;
    return r;
}

static lua_Integer next_serial(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, SERIALS);
    lua_Integer serial = lua_tointeger(L, -1) + 1;
    lua_pop(L, 1);
    lua_pushinteger(L, serial);
    lua_setfield(L, LUA_REGISTRYINDEX, SERIALS);
    return serial;
}

/* At the line of the recorded instruction, if the error has it; else where the layer function is
 * given. */
static void raise(lua_State *L, dbo_error *err)
{
    if (!err->key[0])
        dbo_error_key(err, "layer");
    dbo_lua_raise(L, err);
}

/* The script that has the layer function at stack index `layer`; its lines are recorded. */
static void set_path(lua_State *L, dbo_template *t, int layer)
{
    lua_Debug ar;
    dbo_error err = {0};
    lua_pushvalue(L, layer);
    if (lua_getinfo(L, ">S", &ar) && ar.source[0] == '@' &&
        dbo_template_set_path(t, ar.source + 1, &err) != DBO_OK)
        raise(L, &err);
}

/* Calls the layer function at stack index `layer` for each ubatch; leaves the recording. */
static dbo_recording *record(lua_State *L, const dbo_schedule_keys *keys, int layer)
{
    dbo_error err = {0};
    dbo_recording *r = push_recording(L, keys);
    int index = lua_gettop(L);
    set_path(L, r->t, layer);
    for (uint32_t u = 0; u < keys->num_ubatches; u++) {
        r->ubatch = u;
        r->stream = DBO_STREAM_COMPUTE;
        r->serial = next_serial(L);
        r->open = true;
        lua_pushvalue(L, layer);
        dbo_lua_push_ubatch(L, index);
        lua_call(L, 1, 0);
        r->open = false;
        if (r->stream != DBO_STREAM_COMPUTE) {
            dbo_fail(&err, DBO_REFUSED, "End the layer with u.switch_to_compute_sync().",
                     "schedule %s: ubatch %u ends its layer on the stream %s; the next one begins "
                     "on compute",
                     keys->name, u, r->t->builder.program.stream_names[r->stream]);
            raise(L, &err);
        }
    }
    if (dbo_template_finish(r->t, &err) != DBO_OK)
        raise(L, &err);
    return r;
}

static void compare(lua_State *L, const dbo_recording *a, const dbo_recording *b)
{
    dbo_error err = {0};
    uint32_t ubatch = 0, index = 0;
    if (dbo_template_equal(a->t, b->t, &ubatch, &index))
        return;
    char sentence[96];
    bool ended = index >= a->t->program.num_instrs[ubatch]; /* the second goes on */
    const dbo_template *longer = ended ? b->t : a->t;
    bool known = index < longer->program.num_instrs[ubatch] && longer->lines[ubatch];
    snprintf(sentence, sizeof sentence,
             "it is not the same when it is recorded twice: it differs from instruction %u on",
             index);
    dbo_template_refuse(longer, ubatch, known ? longer->lines[ubatch][index] : 0,
                        "It may depend on u.id alone, not on data: the program is made once.",
                        sentence, &err);
    raise(L, &err);
}

static int make_schedule(lua_State *L)
{
    dbo_error err = {0};
    dbo_schedule_keys keys = {.num_ubatches = 2};
    const dbo_value *table = dbo_lua_read_argument(L, DBO_LUA_SCHEDULE);
    dbo_lua_check(L, set_keys(&keys, table, &err), &err);
    lua_pushliteral(L, "layer");
    if (lua_rawget(L, 1) != LUA_TFUNCTION) {
        dbo_value_mismatch("layer", "a function(u)", dbo_value_member(table, "layer"), &err);
        dbo_lua_raise(L, &err);
    }
    lua_replace(L, 2);
    dbo_recording *first = record(L, &keys, 2), *second = record(L, &keys, 2);
    compare(L, first, second);
    release(L, second);
    if (dbo_template_check(first->t, &err) != DBO_OK)
        raise(L, &err);
    dbo_lua_schedule *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (dbo_lua_schedule){.t = dbo_template_retain(first->t)};
    luaL_setmetatable(L, DBO_LUA_SCHEDULE);
    release(L, first);
    dbo_sandbox_charge(L, &made->charged, dbo_template_bytes(made->t));
    return 1;
}

void dbo_lua_open_schedule(lua_State *L)
{
    dbo_lua_new_type(L, RECORDING, collect_recording);
    dbo_lua_new_type(L, DBO_LUA_SCHEDULE, collect_schedule);
    lua_pop(L, 2);
    dbo_lua_open_ubatch(L);
    dbo_lua_set_function(L, "schedule", make_schedule);
}
