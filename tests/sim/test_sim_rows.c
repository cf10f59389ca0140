/* test_sim_rows.c: rows of transfers in virtual time: read when the transfer starts (LL: when its
 * send does), there when it ends (LL: when its receive does); captured, they are read anew. */
#include "core/seam/route.h"
#include "tests/support/sim_world.h"

#define RANKS  2u
#define HIDDEN 2u

enum { ROWS, IDS, WEIGHTS, GOT, GOT_IDS, GOT_WEIGHTS, HANDLE, COUNTS, BUFFERS };

/* One token a rank, one expert a rank; capacity: everybody's. */
typedef struct tools {
    const dbo_seam *seam;
    dbo_stream compute, comm;
    dbo_event e;
    dbo_route route;
    dbo_access reads[3], writes[5];
    dbo_op_io io;
    uint64_t addresses[BUFFERS];
    uint32_t posts;
} tools;

static void *memory(const tools *t, uint32_t buffer)
{
    return t->seam->mem->ptr(t->seam->mem_self, t->addresses[buffer]);
}

/* The rank's row is (value, value + 1). */
static void set_row(const tools *t, float value)
{
    float *row = memory(t, ROWS);
    row[0] = value;
    row[1] = value + 1;
}

static float got(const tools *t)
{
    return *(const float *)memory(t, GOT);
}

/* Token of rank r to expert 1 - r, which is rank 1 - r's. */
static void take_tools(const sim_world *w, uint32_t rank, bool low_latency, tools *t)
{
    static const uint64_t bytes[BUFFERS] = {8, 8, 4, 16, 16, 8, 64, 8};
    const dbo_seam *seam = &w->seams[rank];
    *t = (tools){.seam = seam,
                 .compute = sim_new_stream(seam),
                 .comm = sim_new_stream(seam),
                 .e = sim_new_event(seam)};
    t->route = (dbo_route){.low_latency = low_latency,
                           .wire = DBO_FP32,
                           .num_ranks = RANKS,
                           .num_experts = RANKS,
                           .topk = 1,
                           .hidden = HIDDEN,
                           .tokens = 1,
                           .capacity = low_latency ? 1 : RANKS,
                           .reads = {0, 255, 1, 2, 255, 255, 255},
                           .writes = {0, 255, 1, 2, 255, 3, 4}};
    for (uint32_t b = 0; b < BUFFERS; b++) {
        assert_int_equal(
            seam->mem->alloc(seam->mem_self, bytes[b], DBO_SPACE_DEVICE, &t->addresses[b]), DBO_OK);
        const dbo_access access = {.buffer = b, .bytes = bytes[b]};
        if (b < GOT)
            t->reads[b] = access;
        else
            t->writes[b - GOT] = access;
    }
    t->io = (dbo_op_io){.num_reads = 3,
                        .num_writes = 5,
                        .reads = t->reads,
                        .writes = t->writes,
                        .route = &t->route};
    *(int64_t *)memory(t, IDS) = 1 - (int64_t)rank;
    *(float *)memory(t, WEIGHTS) = 1;
    set_row(t, (float)(10 * (rank + 1)));
}

static dbo_status post(tools *t, int64_t ns, dbo_a2a_handle *out)
{
    const dbo_a2a_cost cost = {.fixed_ns = ns};
    const uint32_t rank = t->seam->group->rank(t->seam->group_self);
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, rank, 0, 0, DBO_KIND_DISPATCH, t->posts++),
                               .direction = DBO_A2A_DISPATCH,
                               .stream = t->comm,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost,
                               .io = &t->io,
                               .addresses = t->addresses};
    return t->seam->a2a->post(t->seam->a2a_self, &args, out);
}

/* Lets the world come to the end of an op of `ns` that begins now. */
static dbo_status pass(const tools *t, int64_t ns)
{
    DBO_TRY(sim_launch(t->seam, t->compute, 0, ns, 1)); /* takes an SM, so it ends by an event */
    DBO_TRY(sim_record(t->seam, t->e, t->compute));
    return sim_host_wait(t->seam, t->e);
}

/* ---- HT ---- */

/* Rank 1 posts at 100; the transfer takes 50 from then on. */
static dbo_status rendezvous(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_a2a_handle handle;
    (void)err;
    take_tools(w, rank, false, &t);
    if (rank == 1)
        DBO_TRY(pass(&t, 100));
    DBO_TRY(post(&t, 50, &handle));
    DBO_TRY(sim_finish_on(t.seam, handle, t.comm));
    if (rank == 0) {
        DBO_TRY(pass(&t, 90)); /* posted, but rank 1 is not there: nothing has been read */
        set_row(&t, 77);
        DBO_TRY(pass(&t, 30));
        set_row(&t, 88); /* at 120 it has been */
    } else {
        DBO_TRY(pass(&t, 40)); /* 140 */
    }
    assert_true(got(&t) == 0); /* nothing has arrived by 120, 140 */
    DBO_TRY(pass(&t, 40));     /* 160, 180 */
    assert_true(got(&t) == (rank == 0 ? 20.0f : 77.0f));
    assert_int_equal(((const int64_t *)memory(&t, GOT_IDS))[0], 0);
    assert_int_equal(((const int64_t *)memory(&t, GOT_IDS))[1], -1);
    return DBO_OK;
}

static void rows_meet(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w,
                   (dbo_sim_options){.num_ranks = RANKS, .numeric = true, .transport = DBO_SIM_HT});
    sim_world_must_run(&w, rendezvous, NULL);
    sim_world_close(&w);
}

/* ---- LL ---- */

/* Rank 0 sends at 0, rank 1 at 100; flights take 50; both receive at 200. */
static dbo_status flights(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_a2a_handle handle;
    (void)err;
    take_tools(w, rank, true, &t);
    DBO_TRY(pass(&t, rank == 1 ? 100 : 1));
    DBO_TRY(post(&t, 50, &handle));
    DBO_TRY(pass(&t, rank == 1 ? 10 : 20));
    set_row(&t, 99); /* too late: sent */
    DBO_TRY(pass(&t, 200));
    assert_true(got(&t) == 0); /* landed long ago, but nobody has received it */
    DBO_TRY(sim_finish_on(t.seam, handle, t.comm));
    DBO_TRY(sim_record(t.seam, t.e, t.comm));
    DBO_TRY(sim_host_wait(t.seam, t.e));
    assert_true(got(&t) == (rank == 0 ? 20.0f : 10.0f));
    assert_int_equal(*(const int32_t *)memory(&t, COUNTS), 1);
    return DBO_OK;
}

/* A transfer of a graph reads what is there at its replay. */
static dbo_status replays(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_a2a_handle handle;
    dbo_graph graph;
    (void)err;
    take_tools(w, rank, true, &t);
    const dbo_graph_ops *ops = t.seam->graph;
    DBO_TRY(ops->begin(t.seam->graph_self, t.comm));
    DBO_TRY(post(&t, 50, &handle));
    DBO_TRY(sim_finish_on(t.seam, handle, t.comm));
    DBO_TRY(ops->end(t.seam->graph_self, &graph));
    for (uint32_t i = 1; i < 4; i++) {
        set_row(&t, (float)(100 * i + rank));
        DBO_TRY(ops->replay(t.seam->graph_self, graph, t.comm, i));
        DBO_TRY(sim_record(t.seam, t.e, t.comm));
        DBO_TRY(sim_host_wait(t.seam, t.e));
        assert_true(got(&t) == (float)(100 * i + 1 - rank));
    }
    ops->destroy(t.seam->graph_self, graph);
    return DBO_OK;
}

static void rows_fly(void **state)
{
    (void)state;
    static const sim_world_main mains[] = {flights, replays};
    for (uint32_t i = 0; i < 2; i++) {
        sim_world w;
        sim_world_open(
            &w, (dbo_sim_options){.num_ranks = RANKS, .numeric = true, .transport = DBO_SIM_LL});
        sim_world_must_run(&w, mains[i], NULL);
        sim_world_close(&w);
    }
}

/* ---- refused ---- */

static dbo_status alone(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_a2a_handle handle;
    (void)err;
    take_tools(w, rank, false, &t);
    if (rank == 1)
        t.io.route = NULL;
    DBO_TRY(post(&t, 50, &handle));
    DBO_TRY(sim_finish_on(t.seam, handle, t.comm));
    return pass(&t, 100);
}

static dbo_status nowhere(sim_world *w, uint32_t rank, dbo_error *err)
{
    tools t;
    dbo_a2a_handle handle;
    (void)err;
    take_tools(w, rank, false, &t);
    t.addresses[GOT] = 0;
    return post(&t, 50, &handle);
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    const dbo_sim_options options = {.num_ranks = RANKS, .numeric = true, .transport = DBO_SIM_HT};
    sim_world w;
    sim_world_open(&w, options);
    sim_world_must_fail(&w, alone, NULL, DBO_INVALID,
                        "rank 0 moves rows in a transfer in which rank 1 moves none");
    sim_world_close(&w);
    sim_world_open(&w, options);
    sim_world_must_fail(&w, nowhere, NULL, DBO_INVALID, "touches buffer 3, which has no storage");
    sim_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_meet),
        cmocka_unit_test(rows_fly),
        cmocka_unit_test(what_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
