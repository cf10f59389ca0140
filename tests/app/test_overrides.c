/* test_overrides.c: who says a setting later overrides who said it before, and what replaces a
 * whole leaves nothing of it. */
#include "app/lua/lua_load.h"
#include "tests/support/folder.h"

#define SCHEDULE \
    "local s = dbo.schedule { name = 'mine', layer = function(u) u.op('A0') u.yield() end }\n"

static void later_ways_override(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    static const char text[] =
        "local dbo = require 'dbo'\n" SCHEDULE
        "local e = dbo.experiment { costs = dbo.fixed { A = 9 }, gpus_per_node = 2, layers = 3,\n"
        "  parallel_config = { enable_dbo = true }, schedule = s, seed = 3,\n"
        "  batch = dbo.prefill { num_tokens = 90, prompt_len = 40 } }\n"
        "dbo.run(e, { enable_dbo = false, seed = 4, ['batch.num_tokens'] = 30 })\n"
        "return e\n";
    const char *sets[] = {"nodes=2", "nodes=3", "seed=8"}; /* the last --set counts */
    const dbo_load_options options = {.sets = sets, .num_sets = 3};
    put_file("t.lua", text);
    setenv("DBO_SET", "  seed=6 nodes=9  ", 1);
    dbo_status status = dbo_experiment_load(&e, path_of("t.lua").text, &options, &err);
    unsetenv("DBO_SET");
    if (status != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(e.seed, 8);
    assert_int_equal(e.nodes, 3);
    assert_true(e.config.enable_dbo && e.schedule);
    assert_int_equal(e.batch.ranks[5]->count, 3); /* prompts of 40, 40 and 10 */
    dbo_experiment_fini(&e);
}

/* Keeps what a script has run. */
typedef struct ran {
    uint32_t count, kv_lora_rank, context_len;
} ran;

static dbo_status look(void *self, const dbo_experiment *e, uint64_t fault_reached, dbo_error *err)
{
    (void)fault_reached;
    (void)err;
    ran *seen = self;
    seen->count++;
    seen->kv_lora_rank = e->model.kv_lora_rank;
    seen->context_len = (uint32_t)e->batch.ranks[0]->requests[0].num_computed;
    return DBO_OK;
}

/* A preset is described anew, not over what stood there; so is a batch. */
static void whole_things_replace(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    ran seen = {0};
    static const char text[] =
        "local dbo = require 'dbo'\n"
        "local e = dbo.experiment { model = { base = 'deepseek-v2-lite', num_shared = 5 },\n"
        "  hardware = 'H800', gpus_per_node = 2, layers = 3, check_memory = false,\n"
        "  batch = dbo.decode { num_tokens = 6, context_len = 77 } }\n"
        "dbo.run(e, { model = 'qwen3-30b-a3b', batch = dbo.decode { num_tokens = 5 } })\n"
        "return e\n";
    const dbo_load_options options = {.ran = look, .ran_self = &seen};
    put_file("t.lua", text);
    if (dbo_experiment_load(&e, path_of("t.lua").text, &options, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.kv_lora_rank, 0); /* which the preset does not give */
    assert_int_equal(seen.context_len, 0);
    assert_int_equal(e.model.num_shared, 5);
    assert_int_equal(e.batch.ranks[0]->requests[0].num_computed, 77);
    dbo_experiment_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_ways_override),
        cmocka_unit_test(whole_things_replace),
    };
    return cmocka_run_group_tests_name("overrides", tests, make_folder, remove_folder);
}
