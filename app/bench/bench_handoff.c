/* bench_handoff.c: what a hand-off through dbo_yield costs.
 *
 * One rank of a simulated machine whose host is charged for hand-offs runs two ubatches that do
 * nothing but yield. Ubatch 0 times batches: n of its yields are 2 n hand-offs, there and back.
 * Nothing is timed around the hand-off itself, so a clock's own cost does not count.
 */
#include "app/bench/bench.h"
#include "lab/world/world.h"
#include "sim/hardware.h"

#include <string.h>

#define MAX_BATCHES 401

typedef struct handoff_run {
    dbo_context_kind kind;
    uint32_t batches, yields;
    dbo_bench_cancelled cancelled;
    double ns[MAX_BATCHES]; /* a hand-off, by batch */
} handoff_run;

static dbo_status yield_often(dbo_ubatch *ubatch, uint32_t times, dbo_error *err)
{
    for (uint32_t i = 0; i < times; i++) {
        dbo_status status = dbo_yield();
        if (status != DBO_OK)
            return dbo_rank_fail(ubatch->rank, status, err);
    }
    return DBO_OK;
}

static dbo_status ubatch_main(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    handoff_run *run = arg;
    for (uint32_t batch = 0; batch < run->batches; batch++) {
        if (run->cancelled && run->cancelled(NULL))
            return dbo_fail(err, DBO_CANCELLED, NULL, "the benchmark was interrupted");
        double begin_s = dbo_bench_now_s();
        DBO_TRY(yield_often(ubatch, run->yields, err));
        if (ubatch->id == 0)
            run->ns[batch] = (dbo_bench_now_s() - begin_s) * 1e9 / (2.0 * run->yields);
    }
    return DBO_OK;
}

static dbo_status rank_main(void *arg, dbo_world_rank *rank, dbo_error *err)
{
    return dbo_ubatches_run(&rank->rank, 2, 0, ubatch_main, arg, err);
}

static dbo_status measure(handoff_run *run, double *out_ns, dbo_error *err)
{
    dbo_hardware hardware;
    dbo_hardware_init(&hardware); /* with the host times of a Python engine: all are charged */
    hardware.sms = DBO_DEFAULT_SMS;
    const dbo_world_options options = {
        .machine = {.hardware = &hardware, .num_ranks = 1, .contexts = run->kind},
        .max_ubatches = 2};
    dbo_world world;
    DBO_TRY(dbo_world_init(&world, &options, err));
    dbo_status status = dbo_world_run(&world, rank_main, run, err);
    dbo_world_fini(&world);
    if (status == DBO_OK)
        *out_ns = dbo_bench_median(run->ns, run->batches);
    return status;
}

dbo_status dbo_bench_handoff(dbo_bench_handoff_result *out, dbo_bench_cancelled cancelled,
                             dbo_error *err)
{
    handoff_run fibers = {
        .kind = DBO_CONTEXT_FIBER, .batches = MAX_BATCHES, .yields = 2000, .cancelled = cancelled};
    handoff_run threads = {
        .kind = DBO_CONTEXT_THREAD, .batches = 101, .yields = 50, .cancelled = cancelled};
    DBO_TRY(measure(&fibers, &out->handoff_ns, err));
    return measure(&threads, &out->thread_handoff_ns, err);
}
