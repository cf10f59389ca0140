/* need.c: see need.h. The constants are measured: resident memory of runs with 1 to 2048 ranks, 2
 * to 1000 layers, built-in schedules and recorded ones of up to 4000 instructions, 2 to 5 steps. */
#include "lab/world/need.h"

#include "lab/world/arrival.h"

#include <stdlib.h>

#define MIB               ((uint64_t)1 << 20)
#define RUN_BYTES         (2 * MIB)
#define RANK_BYTES        (UINT64_C(112) << 10) /* its stacks, streams, pools and runner, twice */
#define PEER_BYTES        44u /* for every other rank: its column of the votes, twice */
#define REQUEST_BYTES     80u
#define INSTRUCTION_BYTES 160u /* spans, issues, marks; a node of a graph */
#define BUILT_IN_UBATCH   10u  /* instructions of a layer that leave something behind */
#define ARRIVAL_BYTES     24u
#define PROGRAM_BYTES     (UINT64_C(14) << 10) /* of a layer with a routing of its own */

static bool nobody(const void *self, uint32_t rank)
{
    (void)self;
    (void)rank;
    return false;
}

/* Ranks that run by themselves. */
static dbo_status count_classes(const dbo_experiment *experiment, uint32_t *classes,
                                uint32_t *steps, dbo_error *err)
{
    dbo_arrivals arrivals;
    dbo_fold fold = {0};
    DBO_TRY(dbo_arrivals_init(&arrivals, experiment, DBO_ARRIVAL_AS_GIVEN, err));
    dbo_status status = dbo_arrivals_fold(&arrivals, nobody, NULL, &fold, err);
    *steps = arrivals.num_steps;
    bool is_unlike = experiment->batch.jitter_us > 0 || experiment->routings.count > 0;
    *classes = is_unlike ? arrivals.num_ranks : fold.num_classes;
    dbo_arrivals_fini(&arrivals);
    free(fold.class_of);
    free(fold.first_rank);
    return status;
}

/* Instructions of a layer, in the run without DBO and in that with it. */
static uint64_t layer_instructions(const dbo_experiment *experiment)
{
    uint32_t ubatches = dbo_config_num_ubatches(&experiment->config);
    uint64_t count = BUILT_IN_UBATCH * (1 + (uint64_t)ubatches);
    for (uint32_t u = 0; experiment->schedule && u < DBO_MAX_UBATCHES; u++)
        count += experiment->schedule->program.num_instrs[u];
    return count;
}

dbo_status dbo_need_of(const dbo_experiment *experiment, uint64_t *bytes, dbo_error *err)
{
    uint32_t classes = 0, steps = 0, requests = 0;
    uint64_t ranks = experiment->config.data_parallel_size;
    DBO_TRY(count_classes(experiment, &classes, &steps, err));
    for (uint32_t r = 0; r < experiment->batch.num_ranks; r++) {
        uint32_t count = experiment->batch.ranks[r]->count;
        requests = count > requests ? count : requests;
    }
    uint64_t records = (uint64_t)steps * experiment->num_layers * layer_instructions(experiment);
    *bytes =
        RUN_BYTES + steps * ranks * ARRIVAL_BYTES + dbo_routings_bytes(&experiment->routings) +
        classes * (RANK_BYTES + experiment->routings.count * PROGRAM_BYTES + ranks * PEER_BYTES +
                   (uint64_t)requests * REQUEST_BYTES + records * INSTRUCTION_BYTES);
    return DBO_OK;
}

dbo_status dbo_need_check(const dbo_experiment *experiment, uint64_t max_bytes, const char *hint,
                          dbo_error *err)
{
    uint64_t bytes = 0;
    DBO_TRY(dbo_need_of(experiment, &bytes, err));
    if (bytes <= max_bytes)
        return DBO_OK;
    return dbo_fail(err, DBO_LIMIT, hint,
                    "the run needs about %llu MiB of memory, more than the %llu MiB it may take",
                    (unsigned long long)((bytes + MIB - 1) / MIB),
                    (unsigned long long)(max_bytes / MIB));
}
