/* test_fault_text.c: the list of faults, as text and as JSON, and what the command does with it. */
#include "app/say/fault_text.h"
#include "lab/files/json.h"
#include "tests/support/command.h"

#include <ctype.h>
#include <jansson.h>

/* Rows begin at the left margin, with the name; their outcome and their words follow, in columns
 * where there is room for them. */
static void the_list_has_every_fault_once(void **state)
{
    (void)state;
    for (uint32_t width = 40; width <= 120; width += 20) {
        dbo_strbuf list = {0};
        int rows = 0;
        dbo_fault_list(width, &list);
        for (const char *at = dbo_strbuf_text(&list); *at; at += strcspn(at, "\n") + 1) {
            char line[256];
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
            if (dbo_text_columns(line) > width || isspace((unsigned char)line[strlen(line) - 1]))
                fail_msg("%u columns: '%s'", width, line);
            if (isspace((unsigned char)line[0]))
                continue;
            const dbo_fault_info info = dbo_fault_describe((dbo_fault_id)rows++);
            dbo_strbuf outcome = {0};
            dbo_fault_outcome_text(info.outcome, &outcome);
            assert_memory_equal(line, info.name, strlen(info.name));
            assert_non_null(strstr(line + strlen(info.name), dbo_strbuf_text(&outcome)));
            dbo_strbuf_fini(&outcome);
        }
        assert_int_equal(rows, DBO_FAULT_COUNT);
        dbo_strbuf_fini(&list);
    }
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("no \"%s\"", key);
    return value;
}

/* A list of strings as the text "a, b". */
static void join(const json_t *list, dbo_strbuf *out)
{
    dbo_strbuf_clear(out);
    for (size_t i = 0; i < json_array_size(list); i++)
        dbo_strbuf_printf(out, "%s%s", i > 0 ? ", " : "",
                          json_string_value(json_array_get(list, i)));
}

static void expect_fault(const json_t *f, dbo_fault_id id)
{
    const dbo_fault_info info = dbo_fault_describe(id);
    const char *reports = dbo_fault_text_of(id).reports;
    char scene[256];
    dbo_strbuf got = {0}, wanted = {0};
    assert_string_equal(json_string_value(member(f, "name")), info.name);
    assert_string_equal(json_string_value(member(f, "what")), dbo_fault_text_of(id).what);
    dbo_fault_outcome_text(info.outcome, &wanted);
    join(member(f, "outcome"), &got);
    assert_string_equal(dbo_strbuf_text(&got), dbo_strbuf_text(&wanted));
    join(member(f, "reports"), &got);
    assert_string_equal(dbo_strbuf_text(&got), reports ? reports : "");
    snprintf(scene, sizeof scene, DBO_SOURCE_DIR "/scripts/faults/%s.lua", info.name);
    assert_string_equal(json_string_value(member(f, "scene")), scene);
    bool takes = id == DBO_FAULT_VOTE_SKIP || id == DBO_FAULT_LATE_RANK;
    assert_int_equal(json_array_size(member(f, "parameters")) > 0, takes);
    dbo_strbuf_fini(&got);
    dbo_strbuf_fini(&wanted);
}

static void the_document_has_every_fault(void **state)
{
    (void)state;
    dbo_json *document;
    dbo_error err = {0};
    assert_int_equal(run("unset DBO_SCRIPTS_DIR; dbo faults --json -"), 0);
    assert_int_equal(dbo_json_parse(&document, printed, strlen(printed), NULL, &err), DBO_OK);
    const json_t *faults = member(dbo_json_tree(document), "faults");
    assert_int_equal(json_array_size(faults), DBO_FAULT_COUNT);
    for (int id = 0; id < DBO_FAULT_COUNT; id++)
        expect_fault(json_array_get(faults, (size_t)id), (dbo_fault_id)id);
    const json_t *takes = member(json_array_get(faults, DBO_FAULT_LATE_RANK), "parameters");
    assert_int_equal(json_array_size(takes), 2);
    assert_string_equal(json_string_value(member(json_array_get(takes, 0), "name")), "rank");
    assert_int_equal(json_integer_value(member(json_array_get(takes, 0), "default")), 1);
    assert_string_equal(json_string_value(member(json_array_get(takes, 1), "name")), "us");
    assert_int_equal(json_integer_value(member(json_array_get(takes, 1), "default")), 200);
    dbo_json_destroy(document);
}

static void the_command_prints_and_writes(void **state)
{
    (void)state;
    assert_int_equal(run("dbo faults --json f.json"), 0);
    assert_memory_equal(printed, "vote-skip  ", 11);
    assert_int_equal(run("dbo faults --json - | cmp - f.json && rm f.json"), 0);
    assert_int_equal(run("COLUMNS=60 dbo faults | head -n 1"), 0);
    assert_string_equal(printed, "vote-skip: order\n");
    assert_int_equal(run("COLUMNS=60 dbo explain no-comm-wait | wc -L"), 0);
    assert_in_range(atoi(printed), 50, 130); /* the path of the scene is as long as it is */
    expect_sentence("dbo faults no-comm-wait", 2, "faults takes no arguments, not 'no-comm-wait'");
    expect_sentence("dbo faults --json /no/folder/f.json", 2, "cannot write /no/folder/f.json");
    expect_sentence("dbo explain no-com-wait", 2, "did you mean 'no-comm-wait'?");
    expect_sentence("dbo explain no-com-wait:rank=1", 2, "did you mean 'no-comm-wait'?");
}

/* From the head to the commands; where the scene is and how its line is wrapped, the folder says.
 */
static void a_page_is_whole(void **state)
{
    (void)state;
    static const char page[] =
        "late-rank (faults)\n"
        "  one rank is late\n"
        "\n"
        "  A transfer needs every rank. If one is late between the vote and its first\n"
        "  transfer, its peers stand in theirs until it has posted its own: no byte\n"
        "  moves. Where a profiler draws a transfer from start to end, that looks like\n"
        "  slow communication. Here it is drawn and counted as waiting, never as\n"
        "  communication, and the rank that is waited for is named. (A rank that is late\n"
        "  before the vote is waited for in the vote, and no transfer waits.)\n"
        "\n"
        "    rank 0  |D₀ ~~~~~~~~~####|   ~ waits for rank 1\n"
        "    rank 1  late.....|D₀ ####|   # bytes move\n"
        "\n"
        "  fix:      Look at what holds the late rank up, not at the network.\n"
        "  outcome:  shown: it is no defect; what it does is said\n"
        "            dbo check ends with exit code 0\n"
        "  takes:    rank (1 if not given), us (200 if not given)\n"
        "  see also: waiting_us, exposed_waiting_us, jitter_us, vote\n";
    static const char commands[] = "\n    dbo check --fault late-rank:rank=2\n    dbo run ";
    assert_int_equal(run("dbo explain late-rank:rank=2"), 0);
    char *scene = strstr(printed, "  scene:    ");
    assert_non_null(scene);
    assert_non_null(strstr(scene, commands));
    *scene = '\0';
    assert_string_equal(printed, page);
    assert_int_equal(run("dbo explain no-comm-wait | grep -A1 'outcome:\\|rows:'"), 0);
    assert_string_equal(
        printed, "  outcome:  order: a wait, a block, a turn or a rule is not as it must be; the\n"
                 "            check sees that in what was issued, whatever the times were\n"
                 "            rows: outputs differ from those of the same step without DBO\n"
                 "            dbo check ends with exit code 3\n");
    assert_int_equal(run("COLUMNS=59 dbo explain late-rank | grep -B2 -A3 picture"), 0);
    assert_string_equal(printed, "  is waited for in the vote, and no transfer waits.)\n"
                                 "\n"
                                 "  (a picture that needs a terminal of 60 columns)\n"
                                 "\n"
                                 "  fix:      Look at what holds the late rank up, not at the\n"
                                 "            network.\n");
    assert_int_equal(run("dbo explain event-after-yield | grep reported:"), 0);
    assert_string_equal(printed, "  reported: vllm #38451\n");
    assert_int_equal(run("COLUMNS=60 dbo explain late-rank | grep picture"), 1);
}

/* What the turns of threads come to is printed step by step, below the finding. */
static void an_order_of_steps_is_shown(void **state)
{
    (void)state;
    assert_int_equal(run("dbo check --fault lost-wakeup | sed -n '/signalled/,/^   3/p'"), 0);
    assert_string_equal(
        printed, "           signalled.\n"
                 "\n"
                 "An order of the threads' steps that leads there\n"
                 "lost_wakeup: a signal was given and its receiver sleeps on\n"
                 "   1  runner    dbo_executor_thread_run      starts a thread\n"
                 "   2  ubatch 0  thread_body                  locks\n"
                 "           lock 0\n"
                 "   3  ubatch 0  thread_body                  arrives, signals the runner\n");
    assert_int_equal(run("dbo check --fault no-comm-wait"), 3);
    assert_null(strstr(printed, "An order of the threads' steps"));
}

/* The commands that explain shows come to an end, and show the difference. */
static void runs_that_are_shown_show_it(void **state)
{
    (void)state;
    int shown = 0;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const char *name = dbo_fault_describe((dbo_fault_id)id).name;
        char line[512];
        if (!dbo_fault_text_of((dbo_fault_id)id).by_run)
            continue;
        shown++;
        snprintf(line, sizeof line,
                 "scene=%s/scripts/faults/%s.lua && dbo run $scene >without && "
                 "dbo run $scene --fault %s >with && { cmp -s with without && exit 9 || true; }",
                 DBO_SOURCE_DIR, name, name);
        int code = run(line);
        if (code != 0)
            fail_msg("%s: exit code %d: %s", name, code, complained);
    }
    assert_true(shown > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_has_every_fault_once),
        cmocka_unit_test(the_document_has_every_fault),
        cmocka_unit_test(the_command_prints_and_writes),
        cmocka_unit_test(a_page_is_whole),
        cmocka_unit_test(an_order_of_steps_is_shown),
        cmocka_unit_test(runs_that_are_shown_show_it),
    };
    return cmocka_run_group_tests_name("fault_text", tests, make_folder, remove_folder);
}
