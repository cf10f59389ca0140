/* test_show_program.c: `dbo show program`: programs are listed, written and read back. */
#include "app/show/show.h"
#include "core/base/prng.h"
#include "lab/files/program_json.h"
#include "tests/support/json_text.h"
#include "tests/support/simulated.h"

static void listing(void **state)
{
    (void)state;
    simulated s;
    dbo_error err = {0};
    simulate(&s, "deepseek-v3-prefill.lua", NULL, 0);
    assert_int_equal(dbo_show_program(&s.outcome, 60, true, &s.text, &err), DBO_OK);
    expect(&s, "mlp_shared_overlap, of layers 3-60 of rank 0: 2 ubatches, 8 events, 4 transfers\n");
    expect(&s, "  RECORD        compute_done_0      compute\n");
    expect(&s, "  HOST_WAIT     D_0                 receive counts\n");
    expect(&s, "  RECORD_STREAM tokens0             comm\n");
    expect(&s, "us, behind previous_1\n");
    dbo_strbuf_clear(&s.text);
    assert_int_equal(dbo_show_program(&s.outcome, 0, true, &s.text, &err), DBO_OK);
    expect(&s, "dense, of layers 0-2 of rank 0");
    assert_int_equal(dbo_show_program(&s.outcome, 61, true, &s.text, &err), DBO_INVALID);
    simulated_fini(&s);
}

/* Every other layer has a window: six runs of layers are named. */
static void layers_that_take_turns(void **state)
{
    (void)state;
    static const char *const many[] = {"model=gpt-oss-120b", "model.layers=13"};
    static const char *const few[] = {"model=gpt-oss-120b", "model.layers=12"};
    simulated s;
    dbo_error err = {0};
    simulate(&s, "deepseek-v3-prefill.lua", many, NUM(many));
    assert_int_equal(dbo_show_program(&s.outcome, 12, true, &s.text, &err), DBO_OK);
    expect(&s, "of layers 0, 2, 4, 6, 8, 10, ... of rank 0");
    dbo_strbuf_clear(&s.text);
    assert_int_equal(dbo_show_program(&s.outcome, 1, true, &s.text, &err), DBO_OK);
    expect(&s, "of layers 1, 3, 5, 7, 9, 11 of rank 0");
    simulated_fini(&s);
    simulate(&s, "deepseek-v3-prefill.lua", few, NUM(few));
    assert_int_equal(dbo_show_program(&s.outcome, 2, true, &s.text, &err), DBO_OK);
    expect(&s, "of layers 0, 2, 4, 6, 8, 10 of rank 0");
    simulated_fini(&s);
}

static void same_instr(const dbo_instr *a, const dbo_instr *b)
{
    assert_int_equal(a->code, b->code);
    /* where a stream means something */
    if (a->code != DBO_CODE_YIELD && a->code != DBO_CODE_HOST_WAIT && a->code != DBO_CODE_HOOK_RUN)
        assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->wait_event, b->wait_event);
}

/* Out and in again: the same codes, streams, durations, identities; events and handles one to one.
 */
static void round_trip(const char *script)
{
    simulated s;
    dbo_plan plan;
    dbo_error err = {0};
    json_text text = {0};
    dbo_json_writer out;
    dbo_json *doc = NULL;
    dbo_program_file file;
    simulate(&s, script, NULL, 0);
    dbo_json_writer_init(&out, json_text_sink, &text, 1);
    assert_int_equal(dbo_show_program_json(&s.outcome, 60, &out, &err), DBO_OK);
    assert_int_equal(dbo_json_writer_finish(&out, &err), DBO_OK);
    assert_int_equal(dbo_json_parse(&doc, text.bytes, text.length, NULL, &err), DBO_OK);
    if (dbo_program_json_read(dbo_json_root(doc), NULL, &file, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(
        dbo_simulated_plan(s.outcome.result.experiment, &s.outcome.on, s.outcome.rank, &plan, &err),
        DBO_OK);
    const dbo_program *want = &plan.layers[plan.kind_of_layer[60]], *got = &file.program;
    assert_int_equal(got->num_ubatches, want->num_ubatches);
    assert_int_equal(got->num_ops, want->num_ops);
    assert_int_equal(got->num_posts, want->num_posts);
    assert_int_equal(file.op_names.count, got->num_ops);
    for (uint32_t i = 0; i < want->num_ops; i++)
        assert_true(got->ops[i].id_bits == want->ops[i].id_bits && got->ops[i].cost.fixed_ns > 0);
    for (uint32_t i = 0; i < want->num_posts; i++)
        assert_true(got->posts[i].id_bits == want->posts[i].id_bits &&
                    got->posts[i].direction == want->posts[i].direction);
    assert_int_equal(got->num_buffers, want->num_buffers);
    for (uint32_t i = 0; i < want->num_buffers; i++) {
        assert_string_equal(got->buffers[i].name, want->buffers[i].name);
        assert_int_equal(got->buffers[i].pool, want->buffers[i].pool);
        assert_int_equal(got->buffers[i].bytes, want->buffers[i].bytes);
    }
    for (uint32_t i = 0; i < want->num_ops; i++) {
        const dbo_op_io *io = want->ops[i].io;
        assert_int_equal(got->ops[i].io->num_reads, io ? io->num_reads : 0);
        for (uint32_t k = 0; io && k < io->num_reads; k++)
            assert_int_equal(got->ops[i].io->reads[k].buffer, io->reads[k].buffer);
    }
    for (uint32_t u = 0; u < want->num_ubatches; u++) {
        assert_int_equal(got->num_instrs[u], want->num_instrs[u]);
        for (uint32_t i = 0; i < want->num_instrs[u]; i++) {
            const dbo_instr *a = &want->instrs[u][i], *b = &got->instrs[u][i];
            same_instr(a, b);
            if (a->code == DBO_CODE_RECORD || a->code == DBO_CODE_WAIT) {
                char name[32];
                dbo_program_event_name(want, a->index, name, sizeof name);
                assert_string_equal(name, file.events.names[b->index]);
            }
        }
    }
    dbo_plan_fini(&plan);
    dbo_program_file_fini(&file);
    dbo_json_destroy(doc);
    json_text_fini(&text);
    simulated_fini(&s);
}

static void programs_read_back(void **state)
{
    (void)state;
    round_trip("deepseek-v3-decode.lua");
    round_trip("deepseek-v3-prefill.lua");
}

static dbo_status read_text(const char *text, dbo_program_file *file, dbo_error *err)
{
    dbo_json *doc = NULL;
    dbo_status status = dbo_json_parse(&doc, text, strlen(text), NULL, err);
    if (status == DBO_OK)
        status = dbo_program_json_read(dbo_json_root(doc), NULL, file, err);
    dbo_json_destroy(doc);
    return status;
}

/* Names may be numbers; buffers, further streams, hooks and waits arrive where they belong. */
static void files_are_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"num_ubatches\": 1, \"streams\": [\"compute\", \"copy\", \"comm\"],"
        " \"buffers\": [{\"name\": \"x\", \"pool\": \"comm\"}, {\"name\": \"y\"}], \"ubatches\": [["
        "{\"i\": \"ALLOC\", \"buffer\": \"y\", \"stream\": \"comm\"},"
        "{\"i\": \"OP\", \"name\": \"mine\", \"kind\": \"MLP\", \"stream\": \"copy\", \"us\": 1.5,"
        " \"sms\": 8, \"reads\": [\"x\"], \"writes\": [\"x\", \"y\"]},"
        "{\"i\": \"RECORD\", \"event\": 7, \"stream\": \"copy\"},"
        "{\"i\": \"A2A_POST\", \"dir\": \"combine\", \"handle\": \"h\", \"stream\": \"comm\","
        " \"us\": 3, \"reads\": [\"y\"], \"prev_event\": 7},"
        "{\"i\": \"HOOK_SET\", \"handle\": \"h\"}, {\"i\": \"HOOK_RUN\"},"
        "{\"i\": \"HOST_WAIT\", \"event\": 7}, {\"i\": \"HOST_WAIT\", \"handle\": \"h\"},"
        "{\"i\": \"OP\"}]]}";
    dbo_program_file file = {0};
    dbo_error err = {0};
    if (read_text(text, &file, &err) != DBO_OK)
        fail_msg("%s", err.message);
    const dbo_program *p = &file.program;
    const dbo_instr *in = p->instrs[0];
    if (!in || !p->buffers || !p->ops || !p->posts) {
        fail_msg("an empty program");
        return;
    }
    assert_int_equal(p->num_instrs[0], 9);
    assert_int_equal(p->num_streams, 3);
    assert_string_equal(p->stream_names[2], "copy");
    assert_int_equal(p->num_buffers, 2);
    assert_int_equal(p->buffers[0].pool, DBO_STREAM_COMM);
    assert_int_equal(p->buffers[1].pool, DBO_STREAM_COMPUTE);
    assert_true(in[0].index == 1 && in[0].stream == DBO_STREAM_COMM);
    const dbo_program_op *op = &p->ops[in[1].index];
    assert_true(in[1].stream == 2 && op->cost.fixed_ns == 1500 && op->cost.fixed_sms == 8);
    assert_true(op->io->num_reads == 1 && op->io->num_writes == 2 && op->io->writes[1].buffer == 1);
    assert_string_equal(file.op_names.names[in[1].index], "mine");
    assert_string_equal(file.events.names[in[2].index], "7");
    assert_int_equal(in[3].previous, in[2].index);
    assert_int_equal(p->posts[0].direction, DBO_A2A_COMBINE);
    assert_int_equal(in[4].stream, DBO_STREAM_COMM); /* a hook receives where it was posted */
    assert_true(in[6].wait_event == 1 && in[7].wait_event == 0);
    assert_int_equal(dbo_op_id_kind(p->ops[in[8].index].id_bits), DBO_KIND_CUSTOM);
    dbo_program_file_fini(&file);
}

static const char *const bad_rows[][2] = {
    {"{}", "num_ubatches"},
    {"{\"num_ubatches\": 17, \"ubatches\": []}", "num_ubatches"},
    {"{\"num_ubatches\": 2, \"streams\": [\"comm\"], \"ubatches\": [[]]}",
     "ubatches: there are 1 lists, not num_ubatches, 2"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [3]}",
     "ubatches[0]: must be an array, not an integer"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"YIELD\"}, 3]]}",
     "ubatches[0][1]: must be an object"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"YEILD\"}]]}",
     "ubatches[0][0].i: no instruction is called 'YEILD'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"kind\": "
     "\"MPL\"}]]}",
     "ubatches[0][0].kind: no kind of op is called 'MPL'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"us\": "
     "-1}]]}",
     "ubatches[0][0].us: must be from 0 to 1e+12, not -1"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"stream\": "
     "\"x\"}]]}",
     "ubatches[0][0].stream: there is no stream 'x'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"stream\": "
     "9}]]}",
     "there is no stream 9"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"WAIT\"}]]}",
     "ubatches[0][0].event: this key is missing"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"A2A_POST\", "
     "\"handle\": "
     "1,"
     " \"dir\": \"up\"}]]}",
     "ubatches[0][0].dir: no direction is called 'up'"},
    {"{\"num_ubatches\": 1, \"buffers\": [{\"name\": \"x\"}], \"streams\": [\"comm\"], "
     "\"ubatches\": "
     "[[{\"i\": \"FREE\","
     " \"buffer\": \"y\"}]]}",
     "ubatches[0][0].buffer: \"buffers\" has no 'y'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"buffers\": [{\"name\": \"x\"}, {\"name\": "
     "\"x\"}],"
     " \"ubatches\": [[]]}",
     "buffers[1].name: two buffers are called 'x'"},
    {"{\"num_ubatches\": 1, \"streams\": [1, 2, 3, 4, 5, 6, 7, 8, 9], \"ubatches\": [[]]}",
     "streams[6]: '7' is one too many"},
    {"{\"num_ubatches\": 1, \"ubatches\": [[]]}", "streams: this key is missing"},
    {"{\"num_ubatches\": 1, \"streams\": [], \"ubatches\": [[]]}", "streams: no stream is named"},
    {"{\"num_ubatches\": 2, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"RECORD\","
     " \"event\": 3}], [{\"i\": \"YIELD\"}, {\"i\": \"WAIT\", \"event\": 4}]]}",
     "ubatches[1][1].event: nothing records the event '4'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"HOST_WAIT\","
     " \"event\": \"e\"}]]}",
     "ubatches[0][0].event: nothing records the event 'e'"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"YIELD\"},"
     " {\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": 1, \"prev_event\": \"f\"}]]}",
     "ubatches[0][1].prev_event: nothing records the event 'f'"},
    {"{\"num_ubatches\": 1, \"streams\": \"comm\", \"ubatches\": [[]]}",
     "streams: must be an array, not a string"},
    {"{\"num_ubatches\": 1, \"streams\": [[]], \"ubatches\": [[]]}",
     "streams[0]: must be a string, not an array"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"name\": "
     "\"\"}]]}",
     "ubatches[0][0].name: a name has 1 to 127 characters"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatchs\": [[]]}", "ubatchs: unknown key"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"buffers\": [{\"name\": 1}, {\"name\": 2,"
     " \"byte\": 1}], \"ubatches\": [[]]}",
     "buffers[1].byte: unknown key"},
    {"{\"num_ubatches\": 2, \"streams\": [\"comm\"], \"ubatches\": [[], [{\"i\": \"YIELD\"},"
     " {\"i\": \"WAIT\", \"event\": 1, \"handle\": 2}]]}",
     "ubatches[1][1].handle: unknown key"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"HOST_WAIT\","
     " \"event\": 1, \"handle\": 2}]]}",
     "ubatches[0][0]: the host waits for an event or for a handle"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"SET_STREAM\"}]]}",
     "ubatches[0][0].stream: this key is missing"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"reads\":"
     " [\"x\", {}]}]]}",
     "ubatches[0][0].reads[1]: must be a string, not an object"},
    {"{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [[{\"i\": \"OP\", \"sms\":"
     " 65536}]]}",
     "ubatches[0][0].sms: must be from 0 to 65535, not 65536"},
};

static void bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM(bad_rows); i++) {
        dbo_program_file file;
        dbo_error err = {0};
        assert_int_not_equal(read_text(bad_rows[i][0], &file, &err), DBO_OK);
        if (!strstr(err.message, bad_rows[i][1]))
            fail_msg("%s: %s", bad_rows[i][0], err.message);
    }
}

static double fixed_us(void *self, const dbo_program_op *op, uint32_t *sms)
{
    (void)self;
    *sms = op->cost.fixed_sms;
    return (double)op->cost.fixed_ns / 1000;
}

static double fixed_post_us(void *self, const dbo_program_post *post)
{
    (void)self;
    return (double)post->cost.fixed_ns / 1000;
}

static void expect_same(const dbo_program *want, const dbo_program *got)
{
    bool met[DBO_CODE_COUNT] = {false};
    assert_int_equal(got->num_buffers, want->num_buffers);
    assert_int_equal(got->num_streams, want->num_streams);
    for (uint32_t b = 0; b < want->num_buffers; b++)
        assert_true(got->buffers[b].bytes == want->buffers[b].bytes &&
                    got->buffers[b].pool == want->buffers[b].pool &&
                    got->buffers[b].workspace == want->buffers[b].workspace &&
                    got->buffers[b].input == want->buffers[b].input);
    for (uint32_t u = 0; u < want->num_ubatches; u++) {
        assert_int_equal(got->num_instrs[u], want->num_instrs[u]);
        for (uint32_t i = 0; i < want->num_instrs[u]; i++) {
            const dbo_instr *w = &want->instrs[u][i], *g = &got->instrs[u][i];
            assert_true(g->code == w->code && g->stream == w->stream && g->index == w->index &&
                        g->previous == w->previous && g->wait_event == w->wait_event);
            met[w->code] = true;
        }
    }
    for (uint32_t i = 0; i < want->num_ops; i++)
        assert_true(got->ops[i].cost.fixed_ns == want->ops[i].cost.fixed_ns &&
                    got->ops[i].cost.fixed_sms == want->ops[i].cost.fixed_sms &&
                    got->ops[i].io->num_reads == want->ops[i].io->num_reads &&
                    got->ops[i].io->num_writes == want->ops[i].io->num_writes);
    for (uint32_t i = 0; i < want->num_posts; i++)
        assert_true(got->posts[i].cost.fixed_ns == want->posts[i].cost.fixed_ns &&
                    got->posts[i].direction == want->posts[i].direction &&
                    got->posts[i].handle == want->posts[i].handle);
    for (uint32_t code = 0; code < DBO_CODE_COUNT; code++)
        assert_true(met[code]);
}

static void every_instruction_is_read_back(void **state)
{
    (void)state;
    static const char text[] =
        "{\"num_ubatches\": 2, \"streams\": [\"side\", \"compute\"], \"buffers\": [{\"name\": "
        "\"x\","
        " \"pool\": \"side\", \"bytes\": 640}, {\"name\": \"y\", \"workspace\": true}, {\"name\": "
        "3,"
        " \"input\": true, \"bytes\": 17}], \"ubatches\": [[{\"i\": \"ALLOC\", \"buffer\": \"x\"},"
        "{\"i\": \"SET_STREAM\", \"stream\": \"side\"}, {\"i\": \"OP\", \"kind\": \"MLP\", \"us\": "
        "1.5,"
        " \"sms\": 7, \"reads\": [3], \"writes\": [\"x\", \"y\"]}, {\"i\": \"RECORD\", \"event\": "
        "\"e\"},"
        "{\"i\": \"A2A_POST\", \"dir\": \"combine\", \"handle\": \"h\", \"stream\": \"comm\", "
        "\"us\": 9,"
        " \"reads\": [\"x\"], \"prev_event\": \"e\"}, {\"i\": \"HOOK_SET\", \"handle\": \"h\"},"
        "{\"i\": \"YIELD\"}, {\"i\": \"RECORD_STREAM\", \"buffer\": \"x\", \"stream\": \"comm\"},"
        "{\"i\": \"FREE\", \"buffer\": \"x\"}], [{\"i\": \"HOOK_RUN\"}, {\"i\": \"A2A_POST\","
        " \"dir\": \"dispatch\", \"handle\": 8, \"us\": 4}, {\"i\": \"WAIT\", \"event\": \"f\"},"
        "{\"i\": \"HOST_WAIT\", \"handle\": 8}, {\"i\": \"HOST_WAIT\", \"event\": \"f\"},"
        "{\"i\": \"A2A_FINISH\", \"handle\": 8, \"stream\": \"comm\"}, {\"i\": \"YIELD\"},"
        "{\"i\": \"RECORD\", \"event\": \"f\", \"stream\": \"comm\"}]]}";
    const dbo_program_times times = {.op_us = fixed_us, .post_us = fixed_post_us};
    dbo_program_file file, again;
    dbo_error err = {0};
    json_text written = {0};
    dbo_json_writer out;
    if (read_text(text, &file, &err) != DBO_OK)
        fail_msg("%s", err.message);
    dbo_json_writer_init(&out, json_text_sink, &written, 1);
    dbo_program_json(&file.program, &times, &out);
    assert_int_equal(dbo_json_writer_finish(&out, &err), DBO_OK);
    if (read_text(written.bytes, &again, &err) != DBO_OK)
        fail_msg("%s", err.message);
    expect_same(&file.program, &again.program);
    dbo_program_file_fini(&file);
    dbo_program_file_fini(&again);
    json_text_fini(&written);
}

/* Bytes changed, lost and doubled: read or refused with a sentence, never harmed by. */
static void mutated_files_do_no_harm(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\"OP\"",    "\"A2A_POST\"", "null", "-1",
                                         "9",         "[]",           "{}",   "\"compute\"",
                                         "\"event\"", "\"handle\"",   "1e99", ","};
    static const char start[] =
        "{\"num_ubatches\": 2, \"streams\": [\"compute\", \"x\"], \"buffers\": [{\"name\": \"b\","
        " \"bytes\": 8}], \"ubatches\": [[{\"i\": \"ALLOC\", \"buffer\": \"b\"}, {\"i\": \"OP\","
        " \"us\": 1, \"reads\": [\"b\"], \"stream\": \"x\"}, {\"i\": \"YIELD\"}],"
        " [{\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": 1, \"prev_event\": 2},"
        " {\"i\": \"HOOK_SET\", \"handle\": 1}, {\"i\": \"HOST_WAIT\", \"event\": 2},"
        " {\"i\": \"RECORD\", \"event\": 2}]]}";
    dbo_prng prng;
    uint32_t fine = 0;
    dbo_prng_init(&prng, 1, 0);
    for (uint32_t round = 0; round < 4000; round++) {
        char text[1024];
        dbo_program_file file;
        dbo_error err = {0};
        memcpy(text, start, sizeof start);
        for (uint64_t n = dbo_prng_below(&prng, 3) + 1; n > 0; n--) {
            const char *piece = pieces[dbo_prng_below(&prng, NUM(pieces))];
            size_t at = (size_t)dbo_prng_below(&prng, strlen(text));
            size_t lost = (size_t)dbo_prng_below(&prng, 6), length = strlen(text);
            lost = lost > length - at ? length - at : lost;
            memmove(text + at + strlen(piece), text + at + lost, length - at - lost + 1);
            for (size_t i = 0; piece[i]; i++)
                text[at + i] = piece[i];
        }
        if (read_text(text, &file, &err) == DBO_OK) {
            fine++;
            dbo_program_file_fini(&file);
        } else {
            assert_true(err.message[0] != '\0');
        }
    }
    assert_true(fine > 0 && fine < 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listing),
        cmocka_unit_test(layers_that_take_turns),
        cmocka_unit_test(programs_read_back),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(every_instruction_is_read_back),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(mutated_files_do_no_harm),
    };
    return cmocka_run_group_tests_name("show_program", tests, NULL, NULL);
}
