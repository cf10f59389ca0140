/* test_cli_backend.c: dbo run --backend: the same experiment on another machine, and every back end
 * that cannot be had is a sentence. */
#include "tests/support/command.h"

/* Two ranks with 40 and 72 tokens, which split. */
#define EXPERIMENT(more)                                                                 \
    "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 2, layers = 5,\n" \
    "model = 'deepseek-v2-lite', hardware = 'H800', enable_dbo = true,\n"                \
    "enable_expert_parallel = true, " more                                               \
    "\nbatch = dbo.decode { num_tokens = {40, 72}, context_len = 96 } }\n"

#define PATH "DBO_BACKEND_PATH=" DBO_TEST_BACKENDS " "

static void sim_is_the_usual_one(void **state)
{
    (void)state;
    static char usual[sizeof printed];
    put_file("t.lua", EXPERIMENT());
    assert_int_equal(run("dbo run t.lua"), 0);
    strcpy(usual, printed);
    assert_int_equal(run("dbo run t.lua --backend sim"), 0);
    assert_string_equal(printed, usual);
    assert_null(strstr(printed, "Ran on"));
}

/* The test's own takes 1 us for each op and each part of a transfer, with its ranks in threads. */
static void another_runs_the_same(void **state)
{
    (void)state;
    static const char *const more[] = {"", "executor = 'thread',",
                                       "all2all_backend = 'deepep_high_throughput',",
                                       "cudagraph_mode = 'NONE',"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        char script[600];
        snprintf(script, sizeof script, EXPERIMENT("%s"), more[i]);
        put_file("t.lua", script);
        if (run(PATH "dbo run t.lua --backend null --width 90") != 0)
            fail_msg("%s: %s", more[i], complained);
        assert_non_null(strstr(printed, "Ran on   the back end 'null': times are its own\n"));
        unwrap();
        assert_non_null(
            strstr(printed, "split (ok): the step is split; graph NONE, rank 1 runs 72"));
    }
    /* DBO off: four layers of eight parts, a dense one of three, embedding and head */
    put_file("t.lua", EXPERIMENT());
    assert_int_equal(run(PATH "dbo run t.lua --backend null"), 0);
    unwrap();
    assert_null(strstr(printed, "cost of splitting")); /* the simulator's */
    assert_non_null(strstr(printed, "step 37.0 \u00b5s 73.0 \u00b5s "));
}

static void what_cannot_be_had_is_said(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT());
    put_file("libdbo_torn.so", "not a library\n");
    expect_sentence("dbo run t.lua --backend nul", 2, "no back end 'nul': libdbo_nul.so is not in");
    expect_sentence(PATH "dbo run t.lua --backend nul", 2, "did you mean 'null'?");
    expect_sentence(PATH "dbo run t.lua --backend", 2, "--backend");
    expect_sentence(PATH "dbo run t.lua --backend ./null", 2, "a back end is named by");
    expect_sentence(PATH "dbo run t.lua --backend old", 2, "made for version 7 of what a back end");
    expect_sentence(PATH "dbo run t.lua --backend mute", 2, "has no dbo_backend_get");
    expect_sentence(PATH "dbo run t.lua --backend hollow", 2, "gives no 'run'");
    expect_sentence(PATH "dbo run t.lua --backend needy", 2, "dbo_nobody_has_this");
    expect_sentence("DBO_BACKEND_PATH=. dbo run t.lua --backend torn", 2,
                    "cannot be loaded: ./lib");
    expect_sentence(PATH "dbo run t.lua --backend absent", 1, "this machine has no such device");
    put_file("prints.lua", "print('hello')\n");
    expect_sentence(PATH "dbo run prints.lua --backend null", 1, "there is nothing for --backend");
    put_file("sweeps.lua", "local dbo = require 'dbo'\nprint('begins')\n"
                           "dbo.run(dbo.load('t.lua'), {})\n");
    expect_sentence(PATH "dbo run sweeps.lua --backend null", 1,
                    "sweeps.lua:3: dbo.run is simulated: there is nothing for --backend");
}

/* What only a simulated machine can have. */
static void a_real_machine_is_not_told_how_to_be(void **state)
{
    (void)state;
    put_file("t.lua", EXPERIMENT());
    expect_sentence(PATH "dbo run t.lua --backend null --fault late-rank:rank=1,us=30", 1,
                    "the back end 'null' is a real machine: it cannot have a late rank");
    expect_sentence(PATH "dbo run t.lua --backend null --fault no-sm-partition", 1,
                    "it cannot have a machine that is set up wrongly");
    expect_sentence(PATH "dbo run t.lua --backend null --set batch.jitter_us=4", 1,
                    "it cannot have jitter_us");
    expect_sentence(PATH "dbo run t.lua --backend null --set nodes=16 "
                         "--set batch.num_tokens=64",
                    1, "32 ranks asked, the null device runs 1 to 16");
    expect_sentence(PATH "dbo run t.lua --backend null --set transport=nccl", 1,
                    "the null device has no transport 'nccl'");
    assert_int_equal(run(PATH "dbo run t.lua --backend null --set transport=copy"), 0);
    assert_int_equal(run(PATH "dbo run t.lua --backend null --fault unsorted-outputs"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_is_the_usual_one),
        cmocka_unit_test(another_runs_the_same),
        cmocka_unit_test(what_cannot_be_had_is_said),
        cmocka_unit_test(a_real_machine_is_not_told_how_to_be),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
