/* test_program.c: building and checking programs, and what the interpreter refuses. */
#include "core/program/program.h"
#include "core/rank/rank.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const dbo_op_cost op_cost = {.fixed_ns = 10};
static const dbo_a2a_cost a2a_cost = {.fixed_ns = 20};

static dbo_instr instr(dbo_code code, uint8_t stream, uint16_t index)
{
    return (dbo_instr){
        .code = (uint8_t)code, .stream = stream, .index = index, .previous = DBO_NO_INDEX};
}

static void occurrences_count_per_ubatch_and_kind(void **state)
{
    (void)state;
    dbo_program_builder b;
    dbo_program p;
    dbo_error err = {0};
    dbo_program_builder_init(&b, "mine", 2);
    assert_int_equal(dbo_program_add_op(&b, 0, DBO_KIND_A0, &op_cost, 1), 0);
    assert_int_equal(dbo_program_add_op(&b, 0, DBO_KIND_A0, &op_cost, 3), 1);
    assert_int_equal(dbo_program_add_op(&b, 1, DBO_KIND_A0, &op_cost, 0), 2);
    assert_int_equal(dbo_program_add_op(&b, 0, DBO_KIND_MLP, &op_cost, 1), 3);
    uint16_t handle = dbo_program_add_handle(&b);
    assert_int_equal(dbo_program_add_post(&b, 1, DBO_A2A_DISPATCH, &a2a_cost, handle), 0);
    assert_int_equal(dbo_program_add_post(&b, 1, DBO_A2A_COMBINE, &a2a_cost, handle), 1);
    assert_int_equal(dbo_program_add_stream(&b, "third"), 2);
    assert_int_equal(dbo_program_add_event(&b), 0);
    assert_int_equal(dbo_program_add_buffer(&b, "rows", 4096, DBO_STREAM_COMM), 0);
    for (uint16_t i = 0; i < 40; i++)
        dbo_program_emit(&b, 1, instr(DBO_CODE_OP, 2, (uint16_t)(i % 4)));
    assert_int_equal(dbo_program_builder_finish(&b, &p, &err), DBO_OK);
    assert_int_equal(p.num_ubatches, 2);
    assert_int_equal(p.num_streams, 3);
    assert_string_equal(p.stream_names[0], "compute");
    assert_string_equal(p.stream_names[2], "third");
    assert_int_equal(p.num_instrs[0], 0);
    assert_int_equal(p.num_instrs[1], 40);
    assert_int_equal(p.instrs[1][39].index, 3);
    assert_true(p.ops[1].id_bits == dbo_op_id_make(0, 0, 0, 0, DBO_KIND_A0, 1));
    assert_true(p.ops[2].id_bits == dbo_op_id_make(0, 0, 0, 1, DBO_KIND_A0, 0));
    assert_int_equal(p.ops[1].kernels, 3);
    assert_int_equal(p.ops[2].kernels, 1); /* at least one launch is charged */
    assert_true(p.posts[1].id_bits == dbo_op_id_make(0, 0, 0, 1, DBO_KIND_COMBINE, 0));
    assert_int_equal(p.posts[0].cost.fixed_ns, 20);
    dbo_program_fini(&p);
    dbo_program_fini(&p); /* zeroed: fine */
}

static void codes_have_names(void **state)
{
    (void)state;
    for (int code = 0; code < DBO_CODE_COUNT; code++) {
        assert_non_null(dbo_code_name((dbo_code)code));
        for (int other = 0; other < code; other++)
            assert_string_not_equal(dbo_code_name((dbo_code)code), dbo_code_name((dbo_code)other));
    }
    assert_string_equal(dbo_code_name(DBO_CODE_A2A_POST), "A2A_POST");
    assert_string_equal(dbo_code_name(DBO_CODE_RECORD_STREAM), "RECORD_STREAM");
    assert_string_equal(dbo_code_name(DBO_CODE_COUNT), "?");
}

/* A program with one of everything, then this instruction for ubatch 1. */
static dbo_status finish_with(dbo_instr last, dbo_error *err)
{
    dbo_program_builder b;
    dbo_program p = {0};
    dbo_program_builder_init(&b, "mine", 2);
    dbo_program_add_op(&b, 0, DBO_KIND_A0, &op_cost, 1);
    dbo_program_add_event(&b);
    dbo_program_add_buffer(&b, "rows", 4096, DBO_STREAM_COMM);
    dbo_program_add_post(&b, 0, DBO_A2A_DISPATCH, &a2a_cost, dbo_program_add_handle(&b));
    dbo_program_emit(&b, 1, instr(DBO_CODE_YIELD, 0, 0));
    dbo_program_emit(&b, 1, last);
    dbo_status status = dbo_program_builder_finish(&b, &p, err);
    dbo_program_fini(&p);
    return status;
}

static void every_index_is_checked(void **state)
{
    (void)state;
    static const dbo_code indexed[] = {
        DBO_CODE_OP,       DBO_CODE_RECORD,       DBO_CODE_WAIT,      DBO_CODE_HOOK_SET,
        DBO_CODE_A2A_POST, DBO_CODE_A2A_FINISH,   DBO_CODE_HOST_WAIT, DBO_CODE_ALLOC,
        DBO_CODE_FREE,     DBO_CODE_RECORD_STREAM};
    dbo_error err = {0};
    for (size_t i = 0; i < sizeof indexed / sizeof indexed[0]; i++) {
        char wanted[128];
        assert_int_equal(finish_with(instr(indexed[i], 1, 0), &err), DBO_OK);
        assert_int_equal(finish_with(instr(indexed[i], 1, 1), &err), DBO_INVALID);
        snprintf(wanted, sizeof wanted, "program mine, ubatch 1, instruction 1: %s names an op",
                 dbo_code_name(indexed[i]));
        assert_non_null(strstr(err.message, wanted));
        assert_int_equal(finish_with(instr(indexed[i], 2, 0), &err), DBO_INVALID);
        assert_non_null(strstr(err.message, "names an unknown stream"));
    }
    dbo_instr odd = instr(DBO_CODE_HOST_WAIT, 0, 1);
    odd.wait_event = 1;
    assert_int_equal(finish_with(odd, &err), DBO_INVALID);
    odd = instr(DBO_CODE_A2A_POST, 0, 0);
    odd.previous = 1;
    assert_int_equal(finish_with(odd, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "A2A_POST waits for an unknown event"));
    assert_int_equal(finish_with(instr(DBO_CODE_COUNT, 0, 0), &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "is of no known kind"));
    assert_int_equal(finish_with(instr(DBO_CODE_SET_STREAM, 2, 0), &err), DBO_INVALID);
}

static void expect_failure(dbo_program_builder *b, dbo_status status, const char *part)
{
    dbo_program p = {0};
    dbo_error err = {0};
    assert_int_equal(dbo_program_builder_finish(b, &p, &err), status);
    if (!strstr(err.message, part))
        fail_msg("'%s' lacks '%s'", err.message, part);
    assert_null(p.ops); /* untouched */
}

static void the_first_failure_sticks(void **state)
{
    (void)state;
    dbo_program_builder b;
    dbo_program_builder_init(&b, "mine", 2);
    dbo_program_add_post(&b, 0, DBO_A2A_DISPATCH, &a2a_cost, 7);
    expect_failure(&b, DBO_INVALID, "transfer 0 leaves its handle in unknown slot 7");
    dbo_program_builder_init(&b, "mine", 2);
    dbo_program_emit(&b, 2, instr(DBO_CODE_YIELD, 0, 0));
    dbo_program_add_op(&b, 2, DBO_KIND_A0, &op_cost, 1);
    expect_failure(&b, DBO_INVALID, "program mine: an instruction names an unknown ubatch");
    dbo_program_builder_init(&b, "mine", 2);
    dbo_program_add_op(&b, 2, DBO_KIND_A0, &op_cost, 1);
    expect_failure(&b, DBO_INVALID, "an op names an unknown ubatch or kind");
    dbo_program_builder_init(&b, "mine", 2);
    dbo_program_add_op(&b, 0, DBO_KIND_COUNT, &op_cost, 1);
    expect_failure(&b, DBO_INVALID, "an op names an unknown ubatch or kind");
}

static void a_wrong_number_of_ubatches(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, DBO_MAX_UBATCHES + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dbo_program_builder b;
        dbo_program_builder_init(&b, "mine", counts[i]);
        /* What follows must not be believed either. */
        dbo_program_add_op(&b, counts[i] - 1, DBO_KIND_A0, &op_cost, 1);
        dbo_program_emit(&b, counts[i] - 1, instr(DBO_CODE_YIELD, 0, 0));
        expect_failure(&b, DBO_LIMIT, "the number of ubatches must be 1 to 16");
        dbo_program p = {.name = "read", .num_ubatches = counts[i], .num_streams = 2};
        dbo_error err = {0};
        assert_int_equal(dbo_program_check(&p, &err), DBO_LIMIT);
    }
}

static void limits(void **state)
{
    (void)state;
    dbo_program_builder b;
    dbo_program_builder_init(&b, "mine", 1);
    for (uint32_t i = 2; i < DBO_MAX_STREAMS; i++)
        assert_int_equal(dbo_program_add_stream(&b, "x"), i);
    dbo_program_add_stream(&b, "x");
    expect_failure(&b, DBO_LIMIT, "more than 8 streams");

    dbo_program_builder_init(&b, "mine", 1);
    for (uint32_t i = 0; i < DBO_NO_INDEX; i++)
        assert_int_equal(dbo_program_add_event(&b), i);
    dbo_program_add_event(&b);
    expect_failure(&b, DBO_LIMIT, "more than 65535 events, handles or buffers");

    dbo_program_builder_init(&b, "mine", 2);
    for (uint32_t i = 0; i < DBO_NO_INDEX; i++)
        dbo_program_add_op(&b, i & 1, DBO_KIND_A0, &op_cost, 1);
    dbo_program p;
    dbo_error err = {0};
    dbo_program_builder full = b;
    assert_int_equal(dbo_program_builder_finish(&full, &p, &err), DBO_OK);
    assert_int_equal(p.num_ops, 65535);
    dbo_program_fini(&p);

    dbo_program_builder_init(&b, "mine", 2);
    for (uint32_t i = 0; i <= DBO_NO_INDEX; i++)
        dbo_program_add_op(&b, i & 1, DBO_KIND_A0, &op_cost, 1);
    expect_failure(&b, DBO_LIMIT, "more than 65535 ops");

    dbo_program_builder_init(&b, "mine", 2);
    uint16_t handle = dbo_program_add_handle(&b);
    for (uint32_t i = 0; i < DBO_NO_INDEX; i++)
        assert_int_equal(dbo_program_add_post(&b, i & 1, DBO_A2A_COMBINE, &a2a_cost, handle), i);
    full = b;
    assert_int_equal(full.status, DBO_OK);
    dbo_program_add_post(&b, 0, DBO_A2A_DISPATCH, &a2a_cost, handle);
    expect_failure(&b, DBO_LIMIT, "more than 65535 transfers");
}

/* ---- the interpreter ---- */

typedef struct world {
    dbo_program program;
    dbo_sim_transport transport;
    dbo_sim *sim;
    dbo_rank rank;
    uint32_t num_ubatches; /* 0: unsplit */
    bool without_a2a;
} world;

static dbo_status part(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    world *w = arg;
    (void)err;
    return dbo_program_run(ubatch->rank, ubatch, &w->program, 3, 5);
}

static dbo_status rank_main(void *arg, uint32_t id, dbo_error *err)
{
    world *w = arg;
    dbo_seam seam;
    dbo_sim_seam(w->sim, id, &seam);
    if (w->without_a2a)
        seam.a2a = NULL;
    DBO_TRY(dbo_rank_init(&w->rank, id, &seam, DBO_CONTEXT_FIBER, DBO_MAX_UBATCHES,
                          dbo_sim_pool(w->sim), err));
    dbo_status status = dbo_rank_fit(&w->rank, &w->program, err);
    if (status == DBO_OK && w->num_ubatches > 0)
        status = dbo_ubatches_run(&w->rank, w->num_ubatches, 3, part, w, err);
    else if (status == DBO_OK) {
        status = dbo_program_run(&w->rank, NULL, &w->program, 3, 5);
        if (status != DBO_OK)
            dbo_rank_fail(&w->rank, status, err);
    }
    dbo_rank_fini(&w->rank);
    return status;
}

/* One post with its handle, then what `instrs` say, in ubatch 0 (of one). */
static void interpret(world *w, const dbo_instr *instrs, uint32_t count, dbo_status wanted,
                      const char *message)
{
    dbo_program_builder b;
    dbo_error err = {0};
    dbo_program_builder_init(&b, "mine", 1);
    dbo_program_add_op(&b, 0, DBO_KIND_A0, &op_cost, 1);
    dbo_program_add_event(&b);
    dbo_program_add_buffer(&b, "rows", 4096, DBO_STREAM_COMM);
    dbo_program_add_post(&b, 0, DBO_A2A_DISPATCH, &a2a_cost, dbo_program_add_handle(&b));
    for (uint32_t i = 0; i < count; i++)
        dbo_program_emit(&b, 0, instrs[i]);
    assert_int_equal(dbo_program_builder_finish(&b, &w->program, &err), DBO_OK);
    const dbo_sim_options options = {.num_ranks = 1, .transport = w->transport};
    w->sim = dbo_sim_create(&options, &err);
    assert_non_null(w->sim);
    dbo_status status = dbo_sim_run(w->sim, rank_main, w, &err);
    if (status != wanted || (message && !strstr(err.message, message)))
        fail_msg("status %s: '%s' lacks '%s'", dbo_status_name(status), err.message, message);
    dbo_sim_destroy(w->sim);
    dbo_program_fini(&w->program);
}

static void what_the_interpreter_refuses(void **state)
{
    (void)state;
    world w = {.transport = DBO_SIM_LL};
    const dbo_instr post = instr(DBO_CODE_A2A_POST, 0, 0);
    const dbo_instr finish = instr(DBO_CODE_A2A_FINISH, 0, 0);
    const dbo_instr hook = instr(DBO_CODE_HOOK_SET, 0, 0);
    const dbo_instr counts = instr(DBO_CODE_HOST_WAIT, 0, 0);
    const dbo_instr fine[] = {post, finish, post, hook};
    interpret(&w, fine, 4, DBO_OK, NULL);
    interpret(&w, &finish, 1, DBO_REFUSED, "transfer slot 0 is finished, but nothing was posted");
    const dbo_instr twice[] = {post, finish, finish};
    interpret(&w, twice, 3, DBO_REFUSED, "nothing was posted into it");
    interpret(&w, &hook, 1, DBO_REFUSED, "nothing was posted into it");
    interpret(&w, &counts, 1, DBO_REFUSED, "the host waits for transfer slot 0, but nothing");
    w.without_a2a = true;
    interpret(&w, &post, 1, DBO_UNSUPPORTED, "this machine has no all-to-all");
}

/* In an ubatch the hook is run by whoever comes next, and its refusal names the ubatch. */
static void a_hook_without_a_post(void **state)
{
    (void)state;
    world w = {.transport = DBO_SIM_LL, .num_ubatches = 1};
    const dbo_instr hook = instr(DBO_CODE_HOOK_SET, 0, 0);
    const dbo_instr run[] = {hook, instr(DBO_CODE_HOOK_RUN, 0, 0)};
    interpret(&w, run, 2, DBO_REFUSED, "ubatch 0: transfer slot 0 is finished");
    interpret(&w, &hook, 1, DBO_REFUSED, "ubatch 0: transfer slot 0 is finished"); /* at exit */
}

static void a_program_without_my_part(void **state)
{
    (void)state;
    world w = {.transport = DBO_SIM_HT, .num_ubatches = 2};
    const dbo_instr op = instr(DBO_CODE_OP, 0, 0);
    interpret(&w, &op, 1, DBO_INVALID, "ubatch 1: program mine has no part for ubatch 1");
}

static void events_and_buffers_do_nothing_alone(void **state)
{
    (void)state;
    world w = {.transport = DBO_SIM_HT};
    dbo_instr wait_event = instr(DBO_CODE_HOST_WAIT, 0, 0);
    wait_event.wait_event = 1;
    const dbo_instr all[] = {wait_event,
                             instr(DBO_CODE_WAIT, 0, 0),
                             instr(DBO_CODE_ALLOC, 0, 0),
                             instr(DBO_CODE_RECORD_STREAM, 1, 0),
                             instr(DBO_CODE_FREE, 0, 0),
                             instr(DBO_CODE_SET_STREAM, 1, 0),
                             instr(DBO_CODE_YIELD, 0, 0),
                             instr(DBO_CODE_HOOK_RUN, 0, 0)};
    interpret(&w, all, 8, DBO_OK, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(occurrences_count_per_ubatch_and_kind),
        cmocka_unit_test(codes_have_names),
        cmocka_unit_test(every_index_is_checked),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(a_wrong_number_of_ubatches),
        cmocka_unit_test(limits),
        cmocka_unit_test(what_the_interpreter_refuses),
        cmocka_unit_test(a_hook_without_a_post),
        cmocka_unit_test(a_program_without_my_part),
        cmocka_unit_test(events_and_buffers_do_nothing_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
