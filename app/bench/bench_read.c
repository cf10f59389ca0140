/* bench_read.c: the benchmark's model from a JSON file.
 *
 *     {"ranks": [8, 64, 256], "layers": 61, "dur_us": {"c0": 40, ..., "x1": 90},
 *      "imbalance": {"op": "c4", "mul": 37, "mod": 11},
 *      "extra_deps": [{"from": "c4", "from_mb": 0, "to": "c3", "to_mb": 1, "layer_delta": 0}]}
 *
 * What is absent keeps the standard's value; an imbalance of null is none. Durations are rounded to
 * the nanosecond.
 */
#include "app/bench/bench_model.h"
#include "app/io/input.h"
#include "core/base/units.h"
#include "lab/files/json.h"

#include <string.h>

#define MAX_DUR_US 1e9
#define MAX_FACTOR 1000000 /* of an imbalance's mul and mod */

static const char *const op_names[DBO_BENCH_OPS] = {"c0", "c1", "c2", "c3", "c4", "c5", "x0", "x1"};

static dbo_status need_op(const dbo_json_value *object, const char *key, uint32_t *out,
                          dbo_error *err)
{
    return dbo_json_need_word(object, key, "op", op_names, DBO_BENCH_OPS, out, err);
}

static dbo_status read_ranks(dbo_bench_model *model, const dbo_json_value *root, dbo_error *err)
{
    dbo_json_value array;
    int32_t ranks[DBO_BENCH_MAX_RANKS];
    DBO_TRY(dbo_json_opt(root, "ranks", DBO_JSON_ARRAY, &array, err));
    if (!array.node)
        return DBO_OK;
    size_t count = dbo_json_count(&array);
    if (count < 1 || count > DBO_BENCH_MAX_RANKS)
        return dbo_json_fail(err, &array, NULL, "has %zu entries; it must have 1 to %d", count,
                             DBO_BENCH_MAX_RANKS);
    DBO_TRY(dbo_json_int32s(&array, 1, DBO_MAX_RANKS, ranks, err));
    model->num_ranks = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        model->ranks[i] = (uint32_t)ranks[i];
    return DBO_OK;
}

static dbo_status read_durations(dbo_bench_model *model, const dbo_json_value *root, dbo_error *err)
{
    dbo_json_value object;
    DBO_TRY(dbo_json_opt(root, "dur_us", DBO_JSON_OBJECT, &object, err));
    if (!object.node)
        return DBO_OK;
    DBO_TRY(dbo_json_check_keys(&object, op_names, DBO_BENCH_OPS, err));
    for (uint32_t op = 0; op < DBO_BENCH_OPS; op++) {
        double us = dbo_us_from_ns(model->dur_ns[op]);
        DBO_TRY(DBO_JSON_OPT(double, &object, op_names[op], 0, MAX_DUR_US, &us, err));
        model->dur_ns[op] = dbo_ns_from_us(us);
    }
    return DBO_OK;
}

static dbo_status read_imbalance(dbo_bench_model *model, const dbo_json_value *root, dbo_error *err)
{
    static const char *const keys[] = {"op", "mul", "mod"};
    dbo_json_value value = dbo_json_get(root, "imbalance");
    if (!value.node)
        return DBO_OK;
    if (dbo_json_is_null(&value)) {
        model->imbalance_mod = 0;
        return DBO_OK;
    }
    DBO_TRY(dbo_json_check_keys(&value, keys, 3, err));
    if (dbo_json_has(&value, "op"))
        DBO_TRY(need_op(&value, "op", &model->imbalanced_op, err));
    DBO_TRY(DBO_JSON_OPT(uint32, &value, "mul", 0, MAX_FACTOR, &model->imbalance_mul, err));
    return DBO_JSON_OPT(uint32, &value, "mod", 0, MAX_FACTOR, &model->imbalance_mod, err);
}

static dbo_status read_dep(dbo_bench_dep *dep, const dbo_json_value *value, dbo_error *err)
{
    static const char *const keys[] = {"from", "from_mb", "to", "to_mb", "layer_delta"};
    uint32_t from, to, from_mb = 0, to_mb = 0, delta = 0;
    DBO_TRY(dbo_json_check_keys(value, keys, 5, err));
    DBO_TRY(need_op(value, "from", &from, err));
    DBO_TRY(need_op(value, "to", &to, err));
    DBO_TRY(DBO_JSON_OPT(uint32, value, "from_mb", 0, 1, &from_mb, err));
    DBO_TRY(DBO_JSON_OPT(uint32, value, "to_mb", 0, 1, &to_mb, err));
    DBO_TRY(DBO_JSON_OPT(uint32, value, "layer_delta", 0, DBO_BENCH_MAX_DELTA, &delta, err));
    *dep = (dbo_bench_dep){.from = (uint8_t)from,
                           .from_mb = (uint8_t)from_mb,
                           .to = (uint8_t)to,
                           .to_mb = (uint8_t)to_mb,
                           .layer_delta = (uint8_t)delta};
    return DBO_OK;
}

static dbo_status read_deps(dbo_bench_model *model, const dbo_json_value *root, dbo_error *err)
{
    dbo_json_value array;
    DBO_TRY(dbo_json_opt(root, "extra_deps", DBO_JSON_ARRAY, &array, err));
    size_t count = dbo_json_count(&array);
    if (count > DBO_BENCH_MAX_DEPS)
        return dbo_json_fail(err, &array, NULL, "has %zu entries; it may have %d", count,
                             DBO_BENCH_MAX_DEPS);
    for (size_t i = 0; i < count; i++) {
        dbo_json_value dep = dbo_json_at(&array, i);
        DBO_TRY(read_dep(&model->deps[i], &dep, err));
    }
    model->num_deps = (uint32_t)count;
    return DBO_OK;
}

static dbo_status read_root(dbo_bench_model *model, const dbo_json_value *root, dbo_error *err)
{
    static const char *const keys[] = {"ranks", "layers", "dur_us", "imbalance", "extra_deps"};
    DBO_TRY(dbo_json_check_keys(root, keys, 5, err));
    DBO_TRY(read_ranks(model, root, err));
    dbo_json_value layers = dbo_json_get(root, "layers");
    if (layers.node) /* null is no number of layers */
        DBO_TRY(dbo_json_need_uint32(root, "layers", 1, DBO_MAX_LAYERS, &model->layers, err));
    DBO_TRY(read_durations(model, root, err));
    DBO_TRY(read_imbalance(model, root, err));
    return read_deps(model, root, err);
}

dbo_status dbo_bench_model_read(dbo_bench_model *model, const char *path, dbo_error *err)
{
    dbo_json *doc = NULL;
    dbo_bench_model read;
    dbo_bench_model_init(&read);
    DBO_TRY(dbo_input_remember(path, err));
    DBO_TRY(dbo_json_read_file(&doc, path, NULL, err));
    dbo_status status = read_root(&read, dbo_json_root(doc), err);
    dbo_json_destroy(doc);
    if (status == DBO_OK)
        *model = read;
    return status;
}
