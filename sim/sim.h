/* sim.h: the simulator: a back end of the seam in virtual time.
 *
 * A dbo_sim is a world of simulated ranks, each with a host clock, streams and the resources of one
 * GPU, joined by all-to-alls and exchanges. It runs on the calling thread (fibers) or with one
 * thread awake at a time. Same inputs, same trace, byte for byte.
 *
 *     dbo_sim *sim = dbo_sim_create(&options, &err);
 *     for (i = 0; i < n; i++)
 *         dbo_sim_seam(sim, i, &seam), dbo_rank_init(&ranks[i], i, &seam, ...);
 *     dbo_sim_run(sim, rank_main, ranks, &err);     // rank_main(ranks, i, &err) on each
 *
 * Folding: `class_of` maps each logical rank to the simulated rank that stands for it and its like.
 * A transfer meets once all simulated ranks have posted; an exchange repeats a class's column for
 * each of its members. Folded and unfolded runs agree to the ns. The group's `rank` is the first of
 * those that a simulated rank stands for; in op ids, marks and sentences it is the simulated one.
 *
 * Order: events by (time, entity number); a rank runs ahead of the world on its own host clock
 * until it must wait. Spans are pushed as soon as they are known, which may be ahead of the world's
 * time, too (core/trace/trace.h has the order). All times are int64 ns from 0.
 */
#ifndef DBO_SIM_H
#define DBO_SIM_H

#include "core/rank/backend.h"
#include "core/seam/seam.h"
#include "core/turn/context.h"
#include "sim/hardware.h"

DBO_PUBLIC_BEGIN

typedef struct dbo_sim dbo_sim;

typedef enum dbo_sim_transport { DBO_SIM_LL, DBO_SIM_HT } dbo_sim_transport;

typedef struct dbo_sim_options {
    const dbo_hardware *hardware; /* borrowed; NULL: only fixed costs, and the host is free; with
                                   * 0 SMs: only fixed costs, and the host's times. Ops that say
                                   * how many SMs they take then share DBO_DEFAULT_SMS */
    uint32_t num_ranks;           /* logical */
    uint32_t num_classes;         /* simulated; 0: as many as num_ranks */
    const uint32_t *class_of;     /* num_ranks entries < num_classes; NULL: one to one; copied */
    uint32_t ep_size;             /* GPUs that an all-to-all spans; 0: as many as num_ranks */
    uint32_t gpus_per_domain;     /* that NVLink joins; 0: as many as the hardware's does */
    dbo_sim_transport transport;
    dbo_context_kind contexts;
    uint32_t queue_depth;       /* launches a stream holds before the host waits; 0: 1024 */
    int64_t exchange_ns;        /* from the last arrival to everybody's return */
    bool numeric;               /* memory exists and reference functions run */
    const dbo_trace_ops *trace; /* or NULL */
    void *trace_self;
    bool (*cancelled)(void *arg); /* or NULL; polled now and then */
    void *cancelled_arg;
} dbo_sim_options;

typedef dbo_status (*dbo_sim_main)(void *arg, uint32_t rank, dbo_error *err);

/* NULL with *err on failure. Options are copied. */
dbo_sim *dbo_sim_create(const dbo_sim_options *options, dbo_error *err);
void dbo_sim_destroy(dbo_sim *sim); /* NULL is fine */

/* Fills the tables of simulated rank `rank`; they are valid as long as the sim. Where there is no
 * such rank: none, which dbo_rank_init refuses. */
void dbo_sim_seam(dbo_sim *sim, uint32_t rank, dbo_seam *out);

/* Runs main(arg, i) on every simulated rank until all have returned and every stream is empty. The
 * first failure of any rank stops all and comes back, prefixed with the rank. When nothing can move
 * any more: DBO_DEADLOCK, saying who waits for what. May be called again unless it has failed:
 * hosts then begin no earlier than dbo_sim_now_ns. */
dbo_status dbo_sim_run(dbo_sim *sim, dbo_sim_main main, void *arg, dbo_error *err);

/* The rank's host does nothing for `ns` from now on: it is late. Before or during a run. No
 * such rank, or less than 0: nothing. */
void dbo_sim_delay(dbo_sim *sim, uint32_t rank, int64_t ns);

/* Virtual time of the last thing that has happened on a device, or woken a host. */
int64_t dbo_sim_now_ns(const dbo_sim *sim);
/* Stacks for executors of ranks that live in this world. */
dbo_fiber_pool *dbo_sim_pool(dbo_sim *sim);
/* Nodes of a captured graph of a rank, 0 when there is none. */
uint32_t dbo_sim_graph_nodes(const dbo_sim *sim, uint32_t rank, dbo_graph graph);

/* All this as a back end; it simulates every rank in one process. */
const dbo_backend *dbo_sim_backend(void);

DBO_PUBLIC_END

#endif
