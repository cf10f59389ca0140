/* test_check.c: each kind of finding on the smallest sequence of calls that shows it, and the same
 * sequence with the missing edge, which shows nothing. */
#include "tests/support/check_world.h"

#include <stdio.h>

#define COMPUTE 0u
#define COMM    1u

/* There is exactly this one, and it says so. */
static void expect_one(dbo_findings *findings, dbo_finding_kind kind, const char *what,
                       const char *missing, const char *fix)
{
    for (uint32_t i = 0; i < findings->count && findings->count != 1; i++)
        printf("%s: %s\n", dbo_finding_kind_name(findings->items[i].kind), findings->items[i].what);
    assert_int_equal(findings->count, 1);
    const dbo_finding *f = &findings->items[0];
    assert_string_equal(dbo_finding_kind_name(f->kind), dbo_finding_kind_name(kind));
    assert_string_equal(f->what, what);
    assert_string_equal(f->missing_edge, missing);
    assert_string_equal(f->fix, fix);
    assert_true(f->lost_us < 0);
    assert_int_equal(f->num_ops, (f->ops[0] != 0) + (f->ops[1] != 0));
    if (f->num_ops > 0) { /* it is where the last of them is */
        dbo_op_id last = f->ops[f->num_ops - 1];
        assert_int_equal(f->ubatch, dbo_op_id_ubatch(last));
        assert_int_equal(f->layer, dbo_op_id_layer(last));
        assert_int_equal(f->step, dbo_op_id_step(last));
    }
    dbo_findings_fini(findings);
}

static void expect_none(dbo_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        printf("%s: %s\n", dbo_finding_kind_name(findings->items[i].kind), findings->items[i].what);
    assert_int_equal(findings->count, 0);
    dbo_findings_fini(findings);
}

/* ---- order ---- */

static void a_wait_orders(void **state)
{
    (void)state;
    for (int edge = 0; edge < 2; edge++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 1);
        check_op(&w, 0, COMPUTE, DBO_KIND_A1, NONE, 7);
        if (edge)
            check_edge(&w, 0, COMPUTE, COMM);
        check_op(&w, 0, COMM, DBO_KIND_LAYOUT, 7, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (edge)
            expect_none(&findings);
        else
            expect_one(&findings, DBO_FINDING_RACE,
                       "A1 of ubatch 0 (layer 0) (compute) and DISPATCH_LAYOUT of ubatch 0 (layer "
                       "0) (comm) touch buffer 7 in no order, and one of them writes it",
                       "record on compute after A1 of ubatch 0 (layer 0), wait on comm before "
                       "DISPATCH_LAYOUT of ubatch 0 (layer 0)",
                       "Let DISPATCH_LAYOUT of ubatch 0 (layer 0) wait for an event that is "
                       "recorded after A1 of ubatch 0 (layer 0).");
    }
}

/* Two writes that nobody can tell apart do no harm; once somebody looks, they do. */
static void writes_race_when_somebody_looks(void **state)
{
    (void)state;
    for (int looks = 0; looks < 2; looks++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 1);
        check_op(&w, 0, COMPUTE, DBO_KIND_A0, NONE, 7);
        check_op(&w, 0, COMM, DBO_KIND_COPY, NONE, 7);
        check_edge(&w, 0, COMM, COMPUTE);
        if (looks)
            check_op(&w, 0, COMPUTE, DBO_KIND_MLP, 7, NONE);
        check_op(&w, 0, COMPUTE, DBO_KIND_A1, NONE, 7);
        check_world_close(&w, DBO_OK, &findings);
        if (looks)
            expect_one(&findings, DBO_FINDING_RACE,
                       "A0 of ubatch 0 (layer 0) and OUTPUT_COPY of ubatch 0 (layer 0) write "
                       "buffer 7 in no order: what is left there depends on luck",
                       "record on compute after A0 of ubatch 0 (layer 0), wait on comm before "
                       "OUTPUT_COPY of ubatch 0 (layer 0)",
                       "Let OUTPUT_COPY of ubatch 0 (layer 0) wait for an event that is recorded "
                       "after A0 of ubatch 0 (layer 0).");
        else
            expect_none(&findings);
    }
}

static void rows_are_there_after_the_finish(void **state)
{
    (void)state;
    for (int finish = 0; finish < 3; finish++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 1);
        dbo_a2a_handle handle = check_post(&w, 0, COMM, DBO_A2A_DISPATCH, 0, NONE, 7);
        if (finish == 1)
            check_edge(&w, 0, COMM, COMPUTE); /* says nothing of the rows */
        check_finish_on(&w, 0, handle, COMM);
        if (finish == 2)
            check_edge(&w, 0, COMM, COMPUTE);
        check_op(&w, 0, COMPUTE, DBO_KIND_MLP, 7, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (finish == 2)
            expect_none(&findings);
        else
            expect_one(&findings, DBO_FINDING_RACE,
                       "DISPATCH of ubatch 0 (layer 0) (the network) and MLP of ubatch 0 (layer 0) "
                       "(compute) touch buffer 7 in no order, and one of them writes it",
                       "record on comm after the finish of DISPATCH of ubatch 0 (layer 0), wait on "
                       "compute before MLP of ubatch 0 (layer 0)",
                       "Let MLP of ubatch 0 (layer 0) wait for an event that is recorded after the "
                       "finish of DISPATCH of ubatch 0 (layer 0).");
    }
}

static void a_transfer_that_nobody_receives(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 1);
    check_post(&w, 0, COMPUTE, DBO_A2A_COMBINE, 1, NONE, 7);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(&findings, DBO_FINDING_RACE,
               "COMBINE of ubatch 1 (layer 0) is never received: its rows may arrive at any time, "
               "or not at all",
               "a finish of COMBINE of ubatch 1 (layer 0)",
               "Register and run its receive hook, or finish it, before its rows are used.");
    const dbo_check_options done = {.unfinished_is_done = true};
    check_world_open(&w, &done, 1);
    check_post(&w, 0, COMPUTE, DBO_A2A_COMBINE, 1, NONE, 7);
    check_op(&w, 0, COMPUTE, DBO_KIND_COPY, 7, NONE);
    check_world_close(&w, DBO_OK, &findings);
    expect_none(&findings);
}

/* What the host has seen to be over is over for what it issues then. */
static void the_host_orders_what_it_has_waited_for(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        check_world w;
        dbo_findings findings;
        dbo_event event;
        check_world_open(&w, NULL, 1);
        const dbo_seam *seam = &w.seams[0];
        check_op(&w, 0, COMPUTE, DBO_KIND_A1, NONE, 7);
        seam->device->event_create(seam->device_self, &event);
        seam->device->record(seam->device_self, event, COMPUTE);
        if (waits)
            seam->device->host_wait(seam->device_self, event);
        check_op(&w, 0, COMM, DBO_KIND_LAYOUT, 7, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (waits)
            expect_none(&findings);
        else
            expect_one(&findings, DBO_FINDING_RACE,
                       "A1 of ubatch 0 (layer 0) (compute) and DISPATCH_LAYOUT of ubatch 0 (layer "
                       "0) (comm) touch buffer 7 in no order, and one of them writes it",
                       "record on compute after A1 of ubatch 0 (layer 0), wait on comm before "
                       "DISPATCH_LAYOUT of ubatch 0 (layer 0)",
                       "Let DISPATCH_LAYOUT of ubatch 0 (layer 0) wait for an event that is "
                       "recorded after A1 of ubatch 0 (layer 0).");
    }
}

/* Halves of a buffer are two things, unless they overlap. */
static void ranges_are_told_apart(void **state)
{
    (void)state;
    static const dbo_op_cost cost = {.fixed_ns = 1};
    for (uint64_t overlap = 0; overlap < 2; overlap++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 1);
        for (uint32_t i = 0; i < 2; i++) {
            dbo_access *access = &w.accesses[2 * i + 1];
            const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, i, DBO_KIND_A0, 0),
                               .cost = &cost,
                               .io = check_io(&w, NONE, 7)};
            access->offset_bytes = (uint64_t)64 * i;
            access->bytes = 64 + overlap;
            w.seams[0].device->launch(w.seams[0].device_self, i, &op);
        }
        check_edge(&w, 0, COMM, COMPUTE);
        check_op(&w, 0, COMPUTE, DBO_KIND_A1, 7, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (overlap)
            expect_one(&findings, DBO_FINDING_RACE,
                       "A0 of ubatch 0 (layer 0) and A0 of ubatch 1 (layer 0) write buffer 7 in no "
                       "order: what is left there depends on luck",
                       "record on compute after A0 of ubatch 0 (layer 0), wait on comm before A0 "
                       "of ubatch 1 (layer 0)",
                       "Let A0 of ubatch 1 (layer 0) wait for an event that is recorded after A0 "
                       "of ubatch 0 (layer 0).");
        else
            expect_none(&findings);
    }
}

/* ---- memory ---- */

static void memory(check_world *w, dbo_memory_what what, uint32_t buffer, dbo_stream stream,
                   const char *name)
{
    const dbo_memory_event event = {
        .what = what, .buffer = buffer, .stream = stream, .name = name, .bytes = 64};
    w->seams[0].trace->memory(w->seams[0].trace_self, &event);
}

static void a_freed_block_may_be_the_next_ones(void **state)
{
    (void)state;
    for (int announced = 0; announced < 2; announced++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 1);
        memory(&w, DBO_MEMORY_TAKE, 3, COMPUTE, "rows");
        check_op(&w, 0, COMPUTE, DBO_KIND_A1, NONE, 3);
        check_edge(&w, 0, COMPUTE, COMM);
        check_op(&w, 0, COMM, DBO_KIND_LAYOUT, 3, NONE);
        if (announced)
            memory(&w, DBO_MEMORY_USE, 3, COMM, NULL);
        memory(&w, DBO_MEMORY_DROP, 3, COMPUTE, NULL);
        memory(&w, DBO_MEMORY_TAKE, 4, COMPUTE, "next");
        check_op(&w, 0, COMPUTE, DBO_KIND_SHARED, NONE, 4);
        check_world_close(&w, DBO_OK, &findings);
        if (announced)
            expect_none(&findings);
        else
            expect_one(&findings, DBO_FINDING_USE_AFTER_FREE,
                       "rows is freed while DISPATCH_LAYOUT of ubatch 0 (layer 0) on comm may "
                       "still use it; its block may become next, which SHARED of ubatch 0 (layer "
                       "0) touches in no order with that",
                       "record_stream of rows on comm before its free",
                       "Call record_stream(rows, comm), or wait for DISPATCH_LAYOUT of ubatch 0 "
                       "(layer 0) before the free.");
    }
}

/* The stream whose pool it is uses the block last, and is none that record_stream would be for. */
static void a_block_of_another_streams_pool(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 1);
    memory(&w, DBO_MEMORY_TAKE, 3, COMPUTE, "rows");
    check_op(&w, 0, COMPUTE, DBO_KIND_A1, NONE, 3);
    memory(&w, DBO_MEMORY_DROP, 3, COMPUTE, NULL);
    memory(&w, DBO_MEMORY_TAKE, 4, COMPUTE, "next");
    check_op(&w, 0, COMM, DBO_KIND_LAYOUT, NONE, 4);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(
        &findings, DBO_FINDING_USE_AFTER_FREE,
        "rows is freed while A1 of ubatch 0 (layer 0) on compute may still use it; its block may "
        "become next, which DISPATCH_LAYOUT of ubatch 0 (layer 0) touches in no order with that",
        "A1 of ubatch 0 (layer 0) before DISPATCH_LAYOUT of ubatch 0 (layer 0)",
        "Allocate next from the pool of the stream that writes it.");
}

static void nobody_has_written(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 1);
    memory(&w, DBO_MEMORY_TAKE, 3, COMPUTE, "rows");
    check_op(&w, 0, COMPUTE, DBO_KIND_MLP, 3, NONE);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(&findings, DBO_FINDING_READ_BEFORE_WRITE,
               "MLP of ubatch 0 (layer 0) reads rows, which nothing has written before",
               "a write of rows before MLP of ubatch 0 (layer 0)", "Issue what writes rows first.");
}

static void inputs_are_not_written(void **state)
{
    (void)state;
    const dbo_check_buffer input = {.buffer = 5, .name = "seq_lens", .read_only = true};
    const dbo_check_options options = {.buffers = &input, .num_buffers = 1};
    check_world w;
    dbo_findings findings;
    check_world_open(&w, &options, 1);
    check_op(&w, 0, COMPUTE, DBO_KIND_A1, 5, NONE);
    check_op(&w, 0, COMPUTE, DBO_KIND_CUSTOM, NONE, 5);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(&findings, DBO_FINDING_WRITE_TO_INPUT,
               "CUSTOM of ubatch 0 (layer 0) writes seq_lens, an input that others rely on", "",
               "Write a copy of seq_lens.");
}

/* A block of the cache that a step writes is read after that, whatever the streams say. */
static void the_cache_is_written_first(void **state)
{
    (void)state;
    const dbo_check_buffer block = {.buffer = 5, .name = "kv 17", .write_once = true};
    const dbo_check_options options = {.buffers = &block, .num_buffers = 1};
    for (int first = 0; first < 2; first++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, &options, 1);
        for (int i = 0; i < 2; i++)
            if ((i == 0) == (first == 0))
                check_op(&w, 0, COMPUTE, DBO_KIND_A0, NONE, 5);
            else
                check_op(&w, 0, COMPUTE, DBO_KIND_A1, 5, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (first == 0)
            expect_none(&findings);
        else
            expect_one(
                &findings, DBO_FINDING_READ_BEFORE_WRITE,
                "A1 of ubatch 0 (layer 0) reads kv 17 before A0 of ubatch 0 (layer 0) writes it in "
                "the same step: it finds old data",
                "A0 of ubatch 0 (layer 0) before A1 of ubatch 0 (layer 0)",
                "Do not split a batch in which a request reads blocks that another one writes.");
    }
}

/* ---- limits ---- */

static void a_queue_has_a_depth(void **state)
{
    (void)state;
    const dbo_a2a_caps caps = {.needs_host_sync = true, .queue_depth = 1};
    for (int received = 0; received < 2; received++) {
        check_world w;
        dbo_findings findings;
        check_world_open_with(&w, NULL, caps, 1);
        dbo_a2a_handle a = check_post(&w, 0, COMPUTE, DBO_A2A_DISPATCH, 0, NONE, 1);
        if (received)
            check_finish_on(&w, 0, a, COMPUTE);
        dbo_a2a_handle b = check_post(&w, 0, COMPUTE, DBO_A2A_DISPATCH, 1, NONE, 2);
        if (!received)
            check_finish_on(&w, 0, a, COMPUTE);
        check_finish_on(&w, 0, b, COMPUTE);
        check_world_close(&w, DBO_OK, &findings);
        if (received)
            expect_none(&findings);
        else
            expect_one(&findings, DBO_FINDING_OVERSUBSCRIBED,
                       "DISPATCH of ubatch 1 (layer 0) is posted while DISPATCH of ubatch 0 (layer "
                       "0) is under way: the queue takes 1 at once, not 2",
                       "the receive of DISPATCH of ubatch 0 (layer 0) before the post",
                       "Receive one transfer before the next is posted.");
    }
}

/* Two results fit; a third one clears the first, which still is to be read: of one ubatch if each
 * has buffers of its own, of all if they share them. */
static void results_are_held(void **state)
{
    (void)state;
    for (uint32_t form = 0; form < 4; form++) {
        bool shared = form & 1, read = form & 2;
        const dbo_a2a_caps caps = {.has_hook = true, .max_in_flight = 2, .shared_results = shared};
        check_world w;
        dbo_findings findings;
        check_world_open_with(&w, NULL, caps, 1);
        for (uint32_t u = 0; u < 3; u++) {
            dbo_a2a_handle h = check_post(&w, 0, COMPUTE, DBO_A2A_DISPATCH, u, NONE, 1 + u);
            check_finish_on(&w, 0, h, COMPUTE);
            if (read)
                check_op(&w, 0, COMPUTE, DBO_KIND_MLP, 1 + u, NONE);
        }
        check_op(&w, 0, COMPUTE, DBO_KIND_CUSTOM, 1, NONE);
        check_world_close(&w, DBO_OK, &findings);
        if (shared)
            expect_one(
                &findings, DBO_FINDING_OVERSUBSCRIBED,
                "DISPATCH of ubatch 2 (layer 0) clears the buffer that holds the result of "
                "DISPATCH of ubatch 0 (layer 0), which is still in use: the back end holds 2 "
                "results",
                "CUSTOM of ubatch 0 (layer 0) before the post of DISPATCH of ubatch 2 (layer 0)",
                "Hold at most 2 results, or give each ubatch a back end of its own.");
        else
            expect_none(&findings);
    }
}

/* The combine's own read of what its dispatch has left is of the handle, which lies elsewhere. */
static void a_handle_is_no_result(void **state)
{
    (void)state;
    const dbo_check_buffer buffer = {.buffer = 1, .handle = true};
    const dbo_a2a_caps caps = {.has_hook = true, .max_in_flight = 2, .shared_results = true};
    for (uint32_t declared = 0; declared < 2; declared++) {
        const dbo_check_options options = {.buffers = &buffer, .num_buffers = declared};
        check_world w;
        dbo_findings findings;
        check_world_open_with(&w, &options, caps, 1);
        for (uint32_t u = 0; u < 3; u++)
            check_finish_on(&w, 0, check_post(&w, 0, COMPUTE, DBO_A2A_DISPATCH, u, NONE, 1 + u),
                            COMPUTE);
        check_finish_on(&w, 0, check_post(&w, 0, COMPUTE, DBO_A2A_COMBINE, 0, 1, 4), COMPUTE);
        check_world_close(&w, DBO_OK, &findings);
        if (declared)
            expect_none(&findings);
        else
            expect_one(
                &findings, DBO_FINDING_OVERSUBSCRIBED,
                "DISPATCH of ubatch 2 (layer 0) clears the buffer that holds the result of "
                "DISPATCH of ubatch 0 (layer 0), which is still in use: the back end holds 2 "
                "results",
                "COMBINE of ubatch 0 (layer 0) before the post of DISPATCH of ubatch 2 (layer 0)",
                "Hold at most 2 results, or give each ubatch a back end of its own.");
    }
}

static void a_slot_overwritten_in_use(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 1);
    w.seams[0].trace->turn(w.seams[0].trace_self, DBO_TURN_RESUME, 1, 0);
    w.seams[0].trace->turn(w.seams[0].trace_self, DBO_TURN_SLOT, 1, 2);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(&findings, DBO_FINDING_OVERSUBSCRIBED,
               "ubatch 1 posts into transfer slot 2, whose last transfer nobody has received: its "
               "handle is overwritten in use",
               "a finish or a hook of slot 2 before the post",
               "Give every transfer in flight a slot of its own.");
}

/* ---- across ranks ---- */

static void a_rank_that_does_not_post(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 3);
    for (uint32_t r = 0; r < 3; r++) {
        check_finish_on(&w, r, check_post(&w, r, COMPUTE, DBO_A2A_DISPATCH, 0, NONE, 1), COMPUTE);
        if (r == 2)
            check_post(&w, r, COMPUTE, DBO_A2A_DISPATCH, 1, NONE, 2);
    }
    check_world_close(&w, DBO_DEADLOCK, &findings);
    expect_one(&findings, DBO_FINDING_DEADLOCK,
               "rank 2 posted dispatch of ubatch 1, rank 0 never did (step 0, layer 0)",
               "a post of dispatch of ubatch 1 on rank 0, which does not split its batch",
               "All ranks must decide alike, by one exchange, and take part in every transfer.");
}

static void ranks_that_mean_different_transfers(void **state)
{
    (void)state;
    check_world w;
    dbo_findings findings;
    check_world_open(&w, NULL, 2);
    check_finish_on(&w, 0, check_post(&w, 0, COMPUTE, DBO_A2A_DISPATCH, 0, NONE, 1), COMPUTE);
    check_finish_on(&w, 1, check_post(&w, 1, COMPUTE, DBO_A2A_COMBINE, 0, NONE, 1), COMPUTE);
    check_world_close(&w, DBO_OK, &findings);
    expect_one(&findings, DBO_FINDING_RULE,
               "transfer 0 of ubatch 0 is DISPATCH of step 0, layer 0 on rank 0 and COMBINE of "
               "step 0, layer 0 on rank 1",
               "", "All ranks must run the same layers in the same way.");
}

/* The first miss, whoever is seen first: the one that leaves, or the one that waits. */
static void a_rank_that_skips_an_exchange(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        check_world w;
        dbo_findings findings;
        check_world_open(&w, NULL, 2);
        for (uint32_t r = 0; r < 2; r++) {
            check_mark(&w, r, DBO_MARK_STEP_BEGIN, 0);
            check_exchange(&w, r, 0, true);
            check_mark(&w, r, DBO_MARK_STEP_END, 0);
        }
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t r = order ? 1 - i : i;
            check_mark(&w, r, DBO_MARK_STEP_BEGIN, 1);
            if (r == 0)
                check_exchange(&w, 0, 1, false);
            else
                check_mark(&w, 1, DBO_MARK_STEP_END, 1);
        }
        check_world_close(&w, DBO_DEADLOCK, &findings);
        expect_one(
            &findings, DBO_FINDING_MISSED_EXCHANGE,
            "rank 1 is 1 exchange behind: it left step 1 without the one in which rank 0 waits",
            "an exchange of rank 1 in step 1",
            "Every rank takes part in every exchange of a step, also with no tokens.");
    }
}

/* ---- many causes ---- */

static dbo_finding cause(uint32_t i)
{
    dbo_finding f = dbo_finding_of(DBO_FINDING_RACE);
    f.layer = DBO_FINDINGS_MAX - i % DBO_FINDINGS_MAX; /* sorting turns them round */
    f.num_ops = 1;
    f.ops[0] = dbo_op_id_make(0, 0, 0, i >> 15, 0, i & 0x7fffu);
    return f;
}

static void many_causes_are_counted(void **state)
{
    (void)state;
    enum { CAUSES = 100000 };
    dbo_findings findings = {0}, others = {0};
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < CAUSES; i++) {
            dbo_finding f = cause(i);
            f.ops[0] |= dbo_op_id_make(0, 3, 5, 0, 0, 0) * round; /* elsewhere: the same cause */
            dbo_findings_add(&findings, &f);
        }
        dbo_findings_sort(&findings);
    }
    assert_false(findings.failed);
    assert_int_equal(findings.count, DBO_FINDINGS_MAX);
    assert_int_equal(findings.left_out, CAUSES - DBO_FINDINGS_MAX);
    for (uint32_t i = 0; i < findings.count; i++) {
        assert_int_equal(findings.items[i].layer, i + 1);
        assert_int_equal(findings.items[i].times, 2);
    }
    for (uint32_t i = CAUSES - 10; i < CAUSES + 10; i++) {
        dbo_finding f = cause(i);
        dbo_findings_add(&others, &f);
    }
    dbo_findings_add_all(&findings, &others);
    assert_int_equal(findings.left_out, CAUSES + 10 - DBO_FINDINGS_MAX);
    dbo_findings_add_all(&others, &findings);
    assert_int_equal(others.count, DBO_FINDINGS_MAX);
    assert_int_equal(others.count + others.left_out, CAUSES + 10);
    dbo_findings_fini(&findings);
    dbo_findings_fini(&others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_orders),
        cmocka_unit_test(writes_race_when_somebody_looks),
        cmocka_unit_test(rows_are_there_after_the_finish),
        cmocka_unit_test(a_transfer_that_nobody_receives),
        cmocka_unit_test(the_host_orders_what_it_has_waited_for),
        cmocka_unit_test(ranges_are_told_apart),
        cmocka_unit_test(a_freed_block_may_be_the_next_ones),
        cmocka_unit_test(a_block_of_another_streams_pool),
        cmocka_unit_test(nobody_has_written),
        cmocka_unit_test(inputs_are_not_written),
        cmocka_unit_test(the_cache_is_written_first),
        cmocka_unit_test(a_queue_has_a_depth),
        cmocka_unit_test(results_are_held),
        cmocka_unit_test(a_handle_is_no_result),
        cmocka_unit_test(a_slot_overwritten_in_use),
        cmocka_unit_test(a_rank_that_does_not_post),
        cmocka_unit_test(ranks_that_mean_different_transfers),
        cmocka_unit_test(a_rank_that_skips_an_exchange),
        cmocka_unit_test(many_causes_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
