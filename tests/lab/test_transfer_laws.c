/* test_transfer_laws.c: what holds of transfers in every experiment, over 500 random ones: what is
 * sent is received, exposed and hidden make up all, no bound is above its step, and no part of the
 * machine that gets better makes a step without DBO longer. test_workloads.c compares folded ranks
 * with unfolded ones, span by span. */
#include "core/trace/metrics.h"
#include "lab/world/simulate.h"
#include "sim/fabric.h"
#include "tests/support/random_experiment.h"

#define EXPERIMENTS 500u

static void simulate(const dbo_experiment *e, bool with_dbo, bool unfolded, dbo_simulated *run)
{
    const dbo_simulate_options options = {.unfolded = unfolded};
    dbo_error err = {0};
    uint32_t shown;
    if (dbo_simulate_one(e, &options, with_dbo, run, &shown, &err) != DBO_OK)
        fail_msg("%s: %s", e->name, err.message);
}

static double value(dbo_quantity q)
{
    return q.present ? q.value : 0;
}

static void check_metrics(const dbo_experiment *e, const dbo_metrics *m)
{
    double comm = value(m->comm_us), exposed = value(m->exposed_comm_us);
    double hidden = value(m->hidden_fraction) * comm;
    if (!(exposed + hidden < comm + 1e-6 && exposed + hidden > comm - 1e-6))
        fail_msg("%s: %g exposed and %g hidden of %g", e->name, exposed, hidden, comm);
    if (!(value(m->bound_us) <= value(m->step_us) + 1e-6) || value(m->efficiency) > 1 + 1e-9)
        fail_msg("%s: bound %g above the step %g", e->name, value(m->bound_us), value(m->step_us));
}

/* LL: bytes of flights and of receives, over all ranks, a kind at a time. Each is a whole number of
 * bytes, so they may differ by a half for each. (With TP, each rank of a group is given a whole
 * number of tokens, which may be one more than the mean has.) */
static uint64_t check_bytes(const dbo_experiment *e, const dbo_trace *trace)
{
    for (uint32_t kind = DBO_KIND_DISPATCH; kind <= DBO_KIND_COMBINE; kind++) {
        uint64_t sent = 0, received = 0, count = 0;
        for (uint64_t i = 0; i < trace->num_spans; i++) {
            const dbo_span *span = dbo_trace_span(trace, i);
            if (dbo_op_id_kind(span->id) != kind)
                continue;
            sent += span->part == DBO_SPAN_FLIGHT ? span->bytes : 0;
            received += span->part == DBO_SPAN_RECV ? span->bytes : 0;
            count += span->part == DBO_SPAN_RECV;
        }
        if (sent > received + count || received > sent + count)
            fail_msg("%s: %llu bytes sent, %llu received", e->name, (unsigned long long)sent,
                     (unsigned long long)received);
    }
    return trace->num_spans;
}

static void hold_everywhere(void **state)
{
    (void)state;
    uint32_t low_latency = 0;
    for (uint64_t seed = 0; seed < EXPERIMENTS; seed++) {
        dbo_experiment e;
        random_experiment(&e, seed, seed % 2 ? RANDOM_ROUTED : RANDOM_ANY);
        bool ll = e.config.all2all_backend != DBO_BACKEND_HT;
        for (int with_dbo = 0; with_dbo < 2; with_dbo++) {
            dbo_simulated run;
            simulate(&e, with_dbo, true, &run);
            check_metrics(&e, &run.metrics);
            if (ll && e.config.tensor_parallel_size == 1)
                low_latency += check_bytes(&e, &run.trace) > 0;
            dbo_simulated_fini(&run);
        }
        dbo_experiment_fini(&e);
    }
    assert_true(low_latency > EXPERIMENTS / 3);
}

static double step_without_dbo(const dbo_experiment *e)
{
    dbo_simulated run;
    simulate(e, false, false, &run);
    double us = value(run.metrics.step_us);
    dbo_simulated_fini(&run);
    return us;
}

static void more_is_never_slower(void **state)
{
    (void)state;
    uint32_t compared = 0, faster = 0;
    for (uint64_t seed = 0; seed < EXPERIMENTS; seed++) {
        dbo_experiment e;
        random_experiment(&e, seed, seed % 2 ? RANDOM_ROUTED : RANDOM_ANY);
        const dbo_hardware usual = e.hardware;
        double before = e.has_fixed ? 0 : step_without_dbo(&e);
        for (int what = 0; what < 4 && !e.has_fixed; what++) {
            e.hardware = usual;
            switch (what) {
            case 0: e.hardware.hbm_gbps *= 1.7; break;
            case 1: e.hardware.nvlink_gbps *= 1.7; break;
            case 2: e.hardware.nic_gbps *= 1.7; break;
            default: e.hardware.ll_sms += usual.ll_sms == 0 ? 0 : 30;
            } /* HT's SMs are taken from what computes beside it */
            double after = step_without_dbo(&e);
            if (after > before + 1e-6)
                fail_msg("%s: change %d makes the step %.3f us, it was %.3f", e.name, what, after,
                         before);
            compared++;
            faster += after < before - 1e-6;
        }
        dbo_experiment_fini(&e);
    }
    print_message("%u changes, %u make the step shorter\n", compared, faster);
    assert_true(faster > compared / 10);
}

/* Of a transfer: more tokens, own or others', take no less; a faster port no more. */
static void more_tokens_are_never_faster(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < EXPERIMENTS; seed++) {
        dbo_prng prng;
        dbo_hardware hardware;
        dbo_prng_init(&prng, seed, 3);
        random_hardware(&prng, &hardware);
        dbo_a2a_direction direction = (dbo_a2a_direction)dbo_prng_below(&prng, 2);
        dbo_a2a_cost cost = {.fixed_ns = -1,
                             .topk = RANDOM_OF(&prng, 1, 2, 8),
                             .num_experts = 64,
                             .bytes_per_token = (uint32_t)prng_range(&prng, 100, 15000)};
        uint32_t ranks = RANDOM_OF(&prng, 1, 2, 4, 16, 32), node = RANDOM_OF(&prng, 1, 2, 4);
        int64_t before_ll = 0, before_ht = 0;
        cost.mean_tokens = 1;
        for (uint32_t i = 0; i < 20; i++) {
            dbo_ll_time ll;
            dbo_ht_time ht;
            cost.tokens += (uint32_t)dbo_prng_below(&prng, 40);
            cost.mean_tokens += (double)dbo_prng_below(&prng, 40);
            dbo_fabric_ll(&hardware, ranks, node, &cost, direction, &ll);
            dbo_fabric_ht(&hardware, ranks, node, &cost, direction, 0, &ht);
            assert_true(ll.flight_ns + ll.recv_ns >= before_ll && ht.ns >= before_ht);
            before_ll = ll.flight_ns + ll.recv_ns;
            before_ht = ht.ns;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hold_everywhere),
        cmocka_unit_test(more_is_never_slower),
        cmocka_unit_test(more_tokens_are_never_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
