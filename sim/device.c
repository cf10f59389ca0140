/* device.c: the seam's tables over the simulator, and the making of a world. */
#include "sim/capture_impl.h"
#include "sim/cost.h"
#include "sim/device_impl.h"
#include "sim/exchange_impl.h"
#include "sim/numeric_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- host ---- */

static int64_t host_now_ns(void *self)
{
    return ((const sim_rank *)self)->host_ns;
}

static void host_charge(void *self, dbo_charge kind, uint32_t count)
{
    sim_rank *rank = self;
    rank->host_ns += rank->sim->host_ns[kind] * count;
}

static bool host_cancelled(void *self)
{
    const dbo_sim *sim = ((const sim_rank *)self)->sim;
    return sim->failed ||
           (sim->options.cancelled && sim->options.cancelled(sim->options.cancelled_arg));
}

/* Without hardware the host is free: nobody need call. */
static const dbo_host_ops free_host_table = {.now_ns = host_now_ns, .cancelled = host_cancelled};

static const dbo_host_ops host_table = {
    .now_ns = host_now_ns, .charge = host_charge, .cancelled = host_cancelled};

/* ---- streams and events ---- */

static dbo_status device_stream_create(void *self, const char *name, dbo_stream *out)
{
    sim_rank *rank = self;
    (void)name; /* lanes are named by programs */
    if (rank->streams.count >= DBO_NETWORK_STREAM)
        return dbo_sim_refuse(rank, DBO_LIMIT, "more than %u streams on a rank",
                              DBO_NETWORK_STREAM);
    dbo_error error = {0};
    uint32_t entity = dbo_sim_stream_create(rank->sim, rank->id, rank->streams.count, &error);
    if (entity == SIM_NONE)
        return dbo_sim_refuse(rank, error.status, "%s", error.message);
    *out = rank->streams.count;
    if (DBO_VEC_PUSH(&rank->streams, entity) != DBO_OK)
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for a stream");
    return DBO_OK;
}

static dbo_status device_event_create(void *self, dbo_event *out)
{
    sim_rank *rank = self;
    uint32_t i = 0;
    while (i < rank->events.count && !rank->events.items[i].free)
        i++;
    if (i == rank->events.count) {
        if (DBO_VEC_RESERVE(&rank->events, (uint64_t)i + 1) != DBO_OK)
            return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for an event");
        rank->events.count++;
    }
    rank->events.items[i] = (sim_event){.stream = SIM_NONE};
    *out = i;
    return DBO_OK;
}

static void device_event_destroy(void *self, dbo_event event)
{
    sim_rank *rank = self;
    rank->events.items[event] = (sim_event){.stream = SIM_NONE, .free = true};
}

static dbo_status device_record(void *self, dbo_event event, dbo_stream stream)
{
    sim_rank *rank = self;
    if (__builtin_expect(rank->capture != NULL, 0) && dbo_sim_captures(rank, stream))
        return dbo_sim_capture_record(rank, event, stream);
    uint32_t entity = rank->streams.items[stream];
    DBO_TRY(dbo_sim_flush_wait(rank, entity));
    sim_event *e = &rank->events.items[event];
    e->stream = entity;
    e->capture = 0;
    e->count = rank->sim->streams[entity].issued;
    return DBO_OK;
}

dbo_status dbo_sim_wait(sim_rank *rank, dbo_stream stream, dbo_event event)
{
    const sim_event *e = &rank->events.items[event];
    if (__builtin_expect(e->capture != 0 || rank->capture != NULL, 0) &&
        (e->capture != 0 || dbo_sim_captures(rank, stream))) {
        if (rank->capture)
            return dbo_sim_capture_wait(rank, stream, event);
        return dbo_sim_refuse(rank, DBO_REFUSED,
                              "an event recorded in a capture is waited for after it");
    }
    if (e->stream == SIM_NONE || e->stream == rank->streams.items[stream])
        return DBO_OK;
    return dbo_sim_issue_wait(rank, rank->streams.items[stream], e->stream, e->count);
}

static dbo_status device_wait(void *self, dbo_stream stream, dbo_event event)
{
    return dbo_sim_wait(self, stream, event);
}

/* ---- launching ---- */

static inline dbo_op_time cost_op(const sim_rank *rank, const dbo_op_cost *cost)
{
    const dbo_hardware *hardware = rank->sim->options.hardware;
    dbo_op_time time = {.ns = cost->fixed_ns};
    if (cost->fixed_ns >= 0 && cost->fixed_sms == 0)
        return time;
    if (hardware && hardware->sms > 0) {
        dbo_cost_ns(hardware, cost, rank->compute_sms, &time);
        return time;
    }
    if (time.ns < 0)
        time.ns = 0;
    time.sms = cost->fixed_sms < DBO_DEFAULT_SMS ? cost->fixed_sms : DBO_DEFAULT_SMS;
    return time;
}

/* The op's private outputs, if it is to compute. */
static dbo_status make_numeric(sim_rank *rank, const dbo_op *op, sim_numeric **out)
{
    if (!rank->sim->options.numeric || !op->io->ref)
        return DBO_OK;
    return dbo_sim_numeric_create(rank, op->id, op->io, op->addresses, out);
}

static inline void write_op(const sim_rank *rank, const dbo_op *op, dbo_op_time time,
                            sim_numeric *numeric, sim_item *item)
{
    *item = (sim_item){.kind = SIM_OP,
                       .sms = (uint16_t)time.sms,
                       .not_before = rank->host_ns,
                       .ns = time.ns,
                       .id = op->id,
                       .hbm_mbps = time.hbm_mbps,
                       .numeric = numeric};
}

/* Queues the op, or puts it into the capture. */
static inline dbo_status issue_op(sim_rank *rank, dbo_stream stream, const dbo_op *op,
                                  dbo_op_time time, sim_numeric *numeric)
{
    if (__builtin_expect(rank->capture != NULL, 0) && dbo_sim_captures(rank, stream)) {
        sim_item captured;
        write_op(rank, op, time, numeric, &captured);
        return dbo_sim_capture_item(rank, stream, &captured, NULL, numeric);
    }
    uint32_t entity = rank->streams.items[stream];
    sim_item *item = dbo_sim_reserve(rank, entity);
    if (!item)
        return DBO_ABORTED;
    write_op(rank, op, time, numeric, item);
    dbo_sim_queue(rank->sim, entity, item);
    return DBO_OK;
}

static dbo_status device_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    sim_rank *rank = self;
    const dbo_sim_options *options = &rank->sim->options;
    if (__builtin_expect(op->cost->fixed_ns < 0 && !sim_has_rates(options), 0))
        return dbo_sim_refuse(rank, DBO_INVALID,
                              "an op without a fixed time, on hardware without SMs");
    dbo_op_time time = cost_op(rank, op->cost);
    if (__builtin_expect(time.ns >= SIM_MAX_NS, 0))
        return dbo_sim_refuse(rank, DBO_LIMIT, "an op of %.3g s takes longer than can be simulated",
                              (double)time.ns / 1e9);
    if (options->trace && options->trace->op_issued)
        options->trace->op_issued(options->trace_self, op->id, DBO_SPAN_RUN, stream, rank->host_ns);
    if (__builtin_expect(op->io == NULL, 1))
        return issue_op(rank, stream, op, time, NULL);
    sim_numeric *numeric = NULL;
    DBO_TRY(make_numeric(rank, op, &numeric));
    dbo_status status = issue_op(rank, stream, op, time, numeric);
    if (status != DBO_OK)
        dbo_sim_numeric_destroy(numeric);
    return status;
}

/* ---- asking ---- */

static dbo_status refuse_captured(sim_rank *rank)
{
    return dbo_sim_refuse(rank, DBO_REFUSED, "an event of a finished capture is asked for");
}

static dbo_status device_event_query(void *self, dbo_event event, bool *done)
{
    sim_rank *rank = self;
    dbo_sim *sim = rank->sim;
    if (rank->capture)
        return dbo_sim_refuse(rank, DBO_REFUSED, "an event is queried inside a graph capture");
    const sim_event *e = &rank->events.items[event];
    if (e->capture != 0)
        return refuse_captured(rank);
    *done = true;
    if (e->stream == SIM_NONE)
        return DBO_OK;
    const sim_stream *s = &sim->streams[e->stream];
    int64_t end_ns = dbo_sim_end_of(s, e->count, rank->host_ns);
    /* The world comes up to my clock; what it has not resolved by then has not happened. Without
     * memory to look at afterwards, it need not if the end must be later anyway. */
    if (end_ns == SIM_UNKNOWN && sim->world && sim->now_ns <= rank->host_ns &&
        (sim->options.numeric || dbo_sim_earliest_end(s, e->count) <= rank->host_ns)) {
        dbo_sim_schedule(sim, rank->host_ns, SIM_FIRST_RANK + rank->id);
        DBO_TRY(dbo_sim_park(rank, SIM_AT_TIME));
        end_ns = dbo_sim_end_of(&sim->streams[e->stream], e->count, rank->host_ns);
    }
    *done = end_ns <= rank->host_ns;
    return DBO_OK;
}

static dbo_status device_host_wait(void *self, dbo_event event)
{
    sim_rank *rank = self;
    if (rank->capture)
        return dbo_sim_refuse(rank, DBO_REFUSED,
                              "the host waits for an event inside a graph capture");
    const sim_event *e = &rank->events.items[event];
    if (e->capture != 0)
        return refuse_captured(rank);
    return e->stream == SIM_NONE ? DBO_OK : dbo_sim_host_await(rank, e->stream, e->count);
}

static dbo_status device_set_compute_sms(void *self, uint32_t sms)
{
    ((sim_rank *)self)->compute_sms = sms;
    return DBO_OK;
}

/* Of each GPU; where nobody says how many there are, ops with SMs share as many as an H100 has. */
static uint32_t sms_of(const dbo_sim *sim)
{
    const dbo_hardware *hardware = sim->options.hardware;
    return hardware && hardware->sms > 0 ? hardware->sms : DBO_DEFAULT_SMS;
}

/* Without hardware nothing draws on memory, and what flies takes the whole NIC. */
static dbo_fluid_demand resources_of(const dbo_sim *sim)
{
    const dbo_hardware *hardware = sim->options.hardware;
    dbo_fluid_demand has = {{sms_of(sim), UINT32_MAX, 1, 1, 1, 1}};
    if (!hardware)
        return has;
    has.of[SIM_HBM] = (uint32_t)(hardware->hbm_gbps * 1000);
    has.of[SIM_NVLINK_OUT] = has.of[SIM_NVLINK_IN] = (uint32_t)(hardware->nvlink_gbps * 1000);
    has.of[SIM_NIC_OUT] = has.of[SIM_NIC_IN] = (uint32_t)(hardware->nic_gbps * 1000);
    return has;
}

/* 0: of a machine of given durations, which keeps none for transfers. */
static uint32_t device_total_sms(void *self)
{
    const dbo_hardware *hardware = ((const sim_rank *)self)->sim->options.hardware;
    return hardware ? hardware->sms : DBO_DEFAULT_SMS;
}

static dbo_status device_status(void *self, dbo_error *err)
{
    sim_rank *rank = self;
    const dbo_error *last = rank->failure.status != DBO_OK ? &rank->failure : NULL;
    if (!last && rank->sim->failed)
        last = &rank->sim->failure;
    if (!last)
        return DBO_OK;
    dbo_status status = last->status;
    if (err)
        *err = *last;
    memset(&rank->failure, 0, sizeof rank->failure);
    return status;
}

static const dbo_device_ops device_table = {
    .stream_create = device_stream_create,
    .event_create = device_event_create,
    .event_destroy = device_event_destroy,
    .record = device_record,
    .wait = device_wait,
    .launch = device_launch,
    .event_query = device_event_query,
    .host_wait = device_host_wait,
    .set_compute_sms = device_set_compute_sms,
    .total_sms = device_total_sms,
    .status = device_status,
};

/* ---- all-to-all and group ---- */

static void a2a_caps(void *self, dbo_a2a_caps *out)
{
    const dbo_sim_options *o = &((const sim_rank *)self)->sim->options;
    bool ll = o->transport == DBO_SIM_LL;
    *out = (dbo_a2a_caps){.needs_host_sync = !ll,
                          .has_hook = ll,
                          .capturable = ll,
                          .max_in_flight = ll ? 2 : 0,
                          .max_sms = ll || !o->hardware ? 0 : o->hardware->comm_sms};
}

static uint32_t a2a_set_sms(void *self, uint32_t sms)
{
    sim_rank *rank = self;
    const dbo_hardware *hardware = rank->sim->options.hardware;
    uint32_t created = hardware ? hardware->comm_sms : sms;
    rank->comm_sms = sms < created ? sms : created; /* it may only shrink */
    return rank->comm_sms;
}

static dbo_status a2a_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    return dbo_sim_post(self, args, out);
}

static dbo_status a2a_counts(void *self, dbo_a2a_handle handle)
{
    return dbo_sim_counts(self, handle);
}

static dbo_status a2a_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    return dbo_sim_finish(self, handle, stream);
}

static const dbo_a2a_ops a2a_table = {.caps = a2a_caps,
                                      .set_sms = a2a_set_sms,
                                      .post = a2a_post,
                                      .counts = a2a_counts,
                                      .finish = a2a_finish};

/* The first rank of those that this one stands for: who looks itself up in a matrix, or what
 * follows from one, must find its own column. */
static uint32_t group_rank(void *self)
{
    return ((const sim_rank *)self)->first_member;
}

static uint32_t group_size(void *self)
{
    return ((const sim_rank *)self)->sim->options.num_ranks;
}

static dbo_status group_exchange(void *self, const char *tag, uint64_t sequence,
                                 const int32_t *column, uint32_t rows, int32_t *matrix)
{
    return dbo_sim_exchange(self, &(sim_exchange){tag, sequence, column, rows, matrix});
}

static const dbo_group_ops group_table = {
    .rank = group_rank, .size = group_size, .exchange = group_exchange};

/* ---- the world ---- */

/* What it does not say (0, no name) is not needed, or makes work take for ever, which is refused
 * when it comes; how much memory it has is not the simulator's business. */
static dbo_status check_hardware(const dbo_hardware *hardware, dbo_error *err)
{
    uint32_t count;
    const dbo_field *fields = dbo_hardware_fields(&count);
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].type != DBO_FIELD_TEXT &&
            fields[i].offset != offsetof(dbo_hardware, mem_gb) &&
            dbo_field_number(&fields[i], hardware) != 0)
            DBO_TRY(dbo_fields_check(&fields[i], 1, hardware, "hardware", err));
    return DBO_OK;
}

static dbo_status check_options(const dbo_sim_options *o, uint32_t num_classes, dbo_error *err)
{
    if (o->num_ranks < 1 || o->num_ranks > DBO_MAX_RANKS)
        return dbo_fail(err, DBO_LIMIT, NULL, "%u ranks asked, 1 to %u can be simulated",
                        o->num_ranks, DBO_MAX_RANKS);
    if (o->transport > DBO_SIM_HT || o->contexts > DBO_CONTEXT_THREAD)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "there is no transport %u, or no kind of context %u",
                        (unsigned)o->transport, (unsigned)o->contexts);
    if (o->exchange_ns < 0 || o->exchange_ns >= SIM_MAX_NS)
        return dbo_fail(err, DBO_INVALID, NULL, "an exchange takes %lld ns; 0 to %lld are possible",
                        (long long)o->exchange_ns, (long long)SIM_MAX_NS - 1);
    if (o->ep_size > DBO_MAX_RANKS)
        return dbo_fail(err, DBO_LIMIT, NULL, "an all-to-all over %u GPUs; %u are possible",
                        o->ep_size, DBO_MAX_RANKS);
    if (o->hardware)
        DBO_TRY(check_hardware(o->hardware, err));
    if (num_classes > o->num_ranks)
        return dbo_fail(err, DBO_INVALID, NULL, "more classes (%u) than ranks (%u)", num_classes,
                        o->num_ranks);
    if (num_classes < o->num_ranks && o->numeric)
        return dbo_fail(err, DBO_INVALID, "Simulate every rank, or costs alone.",
                        "%u folded ranks cannot compute: each has rows of its own", o->num_ranks);
    if (num_classes < o->num_ranks && !o->class_of)
        return dbo_fail(err, DBO_INVALID, NULL, "%u classes stand for %u ranks without class_of",
                        num_classes, o->num_ranks);
    for (uint32_t r = 0; r < o->num_ranks; r++)
        if (o->class_of && o->class_of[r] >= num_classes)
            return dbo_fail(err, DBO_INVALID, NULL, "rank %u is of class %u, there are %u", r,
                            o->class_of[r], num_classes);
    return DBO_OK;
}

static dbo_status init_ranks(dbo_sim *sim, uint32_t num_classes, dbo_error *err)
{
    const dbo_sim_options *o = &sim->options;
    sim->class_of = malloc(o->num_ranks * sizeof *sim->class_of);
    sim->ranks = calloc(num_classes, sizeof *sim->ranks);
    DBO_TRY(dbo_need_memory(sim->class_of && sim->ranks, "simulated ranks", err));
    sim->num_ranks = num_classes;
    for (uint32_t r = 0; r < o->num_ranks; r++)
        sim->class_of[r] = o->class_of ? o->class_of[r] : r;
    const dbo_fluid_demand gpu = resources_of(sim);
    for (uint32_t r = 0; r < num_classes; r++) {
        sim->ranks[r] = (sim_rank){
            .sim = sim, .id = r, .first_member = r, .idle_lane = SIM_NONE, .alone = SIM_NONE};
        dbo_fluid_init(&sim->ranks[r].gpu, gpu);
    }
    for (uint32_t r = o->num_ranks; r-- > 0;)
        sim->ranks[sim->class_of[r]].first_member = r;
    for (uint32_t k = 0; k < DBO_CHARGE_COUNT && o->hardware; k++)
        sim->host_ns[k] = (int64_t)o->hardware->host_ns[k];
    sim->pool = dbo_fiber_pool_create(0, num_classes < 64 ? num_classes * 4 : 256, err);
    return sim->pool ? DBO_OK : DBO_NO_MEMORY;
}

dbo_sim *dbo_sim_create(const dbo_sim_options *options, dbo_error *err)
{
    uint32_t num_classes = options->num_classes ? options->num_classes : options->num_ranks;
    if (check_options(options, num_classes, err) != DBO_OK)
        return NULL;
    dbo_sim *sim = calloc(1, sizeof *sim);
    if (dbo_need_memory(sim, "a simulator", err) != DBO_OK)
        return NULL;
    sim->options = *options;
    if (sim->options.ep_size == 0)
        sim->options.ep_size = options->num_ranks;
    if (sim->options.queue_depth == 0)
        sim->options.queue_depth = 1024; /* launches that CUDA takes before a launch blocks */
    if (init_ranks(sim, num_classes, err) == DBO_OK) {
        sim->options.num_classes = num_classes;
        sim->options.class_of = NULL; /* the caller's; sim->class_of is the copy */
        return sim;
    }
    dbo_sim_destroy(sim);
    return NULL;
}

void dbo_sim_destroy(dbo_sim *sim)
{
    if (!sim)
        return;
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        sim_rank *rank = &sim->ranks[r];
        dbo_sim_capture_fini(rank);
        dbo_sim_mem_fini(rank);
        DBO_VEC_FINI(&rank->streams);
        DBO_VEC_FINI(&rank->events);
    }
    for (uint32_t s = 0; s < sim->num_streams; s++)
        dbo_sim_stream_fini(&sim->streams[s]);
    dbo_sim_comms_fini(sim);
    dbo_fiber_pool_destroy(sim->pool);
    free(sim->streams);
    free(sim->work);
    free(sim->ranks);
    free(sim->class_of);
    dbo_heap_fini(&sim->due);
    free(sim);
}

void dbo_sim_delay(dbo_sim *sim, uint32_t rank, int64_t ns)
{
    if (rank < sim->num_ranks && ns > 0 && ns < SIM_MAX_NS)
        sim->ranks[rank].host_ns += ns;
}

void dbo_sim_seam(dbo_sim *sim, uint32_t rank, dbo_seam *out)
{
    *out = (dbo_seam){0};
    if (rank >= sim->num_ranks)
        return;
    sim_rank *self = &sim->ranks[rank];
    *out = (dbo_seam){
        .host = sim->options.hardware ? &host_table : &free_host_table,
        .device = &device_table,
        .mem = sim->options.numeric ? &dbo_sim_mem_table : NULL,
        .graph = &dbo_sim_graph_table,
        .a2a = &a2a_table,
        .group = &group_table,
        .trace = sim->options.trace,
        .host_self = self,
        .device_self = self,
        .mem_self = self,
        .graph_self = self,
        .a2a_self = self,
        .group_self = self,
        .trace_self = sim->options.trace_self,
    };
}
