/* test_sim_numeric.c: ops that compute in the simulator: inputs are read at their start, outputs
 * appear at their end, so a missing wait shows as old rows. Memory of simulated ranks. */
#include "tests/support/sim_world.h"

#define ROWS      8u
#define ROW_BYTES (ROWS * sizeof(int32_t))

enum { IN, MID, OUT, OTHER, BUFFERS };

/* writes[0][i] = reads[0][i] + arg */
static void add(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const int32_t *in = reads[0];
    int32_t *out = writes[0];
    for (uint32_t i = 0; i < ROWS; i++)
        out[i] = in[i] + *(const int32_t *)op->io->arg;
}

static const int32_t one = 1, two = 2, ten = 10;
static const dbo_access all_of[BUFFERS] = {
    {.buffer = IN, .bytes = ROW_BYTES},
    {.buffer = MID, .bytes = ROW_BYTES},
    {.buffer = OUT, .bytes = ROW_BYTES},
    {.buffer = OTHER, .bytes = ROW_BYTES},
};
#define ADDS(from, to, what)                                                                \
    {                                                                                       \
        .num_reads = 1, .num_writes = 1, .reads = all_of + (from), .writes = all_of + (to), \
        .ref = add, .arg = (what)                                                           \
    }
static const dbo_op_io in_to_mid = ADDS(IN, MID, &ten), mid_to_out = ADDS(MID, OUT, &one),
                       mid_to_mid = ADDS(MID, MID, &one), out_to_other = ADDS(OUT, OTHER, &two);

typedef struct tools {
    const dbo_seam *seam;
    dbo_stream compute, comm;
    dbo_event e;
    uint64_t addresses[BUFFERS];
} tools;

/* All rows of buffer b are b: IN 0, MID 1, ... */
static dbo_status take_tools(const sim_world *w, uint32_t rank, tools *t)
{
    const dbo_seam *seam = &w->seams[rank];
    *t = (tools){.seam = seam,
                 .compute = sim_new_stream(seam),
                 .comm = sim_new_stream(seam),
                 .e = sim_new_event(seam)};
    for (uint32_t b = 0; b < BUFFERS; b++) {
        DBO_TRY(seam->mem->alloc(seam->mem_self, ROW_BYTES, DBO_SPACE_DEVICE, &t->addresses[b]));
        int32_t *rows = seam->mem->ptr(seam->mem_self, t->addresses[b]);
        for (uint32_t i = 0; i < ROWS; i++)
            rows[i] = (int32_t)b;
    }
    return DBO_OK;
}

static dbo_status compute(const tools *t, dbo_stream stream, const dbo_op_io *io, int64_t ns,
                          uint16_t sms)
{
    const dbo_op_cost cost = {.fixed_ns = ns, .fixed_sms = sms};
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_CUSTOM, 0),
                       .cost = &cost,
                       .io = io,
                       .addresses = t->addresses};
    return t->seam->device->launch(t->seam->device_self, stream, &op);
}

static int32_t row_of(const tools *t, uint32_t buffer)
{
    const int32_t *rows = t->seam->mem->ptr(t->seam->mem_self, t->addresses[buffer]);
    for (uint32_t i = 1; i < ROWS; i++)
        assert_int_equal(rows[i], rows[0]);
    return rows[0];
}

/* ---- a race that shows ---- */

typedef struct race {
    bool waits;
    uint16_t sms; /* 0: the ops share nothing; else they are slowed, and the race is the same */
} race;

/* comm produces MID in 100 ns; compute, 30 ns later, consumes it. */
static dbo_status races(sim_world *w, uint32_t rank, dbo_error *err)
{
    const race *r = w->arg;
    tools t;
    (void)err;
    DBO_TRY(take_tools(w, rank, &t));
    DBO_TRY(compute(&t, t.comm, &in_to_mid, 100, r->sms)); /* MID: 1 -> 0 + 10 */
    DBO_TRY(sim_record(t.seam, t.e, t.comm));
    DBO_TRY(sim_launch(t.seam, t.compute, 0, 30, 0));
    if (r->waits)
        DBO_TRY(sim_wait_event(t.seam, t.compute, t.e));
    DBO_TRY(compute(&t, t.compute, &mid_to_out, 200, r->sms));
    DBO_TRY(sim_record(t.seam, t.e, t.compute));
    assert_int_equal(row_of(&t, OUT), 2);
    DBO_TRY(sim_host_wait(t.seam, t.e));
    assert_int_equal(row_of(&t, MID), 10);
    assert_int_equal(row_of(&t, OUT), r->waits ? 11 : 2); /* without the wait: the old 1, + 1 */
    return DBO_OK;
}

static void a_missing_wait_shows_as_old_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        sim_world w;
        race r = {.waits = i & 1, .sms = i & 2 ? 132 : 0};
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = i & 4 ? 64 : 2,
                                  .numeric = true,
                                  .contexts = i & 8 ? DBO_CONTEXT_THREAD : DBO_CONTEXT_FIBER});
        sim_world_must_run(&w, races, &r);
        if (r.sms == 0)
            EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RUN, 1, r.waits ? 100 : 30, r.waits ? 300 : 230);
        sim_world_close(&w);
    }
}

/* ---- when ---- */

/* The host looks at every ns: rows are old until the op's end, and new from there on. */
static dbo_status watches(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    bool done;
    (void)err;
    DBO_TRY(take_tools(w, rank, &t));
    DBO_TRY(compute(&t, t.compute, &in_to_mid, 5, 0));   /* [0, 5) */
    DBO_TRY(compute(&t, t.compute, &mid_to_mid, 3, 0));  /* [5, 8): sees what the last one wrote */
    DBO_TRY(compute(&t, t.compute, &mid_to_out, 0, 0));  /* at 8 */
    DBO_TRY(compute(&t, t.comm, &out_to_other, 100, 0)); /* [0, 100): has read OUT at 0 */
    DBO_TRY(sim_record(t.seam, t.e, t.comm));
    for (int64_t at = 0; at < 102; at++) {
        DBO_TRY(t.seam->device->event_query(t.seam->device_self, t.e, &done));
        assert_int_equal(done, at >= 100);
        assert_int_equal(row_of(&t, MID), at < 5 ? 1 : at < 8 ? 10 : 11);
        assert_int_equal(row_of(&t, OUT), at < 8 ? 2 : 12);
        assert_int_equal(row_of(&t, OTHER), at < 100 ? 3 : 4);
        sim_charge(t.seam, 1);
    }
    return DBO_OK;
}

static void rows_appear_at_the_end(void **state)
{
    (void)state;
    sim_world w;
    dbo_hardware hardware = sim_round_hardware();
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 3, .numeric = true, .hardware = &hardware});
    sim_world_must_run(&w, watches, NULL);
    sim_world_close(&w);
}

/* ---- two outputs, partial ---- */

static void write_some(const dbo_op *op, const void *const *reads, void *const *writes)
{
    (void)op;
    (void)reads;
    *(uint8_t *)writes[0] = 7;
    assert_int_equal((uintptr_t)writes[1] % 16, 0); /* any type may be stored */
    *(double *)writes[1] = 0.5;
}

static dbo_status two_outputs(sim_world *w, uint32_t rank, dbo_error *err)
{
    static const dbo_access writes[] = {{.buffer = OUT, .offset_bytes = 5, .bytes = 3},
                                        {.buffer = MID, .offset_bytes = 8, .bytes = 8}};
    static const dbo_op_io io = {.num_writes = 2, .writes = writes, .ref = write_some};
    static const uint8_t expected[12] = {2, 0, 0, 0, 2, 7, 0, 0, 2, 0, 0, 0}; /* was 2, 2, 2 */
    tools t;
    double half;
    (void)err;
    DBO_TRY(take_tools(w, rank, &t));
    DBO_TRY(compute(&t, t.compute, &io, 5, 0));
    DBO_TRY(sim_record(t.seam, t.e, t.compute));
    DBO_TRY(sim_host_wait(t.seam, t.e));
    const uint8_t *out = t.seam->mem->ptr(t.seam->mem_self, t.addresses[OUT]);
    assert_memory_equal(out, expected, sizeof expected); /* what was left out is as it was */
    memcpy(&half, t.seam->mem->ptr(t.seam->mem_self, t.addresses[MID] + 8), sizeof half);
    assert_true(half == 0.5);
    return DBO_OK;
}

static void outputs_are_pieces(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1, .numeric = true});
    sim_world_must_run(&w, two_outputs, NULL);
    sim_world_close(&w);
}

/* ---- memory ---- */

static void refused(const tools *t, dbo_status got, dbo_status wanted, const char *part)
{
    dbo_error err = {0};
    assert_int_equal(got, wanted);
    assert_int_equal(t->seam->device->status(t->seam->device_self, &err), wanted);
    if (!strstr(err.message, part))
        fail_msg("'%s' lacks '%s'", err.message, part);
}

static dbo_status touches(tools *t, dbo_access access)
{
    const dbo_op_io io = {.num_reads = 1,
                          .num_writes = 1,
                          .reads = &access,
                          .writes = &access,
                          .ref = add,
                          .arg = &one};
    return compute(t, t->compute, &io, 5, 0);
}

static dbo_status memory(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    uint64_t empty;
    const dbo_mem_ops *mem = w->seams[rank].mem;
    (void)err;
    DBO_TRY(take_tools(w, rank, &t));
    void *self = t.seam->mem_self;
    DBO_TRY(mem->alloc(self, 0, DBO_SPACE_PINNED, &empty));
    assert_non_null(mem->ptr(self, empty));
    assert_null(mem->ptr(self, 0));
    assert_null(mem->ptr(self, UINT64_MAX));
    assert_null(mem->ptr(self, t.addresses[MID] + ROW_BYTES + 1));
    refused(&t, mem->alloc(self, UINT64_C(1) << 32, DBO_SPACE_DEVICE, &empty), DBO_LIMIT,
            "too large to compute with");
    const char *past = "touches buffer 1 past its end", *none = "touches buffer 1, which has no";
    refused(&t, touches(&t, (dbo_access){MID, 0, 0, ROW_BYTES + 1}), DBO_INVALID, past);
    refused(&t, touches(&t, (dbo_access){MID, 0, ROW_BYTES, 1}), DBO_INVALID, past);
    refused(&t, touches(&t, (dbo_access){MID, 0, UINT64_MAX, 2}), DBO_INVALID, past);
    refused(&t, touches(&t, (dbo_access){MID, 0, UINT64_C(1) << 32, 4}), DBO_INVALID, past);
    /* Freed while an op that touches it is in flight: gone for the host, not for the op. */
    DBO_TRY(compute(&t, t.compute, &in_to_mid, 5, 0));
    DBO_TRY(compute(&t, t.compute, &mid_to_out, 5, 0));
    mem->free(self, t.addresses[MID]);
    mem->free(self, t.addresses[MID]);
    mem->free(self, 0);
    assert_null(mem->ptr(self, t.addresses[MID]));
    refused(&t, touches(&t, (dbo_access){MID, 0, 0, 1}), DBO_INVALID, none);
    DBO_TRY(sim_record(t.seam, t.e, t.compute));
    DBO_TRY(sim_host_wait(t.seam, t.e));
    assert_int_equal(row_of(&t, OUT), 11);
    mem->free(self, t.addresses[OUT]);
    t.addresses[MID] = t.addresses[OTHER];
    return compute(&t, t.comm, &in_to_mid, 5, 0); /* still queued when the world ends */
}

static void memory_is_checked(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .numeric = true});
    sim_world_must_run(&w, memory, NULL);
    sim_world_close(&w);
}

/* A graph finds its memory when it is captured, and again at each replay. */
static dbo_status graphs(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_graph graph;
    (void)err;
    DBO_TRY(take_tools(w, rank, &t));
    const dbo_mem_ops *mem = t.seam->mem;
    const dbo_graph_ops *ops = t.seam->graph;
    void *self = t.seam->graph_self;
    uint64_t lost = t.addresses[MID];
    DBO_TRY(ops->begin(self, t.comm));
    t.addresses[MID] = 0;
    refused(&t, compute(&t, t.comm, &in_to_mid, 5, 0), DBO_INVALID,
            "touches buffer 1, which has no");
    t.addresses[MID] = lost;
    DBO_TRY(compute(&t, t.comm, &in_to_mid, 5, 0));
    DBO_TRY(ops->end(self, &graph));
    assert_int_equal(row_of(&t, MID), MID); /* captured, not computed */
    for (int32_t i = 0; i < 2; i++) {
        DBO_TRY(ops->replay(self, graph, t.comm, 1));
        DBO_TRY(sim_record(t.seam, t.e, t.comm));
        DBO_TRY(sim_host_wait(t.seam, t.e));
        assert_int_equal(row_of(&t, MID), 10 + 5 * i);
        for (uint32_t row = 0; row < ROWS; row++) /* the next replay reads what is there then */
            ((int32_t *)mem->ptr(t.seam->mem_self, t.addresses[IN]))[row] = 5;
    }
    DBO_TRY(ops->begin(self, t.comm));
    DBO_TRY(compute(&t, t.comm, &in_to_mid, 5, 0));
    ops->abandon(self);
    mem->free(t.seam->mem_self, t.addresses[MID]);
    refused(&t, ops->replay(self, graph, t.comm, 2), DBO_INVALID, "touches buffer 1, which has no");
    return DBO_OK;
}

static void graphs_compute_again(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .numeric = true});
    sim_world_must_run(&w, graphs, NULL);
    sim_world_close(&w);
}

static dbo_status dies_with_work_queued(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    DBO_TRY(take_tools(w, rank, &t));
    DBO_TRY(compute(&t, t.comm, &in_to_mid, 5, 0));
    return dbo_fail(err, DBO_IO, NULL, "torn");
}

static void work_left_is_freed(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .numeric = true});
    sim_world_must_fail(&w, dies_with_work_queued, NULL, DBO_IO, "rank 0: torn");
    sim_world_close(&w);
}

/* Memory that is given back while every stream is at work is there until it is done. */
static dbo_status frees_at_work(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    DBO_TRY(take_tools(w, rank, &t));
    DBO_TRY(compute(&t, t.comm, &out_to_other, 500, 0));
    DBO_TRY(compute(&t, t.compute, &in_to_mid, 300, 0));
    DBO_TRY(compute(&t, t.compute, &mid_to_mid, 300, 0));
    for (uint32_t b = 0; b < BUFFERS; b++)
        t.seam->mem->free(t.seam->mem_self, t.addresses[b]);
    (void)err;
    return DBO_OK;
}

static void freed_memory_outlives_its_work(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1, .numeric = true});
    assert_int_equal(sim_world_run(&w, frees_at_work, NULL), DBO_OK);
    sim_world_close(&w);
}

static void never(const dbo_op *op, const void *const *reads, void *const *writes)
{
    (void)op;
    (void)reads;
    (void)writes;
    abort();
}

static dbo_status costs_only(sim_world *w, uint32_t rank, dbo_error *err)
{
    static const dbo_op_io io = {.num_reads = 1, .reads = &all_of[0], .ref = never};
    const dbo_op_cost cost = {.fixed_ns = 5};
    const dbo_op op = {.cost = &cost, .io = &io};
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    assert_null(seam->mem);
    return seam->device->launch(seam->device_self, sim_new_stream(seam), &op);
}

static void costs_alone_compute_nothing(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_run(&w, costs_only, NULL);
    sim_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_wait_shows_as_old_rows),
        cmocka_unit_test(rows_appear_at_the_end),
        cmocka_unit_test(outputs_are_pieces),
        cmocka_unit_test(memory_is_checked),
        cmocka_unit_test(graphs_compute_again),
        cmocka_unit_test(work_left_is_freed),
        cmocka_unit_test(freed_memory_outlives_its_work),
        cmocka_unit_test(costs_alone_compute_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
