/* exchange.c: the host's collective. All simulated ranks come, each with its column; the last one
 * completes it and everybody goes on at the latest arrival plus the latency. */
#include "sim/sim_impl.h"

static bool agrees(const sim_rank *a, const sim_rank *b)
{
    return a->sequence == b->sequence && a->rows == b->rows && strcmp(a->tag, b->tag) == 0;
}

static dbo_status check_agreement(dbo_sim *sim, const sim_rank *rank)
{
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        const sim_rank *other = &sim->ranks[r];
        if (other == rank || other->ended || other->reason != SIM_AT_EXCHANGE ||
            agrees(rank, other))
            continue;
        return dbo_sim_fail(
            sim, DBO_REFUSED,
            "rank %u comes to exchange '%s' %llu with %u rows while rank %u waits in "
            "'%s' %llu with %u",
            rank->id, rank->tag, (unsigned long long)rank->sequence, rank->rows, r, other->tag,
            (unsigned long long)other->sequence, other->rows);
    }
    return DBO_OK;
}

static void fill_matrix(dbo_sim *sim, const sim_rank *rank)
{
    uint32_t size = sim->options.num_ranks;
    for (uint32_t row = 0; row < rank->rows; row++)
        for (uint32_t r = 0; r < size; r++)
            rank->matrix[(size_t)row * size + r] = sim->ranks[sim->class_of[r]].column[row];
}

dbo_status dbo_sim_exchange(sim_rank *rank, const char *tag, uint64_t sequence,
                            const int32_t *column, uint32_t rows, int32_t *matrix)
{
    dbo_sim *sim = rank->sim;
    rank->tag = tag;
    rank->sequence = sequence;
    rank->column = column;
    rank->rows = rows;
    rank->matrix = matrix;
    if (sim->num_arrived > 0)
        DBO_TRY(check_agreement(sim, rank));
    if (++sim->num_arrived < sim->num_ranks)
        return dbo_sim_park(rank, SIM_AT_EXCHANGE);
    sim->num_arrived = 0;
    int64_t latest = 0;
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        latest = sim->ranks[r].host_ns > latest ? sim->ranks[r].host_ns : latest;
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        fill_matrix(sim, &sim->ranks[r]);
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        if (&sim->ranks[r] != rank)
            dbo_sim_wake(sim, &sim->ranks[r], latest + sim->options.exchange_ns);
    dbo_sim_skip(rank, latest + sim->options.exchange_ns);
    return DBO_OK;
}
