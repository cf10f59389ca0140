/* test_sim_share.c: kernels of one GPU share its SMs and its memory bandwidth, max-min. By hand,
 * and random kernels against the same law in doubles, time step by time step. */
#include "core/base/prng.h"
#include "sim/cost.h"
#include "tests/support/draws.h"
#include "tests/support/sim_world.h"

#include <stdio.h>

#define ONE 65536 /* the simulator's unit of a rate */

/* `ns` of work at a rate of capacity / demand, in the simulator's fixed point. */
static int64_t stretched(int64_t ns, uint64_t capacity, uint64_t demand)
{
    int64_t rate = (int64_t)(capacity * ONE / demand);
    return (ns * ONE + rate - 1) / rate;
}

/* ---- by hand: op i of `ns[i]` on `sms[i]` SMs, each on a stream of its own, from time 0 ---- */

typedef struct kernels {
    uint32_t count, sms[4];
    int64_t ns[4], end_ns[4];
} kernels;

static dbo_status run_kernels(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const kernels *k = w->arg;
    (void)err;
    for (uint32_t i = 0; i < k->count; i++)
        DBO_TRY(sim_launch(seam, sim_new_stream(seam), i, k->ns[i], k->sms[i]));
    return DBO_OK;
}

static void sms_are_shared(void **state)
{
    (void)state;
    static const kernels cases[] = {
        {1, {132}, {100}, {100}},
        {2, {66, 66}, {100, 70}, {100, 70}},     /* side by side */
        {2, {132, 132}, {100, 100}, {200, 200}}, /* half the speed each */
        {2, {132, 132}, {100, 40}, {140, 80}},   /* and all of it once one is alone */
        {3, {66, 66, 132}, {50, 50, 50}, {100, 100, 100}},
        {4, {132, 132, 132, 132}, {40, 40, 10, 10}, {100, 100, 40, 40}},
        {2, {132, 0}, {100, 100}, {100, 100}}, /* no SMs: no contention */
        {1, {4000}, {100}, {100}},             /* more than there are: all */
    };
    dbo_hardware hardware = sim_round_hardware();
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        kernels k = cases[i / 2];
        sim_world w;
        sim_world_open(&w, (dbo_sim_options){.num_ranks = 3, .hardware = i % 2 ? &hardware : NULL});
        sim_world_must_run(&w, run_kernels, &k);
        for (uint32_t r = 0; r < 3; r++) /* each rank has a GPU of its own */
            for (uint32_t n = 0; n < k.count; n++)
                EXPECT_SPAN(&w, r, n, DBO_SPAN_RUN, 0, 0, k.end_ns[n]);
        int64_t last = 0;
        for (uint32_t n = 0; n < k.count; n++)
            last = k.end_ns[n] > last ? k.end_ns[n] : last;
        assert_int_equal(dbo_sim_now_ns(w.sim), last); /* moved ends leave no trace */
        sim_world_close(&w);
    }
}

/* ---- bandwidth ---- */

/* An elementwise kernel of 33 SMs: it draws less than all of the memory. */
static dbo_op_cost reading(double bytes)
{
    return (dbo_op_cost){.fixed_ns = -1,
                         .num_parts = 1,
                         .parts = {{.hbm_bytes = bytes, .tiles = 33, .kind = DBO_PART_STREAM}}};
}

static dbo_status launch_cost(const dbo_seam *seam, dbo_stream stream, uint32_t n,
                              const dbo_op_cost *cost)
{
    const dbo_op op = {.id = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_CUSTOM, n), .cost = cost};
    return seam->device->launch(seam->device_self, stream, &op);
}

static dbo_status three_read_one_computes(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const dbo_op_cost *cost = w->arg;
    (void)err;
    for (uint32_t i = 0; i < 3; i++)
        DBO_TRY(launch_cost(seam, sim_new_stream(seam), i, cost));
    return sim_launch(seam, sim_new_stream(seam), 3, 1000, 33);
}

static void bandwidth_is_shared_max_min(void **state)
{
    (void)state;
    dbo_hardware hardware = sim_round_hardware();
    hardware.kernel_ns = 0;
    hardware.host_ns[DBO_CHARGE_LAUNCH] = 0;
    dbo_op_cost cost = reading(1e6);
    dbo_op_time alone;
    sim_world w;
    dbo_cost_ns(&hardware, &cost, 0, &alone);
    assert_int_equal(alone.sms, 33);
    assert_true(3 * (uint64_t)alone.hbm_mbps > 1000000u && alone.hbm_mbps < 1000000u);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1, .hardware = &hardware});
    sim_world_must_run(&w, three_read_one_computes, &cost);
    int64_t end = stretched(alone.ns, 1000000u, 3 * (uint64_t)alone.hbm_mbps);
    for (uint32_t s = 0; s < 3; s++)
        EXPECT_SPAN(&w, 0, s, DBO_SPAN_RUN, 0, 0, end);
    EXPECT_SPAN(&w, 0, 3, DBO_SPAN_RUN, 0, 0, 1000); /* reads nothing: is not slowed */
    sim_world_close(&w);
}

/* ---- transfers on SMs ---- */

typedef struct holding {
    dbo_a2a_cost transfer[2]; /* of rank 0, of rank 1 */
    uint32_t budget;          /* of compute kernels; 0: all */
    int64_t late_ns;          /* of rank 1's post, and of rank 0's kernel: */
    int64_t kernel_at_ns;
} holding;

/* Rank 0 posts at once, and computes 10000 ns on all SMs meanwhile. */
static dbo_status hold(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const holding *h = w->arg;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, rank, 0, 0, DBO_KIND_DISPATCH, 0),
                               .stream = 1,
                               .previous = DBO_NO_EVENT,
                               .cost = &h->transfer[rank]};
    dbo_a2a_handle handle;
    (void)err;
    dbo_stream compute = sim_new_stream(seam), comm = sim_new_stream(seam);
    DBO_TRY(seam->device->set_compute_sms(seam->device_self, h->budget));
    if (rank == 1)
        DBO_TRY(sim_launch(seam, comm, 0, h->late_ns, 0));
    else if (h->kernel_at_ns > 0)
        DBO_TRY(sim_launch(seam, compute, 0, h->kernel_at_ns, 0));
    DBO_TRY(seam->a2a->post(seam->a2a_self, &args, &handle));
    return rank == 0 ? sim_launch(seam, compute, 1, 10000, 132) : DBO_OK;
}

static void expect_holding(const holding *wanted, bool needs_sms, int64_t kernel_end_ns)
{
    holding h = *wanted;
    sim_world w;
    dbo_hardware hardware = sim_round_hardware();
    hardware.comm_needs_sms = needs_sms;
    sim_world_open(
        &w, (dbo_sim_options){.num_ranks = 2, .hardware = &hardware, .transport = DBO_SIM_HT});
    sim_world_must_run(&w, hold, &h);
    uint32_t kernel = h.kernel_at_ns > 0;
    EXPECT_SPAN(&w, 0, 0, DBO_SPAN_RUN, kernel, h.kernel_at_ns, kernel_end_ns);
    EXPECT_SPAN(&w, 0, 1, DBO_SPAN_WAIT, 0, 0, h.late_ns);
    const dbo_span *run = sim_world_span(&w, 0, 1, DBO_SPAN_RUN, 0);
    assert_non_null(run);
    assert_int_equal(run->start_ns, h.late_ns);
    assert_int_equal(run->sms, needs_sms && h.transfer[0].fixed_ns < 0 ? 20 : 0);
    sim_world_close(&w);
}

static void a_waiting_transfer_holds_its_sms(void **state)
{
    (void)state;
    const dbo_a2a_cost rows = {
        .fixed_ns = -1, .tokens = 64, .topk = 8, .num_experts = 256, .bytes_per_token = 7168};
    holding h = {.transfer = {rows, rows}, .late_ns = 100000};
    expect_holding(&h, true, stretched(10000, 132, 152));
    expect_holding(&h, false, 10000); /* copy engines */
    h.budget = 112;
    expect_holding(&h, true, 10000); /* room was left for it */
    /* Rank 1's transfer takes no SMs, so rank 0 knows its start ahead, and still holds until then,
     * whatever begins or ends beside it. */
    h = (holding){.transfer = {rows, {.fixed_ns = 500}}, .late_ns = 100000, .kernel_at_ns = 300};
    expect_holding(&h, true, 300 + stretched(10000, 132, 152));
}

/* ---- random kernels ---- */

#define FOREVER 1e300
#define STREAMS 5u
#define OPS     12u

typedef struct random_ops {
    dbo_hardware hardware;
    dbo_op_cost costs[STREAMS][OPS];
    dbo_op_time alone[STREAMS][OPS];
    double end_ns[STREAMS][OPS]; /* by the law */
    uint32_t changes;
} random_ops;

static void make_random_ops(random_ops *r, uint64_t seed)
{
    dbo_prng prng;
    dbo_prng_init(&prng, seed, 3);
    memset(r, 0, sizeof *r);
    r->hardware = sim_round_hardware();
    for (uint32_t s = 0; s < STREAMS; s++)
        for (uint32_t i = 0; i < OPS; i++) {
            dbo_op_cost *c = &r->costs[s][i];
            if (dbo_prng_below(&prng, 2) == 0) {
                *c = reading((double)prng_range(&prng, 0, 20000000));
                c->parts[0].tiles = (uint32_t)prng_range(&prng, 1, 132);
            } else {
                *c = (dbo_op_cost){.fixed_ns = prng_range(&prng, 0, 40000),
                                   .fixed_sms = (uint16_t)prng_range(&prng, 0, 132)};
            }
            dbo_cost_ns(&r->hardware, c, 0, &r->alone[s][i]);
        }
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Max-min: all rates grow together; who uses a full resource stops; the others grow on. */
static void fill(const dbo_op_time *const running[STREAMS], double rates[STREAMS])
{
    bool frozen[STREAMS] = {false};
    const double capacity[2] = {132, 1e6};
    for (int round = 0; round < 3; round++) {
        double level = 1, used[2] = {0}, growing[2] = {0};
        for (uint32_t s = 0; s < STREAMS; s++)
            for (int k = 0; k < 2 && running[s]; k++) {
                double d = k == 0 ? running[s]->sms : running[s]->hbm_mbps;
                used[k] += frozen[s] ? d * rates[s] : 0;
                growing[k] += frozen[s] ? 0 : d;
            }
        for (int k = 0; k < 2; k++)
            if (growing[k] > 0)
                level = lesser(level, (capacity[k] - used[k]) / growing[k]);
        for (uint32_t s = 0; s < STREAMS; s++)
            rates[s] = frozen[s] ? rates[s] : level;
        for (uint32_t s = 0; s < STREAMS && level < 1; s++)
            for (int k = 0; k < 2 && running[s]; k++)
                if (growing[k] > 0 && (capacity[k] - used[k]) / growing[k] <= level * (1 + 1e-12))
                    frozen[s] = frozen[s] || (k == 0 ? running[s]->sms : running[s]->hbm_mbps) > 0;
    }
}

static void solve(random_ops *r)
{
    uint32_t next[STREAMS] = {0};
    double left[STREAMS], now = 0;
    for (uint32_t s = 0; s < STREAMS; s++)
        left[s] = (double)r->alone[s][0].ns;
    for (;;) {
        const dbo_op_time *running[STREAMS] = {NULL};
        double rates[STREAMS] = {0}, step = FOREVER;
        for (uint32_t s = 0; s < STREAMS; s++)
            running[s] = next[s] < OPS ? &r->alone[s][next[s]] : NULL;
        fill(running, rates);
        for (uint32_t s = 0; s < STREAMS; s++)
            step = running[s] ? lesser(step, left[s] / rates[s]) : step;
        if (step >= FOREVER)
            return;
        now += step;
        r->changes++;
        for (uint32_t s = 0; s < STREAMS; s++) {
            left[s] -= running[s] ? step * rates[s] : 0;
            if (!running[s] || left[s] > 1e-6)
                continue;
            r->end_ns[s][next[s]++] = now;
            left[s] = next[s] < OPS ? (double)r->alone[s][next[s]].ns : 0;
        }
    }
}

static dbo_status run_random_ops(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    const random_ops *r = w->arg;
    (void)err;
    for (uint32_t s = 0; s < STREAMS; s++)
        assert_int_equal(sim_new_stream(seam), s);
    for (uint32_t i = 0; i < OPS; i++)
        for (uint32_t s = 0; s < STREAMS; s++)
            DBO_TRY(launch_cost(seam, s, i, &r->costs[s][i]));
    return DBO_OK;
}

static void random_kernels_follow_the_law(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        static random_ops r;
        sim_world w, again;
        make_random_ops(&r, seed);
        solve(&r);
        sim_world_open(&w, (dbo_sim_options){.num_ranks = 1, .hardware = &r.hardware});
        sim_world_must_run(&w, run_random_ops, &r);
        int64_t before = 0;
        for (uint32_t s = 0; s < STREAMS; s++, before = 0)
            for (uint32_t i = 0; i < OPS; i++) {
                const dbo_span *span = sim_world_span(&w, 0, s, DBO_SPAN_RUN, i);
                assert_non_null(span);
                assert_int_equal(span->start_ns, before); /* back to back, never overlapping */
                assert_true(span->end_ns - span->start_ns >= r.alone[s][i].ns);
                before = span->end_ns;
                /* Rounding: at most 1 ns a change of rates, and 2^-16 of a rate. */
                double off = (double)span->end_ns - r.end_ns[s][i];
                off = off < 0 ? -off : off;
                assert_true(off <= r.changes + r.end_ns[s][i] * 1e-4);
                worst = off > worst ? off : worst;
            }
        sim_world_open(&again, (dbo_sim_options){.num_ranks = 1, .hardware = &r.hardware});
        sim_world_must_run(&again, run_random_ops, &r);
        assert_int_equal(w.trace.num_spans, again.trace.num_spans);
        for (uint64_t i = 0; i < w.trace.num_spans; i++)
            assert_memory_equal(dbo_trace_span(&w.trace, i), dbo_trace_span(&again.trace, i),
                                sizeof(dbo_span));
        sim_world_close(&again);
        sim_world_close(&w);
    }
    printf("share: 300 random sets of %u kernels, at most %.1f ns from the law in doubles\n",
           STREAMS * OPS, worst);
}

static dbo_status one_too_many(sim_world *w, uint32_t rank, dbo_error *err)
{
    const dbo_seam *seam = &w->seams[rank];
    (void)err;
    for (uint32_t i = 0; i < 33; i++)
        DBO_TRY(sim_launch(seam, sim_new_stream(seam), i, 10, 1));
    return DBO_OK;
}

static void a_gpu_runs_so_many(void **state)
{
    (void)state;
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 2});
    sim_world_must_fail(&w, one_too_many, NULL, DBO_LIMIT,
                        "more than 32 kernels and flows run on rank 0");
    sim_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sms_are_shared),
        cmocka_unit_test(bandwidth_is_shared_max_min),
        cmocka_unit_test(a_waiting_transfer_holds_its_sms),
        cmocka_unit_test(random_kernels_follow_the_law),
        cmocka_unit_test(a_gpu_runs_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
