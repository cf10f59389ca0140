/* lua_dbo.c: the module that scripts get with require "dbo": experiment, fixed, and the batches.
 *
 * dbo.experiment reads a table key by key into a dbo_experiment that a userdata owns, applies the
 * overrides of the command line, and finishes it; so a script's mistake is reported at its line and
 * nothing leaks when it is.
 */
#include "app/lua/lua_read.h"
#include "app/lua/lua_schedule.h"
#include "lab/experiment/config_group.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* ---- dbo.fixed {} ---- */

static void take_cost(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_settings settings = dbo_fixed_settings();
    dbo_lua_set_field(L, &settings, self, place, key);
}

static int make_fixed(lua_State *L)
{
    static const dbo_place here = {0};
    dbo_error err = {0};
    dbo_fixed_costs scratch = {0};
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TTABLE) {
        dbo_fail(&err, DBO_INVALID, NULL, "dbo.fixed takes a table: dbo.fixed { A = 90, ... }");
        dbo_lua_raise(L, &here, NULL, &err);
    }
    dbo_lua_each(L, 1, "dbo.fixed", &here, take_cost, &scratch);
    return 1;
}

/* ---- dbo.experiment {} ---- */

static void read_costs(lua_State *L, dbo_experiment *experiment, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TABLE) {
        dbo_value_mismatch("costs", "what dbo.fixed {} gives", &value, &err);
        dbo_lua_raise(L, place, "costs", &err);
    }
    dbo_lua_each(L, -1, "dbo.fixed", place, take_cost, &experiment->fixed);
    experiment->has_fixed = true;
}

/* cudagraph_capture_sizes: a list of sizes. */
static void read_sizes(lua_State *L, dbo_experiment *experiment, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TABLE) {
        dbo_value_mismatch("cudagraph_capture_sizes", "a list of integers", &value, &err);
        dbo_lua_raise(L, place, "cudagraph_capture_sizes", &err);
    }
    lua_Unsigned count = lua_rawlen(L, -1);
    int32_t sizes[DBO_MAX_CAPTURE_SIZES];
    if (count > DBO_MAX_CAPTURE_SIZES) {
        dbo_fail(&err, DBO_LIMIT, NULL, "cudagraph_capture_sizes has more than %d sizes",
                 DBO_MAX_CAPTURE_SIZES);
        dbo_lua_raise(L, place, "cudagraph_capture_sizes", &err);
    }
    for (lua_Unsigned i = 0; i < count; i++) {
        uint32_t size = 0;
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        value = dbo_lua_value(L, -1);
        if (dbo_value_integer("a size in cudagraph_capture_sizes", &value, 1,
                              DBO_WORKLOAD_MAX_TOKENS, &size, &err) != DBO_OK)
            dbo_lua_raise(L, place, "cudagraph_capture_sizes", &err);
        sizes[i] = (int32_t)size;
        lua_pop(L, 1);
    }
    if (dbo_config_set_capture_sizes(&experiment->config, sizes, (uint32_t)count, &err) != DBO_OK)
        dbo_lua_raise(L, place, "cudagraph_capture_sizes", &err);
}

/* A name, or what dbo.schedule {} gives. */
static void read_schedule(lua_State *L, dbo_experiment *experiment, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_template *schedule = dbo_lua_schedule(L, -1);
    dbo_value value = dbo_lua_value(L, -1);
    if (schedule)
        dbo_experiment_set_schedule(experiment, schedule);
    else if (value.kind != DBO_VALUE_TEXT)
        dbo_value_mismatch("schedule", "a name or what dbo.schedule {} gives", &value, &err);
    else
        dbo_experiment_set(experiment, "schedule", &value, &err);
    if (err.status != DBO_OK)
        dbo_lua_raise(L, place, "schedule", &err);
}

/* before: a batch, or a list of them. */
static void read_before(lua_State *L, dbo_experiment *experiment, const dbo_place *place)
{
    dbo_error err = {0};
    for (uint32_t i = 0; i < experiment->num_before; i++)
        dbo_workload_fini(&experiment->before[i]);
    experiment->num_before = 0;
    if (dbo_lua_is_batch(L) || lua_type(L, -1) != LUA_TTABLE) {
        experiment->num_before = 1;
        dbo_lua_read_batch(L, &experiment->before[0], place);
        return;
    }
    lua_Unsigned count = lua_rawlen(L, -1);
    if (count > DBO_MAX_BEFORE) {
        dbo_fail(&err, DBO_LIMIT, NULL, "before has more than %u batches", DBO_MAX_BEFORE);
        dbo_lua_raise(L, place, "before", &err);
    }
    for (lua_Unsigned i = 0; i < count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        dbo_lua_read_batch(L, &experiment->before[experiment->num_before++], place);
        lua_pop(L, 1);
    }
}

static void read_fault(lua_State *L, dbo_experiment *experiment, const dbo_place *place)
{
    dbo_error err = {0};
    dbo_value value = dbo_lua_value(L, -1);
    if (value.kind != DBO_VALUE_TEXT)
        dbo_value_mismatch("fault", "the name of a fault", &value, &err);
    else
        dbo_experiment_set_fault(experiment, value.text, &err);
    if (err.status != DBO_OK)
        dbo_lua_raise(L, place, "fault", &err);
}

static void take_key(lua_State *L, void *self, const dbo_place *place, const char *key);

/* A key of one of vLLM's groups: checked to be in it, then as any other. */
static void take_group_key(lua_State *L, dbo_experiment *experiment, const dbo_place *place,
                           const char *group, size_t length, const char *key)
{
    dbo_error err = {0};
    if (dbo_config_group_check(group, length, key, strlen(key), &err) != DBO_OK)
        dbo_lua_raise(L, place, key, &err);
    take_key(L, experiment, place, key);
}

/* An object inside the experiment, or one of vLLM's groups, and its name. */
typedef struct dbo_inner {
    dbo_experiment *experiment;
    const char *outer;
} dbo_inner;

static void take_grouped(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_inner *inner = self;
    take_group_key(L, inner->experiment, place, inner->outer, strlen(inner->outer), key);
}

static void take_key(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_experiment *experiment = self;
    if (dbo_config_group_is(key, strlen(key)) && lua_type(L, -1) == LUA_TTABLE) {
        dbo_inner inner = {experiment, key};
        dbo_lua_each(L, -1, key, place, take_grouped, &inner);
    } else if (strcmp(key, "schedule") == 0) {
        read_schedule(L, experiment, place);
    } else if (strcmp(key, "model") == 0) {
        dbo_settings settings = dbo_model_settings();
        dbo_lua_read_described(L, "models", &settings, &experiment->model, place);
        experiment->has_model = true;
    } else if (strcmp(key, "hardware") == 0) {
        dbo_settings settings = dbo_hardware_settings();
        dbo_lua_read_described(L, "hardware", &settings, &experiment->hardware, place);
        experiment->has_hardware = true;
    } else if (strcmp(key, "costs") == 0) {
        read_costs(L, experiment, place);
    } else if (strcmp(key, "batch") == 0) {
        dbo_lua_read_batch(L, &experiment->batch, place);
    } else if (strcmp(key, "before") == 0) {
        read_before(L, experiment, place);
    } else if (strcmp(key, "fault") == 0) {
        read_fault(L, experiment, place);
    } else if (strcmp(key, "cudagraph_capture_sizes") == 0) {
        read_sizes(L, experiment, place);
    } else {
        dbo_error err = {0};
        dbo_value value = dbo_lua_value(L, -1);
        if (dbo_experiment_set(experiment, key, &value, &err) != DBO_OK)
            dbo_lua_raise(L, place, key, &err);
    }
}

/* ---- overrides: --set key=text, and the table of dbo.run ---- */

/* A key inside another: model.layers, hardware.sms, batch.num_tokens, costs.A. */
static void take_inner_key(lua_State *L, dbo_experiment *experiment, const dbo_place *place,
                           const char *outer, size_t outer_length, const char *key)
{
    dbo_error err = {0};
    dbo_settings settings = {0};
    void *object = NULL;
    if (outer_length == 5 && strncmp(outer, "model", 5) == 0) {
        settings = dbo_model_settings();
        object = &experiment->model;
    } else if (outer_length == 8 && strncmp(outer, "hardware", 8) == 0) {
        settings = dbo_hardware_settings();
        object = &experiment->hardware;
    } else if (outer_length == 5 && strncmp(outer, "costs", 5) == 0) {
        settings = dbo_fixed_settings();
        object = &experiment->fixed;
        if (!experiment->has_fixed) {
            dbo_fail(&err, DBO_INVALID,
                     "Give them as a whole, in the script: costs = dbo.fixed { A = 90, ... }.",
                     "costs.%s cannot be set alone: costs come from the model here, and fixed ones "
                     "would make all others 0",
                     key);
            dbo_lua_raise(L, place, NULL, &err);
        }
    } else if (outer_length == 5 && strncmp(outer, "batch", 5) == 0 &&
               experiment->batch.kind != DBO_WORKLOAD_NONE) {
        dbo_lua_read_batch_key(L, &experiment->batch, place, key);
        return;
    } else if (dbo_config_group_is(outer, outer_length)) {
        take_group_key(L, experiment, place, outer, outer_length, key);
        return;
    } else {
        dbo_fail(&err, DBO_INVALID, "Keys with a dot begin with model, hardware, batch or costs.",
                 "'%.*s' has no keys of its own", (int)outer_length, outer);
        dbo_lua_raise(L, place, NULL, &err);
    }
    dbo_lua_set_field(L, &settings, object, place, key);
}

/* Pushes the Lua value that an override's text means; "8,16" is a list of them. */
static void push_text_value(lua_State *L, const char *text)
{
    dbo_value value = dbo_value_of_text(text);
    switch (value.kind) {
    case DBO_VALUE_BOOL: lua_pushboolean(L, value.boolean); return;
    case DBO_VALUE_INTEGER: lua_pushinteger(L, value.integer); return;
    case DBO_VALUE_REAL: lua_pushnumber(L, value.real); return;
    default: break;
    }
    if (!strchr(text, ',')) {
        lua_pushstring(L, text);
        return;
    }
    lua_newtable(L);
    for (lua_Integer i = 1;; i++) {
        size_t length = strcspn(text, ",");
        const char *item = lua_pushlstring(L, text, length);
        push_text_value(L, item);
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
        if (text[length] == '\0')
            return;
        text += length + 1;
    }
}

static void apply_overrides(lua_State *L, dbo_experiment *experiment)
{
    lua_getfield(L, LUA_REGISTRYINDEX, DBO_LUA_SETS);
    lua_Unsigned count = lua_rawlen(L, -1);
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i); /* "key=text" */
        const char *set = lua_tostring(L, -1);
        const char *prefix = lua_pushfstring(L, "--set %s", set);
        dbo_place place = {.prefix = prefix};
        size_t length = strcspn(set, "=");
        const char *key = lua_pushlstring(L, set, length);
        if (strcmp(key, "fault") == 0) /* whose parameters have commas */
            lua_pushstring(L, set + length + 1);
        else
            push_text_value(L, set + length + 1);
        const char *dot = strchr(key, '.');
        if (dot)
            take_inner_key(L, experiment, &place, key, (size_t)(dot - key), dot + 1);
        else
            take_key(L, experiment, &place, key);
        lua_pop(L, 4);
    }
    lua_pop(L, 1);
}

/* A table that an override gives for one of the objects inside: its keys replace those of the
 * object, one by one. */
static void take_inner_override(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_inner *inner = self;
    take_inner_key(L, inner->experiment, place, inner->outer, strlen(inner->outer), key);
}

/* Does the table at the top of the stack change parts of an object rather than be a new one? */
static bool changes_parts(lua_State *L, const dbo_experiment *experiment, const char *key)
{
    if (lua_type(L, -1) != LUA_TTABLE)
        return false;
    if (strcmp(key, "batch") == 0)
        return !dbo_lua_is_batch(L);
    if (strcmp(key, "costs") == 0)
        return experiment->has_fixed;
    if (strcmp(key, "model") != 0 && strcmp(key, "hardware") != 0)
        return false;
    lua_pushliteral(L, "base");
    bool is_new = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 1);
    return !is_new;
}

static void take_override(lua_State *L, void *self, const dbo_place *place, const char *key)
{
    dbo_experiment *experiment = self;
    const char *dot = strchr(key, '.');
    if (dot) {
        take_inner_key(L, experiment, place, key, (size_t)(dot - key), dot + 1);
    } else if (changes_parts(L, experiment, key)) {
        dbo_inner inner = {experiment, key};
        dbo_lua_each(L, -1, key, place, take_inner_override, &inner);
    } else {
        take_key(L, experiment, place, key);
    }
}

static int collect_experiment(lua_State *L)
{
    dbo_experiment_fini(lua_touserdata(L, 1));
    return 0;
}

dbo_experiment *dbo_lua_make_experiment(lua_State *L, int index, int overrides)
{
    static const dbo_place here = {0};
    dbo_error err = {0};
    dbo_experiment *experiment = lua_newuserdatauv(L, sizeof *experiment, 1);
    dbo_experiment_init(experiment);
    luaL_setmetatable(L, DBO_LUA_EXPERIMENT);
    dbo_lua_each(L, index, "dbo.experiment", &here, take_key, experiment);
    apply_overrides(L, experiment);
    if (overrides)
        dbo_lua_each(L, overrides, "the overrides", &here, take_override, experiment);
    const char *key = NULL;
    if (dbo_experiment_finish(experiment, &key, &err) != DBO_OK) {
        if (experiment->schedule && dbo_template_is_placed(experiment->schedule, &err))
            dbo_sandbox_raise(L, &err); /* at the schedule's own line */
        dbo_lua_raise(L, &here, key, &err);
    }
    dbo_lua_copy_table(L, index);
    lua_setiuservalue(L, -2, 1);
    return experiment;
}

static int make_experiment(lua_State *L)
{
    static const dbo_place here = {0};
    dbo_error err = {0};
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TTABLE) {
        dbo_fail(&err, DBO_INVALID, NULL, "dbo.experiment takes a table: dbo.experiment { ... }");
        dbo_lua_raise(L, &here, NULL, &err);
    }
    dbo_lua_make_experiment(L, 1, 0);
    return 1;
}

int dbo_lua_open(lua_State *L)
{
    luaL_newmetatable(L, DBO_LUA_EXPERIMENT);
    lua_pushcfunction(L, collect_experiment);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable"); /* scripts see no metatable, so no __gc to call */
    lua_settop(L, 0);

    lua_newtable(L);
    lua_pushcfunction(L, make_experiment);
    lua_setfield(L, -2, "experiment");
    lua_pushcfunction(L, make_fixed);
    lua_setfield(L, -2, "fixed");
    dbo_lua_open_batch(L);
    dbo_lua_open_schedule(L);
    dbo_lua_open_run(L);
    dbo_lua_open_table(L);
    dbo_lua_open_requests(L);
    dbo_sandbox_set_module(dbo_sandbox_of(L));
    return 0;
}
