/* process_group.c: one meeting at a time under a mutex: the last to come ends it for all.
 *
 * A rank's column lies where the rank waits, so the last to come copies them all into every matrix
 * before it wakes the others. `meetings` counts those that are over: a rank waits for the next.
 */
#include "gpu/process_group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    dbo_process_group *group;
    uint32_t rank;
    dbo_cuda *cuda;        /* keeps its sentences */
    const int32_t *column; /* of the meeting that it waits in; NULL: a barrier */
    int32_t *matrix;
} member;

struct dbo_process_group {
    pthread_mutex_t lock;
    pthread_cond_t over;
    uint32_t num_ranks, here;
    uint64_t meetings;
    bool aborted;
    char tag[32]; /* of the meeting, as the first to come gave them */
    uint64_t sequence;
    uint32_t rows;
    bool differs; /* somebody has come for another one */
    bool failed;  /* the last that is over */
    member members[];
};

static uint32_t group_rank(void *self)
{
    return ((const member *)self)->rank;
}

static uint32_t group_size(void *self)
{
    return ((const member *)self)->group->num_ranks;
}

static void share(dbo_process_group *g)
{
    for (uint32_t to = 0; to < g->num_ranks; to++)
        for (uint32_t from = 0; from < g->num_ranks; from++)
            for (uint32_t row = 0; row < g->rows; row++)
                g->members[to].matrix[row * g->num_ranks + from] = g->members[from].column[row];
}

/* Under the lock: is this the meeting that the others came for? */
static bool agrees(dbo_process_group *g, const char *tag, uint64_t sequence, uint32_t rows)
{
    if (g->here == 0) {
        snprintf(g->tag, sizeof g->tag, "%s", tag);
        g->sequence = sequence;
        g->rows = rows;
        g->differs = false;
    }
    return strncmp(g->tag, tag, sizeof g->tag - 1) == 0 && g->sequence == sequence &&
           g->rows == rows;
}

/* Under the lock, when all have come. */
static void end_meeting(dbo_process_group *g)
{
    if (!g->differs)
        share(g);
    g->failed = g->differs;
    g->here = 0;
    g->meetings++;
    pthread_cond_broadcast(&g->over);
}

static dbo_status meet(member *m, const char *tag, uint64_t sequence, const int32_t *column,
                       uint32_t rows, int32_t *matrix)
{
    dbo_process_group *g = m->group;
    pthread_mutex_lock(&g->lock);
    uint64_t mine = g->meetings;
    g->differs |= !agrees(g, tag, sequence, rows);
    m->column = column;
    m->matrix = matrix;
    if (++g->here == g->num_ranks)
        end_meeting(g);
    while (g->meetings == mine && !g->aborted)
        pthread_cond_wait(&g->over, &g->lock);
    bool over = g->meetings != mine, failed = g->failed;
    pthread_mutex_unlock(&g->lock);
    if (!over)
        return dbo_cuda_refuse(m->cuda, DBO_ABORTED, NULL, "rank %u met nobody: a rank has failed",
                               m->rank);
    if (failed)
        return dbo_cuda_refuse(m->cuda, DBO_INVALID, NULL,
                               "rank %u came to '%s' %llu with %u rows, and another rank to "
                               "something else",
                               m->rank, tag, (unsigned long long)sequence, rows);
    return DBO_OK;
}

static dbo_status group_exchange(void *self, const char *tag, uint64_t sequence,
                                 const int32_t *column, uint32_t rows, int32_t *matrix)
{
    return meet(self, tag, sequence, column, rows, matrix);
}

static dbo_status group_barrier(void *self)
{
    return meet(self, "barrier", 0, NULL, 0, NULL);
}

dbo_process_group *dbo_process_group_create(uint32_t num_ranks, dbo_error *err)
{
    dbo_process_group *g = calloc(1, sizeof *g + num_ranks * sizeof *g->members);
    if (dbo_need_memory(g, "the group of a process's ranks", err) != DBO_OK)
        return NULL;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->over, NULL);
    g->num_ranks = num_ranks;
    for (uint32_t i = 0; i < num_ranks; i++)
        g->members[i] = (member){.group = g, .rank = i};
    return g;
}

void dbo_process_group_destroy(dbo_process_group *group)
{
    if (!group)
        return;
    pthread_cond_destroy(&group->over);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

void dbo_process_group_fill(dbo_process_group *group, uint32_t rank, dbo_cuda *cuda, dbo_seam *seam)
{
    static const dbo_group_ops ops = {.rank = group_rank,
                                      .size = group_size,
                                      .exchange = group_exchange,
                                      .barrier = group_barrier};
    seam->group = &ops;
    group->members[rank].cuda = cuda;
    seam->group_self = &group->members[rank];
}

void dbo_process_group_abort(dbo_process_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->aborted = true;
    pthread_cond_broadcast(&group->over);
    pthread_mutex_unlock(&group->lock);
}
