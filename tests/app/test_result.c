/* test_result.c: a result as JSON, read back, and what is null in it; as a Lua table; as text. */
#include "app/lua/lua_result.h"
#include "app/lua/lua_sandbox.h"
#include "app/say/result_text.h"
#include "lab/files/json.h"
#include "lab/world/result.h"
#include "tests/support/hand_trace.h"
#include "tests/support/json_text.h"

#include <jansson.h>
#include <lauxlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A result over two hand-made low-latency traces, and the document that it gives. */
typedef struct made {
    dbo_trace traces[2]; /* without, with */
    dbo_metrics metrics[2];
    dbo_notation notation;
    dbo_experiment experiment;
    dbo_vote_result decision;
    dbo_split_cost cost;
    dbo_ubatch_slice slices[4], padded[4];
    dbo_memory_use memory[2];
    dbo_result result;
    json_text text;
    dbo_json *document;
} made;

static void make(made *m)
{
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < 2; i++) {
        hand h;
        dbo_trace_init(&m->traces[i]);
        hand_init(&h, &m->traces[i], 6, i + 1);
        h.send_us = h.recv_us = 6;
        h.issue_ns = 12000;
        for (int kind = 0; i == 1 && kind < DBO_KIND_COUNT; kind++)
            h.us[kind] = (h.us[kind] * 6 + 9) / 10;
        hand_ll(&h);
        hand_end(&h);
        assert_int_equal(dbo_metrics_compute(&m->metrics[i], &m->traces[i], 0, 0, i ? 64 : 0, NULL),
                         DBO_OK);
    }
    assert_int_equal(dbo_notation_init(&m->notation, &m->traces[1], 0, 0, NULL), DBO_OK);
    dbo_experiment_init(&m->experiment);
    strcpy(m->experiment.name, "by hand");
    m->decision = (dbo_vote_result){.should_ubatch = true,
                                    .reason = DBO_VOTE_OK,
                                    .graph_mode = DBO_GRAPH_FULL,
                                    .num_tokens_padded = 72};
    m->slices[0] = m->slices[2] = (dbo_ubatch_slice){0, 36, 0, 36};
    m->slices[1] = m->slices[3] = (dbo_ubatch_slice){36, 64, 36, 64};
    memcpy(m->padded, m->slices, sizeof m->padded);
    m->padded[1].tok_stop = m->padded[3].tok_stop = 72;
    m->memory[0] = (dbo_memory_use){.peak_used_bytes = 512};
    m->memory[1] = (dbo_memory_use){1024, 2 << 20, 1 << 20, 3};
    m->cost.total = (dbo_quantity){.value = 12.5, .present = true};
    m->result = (dbo_result){.experiment = &m->experiment,
                             .decision = &m->decision,
                             .off = &m->metrics[0],
                             .on = &m->metrics[1],
                             .split_cost = &m->cost,
                             .notation = &m->notation,
                             .memory_off = &m->memory[0],
                             .memory_on = &m->memory[1],
                             .num_ranks = 2,
                             .num_ubatches = 2,
                             .slices = m->slices,
                             .slices_padded = m->padded};
}

/* Writes and parses; keys are then looked up in the root. */
static const json_t *document_of(made *m)
{
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, json_text_sink, &m->text, 1);
    dbo_result_json(&m->result, &writer);
    assert_int_equal(dbo_json_writer_finish(&writer, NULL), DBO_OK);
    dbo_error err = {0};
    if (dbo_json_parse(&m->document, m->text.bytes, m->text.length, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    return dbo_json_tree(m->document);
}

static void unmake(made *m)
{
    dbo_json_destroy(m->document);
    json_text_fini(&m->text);
    dbo_notation_fini(&m->notation);
    dbo_trace_fini(&m->traces[0]);
    dbo_trace_fini(&m->traces[1]);
    dbo_experiment_fini(&m->experiment);
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_non_null(value);
    return json_number_value(value);
}

static void split_step_has_every_key(void **state)
{
    (void)state;
    made m;
    make(&m);
    const json_t *root = document_of(&m);
    assert_true(number(root, "step_us") == m.metrics[1].step_us.value);
    assert_true(number(root, "speedup") == m.metrics[0].step_us.value / m.metrics[1].step_us.value);
    assert_true(number(root, "tokens_per_s_per_gpu") > 0);
    const json_t *without = json_object_get(root, "without_dbo");
    assert_true(number(without, "step_us") == m.metrics[0].step_us.value);
    assert_true(json_is_null(json_object_get(without, "tokens_per_s_per_gpu")));

    const json_t *cost = json_object_get(root, "split_cost_us");
    assert_true(number(cost, "total") == 12.5);
    assert_non_null(json_object_get(cost, "weights"));
    assert_true(json_is_null(json_object_get(cost, "weights")));

    const json_t *memory = json_object_get(root, "memory");
    assert_int_equal(json_integer_value(json_object_get(memory, "peak_reserved_bytes")), 2 << 20);
    assert_int_equal(json_integer_value(json_object_get(memory, "graph_bytes")), 1 << 20);
    assert_int_equal(json_integer_value(json_object_get(memory, "num_graphs")), 3);
    memory = json_object_get(without, "memory");
    assert_int_equal(json_integer_value(json_object_get(memory, "peak_used_bytes")), 512);

    const json_t *decision = json_object_get(root, "decision");
    assert_true(json_is_true(json_object_get(decision, "should_ubatch")));
    assert_string_equal(json_string_value(json_object_get(decision, "reason")), "ok");
    assert_string_equal(json_string_value(json_object_get(decision, "cudagraph_mode")), "FULL");
    assert_int_equal(json_integer_value(json_object_get(decision, "num_tokens_padded")), 72);

    const json_t *slices = json_object_get(root, "ubatch_slices");
    assert_int_equal(json_array_size(slices), 2);
    const json_t *last = json_array_get(json_array_get(slices, 1), 1);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(last, "tok"), 1)), 64);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(last, "tok_padded"), 1)),
                     72);

    const json_t *notation = json_object_get(root, "notation");
    assert_string_equal(json_string_value(json_object_get(notation, "order_labels01")),
                        "D₁ send, A0₀, A1₀, D₁ recv, D₀ send, MLP₁, D₀ recv, C₁ send, S₁, MLP₀, "
                        "C₁ recv, C₀ send, S₀, A0₁, A1₁, C₀ recv.");
    assert_memory_equal(json_string_value(json_object_get(notation, "comp")), "|-A0₁", 7);
    unmake(&m);
}

static void step_that_is_not_split_has_nulls(void **state)
{
    (void)state;
    made m;
    make(&m);
    m.result.on = NULL;
    m.result.split_cost = NULL;
    m.result.notation = NULL;
    m.result.memory_off = NULL;
    m.result.slices = m.result.slices_padded = NULL;
    m.decision.should_ubatch = false;
    m.decision.reason = DBO_VOTE_THRESHOLD;
    const json_t *root = document_of(&m);
    assert_true(number(root, "speedup") == 1.0);
    assert_true(number(root, "step_us") == m.metrics[0].step_us.value);
    static const char *const nulls[] = {"split_cost_us", "ubatch_slices", "notation", "memory"};
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(json_object_get(root, nulls[i]));
        assert_true(json_is_null(json_object_get(root, nulls[i])));
    }
    dbo_strbuf text = {0};
    dbo_result_decision(&m.result, 200, &text);
    assert_string_equal(dbo_strbuf_text(&text),
                        "Decision no split (threshold): the smallest rank has fewer tokens than "
                        "the threshold; graph FULL, rank 0 runs 72 tokens, padding included\n");
    dbo_strbuf_fini(&text);
    unmake(&m);
}

static void printed_result_has_all_parts(void **state)
{
    (void)state;
    made m;
    make(&m);
    dbo_strbuf text = {0};
    dbo_result_print(&m.result, (dbo_text_style){.width = 80, .ascii = true}, &text);
    assert_non_null(strstr(dbo_strbuf_text(&text), "Order: D_0 send, A0_1"));
    assert_non_null(strstr(dbo_strbuf_text(&text), "Order: D_1 send, A0_0"));
    assert_non_null(strstr(dbo_strbuf_text(&text), "exposed communication"));
    assert_non_null(strstr(dbo_strbuf_text(&text), "hand-offs"));
    for (const char *at = dbo_strbuf_text(&text); *at; at++)
        assert_true((unsigned char)*at < 128);
    dbo_strbuf_fini(&text);
    unmake(&m);
}

/* ---- Lua ---- */

/* Is the Lua value on top what the document says? Takes it off. */
static void expect_same(lua_State *L, const json_t *value)
{
    size_t known = 0, count = 0;
    lua_Integer first;
    const char *key;
    json_t *member;
    switch (json_typeof(value)) {
    case JSON_NULL: assert_true(lua_isnil(L, -1)); break;
    case JSON_TRUE:
    case JSON_FALSE: assert_int_equal(lua_toboolean(L, -1), json_is_true(value)); break;
    case JSON_STRING: assert_string_equal(lua_tostring(L, -1), json_string_value(value)); break;
    case JSON_INTEGER:
        assert_true(lua_isinteger(L, -1));
        assert_int_equal(lua_tointeger(L, -1), json_integer_value(value));
        break;
    case JSON_REAL:
        assert_false(lua_isinteger(L, -1));
        assert_true(lua_tonumber(L, -1) == json_number_value(value));
        break;
    case JSON_ARRAY: /* ids of ranks and ubatches begin with 0, the ends of a range with 1 */
        first = json_typeof(json_array_get(value, 0)) == JSON_INTEGER;
        for (size_t i = 0; i < json_array_size(value); i++) {
            lua_geti(L, -1, first + (lua_Integer)i);
            expect_same(L, json_array_get(value, i));
        }
        break;
    case JSON_OBJECT:
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            known += !json_is_null(member);
            lua_getfield(L, -1, key);
            expect_same(L, member);
        }
        for (lua_pushnil(L); lua_next(L, -2); count++)
            lua_pop(L, 1);
        assert_int_equal(count, known);
        break;
    }
    lua_pop(L, 1);
}

static void a_script_gets_what_the_document_says(void **state)
{
    (void)state;
    made m;
    make(&m);
    uint32_t class_of[2] = {0};
    dbo_step_result shown = {0};
    dbo_sandbox *box = dbo_sandbox_create(NULL, NULL);
    assert_non_null(box);
    lua_State *L = dbo_sandbox_lua(box);
    dbo_lua_open_result(L);
    for (int alike = 0; alike < 2; alike++) {
        m.slices[2].tok_stop = m.slices[3].tok_start = alike ? 36 : 33;
        dbo_outcome outcome = {.result = m.result, .split = true};
        outcome.on.class_of = class_of;
        outcome.on.results = &shown;
        dbo_lua_push_result(L, &outcome);
        lua_getfield(L, -1, "ubatch_slices");
        lua_geti(L, -1, 0);
        lua_geti(L, -2, 1);
        assert_int_equal(lua_rawequal(L, -1, -2), alike); /* one table for ranks that are alike */
        lua_pop(L, 3);
        static const char *const own[] = {"spans", "num_ranks", "num_ubatches"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            lua_getfield(L, -1, own[i]);
            assert_false(lua_isnil(L, -1));
            lua_pop(L, 1);
            lua_pushnil(L);
            lua_setfield(L, -2, own[i]);
        }
        expect_same(L, document_of(&m));
        dbo_json_destroy(m.document);
        m.document = NULL;
        json_text_fini(&m.text);
        m.text = (json_text){0};
    }
    dbo_sandbox_destroy(box);
    unmake(&m);
}

/* ---- tables ---- */

static void expect_golden(const char *text, const char *name)
{
    char path[512], golden[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s", DBO_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, golden);
}

static void the_tables(void **state)
{
    (void)state;
    const dbo_text_style ascii = {.width = 60, .ascii = true}, utf8 = {.width = 60};
    made m;
    dbo_strbuf out = {0};
    make(&m);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(dbo_metrics_compute(&m.metrics[i], &m.traces[i], 0, 0, 128, NULL), DBO_OK);
    m.metrics[1].hidden_fraction.present = false;
    m.result.notation = NULL;
    m.result.split_cost = NULL;
    dbo_result_print(&m.result, ascii, &out);
    expect_golden(dbo_strbuf_text(&out), "table.txt");

    dbo_strbuf_clear(&out);
    m.cost = (dbo_split_cost){
        .tiles = {12.5, true}, .handoffs = {3, true}, .total = {15.5, true}, .saved = {7, true}};
    m.result.split_cost = &m.cost;
    dbo_result_print(&m.result, utf8, &out);
    expect_golden(strstr(dbo_strbuf_text(&out), "cost of splitting"), "split_cost.txt");

    dbo_strbuf_clear(&out);
    m.result.on = NULL;
    dbo_result_print(&m.result, utf8, &out);
    assert_non_null(strstr(dbo_strbuf_text(&out), "DBO off"));
    assert_null(strstr(dbo_strbuf_text(&out), "DBO on"));
    assert_null(strstr(dbo_strbuf_text(&out), "speed-up"));
    dbo_strbuf_fini(&out);
    unmake(&m);
}

/* Names above values where both do not fit; no line but the notation's is too long. */
static void narrow_tables(void **state)
{
    (void)state;
    static const uint32_t widths[] = {20, 27, 40, 59, 60, 79};
    made m;
    dbo_strbuf out = {0};
    make(&m);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        dbo_strbuf_clear(&out);
        dbo_result_print(&m.result, (dbo_text_style){.width = widths[i]}, &out);
        char *line = out.data;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            bool notation = strncmp(line, "Comp: |", 7) == 0 || strncmp(line, "Comm: |", 7) == 0 ||
                            strncmp(line, "Order: ", 7) == 0;
            if (!notation && dbo_text_columns(line) > widths[i])
                fail_msg("%u columns: %s", widths[i], line);
        }
    }
    dbo_strbuf_clear(&out);
    dbo_result_print(&m.result, (dbo_text_style){.width = 40, .ascii = true}, &out);
    char want[128];
    snprintf(want, sizeof want, "\nstep\n  off%10.1f us\n  on %10.1f us\nlayer",
             m.metrics[0].step_us.value, m.metrics[1].step_us.value);
    if (!strstr(dbo_strbuf_text(&out), want))
        fail_msg("no '%s' in\n%s", want, dbo_strbuf_text(&out));
    dbo_strbuf_fini(&out);
    unmake(&m);
}

/* A unit is the table's to know, whatever the name ends in. */
static void units_are_told(void **state)
{
    (void)state;
    static const dbo_quantity_unit units[] = {
#define UNIT(name, unit, what) DBO_UNIT_##unit,
        DBO_METRIC_MAP(UNIT)
#undef UNIT
    };
    static const char *const names[] = {
#define NAME(name, unit, what) #name,
        DBO_METRIC_MAP(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(names[i]);
        bool us = length > 3 && strcmp(names[i] + length - 3, "_us") == 0;
        assert_int_equal(units[i] == DBO_UNIT_US, us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_step_has_every_key),
        cmocka_unit_test(step_that_is_not_split_has_nulls),
        cmocka_unit_test(printed_result_has_all_parts),
        cmocka_unit_test(a_script_gets_what_the_document_says),
        cmocka_unit_test(the_tables),
        cmocka_unit_test(narrow_tables),
        cmocka_unit_test(units_are_told),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
