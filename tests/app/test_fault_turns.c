/* test_fault_turns.c: faults that leave somebody waiting for ever, by the built command: what is
 * found names who waits for what and why it never comes, whichever executor runs the ubatches. */
#include "tests/support/command.h"

static const char *const executors[] = {"fiber", "thread"};

/* `dbo check ARGUMENTS` finds one thing, of this kind, that says so. */
static void expect_finding(const char *arguments, const char *executor, const char *kind,
                           const char *words)
{
    char line[512], wanted[64];
    snprintf(line, sizeof line, "dbo check %s --set executor=%s --json -", arguments, executor);
    int code = run(line);
    snprintf(wanted, sizeof wanted, "\"kind\": \"%s\"", kind);
    const char *first = strstr(printed, "\"kind\": ");
    if (code != 3 || !first || strncmp(first, wanted, strlen(wanted)) != 0 ||
        strstr(first + 1, "\"kind\": ") || !strstr(printed, words))
        fail_msg("%s: exit code %d, expected one %s with '%s', found: %s%s", line, code, kind,
                 words, printed, complained);
}

static void expect_everywhere(const char *arguments, const char *kind, const char *words)
{
    for (size_t i = 0; i < sizeof executors / sizeof executors[0]; i++)
        expect_finding(arguments, executors[i], kind, words);
}

/* ---- ranks that decide alone ---- */

static void one_rank_decides_alone(void **state)
{
    (void)state;
    expect_everywhere("--fault vote-skip", "deadlock",
                      "rank 1 posted dispatch of ubatch 1, rank 0 never did");
    expect_everywhere("--fault vote-skip:rank=2", "deadlock",
                      "rank 0 posted dispatch of ubatch 1, rank 2 never did");
    expect_finding("--fault vote-skip", "fiber", "deadlock",
                   "rank 0 waits for the counts of dispatch of ubatch 0 (layer 1); ranks 1, 2, 3 "
                   "wait for the counts of dispatch of ubatch 1 (layer 0)");
    expect_everywhere("--fault vote-skip --set all2all_backend=deepep_low_latency", "deadlock",
                      "rank 1 posted dispatch of ubatch 1, rank 0 never did");
    expect_everywhere("--fault vote-skip --set gpus_per_node=8", "deadlock",
                      "rank 0 waits for the counts of dispatch of ubatch 0 (layer 1); ranks 1, 2, "
                      "3, 4 and 3 more wait for the counts of dispatch of ubatch 1 (layer 0)");
    expect_everywhere("--fault vote-skip --set layers=1", "deadlock",
                      "rank 1 posted dispatch of ubatch 1, rank 0 never did");
}

/* Nobody splits but rank 0: it is the others who never post. */
static void one_rank_splits_alone(void **state)
{
    (void)state;
    expect_everywhere("--fault vote-skip --set dbo_decode_token_threshold=4000", "deadlock",
                      "rank 0 posted dispatch of ubatch 1, rank 1 never did");
}

/* The others replay a graph, whose transfers no host posts one by one. */
static void the_others_replay(void **state)
{
    (void)state;
    expect_everywhere("--fault vote-skip:rank=3 --set cudagraph_mode=FULL "
                      "--set all2all_backend=deepep_low_latency",
                      "deadlock", "rank 0 posted dispatch of ubatch 1, rank 3 never did");
}

/* More ranks than are simulated each by itself: ranks keep their own numbers. */
static void folded_ranks_are_called_by_their_names(void **state)
{
    (void)state;
    put_file("sixteen.lua",
             "local dbo = require 'dbo'\n"
             "return dbo.experiment { name = 'sixteen ranks', nodes = 2, gpus_per_node = 8,\n"
             "  data_parallel_size = 16, enable_expert_parallel = true, enable_dbo = true,\n"
             "  layers = 3, all2all_backend = 'deepep_high_throughput',\n"
             "  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },\n"
             "  batch = dbo.decode { num_tokens = 64, context_len = 32 } }\n");
    expect_everywhere("sixteen.lua --fault vote-skip:rank=9", "deadlock",
                      "rank 0 posted dispatch of ubatch 1, rank 9 never did");
    expect_everywhere("sixteen.lua --fault vote-skip", "deadlock",
                      "rank 1 posted dispatch of ubatch 1, rank 0 never did");
}

static void an_idle_rank_drops_out(void **state)
{
    (void)state;
    expect_everywhere("--fault idle-opt-out", "deadlock",
                      "rank 0 posted dispatch of ubatch 1, rank 1 never did");
    expect_everywhere("--fault empty-rank-skips-step", "missed_exchange",
                      "rank 1 is 1 exchange behind: it left step 0");
}

/* ---- rings that stand still ---- */

static void uneven_yields(void **state)
{
    (void)state;
    expect_everywhere("--fault uneven-yields", "deadlock",
                      "ubatch 1 waits for its turn, which comes round the ring from ubatch 0; that "
                      "one has ended after 6 yields, ubatch 1 has yielded 7 times");
}

/* ---- errors inside ubatches ---- */

/* Where in its layer ubatch `failing` frees what nobody has allocated. */
enum { AT_FIRST, IN_THE_MIDDLE, AT_LAST, PLACES };

static void put_scene(uint32_t count, uint32_t failing, uint32_t layers, int place)
{
    char text[1024], error[64];
    snprintf(error, sizeof error, "  if u.id == %u then u.free('scratch') end\n", failing);
    snprintf(text, sizeof text,
             "local dbo = require 'dbo'\n"
             "local broken = dbo.schedule { name = 'broken', num_ubatches = %u,\n"
             "  layer = function(u)\n%s"
             "  u.op('A0') u.op('A1')\n"
             "  local d = u.post('dispatch')\n"
             "  u.yield() u.finish(d) u.op('MLP')\n%s"
             "  u.yield()\n%s end }\n"
             "return dbo.experiment { name = 'one ubatch fails', gpus_per_node = 2,\n"
             "  enable_expert_parallel = true, enable_dbo = false, ubatch_size = %u,\n"
             "  layers = %u, all2all_backend = 'deepep_low_latency', schedule = broken,\n"
             "  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },\n"
             "  batch = dbo.decode { num_tokens = 96, context_len = 32 } }\n",
             count, place == AT_FIRST ? error : "", place == IN_THE_MIDDLE ? error : "",
             place == AT_LAST ? error : "", count, layers);
    put_file("scene.lua", text);
}

#define REFUSED "FREE of buffer scratch, which has no memory of the program's"

/* One sentence, of the ubatch that failed, and nothing that a checker would find. */
static void expect_one_error(const char *script, const char *executor, uint32_t failing)
{
    char line[256], words[160];
    snprintf(line, sizeof line, "dbo check %s --set executor=%s", script, executor);
    snprintf(words, sizeof words, "ubatch %u: program ", failing);
    expect_sentence(line, 1, words);
    assert_non_null(strstr(complained, REFUSED));
    unwrap();
    assert_non_null(strstr(printed, "the run ended with an error"));
    assert_null(strstr(printed, "missing:"));
    assert_null(strstr(printed, "deadlock"));
}

static void fail_everywhere(uint32_t count, const char *executor)
{
    for (uint32_t failing = 0; failing < count; failing++)
        for (int place = 0; place < PLACES; place++) {
            char words[256], waiting[32] = "";
            put_scene(count, failing, 3, place);
            expect_one_error("scene.lua", executor, failing);
            for (uint32_t u = 0; u < count; u++)
                if (u != failing)
                    snprintf(waiting + strlen(waiting), sizeof waiting - strlen(waiting), "%s%u",
                             waiting[0] ? ", " : "", u);
            snprintf(words, sizeof words,
                     "ubatch %u has failed (program broken: " REFUSED
                     ") and never released its siblings: ubatch %s waits for a turn",
                     failing, waiting);
            expect_finding("scene.lua --fault ubatch-error-parks-siblings", executor, "deadlock",
                           words);
        }
}

static void an_error_parks_the_siblings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof executors / sizeof executors[0]; i++) {
        expect_finding("--fault ubatch-error-parks-siblings", executors[i], "deadlock",
                       "ubatch 1 has failed (program an-error-in-ubatch-1: " REFUSED
                       ") and never released its siblings: ubatch 0 waits for a turn that nobody "
                       "will give");
        expect_one_error(DBO_SOURCE_DIR "/scripts/faults/ubatch-error-parks-siblings.lua",
                         executors[i], 1);
        fail_everywhere(2, executors[i]);
        fail_everywhere(3, executors[i]);
    }
}

/* The last that lives leaves nobody behind: the fault makes no difference. */
static void an_error_of_the_last_parks_nobody(void **state)
{
    (void)state;
    put_scene(2, 1, 1, AT_LAST);
    for (size_t i = 0; i < sizeof executors / sizeof executors[0]; i++)
        expect_one_error("scene.lua --fault ubatch-error-parks-siblings", executors[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_decides_alone),
        cmocka_unit_test(one_rank_splits_alone),
        cmocka_unit_test(the_others_replay),
        cmocka_unit_test(folded_ranks_are_called_by_their_names),
        cmocka_unit_test(an_idle_rank_drops_out),
        cmocka_unit_test(uneven_yields),
        cmocka_unit_test(an_error_parks_the_siblings),
        cmocka_unit_test(an_error_of_the_last_parks_nobody),
    };
    return cmocka_run_group_tests_name("fault_turns", tests, make_folder, remove_folder);
}
