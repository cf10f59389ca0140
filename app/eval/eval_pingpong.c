/* eval_pingpong.c: `dbo eval pingpong`: the engine's own schedules, interpreter, contexts and
 * executor over a machine that only writes down what it is asked, in the words of the reference's
 * logs (tests/golden/README.md).
 *
 * The machine has streams, events and transfers that are numbers; nothing takes time. What streams
 * do not see (turns, changes of stream, the end of a model) comes from the seam's `turn` slot. An
 * event is named by its number in the program, which says its ubatch and its role.
 */
#include "app/eval/eval_impl.h"
#include "core/base/vec.h"
#include "core/program/builders.h"
#include "core/rank/rank.h"
#include "core/seam/null_machine.h"

#include <stdio.h>
#include <string.h>

#define NOBODY        (-1) /* the runner, as the logs number it */
#define NO_NUMBER     (-2) /* the entry has no such key */
#define MAX_TRANSFERS (2 * DBO_MAX_UBATCHES)

typedef struct entry {
    const char *op, *stream; /* stream NULL: none */
    const char *event;       /* "cpu", "compute_done", "comm_done"; NULL: none */
    int32_t event_of, ubatch, owner, layer;
} entry;

typedef struct machine {
    dbo_null_machine null; /* first: its slots and those here get the same self */
    dbo_device_ops device;
    dbo_a2a_ops a2a;
    DBO_VEC(entry) log;
    bool out_of_memory;
    entry lost; /* what is added then */
    dbo_rank rank;
    bool low_latency;
    int32_t holder;    /* of the turn, as the logs number it */
    dbo_stream stream; /* the holder's */
    dbo_stream recorded_on[DBO_MAX_UBATCHES * (DBO_HT_EVENT_ROLES + 2)]; /* by event */
    dbo_op_id transfers[MAX_TRANSFERS];                                  /* by handle; 0: free */
} machine;

typedef struct pingpong {
    uint32_t num_ubatches, layers;
    bool split, low_latency, rocm, shared_experts;
} pingpong;

/* ---- the log ---- */

static entry *add(machine *m, const char *op, const char *stream)
{
    entry *e = DBO_VEC_ADD(&m->log);
    m->out_of_memory = m->out_of_memory || !e;
    e = e ? e : &m->lost;
    *e = (entry){
        .op = op, .stream = stream, .ubatch = m->holder, .owner = NO_NUMBER, .layer = NO_NUMBER};
    return e;
}

static const char *stream_name(dbo_stream stream)
{
    return stream == DBO_STREAM_COMPUTE ? "compute" : "comm";
}

static void add_event(machine *m, const char *op, const char *stream, const char *event, int32_t of)
{
    entry *e = add(m, op, stream);
    e->event = event;
    e->event_of = of;
}

/* The program's number of an event of the device. */
static uint32_t program_event(const machine *m, dbo_event event)
{
    uint32_t number = 0;
    while (number < m->rank.num_events && m->rank.events[number] != event)
        number++;
    return number;
}

static void add_device_event(machine *m, const char *op, dbo_stream stream, dbo_event event)
{
    uint32_t number = program_event(m, event);
    int32_t of = (int32_t)(number / DBO_HT_EVENT_ROLES);
    switch ((dbo_ht_event_role)(number % DBO_HT_EVENT_ROLES)) {
    case DBO_HT_PREVIOUS: add(m, "DEEPEP_CAPTURE", stream_name(stream)); break;
    case DBO_HT_COMPUTE_DONE: add_event(m, op, stream_name(stream), "compute_done", of); break;
    case DBO_HT_COMM_DONE: add_event(m, op, stream_name(stream), "comm_done", of); break;
    case DBO_HT_SYNC: /* only how the host waits for a stream: the wait is what is logged */
    case DBO_HT_EVENT_ROLES: break;
    }
}

/* ---- the machine ---- */

static int64_t now_ns(void *self)
{
    return ((machine *)self)->log.count;
}

static dbo_status event_create(void *self, dbo_event *out)
{
    machine *m = self;
    if (m->null.events == sizeof m->recorded_on / sizeof m->recorded_on[0])
        return DBO_LIMIT;
    *out = m->null.events++;
    return DBO_OK;
}

static dbo_status record(void *self, dbo_event event, dbo_stream stream)
{
    machine *m = self;
    m->recorded_on[event] = stream;
    add_device_event(m, "record_event", stream, event);
    return DBO_OK;
}

static dbo_status wait(void *self, dbo_stream stream, dbo_event event)
{
    machine *m = self;
    if (program_event(m, event) % DBO_HT_EVENT_ROLES != DBO_HT_PREVIOUS) /* an argument, no wait */
        add_device_event(m, "wait_event", stream, event);
    return DBO_OK;
}

static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    add(self, dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(op->id)), stream_name(stream))->layer =
        (int32_t)dbo_op_id_layer(op->id);
    return DBO_OK;
}

static dbo_status host_wait(void *self, dbo_event event)
{
    machine *m = self;
    add(m, "synchronize", stream_name(m->recorded_on[event]));
    return DBO_OK;
}

/* ---- transfers ---- */

static const char *transfer_name(const machine *m, dbo_op_id id, bool receives)
{
    bool combine = dbo_op_id_kind(id) == DBO_KIND_COMBINE;
    if (!m->low_latency)
        return combine ? "COMBINE" : "DISPATCH";
    if (receives)
        return combine ? "COMBINE_RECV" : "DISPATCH_RECV";
    return combine ? "COMBINE_SEND" : "DISPATCH_SEND";
}

static dbo_status post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    machine *m = self;
    for (*out = 0; *out < MAX_TRANSFERS && m->transfers[*out] != 0; ++*out)
        continue;
    if (*out == MAX_TRANSFERS)
        return DBO_LIMIT;
    m->transfers[*out] = args->id;
    add(m, transfer_name(m, args->id, false), stream_name(args->stream))->layer =
        (int32_t)dbo_op_id_layer(args->id);
    return DBO_OK;
}

static dbo_status finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    machine *m = self;
    dbo_op_id id = m->transfers[handle];
    m->transfers[handle] = 0;
    if (m->low_latency) {
        entry *e = add(m, transfer_name(m, id, true), stream_name(stream));
        e->owner = (int32_t)dbo_op_id_ubatch(id);
        e->layer = (int32_t)dbo_op_id_layer(id);
    }
    return DBO_OK;
}

static void span(void *self, const dbo_span *what)
{
    (void)self;
    (void)what;
}

static void turn(void *self, dbo_turn_event event, uint32_t ubatch, uint32_t arg)
{
    machine *m = self;
    m->holder = ubatch == DBO_MARK_MAIN ? NOBODY : (int32_t)ubatch;
    switch (event) {
    case DBO_TURN_SIGNAL: add_event(m, "cpu_signal", NULL, "cpu", (int32_t)arg); break;
    case DBO_TURN_RESUME: add_event(m, "cpu_resume", NULL, "cpu", m->holder); break;
    case DBO_TURN_STREAM: add(m, "set_stream", stream_name(arg)); break;
    case DBO_TURN_EXIT: add(m, "EXIT", stream_name(DBO_STREAM_COMPUTE)); break;
    case DBO_TURN_SLOT: break;
    }
}

static void make_seam(machine *m, dbo_seam *seam)
{
    static const dbo_host_ops host = {.now_ns = now_ns};
    static const dbo_trace_ops trace = {.span = span, .turn = turn};
    m->null.caps = (dbo_a2a_caps){.needs_host_sync = !m->low_latency, .has_hook = m->low_latency};
    dbo_null_machine_seam(&m->null, seam);
    m->device = *seam->device;
    m->device.event_create = event_create;
    m->device.record = record;
    m->device.wait = wait;
    m->device.launch = launch;
    m->device.host_wait = host_wait;
    m->a2a = *seam->a2a;
    m->a2a.post = post;
    m->a2a.finish = finish;
    seam->host = &host;
    seam->device = &m->device;
    seam->a2a = &m->a2a;
    seam->trace = &trace;
    seam->trace_self = m;
}

/* ---- the run ---- */

typedef struct model {
    machine *log;
    const dbo_program *program;
    uint32_t layers;
} model;

/* The model as one ubatch, or the whole batch, sees it. */
static dbo_status run_model(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const model *run = arg;
    dbo_rank *rank = &run->log->rank;
    for (uint32_t layer = 0; layer < run->layers; layer++) {
        dbo_status status = dbo_program_run(rank, ubatch, run->program, 0, layer);
        if (status != DBO_OK)
            return status == DBO_ABORTED ? status : dbo_rank_fail(rank, status, err);
    }
    dbo_stream stream = ubatch != NULL ? dbo_current_stream() : DBO_STREAM_COMPUTE;
    add(run->log, "MODEL_END", stream_name(stream));
    return DBO_OK;
}

static dbo_status build(const pingpong *p, dbo_program *out, dbo_error *err)
{
    dbo_layer_costs costs[DBO_MAX_UBATCHES];
    int64_t ns[DBO_KIND_COUNT] = {0}; /* every op exists and takes no time */
    if (!p->shared_experts)
        ns[DBO_KIND_SHARED] = -1;
    for (uint32_t i = 0; i < p->num_ubatches; i++)
        dbo_layer_costs_fixed(ns, 0, &costs[i]);
    const dbo_build_options options = {
        .num_ubatches = p->num_ubatches, .host_sync = !p->low_latency, .rocm = p->rocm};
    return dbo_builder_of_name("mlp_shared_overlap", p->low_latency)(costs, &options, out, err);
}

static dbo_status run(const pingpong *p, dbo_context_kind executor, machine *m, dbo_error *err)
{
    dbo_program program = {0};
    dbo_seam seam;
    make_seam(m, &seam);
    DBO_TRY(build(p, &program, err));
    dbo_status status = dbo_rank_init(&m->rank, 0, &seam, executor, p->num_ubatches, NULL, err);
    if (status == DBO_OK)
        status = dbo_rank_fit(&m->rank, &program, err);
    model forward = {.log = m, .program = &program, .layers = p->layers};
    if (status == DBO_OK)
        status = p->split ? dbo_ubatches_run(&m->rank, p->num_ubatches, 0, run_model, &forward, err)
                          : run_model(NULL, &forward, err);
    dbo_rank_fini(&m->rank);
    dbo_program_fini(&program);
    if (status == DBO_OK && m->out_of_memory)
        status = dbo_fail_memory(err, "a log");
    return status;
}

/* ---- cases ---- */

static dbo_status read_case(const dbo_json_value *in, pingpong *p, dbo_error *err)
{
    static const char *const backends[] = {"HT", "LL"};
    uint32_t backend;
    DBO_TRY(dbo_json_need_word(in, "backend", "back end", backends, 2, &backend, err));
    p->low_latency = backend == 1;
    DBO_TRY(dbo_json_need_bool(in, "dbo", &p->split, err));
    DBO_TRY(dbo_json_need_uint32(in, "num_ubatches", p->split ? 2 : 1, DBO_MAX_UBATCHES,
                                 &p->num_ubatches, err));
    DBO_TRY(dbo_json_need_uint32(in, "layers", 0, DBO_MAX_LAYERS, &p->layers, err));
    DBO_TRY(dbo_json_need_bool(in, "shared_experts", &p->shared_experts, err));
    DBO_TRY(DBO_JSON_OPT(bool, in, "rocm", &p->rocm, err));
    if (!p->split)
        p->num_ubatches = 1;
    return DBO_OK;
}

static void write_entry(dbo_json_writer *out, const entry *e)
{
    dbo_json_open_line(out, NULL, '{');
    dbo_json_put_int(out, "ubatch", e->ubatch);
    dbo_json_put_string(out, "op", e->op);
    if (e->stream != NULL)
        dbo_json_put_string(out, "stream", e->stream);
    if (e->event != NULL) {
        char name[32];
        snprintf(name, sizeof name, "%s_%d", e->event, e->event_of);
        dbo_json_put_string(out, "event", name);
    }
    if (e->owner != NO_NUMBER)
        dbo_json_put_int(out, "owner", e->owner);
    if (e->layer != NO_NUMBER)
        dbo_json_put_int(out, "layer", e->layer);
    dbo_json_close(out);
}

dbo_status dbo_eval_pingpong(dbo_eval_case *c, dbo_error *err)
{
    pingpong p = {0};
    DBO_TRY(read_case(c->in, &p, err));
    machine *m = DBO_ARENA_ARRAY(c->arena, machine, 1);
    DBO_TRY(dbo_need_memory(m, "a case", err));
    *m = (machine){.low_latency = p.low_latency};
    dbo_context *self = dbo_context_adopt(c->executor, err);
    if (self == NULL)
        return DBO_NO_MEMORY;
    dbo_status status = run(&p, c->executor, m, err);
    dbo_context_destroy(self);
    if (status == DBO_OK) {
        dbo_json_open(c->out, "log", '[');
        for (uint32_t i = 0; i < m->log.count; i++)
            write_entry(c->out, &m->log.items[i]);
        dbo_json_close(c->out);
    }
    DBO_VEC_FINI(&m->log);
    return status;
}
