/* rank.c: making a rank, and fitting its frame to programs. */
#include "core/rank/rank.h"

#include "core/base/vec.h"
#include "core/rank/rank_memory.h"

#include <stdlib.h>
#include <string.h>

static dbo_status add_stream(dbo_rank *rank, const char *name, dbo_error *err)
{
    const dbo_seam *seam = &rank->seam;
    dbo_status status =
        seam->device->stream_create(seam->device_self, name, &rank->streams[rank->num_streams]);
    if (status != DBO_OK)
        return dbo_rank_fail(rank, status, err);
    rank->num_streams++;
    return DBO_OK;
}

dbo_status dbo_rank_init(dbo_rank *rank, uint32_t id, const dbo_seam *seam,
                         dbo_context_kind executor, uint32_t max_ubatches, dbo_fiber_pool *pool,
                         dbo_error *err)
{
    memset(rank, 0, sizeof *rank);
    DBO_TRY(dbo_seam_check(seam, err));
    if (id >= DBO_MAX_RANKS || max_ubatches < 1 || max_ubatches > DBO_MAX_UBATCHES ||
        executor > DBO_CONTEXT_THREAD)
        return dbo_fail(
            err, DBO_LIMIT, NULL,
            "rank %u for %u ubatches on contexts of kind %u; ranks are below %u, ubatches "
            "1 to %u, kinds below %u",
            id, max_ubatches, (unsigned)executor, DBO_MAX_RANKS, DBO_MAX_UBATCHES,
            DBO_CONTEXT_THREAD + 1);
    rank->id = id;
    rank->seam = *seam;
    dbo_status status = DBO_OK;
    DBO_TRY_GOTO(add_stream(rank, "compute", err), fail);
    DBO_TRY_GOTO(add_stream(rank, "comm", err), fail);
    dbo_error own = {0};
    rank->max_ubatches = max_ubatches;
    rank->ubatches = calloc(max_ubatches, sizeof *rank->ubatches);
    if (rank->ubatches)
        rank->executor = dbo_executor_create(executor, max_ubatches, pool, &own);
    else
        dbo_fail_memory(&own, "a rank's ubatches");
    if (rank->executor)
        return DBO_OK;
    status = own.status;
    if (err)
        *err = own;
fail:
    dbo_rank_fini(rank);
    return status;
}

void dbo_rank_fini(dbo_rank *rank)
{
    const dbo_seam *seam = &rank->seam;
    dbo_rank_memory_fini(rank);
    for (uint32_t i = 0; i < rank->num_events; i++)
        seam->device->event_destroy(seam->device_self, rank->events[i]);
    for (uint32_t i = 0; i < rank->num_context_events; i++) {
        seam->device->event_destroy(seam->device_self, rank->compute_done[i]);
        seam->device->event_destroy(seam->device_self, rank->comm_done[i]);
    }
    dbo_executor_destroy(rank->executor);
    free(rank->ubatches);
    free(rank->events);
    free(rank->flights);
    memset(rank, 0, sizeof *rank);
}

static dbo_status fit_events(dbo_rank *rank, uint32_t count, dbo_error *err)
{
    if (count <= rank->num_events)
        return DBO_OK;
    uint32_t cap = rank->num_events; /* there are only events that have been created */
    if (dbo_vec_grow(&rank->events, &cap, count, sizeof *rank->events) != DBO_OK)
        return dbo_fail_memory(err, "a rank's events");
    for (; rank->num_events < count; rank->num_events++) {
        dbo_status status = rank->seam.device->event_create(rank->seam.device_self,
                                                            &rank->events[rank->num_events]);
        if (status != DBO_OK)
            return dbo_rank_fail(rank, status, err);
    }
    return DBO_OK;
}

dbo_status dbo_rank_fit(dbo_rank *rank, const dbo_program *program, dbo_error *err)
{
    DBO_TRY(fit_events(rank, program->num_events, err));
    while (rank->num_streams < program->num_streams)
        DBO_TRY(add_stream(rank, program->stream_names[rank->num_streams], err));
    DBO_TRY(dbo_rank_memory_fit(rank, program, err));
    uint32_t i = rank->num_flights;
    if (dbo_vec_grow(&rank->flights, &rank->num_flights, program->num_handles,
                     sizeof *rank->flights) != DBO_OK)
        return dbo_fail_memory(err, "a rank's transfers");
    for (; i < rank->num_flights; i++)
        rank->flights[i] = (dbo_flight){.handle = DBO_NO_HANDLE};
    return DBO_OK;
}
