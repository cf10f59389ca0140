/* backend.h: a machine that ranks can run on, by name: what a back end gives, built in or loaded.
 *
 * A back end opens a world of ranks, fills each rank's seam, and runs a function on every rank. The
 * simulator is one; libdbo_NAME.so is another, which exports
 *
 *     const dbo_backend *dbo_backend_get(void);          api_version is looked at before all else
 *
 *     void *self;
 *     DBO_TRY(backend->open(&options, &self, err));
 *     DBO_TRY_GOTO(backend->run(self, rank_main, ranks, err), fail);
 *     backend->close(self);
 *
 * where rank_main(ranks, i, err) calls fill(self, i, &seam) and dbo_rank_init. One thread calls
 * these; rank_main runs on contexts of the back end's, one rank's at a time or each on a thread of
 * its own, as the back end likes. The trace is pushed into by one of them at a time.
 *
 * Ranks are numbered from 0 among those that run here, ops, marks and sentences too; which rank of
 * the group one is, its seam's group says. Without `group` all run here, or one of each class; with
 * it (a process a rank) one does, and the others are met through it.
 */
#ifndef DBO_BACKEND_H
#define DBO_BACKEND_H

#include "core/seam/seam.h"
#include "core/turn/context.h"

DBO_PUBLIC_BEGIN

#define DBO_BACKEND_API 1u

typedef struct dbo_backend_options {
    uint32_t num_ranks;         /* of the group */
    const dbo_group_ops *group; /* the rank here and its peers; NULL: all of them are here */
    void *group_self;
    uint32_t num_classes;     /* folded: one rank of each class is run; 0: not */
    const uint32_t *class_of; /* (num_ranks) entries < num_classes; NULL: one to one; copied */
    uint32_t ep_size;         /* GPUs that an all-to-all spans; 0: as many as num_ranks */
    uint32_t gpus_per_domain; /* that NVLink joins; 0: as many as the machine does */
    bool low_latency;         /* all-to-alls are LL, else HT */
    const char *transport;    /* how bytes travel, by the back end's names; NULL: its choice */
    dbo_context_kind contexts;
    uint32_t queue_depth;       /* launches a stream holds before the host waits; 0: its choice */
    int64_t exchange_ns;        /* simulated: from the last arrival to everybody's return */
    bool numeric;               /* memory exists and ops compute */
    const void *hardware;       /* simulated: a dbo_hardware (sim/hardware.h), borrowed; or NULL */
    const dbo_trace_ops *trace; /* or NULL */
    void *trace_self;
    bool (*cancelled)(void *arg); /* or NULL; polled now and then, from any thread */
    void *cancelled_arg;
} dbo_backend_options;

typedef dbo_status (*dbo_rank_main)(void *arg, uint32_t rank, dbo_error *err);

typedef struct dbo_backend {
    uint32_t api_version; /* DBO_BACKEND_API */
    const char *name;
    /* Time is virtual and the same at every run: `hardware` and `exchange_ns` count, ranks can be
     * folded and made late. Without it `delay` is NULL and num_classes is 0. */
    bool simulated;
    /* DBO_UNSUPPORTED: there is no such device on this machine. */
    dbo_status (*open)(const dbo_backend_options *options, void **self, dbo_error *err);
    /* The tables of rank `rank` of those that run here; valid until close. */
    dbo_status (*fill)(void *self, uint32_t rank, dbo_seam *out, dbo_error *err);
    /* Runs main(arg, i) on every rank until all have returned and their work is done. The first
     * failure of any rank stops all and comes back, naming the rank if there are several. May be
     * called again unless it has failed. */
    dbo_status (*run)(void *self, dbo_rank_main main, void *arg, dbo_error *err);
    /* Optional: stacks for executors of ranks of this world; NULL: each brings its own. */
    dbo_fiber_pool *(*pool)(void *self);
    /* Optional: the rank's host does nothing for `ns` from now on; NULL: cannot be made late. */
    void (*delay)(void *self, uint32_t rank, int64_t ns);
    /* Optional: time of the last thing that has happened. */
    int64_t (*now_ns)(void *self);
    /* Optional: nodes of a captured graph; NULL: not known. */
    uint32_t (*graph_nodes)(void *self, uint32_t rank, dbo_graph graph);
    void (*close)(void *self); /* NULL is fine */
} dbo_backend;

/* What a plug-in exports under this name. */
typedef const dbo_backend *(*dbo_backend_get_fn)(void);
#define DBO_BACKEND_GET "dbo_backend_get"

DBO_PUBLIC_END

#endif
