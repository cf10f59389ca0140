/* The built-in schedules against the logs of the reference's own context class and kernels
 * (tests/golden/pingpong.json): every entry, in order. A small interpreter with a ring of turns
 * turns programs into such logs; it shares nothing with the engine's. */
#include "core/program/builders.h"
#include "lab/files/json.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_ENTRIES 512
#define NO_HOOK     UINT16_MAX

typedef struct entry {
    const char *op, *stream;
    char event[24];
    int ubatch, owner, layer; /* -2: the entry has none */
} entry;

typedef struct player {
    const dbo_program *program;
    const dbo_build_options *options;
    bool low_latency;
    uint32_t layers;
    entry log[MAX_ENTRIES];
    size_t count;
    uint32_t at[DBO_MAX_UBATCHES], layer[DBO_MAX_UBATCHES], stream[DBO_MAX_UBATCHES];
    uint16_t hook[DBO_MAX_UBATCHES];
    uint32_t post_of_slot[2 * DBO_MAX_UBATCHES], layer_of_slot[2 * DBO_MAX_UBATCHES];
    bool open[2 * DBO_MAX_UBATCHES];
    bool exited[DBO_MAX_UBATCHES];
} player;

static entry *add(player *p, int ubatch, const char *op, const char *stream)
{
    assert_true(p->count < MAX_ENTRIES);
    entry *e = &p->log[p->count++];
    *e = (entry){.op = op, .stream = stream, .ubatch = ubatch, .owner = -2, .layer = -2};
    return e;
}

static void add_event(player *p, uint32_t u, const char *op, const char *stream, uint16_t event)
{
    static const char *const roles[] = {"", "compute_done", "comm_done", ""};
    entry *e = add(p, (int)u, op, stream);
    snprintf(e->event, sizeof e->event, "%s_%u", roles[event % DBO_HT_EVENT_ROLES],
             event / DBO_HT_EVENT_ROLES);
}

static void add_turn(player *p, int ubatch, const char *op, uint32_t whose)
{
    entry *e = add(p, ubatch, op, NULL);
    snprintf(e->event, sizeof e->event, "cpu_%u", whose);
}

static void receive(player *p, uint32_t runner, uint16_t slot)
{
    const dbo_program_post *post = &p->program->posts[p->post_of_slot[slot]];
    assert_true(p->open[slot]);
    p->open[slot] = false;
    if (!p->low_latency)
        return;
    entry *e =
        add(p, (int)runner, post->direction == DBO_A2A_DISPATCH ? "DISPATCH_RECV" : "COMBINE_RECV",
            "compute");
    e->owner = (int)dbo_op_id_ubatch(post->id_bits);
    e->layer = (int)p->layer_of_slot[slot];
}

static void run_hook(player *p, uint32_t u)
{
    uint16_t slot = p->hook[u];
    p->hook[u] = NO_HOOK;
    if (slot != NO_HOOK)
        receive(p, u, slot);
}

static void play_post(player *p, uint32_t u, const dbo_instr *instr)
{
    static const char *const names[2][2] = {{"DISPATCH", "COMBINE"},
                                            {"DISPATCH_SEND", "COMBINE_SEND"}};
    const dbo_program_post *post = &p->program->posts[instr->index];
    assert_int_equal(dbo_op_id_ubatch(post->id_bits), u);
    assert_false(p->open[post->handle]); /* a slot holds one transfer at a time */
    p->open[post->handle] = true;
    p->post_of_slot[post->handle] = instr->index;
    p->layer_of_slot[post->handle] = p->layer[u];
    bool split = p->program->num_ubatches > 1;
    assert_int_equal(instr->previous,
                     split && !p->low_latency ? dbo_ht_event(u, DBO_HT_PREVIOUS) : DBO_NO_INDEX);
    add(p, (int)u, names[p->low_latency][post->direction], p->program->stream_names[instr->stream])
        ->layer = (int)p->layer[u];
}

static void play_record(player *p, uint32_t u, const dbo_instr *instr, const char *stream)
{
    uint32_t role = instr->index % DBO_HT_EVENT_ROLES;
    if (role == DBO_HT_PREVIOUS)
        add(p, (int)u, "DEEPEP_CAPTURE", stream);
    else if (role != DBO_HT_SYNC)
        add_event(p, u, "record_event", stream, instr->index);
}

/* One instruction; true if it hands the turn over. */
static bool play(player *p, uint32_t u, const dbo_instr *instr)
{
    const char *stream = p->program->stream_names[instr->stream];
    const dbo_program_op *op;
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP:
        op = &p->program->ops[instr->index];
        assert_int_equal(dbo_op_id_ubatch(op->id_bits), u);
        assert_int_equal(instr->stream, p->stream[u]);
        add(p, (int)u, dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(op->id_bits)), stream)->layer =
            (int)p->layer[u];
        break;
    case DBO_CODE_RECORD: play_record(p, u, instr, stream); break;
    case DBO_CODE_WAIT: /* for previous: an argument of the layout, not a call of its own */
        if (instr->index % DBO_HT_EVENT_ROLES != DBO_HT_PREVIOUS)
            add_event(p, u, "wait_event", stream, instr->index);
        break;
    case DBO_CODE_SET_STREAM:
        if (p->stream[u] != instr->stream)
            add(p, (int)u, "set_stream", stream);
        p->stream[u] = instr->stream;
        break;
    case DBO_CODE_YIELD: return true;
    case DBO_CODE_HOOK_SET: p->hook[(u + 1) % p->program->num_ubatches] = instr->index; break;
    case DBO_CODE_HOOK_RUN: run_hook(p, u); break;
    case DBO_CODE_A2A_POST: play_post(p, u, instr); break;
    case DBO_CODE_A2A_FINISH: receive(p, u, instr->index); break;
    case DBO_CODE_HOST_WAIT:
        if (instr->wait_event)
            add(p, (int)u, "synchronize", stream);
        else
            assert_true(p->open[instr->index]);
        break;
    case DBO_CODE_ALLOC:
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM: break; /* the log leaves memory out */
    default: fail_msg("an instruction that the built-in schedules do not use");
    }
    return false;
}

/* A turn: until the ubatch yields or its model ends. */
static void turn(player *p, uint32_t u)
{
    bool split = p->program->num_ubatches > 1;
    while (p->layer[u] < p->layers) {
        if (p->at[u] == p->program->num_instrs[u]) {
            p->at[u] = 0;
            p->layer[u]++;
            continue;
        }
        if (play(p, u, &p->program->instrs[u][p->at[u]++]))
            return;
    }
    add(p, (int)u, "MODEL_END", "compute");
    p->exited[u] = true;
    if (!split)
        return;
    add(p, (int)u, "EXIT", "compute");
    run_hook(p, u);
}

static void play_all(player *p)
{
    uint32_t count = p->program->num_ubatches;
    for (uint32_t u = 0; u < count; u++)
        p->hook[u] = NO_HOOK;
    if (count == 1) {
        turn(p, 0);
        return;
    }
    add_turn(p, -1, "cpu_signal", 0);
    for (uint32_t u = 0; !p->exited[u]; u = (u + 1) % count) {
        add_turn(p, (int)u, "cpu_resume", u);
        turn(p, u);
        add_turn(p, (int)u, "cpu_signal", (u + 1) % count);
    }
    for (uint32_t slot = 0; slot < 2 * count; slot++)
        assert_false(p->open[slot]); /* every transfer was received */
}

static void check_entry(const entry *got, const json_t *want, int64_t id, size_t number)
{
    const json_t *stream = json_object_get(want, "stream");
    const json_t *event = json_object_get(want, "event");
    const json_t *owner = json_object_get(want, "owner");
    const json_t *layer = json_object_get(want, "layer");
    bool same = strcmp(got->op, json_string_value(json_object_get(want, "op"))) == 0 &&
                got->ubatch == json_integer_value(json_object_get(want, "ubatch")) &&
                (!stream || (got->stream && strcmp(got->stream, json_string_value(stream)) == 0)) &&
                (!event || strcmp(got->event, json_string_value(event)) == 0) &&
                (!owner || got->owner == json_integer_value(owner)) &&
                (!layer || got->layer == json_integer_value(layer));
    if (!same)
        fail_msg("case %d entry %zu: %s of ubatch %d (stream %s, event %s), expected %s of %d",
                 (int)id, number, got->op, got->ubatch, got->stream, got->event,
                 json_string_value(json_object_get(want, "op")),
                 (int)json_integer_value(json_object_get(want, "ubatch")));
}

static void layer_of(bool shared, dbo_layer_costs *costs)
{
    int64_t ns[DBO_KIND_COUNT];
    for (int kind = 0; kind < DBO_KIND_COUNT; kind++)
        ns[kind] = 1000;
    if (!shared)
        ns[DBO_KIND_SHARED] = -1;
    dbo_layer_costs_fixed(ns, 132, costs);
}

static void check_case(const json_t *one)
{
    dbo_layer_costs costs[3];
    for (int i = 0; i < 3; i++)
        layer_of(json_is_true(json_object_get(one, "shared_experts")), &costs[i]);
    dbo_build_options options = {
        .num_ubatches = (uint32_t)json_integer_value(json_object_get(one, "num_ubatches")),
        .host_sync = true,
        .rocm = json_is_true(json_object_get(one, "rocm")),
        .memory = true,
        .record_stream = true,
        .io = true};
    bool low_latency = strcmp(json_string_value(json_object_get(one, "backend")), "LL") == 0;
    dbo_program program;
    dbo_builder_fn build = dbo_builder_of_name("mlp_shared_overlap", low_latency);
    assert_int_equal(build(costs, &options, &program, NULL), DBO_OK);
    static player p;
    p = (player){.program = &program,
                 .options = &options,
                 .low_latency = low_latency,
                 .layers = (uint32_t)json_integer_value(json_object_get(one, "layers"))};
    play_all(&p);
    const json_t *log = json_object_get(one, "log");
    int64_t id = json_integer_value(json_object_get(one, "id"));
    for (size_t i = 0; i < p.count && i < json_array_size(log); i++)
        check_entry(&p.log[i], json_array_get(log, i), id, i);
    assert_int_equal(p.count, json_array_size(log));
    dbo_program_fini(&program);
}

static void as_the_reference_issues(void **state)
{
    (void)state;
    dbo_json *doc = NULL;
    dbo_error err = {0};
    if (dbo_json_read_file(&doc, DBO_SOURCE_DIR "/tests/golden/pingpong.json", NULL, &err))
        fail_msg("%s", err.message);
    const json_t *cases = json_object_get(dbo_json_tree(doc), "cases");
    assert_true(json_array_size(cases) >= 12);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i));
    dbo_json_destroy(doc);
}

/* Without the two halves: LL receives right after the send, and after the shared expert. */
static void low_latency_unsplit(void **state)
{
    (void)state;
    static const char *const want[] = {"A0",           "A1",       "DISPATCH_SEND", "DISPATCH_RECV",
                                       "QUANT",        "MLP",      "COMBINE_SEND",  "SHARED",
                                       "COMBINE_RECV", "MODEL_END"};
    dbo_layer_costs costs;
    layer_of(true, &costs);
    dbo_build_options options = {.num_ubatches = 1};
    dbo_program program;
    assert_int_equal(dbo_build_ll(&costs, &options, &program, NULL), DBO_OK);
    static player p;
    p = (player){.program = &program, .options = &options, .low_latency = true, .layers = 1};
    play_all(&p);
    assert_int_equal(p.count, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < p.count; i++)
        assert_string_equal(p.log[i].op, want[i]);
    dbo_program_fini(&program);
}

static uint32_t count_code(const dbo_program *program, uint32_t ubatch, dbo_code code)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_instrs[ubatch]; i++)
        count += program->instrs[ubatch][i].code == code;
    return count;
}

/* Every ubatch yields equally often, or the ring would stall: HT 3, LL 2, the prose's HT 4. */
static void yields(void **state)
{
    (void)state;
    dbo_layer_costs costs[DBO_MAX_UBATCHES];
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        layer_of(true, &costs[u]);
    const struct {
        dbo_builder_fn build;
        uint32_t yields;
    } rows[] = {
        {dbo_build_ht, 3}, {dbo_build_ll, 2}, {dbo_build_ht_prose, 4}, {dbo_build_dense, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint32_t n = 2; n <= DBO_MAX_UBATCHES; n++) {
            dbo_build_options options = {.num_ubatches = n, .host_sync = true};
            dbo_program program;
            assert_int_equal(rows[i].build(costs, &options, &program, NULL), DBO_OK);
            for (uint32_t u = 0; u < n; u++)
                assert_int_equal(count_code(&program, u, DBO_CODE_YIELD), rows[i].yields);
            dbo_program_fini(&program);
        }
}

/* The prose's HT receives every dispatch, by the next ubatch, before its experts run. */
static void prose_receives_before_the_experts(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 3; n++) {
        dbo_layer_costs costs[3];
        for (uint32_t u = 0; u < n; u++)
            layer_of(true, &costs[u]);
        dbo_build_options options = {.num_ubatches = n, .host_sync = true};
        dbo_program program;
        assert_int_equal(dbo_build_ht_prose(costs, &options, &program, NULL), DBO_OK);
        static player p;
        p = (player){.program = &program, .options = &options, .layers = 2};
        p.low_latency = true; /* so that receives are logged */
        for (uint32_t i = 0; i < program.num_posts; i++)
            assert_true(program.posts[i].handle < 2 * n);
        /* previous events are HT's; the player's check of them is for the stock schedules */
        for (uint32_t u = 0; u < n; u++)
            for (uint32_t i = 0; i < program.num_instrs[u]; i++)
                if (program.instrs[u][i].code == DBO_CODE_A2A_POST)
                    program.instrs[u][i].previous = DBO_NO_INDEX;
        play_all(&p);
        bool received[3] = {false};
        for (size_t i = 0; i < p.count; i++) {
            const entry *e = &p.log[i];
            if (strcmp(e->op, "DISPATCH_RECV") == 0) {
                char event[24];
                snprintf(event, sizeof event, "comm_done_%d", e->owner);
                assert_string_equal(e[1].op, "record_event"); /* after the receive, or it says */
                assert_string_equal(e[1].event, event);       /* nothing of the rows */
                assert_string_equal(e[2].op, "wait_event");
                assert_string_equal(e[2].event, event);
                assert_string_equal(e[2].stream, "compute");
                assert_int_equal(e->ubatch, (e->owner + 1) % (int)n);
                received[e->owner] = true;
            }
            if (strcmp(e->op, "MLP") == 0) {
                assert_true(received[e->ubatch]);
                received[e->ubatch] = false;
            }
        }
        dbo_program_fini(&program);
    }
}

/* The unsplit HT of a run: transfers on the comm stream, behind the caller's work, SHARED not. */
static void unsplit_on_its_own_stream(void **state)
{
    (void)state;
    dbo_layer_costs costs;
    layer_of(true, &costs);
    dbo_build_options options = {.num_ubatches = 1, .host_sync = true, .own_stream = true};
    dbo_program program;
    assert_int_equal(dbo_build_ht(&costs, &options, &program, NULL), DBO_OK);
    uint32_t posts = 0;
    for (uint32_t i = 0; i < program.num_instrs[0]; i++) {
        const dbo_instr *instr = &program.instrs[0][i];
        if (instr->code == DBO_CODE_A2A_POST) {
            assert_int_equal(instr->stream, DBO_STREAM_COMM);
            assert_int_equal(instr->previous, instr[-1].index);
            assert_int_equal(instr[-1].code, DBO_CODE_RECORD);
            assert_int_equal(instr[-1].stream, DBO_STREAM_COMPUTE);
            posts++;
        }
        if (instr->code == DBO_CODE_OP)
            assert_int_equal(instr->stream, DBO_STREAM_COMPUTE);
        if (instr->code == DBO_CODE_A2A_FINISH) { /* and compute waits for it */
            assert_int_equal(instr[1].code, DBO_CODE_RECORD);
            assert_int_equal(instr[1].stream, instr->stream);
            assert_int_equal(instr[2].code, DBO_CODE_WAIT);
            assert_int_equal(instr[2].index, instr[1].index);
            assert_int_equal(instr[2].stream, DBO_STREAM_COMPUTE);
        }
    }
    assert_int_equal(posts, 2);
    dbo_program_fini(&program);
}

/* What a layer takes it gives back: the same buffers are taken and freed, each once. */
static void memory_is_given_back(void **state)
{
    (void)state;
    static const dbo_builder_fn builders[] = {dbo_build_ht, dbo_build_ll, dbo_build_ht_prose};
    uint32_t all = 0;
    for (uint32_t i = 0; i < 48; i++) {
        const dbo_build_options options = {.num_ubatches = 1 + i / 3 % 3,
                                           .host_sync = i / 9 % 2 > 0,
                                           .own_stream = i / 18 % 2 > 0,
                                           .memory = true,
                                           .record_stream = i % 2 > 0};
        dbo_layer_costs costs[3];
        dbo_program p;
        dbo_error err = {0};
        for (uint32_t u = 0; u < 3; u++) {
            layer_of(i % 5 > 0, &costs[u]);
            dbo_layer_sizes_fixed(64, &costs[u].sizes);
            costs[u].quant_late = i % 7 > 2;
        }
        if (builders[i % 3](costs, &options, &p, &err) != DBO_OK)
            continue; /* not for so many ubatches */
        for (uint32_t b = 0; b < p.num_buffers; b++) {
            uint32_t taken = 0, freed = 0;
            for (uint32_t u = 0; u < p.num_ubatches; u++)
                for (uint32_t k = 0; k < p.num_instrs[u]; k++) {
                    const dbo_instr *instr = &p.instrs[u][k];
                    taken += instr->code == DBO_CODE_ALLOC && instr->index == b;
                    freed += instr->code == DBO_CODE_FREE && instr->index == b;
                }
            assert_int_equal(taken, freed);
            assert_in_range(taken, 0, 1);
            all += taken;
        }
        dbo_program_fini(&p);
    }
    assert_in_range(all, 1000, 2000); /* they were built with memory */
}

static void names(void **state)
{
    (void)state;
    assert_ptr_equal(dbo_builder_of_name("mlp_shared_overlap", true), dbo_build_ll);
    assert_ptr_equal(dbo_builder_of_name("mlp_shared_overlap", false), dbo_build_ht);
    assert_ptr_equal(dbo_builder_of_name("seed-prose-ht", false), dbo_build_ht_prose);
    assert_null(dbo_builder_of_name("seed-prose-ht", true));
    assert_null(dbo_builder_of_name("nonsense", false));
    dbo_layer_costs costs[17];
    dbo_build_options options = {.num_ubatches = 17};
    dbo_program program;
    dbo_error err = {0};
    assert_int_not_equal(dbo_build_ll(costs, &options, &program, &err), DBO_OK);
    assert_true(err.message[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference_issues),
        cmocka_unit_test(low_latency_unsplit),
        cmocka_unit_test(yields),
        cmocka_unit_test(prose_receives_before_the_experts),
        cmocka_unit_test(unsplit_on_its_own_stream),
        cmocka_unit_test(memory_is_given_back),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
