/* test_recorder.c: the recorder around a seam: what is given to it arrives, in order and complete;
 * nothing else changes, with it or without. */
#include "core/program/builders.h"
#include "core/rank/recorder.h"
#include "tests/support/sim_world.h"

/* ---- calls by hand ---- */

typedef struct recorded {
    dbo_recorder recorder;
    const dbo_op_io *io;
    const uint64_t *addresses;
} recorded;

/* The first call of this kind and rank from `from` on; recorder->count when there is none. */
static uint64_t find_call(const dbo_recorder *recorder, uint64_t from, dbo_call_kind kind,
                          uint32_t rank)
{
    while (from < recorder->count &&
           (recorder->calls[from].kind != kind || recorder->calls[from].rank != rank))
        from++;
    return from < recorder->count ? from : recorder->count;
}

static const dbo_op_cost op_cost = {.fixed_ns = 10};
static const dbo_a2a_cost a2a_cost = {.fixed_ns = 20};
static const char vote[] = "vote";

/* Wraps in place: what the test's helpers use from now on is the recorder's. */
static dbo_status wrap(sim_world *w, dbo_recorder *recorder, uint32_t rank, dbo_error *err)
{
    dbo_seam *seam = &w->seams[rank];
    const dbo_host_ops *host = seam->host;
    void *host_self = seam->host_self;
    DBO_TRY(dbo_recorder_wrap(recorder, seam, err));
    assert_int_equal(dbo_seam_check(seam, err), DBO_OK);
    assert_ptr_equal(seam->host, host); /* time and charges are not calls of the schedule */
    assert_ptr_equal(seam->host_self, host_self);
    assert_null(seam->a2a->abort); /* what the simulator lacks stays missing */
    assert_null(seam->group->barrier);
    return DBO_OK;
}

static dbo_status every_call(sim_world *w, uint32_t rank, dbo_error *err)
{
    recorded *r = w->arg;
    uint64_t address;
    bool done;
    int32_t column = 4, matrix = 0;
    dbo_graph graph;
    dbo_a2a_handle handle;
    dbo_a2a_caps caps;
    DBO_TRY(wrap(w, &r->recorder, rank, err));
    const dbo_seam *s = &w->seams[rank];
    dbo_stream compute = sim_new_stream(s), comm = sim_new_stream(s);
    dbo_event e = sim_new_event(s), f = sim_new_event(s);
    const dbo_op op = {.id = dbo_op_id_make(1, 0, 2, 3, DBO_KIND_MLP, 4),
                       .cost = &op_cost,
                       .io = r->io,
                       .addresses = r->addresses};
    const dbo_a2a_args args = {.id = dbo_op_id_make(1, 0, 2, 3, DBO_KIND_COMBINE, 5),
                               .direction = DBO_A2A_COMBINE,
                               .stream = comm,
                               .previous = e,
                               .cost = &a2a_cost,
                               .io = r->io,
                               .addresses = r->addresses};
    sim_must(s->device->set_compute_sms(s->device_self, 100));
    sim_must(s->mem->alloc(s->mem_self, 64, DBO_SPACE_PINNED, &address));
    assert_non_null(s->mem->ptr(s->mem_self, address));
    sim_must(s->device->launch(s->device_self, compute, &op));
    sim_must(sim_record(s, e, compute));
    sim_must(sim_wait_event(s, comm, e));
    s->a2a->caps(s->a2a_self, &caps);
    assert_int_equal(s->a2a->set_sms(s->a2a_self, 7), 7);
    sim_must(s->a2a->post(s->a2a_self, &args, &handle));
    sim_must(sim_counts_of(s, handle));
    sim_must(sim_finish_on(s, handle, comm));
    sim_must(s->group->exchange(s->group_self, vote, 9, &column, 1, &matrix));
    assert_int_equal(matrix, 4);
    sim_must(s->device->event_query(s->device_self, e, &done));
    assert_true(done);
    sim_must(sim_host_wait(s, e));
    sim_must(s->graph->begin(s->graph_self, compute));
    assert_int_equal(sim_host_wait(s, e), DBO_REFUSED);
    assert_int_equal(s->device->status(s->device_self, err), DBO_REFUSED);
    *err = (dbo_error){0};
    s->graph->abandon(s->graph_self);
    sim_must(s->graph->begin(s->graph_self, compute));
    assert_true(s->graph->is_capturing(s->graph_self));
    sim_must(s->graph->end(s->graph_self, &graph));
    sim_must(s->graph->replay(s->graph_self, graph, compute, 6));
    s->graph->destroy(s->graph_self, graph);
    s->mem->free(s->mem_self, address);
    s->device->event_destroy(s->device_self, f);
    assert_int_equal(s->device->total_sms(s->device_self), 132);
    return DBO_OK;
}

static void run_every_call(sim_world *w, recorded *r, uint64_t limit)
{
    dbo_recorder_init(&r->recorder, limit);
    sim_world_open(w, (dbo_sim_options){.num_ranks = 1, .transport = DBO_SIM_HT, .numeric = true});
    sim_world_must_run(w, every_call, r);
}

static void every_call_arrives(void **state)
{
    (void)state;
    static const dbo_op_io io;
    static const uint64_t addresses[1];
    static const uint64_t block = UINT64_C(1) << 32;
    const dbo_op_id mlp = dbo_op_id_make(1, 0, 2, 3, DBO_KIND_MLP, 4);
    const dbo_op_id combine = dbo_op_id_make(1, 0, 2, 3, DBO_KIND_COMBINE, 5);
    const uint32_t handle = 3u << 28; /* communicator 3, its first transfer */
    const dbo_call expected[] = {
        {.kind = DBO_CALL_STREAM_CREATE, .number = 0},
        {.kind = DBO_CALL_STREAM_CREATE, .number = 1},
        {.kind = DBO_CALL_EVENT_CREATE, .number = 0},
        {.kind = DBO_CALL_EVENT_CREATE, .number = 1},
        {.kind = DBO_CALL_COMPUTE_SMS, .number = 100},
        {.kind = DBO_CALL_ALLOC, .number = DBO_SPACE_PINNED, .id = block, .bytes = 64},
        {.kind = DBO_CALL_LAUNCH, .id = mlp, .what = &op_cost, .io = &io, .addresses = addresses},
        {.kind = DBO_CALL_RECORD, .number = 0},
        {.kind = DBO_CALL_WAIT, .number = 0, .stream = 1},
        {.kind = DBO_CALL_A2A_SMS, .number = 7},
        {.kind = DBO_CALL_POST,
         .number = handle,
         .direction = DBO_A2A_COMBINE,
         .stream = 1,
         .id = combine,
         .what = &a2a_cost,
         .io = &io,
         .addresses = addresses},
        {.kind = DBO_CALL_COUNTS, .number = handle},
        {.kind = DBO_CALL_FINISH, .number = handle, .stream = 1},
        {.kind = DBO_CALL_EXCHANGE, .number = 9, .other = 1, .what = vote},
        {.kind = DBO_CALL_EVENT_QUERY, .number = 0, .other = 1},
        {.kind = DBO_CALL_HOST_WAIT, .number = 0},
        {.kind = DBO_CALL_CAPTURE_BEGIN},
        {.kind = DBO_CALL_HOST_WAIT, .number = 0, .status = DBO_REFUSED},
        {.kind = DBO_CALL_CAPTURE_ABANDON},
        {.kind = DBO_CALL_CAPTURE_BEGIN},
        {.kind = DBO_CALL_CAPTURE_END, .number = 0},
        {.kind = DBO_CALL_REPLAY, .number = 0, .other = 6},
        {.kind = DBO_CALL_GRAPH_DESTROY, .number = 0},
        {.kind = DBO_CALL_FREE, .id = block},
        {.kind = DBO_CALL_EVENT_DESTROY, .number = 1},
    };
    const uint64_t count = sizeof expected / sizeof expected[0];
    recorded r = {.io = &io, .addresses = addresses};
    sim_world w;
    run_every_call(&w, &r, 0);
    assert_int_equal(r.recorder.count, count);
    for (uint64_t i = 0; i < count; i++) {
        dbo_call wanted = expected[i];
        const dbo_call *got = dbo_recorder_at(&r.recorder, i);
        wanted.ubatch = DBO_MARK_MAIN;
        wanted.what = i < 2 ? got->what : wanted.what; /* a stream's name */
        assert_int_equal(got->kind, wanted.kind);
        assert_memory_equal(got, &wanted, sizeof wanted);
    }
    assert_int_equal(find_call(&r.recorder, 16, DBO_CALL_HOST_WAIT, 0), 17);
    assert_int_equal(find_call(&r.recorder, 0, DBO_CALL_BARRIER, 0), count);
    assert_int_equal(find_call(&r.recorder, 0, DBO_CALL_POST, 1), count);
    sim_world_close(&w);
    dbo_recorder_fini(&r.recorder);
}

/* ---- whole schedules, with and without ---- */

typedef struct schedule {
    dbo_program program;
    dbo_recorder *recorder; /* NULL: without */
} schedule;

static dbo_status ubatch_main(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const schedule *s = arg;
    (void)err;
    for (uint32_t layer = 0; layer < 3; layer++)
        DBO_TRY(dbo_program_run(ubatch->rank, ubatch, &s->program, 0, layer));
    return DBO_OK;
}

static dbo_status run_schedule(sim_world *w, uint32_t id, dbo_error *err)
{
    schedule *s = w->arg;
    dbo_rank *rank = &w->ranks[id];
    if (s->recorder)
        DBO_TRY(wrap(w, s->recorder, id, err));
    DBO_TRY(dbo_rank_init(rank, id, &w->seams[id], w->contexts, 2, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_rank_fit(rank, &s->program, err));
    return dbo_ubatches_run(rank, 2, 0, ubatch_main, s, err);
}

static void build(schedule *s, bool ll)
{
    static const dbo_op_kind there[] = {DBO_KIND_A0,       DBO_KIND_A1,    DBO_KIND_QUANT,
                                        DBO_KIND_DISPATCH, DBO_KIND_MLP,   DBO_KIND_LAYOUT,
                                        DBO_KIND_COMBINE,  DBO_KIND_SHARED};
    int64_t ns[DBO_KIND_COUNT];
    dbo_layer_costs costs[2];
    dbo_error err;
    const dbo_build_options options = {.num_ubatches = 2, .host_sync = true};
    for (int k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = -1;
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        ns[there[i]] = 1000 * (int64_t)(i + 1);
    dbo_layer_costs_fixed(ns, 66, &costs[0]);
    dbo_layer_costs_fixed(ns, 66, &costs[1]);
    assert_int_equal((ll ? dbo_build_ll : dbo_build_ht)(costs, &options, &s->program, &err),
                     DBO_OK);
}

static void same_trace(const dbo_trace *a, const dbo_trace *b)
{
    assert_int_equal(a->num_spans, b->num_spans);
    assert_int_equal(a->num_issues, b->num_issues);
    assert_int_equal(a->num_marks, b->num_marks);
    for (uint64_t i = 0; i < a->num_spans; i++)
        assert_memory_equal(dbo_trace_span(a, i), dbo_trace_span(b, i), sizeof(dbo_span));
    for (uint64_t i = 0; i < a->num_issues; i++)
        assert_memory_equal(dbo_trace_issue(a, i), dbo_trace_issue(b, i), sizeof(dbo_issue));
    for (uint64_t i = 0; i < a->num_marks; i++)
        assert_memory_equal(dbo_trace_mark(a, i), dbo_trace_mark(b, i), sizeof(dbo_mark));
}

/* The issues of the trace, rank by rank, are the launches, posts and LL's finishes, in order. */
static void records_are_the_issues(const dbo_recorder *recorder, const dbo_trace *trace, bool ll,
                                   uint32_t rank)
{
    uint64_t at = 0, issues = 0;
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(trace, i);
        if (dbo_op_id_rank(issue->id) != rank)
            continue;
        const dbo_call *call;
        do {
            assert_true(at < recorder->count);
            call = dbo_recorder_at(recorder, at++);
        } while (call->rank != rank ||
                 (call->kind != DBO_CALL_LAUNCH && call->kind != DBO_CALL_POST &&
                  !(ll && call->kind == DBO_CALL_FINISH)));
        if (call->kind != DBO_CALL_FINISH)
            assert_int_equal(call->id, issue->id);
        assert_int_equal(call->stream, issue->stream);
        assert_int_equal(call->status, DBO_OK);
        issues++;
    }
    assert_true(issues > 0);
}

/* Turns alternate, and what is noted between two signals is the ubatch's that has the turn. */
static void turns_are_noted(const dbo_recorder *recorder, uint32_t rank)
{
    uint32_t turn = DBO_MARK_MAIN, signals = 0;
    for (uint64_t i = 0; i < recorder->count; i++) {
        const dbo_call *call = dbo_recorder_at(recorder, i);
        if (call->rank != rank)
            continue;
        if (call->kind == DBO_CALL_TURN && call->number == DBO_TURN_SIGNAL) {
            assert_int_equal(call->ubatch, turn);
            turn = call->other;
            signals++;
        } else if (call->kind == DBO_CALL_LAUNCH) {
            assert_int_equal(call->ubatch, turn);
        }
    }
    assert_true(signals > 2 * 3);
}

static void nothing_else_changes(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool ll = (i & 1) != 0;
        dbo_recorder recorder;
        schedule s = {0};
        sim_world bare, tapped;
        dbo_hardware hardware = sim_round_hardware();
        dbo_sim_options options = {.num_ranks = i & 2 ? 64 : 2,
                                   .hardware = &hardware,
                                   .transport = ll ? DBO_SIM_LL : DBO_SIM_HT,
                                   .contexts = i & 4 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER};
        build(&s, ll);
        sim_world_open(&bare, options);
        const dbo_seam before = bare.seams[1];
        sim_world_must_run(&bare, run_schedule, &s);
        dbo_recorder_init(&recorder, 0);
        s.recorder = &recorder;
        sim_world_open(&tapped, options);
        sim_world_must_run(&tapped, run_schedule, &s);
        same_trace(&bare.trace, &tapped.trace);
        assert_int_equal(dbo_sim_now_ns(bare.sim), dbo_sim_now_ns(tapped.sim));
        for (uint32_t r = 0; r < options.num_ranks; r++) {
            records_are_the_issues(&recorder, &tapped.trace, ll, r);
            turns_are_noted(&recorder, r);
        }
        /* Without a recorder the tables are the simulator's own: nothing stands between. */
        assert_memory_equal(&before, &bare.ranks[1].seam, sizeof before);
        assert_ptr_not_equal(bare.ranks[1].seam.device, tapped.ranks[1].seam.device);
        assert_int_equal(recorder.dropped, 0);
        sim_world_close(&tapped);
        sim_world_close(&bare);
        dbo_recorder_fini(&recorder);
        dbo_program_fini(&s.program);
    }
}

/* ---- corners ---- */

static dbo_status waits_in_vain(sim_world *w, uint32_t rank, dbo_error *err)
{
    dbo_recorder *recorder = w->arg;
    dbo_a2a_handle handle;
    DBO_TRY(wrap(w, recorder, rank, err));
    const dbo_seam *seam = &w->seams[rank];
    dbo_stream s = sim_new_stream(seam);
    dbo_event e = sim_new_event(seam);
    if (rank == 1) { /* the last to run: the others are blocked by now */
        uint64_t at = find_call(recorder, 0, DBO_CALL_HOST_WAIT, 0);
        assert_int_equal(dbo_recorder_at(recorder, at)->status, DBO_CALL_OPEN);
        return DBO_OK;
    }
    DBO_TRY(sim_post_fixed(seam, s, 0, 0, 10, &handle));
    DBO_TRY(sim_record(seam, e, s));
    return sim_host_wait(seam, e);
}

static void a_blocked_call_stays_open(void **state)
{
    (void)state;
    dbo_recorder recorder;
    sim_world w;
    dbo_recorder_init(&recorder, 0);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .transport = DBO_SIM_HT});
    sim_world_must_fail(&w, waits_in_vain, &recorder, DBO_DEADLOCK, "which rank 1 never posted");
    uint64_t at = find_call(&recorder, 0, DBO_CALL_HOST_WAIT, 0);
    assert_int_equal(dbo_recorder_at(&recorder, at)->status, DBO_ABORTED); /* given up */
    sim_world_close(&w);
    dbo_recorder_fini(&recorder);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    recorded r = {.io = NULL};
    sim_world w;
    run_every_call(&w, &r, 3);
    assert_int_equal(r.recorder.count, 3);
    assert_int_equal(r.recorder.dropped, 22);
    assert_int_equal(dbo_recorder_at(&r.recorder, 2)->kind, DBO_CALL_EVENT_CREATE);
    sim_world_close(&w);
    dbo_recorder_fini(&r.recorder);
}

static void half_a_seam_is_refused(void **state)
{
    (void)state;
    dbo_recorder recorder;
    dbo_error err = {0};
    sim_world w;
    dbo_recorder_init(&recorder, 0);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1});
    dbo_seam seam = w.seams[0], before;
    seam.group = NULL;
    before = seam;
    assert_int_equal(dbo_recorder_wrap(&recorder, &seam, &err), DBO_INVALID);
    assert_memory_equal(&seam, &before, sizeof seam);
    seam = w.seams[0];
    seam.trace = NULL;
    seam.mem = NULL;
    seam.graph = NULL;
    seam.a2a = NULL;
    assert_int_equal(dbo_recorder_wrap(&recorder, &seam, &err), DBO_OK);
    assert_int_equal(dbo_recorder_wrap(&recorder, &seam, &err), DBO_OK); /* twice: noted twice */
    assert_null(seam.mem);
    assert_null(seam.graph);
    assert_null(seam.a2a);
    const dbo_span span = {.id = 1};
    seam.trace->span(seam.trace_self, &span);
    const dbo_mark mark = {.kind = DBO_MARK_TURN};
    seam.trace->mark(seam.trace_self, &mark); /* goes nowhere */
    sim_new_stream(&seam);
    assert_int_equal(recorder.count, 2);
    sim_world_close(&w);
    dbo_recorder_fini(&recorder);
    dbo_recorder_fini(&recorder); /* zeroed: fine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_arrives),        cmocka_unit_test(nothing_else_changes),
        cmocka_unit_test(a_blocked_call_stays_open), cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(half_a_seam_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
