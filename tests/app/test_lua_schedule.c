/* test_lua_schedule.c: schedules that scripts write: what is recorded, what it is refused for, and
 * that the engine runs it as it runs the built-in ones. */
#include "app/lua/lua_load.h"
#include "core/program/builders.h"
#include "lab/world/outcome.h"
#include "tests/support/folder.h"

static dbo_status load(const char *text, dbo_experiment *out, dbo_error *err)
{
    put_file("t.lua", text);
    dbo_load_options options = {.limits.instructions = 20000000};
    return dbo_experiment_load(out, path_of("t.lua").text, &options, err);
}

#define HEAD "local dbo = require 'dbo'\n"
#define TAIL                                                                               \
    "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true,\n"          \
    "  enable_dbo = true, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },\n" \
    "  schedule = s, batch = dbo.decode { num_tokens = 64 } }\n"

/* A layer of these lines, from line 3 of the script on. */
#define LAYER(lines)                                                                             \
    HEAD "local s = dbo.schedule { name = 'mine', num_ubatches = 2, layer = function(u)\n" lines \
         "end }\n" TAIL

/* The script fails with exactly this sentence, "t.lua:" standing for its path. */
static void expect_refusal(const char *text, const char *sentence)
{
    dbo_experiment experiment = {0};
    dbo_error err = {0};
    dbo_status status = load(text, &experiment, &err);
    assert_string_equal(without_folder(err.message), sentence);
    assert_true(status == DBO_REFUSED || status == DBO_INVALID);
}

/* ---- what is recorded ---- */

static void expect_codes(const dbo_program *program, uint32_t ubatch, const char *codes)
{
    char text[512] = "";
    for (uint32_t i = 0; i < program->num_instrs[ubatch]; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                 dbo_code_name((dbo_code)program->instrs[ubatch][i].code));
    }
    assert_string_equal(text, codes);
}

static void a_layer_is_recorded_per_ubatch(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    const char *text =
        LAYER("u.op('A0')\n"
              "u.op { name = 'router', us = 2.5, sms = 8, reads = { 'x' }, writes = 'y' }\n"
              "if u.id == 1 then u.op_of(0, 'S') end\n"
              "local d = u.post { name = 'dispatch', us = 7, previous = u.get_previous_event() }\n"
              "u.host_wait(d) u.finish(d)\n"
              "u.yield_and_switch_from_compute_to_comm() u.switch_to_compute_sync()\n"
              "u.alloc('y') u.record_stream('y') u.free('y')\n"
              "u.record('shared') u.yield() u.wait('shared')\n");
    if (load(text, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_non_null(e.schedule);
    assert_string_equal(e.config.schedule, "mine");
    const dbo_program *p = &e.schedule->program;
    assert_int_equal(p->num_ubatches, 2);
    expect_codes(p, 0,
                 "OP OP RECORD A2A_POST HOST_WAIT A2A_FINISH RECORD YIELD SET_STREAM WAIT RECORD "
                 "SET_STREAM WAIT ALLOC RECORD_STREAM FREE RECORD YIELD WAIT");
    expect_codes(p, 1,
                 "OP OP OP RECORD A2A_POST HOST_WAIT A2A_FINISH RECORD YIELD SET_STREAM WAIT "
                 "RECORD SET_STREAM WAIT ALLOC RECORD_STREAM FREE RECORD YIELD WAIT");
    const dbo_program_op *router = &p->ops[p->instrs[0][1].index];
    assert_int_equal(dbo_op_id_kind(router->id_bits), DBO_KIND_SYNTHETIC);
    assert_int_equal(router->cost.fixed_ns, 2500);
    assert_int_equal(router->cost.fixed_sms, 8);
    assert_int_equal(router->io->num_reads, 1);
    assert_int_not_equal(router->io->reads[0].buffer, router->io->writes[0].buffer);
    const dbo_program_op *other = &p->ops[p->instrs[1][2].index];
    assert_int_equal(dbo_op_id_ubatch(other->id_bits), 0);
    assert_int_equal(dbo_op_id_kind(other->id_bits), DBO_KIND_SHARED);
    assert_int_equal(p->posts[0].cost.fixed_ns, 7000);
    assert_int_equal(e.schedule->lines[0][0], 3);
    /* A named event is one for all, a handle's is the ubatch's own. */
    assert_int_equal(p->instrs[0][16].index, p->instrs[1][17].index);
    assert_int_not_equal(p->instrs[0][2].index, p->instrs[1][3].index);
    dbo_experiment_fini(&e);
}

/* Each instruction has its line, the first one too; a layer has 65536 of them at most. */
static void instructions_have_lines_and_a_limit(void **state)
{
    (void)state;
    static const char *const one_line =
        "local dbo = require 'dbo' local s = dbo.schedule { name = 'mine', num_ubatches = 2, layer "
        "= function(u) u.op('A0')\nu.yield() end }\n" TAIL;
    dbo_experiment e;
    dbo_error err = {0};
    assert_int_equal(load(one_line, &e, &err), DBO_OK);
    assert_int_equal(e.schedule->lines[0][0], 1);
    assert_int_equal(e.schedule->lines[1][1], 2);
    dbo_experiment_fini(&e);
    if (load(LAYER("u.op('A0') for i = 2, 65536 do u.yield() end\n"), &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(e.schedule->program.num_instrs[1], 65536);
    dbo_experiment_fini(&e);
    expect_refusal(LAYER("u.op('A0')\nfor i = 1, 65536 do u.yield() end\n"),
                   "t.lua:4: a layer has more than 65536 instructions");
}

/* Costs come from the layer, ops that it does not have go, durations of one's own stay. */
static void a_template_is_filled_in(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    const char *text = LAYER("u.op('A0') u.op('S') u.op { name = 'S', us = 3 }\n"
                             "u.finish(u.post('combine'))\n");
    assert_int_equal(load(text, &e, &err), DBO_OK);
    int64_t ns[DBO_KIND_COUNT];
    dbo_layer_costs costs[2];
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = -1;
    ns[DBO_KIND_A0] = 11;
    ns[DBO_KIND_COMBINE] = 13;
    dbo_layer_costs_fixed(ns, 0, &costs[0]);
    ns[DBO_KIND_A0] = 17;
    dbo_layer_costs_fixed(ns, 0, &costs[1]);
    dbo_build_options options = {.num_ubatches = 2};
    dbo_program p;
    const dbo_schedule *schedule = &e.schedule->schedule;
    assert_int_equal(schedule->build(schedule->self, costs, &options, &p, &err), DBO_OK);
    expect_codes(&p, 1, "OP OP A2A_POST A2A_FINISH");
    assert_int_equal(p.ops[p.instrs[0][0].index].cost.fixed_ns, 11);
    assert_int_equal(p.ops[p.instrs[1][0].index].cost.fixed_ns, 17);
    assert_int_equal(p.ops[p.instrs[1][1].index].cost.fixed_ns, 3000);
    assert_int_equal(p.posts[0].cost.fixed_ns, 13);
    dbo_program_fini(&p);
    options.num_ubatches = 3;
    assert_int_equal(schedule->build(schedule->self, costs, &options, &p, &err), DBO_INVALID);
    assert_string_equal(err.message, "schedule mine is written for 2 ubatches, not 3");
    dbo_experiment_fini(&e);
}

static void expect_buffers(const dbo_program *p, const dbo_access *accesses, uint32_t count,
                           const char *names)
{
    char text[128] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        assert_in_range(accesses[i].buffer, 0, p->num_buffers - 1);
        snprintf(text + used, sizeof text - used, " %s", p->buffers[accesses[i].buffer].name);
    }
    assert_string_equal(text, names);
}

/* What is written of a script's own ops stays; beside it, layers' ops touch their tensors. Memory
 * that the layer never takes is there from the start. */
static void accesses_stay_as_they_are_written(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    const char *text =
        LAYER("u.op { name = 'first', us = 1, reads = 'x', writes = { 'y', 'x' } }\n"
              "u.alloc('y') u.op('A0')\n"
              "u.op { name = 'last', us = 2, reads = { 'x', 'y' }, writes = { 'w', 'z', 'v' } }\n"
              "u.free('y')\n");
    if (load(text, &e, &err) != DBO_OK)
        fail_msg("%s", err.message);
    int64_t ns[DBO_KIND_COUNT];
    dbo_layer_costs costs[2];
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = k == DBO_KIND_A0 ? 11 : -1;
    for (uint32_t u = 0; u < 2; u++) {
        dbo_layer_costs_fixed(ns, 0, &costs[u]);
        costs[u].sizes.bytes[DBO_BUFFER_HIDDEN] = 1;
    }
    const dbo_build_options options = {.num_ubatches = 2, .memory = true, .io = true};
    const dbo_schedule *schedule = &e.schedule->schedule;
    dbo_program p;
    assert_int_equal(schedule->build(schedule->self, costs, &options, &p, &err), DBO_OK);
    for (uint32_t u = 0; u < 2; u++) {
        expect_codes(&p, u, "OP ALLOC OP OP FREE");
        const dbo_op_io *first = p.ops[p.instrs[u][0].index].io;
        const dbo_op_io *last = p.ops[p.instrs[u][3].index].io;
        expect_buffers(&p, first->reads, first->num_reads, " x");
        expect_buffers(&p, first->writes, first->num_writes, " y x");
        expect_buffers(&p, last->reads, last->num_reads, " x y");
        expect_buffers(&p, last->writes, last->num_writes, " w z v");
        assert_non_null(p.ops[p.instrs[u][2].index].io);
        for (uint32_t i = 1; i < 5; i += 3)
            assert_string_equal(p.buffers[p.instrs[u][i].index].name, "y");
    }
    for (uint32_t b = 0; b < p.num_buffers; b++) {
        bool taken = strcmp(p.buffers[b].name, "y") == 0;
        assert_int_equal(p.buffers[b].workspace, !taken);
        assert_int_equal(p.buffers[b].input, !taken);
        assert_int_equal(p.buffers[b].bytes, 1);
    }
    dbo_program_fini(&p);
    dbo_experiment_fini(&e);
}

/* "A0 of ubatch 1: reads ... writes ..." of the op or transfer that an instruction issues. */
static void describe(const dbo_program *p, const dbo_instr *instr, char *out, size_t size)
{
    bool is_op = instr->code == DBO_CODE_OP;
    const dbo_op_io *io = is_op ? p->ops[instr->index].io : p->posts[instr->index].io;
    dbo_op_id id = is_op ? p->ops[instr->index].id_bits : p->posts[instr->index].id_bits;
    size_t used =
        (size_t)snprintf(out, size, "%s of ubatch %u: reads",
                         dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(id)), dbo_op_id_ubatch(id));
    assert_non_null(io);
    for (uint32_t i = 0; i < io->num_reads + io->num_writes; i++) {
        const dbo_access *a = i < io->num_reads ? &io->reads[i] : &io->writes[i - io->num_reads];
        used += (size_t)snprintf(out + used, size - used, "%s %s",
                                 i == io->num_reads ? " writes" : "", p->buffers[a->buffer].name);
    }
}

static uint32_t find_alike(const dbo_program *p, uint32_t ubatch, const char *wanted)
{
    char text[512];
    uint32_t found = 0;
    for (uint32_t i = 0; i < p->num_instrs[ubatch]; i++) {
        const dbo_instr *instr = &p->instrs[ubatch][i];
        if (instr->code != DBO_CODE_OP && instr->code != DBO_CODE_A2A_POST)
            continue;
        describe(p, instr, text, sizeof text);
        found += strcmp(text, wanted) == 0;
    }
    return found;
}

/* Each op of a script's layer touches what it does in the built-in schedule of that back end. */
static void layers_ops_touch_what_built_in_ones_do(void **state)
{
    (void)state;
    static const char *const layers[] = {
        LAYER("u.op('A0') u.op('A1') u.op('QUANT') u.op('DISPATCH_LAYOUT')\n"
              "local d = u.post('dispatch') u.host_wait(d) u.op('H2D_COPY') u.finish(d)\n"
              "u.op('MLP') u.op('WEIGHT_AND_REDUCE') u.finish(u.post('combine'))\n"
              "u.op('S') u.op('OUTPUT_COPY')\n"),
        LAYER("u.op('A0') u.op('A1') u.finish(u.post('dispatch')) u.op('MLP')\n"
              "u.finish(u.post('combine')) u.op('S')\n"),
    };
    for (uint32_t ll = 0; ll < 2; ll++)
        for (uint32_t late = 0; late < 2; late++) {
            dbo_experiment e;
            dbo_error err = {0};
            dbo_layer_costs costs[2];
            int64_t ns[DBO_KIND_COUNT];
            for (int k = 0; k < DBO_KIND_COUNT; k++)
                ns[k] = ll && (k == DBO_KIND_QUANT || k == DBO_KIND_COPY) ? -1 : 10 + k;
            for (uint32_t u = 0; u < 2; u++) {
                dbo_layer_costs_fixed(ns, 0, &costs[u]);
                costs[u].quant_late = late == 1;
                for (uint32_t role = 1; role < DBO_BUFFER_ROLES; role++)
                    costs[u].sizes.bytes[role] = role % 3 > 0 ? 1 : u;
            }
            if (load(layers[ll], &e, &err) != DBO_OK)
                fail_msg("%s", err.message);
            const dbo_build_options options = {.num_ubatches = 2,
                                               .memory = true,
                                               .io = true,
                                               .host_sync = !ll,
                                               .low_latency = ll == 1};
            const dbo_schedule *schedule = &e.schedule->schedule;
            dbo_program written, built;
            assert_int_equal(schedule->build(schedule->self, costs, &options, &written, &err),
                             DBO_OK);
            assert_int_equal((ll ? dbo_build_ll : dbo_build_ht)(costs, &options, &built, &err),
                             DBO_OK);
            for (uint32_t u = 0; u < 2; u++)
                for (uint32_t i = 0; i < written.num_instrs[u]; i++) {
                    const dbo_instr *instr = &written.instrs[u][i];
                    char text[512];
                    if (instr->code != DBO_CODE_OP && instr->code != DBO_CODE_A2A_POST)
                        continue;
                    describe(&written, instr, text, sizeof text);
                    if (find_alike(&built, u, text) == 0)
                        fail_msg("%s: no such op is built in", text);
                }
            dbo_program_fini(&built);
            dbo_program_fini(&written);
            dbo_experiment_fini(&e);
        }
}

/* ---- refusals ---- */

#define DISPATCH "local d = u.post('dispatch')\n"

static void data_is_not_there_to_depend_on(void **state)
{
    (void)state;
    const char *handle = "t.lua:4: a handle of a schedule has no value: it can only be given to a "
                         "function of u";
    expect_refusal(LAYER(DISPATCH "if d == u.event() then u.yield() end\n"), handle);
    expect_refusal(LAYER(DISPATCH "if d > 3 then u.yield() end\n"), handle);
    expect_refusal(LAYER(DISPATCH "u.op('A' .. d)\n"), handle);
    expect_refusal(LAYER(DISPATCH "u.op('A' .. (d + 1))\n"), handle);
    expect_refusal(LAYER(DISPATCH "u.op(d.tokens)\n"), handle);
    expect_refusal(LAYER(DISPATCH "for i = 1, #d do u.yield() end\n"), handle);
    expect_refusal(LAYER(DISPATCH "u.op(tostring(d))\n"), handle);
    expect_refusal(
        HEAD "local n = 0\n"
             "local s = dbo.schedule { name = 'mine', layer = function(u)\n"
             "n = n + 1\n"
             "for i = 1, n do u.op('A0') end end }\n" TAIL,
        "t.lua:5: schedule mine, ubatch 0: it is not the same when it is recorded twice: "
        "it differs from instruction 1 on");
    expect_refusal(
        LAYER("u.op { name = 'x', us = math.random() }\n"),
        "t.lua:3: schedule mine, ubatch 0: it is not the same when it is recorded twice: "
        "it differs from instruction 0 on");
    expect_refusal(HEAD "local kept\nlocal s = dbo.schedule { name = 'mine', layer = function(u)\n"
                        "kept = kept or u.post('dispatch')\nu.finish(kept) end }\n" TAIL,
                   "t.lua:5: a handle belongs to the ubatch that made it, and cannot be carried to "
                   "another");
    expect_refusal(HEAD "local kept\ndbo.schedule { name = 'mine', layer = function(u)\n"
                        "kept = u end }\nkept.yield()\n",
                   "t.lua:5: u is used after its layer function has returned");
}

static void calls_are_checked(void **state)
{
    (void)state;
    expect_refusal(LAYER("u:yield()\n"), "t.lua:3: the functions of u are called with a dot");
    expect_refusal(LAYER("u.yeild()\n"), "t.lua:3: u has no 'yeild', did you mean 'yield'?");
    expect_refusal(LAYER("u.op('A3')\n"), "t.lua:3: unknown op 'A3', did you mean 'A0'?");
    expect_refusal(LAYER("u.op('dispatch')\n"), "t.lua:3: a transfer is not an op: it is posted");
    expect_refusal(LAYER("u.op('DISPATCH')\n"), "t.lua:3: a transfer is not an op: it is posted");
    expect_refusal(LAYER("u.op()\n"), "t.lua:3: the op must be a string, got nil");
    expect_refusal(LAYER("u.op { name = 'A0', sm = 3 }\n"),
                   "t.lua:3: unknown key 'sm' in u.op, did you mean 'sms'?");
    expect_refusal(LAYER("u.op { name = 'A0', sms = 3 }\n"),
                   "t.lua:3: an op's sms are for an op with a duration of its own");
    expect_refusal(LAYER("u.post('scatter')\n"),
                   "t.lua:3: a transfer is a \"dispatch\" or a \"combine\"");
    expect_refusal(LAYER("u.op_of(2, 'S')\n"),
                   "t.lua:3: the ubatch of u.op_of is 2; it must be from 0 to 1");
    expect_refusal(LAYER("u.finish(u.event())\n"),
                   "t.lua:3: a handle that u.post() gave is needed here");
    expect_refusal(LAYER("u.yield_and_switch_from_comm_to_compute()\n"),
                   "t.lua:3: u yields and switches from a stream that is not current");
    expect_refusal(LAYER("u.switch_to_comm()\n"),
                   "t.lua:2: schedule mine: ubatch 0 ends its layer on the stream comm; the next "
                   "one begins on compute");
    expect_refusal(HEAD "dbo.schedule { layer = function() end }\n",
                   "t.lua:2: dbo.schedule needs name");
    expect_refusal(HEAD "dbo.schedule { name = 'a',\n layer = 3 }\n",
                   "t.lua:3: layer must be a function(u), got 3");
    expect_refusal(HEAD "local s = dbo.schedule { name = 'three', num_ubatches = 3,\n"
                        "  layer = function(u) u.op('A0') u.yield() end }\n" TAIL,
                   "t.lua:6: schedule three is written for 3 ubatches, but a step is split into 2");
    expect_refusal(HEAD "local s = 5\n" TAIL,
                   "t.lua:5: schedule must be a name or what dbo.schedule {} gives, got 5");
}

static void schedules_that_cannot_run_are_refused(void **state)
{
    (void)state;
    expect_refusal(LAYER("u.op('A0') u.yield()\nif u.id == 0 then u.yield() end\n"),
                   "t.lua:4: schedule mine, ubatch 0: waits for its turn for ever: it "
                   "yields 2 times a layer, ubatch 1 1 times");
    expect_refusal(LAYER("u.post('dispatch')\nu.yield()\n"),
                   "t.lua:3: schedule mine, ubatch 0: this transfer is posted again, but "
                   "nobody has received the last one");
    expect_refusal(LAYER(DISPATCH "u.finish(d)\nu.finish(d)\n"),
                   "t.lua:5: schedule mine, ubatch 0: a transfer is received that has not "
                   "been posted");
    expect_refusal(LAYER(DISPATCH "u.register_recv_hook(d)\n"
                                  "u.register_recv_hook(u.post('combine'))\nu.yield()\n"
                                  "u.maybe_run_recv_hook()\n"),
                   "t.lua:5: schedule mine, ubatch 0: the receive hook displaces one that "
                   "has not been run: its transfer would never be received");
    expect_refusal(LAYER("u.op('A0')\nu.wait('never')\n"),
                   "t.lua:4: schedule mine, ubatch 0: waits for an event that nobody "
                   "records");
    expect_refusal(LAYER(DISPATCH "u.finish(d)\nu.host_wait(d)\n"),
                   "t.lua:5: schedule mine, ubatch 0: the host waits for a transfer that "
                   "is not in flight");
}

/* ---- runs ---- */

static double layer_us(const char *text)
{
    dbo_experiment e;
    dbo_error err = {0};
    dbo_outcome outcome = {0};
    const dbo_simulate_options options = {0};
    if (load(text, &e, &err) != DBO_OK || dbo_simulate(&e, &options, &outcome, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_true(outcome.split);
    double us = outcome.on.metrics.layer_us.value;
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&e);
    return us;
}

static void the_engine_runs_it(void **state)
{
    (void)state;
    /* No overlap at all: A, D, M, C, S of both, one after the other. */
    assert_true(layer_us(LAYER("u.op('A0') u.op('A1') u.finish(u.post('dispatch'))\n"
                               "u.op('MLP') u.finish(u.post('combine')) u.op('S') u.yield()\n")) ==
                2 * 310);
    /* Another ubatch's op in my turn takes as long as in its own. */
    assert_true(layer_us(LAYER("u.op('A0') u.op('A1') u.finish(u.post('dispatch'))\n"
                               "u.op('MLP') u.finish(u.post('combine'))\n"
                               "u.op_of(1 - u.id, 'S') u.yield()\n")) == 2 * 310);
    /* Three ubatches, everything of one under the flights of the others: computation bounds. */
    assert_true(
        layer_us(HEAD "local s = dbo.schedule { name = 'three', num_ubatches = 3,\n"
                      "layer = function(u)\n"
                      "u.op('A0') u.op('A1') u.maybe_run_recv_hook()\n"
                      "u.register_recv_hook(u.post('dispatch')) u.yield()\n"
                      "u.op('MLP') u.maybe_run_recv_hook()\n"
                      "u.register_recv_hook(u.post('combine')) u.op('S') u.yield() end }\n"
                      "return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true,\n"
                      "  ubatch_size = 3, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70,\n"
                      "  C = 40 }, schedule = s, batch = dbo.decode { num_tokens = 63 } }\n") ==
        3 * 160 + 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_recorded_per_ubatch),
        cmocka_unit_test(instructions_have_lines_and_a_limit),
        cmocka_unit_test(a_template_is_filled_in),
        cmocka_unit_test(accesses_stay_as_they_are_written),
        cmocka_unit_test(layers_ops_touch_what_built_in_ones_do),
        cmocka_unit_test(data_is_not_there_to_depend_on),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(schedules_that_cannot_run_are_refused),
        cmocka_unit_test(the_engine_runs_it),
    };
    return cmocka_run_group_tests_name("lua_schedule", tests, make_folder, remove_folder);
}
