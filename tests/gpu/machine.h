/* machine.h: a GPU with one rank on it, for cases that are CUDA's alone: what lies under the seam.
 *
 *     gpu_machine m;
 *     DBO_TRY(gpu_open(&m, &(gpu_options){.records = true}, err));
 *     SEAM_TRY(m.seam.graph->begin(m.seam.graph_self, m.rank.streams[0]));
 *     gpu_close(&m);
 */
#ifndef DBO_TESTS_GPU_MACHINE_H
#define DBO_TESTS_GPU_MACHINE_H

#include "core/rank/rank.h"
#include "core/trace/trace.h"
#include "gpu/cuda_device.h"
#include "gpu/cupti_trace.h"
#include "tests/gpu/report.h"

/* A GPU with its seam and one rank on it. */
typedef struct gpu_machine {
    dbo_cuda *cuda;
    dbo_cupti *cupti; /* NULL: no device records */
    dbo_trace trace;
    dbo_seam seam;
    dbo_fiber_pool *fibers;
    dbo_rank rank;
} gpu_machine;

typedef struct gpu_options {
    dbo_context_kind executor;
    bool records; /* device records, through CUPTI */
    dbo_cupti_way way;
    int device;
    cudaStream_t compute, comm; /* the caller's streams to adopt; NULL: new ones */
} gpu_options;

/* On failure everything is closed. */
dbo_status gpu_open(gpu_machine *m, const gpu_options *options, dbo_error *err);
void gpu_close(gpu_machine *m);

/* The sentence of the machine's last failure into *err. */
dbo_status gpu_failed(const gpu_machine *m, dbo_status status, dbo_error *err);
dbo_status gpu_cuda(cudaError_t error, const char *what, dbo_error *err);
#define GPU_TRY(call) DBO_TRY(gpu_cuda((call), #call, err))
#define SEAM_TRY(call)                               \
    do {                                             \
        dbo_status seam_status_ = (call);            \
        if (seam_status_ != DBO_OK)                  \
            return gpu_failed(m, seam_status_, err); \
    } while (0)

/* Bytes of the running fiber's stack below this call that have ever been touched. */
size_t test_stack_touched(void);
/* Waits for everything on the device. */
dbo_status gpu_sync(dbo_error *err);
/* Device time from `start` to `stop` (events with timing), after waiting for `stop`. */
double gpu_elapsed_us(cudaEvent_t start, cudaEvent_t stop);
/* Nanoseconds in which both a span of `a` and one of `b` run, over the spans of a trace. */
typedef bool (*test_pick)(const dbo_span *span);
int64_t test_overlap_ns(const dbo_trace *trace, test_pick a, test_pick b);

/* ---- the ping-pong program: two ubatches, two streams, verifiable ---- */

typedef struct pingpong {
    dbo_program program;
    uint64_t addresses[2];
    uint32_t numbers; /* of each ubatch */
    dbo_access access[2];
    dbo_op_io io[6];
    uint32_t affine[6][2];
    int shared_bytes;
    size_t stack_bytes; /* deepest use of an ubatch's stack below the interpreter; fibers only */
} pingpong;

/* Ops hold their stream for `ns` before they compute, on `sms` SMs. */
dbo_status pingpong_init(pingpong *p, gpu_machine *m, int64_t ns, uint32_t sms, dbo_error *err);
void pingpong_fini(pingpong *p);
dbo_status pingpong_reset(pingpong *p, dbo_error *err);
/* One step, eagerly or into the capture in progress. */
dbo_status pingpong_run(pingpong *p, gpu_machine *m, uint32_t step, dbo_error *err);
/* Are the numbers those of `steps` steps in the right order? */
dbo_status pingpong_verify(const pingpong *p, uint32_t steps, dbo_error *err);

#endif
