/* rank_state.c: the sentence of a refused hot call; marks of a trace. */
#include "core/rank/rank_state.h"

#include <string.h>

dbo_status dbo_rank_fail(dbo_rank *rank, dbo_status status, dbo_error *err)
{
    if (rank->failure.status == DBO_OK)
        return dbo_seam_fail(&rank->seam, status, err);
    if (err)
        *err = rank->failure;
    memset(&rank->failure, 0, sizeof rank->failure);
    return status;
}

int64_t dbo_rank_mark(const dbo_rank *rank, dbo_mark_kind kind, uint32_t ubatch, uint32_t step)
{
    const dbo_seam *seam = &rank->seam;
    const dbo_mark mark = {.host_ns = seam->host->now_ns(seam->host_self),
                           .rank = (uint16_t)rank->id,
                           .ubatch = (uint8_t)ubatch,
                           .kind = (uint8_t)kind,
                           .step = step};
    if (seam->trace && seam->trace->mark)
        seam->trace->mark(seam->trace_self, &mark);
    return mark.host_ns;
}
