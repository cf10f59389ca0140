/* process_group.h: the ranks of one process, a thread each, as the group of the seam.
 *
 * An exchange and a barrier are over when all have come, or fail for all once one has left with a
 * failure. Every rank gives the same number of rows, tag and sequence, or the meeting fails.
 *
 *     dbo_process_group *group = dbo_process_group_create(4, &err);
 *     dbo_process_group_fill(group, i, cudas[i], &seams[i]);  // i < 4
 *     ... on thread i: seam.group->exchange(seam.group_self, "vote", n, column, rows, matrix);
 *     dbo_process_group_destroy(group);                       // NULL is fine
 */
#ifndef DBO_GPU_PROCESS_GROUP_H
#define DBO_GPU_PROCESS_GROUP_H

#include "gpu/cuda_device.h"

typedef struct dbo_process_group dbo_process_group;

dbo_process_group *dbo_process_group_create(uint32_t num_ranks, dbo_error *err);
void dbo_process_group_destroy(dbo_process_group *group);
void dbo_process_group_fill(dbo_process_group *group, uint32_t rank, dbo_cuda *cuda,
                            dbo_seam *seam);
/* Whoever waits or comes later gets DBO_ABORTED. */
void dbo_process_group_abort(dbo_process_group *group);

#endif
