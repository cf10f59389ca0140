/* test_footprint.c: bytes that a GPU must hold, against sums by hand; what does not fit is refused.
 */
#include "app/lua/lua_load.h"
#include "app/say/result_text.h"
#include "lab/world/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A rank of two, 4 layers, the first one dense. Attention 64 * 16 * (2 * 4 + 2 * 2) = 12288 values,
 * a dense MLP 3 * 64 * 256 = 49152, an expert 3 * 64 * 32 = 6144, the router 64 * 8 = 512; all of
 * two bytes. */
#define HEAD                                                                                   \
    "local dbo = require 'dbo'\n"                                                              \
    "local small = { name = 'small', layers = 4, hidden = 64, heads = 4, vocab = 1000,\n"      \
    "  attention = 'gqa', kv_heads = 2, head_dim = 16, num_experts = 8, topk = 2,\n"           \
    "  num_shared = 1, moe_inter = 32, dense_inter = 256, first_k_dense = 1,\n"                \
    "  weight_dtype = 'bf16' }\n"                                                              \
    "local function make(batch, more) local e = { model = small, hardware = 'H800',\n"         \
    "  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, batch = batch }\n" \
    "  for key, value in pairs(more or {}) do e[key] = value end\n"                            \
    "  return dbo.experiment(e) end\n"
#define LAYER_DENSE (2.0 * (12288 + 49152))
#define LAYER_MOE   (2.0 * (12288 + 512 + 6144 * (4 + 1)))
#define TABLES      (2.0 * 2 * 1000 * 64)
#define WEIGHTS     (TABLES + LAYER_DENSE + 3 * LAYER_MOE)
#define TOKEN       (2.0 * 2 * 2 * 16) /* keys and values of a layer */

static dbo_status load(const char *text, dbo_experiment *out, dbo_error *err)
{
    char path[] = "/tmp/dbo-test-footprint-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
    dbo_status status = dbo_experiment_load(out, path, NULL, err);
    unlink(path);
    return status;
}

static void expect_bytes(const char *text, uint32_t rank, double weights, double kv_cache)
{
    dbo_experiment e;
    dbo_error err = {0};
    dbo_footprint f;
    if (load(text, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dbo_footprint_of(&e, &f, &err), DBO_OK);
    assert_int_equal(f.rank, rank);
    assert_true(f.weights_bytes == weights);
    if (f.kv_cache_bytes != kv_cache)
        fail_msg("%s: %.0f bytes of KV cache, not %.0f", text, f.kv_cache_bytes, kv_cache);
    assert_true(f.device_bytes == e.hardware.mem_gb * 1e9);
    dbo_experiment_fini(&e);
}

static void bytes_are_summed(void **state)
{
    (void)state;
    /* 101 tokens take 7 blocks of 16. */
    expect_bytes(HEAD "return make(dbo.decode { num_tokens = 3, context_len = 100 })\n", 0, WEIGHTS,
                 3 * 7 * 16 * TOKEN * 4);
    expect_bytes(HEAD "return make(dbo.decode { num_tokens = { 3, 4 }, context_len = 100 })\n", 1,
                 WEIGHTS, 4 * 7 * 16 * TOKEN * 4);
    expect_bytes(HEAD "return make(dbo.prefill { num_tokens = 48, prompt_len = 32 },\n"
                      "  { block_size = 32, layers = 2 })\n",
                 0, TABLES + LAYER_DENSE + LAYER_MOE, 2 * 32 * TOKEN * 2);
    /* Without expert parallelism each rank has a half of each of the 8 experts, not 4 of them. */
    expect_bytes(HEAD "return make(dbo.decode { num_tokens = 1 },\n"
                      "  { enable_expert_parallel = false })\n",
                 0, WEIGHTS, 16 * TOKEN * 4);
    /* Two GPUs of one rank share heads, tables, and the experts. */
    expect_bytes(HEAD "return make(dbo.decode { num_tokens = 1 }, { tensor_parallel_size = 2 })\n",
                 0, TABLES / 2 + LAYER_DENSE / 2 + 3 * 2.0 * (12288.0 / 2 + 512 + 6144 * (4 + 0.5)),
                 16 * TOKEN / 2 * 4);
}

static void shared_and_windowed_blocks_count_once(void **state)
{
    (void)state;
    /* 48 tokens of the prefix are three whole blocks; each has one more of its own. */
    expect_bytes(HEAD "return make(dbo.batch { requests = {\n"
                      "  { num_scheduled = 1, num_computed = 50, prefix = 'p', prefix_len = 48 },\n"
                      "  { num_scheduled = 1, num_computed = 50, prefix = 'p', prefix_len = 48 } } "
                      "})\n",
                 0, WEIGHTS, (3 + 1 + 1) * 16 * TOKEN * 4);
    /* Layers 0 and 2 see 32 tokens. */
    expect_bytes(HEAD "small.window, small.window_every = 32, 2\n"
                      "return make(dbo.decode { num_tokens = 2, context_len = 100 })\n",
                 0, WEIGHTS, 2 * (2 * 2 + 2 * 7) * 16 * TOKEN);
}

/* A GPU of 0.1 GB: 100 requests of 5001 tokens are 0.26 GB in four layers. */
#define TIGHT                                                               \
    "local e = make(dbo.decode { num_tokens = 100, context_len = 5000 },\n" \
    "  { hardware = { base = 'H800', name = 'tiny', mem_gb = 0.1 }"

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    dbo_outcome outcome = {0};
    const dbo_simulate_options options = {0};
    assert_int_equal(load(HEAD TIGHT " }) return e\n", &e, &err), DBO_OK);
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_REFUSED);
    assert_string_equal(err.message, "rank 0 needs 0.3 GB of memory (weights 0.0, KV cache 0.3, "
                                     "what a step takes), but tiny has 0.1");
    assert_string_equal(err.hint, "Use more GPUs, fewer tokens or shorter contexts; or set "
                                  "check_memory = false.");
    dbo_experiment_fini(&e);
    assert_int_equal(load(HEAD TIGHT ", check_memory = false }) return e\n", &e, &err), DBO_OK);
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_OK);
    assert_false(dbo_footprint_fits(outcome.result.footprint));
    dbo_strbuf text = {0};
    dbo_result_memory(&outcome.result, 200, &text);
    assert_non_null(strstr(dbo_strbuf_text(&text), "of 0.1 GB: it does not fit\n"));
    dbo_strbuf_fini(&text);
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&e);
}

/* What a step takes is known afterwards and counts, too. */
static void the_step_counts(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    dbo_outcome outcome = {0};
    const dbo_simulate_options options = {0};
    const char *text = HEAD "return make(dbo.decode { num_tokens = 64 })\n";
    assert_int_equal(load(text, &e, &err), DBO_OK);
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_OK);
    assert_true(outcome.split);
    const dbo_footprint f = outcome.footprint;
    assert_true(f.step_bytes == (double)outcome.result.memory_on->peak_reserved_bytes);
    assert_true(f.step_bytes > 0);
    dbo_outcome_fini(&outcome);
    /* Room for all but a half of it, and then for all. */
    e.hardware.mem_gb = (dbo_footprint_bytes(&f) - f.step_bytes / 2) / 1e9;
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_REFUSED);
    assert_non_null(strstr(err.message, "step 0."));
    e.hardware.mem_gb = (dbo_footprint_bytes(&f) + 1) / 1e9;
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_OK);
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_summed),
        cmocka_unit_test(shared_and_windowed_blocks_count_once),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_step_counts),
    };
    return cmocka_run_group_tests_name("footprint", tests, NULL, NULL);
}
