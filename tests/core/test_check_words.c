/* test_check_words.c: findings about memory, word for word: who, which buffer or block of it, what
 * would have ordered them. Their causes, and what is no finding: test_check.c. */
#include "tests/support/check_world.h"

#include <stdio.h>

#define COMPUTE 0u
#define COMM    1u

typedef struct words {
    const char *buffer, *what, *missing, *fix;
} words;

static void expect_words(const dbo_finding *f, const words *said)
{
    assert_string_equal(f->buffer, said->buffer);
    assert_string_equal(f->what, said->what);
    assert_string_equal(f->missing_edge, said->missing);
    assert_string_equal(f->fix, said->fix);
}

static void expect(check_world *w, dbo_finding_kind kind, dbo_op_id a, dbo_op_id b,
                   const words *said)
{
    dbo_findings findings;
    check_world_close(w, DBO_OK, &findings);
    for (uint32_t i = 0; i < findings.count && findings.count != 1; i++)
        printf("%s\n", findings.items[i].what);
    assert_int_equal(findings.count, 1);
    const dbo_finding *f = &findings.items[0];
    expect_words(f, said);
    assert_int_equal(f->kind, kind);
    assert_int_equal(f->num_ops, b ? 2 : 1);
    assert_int_equal(f->ops[0], a);
    assert_int_equal(f->ops[1], b);
    dbo_findings_fini(&findings);
}

static void memory(check_world *w, dbo_memory_what what, uint32_t buffer, const char *name)
{
    const dbo_memory_event event = {
        .what = what, .buffer = buffer, .stream = COMPUTE, .name = name, .bytes = 64};
    w->seams[0].trace->memory(w->seams[0].trace_self, &event);
}

static dbo_op_id id_of(uint32_t layer, uint32_t ubatch, dbo_op_kind kind)
{
    return dbo_op_id_make(3, 0, layer, ubatch, (uint32_t)kind, 0);
}

/* An op that reads or writes `bytes` of a buffer; `addresses`: where its buffers are, or NULL. */
static void touch(check_world *w, dbo_stream stream, dbo_op_id id, uint32_t buffer, bool write,
                  uint64_t offset, uint64_t bytes, const uint64_t *addresses)
{
    static const dbo_op_cost cost = {.fixed_ns = 1};
    dbo_access *access = &w->accesses[(size_t)2 * w->num_ios + (write ? 1 : 0)];
    const dbo_op op = {.id = id,
                       .cost = &cost,
                       .io = check_io(w, write ? NONE : buffer, write ? buffer : NONE),
                       .addresses = addresses};
    access->offset_bytes = offset;
    access->bytes = bytes;
    dbo_seam *seam = &w->seams[0];
    assert_int_equal(seam->device->launch(seam->device_self, stream, &op), DBO_OK);
}

/* ---- memory that is not there ---- */

static void freed_memory_is_named(void **state)
{
    (void)state;
    static const uint64_t addresses[8] = {0};
    static const words read = {"rows", "MLP of ubatch 1 (layer 2) reads rows, which has been freed",
                               "MLP of ubatch 1 (layer 2) before the free of rows",
                               "Free rows later."};
    static const words written = {"r", "MLP of ubatch 1 (layer 2) writes r, which has been freed",
                                  "MLP of ubatch 1 (layer 2) before the free of r",
                                  "Free r later."};
    for (int write = 0; write < 2; write++) {
        check_world w;
        check_world_open(&w, NULL, 1);
        memory(&w, DBO_MEMORY_TAKE, 3, write ? "r" : "rows");
        memory(&w, DBO_MEMORY_DROP, 3, NULL);
        touch(&w, COMPUTE, id_of(2, 1, DBO_KIND_MLP), 3, write, 0, 0, addresses);
        expect(&w, DBO_FINDING_USE_AFTER_FREE, id_of(2, 1, DBO_KIND_MLP), 0,
               write ? &written : &read);
    }
}

static void memory_that_never_was_is_named(void **state)
{
    (void)state;
    static const uint64_t addresses[8] = {0};
    const dbo_check_buffer buffer = {.buffer = 3, .name = "x"};
    const dbo_check_options options = {.buffers = &buffer, .num_buffers = 1};
    static const words named = {
        "x", "A1 of ubatch 0 (layer 5) writes x, which has not been allocated",
        "the allocation of x before A1 of ubatch 0 (layer 5)", "Allocate x first."};
    static const words nameless = {
        "a buffer", "A1 of ubatch 0 (layer 5) reads a buffer, which has not been allocated",
        "the allocation of a buffer before A1 of ubatch 0 (layer 5)", "Allocate a buffer first."};
    check_world w;
    check_world_open(&w, &options, 1);
    touch(&w, COMPUTE, id_of(5, 0, DBO_KIND_A1), 3, true, 0, 0, addresses);
    expect(&w, DBO_FINDING_RULE, id_of(5, 0, DBO_KIND_A1), 0, &named);
    check_world_open(&w, &options, 1);
    touch(&w, COMPUTE, id_of(5, 0, DBO_KIND_A1), 4, false, 0, 0, addresses);
    expect(&w, DBO_FINDING_READ_BEFORE_WRITE, id_of(5, 0, DBO_KIND_A1), 0, &nameless);
}

/* ---- blocks ---- */

/* Of a cache in blocks the block is named: bytes 24 to 31 of blocks of 8 are the fourth. */
static void a_block_is_named_by_its_number(void **state)
{
    (void)state;
    static const struct {
        uint64_t block, offset;
        const char *name;
    } cases[] = {{8, 24, "block 3 of kv"}, {1, 29, "block 29 of kv"}, {0, 24, "kv"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dbo_check_buffer cache = {
            .buffer = 5, .name = "kv", .write_once = true, .block = (uint32_t)cases[i].block};
        const dbo_check_options options = {.buffers = &cache, .num_buffers = 1};
        char what[160];
        snprintf(what, sizeof what,
                 "A1 of ubatch 0 (layer 2) reads %s before A0 of ubatch 1 (layer 2) writes it in "
                 "the same step: it finds old data",
                 cases[i].name);
        const words said = {
            cases[i].name, what, "A0 of ubatch 1 (layer 2) before A1 of ubatch 0 (layer 2)",
            "Do not split a batch in which a request reads blocks that another one writes."};
        check_world w;
        check_world_open(&w, &options, 1);
        touch(&w, COMPUTE, id_of(2, 0, DBO_KIND_A1), 5, false, cases[i].offset, 1, NULL);
        touch(&w, COMPUTE, id_of(2, 1, DBO_KIND_A0), 5, true, cases[i].offset, 1, NULL);
        expect(&w, DBO_FINDING_READ_BEFORE_WRITE, id_of(2, 0, DBO_KIND_A1),
               id_of(2, 1, DBO_KIND_A0), &said);
    }
}

/* ---- rows that arrive later ---- */

static void post(check_world *w, dbo_op_id id, uint32_t reads, uint32_t writes)
{
    static const dbo_a2a_cost cost = {.fixed_ns = 1};
    const dbo_a2a_args args = {.id = id,
                               .direction = DBO_A2A_DISPATCH,
                               .stream = COMM,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost,
                               .io = check_io(w, reads, writes)};
    dbo_a2a_handle handle;
    assert_int_equal(w->seams[0].a2a->post(w->seams[0].a2a_self, &args, &handle), DBO_OK);
}

/* What is received is there after a finish, which here never comes. */
static void rows_want_a_finish(void **state)
{
    (void)state;
    static const words said[] = {
        {"rows",
         "DISPATCH of ubatch 1 (layer 2) (the network) and MLP of ubatch 1 (layer 2) (compute) "
         "touch rows in no order, and one of them writes it",
         "finish of DISPATCH of ubatch 1 (layer 2) before MLP of ubatch 1 (layer 2)",
         "Finish the transfer (or run its hook), and order MLP of ubatch 1 (layer 2) after that."},
        {"",
         "DISPATCH of ubatch 1 (layer 2) is never received: its rows may arrive at any time, or "
         "not at all",
         "a finish of DISPATCH of ubatch 1 (layer 2)",
         "Register and run its receive hook, or finish it, before its rows are used."},
        {"rows",
         "rows is freed while DISPATCH of ubatch 1 (layer 2) on the network may still use it; its "
         "block may become next, which SHARED of ubatch 0 (layer 2) touches in no order with that",
         "finish of DISPATCH of ubatch 1 (layer 2) before the free of rows",
         "Free rows after its transfer has been received."}};
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 1);
    memory(&w, DBO_MEMORY_TAKE, 3, "rows");
    post(&w, id_of(2, 1, DBO_KIND_DISPATCH), NONE, 3);
    check_edge(&w, 0, COMM, COMPUTE);
    touch(&w, COMPUTE, id_of(2, 1, DBO_KIND_MLP), 3, false, 0, 0, NULL);
    memory(&w, DBO_MEMORY_DROP, 3, NULL);
    memory(&w, DBO_MEMORY_TAKE, 4, "next");
    touch(&w, COMPUTE, id_of(2, 0, DBO_KIND_SHARED), 4, true, 0, 0, NULL);
    check_world_close(&w, DBO_OK, &findings);
    assert_int_equal(findings.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        expect_words(&findings.items[i], &said[i]);
    dbo_findings_fini(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_is_named),
        cmocka_unit_test(memory_that_never_was_is_named),
        cmocka_unit_test(a_block_is_named_by_its_number),
        cmocka_unit_test(rows_want_a_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
