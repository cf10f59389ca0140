/* exchange_impl.h: the host's collective.
 *
 *     return dbo_sim_exchange(rank, &(sim_exchange){"vote", sequence, column, rows, matrix});
 */
#ifndef DBO_SIM_EXCHANGE_IMPL_H
#define DBO_SIM_EXCHANGE_IMPL_H

#include "core/base/status.h"

#include <stdint.h>

typedef struct sim_rank sim_rank;

/* What a rank brings; borrowed while it waits. */
typedef struct sim_exchange {
    const char *tag;
    uint64_t sequence;
    const int32_t *column; /* (rows) */
    uint32_t rows;
    int32_t *matrix; /* (rows, logical ranks): out */
} sim_exchange;

/* All simulated ranks come; everybody goes on at the latest arrival plus the latency. DBO_REFUSED
 * when ranks do not mean the same, DBO_ABORTED once the world has failed. */
dbo_status dbo_sim_exchange(sim_rank *rank, const sim_exchange *mine);

#endif
