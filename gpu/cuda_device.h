/* cuda_device.h: one rank's GPU as seam tables: host, device, mem and graph over the CUDA runtime.
 *
 * A dbo_cuda owns the CUDA streams, events, graphs and memory of its rank; the numbers that the
 * seam speaks of index its tables. The all-to-all back ends of this room (nccl_a2a, bounce_a2a)
 * stand on the same object: they find streams, buffers and the failure sentence here, and put
 * their own streams beside it.
 *
 *     dbo_cuda *cuda = dbo_cuda_create(&(dbo_cuda_config){.device = 0}, &err);
 *     dbo_cuda_fill(cuda, &seam);          // host, device, mem, graph
 *
 * Which kernel an op runs: its own (`enqueue` of its io list); else the one registered for its kind
 * (dbo_cuda_set_kernel); without one, an op whose cost has fixed_ns >= 0 runs the synthetic kernel
 * (synthetic.h), any other is refused. A machine that is to compute (`numeric`) refuses an op that
 * has a reference too: nothing would compute it.
 *
 * Threads: calls come from whoever holds the rank's turn, one at a time. A capture must be begun
 * and ended by one OS thread (the runner's); other threads may issue into it in between.
 *
 * Events: CUDA ties an event to where it was last recorded. Inside a capture only events of that
 * capture can be waited for; outside, events of a finished capture can be neither waited for nor
 * queried. Both are refused here with a sentence, before CUDA would invalidate the capture.
 */
#ifndef DBO_GPU_CUDA_DEVICE_H
#define DBO_GPU_CUDA_DEVICE_H

#include "core/seam/seam.h"

#include <cuda_runtime_api.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_cuda dbo_cuda;
typedef struct dbo_cupti dbo_cupti;

typedef struct dbo_cuda_config {
    int device;
    const dbo_trace_ops *trace; /* op_issued is reported here; NULL: nowhere */
    void *trace_self;
    dbo_cupti *cupti; /* borrowed; ids of ops are pushed to it; NULL: no device records */
    bool (*cancelled)(void *arg); /* or NULL; polled by host waits, which it ends */
    void *cancelled_arg;
    /* Streams of the caller's that become the rank's first two (compute, comm) instead of new ones;
     * NULL: a new one. Borrowed: they outlive the dbo_cuda and are not destroyed by it. The legacy
     * default stream cannot be adopted: it cannot be captured, and its handle is NULL. */
    cudaStream_t compute, comm;
    bool numeric; /* an op that has a reference is refused rather than run for its time alone */
} dbo_cuda_config;

/* NULL with *err set on failure. Destroy waits for the device's work; NULL is fine. Every
 * all-to-all object that stands on it must have been destroyed before, and its graphs before those.
 */
dbo_cuda *dbo_cuda_create(const dbo_cuda_config *config, dbo_error *err);
void dbo_cuda_destroy(dbo_cuda *cuda);
/* How many devices CUDA sees; DBO_UNSUPPORTED with CUDA's reason when there is none. */
dbo_status dbo_cuda_count_devices(uint32_t *out, dbo_error *err);
/* Waits for all work on the rank's device; DBO_CANCELLED ends it while a stream of the rank's is
 * busy. */
dbo_status dbo_cuda_synchronize(dbo_cuda *cuda);
/* Destroys every graph: before a transport that they captured transfers of. */
void dbo_cuda_destroy_graphs(dbo_cuda *cuda);
/* Nodes of a captured graph; 0 when there is none. */
uint32_t dbo_cuda_graph_nodes(const dbo_cuda *cuda, dbo_graph graph);

/* Sets host, device, mem and graph of the seam, and their selves. */
void dbo_cuda_fill(dbo_cuda *cuda, dbo_seam *seam);

/* Enqueues the op's own kernels on `stream`; arg is the registered one. The back end has already
 * reported the issue. */
typedef dbo_status (*dbo_cuda_kernel_fn)(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op,
                                         void *arg);
void dbo_cuda_set_kernel(dbo_cuda *cuda, dbo_op_kind kind, dbo_cuda_kernel_fn fn, void *arg);

/* Device memory of one access, from the addresses that came with its op; NULL: no storage. */
static inline void *dbo_cuda_pointer(const uint64_t *addresses, const dbo_access *access)
{
    if (!addresses || !addresses[access->buffer])
        return NULL;
    return (void *)(uintptr_t)(addresses[access->buffer] + access->offset_bytes);
}

/* ---- for the other files of this room ---- */

cudaStream_t dbo_cuda_stream(const dbo_cuda *cuda, dbo_stream stream);
bool dbo_cuda_capturing(const dbo_cuda *cuda);
/* A stream of the room's own, at the highest priority: its spans carry DBO_NETWORK_STREAM and the
 * part FLIGHT. The caller destroys it with cudaStreamDestroy. */
dbo_status dbo_cuda_internal_stream(dbo_cuda *cuda, const char *name, cudaStream_t *out);
/* `stream` (any of the room's) waits for an event of the seam, under the seam's rules. */
dbo_status dbo_cuda_wait_event(dbo_cuda *cuda, cudaStream_t stream, dbo_event event);
/* Polls until the event is complete or the run is cancelled. */
dbo_status dbo_cuda_host_wait_raw(dbo_cuda *cuda, cudaEvent_t event);
/* Work issued by this thread between the two belongs to the op. `issued_as` RUN: it runs on
 * `stream`; SEND: it is posted there but its device work is a flight, on a stream of the room's
 * own. */
void dbo_cuda_op_begin(dbo_cuda *cuda, dbo_op_id id, dbo_span_part issued_as, dbo_stream stream);
void dbo_cuda_op_end(dbo_cuda *cuda);
/* Keeps a sentence for device.status and returns its status. `what` names the call that failed. */
dbo_status dbo_cuda_failed(dbo_cuda *cuda, cudaError_t error, const char *what);
dbo_status dbo_cuda_refuse(dbo_cuda *cuda, dbo_status status, const char *hint, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
/* The sentence kept last into *err; returns its status. */
dbo_status dbo_cuda_last_failure(const dbo_cuda *cuda, dbo_error *err);
/* DBO_OK, or dbo_cuda_failed with the text of the call. */
#define DBO_CUDA(cuda, call)                                        \
    do {                                                            \
        cudaError_t dbo_cuda_error_ = (call);                       \
        if (__builtin_expect(dbo_cuda_error_ != cudaSuccess, 0))    \
            return dbo_cuda_failed((cuda), dbo_cuda_error_, #call); \
    } while (0)

DBO_PUBLIC_END

#endif
