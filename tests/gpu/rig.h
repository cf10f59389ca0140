/* rig.h: a rank of a dbo_world on some back end, and what cases do with it.
 *
 * A rig has a few vectors of numbers in the memory of its rank, and one kind of op on them,
 *
 *     target[i] = mul * target[i] + add + source[i]          (mod 2^32; source: optional)
 *
 * with a reference for the simulator and a kernel for CUDA. Such ops do not commute, so the numbers
 * tell the order in which they ran; one may be held back for a time before it reads and writes. The
 * case says in which order they should have run (rig_expect), and rig_check compares.
 *
 *     static dbo_status body(rig *r, dbo_error *err)
 *     {
 *         DBO_TRY(rig_mix(r, r->compute, 0, RIG_NO_SOURCE, 3, 1, 0, err));
 *         rig_expect(r, 0, RIG_NO_SOURCE, 3, 1);
 *         return rig_check(r, 0, err);
 *     }
 *     ... dbo_status seam_mine(const test_run *run, dbo_error *err)
 *     {   return rig_run(run, &(rig_options){.low_latency = true}, body, err);   }
 */
#ifndef DBO_TESTS_GPU_RIG_H
#define DBO_TESTS_GPU_RIG_H

#include "lab/world/world.h"
#include "tests/gpu/cases.h"

enum { RIG_VECTORS = 6, RIG_NUMBERS = 4099, RIG_MIXES = 512, RIG_BUFFERS = 20 };
#define RIG_NO_SOURCE UINT32_MAX
#define RIG_MS(count) ((int64_t)(count)*1000000)

typedef struct rig_mixed { /* an op: lives as long as graphs that have captured it */
    dbo_op_io io;
    dbo_op_cost cost;
    dbo_access access[2]; /* source, target */
    uint32_t mul, add;
    bool fails;     /* at its issue: CUDA's by its launcher, the simulator's by a missing buffer */
    bool in_flight; /* then: on the device; the simulator's by reaching past a buffer */
} rig_mixed;

typedef struct rig {
    const test_run *run;
    dbo_world_rank *rank;
    const dbo_seam *seam;
    test_report *report;
    void *arg; /* the options' */
    bool is_simulated;
    dbo_stream compute, comm;
    uint64_t addresses[RIG_BUFFERS]; /* vectors first; the others are the case's */
    uint32_t (*mirror)[RIG_NUMBERS]; /* (RIG_VECTORS) what the vectors should hold */
    rig_mixed mixes[RIG_MIXES];
    uint32_t num_mixes;
} rig;

typedef dbo_status (*rig_main)(rig *r, dbo_error *err);

typedef struct rig_options {
    bool low_latency, silent; /* silent: no trace, nothing told of issues */
    const char *transport;    /* CUDA's, of one rank; NULL: its choice */
    dbo_context_kind contexts;
    const dbo_deployment *deployment;
    bool (*cancelled)(void *arg);
    void *cancelled_arg;
    void *arg; /* the case's */
} rig_options;

/* Opens the run's world, runs main on every rank that is here, tells the order of issues, closes.
 */
dbo_status rig_run(const test_run *run, const rig_options *options, rig_main main, dbo_error *err);
/* The same with the world in the case's hands, which runs what it likes. */
typedef dbo_status (*rig_world_main)(dbo_world *world, const test_run *run, void *arg,
                                     dbo_error *err);
dbo_status rig_world(const test_run *run, const rig_options *options, rig_world_main main,
                     dbo_error *err);

/* Issues an op to a stream of the device. `hold_ns`: so long it does nothing first. It belongs to
 * the running ubatch. The plain form returns the seam's bare status. */
dbo_status rig_issue(rig *r, dbo_stream stream, uint32_t target, uint32_t source, uint32_t mul,
                     uint32_t add, int64_t hold_ns);
dbo_status rig_mix(rig *r, dbo_stream stream, uint32_t target, uint32_t source, uint32_t mul,
                   uint32_t add, int64_t hold_ns, dbo_error *err);
/* Prepares the next op: number of a slot of `mixes` that rig_issue_slot issues. */
uint32_t rig_prepare(rig *r, uint32_t target, uint32_t source, uint32_t mul, uint32_t add,
                     int64_t hold_ns);
dbo_status rig_issue_slot(rig *r, dbo_stream stream, uint32_t slot);

/* The next op in the order that is expected. */
void rig_expect(rig *r, uint32_t target, uint32_t source, uint32_t mul, uint32_t add);
/* Waits for the rank's work and compares vectors 0 .. count - 1; tells their digest. */
dbo_status rig_check(rig *r, uint32_t count, dbo_error *err);
/* New numbers, other ones for each `seed`, into all vectors. */
dbo_status rig_reset(rig *r, uint32_t seed, dbo_error *err);

/* ---- the seam, with sentences ---- */

#define RIG_TRY(call)                                        \
    do {                                                     \
        dbo_status rig_status_ = (call);                     \
        if (rig_status_ != DBO_OK)                           \
            return dbo_seam_fail(r->seam, rig_status_, err); \
    } while (0)
#define RIG_DEVICE(slot, ...) r->seam->device->slot(r->seam->device_self, __VA_ARGS__)
#define RIG_GRAPH(slot, ...)  r->seam->graph->slot(r->seam->graph_self, __VA_ARGS__)
#define RIG_A2A(slot, ...)    r->seam->a2a->slot(r->seam->a2a_self, __VA_ARGS__)

/* Memory for buffer `buffer` of r->addresses, zeroed. */
dbo_status rig_alloc(rig *r, uint32_t buffer, uint64_t bytes, dbo_error *err);
/* Between the host and the rank's memory; the rank's work has been waited for. */
dbo_status rig_put(const rig *r, uint64_t address, const void *from, size_t bytes, dbo_error *err);
dbo_status rig_get(const rig *r, uint64_t address, void *to, size_t bytes, dbo_error *err);
dbo_status rig_sync(rig *r, dbo_error *err);

uint64_t rig_digest(const void *bytes, size_t count);
/* DBO_INTERNAL with the sentence. */
dbo_status rig_wrong(dbo_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- of CUDA: rig_cuda.c ---- */

/* Loads the kernels: a first launch inside a capture would load them there. */
dbo_status rig_cuda_load(dbo_error *err);
/* enqueue of a mix. */
dbo_status rig_cuda_mix(const dbo_op *op, void *stream, dbo_error *err);
dbo_status rig_cuda_copy(uint64_t to, uint64_t from, size_t bytes, dbo_error *err);

#endif
