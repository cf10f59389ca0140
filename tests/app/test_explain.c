/* test_explain.c: `dbo explain` knows every word that the program prints, and says the nearest. */
#include "app/bench/bench_report.h"
#include "app/say/explain.h"
#include "app/say/fault_text.h"
#include "core/base/field.h"
#include "core/decide/config.h"
#include "core/decide/vote.h"
#include "core/layer/model_spec.h"
#include "core/program/program.h"
#include "core/seam/op.h"
#include "core/trace/findings.h"
#include "core/trace/metrics.h"
#include "core/trace/split_cost.h"
#include "lab/experiment/experiment.h"
#include "lab/faults/faults.h"
#include "viz/text/view.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static dbo_strbuf text;

static void expect(const char *word, const char *section)
{
    dbo_error err = {0};
    dbo_strbuf_clear(&text);
    if (dbo_explain(word, 80, &text, &err) != DBO_OK)
        fail_msg("%s: %s", word, err.message);
    if (!strstr(dbo_strbuf_text(&text), section))
        fail_msg("%s: no '%s' in\n%s", word, section, dbo_strbuf_text(&text));
}

static void every_table_is_explained(void **state)
{
    (void)state;
    uint32_t count = 0;
    const dbo_field *keys = dbo_config_fields(&count);
#define EXPECT_REASON(enumerator, name, what) expect(name, "(reasons of a decision)");
    DBO_VOTE_REASON_MAP(EXPECT_REASON)
#undef EXPECT_REASON
#define EXPECT_MEASURE(name, unit, what) expect(#name, "(measures of a result)");
    DBO_METRIC_MAP(EXPECT_MEASURE)
#undef EXPECT_MEASURE
#define EXPECT_COST(name, what) expect(#name, "(parts of the cost of splitting)");
    DBO_SPLIT_COST_MAP(EXPECT_COST)
#undef EXPECT_COST
    for (int kind = 0; kind < DBO_KIND_COUNT; kind++)
        expect(dbo_op_kind_name((dbo_op_kind)kind), "(kinds of ops)");
    for (uint32_t i = 0; i < count; i++) {
        expect(keys[i].key, "(keys of the configuration)");
        if (keys[i].type == DBO_FIELD_U32 || keys[i].type == DBO_FIELD_BOOL)
            assert_non_null(strstr(dbo_strbuf_text(&text), "; default "));
    }
    expect("dbo_decode_token_threshold", "default 32");
}

/* Separated by '|'. */
static const char screen_words[] =
    "Model|Cluster|Batch|Config|Decision|Memory|Warning|KV cache|weights|split|no "
    "split|padding|DBO off|DBO on|DP|TP|EP|"
    "decode|prefill|requests|context|layers|rank|ranks|graph|graphs|rules|schedule|executor|"
    "whole batch|waits|ubatch 0|ubatch 1|ubatches|exposed|"
    "exposed: bytes move, nothing computes|Comp:|Comm:|Order:|as issued|send|recv|D₀ send|"
    "C₁ recv|A0₀|A1₁|MLP₀|S₁|D_1|A0_1|speed-up|turn|issues|hands over|layer 3|steady state|"
    "with the documents' labels|with 0 and 1 exchanged|stream 2|"
    "cost of splitting, before any overlap|threshold|bucket|allowed|wanted|kind|runs|last one|"
    "num_reqs|max_query_len|query_start_loc|seq_lens|batch.num_tokens|batch.context_len|"
    "batch.jitter_us|model.layers|hardware.sms|costs.D|costs.A|parallel_config.enable_dbo|"
    "prompt_len|num_scheduled|num_computed|blocks|prefix|prefix_len";

/* What stands on the screens: rows, lanes, legend, headings, values of the config, instructions,
 * findings, faults, keys of scripts; as it stands there. */
static void every_word_of_the_screens_is_explained(void **state)
{
    (void)state;
    for (const char *at = screen_words; *at;) {
        char word[64];
        size_t length = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        expect(word, "(");
        at += length + (at[length] == '|');
    }
#define EXPECT_METRIC(name, unit, what) expect(what, #name " (");
    DBO_METRIC_MAP(EXPECT_METRIC)
#undef EXPECT_METRIC
#define EXPECT_PART(name, what) expect(what, #name " (");
    DBO_SPLIT_COST_MAP(EXPECT_PART)
#undef EXPECT_PART
    for (int kind = DBO_LANE_COMPUTE; kind <= DBO_LANE_HOST; kind++) {
        const dbo_lane lane = {.kind = (dbo_lane_kind)kind,
                               .number = kind == DBO_LANE_STREAM ? 3 : 0};
        dbo_strbuf name = {0};
        dbo_lane_name(&lane, false, &name);
        expect(dbo_strbuf_text(&name), "(words of the screen)");
        dbo_strbuf_fini(&name);
    }
    for (int code = 0; code < DBO_CODE_COUNT; code++)
        expect(dbo_code_name((dbo_code)code), "(instructions of a program)");
    for (int kind = 0; kind < DBO_FINDING_KINDS; kind++)
        expect(dbo_finding_kind_name((dbo_finding_kind)kind), "(findings of a check)");
#define EXPECT_FAULT(enumerator, symbol, name, outcome) expect(name, "(faults)");
    DBO_FAULT_MAP(EXPECT_FAULT)
#undef EXPECT_FAULT
}

/* ---- what runs print ---- */

/* The first `length` bytes without blanks at the end. */
static void expect_name(const char *at, size_t length)
{
    char name[128];
    while (length > 0 && isspace((unsigned char)at[length - 1]))
        length--;
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    expect(name, "(");
}

/* Up to two blanks, or the end of the line. */
static size_t cell(const char *at)
{
    const char *gap = strstr(at, "  ");
    return gap ? (size_t)(gap - at) : strlen(at);
}

/* " == whole batch  ## ubatch 0": how many there were. */
static uint32_t expect_legend(const char *line)
{
    uint32_t count = 0;
    for (const char *at = line + 1; *at; count++) {
        const size_t length = cell(at);
        expect_name(at + 3, length - 3);
        at += length + (at[length] ? 2 : 0);
    }
    return count;
}

/* A run's lanes, legend and rows; the names of its lanes take `gutter` columns. */
static void expect_run(const char *options, size_t gutter)
{
    char command[512], line[1024];
    uint32_t lanes = 0, samples = 0, rows = 0;
    snprintf(command, sizeof command, "'%s' run deepseek-v3-decode --ascii %s", DBO_PROGRAM,
             options);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe)) {
        line[strcspn(line, "\n")] = '\0';
        if (rows > 0 || strstr(line, "DBO off   "))
            rows++;
        if (rows > 1 && line[0] && cell(line) > 0)
            expect_name(line, cell(line));
        else if (line[0] == ' ' && islower((unsigned char)line[1]) && !strstr(line, "us")) {
            expect_name(line + 1, strlen(line) < gutter ? strlen(line) - 1 : gutter - 1);
            lanes++;
        } else if (line[0] == ' ' && line[1] && line[1] == line[2] && ispunct(line[1]))
            samples += expect_legend(line);
    }
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(lanes, 10);
    assert_int_equal(samples, 5);
    assert_true(rows == 0 || rows > 20);
}

static void every_name_of_a_run_is_explained(void **state)
{
    (void)state;
    expect_run("--width 100", 13);
    expect_run("--width 40", 6);
    for (int kind = 0; kind < DBO_KIND_COUNT; kind++)
        expect(dbo_op_kind_symbol((dbo_op_kind)kind), dbo_op_kind_name((dbo_op_kind)kind));
    for (int attention = 0; dbo_attention_names[attention]; attention++)
        expect(dbo_attention_names[attention], "(");
    for (int dtype = 0; dbo_dtype_names[dtype]; dtype++)
        expect(dbo_dtype_names[dtype], "(words of the screen)");
    expect("all-to-all", "(words)"); /* of the head of a run */
    expect("padded", "padding (words");
    expect("experts a GPU", "ep (words)");
    expect("zipf", "(words of a routing)");
    expect("lognormal", "(words of a routing)");
    expect("eplb", "(words of a routing)");
    expect("main", "(words of the screen)");
    expect("form", "(words of the screen)");
    expect("captured", "(words)");
    expect("busiest resource", "(measures of a result)");
    expect("critical path", "(measures of a result)");
}

/* The second line has the heads of the columns; units aside. */
static void expect_heads(FILE *file)
{
    char line[256];
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(fgets(line, sizeof line, file));
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        if (strcmp(word, "us") != 0 && strcmp(word, "ms") != 0)
            expect(word, "(words of ");
    fclose(file);
}

static void every_column_of_a_benchmark_is_explained(void **state)
{
    (void)state;
    static const dbo_bench_sim_result sim;
    dbo_bench_check_result check = {0};
    for (size_t i = 0; i < DBO_BENCH_CHECK_ROWS; i++)
        check.rows[i].workload = "x";
    FILE *file = tmpfile();
    assert_non_null(file);
    dbo_bench_print_sim(file, &(dbo_bench_sim_options){.runs = 1}, &sim);
    expect_heads(file);
    file = tmpfile();
    assert_non_null(file);
    dbo_bench_print_check(file, &(dbo_bench_check_options){.pairs = 1}, &check);
    expect_heads(file);
    expect("fibers", "(words of the benchmarks)");
    expect("threads", "(words of the benchmarks)");
}

static void every_key_of_a_script_is_explained(void **state)
{
    (void)state;
    const dbo_settings tables[] = {dbo_experiment_settings(), dbo_experiment_own_settings(),
                                   dbo_model_settings(), dbo_hardware_settings(),
                                   dbo_fixed_settings()};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (uint32_t i = 0; i < tables[t].num_fields; i++) {
            const dbo_field *field = &tables[t].fields[i];
            expect(field->key, "(keys of ");
            for (uint32_t k = 0; t == 0 && field->choices && field->choices[k]; k++)
                expect(field->choices[k], "(a value of ");
        }
    }
    for (const char *const *key = tables[0].extra; *key; key++)
        expect(*key, "experiment)");
}

/* No term twice in a section; texts are sentences or phrases without loose ends. */
static void terms_are_in_order(void **state)
{
    (void)state;
    dbo_term a, b;
    for (size_t i = 0; dbo_term_at(i, &a); i++) {
        assert_true(a.name[0] != '\0' && strlen(a.text) > 3);
        assert_null(strstr(a.text, "  "));
        assert_false(isspace((unsigned char)a.text[strlen(a.text) - 1]));
        for (size_t k = i + 1; dbo_term_at(k, &b); k++)
            if (strcmp(a.section, b.section) == 0 && strcmp(a.name, b.name) == 0)
                fail_msg("%s is there twice", a.name);
    }
}

static void words_may_be_written_as_one_likes(void **state)
{
    (void)state;
    expect("HAND_OFF", "hand-off (words)");
    expect("handoff", "hand-off (words)");
    expect("Empty-Ubatch", "empty ubatch (rules)");
    expect("D", "dispatch (words)");
    expect("d", "DISPATCH (kinds of ops)");
    expect("hook", "receive hook (words)");
}

/* The line at `at`, and what comes after it. */
static const char *take_line(const char *at, char *line, size_t size)
{
    size_t length = strcspn(at, "\n");
    snprintf(line, size, "%.*s", (int)length, at);
    return at + length + (at[length] == '\n');
}

static void expect_lines_within(const char *what, const char *at, size_t width)
{
    char line[1024];
    while (*at) {
        at = take_line(at, line, sizeof line);
        size_t length = strlen(line);
        if (dbo_text_columns(line) > width)
            fail_msg("%s: wider than %zu: %s", what, width, line);
        if (length > 0 && isspace((unsigned char)line[length - 1]))
            fail_msg("%s: blanks at the end of: %s", what, line);
    }
}

static void lines_keep_to_the_width(void **state)
{
    (void)state;
    dbo_term term;
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        dbo_strbuf_clear(&text);
        assert_int_equal(dbo_explain(term.name, 60, &text, NULL), DBO_OK);
        const char *at = strchr(dbo_strbuf_text(&text), '\n') + 1;
        if (strstr(dbo_strbuf_text(&text), "(keys of the configuration)") ||
            strstr(dbo_strbuf_text(&text), "(a value of "))
            continue; /* lists of values are not broken */
        expect_lines_within(term.name, at, 60);
    }
}

/* The name of a section is the way to all that is in it. */
static void sections_are_listed(void **state)
{
    (void)state;
    dbo_term term;
    expect("faults", "faults (a group of terms)");
    expect("findings of a check", "\n  use_after_free ");
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        dbo_strbuf_clear(&text);
        assert_int_equal(dbo_explain(term.section, 60, &text, NULL), DBO_OK);
        if (!strstr(dbo_strbuf_text(&text), "(a group of terms)"))
            continue; /* a term has that name, too */
        if (!strstr(dbo_strbuf_text(&text), term.name))
            fail_msg("%s is not in its section:\n%s", term.name, dbo_strbuf_text(&text));
        expect_lines_within(term.section, dbo_strbuf_text(&text), 60);
    }
}

/* ---- faults ---- */

/* Every line of the picture is there as it is, four blanks in. */
static void expect_picture(const char *name, const char *picture)
{
    char line[256], drawn[272];
    assert_true(picture[0] != '\0' && picture[strlen(picture) - 1] == '\n');
    expect_lines_within(name, picture, DBO_FAULT_PICTURE_COLUMNS);
    while (*picture) {
        picture = take_line(picture, line, sizeof line);
        snprintf(drawn, sizeof drawn, "\n    %s\n", line);
        if (!strstr(dbo_strbuf_text(&text), drawn))
            fail_msg("%s: the picture's line is not there: %s", name, line);
    }
}

/* "vllm #43547, vllm #28224". */
static void expect_reports(const char *name, const char *reports)
{
    int read = 0;
    unsigned number = 0;
    char repository[32];
    for (const char *at = reports; at; at = at[read] ? at + read + 2 : NULL) {
        read = 0;
        if (sscanf(at, "%31[A-Za-z] #%u%n", repository, &number, &read) != 2 || number == 0 ||
            (at[read] && strncmp(at + read, ", ", 2) != 0))
            fail_msg("%s: not a list of reports: %s", name, reports);
    }
    if (reports && !strstr(dbo_strbuf_text(&text), reports))
        fail_msg("%s: no report in\n%s", name, dbo_strbuf_text(&text));
}

static bool is_sentence(const char *words)
{
    size_t length = words ? strlen(words) : 0;
    return length > 20 && !islower((unsigned char)words[0]) &&
           (words[length - 1] == '.' || strcmp(words + length - 2, ".)") == 0);
}

static void every_fault_has_its_story(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const char *name = dbo_fault_describe((dbo_fault_id)id).name;
        const dbo_fault_text t = dbo_fault_text_of((dbo_fault_id)id);
        char command[128];
        expect(name, "(faults)");
        if (!is_sentence(t.story) || !is_sentence(t.fix) || strlen(t.story) < 150)
            fail_msg("%s: no story or no fix", name);
        snprintf(command, sizeof command, "\n    dbo check --fault %s\n", name);
        if (!strstr(dbo_strbuf_text(&text), command))
            fail_msg("%s: no command in\n%s", name, dbo_strbuf_text(&text));
        expect_picture(name, t.picture);
        expect_reports(name, t.reports);
        expect_lines_within(name, dbo_strbuf_text(&text), 80);
    }
}

/* What one is sent to is there, and is something else. */
static void related_terms_are_explained(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const char *name = dbo_fault_describe((dbo_fault_id)id).name;
        const char *at = dbo_fault_text_of((dbo_fault_id)id).see;
        assert_non_null(at);
        while (*at) {
            char word[64];
            size_t length = strcspn(at, ",");
            snprintf(word, sizeof word, "%.*s", (int)length, at);
            expect(word, "(");
            assert_string_not_equal(word, name);
            at += length + (at[length] ? 2 : 0);
        }
    }
}

/* The scene is a script that says whose it is and what it is about. */
static void every_fault_has_its_scene(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const char *name = dbo_fault_describe((dbo_fault_id)id).name;
        char scene[1024], wanted[128];
        dbo_error err = {0};
        dbo_strbuf words = {0};
        if (dbo_fault_scene(name, scene, sizeof scene, &err) != DBO_OK)
            fail_msg("%s", err.message);
        snprintf(wanted, sizeof wanted, "scripts/faults/%s.lua", name);
        assert_string_equal(scene, wanted);
        dbo_fault_scene_text(scene, &words);
        if (!is_sentence(dbo_strbuf_text(&words)))
            fail_msg("%s begins with: %s", scene, dbo_strbuf_text(&words));
        dbo_strbuf_fini(&words);
    }
    dbo_strbuf none = {0};
    dbo_fault_scene_text("scripts/faults/no-such-fault.lua", &none);
    assert_string_equal(dbo_strbuf_text(&none), "");
    dbo_strbuf_fini(&none);
}

static void faults_may_be_written_as_on_the_command_line(void **state)
{
    (void)state;
    expect("late-rank:rank=0,us=50", "late-rank (faults)");
    assert_non_null(strstr(dbo_strbuf_text(&text), "--fault late-rank:rank=0,us=50\n"));
    assert_non_null(
        strstr(dbo_strbuf_text(&text), "takes:    rank (1 if not given), us (200 if not given)\n"));
    expect("No_Comm_Wait", "no-comm-wait (faults)");
    expect("no-comm-wait:rank=1", "no-comm-wait (faults)"); /* which takes none */
    assert_non_null(strstr(dbo_strbuf_text(&text), "dbo check --fault no-comm-wait\n"));
    assert_null(strstr(dbo_strbuf_text(&text), "takes:"));
    assert_int_equal(dbo_fault_find("vote-skip"), DBO_FAULT_VOTE_SKIP);
    assert_int_equal(dbo_fault_find("vote-skipper"), DBO_FAULT_COUNT);
    assert_int_equal(dbo_fault_find("vote"), DBO_FAULT_COUNT);
}

/* One name in a sentence: 'late-rank', or the finding capture_while_serving of the same words. */
static void expect_nearest(const char *word, dbo_fault_id id)
{
    dbo_error err = {0};
    char near[64] = "";
    assert_int_equal(dbo_explain(word, 80, &text, &err), DBO_INVALID);
    const char *at = strstr(err.message, "did you mean '");
    if (!at || sscanf(at, "did you mean '%63[^']", near) != 1 || dbo_fault_find(near) != id)
        fail_msg("%s: %s", word, err.message);
}

/* A letter is missing. */
static void mistyped_faults_get_the_nearest(void **state)
{
    (void)state;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        const char *name = dbo_fault_describe((dbo_fault_id)id).name;
        char word[80];
        size_t cut = strlen(name) / 2;
        snprintf(word, sizeof word, "%.*s%s", (int)cut, name, name + cut + 1);
        expect_nearest(word, (dbo_fault_id)id);
        snprintf(word, sizeof word, "%.*s%s:rank=1", (int)cut, name, name + cut + 1);
        expect_nearest(word, (dbo_fault_id)id);
    }
}

static void unknown_words_get_the_nearest(void **state)
{
    (void)state;
    dbo_error err = {0};
    assert_int_equal(dbo_explain("tresholt", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'tresholt', did you mean 'threshold'?");
    assert_int_equal(dbo_explain("exposd", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'exposd', did you mean 'exposed'?");
    assert_int_equal(dbo_explain("quux quux", 80, &text, &err), DBO_INVALID);
    assert_string_equal(err.message, "no term 'quux quux'");
    assert_string_equal(err.hint, "dbo explain alone lists them.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_explained),
        cmocka_unit_test(every_word_of_the_screens_is_explained),
        cmocka_unit_test(every_name_of_a_run_is_explained),
        cmocka_unit_test(every_column_of_a_benchmark_is_explained),
        cmocka_unit_test(every_key_of_a_script_is_explained),
        cmocka_unit_test(terms_are_in_order),
        cmocka_unit_test(words_may_be_written_as_one_likes),
        cmocka_unit_test(lines_keep_to_the_width),
        cmocka_unit_test(sections_are_listed),
        cmocka_unit_test(every_fault_has_its_story),
        cmocka_unit_test(related_terms_are_explained),
        cmocka_unit_test(every_fault_has_its_scene),
        cmocka_unit_test(faults_may_be_written_as_on_the_command_line),
        cmocka_unit_test(mistyped_faults_get_the_nearest),
        cmocka_unit_test(unknown_words_get_the_nearest),
    };
    if (chdir(DBO_SOURCE_DIR) != 0) /* scenes are then called as a user of the tree calls them */
        return 1;
    int failed = cmocka_run_group_tests_name("explain", tests, NULL, NULL);
    dbo_strbuf_fini(&text);
    return failed;
}
