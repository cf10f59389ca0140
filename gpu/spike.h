/* spike.h: the checks that prove the seam on a GPU.
 *
 * A check is a function that runs something through the seam, verifies it, and writes what it
 * measured into a line. It fails with a sentence. No threshold is a wish about speed: checks fail
 * on wrong data, wrong order, missing records, or overlap that is not there.
 */
#ifndef DBO_GPU_SPIKE_H
#define DBO_GPU_SPIKE_H

#include "core/rank/rank.h"
#include "core/trace/trace.h"
#include "gpu/cuda_device.h"
#include "gpu/cupti_trace.h"

#include <stdio.h>

typedef struct spike_line {
    char text[1200];
    size_t used;
} spike_line;

/* Appends to the line. */
void spike_say(spike_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A GPU with its seam and one rank on it. */
typedef struct spike_machine {
    dbo_cuda *cuda;
    dbo_cupti *cupti; /* NULL: no device records */
    dbo_trace trace;
    dbo_seam seam;
    dbo_fiber_pool *fibers;
    dbo_rank rank;
} spike_machine;

typedef struct spike_options {
    dbo_context_kind executor;
    bool records; /* device records, through CUPTI */
    dbo_cupti_way way;
    int device;
    cudaStream_t compute, comm; /* the caller's streams to adopt; NULL: new ones */
} spike_options;

/* On failure everything is closed. */
dbo_status spike_open(spike_machine *m, const spike_options *options, dbo_error *err);
void spike_close(spike_machine *m);

/* The sentence of the machine's last failure into *err. */
dbo_status spike_failed(const spike_machine *m, dbo_status status, dbo_error *err);
dbo_status spike_cuda(cudaError_t error, const char *what, dbo_error *err);
#define SPIKE_CUDA(call) DBO_TRY(spike_cuda((call), #call, err))
#define SPIKE_SEAM(call)                                \
    do {                                                \
        dbo_status spike_status_ = (call);              \
        if (spike_status_ != DBO_OK)                    \
            return spike_failed(m, spike_status_, err); \
    } while (0)

int64_t spike_now_ns(void);
/* Bytes of the running fiber's stack below this call that have ever been touched. */
size_t spike_stack_touched(void);
/* Waits for everything on the device. */
dbo_status spike_sync(dbo_error *err);
/* Device time from `start` to `stop` (events with timing), after waiting for `stop`. */
double spike_elapsed_us(cudaEvent_t start, cudaEvent_t stop);
/* Nanoseconds in which both a span of `a` and one of `b` run, over the spans of a trace. */
typedef bool (*spike_pick)(const dbo_span *span);
int64_t spike_overlap_ns(const dbo_trace *trace, spike_pick a, spike_pick b);

/* ---- the ping-pong program: two ubatches, two streams, verifiable ---- */

typedef struct spike_pingpong {
    dbo_program program;
    uint64_t addresses[2];
    uint32_t numbers; /* of each ubatch */
    dbo_access access[2];
    dbo_op_io io[6];
    uint32_t affine[6][2];
    int shared_bytes;
    size_t stack_bytes; /* deepest use of an ubatch's stack below the interpreter; fibers only */
} spike_pingpong;

/* Ops hold their stream for `ns` before they compute, on `sms` SMs. */
dbo_status spike_pingpong_init(spike_pingpong *p, spike_machine *m, int64_t ns, uint32_t sms,
                               dbo_error *err);
void spike_pingpong_fini(spike_pingpong *p);
dbo_status spike_pingpong_reset(spike_pingpong *p, dbo_error *err);
/* One step, eagerly or into the capture in progress. */
dbo_status spike_pingpong_run(spike_pingpong *p, spike_machine *m, uint32_t step, dbo_error *err);
/* Are the numbers those of `steps` steps in the right order? */
dbo_status spike_pingpong_verify(const spike_pingpong *p, uint32_t steps, dbo_error *err);

/* ---- checks, by file ---- */

typedef dbo_status (*spike_check)(spike_line *line, dbo_error *err);

dbo_status spike_stack_cold(spike_line *line, dbo_error *err);
dbo_status spike_synthetic_duration(spike_line *line, dbo_error *err);
dbo_status spike_synthetic_sms(spike_line *line, dbo_error *err);
dbo_status spike_host_costs(spike_line *line, dbo_error *err);
dbo_status spike_launch_queue(spike_line *line, dbo_error *err);
dbo_status spike_handoff_fibers(spike_line *line, dbo_error *err);
dbo_status spike_handoff_threads(spike_line *line, dbo_error *err);
dbo_status spike_graph_fibers(spike_line *line, dbo_error *err);
dbo_status spike_graph_threads(spike_line *line, dbo_error *err);
dbo_status spike_graph_unjoined(spike_line *line, dbo_error *err);
dbo_status spike_capture_rules(spike_line *line, dbo_error *err);
dbo_status spike_trace_eager(spike_line *line, dbo_error *err);
dbo_status spike_trace_threads(spike_line *line, dbo_error *err);
dbo_status spike_trace_replay(spike_line *line, dbo_error *err);
dbo_status spike_trace_ways(spike_line *line, dbo_error *err);
dbo_status spike_trace_cost(spike_line *line, dbo_error *err);
dbo_status spike_allocator_streams(spike_line *line, dbo_error *err);
dbo_status spike_allocator_capture(spike_line *line, dbo_error *err);
dbo_status spike_allocator_cost(spike_line *line, dbo_error *err);
dbo_status spike_own_kernels(spike_line *line, dbo_error *err);
dbo_status spike_bounce(spike_line *line, dbo_error *err);
dbo_status spike_bounce_schedule(spike_line *line, dbo_error *err);
/* One rank of the NCCL checks, in a process of its own; prints its own lines on rank 0. */
dbo_status spike_nccl_rank(uint32_t rank, uint32_t size, const char *ids_hex, dbo_error *err);
/* Starts the ranks (this program again), passes their lines on. */
dbo_status spike_nccl(uint32_t size, dbo_error *err);

#endif
