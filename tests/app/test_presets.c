/* Every file of scripts/models and scripts/hardware holds known keys of the right types, all that
 * are required, and passes the checks; and the field tables refuse what they should. */
#include "core/layer/model_ops.h"
#include "lab/experiment/setting.h"
#include "sim/cost.h"
#include "sim/hardware.h"
#include "tests/support/deepseek_v3.h"

#include <dirent.h>
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_FIELDS 64

typedef struct kind {
    const char *folder;
    const dbo_field *fields;
    uint32_t num_fields;
} kind;

static kind kind_of(const char *folder)
{
    kind k = {.folder = folder};
    if (strcmp(folder, "models") == 0)
        k.fields = dbo_model_fields(&k.num_fields);
    else
        k.fields = dbo_hardware_fields(&k.num_fields);
    assert_true(k.num_fields > 0 && k.num_fields <= MAX_FIELDS);
    return k;
}

static void read_file(const kind *k, const char *name, void *object, bool seen[MAX_FIELDS]);

/* The key at -2 and the value at -1 of the Lua stack. */
static void take(lua_State *L, const kind *k, const char *name, void *object, bool seen[MAX_FIELDS])
{
    assert_int_equal(lua_type(L, -2), LUA_TSTRING);
    const char *key = lua_tostring(L, -2);
    if (strcmp(key, "base") == 0) {
        read_file(k, lua_tostring(L, -1), object, seen);
        return;
    }
    dbo_error err = {0};
    dbo_value value = {0};
    if (lua_type(L, -1) == LUA_TNUMBER)
        value = (dbo_value){.kind = DBO_VALUE_REAL, .real = lua_tonumber(L, -1)};
    else if (lua_type(L, -1) == LUA_TBOOLEAN)
        value = (dbo_value){.kind = DBO_VALUE_BOOL, .boolean = lua_toboolean(L, -1)};
    else if (lua_type(L, -1) == LUA_TSTRING)
        value = (dbo_value){.kind = DBO_VALUE_TEXT, .text = lua_tostring(L, -1)};
    const dbo_settings settings = {k->folder, k->fields, k->num_fields, NULL, NULL};
    if (dbo_setting_set(&settings, object, key, &value, &err) != DBO_OK)
        fail_msg("%s/%s: %s", k->folder, name, err.message);
    seen[dbo_field_find(k->fields, k->num_fields, key) - k->fields] = true;
}

/* `base` is taken first, so that the file's own keys win. */
static void read_file(const kind *k, const char *name, void *object, bool seen[MAX_FIELDS])
{
    char path[512];
    snprintf(path, sizeof path, "%s/scripts/%s/%s.lua", DBO_SOURCE_DIR, k->folder, name);
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    if (luaL_dofile(L, path) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    assert_int_equal(lua_type(L, -1), LUA_TTABLE);
    for (int own = 0; own < 2; own++)
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
            if (own == (strcmp(lua_tostring(L, -2), "base") != 0))
                take(L, k, name, object, seen);
    lua_close(L);
}

/* Calls `check` for each preset of the folder; returns how many there were. */
static int for_each(const char *folder, void (*check)(const char *name))
{
    char path[512];
    snprintf(path, sizeof path, "%s/scripts/%s", DBO_SOURCE_DIR, folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (const struct dirent *item; (item = readdir(dir)) != NULL;) {
        char name[64];
        size_t length = strlen(item->d_name);
        if (length < 5 || length >= sizeof name || strcmp(item->d_name + length - 4, ".lua") != 0)
            continue;
        memcpy(name, item->d_name, length - 4);
        name[length - 4] = '\0';
        check(name);
        count++;
    }
    closedir(dir);
    return count;
}

static void check_required(const kind *k, const char *name, const bool seen[MAX_FIELDS])
{
    for (uint32_t i = 0; i < k->num_fields; i++)
        if (k->fields[i].required && !seen[i])
            fail_msg("%s/%s: %s is missing", k->folder, name, k->fields[i].key);
}

static dbo_model_spec read_model(const char *name)
{
    kind k = kind_of("models");
    dbo_model_spec model;
    dbo_model_spec_init(&model);
    bool seen[MAX_FIELDS] = {false};
    dbo_error err = {0};
    read_file(&k, name, &model, seen);
    check_required(&k, name, seen);
    if (dbo_model_spec_check(&model, &err) != DBO_OK)
        fail_msg("%s: %s", name, err.message);
    return model;
}

static dbo_hardware read_hardware(const char *name)
{
    kind k = kind_of("hardware");
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    bool seen[MAX_FIELDS] = {false};
    dbo_error err = {0};
    read_file(&k, name, &hardware, seen);
    check_required(&k, name, seen);
    if (dbo_hardware_check(&hardware, &err) != DBO_OK)
        fail_msg("%s: %s", name, err.message);
    return hardware;
}

/* A model is costed, and every op of its layer takes some time on a machine. */
static void check_model(const char *name)
{
    dbo_model_spec model = read_model(name);
    dbo_hardware hardware = h800();
    dbo_request_shape request = {32, 1, 1000};
    dbo_layer_shape shape = {.ep_size = 8,
                             .tp_size = 1,
                             .layer = model.first_k_dense,
                             .tokens = 32,
                             .num_requests = 1,
                             .requests = &request};
    dbo_layer_costs costs;
    assert_int_equal(dbo_layer_costs_compute(&model, &shape, &costs, NULL), DBO_OK);
    static const dbo_op_kind kinds[] = {DBO_KIND_A0, DBO_KIND_A1, DBO_KIND_MLP};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        dbo_op_time time;
        dbo_cost_ns(&hardware, &costs.op[kinds[i]], 0, &time);
        assert_true(time.ns > 1000 && time.ns < 100000000);
    }
    assert_int_equal(costs.kernels[DBO_KIND_SHARED] > 0, model.num_shared > 0);
}

static void check_hardware(const char *name)
{
    dbo_hardware hardware = read_hardware(name);
    assert_true(hardware.source[0] != '\0' && hardware.confidence[0] != '\0');
}

static void presets_are_complete(void **state)
{
    (void)state;
    assert_int_equal(for_each("models", check_model), 9);
    assert_int_equal(for_each("hardware", check_hardware), 8);
}

/* Published sizes: the experts and attention of all layers, in parameters. */
static void published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions;
    } rows[] = {{"deepseek-v3", 671},     {"deepseek-v2-lite", 15.7}, {"qwen3-30b-a3b", 30.5},
                {"qwen3-235b-a22b", 235}, {"mixtral-8x7b", 46.7},     {"kimi-k2", 1026},
                {"glm-4.5", 355},         {"gpt-oss-120b", 117}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dbo_model_spec model = read_model(rows[i].name);
        double value = model.weight_dtype == DBO_FP8 ? 1 : 2;
        double dense = model.first_k_dense;
        const dbo_weight_spread alone = {.ep_size = 1, .tp_size = 1};
        double bytes = dense > 0 ? dense * dbo_layer_weight_bytes(&model, &alone, true) : 0;
        bytes += (model.layers - dense) * dbo_layer_weight_bytes(&model, &alone, false);
        double parameters = bytes / value + 2.0 * model.vocab * model.hidden;
        print_message("%-18s %7.1f B parameters, published %7.1f\n", rows[i].name, parameters / 1e9,
                      rows[i].billions);
        assert_true(parameters > 0.97e9 * rows[i].billions);
        assert_true(parameters < 1.03e9 * rows[i].billions);
    }
}

static const char long_name[] =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxx";

static void tables_refuse(void **state)
{
    (void)state;
    kind k = kind_of("models");
    dbo_model_spec model = deepseek_v3();
    const dbo_field *layers = dbo_field_find(k.fields, k.num_fields, "layers");
    const dbo_field *attention = dbo_field_find(k.fields, k.num_fields, "attention");
    const dbo_settings settings = {"the model", k.fields, k.num_fields, NULL, NULL};
    static const struct {
        const char *key;
        dbo_value value;
        const char *sentence;
    } cases[] = {
        {"layers", {.kind = DBO_VALUE_REAL, .real = 60.5}, "layers must be an integer, got 60.5"},
        {"layers", {.kind = DBO_VALUE_INTEGER, .integer = -1}, "layers is -1; it must be from"},
        {"layers", {.kind = DBO_VALUE_REAL, .real = NAN}, "layers must be an integer, got nan"},
        {"layers",
         {.kind = DBO_VALUE_REAL, .real = -INFINITY},
         "layers is -inf; it must be from 1 to 1024"},
        {"layers", {.kind = DBO_VALUE_TEXT, .text = "61"}, "got string \"61\""},
        {"layers", {.kind = DBO_VALUE_BOOL, .boolean = true}, "got true"},
        {"attention", {.kind = DBO_VALUE_TEXT, .text = "mha"}, "\"mla\", \"gqa\", \"linear\""},
        {"name", {.kind = DBO_VALUE_TEXT, .text = long_name}, "name has 79 characters; at most"},
        {"layer", {.kind = DBO_VALUE_INTEGER, .integer = 1}, "did you mean 'layers'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dbo_error err = {0};
        assert_int_equal(dbo_setting_set(&settings, &model, cases[i].key, &cases[i].value, &err),
                         DBO_INVALID);
        if (!strstr(err.message, cases[i].sentence))
            fail_msg("'%s' is not in: %s", cases[i].sentence, err.message);
        assert_string_equal(err.key, cases[i].key);
    }
    assert_int_equal(model.layers, 61);
    const dbo_value thirty = {.kind = DBO_VALUE_REAL, .real = 30};
    assert_int_equal(dbo_setting_set(&settings, &model, "layers", &thirty, NULL), DBO_OK);
    assert_int_equal(dbo_field_number(layers, &model), 30);
    assert_string_equal(dbo_field_text(attention, &model), "mla");
}

static void inconsistent_models_are_refused(void **state)
{
    (void)state;
    dbo_model_spec bad[7];
    for (int i = 0; i < 7; i++)
        bad[i] = deepseek_v3();
    bad[0].topk = 300;
    bad[1].num_groups = 7;
    bad[2].topk_groups = 9;
    bad[3].kv_lora_rank = 0;
    bad[4].first_k_dense = 62;
    bad[5].dense_inter = 0;
    bad[6].attention = DBO_ATTENTION_GQA;
    for (int i = 0; i < 7; i++) {
        dbo_error err = {0};
        assert_int_equal(dbo_model_spec_check(&bad[i], &err), DBO_INVALID);
        assert_non_null(strstr(err.message, "model"));
    }
    dbo_hardware hardware = h800();
    assert_int_equal(dbo_hardware_check(&hardware, NULL), DBO_OK);
    hardware.comm_sms = 133;
    assert_int_equal(dbo_hardware_check(&hardware, NULL), DBO_INVALID);
    hardware = h800();
    hardware.hbm_gbps = -1;
    assert_int_equal(dbo_hardware_check(&hardware, NULL), DBO_INVALID);
}

static void kinds_of_operations(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < DBO_KIND_COUNT; i++) {
        dbo_op_kind op = (dbo_op_kind)i;
        assert_int_equal(dbo_op_kind_of_name(dbo_op_kind_name(op)), op);
        assert_in_range(strlen(dbo_op_kind_symbol(op)), 1, 5);
        for (uint32_t other = 0; other < i; other++) /* a word means one kind */
            assert_string_not_equal(dbo_op_kind_symbol(op), dbo_op_kind_symbol(other));
        if (dbo_op_kind_is_noted(op))
            assert_int_equal(dbo_op_kind_of_name(dbo_op_kind_symbol(op)), op);
    }
    assert_int_equal(dbo_op_kind_of_name("S"), DBO_KIND_SHARED);
    assert_int_equal(dbo_op_kind_of_name("D"), DBO_KIND_DISPATCH);
    assert_int_equal(dbo_op_kind_of_name("C"), DBO_KIND_COMBINE);
    assert_int_equal(dbo_op_kind_of_name("REDUCE"), DBO_KIND_REDUCE);
    assert_int_equal(dbo_op_kind_of_name("q"), DBO_KIND_COUNT); /* the notation leaves it out */
    assert_string_equal(dbo_op_kind_suggest("REDUCF"), "REDUCE");
    assert_string_equal(dbo_op_kind_suggest("H2D_COPI"), "H2D_COPY");
    assert_null(dbo_op_kind_suggest("COMBIN")); /* posted, not issued */
    assert_int_equal(dbo_op_kind_of_name("nonsense"), DBO_KIND_COUNT);
    assert_int_equal(dbo_op_kind_class(DBO_KIND_COMBINE), DBO_CLASS_COMM);
    assert_int_equal(dbo_op_kind_class(DBO_KIND_MLP), DBO_CLASS_COMPUTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_complete), cmocka_unit_test(published_sizes),
        cmocka_unit_test(tables_refuse),        cmocka_unit_test(inconsistent_models_are_refused),
        cmocka_unit_test(kinds_of_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
