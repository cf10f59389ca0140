/* exchange.c: the last rank to come completes it, for all. */
#include "sim/exchange_impl.h"
#include "sim/world_impl.h"

#include <string.h>

static bool agrees(const sim_exchange *a, const sim_exchange *b)
{
    return a->sequence == b->sequence && a->rows == b->rows && strcmp(a->tag, b->tag) == 0;
}

static dbo_status check_agreement(dbo_sim *sim, const sim_rank *rank)
{
    const sim_exchange *mine = &rank->exchange;
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        const sim_exchange *other = &sim->ranks[r].exchange;
        if (&sim->ranks[r] == rank || sim->ranks[r].ended ||
            sim->ranks[r].reason != SIM_AT_EXCHANGE || agrees(mine, other))
            continue;
        return dbo_sim_fail(sim, DBO_REFUSED,
                            "rank %u comes to exchange '%s' %llu with %u rows while rank %u waits "
                            "in '%s' %llu with %u",
                            rank->id, mine->tag, (unsigned long long)mine->sequence, mine->rows, r,
                            other->tag, (unsigned long long)other->sequence, other->rows);
    }
    return DBO_OK;
}

static void fill_matrix(dbo_sim *sim, const sim_exchange *out)
{
    uint32_t size = sim->options.num_ranks;
    for (uint32_t row = 0; row < out->rows; row++)
        for (uint32_t r = 0; r < size; r++)
            out->matrix[(size_t)row * size + r] = sim->ranks[sim->class_of[r]].exchange.column[row];
}

dbo_status dbo_sim_exchange(sim_rank *rank, const sim_exchange *mine)
{
    dbo_sim *sim = rank->sim;
    rank->exchange = *mine;
    if (sim->num_arrived > 0)
        DBO_TRY(check_agreement(sim, rank));
    if (++sim->num_arrived < sim->num_ranks)
        return dbo_sim_park(rank, SIM_AT_EXCHANGE);
    sim->num_arrived = 0;
    int64_t latest = 0;
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        latest = sim->ranks[r].host_ns > latest ? sim->ranks[r].host_ns : latest;
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        fill_matrix(sim, &sim->ranks[r].exchange);
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        if (&sim->ranks[r] != rank)
            dbo_sim_wake(sim, &sim->ranks[r], latest + sim->options.exchange_ns);
    dbo_sim_skip(rank, latest + sim->options.exchange_ns);
    return DBO_OK;
}
