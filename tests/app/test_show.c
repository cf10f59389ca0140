/* test_show.c: `dbo show`: the tables say what the engine decided. */
#include "app/show/show.h"
#include "tests/support/simulated.h"

/* ---- vote ---- */

static void vote_of_equal_ranks(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4"};
    simulated s;
    simulate(&s, "deepseek-v3-decode.lua", sets, NUM(sets));
    dbo_show_vote(&s.outcome, &s.text);
    expect(&s, "The vote of 128 ranks, rules seed: 7 rows");
    expect(&s, "ranks 0-127\n0 num_tokens                     128\n");
    expect(&s, "1 cudagraph_mode              2 FULL\n");
    expect(&s, "6 allow_skip_drafts                1\n");
    expect(&s, "uniform decode");
    expect(&s, "the smallest rank has 128 tokens, not below 32, the decode threshold");
    expect(&s, "decision   split (ok)");
    expect(&s, "runs       128 tokens on ranks 0-127\n");
    simulated_fini(&s);
}

/* Columns of unequal ranks, the threshold on the smallest one, a bucket that it does not fill. */
static void vote_of_unequal_ranks(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4",
                                       "nodes=1",
                                       "model.num_experts=8",
                                       "model.topk_groups=0",
                                       "data_parallel_size=8",
                                       "batch.num_tokens=64,64,40,64,64,64,33,64"};
    simulated s;
    simulate(&s, "deepseek-v3-decode.lua", sets, NUM(sets));
    dbo_show_vote(&s.outcome, &s.text);
    expect(&s, "ranks 0-1        rank 2     ranks 3-5        rank 6        rank 7\n"
               "0 num_tokens                      64            40            64            33"
               "            64\n");
    expect(&s, "the smallest rank has 33 tokens, not below 32");
    expect(&s, "bucket     64, the smallest capture size from 64 on\n");
    expect(&s, "64 tokens on ranks 0-7");
    simulated_fini(&s);

    const char *const below[] = {sets[0], sets[1], sets[2],
                                 sets[3], sets[4], "batch.num_tokens=64,64,40,64,64,64,31,64"};
    simulate(&s, "deepseek-v3-decode.lua", below, NUM(below));
    dbo_show_vote(&s.outcome, &s.text);
    expect(&s, "31 tokens, below 32, the decode threshold");
    expect(&s, "decision   no split (threshold)");
    simulated_fini(&s);

    const char *const v1[] = {sets[0],   sets[1], sets[2],
                              sets[3],   sets[4], "batch.num_tokens=128,64,64,64,64,64,64,64",
                              "rules=v1"};
    simulate(&s, "deepseek-v3-decode.lua", v1, NUM(v1));
    dbo_show_vote(&s.outcome, &s.text);
    expect(&s, "rules v1: 4 rows");
    expect(&s, "its last ubatch is empty, so nobody splits");
    expect(&s, "decision   no split (empty_ubatch)");
    simulated_fini(&s);
}

/* ---- slices, metadata ---- */

static void cuts(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4", "batch.num_tokens=10000",
                                       "batch.prompt_len=4096"};
    simulated s;
    simulate(&s, "deepseek-v3-prefill.lua", sets, NUM(sets));
    dbo_show_slices(&s.outcome, &s.text);
    expect(&s, "ranks 0-127: 10000 tokens, padded to 10000\n");
    expect(&s, "  0       [0, 2)          [0, 5000)       [0, 2)          [0, 5000)       5000\n");
    expect(&s, "  1       [1, 3)          [5000, 10000)   [1, 3)          [5000, 10000)   5000\n");
    dbo_strbuf_clear(&s.text);
    dbo_show_metadata(&s.outcome, &s.text);
    static const char head[] = "A request that is cut has a part in both ubatches: the earlier one "
                               "sees its sequence end at the cut.\n\nranks 0-127: ";
    assert_memory_equal(dbo_strbuf_text(&s.text), head, strlen(head));
    expect(&s, "ubatch 0: requests [0, 2), 2 real; tokens [0, 5000), 5000 real; max_query_len "
               "4096\n    query_start_loc [0, 4096, 5000]  (3)\n    seq_lens        [4096, 904]");
    expect(&s, "query_start_loc [0, 3192, 5000]  (3)\n    seq_lens        [4096, 1808]  (2)\n"
               "    slots           [5000, 10000) of");
    simulated_fini(&s);
}

/* Of a long array the first six and the last two numbers are shown; of ranks alike six stretches.
 */
static void long_cuts_are_shortened(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4", "nodes=2", "data_parallel_size=16",
                                       "batch.prompt_len=300",
                                       ("batch.num_tokens=3000,3300,3000,3300,3000,3300,3000,3300,"
                                        "3000,3300,3000,3000,3300,3300,3000,"
                                        "3300")};
    simulated s;
    simulate(&s, "deepseek-v3-prefill.lua", sets, NUM(sets));
    dbo_show_slices(&s.outcome, &s.text);
    expect(&s, "ranks 0, 2, 4, 6, 8, 10-11, ...: 3000 tokens");
    expect(&s, "ranks 1, 3, 5, 7, 9, 12-13, ...: 3300 tokens");
    dbo_strbuf_clear(&s.text);
    dbo_show_metadata(&s.outcome, &s.text);
    /* the first ubatch has 1650 of 3300: five prompts and half of the sixth */
    expect(&s, "query_start_loc [0, 300, 600, 900, 1200, 1500, 1650]  (7)");
    simulated_fini(&s);

    static const char *const more[] = {"layers=4", "nodes=2", "data_parallel_size=16",
                                       "batch.prompt_len=300",
                                       ("batch.num_tokens=6300,6300,6300,6300,6300,6300,6300,6300,"
                                        "6300,6300,3300,6300,6300,6300,6300,6300")};
    simulate(&s, "deepseek-v3-prefill.lua", more, NUM(more));
    dbo_show_slices(&s.outcome, &s.text);
    expect(&s, "ranks 0-9, 11-15: 6300 tokens");
    dbo_strbuf_clear(&s.text);
    dbo_show_metadata(&s.outcome, &s.text);
    expect(&s, "query_start_loc [0, 300, 600, 900, 1200, 1500, ..., 3000, 3150]  (12)");
    simulated_fini(&s);

    static const char *const six[] = {"layers=4", "nodes=2", "data_parallel_size=16",
                                      ("batch.num_tokens=3000,3300,3000,3300,3000,3300,3000,3300,"
                                       "3000,3300,3000,3300,3300,3300,3300,3300")};
    simulate(&s, "deepseek-v3-prefill.lua", six, NUM(six));
    dbo_show_slices(&s.outcome, &s.text);
    expect(&s, "ranks 0, 2, 4, 6, 8, 10: 3000 tokens");
    expect(&s, "ranks 1, 3, 5, 7, 9, 11-15: 3300 tokens");
    simulated_fini(&s);
}

static void cut_of_a_step_that_is_whole(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4", "batch.num_tokens=8"};
    simulated s;
    simulate(&s, "deepseek-v3-decode.lua", sets, NUM(sets));
    dbo_show_slices(&s.outcome, &s.text);
    expect(&s, "The step is not split (threshold)");
    expect(&s, "  0       [0, 8)          [0, 8) ");
    dbo_strbuf_clear(&s.text);
    dbo_show_metadata(&s.outcome, &s.text);
    static const char head[] = "The step is not split (threshold)";
    assert_memory_equal(dbo_strbuf_text(&s.text), head, strlen(head));
    assert_null(strstr(dbo_strbuf_text(&s.text), "A request that is cut"));
    dbo_strbuf_clear(&s.text);
    dbo_show_graph(&s.outcome, &s.text);
    expect(&s, "       8  whole                   this step");
    expect(&s, "     128  split, if all ranks do\n");
    simulated_fini(&s);
}

/* ---- graphs ---- */

static void graphs(void **state)
{
    (void)state;
    static const char *const sets[] = {"layers=4"};
    simulated s;
    simulate(&s, "deepseek-v3-decode.lua", sets, NUM(sets));
    assert_int_equal(s.outcome.on.num_graphs, 1);
    /* an ubatch's embedding and layers: dense ones of 3 ops; A0 A1 MLP S, two sends, two receives
     */
    assert_int_equal(s.outcome.on.graphs[0].num_nodes, 2 * (1 + 3 * 3 + 8));
    dbo_show_graph(&s.outcome, &s.text);
    expect(&s, "1 captured, 36 nodes, ");
    expect(&s, "     128  split in 2              this step      36 ");
    simulated_fini(&s);
    simulate(&s, "deepseek-v3-prefill.lua", sets, NUM(sets));
    dbo_show_graph(&s.outcome, &s.text);
    expect(&s, "0 captured, 0 nodes, 0.0 MiB in their pool\ncudagraph_mode is NONE");
    simulated_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vote_of_equal_ranks),
        cmocka_unit_test(vote_of_unequal_ranks),
        cmocka_unit_test(cuts),
        cmocka_unit_test(long_cuts_are_shortened),
        cmocka_unit_test(cut_of_a_step_that_is_whole),
        cmocka_unit_test(graphs),
    };
    return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
