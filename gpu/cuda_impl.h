/* cuda_impl.h: what a dbo_cuda is made of; for the cuda_*.c files alone, one a subject: rank
 * (the object, failures), stream (and events), launch, graph, memory. Numbers of the seam index the
 * three tables; a slot that is not `used` is free:
 *
 *     cudaStreamWaitEvent(cuda->streams[stream], cuda->events[event].event, 0);
 */
#ifndef DBO_GPU_CUDA_IMPL_H
#define DBO_GPU_CUDA_IMPL_H

#include "gpu/cuda_device.h"

typedef struct cuda_event_slot {
    cudaEvent_t event;
    uint32_t captured_in; /* capture in which it was last recorded; 0: outside of any */
    bool used, recorded;
} cuda_event_slot;

typedef struct cuda_graph_slot {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    bool used;
} cuda_graph_slot;

struct dbo_cuda {
    dbo_cuda_config config;
    int shared_bytes; /* of a synthetic CTA that fills its SM */
    uint32_t total_sms, compute_sms;
    cudaStream_t *streams;
    cuda_event_slot *events;
    cuda_graph_slot *graphs;
    uint32_t num_streams, cap_streams, num_events, cap_events, num_graphs, cap_graphs;
    uint32_t capture;      /* number of the capture in progress; 0: none */
    uint32_t last_capture; /* counts captures begun */
    dbo_stream capture_stream;
    dbo_cuda_kernel_fn kernels[DBO_KIND_COUNT];
    void *kernel_args[DBO_KIND_COUNT];
    dbo_error failure; /* the last one */
};

/* Room for at least `need` items, doubling; new ones are zeroed. */
dbo_status dbo_cuda_reserve(dbo_cuda *cuda, void *array_pointer, uint32_t *cap, uint32_t need,
                            size_t item_bytes);
/* Makes the rank's device the calling thread's: a thread starts out with device 0. Needed where
 * CUDA looks at it (launches, creation, allocation); events and streams know theirs. About 0.1
 * us. */
static inline dbo_status dbo_cuda_enter(dbo_cuda *cuda)
{
    DBO_CUDA(cuda, cudaSetDevice(cuda->config.device));
    return DBO_OK;
}
/* Is this stream part of the capture in progress? */
bool dbo_cuda_stream_captures(const dbo_cuda *cuda, dbo_stream stream);

/* ---- of one file for the others ---- */

int64_t dbo_cuda_now_ns(void *self);
bool dbo_cuda_cancelled(void *self);
dbo_status dbo_cuda_status(void *self, dbo_error *err); /* and forgets it */
dbo_status dbo_cuda_launch(void *self, dbo_stream stream, const dbo_op *op);
dbo_status dbo_cuda_set_compute_sms(void *self, uint32_t sms);
uint32_t dbo_cuda_total_sms(void *self);
void dbo_cuda_event_destroy(void *self, dbo_event event);
void dbo_cuda_close_streams(dbo_cuda *cuda); /* and events */

extern const dbo_device_ops dbo_cuda_device_ops;
extern const dbo_mem_ops dbo_cuda_mem_ops;
extern const dbo_graph_ops dbo_cuda_graph_ops;

#endif
