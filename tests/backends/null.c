/* null.c: a back end for tests of loading one, and of what a run on one is: libdbo_null.so.
 *
 * Every op and every part of a transfer takes 1 us and is over when it has been issued; nothing is
 * captured. Ranks are threads of which one runs at a time: they meet in exchanges.
 */
#include "core/rank/backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OP_NS     1000
#define MAX_RANKS 16u
#define MAX_ROWS  64u

typedef struct null_world null_world;

typedef struct null_rank {
    null_world *world;
    uint32_t id, num_streams, num_events;
    int64_t now_ns;
    dbo_op_id posted; /* of the last transfer */
    pthread_t thread;
    dbo_status status;
    dbo_error error;
} null_rank;

struct null_world {
    dbo_backend_options options;
    pthread_mutex_t turn; /* held by the rank that runs */
    pthread_cond_t met;
    uint32_t arrived, round;
    bool failed;
    int32_t matrix[MAX_ROWS * MAX_RANKS];
    null_rank ranks[MAX_RANKS];
    dbo_rank_main main;
    void *arg;
};

/* ---- the tables ---- */

static int64_t now_ns(void *self)
{
    return ((null_rank *)self)->now_ns;
}

static bool cancelled(void *self)
{
    const dbo_backend_options *o = &((null_rank *)self)->world->options;
    return o->cancelled && o->cancelled(o->cancelled_arg);
}

static const dbo_host_ops host = {.now_ns = now_ns, .cancelled = cancelled};

static dbo_status stream_create(void *self, const char *name, dbo_stream *out)
{
    (void)name;
    *out = ((null_rank *)self)->num_streams++;
    return DBO_OK;
}

static dbo_status event_create(void *self, dbo_event *out)
{
    *out = ((null_rank *)self)->num_events++;
    return DBO_OK;
}

static void event_destroy(void *self, dbo_event event)
{
    (void)self, (void)event;
}

static dbo_status record(void *self, dbo_event event, dbo_stream stream)
{
    (void)self, (void)event, (void)stream;
    return DBO_OK;
}

static dbo_status wait(void *self, dbo_stream stream, dbo_event event)
{
    (void)self, (void)event, (void)stream;
    return DBO_OK;
}

static void happen(null_rank *rank, dbo_op_id id, dbo_span_part part, dbo_stream stream)
{
    const dbo_backend_options *o = &rank->world->options;
    dbo_span span = {.id = id, .start_ns = rank->now_ns, .end_ns = rank->now_ns + OP_NS};
    span.part = (unsigned)part & 15u;
    span.stream = stream & 255u;
    if (o->trace && o->trace->op_issued)
        o->trace->op_issued(o->trace_self, id, part, stream, rank->now_ns);
    if (o->trace)
        o->trace->span(o->trace_self, &span);
    rank->now_ns += OP_NS;
}

static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    happen(self, op->id, DBO_SPAN_RUN, stream);
    return DBO_OK;
}

static dbo_status event_query(void *self, dbo_event event, bool *done)
{
    (void)self, (void)event;
    *done = true;
    return DBO_OK;
}

static dbo_status host_wait(void *self, dbo_event event)
{
    (void)event;
    return cancelled(self) ? DBO_CANCELLED : DBO_OK;
}

static dbo_status set_compute_sms(void *self, uint32_t sms)
{
    (void)self, (void)sms;
    return DBO_OK;
}

static uint32_t total_sms(void *self)
{
    (void)self;
    return 8;
}

static dbo_status status(void *self, dbo_error *err)
{
    (void)self, (void)err;
    return DBO_OK; /* nothing fails with a sentence */
}

static const dbo_device_ops device = {
    .stream_create = stream_create,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .record = record,
    .wait = wait,
    .launch = launch,
    .event_query = event_query,
    .host_wait = host_wait,
    .set_compute_sms = set_compute_sms,
    .total_sms = total_sms,
    .status = status,
};

static void caps(void *self, dbo_a2a_caps *out)
{
    const null_rank *rank = self;
    *out = (dbo_a2a_caps){.has_hook = rank->world->options.low_latency,
                          .needs_host_sync = !rank->world->options.low_latency};
}

static uint32_t set_sms(void *self, uint32_t sms)
{
    (void)self;
    return sms;
}

static dbo_status post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    null_rank *rank = self;
    *out = dbo_op_id_ubatch(args->id);
    rank->posted = args->id;
    happen(rank, args->id, rank->world->options.low_latency ? DBO_SPAN_SEND : DBO_SPAN_RUN,
           args->stream);
    return DBO_OK;
}

static dbo_status counts(void *self, dbo_a2a_handle handle)
{
    (void)self, (void)handle;
    return DBO_OK;
}

static dbo_status finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    null_rank *rank = self;
    (void)handle;
    if (rank->world->options.low_latency)
        happen(rank, rank->posted, DBO_SPAN_RECV, stream);
    return DBO_OK;
}

static const dbo_a2a_ops a2a = {
    .caps = caps, .set_sms = set_sms, .post = post, .counts = counts, .finish = finish};

static uint32_t group_rank(void *self)
{
    return ((const null_rank *)self)->id;
}

static uint32_t group_size(void *self)
{
    return ((const null_rank *)self)->world->options.num_ranks;
}

static dbo_status exchange(void *self, const char *tag, uint64_t sequence, const int32_t *column,
                           uint32_t rows, int32_t *matrix)
{
    const null_rank *rank = self;
    null_world *w = rank->world;
    uint32_t n = w->options.num_ranks, round = w->round;
    (void)tag, (void)sequence;
    for (uint32_t row = 0; row < rows && row < MAX_ROWS; row++)
        w->matrix[row * n + rank->id] = column[row];
    if (++w->arrived == n) {
        w->arrived = 0;
        w->round++;
        pthread_cond_broadcast(&w->met);
    }
    while (w->round == round && !w->failed)
        pthread_cond_wait(&w->met, &w->turn);
    memcpy(matrix, w->matrix, (size_t)n * rows * sizeof *matrix);
    return w->round == round ? DBO_ABORTED : DBO_OK;
}

static const dbo_group_ops group = {.rank = group_rank, .size = group_size, .exchange = exchange};

/* ---- the back end ---- */

static void null_close(void *self)
{
    null_world *w = self;
    if (!w)
        return;
    pthread_cond_destroy(&w->met);
    pthread_mutex_destroy(&w->turn);
    free(w);
}

static dbo_status null_open(const dbo_backend_options *options, void **self, dbo_error *err)
{
    if (options->num_ranks < 1 || options->num_ranks > MAX_RANKS)
        return dbo_fail(err, DBO_LIMIT, NULL, "%u ranks asked, the null device runs 1 to %u",
                        options->num_ranks, MAX_RANKS);
    if (options->transport && strcmp(options->transport, "copy") != 0)
        return dbo_fail(err, DBO_UNSUPPORTED, NULL, "the null device has no transport '%s'",
                        options->transport);
    null_world *w = calloc(1, sizeof *w);
    if (!w)
        return dbo_fail_memory(err, "a null device");
    w->options = *options;
    pthread_mutex_init(&w->turn, NULL);
    pthread_cond_init(&w->met, NULL);
    for (uint32_t i = 0; i < options->num_ranks; i++)
        w->ranks[i] = (null_rank){.world = w, .id = i};
    *self = w;
    return DBO_OK;
}

static dbo_status fill(void *self, uint32_t rank, dbo_seam *out, dbo_error *err)
{
    null_world *w = self;
    void *r = &w->ranks[rank];
    (void)err;
    *out = (dbo_seam){.host = &host,
                      .device = &device,
                      .a2a = &a2a,
                      .group = &group,
                      .trace = w->options.trace,
                      .host_self = r,
                      .device_self = r,
                      .a2a_self = r,
                      .group_self = r,
                      .trace_self = w->options.trace_self};
    return DBO_OK;
}

static void *rank_thread(void *arg)
{
    null_rank *rank = arg;
    null_world *w = rank->world;
    pthread_mutex_lock(&w->turn);
    dbo_context *context = dbo_context_adopt(w->options.contexts, &rank->error);
    rank->status = context ? w->main(w->arg, rank->id, &rank->error) : DBO_NO_MEMORY;
    dbo_context_destroy(context);
    if (rank->status != DBO_OK) {
        w->failed = true;
        pthread_cond_broadcast(&w->met);
    }
    pthread_mutex_unlock(&w->turn);
    return NULL;
}

static dbo_status run(void *self, dbo_rank_main main, void *arg, dbo_error *err)
{
    null_world *w = self;
    const null_rank *failed = NULL;
    w->main = main;
    w->arg = arg;
    for (uint32_t i = 0; i < w->options.num_ranks; i++)
        if (pthread_create(&w->ranks[i].thread, NULL, rank_thread, &w->ranks[i]) != 0)
            abort(); /* a test's machine has threads */
    for (uint32_t i = 0; i < w->options.num_ranks; i++) {
        pthread_join(w->ranks[i].thread, NULL);
        if (w->ranks[i].status != DBO_OK && (!failed || failed->status == DBO_ABORTED))
            failed = &w->ranks[i];
    }
    if (!failed)
        return DBO_OK;
    return dbo_fail(err, failed->status, failed->error.hint, "rank %u: %s", failed->id,
                    failed->error.message);
}

const dbo_backend *dbo_backend_get(void);

const dbo_backend *dbo_backend_get(void)
{
    static const dbo_backend backend = {.api_version = DBO_BACKEND_API,
                                        .name = "null",
                                        .open = null_open,
                                        .fill = fill,
                                        .run = run,
                                        .close = null_close};
    return &backend;
}
