/* world.h: the ranks of this process, opened over a back end, and the one loop that runs them.
 *
 * Every rank gets its seam from the back end, with what is attached put around it, a dbo_rank, and,
 * where there is a deployment, a runner. Then it runs: steps (dbo_world_steps), or a function of
 * the caller's on each rank (dbo_world_run), again if one likes. Ranks may be simulated ones, one
 * for each class of equal ranks, several in this process or the only one.
 *
 *     const dbo_world_options options = {
 *         .machine = {.num_ranks = 2, .low_latency = true}, .deployment = &deployment,
 *         .trace = &trace};
 *     const dbo_world_batches batches = {.num_steps = 3, .requests = lists};
 *     dbo_world world;
 *     DBO_TRY(dbo_world_init(&world, &options, err));
 *     dbo_status status = dbo_world_steps(&world, &batches, err);
 *     ... world.ranks[1].result is of its last step ...
 *     dbo_world_fini(&world);
 *
 * One thread calls these. What is called for a rank comes from the context that holds its turn.
 * Options and what they point to are borrowed until fini.
 */
#ifndef DBO_WORLD_H
#define DBO_WORLD_H

#include "core/rank/backend.h"
#include "core/rank/rank.h"
#include "core/step/runner.h"
#include "core/trace/trace.h"
#include "lab/experiment/workload.h"

typedef struct dbo_world dbo_world;

/* Something that sees the seam of each rank before it is used, and may put itself around it. */
typedef struct dbo_attachment {
    dbo_status (*attach)(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err); /* or NULL */
    void *self;
} dbo_attachment;

#define DBO_WORLD_ATTACHMENTS 4u

typedef struct dbo_world_options {
    const dbo_backend *backend; /* NULL: the simulator */
    dbo_backend_options machine;
    const dbo_deployment *deployment; /* NULL: ranks without a runner */
    uint32_t max_ubatches;            /* 0: as the deployment says */
    dbo_trace *trace;                 /* gets what happens; NULL: machine.trace does */
    dbo_attachment attachments[DBO_WORLD_ATTACHMENTS]; /* from the machine outwards */
} dbo_world_options;

typedef struct dbo_world_rank {
    dbo_world *world;
    uint32_t id;      /* among those that run here */
    uint32_t logical; /* in the group: the first of those that it stands for */
    bool is_made;     /* the machine has its streams; below is what it owns */
    dbo_rank rank;
    dbo_runner runner;
    dbo_step_result result; /* of the last step */
} dbo_world_rank;

struct dbo_world {
    dbo_world_options options;
    const dbo_backend *backend;
    void *machine; /* the back end's self */
    uint32_t num_ranks;
    dbo_world_rank *ranks; /* (num_ranks) those that run here */
};

/* DBO_UNSUPPORTED when the back end cannot do what is asked of it, before it is opened. */
dbo_status dbo_world_init(dbo_world *world, const dbo_world_options *options, dbo_error *err);
void dbo_world_fini(dbo_world *world); /* of a zeroed one is fine */

/* Runs main(arg, rank) on every rank that runs here. On failure the first error of any comes back;
 * the world can then only be ended. */
typedef dbo_status (*dbo_world_main)(void *arg, dbo_world_rank *rank, dbo_error *err);
dbo_status dbo_world_run(dbo_world *world, dbo_world_main main, void *arg, dbo_error *err);

/* Steps for every rank, from number 0. */
typedef struct dbo_world_batches {
    uint32_t num_steps;
    const dbo_request_list *const *requests; /* (num_steps, size of the group) */
    /* Optional: the rank is there, its first step comes. */
    dbo_status (*begin)(void *self, dbo_world_rank *rank, dbo_error *err);
    /* Optional: rank->result is of step `step`, which has ended; the result goes with the next. */
    dbo_status (*ended)(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err);
    void *self;
} dbo_world_batches;

dbo_status dbo_world_steps(dbo_world *world, const dbo_world_batches *batches, dbo_error *err);

/* The host of the rank does nothing for so long from now on. Only where time is virtual. */
void dbo_world_delay(dbo_world_rank *rank, int64_t ns);
/* Time of the last thing that has happened; 0: the back end does not say. */
int64_t dbo_world_now_ns(const dbo_world *world);
/* Nodes of a graph that the rank has captured; 0: none, or the back end does not say. */
uint32_t dbo_world_graph_nodes(const dbo_world_rank *rank, dbo_graph graph);

#endif
