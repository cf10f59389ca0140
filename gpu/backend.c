/* backend.c: the GPUs of this machine as a back end: what libdbo_cuda.so gives (backend.h).
 *
 * Rank r of the group works on device r modulo those that there are. Transports: `bounce` for one
 * rank, whose peers are emulated; `nccl` for real ones. Ranks of one process have a thread each;
 * one that is alone runs on the caller's. NCCL's communicators are made in `open`: they need more
 * stack than a fiber has.
 *
 * Who has joined NCCL waits there for all others, and nothing ends that. So a rank first does all
 * that can fail by itself, and joins when it knows that every other one has done so: those of this
 * process are prepared before any of them joins, those of other processes say in the exchange of
 * NCCL's ids whether they are ready.
 *
 * The first failure is kept and stops the others: their host waits are cancelled, their meetings
 * end, and each gives up its own transfers. With a trace, what the GPU did is read from CUPTI at
 * the end of each run.
 */
#include "core/rank/backend.h"

#include "gpu/bounce_a2a.h"
#include "gpu/cuda_device.h"
#include "gpu/cupti_trace.h"
#include "gpu/locked_trace.h"
#include "gpu/nccl_a2a.h"
#include "gpu/process_group.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMMUNICATORS = 2, TRANSFER_SMS = 8, ID_WORDS = DBO_NCCL_ID_BYTES / 4 };

#define SCRATCH_BYTES (UINT64_C(64) << 20) /* of a transfer that names no buffers */

typedef struct world world;

typedef struct member {
    world *world;
    uint32_t rank; /* of those that run here */
    dbo_cuda *cuda;
    dbo_bounce *bounce;
    dbo_nccl *nccl;
    dbo_seam seam;
    dbo_status status; /* of what it was last told to do */
    pthread_t thread;
} member;

struct world {
    dbo_backend_options options;
    uint32_t num_here, num_devices;
    bool nccl; /* else bounce */
    dbo_nccl_id ids[COMMUNICATORS];
    int32_t *met; /* (MEETING_ROWS, num_ranks) */
    dbo_cupti *cupti;
    dbo_locked_trace trace;
    dbo_process_group *group; /* NULL: met through the options', or alone */
    pthread_mutex_t lock;     /* of `failure` */
    dbo_error failure;        /* the first */
    atomic_bool stopped;
    dbo_status (*task)(member *m, dbo_error *err); /* what all members are told to do */
    dbo_rank_main main;
    void *arg;
    member members[];
};

/* ---- all members at once ---- */

static bool is_cancelled(void *arg)
{
    const world *w = arg;
    return atomic_load_explicit(&w->stopped, memory_order_relaxed) ||
           (w->options.cancelled && w->options.cancelled(w->options.cancelled_arg));
}

static void note_failure(member *m, const dbo_error *error)
{
    world *w = m->world;
    pthread_mutex_lock(&w->lock);
    if (w->failure.status == DBO_OK) {
        w->failure = *error;
        if (w->num_here > 1)
            dbo_error_prefix(&w->failure, "rank %u", m->rank);
    }
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->stopped, true);
    if (w->group)
        dbo_process_group_abort(w->group);
    if (m->seam.a2a && m->seam.a2a->abort)
        m->seam.a2a->abort(m->seam.a2a_self);
}

static void *do_task(void *arg)
{
    member *m = arg;
    dbo_error error = {0};
    m->status = m->world->task(m, &error);
    if (m->status != DBO_OK && error.status == DBO_OK && m->cuda)
        dbo_cuda_last_failure(m->cuda, &error);
    if (m->status != DBO_OK && error.status == DBO_OK)
        dbo_fail(&error, m->status, NULL, "%s", dbo_status_text(m->status));
    if (m->status != DBO_OK)
        note_failure(m, &error);
    return NULL;
}

/* The first failure of any of them, which stops all. */
static dbo_status all_do(world *w, dbo_status (*task)(member *m, dbo_error *err), dbo_error *err)
{
    w->task = task;
    if (w->num_here == 1)
        do_task(&w->members[0]);
    uint32_t started = 0;
    while (w->num_here > 1 && started < w->num_here &&
           pthread_create(&w->members[started].thread, NULL, do_task, &w->members[started]) == 0)
        started++;
    if (w->num_here > 1 && started < w->num_here) {
        dbo_error error;
        dbo_fail(&error, DBO_LIMIT, NULL, "the system gives no more threads");
        note_failure(&w->members[started], &error);
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(w->members[i].thread, NULL);
    if (w->failure.status != DBO_OK && err)
        *err = w->failure;
    return w->failure.status;
}

/* ---- which transport, and how ranks meet ---- */

static dbo_status choose_transport(world *w, dbo_error *err)
{
    const dbo_backend_options *o = &w->options;
    const char *name = o->transport ? o->transport : o->num_ranks == 1 ? "bounce" : "nccl";
    w->nccl = strcmp(name, "nccl") == 0;
    if (!w->nccl && strcmp(name, "bounce") != 0)
        return dbo_fail(err, DBO_INVALID, "The back end 'cuda' has 'nccl' and 'bounce'.",
                        "no transport of GPUs is called '%.60s'", name);
    if (!w->nccl && o->num_ranks > 1)
        return dbo_fail(err, DBO_INVALID, "Use the transport 'nccl', or one rank.",
                        "the transport 'bounce' is for one rank, whose peers are emulated; here "
                        "are %u",
                        o->num_ranks);
    if (!w->nccl && !o->low_latency)
        return dbo_fail(err, DBO_UNSUPPORTED, "Use the transport 'nccl', or LL.",
                        "the transport 'bounce' is LL's: it has no receive counts");
    return DBO_OK;
}

static dbo_status count_devices(world *w, dbo_error *err)
{
    DBO_TRY(dbo_cuda_count_devices(&w->num_devices, err));
    if (w->nccl && w->num_here > w->num_devices && !dbo_nccl_shares_gpu())
        return dbo_fail(
            err, DBO_UNSUPPORTED,
            "Run a process a rank, each with an NCCL_HOSTID of its own; or use NCCL 2.30 "
            "with NCCL_MULTI_RANK_GPU_ENABLE=1.",
            "%u ranks of one process cannot share %u GPU%s: NCCL %s refuses it", w->num_here,
            w->num_devices, w->num_devices == 1 ? "" : "s", dbo_nccl_version_text());
    return DBO_OK;
}

enum { MEETING_ROWS = 1 + COMMUNICATORS * ID_WORDS }; /* a dbo_status, then the ids */

/* Tells the group how this rank's preparations ended, and takes NCCL's ids, made by the group's
 * first rank. Fails on every rank when one has failed. */
static dbo_status meet(world *w, dbo_status status, dbo_error *err)
{
    const dbo_backend_options *o = &w->options;
    bool first = !o->group || o->group->rank(o->group_self) == 0;
    for (uint32_t i = 0; i < COMMUNICATORS && first && status == DBO_OK; i++)
        status = dbo_nccl_make_id(&w->ids[i], err);
    if (!o->group)
        return status;
    int32_t column[MEETING_ROWS] = {(int32_t)status};
    memcpy(column + 1, w->ids, sizeof w->ids);
    dbo_status met = o->group->exchange(o->group_self, "nccl ids", 0, column, MEETING_ROWS, w->met);
    if (status != DBO_OK)
        return status;
    if (met != DBO_OK)
        return dbo_fail(err, met, NULL, "NCCL's ids could not be exchanged: %s",
                        dbo_status_text(met));
    for (uint32_t r = 0; r < o->num_ranks; r++)
        if (w->met[r] != DBO_OK)
            return dbo_fail(err, (dbo_status)w->met[r], NULL, "rank %u could not be opened: %s", r,
                            dbo_status_text((dbo_status)w->met[r]));
    for (uint32_t row = 1; row < MEETING_ROWS; row++)
        column[row] = w->met[(size_t)row * o->num_ranks];
    memcpy(w->ids, column + 1, sizeof w->ids);
    return DBO_OK;
}

/* ---- opening and closing a member ---- */

/* Rank of the group. */
static uint32_t group_rank(const member *m)
{
    const dbo_backend_options *o = &m->world->options;
    return o->group ? o->group->rank(o->group_self) : m->rank;
}

/* Joins the others. */
static dbo_status open_transport(member *m, dbo_error *err)
{
    const world *w = m->world;
    const dbo_backend_options *o = &w->options;
    DBO_TRY(dbo_cuda_synchronize(m->cuda)); /* so that this thread, too, is on the rank's device */
    if (w->nccl) {
        const dbo_nccl_config config = {.rank = group_rank(m),
                                        .size = o->num_ranks,
                                        .communicators = COMMUNICATORS,
                                        .ids = w->ids,
                                        .ht = !o->low_latency,
                                        .max_sms = TRANSFER_SMS,
                                        .capacity_bytes = SCRATCH_BYTES};
        m->nccl = dbo_nccl_create(m->cuda, &config, err);
        if (m->nccl)
            dbo_nccl_fill(m->nccl, &m->seam);
        return m->nccl ? DBO_OK : err->status;
    }
    const dbo_bounce_config config = {.communicators = COMMUNICATORS,
                                      .peers = o->ep_size ? o->ep_size : 1,
                                      .capacity_bytes = SCRATCH_BYTES};
    m->bounce = dbo_bounce_create(m->cuda, &config, err);
    if (m->bounce)
        dbo_bounce_fill(m->bounce, &m->seam);
    return m->bounce ? DBO_OK : err->status;
}

/* All that needs no other rank. */
static dbo_status prepare_member(member *m, dbo_error *err)
{
    world *w = m->world;
    const dbo_cuda_config config = {.device = (int)(group_rank(m) % w->num_devices),
                                    .trace = w->options.trace ? &w->trace.ops : NULL,
                                    .trace_self = &w->trace,
                                    .cupti = w->cupti,
                                    .cancelled = is_cancelled,
                                    .cancelled_arg = w,
                                    .numeric = w->options.numeric};
    m->cuda = dbo_cuda_create(&config, err);
    if (!m->cuda)
        return err->status;
    dbo_cuda_fill(m->cuda, &m->seam);
    m->seam.trace = config.trace;
    m->seam.trace_self = config.trace_self;
    m->seam.group = w->options.group ? w->options.group : dbo_group_alone();
    m->seam.group_self = w->options.group_self;
    if (w->group)
        dbo_process_group_fill(w->group, m->rank, m->cuda, &m->seam);
    return DBO_OK;
}

/* Graphs first: NCCL hangs when it ends before one that has captured it. */
static dbo_status close_member(member *m, dbo_error *err)
{
    (void)err;
    if (m->cuda)
        dbo_cuda_destroy_graphs(m->cuda);
    dbo_nccl_destroy(m->nccl);
    dbo_bounce_destroy(m->bounce);
    dbo_cuda_destroy(m->cuda);
    return DBO_OK;
}

/* ---- the table ---- */

static void backend_close(void *self)
{
    world *w = self;
    if (!w)
        return;
    all_do(w, close_member, NULL);
    dbo_cupti_destroy(w->cupti);
    if (w->options.trace)
        dbo_locked_trace_fini(&w->trace);
    dbo_process_group_destroy(w->group);
    pthread_mutex_destroy(&w->lock);
    free(w->met);
    free(w);
}

static dbo_status prepare_world(world *w, dbo_error *err)
{
    DBO_TRY(count_devices(w, err));
    if (w->options.trace) {
        w->cupti = dbo_cupti_create(&w->trace.ops, &w->trace, DBO_CUPTI_CALLBACK, err);
        if (!w->cupti)
            return err->status;
    }
    if (w->num_here > 1) {
        w->group = dbo_process_group_create(w->num_here, err);
        if (!w->group)
            return err->status;
    }
    return all_do(w, prepare_member, err);
}

static dbo_status open_world(world *w, dbo_error *err)
{
    DBO_TRY(choose_transport(w, err)); /* which ends the same on all ranks */
    dbo_status status = prepare_world(w, err);
    if (w->nccl)
        status = meet(w, status, err);
    return status == DBO_OK ? all_do(w, open_transport, err) : status;
}

static dbo_status backend_open(const dbo_backend_options *options, void **self, dbo_error *err)
{
    dbo_error own = {0};
    uint32_t num_here = options->group ? 1 : options->num_ranks;
    if (options->num_classes)
        return dbo_fail(err, DBO_UNSUPPORTED, "Fold simulated ranks only.",
                        "ranks on GPUs cannot stand for others");
    world *w = calloc(1, sizeof *w + num_here * sizeof *w->members);
    int32_t *met = malloc(sizeof *met * MEETING_ROWS * options->num_ranks);
    if (!w || !met) {
        free(w);
        free(met);
        return dbo_fail_memory(err, "the CUDA back end");
    }
    w->met = met;
    w->options = *options;
    w->num_here = num_here;
    pthread_mutex_init(&w->lock, NULL);
    if (options->trace)
        dbo_locked_trace_init(&w->trace, options->trace, options->trace_self);
    for (uint32_t i = 0; i < num_here; i++)
        w->members[i] = (member){.world = w, .rank = i};
    dbo_status status = open_world(w, &own);
    if (status == DBO_OK) {
        *self = w;
        return DBO_OK;
    }
    backend_close(w);
    return dbo_fail(err, status, own.hint, "%s", own.message);
}

static dbo_status backend_fill(void *self, uint32_t rank, dbo_seam *out, dbo_error *err)
{
    const world *w = self;
    if (rank >= w->num_here)
        return dbo_fail(err, DBO_INVALID, NULL, "rank %u is not one of the %u that run here", rank,
                        w->num_here);
    *out = w->members[rank].seam;
    return DBO_OK;
}

static dbo_status run_member(member *m, dbo_error *err)
{
    const world *w = m->world;
    dbo_context *context = dbo_context_adopt(w->options.contexts, err);
    if (!context)
        return err->status;
    dbo_status status = w->main(w->arg, m->rank, err);
    if (status == DBO_OK)
        status = dbo_cuda_synchronize(m->cuda);
    dbo_context_destroy(context);
    return status;
}

static dbo_status backend_run(void *self, dbo_rank_main main, void *arg, dbo_error *err)
{
    world *w = self;
    dbo_cupti_counts counts;
    w->main = main;
    w->arg = arg;
    DBO_TRY(all_do(w, run_member, err));
    return w->cupti ? dbo_cupti_flush(w->cupti, &counts, err) : DBO_OK;
}

static int64_t backend_now_ns(void *self)
{
    const world *w = self;
    return w->members[0].seam.host->now_ns(w->members[0].seam.host_self);
}

static uint32_t backend_graph_nodes(void *self, uint32_t rank, dbo_graph graph)
{
    const world *w = self;
    return dbo_cuda_graph_nodes(w->members[rank].cuda, graph);
}

const dbo_backend *dbo_backend_get(void);

const dbo_backend *dbo_backend_get(void)
{
    static const dbo_backend backend = {.api_version = DBO_BACKEND_API,
                                        .name = "cuda",
                                        .open = backend_open,
                                        .fill = backend_fill,
                                        .run = backend_run,
                                        .now_ns = backend_now_ns,
                                        .graph_nodes = backend_graph_nodes,
                                        .close = backend_close};
    return &backend;
}
