/* One loop over ranks: steps of unequal batches, bare runs, folding, one rank a process; and every
 * way to fail names who failed and leaves nothing behind. */
#include "lab/world/world.h"

#include "core/program/builders.h"
#include "lab/world/backends.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 2u
#define RANKS 3u
#define LISTS (STEPS * RANKS)

/* Three ranks with 70, 9 and 31 tokens, then 5, 64 and 33. */
typedef struct fixture {
    dbo_config config;
    dbo_layer_costs costs;
    dbo_deployment deployment;
    dbo_request_list lists[LISTS];
    dbo_request requests[LISTS][70];
    const dbo_request_list *pointers[LISTS];
    dbo_trace trace;
    dbo_world_options options;
    dbo_world_batches batches;
    uint32_t begun, ended, attached, detached; /* how often */
    int32_t tokens[LISTS];                     /* that results speak of */
    uint32_t fail_rank;                        /* of a callback, at its step `fail_step` */
    uint32_t fail_step;
} fixture;

#define NOBODY 99u

static dbo_status begin(void *self, dbo_world_rank *rank, dbo_error *err)
{
    fixture *f = self;
    (void)err;
    assert_ptr_equal(rank->runner.rank, &rank->rank);
    f->begun++;
    return DBO_OK;
}

static dbo_status ended(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    fixture *f = self;
    f->ended++;
    f->tokens[step * RANKS + rank->logical] = rank->result.num_tokens;
    if (rank->id == f->fail_rank && step == f->fail_step)
        return dbo_fail(err, DBO_LIMIT, "Breathe.", "had enough");
    return DBO_OK;
}

static void set_up(fixture *f)
{
    static const uint32_t tokens[LISTS] = {70, 9, 31, 5, 64, 33};
    memset(f, 0, sizeof *f);
    dbo_config_init(&f->config);
    f->config.enable_dbo = f->config.enable_expert_parallel = true;
    f->config.data_parallel_size = RANKS;
    f->config.dbo_decode_token_threshold = 4;
    f->config.cudagraph_mode = DBO_GRAPHS_NONE;
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
        f->costs.op[k].fixed_ns = 1000 + 10 * (int64_t)k;
    for (uint32_t i = 0; i < LISTS; i++) {
        for (uint32_t r = 0; r < tokens[i]; r++)
            f->requests[i][r] = (dbo_request){.id = i * 100 + r, .num_scheduled = 1};
        f->lists[i] = (dbo_request_list){.count = tokens[i], .requests = f->requests[i]};
        f->pointers[i] = &f->lists[i];
    }
    f->deployment = (dbo_deployment){
        .config = &f->config, .fixed = &f->costs, .num_layers = 3, .ep_size = RANKS};
    dbo_trace_init(&f->trace);
    f->options = (dbo_world_options){.machine = {.num_ranks = RANKS, .low_latency = true},
                                     .deployment = &f->deployment,
                                     .trace = &f->trace};
    f->batches = (dbo_world_batches){.num_steps = STEPS,
                                     .requests = f->pointers,
                                     .begin = begin,
                                     .ended = ended,
                                     .self = f};
    f->fail_rank = f->fail_step = NOBODY;
}

static dbo_status run_steps(fixture *f, dbo_error *err)
{
    dbo_world world;
    DBO_TRY(dbo_world_init(&world, &f->options, err));
    dbo_status status = dbo_world_steps(&world, &f->batches, err);
    dbo_world_fini(&world);
    return status;
}

static void must_fail(fixture *f, dbo_status status, const char *part)
{
    dbo_error err = {0};
    dbo_status got = run_steps(f, &err);
    if (got != status || !strstr(err.message, part))
        fail_msg("%s: '%s' lacks '%s'", dbo_status_name(got), err.message, part);
    dbo_trace_fini(&f->trace);
}
