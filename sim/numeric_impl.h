/* numeric_impl.h: memory of simulated ranks, and ops and transfers that really compute.
 *
 * A sim_numeric is the record of an op or of one rank's side of a transfer: where its inputs and
 * outputs are, and private copies of some. It belongs to whoever made it until it is queued.
 *
 *     DBO_TRY(dbo_sim_numeric_create(rank, id, io, addresses, &numeric));
 *     dbo_sim_numeric_start(numeric);          // an op: reads its inputs, at its virtual start
 *     dbo_sim_numeric_publish(numeric);        // what it has changed appears, at its end
 */
#ifndef DBO_SIM_NUMERIC_IMPL_H
#define DBO_SIM_NUMERIC_IMPL_H

#include "sim/world_impl.h"

struct sim_block { /* of memory */
    uint8_t *bytes;
    uint64_t size;
    bool freed; /* the host has given it up; ops in flight may still touch it */
};

/* The record of an op, or of a transfer with a route; refuses accesses without storage. */
dbo_status dbo_sim_numeric_create(sim_rank *rank, dbo_op_id id, const dbo_op_io *io,
                                  const uint64_t *addresses, sim_numeric **out);
/* Another one like it, of a replay. */
dbo_status dbo_sim_numeric_repeat(sim_rank *rank, const sim_numeric *node, dbo_op_id id,
                                  sim_numeric **out);
void dbo_sim_numeric_start(sim_numeric *numeric);
void dbo_sim_numeric_publish(sim_numeric *numeric); /* and destroys */
void dbo_sim_numeric_take(sim_numeric *numeric);    /* a transfer's inputs, as they are now */
/* What `rank` gets of a transfer whose sides (one a rank) have all been taken. */
dbo_status dbo_sim_numeric_deliver(dbo_sim *sim, sim_numeric *const *sides, uint32_t rank);
void dbo_sim_numeric_destroy(sim_numeric *numeric); /* NULL is fine */

extern const dbo_mem_ops dbo_sim_mem_table;
void dbo_sim_mem_fini(sim_rank *rank);

#endif
