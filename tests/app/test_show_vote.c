/* test_show_vote.c: what follows from a vote, as `dbo show vote` says it, in full: ranks at, below
 * and beyond thresholds, capture sizes, empty ubatches, by both sets of rules. */
#include "app/lua/lua_load.h"
#include "app/show/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_SETS 3

static const struct {
    const char *sets[MAX_SETS], *derived;
} cases[] = {
    {{"all2all_backend=deepep_low_latency", "batch.num_tokens=64,33"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  allowed    by every rank\n"
     "  threshold  the smallest rank has 33 tokens, not below 32, the decode threshold\n"
     "  bucket     64, the smallest capture size from 64 on\n"
     "  decision   split (ok): the step is split\n"
     "  graph      FULL\n"
     "  runs       64 tokens on ranks 0-1\n"},
    {{"batch.num_tokens=32,40"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  allowed    by every rank\n"
     "  threshold  the smallest rank has 32 tokens, not below 32, the decode threshold\n"
     "  bucket     40, the smallest capture size from 40 on\n"
     "  decision   split (ok): the step is split\n"
     "  graph      FULL\n"
     "  runs       40 tokens on ranks 0-1\n"},
    {{"batch.num_tokens=31,40"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  allowed    by every rank\n"
     "  threshold  the smallest rank has 31 tokens, below 32, the decode threshold\n"
     "  decision   no split (threshold): the smallest rank has fewer tokens than the "
     "threshold\n"
     "  graph      FULL\n"
     "  runs       40 tokens on ranks 0-1\n"},
    {{"batch.num_tokens=40,100"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  allowed    by every rank\n"
     "  threshold  the smallest rank has 40 tokens, not below 32, the decode threshold\n"
     "  bucket     104, the smallest capture size from 100 on; the smallest rank's last ubatch "
     "would be empty in it: eager\n"
     "  decision   split (ok): the step is split\n"
     "  graph      NONE\n"
     "  runs       100 tokens on ranks 0-1\n"},
    {{"all2all_backend=deepep_high_throughput", "batch.num_tokens=64,100"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  allowed    by every rank\n"
     "  threshold  the smallest rank has 64 tokens, not below 32, the decode threshold\n"
     "  bucket     104, the smallest capture size from 100 on; not used: only a uniform decode "
     "over a capturable all-to-all is\n"
     "  decision   split (ok): the step is split\n"
     "  graph      NONE\n"
     "  runs       100 tokens on ranks 0-1\n"},
    {{"rules=v1", "batch.num_tokens=64,100"},
     "  wanted     by every rank (its own threshold and veto)\n"
     "  last one   of 104 padded tokens the smallest rank has 64: its last ubatch is not "
     "empty\n"
     "  decision   split (ok): the step is split\n"
     "  graph      FULL\n"
     "  runs       104 tokens on ranks 0-1\n"},
    {{"rules=v1", "batch.num_tokens=40,100"},
     "  wanted     by every rank (its own threshold and veto)\n"
     "  last one   of 104 padded tokens the smallest rank has 40: its last ubatch is empty, so "
     "nobody splits\n"
     "  decision   no split (empty_ubatch): the last ubatch of a rank would hold only padding\n"
     "  graph      FULL\n"
     "  runs       104 tokens on ranks 0-1\n"},
    {{"rules=v1", "batch.num_tokens=20,100"},
     "  wanted     not by every rank: one 0 in row 2 decides\n"
     "  decision   no split (threshold): the smallest rank has fewer tokens than the "
     "threshold\n"
     "  graph      FULL\n"
     "  runs       104 tokens on ranks 0-1\n"},
    {{"rules=v1", "enable_dbo=false", "batch.num_tokens=40,100"},
     "  wanted     not by every rank: one 0 in row 2 decides\n"
     "  decision   no split (off): dual batch overlap is not enabled\n"
     "  graph      FULL\n"
     "  runs       104 tokens on ranks 0-1\n"},
    {{"enable_dbo=false", "batch.num_tokens=40,100"},
     "  kind       every request runs 1 token(s), the decode query length: uniform decode\n"
     "  decision   no split (off): dual batch overlap is not enabled\n"
     "  graph      FULL\n"
     "  runs       104 tokens on ranks 0-1\n"},
};

static void each_rank_derives_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dbo_experiment e;
        dbo_outcome outcome;
        dbo_strbuf text = {0};
        dbo_error err = {0};
        const dbo_simulate_options none = {0};
        dbo_load_options options = {.sets = cases[i].sets};
        while (options.num_sets < MAX_SETS && cases[i].sets[options.num_sets])
            options.num_sets++;
        if (dbo_experiment_load(&e,
                                DBO_SOURCE_DIR "/scripts/workloads/deepseek-v2-lite-two-ranks.lua",
                                &options, &err) != DBO_OK ||
            dbo_simulate(&e, &none, &outcome, &err) != DBO_OK)
            fail_msg("%s", err.message);
        dbo_show_vote(&outcome, &text);
        const char *derived = strstr(dbo_strbuf_text(&text), "Every rank derives\n");
        assert_non_null(derived);
        assert_string_equal(derived + strlen("Every rank derives\n"), cases[i].derived);
        dbo_strbuf_fini(&text);
        dbo_outcome_fini(&outcome);
        dbo_experiment_fini(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_derives_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
