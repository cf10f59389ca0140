/* test_whole_layer.c: a schedule that leaves work out, does it twice, or reads what has not arrived
 * is not a fast one: refused with a model, and with fixed costs no speed-up is claimed for it. */
#include "app/lua/lua_load.h"
#include "app/say/result_text.h"
#include "lab/world/outcome.h"
#include "tests/support/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dbo-test-whole-XXXXXX";

#define MODEL "model = 'deepseek-v2-lite', hardware = 'H800', layers = 4"
#define NO_SHARED                                                                       \
    "model = { base = 'deepseek-v2-lite', num_shared = 0 }, hardware = 'H800', layers " \
    "= 4"
#define FIXED "costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 }"

/* A schedule of these lines, from line 2 of t.lua on, and an experiment with it. */
static dbo_status load(const char *lines, const char *what, dbo_experiment *out, dbo_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "%s/t.lua", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "local dbo = require 'dbo' local s = dbo.schedule { name = 'mine', layer = "
            "function(u)\n%send }\n"
            "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, enable_dbo "
            "= true, %s,\nschedule = s, batch = dbo.decode { num_tokens = 64 } }\n",
            lines, what);
    assert_int_equal(fclose(file), 0);
    dbo_status status = dbo_experiment_load(out, path, NULL, err);
    unlink(path);
    if (strncmp(err->message, folder, strlen(folder)) == 0)
        memmove(err->message, err->message + strlen(folder) + 1,
                strlen(err->message + strlen(folder) + 1) + 1);
    return status;
}

static void expect_refusal(const char *lines, const char *what, const char *sentence)
{
    dbo_experiment e;
    dbo_error err = {0};
    assert_int_equal(load(lines, what, &e, &err), DBO_REFUSED);
    assert_string_equal(err.message, sentence);
}

static void expect_whole(const char *lines, const char *what)
{
    dbo_experiment e;
    dbo_error err = {0};
    if (load(lines, what, &e, &err) != DBO_OK)
        fail_msg("%s\n%s", err.message, lines);
    assert_string_equal(e.incomplete, "");
    dbo_experiment_fini(&e);
}

/* ---- low latency: no line can be missed ---- */

static const char *const low_latency[] = {
    "u.op('A0')\n",
    "u.op('A1')\n",
    "u.maybe_run_recv_hook()\n",
    "d = u.post('dispatch')\n",
    "u.register_recv_hook(d)\n",
    "u.yield()\n",
    "u.op('MLP')\n",
    "u.maybe_run_recv_hook()\n",
    "c = u.post('combine')\n",
    "u.op('S')\n",
    "u.register_recv_hook(c)\n",
    "u.yield()\n",
};
#define LINES (sizeof low_latency / sizeof low_latency[0])

/* All lines but one (LINES: all); `twice` instead of leaving it out, doubles it. */
static void write_lines(size_t changed, bool twice, char *out, size_t size)
{
    snprintf(out, size, "local d, c\n");
    for (size_t i = 0; i < LINES; i++)
        for (int times = i != changed ? 1 : twice ? 2 : 0; times > 0; times--)
            snprintf(out + strlen(out), size - strlen(out), "%s", low_latency[i]);
}

static void no_line_is_superfluous(void **state)
{
    (void)state;
    char lines[1024];
    write_lines(LINES, false, lines, sizeof lines);
    expect_whole(lines, MODEL);
    expect_whole(lines, NO_SHARED);
    for (size_t i = 0; i < LINES; i++) {
        dbo_experiment e;
        dbo_error err = {0};
        write_lines(i, false, lines, sizeof lines);
        if (load(lines, MODEL, &e, &err) == DBO_OK)
            fail_msg("without line %zu it is taken for a whole layer: %s", i, low_latency[i]);
        assert_int_not_equal(err.message[0], '\0');
        if (strncmp(low_latency[i], "u.op", 4) != 0)
            continue;
        write_lines(i, true, lines, sizeof lines);
        if (load(lines, MODEL, &e, &err) == DBO_OK)
            fail_msg("it may be there twice: %s", low_latency[i]);
    }
}

/* ---- what is said ---- */

#define SEND_DISPATCH "local d = u.post('dispatch')\n"
#define SEND_COMBINE  "local c = u.post('combine') u.finish(c)\n"

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    expect_refusal("u.op('A0') u.op('A1') u.op('MLP') u.op('S')\n", MODEL,
                   "t.lua:5: schedule mine, ubatch 0: it has no dispatch");
    expect_refusal("u.op('A0') u.op('A1') u.finish(u.post('dispatch'))\n" SEND_COMBINE, MODEL,
                   "t.lua:6: schedule mine, ubatch 0: it has no MLP");
    expect_refusal("u.op('A0') u.op('A1') u.finish(u.post('dispatch'))\n"
                   "if u.id == 0 then u.op('MLP') end\n" SEND_COMBINE "u.op('S')\n",
                   MODEL, "t.lua:8: schedule mine, ubatch 1: it has no MLP");
    expect_refusal("u.op('A0') u.op('A1') u.finish(u.post('dispatch'))\n"
                   "u.op('MLP')\nu.op('MLP')\n" SEND_COMBINE "u.op('S')\n",
                   MODEL,
                   "t.lua:4: schedule mine, ubatch 0: MLP of ubatch 0 is issued 2 times a "
                   "layer");
    expect_refusal("u.op('A0') u.op('A1')\nu.op('MLP')\nu.finish(u.post('dispatch'))\n" SEND_COMBINE
                   "u.op('S')\n",
                   MODEL,
                   "t.lua:3: schedule mine, ubatch 0: MLP of ubatch 0 is issued before its "
                   "dispatch");
    expect_refusal("u.op('A0')\nu.op('S')\nu.op('A1') u.finish(u.post('dispatch'))\n"
                   "u.op('MLP')\n" SEND_COMBINE,
                   MODEL,
                   "t.lua:3: schedule mine, ubatch 0: S of ubatch 0 is issued before its A1");
    expect_refusal("u.op('A0') u.op('A1')\n" SEND_DISPATCH "u.op('MLP')\nu.finish(d)\n" SEND_COMBINE
                   "u.op('S')\n",
                   MODEL,
                   "t.lua:4: schedule mine, ubatch 0: MLP of ubatch 0 may run before dispatch of "
                   "ubatch 0 has arrived");
}

/* ---- high throughput: streams and events ---- */

#define TO_COMM    "u.switch_to_comm_sync()\n"
#define TO_COMPUTE "u.switch_to_compute_sync()\n"
#define START      "u.op('A0') u.op('A1')\n"
#define DISPATCH   "u.finish(u.post('dispatch'))\n"
#define COMBINE    "u.finish(u.post('combine'))\n"

static void the_device_must_wait(void **state)
{
    (void)state;
    const char *ht = "all2all_backend = 'deepep_high_throughput', " MODEL;
    expect_whole(START TO_COMM DISPATCH TO_COMPUTE "u.op('MLP')\n" TO_COMM COMBINE
                                                   "u.switch_to_compute()\nu.op('S')\n" TO_COMPUTE,
                 ht);
    expect_refusal(START "u.switch_to_comm()\n" DISPATCH TO_COMPUTE "u.op('MLP')\n" TO_COMM COMBINE
                         "u.switch_to_compute()\nu.op('S')\n" TO_COMPUTE,
                   ht,
                   "t.lua:4: schedule mine, ubatch 0: dispatch of ubatch 0 may run before A1 of "
                   "ubatch 0 has ended");
    expect_refusal(START TO_COMM DISPATCH "u.switch_to_compute()\nu.op('MLP')\n" TO_COMM COMBINE
                                          "u.switch_to_compute()\nu.op('S')\n" TO_COMPUTE,
                   ht,
                   "t.lua:6: schedule mine, ubatch 0: MLP of ubatch 0 may run before dispatch of "
                   "ubatch 0 has arrived");
    expect_refusal(START TO_COMM DISPATCH TO_COMPUTE "u.op('MLP')\n" TO_COMM COMBINE
                                                     "u.switch_to_compute()\nu.op('S')\n",
                   ht,
                   "t.lua:2: schedule mine, ubatch 0: A0 of ubatch 0 may run before combine of "
                   "ubatch 0 has arrived");
    /* The other ubatch may do it, as long as it is done. */
    expect_whole(START DISPATCH "u.op('MLP')\n" COMBINE "u.yield()\nu.op_of(1 - u.id, 'S')\n"
                                "u.yield()\n",
                 ht);
    expect_refusal("u.op_of(1 - u.id, 'S')\n" START DISPATCH "u.op('MLP')\n" COMBINE "u.yield()\n",
                   ht, "t.lua:2: schedule mine, ubatch 0: S of ubatch 1 is issued before its A0");
}

/* ---- fixed costs ---- */

static void a_part_of_a_layer_is_said_to_be_one(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    dbo_outcome outcome = {0};
    const dbo_simulate_options options = {0};
    json_text text = {0};
    dbo_json_writer writer;
    dbo_strbuf warnings = {0};
    if (load("u.op { name = 'x', us = 3 }\n", FIXED, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_string_equal(e.incomplete, "schedule mine, ubatch 0: it has no A0");
    assert_int_equal(dbo_simulate(&e, &options, &outcome, &err), DBO_OK);
    dbo_json_writer_init(&writer, json_text_sink, &text, 0);
    dbo_result_json(&outcome.result, &writer);
    assert_int_equal(dbo_json_writer_finish(&writer, &err), DBO_OK);
    assert_non_null(strstr(text.bytes, "\"speedup\": null"));
    assert_non_null(strstr(text.bytes, "\"schedule_complete\": false"));
    dbo_result_warnings(&outcome.result, 500, &warnings);
    assert_string_equal(dbo_strbuf_text(&warnings),
                        "Warning  not a whole layer, so no speed-up is claimed: schedule mine, "
                        "ubatch 0: it has no A0\n");
    dbo_strbuf_fini(&warnings);
    json_text_fini(&text);
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&e);
    /* A fixed cost that is not given is of an op that the layer does not have. */
    expect_whole("u.op('A0') u.op('A1')\n", "costs = dbo.fixed { A = 90 }");
}

/* What a whole layer leaves out beside: named, so that nobody takes it for overlap. */
static void other_ops_that_are_left_out_are_named(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    dbo_outcome outcome = {0};
    const dbo_simulate_options options = {0};
    dbo_strbuf warnings = {0};
    const char *ht = "all2all_backend = 'deepep_high_throughput', " MODEL;
    if (load(START DISPATCH "u.op('MLP')\n" COMBINE "u.op('S') u.op('COPY')\nu.yield()\n", ht, &e,
             &err) != DBO_OK ||
        dbo_simulate(&e, &options, &outcome, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_result_warnings(&outcome.result, 500, &warnings);
    assert_non_null(strstr(dbo_strbuf_text(&warnings), " DISPATCH_LAYOUT"));
    assert_non_null(strstr(dbo_strbuf_text(&warnings), " WEIGHT_AND_REDUCE"));
    assert_null(strstr(dbo_strbuf_text(&warnings), "OUTPUT_COPY"));
    dbo_strbuf_fini(&warnings);
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&e);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_superfluous),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(the_device_must_wait),
        cmocka_unit_test(a_part_of_a_layer_is_said_to_be_one),
        cmocka_unit_test(other_ops_that_are_left_out_are_named),
    };
    return cmocka_run_group_tests_name("whole_layer", tests, make_folder, remove_folder);
}
