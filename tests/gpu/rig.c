/* rig.c: opening worlds, ops that do not commute, and what is told of a run.
 *
 * Issues are told without the rank (a process a rank numbers its own from 0) and once each: CUDA's
 * HT issues a transfer twice, for its counts and for its rows. A receive is told by nobody but the
 * simulator: on CUDA it is an event.
 */
#include "tests/gpu/rig.h"

#include "core/rank/kernel.h"
#include "lab/world/backends.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- worlds ---- */

static dbo_world_options world_options(const test_run *run, const rig_options *options,
                                       const dbo_backend *backend, dbo_trace *trace)
{
    dbo_world_options out = {
        .backend = backend,
        .machine = {.num_ranks = run->num_ranks,
                    .low_latency = options->low_latency,
                    .transport = options->transport,
                    .contexts = options->contexts,
                    .numeric = !options->deployment,
                    .cancelled = options->cancelled,
                    .cancelled_arg = options->cancelled_arg},
        .deployment = options->deployment,
        .max_ubatches = options->deployment ? 0 : 2,
        .trace = options->silent ? NULL : trace,
    };
    if (run->peer) {
        out.machine.group = test_peer_ops();
        out.machine.group_self = (void *)run->peer; /* the group's functions only read it */
    }
    return out;
}

static const char *const parts[] = {[DBO_SPAN_RUN] = "", [DBO_SPAN_SEND] = ", sent"};

static bool is_told(const dbo_trace *trace, uint64_t i)
{
    const dbo_issue *issue = dbo_trace_issue(trace, i);
    for (uint64_t k = 0; k < i; k++)
        if (dbo_trace_issue(trace, k)->id == issue->id)
            return true;
    return issue->part == DBO_SPAN_RECV;
}

static void tell_issues(const dbo_trace *trace, const dbo_world_rank *rank, test_report *report)
{
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(trace, i);
        dbo_op_id id = issue->id;
        if (dbo_op_id_rank(id) != rank->id || is_told(trace, i))
            continue;
        test_tell(report, "issued: step %u, layer %u, ubatch %u, %s %u, stream %u%s",
                  dbo_op_id_step(id), dbo_op_id_layer(id), dbo_op_id_ubatch(id),
                  dbo_op_kind_name((dbo_op_kind)dbo_op_id_kind(id)), dbo_op_id_occurrence(id),
                  issue->stream, parts[issue->part]);
    }
}

dbo_status rig_world(const test_run *run, const rig_options *options, rig_world_main main,
                     dbo_error *err)
{
    const dbo_backend *backend;
    dbo_trace trace;
    dbo_world world;
    DBO_TRY(dbo_backend_find(run->backend, &backend, err));
    dbo_trace_init(&trace);
    const dbo_world_options all = world_options(run, options, backend, &trace);
    dbo_status status = dbo_world_init(&world, &all, err);
    if (status == DBO_OK) {
        status = main(&world, run, options->arg, err);
        for (uint32_t i = 0; i < world.num_ranks && status == DBO_OK && !options->silent; i++)
            tell_issues(&trace, &world.ranks[i], &run->reports[world.ranks[i].logical]);
        dbo_world_fini(&world);
    }
    dbo_trace_fini(&trace);
    return status;
}

/* ---- rigs ---- */

typedef struct rig_call {
    const test_run *run;
    void *arg;
    rig_main main;
} rig_call;

static dbo_status make_vectors(rig *r, dbo_error *err)
{
#ifdef DBO_TESTS_CUDA
    if (!r->is_simulated)
        DBO_TRY(rig_cuda_load(err));
#endif
    for (uint32_t v = 0; v < RIG_VECTORS; v++)
        DBO_TRY(rig_alloc(r, v, sizeof r->mirror[v], err));
    return rig_reset(r, 0, err);
}

static dbo_status enter(void *arg, dbo_world_rank *rank, dbo_error *err)
{
    const rig_call *call = arg;
    rig *r = calloc(1, sizeof *r);
    uint32_t(*mirror)[RIG_NUMBERS] = calloc(RIG_VECTORS, sizeof *mirror);
    dbo_status status = r && mirror ? DBO_OK : dbo_fail_memory(err, "a rank's numbers");
    if (status == DBO_OK) {
        r->run = call->run; /* too large for a fiber's stack as a whole */
        r->rank = rank;
        r->seam = &rank->rank.seam;
        r->report = &call->run->reports[rank->logical];
        r->arg = call->arg;
        r->is_simulated = rank->world->backend->simulated;
        r->compute = rank->rank.streams[DBO_STREAM_COMPUTE];
        r->comm = rank->rank.streams[DBO_STREAM_COMM];
        r->mirror = mirror;
        status = make_vectors(r, err);
        if (status == DBO_OK)
            status = call->main(r, err);
        if (status == DBO_OK)
            status = rig_sync(r, err);
        for (uint32_t b = 0; b < RIG_BUFFERS && status == DBO_OK; b++)
            r->seam->mem->free(r->seam->mem_self, r->addresses[b]);
    }
    free(mirror);
    free(r);
    return status;
}

static dbo_status run_rigs(dbo_world *world, const test_run *run, void *arg, dbo_error *err)
{
    (void)run;
    return dbo_world_run(world, enter, arg, err);
}

dbo_status rig_run(const test_run *run, const rig_options *options, rig_main main, dbo_error *err)
{
    rig_call call = {.run = run, .arg = options->arg, .main = main};
    rig_options own = *options;
    own.arg = &call;
    return rig_world(run, &own, run_rigs, err);
}

/* ---- ops ---- */

static void reference(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const rig_mixed *mixed = op->io->arg;
    const uint32_t *source = op->io->num_reads > 1 ? reads[1] : NULL;
    uint32_t *target = writes[0];
    for (uint32_t i = 0; i < RIG_NUMBERS; i++)
        target[i] = mixed->mul * target[i] + mixed->add + (source ? source[i] : 0);
}

uint32_t rig_prepare(rig *r, uint32_t target, uint32_t source, uint32_t mul, uint32_t add,
                     int64_t hold_ns)
{
    if (r->num_mixes == RIG_MIXES)
        abort();
    rig_mixed *m = &r->mixes[r->num_mixes];
    const uint64_t bytes = RIG_NUMBERS * sizeof(uint32_t);
    *m = (rig_mixed){
        .cost = {.fixed_ns = hold_ns},
        .access = {{.buffer = target, .bytes = bytes}, {.buffer = source, .bytes = bytes}},
        .mul = mul,
        .add = add};
    m->io = (dbo_op_io){.num_reads = source == RIG_NO_SOURCE ? 1 : 2,
                        .num_writes = 1,
                        .reads = m->access,
                        .writes = m->access,
                        .ref = reference,
                        .arg = m,
                        .enqueue = ON_CUDA(rig_cuda_mix)};
    return r->num_mixes++;
}

dbo_status rig_issue_slot(rig *r, dbo_stream stream, uint32_t slot)
{
    rig_mixed *m = &r->mixes[slot];
    if (r->is_simulated && m->fails)
        m->access[0].buffer = RIG_BUFFERS - 1; /* never allocated */
    if (r->is_simulated && m->in_flight)
        m->access[0].offset_bytes = 4;
    const dbo_op op = {
        .id = dbo_op_id_make(0, r->rank->id, 0, dbo_current_ubatch_id(), DBO_KIND_CUSTOM, slot),
        .cost = &m->cost,
        .io = &m->io,
        .addresses = r->addresses};
    return RIG_DEVICE(launch, stream, &op);
}

dbo_status rig_issue(rig *r, dbo_stream stream, uint32_t target, uint32_t source, uint32_t mul,
                     uint32_t add, int64_t hold_ns)
{
    return rig_issue_slot(r, stream, rig_prepare(r, target, source, mul, add, hold_ns));
}

dbo_status rig_mix(rig *r, dbo_stream stream, uint32_t target, uint32_t source, uint32_t mul,
                   uint32_t add, int64_t hold_ns, dbo_error *err)
{
    RIG_TRY(rig_issue(r, stream, target, source, mul, add, hold_ns));
    return DBO_OK;
}

void rig_expect(rig *r, uint32_t target, uint32_t source, uint32_t mul, uint32_t add)
{
    for (uint32_t i = 0; i < RIG_NUMBERS; i++)
        r->mirror[target][i] =
            mul * r->mirror[target][i] + add + (source == RIG_NO_SOURCE ? 0 : r->mirror[source][i]);
}

/* ---- memory ---- */

dbo_status rig_alloc(rig *r, uint32_t buffer, uint64_t bytes, dbo_error *err)
{
    RIG_TRY(r->seam->mem->alloc(r->seam->mem_self, bytes, DBO_SPACE_DEVICE, &r->addresses[buffer]));
    void *zeros = calloc(1, bytes);
    dbo_status status =
        zeros ? rig_put(r, r->addresses[buffer], zeros, bytes, err) : dbo_fail_memory(err, "zeros");
    free(zeros);
    return status;
}

/* Where the host sees no memory there is a GPU. */
static dbo_status copy_on_gpu(uint64_t to, uint64_t from, size_t bytes, dbo_error *err)
{
#ifdef DBO_TESTS_CUDA
    return rig_cuda_copy(to, from, bytes, err);
#else
    (void)to, (void)from, (void)bytes;
    return rig_wrong(err, "the rank's memory cannot be seen");
#endif
}

dbo_status rig_put(const rig *r, uint64_t address, const void *from, size_t bytes, dbo_error *err)
{
    void *memory = r->seam->mem->ptr(r->seam->mem_self, address);
    if (!memory)
        return copy_on_gpu(address, (uint64_t)(uintptr_t)from, bytes, err);
    memcpy(memory, from, bytes);
    return DBO_OK;
}

dbo_status rig_get(const rig *r, uint64_t address, void *to, size_t bytes, dbo_error *err)
{
    const void *memory = r->seam->mem->ptr(r->seam->mem_self, address);
    if (!memory)
        return copy_on_gpu((uint64_t)(uintptr_t)to, address, bytes, err);
    memcpy(to, memory, bytes);
    return DBO_OK;
}

dbo_status rig_sync(rig *r, dbo_error *err)
{
    return dbo_rank_synchronize(&r->rank->rank, err);
}

dbo_status rig_reset(rig *r, uint32_t seed, dbo_error *err)
{
    DBO_TRY(rig_sync(r, err));
    for (uint32_t v = 0; v < RIG_VECTORS; v++) {
        for (uint32_t i = 0; i < RIG_NUMBERS; i++)
            r->mirror[v][i] = 1000003 * (seed + 1) + 977 * v + 7 * i + r->rank->logical;
        DBO_TRY(rig_put(r, r->addresses[v], r->mirror[v], sizeof r->mirror[v], err));
    }
    return DBO_OK;
}

dbo_status rig_check(rig *r, uint32_t count, dbo_error *err)
{
    DBO_TRY(rig_sync(r, err));
    uint32_t *found = malloc(sizeof *r->mirror);
    dbo_status status = found ? DBO_OK : dbo_fail_memory(err, "numbers");
    for (uint32_t v = 0; v < count && status == DBO_OK; v++) {
        status = rig_get(r, r->addresses[v], found, sizeof *r->mirror, err);
        for (uint32_t i = 0; i < RIG_NUMBERS && status == DBO_OK; i++)
            if (found[i] != r->mirror[v][i])
                status = rig_wrong(err, "vector %u, number %u: %u instead of %u", v, i, found[i],
                                   r->mirror[v][i]);
        if (status == DBO_OK)
            test_tell(r->report, "vector %u: %016" PRIx64, v, rig_digest(found, sizeof *r->mirror));
    }
    free(found);
    return status;
}

uint64_t rig_digest(const void *bytes, size_t count)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}

dbo_status rig_wrong(dbo_error *err, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return dbo_fail(err, DBO_INTERNAL, NULL, "%s", message);
}
