/* rank_state.c: the sentence of a refused hot call. */
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
