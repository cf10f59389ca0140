/* world.c: see world.h. Ranks are made by their own contexts, the first time that they run; the
 * thread that opened the world ends them. */
#include "lab/world/world.h"

#include "lab/world/backends.h"

#include <stdlib.h>
#include <string.h>

static dbo_status check_machine(const dbo_backend *backend, const dbo_backend_options *machine,
                                dbo_error *err)
{
    if (backend->simulated || machine->num_classes == 0)
        return DBO_OK;
    return dbo_fail(err, DBO_UNSUPPORTED, "Run every rank, or simulate.",
                    "the back end '%s' runs ranks, and cannot let one stand for others",
                    backend->name);
}

static uint32_t num_here(const dbo_backend_options *machine)
{
    if (machine->group)
        return 1;
    return machine->num_classes ? machine->num_classes : machine->num_ranks;
}

dbo_status dbo_world_init(dbo_world *world, const dbo_world_options *options, dbo_error *err)
{
    memset(world, 0, sizeof *world);
    if (options->backend)
        world->backend = options->backend;
    else
        DBO_TRY(dbo_backend_find(DBO_BACKEND_SIM, &world->backend, err));
    world->options = *options;
    dbo_backend_options *machine = &world->options.machine;
    DBO_TRY(check_machine(world->backend, machine, err));
    if (options->trace) {
        machine->trace = dbo_trace_sink();
        machine->trace_self = options->trace;
    }
    if (options->max_ubatches == 0)
        world->options.max_ubatches =
            options->deployment ? dbo_config_num_ubatches(options->deployment->config) : 1;
    if (world->options.max_ubatches == 0)
        world->options.max_ubatches = 1;
    world->num_ranks = num_here(machine);
    dbo_status status = world->backend->open(machine, &world->machine, err);
    if (status == DBO_OK) {
        world->ranks = calloc(world->num_ranks, sizeof *world->ranks);
        status = world->ranks ? DBO_OK : dbo_fail_memory(err, "the ranks");
    }
    for (uint32_t i = 0; world->ranks && i < world->num_ranks; i++) {
        world->ranks[i].world = world;
        world->ranks[i].id = i;
    }
    if (status != DBO_OK)
        dbo_world_fini(world);
    return status;
}

void dbo_world_fini(dbo_world *world)
{
    for (uint32_t i = 0; world->ranks && i < world->num_ranks; i++) {
        dbo_world_rank *rank = &world->ranks[i];
        dbo_step_result_fini(&rank->result);
        dbo_runner_fini(&rank->runner);
        dbo_rank_fini(&rank->rank);
    }
    if (world->backend)
        world->backend->close(world->machine);
    free(world->ranks);
    memset(world, 0, sizeof *world);
}

static dbo_status make_rank(dbo_world_rank *rank, dbo_error *err)
{
    const dbo_world *world = rank->world;
    const dbo_world_options *options = &world->options;
    dbo_seam seam;
    DBO_TRY(world->backend->fill(world->machine, rank->id, &seam, err));
    DBO_TRY(dbo_seam_check(&seam, err)); /* before anything is put around it */
    for (uint32_t i = 0; i < DBO_WORLD_ATTACHMENTS; i++) {
        const dbo_attachment *a = &options->attachments[i];
        if (a->attach)
            DBO_TRY(a->attach(a->self, rank->id, &seam, err));
    }
    dbo_fiber_pool *pool = world->backend->pool ? world->backend->pool(world->machine) : NULL;
    DBO_TRY(dbo_rank_init(&rank->rank, rank->id, &seam, options->machine.contexts,
                          options->max_ubatches, pool, err));
    rank->logical = seam.group->rank(seam.group_self);
    if (options->deployment)
        DBO_TRY(dbo_runner_init(&rank->runner, &rank->rank, options->deployment, err));
    rank->is_made = true;
    return DBO_OK;
}

typedef struct running {
    dbo_world *world;
    dbo_world_main main;
    void *arg;
} running;

static dbo_status enter(void *arg, uint32_t index, dbo_error *err)
{
    const running *r = arg;
    dbo_world_rank *rank = &r->world->ranks[index];
    if (!rank->is_made)
        DBO_TRY(make_rank(rank, err));
    return r->main(r->arg, rank, err);
}

dbo_status dbo_world_run(dbo_world *world, dbo_world_main main, void *arg, dbo_error *err)
{
    running r = {.world = world, .main = main, .arg = arg};
    DBO_TRY(world->backend->run(world->machine, enter, &r, err));
    const dbo_trace *trace = world->options.trace;
    return trace && trace->failed ? dbo_fail_memory(err, "the trace") : DBO_OK;
}

static dbo_status step_rank(void *arg, dbo_world_rank *rank, dbo_error *err)
{
    const dbo_world_batches *b = arg;
    if (b->begin)
        DBO_TRY(b->begin(b->self, rank, err));
    for (uint32_t step = 0; step < b->num_steps; step++) {
        const dbo_request_list *list =
            b->requests[(size_t)step * rank->world->options.machine.num_ranks + rank->logical];
        dbo_step_result_fini(&rank->result);
        DBO_TRY(dbo_runner_step(&rank->runner, step, list->requests, (int32_t)list->count,
                                &rank->result, err));
        if (b->ended)
            DBO_TRY(b->ended(b->self, rank, step, err));
    }
    return DBO_OK;
}

dbo_status dbo_world_steps(dbo_world *world, const dbo_world_batches *batches, dbo_error *err)
{
    dbo_world_batches copy = *batches;
    return dbo_world_run(world, step_rank, &copy, err);
}

void dbo_world_delay(dbo_world_rank *rank, int64_t ns)
{
    rank->world->backend->delay(rank->world->machine, rank->id, ns);
}

int64_t dbo_world_now_ns(const dbo_world *world)
{
    return world->backend->now_ns ? world->backend->now_ns(world->machine) : 0;
}

uint32_t dbo_world_graph_nodes(const dbo_world_rank *rank, dbo_graph graph)
{
    const dbo_world *world = rank->world;
    return world->backend->graph_nodes
               ? world->backend->graph_nodes(world->machine, rank->id, graph)
               : 0;
}
